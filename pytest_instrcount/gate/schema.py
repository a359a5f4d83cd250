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
from typing import TypeGuard

from pytest_instrcount.blame.tree import UNITS, CallTree
from pytest_instrcount.callgrind.profile import Row
from pytest_instrcount.counts.noise import ALL_KINDS, Noise, find_noise
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.denoised import Denoised, denoise_layouts
from pytest_instrcount.gate.fold import OTHER, fold_rows
from pytest_instrcount.gate.ledger import Entry, ledger_values, parse_ledger
from pytest_instrcount.gate.measurement import ISOLATIONS, Measurement, per_call
from pytest_instrcount.gate.names import printable, remeasure, shown_path

#: The only version that is read and written.
SCHEMA = 5
#: Bytes of the longest file that is read or written.
LARGEST_FILE = 5_000_000

_LARGEST_COUNT = 2**63 - 1
_MOST_DIGITS = 20
_MOST_LAYOUTS = 100
#: The slug of the error for a baseline of an older release.
OLDER = "baseline-older"
# what `env_key` makes begins with the implementation and its version
_ENVIRONMENT = re.compile(r"(?:cp|pp|py)[0-9]+.*-")
_DENOISED_KEYS = frozenset(("rules", "noisy", "wavering", "kept", "kinds", "calls", "costs"))
_KEYS = frozenset(("rules", "noisy", "total", "low", "high", "layouts", "residuals"))
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
        profiles += (measurement.profile,)
        noise = Noise()
    else:
        noise = find_noise(profiles, known)
        # else the next update would find other calls, and store the same count again
        usual = profiles[0]
        measurement = replace(
            measurement, rows=usual.rows, callers=usual.callers, inclusive=usual.inclusive
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
        "denoised": None if known is None else _render_denoised(known),
        "work": dict(baseline.work),
        "python": _render_tree(baseline.python),
        "ledger": ledger_values(baseline.ledger),
    }
    lines = [f"{json.dumps(key)}: {_render_value(values[key])}" for key in sorted(values)]
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _render_denoised(denoised: Denoised) -> dict[str, object]:
    return {
        "rules": denoised.noise.rules,
        "noisy": sorted(denoised.noise.functions),
        "wavering": sorted(denoised.noise.wavering),
        "kept": list(denoised.kept),
        "kinds": {kind: list(ir) for kind, ir in denoised.kinds.items()},
        # most are called as often in every layout: that is said once
        "calls": {
            name: list(calls if len(set(calls)) > 1 else calls[:1])
            for name, calls in denoised.calls.items()
        },
        "costs": dict(denoised.costs),
    }


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
        found = _load(text)
        if not isinstance(found, dict):
            raise _Invalid("not a JSON object")
        schema = _count(found, "schema", least=1)
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


class _Invalid(ValueError):
    """The JSON is no baseline; the text says why."""


def _load(text: str) -> object:
    def refuse(number: str) -> object:
        raise _Invalid(f"{number[:20]} is not an integer")

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _Invalid("a key is there twice")
        return found

    def integer(digits: str) -> int:
        # longer ones are out of every range of ours, and dear to read
        return int(digits) if len(digits) <= _MOST_DIGITS else 10**_MOST_DIGITS

    return json.loads(
        text,
        parse_float=refuse,
        parse_int=integer,
        parse_constant=refuse,
        object_pairs_hook=unique,
    )


def _validated(found: dict[str, object]) -> Baseline:
    if found.keys() != _KEYS:
        odd = sorted(str(key) for key in found.keys() ^ _KEYS)
        raise _Invalid(f"missing or unknown keys: {', '.join(ascii(key) for key in odd[:5])}")
    isolation = _text(found, "isolation")
    if isolation not in ISOLATIONS:
        raise _Invalid(f"isolation is {ascii(isolation)[:40]}")
    total_ir, calls = _count(found, "total_ir"), _count(found, "calls", least=1)
    if _count(found, "ir") != per_call(total_ir, calls):
        raise _Invalid("ir is not total_ir / calls")
    functions = found["functions"]
    if not isinstance(functions, dict):
        raise _Invalid("functions is not an object")
    numbers = {str(name): _numbers(name, value, 3) for name, value in functions.items()}
    return Baseline(
        nodeid=_text(found, "nodeid"),
        total_ir=total_ir,
        calls=calls,
        warmup=_count(found, "warmup"),
        isolation=isolation,
        rows={name: Row(*each[:2]) for name, each in numbers.items()},
        inclusive={name: each[2] for name, each in numbers.items()},
        environment=_texts(found, "environment"),
        packages=_texts(found, "packages"),
        denoised=None if found["denoised"] is None else _denoised(found["denoised"]),
        python=_tree(found["python"]),
        work=_work(found["work"]),
        ledger=() if found["ledger"] == [] else parse_ledger(found["ledger"]),
    )


