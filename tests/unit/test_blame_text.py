"""Why a count changed, in words."""

from __future__ import annotations

import json.decoder
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.source import is_installed
from pytest_instrcount.counts.python.tree import TRAMPOLINES, CallTree, Place
from pytest_instrcount.gate.compare import FunctionDelta
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import parse_limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.report.blame import render_blame
from pytest_instrcount.report.main_cause import main_cause

LIMIT = parse_limit("1%")


def tree(places: dict[str, Place] | None = None, /, **branches: tuple[int, int]) -> CallTree:
    """``t__f=(70, 2)``: f, called by t, cost 70 of its own in 2 calls; files are ``shop.py``."""
    nodes = {
        tuple(f"shop.py:{each}" for each in name.split("__")): Row(*row)
        for name, row in branches.items()
    }
    return CallTree(TRAMPOLINES, 1, nodes, places or {})


def told(
    old: CallTree, new: CallTree, verdict: Verdict = Verdict.regressed, delta: int = 1
) -> list[str]:
    return render_blame(blamed(old, new, verdict, delta), 80)


def blamed(
    old: CallTree, new: CallTree, verdict: Verdict = Verdict.regressed, delta: int = 1
) -> TestResult:
    result = TestResult("t.py::t", verdict, 1010, 1000, Fraction(delta, 100), LIMIT)
    return replace(result, python=find_blame(old, new))


def test_a_small_change_is_explained() -> None:
    """By function, another one can be larger: what got dearer is named all the same."""
    old = tree(t=(1000, 1), t__f=(500, 5), t__g=(500, 5))
    new = tree(t=(1000, 1), t__f=(530, 5), t__g=(440, 5))
    assert told(old, new) == [
        "by Python function (trampolines; by these counts the test as a whole got no dearer):",
        "  +1.5 %  shop.py f",
        "    in its own code and the C functions it calls; 5 calls",
    ]


def test_namesakes_are_told_by_their_lines(tmp_path: Path) -> None:
    """One of them it is; trampolines of CPython do not say which."""
    file = tmp_path / "shop.py"
    file.write_text("@size.register\ndef _(x: int): f()\n\n@size.register\ndef _(x: str): g()\n")
    old, places = tree(_=(500, 5)), {"shop.py:_": (str(file), 0)}
    assert told(old, tree(places, _=(600, 5)), delta=20)[1:] == [
        "  100 %  shop.py _",
        "    in its own code and the C functions it calls; 5 calls (lines 1, 4)",
    ]


def test_nothing_got_dearer() -> None:
    old = tree(t=(1000, 1), t__f=(500, 5))
    assert told(old, old) == ["by Python function (trampolines): none of them got dearer"]
    assert told(old, old, Verdict.improved, -1) == [
        "by Python function (trampolines): none of them got cheaper"
    ]


def test_an_improvement_is_explained() -> None:
    """As a growth is: by what is called less often, and by code that costs less."""
    old = tree(t=(1000, 1), t__f=(500, 5), t__f__g=(800, 20), t__h=(700, 1), t__k=(100, 1))
    new = tree(t=(1000, 1), t__f=(500, 5), t__f__g=(400, 10), t__h=(600, 1))
    assert told(old, new, Verdict.improved, -20) == [
        "by Python function (trampolines), share of the change:",
        "  66 %  shop.py f",
        "    calls g 20 -> 10 times",
        "  16 %  shop.py h",
        "    in its own code and the C functions it calls; 1 call",
        "  16 %  shop.py t",
        "    calls k no more, before 1 a call",
    ]


def test_calls_that_are_new_are_told_beside_the_code_about_them() -> None:
    """Each costs its caller about as much as it does itself: half of the change is not its own code's."""
    old = tree(t=(1000, 1), t__f=(500, 1))
    new = tree(t=(1000, 1), t__f=(1120, 1), t__f__a=(100, 20), t__f__b=(300, 20), t__f__c=(20, 1))
    assert told(old, new) == [
        "by Python function (trampolines), share of the change:",
        "  100 %  shop.py f",
        "    in its own code and the C functions it calls; 1 call",
        "    calls b (20 a call), before never",
        "    calls a (20 a call), before never",
    ]
    assert main_cause(blamed(old, new)) == ("f", "shop.py calls b (20 a call), before never")


