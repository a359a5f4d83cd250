"""Another layout of memory on purpose: what moves a count then, unrelated changes move as well.

Whatever decides where things lie is disturbed: pymalloc's pools, glibc's bins, the version tags of
types, interned strings, code objects, and what code that every program shares has adapted to. It is
done before a test file is imported, so that the objects of its modules lie elsewhere, too; and once
before pytest is imported, in the zygotes of other layouts: two names of one type may share a place in
the cache of methods in all layouts of one zygote, and in none of another.
"""

from __future__ import annotations

import abc
import codecs
import ctypes
import enum
import random
import sys
from types import new_class
from typing import Any

#: Bytes of an object that is all data, without them.
_HEAD = sys.getsizeof(b"")
#: Entries of the cache of methods, and versions that one type may have (CPython 3.13).
_ENTRIES, _VERSIONS = 4096, 900
#: Sizes of objects that are as large as names are, and how many are made of each.
_NAMES, _NAMED = (48, 64, 80), 20_000

#: What classes are often made from. It has them in a table, which is made anew after so many more.
_BASES = (tuple, dict, Exception, abc.ABC, enum.Enum)
#: More names of encodings that every program has.
_ENCODINGS = """
    646 ansi_x3.4_1968 ansi_x3.4_1986 cp367 csascii ibm367 iso646_us iso_646.irv_1991 iso_ir_6 us us_ascii
    8859 cp819 csisolatin1 ibm819 iso8859 iso8859_1 iso_8859_1 iso_8859_1_1987 iso_ir_100 l1 latin latin1
"""

#: All that lives on, so that what comes later lies elsewhere.
_kept: list[Any] = []


def disturb(layout: int) -> None:
    """Fill memory as another program might have; layout 0 leaves it as it is.

    The same number fills it in the same way, in every process.
    """
    if not layout:
        return
    pick = random.Random(layout)
    _part_names(pick)
    _disturb_pools(pick)
    _disturb_heap(pick)
    _disturb_types(pick)
    _disturb_strings(pick)
    _disturb_code(pick)


def renew_versions(layout: int) -> None:
    """Have every type get a new version tag when it is next used, from another first one in each layout.

    The cache of methods is indexed by these tags. Types that were used before the layouts part would
    share a place in all of them or in none.
    """
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(object))
    left = random.Random(layout).randrange(_ENTRIES) if layout else 0
    while left:
        kind: Any = type("Kind", (), {})
        used = min(left, _VERSIONS)
        for number in range(used):
            kind.value = number
            _ = kind.value
        left -= used


def _keep_some(pick: random.Random, made: list[Any], share: float) -> None:
    kept = [each for each in made if pick.random() < share]
    pick.shuffle(kept)
    _kept.append(kept)


def _part_names(pick: random.Random) -> None:
    """Leave gaps of many sizes for the names of what is imported next.

    Two names of one type share a place in the cache of methods where their addresses differ by a multiple
    of 32 KiB. An import takes one place after the other: without gaps its names would lie as far apart in
    every layout, and a test would find two of its names in one place in all layouts or in none.
    """
    for size in _NAMES:
        length = size - _HEAD
        # one block that glibc maps by itself, and no other: it is to leave no room in the heap
        made: list[Any] = [None] * _NAMED
        for number in range(_NAMED):
            made[number] = b"-".ljust(length)
        for step in (pick.randrange(2, 6), *pick.sample(range(7, 97), 2)):
            for number in range(0, _NAMED, step):
                made[number] = None
        _kept.append(made)


def _disturb_pools(pick: random.Random) -> None:
    for size in range(16, 512, 16):
        _keep_some(pick, [bytes(size) for _ in range(pick.randrange(400))], pick.uniform(0.3, 0.9))
    _keep_some(pick, [[None] * pick.randrange(9) for _ in range(500)], 0.5)
    _keep_some(pick, [{n: n for n in range(pick.randrange(9))} for _ in range(300)], 0.5)
    _keep_some(pick, [(n, float(n), str(n)) for n in range(pick.randrange(900))], 0.6)


def _disturb_heap(pick: random.Random) -> None:
    for number, low, high in ((300, 513, 5000), (20, 5000, 90_000)):
        sizes = [pick.randrange(low, high) for _ in range(pick.randrange(number))]
        _keep_some(pick, [bytearray(size) for size in sizes], 0.5)
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    made = [libc.malloc(pick.randrange(16, 1100)) for _ in range(pick.randrange(300, 1200))]
    pick.shuffle(made)
    for pointer in made[: len(made) // 2]:
        libc.free(pointer)


def _disturb_types(pick: random.Random) -> None:
    made = []
    for number in range(pick.randrange(40, 160)):
        kind: Any = type(f"Kind{number}", (), {"value": number, "call": lambda self: None})
        kind.value, kind().call()
        made.append(kind)
    _keep_some(pick, made, 0.7)
    for base in _BASES:
        for _ in range(pick.randrange(40)):
            new_class("Made", (base,))


def _disturb_strings(pick: random.Random) -> None:
    """Have tables of the whole process filled to another degree: they are searched longer or shorter.

    Those of names, modules, loggers, and encodings, which keep what they have once found.
    """
    # longer than the names that `_part_names` leaves gaps for
    named = f"{'name':_<{_NAMES[-1]}}_{pick.randrange(10**9)}_{{}}".format
    names = [*map(sys.intern, map(named, range(pick.randrange(200, 20_000))))]
    for name in names[: len(sys.modules)]:
        sys.modules[name] = sys
        del sys.modules[name]
    if "logging" in sys.modules:  # not yet, before pytest is imported
        loggers = sys.modules["logging"].root.manager.loggerDict
        others = dict.fromkeys(names[: pick.randrange(200)])
        loggers |= others
        for name in others:
            del loggers[name]
    encodings = _ENCODINGS.split()
    for encoding in pick.sample(encodings, pick.randrange(len(encodings))):
        codecs.lookup(encoding)
    _kept.append(names[2000:])
    _keep_some(pick, names[:2000], 0.8)


def _disturb_code(pick: random.Random) -> None:
    lines = []
    for number in range(pick.randrange(10, 60)):
        lines.append(
            f"def function_{number}(a, b={number}, *, c='{number}'): return a + {number / 2}"
        )
        lines.append(f"class Class{number}:\n    x = {number}\n    def method(self): return self.x")
    namespace: dict[str, Any] = {"__name__": "layout"}
    exec(compile("\n".join(lines), "layout", "exec"), namespace)
    _kept.append(namespace)