def _work(found: object) -> dict[str, int]:
    if not isinstance(found, dict):
        raise _Invalid("work is not an object")
    return {str(kind): _count(found, kind) for kind in found}


def _tree(found: object) -> CallTree | None:
    if found is None:
        return None
    if not isinstance(found, dict) or found.keys() != {"how", "calls", "rows"}:
        raise _Invalid("python is not an object with the right keys")
    how, rows = found["how"], found["rows"]
    if how not in UNITS or not isinstance(rows, list) or not rows:
        raise _Invalid("python: how or rows")
    try:
        for depth, name, *numbers in rows:
            if not isinstance(name, str) or [*map(type, (depth, *numbers))] != [int, int, int]:
                raise ValueError
            if not all(-_LARGEST_COUNT <= number <= _LARGEST_COUNT for number in numbers):
                raise ValueError("a count beyond 2^63")
        return CallTree.from_rows(how, _count(found, "calls", least=1), rows)
    except (TypeError, ValueError) as error:
        raise _Invalid(f"python: a row is wrong {error}".rstrip()) from None


def _denoised(found: object) -> Denoised:
    if not isinstance(found, dict) or found.keys() != _DENOISED_KEYS:
        raise _Invalid("denoised is not an object with the right keys")
    noisy, wavering = (_names(found, key) for key in ("noisy", "wavering"))
    kinds, calls, costs = (found[key] for key in ("kinds", "calls", "costs"))
    if not all(isinstance(each, dict) for each in (kinds, calls, costs)):
        raise _Invalid("denoised: kinds, calls or costs is not an object")
    kept = _counts(found["kept"])
    layouts = len(kept)
    if not kinds.keys() <= set(ALL_KINDS) or calls.keys() != costs.keys():
        raise _Invalid("denoised: an unknown kind, or calls without a cost")
    known = Denoised(
        noise=Noise(_count(found, "rules", least=1), noisy, wavering),
        kept=kept,
        kinds={str(kind): _counts(kinds[kind], layouts) for kind in ALL_KINDS if kind in kinds},
        calls={
            str(name): _counts(each * layouts if _is_single(each) else each, layouts)
            for name, each in calls.items()
        },
        costs={str(name): _count(costs, name) for name in costs},
    )
    if sum(known.costs.values()) > sum(known.totals):
        raise _Invalid("denoised: calls cost more than all")
    return known


def _is_single(found: object) -> TypeGuard[list[object]]:
    return isinstance(found, list) and len(found) == 1


def _names(found: Mapping[str, object], key: str) -> frozenset[str]:
    value = found[key]
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Invalid(f"denoised: {key} is not a list of names")
    return frozenset(value)


def _counts(found: object, layouts: int = 0) -> tuple[int, ...]:
    """A count for each layout."""
    if not isinstance(found, list) or not 0 < len(found) <= _MOST_LAYOUTS:
        raise _Invalid("denoised: no list of counts")
    if layouts and len(found) != layouts:
        raise _Invalid("denoised: not a count for each layout")
    if not all(type(each) is int and 0 <= each <= _LARGEST_COUNT for each in found):
        raise _Invalid("denoised: a count is no integer from 0 to 2^63")
    return tuple(found)


def _count(found: Mapping[str, object], key: str, least: int = 0) -> int:
    value = found.get(key)
    if type(value) is not int or not least <= value <= _LARGEST_COUNT:  # a bool is no count
        raise _Invalid(f"{key} is not an integer from {least} to 2^63")
    return value


def _text(found: Mapping[str, object], key: str) -> str:
    value = found[key]
    if not isinstance(value, str):
        raise _Invalid(f"{key} is not a text")
    return value


def _texts(found: Mapping[str, object], key: str) -> dict[str, str]:
    value = found[key]
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise _Invalid(f"{key} is not an object of texts")
    return {str(name): str(one) for name, one in value.items()}


def _numbers(name: str, value: object, width: int) -> list[int]:
    # what is folded may hold negative rows, see Measurement
    least = -_LARGEST_COUNT if name == OTHER else 0
    if (
        isinstance(value, list)
        and len(value) == width
        and all(type(one) is int and least <= one <= _LARGEST_COUNT for one in value)
    ):
        return value
    raise _Invalid(f"functions: {ascii(name)[:60]} is not {width} counts")
