"""What the doctor says of a machine, and of a test that was counted in several ways."""

from __future__ import annotations

import shlex
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import pytest

from pytest_instrcount.cli.doctor import machine
from pytest_instrcount.cli.doctor.check import Check, exit_code, render_checks
from pytest_instrcount.cli.doctor.leaks import Plan, Surrounded, surround
from pytest_instrcount.cli.doctor.project import Collected, find_test
from pytest_instrcount.cli.doctor.symbols import has_symbols, interpreter_file
from pytest_instrcount.cli.doctor.tracer import check_tracer
from pytest_instrcount.cli.doctor.trials import Outcome, Trial
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.schema import to_baseline

HERE, COPY = Path("/project"), Path("/elsewhere")
NODEID = "test_a.py::test_it"


def profile(**costs: int) -> Profile:
    """One call of each function, named as C functions are."""
    rows = {name.replace("__", ".c:"): Row(ir, 1) for name, ir in costs.items()}
    return Profile(sum(costs.values()), rows)


STEADY = profile(work__work=10_000, ceval__eval=2_000)


@dataclass
class Fake:
    """Carries out trials as a table says: name -> what comes of it."""

    outcomes: dict[str, Outcome]
    #: whether tests pass natively, by what pytest is given
    passes: dict[str, bool] = field(default_factory=dict)
    copy: Path | None = COPY
    asked: list[Trial] = field(default_factory=list)
    ran: list[tuple[Path, tuple[str, ...]]] = field(default_factory=list)

    def count(self, trial: Trial) -> Outcome:
        self.asked.append(trial)
        same = Outcome("unchanged", Fraction(0), Fraction(1, 10_000), STEADY)
        usual = replace(same, verdict="new", gated=None) if trial.stores else same
        return self.outcomes.get(trial.name, usual)

    def run_natively(self, folder: Path, words: Sequence[str]) -> bool:
        self.ran.append((folder, tuple(words)))
        return self.passes.get(words[0], True)

    def copy_project(self) -> Path | None:
        return self.copy


def look(fake: Fake, let_through: tuple[str, ...] = ()) -> dict[str, list[Check]]:
    """Run all trials; the checks by their name."""
    test = Surrounded(
        NODEID, NODEID, "test_a.py", ("test_a.py::test_x",), ("test_a.py::test_y",), let_through
    )
    plan = Plan(test, fake, HERE, {"A": "1"}, {"B": "2"}, {"A": "1", "PYTHONHASHSEED": "9"})
    found: dict[str, list[Check]] = {}
    for check in plan.run():
        found.setdefault(check.name, []).append(check)
    return found


def moved(**costs: int) -> Outcome:
    """A count that the gate sees move."""
    now = profile(**costs)
    return Outcome("regressed", Fraction(now.total, STEADY.total) - 1, Fraction(1, 10_000), now)


def test_a_healthy_test_is_counted_in_all_ways() -> None:
    """All is ok; each change is made, to that one thing, and nothing else."""
    fake = Fake({})
    found = look(fake)
    assert [check.state for checks in found.values() for check in checks] == ["ok"] * 7
    trials = {trial.name: trial for trial in fake.asked}
    first = trials.pop("baseline")
    assert first == Trial("baseline", (NODEID,), HERE, {"A": "1"}, stores=True)
    plain = replace(first, stores=False)
    around = ("test_a.py::test_x", "test_a.py::test_y")
    assert trials == {
        "again": replace(plain, name="again"),
        "environment": replace(plain, name="environment", environment={"B": "2"}),
        "hash-seed": replace(
            plain, name="hash-seed", environment={"A": "1", "PYTHONHASHSEED": "9"}
        ),
        "first": replace(plain, name="first", folder=COPY, tests=(NODEID, *around)),
        "path": replace(plain, name="path", folder=COPY),
        "last": replace(plain, name="last", folder=COPY, tests=(*around, NODEID)),
    }
    # what neighbours leave behind is there when the last one is counted
    assert fake.ran == [(COPY, ("test_a.py", "--deselect", NODEID))]


def test_layout_noise_is_no_leak() -> None:
    """A raw count that moved, and that the gate cleans, is ok; the figures say so."""
    noisy = Outcome("unchanged", Fraction(0), Fraction(1, 10_000), profile(work__work=10_100))
    (check,) = look(Fake({"environment": noisy}))["environment"]
    assert check.state == "ok"
    assert "raw -15.8 %, gated 0 %" in check.found


