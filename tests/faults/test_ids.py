"""Ids of tests that no file name, no terminal and no shell can hold."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.faults.conftest import UPDATE, Done, Place

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

IDS = {
    "newline": "a\nb\r\nc",
    "path": "../../../../../tmp/instrcount-escaped/./..//x",
    "absolute": "/etc/passwd",
    "emoji": "\U0001f40d é ß 漢 \u202e",
    "surrogate": "\udcff",
    "long": "x" * 5_000,
    "brackets": "a]::test_other[b",
    "escape": "\x1b[31mred\x07\x1b]0;title\x07",
    "upper": "Case",
    "lower": "case",
    "dot": ".",
    "dots": "..",
    "space": "  ",
    "percent": "%s{0}{tests.__class__}",
    "option": "--instrcount-prune",
}

TESTS = f"""
import pytest
IDS = {IDS!r}

@pytest.mark.instrcount
@pytest.mark.parametrize("number", range(len(IDS)), ids=list(IDS.values()))
def test_id(number): assert sum(range(100)) == 4950
"""

INI = "[pytest]\ndisable_test_id_escaping_and_forfeit_all_rights_to_community_support = true\n"


@pytest.fixture(scope="module")
def place_of_ids(module_place: Place) -> Place:
    module_place.has_junit = False
    module_place.write("pytest.ini", INI)
    module_place.write("test_ids.py", TESTS)
    return module_place


@pytest.fixture(scope="module")
def updated(place_of_ids: Place) -> Done:
    """A run that stores a baseline for each."""
    return place_of_ids.run(*UPDATE)


@pytest.fixture(scope="module")
def checked(place_of_ids: Place, updated: Done) -> Done:
    """And one that finds them."""
    return place_of_ids.run()


@pytest.mark.parametrize("name", IDS)
def test_id(updated: Done, checked: Done, name: str) -> None:
    """Its baseline is stored and found again: not one instruction differs."""
    assert updated.code == 0, updated.output
    nodeid = f"test_id[{IDS[name]}]"
    assert updated.tests[nodeid]["ir"] == checked.tests[nodeid]["ir"]
    assert checked.tests[nodeid]["verdict"] == "unchanged", checked.output


def test_each_has_a_baseline_of_its_own(place_of_ids: Place, checked: Done) -> None:
    """All of them below the baseline folder, under names that every system takes."""
    folder = place_of_ids.path / "instrcount_baselines"
    files = list(folder.rglob("*.json"))
    assert len(files) == len(IDS) == len(checked.tests)
    assert {json.loads(path.read_text())["nodeid"].partition("[")[0] for path in files} == {
        "test_ids.py::test_id"
    }
    assert all(path.name.isascii() and len(path.name) < 200 for path in files)
    assert len({path.name.lower() for path in files}) == len(files)
    assert not Path("/tmp/instrcount-escaped").exists()


def test_nothing_is_left(place_of_ids: Place, checked: Done) -> None:
    baselines = {name for name in place_of_ids.tree() if name.startswith("instrcount_baselines")}
    place_of_ids.assert_nothing_left({"pytest.ini", "test_ids.py"} | baselines)


def test_a_file_with_an_odd_name(place: Place) -> None:
    """A new line, a byte that is no text, and an emoji in the name of a test file and of its folder."""
    place.has_junit = False
    text = "import pytest\n@pytest.mark.instrcount\ndef test_a(): assert sum(range(100))\n"
    for number, name in enumerate(["test_\n.py", "test_\udcff.py", "test_\U0001f40d.py"]):
        folder = place.path / f"{number}\n\U0001f40d"
        folder.mkdir()
        (folder / name).write_text(text)
    place.write("pytest.ini", "[pytest]\naddopts = --import-mode=importlib\n")
    done = place.run(*UPDATE)
    assert done.code == 0, done.output
    assert len(list((place.path / "instrcount_baselines").rglob("*.json"))) == 3
    again = place.run()
    assert again.code == 0, again.output
    assert "3 unchanged" in again.output, again.output
    assert os.sep not in "".join(os.listdir(place.temporary))
