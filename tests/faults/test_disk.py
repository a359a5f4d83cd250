"""Full disks, folders that cannot be written, and those that somebody deletes, for all that is written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.conftest import UPDATE, Done, Place

pytestmark = [pytest.mark.valgrind, pytest.mark.long]

TESTS = """
import pytest
@pytest.mark.instrcount
@pytest.mark.parametrize("number", range(3))
def test_good(number): assert sum(range(100 + number))
"""

CAN_MOUNT = not subprocess.run(
    ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
).returncode


def run_with_mount(place: Place, mounted: Path, options: str, *args: str) -> Done:
    """A run that alone sees a small disk at a folder; what is there at its end goes to ``left``."""
    if not CAN_MOUNT:
        pytest.skip("nothing can be mounted here")
    mounted.mkdir(exist_ok=True)
    script = f"""
        mount -t tmpfs tmpfs {mounted}
        case {options} in
            tight) mount -o remount,size=64k {mounted}; head -c 61440 /dev/zero > {mounted}/all;;
            full) mount -o remount,size=64k {mounted}; head -c 65536 /dev/zero > {mounted}/all;;
            *) mount -o remount,{options} {mounted};;
        esac
        "$@"
        code=$?
        find {mounted} > {place.path.parent}/left
        exit $code
    """
    return run_in_shell(place, script, *args, before=("unshare", "-m"))


def run_in_shell(place: Place, script: str, *args: str, before: Sequence[str] = ()) -> Done:
    """A run that a script starts as its arguments."""
    done = subprocess.run(
        [*before, "sh", "-c", script, "sh", *place.command(*args)],
        cwd=place.path,
        env=place.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return place.read(done.returncode, done.stdout + done.stderr)


def left_in(place: Place) -> list[str]:
    """Names of what there was in the mounted folder at the end."""
    lines = (place.path.parent / "left").read_text().splitlines()[1:]
    return sorted(os.path.basename(line) for line in lines)


def test_full_disk_for_temporary_files(place: Place) -> None:
    """As by Python: the next of the system's folders is taken."""
    place.write("test_a.py", TESTS)
    done = run_with_mount(place, place.temporary, "full", "--capture=no")
    assert done.code == 0, done.output
    assert len(done.counts()) == 3
    assert left_in(place) == ["all"]


def test_no_room_for_temporary_files(place: Place) -> None:
    """Said before anything is measured."""
    place.write("test_a.py", TESTS)
    done = run_with_mount(place, place.temporary, "tight", "--capture=no")
    assert done.code == 4, done.output
    assert "[scratch]" in done.output
    assert "No space left on device" in done.output
    assert "fix: " in done.output
    assert left_in(place) == ["all"]


FILLS = """
import os, tempfile
@pytest.mark.instrcount
def test_fills():
    folder = tempfile.mkdtemp()
    try:
        with open(os.path.join(folder, "all"), "wb", buffering=0) as file:
            while True: file.write(bytes(4096))
    except OSError:
        pass
"""


def test_a_disk_that_fills_while_tests_are_counted(place: Place) -> None:
    """The test that filled it fails; its files are swept, and the others are measured."""
    place.write("test_a.py", FILLS.replace("import os", "import pytest, os") + TESTS)
    tree = place.tree()
    good = place.run("-k", "good")
    done = run_with_mount(place, place.temporary, "size=8m")
    assert done.verdict("test_fills") in ("failed", ""), done.output
    assert done.texts["test_fills"]
    assert {name: done.counts().get(name) for name in good.counts()} == good.counts(), done.output
    assert len(good.counts()) == 3
    assert left_in(place) == []
    assert tree == place.tree()


@pytest.mark.parametrize("state", ["full", "ro"])
def test_baselines_that_cannot_be_written(place: Place, state: str) -> None:
    """None is stored, the report does not say that one is, and no temp file stays."""
    place.write("test_a.py", TESTS)
    folder = place.path / "instrcount_baselines"
    done = run_with_mount(place, folder, state, *UPDATE)
    assert done.code == 4, done.output
    assert "[baseline-write]" in done.output
    assert "fix: ls -ld" in done.output
    assert [name for name in left_in(place) if "json" in name or "tmp" in name] == []
    assert len(done.counts()) == 3
    assert not any(test["written"] for test in done.tests.values() if "written" in test)


