"""One name for one function, whatever build it comes from."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.standardize import (
    standardize,
    standardize_in_folder,
    standardize_profile,
)

DATA = Path(__file__).parent.parent / "data" / "callgrind"
SAMPLES = sorted(DATA.glob("*.out"))

SUFFIXES = (
    ".isra.0",
    ".constprop.0",
    ".part.0",
    ".cold",
    ".lto_priv.0",
    ".llvm.1234567890123",
    ".part.0.constprop.1",
    ".isra.0.cold",
    ".lto_priv.12.cold.3",
    ".localalias",
    ".0",
    "@@GLIBC_2.2.5",
    "@plt",
    "'2",
    ".isra.0'2",
    " [clone .cold]",
    " [clone .isra.0] [clone .cold]",
)

VARIANTS = {
    "__memcpy_avx_unaligned_erms": "memcpy",
    "__memmove_avx_unaligned_erms": "memcpy",
    "__memmove_evex_unaligned_erms": "memcpy",
    "__memmove_avx512_no_vzeroupper": "memcpy",
    "__memcpy_ssse3_back": "memcpy",
    "__memcpy_chk": "memcpy",
    "mempcpy": "memcpy",
    "memcpy@GLIBC_2.2.5": "memcpy",
    "memmove@plt": "memcpy",
    "__memset_avx2_unaligned_erms": "memset",
    "__memcmp_avx2_movbe": "memcmp",
    "__memcmpeq_avx2": "memcmpeq",
    "__memchr_avx2_rtm": "memchr",
    "__rawmemchr_evex": "rawmemchr",
    "__strlen_avx2": "strlen",
    "__strlen_sse2": "strlen",
    "__strnlen_evex": "strnlen",
    "__strcmp_sse4_2": "strcmp",
    "__strcmp_sse2_unaligned": "strcmp",
    "__strcasecmp_l_avx2": "strcasecmp",
    "__strchrnul_avx2": "strchrnul",
    "__wmemset_avx2_unaligned": "wmemset",
    "__wcsnlen_avx2": "wcsnlen",
    "__memcpy_generic": "memcpy",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # folders
        ("/build/a/Objects/dictobject.c:insertdict", "dictobject.c:insertdict"),
        ("./Objects/dictobject.c:insertdict", "dictobject.c:insertdict"),
        ("dictobject.c:insertdict", "dictobject.c:insertdict"),
        ("/home/me/my project/a b.c:f", "a b.c:f"),
        ("/tmp/pip-req-build-x1y2/pkg/_fast.c:__pyx_f_4pkg_f", "_fast.c:__pyx_f_4pkg_f"),
        ("/venv/lib/python3.11/site-packages/pkg/_fast.pyx:f", "_fast.pyx:f"),
        # libraries
        ("???:f [/usr/lib/libfoo.so.1.2]", "???:f [libfoo]"),
        ("???:f [/usr/lib/x86_64-linux-gnu/libc-2.31.so]", "???:f [libc]"),
        ("???:f [ld-linux-x86-64.so.2]", "???:f [ld-linux-x86-64]"),
        ("???:f [/v/_json.cpython-311-x86_64-linux-gnu.so]", "???:f [_json]"),
        ("???:f [_rust.abi3.so]", "???:f [_rust]"),
        ("???:f [/s/numpy.libs/libopenblas64_p-r0-15028c96.3.21.so]", "???:f [libopenblas64_p-r0]"),
        ("???:f [libpython3.11.so.1.0]", "???:f [python3.11]"),
        ("???:f [/usr/bin/python3.11]", "???:f [python3.11]"),
        ("a.c:f [libfoo.so]", "a.c:f [libfoo]"),
        # addresses: an offset in a file is a name, an address in memory is none
        ("???:0x00000000004fee40 [python3.11]", "???:0x4fee40 [python3.11]"),
        ("???:0x5A30 [_json.cpython-311-x86_64-linux-gnu.so]", "???:0x5a30 [_json]"),
        ("???:0x00000000004fee40'2 [python3.11]", "???:0x4fee40 [python3.11]"),
        ("???:0x0000000004bf2090 [???]", "???:(trampoline)"),
        ("???:0x0000000004bf2090", "???:(trampoline)"),
        ("0x0000000004bf2090", "???:(trampoline)"),
        # trampolines of -X perf
        ("py::f:/venv/lib/python3.11/site-packages/x.py", "???:py::f:x.py"),
        ("???:py::f:/venv/lib/python3.11/site-packages/p/x.py [???]", "???:py::f:p/x.py"),
        ("py::C.f.<locals>.g:/usr/lib/python3/dist-packages/p/x.py'2", "???:py::C.f.<locals>.g:p/x.py"),
        ("py::loads:/opt/python/3.12.1/lib/python3.12/json/__init__.py", "???:py::loads:json/__init__.py"),
        ("py::test_a:/home/me/repo/tests/test_a.py", "???:py::test_a:test_a.py"),
        ("py::_find_spec:<frozen importlib._bootstrap>", "???:py::_find_spec:<frozen importlib._bootstrap>"),
        # C++, and what only looks like a mark
        ("/b/x.cc:ns::f(int)", "x.cc:ns::f(int)"),
        ("ns::f(int)", "???:ns::f(int)"),
        ("x.cc:f(char)::'lambda'(int)", "x.cc:f(char)::'lambda'(int)"),
        ("x.c:cold", "x.c:cold"),
        ("x.c:.cold", "x.c:.cold"),
        ("x.c:f.partial", "x.c:f.partial"),
        ("x.c:(below main)", "x.c:(below main)"),
        ("mylib.c:memcpy_fast", "mylib.c:memcpy_fast"),
        ("mylib.c:strlen", "mylib.c:strlen"),
        ("strings.h:strlen_cache", "strings.h:strlen_cache"),
        ("f", "???:f"),
    ],
)  # fmt: skip
def test_names(name: str, expected: str) -> None:
    """Folders, versions of libraries, load addresses and prefixes of environments go."""
    assert standardize(name) == expected
    assert standardize(expected) == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["a.c:f", "???:f [libfoo.so]"])
def test_suffixes(name: str, suffix: str) -> None:
    """What compilers, linkers and Callgrind add to a symbol goes, in any number."""
    function, _, rest = name.partition(" ")
    marked = f"{function}{suffix} {rest}" if rest else f"{function}{suffix}"
    assert standardize(marked) == standardize(name)


@pytest.mark.parametrize(("variant", "plain"), VARIANTS.items())
@pytest.mark.parametrize("where", ["multiarch.S:{}", "???:{} [libc.so.6]", "string_fortified.h:{}"])
def test_variants_of_libc(where: str, variant: str, plain: str) -> None:
    """Whatever a processor made glibc choose, it is one function."""
    assert standardize(where.format(variant)) == f"libc:{plain}"


PIECES = st.sampled_from(
    [
        *SUFFIXES, *VARIANTS, "/build/x/", "Objects/", "a.c", "???", ":", "::", " [", "]", " [???]", "py::f:/",
        " [libfoo.so.1]", "libpython3.11.so", "0x00ff", "/site-packages/", "/lib/python3.11/", "'2",
        "f", "g.0", "_", ".so", "-1.2", " ", "libc:", "\n",
    ]
)  # fmt: skip
NAMES = st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join)


@given(NAMES)
def test_twice_is_once(name: str) -> None:
    """A standard name is its own standard name, however strange the first one was."""
    assert standardize(standardize(name)) == standardize(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/a/Objects/dictobject.c:insertdict.cold", "Objects/dictobject.c:insertdict"),
        ("/b/Objects/clinic/listobject.c.h:list_sort", "Objects/clinic/listobject.c.h:list_sort"),
        ("/Python/3.11/Python/ceval.c:f", "Python/ceval.c:f"),
        ("Python/ceval.c:f", "Python/ceval.c:f"),
        (
            "/a/pytorch/build/../aten/src/ATen/Utils.h:at::f()",
            "build/../aten/src/ATen/Utils.h:at::f()",
        ),
        ("/a/build/aten/src/ATen/x.cpp:f", "build/aten/src/ATen/x.cpp:f"),
        # neither CPython nor torch
        ("/a/Modules/_json.c:scan", "_json.c:scan"),
        ("/a/MyObjects/x.c:f", "x.c:f"),
        ("???:f [/usr/lib/Objects/libfoo.so.1]", "???:f [libfoo]"),
        ("/Objects/strings.S:__memcpy_avx_unaligned", "libc:memcpy"),
    ],
)
def test_folders_that_are_kept(name: str, expected: str) -> None:
    """Those by which torch's users tell the interpreter from other code."""
    assert standardize_in_folder(name) == expected


