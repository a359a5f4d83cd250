"""What only the first call does is said, for none of the counted calls does it."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from pytest_instrcount.fixtures.first_call import FirstCall
from pytest_instrcount.fixtures.instrcount import InstrCount
from tests.unit.test_fixture import NODEID, Recorder

MEMO: dict[int, int] = {}


def generate() -> Iterator[int]:
    yield from range(3)


def fill_memo() -> int:
    return MEMO.setdefault(1, 2)


class Report:
    """Works once; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.lines: list[str] = []
        self.memo: dict[int, str] = {}

    def remember(self) -> str:
        return self.memo.setdefault(1, "one")

    @functools.cached_property
    def value(self) -> int:
        return 1

    def get(self) -> int:
        self.asked += 1
        return self.value

    def fill(self) -> None:
        self.lines[:] = ["a"]


class Fresh:
    """Has no attributes before."""

    @functools.cached_property
    def value(self) -> list[int]:
        return [1]

    def get(self) -> list[int]:
        return self.value


def remarks(target: Callable[..., object], *args: Any, later: int = 3) -> Sequence[str]:
    """What is said after a first call and so many later ones."""
    first = FirstCall(target, args)
    target(*args)
    first.is_made()
    for _ in range(later):
        target(*args)
    return first.remarks()


def empty(data: list[int] | deque[int]) -> None:
    while data:
        data.pop()


def emptying() -> Callable[[], None]:
    data = [1, 2]
    return lambda: empty(data)


@pytest.mark.parametrize(
    ("target", "args", "changed"),
    [
        ([3, 1, 2].sort, (), "list"),
        (functools.partial(list.sort, [3, 1, 2]), (), "argument 1"),
        (emptying(), (), "data"),
        (empty, (deque([1, 2]),), "argument 1"),
        (fill_memo, (), "MEMO"),
        (Report().get, (), "Report.value"),
        (Report.get, (Report(),), "Report.value"),
        (Report.fill, (Report(),), "Report.lines"),
        (Report().remember, (), "Report.memo"),
        (Fresh().get, (), "Fresh.value"),
        ({1}.clear, (), "set"),
        (bytearray(b"ab").clear, (), "bytearray"),
    ],
)
def test_what_only_the_first_call_changes(
    target: Callable[..., object], args: tuple[Any, ...], changed: str
) -> None:
    MEMO.clear()
    assert remarks(target, *args) == [
        f"only the first call changes {changed}: what it does there is not counted"
    ]


def test_what_each_call_changes_or_none_is_not_said() -> None:
    """A log that grows, a counter, what is sorted already; a test that was not repeated."""
    log: list[int] = []
    assert remarks(lambda: log.append(1)) == []
    assert remarks([1, 2, 3].sort) == []
    assert remarks(len, [1]) == []
    assert remarks(Report().get, later=0)  # all that there is was the first call


@pytest.mark.parametrize("argument", [iter([1, 2]), generate(), iter(range(3)), reversed([1])])
def test_an_iterator_that_is_used_up(argument: Iterator[int]) -> None:
    """Is said, where it had more before the call and has none now; one that the function holds, too."""
    (remark,) = remarks(list, argument)
    assert "uses up an iterator" in remark
    assert "rounds=1" in remark
    held = generate()
    assert remarks(lambda: list(held)) == [remark]


def test_nothing_is_said_of_other_iterators() -> None:
    """Of an iterator that was empty before, or is not after."""
    assert remarks(lambda *_: None, iter([]), iter([1]), generate(), [1], object()) == []


def test_a_cache() -> None:
    """A function that answers from its cache counts the look-up; one that has been asked before is as ever."""
    cached = functools.lru_cache(lambda: 1)
    (remark,) = remarks(cached)
    assert remark.startswith("a cache answers")
    assert remarks(cached) == []
    assert remarks(ask) == [remark]


@functools.cache
def answer() -> int:
    return 42


def ask() -> int:
    """What a test does that is counted as a whole."""
    return answer()


class Secret(list[int]):
    """Shows its attributes to nobody."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError


def test_one_that_has_no_attributes_to_show() -> None:
    (remark,) = remarks(list.clear, Secret([1]))
    assert remark.startswith("only the first call changes argument 1:")


class Proxy:
    """Stands for nothing yet: who asks it is told so."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __len__(self) -> int:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    __hash__ = None  # type: ignore[assignment]


def test_no_code_of_the_users_own_is_run() -> None:
    proxy = Proxy()
    assert remarks(lambda *_: proxy, Proxy(), [Proxy()], {1: Proxy()}) == []


def test_the_fixture_tells_who_counts() -> None:
    """Before it counts; what set-up makes for each round is no part of it."""

    class Counts(Recorder):
        def count_call(self, target: Any, args: Any, kwargs: Any) -> None:
            target(*args, **kwargs)
            assert self.first is not None
            said.append(self.first.remarks())

        def count_rounds(self, rounds: Any) -> None:
            args, kwargs = rounds.set_up()
            self.count_call(rounds.target, args, kwargs)

    said: list[list[str]] = []
    InstrCount(NODEID, Counts())([2, 1].sort)
    InstrCount(NODEID, Counts()).pedantic(list.sort, args=([2, 1],))
    InstrCount(NODEID, Counts()).pedantic(list.sort, setup=lambda: (([2, 1],), {}))
    assert [len(each) for each in said] == [1, 1, 0]
