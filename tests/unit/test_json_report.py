"""The JSON report: its keys and values, and files that are whole or absent."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.budget import CeilingResult, RatioResult, ScalingResult, Unjudged
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.scaling import parse_growth
from pytest_instrcount.report.json import report_dict
from pytest_instrcount.report.runner import write_reports
from tests.schemas import complaints

SCHEMA = Path(__file__).parents[2] / "docs/reference/schemas/report-3.json"
LIMIT = parse_limit("1%|5000ir")
MOVED = TestResult(
    "t.py::a",
    Verdict.regressed,
    1020,
    1000,
    Fraction(1, 50),
    LIMIT,
    denoised_ir=990,
    spread=Fraction(1, 10_000),
    detects=Fraction(1, 5000),
    floor=Fraction(1, 10_000),
)
#: What a result without any function says of its cause.
NO_CAUSE: dict[str, object] = {
    "functions": [],
    "python": None,
    "explained": {"functions": None, "python": None},
    "work": {},
    "remarks": [],
}
FAILED = TestResult("t.py::b", Verdict.failed, None, None, None, LIMIT, reason="segfault")


def entries_of(summary: RunSummary) -> list[dict[str, object]]:
    tests = report_dict(summary)["tests"]
    assert isinstance(tests, list)
    return tests


def test_report_of_two_tests() -> None:
    """Integers stay integers, the delta is a fraction, what is not known is null."""
    summary = RunSummary((MOVED, FAILED), {"valgrind": "3.19.0", "glibc": "2.36"})
    assert report_dict(summary) == {
        "schema": 3,
        "environment": {"glibc": "2.36", "valgrind": "3.19.0"},
        "against": None,
        "shards": [],
        "tests": [
            {
                "nodeid": "t.py::a",
                "group": None,
                "extra_info": {},
                "verdict": "regressed",
                "cause": None,
                "ir": 1020,
                "baseline_ir": 1000,
                "denoised_ir": 990,
                "delta": 0.02,
                "spread": 0.0001,
                "detects": 0.0002,
                "floor": 0.0001,
                "limit": "+1 % | 5,000 ir",
                **NO_CAUSE,
            },
            {
                "nodeid": "t.py::b",
                "group": None,
                "extra_info": {},
                "verdict": "failed",
                "cause": None,
                "ir": None,
                "baseline_ir": None,
                "denoised_ir": None,
                "delta": None,
                "spread": None,
                "detects": None,
                "floor": None,
                "limit": "+1 % | 5,000 ir",
                **NO_CAUSE,
            },
        ],
        "traces": [],
        "budgets": [],
    }


def test_facts_are_sorted() -> None:
    """Two reports can be compared line by line."""
    environment = report_dict(RunSummary((), {"b": "1", "c": "2", "a": "3"}))["environment"]
    assert isinstance(environment, dict)
    assert list(environment) == ["a", "b", "c"]


def test_report_of_nothing() -> None:
    """A run without tests is a report with none."""
    assert report_dict(RunSummary((), {})) == {
        "schema": 3,
        "environment": {},
        "against": None,
        "shards": [],
        "tests": [],
        "traces": [],
        "budgets": [],
    }


def test_report_of_a_shard() -> None:
    """Which it is, and of how many, as the schema has it."""
    report = report_dict(RunSummary((), {}, shard=(3, 4)))
    assert report["shards"] == [{"number": 3, "of": 4}]
    schema = json.loads(SCHEMA.read_text())["properties"]["shards"]
    assert complaints(report["shards"], schema) == []


def test_values_are_plain() -> None:
    """No enum and no fraction is left for a reader to trip over."""
    (test,) = entries_of(RunSummary((MOVED,), {}))
    assert [type(value) for value in test.values()] == [
        *(str, type(None), dict, str, type(None), int, int, int, float, float, float),
        *(float, str, list),
        *(type(None), dict, dict, list),
    ]


@pytest.mark.parametrize(
    ("delta", "number"),
    [
        (None, None),
        (Fraction(0), 0.0),
        (Fraction(-1), -1.0),
        (Fraction(1, 10**18), 1e-18),
        (Fraction(10**18), 1e18),
    ],
)
def test_deltas(delta: Fraction | None, number: float | None) -> None:
    """Zero, gone, tiny, huge, missing."""
    result = TestResult("t.py::a", Verdict.unchanged, 1, 1, delta, LIMIT)
    (test,) = entries_of(RunSummary((result,), {}))
    assert test["delta"] == number


def test_schema_document_names_the_keys() -> None:
    """docs/reference/schemas has the keys and the verdicts that are written."""
    document = json.loads(SCHEMA.read_text())
    report = json.loads(json.dumps(report_dict(RunSummary((MOVED,), {}))))
    assert sorted(document["required"]) == sorted(document["properties"]) == sorted(report)
    item = document["properties"]["tests"]["items"]
    assert sorted(item["required"]) == sorted(item["properties"]) == sorted(report["tests"][0])
    assert item["properties"]["verdict"]["enum"] == [verdict.value for verdict in Verdict]


def test_budgets() -> None:
    """What is now and what is allowed, in the budget's own unit; null where nothing was judged."""
    ceiling = CeilingResult("t.py::a", Fraction(25_001, 2), 20_000)
    ratio = RatioResult("t.py::a", Fraction(15), "t.py::b", Fraction(20), Fraction(1, 2))
    growths = parse_growth("n^2"), parse_growth("n")
    scaling = ScalingResult("t.py::c[4]", {2: Fraction(4), 4: Fraction(16)}, *growths)
    unjudged = Unjudged("t.py::a", "scaling", "scaling-sizes", "too few", "more")
    budgets = report_dict(RunSummary((), {}, budgets=(ceiling, ratio, scaling, unjudged)))[
        "budgets"
    ]
    assert isinstance(budgets, list)
    assert [list(each.values()) for each in budgets] == [
        ["t.py::a", "max_ir", True, 12_500.5, 20_000, None, {}, ""],
        ["t.py::a", "max_ratio", False, 0.75, 0.5, "t.py::b", {}, ""],
        ["t.py::c[4]", "scaling", False, "n^2", "n", None, {"2": 4, "4": 16}, ""],
        ["t.py::a", "scaling", False, None, None, None, {}, "too few"],
    ]
    item = json.loads(SCHEMA.read_text())["properties"]["budgets"]["items"]
    assert item["required"] == list(item["properties"]) == list(budgets[0])


