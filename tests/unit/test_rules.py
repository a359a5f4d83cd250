"""Which functions are layout noise, and that the table of rules is sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.rules import (
    KINDS,
    LOOKUPS,
    MEMORY,
    METHODS,
    RULES,
    SEARCHING,
    STRINGS,
    rule_of,
)
from pytest_instrcount.counts.standardize import standardize

DATA = Path(__file__).parent.parent / "data" / "callgrind"


@pytest.mark.parametrize(
    ("name", "kind", "entry"),
    [
        # memory: what others call has a price, what works within has none
        ("obmalloc.c:PyObject_Malloc", MEMORY, True),
        ("obmalloc.c:_PyObject_Malloc", MEMORY, True),
        ("obmalloc.c:PyMem_Realloc", MEMORY, True),
        ("malloc.c:malloc", MEMORY, True),
        ("malloc.c:__libc_calloc", MEMORY, True),
        ("???:PyObject_Malloc [python3.11]", MEMORY, True),
        ("malloc.c:_int_malloc", MEMORY, False),
        ("malloc.c:unlink_chunk", MEMORY, False),
        ("obmalloc.c:pymalloc_alloc", MEMORY, False),
        ("obmalloc.c:new_arena", MEMORY, False),
        # look-ups, under the names of each CPython
        ("typeobject.c:find_name_in_mro", METHODS, True),
        ("typeobject.c:_PyType_Lookup", METHODS, True),
        ("dictobject.c:lookdict_unicode", LOOKUPS, True),
        ("dictobject.c:lookdict_unicode_nodummy", LOOKUPS, True),
        ("dictobject.c:_Py_dict_lookup", LOOKUPS, True),
        ("dictobject.c:unicodekeys_lookup_unicode", LOOKUPS, True),
        ("dictobject.c:find_empty_slot", LOOKUPS, True),
        ("setobject.c:set_add_entry", LOOKUPS, True),
        ("setobject.c:set_lookkey", LOOKUPS, True),
        ("dictobject.c:build_indices_unicode", LOOKUPS, False),
        # copying
        ("libc:memcpy", STRINGS, True),
        ("libc:strlen", SEARCHING, True),
    ],
)
def test_noise(name: str, kind: str, entry: bool) -> None:
    """Allocators, probing and copying are noise; only their entry points have a price."""
    rule = rule_of(name)
    assert rule is not None
    assert (rule.kind, rule.price > 0) == (kind, entry)


@pytest.mark.parametrize(
    "name",
    [
        "ceval.c:_PyEval_EvalFrameDefault",
        "dictobject.c:insertdict",
        "dictobject.c:PyDict_SetItem",
        "longobject.c:_PyLong_Add",
        "_json.c:scan_once_unicode",
        "work.c:my_malloc_counter",
        "work.c:memcpy",
        "???:0x4fee40 [python3.11]",
        "???:(trampoline)",
        "???:py::malloc:x.py",
        "???:py::free:pkg/malloc.py",
        "",
        "libc:",
    ],
)
def test_no_noise(name: str) -> None:
    """What a test is about is counted as it is, whatever it is called in Python."""
    assert rule_of(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "/build/Objects/obmalloc.c:PyObject_Malloc.lto_priv.0",
        "???:__memmove_avx_unaligned_erms [/lib/libc.so.6]",
        "/x/Objects/dictobject.c:lookdict_unicode.cold",
        "malloc.c:malloc'2",
    ],
)
def test_rules_are_for_standard_names(name: str) -> None:
    """A build's own name for a noisy function has its rule under its standard name."""
    assert rule_of(standardize(name)) is not None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.functions.pattern[:40])
def test_each_rule_is_sound(rule: object) -> None:
    """A kind that is shown, a price that is none of a debt, and not everything."""
    assert rule in RULES
    assert isinstance(rule, type(RULES[0]))
    assert rule.kind in KINDS
    assert type(rule.price) is int
    assert rule.price >= 0
    assert not rule.functions.fullmatch("a.c:f")


@given(st.text(max_size=30))
def test_any_name_has_a_rule_or_none(name: str) -> None:
    """However strange a name is, the answer is one, and the same each time."""
    assert rule_of(name) == rule_of(name)
    assert rule_of(f"a.c:py::{name}") is None


@pytest.mark.parametrize("sample", ["cp311-json", "cp312-json", "cp313-json"])
def test_rules_know_each_interpreter(sample: str) -> None:
    """On each recorded interpreter, noise is found, and it is not most of the count."""
    profile = parse_profile(DATA / f"{sample}.out")
    ir = dict.fromkeys(KINDS, 0)
    for name, row in profile.rows.items():
        if (rule := rule_of(standardize(name))) is not None:
            ir[rule.kind] += row.ir
    assert ir[MEMORY] > 0
    assert ir[LOOKUPS] > 0
    assert sum(ir.values()) < profile.total // 2
