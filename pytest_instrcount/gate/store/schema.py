"""What a baseline holds, and its JSON. Text in, text out; `gate.baseline` does the files.

Schema 5 is the first that is read: counts by function and by Python function, the counts of several
layouts of memory by kind of noise, facts of the environment, versions of packages, the ledger.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_instrcount.counts.denoised import Denoised, denoise_layouts
from pytest_instrcount.counts.fold import fold_rows
from pytest_instrcount.counts.measurement import ISOLATIONS, Measurement, per_call
from pytest_instrcount.counts.noise import Noise, find_noise
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.tree import UNITS, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.layouts_json import denoised_values, parse_denoised
from pytest_instrcount.gate.store.ledger import Entry, ledger_values, parse_ledger
from pytest_instrcount.gate.store.names import printable, remeasure, shown_path
from pytest_instrcount.gate.store.values import (
    LARGEST_COUNT,
    Invalid,
    count_in,
    load,
    text_in,
    texts_in,
)

#: The only version that is read and written.
SCHEMA = 5
#: Bytes of the longest file that is read or written.
LARGEST_FILE = 5_000_000

#: The slug of the error for a baseline of an older release.
OLDER = "baseline-older"
# what `env_key` makes begins with the implementation and its version
_ENVIRONMENT = re.compile(r"(?:cp|pp|py)[0-9]+.*-")
_KEYS = frozenset(
    (
        "schema",
        "nodeid",
        "ir",
        "total_ir",
        "calls",
        "warmup",
        "isolation",
        "environment",
        "packages",
        "functions",
        "denoised",
        "python",
        "work",
        "ledger",
    )
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A stored count: what `Measurement` was once, small rows folded, with its environment."""

    #: pytest's id of the test
    nodeid: str
    #: instructions over all counted calls
    total_ir: int
    #: how many calls were counted, 1 or more
    calls: int
    #: how many calls ran before, uncounted
    warmup: int
    #: "fork" or "process"
    isolation: str
    #: function name -> self count and calls, over all counted calls
    rows: Mapping[str, Row]
    #: fact -> value; a baseline is comparable only where all of them are the same
    environment: Mapping[str, str]
    #: distribution name -> version
    packages: Mapping[str, str]
    #: None where there are no layouts of memory: then the raw count is compared
    denoised: Denoised | None = None
    #: function name -> instructions with all that it called, over all counted calls; of the names in
    #: ``rows``
    inclusive: Mapping[str, int] = field(default_factory=dict)
    #: allocations and the like -> how often, as `count_work`
    work: Mapping[str, int] = field(default_factory=dict)
    #: what it is made of by Python function, to name the cause of a change; None if not known
    python: CallTree | None = None
    #: why it was changed, the newest last; bounded
    ledger: tuple[Entry, ...] = ()

    @property
    def ir(self) -> int:
        """Instructions per call, rounded half up."""
        return per_call(self.total_ir, self.calls)

    @property
    def compared_ir(self) -> int:
        """Instructions per call as they are compared: the mean of all layouts, where there are some."""
        known = self.denoised
        if known is None:
            return self.ir
        return per_call(sum(known.totals), self.calls * known.layouts)

    def reason_for(self, ir: int) -> str:
        """The last reason for which a count was accepted; "" if there is none."""
        return next((each.reason for each in reversed(self.ledger) if each.new == ir), "")


def to_baseline(
    measurement: Measurement,
    environment: Mapping[str, str],
    known: Collection[str] = (),
) -> Baseline:
    """The baseline that a measurement becomes: rows folded, facts added; nothing is written.

    ``known`` are functions that other tests of this environment have shown to be noise.
    """
    # The first of the layouts is the usual one, counted as every check counts it: without a pilot,
    # whose own calls are among the calls that Callgrind counts.
    profiles = measurement.layouts or (measurement.profile,)
    if measurement.unsteady:
        # what differs between equal processes must not be taken for noise
        profiles = (measurement.profile, *measurement.layouts)
        noise = Noise()
    else:
        noise = find_noise(profiles, known)
        # else the next update would find other calls, and store the same count again
        usual = profiles[0]
        measurement = replace(
            measurement,
            total_ir=usual.total,
            rows=usual.rows,
            callers=usual.callers,
            inclusive=usual.inclusive,
        )
    raw = raw_baseline(measurement, environment)
    return replace(raw, denoised=denoise_layouts(profiles, noise))


