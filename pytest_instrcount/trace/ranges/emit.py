"""Ranges handed on to the profilers of NVIDIA and Intel, instead of being recorded."""

from __future__ import annotations

import importlib
import threading
from time import perf_counter_ns
from typing import Any, ClassVar, TypeAlias

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.ranges.event import ThreadEvents
from pytest_instrcount.trace.ranges.place import Place
from pytest_instrcount.trace.ranges.session import Session
from pytest_instrcount.trace.timeline import printable


class NvtxEmitter:
    """The package nvtx: ranges for Nsight Systems and nvprof."""

    def __init__(self, nvtx: Any) -> None:
        self._nvtx = nvtx

    def push(self, text: str) -> None:
        self._nvtx.push_range(text)

    def pop(self) -> None:
        self._nvtx.pop_range()

    def begin(self, text: str) -> object:
        return self._nvtx.start_range(text)

    def end(self, token: object) -> None:
        self._nvtx.end_range(token)

    def mark(self, text: str) -> None:
        self._nvtx.mark(text)


class IttEmitter:
    """The package ittapi: tasks for VTune; a mark is a task that ends at once."""

    def __init__(self, ittapi: Any) -> None:
        self._itt = ittapi
        self._domain = ittapi.domain("pytest-instrcount")

    def push(self, text: str) -> None:
        self._itt.task_begin(self._domain, self._itt.string_handle(text))

    def pop(self) -> None:
        self._itt.task_end(self._domain)

    def begin(self, text: str) -> object:
        token = self._itt.id(self._domain)
        self._itt.task_begin_overlapped(self._domain, self._itt.string_handle(text), token)
        return token

    def end(self, token: object) -> None:
        self._itt.task_end_overlapped(self._domain, token)

    def mark(self, text: str) -> None:
        self.push(text)
        self.pop()


#: A profiler's own ranges: some nest, per thread, others begin and end anywhere.
Emitter: TypeAlias = NvtxEmitter | IttEmitter


class _Pushed(threading.local):
    """Ranges that this thread has pushed and not yet popped."""

    def __init__(self) -> None:
        self.places: list[Place] = []


class EmittingSession(Session):
    """A session that hands its ranges on; there are no events.

    Where ranges overlap on a thread, or one ends on another thread, what was pushed is popped as
    soon as it is the last one of its thread: a profiler would else end the wrong range.
    """

    def __init__(self, emitter: Emitter, *, record_shapes: bool = False) -> None:
        super().__init__(record_shapes=record_shapes)
        self._emitter = emitter
        self._pushed = _Pushed()
        self._tokens: dict[Place, object] = {}

    def open(
        self,
        name: str,
        before: Place,
        scope: int,
        args: object = None,
        values: tuple[object, ...] = (),
        *,
        is_async: bool = False,
    ) -> Place:
        """Begin a range within ``before``."""
        opened = Place(self, before.stream, name, before, scope)
        self._note(opened, args, values)
        text = emitted_text(name, opened.shapes)
        if is_async:
            self._tokens[opened] = self._emitter.begin(text)
        else:
            self._pushed.places.append(opened)
            self._emitter.push(text)
        return opened

    def close(self, place: Place, failed: bool) -> None:
        """End a range; also after the session's end, since a profiler has seen its begin."""
        place.open = False
        place.end_ns = perf_counter_ns()
        if place in self._tokens:
            self._emitter.end(self._tokens.pop(place))
        places = self._pushed.places
        while places and not places[-1].open:
            places.pop()
            self._emitter.pop()

    def mark(self, name: str) -> None:
        """Hand on a point in time."""
        self._emitter.mark(printable(name))

    def _take(self) -> tuple[ThreadEvents, ...]:
        return ()


def emitted_text(name: str, shapes: tuple[tuple[int, ...], ...]) -> str:
    """The label in a profiler: the name, and the shapes of the arguments if there are any.

    No number of its own for each range: the packages keep every text that they have seen.

    >>> emitted_text("load", ((2, 3), ()))
    'load, sizes = [[2, 3], []]'
    """
    if not shapes:
        return printable(name)
    return printable(f"{name}, sizes = {[list(shape) for shape in shapes]}")


class _Emit:
    """The common part: a with-block in which ranges are handed on."""

    _package: ClassVar[str]
    _emitter: ClassVar[type[Emitter]]

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self._session: EmittingSession | None = None

    def __enter__(self) -> _Emit:
        if not self.enabled:
            return self
        if self._session is not None:
            raise InstrcountError(
                "emit-reentrant",
                f"this {type(self).__name__} is on already",
                "leave its with-block first",
            )
        try:
            package = importlib.import_module(self._package)
        except ImportError as error:
            raise InstrcountError(
                "emit-package",
                f"{type(self).__name__} needs the package {self._package}: {error}",
                f"pip install {self._package}",
            ) from error
        session = EmittingSession(self._emitter(package), record_shapes=self.record_shapes)
        session.begin()
        self._session = session
        return self

    def __exit__(self, *error: object) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.stop()


class emit_nvtx(_Emit):
    """Show ranges and marks in Nsight Systems or nvprof: each becomes one of NVTX.

    ``record_shapes`` adds the shapes of arguments to the text. Needs the package nvtx, unless
    ``enabled=False``. Raises InstrcountError: slug "emit-package" without that package,
    "emit-reentrant" if entered twice at once, "session-on" if ranges are recorded here already.

    >>> with emit_nvtx(enabled=False):
    ...     pass
    """

    _package = "nvtx"
    _emitter = NvtxEmitter


class emit_itt(_Emit):
    """Show ranges and marks in Intel VTune: each becomes a task of ITT.

    ``record_shapes`` adds the shapes of arguments to the text. Needs the package ittapi, unless
    ``enabled=False``. Raises InstrcountError as `emit_nvtx` does.

    >>> with emit_itt(enabled=False):
    ...     pass
    """

    _package = "ittapi"
    _emitter = IttEmitter
