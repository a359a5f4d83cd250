"""Merges the measurements of several machines: folders of baselines, or JSON reports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.compare import differing_facts
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.store.baseline_json import parse_baseline, render_baseline
from pytest_instrcount.gate.store.calls import CallTable
from pytest_instrcount.gate.store.folder import (
    Place,
    StoredFile,
    add_baselines,
    read_folder,
    shard_files,
)
from pytest_instrcount.gate.store.names import file_error, printable, shown_path
from pytest_instrcount.gate.store.parts import summary_of
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.shard import Shard, denoise_again, load_shard
from pytest_instrcount.host.files import write_output
from pytest_instrcount.host.text import several
from pytest_instrcount.report.read_json import (
    conflict,
    failures_in,
    join_reports,
    load_report,
    missing_shards,
)
from pytest_instrcount.report.words import count_verdicts

_MOST_LINES = 20


def merge(out: Path, inputs: Sequence[Path], policy: Policy) -> tuple[list[str], int]:
    """Merge folders into a folder, or reports into a report; what is to be said, and the exit code.

    Exit code 1: the merged report holds failures, or lacks a shard. Raises InstrcountError, and
    then nothing is written.
    """
    folders = [os.path.isdir(path) for path in inputs]
    if all(folders):
        return _merge_folders(out, inputs), 0
    if any(folders):
        into = "python -m pytest_instrcount merge --into"
        folder = shown_path(inputs[folders.index(True)])
        file = shown_path(inputs[folders.index(False)])
        raise InstrcountError(
            "merge-mixed",
            f"{folder} is a folder of baselines, {file} is none",
            f"one after the other: {into} DIR {folder} ..., then {into} REPORT {file} ...",
        )
    return _merge_reports(out, inputs, policy)


def _keep_outside(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse an OUT inside an input, which would be no folder of baselines from then on."""
    above = Path(os.path.realpath(out)).parents
    for folder in inputs:
        there = Path(os.path.realpath(folder))
        if there in above:
            raise InstrcountError(
                "merge-write",
                f"{shown_path(out)} is inside {shown_path(folder)}, where only its own baselines belong",
                f"python -m pytest_instrcount merge --into {shown_path(there)}-merged "
                + " ".join(map(shown_path, inputs)),
            )


