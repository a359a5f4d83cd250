"""JSON reports as files from anywhere: read, checked, joined."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.compare import differing
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.store.names import printable, shown_path
from pytest_instrcount.gate.store.reading import read_file
from pytest_instrcount.gate.store.values import counts_of, list_of, object_of, texts_of
from pytest_instrcount.report.json import SCHEMA, shard_dict

#: Bytes of a report that are read.
LARGEST = 500_000_000
#: Shards that one run may be made of.
MOST_SHARDS = 10_000

Report = dict[str, Any]

_MOST_FACTS = 5
# key of the report -> keys of an entry that other code relies on, and what they may be
_ENTRIES: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "tests": {
        "nodeid": (str,),
        "verdict": (str,),
        "cause": (str, type(None)),
        "ir": (int, type(None)),
        "baseline_ir": (int, type(None)),
        "denoised_ir": (int, type(None)),
        "delta": (int, float, type(None)),
        "detects": (int, float, type(None)),
        "floor": (int, float, type(None)),
        "limit": (str,),
    },
    "traces": {
        "nodeid": (str,),
        "verdict": (str,),
        "cause": (str, type(None)),
        "calls": (int, type(None)),
    },
    "budgets": {"nodeid": (str,), "budget": (str,), "kept": (bool,)},
}


def load_report(path: Path) -> Report:
    """Read a report of this release's schema.

    Raises InstrcountError "report-unreadable", "report-damaged", "report-newer" or "report-older".
    """
    try:
        data = read_file(path, LARGEST, "report-unreadable", pipe=True)
        found = json.loads(data.decode("utf-8"), parse_constant=_refuse)
        return _checked(found, path)
    except (ValueError, RecursionError) as error:
        raise InstrcountError(
            "report-damaged",
            f"{shown_path(path)} is no whole report: {printable(str(error))[:200]}",
            "pytest --instrcount --instrcount-report=json:PATH    # another file than that one",
        ) from None


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no number")


def _checked(found: object, path: Path) -> Report:
    if not isinstance(found, dict) or type(found.get("schema")) is not int:
        raise ValueError("it is something else")
    schema = found["schema"]
    if schema != SCHEMA:
        newer = schema > SCHEMA
        raise InstrcountError(
            "report-newer" if newer else "report-older",
            f"{shown_path(path)} has schema {schema}, this release reads {SCHEMA}",
            "python -m pip install --upgrade pytest-instrcount"
            if newer
            else f"pytest --instrcount --instrcount-report=json:{shown_path(path)}",
        )
    object_of(found, "it", ("schema", "environment", "against", "shards", *_ENTRIES))
    texts_of(found["environment"], "environment")
    if found["against"] is not None:
        texts_of(object_of(found["against"], "against", ("ref", "commit")), "against")
    for shard in list_of(found["shards"], "shards"):
        _check_shard(shard)
    for kind, keys in _ENTRIES.items():
        for entry in list_of(found[kind], kind):
            _check_entry(entry, kind, keys)
        _check_alone(found[kind], kind)
    return found


def _check_alone(entries: Sequence[Report], kind: str) -> None:
    keys = Counter((each["nodeid"], each.get("budget")) for each in entries)
    for (nodeid, _), number in keys.most_common(1):
        if number > 1:
            raise ValueError(f"{nodeid[:200]} stands twice in {kind}")


def _check_shard(found: object) -> None:
    shard = counts_of(object_of(found, "a shard", ("number", "of")), "a shard")
    if not 1 <= shard["number"] <= shard["of"] <= MOST_SHARDS:
        raise ValueError(f"a shard is not one of 1 to {MOST_SHARDS}")


def _check_entry(entry: object, kind: str, keys: Mapping[str, tuple[type, ...]]) -> None:
    if not isinstance(entry, dict):
        raise ValueError(f"an entry of {kind} is not an object")
    for key, types in keys.items():
        if key not in entry or type(entry[key]) not in types:
            raise ValueError(f"{key} in an entry of {kind} is missing, or has the wrong type")
        if isinstance(entry[key], (int, float)) and not _is_possible(key, entry[key]):
            raise ValueError(f"{key} in an entry of {kind} is {entry[key]}")
    if "verdict" in keys and entry["verdict"] not in Verdict.__members__:
        raise ValueError(f"{entry['verdict'][:40]!r} is no verdict")
    if "verdict" in keys and entry["cause"] not in (None, *Cause.__members__):
        raise ValueError(f"{str(entry['cause'])[:40]!r} is no cause")


def _is_possible(key: str, number: float) -> bool:
    """A growth may be less than nothing; else a number is not."""
    return (type(number) is int or isfinite(number)) and (number >= 0 or key == "delta")


def join_reports(reports: Sequence[tuple[Path, Report]]) -> Report:
    """One report with the results of all, in their order, stale baselines last.

    What one of them calls stale and another has measured is not stale. Raises InstrcountError
    "merge-environments" if they were made in different environments, "merge-conflict" if two differ
    in what they say of a test.
    """
    (first, report), *others = reports
    for path, other in others:
        differences = differing(_facts(report), _facts(other))
        if differences:
            facts = ", ".join(
                printable(f"{name} {one} / {two}") for name, one, two in differences[:_MOST_FACTS]
            )
            raise InstrcountError(
                "merge-environments",
                f"{shown_path(first)} and {shown_path(path)} are of different environments "
                f"({facts}), and are kept apart",
                "python -m pytest_instrcount merge, once for the reports of each environment",
            )
    joined: Report = {name: report[name] for name in ("schema", "environment", "against")}
    joined["shards"] = [
        shard_dict(number, of)
        for of, numbers in _shards_in([each for _, each in reports])
        for number in sorted(numbers)
        if len(numbers) < of
    ]
    for kind in _ENTRIES:
        joined[kind] = _join_entries(kind, [(path, each[kind]) for path, each in reports])
    return joined


def _facts(report: Report) -> dict[str, str]:
    """The facts that all reports of one run share."""
    against = report["against"]
    return {**report["environment"], "against": against["commit"] if against else "-"}


def _join_entries(kind: str, lists: Sequence[tuple[Path, list[Report]]]) -> list[Report]:
    found: dict[tuple[str, str], tuple[Path, Report]] = {}
    for path, entries in lists:
        for entry in entries:
            key = entry["nodeid"], entry.get("budget", "")
            before = found.get(key)
            if before is None or _is_stale(before[1]):
                found[key] = path, entry
            elif entry != before[1] and not _is_stale(entry):
                raise conflict(before[0], path, entry["nodeid"])
    entries = [entry for _, entry in found.values()]
    return [*(e for e in entries if not _is_stale(e)), *(e for e in entries if _is_stale(e))]


def _is_stale(entry: Report) -> bool:
    return entry.get("verdict") == Verdict.stale.value


def conflict(one: Path, two: Path, nodeid: str) -> InstrcountError:
    """The error for two files that differ in what they say of a test."""
    return InstrcountError(
        "merge-conflict",
        f"{shown_path(one)} and {shown_path(two)} differ in {printable(nodeid)[:200]}",
        f"rm {shown_path(two)}    # or keep this one, or leave that input out",
    )


def missing_shards(reports: Sequence[Report]) -> list[str]:
    """What the shards of a run lack among these: "shard 3 of 4 has no report here", or any test."""
    there = _shards_in(reports)
    found = [
        f"shard {number} of {of} has no report here"
        for of, numbers in there
        for number in range(1, of + 1)
        if number not in numbers
    ]
    empty = not any(report[kind] for report in reports for kind in _ENTRIES)
    return [*found, f"no {'shard' if there else 'report'} has measured a test"] if empty else found


def _shards_in(reports: Sequence[Report]) -> list[tuple[int, set[int]]]:
    """Of how many shards a run was, and the numbers of those that are here."""
    there: dict[int, set[int]] = {}
    for shard in (shard for report in reports for shard in report["shards"]):
        there.setdefault(shard["of"], set()).add(shard["number"])
    return sorted(there.items())


def failures_in(report: Report, policy: Policy) -> list[str]:
    """The results that fail a run: "regressed t.py::test_a", tests first, then calls, budgets."""
    found = [
        f"{entry['verdict']} {entry['nodeid']}" + (f" ({entry['cause']})" if entry["cause"] else "")
        for kind in ("tests", "traces")
        for entry in report[kind]
        if policy.fails(Verdict(entry["verdict"]), entry["cause"] and Cause(entry["cause"]))
    ]
    return found + exceeded_in(report)


def exceeded_in(report: Report) -> list[str]:
    """The budgets that are not kept: "max_ir not kept: t.py::test_a"."""
    budgets = [each for each in report["budgets"] if not each["kept"]]
    return [f"{each['budget']} not kept: {each['nodeid']}" for each in budgets]
