"""Why no zygote can be had: whose failure it is, and what to type."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Literal

_PACKAGE = str(Path(__file__).parents[1])
_FRAME = re.compile(r'File "([^"]+)", line \d+')

#: What Python, the loader and Valgrind say. Who says it in the end is a matter of where the memory ended.
_OUT_OF_MEMORY = re.compile(
    r"MemoryError|error return without exception set|out of memory|cannot allocate memory|"
    r"failed to map segment|Valgrind cannot continue",
    re.IGNORECASE,
)
_LIMITS = ("RLIMIT_AS", "-v"), ("RLIMIT_DATA", "-d")
#: So many files are enough for what is ours, and for most tests.
_FILES = 256

REPORT = "pytest --instrcount --instrcount-debug=DIR    # then report it, with what is in DIR"


def whose_failure(said: str) -> Literal["plugin", "project", "valgrind"]:
    r"""Who failed, by what was said last: a traceback is by Python, which Valgrind has started.

    >>> whose_failure('File "/shop/conftest.py", line 3, in <module>\\nNameError: x')
    'project'
    >>> whose_failure("valgrind: failed to start tool 'callgrind'")
    'valgrind'
    """
    frames = _FRAME.findall(said)
    if frames:
        return "plugin" if frames[-1].startswith(f"{_PACKAGE}/") else "project"
    return "project" if said.startswith("pytest ended with") else "valgrind"


def met_limit(said: str) -> tuple[str, str] | None:
    """The limit of the shell that a process has met, in words, and what to type; None if it met none."""
    import resource  # not on each system that counts byte code

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if os.strerror(errno.EMFILE) in said and files < _FILES:
        why = f"it may have {files} files open (ulimit -n), which is too little"
        return why, f"ulimit -n {_FILES}    # in a new shell"
    if not _OUT_OF_MEMORY.search(said):
        return None
    for limit, option in _LIMITS:
        soft, _ = resource.getrlimit(getattr(resource, limit))
        if soft != resource.RLIM_INFINITY:
            why = (
                f"it is given {soft / 1e6:,.0f} MB of memory (ulimit {option}), which is too little"
            )
            return why, f"ulimit {option} unlimited"
    return None


def why_and_remedy(said: str, place: str, *, valgrind: bool) -> tuple[str, str]:
    """The message for a zygote that does not start or stay alive, and the command to type."""
    limit = met_limit(said)
    if limit is not None:
        why, remedy = limit
        return f"pytest cannot run {place} here: {why}", remedy
    whose = whose_failure(said)
    if whose == "plugin":
        return f"pytest-instrcount itself failed {place}: {said}", REPORT
    why = f"pytest cannot run {place} here: {said}"
    if whose == "project" or not valgrind:
        return why, "pytest    # without --instrcount: does it start?"
    return why, "valgrind --tool=callgrind --callgrind-out-file=/dev/null true    # says more"


def broken_supervisor(said: str) -> tuple[str, str]:
    """The message for a supervisor that has ended, and the command to type."""
    if whose_failure(said) == "plugin":
        return f"pytest-instrcount itself failed, beside Valgrind\n{said}", REPORT
    why = f"the process that watches over Valgrind ended\n{said}".strip()
    return why, "run again; if it happens again, report it with the lines above"
