"""Baselines: their names, their JSON, what bad files get, what stays on disk."""

from __future__ import annotations

import copy
import errno
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_instrcount.counts.denoised import Denoised
from pytest_instrcount.counts.fold import fold_rows, has_rule
from pytest_instrcount.counts.measurement import Measurement, per_call
from pytest_instrcount.counts.noise import Noise
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.tree import CallTree, FunctionCost
from pytest_instrcount.counts.standardize import standardize
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baselines import Baselines
from pytest_instrcount.gate.store import baseline, textfile
from pytest_instrcount.gate.store.baseline import Store, read_baseline, write_baseline
from pytest_instrcount.gate.store.baseline_json import LARGEST_FILE, parse_baseline, render_baseline
from pytest_instrcount.gate.store.names import env_key
from pytest_instrcount.gate.store.parts import profile_path, profiles_beside
from pytest_instrcount.gate.store.schema import Baseline, to_baseline
from pytest_instrcount.gate.store.summary import parse_summary, summary_text, without_profile
from tests.baselines import SAMPLE, plant, plant_profile, read_whole

ROOT = Path(__file__).parents[2]
WHOLE = read_whole(SAMPLE)
WHOLE_TEXT = json.dumps(WHOLE)
PROFILE = "ca22ba50bf7a"
OLDER = [ROOT / f"tests/data/baselines/schema{schema}.json" for schema in range(1, 6)]
every_older = pytest.mark.parametrize("older", OLDER, ids=lambda path: path.stem)
NODEID = "tests/test_json.py::test_dumps[small]"
FACTS = {"valgrind": "3.19.0", "glibc": "2.36"}
KEY = "cp311-linux-x86_64"


def measurement(nodeid: str = NODEID, total_ir: int = 1_000_000, calls: int = 10) -> Measurement:
    small = {"malloc.c:malloc": Row(3, 1), "b.c:g": Row(2, 1)} if total_ir > 5 else {}
    rows = {"a.c:f": Row(total_ir - sum(row.ir for row in small.values()), 30), **small}
    return Measurement(nodeid, total_ir, calls, 20, "fork", rows, {"attrs": "23.1.0"})


# --- rounding -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total_ir", "calls", "ir"),
    [(0, 1, 0), (1, 1, 1), (5, 2, 3), (4, 3, 1), (5, 3, 2), (10**18 + 1, 2, 5 * 10**17 + 1)],
)
def test_per_call_rounds_half_up(total_ir: int, calls: int, ir: int) -> None:
    """The count of a call is an integer, also where a float would lose digits."""
    assert measurement(total_ir=total_ir, calls=calls).ir == ir
    assert per_call(total_ir, calls) == ir


def test_a_measurement_is_a_count() -> None:
    """No calls, less than nothing, or an unknown isolation cannot be made."""
    with pytest.raises(ValueError, match="not a count"):
        measurement(calls=0)
    with pytest.raises(ValueError, match="not a count"):
        measurement(total_ir=-1)
    with pytest.raises(ValueError, match="at least one call"):
        per_call(1, 0)
    with pytest.raises(ValueError, match="isolation"):
        Measurement("t.py::a", 1, 1, 0, "thread", {}, {})


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (("cp", (3, 11), "linux", "x86_64"), "cp311-linux-x86_64"),
        (("pp", (3, 10), "linux", "aarch64"), "pp310-linux-aarch64"),
        (("cp", (3, 9), "../../etc", "a b\0"), "cp39-.._.._etc-a_b_"),
    ],
)
def test_env_key(arguments: tuple[str, tuple[int, int], str, str], key: str) -> None:
    """The key is one folder name, whatever the machine calls itself."""
    assert env_key(*arguments) == key


@pytest.mark.parametrize(
    ("nodeid", "place"),
    [
        ("tests/unit/test_x.py::test_a", "tests/unit/test_x/test_a"),
        ("test_x.py::TestA::test_b[1/2 c]", "test_x/TestA.test_b_1_2_c"),
        ("test_x.py", "test_x/test"),
        ("test_x.py::[]", "test_x/test"),
        ("", "test"),
        ("a/./b//t.py::t", "a/b/t/t"),
        ("../../etc/passwd::t", "__/__/etc/passwd/t"),
        ("/etc/cron.d/x::t", "etc/cron.d/x/t"),
        ("a\nb\0c/t.py::t\n\0u", "a_b_c/t/t_u"),
        ("C:\\x.py::t", "C_x/t"),
        ("t.py::" + "n" * 500, "t/" + "n" * 60),
        ("t.py::../../x", "t/x"),
    ],
)
def test_paths_are_for_people(nodeid: str, place: str) -> None:
    """Folders as the tests have them, then a readable name, then the hash of the whole nodeid."""
    digest = hashlib.sha256(nodeid.encode()).hexdigest()[:8]
    path = Store(Path("base"), KEY).path(nodeid)
    assert str(path) == f"base/{KEY}/{place}-{digest}.json"


def test_names_that_sanitise_alike_do_not_collide() -> None:
    """The hash tells apart what the slug does not."""
    store = Store(Path("base"), KEY)
    assert store.path("t.py::a[x y]") != store.path("t.py::a[x/y]")


