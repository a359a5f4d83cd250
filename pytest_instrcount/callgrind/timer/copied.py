"""Values that a statement may be given: those that can be copied to another process."""

from __future__ import annotations

import marshal
import pickle
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

_PLAIN_TYPES = (str, bytes, bool, int, float, complex)
#: How a global travels: as it is, or in a file that torch wrote.
PLAIN, TORCH, TORCH_JIT = "plain", "torch", "torch_jit"

#: name, set-up of its own, expression that makes the value
Sent = tuple[str, str, str]


class CopyIfCallgrind:
    """A global for a ``Timer``, marked as one that may be replaced by a copy of itself.

    The statement runs in another process: what it gets is sent there, and what it does to it is
    not seen here. ``value`` is a str, bytes, bool, int, float or complex; or, where torch is
    loaded, a ``torch.nn.Module``, ``ScriptFunction`` or ``ScriptModule``. ``setup`` is run there
    before the value is loaded: the import, or the class, that loading needs.

    Raises ValueError for a value of another type.

    >>> CopyIfCallgrind(1000).value
    1000
    >>> CopyIfCallgrind([1, 2])
    Traceback (most recent call last):
    ValueError: a value of type list cannot be copied for a statement under Callgrind; ...
    """

    __slots__ = ("_serialization", "_setup", "_value")

    def __init__(self, value: Any, *, setup: str | None = None) -> None:
        if setup is not None and not isinstance(setup, str):
            raise TypeError(f"setup is a str, not {type(setup).__name__}")
        self._serialization = _kind_of(value)
        self._value = value
        self._setup = setup

    @property
    def value(self) -> Any:
        """The value itself."""
        return self._value

    @property
    def setup(self) -> str | None:
        """Code that the other process runs before it loads the value."""
        return self._setup

    @property
    def serialization(self) -> str:
        """The form in which it is sent: "plain", "torch" or "torch_jit"."""
        return self._serialization

    @staticmethod
    def unwrap_all(globals: Mapping[str, Any]) -> dict[str, Any]:
        """The values, where they are wrapped.

        >>> CopyIfCallgrind.unwrap_all({"n": CopyIfCallgrind(3), "m": 4})
        {'n': 3, 'm': 4}
        """
        return {k: v.value if isinstance(v, CopyIfCallgrind) else v for k, v in globals.items()}

    def __repr__(self) -> str:
        setup = "" if self._setup is None else f", setup={self._setup!r}"
        return f"CopyIfCallgrind({self._value!r}{setup})"


def loaded_torch() -> ModuleType | None:
    """torch, if somebody has imported it; this package never does."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "nn") and hasattr(torch, "jit") else None


def _kind_of(value: Any) -> str:
    if isinstance(value, _PLAIN_TYPES):
        return PLAIN
    torch = loaded_torch()
    if torch is not None:
        if isinstance(value, (torch.jit.ScriptFunction, torch.jit.ScriptModule)):
            return TORCH_JIT
        if isinstance(value, torch.nn.Module):
            return TORCH
    names = ", ".join(kind.__name__ for kind in _PLAIN_TYPES)
    more = "torch.nn.Module, torch.jit.ScriptFunction, torch.jit.ScriptModule"
    raise ValueError(
        f"a value of type {type(value).__name__} cannot be copied for a statement under Callgrind; "
        f"these can: {names}, and where torch is loaded {more}. Make others in setup."
    )


def check_globals(given: Mapping[str, Any]) -> dict[str, CopyIfCallgrind]:
    """The globals that are to be sent. ``torch`` itself and ``__builtins__`` are there anyway.

    Raises ValueError for one that is not wrapped, and for another thing named ``torch``.

    >>> check_globals({"n": 3})
    Traceback (most recent call last):
    ValueError: global 'n' is not wrapped: the statement runs in another process, which gets ...
    """
    checked = {}
    for name, value in given.items():
        if name == "torch" and not isinstance(value, CopyIfCallgrind):
            if value is not loaded_torch():
                raise ValueError("global 'torch' is not torch: the other process has its own")
        elif name == "__builtins__":
            continue
        elif isinstance(value, CopyIfCallgrind):
            checked[name] = value
        else:
            raise ValueError(
                f"global {name!r} is not wrapped: the statement runs in another process, which "
                f"gets a copy of it. Say that you know: globals={{{name!r}: CopyIfCallgrind(...)}}"
            )
    return checked


def send_globals(checked: Mapping[str, CopyIfCallgrind], folder: Path) -> tuple[Sent, ...]:
    """Name, set-up and expression of each; what torch writes is in a file of the folder."""
    return tuple(
        (name, textwrap.dedent(each.setup or ""), _expression(each, folder / f"{number}.pt"))
        for number, (name, each) in enumerate(checked.items())
    )


def _expression(copied: CopyIfCallgrind, path: Path) -> str:
    value = copied.value
    if type(value) in _PLAIN_TYPES:  # not by repr(), that of nan is no Python
        return f"__import__('marshal').loads({marshal.dumps(value)!r})"
    if copied.serialization == PLAIN:  # of a class derived from one
        return f"__import__('pickle').loads({pickle.dumps(value)!r})"
    torch: Any = loaded_torch()
    if copied.serialization == TORCH_JIT:
        torch.jit.save(value, str(path))
        return f"__import__('torch').jit.load({str(path)!r})"
    torch.save(value, str(path))
    return f"__import__('torch').load({str(path)!r}, weights_only=False)"


class GlobalsBridge:
    """Copies of globals for another process: code that makes them there.

    `Timer` has one of its own. ``data_dir`` is for the files of torch, and is made if it is not there.
    Raises ValueError for a global that is not wrapped in `CopyIfCallgrind`.

    >>> exec(GlobalsBridge({"n": CopyIfCallgrind(3)}, "/tmp").construct())
    >>> n
    3
    """

    def __init__(self, globals: Mapping[str, Any], data_dir: str) -> None:
        self._globals = check_globals(globals)
        self._folder = Path(data_dir)
        self._folder.mkdir(exist_ok=True)

    def construct(self) -> str:
        """Write the files, and return the code."""
        sent = send_globals(self._globals, self._folder)
        return "\n".join(f"{setup}\n{name} = {value}" for name, setup, value in sent)
