"""The algebra of counts: what is added can be taken away again, and nothing changes in place."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.function_counts import FunctionCount, FunctionCounts
from pytest_instrcount.counts.rules import rule_of
from pytest_instrcount.counts.standardize import standardize

NAMES = st.sampled_from(
    [
        "a.c:f",
        "/first/b.c:g.part.0",
        "/second/b.c:g",
        "???:0x00000000004fee40 [python3.11]",
        "obmalloc.c:PyObject_Malloc",
        "/x/Objects/obmalloc.c:PyObject_Malloc.cold",
        "obmalloc.c:pymalloc_alloc",
        "dictobject.c:lookdict_unicode",
        "multiarch.S:__memcpy_avx_unaligned_erms",
    ]
)
NUMBERS = st.integers(-(10**15), 10**15)
ROWS = st.builds(FunctionCount, NUMBERS, NAMES, NUMBERS, NUMBERS)


def counts_of(*, inclusive: bool | None = None) -> st.SearchStrategy[FunctionCounts]:
    kinds = st.booleans() if inclusive is None else st.just(inclusive)
    return st.builds(FunctionCounts, st.lists(ROWS, max_size=8).map(tuple), kinds)


EXCLUSIVE = counts_of(inclusive=False)
SAME_KIND = st.booleans().flatmap(
    lambda inclusive: st.tuples(*[counts_of(inclusive=inclusive)] * 3)
)
Three = tuple[FunctionCounts, FunctionCounts, FunctionCounts]


def exclusive(*rows: FunctionCount) -> FunctionCounts:
    return FunctionCounts(rows, inclusive=False)


def price_of(name: str) -> int:
    rule = rule_of(name)
    assert rule is not None
    assert rule.price > 0
    return rule.price


MALLOC = price_of("obmalloc.c:PyObject_Malloc")


def many(number: int, name: str = "file_{}.c:function") -> FunctionCounts:
    return exclusive(*(FunctionCount(1000 - n, name.format(n)) for n in range(number)))


F, G = FunctionCount(7, "f", 3, 2), FunctionCount(5, "g", 1, 1)


def test_a_row_is_a_named_tuple_of_two() -> None:
    """Count and name are what most loops want; the others are there for those who ask."""
    count, function = F
    assert (count, function, F.calls, F.denoised) == (7, "f", 3, 2)
    assert (F, len(F), F[1], F._fields) == ((7, "f"), 2, "f", ("count", "function"))
    assert isinstance(F, tuple)
    assert max(F, G) is F
    assert FunctionCount(1, "x").calls == 0
    assert [(count, function) for count, function in exclusive(F, G)] == [(7, "f"), (5, "g")]


@pytest.mark.parametrize(
    ("name", "left"), [("a.c:f", 9), ("/x/Objects/obmalloc.c:PyObject_Malloc", 0)]
)
def test_what_is_noise_by_its_name_is_known(name: str, left: int) -> None:
    """Of a row that was made by hand, and of one that was changed."""
    assert FunctionCount(9, name).denoised == left
    assert G._replace(count=9, function=name).denoised == left


@given(SAME_KIND)
def test_what_is_added_can_be_taken_away(three: Three) -> None:
    """Sums do not depend on the order, and have an inverse."""
    a, b, c = three
    assert a + b - b == a
    assert a - b + b == a
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert len(a - a) == 0
    assert (a - b) * -1 == b - a
    assert (a + b).sum() == a.sum() + b.sum()


@given(SAME_KIND, st.integers(-50, 50), st.integers(-50, 50))
def test_times(three: Three, n: int, m: int) -> None:
    """A factor is a whole number, on either side."""
    a, b, _ = three
    assert a * 2 == a + a == 2 * a
    assert a * (n + m) == a * n + a * m
    assert (a + b) * n == a * n + b * n
    assert len(a * 0) == 0
    assert (a * n).sum() == a.sum() * n


@given(SAME_KIND)
def test_denoise_is_linear_and_twice_is_once(three: Three) -> None:
    """The denoised difference is the difference of what is denoised, for both kinds."""
    a, b, _ = three
    assert (a - b).denoise() == a.denoise() - b.denoise()
    assert (a + b).denoise() == a.denoise() + b.denoise()
    assert (a * 3).denoise() == a.denoise() * 3
    assert a.denoise().denoise() == a.denoise()


@given(SAME_KIND)
def test_transform_is_linear(three: Three) -> None:
    """Names that come to be one are added up; it can be done before or after a difference."""
    a, b, _ = three
    assert (a - b).transform(standardize) == a.transform(standardize) - b.transform(standardize)
    assert a.transform(standardize).transform(standardize) == a.transform(standardize)
    assert a.transform(lambda name: "one").sum() == a.sum()
    for rename in (standardize, str.upper, lambda name: "one"):
        assert a.transform(rename).denoise() == a.denoise().transform(rename)


@given(counts_of(), NAMES)
def test_filter_parts_in_two(a: FunctionCounts, wanted: str) -> None:
    """What is picked and what is left make the whole."""
    picked = a.filter(lambda name: name == wanted)
    assert picked + a.filter(lambda name: name != wanted) == a
    assert {row.function for row in picked} <= {wanted}


@given(counts_of(), st.slices(8))
def test_indexing_is_that_of_a_tuple(a: FunctionCounts, part: slice) -> None:
    """A slice has the rows that a tuple's would have, in that order, and stays of its kind."""
    rows = tuple(a)
    assert tuple(a[part]) == rows[part]
    assert a[part].inclusive == a.inclusive
    assert len(a) == len(rows)
    assert [a[n] for n in range(len(a))] == list(rows)
    with pytest.raises(IndexError):
        a[len(a)]