hostile = st.one_of(
    st.text(st.characters()),
    st.lists(st.sampled_from(["..", "/", ".", "::", "\0", "\n", "a", "\\", ".py", "é"])).map(
        "".join
    ),
    st.tuples(st.sampled_from("a./"), st.integers(0, 5000)).map(lambda pair: pair[0] * pair[1]),
)


@given(hostile, hostile)
@example("\ud800" * 200, "\udfff")
def test_hostile_nodeids_stay_in_the_folder(file: str, test: str) -> None:
    """No nodeid makes a path that leaves the environment's folder, or that the system refuses."""
    store = Store(Path("/base"), KEY)
    path = store.path(f"{file}::{test}")
    assert Path(os.path.normpath(path)) == path
    assert store.folder in path.parents
    assert re.fullmatch(r"[A-Za-z0-9_./-]+", str(path))
    assert max(len(part) for part in path.parts) <= 80
    assert len(str(path)) < 400
    assert re.fullmatch(r".{1,60}-[0-9a-f]{8}\.json", path.name)


@pytest.mark.parametrize(
    "file",
    ["x" * 5000, "a/" * 2500, "../" * 1700, "é" * 5000],
    ids=["name", "depth", "parents", "letters"],
)
def test_a_very_long_file_part_can_be_stored(tmp_path: Path, file: str) -> None:
    """5,000 characters are cut, and the file can be written, found and listed."""
    store, nodeid = Store(tmp_path, KEY), f"{file}.py::test_a"
    assert store.write(to_baseline(measurement(nodeid), FACTS))
    assert isinstance(store.read(nodeid), Baseline)
    assert [owner for _, owner in store.list()] == [nodeid]


def test_long_folders_are_told_apart() -> None:
    """What was cut off is in the hash of the part."""
    store = Store(Path("b"), KEY)
    one, two = store.path("x" * 200 + "1.py::t"), store.path("x" * 200 + "2.py::t")
    assert one.parent != two.parent


# --- which rows are kept ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "obmalloc.c:_PyObject_Malloc",
        "/build/python/Objects/obmalloc.c:anything",
        "malloc.c:_int_free",
        "???:malloc",
        "???:unlink_chunk.isra.0",
        "???:PyObject_Malloc [/usr/bin/python3.11]",
        "dictobject.c:unicodekeys_lookup_unicode",
        "dictobject.c:unicodekeys_lookup_unicode.lto_priv.0",
        "dictobject.c:_Py_dict_lookup",
        "dictobject.c:find_empty_slot",
        "dictobject.c:build_indices_unicode",
        "dictobject.c:lookdict_unicode",
        "setobject.c:set_add_entry",
        "setobject.c:set_lookkey",
        "typeobject.c:find_name_in_mro",
        "typeobject.c:_PyType_Lookup",
        "???:memcpy",
        "???:__memcpy_avx_unaligned_erms",
        "memmove-vec-unaligned-erms.S:__memmove_avx_unaligned_erms",
        "memset.S:__memset_avx2_unaligned",
        "strlen-avx2.S:__strlen_avx2",
        "???:memcpy@@GLIBC_2.14",
        "???:__memcmp_avx2_movbe",
    ],
)
def test_rules_need(name: str) -> None:
    """Functions that hold layout noise keep their rows."""
    assert has_rule(standardize(name))


@pytest.mark.parametrize(
    "name",
    [
        "",
        ":",
        "_json.c:scan_once",
        "ceval.c:_PyEval_EvalFrameDefault",
        "???:0x000000000051f6f0",
        "structmodule.c:s_pack",
        "unicodeobject.c:unicode_format",
        "memoryobject.c:memory_getbuf",
        "x.c:strategy",
        "x.c:freeze",
        "(other)",
    ],
)
def test_rules_do_not_need(name: str) -> None:
    """Ordinary functions have no special place."""
    assert not has_rule(standardize(name))


def test_small_rows_are_folded() -> None:
    """0.01 % is kept, one instruction less is not, unless a rule needs it; the sum stays."""
    rows = {
        "a.c:f": Row(99_987, 5),
        "b.c:edge": Row(10, 1),
        "c.c:below": Row(9, 2),
        "d.c:less": Row(-7, -1),
        "malloc.c:malloc": Row(1, 1),
        "malloc.c:free": Row(-1, 1),
        "(other)": Row(4, 4),
    }
    folded = fold_rows(rows, 100_000)
    assert folded == {
        "(other)": Row(5, 6),
        "a.c:f": Row(99_987, 5),
        "b.c:edge": Row(10, 1),
        "malloc.c:malloc": Row(1, 1),
    }
    assert sum(row.ir for row in folded.values()) == sum(row.ir for row in rows.values())


