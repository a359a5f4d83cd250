"""Work that can be counted in calls: exact, and the same in every layout of memory. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from pytest_instrcount.counts.profile import Profile
from pytest_instrcount.counts.rules import MEMORY, rule_of

#: Kinds of work, in the order in which they are shown.
ALLOCATIONS, FRAMES, COLLECTIONS, SYSTEM_CALLS = (
    "allocations",
    "evaluation loop",
    "collections",
    "system calls",
)
KINDS_OF_WORK = (ALLOCATIONS, FRAMES, COLLECTIONS, SYSTEM_CALLS)

#: What takes memory costs at least this by the rules; what gives it back costs less.
_TAKES = 30
_GIVES_BACK = re.compile(r"[^:]*:\w*(?:dealloc|[Ff]ree|_Del)\b")
_FRAMES = re.compile(r"[^:]*:_PyEval_EvalFrameDefault")
# one of these per collection, whoever asked for it; named differently from 3.11 to 3.13
_COLLECTIONS = re.compile(r"gc(?:module)?\.c:gc_collect_main")
_SYSTEM_CALLS = re.compile(
    r"""(?:[\w.-]*\.[cSh]|\?\?\?):_*(?:libc_|GI_)*(?:
        p?(?:read|write)v?(?:64)? | open(?:at)?(?:64)? | close | (?:f|l)?stat(?:64|at|at64|x)?
        | fxstat(?:64)? | lseek(?:64)? | access | faccessat | readlink(?:at)? | unlink(?:at)?
        | rename(?:at2?)? | mkdir(?:at)? | rmdir | getdents(?:64)? | ioctl | fcntl(?:64)?(?:_nocancel)?
        | dup[23]? | pipe2? | mmap(?:64)? | munmap | mremap | mprotect | madvise | sbrk
        | fork | vfork | clone3? | execve | wait(?:4|pid|id) | kill | getpid | gettid
        | futex\w* | poll | ppoll | select | pselect | epoll_(?:create1?|ctl|p?wait)
        | socket(?:pair)? | bind | listen | accept4? | connect | shutdown
        | send(?:to|msg)? | recv(?:from|msg)? | getrandom | nanosleep | clock_nanosleep
    )(?:_nocancel|_2)?(?:\ \[libc.*|)""",
    re.VERBOSE,
)
# so is a file of libc: read.c, fstat64.c, syscall-template.S; other programs call theirs as they like
_LIBC_FILE = re.compile(r"(?:\?\?\?|syscall-template\.S|[a-z0-9_-]+\.[cS]|not-cancel\.h):")


# a function of the interpreter that has an address for a name
_NAMELESS = re.compile(r"\?\?\?:0x[0-9a-f]+ \[(?:lib)?python[0-9.]*(?:\.so.*)?\]")


@lru_cache(maxsize=65_536)
def _kind_of(name: str) -> str:
    rule = rule_of(name)
    if rule is not None and rule.kind == MEMORY:
        return ALLOCATIONS if rule.price >= _TAKES and not _GIVES_BACK.match(name) else ""
    if _FRAMES.match(name):
        return FRAMES
    if _COLLECTIONS.match(name):
        return COLLECTIONS
    if _SYSTEM_CALLS.fullmatch(name) and _LIBC_FILE.match(name) and not _python_file(name):
        return SYSTEM_CALLS
    return ""


def _python_file(name: str) -> bool:
    return name.partition(":")[0].endswith(("module.c", "object.c", "fileutils.c", "fileio.c"))


def count_work(profile: Profile) -> dict[str, int]:
    """Kind of work -> how often, over all counted calls; kinds that never happened are left out.

    An allocation is what a program asks for: what the allocator does within itself is its affair, and
    so is whether a free list had one at hand.

    >>> from pytest_instrcount.counts.profile import Row
    >>> callers = {"obmalloc.c:PyObject_Malloc": {"a.c:f": Row(210, 3), "obmalloc.c:g": Row(9, 1)}}
    >>> count_work(Profile(210, {}, callers))
    {'allocations': 3}
    """
    found: dict[str, int] = {}
    for name, callers in profile.callers.items():
        kind = _kind_of(name)
        if kind:
            calls = sum(edge.calls for caller, edge in callers.items() if not _within(kind, caller))
            found[kind] = found.get(kind, 0) + calls
    return {kind: found[kind] for kind in KINDS_OF_WORK if found.get(kind, 0) > 0}


def can_count_allocations(profile: Profile) -> bool:
    """True if the allocator's functions have names: those of an interpreter without symbols have none.

    >>> from pytest_instrcount.counts.profile import Row
    >>> can_count_allocations(Profile(0, {"???:0x5cfad0 [python3.11]": Row(1, 1)}))
    False
    """
    return not any(_NAMELESS.match(name) for name in profile.rows)


def _within(kind: str, caller: str) -> bool:
    """True if the caller does the same kind of work already."""
    if kind == ALLOCATIONS:
        rule = rule_of(caller)
        return rule is not None and rule.kind == MEMORY
    return kind == SYSTEM_CALLS and _kind_of(caller) == SYSTEM_CALLS


def added_work(
    before: Mapping[str, int], calls_before: int, after: Mapping[str, int], calls_after: int
) -> tuple[tuple[str, Fraction, Fraction], ...]:
    """Kind, how often per call of the test before and after, of the kinds where that differs.

    >>> added_work({"allocations": 40}, 4, {"allocations": 44}, 4)
    (('allocations', Fraction(10, 1), Fraction(11, 1)),)
    """
    found = [
        (
            kind,
            Fraction(before.get(kind, 0), calls_before),
            Fraction(after.get(kind, 0), calls_after),
        )
        for kind in KINDS_OF_WORK
    ]
    return tuple(each for each in found if each[1] != each[2])
