"""The report in Markdown: the worst first, names that cannot break out, and never too long."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.budget import CeilingResult
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import RunSummary, TestResult
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.report.accepted import MOST_LISTED, code_span, render_accepted
from pytest_instrcount.report.markdown import LARGEST, LARGEST_SUMMARY, escape, render_markdown
from pytest_instrcount.report.runner import write_reports

LIMIT = parse_limit("1%")
HOSTILE = "t.py::test_a[|`<details>\n# [x](y) **b** </summary> @all ```]"


def moved(nodeid: str, share: Fraction, verdict: Verdict = Verdict.regressed) -> TestResult:
    ir = int(1000 * (1 + share))
    return TestResult(nodeid, verdict, ir, 1000, share, LIMIT, detects=Fraction(1, 10_000))


RUN = RunSummary(
    (
        moved("t.py::same", Fraction(0), Verdict.unchanged),
        moved("t.py::faster", Fraction(-1, 10), Verdict.improved),
        moved("t.py::slow", Fraction(1, 10)),
        moved("t.py::slowest", Fraction(1, 2)),
        TestResult("t.py::broken", Verdict.failed, None, None, None, LIMIT, reason="no [why]"),
        TestResult("t.py::new", Verdict.new, 5, None, None, LIMIT),
    ),
    {"valgrind": "3.19.0"},
    failing=frozenset(("t.py::slow", "t.py::slowest", "t.py::broken")),
    update_command="pytest --instrcount-update-baseline",
    prune_command="pytest --instrcount-prune",
)


def rows_of(text: str) -> list[list[str]]:
    """Cells of the table, split as GitHub does."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_detection_limit_beyond_the_limit_does_not_look_like_it() -> None:
    close = replace(moved("t.py::slow", Fraction(1, 10)), detects=Fraction(1001, 100_000))
    (_, row) = rows_of(render_markdown(RunSummary((close,), {})))
    assert row[4:] == ["+1\xa0%", "regressed, detects >= 1.001\xa0%"]


def test_what_is_shown() -> None:
    """All that is not unchanged, the worst first; bold is what fails the run; how to accept it."""
    text = render_markdown(RUN)
    assert text.startswith(
        "### instrcount: 1 unchanged, 1 improved, 2 regressed, 1 new, 1 failed\n\n| test |"
    )
    head, *rows = rows_of(text)
    assert head == ["test", "before", "now", "delta", "limit", ""]
    assert [row[0] for row in rows] == [
        f"`t.py::{name}`" for name in ("slowest", "slow", "broken", "new", "faster")
    ]
    assert rows[0][1:] == [
        "1,000",
        "1,500",
        "+50\xa0%",
        "+1\xa0%",
        "**regressed**, detects >= 0.01\xa0%",
    ]
    assert rows[2][1:] == ["-", "-", "", "+1\xa0%", "**failed**"]
    assert rows[3][5] == "new"
    assert rows[4][3] == "-10\xa0%"
    assert "```text\npytest --instrcount-update-baseline\n```" in text
    assert re.findall("<summary>(.*)</summary>", text) == [
        "<code>slowest: regressed</code>",
        "<code>slow: regressed</code>",
        "<code>broken: failed</code>",
        "<code>faster: improved</code>",
        "<code>environment</code>",
    ]
    assert "slowest: Ir 1,000 -> 1,500\n" in text
    assert "  accept:" not in text


def test_what_fails_in_ci_is_told() -> None:
    """There a new test fails, and a baseline without its test: why, and what to type."""
    gone = TestResult("t.py::gone", Verdict.stale, None, None, None, LIMIT, cause=Cause.gone)
    results = *RUN.results[-1:], gone
    text = render_markdown(replace(RUN, results=results, failing=frozenset(("t.py::new",))))
    assert [row[5] for row in rows_of(text)[1:]] == ["**new**", "stale"]
    titles = re.findall("<code>(.*)</code></summary>", text)
    assert titles == ["new: new", "environment"]
    assert "new: no baseline to compare with (Ir 5) [baseline-missing]\n" in text
    assert "```text\npytest --instrcount-prune\n```" in text


def test_nothing_wrong() -> None:
    """One line, and the environment."""
    text = render_markdown(RunSummary(RUN.results[:1], {}))
    assert text == "### instrcount: 1 unchanged\n"


