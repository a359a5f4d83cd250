"""What differs between layouts of memory, looked at without Valgrind."""

import ctypes
import json
import marshal
import subprocess
import sys

import pytest

#: Takes code with many names from a file, as an import does, and prints how far apart two of them lie.
FAR_APART = """
import marshal, sys
import pytest

from pytest_instrcount.callgrind.inside.layout import disturb

disturb(int(sys.argv[1]))
names = marshal.load(sys.stdin.buffer).co_names
print(id(names[5_500]) - id(names[2_500]))
"""
NAMES = "\n".join(f"name_{n} = other_{n}" for n in range(3_000))
ONE_PLACE = 32_768


def far_apart(layout: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", FAR_APART, str(layout)],
        input=marshal.dumps(compile(NAMES, "names", "exec")),
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(done.stdout)


def test_names_of_an_import_lie_otherwise_in_each_layout() -> None:
    assert len({far_apart(layout) % ONE_PLACE // 256 for layout in range(1, 9)}) >= 6


#: Prints how many names and kinds of enumerations there are more, and how large the table of loggers is.
FILLED = """
import enum, gc, logging, sys
from pytest_instrcount.callgrind.inside import layout

gc.disable()
before = len(enum.Enum.__subclasses__())
layout.disturb(int(sys.argv[1]))
names = sum(type(each) is str for row in layout._kept if type(row) is list for each in row)
loggers = logging.root.manager.loggerDict
assert not loggers
print(names, len(enum.Enum.__subclasses__()) - before, sys.getsizeof(loggers))
"""


def test_tables_are_filled_to_another_degree_in_each_layout() -> None:
    """That of all names nearly doubles, once it has had to grow; so does that of a base's subclasses."""
    command = [sys.executable, "-c", FILLED]
    told = [subprocess.check_output([*command, str(n)], text=True).split() for n in range(1, 9)]
    names, kinds, loggers = ([*map(int, column)] for column in zip(*told))
    assert len({*names}) == 8 and max(names) - min(names) > 12_000
    assert len({*kinds}) >= 6 and max(kinds) - min(kinds) > 20
    assert len({*loggers}) >= 3


ROOM = """
import operator
from itertools import repeat
from pytest_instrcount.callgrind.inside import places

SIZES = range(48, 513, 16)
LEAST = 7
places.settle({layout}, 3)
calls = [[[None] * LEAST for _ in SIZES] for _ in range(3)]
for held in calls:
    places.make_room()
    for row, size in zip(held, SIZES):
        any(map(operator.setitem, repeat(row), range(LEAST), map(bytes, repeat(size - 33))))
pools = [[{{id(made) // 16_384 for made in row}} for row in held] for held in calls]
assert all(len(each) == 1 for each in sum(pools, [])), pools
assert len(set().union(*sum(pools, []))) == 3 * len(SIZES), pools
"""


#: The lists that wait to be freed are those that a call gets, and nothing has been counted for the collector.
SPARES = """
import gc
from pytest_instrcount.callgrind.inside import places

gc.disable()
places.settle(0, 1)
spares = {id(each) for row in places._kept for each in row if type(each) is list and not each}
garbage = [[] for _ in range(900)]
garbage.append(garbage)
del garbage
places.make_room()
count = gc.get_count()[0]
made = [], [], [], [], [], [], [], []
assert {id(each) for each in made} <= spares and len(spares) >= 60
assert count < 50, count
"""


def test_each_call_finds_the_same_lists_of_free_objects() -> None:
    subprocess.run([sys.executable, "-c", SPARES], check=True, timeout=60)


@pytest.mark.parametrize("layout", [0, 1])
def test_each_call_has_room_in_one_pool(layout: int) -> None:
    """One that comes first, and is another each time."""
    subprocess.run([sys.executable, "-c", ROOM.format(layout=layout)], check=True, timeout=60)


#: Leaves blocks free in many ways, 15 MB of them, and prints what glibc has free at a call, in how many pieces.
HEAP = """
import ctypes, random, sys
from pytest_instrcount.callgrind.inside import heap

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena free blocks b c d fast e bytes top".split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Info

def free():
    info = mallinfo()
    return [info.free, info.blocks, info.fast, info.bytes, info.top]

free()

def litter(count):
    made = [bytes(pick.randrange(500, 5000)) for _ in range(count)]
    pick.shuffle(made)
    return made[: count // 2]

pick = random.Random(int(sys.argv[1]))
kept = [litter(5_000), litter(500)]
heap.prepare(2, 0)
calls = []
for _ in range(2):
    kept.append(litter(500))
    heap.renew()
    calls.append(free())
print(calls)
"""


def free_in_heap(history: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", HEAP, str(history)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
        text=True,
    )
    return done.stdout


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="not glibc, or one before 2.33"
)
def test_each_call_finds_the_same_free_in_the_heap() -> None:
    """Blocks that a call gets, how many are free, and the top: whatever was done before."""
    found = {free_in_heap(history) for history in range(3)}
    assert len(found) == 1, found
    first, second = json.loads(found.pop())
    assert first == second
    assert first[0] > 200 and first[-1] == 48 * 1024


#: Whatever is freed there is an arena at once, as it may be: all of it is to be written to.
ARENAS = """
import ctypes, mmap
from pytest_instrcount.callgrind.inside import places

libc, arenas = ctypes.CDLL(None), []
fixed = 0x10

def munmap(start, size):
    libc.munmap(start, size)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | fixed
    arenas.append((libc.mmap(start, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0), size))

class Libc:
    mmap, munmap = libc.mmap, munmap

places.ctypes.CDLL = lambda name: Libc
munmap.argtypes = None
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
places._align_arenas()
for start, size in arenas:
    ctypes.memset(start, 1, size)
assert arenas
"""


def test_an_arena_may_be_made_while_others_are_aligned() -> None:
    subprocess.run([sys.executable, "-c", ARENAS], check=True, timeout=60)
