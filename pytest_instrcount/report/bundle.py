"""A bundle: the failures of a run in one JSON file that can be read without the project.

History of the schema:
1: command, commit, versions, environment; per test text, numbers, baseline, measurement, Python tree
"""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.tree import UNITS, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable, shown_path
from pytest_instrcount.gate.store.reading import read_file, unpack_json
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.budgets import OVER_BUDGET

#: The version that is written; newer ones are refused.
SCHEMA = 1
#: Says in the file what it is.
KIND = "pytest-instrcount bundle"
#: Bytes of JSON that are read.
LARGEST = 500_000_000
_LARGEST_NUMBER = 2**63 - 1

Numbers = Mapping[str, "int | str | None"]


@dataclass(frozen=True, slots=True)
class BundledTest:
    """One test that failed the run."""

    #: pytest's id of the test
    nodeid: str
    #: a word of `Verdict`, or of a budget
    verdict: str
    #: the text of the failure, its lines of source included
    text: tuple[str, ...]
    #: counts per call; fractions are texts like ``1/50``
    numbers: Numbers
    #: the JSON text of the baseline, None without a readable one
    baseline: str | None = None
    #: what was counted, None where that was not possible
    measurement: Measurement | None = None
    #: what it is made of by Python function now, None where that was not measured
    python: CallTree | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """A run and its failures."""

    #: as it can be typed
    command: str
    #: git's id of the commit, with a "+" if there were changes to it; "" if not known
    commit: str
    #: tool -> version
    versions: Mapping[str, str]
    #: facts of the environment that the tests were counted in
    environment: Mapping[str, str]
    tests: tuple[BundledTest, ...]


def numbers_of(result: TestResult) -> Numbers:
    """The exact numbers that the gate compared.

    >>> from fractions import Fraction
    >>> from pytest_instrcount.gate.limit import parse_limit
    >>> result = TestResult("t", Verdict.regressed, 102, 100, Fraction(1, 50), parse_limit("1%"))
    >>> numbers_of(result)["delta"], numbers_of(result)["ir"], numbers_of(result)["spread"]
    ('1/50', 102, None)
    """
    fractions = {"delta": result.delta, "spread": result.spread, "detects": result.detects}
    return {
        "ir": result.ir,
        "baseline_ir": result.baseline_ir,
        "denoised_ir": result.denoised_ir,
        "denoised_baseline_ir": result.denoised_baseline_ir,
        **{name: None if each is None else str(each) for name, each in fractions.items()},
        "limit": str(result.limit),
    }


def render_bundle(bundle: Bundle, *, packed: bool) -> bytes:
    """The content of the file; ``packed`` by gzip."""
    values = {
        "kind": KIND,
        "schema": SCHEMA,
        "command": bundle.command,
        "commit": bundle.commit,
        "versions": dict(bundle.versions),
        "environment": dict(bundle.environment),
        "tests": [
            {
                "nodeid": test.nodeid,
                "verdict": test.verdict,
                "text": list(test.text),
                "numbers": dict(test.numbers),
                "baseline": test.baseline,
                "measurement": _measurement_values(test.measurement),
                "python": _tree_values(test.python),
            }
            for test in bundle.tests
        ],
    }
    data = json.dumps(values, indent=None if packed else 1).encode() + b"\n"
    return gzip.compress(data, mtime=0) if packed else data


def _measurement_values(measurement: Measurement | None) -> dict[str, object] | None:
    if measurement is None:
        return None
    return {
        "calls": measurement.calls,
        "warmup": measurement.warmup,
        "isolation": measurement.isolation,
        "packages": dict(measurement.packages),
        "unsteady": list(measurement.unsteady),
        # the one that was compared first, then the other layouts
        "profiles": list(map(_profile_values, (measurement.profile, *measurement.layouts))),
    }


def _profile_values(profile: Profile) -> dict[str, object]:
    return {
        "total": profile.total,
        "functions": {name: [row.ir, row.calls] for name, row in profile.rows.items()},
        "callers": {
            name: {caller: [edge.ir, edge.calls] for caller, edge in made.items()}
            for name, made in profile.callers.items()
        },
        "inclusive": dict(profile.inclusive),
    }


def _tree_values(tree: CallTree | None) -> dict[str, object] | None:
    if tree is None:
        return None
    return {"how": tree.how, "calls": tree.counted, "rows": list(tree.rows())}


