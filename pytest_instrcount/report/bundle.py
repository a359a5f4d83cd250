"""A bundle: the failures of a run in one JSON file that can be read without the project.

History of the schema:
1: command, commit, versions, environment; per test text, numbers, baseline, measurement, Python tree
2: in place of the last three both sides as profiles
"""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.store.names import printable, shown_path
from pytest_instrcount.gate.store.reading import read_file, unpack_json
from pytest_instrcount.gate.store.values import (
    LARGEST_COUNT,
    count_of,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
)
from pytest_instrcount.host.text import escape_unprintable
from pytest_instrcount.report.budgets import OVER_BUDGET
from pytest_instrcount.report.callgrind import SUFFIXES

#: The version that is written; others are refused.
SCHEMA = 2
#: Says in the file what it is.
KIND = "pytest-instrcount bundle"
#: Bytes of JSON that are read.
LARGEST = 500_000_000

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
    numbers: Numbers = field(default_factory=dict)
    #: both sides as `profiles_of` makes them
    profiles: Mapping[str, str] = field(default_factory=dict)


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
    values = {"kind": KIND, "schema": SCHEMA, **asdict(bundle)}
    data = json.dumps(values, indent=None if packed else 1).encode() + b"\n"
    return gzip.compress(data, mtime=0) if packed else data


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
    found = object_of(load(unpack_json(data, LARGEST).decode("utf-8")), "it")
    if found.get("kind") != KIND:
        raise ValueError("it is something else")
    schema = count_of(found["schema"], "schema")
    if schema > SCHEMA:
        raise InstrcountError(
            "bundle-newer",
            f"{shown_path(path)} has schema {schema}, this release reads up to {SCHEMA}",
            "python -m pip install --upgrade pytest-instrcount",
        )
    if schema < SCHEMA:
        raise ValueError(f"schema {schema} is no longer read")
    return Bundle(
        text_of(found["command"], "command"),
        text_of(found["commit"], "commit"),
        texts_of(found["versions"], "versions"),
        texts_of(found["environment"], "environment"),
        tuple(map(_parse_test, list_of(found["tests"], "tests"))),
    )


def _parse_test(found: object) -> BundledTest:
    test = object_of(found, "a test", BundledTest.__slots__)
    numbers = object_of(test["numbers"], "numbers")
    profiles = texts_of(test["profiles"], "profiles")
    if not profiles.keys() <= {*SUFFIXES}:
        raise ValueError("profiles: an unknown side")
    return BundledTest(
        text_of(test["nodeid"], "nodeid"),
        _word(text_of(test["verdict"], "verdict")),
        tuple(text_of(line, "text") for line in list_of(test["text"], "text")),
        {name: _number(each, name) for name, each in numbers.items()},
        profiles,
    )


def _number(found: object, what: str) -> int | str | None:
    if found is None or isinstance(found, str):
        return found
    return count_of(found, what, -LARGEST_COUNT)


def _word(found: str) -> str:
    return OVER_BUDGET if found == OVER_BUDGET else Verdict(found).value
