"""Streams -> rows: any stream whatever, and what each kind of damage comes to."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from types import CodeType

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_instrcount.trace.assemble import replay
from pytest_instrcount.trace.columns import Columns, Flag, RecognizedObject
from pytest_instrcount.trace.fold import Folder
from pytest_instrcount.trace.keys import BOOTSTRAPS
from pytest_instrcount.trace.stream import (
    CLOSE,
    LEAVE,
    RESUME,
    START_FRAME,
    THROW,
    UNWIND,
    VOID,
    YIELD,
    CFunction,
    Recording,
    Stream,
    Switch,
)
from pytest_instrcount.trace.tree import Tree
from tests.invariants import broken_invariants
from tests.unit.tracing import core  # noqa: F401 (each test with both)


def code_named(name: str) -> CodeType:
    space: dict[str, Callable[[], None]] = {}
    exec(f"def {name}(): pass", space)
    return space[name].__code__


F, G, H = map(code_named, "fgh")
C, D = CFunction("m", "c"), CFunction("m", "d")
FUNCTIONS: list[object] = [F, G, H, C, D]
ENTER: list[tuple[object, ...]] = [(), (RESUME,), (THROW,), (CLOSE,), (START_FRAME,)]


def columns_of(*objs: object, backend: str = "monitoring") -> Columns:
    columns = replay(Recording(backend, False, (Stream(1, "main", list(objs)),)))
    assert broken_invariants(columns) == ()
    return columns


def rows(columns: Columns) -> list[tuple[str, int, Flag]]:
    """(name, parent, flags) of each row."""
    return [
        (columns.keys[key].qualname, parent, Flag(flags))
        for key, parent, flags in zip(columns.key, columns.parent, columns.flags)
    ]


def test_nothing_comes_to_nothing() -> None:
    """No stream, an empty one."""
    assert len(replay(Recording("monitoring", False, ()))) == 0
    columns = columns_of()
    assert len(columns) == 0
    assert [thread.name for thread in columns.threads] == ["main"]


def test_a_missed_exit_is_closed_with_its_caller() -> None:
    """What is above a frame that is left was left, too."""
    columns = columns_of(F, G, H, LEAVE, F)
    unfinished = Flag.UNFINISHED
    assert rows(columns) == [("f", -1, Flag(0)), ("g", 0, unfinished), ("h", 1, unfinished)]
    assert columns.stats.unfinished == 2


def test_of_the_start_of_a_thread_run_alone_is_shown() -> None:
    """CPython 3.14 has it called by the thread's context."""
    run, context = code_named("run"), CFunction("_contextvars", "Context.run")
    (inner,) = (each for each in BOOTSTRAPS if each.co_name == "_bootstrap_inner")
    inside = (F, LEAVE, F, run, G, LEAVE, G, LEAVE, run)
    shown = [("run", -1, Flag(0)), ("g", 0, Flag(0))]
    assert rows(columns_of(inner, *inside, LEAVE, inner)) == shown
    columns = columns_of(inner, C, LEAVE, C, context, *inside, LEAVE, context, LEAVE, inner)
    assert rows(columns) == shown


def test_an_exit_of_nothing_is_counted_and_ignored() -> None:
    """Also with frames open."""
    columns = columns_of(LEAVE, G, F, LEAVE, G, LEAVE, F)
    assert rows(columns) == [("f", -1, Flag(0))]
    assert columns.stats.unmatched_exits == 2


def test_the_exit_of_a_builtin_closes_no_python_frame() -> None:
    """The same builtin may be open further down."""
    columns = columns_of(C, F, LEAVE, C, G, LEAVE, G, LEAVE, F, LEAVE, C)
    assert rows(columns) == [("c", -1, Flag(0)), ("f", 0, Flag(0)), ("g", 1, Flag(0))]
    assert columns.stats.unmatched_exits == 1


def test_an_unpaired_exit_of_a_builtin_is_a_call_of_it() -> None:
    """As sys.setprofile reports a bound method around one; python/cpython#122029."""
    columns = columns_of(F, LEAVE, C, LEAVE, F, backend="setprofile")
    assert rows(columns) == [("f", -1, Flag(0)), ("c", 0, Flag(0))]
    assert columns.stats.unmatched_exits == 1


def test_what_is_open_at_the_end() -> None:
    """It ends with the trace; start frames are not counted among it."""
    columns = columns_of(START_FRAME, F, G, LEAVE, G, H)
    assert rows(columns) == [
        ("f", -1, Flag.START_FRAME | Flag.OPEN),
        ("g", 0, Flag(0)),
        ("h", 0, Flag.OPEN),
    ]
    assert columns.stats.open_at_stop == 1
    assert Tree(columns).calls() == 2


def test_a_call_that_was_none_is_dropped() -> None:
    """As up to 3.11 deleting a generator that never ran looks."""
    columns = columns_of(F, G, VOID, G, H, LEAVE, H, LEAVE, F)
    assert rows(columns) == [("f", -1, Flag(0)), ("h", 0, Flag(0))]


