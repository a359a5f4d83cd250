"""The text for terminals: tables that fit, failures that say what to type, numbers that are true."""

from __future__ import annotations

import dataclasses
import unicodedata
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.compare import FunctionDelta, compare
from pytest_instrcount.gate.gate import Verdict, judge
from pytest_instrcount.gate.limit import Limit, parse_limit
from pytest_instrcount.gate.records import RunSummary, TestResult, measured_result
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.gate.store.schema import to_baseline
from pytest_instrcount.report.detection_limit import blind_limits
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.moves import changed_packages, moved_together
from pytest_instrcount.report.summary import (
    render_header,
    render_summary,
    render_totals,
)
from pytest_instrcount.report.table import tell_apart
from pytest_instrcount.report.words import (
    count,
    cut_left,
    cut_right,
    percent,
    quotient,
    short_name,
)

LIMIT = parse_limit("1%")
UPDATE = "pytest tests/test_x.py --instrcount-update-baseline"
FUNCTIONS = (
    FunctionDelta("_json.c:scan_once", Fraction(300), Fraction(10), Fraction(12)),
    FunctionDelta("ceval.c:eval", Fraction(-200), Fraction(1), Fraction(1)),
    FunctionDelta("malloc.c:malloc", Fraction(101, 2), Fraction(3), Fraction(7, 2)),
    FunctionDelta("a.c:third", Fraction(6), Fraction(1), Fraction(1)),
    FunctionDelta("a.c:fourth", Fraction(1), Fraction(1), Fraction(1)),
)


def result(
    verdict: Verdict = Verdict.unchanged,
    now: int | None = 12_345,
    old: int | None = 12_345,
    nodeid: str = "tests/test_x.py::test_a",
    limit: Limit = LIMIT,
) -> TestResult:
    known = now is not None and old
    delta = Fraction(now, old) - 1 if now is not None and old and known else None
    return TestResult(nodeid, verdict, now, old, delta, limit)


SAME = result(nodeid="tests/test_x.py::test_same")
SLOWER = dataclasses.replace(
    result(Verdict.regressed, 12_702, nodeid="tests/test_x.py::test_slower"), functions=FUNCTIONS
)
NEW = result(Verdict.new, old=None, nodeid="tests/test_x.py::test_new")


def summary(
    *results: TestResult, updating: bool = False, notes: tuple[str, ...] = ()
) -> RunSummary:
    return RunSummary(results, {}, notes=notes, update_command=UPDATE, updating=updating)


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(0), "0 %"),
        (Fraction(357, 12_345), "+2.9 %"),
        (Fraction(-357, 12_345), "-2.9 %"),
        (Fraction(1, 100), "+1 %"),
        (Fraction(2, 1000), "+0.2 %"),
        (Fraction(31, 10**6), "+0.0031 %"),
        (Fraction(-31, 10**6), "-0.0031 %"),
        (Fraction(1, 3), "+33.3 %"),
        (Fraction(996, 10**5), "+1 %"),
        (Fraction(1, 10**6), "+0.0001 %"),
        (Fraction(-1), "-100 %"),
        (Fraction(9999, 1000), "+999.9 %"),
        (Fraction(10), "x11"),
        (Fraction(1047, 100), "x11.5"),
        (Fraction(131), "x132"),
        (Fraction(1_234_567), "x1.2e+6"),
        (Fraction(1, 10**18), "+1.0e-16 %"),
        (Fraction(10**18), "x1.0e+18"),
        (Fraction(10**400, 1), "x1.0e+400"),
        (Fraction(-50), "-5,000 %"),
    ],
)
def test_percent(fraction: Fraction, text: str) -> None:
    """Few digits, as many as it takes, and a sign."""
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (Fraction(1001, 10**5), "+1.001 %"),
        (Fraction(1_000_001, 10**8), "+1.000001 %"),
        (Fraction(1, 100), "+1 %"),
        (Fraction(999, 10**5), "+0.999 %"),
        (Fraction(2, 100), "+2 %"),
        (Fraction(-1001, 10**5), "-1.001 %"),
        (Fraction(1, 100) + Fraction(1, 10**15), "+1 %"),
    ],
)
def test_percent_beside_a_limit(fraction: Fraction, text: str) -> None:
    """A delta beyond 1 % does not read as 1 %, up to nine decimals."""
    assert percent(fraction, beyond=Fraction(1, 100)) == text


