"""glibc's heap, where blocks come from that are too large for pymalloc: alike at the beginning of each call.

Where blocks are free between those in use depends on all that was imported and done before, and what is
allocated and freed costs more or less there: it is taken as it is, split off, merged with what is free
beside it, or searched for. So all that is free is taken, and a few blocks of each size are freed.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain, repeat

#: Bytes of the largest block that is asked for; of the largest of which threads keep some; of the smallest.
_LARGEST, _LISTED, _SMALLEST = 100_000, 1032, 24
#: Bytes that a block has beside what was asked for, that it is a multiple of, and that pymalloc gives at most.
_HEAD, _UNIT, _PYMALLOC = 8, 16, 512
#: So many holes are there of each size up to this; of larger ones there is one, and none beyond that.
_HOLES, _MANY, _LARGEST_HOLE = 4, 2048, 32_768
#: A block that fits into no hole: glibc sorts them into bins to find that out; and the top after it.
_SORTER, _TOP = 33_024, 49_152
#: So often is a top made that is large enough: the second one always is.
_MOST_TOPS = 4
#: Where the top is looked for: blocks of so many bytes, and so many.
_PROBE, _PROBES = 2000, 999

#: Blocks, one for each hole, or none where it is one now.
_Column = list[bytes | None]
#: All that lives on; what is freed at each of the next calls, and was at the last one; and bytes left of
#: the top beside `_TOP`.
_kept: list[object] = []
_ready: list[Iterator[_Column]] = [iter(())]
_freed: list[_Column] = [[]]
_shift = [0]


def prepare(calls: int, shift: int) -> None:
    """Have blocks ready that leave holes for so many calls: none of a call's is beside another.

    ``shift``: bytes that are left of the top beside what always is.
    """
    heap = find_heap()
    if heap is None:
        return
    heap.take_free()
    columns: list[_Column] = [[None] * len(_holes()) for _ in range(calls + 1)]
    _kept.append(columns)
    for number, length in enumerate(_holes()):
        for column in columns:
            column[number] = bytes(length)
    _ready[0] = iter(columns[:calls])
    _shift[0] = shift // _UNIT * _UNIT


def renew() -> None:
    """Have nothing free but the holes of the next call, and as much of the top each time."""
    heap = find_heap()
    if heap is None:
        return
    _fill(_freed[0])  # with little that is executed: most holes are as they were
    for _ in range(_MOST_TOPS):
        heap.take_free()  # where the top is another, the old one is free
        if heap.leave(_TOP + _shift[0] + _SORTER):
            break
    _freed[0] = holes = next(_ready[0], [])
    for number in range(len(holes)):
        holes[number] = None
    heap.malloc(_SORTER - _HEAD)


def _fill(column: _Column) -> None:
    """Take as many blocks as there were, from the largest on: none is taken from a larger one."""
    blocks = map(b"".ljust, _holes())
    any(map(operator.setitem, repeat(column), range(len(column)), blocks))


class Heap:
    """The heap of the main thread. Its top is the last part of it, from which none was taken."""

    def __init__(self, libc: ctypes.CDLL, top: ctypes.c_size_t) -> None:
        self.malloc, self._free = libc.malloc, libc.free
        self._top = top

    def take_free(self) -> None:
        """Take what is free but the top: blocks of each size, from the largest on, until one is from there."""
        malloc, top = self.malloc, self._top
        for size in _sizes():
            begin = top.value
            # where the block begins there is no need to look where the top does now
            while (block := malloc(size)) != begin + _UNIT and block and top.value == begin:
                pass
            if size > _LISTED:
                self._free(block)

    def leave(self, left: int) -> bool:
        """Leave so many bytes of the top, or return False: there were less, and a new one is elsewhere."""
        while more := self.size() - left:
            begin = self._top.value
            size = min(more, _LARGEST) - _HEAD if more >= 2 * _UNIT else _LARGEST
            if self.malloc(size) != begin + _UNIT:
                return False
        return True

    def size(self) -> int:
        """Bytes of the top."""
        return _word(self._top.value + _HEAD).value & -8


@cache
def find_heap() -> Heap | None:
    """The heap, where glibc is the C library.

    The first and the last block in a list of free ones point to the list, and the one of blocks that
    are in no bin yet stands behind the address of the top.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "gnu_get_libc_version"):
        return None
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    libc.free.restype, libc.free.argtypes = None, [ctypes.c_size_t]
    libc.dladdr.argtypes = [ctypes.c_size_t, ctypes.c_char_p]
    blocks = [libc.malloc(_PROBE) for _ in range(3)]
    for _ in range(_PROBES):
        first, middle, last = blocks[-3:]
        if middle - first == last - middle == _whole(_PROBE):
            break
        blocks.append(libc.malloc(_PROBE))
    else:
        return None
    libc.free(middle)
    listed = _word(middle + _HEAD).value
    if not libc.dladdr(listed, ctypes.create_string_buffer(64)):
        return None
    top = _word(listed)
    for _ in range(_PROBES):
        block = libc.malloc(_LARGEST)
        if top.value == block - _UNIT + _whole(_LARGEST):
            return Heap(libc, top)
    return None


def _whole(asked: int) -> int:
    """Bytes of the block that so many are in."""
    return (asked + _HEAD + _UNIT - 1) // _UNIT * _UNIT


def _word(address: int) -> ctypes.c_size_t:
    return ctypes.c_size_t.from_address(address)


@cache
def _holes() -> tuple[int, ...]:
    """Lengths of bytes objects in blocks that are as large as the holes, the largest first."""
    many = range(_PYMALLOC + 2 * _UNIT, _MANY, _UNIT)
    sizes = list(chain.from_iterable([size] * _HOLES for size in many))
    size = _MANY
    while size < _LARGEST_HOLE:
        sizes.append(size)
        size += size // 16
    head = _HEAD + sys.getsizeof(b"")
    return tuple(size - head for size in reversed(sizes))


@cache
def _sizes() -> tuple[int, ...]:
    """Sizes of blocks that are asked for: all that glibc tells apart up to 2 kB, then steps of an eighth."""
    sizes = []
    size = _LARGEST
    while size > _MANY:
        sizes.append(size)
        size -= size // 8
    return *sizes, *range(_MANY - _HEAD, _SMALLEST - 1, -_UNIT)
