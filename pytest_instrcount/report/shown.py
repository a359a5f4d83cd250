"""A bundle -> lines for a terminal: which of its tests, and the texts of their failures. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.names import printable, shown_path
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.report.bundle import Bundle, BundledTest


def find_tests(bundle: Bundle, wanted: str, path: Path) -> tuple[BundledTest, ...]:
    """The test of that id, else all with that text in their ids; all of them for no text.

    Raises InstrcountError "bundle-test" if there is none.
    """
    found = [test for test in bundle.tests if test.nodeid == wanted]
    found = found or [test for test in bundle.tests if wanted in test.nodeid]
    if wanted and not found:
        names = ", ".join(printable(test.nodeid) for test in bundle.tests[:5])
        raise InstrcountError(
            "bundle-test",
            f"{shown_path(path)} holds no test {printable(wanted)}, but {names}",
            f"{show_command(path)}",
        )
    return tuple(found)


def show_command(path: Path | str) -> str:
    """The command that prints a bundle again."""
    return f"python -m pytest_instrcount show {shlex.quote(printable(str(path)))}"


def render_shown(bundle: Bundle, tests: tuple[BundledTest, ...], width: int = 80) -> list[str]:
    """The run in a few lines, then the texts of its failures as they were."""
    number = len(bundle.tests)
    lines = [f"{number} failed test{'' if number == 1 else 's'} of", f"  {bundle.command}"]
    commit = bundle.commit.removesuffix("+")
    if commit:
        changed = ", and changes to it" if bundle.commit != commit else ""
        lines.append(f"  at commit {commit}{changed}")
    lines += [f"  {name} {version}" for name, version in bundle.versions.items()]
    for test in tests:
        lines += ["", f" {test.nodeid} ".center(width, "_"), *test.text]
    return [escape_controls(printable(line)) for line in lines]
