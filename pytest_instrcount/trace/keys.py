"""Code objects and builtins -> keys: decoded once each, and the same on every machine."""

from __future__ import annotations

import gc
import re
import sys
import sysconfig
import threading
from collections.abc import Iterable
from pathlib import Path
from types import CodeType
from typing import Final

from pytest_instrcount.trace.columns import Key
from pytest_instrcount.trace.own import is_own, is_transparent
from pytest_instrcount.trace.stream import CFunction

#: In place of an index: not shown, with all below it; not shown, but what it calls is.
HIDDEN: Final = -1
TRANSPARENT: Final = -2
#: Not shown either, and of what it calls only ``run()``: how much of it is seen depends on the backend.
BOOTSTRAP: Final = -3

#: Switches of the trace itself: one of their two events falls outside.
_SWITCHES: Final = ("setprofile", "_setprofileallthreads", "set_events", "register_callback")

#: What a thread of ``threading`` starts with.
BOOTSTRAPS: Final = tuple(
    getattr(threading.Thread, name).__code__
    for name in ("_bootstrap", "_bootstrap_inner")
    if hasattr(threading.Thread, name)
)
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{4,}")
_FROZEN: Final = re.compile(r"<frozen ([\w.]+)>")


def path_prefixes() -> tuple[str, ...]:
    """Folders that modules are found in: what differs between machines."""
    paths = sysconfig.get_paths()
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return (*found, *(str(Path(each).absolute()) for each in sys.path if each), str(Path.cwd()))


def trim_path(path: str, prefixes: Iterable[str]) -> str:
    """A path without its longest known prefix; one of no prefix keeps its name only.

    >>> trim_path("/lib/site-packages/a/b.py", ["/lib", "/lib/site-packages"])
    'a/b.py'
    >>> trim_path("/build/a.py", []), trim_path("<string>", [])
    ('a.py', '<string>')
    """
    if path.startswith("<"):
        return path
    matching = [each for each in prefixes if path.startswith(each.rstrip("/\\") + "/")]
    if matching:
        return path[len(max(matching, key=len).rstrip("/\\")) + 1 :]
    return re.split(r"[/\\]", path)[-1]


def _is_gc_callback(code: CodeType) -> bool:
    return any(getattr(each, "__code__", None) is code for each in gc.callbacks)


class KeyTable:
    """Keys in the order of their first call; what they were made from is kept, so ids stay theirs."""

    def __init__(self, prefixes: Iterable[str] | None = None) -> None:
        self.keys: list[Key] = []
        #: id of a code object or CFunction -> index into ``keys``, or HIDDEN or TRANSPARENT
        self.index: dict[int, int] = {}
        #: indices of ``__del__`` methods and of callbacks of the garbage collector
        self.finalizers: set[int] = set()
        self._known: dict[Key, int] = {}
        self._pinned: list[object] = []
        self._prefixes = tuple(path_prefixes() if prefixes is None else prefixes)
        #: source file -> name of its module
        self._modules: dict[str, str] = {}
        self._looked_at: set[str] = set()

    def add(self, function: object) -> int:
        """The index of something new."""
        self._pinned.append(function)
        if isinstance(function, CFunction):
            number = HIDDEN
            if not (function.module.startswith("sys") and function.qualname in _SWITCHES):
                number = self._number(Key("c", function.module, function.qualname))
        elif not isinstance(function, CodeType):
            number = HIDDEN
        elif is_own(function):
            number = TRANSPARENT if is_transparent(function) else HIDDEN
        elif any(function is each for each in BOOTSTRAPS):
            number = BOOTSTRAP
        else:
            number = self._number(self._key_of(function))
            if function.co_name == "__del__" or _is_gc_callback(function):
                self.finalizers.add(number)
        self.index[id(function)] = number
        return number

    def _number(self, key: Key) -> int:
        number = self._known.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
        return number

    def _key_of(self, code: CodeType) -> Key:
        path = _ADDRESS.sub("0x", code.co_filename)
        file = trim_path(path, self._prefixes)
        qualname = code.co_qualname
        return Key("python", self._module_of(code, file), qualname, file, code.co_firstlineno)

    def _module_of(self, code: CodeType, file: str) -> str:
        frozen = _FROZEN.fullmatch(code.co_filename)
        if frozen:
            return frozen[1]
        found = self._module_in(code.co_filename)
        if found is not None:
            return found
        if file.startswith("<") or not file.endswith(".py"):
            return file
        name = re.sub(r"[/\\]", ".", file[: -len(".py")])
        return name.removesuffix(".__init__")

    def _module_in(self, path: str) -> str | None:
        """The module of a source file; of several names the one that it calls itself."""
        made = self._modules
        if path not in made:
            new = sys.modules.keys() - self._looked_at
            # __main__ may get its file later, and lose it at the end
            self._looked_at |= new - {"__main__"}
            for name in sorted(new, key=str):
                names = getattr(sys.modules.get(name), "__dict__", {})
                file = names.get("__file__") or getattr(names.get("__loader__"), "path", None)
                if isinstance(file, str) and (file not in made or names.get("__name__") == name):
                    made[file] = name
        return made.get(path)
