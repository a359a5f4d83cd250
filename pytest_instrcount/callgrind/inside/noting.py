"""Which code objects run, in all threads: before 3.12 those that are known get frames of their own."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Iterator
from types import CodeType
from typing import Any

# Py_tracefunc.
_PROFILE_FUNCTION = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_void_p
)
# A call, as Python and as C names it (PyTrace_CALL).
_CALLS = ("call", 0)


@contextlib.contextmanager
def noting_codes(found: dict[int, CodeType]) -> Iterator[None]:
    """While it lasts, the code objects that run are put into ``found``, in the order of their first call.

    In all threads: one that is waiting for work, as a pool's, was started before.
    """

    def note(frame: Any, event: str | int, _: object) -> None:
        if event in _CALLS:
            found.setdefault(id(frame.f_code), frame.f_code)

    def note_elsewhere(_: object, frame: Any, event: int, argument: object) -> int:
        note(frame, event, argument)
        return 0

    before = threading.getprofile()
    function = _PROFILE_FUNCTION(note_elsewhere)  # to be kept as long as a thread calls it
    _profile_other_threads(ctypes.cast(function, ctypes.c_void_p))
    sys.setprofile(note)
    threading.setprofile(note)  # those that are started meanwhile
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(before)
        _profile_other_threads(None)


def _profile_other_threads(function: ctypes.c_void_p | None) -> None:
    """What ``threading.setprofile_all_threads`` does from 3.12 on, but for this thread."""
    api = ctypes.PyDLL(None)  # another than ``ctypes.pythonapi``, which is everybody's
    head, following, set_profile = (
        api.PyInterpreterState_ThreadHead,
        api.PyThreadState_Next,
        api._PyEval_SetProfile,
    )
    for each in (api.PyInterpreterState_Get, api.PyThreadState_Get, head, following):
        each.restype = ctypes.c_void_p
    head.argtypes = following.argtypes = [ctypes.c_void_p]
    set_profile.argtypes = [ctypes.c_void_p] * 3
    thread = head(api.PyInterpreterState_Get())
    while thread is not None:
        if thread != api.PyThreadState_Get():
            set_profile(thread, function, None)
        thread = following(thread)
