"""Hooks and the account, with real Valgrind: what they say is so, and no count moves by them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xdist")
pytestmark = pytest.mark.valgrind

TESTS = """
    import json, os
    import pytest

    DOCUMENT = json.dumps({str(n): [n] * 3 for n in range(40)})

    @pytest.mark.instrcount
    def test_marker():
        assert os.environ["APP_MODE"] == "bench"
        assert len(json.loads(DOCUMENT)) == 40

    def test_fixture(instrcount):
        assert os.environ.get("APP_KEY", "secret") == "secret"
        assert instrcount(json.dumps, [1] * 50)

    @pytest.mark.instrcount
    def test_crash():
        os._exit(3)

    def test_native(): pass
    """
CONFTEST = """
    import os
    from pytest_instrcount import ChildSpec

    def pytest_instrcount_environment(config):
        return {"colour": "blue"}

    def pytest_instrcount_child(config):
        return ChildSpec(("APP_KEY",), {"APP_MODE": "bench"}, ("--num-callers=20",))

    def pytest_instrcount_limit(item, limit):
        return "7%"

    def pytest_instrcount_result(config, result):
        print("final:", result.nodeid, result.verdict, result.ir)
    """

Run = Callable[..., tuple[pytest.RunResult, dict[str, Any]]]


@pytest.mark.long
def test_the_account_explains_the_run_and_moves_no_count(
    project: pytest.Pytester, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, told of by all options, and dealt to workers: the same integers."""
    monkeypatch.setenv("APP_KEY", "secret")
    project.makeconftest(CONFTEST)
    project.makepyfile(test_it=TESTS)
    outside = project.path.parent
    alone, counts = run("-s")
    alone.assert_outcomes(passed=3, errors=1)
    for nodeid, test in counts.items():
        line = f"*final: {nodeid} {test['verdict']} {test['ir']}*"
        alone.stdout.fnmatch_lines([line])
    assert {test["limit"] for test in counts.values()} == {"+7 %"}

    table = outside / "timings.csv"
    told, same = run(
        "--instrcount-timings",
        f"--instrcount-timings-csv={table}",
        f"--instrcount-debug={outside}/d",
    )
    assert same == counts
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    phases = {row["phase"]: float(row["process_seconds"]) for row in rows}
    assert {
        "start of pytest",
        "zygote start",
        "collection under Valgrind",
        "fixtures",
        "warm-up",
        "count",
        "parse",
        "compare",
        "tests, natively",
    } <= set(phases)
    assert all(seconds >= 0 for seconds in phases.values())
    # how long it took is anybody's guess; that it is explained is not
    whole = sum(float(row["wall_seconds"]) for row in rows)
    other = sum(float(row["wall_seconds"]) for row in rows if row["phase"] == "other")
    assert other < 0.05 * whole
    told.stdout.fnmatch_lines(["*instrcount timings*", "explained: 9?.* % of *"])
    (line,) = (each for each in told.outlines if each.startswith("CPU time: "))
    under_valgrind, of_pytest = (float(word) for word in line.split() if word[0].isdigit())
    # Valgrind's start alone is more than all that pytest does
    assert under_valgrind > of_pytest > 0
    (folder,) = Path(outside, "d").iterdir()
    assert [path.name for path in (folder / "failed").iterdir()] == ["test_it.py__test_crash.json"]
    assert (
        '"problem": "process-died"' in (folder / "failed/test_it.py__test_crash.json").read_text()
    )

    dealt, spread = run("-n2", "--instrcount-timings")
    assert spread == counts
    dealt.stdout.fnmatch_lines(
        ["*final: *test_marker new *", "workers * s *", "zygote start * 0.00 s *"]
    )
