"""The page as text: what is embedded, what is allowed, what can be read back."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.gate.budget import BudgetResult, CeilingResult, ScalingResult, Unjudged
from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.scaling import parse_growth
from pytest_instrcount.report.history import Point
from pytest_instrcount.report.page import render_page
from pytest_instrcount.report.page_data import page_data
from tests.page import samples


class Page(html.parser.HTMLParser):
    """What a browser would find: elements with their attributes, and the texts of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.within = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.append("")
        self.within = True

    def handle_endtag(self, tag: str) -> None:
        self.within = False

    def handle_data(self, data: str) -> None:
        if self.within:
            self.texts[-1] += data

    def find(self, wanted: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, text)
            for (tag, attributes), text in zip(self.elements, self.texts)
            if tag == wanted
        ]

    @property
    def blocks(self) -> dict[str, Any]:
        return {
            str(attributes["id"]): json.loads(text)
            for attributes, text in self.find("script")
            if attributes.get("type") == "application/json"
        }

    @property
    def policy(self) -> str:
        return next(
            str(attributes["content"])
            for attributes, _ in self.find("meta")
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )


def read_tree(python: dict[str, Any], side: str) -> list[list[object]]:
    """A tree as it was before it became numbers."""
    flat = python[side]
    return [
        [flat[at], python["names"][flat[at + 1]], flat[at + 2], flat[at + 3]]
        for at in range(0, len(flat), 4)
    ]


def test_a_run_without_tests() -> None:
    page = Page(render_page(samples.a_run()))
    assert page.blocks["run"]["tests"] == []
    assert page.blocks.keys() == {"run"}


def test_what_the_table_needs_is_apart_from_the_details() -> None:
    """So that a page of 500 tests is there at once: details are read when they are opened."""
    data = samples.small()
    blocks = Page(render_page(data)).blocks
    assert len(blocks) == 1 + len(data["tests"])
    run = blocks["run"]
    assert {name: run[name] for name in ("title", "created", "environment")} == {
        name: data[name] for name in ("title", "created", "environment")
    }
    for number, test in enumerate(data["tests"]):
        both = {**run["tests"][number], **blocks[f"test-{number}"]}
        both["history"] = [
            {"commit": run["commits"][at][0], "date": run["commits"][at][1], "ir": ir}
            for at, ir in both["history"]
        ]
        assert {name: both.get(name) for name in test if name != "python"} == {
            name: test[name] for name in test if name != "python"
        }


def test_trees_come_back_as_they_were() -> None:
    python = Page(render_page(samples.small())).blocks["test-1"]["python"]
    assert read_tree(python, "old") == samples.BEFORE
    assert read_tree(python, "new") == samples.NOW
    assert python["functions"] == samples.PYTHON["functions"]
    assert len(python["names"]) == len(set(python["names"])) == 11


def test_a_test_without_trees() -> None:
    test = samples.a_test("a.py::b", python={**samples.PYTHON, "old": None, "new": None})
    python = Page(render_page(samples.a_run(test))).blocks["test-0"]["python"]
    assert (python["old"], python["new"], python["names"]) == (None, None, [])


def test_what_is_not_known_may_be_left_out() -> None:
    """The page says that there is nothing; it does not fail."""
    page = Page(render_page(samples.a_run({"nodeid": "a.py::b", "verdict": "failed"})))
    assert page.blocks["test-0"] == {
        **{name: [] for name in ("functions", "history", "packages", "why", "work")},
        "python": None,
    }


def test_budgets_are_those_of_the_terminal() -> None:
    """In the same words, with what is to be done where one is not kept."""
    counts = {size: Fraction(size * size) for size in (256, 1024, 4096)}
    growth, allowed = parse_growth("n^2"), parse_growth("n")
    budgets: tuple[BudgetResult, ...] = (
        CeilingResult("a.py::test_a", Fraction(20_000), 20_000),
        ScalingResult("a.py::test_b[4096]", counts, growth, allowed),
        Unjudged("a.py::test_c", "max_ratio", "ratio-unmeasured", "no <i>", "run it"),
    )
    summary = RunSummary((), {}, budgets=budgets)
    kept, over, unjudged = Page(render_page(page_data(summary, {}, ""))).blocks["run"]["budgets"]
    assert kept == {
        "nodeid": "a.py::test_a",
        "budget": "max_ir",
        "verdict": "kept",
        "now": "20,000",
        "allowed": "20,000",
        "why": "",
    }
    assert (over["verdict"], over["now"], over["allowed"]) == ("over-budget", "n^2", "n")
    assert "grows like n^2 with the size, worse than n [over-budget]\n" in over["why"]
    assert re.search(r"4096 +16,777,216 +", over["why"])
    assert (unjudged["verdict"], unjudged["now"]) == ("failed", "not judged")
    assert unjudged["why"].endswith("no <i> [ratio-unmeasured]\n  fix: run it")


