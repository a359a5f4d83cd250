"""An update that does not come to its end: an error, or a kill, at each of its steps."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.store.updating import JOURNAL, mend, updating

NAMES = ("a.json", "b.json", "new/c.json", "d.json")
GONE = "gone.profile.gz"
OLD = {"a.json": "old a", "b.json": "old b", "d.json": "old d", GONE: "old profile"}
NEW = dict.fromkeys(NAMES, "new")
#: What an update calls to change the folder, one file after another.
STEPS = ("link", "replace", "unlink")


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()
    }


def baselines(root: Path) -> dict[str, str]:
    """Without what an update has beside its files."""
    return {name: text for name, text in files(root).items() if name in (*NAMES, GONE)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three baselines, and a profile."""
    folder = tmp_path / "baselines"
    folder.mkdir()
    for name, text in OLD.items():
        (folder / name).write_text(text)
    return folder


def update(root: Path) -> None:
    """Change all three, delete the profile, and add a baseline."""
    with updating(root) as update:
        update.begin()
        for name in NAMES:
            update.add(root / name, b"new")
            if name == "b.json":
                update.remove(root / GONE)


def test_all_are_stored(root: Path) -> None:
    update(root)
    assert files(root) == NEW


@pytest.mark.parametrize("number", range(1, 5))
def test_a_rename_that_fails(root: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Whichever it is, all files are as they were, and nothing is beside them."""
    real, calls = os.replace, []

    def replace(source: Path, target: Path) -> None:
        calls.append(target)
        if len(calls) == number:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(InstrcountError) as caught:
        update(root)
    assert caught.value.slug == "baseline-write"
    assert files(root) == OLD
    assert not (root / "new").exists()


def killed_after(root: Path, steps: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Update in a process that is killed after so many changes; whether it was."""
    pid = os.fork()
    if pid == 0:
        done = 0

        def counting(real: object) -> object:
            def step(*args: object, **kwargs: object) -> object:
                nonlocal done
                assert callable(real)
                result = real(*args, **kwargs)
                done += 1
                if done == steps:
                    os.kill(os.getpid(), signal.SIGKILL)
                return result

            return step

        try:
            for name in STEPS:
                monkeypatch.setattr(os, name, counting(getattr(os, name)))
            update(root)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("by", ["check", "update"])
@pytest.mark.parametrize("links", [True, False])
def test_a_kill_between_two_steps(
    root: Path, monkeypatch: pytest.MonkeyPatch, by: str, *, links: bool
) -> None:
    """All files are old or all are new, once the next run has begun; then nothing is left."""
    if not links:  # as on some file systems

        def link(*args: object, **kwargs: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "link", link)
    seen, torn, steps = [], 0, 1
    while killed_after(root, steps, monkeypatch):
        torn += baselines(root) not in (OLD, NEW)
        mend(root)
        found = baselines(root)
        seen.append(found)
        assert found in (OLD, NEW)
        assert not (root / JOURNAL).exists()
        if by == "update":
            update(root)
            assert files(root) == NEW
        for name in NAMES:
            (root / name).unlink(missing_ok=True)
        for name, text in OLD.items():
            (root / name).write_text(text)
        steps += 1
    assert torn >= 3  # there were files of both
    assert OLD in seen and NEW in seen
    assert files(root) == NEW


def test_a_folder_that_cannot_be_mended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read-only, as in a container: said, not compared with."""
    killed_after(root, 3, monkeypatch)

    def replace(source: Path, target: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(InstrcountError) as caught:
        mend(root)
    assert caught.value.slug == "baseline-write"
    monkeypatch.undo()
    mend(root)
    assert files(root) == OLD


def test_what_is_healthy_is_not_touched(root: Path) -> None:
    """No lock is taken, and nothing made, where no update was killed."""
    root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = root.stat().st_mtime_ns
    mend(root)
    mend(root / "missing")
    assert root.stat().st_mtime_ns == before
    root.chmod(0o700)
    assert files(root) == OLD


def test_a_link_is_kept_as_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A baseline that is a link in its folder is one again after a failure."""
    (root / "a.json").unlink()
    (root / "a.json").symlink_to("b.json")
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if source.suffix == ".instrcount-tmp" and target.name == "d.json":
            raise ZeroDivisionError
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(ZeroDivisionError):
        update(root)
    assert os.readlink(root / "a.json") == "b.json"
    assert (root / "b.json").read_text() == "old b"
