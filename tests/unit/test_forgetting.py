"""A warm-up sees what a test does, and nothing of what ran before."""

from __future__ import annotations

import dis
import fnmatch
import re
import sys
import weakref
from types import CodeType, ModuleType
from typing import Any

import pytest

from pytest_instrcount.callgrind.inside.forgetting import (
    CAN_FORGET,
    empty_tables,
    find_tables,
    forget_adaptation,
    immortalize_names,
    specialized_anew,
)

monitoring: Any = getattr(sys, "monitoring", None)


def measure(thing: str) -> int:
    return len(thing)


def instructions() -> list[str]:
    """As they are at the moment, specialised or not."""
    return [each.opname for each in dis.get_instructions(measure, adaptive=True)]


@pytest.mark.skipif(not CAN_FORGET, reason="3.13 is the first that can forget")
def test_code_that_begins_is_as_compiled() -> None:
    """For the next calls to specialise; nothing is left of the tool that does it."""
    compiled = instructions()
    for _ in range(50):
        measure("abc")
    specialised = instructions()
    assert specialised != compiled
    with specialized_anew():
        pass
    assert instructions() == specialised
    with specialized_anew():
        measure("abc")
    assert instructions() == compiled
    for _ in range(50):
        measure("abc")
    assert instructions() == specialised
    assert monitoring.get_tool(monitoring.OPTIMIZER_ID) is None


@pytest.mark.skipif(not CAN_FORGET, reason="3.13 is the first that can forget")
def test_code_that_another_tool_watches_stays() -> None:
    """Its instructions would not be seen any more, as where a test has them counted."""
    seen: list[int] = []
    events, tool = monitoring.events, monitoring.COVERAGE_ID
    monitoring.use_tool_id(tool, "mine")
    try:
        monitoring.register_callback(
            tool, events.INSTRUCTION, lambda code, offset: seen.append(offset)
        )
        monitoring.set_local_events(tool, measure.__code__, events.INSTRUCTION)
        with specialized_anew():
            measure("abc")
        assert seen
    finally:
        monitoring.set_local_events(tool, measure.__code__, 0)
        monitoring.register_callback(tool, events.INSTRUCTION, None)
        monitoring.free_tool_id(tool)


def test_a_tool_of_the_users_stays() -> None:
    """Where there is one under the same number, or no such thing, code stays as it is."""
    if monitoring is not None:
        monitoring.use_tool_id(monitoring.OPTIMIZER_ID, "mine")
    try:
        for _ in range(50):
            measure("abc")
        before = instructions()
        with specialized_anew():
            measure("abc")
        assert instructions() == before
    finally:
        if monitoring is not None:
            assert monitoring.get_tool(monitoring.OPTIMIZER_ID) == "mine"
            monitoring.free_tool_id(monitoring.OPTIMIZER_ID)


def test_what_others_have_looked_up() -> None:
    """It fills tables that a test looks into; one whose only call is counted fills none anew."""
    patterns: Any = vars(re)["_cache"]
    names: Any = vars(fnmatch)["_compile_pattern"]
    find_tables()
    fnmatch.fnmatch("a name", "an odd pattern")
    empty_tables(once=True)
    assert patterns and names.cache_info().currsize
    empty_tables()
    assert not patterns and not names.cache_info().currsize


@pytest.mark.skipif(sys.version_info < (3, 12), reason="3.12 is the first with immortal objects")
def test_names_of_modules_are_immortal(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they came to be imported: a function that is made refers to that of its module."""

    class Lazy(ModuleType):
        """Loaded where it is looked at."""

        def __getattribute__(self, name: str) -> object:
            raise AssertionError(name)

    for kind, name in (
        (ModuleType, "".join(["not", " a.", "name"])),
        (Lazy, "".join(["la", "zy"])),
    ):
        monkeypatch.setitem(sys.modules, name, kind(name))
    module = sys.modules["not a.name"]
    assert sys.getrefcount(module.__name__) < 100
    immortalize_names()
    assert module.__name__ == "not a.name"
    before = sys.getrefcount(module.__name__)
    held = [module.__name__] * 10
    assert sys.getrefcount(held[0]) == before


def test_code_that_is_looked_up_stays() -> None:
    """Trio has a table of code objects with weak keys: it would not find what it has marked."""

    def marked() -> CodeType:
        return (lambda: 0).__code__

    def plain() -> None:
        pass

    kept, nested, other = marked.__code__, marked(), plain.__code__
    table = weakref.WeakSet([kept])
    functions: Any = [marked, plain]
    forget_adaptation(functions)
    assert marked.__code__ is kept and marked() is nested and marked.__code__ in table
    assert plain.__code__ is not other