@given(SAME_KIND)
def test_results_are_sorted_without_doubles_or_nothings(three: Three) -> None:
    """The largest comes first, then by name; a function is there once, and only with something."""
    a, b, _ = three
    for result in (a + b, a - b, a * 2, a.denoise(), a.transform(standardize)):
        assert list(result) == sorted(result, key=lambda row: (-row.count, row.function))
        assert len({row.function for row in result}) == len(result)
        assert all(row.count or row.denoised for row in result)
        assert all(
            type(row.count) is type(row.calls) is type(row.denoised) is int for row in result
        )


@given(counts_of())
def test_equality_hash_and_pickle(a: FunctionCounts) -> None:
    """The order does not matter to equality; a copy that was pickled is equal and works."""
    turned = a[::-1]
    assert turned == a
    assert hash(turned) == hash(a)
    assert a != FunctionCounts(a.rows, not a.inclusive)
    for other in (pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy(a)):
        assert other == a
        assert tuple(other) == tuple(a)
        assert other - a == a - a


def test_hash_is_for_sets() -> None:
    """Rows and counts can be members of a set."""
    assert len({exclusive(F, G), exclusive(G, F), exclusive(F)}) == 2
    assert len({F, FunctionCount(7, "f", 3, 2), G}) == 2


def test_nothing_can_be_changed() -> None:
    """Neither rows nor counts; and the list that rows were given in is not theirs."""
    given_rows = [F]
    counts = FunctionCounts(given_rows, inclusive=False)  # type: ignore[arg-type]
    given_rows.append(G)
    assert tuple(counts) == (F,)
    with pytest.raises(FrozenInstanceError):
        counts.inclusive = True  # type: ignore[misc]
    with pytest.raises(AttributeError):
        F.count = 1


@given(SAME_KIND)
def test_operations_leave_their_operands(three: Three) -> None:
    """A sum is another value."""
    a, b, _ = three
    before = tuple(a), tuple(b)
    assert a + b is not a
    _ = a - b, a * 2, a.denoise(), a.transform(standardize), a.filter(bool)
    assert (tuple(a), tuple(b)) == before


def test_inclusive_and_exclusive_are_never_mixed() -> None:
    """Their sum would mean nothing."""
    one, other = exclusive(F), FunctionCounts((F,), inclusive=True)
    with pytest.raises(ValueError, match="inclusive and exclusive counts cannot be mixed"):
        one + other
    with pytest.raises(ValueError, match="inclusive and exclusive counts cannot be mixed"):
        other - one
    assert one != other


@pytest.mark.parametrize("other", [1, 0.5, None, "f", F, (F,)])
def test_other_things_are_no_counts(other: object) -> None:
    """What is no FunctionCounts cannot be added; nor is it equal."""
    counts = exclusive(F)
    with pytest.raises(TypeError):
        counts + other  # type: ignore[operator]
    with pytest.raises(TypeError):
        counts - other  # type: ignore[operator]
    assert counts != other


@pytest.mark.parametrize("factor", ["2", None, 1j])
def test_only_numbers_are_factors(factor: object) -> None:
    """Others are refused."""
    with pytest.raises(TypeError):
        exclusive(F) * factor  # type: ignore[operator]


