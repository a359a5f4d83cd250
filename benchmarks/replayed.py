"""Pytest with --instrcount whose measurements are answered from a record: the native side alone.

    python benchmarks/replayed.py record FOLDER USED ARGS...
    python benchmarks/replayed.py replay FOLDER USED ARGS...

``record`` runs pytest as ever and keeps in FOLDER what the zygote answered, with the dumps: for each
first parameter of a test (``name`` of ``test_x[name-7]``), in each layout of memory and by Python
function. ``replay`` starts no Valgrind and gives these answers to all tests. Both write USED, a JSON
file: seconds of CPU time of this process (``cpu``), without those that the record itself took
(``replaying``), its peak of memory in bytes (``peak``), how often a baseline was opened for
reading, the most that one was (``reads``), and how long some work that is always the same took
on average, done once for each answer (``turn``, seconds of CPU time; 0 where there was none).
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.launch import ZygoteSetup
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.scratch import take_scratch
from pytest_instrcount.callgrind.zygote import Problem, Zygote
from pytest_instrcount.session import zygote as session_zygote
from pytest_instrcount.session.answers import collector_paused

FILES = "dumps", "names"


def key_of(order: Order) -> str:
    """What decides an answer: the workload, and the layout or that it is by Python function.

    With ``REPLAY_BY_TEST`` set each test is a workload of its own.
    """
    workload = order.nodeid.partition("[")[2].rstrip("]").partition("-")[0]
    if "REPLAY_BY_TEST" in os.environ:
        workload = hashlib.sha256(order.nodeid.encode()).hexdigest()[:16]
    return f"{workload}.{'python' if order.by_python else order.layout}"


class Recording(Zygote):
    """The zygote, which keeps the first answer of each kind."""

    folder: Path

    def ask(self, orders: Sequence[Order]) -> int:
        """As the zygote does."""
        first = super().ask(orders)
        known = self.__dict__.setdefault("orders", {})
        known |= {first + offset: order for offset, order in enumerate(orders)}
        return first

    def wait(self, index: int, poll: Callable[[], None]) -> Answer | Problem:
        """As the zygote does."""
        answer = super().wait(index, poll)
        order = self.__dict__["orders"][index]
        folder = self.folder / key_of(order)
        if "REPLAY_BY_TEST" in os.environ and folder.exists():
            return replayed(folder, order, index, self._scratch)
        if isinstance(answer, dict) and answer["counted"] and not folder.exists():
            folder.mkdir(parents=True)
            kept: dict[str, Any] = dict(answer)
            for kind in FILES:
                # the map of a process is named twice where it is its own counter
                kept[kind] = [shutil.copy(path, folder) for path in dict.fromkeys(kept[kind])]
            text = json.dumps({"nodeid": order.nodeid, "answer": kept})
            (folder / "answer.json").write_text(text)
        return answer


def replayed(folder: Path, order: Order, index: int, scratch: Path) -> Answer:
    """A recorded answer as it would have come over the line, with dumps of its own."""
    found = json.loads((folder / "answer.json").read_text())
    answer = json.loads(
        json.dumps(found["answer"]).replace(json.dumps(found["nodeid"]), json.dumps(order.nodeid))
    )
    for kind in FILES:
        copies = []
        for number, source in enumerate(answer[kind]):
            copy = scratch / "dumps" / f"{kind}.{index}.{number}.again"
            os.link(source, copy)
            copies.append(str(copy))
        answer[kind] = copies
    told: Answer = answer
    return told


class Replaying:
    """In the place of the zygote.

    ``seconds`` is the CPU time of all there were, with ``turning`` for ``turns`` of the reference.
    """

    folder: Path
    seconds = turning = 0.0
    turns = 0

    def __init__(self, setup_in: Callable[[Path], ZygoteSetup]) -> None:
        self._scratch = take_scratch()
        setup_in(self._scratch.path)
        self._orders: list[Order] = []
        self.ready = True
        self.running: set[int] = set()

    def ask(self, orders: Sequence[Order]) -> int:
        """Note the orders."""
        first = len(self._orders)
        self._orders += orders
        return first

    def wait(self, index: int, poll: Callable[[], None]) -> Answer:
        """The recorded answer."""
        start = time.process_time()
        order = self._orders[index]
        answer = replayed(self.folder / key_of(order), order, index, self._scratch.path)
        Replaying.turning += reference_turn()
        Replaying.turns += 1
        Replaying.seconds += time.process_time() - start
        return answer

    def end(self) -> None:
        """Remove the folder of the run."""
        start = time.process_time()
        self._scratch.remove()
        os.close(self._scratch.lock)
        Replaying.seconds += time.process_time() - start


def reference_turn() -> float:
    """Seconds of CPU time for what takes the same work each time: they tell how fast the machine is."""
    with collector_paused():
        start = time.process_time()
        lines = [f"{number} {number * number}" for number in range(500)]
        rows = {line: tuple(map(int, line.split())) for line in lines}
        sum(first + second for first, second in rows.values())
        return time.process_time() - start


def count_reads() -> Counter[str]:
    """From now on, how often each baseline was opened for reading."""
    reads: Counter[str] = Counter()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and not isinstance(args[0], int):
            path = os.fsdecode(args[0])
            if "instrcount_baselines/" in path and not args[2] & (os.O_WRONLY | os.O_RDWR):
                reads[path] += path.endswith(".json")

    sys.addaudithook(hook)
    return reads


def main() -> None:
    """Run pytest as ``python -m pytest`` does, then write what it used."""
    how, folder, used, *args = sys.argv[1:]
    sys.path[0] = os.getcwd()
    made: Any = {"record": Recording, "replay": Replaying}[how]
    made.folder = Path(folder)
    vars(session_zygote)["Zygote"] = made
    reads = count_reads()
    status = pytest.main(args)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "cpu": usage.ru_utime + usage.ru_stime - Replaying.seconds,
        "replaying": Replaying.seconds,
        "peak": usage.ru_maxrss * 1024,
        "turn": Replaying.turning / Replaying.turns if Replaying.turns else 0.0,
        "reads": max(reads.values(), default=0),
    }
    Path(used).write_text(json.dumps(found))
    sys.exit(status)


if __name__ == "__main__":
    main()
