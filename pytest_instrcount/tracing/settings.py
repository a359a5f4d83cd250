"""What the user wants traced: the marker, the options and the ini, read here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import Limit, parse_limit
from pytest_instrcount.options import BACKENDS, INI_ERRORS
from pytest_instrcount.trace.recognize import Recognizer, recognize_class

TRACE_MARKER = "trace_profile"
PHASES = ("setup", "call", "teardown")
TRACERS = ("python", "legacy")

#: Call counts of warm code are exact, so no growth is allowed unless the user says so.
_EXACT = Limit(Fraction(0), None)
_MEMORY = Limit(Fraction(1, 100), None)


@dataclass(frozen=True, slots=True)
class TraceWish:
    """What is to be traced of one test, and what its gate allows."""

    #: "python" records calls, "legacy" the ranges of ``record_function``
    tracer: Literal["python", "legacy"] = "python"
    #: builtin functions, too
    c_calls: bool = False
    #: phases that are traced under the marker
    phases: tuple[str, ...] = ("call",)
    #: growth of all calls that is allowed
    max_delta: Limit = _EXACT
    #: pattern of ``module:qualname`` -> most calls
    max_calls: Mapping[str, int] = field(default_factory=dict)
    #: growth of the memory that ranges hold, where it is recorded
    max_memory_delta: Limit | None = None
    #: whether the test has the marker: then its body is traced, else what the fixture is used for
    marked: bool = False
    #: "auto", "monitoring" or "setprofile"
    backend: Literal["auto", "monitoring", "setprofile"] = "auto"
    #: where a trace of each test is written, if anywhere
    folder: Path | None = None

    @property
    def backend_name(self) -> str:
        """The backend, by its own name."""
        if self.backend != "auto":
            return self.backend
        return "monitoring" if sys.version_info >= (3, 12) else "setprofile"


def load_trace_settings(config: pytest.Config) -> TraceWish:
    """What holds for all tests. Raises pytest.UsageError for a value that is none."""
    backend = config.getoption("instrcount_trace_backend") or config.getini(
        "instrcount_trace_backend"
    )
    if backend and backend not in BACKENDS:
        raise pytest.UsageError(
            f"instrcount: wrong settings [settings]\ninstrcount_trace_backend = {backend!r}: "
            f"choose one of {', '.join(BACKENDS)}"
        )
    folder = config.getoption("trace_profile")
    if folder == "":
        raise pytest.UsageError(
            "instrcount: --trace-profile names no folder [settings]\n"
            "  fix: pytest --trace-profile=DIR"
        )
    return TraceWish(
        backend=backend or "auto",
        folder=None if folder is None else config.invocation_params.dir / folder,
    )


def load_recognizers(config: pytest.Config) -> tuple[Recognizer, ...]:
    """What the ini names and the hook gives; imports the modules of the classes that are named.

    Raises pytest.UsageError with all names that are none.
    """
    found: list[Recognizer] = []
    mistakes: list[str] = []
    try:
        names = config.getini("instrcount_recognizers")
    except INI_ERRORS as error:
        names = []
        mistakes.append(
            f"instrcount_recognizers: {error}\n  fix: instrcount_recognizers = package.module.Class"
        )
    for name in names:
        try:
            found += recognize_class(name)
        except InstrcountError as error:
            mistakes.append(f"instrcount_recognizers: {error.why}\n  fix: {error.fix}")
    for given in config.hook.pytest_instrcount_recognizers(config=config):
        for each in given if isinstance(given, (tuple, list)) else (given,):
            if isinstance(each, Recognizer):
                found.append(each)
            else:
                mistakes.append(
                    f"pytest_instrcount_recognizers gave {each!r}, which is no Recognizer\n"
                    '  fix: return recognize_class("package.module.Class")'
                )
    if mistakes:
        lines = ["instrcount: wrong classes to recognise [trace-recognizer]", *mistakes]
        raise pytest.UsageError("\n".join(lines))
    return tuple(found)


def trace_wish_of(item: pytest.Item, base: TraceWish) -> tuple[TraceWish, list[str]]:
    """What is wanted of one test, and what is wrong with its markers.

    A marker on the function wins over one on the class or the module, argument by argument.
    """
    mistakes: list[str] = []
    chosen: dict[str, Any] = {}
    for mark in item.iter_markers(TRACE_MARKER):
        if mark.args:
            mistakes.append("takes keyword arguments only, like c_calls=True")
        for name, given in mark.kwargs.items():
            check = _ARGUMENTS.get(name)
            if check is None:
                known = ", ".join(_ARGUMENTS)
                mistakes.append(f"has no argument {name!r} (it has {known})")
                continue
            if given is None:
                continue
            try:
                chosen.setdefault(name, check(given))
            except (ValueError, InstrcountError) as error:
                mistakes.append(f"{name}={given!r}: {getattr(error, 'why', error)}")
    if chosen.get("max_memory_delta") is not None and chosen.get("tracer") != "legacy":
        mistakes.append("max_memory_delta needs tracer='legacy', which records memory")
    marked = item.get_closest_marker(TRACE_MARKER) is not None
    values = {name: getattr(base, name) for name in TraceWish.__slots__}
    return TraceWish(**(values | chosen | {"marked": marked})), mistakes


def _tracer(given: object) -> str:
    if given not in TRACERS:
        raise ValueError(f"choose one of {', '.join(TRACERS)}")
    return str(given)


def _bool(given: object) -> bool:
    if not isinstance(given, bool):
        raise ValueError("write True or False")
    return given


def _phases(given: object) -> tuple[str, ...]:
    phases = (given,) if isinstance(given, str) else given
    if not isinstance(phases, (tuple, list)) or not set(phases) <= set(PHASES) or not phases:
        raise ValueError(f"write some of {', '.join(PHASES)}")
    return tuple(phase for phase in PHASES if phase in phases)


def _max_calls(given: object) -> dict[str, int]:
    if not isinstance(given, Mapping):
        raise ValueError('write {"module:function": 3}')
    for name, most in given.items():
        if not isinstance(name, str) or type(most) is not int or most < 0:
            raise ValueError('write {"module:function": 3}')
    return dict(given)


_ARGUMENTS: Mapping[str, Any] = {
    "tracer": _tracer,
    "c_calls": _bool,
    "phases": _phases,
    "max_delta": parse_limit,
    "max_calls": _max_calls,
    "max_memory_delta": parse_limit,
}
