"""Baselines on disk, read and made as the plugin does, for tests that look into them or plant them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_instrcount.gate.store.baseline import load_baseline
from pytest_instrcount.gate.store.baseline_json import parse_baseline, render_baseline
from pytest_instrcount.gate.store.parts import parts_of, profile_path, profiles_beside
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.files import replace_file

#: The sample of what is written today.
SAMPLE = Path(__file__).parent / "data/baselines/schema6.json"


def read_whole(path: Path) -> dict[str, Any]:
    """All that is known of the test whose summary is at a path, as values of JSON."""
    found = load_baseline(path)
    assert isinstance(found, Baseline), path
    values: dict[str, Any] = json.loads(render_baseline(found))
    return values


def tree_values(how: str, calls: int, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """A tree by Python function as it is stored, of depth, name, own cost and calls of each."""
    depths, names, *counts = map(list, zip(*rows, strict=True))
    unique = sorted(set(names))
    return {
        "how": how,
        "calls": calls,
        "names": unique,
        "rows": [depths, list(map(unique.index, names)), *counts],
    }


def plant(path: Path, values: dict[str, Any]) -> Path:
    """Write both parts of a baseline with these values, which are consistent; returns the path."""
    baseline = parse_baseline(json.dumps(values), path)
    for old in profiles_beside(path):
        old.unlink()
    for place, data in parts_of(baseline, path).items():
        replace_file(place, data)
    return path


def plant_profile(path: Path, text: str) -> Path:
    """The sample's summary at a path, with a profile that holds any text; returns the path."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    summary = json.loads(SAMPLE.read_text())
    path.write_text(json.dumps({**summary, "profile": digest}))
    profile_path(path, digest).write_text(text)
    return path
