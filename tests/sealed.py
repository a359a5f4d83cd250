"""Run a command in which no process can open a socket of a network: ``sealed.py COMMAND ...``.

A filter of the kernel (seccomp), which processes hand down to all that they start: whoever asks for a
socket that is not of AF_UNIX is killed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000
#: AUDIT_ARCH_* and the number of socket()
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}


def seal() -> None:
    """From now on this process, and what it starts, is killed for a socket of a network."""
    arch, socket = _MACHINES[platform.machine()]
    # struct seccomp_data: number at 0, architecture at 4, the first argument at 16
    program = [
        (_LOAD, 0, 0, 4),
        (_JUMP_IF_EQUAL, 0, 5, arch),
        (_LOAD, 0, 0, 0),
        (_JUMP_IF_EQUAL, 0, 2, socket),
        (_LOAD, 0, 0, 16),
        (_JUMP_IF_EQUAL, 0, 1, 1),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    listed = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.create_string_buffer(listed), 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    seal()
    os.execvp(sys.argv[1], sys.argv[1:])
