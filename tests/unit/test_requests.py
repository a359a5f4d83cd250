"""The machine code of client requests, byte by byte, and what it does outside Valgrind."""

from __future__ import annotations

import mmap
import platform
import struct
import sys

import pytest

from pytest_instrcount.callgrind.requests import aarch64_code, load_requests, x86_64_code
from pytest_instrcount.errors import InstrcountError

WORDS = 0x1122_3344_5566_7788

#: valgrind.h, PLAT_amd64_linux: __SPECIAL_INSTRUCTION_PREAMBLE, then xchgq %rbx,%rbx.
AMD64_MAGIC = "48c1c703 48c1c70d 48c1c73d 48c1c733 4887db"
#: PLAT_arm64_linux: ror x12 by 3, 13, 51, 61, then orr x10, x10, x10.
ARM64_MAGIC = (0x93CC0D8C, 0x93CC358C, 0x93CCCD8C, 0x93CCF58C, 0xAA0A014A)


def hexa(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize("counts_none", [False, True])
def test_x86_64(counts_none: bool) -> None:
    """It is mov rax, words; xor edx, edx; the preamble; xchg; [inc qword [rdi];] mov rax, rdi; ret."""
    expected = (
        hexa("48b8 8877665544332211 31d2")
        + hexa(AMD64_MAGIC)
        + (hexa("48ff07") if counts_none else b"")
        + hexa("4889f8 c3")
    )
    assert x86_64_code(WORDS, counts_none=counts_none) == expected


@pytest.mark.parametrize("counts_none", [False, True])
def test_aarch64(counts_none: bool) -> None:
    """It is movz and three movk into x4; mov x3, 0; the preamble; orr; [the reference;] ret."""
    load = (0xD28EF104, 0xF2AAACC4, 0xF2C66884, 0xF2E22444)
    refer = (0xF9400001, 0x91000421, 0xF9000001) if counts_none else ()
    words = (*load, 0xD2800003, *ARM64_MAGIC, *refer, 0xD65F03C0)
    expected = struct.pack(f"<{len(words)}I", *words)
    assert aarch64_code(WORDS, counts_none=counts_none) == expected


def test_requests_in_a_row() -> None:
    """Each is asked for before the one return."""
    first, second = (x86_64_code(words, counts_none=False) for words in (1, WORDS))
    assert x86_64_code(1, WORDS, counts_none=False) == first[: -len(hexa("4889f8 c3"))] + second
    first, second = (aarch64_code(words, counts_none=False) for words in (1, WORDS))
    assert aarch64_code(1, WORDS, counts_none=False) == first[:-4] + second


@pytest.mark.parametrize("words", [0, 1, 0xFFFF, 0x1_0000, 2**48 - 16, 2**64 - 1])
def test_aarch64_addresses(words: int) -> None:
    """The four halves of any address come together again."""
    code = struct.unpack("<4I", aarch64_code(words, counts_none=False)[:16])
    halves = [(each >> 5 & 0xFFFF) << 16 * (each >> 21 & 3) for each in code]
    assert sum(halves) == words
    assert [each & 0x1F for each in code] == [4] * 4


def test_all_requests_execute_alike() -> None:
    """Code of one length, whatever is asked: a request and no request cost the same."""
    assert len(x86_64_code(0, counts_none=True)) == len(x86_64_code(WORDS, counts_none=True))


runs_here = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64") or sys.platform != "linux",
    reason="not written for this machine",
)


@runs_here
def test_outside_valgrind_a_request_does_nothing() -> None:
    """Each returns None and takes no argument."""
    made = load_requests()
    for name in ("start", "stop", "toggle", "dump", "nothing"):
        request = getattr(made, name)
        assert request.__name__ == name
        assert request() is None
        with pytest.raises(TypeError):
            request(1)


@runs_here
def test_none_is_counted_as_this_python_does() -> None:
    """A thousand requests leave the references of None where they were (before 3.12), or alone."""
    made = load_requests()
    toggle = made.nothing
    times = list(range(1000))
    before = sys.getrefcount(None)
    for _ in times:
        toggle()
    assert abs(sys.getrefcount(None) - before) < 100


def test_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that names the machine."""
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(InstrcountError, match=r"riscv64 \[machine\]"):
        load_requests()


@runs_here
def test_no_executable_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system forbids it: an error with the setting to change."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(InstrcountError, match=r"Permission denied.*\[executable-page\]\n  fix: .*"):
        load_requests()