def test_a_function_that_stands_between_now_is_new() -> None:
    """A decorator that was put on: another test whose wrapper got dearer has another cause."""
    old = tree(t=(1000, 1), t__f=(500, 1), t__f__g=(60, 6))
    new = tree(t=(1000, 1), t__f=(500, 1), t__f__wrap=(300, 6), t__f__wrap__g=(60, 6))
    assert told(old, new)[1:] == [
        "  100 %  shop.py wrap",
        "    in its own code and the C functions it calls; new, 6 calls",
    ]
    assert main_cause(blamed(old, new)) == ("wrap", "shop.py, new, 6 calls")
    assert main_cause(blamed(old, new), exact=False) == ("wrap", "shop.py, new")


def test_a_function_that_stood_between_is_called_no_more() -> None:
    """A decorator that was taken away: nothing in its caller's own code got cheaper."""
    old = tree(t=(1000, 1), t__f=(500, 1), t__f__wrap=(300, 6), t__f__wrap__g=(60, 6))
    new = tree(t=(1000, 1), t__f=(500, 1), t__f__g=(60, 6))
    assert told(old, new, Verdict.improved, -16)[1:] == [
        "  100 %  shop.py f",
        "    calls wrap no more, before 6 a call",
    ]


def test_what_went_against_a_change_is_told() -> None:
    """Else the shares of the others come to more than all of it without a word."""
    old = tree(t=(1000, 1), t__f=(500, 5), t__g=(900, 1))
    new = tree(t=(1000, 1), t__f=(900, 5), t__g=(700, 1))
    assert told(old, new) == [
        "by Python function (trampolines), share of the change:",
        "  200 %  shop.py f",
        "    in its own code and the C functions it calls; 5 calls",
        "  -100 %  shop.py g, against it",
    ]


def test_the_largest_of_what_went_against_a_change_is_told() -> None:
    """Also where it got dearer with all that it calls."""
    old = tree(t=(1000, 1), t__f=(500, 5), t__g=(900, 1), t__g__h=(100, 1), t__k=(50, 1))
    new = tree(t=(1000, 1), t__f=(900, 5), t__g=(700, 1), t__g__h=(400, 1), t__k=(40, 1))
    assert told(old, new)[-1] == "  -40 %  shop.py g, against it"


def test_coroutines_and_generators_are_entered(tmp_path: Path) -> None:
    """Once for each call, and once each time that they are resumed: both are one number."""
    file = tmp_path / "shop.py"
    file.write_text(
        "async def f():\n    async with lock():\n        await g()\n\n"
        "async def g(): ...\n\ndef h():\n    yield\n"
    )
    places: dict[str, Place] = {
        f"shop.py:{name}": (str(file), n) for name, n in (("f", 1), ("g", 5), ("h", 7))
    }
    old = tree(f=(100, 1), f__g=(100, 2), f__h=(50, 4))
    new = tree(places, f=(100, 1), f__g=(300, 6), f__h=(90, 4))
    assert told(old, new)[1:] == [
        "  83 %  shop.py:1 f",
        "    enters g 2 -> 6 times (line 3)",
        "      await g()",
        "            ^^^",
        "  16 %  shop.py:7 h",
        "    in its own code and the C functions it calls; 4 entries",
    ]
    path = ("shop.py:f", "shop.py:Lock.__aenter__")
    new = replace(old, places=places, nodes={**old.nodes, path: Row(90, 1)})
    assert told(old, new)[2:] == [
        "    calls Lock.__aenter__ (1 a call), before never (line 2)",
        "      async with lock():",
        "                 ^^^^^^",
    ]


