"""The JSON text of a baseline, written and read. What is read is checked: nobody vouches for a file.

Schema 5 is the first that is read: counts by function and by Python function, the counts of several
layouts of memory by kind of noise, facts of the environment, versions of packages, the ledger.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pytest_instrcount.counts.measurement import ISOLATIONS, per_call
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.tree import UNITS, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.layouts_json import denoised_values, parse_denoised
from pytest_instrcount.gate.store.ledger import ledger_values, parse_ledger
from pytest_instrcount.gate.store.names import printable, remeasure, shown_path
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.values import (
    LARGEST_COUNT,
    Invalid,
    count_of,
    counts_of,
    list_of,
    load,
    object_of,
    text_of,
    texts_of,
)

#: The only version that is read and written.
SCHEMA = 5
#: Bytes of the longest file that is read or written.
LARGEST_FILE = 5_000_000

#: The slug of the error for a baseline of an older release.
OLDER = "baseline-older"
# what `env_key` makes begins with the implementation and its version
_ENVIRONMENT = re.compile(r"(?:cp|pp|py)[0-9]+.*-")
_NAMES = """
    body calls denoised environment functions ir isolation ledger nodeid packages python schema total_ir
    warmup work
"""
_KEYS = frozenset(_NAMES.split())


def render_baseline(baseline: Baseline) -> str:
    """The JSON text of a baseline: keys sorted, a line for each function, newline at the end."""
    known = baseline.denoised
    values: dict[str, object] = {
        "schema": SCHEMA,
        "nodeid": baseline.nodeid,
        "ir": baseline.ir,
        "total_ir": baseline.total_ir,
        "calls": baseline.calls,
        "warmup": baseline.warmup,
        "isolation": baseline.isolation,
        "environment": dict(baseline.environment),
        "packages": dict(baseline.packages),
        "functions": {
            name: [row.ir, row.calls, baseline.inclusive.get(name, row.ir)]
            for name, row in baseline.rows.items()
        },
        "denoised": None if known is None else denoised_values(known),
        "work": dict(baseline.work),
        "python": _render_tree(baseline.python),
        "ledger": ledger_values(baseline.ledger),
    }
    if baseline.body:
        values["body"] = baseline.body
    lines = [f"{json.dumps(key)}: {_render_value(values[key])}" for key in sorted(values)]
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _render_tree(tree: CallTree | None) -> dict[str, object] | None:
    if tree is None:
        return None
    return {"how": tree.how, "calls": tree.counted, "rows": list(tree.rows())}


def _render_value(value: object) -> str:
    if isinstance(value, list) and value:  # rows of a tree, entries of a ledger: a line each
        return "[\n   " + ",\n   ".join(map(json.dumps, value)) + "\n  ]"
    # json.dumps(indent=1) would give a list three lines
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    entries = [
        f"{json.dumps(key)}: "
        f"{_render_value(value[key]) if _is_table(value[key]) else json.dumps(value[key])}"
        for key in sorted(value)
    ]
    return "{\n  " + ",\n  ".join(entries) + "\n }"


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], (list, tuple))


def parse_baseline(text: str, path: Path, nodeid: str = "") -> Baseline:
    """Read the JSON text of a baseline; ``path``, and the test if known, are only named in errors.

    Raises InstrcountError: "baseline-conflict" for merge markers, "baseline-newer" for a schema of
    a later release, "baseline-damaged" for anything else that is not a whole baseline.
    """
    try:
        return _validated(check_text(text, path, SCHEMA, nodeid, oldest=SCHEMA))
    except ValueError as error:
        raise damaged(path, printable(str(error)[:200]), nodeid) from None


def check_text(
    text: str, path: Path, newest: int, nodeid: str = "", *, oldest: int = 1
) -> dict[str, object]:
    """The JSON object in a file of ours, with a schema that this release reads.

    Raises InstrcountError "baseline-conflict", "baseline-older", "baseline-newer" or "baseline-damaged".
    """
    if re.search(r"^<{7}", text, re.MULTILINE):
        raise InstrcountError(
            "baseline-conflict",
            f"{shown_path(path)} has git's merge markers (<<<<<<<)",
            f"resolve the conflict in git, or {remeasure(path, nodeid)}",
        )
    try:
        found = object_of(load(text), "it")
        schema = count_of(found.get("schema"), "schema", least=1)
    except (ValueError, RecursionError) as error:
        raise damaged(path, printable(str(error)[:200]), nodeid) from None
    if schema > newest:
        raise InstrcountError(
            "baseline-newer",
            f"{shown_path(path)} has schema {schema}, this release reads up to {newest}",
            "python -m pip install --upgrade pytest-instrcount",
        )
    if schema < oldest:
        raise InstrcountError(
            OLDER,
            f"the baselines in {shown_path(_environment_folder(path))} are of an older format "
            f"(schema {schema}, this release reads {oldest})",
            "pytest --instrcount-update-baseline    (measures all of them again)",
        )
    return found


def _environment_folder(path: Path) -> Path:
    """The folder of an environment, which a baseline lies somewhere below."""
    return next((each for each in path.parents if _ENVIRONMENT.match(each.name)), path.parent)


def damaged(path: Path, why: str, nodeid: str = "") -> InstrcountError:
    """The error for a file that is no whole baseline."""
    return InstrcountError(
        "baseline-damaged", f"{shown_path(path)} is damaged: {why}", remeasure(path, nodeid)
    )


def _validated(text: dict[str, object]) -> Baseline:
    found = object_of({"body": "", **text}, "it", _KEYS)
    isolation = text_of(found["isolation"], "isolation")
    if isolation not in ISOLATIONS:
        raise Invalid(f"isolation is {ascii(isolation)[:40]}")
    total_ir, calls = (
        count_of(found[key], key, least) for key, least in (("total_ir", 0), ("calls", 1))
    )
    if count_of(found["ir"], "ir") != per_call(total_ir, calls):
        raise Invalid("ir is not total_ir / calls")
    numbers = _functions(found["functions"], total_ir)
    return Baseline(
        nodeid=text_of(found["nodeid"], "nodeid"),
        total_ir=total_ir,
        calls=calls,
        warmup=count_of(found["warmup"], "warmup"),
        isolation=isolation,
        rows={name: Row(*each[:2]) for name, each in numbers.items()},
        inclusive={name: each[2] for name, each in numbers.items()},
        environment=texts_of(found["environment"], "environment"),
        packages=texts_of(found["packages"], "packages"),
        denoised=None if found["denoised"] is None else parse_denoised(found["denoised"], total_ir),
        python=None if found["python"] is None else _tree(found["python"]),
        work=counts_of(found["work"], "work"),
        ledger=() if found["ledger"] == [] else parse_ledger(found["ledger"]),
        body=text_of(found["body"], "body"),
    )


def _tree(found: object) -> CallTree:
    parts = object_of(found, "python", ("how", "calls", "rows"))
    how = text_of(parts["how"], "python: how")
    rows: list[Any] = list_of(parts["rows"], "python: rows")
    if how not in UNITS or not rows:
        raise Invalid("python: how or rows")
    try:
        for depth, name, *numbers in rows:  # else TypeError
            text_of(name, "its name")
            if [*map(type, (depth, *numbers))] != [int, int, int]:
                raise Invalid("not 3 integers")
            if not all(-LARGEST_COUNT <= number <= LARGEST_COUNT for number in numbers):
                raise Invalid("a count beyond 2^63")
        return CallTree.from_rows(how, count_of(parts["calls"], "calls", least=1), rows)
    except (TypeError, ValueError) as error:
        raise Invalid(f"python: a row is wrong: {error}") from None


def _functions(found: object, total_ir: int) -> dict[str, list[int]]:
    """Function -> own count, calls, and the count with all that it called."""
    numbers = {name: _numbers(name, value) for name, value in object_of(found, "functions").items()}
    if sum(own for own, _, _ in numbers.values()) != total_ir:
        raise Invalid("functions do not add up to total_ir")
    return numbers


def _numbers(name: str, value: object) -> list[int]:
    what = f"functions: {ascii(name)[:60]}"
    numbers = [count_of(one, what) for one in list_of(value, what)]
    if len(numbers) != 3:
        raise Invalid(f"{what} is not 3 counts")
    if numbers[2] < numbers[0]:
        raise Invalid(f"{what} is less with what it called than alone")
    return numbers
