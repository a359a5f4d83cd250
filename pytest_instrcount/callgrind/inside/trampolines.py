"""A C frame of its own for each Python function, so that Callgrind tells them apart.

From 3.12 on CPython has them, for perf (``sys.activate_stack_trampoline``). Before that, the hook
of PEP 523 is given a function that calls the evaluation loop through a stub of the code object.
Either way there is a file that says which address stands for which function, as perf reads it.

They move the count: what is measured with them says where a cost is, and is never gated.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import struct
import sys
from contextlib import AbstractContextManager
from types import CodeType, FunctionType
from typing import Any

from pytest_instrcount.callgrind.inside.noting import noting_codes
from pytest_instrcount.callgrind.perf_map import NAMES, PERF_MAP
from pytest_instrcount.host.foreign import flags_of, is_of_python, names_of

# mypy takes the package for one of 3.11, where these functions are missing
_sys: Any = sys

_STUB_BYTES = 32
#: Code objects that get a stub; what a test calls beyond is counted as its caller's.
_MOST_STUBS = 50_000
_WORD = 8
# Of a class: that its attributes cannot be set.
_IMMUTABLE = 1 << 8
# What a class has whose methods are made of text.
_MADE = {"__dataclass_fields__", "_fields"}
# _PyInterpreterFrame.f_code of 3.11.
_F_CODE = 32


def why_none() -> str:
    """Why this interpreter has no trampolines; "" if it has.

    >>> why_none() in ("", "CPython has trampolines on x86_64 alone before 3.12")
    True
    """
    if sys.version_info < (3, 12):
        if platform.machine() == "x86_64":
            return ""
        return "CPython has trampolines on x86_64 alone before 3.12"
    try:
        supported = _sys.is_stack_trampoline_active() or _can_activate()
    except (AttributeError, RuntimeError) as error:
        return f"this interpreter refuses trampolines: {error}"
    return "" if supported else "this interpreter was built without trampolines"


def _can_activate() -> bool:
    import sysconfig

    return bool(sysconfig.get_config_var("PY_HAVE_PERF_TRAMPOLINE"))


class PerfTrampolines:
    """CPython's own, from 3.12 on. Forks of what is counted have none, and leave no map."""

    def learn(self) -> AbstractContextManager[None]:
        """Nothing is to be learnt."""
        return contextlib.nullcontext()

    def start(self) -> None:
        """From now on each Python function has a frame of its own."""
        os.register_at_fork(after_in_child=self._leave_none)
        name_made_methods()
        if sys.version_info[:2] == (3, 13):
            keep_inits_apart()
        _sys.activate_stack_trampoline("perf")

    def stop(self) -> None:
        """New calls have none."""
        _sys.deactivate_stack_trampoline()

    @staticmethod
    def _leave_none() -> None:
        if _sys.is_stack_trampoline_active():
            _sys.deactivate_stack_trampoline()
        with contextlib.suppress(OSError):
            os.unlink(PERF_MAP.format(pid=os.getpid()))


def keep_inits_apart() -> None:
    """Have classes call their ``__init__`` from C, for good.

    What 3.13 makes of a call of a class (CALL_ALLOC_AND_ENTER_INIT) runs ``__init__`` within the
    caller's frame, whatever evaluates frames; other releases either have no such instruction or ask
    first (_CHECK_PEP_523). It is not used for an ``__init__`` that is no plain function, and a method
    of the kind that C has (PyInstanceMethod_New) is one in all else: looked up, it is the function.
    To be deleted with the support of 3.13.
    """
    made = ctypes.pythonapi.PyInstanceMethod_New
    made.restype, made.argtypes = ctypes.py_object, (ctypes.py_object,)
    for each in classes_alive():
        init = names_of(each).get("__init__")
        mutable = is_of_python(each) and not flags_of(each) & _IMMUTABLE
        if type(init) is FunctionType and mutable:
            type.__setattr__(each, "__init__", made(init))


def name_made_methods() -> None:
    """Have the code of methods that ``dataclass`` and ``namedtuple`` make say which class they are of.

    >>> from dataclasses import make_dataclass
    >>> init = make_dataclass("Point", ["x"]).__init__
    >>> name_made_methods(); init.__code__.co_qualname
    'Point.__init__'
    """
    for each in classes_alive():
        for made in names_of(each).values() if _MADE & names_of(each).keys() else ():
            function = getattr(made, "__func__", made)  # __new__ is a static method
            if type(function) is FunctionType and function.__code__.co_filename.startswith("<"):
                code: Any = function.__code__
                function.__code__ = code.replace(co_qualname=function.__qualname__)


def classes_alive() -> list[type]:
    """All classes that there are."""
    # by its place: a metaclass may say what is equal to its classes, or that they have no hash
    found: dict[int, type] = {}
    pending: list[type] = [object]
    while pending:
        if id(each := pending.pop()) not in found:
            found[id(each)] = each
            pending += type.__subclasses__(each)
    return list(found.values())