@pytest.mark.parametrize(
    ("before", "called", "line"),
    [
        (0, 100, " calls g (2 a call), before never"),
        (0, 90, ", its own code"),
        (1, 100, ", its own code"),
    ],
)
def test_a_little_of_what_was_never_called_tells(before: int, called: int, line: str) -> None:
    """From a tenth of the change on; of what was called before it takes a quarter."""
    old = tree(t=(10, 1), t__f=(500, 1), **({"t__f__g": (called, 1)} if before else {}))
    cost = called * (1 + before)
    new = tree(t=(10, 1), t__f=(1400, 1), t__f__g=(cost, 1 + before if before else 2))
    assert main_cause(blamed(old, new)) == ("f", f"shop.py{line}")


def test_one_piece_of_source_is_shown(tmp_path: Path) -> None:
    """That of the largest cause; of the others the line."""
    file = tmp_path / "shop.py"
    file.write_text("def f(x):\n    return g(h(x))\n")
    places: dict[str, Place] = {"shop.py:f": (str(file), 1)}
    new = tree(places, f=(100, 1), f__g=(100, 1), f__h=(50, 1))
    assert told(tree(f=(100, 1)), new)[2:] == [
        "    calls g (1 a call), before never (line 2)",
        "      return g(h(x))",
        "             ^^^^^^^",
        "    calls h (1 a call), before never (line 2)",
    ]


def test_of_several_places_none_is_shown(tmp_path: Path) -> None:
    """Nobody knows which of them is the new one."""
    file = tmp_path / "shop.py"
    file.write_text("def f(x):\n    if x:\n        g(x, 1)\n    g(x, 2)\n    return g(x, 3)\n")
    places: dict[str, Place] = {"shop.py:f": (str(file), 1)}
    old = tree(places, f=(100, 1), f__g=(100, 1))
    new = tree(places, f=(100, 1), f__g=(300, 3))
    assert told(old, new)[2:] == ["    calls g 1 -> 3 times (lines 3, 4, 5)"]


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("shop.py:f", "shop.py:g", "renamed: f -> g"),
        ("shop.py:f", "core.py:f", "renamed: shop.py:f -> core.py:f"),
    ],
)
def test_a_new_name_is_told(before: str, after: str, line: str) -> None:
    old, new = (
        CallTree(TRAMPOLINES, 1, {("t.py:t",): Row(9, 1), ("t.py:t", name): Row(ir, 2)})
        for name, ir in ((before, 600), (after, 700))
    )
    assert told(old, new)[2:] == [
        "    in its own code and the C functions it calls; 2 calls",
        f"    {line}",
    ]


@pytest.mark.parametrize(
    ("body", "line", "told_place", "cause"),
    [
        ("    return json.loads(x)\n", 3, "shop.py:3 f (line 4)", "f shop.py:4"),
        (
            "    if x:\n        json.loads(x)\n    json.loads(2)\n",
            *(3, "shop.py:3 f (lines 5, 6)", "f shop.py:3"),
        ),
        (
            "    json.loads(x)\n\ndef f(y):\n    json.loads(y)\n",
            0,
            "shop.py f (lines 4, 7)",
            "f shop.py",
        ),
    ],
)
def test_who_of_the_project_called_the_standard_library(
    tmp_path: Path, body: str, line: int, told_place: str, cause: str
) -> None:
    """Where the cause is in code that nobody here can mend; of several calls nobody knows which."""
    file = tmp_path / "shop.py"
    file.write_text(f"import json\n\ndef f(x):\n{body}\ndef t():\n    f('1')\n")
    decoder = json.decoder.__file__
    places = {"shop.py:t": (str(file), 6), "shop.py:f": (str(file), line)}
    places |= dict.fromkeys(("shop.py:loads", "shop.py:raw_decode"), (decoder, 1))
    old = tree(t=(10, 1), t__f=(20, 2), t__f__loads=(9, 2), t__f__loads__raw_decode=(500, 2))
    new = tree(places, **{"__".join(n[8:] for n in path): row for path, row in old.nodes.items()})
    path = tuple(f"shop.py:{name}" for name in ("t", "f", "loads", "raw_decode"))
    new = replace(new, nodes={**new.nodes, path: Row(600, 2)})
    assert told(old, new)[2:] == [
        "    in its own code and the C functions it calls; 2 calls",
        f"    called from {told_place}",
    ]
    assert main_cause(blamed(old, new)) == ("raw_decode", f"called from {cause}")
    # other tests call it from elsewhere
    assert main_cause(blamed(old, new), exact=False) == ("raw_decode", "shop.py:1, its own code")


