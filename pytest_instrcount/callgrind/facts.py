"""Facts of the environment that decide whether two counts may be compared, and versions that explain one."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_instrcount.callgrind.command import FIXED
from pytest_instrcount.callgrind.failing import met_limit
from pytest_instrcount.callgrind.interpreter import build_facts, check_build
from pytest_instrcount.callgrind.requests import MACHINES
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.host.programs import run_program

#: How a measurement is made; to be raised when a change of the plugin moves counts.
PROTOCOL = "1"
OLDEST_VALGRIND = (3, 15)
#: To say its version takes it a moment.
_VERSION_SECONDS = 60.0

_INSTALL = "sudo apt-get install valgrind    # dnf, zypper, pacman: the same package name"
_RENAME = "--instrcount-valgrind=valgrind, which is looked for in PATH, or the path of another"


def find_valgrind(name: str) -> tuple[str, str]:
    """Path and version ("3.19.0") of the valgrind to run.

    Raises InstrcountError ``not-linux``, ``machine``, ``no-proc``, ``python-build``,
    ``valgrind-missing``, ``valgrind-broken``, or ``valgrind-old``.
    """
    if sys.platform != "linux":
        raise InstrcountError(
            "not-linux",
            f"Valgrind's Callgrind is used on Linux only, and this is {sys.platform}",
            "leave --instrcount out: the tests then run as ever",
        )
    if platform.machine() not in MACHINES:
        raise InstrcountError(
            "machine",
            f"client requests are not written for {platform.machine()}",
            "leave --instrcount out: the tests then run as ever",
        )
    if not os.path.isdir("/proc/self/task"):
        raise InstrcountError(
            "no-proc",
            "Valgrind reads /proc, and there is none here",
            "mount -t proc proc /proc",
        )
    check_build()
    path = shutil.which(name)
    if path is None:
        remedy = _INSTALL if name == "valgrind" else _RENAME
        raise InstrcountError("valgrind-missing", f"there is no {name!r} to run", remedy)
    try:
        answer = run_program([path, "--version"], _VERSION_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        why, remedy = met_limit(str(error)) or (str(error), _INSTALL)
        raise InstrcountError("valgrind-broken", f"{path} does not run: {why}", remedy) from None
    words = answer.stdout.decode(errors="replace")
    found = re.search(r"valgrind-(\d+)\.(\d+)\S*", words)
    if found is None:
        said = (words + answer.stderr.decode(errors="replace")).strip().splitlines()[-1:] or [
            "nothing"
        ]
        raise InstrcountError("valgrind-broken", f"{path} --version said {said[0]!r}", _INSTALL)
    version = found[0].removeprefix("valgrind-")
    if (int(found[1]), int(found[2])) < OLDEST_VALGRIND:
        oldest = ".".join(map(str, OLDEST_VALGRIND))
        raise InstrcountError(
            "valgrind-old", f"{path} is {version}; {oldest} or later is needed", _INSTALL
        )
    return path, version


def python_version() -> str:
    """The version of this Python, as "3.11.7": without what a build adds to it."""
    return ".".join(map(str, sys.version_info[:3]))


def environment_facts(
    valgrind_version: str, let_through: Sequence[str], options_of_python: Sequence[str]
) -> dict[str, str]:
    """Facts that two comparable measurements share, by name. Values of variables are not included."""
    return {
        "python": " ".join(sys.version.split()),
        "valgrind": valgrind_version,
        "libc": " ".join(platform.libc_ver()).strip() or "unknown",
        "machine": platform.machine(),
        "simd": simd_class(_read_cpuinfo()),
        "hashseed": FIXED["PYTHONHASHSEED"],
        "let_through": shown_names(let_through),
        "protocol": PROTOCOL,
        **build_facts(options_of_python),
    }


def shown_names(let_through: Sequence[str]) -> str:
    """The names of variables as a fact.

    >>> shown_names(["TOKEN", "APP"]), shown_names([])
    ('APP TOKEN', '-')
    """
    return " ".join(sorted(set(let_through))) or "-"


def simd_class(cpuinfo: str) -> str:
    """The instruction sets by which Valgrind chooses the processor it shows to programs.

    >>> simd_class("flags : sse4_2 avx avx2 fma")
    'avx2'
    """
    flags = set(re.findall(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)[0:1])
    words = set(" ".join(flags).split())
    for name in ("avx2", "avx", "sse4_2", "sse2"):
        if name in words:
            return name
    return "other"


def _read_cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""


class Packages:
    """Versions of the distributions that a test had imported."""

    def __init__(self) -> None:
        self._distributions: dict[str, list[str]] | None = None
        self._versions: dict[str, str] = {}

    def imported(self, modules: Iterable[str]) -> dict[str, str]:
        """Distribution -> version, for top-level module names."""
        if self._distributions is None:
            self._distributions = dict(importlib.metadata.packages_distributions())
        found = {}
        for module in modules:
            for name in self._distributions.get(module, ()):
                if name not in self._versions:
                    self._versions[name] = importlib.metadata.version(name)
                found[name] = self._versions[name]
        return found


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