def raw_baseline(measurement: Measurement, environment: Mapping[str, str]) -> Baseline:
    """What of a baseline needs no other layout: the count as it is."""
    rows = fold_rows(measurement.rows, measurement.total_ir)
    return Baseline(
        nodeid=measurement.nodeid,
        total_ir=measurement.total_ir,
        calls=measurement.calls,
        warmup=measurement.warmup,
        isolation=measurement.isolation,
        rows=rows,
        # the switch, which is subtracted, can have cost more than what came back to a function
        inclusive={
            name: max(row.ir, measurement.inclusive.get(name, row.ir)) for name, row in rows.items()
        },
        work=measurement.work,
        environment=dict(environment),
        packages=dict(measurement.packages),
    )


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
        found = load(text)
        if not isinstance(found, dict):
            raise Invalid("not a JSON object")
        schema = count_in(found, "schema", least=1)
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


def _validated(found: dict[str, object]) -> Baseline:
    if found.keys() != _KEYS:
        odd = sorted(str(key) for key in found.keys() ^ _KEYS)
        raise Invalid(f"missing or unknown keys: {', '.join(ascii(key) for key in odd[:5])}")
    isolation = text_in(found, "isolation")
    if isolation not in ISOLATIONS:
        raise Invalid(f"isolation is {ascii(isolation)[:40]}")
    total_ir, calls = count_in(found, "total_ir"), count_in(found, "calls", least=1)
    if count_in(found, "ir") != per_call(total_ir, calls):
        raise Invalid("ir is not total_ir / calls")
    numbers = _functions(found["functions"], total_ir)
    return Baseline(
        nodeid=text_in(found, "nodeid"),
        total_ir=total_ir,
        calls=calls,
        warmup=count_in(found, "warmup"),
        isolation=isolation,
        rows={name: Row(*each[:2]) for name, each in numbers.items()},
        inclusive={name: each[2] for name, each in numbers.items()},
        environment=texts_in(found, "environment"),
        packages=texts_in(found, "packages"),
        denoised=None if found["denoised"] is None else parse_denoised(found["denoised"], total_ir),
        python=_tree(found["python"]),
        work=_work(found["work"]),
        ledger=() if found["ledger"] == [] else parse_ledger(found["ledger"]),
    )


def _work(found: object) -> dict[str, int]:
    if not isinstance(found, dict):
        raise Invalid("work is not an object")
    return {str(kind): count_in(found, kind) for kind in found}


def _tree(found: object) -> CallTree | None:
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != {"how", "calls", "rows"}:
        raise Invalid("python is not an object with the right keys")
    how, rows = found["how"], found["rows"]
    if how not in UNITS or not isinstance(rows, list) or not rows:
        raise Invalid("python: how or rows")
    try:
        for depth, name, *numbers in rows:
            if not isinstance(name, str) or [*map(type, (depth, *numbers))] != [int, int, int]:
                raise ValueError
            if not all(-LARGEST_COUNT <= number <= LARGEST_COUNT for number in numbers):
                raise ValueError("a count beyond 2^63")
        return CallTree.from_rows(how, count_in(found, "calls", least=1), rows)
    except (TypeError, ValueError) as error:
        raise Invalid(f"python: a row is wrong {error}".rstrip()) from None


def _functions(found: object, total_ir: int) -> dict[str, list[int]]:
    """Function -> own count, calls, and the count with all that it called."""
    if not isinstance(found, dict):
        raise Invalid("functions is not an object")
    numbers = {str(name): _numbers(name, value) for name, value in found.items()}
    if sum(own for own, _, _ in numbers.values()) != total_ir:
        raise Invalid("functions do not add up to total_ir")
    return numbers


def _numbers(name: str, value: object) -> list[int]:
    if (
        isinstance(value, list)
        and len(value) == 3
        and all(type(one) is int and 0 <= one <= LARGEST_COUNT for one in value)
    ):
        if value[2] < value[0]:
            raise Invalid(f"functions: {ascii(name)[:60]} is less with what it called than alone")
        return value
    raise Invalid(f"functions: {ascii(name)[:60]} is not 3 counts")
