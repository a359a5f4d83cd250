"""Outputs of the user's choice: what is at their path stays what it is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_instrcount.config.outputs import why_refused
from pytest_instrcount.host.files import appending, write_output
from pytest_instrcount.trace.export.runner import write_chunks


def test_a_file_is_replaced(tmp_path: Path) -> None:
    """Whole, and the folder of a new one is made."""
    path = tmp_path / "new" / "report"
    write_output(path, b"first")
    write_output(path, b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(path.parent) == ["report"]


def test_a_link_is_followed(tmp_path: Path) -> None:
    """To a file, over another link, and to none yet; the links stay."""
    real, link, chain = tmp_path / "there" / "real", tmp_path / "link", tmp_path / "chain"
    link.symlink_to(real)
    chain.symlink_to("link")
    for path, data in ((link, b"first"), (chain, b"second"), (link, b"third")):
        write_output(path, data)
        assert real.read_bytes() == data
    assert link.is_symlink() and chain.is_symlink()
    circle = tmp_path / "circle"
    circle.symlink_to(circle)
    with pytest.raises(OSError, match="symbolic links"):
        write_output(circle, b"")


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    """By whichever writer; one that nobody reads is an error, and not waited for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No such device"):
        write_output(pipe, b"x")
    held = os.open(pipe, os.O_RDWR)  # somebody who reads

    def append(data: bytes) -> None:
        with appending(pipe) as (file, size):
            assert size == 0
            file.write(data)

    writers: list[Callable[[bytes], object]] = [
        lambda data: write_output(pipe, data),
        lambda data: write_chunks(pipe, [data]),
        append,
    ]
    for write in writers:
        sent = os.urandom(200_000)
        writer = threading.Thread(target=write, args=(sent,))
        writer.start()
        got = b""
        while len(got) < len(sent):
            got += os.read(held, 1_000_000)
        writer.join(30)
        assert got == sent
    os.close(held)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to(tmp_path: Path) -> None:
    """A link to one, too: as root in a container, /dev/null would be gone."""
    link = tmp_path / "nothing"
    link.symlink_to(os.devnull)
    before = os.stat(os.devnull)
    write_output(link, b"x")
    write_output(Path(os.devnull), b"x")
    write_chunks(link, ["x"])
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert os.stat(os.devnull).st_ino == before.st_ino
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(tmp_path: Path, name: str) -> None:
    """Of a process that has printed before, to a file and to a pipe; the link itself stays."""
    code = (
        "from pathlib import Path; from pytest_instrcount.host.files import write_output; "
        f"print('before', flush=True); write_output(Path({name!r}), b'data\\n'); print('after')"
    )
    command = [sys.executable, "-c", code]
    piped = subprocess.run(command, capture_output=True, check=True).stdout
    assert piped == b"before\ndata\nafter\n"
    for mode in ("ab", "wb"):
        log = tmp_path / "log"
        with log.open(mode) as file:
            subprocess.run(command, stdout=file, check=True)
        assert log.read_bytes() == piped
    assert Path("/dev/stdout").is_symlink()


def test_a_python_file_is_not_written_over(tmp_path: Path) -> None:
    """By an export in a test, a merge, a trace: there nothing was checked before."""
    module, link = tmp_path / "test_it.py", tmp_path / "link"
    module.write_text("code")
    link.symlink_to(module)
    for path in (module, link):
        with pytest.raises(FileExistsError):
            write_output(path, b"x")
    assert module.read_text() == "code"


def test_what_is_refused(tmp_path: Path) -> None:
    ini, module, baselines = tmp_path / "tox.ini", tmp_path / "new.py", tmp_path / "baselines"
    baselines.mkdir()
    link = tmp_path / "link"
    link.symlink_to(ini)
    words = {
        tmp_path: "it is a folder",
        ini: "this run reads that file",
        link: "this run reads that file",
        module: "it is a Python file",
        baselines / "cp" / "a.json": "it is among the baselines",
        tmp_path / "report.json": "",
        Path(os.devnull): "",
    }
    assert {path: why_refused(path, [ini], baselines) for path in words} == words
