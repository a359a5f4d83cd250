"""What the gate compares: immune to what is unrelated, open to what allocates more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.valgrind,
    pytest.mark.long,
    pytest.mark.usefixtures("all_layouts"),
]

SUITE = """
import json
import pytest

RECORDS = [{"name": f"record {n}", "tags": ["a", "b", str(n)], "size": n / 7} for n in range(40)]

class Shape:
    def __init__(self, sides):
        self.sides = sides

    def double(self):
        return Shape([2 * side for side in self.sides])

    def triple(self):
        return Shape([3 * side for side in self.sides])

@pytest.mark.instrcount(max_delta="0.1%")
def test_json():
    assert json.loads(json.dumps(RECORDS)) == RECORDS

@pytest.mark.instrcount(max_delta="0.1%", isolation="process")
def test_process():
    seen = {}
    for n in range(300):
        seen.setdefault(f"key {n % 17}", []).append((n, str(n)))
    assert len(seen) == 17

@pytest.mark.instrcount(max_delta="0.1%")
def test_objects():
    shapes = [Shape([n, n + 1, n + 2]) for n in range(100)]
    assert sum(shape.double().sides[0] for shape in shapes) == 9900

@pytest.mark.instrcount(max_delta="0.1%")
def test_copies():
    shapes = [Shape([n, n + 1, n + 2]) for n in range(100)]
    assert sum(shape.triple().sides[0] for shape in shapes) == 14850
"""

UNRELATED = '''
import decimal, wave, xmlrpc.client

LIVE = [[n, {n: str(n)}] for n in range(3000)]

@pytest.fixture(autouse=True)
def first():
    yield

class Another:
    """It has methods that nobody calls."""
    name = "another"

    def method(self, *, option=None):
        return self.name, option

@pytest.mark.parametrize("n", range(20))
def test_unrelated(n):
    assert Another().method()[0] == "another"
'''


def test_unrelated_changes_move_nothing(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Raw counts move; what is gated does not, and a list more in each of 100 calls is seen."""
    project.makepyfile(test_suite=SUITE)
    result, first = run("--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=4)
    # how far layouts move the raw counts: by more than the gated ones may move
    assert 0.0001 < max(test["spread"] for test in first.values()) < 0.02

    more = SUITE.replace("return Shape([2 * side", "self.sides.copy(); return Shape([2 * side")
    project.makepyfile(test_suite=more + UNRELATED)
    result, tests = run("--instrcount-blame=off")
    result.assert_outcomes(passed=24, failed=1)
    assert tests.pop("test_suite.py::test_objects")["verdict"] == "regressed"
    assert len(tests) == 3
    for test in tests.values():
        assert test["verdict"] == "unchanged"
        assert abs(test["delta"]) < 0.0001, test
    assert any(test["ir"] != test["baseline_ir"] for test in tests.values())


def test_not_deterministic(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """A test that reads the clock is named, and no baseline is made of it."""
    project.makepyfile(
        test_clock="""
        import time
        import pytest

        @pytest.mark.instrcount
        def test_clock():
            for _ in range(time.time_ns() // 1000 % 1000):
                str(1.5)
        """
    )
    result, tests = run("--instrcount-update-baseline")
    result.assert_outcomes(passed=1, failed=1)
    (test,) = tests.values()
    assert test["verdict"] == "nondeterministic"
    assert not list(project.path.glob("instrcount_baselines/**/*.json"))


def test_what_is_imported_before_a_test_lies_elsewhere(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """Also what pytest itself has imported: of names of one type, which may share a place in a cache."""
    project.makepyfile(
        test_place=f"""
        import argparse
        import os
        import pytest

        # a name that was interned before this file was imported
        NAME = next(name for name in vars(argparse.ArgumentParser) if name == "format_help")
        if "INSTRCOUNT_CHILD" in os.environ:
            with open({str(project.path / "places.txt")!r}, "a") as file:
                file.write(f"{{id(NAME)}}\\n")

        @pytest.mark.instrcount
        def test_place():
            sorted(range(100))
        """
    )
    result, _ = run("--instrcount-update-baseline", "--instrcount-blame=off")
    result.assert_outcomes(passed=1)
    places = {*(project.path / "places.txt").read_text().split()}
    # in the usual layout, and in three others, each of a zygote of its own
    assert len(places) == 4


def test_some_layouts_count_between_set_up_and_tear_down(
    project: pytest.Pytester, run: Callable[..., Any]
) -> None:
    """What pytest does there moves a count, as a first fixture would; a check has no need of it."""
    said = project.path / "said.txt"
    project.makepyfile(
        test_way=f"""
        import os
        import traceback
        import pytest

        @pytest.mark.instrcount
        def test_way():
            stack = [frame.name for frame in traceback.extract_stack()]
            with open({str(said)!r}, "a") as file:
                file.write("within phases\\n" if "_repeat_phases" in stack else "alone\\n")
        """
    )
    run("--instrcount-update-baseline", "--instrcount-blame=off")
    assert {*said.read_text().splitlines()} == {"alone", "within phases"}
    said.unlink()
    run("--instrcount-max-delta=50%")
    assert {*said.read_text().splitlines()} == {"alone"}


KEYS = """
import pytest

WORDS = "{words}".split()

def look_up(table, keys):
    for _ in range(50):
        for key in keys:
            table[key]

@pytest.mark.instrcount(max_delta="0.5%")
def test_names():
    look_up(dict.fromkeys(WORDS), ["".join([*word]) for word in WORDS])

@pytest.mark.instrcount(max_delta="0.5%")
def test_numbers():
    look_up(dict.fromkeys(range(0, 6 * {step}, {step})), range(0, 6 * {step}, {step}))
"""


def test_keys_of_other_names(project: pytest.Pytester, run: Callable[..., Any]) -> None:
    """Whether names collide is chance, which other hash seeds show; numbers are their own hashes."""
    project.makepyfile(test_keys=KEYS.format(words="cu mi sa di na", step=1))
    run("--instrcount-update-baseline", "--instrcount-blame=off")
    project.makepyfile(test_keys=KEYS.format(words="li ba fi co pu", step=40))
    result, tests = run("--instrcount-blame=off", "-n1")
    result.assert_outcomes(passed=2, failed=1)
    names, numbers = tests["test_keys.py::test_names"], tests["test_keys.py::test_numbers"]
    assert (names["verdict"], names["delta"]) == ("unchanged", 0)
    assert abs(names["ir"] / names["baseline_ir"] - 1) > 0.01
    assert numbers["verdict"] == "regressed"
    if "dictobject.c" in str(result.stdout):  # not of a stripped interpreter
        # a look-up of a method by its name, where its place in the cache is taken, has no more than that
        moved = r"no hash seed moves it|hash seeds move it by 0\.0\d+ % at most"
        result.stdout.re_match_lines([rf" +({moved}): this is growth"])
    result.stdout.fnmatch_lines(["not counted: keys of dicts and sets collide differently*"])