def test_a_factor_that_is_no_whole_number() -> None:
    """Counts stay integers: they are cut, and what comes to nothing goes."""
    half = exclusive(F, FunctionCount(-3, "h"), FunctionCount(1, "one")) * 0.5
    assert [(*row, row.calls, row.denoised) for row in half] == [(3, "f", 1, 1), (-1, "h", 0, -1)]


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (FunctionCount(999, "obmalloc.c:PyObject_Malloc", 9, 2 * MALLOC), (2 * MALLOC, 9)),
        (FunctionCount(-999, "obmalloc.c:PyObject_Malloc", -9, -MALLOC), (-MALLOC, -9)),
        # worth nothing: gone
        (FunctionCount(999, "obmalloc.c:PyObject_Malloc", 9), None),
        (FunctionCount(999, "multiarch.S:__memcpy_avx_unaligned_erms"), None),
        # no noise: as it is
        (FunctionCount(999, "ceval.c:_PyEval_EvalFrameDefault", 9), (999, 9)),
    ],
)
def test_denoised_rows(
    row: FunctionCount, expected: tuple[int, int] | None, inclusive: bool
) -> None:
    """A row has what is worth counting of it, whatever it cost this time."""
    found = [(each.count, each.calls) for each in FunctionCounts((row,), inclusive).denoise()]
    assert found == ([] if expected is None else [expected])


def test_a_worth_alone_is_a_difference() -> None:
    """The same count in more calls: the row is kept, since denoise prices the calls."""
    more = FunctionCount(100, "obmalloc.c:PyObject_Malloc", 3, 3 * MALLOC)
    less = FunctionCount(100, "obmalloc.c:PyObject_Malloc", 2, 2 * MALLOC)
    delta = exclusive(more) - exclusive(less)
    assert [(*row, row.calls) for row in delta] == [(0, "obmalloc.c:PyObject_Malloc", 1)]
    assert delta.denoise().sum() == MALLOC


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (exclusive(), "FunctionCounts: 0 functions, exclusive\nTotal: 0"),
        (exclusive(F), "FunctionCounts: 1 function, exclusive\n  7  f\nTotal: 7"),
        (
            exclusive(FunctionCount(1234, "f"), FunctionCount(-5, "g")),
            "FunctionCounts: 2 functions, exclusive\n  1234  f\n    -5  g\nTotal: 1229",
        ),
        (FunctionCounts((F,), inclusive=True), "FunctionCounts: 1 function, inclusive\n  7  f"),
    ],
)
def test_repr(counts: FunctionCounts, expected: str) -> None:
    """Counts in a column, names beside them, the total below; inclusive counts have none."""
    assert repr(counts) == expected


def test_repr_shows_head_and_tail() -> None:
    """Of many rows the nine largest and the nine smallest; a slice shows all of its own."""
    shown = repr(many(100)).splitlines()
    assert len(shown) == 1 + 9 + 1 + 9 + 1
    assert shown[9].endswith("file_8.c:function")
    assert shown[10].strip() == "..."
    assert shown[11].endswith("file_91.c:function")
    assert shown[-1] == f"Total: {many(100).sum()}"
    assert len(repr(many(18)).splitlines()) == 1 + 18 + 1
    assert len(repr(many(100)[:30]).splitlines()) == 1 + 30 + 1


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_repr_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is too long loses its middle; both ends say the most."""
    monkeypatch.setenv("COLUMNS", str(columns))
    counts = many(30, "start_{}" + "x" * 300 + "_end")
    lines = repr(counts).splitlines()
    assert max(map(len, lines)) == columns
    assert lines[1].split() == [
        "1000",
        lines[1].split()[1],
        "...",
        lines[1].split()[3],
    ]
    assert lines[1].split()[1].startswith("start_0")
    assert lines[1].endswith("_end")


def test_repr_keeps_names_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As wide as the terminal is not too wide; one more is."""
    monkeypatch.setenv("COLUMNS", "60")
    space = 60 - len("  1000  ")
    assert "..." not in repr(many(1, "x" * space))
    assert "..." in repr(many(1, "x" * (space + 1)))


def test_transform_gives_names() -> None:
    """A function that forgets its return is found where it is used."""
    counts = FunctionCounts((FunctionCount(2, "a.c:f"),), False)
    with pytest.raises(TypeError, match="the new name is a str, not NoneType"):
        counts.transform(lambda name: None)  # type: ignore[arg-type, return-value]
