"""Paths of the user's work tree, as they are in another one."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Tables of setuptools' finders for editable installs: names -> one path, names -> several.
TABLES = ("MAPPING", "NAMESPACES")
Tables = dict[str, dict[str, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Move:
    """From the user's work tree to the one of the commit.

    >>> move = Move(("/home/me/shop",), "/tmp/instrcou", ("/home/me/shop/.venv",))
    >>> move("/home/me/shop/src"), move("/home/me/shopping"), move("/home/me/shop/.venv/lib")
    ('/tmp/instrcou/src', '/home/me/shopping', '/home/me/shop/.venv/lib')
    """

    #: the work tree, as it may be spelled; a path through a link is resolved
    old: tuple[str, ...]
    new: str
    #: folders in it that are no part of it: environments with what is installed
    stays: tuple[str, ...]

    def __call__(self, path: str) -> str:
        """The path at the commit; as it is, if it is not in the work tree."""
        for one in (path, os.path.realpath(path)) if os.path.isabs(path) else (path,):
            if any(_below(one, each) is not None for each in self.stays):
                return path
            for each in self.old:
                rest = _below(one, each)
                if rest is not None:
                    return self.new + rest
        return path

    def moves(self, path: str) -> bool:
        """True if a path is in the user's work tree."""
        return self(path) != path

    def search_path(self, entries: str) -> str:
        """A variable like PYTHONPATH."""
        return os.pathsep.join(map(self, entries.split(os.pathsep)))

    def word(self, word: str) -> str:
        """A word of a command line, ``--option=PATH`` as well.

        >>> Move(("/shop",), "/tmp1", ()).word("--rootdir=/shop/a")
        '--rootdir=/tmp1/a'
        """
        name, equals, value = word.partition("=")
        return name + equals + self(value) if word.startswith("-") else self(word)

    def tables(self, tables: Tables) -> Tables:
        """The tables of finders, moved."""
        return {
            name: {
                table: {key: self._value(value) for key, value in content.items()}
                for table, content in each.items()
            }
            for name, each in tables.items()
        }

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self(value)
        return [self(str(each)) for each in value] if isinstance(value, list) else value


def environments_in(folders: Iterable[str]) -> tuple[str, ...]:
    """Folders of this interpreter and of what is installed for it that are below one of these."""
    found = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    found += sysconfig.get_paths().values()
    found += [os.path.realpath(each) for each in found]
    inside = {
        each for each in found for folder in folders if _below(each, folder) not in (None, "")
    }
    return tuple(sorted(inside))


def editable_tables(modules: Mapping[str, object]) -> Tables:
    """The tables of setuptools' finders that this process has loaded."""
    found: Tables = {}
    for name in sorted(modules):
        if name.startswith("__editable__") and name.endswith("_finder"):
            tables = {table: getattr(modules[name], table, None) for table in TABLES}
            found[name] = {
                table: dict(content) for table, content in tables.items() if content is not None
            }
    return found


def _below(path: str, folder: str) -> str | None:
    """The rest of the path behind the folder, from the slash on; None if the path is elsewhere."""
    folder = folder.rstrip("/")
    if path == folder:
        return ""
    return path[len(folder) :] if path.startswith(f"{folder}/") else None
