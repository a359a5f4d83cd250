"""The functions that cause a change, with real Valgrind: through trampolines, and through the tracer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.gate.store.baseline import load_baseline
from pytest_instrcount.gate.store.schema import Baseline

Run = Callable[..., tuple[pytest.RunResult, dict[str, Any]]]

SHOP = """
    class Item:
        def __init__(self, number): self.number = number
        def price(self):
            return sum(range(self.number))

    class Order:
        def __init__(self, items): self.items = items
        def total(self):
            return sum(item.price() for item in self.items)
        def check(self):
            return len(self.items) > 0

    def run(number):
        order = Order([Item(n) for n in range(number)])
        order.check()
        return order.total()
"""
TESTS = """
    import os, pytest, shop

    @pytest.mark.instrcount
    def test_plain():
        shop.run(30)

    @pytest.fixture
    def number():
        return 20

    @pytest.mark.instrcount
    def test_fixture(number):
        shop.run(number)

    def test_call(instrcount):
        instrcount(shop.run, 10)

    @pytest.mark.instrcount
    def test_forks():
        pid = os.fork()
        if pid == 0:
            shop.run(3)
            os._exit(0)
        os.waitpid(pid, 0)
        shop.run(30)
"""


def maps(project: pytest.Pytester) -> list[Path]:
    """Maps that processes of this project have left."""
    here = str(project.path).encode()
    return [path for path in Path("/tmp").glob("perf-*.map") if here in path.read_bytes()]


def write(project: pytest.Pytester, check: str) -> None:
    project.makepyfile(shop=SHOP.replace("return len(self.items) > 0", check))


@pytest.fixture
def suite(project: pytest.Pytester) -> pytest.Pytester:
    """Four tests of one module, one of each kind, and one that forks."""
    project.makepyfile(test_shop=TESTS)
    write(project, "return len(self.items) > 0")
    return project


def test_the_culprit_is_named(suite: pytest.Pytester, run: Run) -> None:
    """Not what is called more often, but what calls it; with its place, and no map is left."""
    suite.runpytest_subprocess("--instrcount-update-baseline").assert_outcomes(passed=4)
    stored = load_baseline(next(Path(suite.path).rglob("test_plain-*.json")))
    assert isinstance(stored, Baseline) and stored.python is not None
    rows = list(stored.python.rows())
    assert stored.python.how == "trampolines"
    assert rows[0][:2] == (0, "test_shop.py:test_plain")
    assert [row[3] for row in rows if row[1] == "shop.py:Item.price"] == [30 * stored.calls]
    # the parts add up to the whole and what trampolines cost: from 3.12 on calls lose a shortcut
    little = 0.2 if sys.version_info < (3, 12) else 0.4 if sys.version_info < (3, 14) else 0.3
    assert sum(row[2] for row in rows) == pytest.approx(stored.total_ir, rel=little)

    write(suite, "return len(self.items) > 0 and self.total() > 0")
    result, tests = run()
    assert {each["verdict"] for each in tests.values()} == {"regressed"}
    text = result.stdout.str()
    assert text.count(": Order.check shop.py:10 calls Order.total (1 a call), before never") == 4
    assert text.count("shop.py:10 Order.check") == 1  # of one cause the rest is told once
    result.stdout.fnmatch_lines(
        [
            "  by Python function (trampolines), share of the change:",
            "    * %  shop.py:10 Order.check",
            "      calls Order.total (1 a call), before never (line 11)",
            "        return len(self.items) > 0 and self.total() > 0",
            "                                       ^^^^^^^^^^^^",
            "  by C function, share of the change, its own and with what it calls:",
            "  calls added: *evaluation loop * -> *",
        ]
    )
    assert not maps(suite)


@pytest.mark.long
def test_the_tracer_names_it_too(suite: pytest.Pytester, run: Run) -> None:
    """By calls alone, where there are no trampolines; and never against a tree of the other kind.

    An edit elsewhere names nobody: where nothing regressed, nothing is measured by Python function.
    """
    suite.runpytest_subprocess(
        "--instrcount-update-baseline", "--instrcount-blame=tracer", "-k", "plain or fixture"
    ).assert_outcomes(passed=2)
    suite.makepyfile(shop="# a comment\n" + (suite.path / "shop.py").read_text())
    result, tests = run("-k", "plain or fixture")
    assert {each["verdict"] for each in tests.values()} == {"unchanged"}
    result.stdout.no_fnmatch_line("*by Python function*")
    write(suite, "return len(self.items) > 0 and self.total() > 0")
    result, _ = run("-k", "plain or fixture")
    result.stdout.fnmatch_lines(
        [
            "  by Python function (calls alone, by the tracer), share of the change:",
            "    * %  shop.py:10 Order.check",
            "      calls Order.total (1 a call), before never (line 11)",
        ]
    )


@pytest.mark.long
def test_allocations_have_a_limit_of_their_own(project: pytest.Pytester, run: Run) -> None:
    """Five more objects, each with a tuple of arguments: ten are within ten, and beyond none."""
    project.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.instrcount(max_delta="50%", max_allocs_delta=0)
        def test_none(): keep = [bytes(n) for n in range(100, 200)]

        @pytest.mark.instrcount(max_delta="50%", max_allocs_delta=10)
        def test_ten(): keep = [bytes(n) for n in range(100, 200)]
        """
    )
    stored = project.runpytest_subprocess("--instrcount-update-baseline", "--instrcount-blame=off")
    if "no symbols" in stored.stdout.str():  # Debian's own Python
        stored.assert_outcomes(passed=2, errors=2)
        stored.stdout.fnmatch_lines(["instrcount: this Python has no symbols*[[]allocations]"])
        return
    stored.assert_outcomes(passed=2)
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("200)", "205)"))
    result, tests = run("--instrcount-blame=off")
    assert [each["verdict"] for each in tests.values()] == ["regressed", "unchanged"]
    result.stdout.fnmatch_lines(
        ["allocations * -> * a call (limit 0): *", "  test_none: mean Ir *"]
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the stubs are for 3.11")
def test_stubs_leave_a_program_as_it_is() -> None:
    """Exceptions, generators, recursion and threads go through the hook, with and without a stub."""
    code = """if True:
        import os, sys, threading
        from pytest_instrcount.callgrind.inside.trampolines import EvaluatorTrampolines

        def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
        def numbers():
            try: yield 1; yield 2
            except KeyError: yield 3
        def body(found):
            made = numbers(); next(made)
            found += [made.throw(KeyError("x")), depth(300), sorted("ba", key=str.upper)]
            try: int("x")
            except ValueError as error: found.append(type(error))
        def once(): body([])

        trampolines = EvaluatorTrampolines(sys.argv[1])
        with trampolines.learn():
            once()
        trampolines.start()
        found = []
        body(found)
        new = eval("lambda: body([]) or len([depth(5)])")
        thread = threading.Thread(target=body, args=(found,)); thread.start(); thread.join()
        assert new() == 1
        trampolines.stop()
        body(found)
        assert found == [3, 300, ["a", "b"], ValueError] * 3, found
        names = open(f"{sys.argv[1]}/names.{os.getpid()}").read()
        assert "depth:" in names and "numbers:" in names, names
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", code, folder], check=True)