def test_what_is_below_nothing_is_taken_from_the_largest() -> None:
    """Artefacts of subtracting beyond all small rows: the sum stays, and no number is negative."""
    rows = {"a.c:f": Row(90_000, 5), "b.c:g": Row(10_010, 1), "c.c:h": Row(-10, -3)}
    assert fold_rows(rows, 100_000) == {
        "(other)": Row(0, 0),
        "a.c:f": Row(89_990, 5),
        "b.c:g": Row(10_010, 1),
    }
    rows = {"a.c:f": Row(60, 5), "b.c:g": Row(50, 1), "(other)": Row(-100, 2)}
    assert fold_rows(rows, 10) == {"(other)": Row(0, 2), "a.c:f": Row(0, 5), "b.c:g": Row(10, 1)}


def test_nothing_to_fold() -> None:
    """No rows, or no small ones: no row for the others."""
    assert fold_rows({}, 0) == {}
    assert fold_rows({"a.c:f": Row(0, 0)}, 0) == {"a.c:f": Row(0, 0)}


names = st.text(st.characters())
counts = st.integers(0, 2**40)
rows_of_tests = st.dictionaries(names, st.builds(Row, counts, counts), max_size=20)


@given(rows_of_tests, st.integers(0, 2**60))
def test_folding_twice_is_folding_once(rows: dict[str, Row], total_ir: int) -> None:
    """Folding is idempotent."""
    once = fold_rows(rows, total_ir)
    assert fold_rows(once, total_ir) == once


# --- the text -----------------------------------------------------------------------------------

noises = st.builds(Noise, st.integers(1, 99), *[st.frozensets(names, max_size=5)] * 2)


