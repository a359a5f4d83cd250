"""Many parts of the standard library, written after the estimator and never tuned for."""

import array
import ast
import base64
import bisect
import collections
import contextlib
import copy
import csv
import dataclasses
import datetime
import enum
import functools
import hashlib
import heapq
import io
import itertools
import json
import logging
import marshal
import math
import operator
import os
import pathlib
import pickle
import random
import re
import struct
import weakref
import zlib
from collections import ChainMap, Counter, OrderedDict, defaultdict, namedtuple
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

N, W = 123456, "word"
D, D2 = collections.deque(range(1000)), collections.deque(range(10))
FEW, MANY = list(range(10)), list(range(100))
HEAP = list(range(0, 2000, 3))
KEYS = [f"k{n}" for n in range(100)]
VIEW, VIEW2 = memoryview(bytes(1000)), memoryview(bytes(1000))
NEST = [[1, 2], {"a": [3]}, (4,)]


class Color(enum.Enum):
    red = 1
    green = 2


@functools.lru_cache
def cached(a):
    return a


@functools.lru_cache
def cached2(a, b, c):
    return a


X, Q = Decimal("1.25"), Decimal("0.1")
SMALL, BIG = b"abc" * 10, b"abcdefghij" * 200
BIG2 = BIG * 4
ROWS = ["a,b,c", 'd,"e e",f', "g,h,i", "1,2,3", "x,y,z"]
S1, S2, S3 = set(range(20)), set(range(10, 15)), set(range(5, 60))
D5, D6, D8 = dict.fromkeys(range(5)), dict.fromkeys(range(3, 9)), dict.fromkeys(range(40))
TABLE = {ord("w"): "v", ord("d"): None}
BIGINT = 3**200
R = random.Random(1)
LOG = logging.getLogger("quiet")
LOG.setLevel(50)
P = namedtuple("P", "x y")


@dataclasses.dataclass
class DC:
    x: int
    y: int


POINTS = [DC(n * 7 % 10, 1) for n in range(10)]
GETX = operator.attrgetter("x")
IG1, IG3 = operator.itemgetter(1), operator.itemgetter(1, 2, 3)


class Ref:
    pass


REFS = [Ref(), Ref()]
WD = weakref.WeakValueDictionary({1: REFS[0], 2: REFS[1]})
F1, F2 = Fraction(1, 3), Fraction(2, 7)
PP = pathlib.PurePosixPath("/x/y")
TEXT = "the quick brown fox jumped over the lazy dog " * 10
LINES = "line\n" * 40


def gen():
    while True:
        yield 1


G = gen()


async def co(n):
    if n > 1:
        await co(n - 1)


def run(c):
    try:
        c.send(None)
    except StopIteration:
        pass


class Base:
    __slots__ = ("slot",)

    def plain(self):
        return 1

    def up(self):
        return 1

    @property
    def prop(self):
        return 1


OBJ = Base()
OBJ.slot = 1


class Sub(Base):
    def up(self):
        return super().up()


SUB = Sub()


class UG_:
    def __getitem__(self, i):
        return i


UG = UG_()
RX = re.compile("o")
UNI = "d\u00e9j\u00e0 vu \u20ac " * 4
UNIB = UNI.encode()
FLOATS = [n / 7 for n in range(100)]
PAD = " " * 60 + "a" + " " * 60
DD, DD2 = defaultdict(int, a=1), defaultdict(int)
CM = ChainMap({"a": 1}, {"b": 2}, {"z": 3})

# deque_rotate: times=20 rounds=6
D.rotate(1)
# becomes
D.rotate(700)

# deque_append: times=20 rounds=6
D2.append(N)
D2.popleft()
# becomes
D2.append(N)
D2.popleft()
D2.append(N)
D2.popleft()

# heap_push: times=10 rounds=8
heapq.heappush(HEAP, 5)
heapq.heappop(HEAP)
# becomes
heapq.heapreplace(HEAP, heapq.heappop(HEAP))
heapq.heappush(HEAP, 5)

# bisect_str: times=20 rounds=5
bisect.bisect(KEYS[:4], "k3")
# becomes
bisect.bisect(KEYS, "k3")

# memoryview_cmp: times=20 rounds=10
VIEW[:40] == VIEW2[:40]
# becomes
VIEW[:400] == VIEW2[:400]

# array_extend: times=10 rounds=9
array.array("i", FEW)
# becomes
array.array("i", MANY)

