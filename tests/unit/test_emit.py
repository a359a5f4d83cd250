"""Ranges handed on: to packages that are there, to stand-ins, and to none."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.emit import emit_itt, emit_nvtx
from pytest_instrcount.trace.ranges.place import PLACE, still_on
from pytest_instrcount.trace.ranges.ranges import record_function
from pytest_instrcount.trace.ranges.session import mark, start, stop
from tests.ranges import recorded

BOTH = pytest.mark.parametrize("emit", [emit_nvtx, emit_itt])


@pytest.fixture
def nvtx(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A package nvtx that writes down what it is told, of which thread."""
    calls: list[str] = []
    main = threading.get_ident()

    def note(text: str) -> None:
        calls.append(text if threading.get_ident() == main else f"{text} (thread)")

    def begin(text: str) -> str:
        note(f"start {text}")
        return text

    package = SimpleNamespace(
        push_range=lambda text: note(f"push {text}"),
        pop_range=lambda: note("pop"),
        start_range=begin,
        end_range=lambda token: note(f"end {token}"),
        mark=lambda text: note(f"mark {text}"),
    )
    monkeypatch.setitem(sys.modules, "nvtx", package)
    return calls


@pytest.fixture
def ittapi(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Likewise a package ittapi."""
    calls: list[str] = []
    package = SimpleNamespace(
        domain=lambda name: name,
        string_handle=lambda text: f"<{text}>",
        id=lambda domain: "id",
        task_begin=lambda domain, text: calls.append(f"begin {text}"),
        task_end=lambda domain: calls.append("end"),
        task_begin_overlapped=lambda domain, text, token: calls.append(f"overlap {text} {token}"),
        task_end_overlapped=lambda domain, token: calls.append(f"end {token}"),
    )
    monkeypatch.setitem(sys.modules, "ittapi", package)
    return calls


@record_function("gen")
def gen() -> Any:
    yield 1


def without_session_marks(calls: list[str]) -> list[str]:
    return [call for call in calls if "__st" not in call]


def test_nvtx(nvtx: list[str]) -> None:
    """Ranges that nest are pushed and popped, others begin and end, marks are marks."""
    with emit_nvtx(), record_function("outer"):
        mark("here")
        list(gen())
    assert nvtx == [
        "mark __start_profile",
        "push outer", "mark here", "start gen", "end gen", "pop",
        "mark __stop_profile",
    ]  # fmt: skip
    assert still_on(PLACE.get()) is None


def test_itt(ittapi: list[str]) -> None:
    """Likewise; a mark is a task that ends at once."""
    with emit_itt(), record_function("outer"):
        mark("here")
        list(gen())
    assert ittapi[2:-2] == [
        "begin <outer>", "begin <here>", "end", "overlap <gen> id", "end id", "end",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("on", "text"), [(True, "push load, sizes = [[1], []]"), (False, "push load")]
)
def test_shapes(nvtx: list[str], on: bool, text: str) -> None:
    """They are in the text if asked for."""
    with emit_nvtx(record_shapes=on), record_function("load", (memoryview(b"a"), "b")):
        pass
    assert without_session_marks(nvtx) == [text, "pop"]


def test_names_are_made_printable(nvtx: list[str]) -> None:
    """The packages end a text at a zero, and refuse lone surrogates."""
    with emit_nvtx(), record_function("a\0\ud800"):
        pass
    assert without_session_marks(nvtx)[0] == r"push a\x00\ud800"


def test_what_ends_out_of_order_is_popped_later(nvtx: list[str]) -> None:
    """A pop ends the last range of its thread: never another one than was meant."""
    future: Future[int] = Future()
    with emit_nvtx():
        first = record_function("first").__enter__()
        second = record_function("second").__enter__()
        first.__exit__(None, None, None)
        assert without_session_marks(nvtx) == ["push first", "push second"]
        second.__exit__(None, None, None)
        with record_function("call") as call:
            call.end_on(future)
        thread = threading.Thread(target=future.set_result, args=(1,))
        thread.start()
        thread.join()
        with record_function("next"):
            pass
    assert without_session_marks(nvtx) == [
        "push first", "push second", "pop", "pop", "push call", "push next", "pop", "pop",
    ]  # fmt: skip


def test_threads_take_part(nvtx: list[str]) -> None:
    """They push and pop for themselves."""

    def work() -> None:
        with record_function("work"):
            pass

    with emit_nvtx():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert without_session_marks(nvtx) == ["push work (thread)", "pop (thread)"]


@BOTH
def test_a_missing_package_is_named(emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it; nothing is on then."""
    package = "nvtx" if emit is emit_nvtx else "ittapi"
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InstrcountError) as caught, emit():
        pass
    assert (caught.value.slug, caught.value.fix) == ("emit-package", f"pip install {package}")
    start()
    stop()


@BOTH
def test_disabled(emit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no package, and a session around it goes on."""
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setitem(sys.modules, "ittapi", None)
    with recorded() as found, emit(enabled=False) as one, one, record_function("a"):
        pass
    assert found.story == ["+a", "-a"]


def test_not_reentrant(nvtx: list[str]) -> None:
    """Neither the same one, nor another one, nor one within a session; again afterwards."""
    one = emit_nvtx()
    with one:
        with pytest.raises(InstrcountError) as caught, one:
            pass
        assert caught.value.slug == "emit-reentrant"
        with pytest.raises(InstrcountError) as caught, emit_nvtx():
            pass
        assert caught.value.slug == "session-on"
        with pytest.raises(InstrcountError):
            start()
    with one, record_function("again"):
        pass
    assert "push again" in nvtx
    with recorded(), pytest.raises(InstrcountError, match="session-on"), emit_nvtx():
        pass


@pytest.mark.parametrize(("emit", "package"), [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_the_real_package(emit: Any, package: str) -> None:
    """Where it is installed it takes all that we give it."""
    pytest.importorskip(package)
    with emit(record_shapes=True), record_function("outer\0", (memoryview(b"a"),)):
        mark("here")
        list(gen())
