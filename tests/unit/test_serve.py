"""Forking on order: what a child finds in memory does not depend on which others ended before it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")

#: Forks on the orders of its argument (F: fork, R: let a child go, X: end). Each child says how many
#: objects the collector has counted, and where new ones lie. What CPython keeps of freed tuples is used
#: up, as it may be when a file was imported.
SCRIPT = """
import gc, os, socket, sys
from pytest_instrcount.callgrind.channel import FORK, REAP
from pytest_instrcount.callgrind.inside.forking import Line, serve
from pytest_instrcount.callgrind.process import hand_line

ours, theirs = socket.socketpair()
hand, their_hand = socket.socketpair()
if os.fork():
    for order in sys.argv[1]:
        ours.sendall(order.encode())
        if order.encode() == FORK:
            print(hand_line(0, hand).channel.receive()["places"], flush=True)
    ours.close()
    os._exit(0)
from pytest_instrcount.callgrind.channel import Channel
line = Line(Channel(theirs), their_hand)
gc.collect()
kept = [tuple([n, n]) for n in range(3000)]
child = serve(line)
count, made = gc.get_count(), [bytes(size) for size in range(400)]
child.channel.send({"places": [*count, *map(id, made)]})
os._exit(0)
"""


@pytest.mark.parametrize("orders", ["FFRFRRFX", "FRFRFRX", "FRRFX", "FFFFRRRRFX"])
def test_a_child_finds_the_same_memory_whoever_ended_before_it(orders: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, orders],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    places = run.stdout.splitlines()
    assert len(places) == orders.count("F"), run.stderr
    assert len(set(places)) == 1
