"""Random numbers that the system would give, other ones in each run, come from a seed instead.

Libraries have generators of their own, as sympy and tempfile; NumPy, ``secrets`` and ``uuid`` ask the system.
So does Rust, for the key of each hash map.
"""

from __future__ import annotations

import _random
import os
import random
import sys
from collections import Counter
from typing import Any

from pytest_instrcount.callgrind.command import CHILD_VARIABLE
from pytest_instrcount.callgrind.native_random import State, replace_native_random

#: What stands for the system's generator, and the seeds that others got, by module.
_system = _random.Random()
_seeded: Counter[str] = Counter()
#: What stands for it where code in C and Rust asks, if anything does.
_native: list[State] = []
#: The name of this process, and its forks so far.
_name, _forks = [""], [0]
_seed = random.Random.seed


def replace_system_random() -> None:
    """In this process and its forks; children that are not forked ask the system as ever."""
    _native[:] = replace_native_random()
    seed_system("")
    os.urandom = _urandom
    vars(random)["_urandom"] = _urandom
    random.Random.seed = _seed_generator  # type: ignore[method-assign] # of all generators there are
    random.seed = random._inst.seed
    os.register_at_fork(before=_count_fork, after_in_child=_seed_fork)


def name_process(name: str) -> None:
    """Tell tests the name of this process, whose random numbers of the system are its own."""
    os.environ[CHILD_VARIABLE] = name
    random.seed(0)
    seed_system(name)


def seed_system(name: str) -> None:
    """Begin anew: equal in processes of one name, and different in those of others."""
    _name[0], _forks[0] = name, 0
    _seeded.clear()
    _system.seed(int.from_bytes(name.encode()))
    for state in _native:
        state.value = _system.getrandbits(64)


def _count_fork() -> None:
    _forks[0] += 1


def _seed_fork() -> None:
    seed_system(f"{_name[0]} {_forks[0]}")


def _urandom(size: int, /) -> bytes:
    return _system.getrandbits(size * 8).to_bytes(size, "little")


def _seed_generator(self: random.Random, a: Any = None, version: int = 2) -> None:
    """``random.Random.seed``: without a seed it takes one that depends on who asks, and how often."""
    if a is None:
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") == "random" and frame.f_back is not None:
            frame = frame.f_back
        module = str(frame.f_globals.get("__name__"))
        _seeded[module] += 1
        a = f"{_name[0]} {module} {_seeded[module]}"
    _seed(self, a, version)