def test_a_factor_beside_a_limit() -> None:
    """A limit is in percent: where that is huge, too, the delta is written as the limit is."""
    assert percent(Fraction(20), beyond=Fraction(1, 100)) == "x21"
    assert percent(Fraction(20), beyond=Fraction(15)) == "+2,000 %"


fractions = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))


@given(fractions)
def test_only_zero_reads_as_zero(fraction: Fraction) -> None:
    """No delta is rounded away, its sign is kept, and its text stays narrow and near."""
    text = percent(fraction)
    number = float(text.removesuffix(" %").removeprefix("x").replace(",", ""))
    assert (number == 0) == (fraction == 0)
    assert (number < 0) == (fraction < 0)
    assert len(text) <= 14
    exact = fraction + 1 if text.startswith("x") else fraction * 100
    assert number == pytest.approx(float(exact), rel=0.06)


@pytest.mark.parametrize(
    ("ir", "text"),
    [
        (None, "-"),
        (0, "0"),
        (12_345, "12,345"),
        (-12_345, "-12,345"),
        (10**11 - 1, "99,999,999,999"),
        (10**11, "1.0000e+11"),
        (2**63, "9.2234e+18"),
        pytest.param(10**5000, "1.0000e+5000", id="beyond str"),
    ],
)
def test_count(ir: int | None, text: str) -> None:
    """At most 15 columns for any integer."""
    assert count(ir) == text
    assert len(text) <= 15


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(12_345), "12,345"),
        (Fraction(101, 2), "50.5"),
        (Fraction(-101, 2), "-50.5"),
        (Fraction(10**7 + 1, 2), "5,000,001"),
        (Fraction(2, 3), "0.7"),
    ],
)
def test_quotient(number: Fraction, text: str) -> None:
    """Integers as integers, else one decimal while that matters."""
    assert quotient(number) == text


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain [a-1]\\xe9", "plain [a-1]\\xe9"),
        ("é", "é"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
        ("中", "\\u4e2d"),
        ("a\u0301", "a\\u0301"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u200b\u2028\xa0\xad", "\\u200b\\u2028\\xa0\\xad"),
        ("\U0001f600", "\\U0001f600"),
        ("\ud800", "\\ud800"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_printable(name: str, text: str) -> None:
    """What a terminal could obey, or show wider or narrower than one column, is shown escaped."""
    assert printable(name) == text


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "…cd"),
        ("", 3, ""),
        ("a\x1b", 8, "a\\x1b"),
        ("中中", 8, "…\\u4e2d"),
    ],
)
def test_cut_left(name: str, width: int, text: str) -> None:
    """The end of a name tells tests apart, so the beginning goes."""
    assert cut_left(name, width).endswith(text.lstrip("…"))
    assert len(cut_left(name, width)) <= width
    assert cut_left(name, width).startswith("…") == text.startswith("…")


@given(st.text(st.characters()), st.integers(1, 100))
def test_cut_fits(name: str, width: int) -> None:
    """Never wider than asked."""
    assert len(cut_left(name, width)) <= width
    assert len(cut_right(name, width)) <= width
    if len(printable(name)) <= width:
        assert cut_left(name, width) == cut_right(name, width) == printable(name)


@given(
    st.lists(st.text("ab[]", max_size=60), min_size=2, max_size=2, unique=True),
    st.text("xy", max_size=60),
)
def test_names_in_a_table_are_told_apart(names: list[str], end: str) -> None:
    """However long what they have in common is."""
    first, second = tell_apart([f"test_a[{name}-{end}]" for name in names], 20)
    assert first != second and max(len(first), len(second)) <= 20


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/test_x.py::test_a", "test_a"),
        ("tests/test_x.py::TestA::test_b[x::y]", "test_b[x::y]"),
        ("tests/[odd]/test_x.py::test_a", "test_a"),
        ("test_x.py", "test_x.py"),
        ("t.py::a[\n]", "a[\\n]"),
    ],
)
def test_short_name(nodeid: str, name: str) -> None:
    """The test's own name, with parameters."""
    assert short_name(nodeid) == name


# --- the summary --------------------------------------------------------------------------------


def test_nothing_to_say() -> None:
    """No test, no note: no line."""
    assert render_summary(summary(), 0) == []