def test_a_switch_within_what_is_dropped() -> None:
    """Rows of another greenlet may have begun there: it stays, and is no error."""
    columns = columns_of(F, Switch(1), VOID, F, Switch(0), VOID, F)
    assert rows(columns) == [("f", -1, Flag(0))]


def test_times_strictly_increase() -> None:
    """A clock may say the same twice, or go back."""
    stream = Stream(1, "main", [F, G, G, F], array("q", [5, 5, -5, -4]))
    columns = replay(Recording("monitoring", True, (stream,)))
    assert list(columns.start) == [5, 6]
    assert list(columns.end) == [8, 7]


def test_rows_of_all_threads_are_in_start_order() -> None:
    """The index of a row is its id; callers keep theirs."""
    one = Stream(1, "same", [F, G, G, F], array("q", [10, 30, -40, -50]))
    two = Stream(2, "same", [H, G, G, H], array("q", [20, 25, -45, -46]))
    columns = replay(Recording("monitoring", True, (one, two)))
    assert broken_invariants(columns) == ()
    assert [(name, parent) for name, parent, _ in rows(columns)] == [
        ("f", -1),
        ("h", -1),
        ("g", 1),
        ("g", 0),
    ]
    assert list(columns.thread) == [0, 1, 1, 0]
    assert [thread.number for thread in columns.threads] == [0, 1]


def test_recognised_objects_belong_to_the_next_enter() -> None:
    """And to no other."""
    seen = RecognizedObject("Linear", 0)
    columns = columns_of(F, seen, G, LEAVE, G, H, LEAVE, H, LEAVE, F)
    assert columns.objects == {1: seen}


marked_enter = st.tuples(st.sampled_from(ENTER), st.sampled_from(FUNCTIONS)).map(
    lambda each: (*each[0], each[1])
)
marked_exit = st.tuples(
    st.sampled_from([LEAVE, YIELD, UNWIND, VOID]), st.sampled_from(FUNCTIONS)
).map(lambda each: (each[0], each[1]))
anything = st.sampled_from(
    [
        *(*FUNCTIONS, LEAVE, YIELD, UNWIND, VOID, RESUME, START_FRAME),
        *(Switch(0), Switch(1), Switch(2), 1, 2, RecognizedObject("A", 0), None, "?"),
    ]
).map(lambda each: (each,))
records = st.lists(st.one_of(marked_enter, marked_exit, anything), max_size=60).map(
    lambda lists: [each for objs in lists for each in objs]
)


@settings(max_examples=150)
@given(st.lists(records, max_size=3), st.booleans(), st.sampled_from(["monitoring", "setprofile"]))
def test_no_stream_makes_it_raise(parts: list[list[object]], clock: bool, backend: str) -> None:
    """Balanced or not, cut anywhere: the invariants hold; only a backend starts with start frames."""
    streams = []
    for number, objs in enumerate(parts):
        objs = [each for each in objs if each is not START_FRAME]
        times = array("q", [(-1) ** place * place for place in range(len(objs) // 2)])
        streams.append(Stream(number, "t", objs, times))
    columns = replay(Recording(backend, clock, tuple(streams)))
    assert broken_invariants(columns) == ()
    tree = Tree(columns)
    assert tree.diff(tree) == []
    assert sum(tree.call_counts().values()) == tree.calls()
    assert sum(node.calls for node in tree.contexts.nodes) == tree.calls()
    tree.to_text()


calls = st.recursive(
    st.sampled_from(FUNCTIONS).map(lambda each: [each, LEAVE, each]),
    lambda inner: st.tuples(st.sampled_from(FUNCTIONS), st.lists(inner, max_size=4)).map(
        lambda each: [each[0], *(obj for objs in each[1] for obj in objs), LEAVE, each[0]]
    ),
    max_leaves=30,
)


@given(st.lists(calls, max_size=4), st.lists(st.integers(0, 200), max_size=4))
def test_folding_anywhere_changes_no_count(trees: list[list[object]], cuts: list[int]) -> None:
    """A stream that is folded in pieces counts what it counts as a whole."""
    objs = [each for objs in trees for each in objs]
    whole = columns_of(*objs)
    assert whole.stats.unmatched_exits == whole.stats.unfinished == whole.stats.open_at_stop == 0
    stream = Stream(1, "main")
    folder = Folder(clock=False)
    # a mark and what it marks are written by one callback: no cut between them
    places = [each for each in sorted(cuts) if each < len(objs) and objs[each - 1] is not LEAVE]
    for first, last in zip([0, *places], [*places, len(objs)]):
        stream.objs = objs[first:last]
        folder.fold(stream)
    stream.objs = []
    columns = replay(Recording("monitoring", False, (stream,)), folder)
    assert columns.stats.truncated
    assert broken_invariants(columns) == ()
    assert Tree(columns).call_counts() == Tree(whole).call_counts()
    assert Tree(columns).to_text() == Tree(whole).to_text()
