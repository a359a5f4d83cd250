"""The results of a shard in a file beside its baselines, so that a merge equals one run.

A baseline's `denoised` part knows the functions that any test of its run has shown to be noise. A
shard does not know what the tests of the others have shown; a merge joins that and denoises again.

History of the schema:
1: names of noisy functions; per test its profiles, null where nothing is to be denoised again
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_instrcount.counts.denoised import denoise_layouts
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import MOST_OTHER_LAYOUTS, find_noise
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.names import file_error, hash8, printable, shown_path
from pytest_instrcount.gate.store.reading import read_file, unpack_json
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.files import replace_file

#: The version that is written; newer ones are refused.
SCHEMA = 1
#: Says in the file what it is.
KIND = "pytest-instrcount shard"
#: What such files end in.
SUFFIX = ".shard.json.gz"
#: Bytes of a packed file that are read, and of what is in it.
LARGEST_PACKED = 200_000_000
LARGEST = 2_000_000_000
#: The first count of a test, the same layout again, and the others.
_MOST_LAYOUTS = 2 + MOST_OTHER_LAYOUTS

_KEYS = frozenset(("kind", "schema", "noisy", "tests"))
_ABSENT = None


@dataclass(slots=True)
class Shard:
    """The tests that a run has measured, and the noise that it knows."""

    #: functions that any test of the run has shown to be noise
    noisy: set[str] = field(default_factory=set)
    #: nodeid -> profiles as `to_baseline` denoises them; None where the baseline is left as it is
    tests: dict[str, tuple[Profile, ...] | None] = field(default_factory=dict)

    def add(self, measurement: Measurement) -> None:
        """A test whose baseline is written. What differs between equal processes has no noise."""
        profiles = measurement.layouts or (measurement.profile,)
        self.tests[measurement.nodeid] = None if measurement.unsteady else profiles

    def write(self, store: Store) -> Path:
        """Store it among the baselines. Raises InstrcountError "baseline-write"."""
        path = store.folder / f"{hash8(chr(0).join(sorted(self.tests)))}{SUFFIX}"
        try:
            replace_file(path, gzip.compress(render_shard(self).encode(), mtime=0))
        except OSError as error:
            fix = f"ls -ld {shown_path(path.parent)}"
            raise file_error("baseline-write", path, error, fix) from error
        return path


def denoise_again(
    baseline: Baseline, profiles: Sequence[Profile], noisy: Collection[str]
) -> Baseline:
    """The baseline as it were if its run had known these functions to be noise."""
    noise = find_noise(profiles, noisy)
    return replace(baseline, denoised=denoise_layouts(profiles, noise))


def render_shard(shard: Shard) -> str:
    """The JSON text. Of all layouts but the first, only what differs from the first is in it.

    >>> parse_shard(render_shard(Shard({"a.c:f"}, {"t.py::a": None})), Path("x")).noisy
    {'a.c:f'}
    """
    return json.dumps(
        {
            "kind": KIND,
            "schema": SCHEMA,
            "noisy": sorted(shard.noisy),
            "tests": {
                nodeid: None if profiles is None else _layouts(profiles)
                for nodeid, profiles in sorted(shard.tests.items())
            },
        }
    )


def _layouts(profiles: Sequence[Profile]) -> list[dict[str, object]]:
    first = profiles[0]
    return [_values(profiles[0], Profile(0, {})), *(_values(each, first) for each in profiles[1:])]


def _values(profile: Profile, beside: Profile) -> dict[str, object]:
    callers = {}
    for name in sorted(profile.callers.keys() | beside.callers.keys()):
        changed = _rows(profile.callers.get(name, {}), beside.callers.get(name, {}))
        if changed or name not in beside.callers:
            callers[name] = changed
        if name not in profile.callers:
            callers[name] = _ABSENT
    return {"total": profile.total, "rows": _rows(profile.rows, beside.rows), "callers": callers}


def _rows(rows: Mapping[str, Row], beside: Mapping[str, Row]) -> Any:
    return {
        name: [rows[name].ir, rows[name].calls] if name in rows else _ABSENT
        for name in sorted(rows.keys() | beside.keys())
        if name not in rows or rows[name] != beside.get(name)
    }


def load_shard(path: Path) -> Shard:
    """Read one. Raises InstrcountError "shard-damaged", "baseline-newer" or "baseline-unreadable"."""
    try:
        packed = read_file(path, LARGEST_PACKED, "baseline-unreadable")
        return parse_shard(unpack_json(packed, LARGEST).decode("utf-8"), path)
    except ValueError as error:
        raise _damaged(path, str(error)) from None


def parse_shard(text: str, path: Path) -> Shard:
    """Read the JSON text; ``path`` is only named in errors. Raises as `load_shard`."""
    try:
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError("it is something else")
        if _integer(found.get("schema")) > SCHEMA:
            raise InstrcountError(
                "baseline-newer",
                f"{shown_path(path)} has schema {found['schema']}, this release reads up to {SCHEMA}",
                "python -m pip install --upgrade pytest-instrcount",
            )
        if found.keys() != _KEYS or not all(isinstance(name, str) for name in found["noisy"]):
            raise ValueError("it has other keys or values")
        tests = {
            nodeid: None if layouts is None else _parse_layouts(layouts)
            for nodeid, layouts in found["tests"].items()
        }
        return Shard(set(found["noisy"]), tests)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, why: str) -> InstrcountError:
    return InstrcountError(
        "shard-damaged",
        f"{shown_path(path)} is no whole file of a shard: {printable(why)[:200]}",
        f"rm {shown_path(path)}    # then merge again, or run that shard again",
    )


def _parse_layouts(found: list[dict[str, Any]]) -> tuple[Profile, ...]:
    if len(found) > _MOST_LAYOUTS:  # each may be as large as the first, which is all that it says
        raise ValueError(f"a test has {len(found):,} layouts")
    first = _parse_profile(found[0], Profile(0, {}))
    return first, *(_parse_profile(each, first) for each in found[1:])


def _parse_profile(found: dict[str, Any], beside: Profile) -> Profile:
    callers = dict(beside.callers)
    for name, made in found["callers"].items():
        if made is _ABSENT:
            callers.pop(name, None)
        else:
            callers[name] = _parse_rows(made, beside.callers.get(name, {}))
    return Profile(_integer(found["total"]), _parse_rows(found["rows"], beside.rows), callers)


def _parse_rows(found: dict[str, Any], beside: Mapping[str, Row]) -> Mapping[str, Row]:
    if not found:
        return beside
    rows = dict(beside)
    for name, numbers in found.items():
        if numbers is _ABSENT:
            rows.pop(name, None)
        else:
            ir, calls = map(_integer, numbers)
            rows[name] = Row(ir, calls)
    return rows


def _integer(found: object) -> int:
    if type(found) is not int or abs(found) >= 2**63:
        raise ValueError(f"{str(found)[:40]!r} is no integer of 64 bits")
    return found
