"""Client requests: how a program under Callgrind tells it to start, stop, switch and dump.

Valgrind recognises a request by a few instructions that do nothing on a real processor
(``valgrind.h``, "Architecture-specific definitions"). They are put into an executable page and
wrapped as built-in functions without arguments, so that a request costs a handful of
instructions, allocates nothing and always costs the same. ctypes is used to make them, never
to call them: a call through it costs thousands of instructions.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass

from pytest_instrcount.errors import InstrcountError

# callgrind.h: VG_USERREQ_TOOL_BASE('C', 'T') and what follows it.
_CALLGRIND = (ord("C") << 24) | (ord("T") << 16)
_ZERO_STATS = _CALLGRIND + 1
_TOGGLE_COLLECT = _CALLGRIND + 2
_DUMP_STATS_AT = _CALLGRIND + 3
_START_INSTRUMENTATION = _CALLGRIND + 4
_STOP_INSTRUMENTATION = _CALLGRIND + 5
# valgrind.h: VG_USERREQ__RUNNING_ON_VALGRIND; asks a question whose answer is ignored here.
_NOTHING = 0x1001

_METH_NOARGS = 0x0004
_PAGE_BYTES = 4096

Request = Callable[[], None]


class _MethodDef(ctypes.Structure):
    """``PyMethodDef`` of CPython's ``methodobject.h``."""

    _fields_ = [
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of one process, each a built-in function without arguments.

    START has Callgrind collect in every thread, those included that will be started: what a test
    does in threads is counted with it. Of the thread that asks nothing is collected before
    ``toggle``: its switch is turned and what was collected until then forgotten.
    ``nothing`` runs the same instructions as the others and asks for nothing: code that may or
    may not want a request calls one or the other, and executes the same either way.
    """

    start: Request
    stop: Request
    toggle: Request
    dump: Request
    nothing: Request


def x86_64_code(*words: int, counts_none: bool) -> bytes:
    """Machine code of ``PyObject *request(PyObject *self, PyObject *)`` that returns ``self``.

    ``words`` are the addresses of the six words of each request. ``counts_none`` takes a reference
    to the returned ``None``, which is immortal (and must be left alone) from 3.12 on.
    """
    requests = (
        b"\x48\xb8"
        + struct.pack("<Q", each)  #       mov  rax, words
        + b"\x31\xd2"  #                              xor  edx, edx   (the default answer)
        + b"\x48\xc1\xc7\x03\x48\xc1\xc7\x0d"  #      rol  rdi, 3;  rol rdi, 13
        + b"\x48\xc1\xc7\x3d\x48\xc1\xc7\x33"  #      rol  rdi, 61; rol rdi, 51
        + b"\x48\x87\xdb"  #                          xchg rbx, rbx
        for each in words
    )
    return b"".join(
        (
            *requests,
            b"\x48\xff\x07" if counts_none else b"",  # inc  qword [rdi]
            b"\x48\x89\xf8\xc3",  #                    mov  rax, rdi;  ret
        )
    )


def aarch64_code(*words: int, counts_none: bool) -> bytes:
    """The same for 64-bit ARM. Written from ``valgrind.h``; not yet tried on such a machine."""
    code = []
    for each in words:
        code.append(0xD2800004 | (each & 0xFFFF) << 5)  #     movz x4, #..
        for shift in (1, 2, 3):
            half = each >> 16 * shift & 0xFFFF
            code.append(0xF2800004 | shift << 21 | half << 5)  # movk x4, #.., lsl #16*shift
        code.append(0xD2800003)  #                            mov  x3, #0
        for rotation in (3, 13, 51, 61):
            code.append(0x93CC018C | rotation << 10)  #       ror  x12, x12, #rotation
        code.append(0xAA0A014A)  #                            orr  x10, x10, x10
    if counts_none:
        code += [0xF9400001, 0x91000421, 0xF9000001]  #    ldr x1,[x0]; add x1,x1,#1; str x1,[x0]
    code.append(0xD65F03C0)  #                             ret  (self is in x0 already)
    return struct.pack(f"<{len(code)}I", *code)


_CODE = {"x86_64": x86_64_code, "aarch64": aarch64_code}

#: The processors that requests are written for, as ``platform.machine`` names them.
MACHINES = tuple(_CODE)


class CodePage:
    """A page of memory that is written and executed, as long as the process lives; each fork has its own.

    Raises InstrcountError ``executable-page`` where the system forbids one.
    """

    def __init__(self) -> None:
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        prot = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        try:
            self._page = mmap.mmap(-1, _PAGE_BYTES, flags=private, prot=prot)
        except OSError as error:
            raise InstrcountError(
                "executable-page",
                f"the system refuses an executable page ({error})",
                "allow execmem for Python (SELinux: setsebool -P deny_execmem 0)",
            ) from error
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._used = 0
        _kept.append(self)

    def put(self, data: bytes) -> int:
        """Add bytes, at a multiple of 16; returns their address."""
        start, end = self._used, self._used + len(data)
        self._page[start:end] = data
        self._used = (end + 15) // 16 * 16
        return self._base + start


def load_requests() -> Requests:
    """Make this process's requests.

    Raises InstrcountError ``machine`` on a processor they are not written for, and
    ``executable-page`` where the system forbids a page that is written and then executed.
    """
    machine = platform.machine()
    code = _CODE.get(machine)
    if code is None:
        raise InstrcountError(
            "machine",
            f"client requests are not written for {machine}",
            "run on x86_64 or aarch64",
        )
    put = CodePage().put
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype = ctypes.py_object
    new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]

    def make(name: bytes, *asked: int, argument: int = 0) -> Request:
        words = [put(struct.pack("<6Q", request, argument, 0, 0, 0, 0)) for request in asked]
        body = code(*words, counts_none=sys.version_info < (3, 12))
        method = _MethodDef(name, put(body), _METH_NOARGS, None)
        _kept.append(method)
        function: Request = new_function(ctypes.addressof(method), None, None)
        return function

    return Requests(
        start=make(b"start", _START_INSTRUMENTATION, _TOGGLE_COLLECT, _ZERO_STATS),
        stop=make(b"stop", _STOP_INSTRUMENTATION),
        toggle=make(b"toggle", _TOGGLE_COLLECT),
        dump=make(b"dump", _DUMP_STATS_AT, argument=put(b"instrcount\0")),
        nothing=make(b"nothing", _NOTHING),
    )


#: The functions point into these; they live as long as the process.
_kept: list[object] = []