@st.composite
def stored_baselines(draw: st.DrawFn) -> Baseline:
    """Any baseline whose numbers are consistent among themselves."""
    rows = draw(rows_of_tests)
    total_ir = sum(row.ir for row in rows.values())
    denoised = None
    if draw(st.booleans()):
        others = draw(st.integers(0, 4))
        lists = st.lists(counts, min_size=others, max_size=others)
        calls = draw(st.dictionaries(names, lists, max_size=5))
        first = draw(st.integers(0, total_ir))
        parts = {"kept": total_ir - first, "memory": first, "measured": 0}
        columns = {name: (ir, *draw(lists)) for name, ir in parts.items()}
        denoised = Denoised(
            noise=draw(noises),
            kept=columns.pop("kept"),
            kinds=columns,
            calls={name: (draw(counts), *each) for name, each in calls.items()},
            costs=dict.fromkeys(calls, total_ir // 5),
        )
    return Baseline(
        nodeid=draw(names),
        total_ir=total_ir,
        calls=draw(st.integers(1, 2**31)),
        warmup=draw(st.integers(0, 2**31)),
        isolation=draw(st.sampled_from(["fork", "process"])),
        rows=rows,
        inclusive={name: row.ir + draw(counts) for name, row in rows.items()},
        environment=draw(st.dictionaries(names, names, max_size=5)),
        packages=draw(st.dictionaries(names, names, max_size=5)),
        denoised=denoised,
        work=draw(st.dictionaries(names, counts, max_size=5)),
    )


@given(stored_baselines())
def test_reads_its_own_text(stored: Baseline) -> None:
    """parse(render(x)) == x, and the text is stable and plain; so is the summary."""
    text = render_baseline(stored)
    assert parse_baseline(text, Path("x.json")) == stored
    assert render_baseline(parse_baseline(text, Path("x.json"))) == text
    assert text.isascii()
    profile = "0123456789ab"
    summary = summary_text(stored, profile)
    alone = parse_summary(summary, Path("x.json"))
    assert alone == without_profile(stored, profile)
    assert summary_text(alone, profile) == summary
    assert parse_baseline(render_baseline(alone), Path("x.json")) == alone
    assert summary.isascii() and summary.count("\n") == 7


def test_a_tree_of_nothing_is_none() -> None:
    """It could not be read again."""
    made = replace(to_baseline(measurement(), FACTS), python=CallTree("tracer", 1, {}))
    assert parse_baseline(render_baseline(made), Path("x")).python is None


def test_order_of_facts_is_no_change() -> None:
    """Facts and packages in another order are the same bytes: no diff in git."""
    facts = dict(reversed(FACTS.items()))
    assert list(facts) != list(FACTS)
    one, two = to_baseline(measurement(), FACTS), to_baseline(measurement(), facts)
    assert render_baseline(one) == render_baseline(two)


def test_sample_of_schema_6() -> None:
    """The sample that stays forever is what is written today, byte for byte."""
    stored = read_baseline(SAMPLE, NODEID)
    assert isinstance(stored, Baseline)
    assert stored.ir == 46_801
    assert stored.rows["(other)"] == Row(25, 2)
    assert stored.inclusive["_json.c:encoder_listencode_obj"] == 301_259
    assert stored.work == {"allocations": 420, "evaluation loop": 30}
    assert stored.denoised == Denoised(
        noise=Noise(
            2,
            frozenset({"ceval.c:_PyEval_Vector"}),
            frozenset({"ceval.c:_PyEval_EvalFrameDefault"}),
        ),
        kept=(301_275,) * 5,
        kinds={
            "memory": (91_700, 91_700, 91_760, 91_660, 91_700),
            "look-ups": (40, 40, 95, 40, 40),
            "wavering": (74_990, 74_990, 75_002, 74_988, 74_990),
        },
        calls={
            "dictobject.c:unicodekeys_lookup_unicode": (4, 4, 5, 4, 4),
            "obmalloc.c:_PyObject_Malloc": (1310,) * 5,
        },
        costs={
            "dictobject.c:unicodekeys_lookup_unicode": 255,
            "obmalloc.c:_PyObject_Malloc": 458_520,
        },
    )
    assert stored.denoised.totals == (468_005, 468_005, 468_132, 467_963, 468_005)
    assert stored.compared_ir == 46_802
    assert stored.python is not None
    assert stored.python.functions()["json/__init__.py:dumps"] == FunctionCost(
        own=30_010, inclusive=455_310, calls=10
    )
    assert [each.reason for each in stored.ledger] == ["the first one", "dumps checks for cycles"]
    assert (stored.ledger[0].old, stored.ledger[1].new) == (None, 46_802)
    assert stored.reason_for(46_802) == "dumps checks for cycles"
    assert stored.reason_for(46_803) == ""
    assert summary_text(stored, PROFILE) == SAMPLE.read_text()
    profile = profile_path(SAMPLE, PROFILE)
    assert gzip.decompress(profile.read_bytes()).decode() == render_baseline(stored)


@every_older
def test_samples_of_older_schemas_are_refused(tmp_path: Path, older: Path) -> None:
    """In one line for the whole folder, with the one command that measures it again."""
    path = Store(tmp_path, KEY).path(NODEID)
    path.parent.mkdir(parents=True)
    path.write_bytes(older.read_bytes())
    with pytest.raises(InstrcountError) as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == "baseline-older"
    assert str(tmp_path / KEY) in str(caught.value)
    assert path.name not in str(caught.value)
    assert f"schema {older.stem[-1]}" in str(caught.value)
    assert caught.value.fix.startswith("pytest --instrcount-update-baseline ")


@every_older
def test_samples_of_older_schemas_are_replaced_by_an_update(tmp_path: Path, older: Path) -> None:
    """To an update they are not there; what it writes is read."""
    store = Store(tmp_path, KEY)
    path = store.path(NODEID)
    path.parent.mkdir(parents=True)
    path.write_bytes(older.read_bytes())
    assert store.read(NODEID, updating=True) is None
    assert store.write(to_baseline(measurement(), FACTS))
    assert store.read(NODEID) == to_baseline(measurement(), FACTS)


def test_ten_earlier_names_are_kept(tmp_path: Path) -> None:
    """The newest; a test can be renamed for ever."""
    store = Store(tmp_path, KEY)
    made = to_baseline(measurement(), FACTS)
    store.write(replace(made, formerly=tuple(map(str, range(10)))))
    found = Baselines(store, updating=False, renamed={"new": NODEID}).get("new")
    assert isinstance(found, Baseline)
    assert found.formerly == (*map(str, range(1, 10)), NODEID)
    store.write(found)
    assert store.read("new") == found


def test_schema_document_names_the_keys() -> None:
    """docs/reference/schemas has the keys that are written, no more and no fewer."""
    document = json.loads((ROOT / "docs/reference/schemas/baseline-6.json").read_text())
    assert (
        document["required"] == list(document["properties"]) == list(json.loads(SAMPLE.read_text()))
    )
    document = json.loads((ROOT / "docs/reference/schemas/profile-6.json").read_text())
    written = WHOLE
    assert sorted(document["required"]) == sorted(written)
    assert document["properties"].keys() - written.keys() == {"formerly"}
    assert document["properties"]["schema"]["const"] == written["schema"] == 6
    for name in ("denoised", "python"):
        part = document["properties"][name]
        assert sorted(part["required"]) == sorted(part["properties"]) == sorted(written[name])
    part = document["properties"]["ledger"]["items"]
    for entry in written["ledger"]:
        assert sorted(part["required"]) == sorted(part["properties"]) == sorted(entry)


# --- bad files ----------------------------------------------------------------------------------


def edited(**changes: object) -> str:
    return json.dumps({**WHOLE, **changes})


def denoised(**changes: object) -> str:
    return edited(denoised={**WHOLE["denoised"], **changes})


def one_row(*numbers: object, total_ir: int = 100) -> str:
    """A baseline of one function, which is consistent for [100, any, 100 or more]."""
    return edited(functions={"f": numbers}, total_ir=total_ir, ir=total_ir, calls=1, denoised=None)


def without(key: str) -> str:
    return json.dumps({k: v for k, v in WHOLE.items() if k != key})


def summary(**changes: object) -> str:
    return json.dumps({**json.loads(SAMPLE.read_text()), **changes})


def lacking(key: str) -> str:
    return json.dumps({k: v for k, v in json.loads(SAMPLE.read_text()).items() if k != key})


CONFLICT = (
    SAMPLE.read_text()
    .replace(' "ir"', '<<<<<<< HEAD\n "ir": 1,\n=======\n "ir"')
    .replace(' "reason"', '>>>>>>> branch\n "reason"')
)


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("", "baseline-damaged"),
        ("\n", "baseline-damaged"),
        ("null", "baseline-damaged"),
        ("[]", "baseline-damaged"),
        ("{}", "baseline-damaged"),
        (SAMPLE.read_text()[:200], "baseline-damaged"),
        (SAMPLE.read_text()[:-2], "baseline-damaged"),
        (SAMPLE.read_text() * 2, "baseline-damaged"),
        ("[" * 100_000, "baseline-damaged"),
        ("9" * 5000, "baseline-damaged"),
        (CONFLICT, "baseline-conflict"),
        (summary(schema=7), "baseline-newer"),
        ('{"schema": 7, "all": "new"}', "baseline-newer"),
        (summary(schema=0), "baseline-damaged"),
        (summary(schema=True), "baseline-damaged"),
        (summary(schema="6"), "baseline-damaged"),
        (summary(nodeid="tests/test_json.py::test_other"), "baseline-damaged"),
        (summary(nodeid="tests/test_json.py::test_other", profile="0" * 12), "baseline-mismatch"),
        (summary(nodeid=3), "baseline-damaged"),
        (summary(ir=46_802), "baseline-damaged"),
        (summary(ir=46801.0), "baseline-damaged"),
        (summary(denoised_ir=46_801), "baseline-damaged"),
        (summary(denoised_ir=None), "baseline-damaged"),
        (summary(denoised_ir=None, totals=[468_005]), "baseline-damaged"),
        (summary(totals=[]), "baseline-damaged"),
        (summary(totals=468_005), "baseline-damaged"),
        (summary(totals=[468_005, -1]), "baseline-damaged"),
        (summary(totals=[468_005, True]), "baseline-damaged"),
        (summary(totals=[468_005] * 5), "baseline-damaged"),
        (summary(totals=[468_005] * 101), "baseline-damaged"),
        (summary(totals=[468_005, 468_005, 468_132, 467_964, 468_004]), "baseline-damaged"),
        (summary(calls=0), "baseline-damaged"),
        (summary(calls=True), "baseline-damaged"),
        (summary(warmup="20"), "baseline-damaged"),
        (summary(warmup=2**63), "baseline-damaged"),
        (summary(warmup=21), "baseline-damaged"),
        (summary(isolation="thread"), "baseline-damaged"),
        (summary(isolation="process"), "baseline-damaged"),
        (summary(isolation=[]), "baseline-damaged"),
        (summary(facts="00000000"), "baseline-damaged"),
        (summary(facts=None), "baseline-damaged"),
        (summary(reason="another"), "baseline-damaged"),
        (summary(reason="x" * 201), "baseline-damaged"),
        (summary(profile="../../../../x"), "baseline-damaged"),
        (summary(profile=""), "baseline-damaged"),
        (summary(extra=1), "baseline-damaged"),
        *((lacking(key), "baseline-damaged") for key in json.loads(SAMPLE.read_text())),
        (SAMPLE.read_text().replace(' "calls"', ' "calls": 10, "calls"'), "baseline-damaged"),
        (SAMPLE.read_text() + " " * LARGEST_FILE, "baseline-damaged"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_bad_files_are_named_and_left_alone(tmp_path: Path, text: str, slug: str) -> None:
    """Each names the file and the command, and no update overwrites it."""
    path = tmp_path / "x y.json"
    shutil.copy(profile_path(SAMPLE, PROFILE), profile_path(path, PROFILE))
    path.write_text(text)
    with pytest.raises(InstrcountError) as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == slug
    assert "x y.json'" in str(caught.value)
    assert "pip install" in caught.value.fix or "--instrcount-update-baseline" in caught.value.fix
    assert len(str(caught.value)) < 1000
    if slug == "baseline-conflict":  # an update settles it
        return
    with pytest.raises(InstrcountError) as again:
        write_baseline(path, to_baseline(measurement(), FACTS))
    assert again.value.slug == slug
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[" * 100_000,
        edited(schema=7),
        edited(denoised=[]),
        denoised(kept=[301_276] + [301_275] * 4),
        denoised(kept=[301_274] + [301_275] * 4),
        denoised(kept=[301_275] * 4),
        denoised(kept=[301_275] * 4 + [-1]),
        denoised(kept=[301_275] * 4 + [True]),
        denoised(kept=[]),
        denoised(kept=468_005),
        denoised(kinds={}),
        denoised(kinds=[]),
        denoised(kinds={"memory": [166_730] * 4}),
        denoised(kinds={"unheard of": [166_730] * 5}),
        denoised(kinds={"memory": [166_731, -1, 0, 0, 0]}),
        denoised(calls={"f": []}),
        denoised(calls={"f": [1]}),
        denoised(calls={"f": [1, -1]}),
        denoised(calls={"f": [1, 1, 2]}),
        denoised(calls={"f": [-1, 1]}),
        denoised(calls={"f": [10**9, 1]}),
        denoised(rules=0),
        denoised(noisy={}),
        denoised(noisy=[1]),
        denoised(wavering="f"),
        denoised(more=3),
        edited(schema=0),
        edited(schema=True),
        edited(schema="6"),
        edited(nodeid="tests/test_json.py::test_other"),
        edited(nodeid=3),
        edited(ir=1),
        edited(total_ir=468005.0),
        edited(total_ir=-1),
        edited(total_ir=None),
        edited(total_ir=2**63),
        edited(total_ir=float("nan")),
        edited(calls=0),
        edited(calls=True),
        edited(warmup="20"),
        edited(warmup=2**63),
        edited(warmup=False),
        edited(isolation="thread"),
        edited(isolation=[]),
        edited(environment=[]),
        edited(environment={"glibc": 2}),
        edited(packages=None),
        edited(functions=[]),
        edited(functions={}),
        edited(functions={"f": 468_005}),
        edited(total_ir=468_006),
        one_row(100),
        one_row(100, 2, 3, 4),
        one_row(100, 1, 99),
        one_row(99, 1, 100),
        one_row(101, 1, 101),
        one_row(100, -1, 100),
        one_row(-100, 1, 100, total_ir=-100),
        one_row(100, True, 100),
        one_row(100, 1.0, 100),
        edited(work={"allocations": -1}),
        edited(work=[]),
        edited(python=[]),
        edited(ledger=None),
        edited(formerly=[]),
        edited(formerly=["test_a"] * 11),
        edited(formerly=[1]),
        edited(extra=1),
        *(without(key) for key in WHOLE),
        WHOLE_TEXT[:200],
        WHOLE_TEXT * 2,
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_bad_profiles_are_named(tmp_path: Path, text: str) -> None:
    """Though their names fit what is in them."""
    path = plant_profile(tmp_path / "x y.json", text)
    with pytest.raises(InstrcountError) as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == ("baseline-newer" if '"schema": 7' in text else "baseline-damaged")
    assert "x y.json'" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_what_is_to_be_looked_at_is_there(tmp_path: Path) -> None:
    """The command names the file in the way, not a folder that was never made."""
    (tmp_path / "baselines").write_text("a file in the way")
    path = tmp_path / "baselines" / "cp311" / "x.json"
    with pytest.raises(InstrcountError) as caught:
        read_baseline(path, NODEID)
    assert caught.value.fix == f"ls -ld {tmp_path / 'baselines'}"
    with pytest.raises(InstrcountError) as caught:
        textfile.write_data(path, b"x")
    assert caught.value.fix == f"ls -ld {tmp_path / 'baselines'}; df {tmp_path / 'baselines'}"


def test_a_conflict_says_what_to_do(tmp_path: Path) -> None:
    """Resolve in git, or delete and measure again."""
    path = tmp_path / "x.json"
    path.write_text(CONFLICT)
    with pytest.raises(InstrcountError, match="merge markers") as caught:
        read_baseline(path, NODEID)
    assert caught.value.fix == (
        f"pytest --instrcount-update-baseline {shlex.quote(NODEID)}    # settles it by measuring"
    )
    assert read_baseline(path, NODEID, updating=True) is None
    assert write_baseline(path, to_baseline(measurement(), FACTS))
    assert read_baseline(path, NODEID) == to_baseline(measurement(), FACTS)


def test_one_row_is_consistent() -> None:
    """What the damaged ones above differ from."""
    found = parse_baseline(one_row(100, 1, 100), Path("x"))
    assert (found.rows, found.inclusive) == ({"f": Row(100, 1)}, {"f": 100})


@pytest.mark.parametrize("column", [0, 1, 2])
def test_no_row_is_negative(column: int) -> None:
    """That of the small ones neither, though their sum may have been."""
    rows = copy.deepcopy(WHOLE["functions"])
    own, calls = rows["(other)"]
    rows["(other)"] = [own, calls, own]
    rows["(other)"][column] = -5
    if column == 0:
        rows["_json.c:encoder_listencode_obj"][0] += own + 5
    with pytest.raises(InstrcountError, match=r"other.*is not an integer from 0"):
        parse_baseline(edited(functions=rows), Path("x"))


@pytest.mark.parametrize("unsteady", [(), ("a.c:f",)])
def test_what_is_made_is_consistent(unsteady: tuple[str, ...]) -> None:
    """The first layout is that of the rows, for a test that is not deterministic, too."""
    measured = measurement()
    other = Profile(1_000_500, {"a.c:f": Row(1_000_500, 30)})
    measured = replace(measured, layouts=(other, other), unsteady=unsteady)
    made = to_baseline(measured, FACTS)
    assert made.denoised is not None
    assert made.denoised.totals[0] == made.total_ir == sum(row.ir for row in made.rows.values())
    assert made.total_ir == (1_000_000 if unsteady else 1_000_500)
    assert made.denoised.layouts == (3 if unsteady else 2)
    assert parse_baseline(render_baseline(made), Path("x")) == made


def test_negative_noise_is_made_consistent() -> None:
    """Subtracting the switch can leave less than nothing in a kind of noise."""
    rows = {"a.c:f": Row(1010, 3), "obmalloc.c:PyObject_Malloc": Row(-10, -1)}
    measured = Measurement(NODEID, 1000, 1, 20, "fork", rows, {})
    made = to_baseline(measured, FACTS)
    assert made.denoised is not None and made.denoised.kept == (1000,)
    assert parse_baseline(render_baseline(made), Path("x")) == made


@pytest.mark.parametrize("how", ["gone", "another", "cut", "no text", "huge", "link"])
def test_a_lost_profile_is_no_damage(tmp_path: Path, how: str) -> None:
    """What its summary says is there; an update stores the profile again."""
    path, profile = tmp_path / "x.json", tmp_path / f"x.{PROFILE}.profile.gz"
    plant(path, WHOLE)
    whole = read_baseline(path, NODEID)
    data = profile.read_bytes()
    profile.unlink()
    if how == "another":
        profile.write_bytes(gzip.compress(edited(body="x").encode()))
    elif how == "cut":
        profile.write_bytes(data[:-9])
    elif how == "no text":
        profile.write_bytes(b"\xff")
    elif how == "huge":
        profile.write_bytes(gzip.compress(b" " * 50_000_000))
    elif how == "link":
        (tmp_path / "elsewhere").write_bytes(data)
        profile.symlink_to(tmp_path / "elsewhere")
    found = read_baseline(path, NODEID)
    assert isinstance(found, Baseline) and isinstance(whole, Baseline)
    assert found == without_profile(whole, PROFILE)
    assert found.compared_ir == whole.compared_ir
    assert write_baseline(path, whole)
    assert read_baseline(path, NODEID) == whole
    assert not profile.is_symlink()


def test_older_profiles_go(tmp_path: Path) -> None:
    """Those that merges of branches have left as well; no other test's, and no other file."""
    path = tmp_path / "x.json"
    others = [
        tmp_path / f"x.{name}" for name in ("0123456789ab.profile.gz.txt", "1.profile.gz", "y")
    ]
    for left in (*others, tmp_path / "x.0123456789ab.profile.gz", tmp_path / "x.json"):
        left.write_text("")
    plant(path, WHOLE)
    (tmp_path / "x.ba9876543210.profile.gz").write_text("")
    write_baseline(path, to_baseline(measurement(), FACTS))
    (profile,) = profiles_beside(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, profile, *others])


def test_a_summary_is_short() -> None:
    """For a test with a usual name and reason, in up to nine layouts."""
    baseline = to_baseline(measurement("tests/test_slugs.py::TestSlugs::test_slugify[long]"), FACTS)
    known = Denoised(Noise(), (123_456_789,) * 9)
    made = replace(baseline, denoised=known, total_ir=123_456_789)
    assert len(summary_text(made, PROFILE)) <= 400


def test_crlf_is_no_damage(tmp_path: Path) -> None:
    """Git on some machines checks out with other line ends."""
    path = tmp_path / "x.json"
    plant(path, WHOLE)
    path.write_bytes(SAMPLE.read_bytes().replace(b"\n", b"\r\n"))
    assert read_baseline(path, NODEID) == read_baseline(SAMPLE, NODEID)


def test_not_utf8(tmp_path: Path) -> None:
    """Bytes that are no text are damage."""
    path = tmp_path / "x.json"
    path.write_bytes(SAMPLE.read_bytes().replace(b"small", b"sm\xffll"))
    with pytest.raises(InstrcountError, match="not UTF-8") as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == "baseline-damaged"


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "under a file", "nul"])
def test_unreadable(tmp_path: Path, kind: str) -> None:
    """What is no file is said, and nothing waits for a pipe."""
    path = tmp_path / "x.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "nul":
        path = tmp_path / "a\0b"
    else:
        path.write_text("")
        path /= "y.json"
    with pytest.raises(InstrcountError) as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == "baseline-unreadable"
    assert "\0" not in str(caught.value)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for root, who may read everything: the open is made to fail."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = tmp_path / "x.json"
    path.write_text("{}")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InstrcountError, match="Permission denied") as caught:
        read_baseline(path, NODEID)
    assert caught.value.slug == "baseline-unreadable"


