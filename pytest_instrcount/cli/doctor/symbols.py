"""Tells whether a program has symbols. Pure but for reading its file."""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from pathlib import Path

_SYMBOL_TABLE = 2  # SHT_SYMTAB of elf.h
_ELF64 = b"\x7fELF\x02\x01"
_MOST_SECTIONS = 10_000


def interpreter_file() -> Path:
    """The file with the code of this interpreter: the program, or libpython where there is one."""
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        folder, name = (sysconfig.get_config_var(each) for each in ("LIBDIR", "INSTSONAME"))
        library = Path(str(folder), str(name))
        if library.is_file():
            return library
    return Path(os.path.realpath(sys.executable))


def has_symbols(path: Path) -> bool | None:
    """True if a 64-bit ELF file has a symbol table; None if that cannot be said."""
    try:
        with path.open("rb") as file:
            header = file.read(64)
            if len(header) < 64 or not header.startswith(_ELF64):
                return None
            (start,) = struct.unpack_from("<Q", header, 40)
            size, number = struct.unpack_from("<HH", header, 58)
            if size < 8 or not 0 < number <= _MOST_SECTIONS:
                return None
            file.seek(start)
            sections = file.read(size * number)
    except OSError:
        return None
    kinds = [
        struct.unpack_from("<I", sections, at + 4)[0]
        for at in range(0, len(sections) - size + 1, size)
    ]
    return _SYMBOL_TABLE in kinds
