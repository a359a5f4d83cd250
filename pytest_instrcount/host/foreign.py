"""What can be told of objects of the user's: none of their code decides it, nor ends it with an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

#: A report is not nested deeper; what is holds itself.
DEEPEST = 40
#: What JSON has a word for: finite numbers alone, and of no more digits than Python writes.
_SCALARS: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: lambda value: int(int.__str__(value)),
    float: lambda value: float.__float__(value) if math.isfinite(value) else None,
}

_mro, _names, _flags, _name, _qualname, _module = (
    type.__dict__[f"__{name}__"].__get__
    for name in ("mro", "dict", "flags", "name", "qualname", "module")
)
_BY_STATEMENT = 1 << 9


def mro_of(kind: type) -> tuple[type, ...]:
    """A class and its bases, in the order of look-ups."""
    return _mro(kind)  # type: ignore[no-any-return]


def names_of(kind: type) -> dict[str, Any]:
    """What a class itself defines; not as its metaclass would have it."""
    return _names(kind)  # type: ignore[no-any-return]


def defined(kind: type, name: str) -> Any:
    """What a class or one of its bases defines under a name, or None.

    >>> defined(bool, "bit_length") is int.bit_length
    True
    """
    return next((names_of(each)[name] for each in mro_of(kind) if name in names_of(each)), None)


def is_any(value: object, values: Iterable[object]) -> bool:
    """Whether an object is one of some; ``in`` would ask its class."""
    return any(value is each for each in values)


def origin_of(kind: type) -> tuple[str, str]:
    """The module and the qualified name of a class.

    >>> origin_of(int)
    ('builtins', 'int')
    """
    return str(_module(kind)), _qualname(kind)


def flags_of(kind: type) -> int:
    """``tp_flags``."""
    return _flags(kind)  # type: ignore[no-any-return]


def is_of_python(kind: type) -> bool:
    """Whether a class was made by a class statement, or as if by one."""
    return bool(flags_of(kind) & _BY_STATEMENT)


def class_name(value: object) -> str:
    """The name of an object's class."""
    return _name(type(value))  # type: ignore[no-any-return]


def attribute(value: Any, name: str) -> Any:
    """An attribute, or None where asking for it raises whatever it may."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def name_of(target: Any) -> str:
    """What is called, by its qualified name, else by that of its class: it may be long in its repr.

    >>> name_of(partial(str.upper, "a")), name_of(3)
    ('str.upper', 'int')
    """
    while issubclass(type(target), partial):
        target = target.func
    name = attribute(target, "__qualname__")
    return name if type(name) is str else class_name(target)


def plain(value: Any, above: tuple[int, ...] = ()) -> Any:
    """The value in JSON's terms; what JSON has no word for is its text. ``above``: what it is held by.

    >>> plain({"size": 3, 4: (1.5, float("nan")), "path": {1}})
    {'size': 3, '4': [1.5, None], 'path': '{1}'}
    """
    kind = type(value)
    if value is None or kind is bool:
        return value
    try:
        for base, converted in _SCALARS.items():
            if issubclass(kind, base):
                return converted(value)
        if id(value) not in above and len(above) < DEEPEST:
            within = (*above, id(value))
            if issubclass(kind, dict):
                return {str(key): plain(each, within) for key, each in dict.items(value)}
            if issubclass(kind, (list, tuple)):
                return [plain(each, within) for each in value]
        return str(value)
    except Exception:
        return f"<unprintable {class_name(value)}>"