def _keep_foreign(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse an OUT that is no report, and would be lost."""
    try:
        if out.is_file() and out.stat().st_size:
            load_report(out)
    except InstrcountError as error:
        if error.slug == "report-damaged":
            raise InstrcountError(
                "merge-write",
                f"{shown_path(out)} is no report, and would be lost",
                "python -m pytest_instrcount merge --into merged.json "
                + " ".join(map(shown_path, inputs)),
            ) from None
    except (OSError, ValueError):  # whoever writes says so
        return


def _merge_reports(out: Path, inputs: Sequence[Path], policy: Policy) -> tuple[list[str], int]:
    reports = [(path, load_report(path)) for path in inputs]
    report = join_reports(reports)
    _keep_foreign(out, inputs)
    try:
        write_output(out, (json.dumps(report, indent=2) + "\n").encode())
    except (OSError, ValueError) as error:
        raise file_error("merge-write", out, error, f"ls -ld {shown_path(out)}") from error
    failures = [*missing_shards([each for _, each in reports]), *failures_in(report, policy)]
    tests = several(len(report["tests"]), "test")
    lines = [
        f"{several(len(inputs), 'report')} of {tests} written to {shown_path(out)}",
        f"instrcount: {_counted(report['tests']) or 'no test'}",
    ]
    if report.get("traces"):
        lines.append(f"instrcount, calls: {_counted(report['traces'])}")
    lines += [f"  {printable(each)}" for each in failures[:_MOST_LINES]]
    if len(failures) > _MOST_LINES:
        lines.append(f"  and {len(failures) - _MOST_LINES} more")
    return lines, 1 if failures else 0


def _counted(records: Iterable[Mapping[str, Any]]) -> str:
    return count_verdicts(Verdict(each["verdict"]) for each in records)


@dataclass(frozen=True, slots=True)
class _Input:
    root: Path
    files: list[StoredFile]
    #: environment and what a run has measured there
    shards: list[tuple[str, Shard]]

    def has_measured(self, file: StoredFile) -> bool:
        return any(key == file.place[0] and file.nodeid in each.tests for key, each in self.shards)


def _merge_folders(out: Path, inputs: Sequence[Path]) -> list[str]:
    read = _read(inputs)
    _keep_outside(out, inputs)
    chosen = _choose(read)
    contents = {place: file.content for place, file in chosen.items()}
    contents |= _denoised_again(read, chosen)
    there = {}
    if os.path.lexists(out):
        there = {file.place: file for file in read_folder(out)}
        for place in contents.keys() & there.keys():
            if not _holds(there[place].content, contents[place]):
                raise conflict(there[place].path, chosen[place].path, chosen[place].nodeid)
    added = {place: content for place, content in contents.items() if place not in there}
    add_baselines(out, added)
    number, same = len(added), len(contents) - len(added)
    beside = f", beside {same} that were there" if same else ""
    lines = [f"{several(number, 'baseline')} written to {shown_path(out)}{beside}"]
    return lines + _notes(read, chosen)


def _read(roots: Sequence[Path]) -> list[_Input]:
    read = [
        _Input(
            root,
            list(read_folder(root)),
            [(key, load_shard(path)) for path, key in shard_files(root)],
        )
        for root in roots
    ]
    if not any(each.files or each.shards for each in read):
        where = " ".join(map(shown_path, roots))
        raise InstrcountError(
            "no-baselines", f"there are no baselines, nor shards, in {where}", f"ls {where}"
        )
    return read


def _choose(read: Sequence[_Input]) -> dict[Place, StoredFile]:
    """One file for each place. Of two that differ, that of the shard which has measured the test."""
    found: dict[Place, tuple[_Input, StoredFile]] = {}
    for each in read:
        for file in each.files:
            before = found.get(file.place)
            if before is None:
                found[file.place] = each, file
                continue
            if _holds(before[1].content, file.content):
                continue
            if not _holds(file.content, before[1].content):
                was, now = before[0].has_measured(before[1]), each.has_measured(file)
                if was is now:
                    raise conflict(before[1].path, file.path, file.nodeid)
                if was:
                    continue
            found[file.place] = each, file
    return {place: file for place, (_, file) in found.items()}


def _holds(one: Baseline | CallTable, other: Baseline | CallTable) -> bool:
    """True if one says all that the other does: it is equal, or the other only lost its profile."""
    if not isinstance(one, Baseline) or not isinstance(other, Baseline) or one.lost:
        return one == other
    return other == (summary_of(one) if other.lost else one)


def _denoised_again(
    read: Sequence[_Input], chosen: dict[Place, StoredFile]
) -> dict[Place, Baseline]:
    """The baselines that know more noise, now that all shards are together."""
    noisy: dict[str, set[str]] = {}
    for each in read:
        for key, shard in each.shards:
            noisy.setdefault(key, set()).update(shard.noisy)
    again: dict[Place, Baseline] = {}
    for each in read:
        for key, shard in each.shards:
            for place, file in chosen.items():
                profiles = shard.tests.get(file.nodeid) if place[0] == key else None
                if profiles is None or not isinstance(file.content, Baseline):
                    continue
                if profiles[0].total == file.content.total_ir:  # else it is left of an earlier run
                    whole = denoise_again(file.content, profiles, noisy[key])
                    # whoever wrote the shard
                    again[place] = parse_baseline(render_baseline(whole), file.path, file.nodeid)
    return again


def _notes(read: Sequence[_Input], chosen: dict[Place, StoredFile]) -> list[str]:
    lines = _without_profile(chosen.values())
    baselines: dict[str, list[Baseline]] = {}
    for place, file in chosen.items():
        if isinstance(file.content, Baseline):
            baselines.setdefault(place[0], []).append(file.content)
    sharded = {key for each in read for key, _ in each.shards}
    for key, found in baselines.items():
        lines += _mixed(key, found)
        noises = [set(each.denoised.noise.functions) for each in found if each.denoised is not None]
        known = set().union(*noises)
        lacking = sum(each != known for each in noises)
        if len(read) > 1 and lacking and key not in sharded:
            lines.append(
                f"{key}: {lacking} of {len(noises)} baselines do not know all {len(known)} functions "
                "that others have shown to be noise; shards that were run with --instrcount-shard "
                "are merged into what one run writes"
            )
    return lines


def _without_profile(files: Iterable[StoredFile]) -> list[str]:
    lost = [
        each.nodeid for each in files if isinstance(each.content, Baseline) and each.content.lost
    ]
    if not lost:
        return []
    number = several(len(lost), "baseline")
    return [f"{number} with a missing or damaged profile, like {printable(lost[0])}: only totals"]


def _mixed(key: str, found: Sequence[Baseline]) -> list[str]:
    """The line on baselines that are not all of one environment."""
    for other in found:
        differences = differing_facts(found[0].environment, other.environment)
        if differences:
            facts = ", ".join(f"{name} {one} / {two}" for name, one, two in differences[:3])
            line = (
                f"{key}: not all of one environment ({facts}): where a test is checked on "
                "the other, its baseline is incomparable"
            )
            return [printable(line)]
    return []
