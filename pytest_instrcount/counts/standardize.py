"""One name for one function, whatever folder, library file, compiler or processor it comes from."""

from __future__ import annotations

import re
from functools import lru_cache

from pytest_instrcount.counts.profile import Profile, rename_profile

_UNKNOWN, _LIBC = "???", "libc"
# What is added to a symbol. By compilers and linkers: .isra.0, .constprop.0, .part.0, .cold,
# .lto_priv.0, .llvm.123, clones of --ffunction-sections, symbol versions (@@GLIBC_2.2.5), @plt; the
# demangler shows some as "f(int) [clone .cold]". By Callgrind: the level of a recursion ('2).
_MARKS = re.compile(
    r"(?:\.(?:isra|constprop|part|lto_priv|llvm|clone|ipa_sra|localalias|variant)(?:\.[0-9]+)*"
    r"|\.cold(?:\.[0-9]+)?|\.[0-9]+|@@?[A-Z][A-Za-z0-9_.]*|@plt"
    r"| \[clone [^\[\]]*\]|'[0-9]+)+$"
)
# memcpy under its many names: __memcpy_avx_unaligned_erms, __strlen_avx2, memmove@plt, __memset_chk.
# copying is one idea: glibc gives memcpy and memmove the same code
_VARIANT = re.compile(
    r"_*(?P<name>(?:w?mem|raw_?mem|str|stp|wcs)n?(?:p?cpy|move|set|cmpeq|cmp|casecmp|r?chr|chrnul|n?len"
    r"|cat|cspn|spn|pbrk|str|mem))"
    r"(?:_(?:sse[0-9_]*|ssse3|avx[0-9]*|evex[0-9]*|unaligned|aligned|erms|rtm|movbe|bmi2?|back|chk"
    r"|no_vzeroupper|l|ifunc|generic|asimd|sve|falkor|thunderx[0-9]*|plt|impl|[0-9]+))*_?"
)
_OBJECT = re.compile(r"(?P<name>.*) \[(?!clone )(?P<object>[^\[\]]*)\]$", re.DOTALL)
# libpython3.11.so.1.0 and python3.11 are one library; versions around ".so" go, hashes of wheels, too
_LIBRARY = re.compile(
    r"(?:\.cpython-[a-z0-9_-]+|\.abi3)?(?:-[0-9]+\.[0-9.]+|-[0-9a-f]{8,}(?:\.[0-9]+)*)?"
    r"\.so(?:\.[0-9.]+)?$"
)
# code of the JIT or a trampoline of -X perf without its map: the next run has it elsewhere
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
# a trampoline of -X perf: py::qualified.name:file
_PYTHON = re.compile(r"(?P<name>py::.*):(?P<path>/[^:]*)", re.DOTALL)
# where it was imported from: the last folder of the import system on its path, else its own folder
_FOLDER = re.compile(
    r"/.*/(?:site-packages|dist-packages)/|/(?:.*/)?lib(?:64)?/python[0-9.]+/|/(?:.*/)?", re.DOTALL
)

# folders of CPython and of torch that torch's own names keep
_KEPT = re.compile(r"(?:.*/)?((?:Objects|Python|build/\.\.|build/aten)/.*)", re.DOTALL)


@lru_cache(maxsize=65_536)
def standardize(name: str) -> str:
    """The name of a function as any build of it would have it; doing it twice changes nothing.

    ``name`` is ``file:function``, or ``file:function [object]`` where the object matters.

    >>> standardize("/build/a/Objects/dictobject.c:insertdict.lto_priv.0")
    'dictobject.c:insertdict'
    >>> standardize("memmove-vec-unaligned-erms.S:__memcpy_avx_unaligned_erms")
    'libc:memcpy'
    >>> standardize("???:0x00000000004a41b0 [/usr/lib/libfoo.so.1.2]")
    '???:0x4a41b0 [libfoo]'
    """
    while (shorter := _shortened(name)) != name:
        name = shorter
    return name


def _parts(name: str) -> tuple[str, str, str]:
    """File, function and library, each without what a build adds; a library that is not known is ""."""
    found = _OBJECT.match(name)
    name, obj = (found["name"], found["object"]) if found else (name, "")
    file, colon, function = name.partition(":")
    if not colon or function.startswith(":"):  # no file: a bare name, or a scope of C++
        file, function = "", name
    library = _LIBRARY.sub("", obj.rpartition("/")[2])
    if library.startswith("libpython"):
        library = library.removeprefix("lib")
    return file.rpartition("/")[2] or _UNKNOWN, _MARKS.sub("", function) or function, library


def _shortened(name: str) -> str:
    file, function, library = _parts(name)
    variant = _VARIANT.fullmatch(function)
    if variant is not None and (file in (_UNKNOWN, _LIBC) or file.endswith((".S", ".h"))):
        plain = variant["name"].replace("raw_", "raw")
        return f"{_LIBC}:{_SAME.get(plain, plain)}"
    if python := _PYTHON.fullmatch(function):
        path = _FOLDER.sub("", python["path"], count=1)
        return f"{_UNKNOWN}:{python['name']}:{path}"
    if _ADDRESS.fullmatch(function):
        if library in ("", _UNKNOWN):
            return f"{_UNKNOWN}:(trampoline)"
        function = f"0x{int(function, 16):x}"
    return f"{file}:{function} [{library}]" if library else f"{file}:{function}"


_SAME = {"memmove": "memcpy", "mempcpy": "memcpy", "wmemmove": "wmemcpy"}


def source_file(path: str) -> str:
    """The name of a source file; of CPython's ``Objects`` and ``Python`` with that folder.

    >>> source_file("/build/a/Objects/dictobject.c"), source_file("/build/a/Modules/_json.c")
    ('Objects/dictobject.c', '_json.c')
    """
    kept = _KEPT.fullmatch(path)
    return kept[1] if kept else path.rpartition("/")[2]


def standardize_in_folder(name: str) -> str:
    """The standard name after the folder that `source_file` keeps.

    >>> standardize_in_folder("/build/a/Objects/dictobject.c:insertdict.lto_priv.0")
    'Objects/dictobject.c:insertdict'
    """
    folder, slash, file = source_file(name.partition(":")[0]).rpartition("/")
    standard = standardize(name)
    return folder + slash + standard if standard.startswith(f"{file}:") else standard


def standardize_profile(profile: Profile) -> Profile:
    """The same counts under standard names; functions that come to share one are added up.

    >>> from pytest_instrcount.counts.profile import Row
    >>> rows = {"/a/x.c:f.part.0": Row(2, 0), "/a/x.c:f": Row(5, 1)}
    >>> standardize_profile(Profile(7, rows)).rows
    {'x.c:f': Row(ir=7, calls=1)}
    """
    return rename_profile(profile, standardize)
