"""Our own frames in a trace: they are left out, and what they call with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_HERE: Final = str(Path(__file__).parent.parent) + "/"
_TRANSPARENT: set[int] = set()


def transparent(func: F) -> F:
    """Mark a function of ours that calls the user's: it is left out, what it calls is not.

    >>> @transparent
    ... def call(func): return func()
    >>> call(lambda: 3)
    3
    """
    _TRANSPARENT.add(id(func.__code__))
    return func


def is_own(code: CodeType) -> bool:
    """True if it is code of this package."""
    return code.co_filename.startswith(_HERE)


def is_transparent(code: CodeType) -> bool:
    """True if it is a function that was marked so."""
    return id(code) in _TRANSPARENT