@pytest.mark.parametrize(
    ("caller", "what"),
    [
        ("test_shop.py", "shop.py:1, its own code"),
        ("checks.py", "shop.py:1, called from helped checks.py:1"),
    ],
)
def test_a_package_may_be_what_is_tested(tmp_path: Path, caller: str, what: str) -> None:
    """Not installed for editing: what it does is its own doing, and that the test calls it says nothing."""
    (file := tmp_path / caller).write_text("def helped():\n    pass\n")
    path = f"{caller}:helped", "shop.py:f"
    places = {path[0]: (str(file), 1), path[1]: ("/venv/lib/site-packages/shop.py", 1)}
    old, new = (
        CallTree(TRAMPOLINES, 1, {path[:1]: Row(9, 1), path: Row(ir, 2)}, places)
        for ir in (600, 700)
    )
    result = replace(blamed(old, new), nodeid="tests/test_shop.py::test_f")
    assert main_cause(result) == ("f", what)


def test_calls_have_the_name_that_source_has_for_them(tmp_path: Path) -> None:
    """Of what is decorated a wrapper is called, or what makes and ends a manager of contexts."""
    file = tmp_path / "shop.py"
    file.write_text(
        """def f():
    with locked(1):
        pay(2)

@contextmanager
def locked(n):
    yield n

@retry
def pay(n):
    return n

def add(n):
    return n
"""
    )
    lines = {"f": 1, "locked": 5, "pay": 9, "add": 13}
    places = {f"shop.py:{name}": (str(file), line) for name, line in lines.items()}
    old = tree(t=(100, 1), t__f=(500, 1), t__f__helper=(90, 3), t__f__enter=(100, 3))
    new = tree(places, t=(100, 1), t__f=(500, 1), t__f__helper=(180, 6), t__f__enter=(200, 6))
    called = {"t__f__enter__next__locked": (400, 3), "t__f__wrapper__pay": (600, 4)}
    called |= {"t__f__wrapper": (40, 4), "t__f__plus__add": (60, 5), "t__f__plus": (30, 5)}
    twice = {name: (2 * ir, 2 * calls) for name, (ir, calls) in called.items()}
    old = replace(old, nodes={**old.nodes, **tree(**called).nodes})
    new = replace(new, nodes={**new.nodes, **tree(**twice).nodes})
    assert told(old, new)[2:] == [
        "    calls pay 4 -> 8 times (line 3)",
        "      pay(2)",
        "      ^^^^^^",
        "    calls locked 3 -> 6 times (line 2)",
        "    calls plus 5 -> 10 times",
    ]
    assert main_cause(blamed(old, new)) == ("f", "shop.py:1 calls pay 4 -> 8 times")


def test_what_is_wrapped_now_is_not_called_more_often(tmp_path: Path) -> None:
    """The wrapper is: though source has the name of what it wraps, which was called as often before."""
    file = tmp_path / "shop.py"
    file.write_text("def f():\n    pay(2)\n\n@retry\ndef pay(n):\n    return n\n")
    places = {"shop.py:f": (str(file), 1), "shop.py:pay": (str(file), 4)}
    old = tree(t=(100, 1), t__f=(500, 1), t__f__log=(900, 1), t__f__log__pay=(50, 1))
    new = tree(places, t=(100, 1), t__f=(500, 1), t__f__call=(400, 1), t__f__call__new=(900, 1))
    new = replace(new, nodes={**new.nodes, **tree(t__f__call__new__pay=(50, 1)).nodes})
    assert main_cause(blamed(old, new))[1].endswith("calls call (1 a call), before never")


def test_as_many_calls_are_no_more(tmp_path: Path) -> None:
    """Of which some cost more where they are made now, and others less."""
    old = tree(
        t=(10, 1), t__f=(10, 1), t__f__g=(100, 2), t__h__f=(10, 1), t__h=(1, 1), t__h__f__g=(50, 2)
    )
    new = tree(t=(10, 1), t__f=(10, 2), t__f__g=(300, 4))
    assert not [line for line in told(old, new) if "4 -> 4" in line]


MANY = """
def f():
    with locked(): pass
    with opened(): pass
    log(1 + Sub().name)

@contextmanager
def locked(): yield

@contextmanager
def opened(): yield

@deco
def log(x): pass

class Sub:
    @property
    def name(self): pass
"""


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        # both stand behind one function: nobody knows which is meant
        (
            {"enter": 9, "enter__locked": 3, "enter__opened": 6},
            ["calls enter 9 -> 18 times"],
        ),
        # an operator is no part of what is called as often
        (
            {"plus": 900, "wrap": 900, "wrap__log": 900},
            ["calls log 900 -> 1,800 times (line 5)", "calls plus 900 -> 1,800 times"],
        ),
        # a property is called by its name, and wraps nothing
        ({"make": 90, "make__Sub.name": 90}, ["calls make 90 -> 180 times"]),
        # what is called by its name as well costs less
        (
            {"wrap": 90, "wrap__log": 90, "log": 9},
            ["calls log 90 -> 180 times (line 5)"],
        ),
    ],
)
def test_names_that_are_not_those_of_the_call(
    tmp_path: Path, calls: dict[str, int], said: list[str]
) -> None:
    file = tmp_path / "shop.py"
    file.write_text(MANY)
    lines = {"f": 2, "locked": 6, "opened": 9, "log": 12, "Sub.name": 16}
    places = {f"shop.py:{name}": (str(file), line) for name, line in lines.items()}

    def side(often: int) -> CallTree:
        nodes = tree(t=(10, 1), t__f=(10, 1)).nodes
        for name, n in calls.items():
            path = ("shop.py:t", "shop.py:f", *(f"shop.py:{each}" for each in name.split("__")))
            path = tuple(each.replace("shop.py:plus", "lib.py:plus") for each in path)
            nodes = {**nodes, path: Row(n * 10 * often, n * often)}
        return CallTree(TRAMPOLINES, 1, nodes, places)

    text = told(side(1), side(2))
    assert [line.strip() for line in text if " times" in line] == said


def test_what_an_event_loop_runs_of_the_project(tmp_path: Path) -> None:
    """It turns more often since a coroutine waits more often: nobody of the project calls it."""
    places = {
        "shop.py:loop": (json.decoder.__file__, 1),
        "shop.py:turn": (json.decoder.__file__, 2),
    }
    places["shop.py:send"] = (str(tmp_path / "shop.py"), 4)
    old = tree(t=(10, 0), t__loop=(10, 0), t__loop__turn=(400, 4), t__loop__turn__send=(400, 4))
    new = tree(
        places, t=(10, 0), t__loop=(10, 0), t__loop__turn=(800, 8), t__loop__turn__send=(960, 8)
    )
    assert told(old, new) == [
        "by Python function (trampolines), share of the change:",
        "  83 %  shop.py:1 loop",
        "    calls turn 4 -> 8 times",
        "    which runs shop.py:4 send: 4 -> 8 calls",
        "  16 %  shop.py:4 send",
        "    in its own code and the C functions it calls; 4 -> 8 calls",
    ]
    assert main_cause(blamed(old, new)) == ("send", "shop.py:4, 4 -> 8 calls")


def test_what_an_event_loop_runs_within_the_test(tmp_path: Path) -> None:
    """By asyncio.run: the function that starts it does what it did."""
    t, loop, turn, send = names = (
        "shop.py:t",
        "asyncio/base_events.py:run",
        "asyncio/events.py:turn",
        "shop.py:send",
    )
    places = dict.fromkeys((loop, turn), (json.decoder.__file__, 1))
    places |= {name: (str(tmp_path / "shop.py"), 4) for name in (t, send)}

    def looped(turns: int) -> CallTree:
        rows = Row(10, 1), Row(10, 1), Row(100 * turns, turns), Row(30 * turns, turns)
        nodes = {names[: place + 1]: row for place, row in enumerate(rows)}
        return CallTree(TRAMPOLINES, 1, nodes, places)

    assert told(looped(4), looped(8))[1:] == [
        "  100 %  asyncio/base_events.py:1 run",
        "    calls turn 4 -> 8 times",
        "    which runs shop.py:4 send: 4 -> 8 calls",
    ]
    assert main_cause(blamed(looped(4), looped(8))) == ("send", "shop.py:4, 4 -> 8 calls")


def test_a_coroutine_that_does_more_comes_before_what_it_has_scheduled(tmp_path: Path) -> None:
    """``asyncio.gather``: the loop runs steps more often, which somebody of the project asked for."""
    names = {
        "t": "shop.py:t",
        "loop": "asyncio/base_events.py:run",
        "turn": "asyncio/events.py:turn",
        "main": "shop.py:main",
        "gather": "asyncio/tasks.py:gather",
        "send": "shop.py:send",
    }
    places = {names[each]: (json.decoder.__file__, 1) for each in ("loop", "turn", "gather")}
    places |= {names[each]: (str(tmp_path / "shop.py"), 4) for each in ("t", "main", "send")}

    def looped(**rows: Row) -> CallTree:
        nodes = {tuple(names[each] for each in path.split("__")): rows[path] for path in rows}
        return CallTree(TRAMPOLINES, 1, nodes, places)

    start = {"t": Row(10, 1), "t__loop": Row(100, 1)}
    old = looped(
        **start,
        t__loop__turn=Row(400, 4),
        t__loop__turn__main=Row(100, 1),
        t__loop__turn__send=Row(50, 4),
    )
    new = looped(
        **start,
        t__loop__turn=Row(900, 9),
        t__loop__turn__main=Row(100, 1),
        t__loop__turn__main__gather=Row(300, 1),
        t__loop__turn__send=Row(120, 8),
    )
    assert main_cause(blamed(old, new)) == (
        "main",
        "shop.py:4 calls gather (1 a call), before never",
    )


def test_a_wrapper_of_the_standard_library_is_told_with_who_calls_it(tmp_path: Path) -> None:
    """All that it calls is as new as it is: its place is no answer."""
    file = tmp_path / "shop.py"
    file.write_text("def f():\n    g()\n")
    names = ("shop.py:t", "shop.py:f", "contextlib.py:inner", "contextlib.py:enter")
    places: dict[str, Place] = {"shop.py:f": (str(file), 1)}
    places |= dict.fromkeys(names[2:], (json.decoder.__file__, 78))
    kept = {names[:1]: Row(10, 1), names[:2]: Row(50, 1)}
    old = CallTree(TRAMPOLINES, 1, {**kept, (*names[:2], "shop.py:g"): Row(60, 6)}, places)
    wrapped = {names[:3]: Row(90, 6), names: Row(200, 6), (*names[:3], "shop.py:g"): Row(60, 6)}
    new = CallTree(TRAMPOLINES, 1, kept | wrapped, places)
    assert main_cause(blamed(old, new)) == (
        "inner",
        "contextlib.py:78, new, 6 calls, called from f shop.py:1",
    )


