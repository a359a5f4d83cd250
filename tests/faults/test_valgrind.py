"""Valgrind that fails in a test, does not start, hangs, or is another one than it was."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults.conftest import Compared, Fault, Place, compare, faulty_file

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

VERSION = subprocess.run(
    ["valgrind", "--version"], capture_output=True, text=True, check=False
).stdout.strip()

FAULTS = {
    "instruction_that_valgrind_does_not_know": Fault(
        """
        import mmap
        page = mmap.mmap(-1, 4096, prot=7)
        page.write(bytes.fromhex("62f1fd486fc0c3"))  # AVX-512
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        ctypes.CFUNCTYPE(None)(address)()
        """,
        "failed",
        "Unrecognised instruction",
    ),
    "the_impossible_happens": Fault(
        """
        with open("/proc/self/maps") as maps:
            areas = [line.split()[:2] for line in maps]
        for area, rights in areas:
            start, end = (int(number, 16) for number in area.split("-"))
            if "rw" in rights and 0x1002000000 <= start < 0x2000000000:  # Valgrind's own memory
                ctypes.memset(start, 0x41, min(end - start, 1 << 22))
        """,
        "failed",
        # it says that the 'impossible' happened, or is gone before it can
        "[process-died]",
    ),
    "valgrind_is_out_of_memory": Fault(
        """
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + 20_000_000,) * 2)
        for number in range(100_000): CALLS.append(bytes(8_000_000))
        """,
        "",
        "MemoryError",
    ),
}


@pytest.fixture(scope="module")
def compared(module_place: Place) -> Compared:
    """All faults in one run."""
    module_place.write("test_faults.py", faulty_file(FAULTS))
    return compare(module_place)


@pytest.mark.parametrize("name", FAULTS)
def test_fault(compared: Compared, name: str) -> None:
    compared.assert_fault(name, FAULTS[name])


def test_the_others_are_equal(compared: Compared) -> None:
    compared.assert_others_equal()


def test_nothing_is_left(compared: Compared) -> None:
    compared.place.assert_nothing_left(compared.tree)


def wrapper(place: Place, script: str) -> str:
    """A program that is found in the place of valgrind; returns the option that names it."""
    path = place.path.parent / "valgrind"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return f"--instrcount-valgrind={path}"


SAYS_VERSION = f'if [ "$1" = --version ]; then echo {VERSION}; exit; fi\n'


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("exit 3", "exited with status 3", id="exits_at_once"),
        pytest.param("kill -SEGV $$", "was killed by SIGSEGV", id="crashes_at_once"),
        pytest.param("kill -KILL $$", "was killed by SIGKILL", id="is_killed_at_once"),
        pytest.param(
            "for word; do case $word in --log-file=*) log=${word#*=};; esac; done\n"
            "echo \"valgrind: the 'impossible' happened:\" > $log; exit 1",
            "the 'impossible' happened",
            id="says_impossible",
        ),
        pytest.param("sleep 600 & wait", "not ready under Valgrind within ", id="hangs"),
    ],
)
def test_valgrind_that_does_not_start(place: Place, script: str, said: str) -> None:
    """One message that ends in a command; code 4, and no baseline."""
    place.write("test_a.py", "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    option = wrapper(place, SAYS_VERSION + script)
    place.write(
        "conftest.py",
        "from pytest_instrcount.host import patience\npatience.START_SECONDS = 3.0\n",
    )
    tree = place.tree()
    done = place.run(option, "--instrcount-timeout=3", "--instrcount-update-baseline")
    assert done.code == 4, done.output
    assert "pytest cannot run under Valgrind here" in done.output
    assert said in done.output
    assert "fix: " in done.output.rpartition(said)[2]
    place.assert_nothing_left(tree)


def test_a_valgrind_that_says_another_version(place: Place) -> None:
    """What counts is known by its own files: no count of it is compared, or stored."""
    place.write("test_a.py", "import pytest\n@pytest.mark.instrcount\ndef test_a(): pass\n")
    tree = place.tree()
    option = wrapper(
        place, 'test "$1" = --version && echo valgrind-3.99.0 && exit\nexec valgrind "$@"'
    )
    done = place.run(option, "--instrcount-update-baseline")
    assert done.code == 1, done.output
    assert done.verdict("test_a") == "failed"
    assert "counted it, and the run began with 3.99.0 [valgrind-changed]" in done.texts["test_a"]
    place.assert_nothing_left(tree)


def test_a_valgrind_that_changes_in_the_middle(place: Place) -> None:
    """A test that has a process of its own gets another one: one of both fails, the other is measured."""
    number = VERSION.removeprefix("valgrind-")
    place.write(
        "test_a.py",
        """
        import pytest
        @pytest.mark.instrcount
        def test_before(): assert sum(range(100)) == 4950
        @pytest.mark.instrcount(isolation="process")
        def test_after(): assert sum(range(100)) == 4950
        """,
    )
    tree = place.tree()
    other = place.path.parent / "lib"
    other.mkdir()
    for file in valgrind_folder().iterdir():
        if file.name.startswith("callgrind-") and file.is_file():
            newer = number[:-1] + ("8" if number.endswith("9") else "9")
            made = other / file.name
            made.write_bytes(file.read_bytes().replace(number.encode(), newer.encode()))
            shutil.copymode(file, made)
        else:
            (other / file.name).symlink_to(file)
    script = f"""{SAYS_VERSION}
        if mkdir {place.path.parent}/first 2>/dev/null; then exec valgrind "$@"; fi
        VALGRIND_LIB={other} exec valgrind "$@"
    """
    done = place.run(wrapper(place, script))
    # both begin at once, and on a loaded machine either is the first
    verdicts = {done.verdict(name): name for name in ("test_before", "test_after")}
    assert verdicts.keys() == {"new", "failed"}, done.output
    failed = verdicts["failed"]
    assert f"and the run began with {number} [valgrind-changed]" in done.texts[failed]
    place.assert_nothing_left(tree)


def valgrind_folder() -> Path:
    """Where the tools of the installed Valgrind are."""
    program = shutil.which("valgrind")
    assert program is not None
    prefix = Path(program).resolve().parents[1]
    for folder in ("libexec/valgrind", "lib/valgrind", "lib/x86_64-linux-gnu/valgrind"):
        if list((prefix / folder).glob("callgrind-*-linux")):
            return prefix / folder
    pytest.skip("the folder of Valgrind's tools is not known")
