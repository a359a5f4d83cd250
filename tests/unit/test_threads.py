"""Threads that are alive are named, with what they run and where that is written."""

from __future__ import annotations

import _thread
import functools
import threading
from collections.abc import Callable

import pytest

from pytest_instrcount.callgrind.threads import describe_threads

HERE = __name__


def wait_for(end: threading.Event) -> None:
    end.wait()


class Poller(threading.Thread):
    """A thread with a class of its own."""

    def __init__(self, end: threading.Event) -> None:
        super().__init__(name="poller")
        self.end = end

    def run(self) -> None:
        self.end.wait()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda end: threading.Thread(target=wait_for, args=(end,), name="of tests"),
            f"of tests, which runs {HERE}.wait_for in test_threads.py",
        ),
        (
            lambda end: threading.Thread(target=functools.partial(wait_for, end), name="partial"),
            f"partial, which runs {HERE}.wait_for in test_threads.py",
        ),
        (Poller, f"poller, which runs {HERE}.Poller in test_threads.py"),
    ],
)
def test_of_python(make: Callable[[threading.Event], threading.Thread], text: str) -> None:
    """By its target, or by its class."""
    end = threading.Event()
    before = describe_threads()
    thread = make(end)
    thread.start()
    try:
        assert [each for each in describe_threads() if each not in before] == [text]
    finally:
        end.set()
        thread.join()


def test_of_nobody_that_python_knows() -> None:
    """By the name that the system has of it."""
    end = threading.Event()
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        end.wait()

    _thread.start_new_thread(wait, ())
    begun.wait()
    try:
        assert [each for each in describe_threads() if each.endswith(", of a C library")]
    finally:
        end.set()
