"""The functions whose cost depends on where things lie in memory, and what a call of each is worth.

Their cost is layout noise; how often they are called is not. The gate watches their instructions by
kind (`counts.noise`). `Timer`, which measures one layout, leaves them out, and counts each call that comes from
elsewhere at a fixed price instead. What only works for others of the same kind has no price.

Found on CPython 3.11 to 3.13 by counting the examples in many layouts of memory and behind unrelated
changes (``benchmarks/noise.py`` does it again). Prices are means; a price that is wrong by half
shifts no delta of a test whose calls stay the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: To be raised with each change below: counts cleaned by other rules cannot be compared.
RULES_VERSION = 2

#: Kinds of noise, in the order in which they are shown.
MEMORY, METHODS, LOOKUPS = "memory", "methods", "look-ups"
STRINGS, SEARCHING = "strings", "searching"
KINDS = (MEMORY, METHODS, LOOKUPS, STRINGS, SEARCHING)

#: What the standard names of libc's routines for memory and strings begin with.
LIBC = "libc:"


@dataclass(frozen=True, slots=True)
class Rule:
    """Functions of one kind that are worth the same; ``functions`` matches ``file:function``."""

    kind: str
    functions: re.Pattern[str]
    #: instructions for each call from a function that is no noise; 0: works for others only
    price: int


def _rule(kind: str, price: int, functions: str) -> Rule:
    return Rule(kind, re.compile(functions, re.VERBOSE), price)


#: The first that matches decides.
RULES: tuple[Rule, ...] = (
    # glibc, pymalloc (obmalloc.c), mimalloc (3.13) and Python's three domains of memory: what is
    # taken pays for being given back as well, since who gives it back depends on free lists
    _rule(
        MEMORY,
        160,
        r"[^:]*:_*(?:libc_)?(?:PyObject_|PyMem_|PyMem_Raw)?(?:[Rr]ealloc(?:array)?)",
    ),
    _rule(
        MEMORY,
        90,
        r"""[^:]*:_*(?:libc_)?(?:
            (?:PyObject_|PyMem_|PyMem_Raw)?(?:[MmCc]alloc) | (?:posix_)?memalign | aligned_alloc
        )""",
    ),
    _rule(MEMORY, 0, r"[^:]*:_*(?:libc_)?(?:PyObject_|PyMem_|PyMem_Raw)?(?:[Ff]ree)"),
    # free lists: whether they have an object to give depends on what others have put there
    _rule(MEMORY, 160, r"[^:]*:_?PyObject_GC_New(?:Var)?"),
    _rule(MEMORY, 20, r"[^:]*:_PyObject_GC_Link"),
    _rule(MEMORY, 0, r"[^:]*:PyObject_GC_Del"),
    _rule(MEMORY, 30, r"[^:]*:(?:PyDict_New|new_dict|tuple_alloc|PyFloat_FromDouble|PySlice_New)"),
    _rule(MEMORY, 120, r"[^:]*:(?:PyList_New|new_keys_object)"),
    # what a name in the method cache costs to let go of, whenever another takes its place
    _rule(MEMORY, 50, r"unicodeobject\.c:unicode_dealloc"),
    _rule(MEMORY, 10, r"[^:]*:_Py_Dealloc"),
    _rule(MEMORY, 0, r"(?:obmalloc|malloc|arena|mimalloc|morecore|sbrk|mem_tagging)\.[ch]:.*"),
    _rule(MEMORY, 0, r"[^:]*:(?:_mi_|mi_|pymalloc_|_?int_(?:malloc|free)|unlink_chunk)\w*"),
    # the cache of methods, by version tags that are given out in the order of use
    _rule(METHODS, 60, r"[^:]*:_PyType_Lookup\w*"),
    _rule(METHODS, 60, r"typeobject\.c:(?:find_name_in_mro|type_lookup\w*|update_cache\w*)"),
    _rule(METHODS, 0, r"[^:]*:assign_version_tag"),
    _rule(LOOKUPS, 4, r"[^:]*:PyErr_Occurred"),
    _rule(LOOKUPS, 11, r"[^:]*:__tls_get_addr"),
    # probing of dicts and sets: by hashes that are addresses, and what else is in the table
    _rule(LOOKUPS, 90, r"dictobject\.c:(?:_Py_dict_lookup\w*|lookdict\w*)"),
    _rule(LOOKUPS, 100, r"dictobject\.c:_PyDict_GetItem\w*_KnownHash\w*"),
    _rule(LOOKUPS, 30, r"dictobject\.c:(?:unicodekeys_lookup_\w+|dictkeys_\w*lookup\w*)"),
    _rule(LOOKUPS, 15, r"dictobject\.c:find_empty_slot"),
    _rule(LOOKUPS, 150, r"dictobject\.c:(?:dictresize|insertion_resize)"),
    _rule(LOOKUPS, 0, r"dictobject\.c:(?:build_indices\w*|do_lookup|compare_\w+)"),
    _rule(LOOKUPS, 45, r"setobject\.c:set_(?:add_entry|lookkey)\w*"),
    _rule(LOOKUPS, 100, r"setobject\.c:set_(?:dealloc|table_resize)"),
    _rule(LOOKUPS, 0, r"setobject\.c:set_insert_clean"),
    _rule(LOOKUPS, 12, r"[^:]*:(?:unicode_eq|_PyUnicode_EQ|_PyUnicode_Equal)"),
    # pickle's memo: objects by their addresses, its search inlined into whatever asks
    _rule(LOOKUPS, 65, r"_pickle\.c:save"),
    _rule(LOOKUPS, 45, r"_pickle\.c:memo_get"),
    _rule(LOOKUPS, 80, r"_pickle\.c:_?PyMemoTable_\w+"),
    # copies of other width: compiled into wide steps only if both ends lie far enough apart
    _rule(STRINGS, 60, r"unicodeobject\.c:(?:_PyUnicode_FromUCS[124]|_?copy_characters)"),
    # libc's copying: some instructions more or less by how both ends are aligned
    _rule(STRINGS, 15, rf"{LIBC}w?mem(?:cpy|set)"),
    # and its comparing and searching: reads ahead, unless a page ends there
    _rule(SEARCHING, 20, rf"{LIBC}\w+"),
)


@lru_cache(maxsize=65_536)
def rule_of(name: str) -> Rule | None:
    """The rule for a function by its standard name, or None for one that is counted as it is.

    >>> rule_of("obmalloc.c:PyObject_Malloc").price
    90
    >>> rule_of("ceval.c:_PyEval_EvalFrameDefault") is None
    True
    """
    plain = name.partition(" [")[0]
    for rule in RULES:
        if rule.functions.fullmatch(plain):
            return rule
    return None


def runs_programs(name: str) -> bool:
    """True if a function's count is that of the Python code it runs: it is never noise as a whole.

    So are the handlers of a tail-calling interpreter, and what a JIT has compiled.

    >>> runs_programs("ceval.c:_PyEval_EvalFrameDefault [libpython3]")
    True
    """
    return any(part in name for part in (":_PyEval_EvalFrame", ":_TAIL_CALL_", ":(trampoline)"))
