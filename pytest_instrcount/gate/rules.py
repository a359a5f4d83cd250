"""Which functions a baseline keeps whatever their size: those whose count is layout noise.

The clean-up of counts works per function, also on old baselines, so it needs these rows on both
sides. A name too many costs one line in a file; a name missing cannot be had later.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pytest_instrcount.callgrind.parse import Row

#: The row that all small ones are folded into.
OTHER = "(other)"

# Rows below 1 / _SMALL of the total are folded: 0.01 %.
_SMALL = 10_000

_FILES = frozenset({"obmalloc.c", "malloc.c", "arena.c", "mimalloc.h"})

# malloc and friends where the file is not known (stripped builds), and Python's names for them
_ALLOCATORS = re.compile(
    r"_*(?:libc_)?(?:malloc|calloc|realloc|reallocarray|free|memalign|posix_memalign|aligned_alloc)"
    r"|_*(?:int|mid)_(?:malloc|free|realloc|memalign)\w*|unlink_chunk|malloc_consolidate|sysmalloc"
    r"|systrim|alloc_perturb|tcache_\w+|_mi_\w+|mi_\w+"
    r"|_?Py(?:Mem|Object)_(?:Raw|Debug)?(?:Raw)?(?:Malloc|Calloc|Realloc|Free)\w*|new_arena"
    r"|pymalloc_\w+|arena_map_\w+|_PyObject_Arena\w+"
)
# probing of dicts and sets, method cache, comparing of strings; 3.10 to 3.13
_PROBING = re.compile(
    r"unicodekeys_lookup_\w+|dictkeys_\w*lookup\w*|_Py_dict_lookup\w*|lookdict\w*|do_lookup"
    r"|compare_(?:unicode_)?(?:unicode|generic)\w*|find_empty_slot|build_indices\w*|insertion_resize"
    r"|dictresize|set_add_entry\w*|set_lookkey\w*|set_table_resize|set_insert_clean"
    r"|find_name_in_mro|_PyType_Lookup\w*|update_cache\w*|unicode_eq|_PyUnicode_EQ|_PyUnicode_Equal"
    r"|unicode_compare\w*|PyUnicode_(?:Rich)?Compare|unsafe_\w+_compare"
)
# memcpy, __memcpy_avx_unaligned_erms, __strlen_avx2, __memset_sse2_unaligned, strlen-avx2.S, ...
_STRINGS = re.compile(
    r"_*(?:wmem|mem|str|stp|wcs|raw_?mem)n?"
    r"(?:p?cpy|move|set|cmp|r?chr|chrnul|n?len|cat|coll|str|spn|pbrk|casecmp|mem)(?:_\w+)?"
)


def needed_by_rules(name: str) -> bool:
    """Whether the rules of denoising may need the row of this function, however small it is.

    ``name`` is Callgrind's ``file:function``; folders before the file, an object in brackets
    behind it and suffixes of compilers do not matter.

    >>> needed_by_rules("dictobject.c:unicodekeys_lookup_unicode.lto_priv.0")
    True
    >>> needed_by_rules("???:__memcpy_avx_unaligned_erms"), needed_by_rules("_json.c:scan_once")
    (True, False)
    """
    file, _, function = name.partition(":")
    if file.rpartition("/")[2] in _FILES:
        return True
    plain = re.split(r"[.@' ]", function, maxsplit=1)[0]
    return any(rule.fullmatch(plain) for rule in (_ALLOCATORS, _PROBING, _STRINGS))


def fold_rows(
    rows: Mapping[str, Row], total_ir: int, keep: Callable[[str], bool] = needed_by_rules
) -> dict[str, Row]:
    """The rows worth a line: 0.01 % of ``total_ir`` or more, or kept by ``keep``; sorted by name.

    The rest is summed into the row "(other)", so that nothing is lost from the sum; so are
    negative rows, which are an artefact of subtracting. Folding twice changes nothing more.

    >>> fold_rows({"a.c:f": Row(99_995, 3), "b.c:g": Row(5, 1)}, 100_000)
    {'(other)': Row(ir=5, calls=1), 'a.c:f': Row(ir=99995, calls=3)}
    """
    kept: dict[str, Row] = {}
    folded = [row for name, row in rows.items() if name == OTHER]
    for name in sorted(rows.keys() - {OTHER}):
        row = rows[name]
        positive = row.ir >= 0 and row.calls >= 0
        if positive and (row.ir * _SMALL >= total_ir or keep(name)):
            kept[name] = row
        else:
            folded.append(row)
    if folded:
        other = Row(sum(row.ir for row in folded), sum(row.calls for row in folded))
        kept = {OTHER: other, **kept}
    return dict(sorted(kept.items()))