class EvaluatorTrampolines:
    """Stubs of ours, for 3.11: its frames and code objects will not change any more."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._kept: list[Any] = []
        self._called: dict[int, CodeType] = {}

    def learn(self) -> AbstractContextManager[None]:
        """Around one repetition: what it calls will have frames of its own."""
        name_made_methods()
        return noting_codes(self._called)

    def start(self) -> None:
        """From now on they have."""
        codes = list(self._called.values())[:_MOST_STUBS]
        api = ctypes.pythonapi
        default = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value
        assert default is not None
        index = api._PyEval_RequestCodeExtraIndex(None)
        set_extra = api._PyCode_SetExtra
        set_extra.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
        page = mmap.mmap(
            -1,
            _STUB_BYTES * (len(codes) + 4),
            prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
        )
        base = ctypes.addressof(ctypes.c_char.from_buffer(page))
        lines = []
        offset = 0
        for number, code in enumerate(codes):
            place = _STUB_BYTES * (number + 4)
            page[place : place + _STUB_BYTES] = _stub(default)
            before = _words(code) if number == 0 else ()
            set_extra(code, index, base + place)
            if number == 0:
                offset = _changed(before, _words(code))
            name = getattr(code, "co_qualname", code.co_name)
            where = f"{code.co_firstlineno}:{name}:{code.co_filename}"
            lines.append(f"{base + place:x} {_STUB_BYTES:x} py:{where}\n")
        evaluator = _evaluator(default, offset, index)
        page[: len(evaluator)] = evaluator
        name = os.path.join(self._folder, NAMES.format(pid=os.getpid()))
        with open(name, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
        self._kept += [page, codes]
        self._set(base)

    def stop(self) -> None:
        """New calls have none."""
        self._set(ctypes.cast(ctypes.pythonapi._PyEval_EvalFrameDefault, ctypes.c_void_p).value)

    def _set(self, function: int | None) -> None:
        api = ctypes.pythonapi
        current = api.PyInterpreterState_Get
        current.restype = ctypes.c_void_p
        set_function = api._PyInterpreterState_SetEvalFrameFunc
        set_function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        set_function.restype = None
        set_function(current(), function)


def make_trampolines(folder: str) -> PerfTrampolines | EvaluatorTrampolines:
    """The trampolines that this interpreter has; our own maps are written into ``folder``."""
    return PerfTrampolines() if sys.version_info >= (3, 12) else EvaluatorTrampolines(folder)


def _words(code: CodeType) -> tuple[int, ...]:
    number = CodeType.__basicsize__ // _WORD
    return tuple((ctypes.c_uint64 * number).from_address(id(code)))


def _changed(before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """The offset of ``co_extra``: the one pointer that setting an extra made."""
    # the first word is the number of references
    found = [n for n in range(1, len(before)) if not before[n] and after[n]]
    if len(found) != 1:
        raise RuntimeError(f"code objects have no place for an extra: {found}")
    return found[0] * _WORD


_ENTER = b"\x48\x83\xec\x08"  #                             sub  rsp, 8


def _tail(default: int) -> bytes:
    """Machine code that calls the evaluation loop, behind ``_ENTER``, and returns."""
    return (
        b"\x48\xb8"
        + struct.pack("<Q", default)  #   mov  rax, default
        + b"\xff\xd0"  #                            call: call rax
        b"\x48\x83\xc4\x08\xc3"  #                      add  rsp, 8;  ret
    )


def _stub(default: int) -> bytes:
    """Machine code that calls the evaluation loop with its own arguments: 32 bytes."""
    return (_ENTER + _tail(default)).ljust(_STUB_BYTES, b"\x90")


def _evaluator(default: int, offset: int, index: int) -> bytes:
    """Machine code of the hook: calls the stub of a frame's code, or else the loop itself."""
    extra = _WORD * (1 + index)
    load = b"\x48\x8b\x80" + struct.pack("<i", extra)  #  mov  rax, [rax + extra]
    test = b"\x48\x85\xc0"  #                             test rax, rax
    # from behind each jump to the tail, or to its call
    to_call = b"\x75\x0a"  #                              jnz  call
    after_size = load + test + to_call
    size = b"\x48\x83\x38" + struct.pack("<b", index)  #  cmp  qword [rax], index
    to_tail_size = b"\x7e" + struct.pack("<b", len(after_size))  # jle tail
    after_null = size + to_tail_size + after_size
    to_tail_null = b"\x74" + struct.pack("<b", len(after_null))  # jz tail
    return (
        _ENTER
        + b"\x48\x8b\x46"
        + struct.pack("<b", _F_CODE)  #  mov rax, [rsi + f_code]
        + b"\x48\x8b\x80"
        + struct.pack("<i", offset)  # mov rax, [rax + co_extra]
        + test
        + to_tail_null
        + after_null
        + _tail(default)
    )
