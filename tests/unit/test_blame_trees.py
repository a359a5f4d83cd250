"""The functions that cause a change, from two trees; and what makes the trees tell functions apart."""

import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import CodeType

import pytest

from pytest_instrcount.callgrind.inside.noting import noting_codes
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.blame import PythonBlame, find_blame
from pytest_instrcount.counts.python.tree import CallTree, Path

Rows = Mapping[Path, tuple[int, int]]


def tree(rows: Rows, counted: int = 1) -> CallTree:
    nodes = {path: Row(ir, calls) for path, (ir, calls) in rows.items()}
    return CallTree("trampolines", counted, nodes)


def doings(blame: PythonBlame) -> dict[str, int]:
    return {each.name: int(each.self_delta) for each in blame.functions if each.self_delta}


BEFORE: Rows = {
    ("t",): (100, 1),
    ("t", "f"): (200, 10),
    ("t", "f", "g"): (3000, 30),
    # frames of an event loop are called no times
    ("loop",): (10, 0),
    ("loop", "run"): (10, 0),
    ("loop", "run", "task"): (450, 10),
    # those of a thread have no caller
    ("thread",): (10, 5),
    ("thread", "work"): (200, 5),
}


@pytest.mark.parametrize(
    ("after", "found"),
    [
        pytest.param({}, {}, id="nothing changed"),
        pytest.param({("t",): (130, 1)}, {"t": 30}, id="own code of the test"),
        pytest.param({("t", "f"): (260, 10)}, {"f": 60}, id="own code of a function"),
        pytest.param({("t", "f", "g"): (3300, 30)}, {"g": 300}, id="own code of what is called"),
        pytest.param({("t", "f", "g"): (6000, 60)}, {"f": 3000}, id="calls another twice as often"),
        pytest.param(
            {("t", "f"): (400, 20), ("t", "f", "g"): (6000, 60)},
            {"t": 3200},
            id="its caller calls it twice as often",
        ),
        pytest.param({("t", "f", "h"): (500, 5)}, {"f": 500}, id="calls what it never called"),
        pytest.param({("t", "f", "g"): (0, 0)}, {"f": -3000}, id="calls another no more"),
        pytest.param(
            {("t", "f", "g"): (6600, 60)}, {"f": 3000, "g": 600}, id="more calls, each dearer"
        ),
        pytest.param({("t", "f", "g"): (3100, 60)}, {"f": 100}, id="the added calls are cheap"),
        pytest.param(
            {("t", "f", "g"): (2900, 15)}, {"f": -100}, id="the calls left out were cheap"
        ),
        pytest.param(
            {("t", "f", "g"): (2900, 60)}, {"f": 3000, "g": -3100}, id="more calls that cost less"
        ),
        pytest.param(
            {("loop", "run"): (10, 0), ("loop", "run", "task"): (900, 20)},
            {"run": 450},
            id="below what ran before the count",
        ),
        pytest.param(
            {("thread",): (20, 10), ("thread", "work"): (600, 10)},
            {"thread": 210, "work": 200},
            id="a thread that is started twice as often",
        ),
        pytest.param(
            {("loop", "run", "task"): (800, 10)}, {"task": 350}, id="dearer below what ran before"
        ),
    ],
)
def test_doing(after: Rows, found: dict[str, int]) -> None:
    blame = find_blame(tree(BEFORE), tree({**BEFORE, **after}))
    assert doings(blame) == found
    assert sum(each.self_delta for each in blame.functions) == blame.change


def test_what_was_small_is_named_itself() -> None:
    """A function that was 0.05 % of a test, and is 1 % now, is no folded branch of its caller's."""
    old = tree({**BEFORE, ("t",): (100_000, 1), ("t", "small"): (50, 1)}).fold()
    new = tree({**BEFORE, ("t",): (100_000, 1), ("t", "small"): (1000, 1)}).fold()
    assert doings(find_blame(old, new)) == {"small": 950}


def test_what_was_folded_is_its_callers_doing() -> None:
    old = tree({**BEFORE, ("t",): (100_000, 1), ("t", "small"): (5, 1)}).fold()
    new = tree({**BEFORE, ("t",): (100_000, 1), ("t", "small"): (1000, 1)}).fold()
    blame = find_blame(old, new)
    assert doings(blame) == {"t": 995}
    assert [(each.name, int(each.cost)) for each in blame.functions[0].called] == [("small", 1000)]


def test_numbers_are_per_call_of_the_test() -> None:
    thrice = {path: (ir * 3, calls * 3) for path, (ir, calls) in BEFORE.items()}
    assert find_blame(tree(BEFORE), tree(thrice, counted=3)).change == 0


def test_what_is_explained_is_at_most_all() -> None:
    blame = find_blame(tree(BEFORE), tree({**BEFORE, ("t",): (0, 1), ("t", "f"): (500, 10)}))
    assert doings(blame) == {"f": 300, "t": -100}
    assert blame.explained(1) == Fraction(1)


def test_inits_are_called_from_c() -> None:
    """Classes are as before to all who ask, and 3.13 does not run ``__init__`` in its caller's frame."""
    code = """
import dis, inspect, io, sys
from pytest_instrcount.callgrind.inside.trampolines import keep_inits_apart
class A:
    def __init__(self, x): self.x = x
class B(A):
    def __init__(self, x, y=2): super().__init__(x); A.__init__(self, x)
def make():
    for number in range(500): A(number)
make()
before = inspect.signature(B), B.__init__, A.__init__
keep_inits_apart()
make()
assert before == (inspect.signature(B), B.__init__, A.__init__)
assert B(7).x == 7
text = io.StringIO()
dis.dis(make, file=text, adaptive=True)
assert "ENTER_INIT" not in text.getvalue()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_methods_that_are_made_of_text_have_names() -> None:
    """Those of all dataclasses have one name and line, of all named tuples one, too."""
    code = """
import collections, dataclasses
from pytest_instrcount.callgrind.inside.trampolines import name_made_methods
@dataclasses.dataclass(order=True)
class A:
    x: int
    def double(self): return A(2 * self.x)
B = collections.namedtuple("B", "x")
name_made_methods()
made = [A.__init__, A.__lt__, A.__eq__, A.double, B.__new__]
assert [each.__code__.co_qualname for each in made] == [each.__qualname__ for each in made]
assert A.__init__.__qualname__ == "A.__init__" and B.__new__.__qualname__ == "B.__new__"
assert A(1) < A(2) == A(1).double() and B(3).x == 3
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


only_before_3_12 = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="CPython gives all code trampolines, none is noted"
)


@only_before_3_12
def test_code_that_a_waiting_thread_runs_is_noted() -> None:
    """In one that was started before; afterwards nothing of it is noted any more."""

    def work() -> None:
        pass

    def later() -> None:
        pass

    found: dict[int, CodeType] = {}
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with noting_codes(found):
            pool.submit(work).result()
        pool.submit(later).result()
        assert pool.submit(sys.getprofile).result() is None
    assert work.__code__ in found.values()
    assert later.__code__ not in found.values()


@only_before_3_12
def test_code_that_a_thread_runs_is_noted() -> None:
    """In one that is started meanwhile; what others had set for threads is there again."""

    def work() -> None:
        pass

    def run() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    found: dict[int, CodeType] = {}
    before = threading.getprofile()
    with noting_codes(found):
        run()
    assert {run.__code__, work.__code__} <= {*found.values()}
    assert threading.getprofile() is before