def test_totals_count_verdicts_in_order() -> None:
    """One line, zeros left out."""
    run = summary(NEW, SLOWER, *[SAME] * 38)
    assert render_totals(run) == "instrcount: 38 unchanged, 1 regressed, 1 new"
    assert render_summary(run, -1) == [render_totals(run)]
    assert render_summary(summary(notes=("said",)), -1) == ["instrcount: no test measured"]


def test_default_shows_what_is_not_unchanged() -> None:
    """Table, totals, notes, command: this very text."""
    assert render_summary(summary(SAME, SLOWER, NEW, notes=("a note",)), 0) == [
        "test                            baseline     now    delta    limit",
        "----------------------------  ----------  ------  -------  -------",
        "tests/test_x.py::test_slower      12,345  12,702   +2.9 %     +1 %",
        "tests/test_x.py::test_new              -  12,345      new     +1 %",
        "instrcount: 1 unchanged, 1 regressed, 1 new",
        "a note",
        "  accept: " + UPDATE,
    ]


def test_all_unchanged_is_one_line() -> None:
    """No table, and no command where there is nothing to accept."""
    assert render_summary(summary(SAME), 0) == ["instrcount: 1 unchanged"]


def test_verbose_shows_all() -> None:
    """-v has a row for each test, in the order of the run."""
    lines = render_summary(summary(SAME, SLOWER), 1)
    assert lines[2] == (
        "tests/test_x.py::test_same        12,345  12,345      0 %     +1 %          -"
    )
    assert lines[3].startswith("tests/test_x.py::test_slower ")
    assert not any("scan_once" in line for line in lines)


def test_very_verbose_shows_functions() -> None:
    """-vv has the functions below each row that moved, aligned."""
    lines = render_summary(summary(SAME, SLOWER, SAME), 2)
    assert lines[4:9] == [
        "       +2.4 %  10 -> 12 calls  _json.c:scan_once",
        "       -1.6 %  1 call          ceval.c:eval",
        "      +0.41 %  3 -> 3.5 calls  malloc.c:malloc",
        "     +0.049 %  1 call          a.c:third",
        "    +0.0081 %  1 call          a.c:fourth",
    ]
    assert lines[9].startswith("tests/test_x.py::test_same ")


def test_very_verbose_shows_noise() -> None:
    """In how many layouts a test was measured, and which kinds of noise have grown beyond their range."""
    grown = {"memory": Fraction(100), "look-ups": Fraction(0), "strings": Fraction(7, 3)}
    noisy = dataclasses.replace(SAME, noise=grown, layouts=4, denoised_ir=SAME.ir)
    assert render_summary(summary(noisy), 2)[3:6] == [
        "    measured in 4 layouts of memory",
        "    memory: 100 ir a call beyond noise",
        "    strings: 2.3 ir a call beyond noise",
    ]
    assert not any("memory" in line for line in render_summary(summary(noisy), 1))


def test_the_blindest_limit_comes_first() -> None:
    """Else it is one of those that are not named."""
    shares = [Fraction(n, 1000) for n in (11, 12, 93, 21)]
    blind = [
        dataclasses.replace(SAME, nodeid=f"t.py::test_{n}", detects=share, denoised_ir=SAME.ir)
        for n, share in enumerate(shares)
    ]
    (line,) = blind_limits(blind)
    assert [line.index(f"test_{n}") for n in (2, 3, 1)] == sorted(
        line.index(f"test_{n}") for n in (1, 2, 3)
    )
    assert line.endswith(") and 1 more")


def test_a_limit_just_below_what_is_detected() -> None:
    """Has other digits, in the note and in the table: '+1 %, detects >= 1 %' contradicts itself."""
    seen = dataclasses.replace(SAME, detects=Fraction(104, 10_000), denoised_ir=SAME.ir)
    assert blind_limits([seen])[0].endswith(": test_same (+1 %, detects >= 1.04 %)")
    assert render_summary(summary(seen), 1)[2].endswith("  +1 %  >= 1.04 %")