def test_baselines_that_cannot_be_read(place: Place) -> None:
    """Nor looked for: each test says so, and doctor; the run goes on to its end."""
    place.write("test_a.py", TESTS)
    place.run(*UPDATE)
    folder = place.path / "instrcount_baselines"
    # the rights of root are more than the mode of a folder
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    for mode in (0o000, 0o400):
        try:
            folder.chmod(mode)
            done = run_in_shell(place, 'exec "$@"', "test_a.py", before=powerless)
            doctor = subprocess.run(
                [*powerless, sys.executable, "-m", "pytest_instrcount", "doctor"],
                cwd=place.path,
                env=place.environment(),
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            folder.chmod(0o755)
        assert done.code == 1, done.output
        assert done.output.count("[baseline-unreadable]") >= 3
        assert "INTERNALERROR" not in done.output
        assert doctor.returncode == 1
        assert "[baseline-unreadable]" in doctor.stdout


@pytest.mark.parametrize("state", ["full", "ro"])
def test_report_that_cannot_be_written(place: Place, state: str) -> None:
    """Said with code 4, behind the verdicts; the other report is whole."""
    place.write("test_a.py", TESTS)
    folder = place.path / "reports"
    done = run_with_mount(place, folder, state, f"--instrcount-report=html:{folder}/report.html")
    assert done.code == 4, done.output
    assert "[report-write]" in done.output
    assert "3 new" in done.output
    assert len(done.counts()) == 3
    assert [name for name in left_in(place) if "html" in name or "tmp" in name] == []


def test_a_limit_of_file_size(place: Place) -> None:
    """As a full disk, where nothing can be mounted: no half of a file, and a message."""
    place.write("test_a.py", TESTS)
    tree = place.tree()
    done = run_in_shell(place, 'ulimit -f 8; exec "$@"', *UPDATE)
    assert done.code in (1, 4), done.output
    assert "fix: " in done.output
    place.assert_nothing_left(tree)


@pytest.mark.parametrize("files", [11, 18, 24])
def test_few_descriptors(place: Place, files: int) -> None:
    """Said, with what to do: of Valgrind, of what starts it, and of pytest inside."""
    place.write("test_a.py", TESTS)
    tree = place.tree()
    done = run_in_shell(place, f'ulimit -n {files}; exec "$@"')
    assert done.code == 4, done.output
    assert f"it may have {files} files open (ulimit -n)" in done.output
    assert "fix: ulimit -n 256" in done.output
    place.assert_nothing_left(tree)


DELETES = """
import os, shutil, pytest
from pathlib import Path
above = Path(os.environ.get("TMPDIR", "/nowhere")).parents
SCRATCH = next((each for each in above if each.name.startswith("instrcount-")), Path("/nowhere"))
pytestmark = pytest.mark.instrcount
def test_good_before(): assert sum(range(100))
def test_deletes_all(): shutil.rmtree(SCRATCH)
def test_good_between(): assert sum(range(200))
def test_deletes_dumps(): shutil.rmtree(SCRATCH / "dumps")
def test_good_after(tmp_path): assert sum(range(300))
@pytest.mark.instrcount(isolation="process")
def test_good_alone(): assert sum(range(400))
"""


def test_the_folder_of_the_run_is_deleted(place: Place) -> None:
    """By a test, in the middle: that one may fail, the others have their integers."""
    place.write("test_a.py", DELETES)
    tree = place.tree()
    good = place.run("-k", "good")
    done = place.run()
    assert len(good.counts()) == 4, good.output
    assert {name: done.counts().get(name) for name in good.counts()} == good.counts(), done.output
    assert done.texts["test_deletes_all"]
    assert done.texts["test_deletes_dumps"]
    place.assert_nothing_left(tree)


@pytest.mark.parametrize("kind", ["missing", "file", "read_only"])
def test_tmpdir_that_cannot_be_used(place: Place, kind: str) -> None:
    """The system's own folder is taken, as by Python."""
    place.write("test_a.py", TESTS)
    other = place.path.parent / "other"
    if kind == "file":
        other.write_text("")
    if kind == "read_only":
        other = Path("/proc")
    done = place.run(TMPDIR=str(other))
    assert done.code == 0, done.output
    assert len(done.counts()) == 3


@pytest.mark.parametrize("kind", ["file", "dangling", "loop"])
def test_a_baseline_folder_that_is_none(place: Place, kind: str) -> None:
    """Nothing is stored and nothing in its place is touched; the message has a command."""
    place.write("test_a.py", TESTS)
    folder = place.path / "instrcount_baselines"
    if kind == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to("nowhere" if kind == "dangling" else folder.name)
    tree = place.tree()
    done = place.run(*UPDATE)
    assert done.code in (1, 4), done.output
    assert "instrcount_baselines" in done.output
    assert "fix: ls -ld" in done.output
    place.assert_nothing_left(tree)


def test_a_baseline_folder_that_is_a_link(place: Place) -> None:
    """It is the folder that it leads to: the user chose it."""
    place.write("test_a.py", TESTS)
    there = place.path.parent / "there"
    there.mkdir()
    folder = place.path / "instrcount_baselines"
    folder.symlink_to(there)
    assert place.run(*UPDATE).code == 0
    assert len(list(there.rglob("*.json"))) == 3
    done = place.run()
    assert done.code == 0, done.output
    assert {test["verdict"] for test in done.tests.values()} == {"unchanged"}
    assert folder.is_symlink()
