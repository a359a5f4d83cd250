"""Tells whether a program has symbols, in its file or where a package of debug symbols puts them."""

from __future__ import annotations

import os
import struct
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_ELF64 = b"\x7fELF\x02\x01"
_SECTION = struct.Struct("<4xI16xQQ")  # of elf.h's Elf64_Shdr: type, offset, size
_SYMBOL_TABLE, _NOTE = 2, 7  # SHT_SYMTAB, SHT_NOTE
_BUILD_ID = struct.pack("<III4s", 4, 20, 3, b"GNU")  # NT_GNU_BUILD_ID, of 20 bytes


def interpreter_file() -> Path:
    """The file with the code of this interpreter: the program, or libpython where there is one."""
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        folder, name = (sysconfig.get_config_var(each) for each in ("LIBDIR", "INSTSONAME"))
        library = Path(str(folder), str(name))
        if library.is_file():
            return library
    return Path(os.path.realpath(sys.executable))


def has_symbols(path: Path, debug: Path = Path("/usr/lib/debug")) -> bool | None:
    """True if a 64-bit ELF file has a symbol table; None if that cannot be said.

    Or if its build has one in ``debug``, where Valgrind looks, too.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if len(content) < 64 or not content.startswith(_ELF64):
        return None
    sections = list(_sections(content))
    if any(kind == _SYMBOL_TABLE for kind, _ in sections):
        return True
    notes = (section for kind, section in sections if kind == _NOTE)
    builds = (note[len(_BUILD_ID) :].hex() for note in notes if note.startswith(_BUILD_ID))
    return any(
        (debug / ".build-id" / f"{build[:2]}/{build[2:]}.debug").is_file() for build in builds
    )


def _sections(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each."""
    (start,) = struct.unpack_from("<Q", content, 40)
    size, number = struct.unpack_from("<HH", content, 58)
    for at in range(start, start + size * number, size or 1):
        if at + _SECTION.size <= len(content):
            kind, offset, length = _SECTION.unpack_from(content, at)
            yield kind, content[offset : offset + length]