def test_a_delta_stands_beside_the_counts_that_it_is_of() -> None:
    """In the headline and in the table; the raw counts have a line of their own, with their growth."""
    noisy = dataclasses.replace(
        result(Verdict.regressed, 12_456),
        delta=Fraction(228, 12_000),
        denoised_baseline_ir=12_000,
        denoised_ir=12_228,
        detects=Fraction(1, 5000),
    )
    assert render_failure(noisy, "pytest")[:4] == [
        "+1.9 % (limit 1 %): mean Ir 12,000 -> 12,228",
        "  test_a: mean Ir 12,000 -> 12,228",
        "  in the usual layout of memory: Ir 12,345 -> 12,456",
        "  detects growth >= 0.02 %",
    ]
    row = render_summary(summary(noisy), 0)[2]
    assert row.split()[1:4] == ["12,000", "12,228", "+1.9"]


@pytest.mark.parametrize(
    ("name", "calls", "is_said"),
    [
        ("dictobject.c:unicodekeys_lookup_unicode", 184, True),
        ("setobject.c:set_lookkey", 184, True),
        ("dictobject.c:unicodekeys_lookup_unicode", 185, False),
        ("dictobject.c:dictresize", 184, False),
    ],
)
def test_probing_is_said(name: str, calls: int, is_said: bool) -> None:
    """Where most of a change is in look-ups that are as many as before, of either sign."""
    for sign, verdict in ((1, Verdict.regressed), (-1, Verdict.improved)):
        moved = FunctionDelta(name, Fraction(30 * sign), Fraction(184), Fraction(calls))
        other = FunctionDelta("ceval.c:loop", Fraction(20 * sign), Fraction(1), Fraction(1))
        changed = dataclasses.replace(result(verdict, 12_345 + 50 * sign), functions=(moved, other))
        lines = render_failure(changed, "pytest")
        assert any("keys collide differently" in line for line in lines) == is_said
        assert all(len(line) <= 80 for line in lines if "keys " in line)


def test_a_test_without_a_baseline_has_its_raw_count() -> None:
    """Nothing says yet what is noise; once it is stored, the row still has no number before."""
    stored = dataclasses.replace(NEW, denoised_ir=12_000, written=True)
    for new in (NEW, stored):
        assert render_summary(summary(new), 0)[2].split()[1:3] == ["-", "12,345"]


def test_very_verbose_ends() -> None:
    """Ten functions a test, then how many more."""
    many = dataclasses.replace(SLOWER, functions=FUNCTIONS * 3)
    assert render_summary(summary(many), 2)[13] == "    and 5 more"


def test_updating_says_what_was_written() -> None:
    """An update has no command to type next."""
    written = dataclasses.replace(NEW, written=True)
    assert render_summary(summary(SAME, written, updating=True), 0)[-1] == (
        "instrcount: 1 baseline written"
    )
    there = dataclasses.replace(summary(written, updating=True), baselines="baselines/cp311")
    assert render_summary(there, 0)[-1] == "instrcount: 1 baseline written to baselines/cp311"
    assert render_summary(there, -1)[-1] == "instrcount: 1 baseline written to baselines/cp311"
    none = "instrcount: 0 baselines written: what is unchanged keeps its own"
    assert none in render_summary(summary(SAME, updating=True), 0)


def test_words_where_there_is_no_delta() -> None:
    """What was not compared says why in the delta's place."""
    verdicts = (Verdict.incomparable, Verdict.failed, Verdict.stale, Verdict.nondeterministic)
    for verdict in verdicts:
        line = render_summary(summary(result(verdict, None, None)), 0)[2]
        assert line.split()[1:4] == ["-", "-", str(verdict)]


def test_the_same_cause_as_a_test_of_a_long_name() -> None:
    """The name is cut in its middle, the sentence is not."""
    lines = render_failure(SLOWER, UPDATE, like="t.py::test_dump[" + "x" * 99 + "-last]")
    (line,) = (each for each in lines if "same cause" in each)
    assert line.startswith("  for the same cause as test_dump[xx") and len(line) == 80
    assert line.endswith("xx-last], see there")


def test_numbers_stay_as_they_are() -> None:
    """Tabulate's number parsing is off: a test named 1e5 stays 1e5."""
    assert render_summary(summary(result(nodeid="1e5")), 1)[2].startswith("1e5 ")


def test_only_the_name_is_cut() -> None:
    """A long name leaves room for all other columns, also where their headers are wider."""
    line = render_summary(summary(result(now=1, old=1, nodeid="x" * 200)), 1)[2]
    assert line.startswith("…xxx")
    assert line.endswith("x           1      1      0 %     +1 %          -")
    assert len(line) == 80


