"""What would come from the system's generator of random numbers comes from a seed."""

from __future__ import annotations

import subprocess
import sys

DRAW = """
import os, sys
from pytest_instrcount.callgrind.system_random import name_process, replace_system_random

replace_system_random()
import random, secrets, tempfile, uuid

def draw():
    own, other = random.Random(), random.Random()
    assert own.random() != other.random()
    random.seed()
    return [
        *(os.urandom(5).hex(), secrets.token_hex(4), uuid.uuid4().hex, str(random.SystemRandom().random())),
        *(str(own.random()), str(random.random()), tempfile.mktemp(), str(random.Random(3).random())),
    ]

for name in sys.argv[1:]:
    name_process(name)
    print(*draw(), flush=True)  # or each fork would print it, too
for _ in range(2):
    if not os.fork():
        print(*draw(), flush=True)
        os._exit(0)
    os.wait()
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
    assert first[0][:6] == first[2][:6]  # tempfile has a generator since the first
    assert first[1][:6] == again[0][:6]
    assert drawn("two") == again
    lists = [first[0], first[1], *first[3:5]]
    assert all(len(set(each)) == len(lists) for each in zip(*[each[:-1] for each in lists]))
    assert len({each[-1] for each in lists}) == 1, "what has a seed keeps it"
    assert again[-1] == ["0"]
