"""The queue of tests: in the order of their numbers, and as quick for thousands as for a few."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.supervisor.runs import FileKey
from pytest_instrcount.callgrind.supervisor.runs import Test as Asked
from pytest_instrcount.callgrind.supervisor.waiting import Waiting


def make_test(index: int, path: str = "test_a.py", isolation: str = "fork") -> Asked:
    order = Order(f"{path}::test", path, isolation, 60.0, None, None, pilot=True, verbose=0)
    return Asked(index, order)


def filled(tests: list[Asked]) -> Waiting:
    waiting = Waiting()
    for test in tests:
        waiting.put(test)
    return waiting


def taken(waiting: Waiting) -> list[int]:
    found = []
    while waiting:
        found.append(waiting.take().index)
    return found


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=30), st.randoms())
def test_tests_come_in_the_order_of_their_numbers(
    kinds: list[tuple[str, bool]], random: object
) -> None:
    """Whatever file they are of, however they are isolated, and in which order they were put."""
    tests = [
        make_test(index, path, "process" if alone else "fork")
        for index, (path, alone) in enumerate(kinds)
    ]
    random.shuffle(tests)  # type: ignore[attr-defined]
    assert taken(filled(tests)) == list(range(len(kinds)))


def test_what_waits_for_the_same_is_withheld_together() -> None:
    """Tests of another file come first then; put back, all are in order again."""
    paths = ["test_a.py", "test_a.py", "test_b.py", "test_a.py", "test_b.py"]
    waiting = filled([make_test(index, path) for index, path in enumerate(paths)])
    withheld = waiting.withhold(waiting.take())
    assert waiting.take().index == 2
    waiting.put_back(withheld)
    assert taken(waiting) == [0, 1, 3, 4]


def test_a_test_that_comes_again_meanwhile_is_not_lost() -> None:
    """A process that dies while its file is withheld gives its test back."""
    waiting = filled([make_test(1), make_test(2)])
    withheld = waiting.withhold(waiting.take())
    waiting.put(make_test(0))
    waiting.put_back(withheld)
    assert taken(waiting) == [0, 1, 2]


def test_a_test_alone_does_not_wait_for_its_file() -> None:
    """It needs no fork of the file's child, and is taken where the others are withheld."""
    waiting = filled([make_test(0), make_test(1, isolation="process")])
    key: FileKey = ("test_a.py", 0)
    assert waiting.wants(key)
    withheld = waiting.withhold(waiting.take())
    assert not waiting.wants(key)
    assert waiting.take().index == 1
    waiting.put_back(withheld)
    assert waiting.wants(key)


def test_all_tests_of_a_file_are_taken() -> None:
    """In order; those of others stay."""
    tests = [
        make_test(3),
        make_test(0),
        make_test(1, "test_b.py"),
        make_test(2, isolation="process"),
    ]
    waiting = filled(tests)
    assert [test.index for test in waiting.take_all(("test_a.py", 0))] == [0, 2, 3]
    assert taken(waiting) == [1]


@pytest.mark.parametrize("files", [1, 100])
def test_one_is_taken_at_the_same_cost_however_many_wait(
    files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing goes through all that wait: 5,000 tests would be gone through 5,000 times."""
    looks = 0

    def file(self: Asked) -> FileKey:
        nonlocal looks
        looks += 1
        return self.path, 0

    def cost(tests: int) -> float:
        nonlocal looks
        waiting = filled([make_test(index, f"{index % files}") for index in range(tests)])
        looks = 0
        for _ in range(100):
            waiting.put_back(waiting.withhold(waiting.take()))
            waiting.wants(("0", 0))
            waiting.take()
        return looks

    monkeypatch.setattr(Asked, "file", property(file))
    assert cost(2000) == cost(200)


def test_a_zygote_is_wanted_by_what_waits_for_its_forks() -> None:
    test = make_test(1)
    test.order = replace(test.order, layout=-3)
    waiting = filled([test, make_test(2, isolation="process")])
    assert [waiting.wants_zygote(number) for number in (-3, -2, 0)] == [True, False, False]
    waiting.take()
    assert not waiting.wants_zygote(-3)