def test_a_leak_within_the_limit_is_a_warning() -> None:
    """Told from noise, and yet no failure of the gate."""
    small = replace(moved(work__work=10_060, ceval__eval=2_000), verdict="unchanged")
    (check,) = look(Fake({"path": small}))["path"]
    assert check.state == "warn"
    assert check.found.startswith("leaks, within the limit: ")


def test_a_clock_is_named() -> None:
    """A test that differs from itself: both numbers, the function that gives it away, the remedy."""
    first = Outcome("nondeterministic", profile=profile(work__work=500, timemodule__time_time=9))
    again = Outcome("nondeterministic", profile=profile(work__work=700, timemodule__time_time=9))
    found = look(Fake({"baseline": first, "again": again}))
    assert set(found) == {"counted", "again"}
    (check,) = found["again"]
    assert check.state == "fail"
    assert "509 and 709; it reads the clock (timemodule.c:time_time)" in check.found
    assert check.detail == ("        +200  work.c:work",)
    assert check.fix == "hand the time in as an argument, or freeze it in a fixture"


def test_a_clock_that_two_equal_forks_do_not_show() -> None:
    """It agreed with itself once, and not when it was counted a second time."""
    later = moved(work__work=12_000, timemodule__time_time=9)
    (check,) = look(Fake({"again": later}))["again"]
    assert check.state == "fail" and "it reads the clock" in check.found
    assert check.fix == "hand the time in as an argument, or freeze it in a fixture"


def test_a_hash_seed_that_is_let_through_is_named() -> None:
    """The remedy is to take it out of the setting."""
    leak = moved(work__work=10_000, ceval__eval=2_000, dictobject__lookup=3_000)
    found = look(Fake({"hash-seed": leak}), ("TOKEN", "PYTHONHASHSEED"))
    (check,) = found["hash seed"]
    assert check.state == "fail"
    assert check.found == "leaks: another PYTHONHASHSEED: raw +25 %, gated +25 %"
    assert check.fix == "take PYTHONHASHSEED out of instrcount_env"
    assert check.detail == ("      +3,000  dictobject.c:lookup",)


def test_a_path_is_named() -> None:
    """And what is counted after it in the same copy is no leak of the order."""
    leak = moved(work__work=10_000, ceval__eval=5_000)
    found = look(Fake({"path": leak, "first": leak, "last": leak}))
    assert [check.state for check in found["path"]] == ["fail"]
    assert [check.state for check in found["order"]] == ["ok", "ok"]
    assert "in a copy of the project with another path" in found["path"][0].found


def test_what_neighbours_leave_behind_is_named() -> None:
    """Counted after them, where the same copy counted otherwise before."""
    found = look(Fake({"last": moved(work__work=10_000, ceval__eval=5_000)}))
    assert [check.state for check in found["path"]] == ["ok"]
    assert [check.state for check in found["order"]] == ["ok", "fail"]
    assert found["order"][1].found.startswith("leaks: once they have run: raw +25 %")


def test_a_test_that_needs_its_neighbours_to_pass() -> None:
    """It cannot be counted alone: said so, since it passes in its file."""
    fake = Fake({"baseline": Outcome("", said=("E  KeyError",))}, {NODEID: False})
    (check,) = look(fake)["order"]
    assert "passes after its neighbours and fails alone" in check.found
    assert check.detail == ("E  KeyError",)


@pytest.mark.parametrize(
    ("passes", "words", "fix"),
    [
        ({NODEID: False, "test_a.py": False}, "fails alone, too", f"pytest {NODEID}"),
        ({}, "passes without --instrcount", f"pytest --instrcount {NODEID}"),
    ],
)
def test_no_count_at_all(passes: dict[str, bool], words: str, fix: str) -> None:
    """Neither is a leak: what to type shows what is wrong."""
    (check,) = look(Fake({"baseline": Outcome("")}, passes))["counted"]
    assert check.state == "fail" and words in check.found and check.fix == fix


def test_a_test_that_fails_elsewhere() -> None:
    """A trial without a count is a leak, too."""
    (check,) = look(Fake({"environment": Outcome("", said=("1 failed",))}))["environment"]
    assert check.state == "fail" and "does not pass there" in check.found


def test_a_project_that_is_too_large() -> None:
    """What was not tried is said, and fails nothing."""
    found = look(Fake({}, copy=None))
    assert [check.state for check in found["path, order"]] == ["warn"]