def show_command(path: Path | str) -> str:
    """The command that prints a bundle again."""
    return f"python -m pytest_instrcount show {shlex.quote(escape_unprintable(str(path)))}"


def load_bundle(path: Path) -> Bundle:
    """Read a bundle, packed or not.

    Raises InstrcountError "bundle-unreadable", "bundle-damaged" or "bundle-newer".
    """
    try:
        return _parse(read_file(path, LARGEST, "bundle-unreadable"), path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else printable(str(error))
        # any other file may be somebody's
        own = shown_path(path) if path.name.endswith(".json.gz") else "PATH.json.gz"
        raise InstrcountError(
            "bundle-damaged",
            f"{shown_path(path)} is no whole bundle: {why[:200]}",
            f"pytest --instrcount --instrcount-bundle={own}    # where the tests are",
        ) from error


def _parse(data: bytes, path: Path) -> Bundle:
    found = json.loads(unpack_json(data, LARGEST).decode("utf-8"), parse_int=_number)
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError("it is something else")
    schema = _integer(found["schema"])
    if schema > SCHEMA:
        raise InstrcountError(
            "bundle-newer",
            f"{shown_path(path)} has schema {schema}, this release reads up to {SCHEMA}",
            "python -m pip install --upgrade pytest-instrcount",
        )
    return Bundle(
        _text(found["command"]),
        _text(found["commit"]),
        _texts(found["versions"]),
        _texts(found["environment"]),
        tuple(map(_parse_test, found["tests"])),
    )


def _parse_test(found: dict[str, Any]) -> BundledTest:
    nodeid, baseline = _text(found["nodeid"]), found["baseline"]
    measurement, python = found["measurement"], found["python"]
    return BundledTest(
        nodeid,
        _word(found["verdict"]),
        tuple(map(_text, found["text"])),
        _numbers(found["numbers"]),
        None if baseline is None else _text(baseline),
        None if measurement is None else _parse_measurement(nodeid, measurement),
        None if python is None else _parse_tree(python),
    )


def _word(found: Any) -> str:
    return OVER_BUDGET if found == OVER_BUDGET else Verdict(found).value


def _parse_measurement(nodeid: str, found: dict[str, Any]) -> Measurement:
    profile, *layouts = map(_parse_profile, found["profiles"])
    return Measurement(
        nodeid,
        profile.total,
        _integer(found["calls"]),
        _integer(found["warmup"]),
        _text(found["isolation"]),
        profile.rows,
        _texts(found["packages"]),
        profile.callers,
        tuple(layouts),
        tuple(map(_text, found["unsteady"])),
        profile.inclusive,
    )


def _parse_profile(found: dict[str, Any]) -> Profile:
    return Profile(
        _integer(found["total"]),
        _rows(found["functions"]),
        {name: _rows(made) for name, made in found["callers"].items()},
        {name: _integer(ir) for name, ir in found["inclusive"].items()},
    )


def _parse_tree(found: dict[str, Any]) -> CallTree:
    if found["how"] not in UNITS:
        raise ValueError("a tree of another kind")
    rows = [
        (_integer(depth), _text(name), _integer(ir), _integer(calls))
        for depth, name, ir, calls in found["rows"]
    ]
    return CallTree.from_rows(found["how"], _integer(found["calls"]), rows)


def _rows(found: dict[str, Any]) -> dict[str, Row]:
    return {name: Row(_integer(ir), _integer(calls)) for name, (ir, calls) in found.items()}


def _integer(found: object) -> int:
    if type(found) is not int:
        raise ValueError(f"{_shown(found)} is no integer")
    return found


def _number(digits: str) -> int:
    """An integer of JSON; with these, all that is added up of them can be written out."""
    number = int(digits) if len(digits) <= len(str(-_LARGEST_NUMBER)) else _LARGEST_NUMBER + 1
    if abs(number) > _LARGEST_NUMBER:
        raise ValueError(f"{digits[:40]} is beyond 64 bits")
    return number


def _numbers(found: object) -> Numbers:
    if isinstance(found, dict) and all(
        each is None or isinstance(each, str) or type(each) is int for each in found.values()
    ):
        return found
    raise ValueError("numbers are no integers and texts")


def _shown(found: object) -> str:
    return type(found).__name__ if isinstance(found, (list, dict)) else ascii(found)[:40]


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{_shown(found)} is no text")
    return found


def _texts(found: dict[str, Any]) -> dict[str, str]:
    return {name: _text(each) for name, each in found.items()}