def test_missing_is_a_variant(tmp_path: Path) -> None:
    """No file, no folder, a dangling link: missing, not an error."""
    assert read_baseline(tmp_path / "x.json", NODEID) is None
    assert read_baseline(tmp_path / "no" / "x.json", NODEID) is None
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    assert read_baseline(tmp_path / "link.json", NODEID) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    """Nothing but InstrcountError comes out of a file."""
    path = tmp_path_factory.mktemp("any") / "x.json"
    path.write_bytes(data)
    with pytest.raises(InstrcountError):
        read_baseline(path, NODEID)


# --- writing ------------------------------------------------------------------------------------


def test_write_then_read(tmp_path: Path) -> None:
    """What was measured comes back, with the facts."""
    store = Store(tmp_path / "new" / "base", KEY)
    assert store.read(NODEID) is None
    assert store.write(to_baseline(measurement(), FACTS))
    assert store.read(NODEID) == to_baseline(measurement(), FACTS)
    path = store.path(NODEID)
    assert sorted(path.parent.iterdir()) == sorted([path, *profiles_beside(path)])


def test_equal_bytes_are_left_untouched(tmp_path: Path) -> None:
    """The same numbers change neither the time nor the file."""
    path = tmp_path / "x.json"
    assert write_baseline(path, to_baseline(measurement(), FACTS))
    os.utime(path, (1, 1))
    before = path.stat()
    assert not write_baseline(path, to_baseline(measurement(), FACTS))
    assert path.stat() == before or path.stat().st_ino == before.st_ino
    assert path.stat().st_mtime == 1
    assert write_baseline(path, to_baseline(measurement(total_ir=1_000_001), FACTS))
    assert path.stat().st_ino != before.st_ino


