"""The folder that the files of a commit are taken to.

The length of a path moves counts by percents (its text hardly), so that the folder's is the same as
the work tree's; and it has as many parts, for what takes paths to pieces. Where a work tree's path
is too short for any temporary folder, the shortest has to do: then more is measured in several layouts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_instrcount.callgrind.scratch import Scratch, lock_folder, no_folder

_NAME = "instrcount-against"
_MOST_RUNS = 1000
_DIGITS = 3
#: A name in a file system has at most 255 bytes.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Worktree:
    """A private folder of a run, and in it the one for the files."""

    scratch: Scratch
    #: the folder for the files: of the wanted length
    tree: Path

    def remove(self) -> None:
        """Delete all of it, and let go of it."""
        self.scratch.remove()
        os.close(self.scratch.lock)


def take_worktree(like: Path) -> Worktree:
    """An empty folder, the length and the parts of its path as those of ``like`` if that can be had.

    Raises InstrcountError "scratch" if none can be made.
    """
    error: OSError | None = None
    for top, tree in _paths(like):
        try:
            lock = lock_folder(top)
            if lock is not None:
                tree.mkdir(mode=0o700, parents=True, exist_ok=True)
                return Worktree(Scratch(top, lock), tree)
        except OSError as found:
            error = found
    raise no_folder(error)


def _paths(like: Path) -> Iterator[tuple[Path, Path]]:
    """The candidates: of the right length in any temporary folder, then as short as can be."""
    parents = [Path(each) for each in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp"))]
    parents = [parent for parent in parents if parent.is_dir()]
    for parent in parents:
        for number in range(_MOST_RUNS):
            found = padded(parent, like, number)
            if found is not None:
                yield found
    for number in range(_MOST_RUNS):
        path = min(parents, key=lambda each: len(str(each))) / f"i{number:0{_DIGITS}}"
        yield path, path


def padded(parent: Path, like: Path, number: int) -> tuple[Path, Path] | None:
    """A folder in ``parent`` and one in it, or it again, that is as long; None if there is no room.

    >>> [str(path) for path in padded(Path("/tmp"), Path("/home/me/src/shop"), 7)]
    ['/tmp/ins007', '/tmp/ins007/--/--']
    >>> padded(Path("/tmp"), Path("/app"), 7) is None
    True
    """
    left = len(str(like)) - len(str(parent).rstrip("/"))
    if left < 2 + _DIGITS:
        return None
    # each part is a slash and two characters or more (Python makes no string of one); the first one is
    # numbered
    number_of_parts = min(len(like.parts) - len(parent.parts), (left - _DIGITS + 1) // 3)
    number_of_parts = max(1, number_of_parts, -(-left // _LONGEST))
    sizes = []
    for after in reversed(range(number_of_parts)):
        sizes.append(min(_LONGEST, left - 3 * after))
        left -= sizes[-1]
    first = sizes[0] - 1 - _DIGITS
    top = parent / f"{_NAME[:first].ljust(first, '-')}{number:0{_DIGITS}}"
    return top, top.joinpath(*("-" * (size - 1) for size in sizes[1:]))
