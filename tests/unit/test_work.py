"""What can be counted in calls: allocations, evaluations, collections, system calls."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.standardize import standardize_profile
from pytest_instrcount.counts.work import added_work, count_work

DATA = Path(__file__).parents[1] / "data" / "callgrind"


def called(*names: str, by: str = "a.c:f", calls: int = 1) -> Profile:
    return Profile(0, {}, {name: {by: Row(10, calls)} for name in names})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("obmalloc.c:PyObject_Malloc", "allocations"),
        ("gcmodule.c:_PyObject_GC_NewVar", "allocations"),
        ("???:PyMem_Calloc [python3.11]", "allocations"),
        ("listobject.c:PyList_New", "allocations"),
        ("obmalloc.c:PyObject_Free", ""),
        ("unicodeobject.c:unicode_dealloc", ""),
        ("ceval.c:_PyEval_EvalFrameDefault", "evaluation loop"),
        ("gcmodule.c:gc_collect_main", "collections"),
        ("gc.c:gc_collect_main", "collections"),
        ("read.c:read", "system calls"),
        ("syscall-template.S:mprotect", "system calls"),
        ("???:fstat64 [libc.so.6]", "system calls"),
        ("???:read [_io.so]", ""),
        ("fileio.c:read", ""),
        ("a.c:reader", ""),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    """By standard names."""
    assert count_work(called(name, calls=3)) == ({kind: 3} if kind else {})


def test_what_the_allocator_calls_within_itself_is_no_allocation() -> None:
    """One request is one allocation, whatever it takes."""
    profile = called("obmalloc.c:_PyObject_Malloc", by="obmalloc.c:PyObject_Malloc")
    assert count_work(profile) == {}
    assert count_work(called("malloc.c:malloc", by="listobject.c:PyList_New")) == {}


def test_recorded() -> None:
    """A recorded profile of json.dumps: as many evaluations as Python functions were called."""
    found = count_work(standardize_profile(parse_profile(DATA / "cp311-json.out")))
    assert found == {"allocations": 84, "evaluation loop": 3}


def test_added() -> None:
    """Per call of the test, and only what differs."""
    old = {"allocations": 40, "system calls": 4}
    new = {"allocations": 63, "system calls": 6, "collections": 3}
    assert added_work(old, 4, new, 6) == (
        ("allocations", Fraction(10), Fraction(21, 2)),
        ("collections", Fraction(0), Fraction(1, 2)),
    )
