"""Tests that were renamed or moved: their baselines go with them."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from pytest_instrcount.config.compat import fixture_info
from pytest_instrcount.gate.cause import Cause
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.host.foreign import is_any, names_of, origin_of
from pytest_instrcount.session.selection import Selection

_DIGITS = 16
#: Kinds of parameters whose ``repr`` says all that they are.
_PLAIN = (str, bytes, int, float, complex, bool, type(None))
#: Kinds of collections; the first so many members say what they are, and theirs, and no deeper ones.
_COLLECTIONS, _MOST_MEMBERS, _DEPTH = (list, tuple, dict, set, frozenset), 100, 2
#: What a class does before each test.
_SET_UPS = frozenset(("setUp", "setUpClass", "asyncSetUp", "setup_method", "setup_class"))
#: Kinds of objects that have a module and a name.
_NAMED = (type, FunctionType, BuiltinFunctionType, type(functools.cache(len)))


def body_of(item: pytest.Item) -> str:
    """A hash of what a test does, whatever it is called and wherever it stands; "" if nothing says.

    That is the code of its function, what the names in it mean, in its module and in its class, its fixtures,
    and its parameters: their values where all are plain, for pytest names some in another way from release
    to release, else their id. A function that was made by another does what that one was told to: its code
    does not say.
    """
    if not isinstance(item, pytest.Function):
        return ""
    function = inspect.unwrap(item.function)
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_freevars:
        return ""
    try:
        meanings = [*_fixtures(item), *_globals(function, code), *_members(item, code)]
        shape = repr((_shape(code), meanings, _parameters(getattr(item, "callspec", None))))
    except Exception:  # an int of more digits than Python writes; a list in itself
        return ""
    return hashlib.sha256(shape.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _fixtures(item: pytest.Function) -> Iterator[object]:
    asked = fixture_info(item)
    for name in asked.argnames:
        for definition in asked.name2fixturedefs.get(name, ())[-1:]:
            yield name, _meaning(definition.func, item.function.__module__)


def _globals(function: Any, code: CodeType) -> Iterator[object]:
    for name in sorted(_names(code) & function.__globals__.keys()):
        yield name, _meaning(function.__globals__[name], function.__module__)


def _members(item: pytest.Function, code: CodeType) -> Iterator[object]:
    """What its class sets up, and has under a name that the function uses."""
    for name in sorted(_names(code) | _SET_UPS) if item.cls is not None else ():
        value = inspect.getattr_static(item.cls, name, item)
        if value is not item:
            if is_any(type(value), (classmethod, staticmethod)):
                value = value.__func__
            yield (
                name,
                _meaning(value.fget if type(value) is property else value, item.cls.__module__),
            )


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _meaning(value: Any, module: str, depth: int = _DEPTH) -> object:
    """What a global of a test's ``module`` is: code that stands beside the test, else its name.

    Other objects are not asked: a proxy may fail where it stands for nothing.
    """
    kind = type(value)
    if is_any(kind, _PLAIN):
        return repr(value)
    if kind is ModuleType:
        return value.__name__
    if is_any(kind, _COLLECTIONS):
        return kind.__name__, len(value), _contents(value, module, depth - 1) if depth else ()
    if not issubclass(kind, _NAMED):
        stands, name = origin_of(kind)
        return stands.removeprefix(module), name
    return _meaning_of_named(value, module)


def _meaning_of_named(value: Any, module: str) -> object:
    is_class = issubclass(type(value), type)
    stands, name = origin_of(value) if is_class else (value.__module__, value.__qualname__)
    if stands != module:
        return stands, name
    if is_class:
        methods = (each for each in names_of(value).items() if type(each[1]) is FunctionType)
        return [(name, _shape(each.__code__)) for name, each in sorted(methods)]
    code = getattr(inspect.unwrap(value), "__code__", None)
    return _shape(code) if isinstance(code, CodeType) else name


def _contents(value: Any, module: str, depth: int) -> list[object]:
    """What the first members of a collection are; of a set all or none, since its order is by chance."""
    is_set = isinstance(value, (set, frozenset))
    if is_set and len(value) > _MOST_MEMBERS:
        return []
    members = itertools.islice(value.items() if type(value) is dict else value, _MOST_MEMBERS)
    found = [_meaning(each, module, depth) for each in members]
    return sorted(found, key=repr) if is_set else found


def _parameters(callspec: Any) -> object:
    if callspec is None:
        return ""
    if all(is_any(type(value), _PLAIN) for value in callspec.params.values()):
        return sorted((name, repr(value)) for name, value in callspec.params.items())
    return callspec.id


def _shape(code: CodeType) -> tuple[Any, ...]:
    """The code without its names and places."""
    return code.co_code, code.co_names, code.co_varnames, [*map(_const, code.co_consts)]


def _const(value: object) -> object:
    if isinstance(value, CodeType):
        return _shape(value)
    # the order of a set is another in each process
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def find_renames(store: Store, selection: Selection, bodies: Mapping[str, str]) -> dict[str, str]:
    """New nodeid -> old, of tests without a baseline that do what a test did that is gone.

    Where more than one test or baseline fits there is no telling. ``bodies``: of all tests that are
    measured. Baselines that cannot be read are left alone.
    """
    new = {nodeid for nodeid in bodies if not os.path.exists(store.path(nodeid))}
    if not new or not selection.knows_all():
        return {}
    gone = dict(_gone(store, selection, bodies))
    # a body that another test has as well was copied, not moved
    now, then = Counter(bodies.values()), Counter(gone.values())
    owners = {body: owner for owner, body in gone.items() if then[body] == 1}
    moved = ((nodeid, bodies[nodeid]) for nodeid in sorted(new) if now[bodies[nodeid]] == 1)
    return {nodeid: owners[body] for nodeid, body in moved if body in owners}


def _gone(store: Store, selection: Selection, measured: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Tests that are gone, with what they did, as far as their baselines say."""
    for _, owner in store.list({store.path(nodeid) for nodeid in measured}):
        if isinstance(owner, str) and selection.stale(owner) is Cause.gone:
            found = store.read(owner)
            if found is not None and found.body:
                yield owner, found.body
