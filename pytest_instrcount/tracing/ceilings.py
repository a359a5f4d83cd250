"""Ceilings of ``max_calls`` that hold nothing back, since their pattern names nothing that is called."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from types import BuiltinFunctionType, BuiltinMethodType, MethodDescriptorType

from pytest_instrcount.tracing.settings import TraceWish

_WILD = ("*", "?", "[", "<")
_BUILTIN = (BuiltinFunctionType, BuiltinMethodType, MethodDescriptorType)
_MISSING = object()


def idle_ceilings(counts: Mapping[str, int], wish: TraceWish) -> tuple[str, ...]:
    """What is to be said of patterns that no call matches, and that are likely to be misspelt.

    A ceiling of 0 is kept by no call, so nothing is said of it; nor of a function that is there
    and was not called. What is left names nothing, or a builtin where builtins are not traced.

    >>> idle_ceilings({"shop:Cart.total": 2}, TraceWish(max_calls={"shop:Cart.totl": 3, "a:b": 0}))
    ("max_calls: nothing that was called is named 'shop:Cart.totl'; near: shop:Cart.total",)
    """
    found = []
    for pattern, most in wish.max_calls.items():
        wanted = pattern.replace(":", ".")
        if most == 0 or any(fnmatchcase(name.replace(":", "."), wanted) for name in counts):
            continue
        named = _named(wanted) if wish.tracer == "python" else _MISSING
        if isinstance(named, _BUILTIN) and not wish.c_calls:
            found.append(f"max_calls: {pattern!r} is a builtin: only c_calls=True counts it")
        elif named is _MISSING or isinstance(named, _BUILTIN):
            near = ", ".join(get_close_matches(pattern, counts, 3))
            said = f"max_calls: nothing that was called is named {pattern!r}"
            found.append(f"{said}; near: {near}" if near else said)
    return tuple(found)


def _named(name: str) -> object:
    """What has this dotted name in a module that is imported; _MISSING if nothing has, or many may."""
    if any(sign in name for sign in _WILD):
        return _MISSING
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        found: object = sys.modules.get(".".join(parts[:length]), _MISSING)
        if found is not _MISSING:
            for part in parts[length:]:
                # not getattr: a class may have an opinion on what it has
                holder = vars(found) if hasattr(found, "__dict__") else {}
                bases = getattr(found, "__mro__", ())[1:]
                within = [holder, *(vars(base) for base in bases)]
                found = next((each[part] for each in within if part in each), _MISSING)
            return found
    return _MISSING
