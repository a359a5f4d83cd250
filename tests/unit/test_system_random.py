"""What would come from the system's generator of random numbers comes from a seed."""

from __future__ import annotations

import subprocess
import sys

DRAW = """
import os, sys
from pytest_instrcount.callgrind.system_random import _native, name_process, replace_system_random

replace_system_random()
import ctypes, random, secrets, tempfile, uuid

libc, buffer = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(8)

def native():
    said = libc.getrandom(buffer, 8, 0), buffer.raw, libc.getentropy(buffer, 8), buffer.raw
    assert (*said[::2], libc.syscall(318, buffer, 8, 0)) == (8, 0, 8)
    return b"".join([*said[1::2], buffer.raw]).hex()

def draw():
    own, other = random.Random(), random.Random()
    assert own.random() != other.random()
    random.seed()
    return [
        native(),
        *(os.urandom(5).hex(), secrets.token_hex(4), uuid.uuid4().hex, str(random.SystemRandom().random())),
        *(str(own.random()), str(random.random()), tempfile.mktemp(), str(random.Random(3).random())),
    ]

for name in sys.argv[1:]:
    name_process(name)
    print(*draw(), flush=True)  # or each fork would print it, too
assert (libc.syscall(39), libc.syscall(3, -1), ctypes.get_errno()) == (os.getpid(), -1, 9)
before = [state.value for state in _native]
for _ in range(2):
    if not os.fork():
        print(*draw(), flush=True)
        os._exit(0)
    os.wait()
assert [state.value for state in _native] == before, "a fork has its own"
try:
    os.urandom(-1)
except ValueError:
    print(len(os.urandom(0)))
"""


def drawn(*names: str) -> list[list[str]]:
    """What processes of these names draw, then two forks of the last."""
    command = [sys.executable, "-c", DRAW, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def test_a_name_stands_for_its_numbers() -> None:
    """Equal in the next run, and in this one whatever was drawn before; others in processes of other names."""
    first, again = drawn("one", "two", "one"), drawn("two")
    assert first[0][:7] == first[2][:7]  # tempfile has a generator since the first
    assert first[1][:7] == again[0][:7]
    assert drawn("two") == again
    lists = [first[0], first[1], *first[3:5]]
    assert all(len(set(each)) == len(lists) for each in zip(*[each[:-1] for each in lists]))
    assert len({each[-1] for each in lists}) == 1, "what has a seed keeps it"
    assert again[-1] == ["0"]