def test_budgets() -> None:
    """Those that are not kept are in the heading."""
    budgets = (
        CeilingResult("t.py::big", Fraction(30), 20),
        CeilingResult("t.py::b", Fraction(1), 2),
    )
    text = render_markdown(RunSummary((), {}, budgets=budgets))
    assert text.startswith("### instrcount: no test measured; 1 budget not kept\n")
    assert "<summary><code>over budget: big</code></summary>" in text


def outside_of_code(text: str) -> str:
    """What is left for a reader of Markdown once code has been taken out, as CommonMark does."""
    text = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", text)


def test_names_stay_names() -> None:
    """Pipes, backticks, markup and line breaks do not get out of a cell, a summary or a fence."""
    result = moved(HOSTILE, Fraction(1, 2))
    text = render_markdown(RunSummary((result,), {HOSTILE: HOSTILE}, notes=(HOSTILE,)))
    (_, row) = rows_of(text)
    assert len(row) == 6
    assert row[0] == code_span(HOSTILE).replace("|", r"\|")
    assert text.count("<details>\n# [") == 0
    rest = outside_of_code(text)
    assert rest.count("<details>") == rest.count("</details>") == 2
    assert set(re.findall(r"</?(\w+)", rest)) == {"details", "summary", "code"}
    assert (
        "**b**" not in rest
        and "@all" not in re.sub("<code>.*</code>", "", rest)
        and "[x]" not in rest
    )
    assert html.unescape(escape(HOSTILE)) == printable(HOSTILE)


@given(st.text())
def test_any_name(name: str) -> None:
    """Of any test the row has six cells, and the details close."""
    text = render_markdown(RunSummary((moved(f"t.py::{name}", Fraction(1)),), {}))
    assert [len(row) for row in rows_of(outside_of_code(text.replace("\\|", "")))] == [6, 6]
    rest = outside_of_code(text)
    assert rest.count("<details>") == rest.count("</details>") == 1


@pytest.mark.parametrize("number", [10, 3000])
@pytest.mark.parametrize("name", ["t.py::a", "t.py::" + "a|`" * 500, "t.py::" + "中" * 2000])
def test_it_fits(number: int, name: str) -> None:
    """Whole parts are left out, and that is said."""
    results = tuple(moved(f"{name}{n}", Fraction(n + 1, 100)) for n in range(number))
    text = render_markdown(RunSummary(results, {}, update_command="pytest " + name * number))
    assert len(text.encode()) <= LARGEST
    assert f"{number} regressed" in text.splitlines()[0]
    assert text.count("<details>") == text.count("</details>")
    assert "left out, for length" in text or number * len(name) < LARGEST
    rest = outside_of_code(text)
    assert rest.count("`") == 0


# --- files --------------------------------------------------------------------------------------


def test_append(tmp_path: Path) -> None:
    """To what is there, as long as GitHub would show it."""
    path = tmp_path / "below" / "summary.md"
    for _ in range(2):
        write_reports([("markdown-append", path)], RUN, Path)
    whole = render_markdown(RUN)
    assert path.read_text() == f"{whole}\n{whole}"
    path.write_text("x" * (LARGEST_SUMMARY - 100))
    write_reports([("markdown-append", path)], RUN, Path)
    assert path.stat().st_size == LARGEST_SUMMARY - 100


def test_replace(tmp_path: Path) -> None:
    """Without -append what was there goes; a folder cannot be written."""
    path = tmp_path / "report.md"
    path.write_text("old")
    write_reports([("markdown", path)], RUN, Path)
    assert path.read_text() == render_markdown(RUN)
    for kind in ("markdown", "markdown-append"):
        with pytest.raises(InstrcountError, match="report-write"):
            write_reports([(kind, tmp_path)], RUN, Path)


# --- after an update ----------------------------------------------------------------------------


def stored(result: TestResult) -> TestResult:
    return replace(result, written=True)


def test_accepted_is_bounded() -> None:
    """The largest moves, and how many more; hostile names are in one line each."""
    results = tuple(stored(moved(f"t.py::{n}\n-`", Fraction(n, 100))) for n in range(1, 40))
    lines = render_accepted(RunSummary(results, {}, updating=True, reason="why\n"))
    assert lines[1] == r"Accepted instruction counts: why\n"
    assert lines[3] == r"- `` t.py::39\n-` ``: 1,000 -> 1,390 (+39 %)"
    assert lines[-2] == f"- and {39 - MOST_LISTED} more"
    assert all("\n" not in line for line in lines)