def test_notes_wrap() -> None:
    """A long note goes on below, indented."""
    lines = render_summary(summary(notes=("word " * 30,)), 0)
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("  word")


counts = st.none() | st.integers(0, 2**70)
limits = st.sampled_from([LIMIT, parse_limit("12.3456789%|5000000ir"), Limit(None, 2**70)])
results = st.builds(
    TestResult,
    nodeid=st.text(st.characters(), max_size=200) | st.text("x/:中\x1b", min_size=60),
    verdict=st.sampled_from(Verdict),
    ir=counts,
    baseline_ir=counts,
    delta=st.none() | fractions,
    limit=limits,
    functions=st.lists(
        st.builds(FunctionDelta, st.text(st.characters()), fractions, fractions, fractions),
        max_size=3,
    ).map(tuple),
)


@given(st.lists(results, min_size=1, max_size=6), st.sampled_from([20, 40, 80, 120]))
def test_the_table_fits(found: list[TestResult], width: int) -> None:
    """No row is wider than asked, whatever the names and numbers, and no row is missing."""
    run = RunSummary(tuple(found), {})
    lines = render_summary(run, 2, width)
    table = lines[: lines.index(render_totals(run))]
    assert max(map(len, table)) <= width
    assert len(table) == 2 + len(found) + sum(len(one.functions) for one in found)
    assert all(unicodedata.category(char)[0] != "C" for line in lines for char in line)


@given(st.lists(results, min_size=1, max_size=6))
def test_eighty_columns_hide_no_number(found: list[TestResult]) -> None:
    """At 80 columns, only names and odd limits are cut."""
    for one, line in zip(found, render_summary(RunSummary(tuple(found), {}), 1)[2:]):
        assert f" {count(one.baseline_ir)} " in line
        assert f" {count(one.ir)} " in line


# --- failures -----------------------------------------------------------------------------------


def test_regressed() -> None:
    """Numbers, the three functions that grew most, packages, command: this very text."""
    regressed = dataclasses.replace(
        SLOWER,
        nodeid="tests/test_x.py::TestA::json",
        packages_changed=(("attrs", "23.1", "23.2"),),
        detail=("measured with 20 warm-up calls",),
    )
    assert render_failure(regressed, UPDATE) == [
        "+2.9 % (limit 1 %): scan_once _json.c, 10 -> 12 calls",
        "  json: Ir 12,345 -> 12,702",
        "  by C function, share of the change, its own and with what it calls:",
        "    190 %  10 -> 12 calls  _json.c:scan_once",
        "     32 %  3 -> 3.5 calls  malloc.c:malloc",
        "      3 %  1 call          a.c:third",
        "  packages changed: attrs 23.1 -> 23.2",
        "  measured with 20 warm-up calls",
        "  accept: " + UPDATE,
    ]


def test_regressed_by_little() -> None:
    """The text never says that a delta at the limit failed."""
    little = result(Verdict.regressed, 1_010_001, 1_000_000)
    assert render_failure(little, UPDATE)[0] == ("+1.0001 % (limit 1 %): Ir 1,000,000 -> 1,010,001")


def test_regressed_from_zero() -> None:
    """No fraction says it; the word does."""
    assert render_failure(result(Verdict.regressed, 5, 0), UPDATE) == [
        "regressed (limit 1 %): Ir 0 -> 5",
        "  test_a: Ir 0 -> 5",
        "  accept: " + UPDATE,
    ]


@pytest.mark.parametrize("verdict", [Verdict.new, Verdict.regressed])
def test_without_a_command_there_is_no_line_for_it(verdict: Verdict) -> None:
    """As where another commit was measured: nothing can be stored."""
    lines = render_failure(result(verdict, 5, 0), UPDATE)
    assert render_failure(result(verdict, 5, 0), "") == lines[:-1]


def test_new() -> None:
    """In CI a missing baseline names the command that makes it."""
    lines = render_failure(NEW, UPDATE)
    assert lines[0] == "test_new: no baseline to compare with (Ir 12,345) [baseline-missing]"
    assert lines[-1] == "  fix: " + UPDATE


