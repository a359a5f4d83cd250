"""Random numbers that code in C and Rust asks the system for come from a seed instead: x86_64 with glibc.

A hash map of Rust begins with a random key, so the counts of a test that fills one would differ from run to
run, and there is nothing that the test could seed. Here the functions of libc jump to a small generator.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from pytest_instrcount.callgrind.requests import CodePage, x86_64_code
from pytest_instrcount.errors import InstrcountError

_PAGE = mmap.PAGESIZE
_WRITABLE = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
# valgrind.h: VG_USERREQ__DISCARD_TRANSLATIONS. What was executed before stays as it was otherwise.
_DISCARD_TRANSLATIONS = 0x1002
# "mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx", by which glibc's syscall() begins, and what may
# stand before it.
_SYSCALL = b"\x48\x89\xf8\x48\x89\xf7\x48\x89\xd6\x48\x89\xca"
_ENDBR64 = b"\xf3\x0f\x1e\xfa"
# Knuth's, of MMIX.
_FACTOR, _SUMMAND = 6364136223846793005, 1442695040888963407

#: Of the generator: it decides what comes next.
State: TypeAlias = ctypes.c_uint64


def replace_native_random() -> Sequence[State]:
    """Replace libc's ``getrandom``, ``getentropy`` and ``syscall``, in this process and its forks.

    Returns the state of the generator, or nothing where they cannot be replaced.
    """
    libc = ctypes.CDLL(None)
    named = "gnu_get_libc_version", "getrandom", "getentropy"
    if platform.machine() != "x86_64" or not all(hasattr(libc, name) for name in named):
        return ()
    try:
        put = CodePage().put
    except InstrcountError:  # said where requests are loaded
        return ()
    state = State.from_address(put(bytes(ctypes.sizeof(State))))
    base = ctypes.addressof(state)
    drawing = put(_drawing(base, b"\x48\x89\xf0"))  # mov rax, rsi
    _jump_from(_address(libc.getrandom), drawing, put)
    _jump_from(_address(libc.getentropy), put(_drawing(base, b"\x31\xc0")), put)  # xor eax, eax
    syscall = _address(libc.syscall)
    if ctypes.string_at(syscall, len(_ENDBR64)) == _ENDBR64:
        syscall += len(_ENDBR64)
    if ctypes.string_at(syscall, len(_SYSCALL)) == _SYSCALL:
        _jump_from(syscall, put(_asking(drawing, syscall + len(_SYSCALL))), put)
    return (state,)


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def _drawing(state: int, answer: bytes) -> bytes:
    """Machine code that fills ``rsi`` bytes at ``rdi``, and returns."""
    return b"".join(
        (
            b"\x49\xb8" + struct.pack("<Q", state),  #     mov  r8, state
            b"\x49\xb9" + struct.pack("<Q", _FACTOR),  #   mov  r9, factor
            b"\x49\xba" + struct.pack("<Q", _SUMMAND),  #  mov  r10, summand
            b"\x49\x8b\x00\x48\x89\xf1\x48\x89\xfa",  #    mov  rax, [r8];  mov rcx, rsi;  mov rdx, rdi
            b"\x48\x85\xc9\x74\x19",  #              next: test rcx, rcx;   jz  done
            b"\x49\x0f\xaf\xc1\x4c\x01\xd0",  #            imul rax, r9;    add rax, r10
            b"\x49\x89\xc3\x49\xc1\xeb\x38",  #            mov  r11, rax;   shr r11, 56
            b"\x44\x88\x1a\x48\xff\xc2",  #                mov  [rdx], r11b;  inc rdx
            b"\x48\xff\xc9\xeb\xe2",  #                    dec  rcx;        jmp next
            b"\x49\x89\x00",  #                      done: mov  [r8], rax
            answer,
            b"\xc3",  #                                    ret
        )
    )


def _asking(drawing: int, rest: int) -> bytes:
    """Machine code of ``syscall(318, buffer, length, flags)``, which is getrandom; others go on in libc."""
    return b"".join(
        (
            b"\x81\xff\x3e\x01\x00\x00\x75\x12",  #        cmp  edi, 318;   jne other
            b"\x48\x89\xf7\x48\x89\xd6",  #                mov  rdi, rsi;   mov rsi, rdx
            _jump(drawing),
            _SYSCALL,  #                            other:
            b"\x49\xbb" + struct.pack("<Q", rest),  #      mov  r11, rest
            b"\x41\xff\xe3",  #                            jmp  r11
        )
    )


def _jump(to: int) -> bytes:
    return b"\x48\xb8" + struct.pack("<Q", to) + b"\xff\xe0"  # mov rax, to;  jmp rax


def _jump_from(function: int, to: int, put: Callable[[bytes], int]) -> None:
    """Let a function begin with a jump, where the system lets its page be written.

    However short it is, the next begins at a multiple of 16.
    """
    code = _jump(to)
    if function % 16 + len(code) > 16:
        return
    first = function // _PAGE * _PAGE
    size = (function + len(code) - first + _PAGE - 1) // _PAGE * _PAGE
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    if protect(first, size, _WRITABLE):
        return
    ctypes.memmove(function, code, len(code))
    protect(first, size, mmap.PROT_READ | mmap.PROT_EXEC)
    words = put(struct.pack("<6Q", _DISCARD_TRANSLATIONS, first, size, 0, 0, 0))
    request = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    request(put(x86_64_code(words, counts_none=False)))(None)