# stringio: times=10 rounds=12
s = io.StringIO()
s.write(W)
s.getvalue()
# becomes
s = io.StringIO()
s.write(W * 40)
s.write(W)
s.getvalue()

# deepcopy: times=2 rounds=30
copy.deepcopy(FEW)
# becomes
copy.deepcopy(NEST)

# enum_value: times=20 rounds=20
Color(2)
# becomes
Color["green"]
Color(2)

# lru_hit: times=20 rounds=20
cached(1)
# becomes
cached(1)
cached2(1, 2, 3)

# abc_isinstance: times=20 rounds=20
isinstance(FEW, list)
# becomes
isinstance(FEW, Sequence)

# decimal: times=10 rounds=12
Decimal(N) + X
# becomes
(Decimal(N) + X).quantize(Q)

# datetime_iso: times=20 rounds=12
datetime.datetime.fromisoformat("2020-01-02")
# becomes
datetime.datetime.fromisoformat("2020-01-02T03:04:05.678901+01:00")

# struct: times=20 rounds=12
struct.pack("<ii", 1, 2)
# becomes
struct.pack("<iiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8)

# sha: times=5 rounds=10
hashlib.sha256(SMALL).digest()
# becomes
hashlib.sha256(BIG).digest()

# zlib: times=1 rounds=60
zlib.compress(SMALL, 1)
# becomes
zlib.compress(BIG, 1)

# csv: times=5 rounds=20
list(csv.reader(ROWS[:2]))
# becomes
list(csv.reader(ROWS))

# set_and: times=10 rounds=12
S1 & S2
# becomes
S1 & S3

# dict_or: times=10 rounds=12
D5 | D6
# becomes
D5 | D6 | D5

# translate: times=20 rounds=12
W.translate(TABLE)
# becomes
(W * 4).translate(TABLE)

# join_gen: times=20 rounds=12
",".join(KEYS[:5])
# becomes
",".join(k for k in KEYS[:5])

# bigpow: times=10 rounds=12
pow(BIGINT, 3)
# becomes
pow(BIGINT, 5)

# modpow: times=20 rounds=12
pow(N, 77, 1000003)
# becomes
pow(N, 7777777, 1000003)

# comb: times=20 rounds=12
math.comb(20, 3)
# becomes
math.comb(80, 9)

# rand: times=20 rounds=12
R.random()
# becomes
R.gauss(0, 1)

# log_off: times=20 rounds=12
LOG.isEnabledFor(10)
# becomes
LOG.debug("x %s", W)

# suppress: times=20 rounds=12
W.upper()
# becomes
with contextlib.suppress(KeyError):
    W.upper()

# namedtuple: times=20 rounds=12
P(1, 2)
# becomes
P(1, 2)._replace(x=3)

# dataclass_eq: times=20 rounds=12
DC(1, 2) == DC(1, 2)
# becomes
DC(1, 2) == DC(1, 2) == DC(1, 2)

# attrgetter: times=10 rounds=12
sorted(POINTS, key=GETX)
# becomes
sorted(POINTS, key=lambda p: p.x)

# product: times=10 rounds=12
list(itertools.product(FEW[:3], repeat=2))
# becomes
list(itertools.product(FEW[:5], repeat=2))

# reduce: times=10 rounds=12
functools.reduce(operator.add, FEW)
# becomes
functools.reduce(lambda a, b: a + b, FEW)

# itemgetter: times=20 rounds=12
IG1(FEW)
# becomes
IG3(FEW)

# weakdict: times=20 rounds=12
WD.get(1)
# becomes
WD.get(1)
WD.get(2)

# fraction: times=5 rounds=20
F1 + F2
# becomes
F1 + F2 + F1

# path_join: times=10 rounds=20
PP / "a"
# becomes
PP / "a" / "b"

# base64: times=10 rounds=12
base64.b64encode(SMALL)
# becomes
base64.b64encode(BIG)

# bytes_find: times=10 rounds=12
BIG.find(b"q")
# becomes
BIG2.find(b"q")

# str_count: times=20 rounds=12
TEXT[:50].count("e")
# becomes
TEXT.count("e")

# gen_send: times=20 rounds=12
G.send(None)
# becomes
G.send(None)
G.send(None)
G.send(None)

# coro: times=20 rounds=12
run(co(1))
# becomes
run(co(4))

# property_: times=30 rounds=12
OBJ.slot
# becomes
OBJ.prop

# super_: times=30 rounds=12
SUB.plain()
# becomes
SUB.up()

# user_getitem: times=30 rounds=12
FEW[3]
# becomes
UG[3]

# in_list: times=10 rounds=12
"k3" in KEYS
# becomes
"k90" in KEYS

# make_class: times=2 rounds=30
type("A", (), {})
# becomes
type("A", (Base,), {"x": 1, "f": len})

# slice_copy: times=20 rounds=12
MANY[:10]
# becomes
MANY[:90]

# insert0: times=10 rounds=12
L = MANY[:]
L.insert(50, 1)
# becomes
L = MANY[:]
L.insert(0, 1)
L.insert(0, 1)

# dict_copy: times=10 rounds=12
D5.copy()
# becomes
D8.copy()

# splitlines: times=5 rounds=20
TEXT.splitlines()
# becomes
LINES.splitlines()

# re_subf: times=10 rounds=20
RX.sub("x", W)
# becomes
RX.sub(lambda m: "x", W)

# missing_attr: times=20 rounds=12
getattr(OBJ, "slot", None)
# becomes
getattr(OBJ, "nope", None)

# chained: times=10 rounds=12
try:
    raise KeyError
except KeyError:
    pass
# becomes
try:
    try:
        raise KeyError
    except KeyError as e:
        raise ValueError from e
except ValueError:
    pass

# alive: times=10 rounds=12
[[] for _ in FEW]
# becomes
[[[]] for _ in FEW]

# listdir: times=20 rounds=12
os.fspath(".")
# becomes
os.path.join("a", "b")

# utf8: times=20 rounds=12
W.encode()
# becomes
UNI.encode()

# utf8_decode: times=20 rounds=12
SMALL.decode("latin-1")
# becomes
UNIB.decode()

# int_parse: times=20 rounds=12
int("12")
# becomes
int("123456789012345678901234567890")

# float_parse: times=20 rounds=12
float("1.5")
# becomes
float("1.2345678901234567e-30")

# sum_floats: times=20 rounds=12
sum(FLOATS[:10])
# becomes
sum(FLOATS)

# min_key: times=10 rounds=12
min(FEW)
# becomes
min(FEW, key=abs)

# zip_: times=10 rounds=12
list(zip(FEW, FEW))
# becomes
list(zip(FEW, FEW, FEW, strict=True))

# enumerate_: times=10 rounds=12
list(FEW)
# becomes
list(enumerate(FEW))

# rev: times=10 rounds=12
FEW[::-1]
# becomes
list(reversed(MANY))

# chars: times=10 rounds=12
list(W)
# becomes
list(TEXT)

# fmt_percent: times=20 rounds=12
"%s" % W
# becomes
"%s %10.3f %r" % (W, 1.5, W)

# str_replace: times=10 rounds=12
TEXT.replace("zz", "y")
# becomes
TEXT.replace("e", "ee")

# case: times=10 rounds=12
W.lower()
# becomes
TEXT.lower()

# strip: times=20 rounds=12
"  a ".strip()
# becomes
PAD.strip()

# startswith: times=20 rounds=12
W.startswith("w")
# becomes
W.startswith(("a", "b", "c", "d", "e", "w"))

# frozenset_hash: times=10 rounds=12
hash(frozenset(FEW))
# becomes
hash(frozenset(MANY))

# tuple_hash: times=20 rounds=12
hash((1, 2))
# becomes
hash((1, 2, "a", "b", (3, 4)))

# counter: times=3 rounds=20
Counter(W)
# becomes
Counter(TEXT)

# ordered: times=10 rounds=12
OrderedDict(a=1)
# becomes
o = OrderedDict(a=1, b=2)
o.move_to_end("a")

# defaultdict_: times=20 rounds=12
DD["a"]
# becomes
DD2["a"]
DD2.pop("a")

# chainmap: times=10 rounds=12
CM["a"]
# becomes
CM["z"]

# json_dumps: times=2 rounds=20
json.dumps(FEW)
# becomes
json.dumps(FEW, indent=1)

# pickle_: times=5 rounds=12
pickle.dumps(FEW)
# becomes
pickle.dumps(MANY)

# marshal_: times=5 rounds=12
marshal.dumps(FEW)
# becomes
marshal.dumps(MANY)

# ast_: times=1 rounds=40
ast.literal_eval("1")
# becomes
ast.literal_eval("[1, 2]")

# compile_: times=1 rounds=40
compile("a", "f", "eval")
# becomes
compile("a + b", "f", "eval")