def a_change(verdict: Verdict, *deltas: int) -> dict[str, Any]:
    """What the page is told of a test whose C functions changed by so much."""
    functions = tuple(
        FunctionDelta(f"a.c:f{n}", Fraction(ir), Fraction(1), Fraction(2))
        for n, ir in enumerate(deltas)
    )
    moved = Fraction(sum(deltas), 1000)
    limit = parse_limit("1%")
    result = TestResult(
        "a::b", verdict, 1000 + sum(deltas), 1000, moved, limit, functions=functions
    )
    data: Any = page_data(RunSummary((result,), {}), {"a::b": [POINT]}, "2026-03-14")
    test: dict[str, Any] = data["tests"][0]
    return test


POINT = Point(commit="a" * 40, date="2026-01-01", ir=1000)


@pytest.mark.parametrize(
    ("verdict", "deltas", "shares"),
    [
        (Verdict.regressed, (30, -10, 20), [0.75, -0.25, 0.5]),
        (Verdict.improved, (-30, 10), [1.5, -0.5]),
        (Verdict.unchanged, (3, 1), [None, None]),
        (Verdict.regressed, (30, -30), [None, None]),
        (Verdict.regressed, (10, -30), [None, None]),
    ],
    ids=["grew", "shrank", "unchanged", "moved by nothing", "moved the other way"],
)
def test_functions_have_shares_of_a_change(
    verdict: Verdict, deltas: tuple[int, ...], shares: list[float | None]
) -> None:
    assert [each["share"] for each in a_change(verdict, *deltas)["functions"]] == shares


def test_a_cause_is_told_with_numbers_and_without() -> None:
    assert a_change(Verdict.regressed, 30)["cause"] == ["f0", "a.c, 1 -> 2 calls", "a.c"]


def test_the_history_ends_with_this_run() -> None:
    """If it was compared: the count of another environment would look like a change."""
    now = Point(commit="", date="2026-03-14", ir=1030)
    assert a_change(Verdict.regressed, 30)["history"] == [POINT, now]
    other = TestResult("a::b", Verdict.incomparable, 9, 1000, None, parse_limit("1%"))
    data: Any = page_data(RunSummary((other,), {}), {"a::b": [POINT]}, "")
    assert data["tests"][0]["history"] == [POINT]


def test_the_title_is_escaped() -> None:
    page = render_page(samples.a_run(title="<b>&\udc80\u202e"))
    assert "<title>&lt;b&gt;&amp;&#56448;&#8238;</title>" in page


@pytest.mark.parametrize(
    "data",
    [samples.small(), samples.hostile(), samples.with_budgets()],
    ids=["small", "hostile", "budgets"],
)
def test_names_make_no_elements(data: dict[str, Any]) -> None:
    """The elements are those of an empty run, and a block for each test."""
    empty, page = Page(render_page(samples.a_run())), Page(render_page(data))
    tags = [tag for tag, _ in page.elements]
    blocks = ["script"] * len(data["tests"])
    assert sorted(tags) == sorted([tag for tag, _ in empty.elements] + blocks)


def test_any_name_comes_back() -> None:
    data = samples.hostile()
    run = Page(render_page(data)).blocks["run"]
    assert run["title"] == data["title"]
    assert run["tests"][0]["nodeid"] == data["tests"][0]["nodeid"]


@given(st.text(st.characters()))
def test_every_text_comes_back(text: str) -> None:
    page = render_page(samples.a_run(samples.a_test(text), title=text))
    assert page.isascii()
    assert Page(page).blocks["run"]["tests"][0]["nodeid"] == text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_no_number_is_refused(number: float) -> None:
    """JSON has no such numbers: a page with one would stay empty."""
    with pytest.raises(ValueError, match="JSON"):
        render_page(samples.a_run(samples.a_test("a.py::b", delta=number)))


def allowed(page: Page, directive: str) -> Sequence[str]:
    for part in page.policy.split(";"):
        name, *values = part.split()
        if name == directive:
            return values
    raise AssertionError(directive)


def test_the_policy_allows_our_script_and_style_alone() -> None:
    page = Page(render_page(samples.small()))
    assert allowed(page, "default-src") == ["'none'"]
    scripts = [text for attributes, text in page.find("script") if "type" not in attributes]
    styles = [text for _, text in page.find("style")]
    for directive, texts in (("script-src", scripts), ("style-src", styles)):
        hashes = [
            base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts
        ]
        assert allowed(page, directive) == [f"'sha256-{each}'" for each in hashes]
        assert len(texts) == 1


def test_the_policy_comes_before_all_that_it_judges() -> None:
    tags = [tag for tag, _ in Page(render_page(samples.small())).elements]
    assert tags.index("meta") < tags.index("style") < tags.index("script")


def test_nothing_is_asked_for() -> None:
    """No address but that of SVG's namespace, no import, nothing that loads."""
    page = render_page(samples.a_run())
    assert re.findall(r"https?://[^\s\"']+", page) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\(|\bsrc=|<link|fetch\(|XMLHttpRequest|import\(", page)


def test_scripts_make_no_markup_of_data() -> None:
    """Nor does the policy allow what makes code of text."""
    files = resources.files("pytest_instrcount.report").iterdir()
    scripts = [file for file in files if file.name.endswith(".js")]
    assert len(scripts) == 5
    for script in scripts:
        found = re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|</script|<!--",
            script.read_text("utf-8"),
        )
        assert found is None
