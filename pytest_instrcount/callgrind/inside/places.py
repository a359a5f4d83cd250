"""Where the objects of a test lie: in pools of pymalloc that are its own, with room in them at each call.

What was imported, and what pytest does between the phases of a test, leaves places free in many
pools, and objects in lists of free ones. Which a test finds first would move its count.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import operator
import random
import sys
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from itertools import chain, repeat
from typing import Any

from pytest_instrcount.callgrind.inside import heap

#: Of pymalloc (CPython 3.11 and later): bytes of a pool, and those in which it keeps its books; ...
_POOL_BYTES, _POOL_HEAD = 16_384, 48
#: ... sizes of the places in pools; ...
_SIZES = range(16, 513, 16)
#: ... and pools of an arena; of so many, one after the other, none was used before.
_ARENA_POOLS, _FRESH_POOLS = 64, 32
#: So many places are taken at most, room is made for so many calls, and so many of a size are freed for one.
_MOST_PLACES, _MOST_ROOMS, _MOST_FREED = 65_536, 12, 256
#: Bytes of an object that is all data, without them.
_HEAD = sys.getsizeof(b"")
#: How many gaps are looked at for one where an arena may lie.
_MOST_GAPS = 64
#: Kinds of objects that CPython keeps in lists when they are freed, and of how many it does so here.
_SPARE_TUPLES, _SPARE = 16, 64

#: All that lives on.
_kept: list[Any] = []
#: The first pool of the arena that was opened last.
_opened = [0]
#: What makes room, for one call each.
_rooms: list[Iterator[Iterator[None]]] = [iter(())]


def open_arena() -> None:
    """Have all that is made from here on lie in a new arena of pymalloc, for there is no room elsewhere."""
    heap.find_heap()  # so that no test has to
    _fill_arenas()
    settle(0)


def settle(layout: int, calls: int = 0) -> None:
    """Take the places that imports and pytest have left free: a test has pools of its own, in all layouts.

    In a pool with a single free place each new object fills it and frees it again, and in which order
    places are free decides which slots of a dict objects take. Any import leaves other places.
    Layouts other than the usual one take some more, so that the test's pools are full elsewhere.
    So many ``calls``, or the first `_MOST_ROOMS` of them, can each `make_room` then.
    """
    pick = random.Random(layout) if layout else None
    _take_free(pick)
    if calls:
        rooms = min(calls, _MOST_ROOMS)
        _prepare_rooms(pick, rooms)
        heap.prepare(rooms, pick.randrange(4096) if pick else 0)


def _take_free(pick: random.Random | None) -> None:
    places = _new_places()
    used = 0
    for size in _SIZES:
        pool = _POOL_BYTES // size
        # more than a pool: those with old objects may be behind one that is new
        number = pool + pool // 4 + (pick.randrange(pool) if pick else 0)
        while used + number < _MOST_PLACES:
            used = _fill(places, used, size, number)
            if _pool(places[used - 1]) >= _opened[0]:
                break
            number = pool // 4


def _prepare_rooms(pick: random.Random | None, number: int) -> None:
    # Spares first: those beyond what CPython keeps are freed where they lie, and that pool would come first.
    rooms: list[list[Iterator[None]]] = [[*map(_freeing, _spares())] for _ in range(number)]
    places = _new_places()
    used = 0
    for size in _SIZES:
        pool = (_POOL_BYTES - _POOL_HEAD) // size
        start, used = used, _fill(places, used, size, (number + 2) * pool)
        _find_rooms(pick, places, start, pool, rooms)
    parts = [iter(room) for room in rooms]
    ready = [chain.from_iterable(part) for part in parts]
    _kept.extend((rooms, parts, ready))  # none of them is to be freed where its room ends
    _rooms[0] = iter(ready)


def _find_rooms(
    pick: random.Random | None,
    places: list[Any],
    start: int,
    pool: int,
    rooms: list[list[Iterator[None]]],
) -> None:
    """Take from the places from ``start`` on what each room frees: some in the middle of one full pool.

    ``pool``: how many places are in each. Those at its ends may lie in others, where counting took some.
    """
    start += pool
    ours = _pool(places[start])
    start -= bisect_left(range(1, pool), True, key=lambda back: _pool(places[start - back]) != ours)
    first, number = pool // 4, pool // 2
    if pick:
        number = pick.randrange(pool // 4, pool // 8 * 5)
        first = pick.randrange(pool // 8, pool - pool // 8 - number)
    number = min(number, _MOST_FREED)
    for room in rooms:
        free = range(start + first, start + first + number)
        room.append(_freeing(places[free.start : free.stop]))
        any(map(operator.setitem, repeat(places), free, repeat(None)))
        start += pool


def _freeing(made: list[Any]) -> Iterator[None]:
    """An iterator that frees these objects, and makes none: indices are small enough to be there.

    The place that is free last is taken first.
    """
    _kept.append(made)
    return map(operator.setitem, repeat(made), range(len(made) - 1, -1, -1), repeat(None))


def _spares() -> Iterator[list[Any]]:
    """Objects of the kinds that are kept in lists when they are freed."""
    yield [[] for _ in range(_SPARE)]
    yield [{0: None} for _ in range(_SPARE)]
    yield list(map(float, repeat("0.5", _SPARE)))
    for size in range(1, 20):
        yield list(map(tuple, repeat([None] * size, _SPARE_TUPLES)))


def _pool(made: object) -> int:
    """The number of the pool that an object lies in."""
    return id(made) // _POOL_BYTES


def make_room() -> None:
    """Right before a call, free places of each size, in a pool that comes first from here on.

    Whatever is freed in a full pool has it come first, with this single place. So it is with the ints
    that counting needs, and with what pytest frees between the phases of a test. The lists of free
    objects hold equally many each time, and the collector has counted none yet. What is free in glibc's
    heap is the same, too.
    """
    room = next(_rooms[0], None)
    if room is not None:
        gc.collect()
        heap.renew()
        any(room)


def _fill(places: list[Any], start: int, size: int, number: int) -> int:
    """Put so many new objects there that take a place of this size each; returns where they end.

    They are of kinds that CPython keeps in no list when they are freed. No other object is made but ints.
    """
    made: Iterator[Any]
    if size > _HEAD:
        made = map(bytes, repeat(size - _HEAD))
    elif size > 16:
        made = map(complex, repeat(0.5))
    else:
        made = map(object.__new__, repeat(object))
    end = start + number
    any(map(operator.setitem, repeat(places), range(start, end), made))
    return end


def _new_places() -> list[Any]:
    """Room for objects that live on, in one block that glibc maps by itself: none is left free in its heap."""
    places: list[Any] = [None] * _MOST_PLACES
    _kept.append(places)
    _align_arenas()
    return places


def _fill_arenas() -> None:
    """Take all pools that are left in pymalloc's arenas, up to the first of a new, aligned one.

    An arena with free pools is moved along a list of them whenever it gets one more: what an emptied pool
    costs depends on how many there are, and so on all that was imported. Where an arena is not aligned, what
    a free costs depends on whether the object lies below or above a multiple of an arena's size.
    """
    places = _new_places()
    size = _SIZES[-1]
    batch = _POOL_BYTES // size - 1  # as many as are in a pool, beside what it says of itself
    pool = run = 0
    for start in range(0, _MOST_PLACES - batch, batch):
        _fill(places, start, size, batch)
        last, pool = pool, _pool(places[start + batch - 1])
        if pool == last:
            continue
        if run >= _FRESH_POOLS and pool % _ARENA_POOLS == 0:
            _opened[0] = pool
            break
        run = run + 1 if pool == last + 1 else 1


def _align_arenas() -> None:
    """Have the next arenas begin at multiples of their size.

    Valgrind maps memory into the first gap that is large enough, so what is in the way there is taken:
    kept of a mapping, never mapped again, for an arena may be made there between two calls.
    """
    libc = _libc()
    size = _ARENA_POOLS * _POOL_BYTES
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    for _ in range(_MOST_GAPS):
        start = libc.mmap(None, size, mmap.PROT_READ, private, -1, 0)
        taken = -start % size
        libc.munmap(start + taken, size - taken)
        if not taken:
            break


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc
