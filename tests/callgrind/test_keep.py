"""Kept profiles of real runs, opened by Valgrind's own reader."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.report.bundle import load_bundle
from pytest_instrcount.report.callgrind import COUNTED, SUFFIXES

Run = Callable[..., tuple[pytest.RunResult, dict[str, Any]]]

SOURCE = """
#include <Python.h>

static long turn(long times)
{
    long sum = 0;
    for (long i = 0; i < times; i++)
        sum += i * times;
    return sum;
}

static PyObject *call(PyObject *self, PyObject *times)
{
    return PyLong_FromLong(turn(PyLong_AsLong(times)));
}

static PyMethodDef methods[] = {{"turn", call, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "turns", "", -1, methods};
PyMODINIT_FUNC PyInit_turns(void) { return PyModule_Create(&module); }
"""
TESTS = """
    import pytest
    from turns import turn

    def work(times):
        return turn(times)

    @pytest.fixture
    def times():
        return 1000

    @pytest.mark.instrcount
    def test_plain():
        work(1000)

    @pytest.mark.instrcount(calls=4)
    def test_fixture(times):
        work(times)
"""


def annotate(path: Path, *options: str) -> str:
    """What callgrind_annotate prints; it must have nothing to complain of."""
    command = ["callgrind_annotate", *options, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def total_of(text: str) -> int:
    found = re.search(r"^ *([0-9,]+) .*PROGRAM TOTALS$", text, re.MULTILINE)
    assert found, text
    return int(found[1].replace(",", ""))


def shown_again(bundle: Path, printed: str, tests: dict[str, Any]) -> None:
    """What the command prints, without Valgrind and the project, is what the run has printed.

    But that the run does not repeat the cause that two tests share.
    """
    command = [sys.executable, "-m", "pytest_instrcount", "show", str(bundle)]
    done = subprocess.run(
        command,
        cwd=bundle.parent,
        env={**os.environ, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    failures = re.split(r"^_+ (\S+) _+\n", done.stdout.rstrip("\n"), flags=re.MULTILINE)[1:]
    assert failures[::2] == list(tests)
    for text in failures[1::2]:
        assert "  by Python function (trampolines), share of the change:" in text
        assert text.partition("\n  detects")[0] in printed
    assert failures[1].rstrip("\n") in printed
    assert "\n  for the same cause as test_plain, see there\n" in printed
    for test in load_bundle(bundle).tests:
        assert float(Fraction(str(test.numbers["delta"]))) == tests[test.nodeid]["delta"]
        assert test.numbers["ir"] == tests[test.nodeid]["ir"]
        assert list(test.profiles) == list(SUFFIXES)
        for number, (side, text) in enumerate(test.profiles.items()):
            path = bundle.with_name(f"{number}{side}")
            path.write_text(text)
            assert total_of(annotate(path, "--auto=no")) == parse_profile(path).total
        now = parse_profile(bundle.with_name(f"0{COUNTED}"))
        (counted,) = re.findall(r"^desc: Counted: (\d+) call", test.profiles[COUNTED], re.MULTILINE)
        assert now.total // int(counted) == test.numbers["ir"]


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("gcc") and Path(sysconfig.get_paths()["include"], "Python.h").exists()),
    reason="no extension module can be compiled",
)
def test_callgrind_annotate_opens_what_is_kept(
    project: pytest.Pytester, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both sides of a failure, with lines of C and of Python; and keeping them moves no count.

    The bundle of that run shows the same failures, and has the same numbers and both sides as profiles.
    """
    source = project.path / "turns.c"
    source.write_text(SOURCE)
    include = sysconfig.get_paths()["include"]
    command = ["gcc", "-g", "-O0", "-shared", "-fPIC", f"-I{include}", "-o", "turns.so"]
    subprocess.run([*command, str(source)], check=True, cwd=project.path)
    project.makepyfile(test_turn=TESTS)
    project.runpytest_subprocess("--instrcount-update-baseline").assert_outcomes(passed=2)
    _, without = run()
    _, tests = run("--instrcount-keep=kept", "--instrcount-bundle=b.json.gz")
    assert tests == without
    assert {test["verdict"] for test in tests.values()} == {"unchanged"}
    assert {test["delta"] for test in tests.values()} == {0.0}

    test_file = project.path / "test_turn.py"
    test_file.write_text(
        test_file.read_text().replace("return turn(times)", "return turn(2 * times)")
    )
    result, tests = run("--instrcount-keep=kept", "--instrcount-bundle=b.json.gz")
    result.assert_outcomes(passed=2, failed=2)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shown_again((project.path / "b.json.gz").rename(elsewhere / "b"), result.stdout.str(), tests)
    folder = project.path / "kept" / "test_turn"
    assert len(list(folder.iterdir())) == 8
    for name, calls in (("plain", None), ("fixture", 4)):
        test = tests[f"test_turn.py::test_{name}"]
        paths = {path.name.partition(".")[2]: path for path in folder.glob(f"test_{name}-*")}
        now = paths["callgrind.out"]
        counted = re.search(r"desc: Counted: (\d+) call", now.read_text())
        assert counted
        assert calls in (None, int(counted[1]))
        number = int(counted[1])
        text = annotate(now, "--auto=yes", "--threshold=100")
        profile = parse_profile(now)
        assert total_of(text) == profile.total
        # the switch is in it, once or once a call
        assert 0 <= profile.total - number * test["ir"] < 2000 * number
        assert profile.rows["turns.c:turn"].calls == number
        line = re.search(r"^ *([0-9,]+) .*  +sum \+= i \* times;$", text, re.MULTILINE)
        assert line, text
        assert int(line[1].replace(",", "")) > number * 2000

        before = paths["baseline.callgrind.out"]
        text = annotate(
            before, "--auto=no", "--inclusive=yes", "--threshold=100", "--show-percs=no"
        )
        old = parse_profile(before)
        assert abs(total_of(text) - test["baseline_ir"] * number) <= number
        row = re.search(r"^ *([0-9,]+)  turns.c:turn$", text, re.MULTILINE)
        assert row, text
        assert int(row[1].replace(",", "")) == old.inclusive["turns.c:turn"]
        assert old.inclusive["turns.c:turn"] * 3 < profile.inclusive["turns.c:turn"] * 2

        for side, factor in (("python", 2), ("baseline.python", 1)):
            path = paths[f"{side}.callgrind.out"]
            tree = parse_profile(path)
            assert tree.callers["test_turn.py:work"].keys() == {f"test_turn.py:test_{name}"}
            assert total_of(annotate(path)) == tree.total
            assert tree.inclusive["test_turn.py:work"] > number * factor * 1000
        text = annotate(paths["python.callgrind.out"], "--auto=yes", "--threshold=100")
        assert re.search(r"^ *[0-9,]+ .*  def work\(times\):$", text, re.MULTILINE), text
        assert re.search(r"=> .*test_turn.py:work \(\d+x\)", text), text
