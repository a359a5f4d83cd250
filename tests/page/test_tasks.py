"""Ten questions that people come to the page with: each is answered in at most three clicks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import measure
from pytest_instrcount.report.history import Point
from pytest_instrcount.report.page_data import page_data

#: The source that a failure shows a line of.
SOURCE = """\
def convert(amount):
    return amount * rate()
"""
MONEY = "tests/test_money.py::test_convert"
REPORT = "tests/test_report.py::test_render"
UPDATE = "pytest --instrcount-update-baseline"


def tree(path: Path, test: str, calls: int) -> CallTree:
    """A test that calls convert, which calls rate so many times."""
    names = (f"test_x.py:{test}", "money.py:convert", "money.py:rate")
    rows = (Row(1_000, 1), Row(10_000, 50), Row(100 * calls, calls))
    nodes = {names[: depth + 1]: row for depth, row in enumerate(rows)}
    return CallTree(TRAMPOLINES, 1, nodes, {names[1]: (str(path), 1)})


def slower(nodeid: str, path: Path, calls: int) -> TestResult:
    """A result of which convert is to blame: it calls rate three times as often."""
    test = nodeid.rpartition("::")[2]
    old, new = tree(path, test, calls), tree(path, test, 3 * calls)
    before, now = 11_000 + 100 * calls, 11_000 + 300 * calls
    return TestResult(
        *(nodeid, Verdict.regressed, now, before, Fraction(now - before, before + 20)),
        limit=parse_limit("1%"),
        ends=(Fraction(before), Fraction(before + 40)),
        detects=Fraction(1, 1000),
        floor=Fraction(1, 10_000),
        layouts=8,
        denoised_ir=now + 20,
        denoised_baseline_ir=before + 20,
        python=find_blame(old, new),
        tree=new,
        tree_is_new=True,
    )


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    """A run of five tests, whose first has a past."""
    path = tmp_path / "money.py"
    path.write_text(SOURCE)
    limit = parse_limit("1%")
    summary = RunSummary(
        (
            slower(MONEY, path, 50),
            slower(REPORT, path, 180),
            TestResult(
                "tests/test_report.py::test_json", Verdict.unchanged, 99, 99, Fraction(0), limit
            ),
            TestResult("tests/test_report.py::test_csv", Verdict.new, 99, None, None, limit),
            TestResult("tests/test_old.py::test_gone", Verdict.stale, None, 99, None, limit),
        ),
        {},
        update_command=UPDATE,
    )
    points = [
        Point(commit=f"{month}" * 40, date=f"2026-0{month}-14T10:00:00+00:00", ir=ir)
        for month, ir in ((1, 14_000), (3, 15_000), (5, 16_020))
    ]
    return page_data(summary, {MONEY: points}, "2026-06-01T08:00:00+00:00")


class Reader:
    """Somebody who reads what can be seen, and clicks three times at most."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.clicks = 0

    def click(self, element: Any) -> None:
        self.clicks += 1
        assert self.clicks <= 3
        element.click()

    def open(self, nodeid: str) -> None:
        self.click(self.page.get_by_role("row", name=nodeid).get_by_role("link"))
        self.page.get_by_role("heading", level=1, name=nodeid).wait_for()

    def reads(self, *parts: str) -> None:
        """Each of them can be seen; parts of words in one place."""
        text = " ".join(self.page.locator("body").inner_text().split())
        for part in parts:
            assert part in text


@pytest.fixture
def reader(open_page: Callable[..., Any], data: dict[str, object]) -> Reader:
    return Reader(open_page(data))


def test_which_function_is_to_blame(reader: Reader) -> None:
    reader.open(MONEY)
    reader.reads("+62.4 % (limit 1 %): convert money.py:1 calls rate 50 -> 150 times")


def test_which_line_of_source(reader: Reader) -> None:
    reader.open(MONEY)
    reader.reads("return amount * rate() ^^^^^^")


def test_what_did_it_cost_in_march(reader: Reader) -> None:
    reader.open(MONEY)
    reader.click(reader.page.get_by_text("As a table"))
    reader.reads("3333333333 2026-03-14 10:00 15,000", "this run 2026-06-01 08:00 26,020 +62.4 %")


def test_what_did_it_cost_before(reader: Reader) -> None:
    reader.reads(f"{MONEY} regressed 16,020 26,020")


def test_which_command_accepts_it(reader: Reader) -> None:
    reader.reads(f"To accept: {UPDATE}")
    reader.open(MONEY)
    reader.reads(f"To accept: {measure(MONEY)}")


def test_which_command_stores_a_first_baseline(reader: Reader) -> None:
    reader.open("tests/test_report.py::test_csv")
    reader.reads("To fix: pytest --instrcount-update-baseline")


def test_which_tests_share_a_cause(reader: Reader) -> None:
    reader.reads("+124.1 % to +62.4 % convert money.py:1 calls rate more often")
    reader.click(reader.page.get_by_text("and 1 more"))
    causes = reader.page.locator(".causes").get_by_role("link")
    assert causes.all_inner_texts() == [REPORT, MONEY]


def test_how_sure_and_in_which_layout(reader: Reader) -> None:
    reader.open(MONEY)
    reader.reads(
        *("Detects ≥ 0.1 %", "Noise spread 16,000 to 16,040 Ir (0.25 %), 8 layouts"),
        "Usual layout 16,000 → 26,000 Ir",
    )


def test_which_is_the_worst_test_of_a_file(reader: Reader) -> None:
    box = reader.page.get_by_role("searchbox", name="Search tests")
    reader.click(box)
    box.press_sequentially("test_report.py")
    assert reader.page.locator("#overview tbody tr[class=opens] a").first.inner_text() == REPORT


@pytest.mark.parametrize(
    ("verdict", "nodeid"),
    [("new", "tests/test_report.py::test_csv"), ("stale", "tests/test_old.py::test_gone")],
)
def test_which_tests_are_new_or_stale(reader: Reader, verdict: str, nodeid: str) -> None:
    reader.clicks += 1  # to choose is a click of its own
    reader.click(reader.page.get_by_role("combobox", name="Verdict"))
    reader.page.get_by_role("combobox", name="Verdict").select_option(verdict)
    assert reader.page.locator("#overview tbody tr[class=opens] a").all_inner_texts() == [nodeid]


def test_who_called_it_more(reader: Reader) -> None:
    reader.open(MONEY)
    reader.page.get_by_role("searchbox", name="Search functions").last.fill("rate")
    reader.reads("rate money.py called by convert (money.py) 50 → 150 times")
