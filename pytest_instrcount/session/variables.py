"""Variables that the user has set, and that the tests' code would not find under Valgrind."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_instrcount.callgrind.command import child_environment
from pytest_instrcount.counts.python.source import is_installed
from pytest_instrcount.gate.store.names import named
from pytest_instrcount.host.procfs import environment_of

_NAME = r"""["'](\w+)["']"""
_READ = re.compile(
    rf"""\b(?:environ(?:\.get)?\s*[\[(]|getenv\()\s*{_NAME}(?!\s*\]\s*=[^=])
    |{_NAME}\s+(?:not\s+)?in\s+(?:os\.)?environ\b""",
    re.VERBOSE,
)
_SET = re.compile(
    rf"""\b(?:environ\s*\[|environ\.setdefault\(|setenv\()\s*{_NAME}\s*(?:\]\s*=[^=]|,)""",
    re.VERBOSE,
)


def missing_variables(root: Path, let_through: Sequence[str]) -> Iterator[str]:
    """A sentence for each variable of this process that an imported file below ``root`` reads by its name.

    Those that are there under Valgrind, as ``let_through`` is, or that one of the files sets, are left out.
    """
    given = environment_of("self")  # what a conftest has set since is set inside, too
    there = child_environment(given, let_through, sys.executable, root).keys()
    read: dict[str, list[str]] = {}
    own: set[str] = set()
    for path, text in _sources(root):
        own.update(_SET.findall(text))
        for name in dict.fromkeys(map("".join, _READ.findall(text))):
            read.setdefault(name, []).append(os.path.relpath(path, root))
    for name in sorted(given.keys() & read.keys() - there - own):
        yield (
            f"{name} is set, and not there under Valgrind: {named(read[name])} would find it "
            f"(instrcount_env = {name} in the ini file)"
        )


def _sources(root: Path) -> Iterator[tuple[Path, str]]:
    """The files of the project that have been imported, and what is in them."""
    files: set[object] = set()
    for module in [*sys.modules.values()]:
        with suppress(AttributeError):  # a lazy module would be imported by ``getattr``
            files.add(object.__getattribute__(module, "__dict__").get("__file__"))
    for file in sorted(file for file in files if isinstance(file, str) and file.endswith(".py")):
        path = Path(file)
        if path.is_relative_to(root) and not is_installed(file):
            with suppress(OSError):
                text = path.read_text(encoding="utf-8", errors="replace")
                if "environ" in text or "etenv" in text:  # searching takes many times as long
                    yield path, text