def write_report(path: Path, summary: RunSummary) -> None:
    write_reports([("json", path)], summary, Path)


def test_write_makes_folders_and_replaces(tmp_path: Path) -> None:
    """The last report wins, and nothing else is left in the folder."""
    path = tmp_path / "out" / "report.json"
    write_report(path, RunSummary((FAILED,), {}))
    write_report(path, RunSummary((MOVED,), {}))
    assert json.loads(path.read_text()) == report_dict(RunSummary((MOVED,), {}))
    assert path.read_text().endswith("}\n")
    assert [entry.name for entry in path.parent.iterdir()] == ["report.json"]


def test_write_says_why_not(tmp_path: Path) -> None:
    """A folder in the way is an error with a command, and no temp file stays."""
    path = tmp_path / "report.json"
    path.mkdir()
    with pytest.raises(InstrcountError) as caught:
        write_report(path, RunSummary((), {}))
    assert caught.value.slug == "report-write"
    assert "--instrcount-report=json:" in caught.value.fix
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


@given(st.text(st.characters()), st.dictionaries(st.text(st.characters()), st.text()))
def test_any_name_is_json(nodeid: str, environment: dict[str, str]) -> None:
    """Names come back as they were, from plain ASCII."""
    result = TestResult(nodeid, Verdict.stale, None, None, None, LIMIT)
    summary = RunSummary((result,), environment)
    text = json.dumps(report_dict(summary))
    assert json.loads(text)["tests"][0]["nodeid"] == nodeid
    assert json.loads(text)["environment"] == environment