def test_files_have_the_usual_rights(tmp_path: Path) -> None:
    """A baseline is as readable as any file the user makes."""
    plain = tmp_path / "plain"
    plain.write_text("")
    write_baseline(tmp_path / "x.json", to_baseline(measurement(), FACTS))
    assert (tmp_path / "x.json").stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_full_disk_leaves_what_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The old baseline stays whole, no temp file is left, the message has a command."""
    path = tmp_path / "x.json"
    write_baseline(path, to_baseline(measurement(), FACTS))
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if step == "replace":
        monkeypatch.setattr(os, "replace", full)
    else:
        opened = Path.open

        def open_full(self: Path, mode: str = "r") -> object:
            file = opened(self, mode)
            if "x" in mode:
                file.close()
                full()
            return file

        monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(InstrcountError, match="No space left") as caught:
        write_baseline(path, to_baseline(measurement(total_ir=2), FACTS))
    monkeypatch.undo()
    assert caught.value.slug == "baseline-write"
    assert "ls -ld" in caught.value.fix
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == sorted([path, *profiles_beside(path)])
    assert read_baseline(path, NODEID) == to_baseline(measurement(), FACTS)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file where a folder must be is an error, not a traceback."""
    (tmp_path / KEY).write_text("")
    with pytest.raises(InstrcountError) as caught:
        Store(tmp_path, KEY).write(to_baseline(measurement(), FACTS))
    assert caught.value.slug in ("baseline-write", "baseline-unreadable")


