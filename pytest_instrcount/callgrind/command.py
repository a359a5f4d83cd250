"""The command line and the environment of a process under Callgrind. Pure: no process is started.

The environment is made, not inherited: what a measurement can see must be the same in every
shell and on every machine (docs/explanation/environment).
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Let through as they are: they say who and where the user is, and how Python finds code.
LET_THROUGH = (
    "HOME",
    "USER",
    "PYTHONPATH",
    "PYTHONPYCACHEPREFIX",
    "PYTEST_PLUGINS",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "VIRTUAL_ENV",
    "PYTHON_JIT",
    "PYTEST_INSTRCOUNT_CORE",
)

#: The same everywhere. One thread and one arena: a count must not depend on the number of cores.
#: Valgrind counts ``rep movsb`` once a byte, so glibc is told to copy without it. The hash seed is
#: not 0: expat takes that as no seed at all, and makes one of its own in each process. Byte code
#: is written as the user wants it (the bootstrap knows), and never by what a test starts.
FIXED = {
    "PYTHONHASHSEED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUTF8": "1",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "COLUMNS": "80",
    "TERM": "dumb",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-ERMS,-FSRM:glibc.malloc.arena_max=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "PYTHON_CPU_COUNT": "1",
}

#: A conftest reads it to choose another database or port; every child has a value of its own.
CHILD_VARIABLE = "INSTRCOUNT_CHILD"
ROOT_CHILD = "0" * 8


#: Bytes of the path of the folder for temporary files: the first that is long enough, then by steps. The
#: second is the longest in which a test can have sockets of multiprocessing (107 bytes, with
#: ``/00000001/pymp-xxxxxxxx/listener-xxxxxxxx``).
_SHORT, _LONG, _STEP = 48, 66, 32
#: The number of its parts is a multiple of this.
_PARTS = 6


def temporary_folder(scratch: str) -> str:
    """The folder for temporary files in that of a run: TMPDIR shows neither in its length nor in its depth.

    >>> temporary_folder("/tmp/run"), temporary_folder("/var/tmp/run")
    ('/tmp/run/tmp/-/-/-------------------------------', '/var/tmp/run/tmp/-/-----------------------------')
    """
    own = len(os.fsencode(scratch)) + 1
    name = "tmp" + "/-" * (_PARTS - 1 - scratch.count("/") % _PARTS)
    needed = own + len(name)
    size = _SHORT if needed <= _SHORT else _LONG + max(0, -(-(needed - _LONG) // _STEP)) * _STEP
    return os.path.join(scratch, name.ljust(size - own, "-"))


def child_environment(
    inherited: Mapping[str, str], let_through: Sequence[str], executable: str, scratch: Path
) -> dict[str, str]:
    """The whole environment of the zygote.

    ``let_through`` adds names to those of LET_THROUGH, and wins over FIXED.

    >>> made = child_environment({"PATH": "/x", "TOKEN": "t"}, ["TOKEN"], "/opt/bin/python", Path("/tmp/s"))
    >>> made["TOKEN"], made["PATH"], made["PYTHONHASHSEED"]
    ('t', '/opt/bin:/usr/local/bin:/usr/bin:/bin', '1')
    """
    made = {name: inherited[name] for name in LET_THROUGH if name in inherited}
    made |= FIXED
    made["PATH"] = os.pathsep.join(
        (os.path.dirname(executable), "/usr/local/bin", "/usr/bin", "/bin")
    )
    made["TMPDIR"] = temporary_folder(str(scratch))
    made[CHILD_VARIABLE] = ROOT_CHILD
    libraries = library_path(inherited)
    if libraries:
        made["LD_LIBRARY_PATH"] = libraries
    made |= {name: inherited[name] for name in let_through if name in inherited}
    return made


def library_path(inherited: Mapping[str, str]) -> str:
    """Folders of shared libraries: libpython's own, since ``$ORIGIN`` fails under Valgrind."""
    folders = inherited.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        folders.append(str(sysconfig.get_config_var("LIBDIR")))
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder))


def as_option(path: Path) -> str:
    """A path as an option of Valgrind names it, where ``%p`` is the number of a process.

    >>> as_option(Path("/tmp/100%/log"))
    '/tmp/100%%/log'
    """
    return str(path).replace("%", "%%")


def valgrind_command(
    valgrind: str, scratch: Path, log: Path, more: Sequence[str] = ()
) -> list[str]:
    """Valgrind's part of the command line.

    ``--command-line-only`` keeps a project's ``.valgrindrc`` out; ``--vgdb=no`` leaves no FIFO
    behind; dumps go to a folder of the run, never to the working folder, whose listing is
    part of what the import system sees.
    """
    return [
        valgrind,
        "--tool=callgrind",
        "--command-line-only=yes",
        "--vgdb=no",
        "--error-exitcode=0",
        "--quiet",
        "--sanity-level=0",  # Valgrind looks over its own memory otherwise, again and again
        "--sigill-diagnostics=yes",  # which --quiet would switch off
        f"--log-file={as_option(log)}",
        "--instr-atstart=no",
        "--collect-atstart=yes",
        f"--callgrind-out-file={as_option(scratch / 'dumps')}/out.%p",
        *more,
    ]


def python_command(
    executable: str, package_folder: Path, plan: Path, options: Sequence[str] = ()
) -> list[str]:
    """Python's part, with options of its own.

    ``-S``: site is run later, once the import system sees only importable names.
    """
    bootstrap = package_folder / "callgrind" / "inside" / "bootstrap.py"
    return [executable, *options, "-S", str(bootstrap), str(plan)]
