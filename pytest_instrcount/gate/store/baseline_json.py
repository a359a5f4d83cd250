"""The JSON text of a whole baseline, written and read. What is read is checked: nobody vouches for a file.

Schema 6 is the first that is read: counts by function and by Python function, the counts of several
layouts of memory by kind of noise, facts of the environment, versions of packages, the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_instrcount.counts.measurement import ISOLATIONS, per_call
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.tree import UNITS, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.layouts_json import denoised_values, parse_denoised
from pytest_instrcount.gate.store.ledger import ledger_values, parse_ledger
from pytest_instrcount.gate.store.names import (
    measure,
    measure_all,
    printable,
    remeasure,
    shown_path,
)
from pytest_instrcount.gate.store.schema import MOST_NAMES, Baseline
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
SCHEMA = 6
#: Bytes of the longest file that is read or written.
LARGEST_FILE = 5_000_000

#: The slug of the error for a baseline of an older release.
OLDER = "baseline-older"
#: The slug of the error for a file that git could not merge.
CONFLICT = "baseline-conflict"
# what `env_key` makes begins with the implementation and its version
_ENVIRONMENT = re.compile(r"(?:cp|pp|py)[0-9]+.*-")
_NAMES = """
    body calls denoised environment functions ir isolation ledger lost nodeid packages python schema
    total_ir warmup work
"""
_KEYS = frozenset(_NAMES.split())


def render_baseline(baseline: Baseline) -> str:
    """The JSON text of a baseline, in one line with its keys sorted: equal baselines have equal texts."""
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
        "functions": {} if baseline.lost else _function_values(baseline),
        "denoised": None if known is None else denoised_values(known),
        "work": dict(baseline.work),
        "python": _tree_values(baseline.python),
        "ledger": ledger_values(baseline.ledger),
        "body": baseline.body,
        "lost": baseline.lost,
    }
    if baseline.formerly:
        values["formerly"] = baseline.formerly
    return json.dumps(values, sort_keys=True, separators=(",", ":"))


def _function_values(baseline: Baseline) -> dict[str, tuple[int, ...]]:
    """Without the inclusive count where that is the function's own."""
    inclusive = {name: baseline.inclusive.get(name, row.ir) for name, row in baseline.rows.items()}
    return {
        name: (row.ir, row.calls) if inclusive[name] == row.ir else (*row, inclusive[name])
        for name, row in baseline.rows.items()
    }


def _tree_values(tree: CallTree | None) -> dict[str, object] | None:
    """By columns, and each name once: trees are large, and are packed by half as much again then."""
    if tree is None or not tree.nodes:
        return None
    depths, names, *counts = map(list, zip(*tree.rows()))
    unique = sorted(set(names))
    place = {name: number for number, name in enumerate(unique)}
    rows = [depths, [place[name] for name in names], *counts]
    return {"how": tree.how, "calls": tree.counted, "names": unique, "rows": rows}


def parse_baseline(text: str, path: Path, nodeid: str = "") -> Baseline:
    """Read the JSON text of a baseline; ``path``, and the test if known, are only named in errors.

    Raises InstrcountError: "baseline-conflict" for merge markers, "baseline-newer" for a schema of
    a later release, "baseline-older" for one of a former, "baseline-damaged" for what is no whole baseline.
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
            CONFLICT,
            f"{shown_path(path)} has git's merge markers (<<<<<<<)",
            f"{measure(nodeid)}    # settles it by measuring",
        )
    if text.startswith("version https://git-lfs."):
        why = f"{shown_path(path)} is git-lfs's pointer to a baseline"
        raise InstrcountError("baseline-damaged", why, "git lfs pull")
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
            f"{measure_all()}    # measures all of them again",
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
    formerly = list_of(text["formerly"], "formerly", MOST_NAMES) if "formerly" in text else []
    found = object_of(text, "it", _KEYS | (text.keys() & {"formerly"}))
    isolation = text_of(found["isolation"], "isolation")
    if isolation not in ISOLATIONS:
        raise Invalid(f"isolation is {ascii(isolation)[:40]}")
    total_ir, calls = (
        count_of(found[key], key, least) for key, least in (("total_ir", 0), ("calls", 1))
    )
    if count_of(found["ir"], "ir") != per_call(total_ir, calls):
        raise Invalid("ir is not total_ir / calls")
    lost = text_of(found["lost"], "lost")
    numbers = {} if lost else _functions(found["functions"], total_ir)
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
        formerly=tuple(text_of(each, "formerly") for each in formerly),
        lost=lost,
    )


def _tree(found: object) -> CallTree:
    parts = object_of(found, "python", ("how", "calls", "names", "rows"))
    how = text_of(parts["how"], "python: how")
    names = [text_of(name, "python: a name") for name in list_of(parts["names"], "python: names")]
    columns = [
        list_of(column, "python: rows") for column in list_of(parts["rows"], "python: rows", 4)
    ]
    if how not in UNITS or len(columns) != 4 or len(set(map(len, columns))) > 1 or not columns[0]:
        raise Invalid("python: how or rows")
    rows: list[Any] = [
        (count_of(depth, "python: a depth"), _at(names, number), *map(_signed, counts))
        for depth, number, *counts in zip(*columns)
    ]
    try:
        return CallTree.from_rows(how, count_of(parts["calls"], "calls", least=1), rows)
    except ValueError as error:
        raise Invalid(f"python: a row is wrong: {error}") from None


def _at(names: Sequence[str], number: object) -> str:
    place = count_of(number, "python: a name")
    if place >= len(names):
        raise Invalid("python: a name that is not there")
    return names[place]


def _signed(count: object) -> int:
    """A count of a tree: what is subtracted can be more than what was there."""
    if type(count) is not int or not -LARGEST_COUNT <= count <= LARGEST_COUNT:
        raise Invalid("python: a count is no integer of 64 bits")
    return count


def _functions(found: object, total_ir: int) -> dict[str, list[int]]:
    """Function -> own count, calls, and the count with all that it called, which may be left out."""
    numbers = {name: _numbers(name, value) for name, value in object_of(found, "functions").items()}
    if sum(own for own, _, _ in numbers.values()) != total_ir:
        raise Invalid("functions do not add up to total_ir")
    return numbers


def _numbers(name: str, value: object) -> list[int]:
    what = f"functions: {ascii(name)[:60]}"
    numbers = [count_of(one, what) for one in list_of(value, what)]
    if len(numbers) == 2:
        numbers.append(numbers[0])
    if len(numbers) != 3:
        raise Invalid(f"{what} is not 2 or 3 counts")
    if numbers[2] < numbers[0]:
        raise Invalid(f"{what} is less with what it called than alone")
    return numbers