@given(NAMES)
def test_a_folder_changes_no_rule(name: str) -> None:
    """Twice is once there as well, and what is behind the folder is the standard name."""
    found = standardize_in_folder(name)
    assert standardize_in_folder(found) == found
    assert standardize(found) == standardize(name)


@given(NAMES)
def test_folders_do_not_matter(name: str) -> None:
    """What a build lies in says nothing, whatever the name."""
    source = f"x.c:f{name}"
    assert standardize(f"/first/{source}") == standardize(f"/second/build/{source}")


@pytest.mark.parametrize("sample", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_real_profiles_keep_their_counts(sample: Path) -> None:
    """Renaming loses no instruction, brings no inclusive count past all, and leaves no mark."""
    profile = parse_profile(sample)
    standard = standardize_profile(profile)
    assert standard.total == profile.total == sum(row.ir for row in standard.rows.values())
    assert sum(row.calls for row in standard.rows.values()) == sum(
        row.calls for row in profile.rows.values()
    )
    assert max(standard.inclusive.values(), default=0) <= profile.total
    assert standardize_profile(standard) == standard
    for name in standard.rows:
        assert not re.search(r"/|'\d|\.(?:isra|constprop|part|cold|lto_priv)|_avx|0x0", name), name


def profile_of(body: str, total: int) -> Profile:
    lines = f"events: Ir\n{body}totals: {total}\n"
    return standardize_profile(parse_profile(lines.splitlines()))


def test_code_inlined_from_headers_stays_with_its_function() -> None:
    """A function that is split over headers is one row; another build inlines from other files."""
    first = "fl=(1) /a/x.c\nfn=(1) f\n1 10\nfi=(2) /a/y.h\n7 5\nfe=(1)\n2 1\n"
    second = "fl=(1) /b/x.c\nfn=(1) f\n1 9\nfi=(2) /b/z.h\n3 7\n"
    assert profile_of(first, 16) - profile_of(second, 16) == Profile(0, {})


def test_parts_of_a_function_are_counted_once() -> None:
    """A function holds what it calls of its parts: under one name that is not added again."""
    body = (
        "fl=(1) a.c\nfn=(1) main\n1 1\ncfn=(2) f\ncalls=2 1\n1 30\n\n"
        "fn=(2)\n2 10\ncfn=(3) f.part.0\ncalls=1 3\n2 20\n\nfn=(3)\n3 20\n"
    )
    standard = profile_of(body, 31)
    assert standard.inclusive == {"a.c:main": 31, "a.c:f": 30}
    assert standard.rows["a.c:f"] == Row(30, 3)


def test_clones_that_do_not_call_each_other_are_added_up() -> None:
    """Two specialised copies of a function cost what both cost."""
    body = (
        "fl=(1) a.c\nfn=(1) main\n1 1\ncfn=(2) f.constprop.0\ncalls=1 1\n1 10\n"
        "cfn=(3) f.constprop.1\ncalls=1 1\n1 20\n\nfn=(2)\n2 10\n\nfn=(3)\n3 20\n"
    )
    assert profile_of(body, 31).inclusive == {"a.c:main": 31, "a.c:f": 30}


SOURCE = """
static int __attribute__((noinline)) twice(int n) { return n < 1 ? 1 : n + twice(n - 1); }
int work(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += twice(i); return sum; }
"""
MAIN = "int work(int); int main(void) { return work(20) < 0; }\n"


@pytest.mark.valgrind
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_two_builds_of_one_source_cancel(tmp_path: Path) -> None:
    """Built in two folders, as libraries of two versions: with the same code, nothing is left of the
    difference.
    """
    profiles = []
    for folder, version in (("first", "1"), ("second/deeper", "2.0")):
        build = tmp_path / folder
        build.mkdir(parents=True)
        (build / "work.c").write_text(SOURCE)
        (build / "main.c").write_text(MAIN)
        library = build / f"libwork.so.{version}"
        out = build / "callgrind.out"
        commands = [
            ["cc", "-g", "-O1", "-fPIC", "-shared", "-o", str(library), str(build / "work.c")],
            ["cc", "-g", "-o", "main", "main.c", str(library)],
            [
                *("valgrind", "--tool=callgrind", "--command-line-only=yes", "--vgdb=no"),
                *("--toggle-collect=work", f"--callgrind-out-file={out}", "./main"),
            ],
        ]
        for command in commands:
            subprocess.run(command, cwd=build, check=True, capture_output=True)
        profiles.append(standardize_profile(parse_profile(out)))
    first, second = profiles
    assert {"work.c:work", "work.c:twice"} <= first.rows.keys()
    assert first - second == Profile(0, {})


def test_two_builds_with_other_flags_cancel() -> None:
    """One compiler clones and splits, the other does not: where the work is the same, it cancels."""
    plain = (
        "fl=(1) /src/v1/work.c\nfn=(1) work\n1 10\n"
        "cfn=(2) helper\ncalls=4 2\n1 40\n\nfn=(2)\n2 40\n"
    )
    cloned = (
        "ob=(1) /opt/lib/libwork.so.2\nfl=(1) /tmp/build-77/work.c\nfn=(1) work.lto_priv.0\n1 10\n"
        "cfn=(2) helper.constprop.0.isra.0\ncalls=3 2\n1 30\n"
        "cfn=(3) helper\ncalls=1 2\n1 10\n\nfn=(2)\n2 30\n\nfn=(3)\n2 10\n"
    )
    assert profile_of(plain, 50) - profile_of(cloned, 50) == Profile(0, {})
