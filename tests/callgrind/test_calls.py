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


POOLS = """
    import asyncio, json, pytest
    from concurrent.futures import ThreadPoolExecutor

    def work(n):
        return json.dumps(n)

    async def one(n):
        await asyncio.sleep(0)
        return work(n)

    async def all_of_them():
        return await asyncio.gather(*[one(n) for n in range(3)])

    @pytest.mark.trace_profile
    def test_pool():
        with ThreadPoolExecutor(4) as pool:
            assert len(list(pool.map(work, range(20)))) == 20

    @pytest.mark.trace_profile
    def test_loop():
        assert len(asyncio.run(all_of_them())) == 3
    """


def calls_of(project: pytest.Pytester) -> dict[str, Any]:
    """Stored edges as "caller -> function": calls and resumes, by the name of the test."""
    found = {}
    for path in project.path.glob("instrcount_baselines/**/*.calls.json"):
        table = json.loads(path.read_text())
        edges = {f"{a} -> {b}".removeprefix(" -> "): counts for a, b, *counts in table["calls"]}
        found[table["nodeid"].rpartition("::")[2]] = edges
    return found


def test_counts_survive_what_does_not_matter(
    project: pytest.Pytester, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit above the function, a moved checkout, another hash seed, one test alone: no change."""
    project.makepyfile(test_suite=SUITE)
    result, _ = run("--instrcount-update-baseline")
    result.assert_outcomes(passed=4)
    stored = calls_of(project)
    points = {name.rpartition(" -> ")[2]: n for name, n in stored["test_points"].items()}
    assert points == {
        "test_suite:Point.__init__": [5],
        "test_suite:Point.moved": [5],
        "test_suite:test_points": [1],
        **{name: [1] for name in points if "setcomp" in name},
    }
    assert stored["test_json"]["test_suite:test_json -> json:loads"] == [1]
    assert stored["test_fixture"] == {
        "test_suite:walk": [1, 3],
        "test_suite:walk -> test_suite:walk": [2, 2],
    }

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


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])
def test_pools_and_loops_gate_steadily(
    project: pytest.Pytester, run: Callable[..., Any], workers: tuple[str, ...]
) -> None:
    """Whichever thread is first; what is run there is gated."""
    project.makepyfile(test_suite=POOLS)
    result, _ = run("--instrcount-update-baseline", *workers)
    result.assert_outcomes(passed=2)
    stored = calls_of(project)
    assert stored["test_pool"]["test_suite:work -> json:dumps"] == [20]
    assert stored["test_loop"]["test_suite:test_loop -> test_suite:one"] == [3]
    assert not [name for each in stored.values() for name in each if "asyncio" in name]
    result, _ = run(*workers)
    result.stdout.fnmatch_lines(["instrcount, calls: 2 unchanged"])
    path = project.path / "test_suite.py"
    path.write_text(
        path.read_text().replace("return json.dumps(n)", "json.dumps(n); json.dumps(n)")
    )
    result, _ = run(*workers)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["  +20 calls  20 -> 40  json:dumps*"])
