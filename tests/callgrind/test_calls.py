"""Call counts of traced tests, from processes of their own: what moves them, and what does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.valgrind

SUITE = """
    import json
    import pytest

    class Point:
        def __init__(self, x):
            self.x = x

        def moved(self):
            return Point(self.x + 1)

    def walk(tree):
        yield tree
        for child in tree.get("children", ()):
            yield from walk(child)

    @pytest.fixture
    def points():
        return [Point(n) for n in range(5)]

    @pytest.mark.trace_profile
    def test_points(points):
        assert len({point.moved().x for point in points}) == 5

    @pytest.mark.trace_profile(c_calls=True)
    def test_json():
        assert json.loads(json.dumps({"a": list(map(str, range(20)))}))

    @pytest.mark.trace_profile
    def test_sets():
        names = {"one", "two", "three", "four"}
        assert [name for name in sorted(names, key=lambda name: name.upper())]

    def test_fixture(trace_profile):
        assert len(trace_profile(list, walk({"children": [{}, {}]}))) == 3
    """


def calls_of(project: pytest.Pytester) -> dict[str, Any]:
    """Stored call counts, by the name of the test."""
    found = {}
    for path in project.path.glob("instrcount_baselines/**/*.calls.json"):
        table = json.loads(path.read_text())
        found[table["nodeid"].rpartition("::")[2]] = table["calls"]
    return found


def test_counts_survive_what_does_not_matter(
    project: pytest.Pytester, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit above the function, a moved checkout, another hash seed, one test alone: no change."""
    project.makepyfile(test_suite=SUITE)
    result, _ = run("--instrcount-update-baseline")
    result.assert_outcomes(passed=4)
    stored = calls_of(project)
    assert stored["test_points"] == {
        "test_suite:Point.__init__": 5,
        "test_suite:Point.moved": 5,
        "test_suite:test_points": 1,
        **{name: 1 for name in stored["test_points"] if "setcomp" in name},
    }
    assert stored["test_json"]["json:loads"] == 1
    assert stored["test_fixture"] == {"test_suite:walk": 3}

    project.makepyfile(test_suite="\n\n    # more above\n    LINES = 3\n" + SUITE)
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    moved = project.path / "elsewhere" / "checkout"
    moved.mkdir(parents=True)
    for name in ("test_suite.py", "tox.ini", "instrcount_baselines"):
        shutil.move(project.path / name, moved / name)
    monkeypatch.chdir(moved)
    result, _ = run()
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["instrcount, calls: 4 unchanged"])
    result, _ = run("-k", "sets")
    result.stdout.fnmatch_lines(["instrcount, calls: 1 unchanged"])

    path = moved / "test_suite.py"
    path.write_text(path.read_text().replace("point.moved().x", "point.moved().moved().x"))
    result, _ = run()
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        ["test_points: * calls (*, limit +0 %)", "  +5 calls  5 -> 10  test_suite:Point.*"]
    )
