"""Objects whose classes make something else of being looked at: none is asked, and none ends a run."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import pytest

from pytest_instrcount.callgrind.channel import framed
from pytest_instrcount.callgrind.inside.reports import restored, shortened
from pytest_instrcount.fixtures.first_call import FirstCall
from pytest_instrcount.fixtures.instrcount import InstrCount
from pytest_instrcount.fixtures.unconsumed import refuse_unconsumed
from pytest_instrcount.trace.recognize import Recognizer
from tests.unit.tracing import core, each_backend, trace  # noqa: F401 (each test with both)


def refuse(*_: Any) -> Any:
    raise RuntimeError("asked")


class WithoutHash(type):
    __eq__ = refuse
    __hash__ = None  # type: ignore[assignment]


class Closed(type):
    __getattribute__ = refuse


class Asking(type):
    __getattr__ = refuse


class Giving(type):
    def __getattr__(cls, name: str) -> Any:
        return lambda *_: 1


class Strict(type):
    __instancecheck__ = __subclasscheck__ = refuse


Renamed = type(
    "Renamed",
    (type,),
    dict.fromkeys(("__flags__", "__mro__", "__name__", "__dict__", "__module__"), property(refuse)),
)


class ClosedObject:
    __getattribute__ = refuse
    __repr__ = refuse


class AskingObject:
    __getattr__ = refuse


class GivingObject:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: 1


class Unbound:
    """As proxies are, outside of what they stand for."""

    __class__ = property(refuse)


class List(list[Any]):
    __iter__ = __len__ = __bool__ = __eq__ = __repr__ = refuse
    __hash__ = None


class Dict(dict[Any, Any]):
    items = values = __iter__ = __repr__ = refuse


MADE = [
    kind("Made", (base,), {"value": 1})
    for kind in (WithoutHash, Closed, Asking, Giving, Strict, Renamed)
    for base in (object, list, dict)
]
OBJECTS = [
    *(type.__call__(each) for each in MADE),
    *MADE,
    *(ClosedObject(), AskingObject(), GivingObject(), Unbound(), List([1]), Dict(a=1)),
    {ClosedObject(): 1},
]


@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_looked_at(number: int) -> None:
    """As what a function finds, gets, gives, and as what is called."""
    value = OBJECTS[number]

    def give() -> Any:
        return value

    first = FirstCall(give, (value,), {"name": value})
    first.is_made()
    assert first.remarks() == []
    FirstCall(value).is_made()
    assert InstrCount("test_a.py::test_a", None)(give) is value
    refuse_unconsumed(value, give, (), {})
    refuse_unconsumed([value, {1: value}], give, (), {})
    refuse_unconsumed(None, value, (), {})


@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_in_a_report(number: int) -> None:
    """As an element, a key, a value, beside itself: what a channel carries, another process reads."""
    value = OBJECTS[number]
    found: list[Any] = [value, {"name": value, 10**5000: 10**5000}]
    with contextlib.suppress(Exception):  # of one without hash
        found.append({value: 1})
    found += [found, found]
    shortened(found)
    message = json.loads(framed({"kind": "result", "found": found})[4:])
    assert len(message["found"]) == len(found)


def test_what_is_no_value_of_a_report_stays_as_it_is() -> None:
    """Something else may have written it."""
    values: list[Any] = [{"set": [[]]}, {"dict": [1]}, {"bytes": "x"}, {"bytes": 1}, {"eval": []}]
    assert restored(values) == values
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert type(restored(deep)) is list


@each_backend
@pytest.mark.parametrize("how", [{"arguments": True, "returns": True}, {"c_calls": True}])
def test_traced(backend: str, how: dict[str, bool]) -> None:
    """With arguments, with what is in C, and recognised."""

    class Kept(metaclass=WithoutHash):
        def take(self, value: Any) -> Any:
            return value

    def work() -> None:
        for value in OBJECTS:
            Kept().take(value)
            for call in (value, lambda value=value: len(value)):
                with contextlib.suppress(Exception):
                    call()

    tree = trace(work, backend=backend, recognizers=(Recognizer(Kept.take.__code__),), **how)
    taken = [each for each in tree.walk() if each.name.endswith(".take")]
    assert sum(each.calls for each in taken) == len(OBJECTS)


def test_classes_without_hash_are_found() -> None:
    """For the count by Python function, which names methods that dataclass makes; on 3.15 typing has one."""
    code = """
import dataclasses
from pytest_instrcount.callgrind.inside.trampolines import keep_inits_apart, name_made_methods
def refuse(*_): raise RuntimeError("asked")
class WithoutHash(type):
    __eq__ = __getattribute__ = refuse
    __hash__ = None
class A(metaclass=WithoutHash): pass
class B(A): pass
@dataclasses.dataclass
class C: pass
name_made_methods()
keep_inits_apart()
assert C.__init__.__code__.co_qualname == "C.__init__"
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
