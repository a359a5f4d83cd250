"""The page that lists the faults, and the tests that it names."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A test by its path from here, and how many cases it has, if more than one.
NAMED = re.compile(r"`((?:\.\./unit/)?test_\w+\.py::test_\w+)`(?: \((\d+)\))?")
#: What each module asks of all its faults together.
OF_ALL = ("::test_nothing_is_left", "::test_the_others_are_equal")


def test_the_page_names_each_test() -> None:
    """Once, with the number of its cases: a new one is to be added to the page."""
    page = (ROOT / "docs" / "explanation" / "faults.md").read_text()
    found = NAMED.findall(page)
    named = {name: int(cases or 1) for name, cases in found}
    assert len(named) == len(found)
    words = ["-m", "pytest", "--collect-only", "-m", "", "-q", "-p", "no:cacheprovider"]
    listed = subprocess.run(
        [sys.executable, *words, "tests/faults", "tests/unit/test_updating.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    tests = [line.partition("[")[0] for line in listed.splitlines() if "::" in line]
    there = Counter(
        name.removeprefix("tests/faults/").replace("tests/unit/", "../unit/") for name in tests
    )
    assert named.keys() <= there.keys(), named.keys() - there.keys()
    asked = {
        name
        for name in there
        if not name.startswith(("../", "test_page.py")) and not name.endswith(OF_ALL)
    }
    assert asked <= named.keys(), asked - named.keys()
    assert {name: there[name] for name in asked} == {name: named[name] for name in asked}