def test_neighbours() -> None:
    """Two before and two after, of its file, as they are typed; fewer at the ends."""
    tests = [Collected(f"t/a.py::test_{n}", True) for n in range(6)]
    around = surround(tests, "t/a.py::test_1", lambda nodeid: f"../{nodeid}", ())
    assert around.typed == "../t/a.py::test_1" and around.file == "../t/a.py"
    assert around.before == ("../t/a.py::test_0",)
    assert around.after == ("../t/a.py::test_2", "../t/a.py::test_3")


TESTS = [
    Collected("t/a.py::test_one[1]", True),
    Collected("t/a.py::test_two[1]", True),
    Collected("t/a.py::test_two[2]", True),
    Collected("t/a.py::test_plain", False),
]


@pytest.mark.parametrize("wanted", ["t/a.py::test_one", "t/a.py::test_one[1]", "a.py::test_one[1]"])
def test_which_test_is_meant(wanted: str) -> None:
    """Without its parameters where there is one set; from a folder below rootdir."""
    assert find_test(TESTS, wanted) == "t/a.py::test_one[1]"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("t/a.py::test_two", "is 2 tests"),
        ("t/a.py::test_no", "no test t/a.py::test_no"),
        ("t/a.py::test_plain", "no instrcount marker"),
    ],
)
def test_no_test_is_meant(wanted: str, words: str) -> None:
    """None, several, or one that is not counted."""
    with pytest.raises(InstrcountError, match=words) as caught:
        find_test(TESTS, wanted)
    assert caught.value.slug == "doctor-test"


def test_a_fixed_variable_that_is_let_through() -> None:
    """The setting without it is the remedy; the rest stays."""
    check = machine.check_environment(("TOKEN", "PYTHONHASHSEED"), {"PYTHONHASHSEED": "7"})
    assert check.state == "fail"
    assert "PYTHONHASHSEED (here '7', else '1')" in check.found
    assert check.fix == "in the ini: instrcount_env = TOKEN"
    assert machine.check_environment(("TOKEN",), {}).state == "ok"
    assert machine.check_environment((), {}).state == "ok"


@pytest.mark.parametrize(
    ("system", "processor", "state"),
    [
        ("linux", "x86_64", "ok"),
        ("linux", "aarch64", "warn"),
        ("linux", "riscv64", "fail"),
        ("darwin", "arm64", "fail"),
        ("win32", "AMD64", "fail"),
    ],
)
def test_platforms(system: str, processor: str, state: str) -> None:
    """Linux on what requests are written for; elsewhere what to do instead is said."""
    check = machine.check_platform(system, processor)
    assert check.state == state and bool(check.fix) == (state == "fail")


