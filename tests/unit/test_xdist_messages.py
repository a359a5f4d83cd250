"""What workers and controller send each other: plain records, and nothing that runs."""

from __future__ import annotations

import os
import pickle
import sys
import zlib
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.host.foreign import plain
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.xdist.controller import Controller
from pytest_instrcount.session.xdist.environment import describe_context, restore_context
from pytest_instrcount.session.xdist.messages import HANDED_ON, pack, unpack
from pytest_instrcount.session.xdist.worker import SentFindings

MEASUREMENT = Measurement(
    "test_x.py::test_a[\udc80]",
    10,
    2,
    1,
    "fork",
    {"a.c:f": Row(10, 2)},
    {"shop": "1.0"},
    layouts=(Profile(10, {"a.c:f": Row(10, 2)}, {}, {}),),
)


class Evil:
    """What a hostile worker would send."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch /tmp/never",)


def test_a_measurement_arrives_as_it_was() -> None:
    message = "counted", MEASUREMENT, Limit(Fraction(1, 100), None), None
    assert unpack(pack(*message)) == message


def test_what_a_benchmark_says_of_itself_arrives() -> None:
    """Whatever the test put there: JSON's terms are no class of their own."""
    said = plain({"size": 3, "path": Path("a"), 1: (None, 0.5, {2})})
    assert unpack(pack("set_extra_info", "test_x.py::test_a", said))[-1] == {
        "size": 3,
        "path": "a",
        "1": [None, 0.5, "{2}"],
    }


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_a_worker_is_told_the_controller_is_told(name: str) -> None:
    """By the same method, with the same words."""
    sent: list[Any] = []
    told: list[Any] = []
    nothing: Any = None
    parts = [nothing] * 4
    worker = SentFindings(*parts, send=lambda *said: sent.append(said), ask=nothing)
    getattr(worker, name)("test_x.py::test_a", 1)
    ((kind, *said),) = sent
    findings = SimpleNamespace(**{name: lambda *said: told.append(said)})
    Controller._takers[kind](SimpleNamespace(_findings=findings), "gw0", *said)
    assert told == [("test_x.py::test_a", 1)]
    assert hasattr(Findings, name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no message",
        zlib.compress(pickle.dumps(Evil())),
        zlib.compress(pickle.dumps(("counted", Evil()))),
        zlib.compress(pickle.dumps(("counted", Path("a")))),
        zlib.compress(pickle.dumps("counted")),
        zlib.compress(pickle.dumps(())),
        pack("counted", MEASUREMENT)[:-20],
    ],
)
def test_nothing_else_is_taken(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a message"):
        unpack(data)


def test_classes_are_made_by_name_alone() -> None:
    """A class of ours that is no message is none, either."""
    data = zlib.compress(pickle.dumps(("note", sys.modules[Row.__module__].Profile)))
    assert unpack(data)  # one of the classes
    with pytest.raises(ValueError, match="Worker is no part of a message"):
        unpack(zlib.compress(b"cpytest_instrcount.session.xdist.worker\nWorker\n."))


def test_a_worker_elsewhere_imports_from_the_same_places(tmp_path: Path) -> None:
    """Rootdir and interpreter are where they are there; what xdist adds is left out."""
    here, there = tmp_path / "here" / "shop", tmp_path / "there"
    for folder in (here / "src", there / "shop" / "src", there / "pytest", there / "_pytest"):
        folder.mkdir(parents=True)
    site = next(path for path in sys.path if path.endswith("-packages"))
    told = describe_context([str(here / "src"), "/nowhere", site], here / "src", here)
    found = restore_context(
        told,
        [str(there), f"{site}/execnet/script", "/opt/more", site],
        there / "shop",
        there,
        {"PYTHONPATH": f"{there}:/mine", "HOME": "/root"},
    )
    assert found.sys_path == [str(there / "shop" / "src"), site, "/opt/more"]
    assert found.folder == there / "shop" / "src"
    assert found.variables == {"PYTHONPATH": "/mine", "HOME": "/root"}


def test_a_folder_with_more_than_the_project_is_imported_from(tmp_path: Path) -> None:
    """``--rsyncdir`` may name a package: it is looked for after all else."""
    for name in ("shop", "other"):
        (tmp_path / name).mkdir()
    told = describe_context([], tmp_path / "shop", tmp_path / "shop")
    found = restore_context(told, [str(tmp_path)], tmp_path / "shop", tmp_path, {})
    assert found.sys_path == [str(tmp_path)]
