"""Files of Callgrind's format that we write: dumps joined, baselines and trees, read back."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.outfile import Function, header_lines, join_dumps, write_costs
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row, sum_profiles
from pytest_instrcount.counts.python.tree import TRACER, TRAMPOLINES, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.report.callgrind import CALLED, CALLERS, baseline_profile, python_profile

DATA = Path(__file__).parents[1] / "data" / "callgrind"


def read(data: bytes) -> Profile:
    return parse_profile(StringIO(data.decode(), newline="\n"))


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("name", ["cp311-json", "cp310-jumps", "cp312-events", "cp311-stripped"])
def test_joined_dumps_are_their_sum(name: str, times: int) -> None:
    """In one part, with one header that names the test."""
    dump = DATA / f"{name}.out"
    header = header_lines("test_x.py::test_a", ["Counted: 3 calls", "two\nlines"])
    joined = join_dumps([dump] * times, header)
    assert read(joined) == sum_profiles([parse_profile(dump)] * times)
    lines = joined.decode().splitlines()
    assert lines[:6] == [
        "# callgrind format",
        "version: 1",
        "creator: pytest-instrcount",
        "cmd: test_x.py::test_a",
        "desc: Counted: 3 calls",
        "desc: two lines",
    ]
    for once in ("version:", "events:", "positions:", "summary:", "totals:", "cmd:"):
        assert sum(line.startswith(once) for line in lines) == 1
    sums = {line.partition(": ")[2] for line in lines if line.startswith(("summary:", "totals:"))}
    assert len(sums) == 1


def test_dumps_of_several_processes_can_differ() -> None:
    """What counts other events is not added up."""
    dumps = [DATA / "cp311-json.out", DATA / "cp312-events.out"]
    with pytest.raises(InstrcountError, match="cp312-events") as caught:
        join_dumps(dumps, [])
    assert caught.value.slug == "profile-damaged"


@pytest.mark.parametrize("text", ["", "events: Ir\nfn=f\n1 2\n", "totals: 2\nevents: Ir\n"])
def test_half_a_dump_is_not_joined(tmp_path: Path, text: str) -> None:
    """No events, no totals, or both in the wrong order."""
    (tmp_path / "out.1").write_text(text)
    with pytest.raises(InstrcountError, match="profile-damaged"):
        join_dumps([tmp_path / "out.1"], [])


names = st.text(st.characters(codec="utf-8", exclude_characters="'[]/"), max_size=8)


@given(st.dictionaries(st.tuples(names, names), st.integers(1, 10**12), max_size=6))
def test_any_name_can_be_written(costs: dict[tuple[str, str], int]) -> None:
    """Nothing in a name breaks a line, or reads as anything but a name."""
    own = {Function(file, name): ir for (file, name), ir in costs.items()}
    read_back = read(write_costs(header_lines("t", []), "Ir", own, []))
    assert read_back.total == sum(costs.values())


def baseline(**changes: object) -> Baseline:
    values: dict[str, object] = {
        "nodeid": "tests/test_x.py::test_a",
        "total_ir": 100,
        "calls": 4,
        "warmup": 2,
        "isolation": "fork",
        "rows": {
            "a.c:f": Row(60, 8),
            "???:0x4a41b0 [libfoo]": Row(30, 4),
            "x.cc:f(int) [clone .cold]": Row(7, 0),
            "(other)": Row(3, 2),
        },
        "inclusive": {"a.c:f": 90, "???:0x4a41b0 [libfoo]": 30, "x.cc:f(int) [clone .cold]": 9},
        "environment": {"valgrind": "3.19.0"},
        "packages": {},
    }
    return Baseline(**(values | changes))  # type: ignore[arg-type]


def test_a_baseline_is_a_profile() -> None:
    """Own costs, calls and inclusive costs come back; who called is not known, and said so."""
    old = baseline()
    data = baseline_profile(old)
    found = read(data)
    assert found.total == 100
    assert {name: row for name, row in found.rows.items() if "(baseline)" not in name} == {
        "a.c:f": Row(60, 8),
        "???:0x4a41b0 [libfoo]": Row(30, 4),
        "x.cc:f(int) [clone .cold]": Row(7, 0),
        "???:(other) [???]": Row(3, 2),
    }
    assert {name: found.inclusive[name] for name in old.inclusive} == old.inclusive
    assert set(found.callers["a.c:f"]) == {f"{CALLERS.file}:{CALLERS.name}"}
    assert found.rows[f"{CALLED.file}:{CALLED.name}"].ir == 0
    for line in (
        b"cmd: tests/test_x.py::test_a",
        b"desc: Side: the baseline",
        b"desc: Counted: 4 calls of the test, all costs are their sum",
        b"desc: valgrind: 3.19.0",
    ):
        assert line + b"\n" in data


def test_what_a_baseline_does_not_know() -> None:
    """Before schema 3 nothing is inclusive; what was folded can be below 0, which counts as 0."""
    found = read(baseline_profile(baseline(inclusive={}, rows={"(other)": Row(-5, -1)})))
    assert (found.total, found.rows) == (0, {})
    found = read(baseline_profile(baseline(inclusive={})))
    assert found.inclusive["a.c:f"] == found.rows["a.c:f"].ir == 60


TREE = CallTree(
    TRAMPOLINES,
    2,
    {
        ("t.py:test_a",): Row(10, 2),
        ("t.py:test_a", "shop.py:fib"): Row(20, 2),
        ("t.py:test_a", "shop.py:fib", "shop.py:fib"): Row(30, 4),
        ("t.py:test_a", "shop.py:fib", "shop.py:fib", "shop.py:fib"): Row(40, 8),
        ("t.py:test_a", "shop.py:Shop.total"): Row(5, 1),
    },
)


def test_a_tree_is_a_profile() -> None:
    """Functions of all places are one; a recursion counts its outermost activation."""
    found = read(python_profile(TREE, "t.py::test_a", "now"))
    assert found.rows == {
        "t.py:test_a": Row(10, 0),
        "shop.py:fib": Row(90, 14),
        "shop.py:Shop.total": Row(5, 1),
    }
    assert found.inclusive == {"t.py:test_a": 105, "shop.py:fib": 90, "shop.py:Shop.total": 5}
    assert found.callers["shop.py:Shop.total"] == {"t.py:test_a": Row(5, 1)}


def test_functions_that_call_each_other() -> None:
    """The outermost activation of each is what it cost, however deep they go."""
    path: tuple[str, ...] = ()
    nodes = {}
    for name in ("t.py:t", "s.py:f", "s.py:g", "s.py:f", "s.py:g", "s.py:f"):
        path = (*path, name)
        nodes[path] = Row(10, 1)
    found = read(python_profile(CallTree(TRAMPOLINES, 1, nodes), "t", "now"))
    assert found.inclusive == {"t.py:t": 60, "s.py:f": 50, "s.py:g": 40}
    assert found.rows["s.py:f"] == Row(30, 3)


def test_a_tree_knows_its_source(tmp_path: Path) -> None:
    """Costs stand at the line of the function and at that of the call, in the file as it is there."""
    source = tmp_path / "shop.py"
    source.write_text(
        "class Shop:\n    def total(self):\n        pass\n\ndef test_a():\n\n    s.total()\n"
    )
    nodes = {("shop.py:test_a",): Row(10, 1), ("shop.py:test_a", "shop.py:Shop.total"): Row(5, 1)}
    places = {name: (str(source), 0) for name in ("shop.py:test_a", "shop.py:Shop.total")}
    tree = CallTree(TRAMPOLINES, 1, nodes, places)
    text = python_profile(tree, "t", "now").decode()
    assert f"fl=(1) {source}\nfn=(1) test_a\n5 10\n" in text
    assert "cfn=(2) Shop.total\ncalls=1 2\n7 5\n" in text
    # of the other side it is known where the functions are, not where they called
    old = python_profile(CallTree(TRAMPOLINES, 1, nodes), "t", "before", places).decode()
    assert f"fl=(1) {source}\nfn=(1) test_a\n5 10\n" in old
    assert "calls=1 2\n5 5\n" in old


def test_calls_of_a_tracer_are_no_instructions() -> None:
    """What was counted is said."""
    tree = CallTree(TRACER, 1, {("t.py:test_a",): Row(3, 3)})
    assert b"events: Calls\n" in python_profile(tree, "t", "now")