@pytest.mark.parametrize(("version", "state"), [((3, 16, 0), "warn"), ((3, 11, 2), "ok")])
def test_a_python_that_nobody_has_tried(
    version: tuple[int, ...], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer than the newest that is known."""
    monkeypatch.setattr(sys, "version_info", version)
    check = machine.check_python()
    assert check.state == state
    assert ("newer than 3.15" in check.found) == (state == "warn")


def test_the_tracer(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its backend and core; a core that was chosen and is not there is an error."""
    check = check_tracer(pytestconfig)
    assert check.state == "ok"
    assert check.found.startswith(("monitoring, core ", "setprofile, core "))
    monkeypatch.setenv("PYTEST_INSTRCOUNT_CORE", "python")
    assert "core python" in check_tracer(pytestconfig).found
    monkeypatch.setenv("PYTEST_INSTRCOUNT_CORE", "c")
    monkeypatch.setattr("pytest_instrcount.trace.core._MODULE", "pytest_instrcount.missing")
    check = check_tracer(pytestconfig)
    assert check.state == "fail"
    assert "[tracer-backend]" in check.found


@pytest.mark.parametrize(
    ("free", "state"), [(99_999_999, "fail"), (500_000_000, "warn"), (10**10, "ok")]
)
def test_room_for_temporary_files(free: int, state: str) -> None:
    """By the bytes that are free."""
    assert machine.check_scratch(lambda folder: (0, 0, free)).state == state


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is gone, and what to set; TMPDIR is not passed by, as Python does."""
    monkeypatch.delenv("TMPDIR", raising=False)
    gone = str(tmp_path / "gone")
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", gone)
        check = machine.check_scratch(lambda folder: (0, 0, 10**10))
        assert check.state == "fail" and check.fix.startswith("TMPDIR=")
    monkeypatch.setenv("TMPDIR", gone)
    check = machine.check_scratch(lambda folder: (0, 0, 10**10))
    assert check.state == "fail" and check.found == f"TMPDIR={gone}: No such file or directory"


def elf(*kinds: int) -> bytes:
    """A 64-bit file with sections of these types and nothing in them."""
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 40, 64)
    struct.pack_into("<HH", header, 58, 64, len(kinds))
    return bytes(header) + b"".join(struct.pack("<II56x", 0, kind) for kind in kinds)


@pytest.mark.parametrize(
    ("content", "found"),
    [(elf(0, 1, 2), True), (elf(0, 1, 11), False), (b"#!/bin/sh\n", None), (elf()[:40], None)],
)
def test_symbols(tmp_path: Path, content: bytes, found: bool | None) -> None:
    """A table of symbols, none, or no such file."""
    path = tmp_path / "python"
    path.write_bytes(content)
    assert has_symbols(path) is found
    assert machine.check_symbols(path).state == ("warn" if found is False else "ok")


def test_symbols_of_a_debug_package(tmp_path: Path) -> None:
    """Debian's python3.15-dbg has those of the stripped build, by the build's id."""
    note = struct.pack("<III4s20s", 4, 20, 3, b"GNU", bytes(range(0xA0, 0xB4)))
    content = bytearray(elf(1, 7))
    struct.pack_into("<QQ", content, 64 + 64 + 24, len(content), len(note))
    path = tmp_path / "python"
    path.write_bytes(content + note)
    assert has_symbols(path, tmp_path) is False
    symbols = tmp_path / ".build-id/a0" / f"{bytes(range(0xA1, 0xB4)).hex()}.debug"
    symbols.parent.mkdir(parents=True)
    symbols.touch()
    assert has_symbols(path, tmp_path) is True


def test_the_file_of_this_interpreter() -> None:
    """It is there, and is a program or a library of this machine."""
    if sys.platform == "linux":
        assert interpreter_file().read_bytes()[:4] == b"\x7fELF"


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Store]:
    """Baselines of these Valgrinds."""

    def make(*versions: str) -> Store:
        store = Store(tmp_path, "cp313-linux-x86_64")
        for number, version in enumerate(versions):
            measured = Measurement(
                f"t.py::test_{number}", 9, 1, 1, "fork", {"a.c:f": Row(9, 1)}, {}
            )
            store.write(to_baseline(measured, {"valgrind": version, "python": "3.13"}))
        return store

    return make


def test_baselines_of_elsewhere(store: Callable[..., Store]) -> None:
    """How many there are of each difference; what can be compared is counted, too."""
    here = {"valgrind": "3.19.0", "python": "3.13"}
    made = store("3.18.1", "3.19.0", "3.18.1")
    check = machine.check_comparable(made, here)
    assert check.state == "warn"
    assert check.found.startswith("1 baseline can be compared here")
    assert check.detail == ("    2  valgrind: 3.18.1 -> 3.19.0",)
    assert machine.check_comparable(made, here | {"valgrind": "3.18.1"}).state == "warn"
    assert machine.check_comparable(store("3.19.0", "3.19.0", "3.19.0"), here).state == "ok"


def test_a_baseline_that_cannot_be_read(store: Callable[..., Store]) -> None:
    """It fails, before anything is measured."""
    made = store("3.19.0")
    made.path("t.py::test_0").write_text("<<<<<<< HEAD\n")
    assert machine.check_comparable(made, {}).state == "fail"


def test_lines() -> None:
    """The state comes first, what to type last, on a line that is never wrapped."""
    check = Check("valgrind", "fail", "there is none", "x" * 90, ("as it is",))
    lines = render_checks([check], 40)
    assert lines[0].split() == ["fail", "valgrind", "there", "is", "none"]
    assert lines[1].strip() == "as it is"
    assert lines[2].strip() == "fix: " + "x" * 90
    assert exit_code([check]) == 1
    assert exit_code([replace(check, state="warn")]) == 0


def test_a_test_is_named_for_a_shell() -> None:
    with pytest.raises(InstrcountError) as caught:
        find_test([Collected("t/a.py::test_a[it's]", True)], "t/a.py::test_no")
    words = shlex.split(caught.value.fix)
    assert words == ["python", "-m", "pytest_instrcount", "doctor", "t/a.py::test_a[it's]"]
