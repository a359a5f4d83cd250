"""Timer beside torch's own: whether counts are the same, and what a statement costs.

    tox -e torch

Five statements are counted by ``pytest_instrcount.Timer`` and by ``torch.utils.benchmark.Timer``, with
100 runs each, under the same Valgrind and with the same variables. Printed are counts, their
difference and wall times. Ends with 1 if a count differs by more than 0.5 %, or if a statement takes
more than a tenth of torch's time: on average over the run, in which torch is imported once.

The statements are ones that do some work beside looking up names and allocating small blocks: what
that costs depends on what else is in memory, and torch's process holds other things. Statements that
do little else differ by up to 3 %, and so do torch's own counts from each other. ``--all`` shows some of
those as well, and judges none of them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

LIMIT, TENTH = 0.005, 0.1

STATEMENTS = (
    ("fib(12)", "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)"),
    ("sorted(data)", "import random; random.seed(1); data = random.sample(range(9999), 1000)"),
    ("re.search('[a-z]+ling', text)", "import re; text = 'a long way to go in the morning. ' * 30"),
    ("x + y", "x = torch.ones(200, 200); y = torch.ones(200, 200)"),
    ("torch.relu(x @ y)", "x = torch.ones(100, 100); y = torch.ones(100, 100)"),
)
SMALL = (
    ("sum(range(1000))", "pass"),
    ("re.findall('[a-z]+ing', text)", "import re; text = 'a long way to go in the morning. ' * 30"),
    ("[str(i) for i in range(50)]", "pass"),
    ("x + y", "x = torch.ones(8); y = torch.ones(8)"),
)


def timed(make: Callable[..., Any], stmt: str, setup: str) -> tuple[int, float]:
    """Instructions of 100 runs, and seconds."""
    start = time.perf_counter()
    stats = make(stmt, setup).collect_callgrind(number=100)
    return stats.counts(), time.perf_counter() - start


def compare(stmt: str, setup: str) -> tuple[float, float, float]:
    """Count a statement twice, print, and return the difference as a fraction, and both times."""
    from torch.utils.benchmark import Timer as TorchTimer

    from pytest_instrcount import Timer

    ir, seconds = timed(Timer, stmt, setup)
    torch_ir, torch_seconds = timed(TorchTimer, stmt, setup)
    delta = ir / torch_ir - 1
    print(
        f"{stmt:36}{ir:>12,}{torch_ir:>12,}{delta:>+9.3%}"
        f"{seconds:>8.1f} s{torch_seconds:>8.1f} s{seconds / torch_seconds:>8.3f}",
        flush=True,
    )
    return delta, seconds, torch_seconds


def main() -> int:
    """Compare all and judge."""
    from pytest_instrcount.callgrind.command import FIXED

    # torch starts "python" with the variables of this process; these are what Timer sets itself.
    os.environ.update(FIXED)
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    import torch

    print(f"CPython {sys.version.split()[0]}, torch {torch.__version__}, 100 runs each")
    print(f"{'':36}{'Timer':>12}{'torch':>12}{'delta':>9}{'Timer':>10}{'torch':>10}{'ratio':>8}")
    results = [compare(*statement) for statement in STATEMENTS]
    worst = max(abs(delta) for delta, _, _ in results)
    ours, theirs = sum(row[1] for row in results), sum(row[2] for row in results)
    mean = ours / len(results), theirs / len(results)
    print(f"largest difference {worst:.3%} (limit {LIMIT:.1%})")
    print(f"wall time per statement {mean[0]:.1f} s, torch {mean[1]:.1f} s: {ours / theirs:.3f}")
    if "--all" in sys.argv[1:]:
        for statement in SMALL:
            compare(*statement)
    return int(worst > LIMIT or ours > TENTH * theirs)


if __name__ == "__main__":
    sys.exit(main())