def test_incomparable() -> None:
    """Which facts differ, and no percent."""
    other = dataclasses.replace(
        result(Verdict.incomparable), delta=None, differences=(("glibc", "2.36", "2.39\x1b"),)
    )
    assert render_failure(other, UPDATE) == [
        "test_a: the baseline was made in another environment or way [baseline-incomparable]",
        "  glibc: 2.36 -> 2.39\\x1b",
        "  accept: " + UPDATE,
    ]


def test_improved() -> None:
    """Where improvements fail, the way out is to store them."""
    lines = render_failure(result(Verdict.improved, 10_000), UPDATE)
    assert lines[0] == "-19 % (limit 1 %): Ir 12,345 -> 10,000 [improved]"
    assert "store the new count" in lines[2]
    assert lines[-1] == "  accept: " + UPDATE


@pytest.mark.parametrize(
    ("reason", "lines"),
    [
        ("", ["test_a: could not be measured"]),
        ("segfault\x1b", ["test_a: segfault\\x1b"]),
        (
            str(InstrcountError("x", "why", "type this")).removeprefix("instrcount: "),
            ["test_a: why [x]", "  fix: type this"],
        ),
    ],
)
def test_failed(reason: str, lines: list[str]) -> None:
    """The reason, its command below; nothing to accept."""
    failed = dataclasses.replace(result(Verdict.failed, None, None), reason=reason)
    assert render_failure(failed, UPDATE) == lines


@pytest.mark.parametrize(
    ("unsteady", "hint"),
    [
        (("ceval.c:_PyEval_EvalFrameDefault", "obmalloc.c:PyObject_Malloc"), None),
        (("heapq.c:siftup", "__select_error", "pthread_mutex_lock"), None),
        (("epoll_wait",), "one polled more often"),
        (
            ("__poll [libc]", "pthread_cond_timedwait@@GLIBC_2.3.2"),
            "one polled more often",
        ),
        (("selectmodule.c:select_epoll_poll_impl.isra.0",), "one polled more often"),
        (("obmalloc.c:f", "pthread_cond_timedwait@@GLIBC_2.3.2"), "threads waited for each other"),
        (("sem_clockwait@GLIBC_2.30",), "threads waited for each other"),
        (("start_thread",), "threads waited for each other"),
    ],
)
def test_nondeterministic_says_what_waits(unsteady: tuple[str, ...], hint: str | None) -> None:
    """Behind the functions that differ, where they tell; else nothing is guessed."""
    given = dataclasses.replace(result(Verdict.nondeterministic), unsteady=unsteady)
    lines = [line.strip() for line in render_failure(given, UPDATE)]
    after = lines[lines.index(unsteady[-1]) + 1 :]
    assert len(after) == (2 if hint else 0)
    assert hint is None or after[0].startswith(hint)


def test_nondeterministic() -> None:
    """Two counts of one thing."""
    lines = render_failure(
        dataclasses.replace(result(Verdict.nondeterministic), reason="100 and 101 ir"), UPDATE
    )
    assert lines == [
        "test_a: measured twice, and the counts differ [nondeterministic]",
        "  100 and 101 ir",
    ]


@given(results, st.text(st.characters()))
def test_failures_obey_nothing(one: TestResult, text: str) -> None:
    """No control character of a name, reason or command reaches the terminal."""
    hostile = dataclasses.replace(
        one,
        reason=text,
        detail=(text,),
        differences=((text, text, text),),
        packages_changed=((text, text, text),),
    )
    for line in render_failure(hostile, text):
        assert all(unicodedata.category(char)[0] != "C" for char in line)


def test_header() -> None:
    """One line of facts, in the order given."""
    assert render_header({"valgrind": "3.19.0", "CPython": "3.11.7\n"}) == (
        "instrcount: valgrind 3.19.0, CPython 3.11.7\\n"
    )


# --- many tests together ------------------------------------------------------------------------


def moved(*percents: str) -> list[TestResult]:
    return [
        dataclasses.replace(SAME, delta=Fraction(text) / 100, packages_changed=(("a", "1", "2"),))
        for text in percents
    ]


