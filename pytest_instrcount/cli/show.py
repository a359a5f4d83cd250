"""``show`` and ``history``: what the baselines of a test say, now and in git's log, and what a bundle holds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.gate.store.folder import StoredFile, read_each
from pytest_instrcount.gate.store.names import (
    CALLS_SUFFIX,
    file_name,
    folder_parts,
    printable,
    shown_path,
)
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.text import escape_controls, escape_unprintable
from pytest_instrcount.report.bundle import Bundle, BundledTest, show_command
from pytest_instrcount.report.history import Past, read_past
from pytest_instrcount.report.stored import render_stored, render_table_of_calls
from pytest_instrcount.report.words import IR, UNIT_FACT, count, percent

FOLDER = "instrcount_baselines"
_MOST_NAMES = 5


def baseline_folder(given: Path | None) -> Path:
    """The folder that was given, else that of this folder or of the nearest one above.

    Raises InstrcountError "no-baselines".
    """
    here = Path.cwd()
    for folder in (here, *here.parents) if given is None else ():
        if os.path.isdir(folder / FOLDER):
            return folder / FOLDER
    if given is None or not os.path.isdir(given):
        raise InstrcountError(
            "no-baselines",
            f"there is no folder {shown_path(given or Path(FOLDER))}, here or above",
            "cd to the project, or say where: --baseline-dir DIR",
        )
    return given


def find_stored(folder: Path, wanted: str) -> list[StoredFile]:
    """The baselines of one test, in all environments; ``wanted`` is its id, or a part of it alone.

    Files of other tests may be damaged. Raises InstrcountError "test-unknown", "test-ambiguous", and as
    `read_folder` where a damaged file is, or may be, that test's.
    """
    read = list(read_each(folder))
    files = [each for _, each in read if not isinstance(each, InstrcountError)]
    ids = {file.nodeid for file in files}
    found = {wanted} & ids or {nodeid for nodeid in ids if wanted in nodeid}
    slug = file_name("::" + wanted.rpartition("::")[2]).rpartition("-")[0]
    _raise_damaged(sorted(read, key=lambda each: slug not in each[0].name), folder, found)
    if len(found) != 1:
        raise _not_one(folder, wanted, found, ids)
    return [file for file in files if file.nodeid in found]


def _not_one(folder: Path, wanted: str, found: set[str], ids: set[str]) -> InstrcountError:
    shown = ", ".join(map(printable, sorted(found or ids)[:_MOST_NAMES]))
    if not ids:
        why = f"{shown_path(folder)} has no baseline"
        return InstrcountError("test-unknown", why, "pytest --instrcount-update-baseline")
    if not found:
        return InstrcountError(
            "test-unknown",
            f"{shown_path(folder)} has no baseline of {printable(wanted)}, but {shown}",
            'pytest --collect-only -q -m "instrcount or trace_profile"    # which tests there are',
        )
    return InstrcountError(
        "test-ambiguous",
        f"{len(found)} tests have {printable(wanted)!r} in their ids, like {shown}",
        f"give a whole id, like {shlex.quote(escape_unprintable(min(found)))}",
    )


def _raise_damaged(
    read: Iterable[tuple[Path, StoredFile | InstrcountError]], folder: Path, found: set[str]
) -> None:
    """Raise the error of a file that may be of one of the tests that were found, if any was."""
    for path, each in read:
        if isinstance(each, StoredFile):
            continue
        if not found or any(_is_of(path, folder, nodeid) for nodeid in found):
            raise each


def _is_of(path: Path, folder: Path, nodeid: str) -> bool:
    """True if a file is where a test's is, in whatever environment."""
    stem = file_name(nodeid).removesuffix(".json")
    names = (f"{stem}.json", stem + CALLS_SUFFIX)
    place = path.relative_to(folder).parts[1:]
    return place in [(*folder_parts(nodeid), name) for name in names]


def show_stored(folder: Path, wanted: str, width: int) -> list[str]:
    """The lines of ``show TEST``, one environment after the other."""
    lines: list[str] = []
    for file in find_stored(folder, wanted):
        lines += ["", f"{file.place[0]}:"] if lines else [f"{file.place[0]}:"]
        if isinstance(file.content, CallTable):
            lines += render_table_of_calls(file.content, width)
        else:
            lines += render_stored(file.content, width)
    return lines


def show_history(folder: Path, wanted: str) -> list[str]:
    """The lines of ``history TEST``: commit, date, count, growth and reason, the newest first.

    Raises InstrcountError "no-history" without git, a repository, or a commit of it.
    """
    lines: list[str] = []
    for file in find_stored(folder, wanted):
        formerly = file.content.formerly if isinstance(file.content, Baseline) else ()
        past = read_past([*map(Store(folder, file.place[0]).path, formerly), file.path])
        lines += ["", f"{file.place[0]}:"] if lines else [f"{file.place[0]}:"]
        names = ", formerly ".join([file.nodeid, *reversed(formerly)])
        lines += [printable(names), *_history(past, file)]
    return lines


def _history(past: Past, file: StoredFile) -> list[str]:
    content = file.content
    if isinstance(content, CallTable):
        now, reason, unit = content.total, "", "calls"
    else:
        assert isinstance(content, Baseline)
        now = content.compared_ir
        reason = content.reason_for(now)
        unit = f"{content.environment.get(UNIT_FACT, f'mean {IR}')} a call"
    rows: list[tuple[str, str, int, str]] = [
        (each.commit[:12], each.date[:10], each.ir, each.reason or f"({each.subject})")
        for each in past.points
    ]
    if past.changed:
        rows.append(("(not committed)", "", now, reason))
    lines = []
    before: int | None = None
    for commit, date, ir, why in rows:
        delta = "" if not before else percent(Fraction(ir, before) - 1)
        lines.append(f"  {commit:<15} {date:<10} {count(ir):>15}  {delta:>8}  {why}".rstrip())
        before = ir
    said = [f"  {'commit':<15} {'date':<10} {unit:>15}  {'delta':>8}  reason"]
    said += [printable(line) for line in reversed(lines)]
    if past.shallow:
        said.append(
            "this clone is shallow: what was before, and when the oldest count came, is not known; "
            "git fetch --unshallow"
        )
    return said


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
            show_command(path),
        )
    return tuple(found)


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