def test_too_large_to_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the reader would refuse is never stored."""
    monkeypatch.setattr(baseline, "LARGEST_FILE", 100)
    with pytest.raises(InstrcountError, match="it would have") as caught:
        write_baseline(tmp_path / "x.json", to_baseline(measurement(), FACTS))
    assert caught.value.slug == "baseline-write"
    assert not list(tmp_path.iterdir())


# --- the store ----------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "base", KEY)
    for nodeid in ("a/t.py::one", "a/t.py::two", "b/t.py::one"):
        made.write(to_baseline(measurement(nodeid), FACTS))
    return made


def test_list(store: Store) -> None:
    """All tests of this environment, and nothing of another or of another program."""
    Store(store.root, "cp313-linux-x86_64").write(to_baseline(measurement("c.py::c"), FACTS))
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / ".abc.instrcount-tmp").write_text("left by a kill")
    assert sorted(store.list()) == [
        (store.path(nodeid), nodeid) for nodeid in ("a/t.py::one", "a/t.py::two", "b/t.py::one")
    ]


def test_list_of_nothing(tmp_path: Path) -> None:
    """No folder yet: nothing."""
    assert list(Store(tmp_path / "none", KEY).list()) == []


def test_list_goes_on_after_bad_files(store: Store) -> None:
    """A damaged and a moved file come with their errors, the others with their names."""
    store.path("a/t.py::one").write_text("{")
    store.path("b/t.py::one").rename(store.folder / "moved.json")
    owners = dict(store.list())
    damage, moved = owners[store.path("a/t.py::one")], owners[store.folder / "moved.json"]
    assert isinstance(damage, InstrcountError)
    assert damage.slug == "baseline-damaged"
    assert isinstance(moved, InstrcountError)
    assert moved.slug == "baseline-mismatch"
    assert owners[store.path("a/t.py::two")] == "a/t.py::two"


def test_other_environments(store: Store) -> None:
    """Which keys have this test; not the own one, not a stray file."""
    for key in ("cp313-linux-x86_64", "cp310-linux-x86_64"):
        Store(store.root, key).write(to_baseline(measurement("a/t.py::one"), FACTS))
    (store.root / "README").write_text("")
    assert store.other_environments("a/t.py::one") == ("cp310-linux-x86_64", "cp313-linux-x86_64")
    assert store.other_environments("a/t.py::two") == ()
    assert Store(store.root / "none", KEY).other_environments("a/t.py::one") == ()


def test_delete_removes_what_becomes_empty(store: Store) -> None:
    """Folders go with their last file, up to the environment's."""
    store.delete(store.path("a/t.py::one"))
    assert store.path("a/t.py::two").is_file()
    store.delete(store.path("a/t.py::two"))
    assert not (store.folder / "a").exists()
    store.delete(store.path("b/t.py::one"))
    store.delete(store.path("b/t.py::one"))
    assert list(store.folder.iterdir()) == []


def test_delete_stays_inside(store: Store, tmp_path: Path) -> None:
    """A path that leaves the folder is refused."""
    outside = tmp_path / "precious"
    outside.write_text("")
    for path in (outside, store.folder / ".." / ".." / "precious", store.folder):
        with pytest.raises(InstrcountError, match="outside"):
            store.delete(path)
    assert outside.exists()
    with pytest.raises(InstrcountError) as caught:
        store.delete(store.folder / "a")
    assert caught.value.slug == "baseline-write"