@pytest.mark.parametrize(
    ("percents", "note"),
    [
        ([], None),
        (["0.2"] * 4, None),
        (["0.2"] * 5, "all 5 tests moved by +0.2 %: environment change?"),
        (
            ["0.18", "0.19", "0.2", "0.21", "0.22"],
            "all 5 tests moved by +0.2 %: environment change?",
        ),
        (["0.17", "0.19", "0.2", "0.21", "0.22"], None),
        (["-3"] * 40, "all 40 tests moved by -3 %: environment change?"),
        (["0"] * 40, None),
        (["0"] + ["0.2"] * 40, None),
        (["-0.2", "0.2", "0.2", "0.2", "0.2"], None),
    ],
)
def test_moved_together(percents: list[str], note: str | None) -> None:
    """Five or more, all by nearly the same: said once, with the packages that differ."""
    expected = () if note is None else (note, "packages changed: a 1 -> 2")
    assert moved_together(moved(*percents)) == expected
    if note:
        assert render_summary(summary(*moved(*percents)), 0).count(note) == 1


def test_one_function_is_no_environment() -> None:
    """Where it explains most of five tests or more, there is nothing to ask; few do not answer for all."""
    old = CallTree("trampolines", 1, {("f",): Row(100, 1)})
    blame = find_blame(old, CallTree("trampolines", 1, {("f",): Row(110, 1)}))
    results = moved(*["10"] * 5)
    assert moved_together(results)
    explained = [dataclasses.replace(each, python=blame) for each in results]
    assert moved_together([*explained, *results]) == ()
    assert moved_together([*explained[:4], *results])


def test_tests_without_delta_do_not_count() -> None:
    """New tests say nothing about the environment."""
    assert moved_together([*moved(*["0.2"] * 4), NEW]) == ()
    assert moved_together([*moved(*["0.2"] * 5), NEW])


def test_why_baselines_are_incomparable() -> None:
    """Said once for all tests of the same reason, three reasons at most."""
    others = [
        dataclasses.replace(
            result(Verdict.incomparable), delta=None, differences=(("valgrind", old, "3.19.0"),)
        )
        for old in ("3.21.0", "3.22.0", "3.21.0", "1", "2")
    ]
    lines = render_summary(summary(*others), 0, 100)
    assert (
        "2 baselines of another environment or way: valgrind 3.21.0 -> 3.19.0 [baseline-incomparable]"
        in lines
    )
    assert (
        "1 baseline of another environment or way: valgrind 3.22.0 -> 3.19.0 [baseline-incomparable]"
        in lines
    )
    assert "and 1 more reasons why baselines are incomparable" in lines


def test_changed_packages_are_few() -> None:
    """Five are named, the rest counted."""
    changes = [(f"p{number}", "1", "2") for number in range(7)]
    (line,) = changed_packages(changes)
    assert line.count("->") == 5
    assert line.endswith("p4 1 -> 2 and 2 more")


# --- from comparison to result ------------------------------------------------------------------


def test_measured_result_of_each_comparison() -> None:
    """A result carries what the comparison knows, and nothing else."""
    old = Measurement("t.py::a", 1000, 1, 20, "fork", {"f": Row(1000, 1)}, {"p": "1"})
    new = Measurement("t.py::a", 2041, 2, 20, "fork", {"f": Row(2041, 2)}, {"p": "2"})
    found = to_baseline(old, {"glibc": "2.36"})

    comparison = compare(new, found, {"glibc": "2.36"})
    grown = measured_result(new, found, comparison, judge(comparison, LIMIT), LIMIT)
    assert (grown.verdict, grown.ir, grown.baseline_ir) == (Verdict.regressed, 1021, 1000)
    assert grown.delta == Fraction(41, 2000)
    assert grown.functions == (FunctionDelta("f", Fraction(41, 2), Fraction(1), Fraction(1)),)
    assert grown.packages_changed == (("p", "1", "2"),)

    comparison = compare(new, found, {"glibc": "2.39"})
    other = measured_result(new, found, comparison, judge(comparison, LIMIT), LIMIT)
    assert (other.verdict, other.baseline_ir, other.delta) == (Verdict.incomparable, 1000, None)
    assert other.differences == (("glibc", "2.36", "2.39"),)

    comparison = compare(new, None, {})
    first = measured_result(new, None, comparison, judge(comparison, LIMIT), LIMIT)
    assert (first.verdict, first.ir, first.baseline_ir) == (Verdict.new, 1021, None)
    assert not (first.functions or first.packages_changed or first.differences)