def test_a_namesake_is_not_the_function_itself() -> None:
    names = "shop.py:t", "shop.py:norm", "lib.py:norm"
    old = CallTree(TRAMPOLINES, 1, {names[:1]: Row(9, 1), names[:2]: Row(20, 1)})
    new = replace(old, nodes={**old.nodes, names: Row(400, 4)})
    assert main_cause(blamed(old, new)) == (
        "norm",
        "shop.py calls norm of lib.py (4 a call), before never",
    )


def test_a_long_name_leaves_room_for_the_line(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    name = "shop.py:" + "_Generator" * 8
    file.write_text(f"def f():\n    {name[8:]}()\n")
    places: dict[str, Place] = {"shop.py:f": (str(file), 1)}
    line = told(tree(places, f=(100, 1)), tree(places, f=(100, 1), **{f"f__{name[8:]}": (400, 4)}))[
        2
    ]
    assert line.startswith("    calls …") and line.endswith("tor (4 a call), before never (line 2)")
    assert len(line) <= 80


def test_calls_of_itself() -> None:
    old = tree(t=(10, 1), t__f=(400, 1), t__f__f=(0, 3))
    new = tree(t=(10, 1), t__f=(800, 1), t__f__f=(0, 7))
    assert told(old, new)[1:] == ["  100 %  shop.py f", "    calls itself 3 -> 7 times"]
    assert main_cause(blamed(old, new)) == ("f", "shop.py calls itself 3 -> 7 times")


def test_what_a_thread_runs_of_the_project(tmp_path: Path) -> None:
    """Nobody calls it."""
    places = {"shop.py:begin": (json.decoder.__file__, 1)}
    places["shop.py:work"] = (str(tmp_path / "shop.py"), 4)
    old = tree(t=(10, 1), begin=(10, 2), begin__work=(400, 2))
    new = tree(places, t=(10, 1), begin=(20, 4), begin__work=(800, 4))
    assert told(old, new)[1:] == [
        "  100 %  shop.py:1 begin",
        "    in its own code and the C functions it calls; 2 -> 4 calls",
        "    which runs shop.py:4 work: 2 -> 4 calls",
    ]
    assert main_cause(blamed(old, new)) == ("work", "shop.py:4, 2 -> 4 calls")


def test_calls_saved() -> None:
    work = (("allocations", Fraction(9), Fraction(7)), ("system calls", Fraction(0), Fraction(1)))
    result = TestResult("t.py::t", Verdict.improved, 9, 10, Fraction(-1, 10), LIMIT, work=work)
    assert render_blame(result, 80) == [
        "calls added: system calls 0 -> 1",
        "calls saved: allocations 9 -> 7",
    ]


def test_what_runs_on_is_called_no_times() -> None:
    """CPython 3.12 calls its loop of evaluation once, before the count begins."""
    loop = FunctionDelta("ceval.c:_PyEval_EvalFrameDefault", Fraction(30), Fraction(0), Fraction(0))
    size = FunctionDelta("abstract.c:PyObject_Size", Fraction(10), Fraction(1), Fraction(2))
    result = TestResult("t.py::t", Verdict.regressed, 1040, 1000, Fraction(4, 100), LIMIT)
    result = replace(result, functions=(loop, size))
    assert render_blame(result, 80)[-2:] == [
        "  75 %                ceval.c:_PyEval_EvalFrameDefault",
        "  25 %  1 -> 2 calls  abstract.c:PyObject_Size",
    ]
    assert main_cause(result) == ("_PyEval_EvalFrameDefault", "ceval.c")


def test_what_is_installed(tmp_path: Path) -> None:
    """The standard library, packages, and what has no file; nothing of the project."""
    assert is_installed(json.decoder.__file__)
    assert is_installed(pytest.__file__)
    assert is_installed("<frozen importlib._bootstrap>")
    assert is_installed("/project/.venv/lib/python3.11/site-packages/x.py")
    assert not is_installed(str(tmp_path / "shop.py"))
