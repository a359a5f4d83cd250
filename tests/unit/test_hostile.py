"""Files that a stranger has made: refused by name, in time and memory that their size explains."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import socket
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_instrcount.callgrind import perf_map
from pytest_instrcount.callgrind.channel import Channel, ChannelClosed
from pytest_instrcount.cli.show import render_shown
from pytest_instrcount.counts.outfile import join_dumps
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.counts.python import source, tree
from pytest_instrcount.counts.python.contexts import parse_names
from pytest_instrcount.counts.python.source import first_line
from pytest_instrcount.counts.python.tree import TRACER, CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import parse_count_limit
from pytest_instrcount.gate.store import reading
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.baseline_json import LARGEST_FILE, parse_baseline, render_baseline
from pytest_instrcount.gate.store.calls import CallStore, CallTable
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.gate.store.shard import load_shard
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.report.bundle import Bundle, BundledTest, load_bundle, render_bundle
from pytest_instrcount.trace.events.nvprof import parse_nvprof_trace
from pytest_instrcount.trace.ranges.event import Event, EventKind
from tests.baselines import tree_values

ID = "tests/test_x.py::test_a"
BASELINE = Baseline(
    ID, 100, 1, 20, "fork", {"a.c:f": Row(100, 1)}, {}, {}, inclusive={"a.c:f": 100}
)
TABLE = CallTable(ID, {("", "m:f"): (2, 0)}, {})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "project" / "baselines", "cp311-linux-x86_64")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def refusal(what: Callable[[], object], slug: str) -> str:
    """What is said of it; the error is one of ours, under that word."""
    with pytest.raises(InstrcountError) as caught:
        what()
    assert caught.value.slug == slug
    assert len(str(caught.value)) < 2000
    return str(caught.value)


# Links.


def test_a_folder_that_is_a_link_leads_nowhere(store: Store, outside: Path) -> None:
    """Nothing is read, written or deleted through it, of counts and of calls."""
    away = Store(outside, "")
    real = Store(outside.parent / "real", store.env_key)
    real.write(BASELINE)
    store.folder.mkdir(parents=True)
    (store.folder / "tests").symlink_to(real.folder / "tests")
    calls = CallStore(store)
    for what in (
        lambda: store.read(ID),
        lambda: store.write(BASELINE),
        lambda: store.delete(store.path(ID)),
        lambda: calls.read(ID),
        lambda: calls.write(TABLE),
    ):
        said = refusal(what, "baseline-link")
        assert f"rm {store.folder / 'tests'}" in said
    assert real.read(ID) == BASELINE
    assert [path.name for path in away.folder.rglob("*")] == []


def test_a_file_that_is_a_link_is_not_read(store: Store, outside: Path) -> None:
    """Nor is what it leads to said; and it is listed as an error."""
    path = store.path(ID)
    path.parent.mkdir(parents=True)
    secret = outside / "secret.json"
    secret.write_text('{"password-of-the-runner": 1}')
    path.symlink_to(secret)
    assert "password" not in refusal(lambda: store.read(ID), "baseline-link")
    refusal(lambda: store.write(BASELINE), "baseline-link")
    [(listed, error)] = store.list()
    assert listed == path
    assert isinstance(error, InstrcountError)
    assert error.slug == "baseline-link"
    store.delete(path)
    assert not path.is_symlink()
    assert secret.exists()


def test_the_environment_as_a_link(store: Store, outside: Path) -> None:
    store.root.mkdir(parents=True)
    store.folder.symlink_to(outside)
    refusal(lambda: store.write(BASELINE), "baseline-link")
    assert not list(outside.iterdir())


def test_links_that_stay_inside_are_followed(store: Store, outside: Path) -> None:
    """The folder itself may be elsewhere, and an environment may be another name of a second one."""
    store.root.parent.mkdir(parents=True)
    store.root.symlink_to(outside)
    assert store.write(BASELINE)
    (store.root / "cp312-linux-x86_64").symlink_to("cp311-linux-x86_64")
    assert Store(store.root, "cp312-linux-x86_64").read(ID) == BASELINE
    assert store.read("tests/test_x.py::test_b") is None


# Numbers and depths.


def deep_rows(depth: int) -> list[list[object]]:
    return [[level, "f", 1, 1] for level in range(depth)]


def with_tree(rows: list[list[object]]) -> str:
    found = json.loads(render_baseline(BASELINE))
    return json.dumps(found | {"python": tree_values(TRACER, 1, rows)})


def test_a_tree_cannot_be_deep_enough_to_fill_the_memory() -> None:
    """A few bytes per row would become paths of all rows above each."""
    assert parse_baseline(with_tree(deep_rows(2_000)), Path("b")).python is not None
    deep = with_tree(deep_rows(100_000))
    assert len(deep) < LARGEST_FILE
    said = refusal(lambda: parse_baseline(deep, Path("b")), "baseline-damaged")
    assert "too deep" in said
    # what is taken off again by a negative depth was too much all the same
    refusal(lambda: parse_baseline(with_tree([*deep_rows(3_000), [-(10**9), "g", 1, 1]]), Path("b")),
            "baseline-damaged")  # fmt: skip


def test_what_is_stored_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measured tree that is too deep is cut, and nothing of its cost is lost."""
    monkeypatch.setattr(tree, "_MOST_STEPS", 1_000)
    nodes = {("f",) * level: Row(level, 1) for level in range(1, 101)}
    measured = CallTree(TRACER, 1, nodes)
    folded = measured.fold()
    assert folded.total == measured.total
    assert max(map(len, folded.nodes)) == 44
    again = CallTree.from_rows(TRACER, 1, list(folded.rows()))
    assert again == folded
    with pytest.raises(ValueError, match="too deep"):
        CallTree.from_rows(TRACER, 1, list(measured.rows()))


@pytest.mark.parametrize(
    "text",
    [
        f'{{"schema": {"9" * 4_000_000}}}',
        "[" * 4_000_000,
        '{"a":' * 800_000,
        json.dumps({"schema": 6, "x" * 4_000_000: 1}),
        json.dumps({"schema": 6, "\x1b[2J": 1}),
    ],
    ids=["digits", "brackets", "braces", "key", "escapes"],
)
def test_what_is_said_of_a_baseline_is_short(text: str) -> None:
    """However large the number, the depth or the key; and a terminal does not obey it."""
    said = refusal(lambda: parse_baseline(text, Path("b")), "baseline-damaged")
    assert "\x1b" not in said


@pytest.mark.parametrize("value", ["9" * 5000, "\x1f7", "\u0667"])
def test_limits_that_are_digits(value: str) -> None:
    """What Python refuses to read as a number is no limit, and no ValueError."""
    try:
        assert parse_count_limit(value).absolute == 7
    except InstrcountError as error:
        assert error.slug == "limit"


def test_numbers_of_events_have_64_bits() -> None:
    """What is added up of them can be written out."""
    plain = Event(EventKind.PUSH, "a", 0, handle=1, at_ns=2**63 - 1).to_plain()
    Event.from_plain(plain)
    plain[plain.index(2**63 - 1)] = 2**63
    refusal(lambda: Event.from_plain(plain), "event-plain")


def test_maps_of_trampolines() -> None:
    """A name can bring lines of its own: numbers that no interpreter writes are no addresses."""
    assert (
        parse_names([f"7f20 b py:{'9' * 5000}:f:/a.py\n", f"{'f' * 99999} b py:1:f:/a.py\n"]) == {}
    )


# Names.


def test_names_cannot_multiply(tmp_path: Path) -> None:
    """Lines of eight bytes that each refer to a name of thousands: refused before they are put together."""
    lines = ["events: Ir\n", f"fl=(1) {'x' * 60_000}\n"]
    lines += [f"fn=({n}) f{n}\n0 1\n" for n in range(20_000)]
    path = tmp_path / "out"
    path.write_text("".join([*lines, "totals: 20000\n"]))
    tracemalloc.start()
    try:
        refusal(lambda: parse_profile(path), "profile-damaged")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * path.stat().st_size
    refusal(
        lambda: parse_profile(["events: Ir", f"fn={'x' * 70_000}", "totals: 0"]), "profile-damaged"
    )


def test_a_total_that_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("events: Ir\nfn=f\n0 3\ntotals: 3)\n")
    refusal(lambda: join_dumps([path], []), "profile-damaged")


def test_code_that_claims_to_come_from_a_pipe(tmp_path: Path) -> None:
    """To read its source would wait forever."""
    path = tmp_path / "pipe.py"
    os.mkfifo(path)
    source._functions.cache_clear()
    assert first_line(str(path), "f") == 0


# Bundles.


def packed(size: int) -> bytes:
    return gzip.compress(b'{"kind": "' + b" " * size, mtime=0)


def test_a_bundle_that_unpacks_to_far_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is packed is bounded by what it is packed in."""
    monkeypatch.setattr(reading, "_LEAST_TEXT", 1_000_000)
    path = tmp_path / "b.json.gz"
    path.write_bytes(packed(40_000_000))
    tracemalloc.start()
    try:
        said = refusal(lambda: load_bundle(path), "bundle-damaged")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "holds more than" in said
    assert peak < 20_000_000


def test_a_bundle_that_is_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    os.mkfifo(path)
    refusal(lambda: load_bundle(path), "bundle-unreadable")


def test_a_bundle_is_shown_and_not_obeyed() -> None:
    """Not by a terminal, and not by what reads the log of a CI job line by line."""
    lines = (
        "::add-mask::x",
        "  ::error file=a::b",
        "a ##[error]b",
        "##vso[task]",
        "\u202e\x9b2Jok",
    )
    test = BundledTest("a\x1b]0;t\x07", "regressed", lines, {})
    shown = render_shown(Bundle("c", "", {}, {}, (test,)), (test,))
    assert all(line.isprintable() and not line.lstrip().startswith("::") for line in shown)
    assert shown[-5:] == [
        r"\x3a:add-mask::x",
        r"  \x3a:error file=a::b",
        r"a \x23#[error]b",
        r"\x23#vso[task]",
        r"\u202e\x9b2Jok",
    ]


def test_numbers_of_a_bundle_are_numbers(tmp_path: Path) -> None:
    """None so long that a sum of them could not be written out again."""
    path = tmp_path / "b.json"
    test = BundledTest(ID, "regressed", (), {"ir": 2**63})
    path.write_bytes(render_bundle(Bundle("c", "", {}, {}, (test,)), packed=False))
    refusal(lambda: load_bundle(path), "bundle-damaged")


# nvprof: a file of SQLite is a program, too.

_TABLES = """
    CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER(
        _id_ INTEGER PRIMARY KEY, id INT, name INT, timestamp INT, objectKind INT, objectId BLOB);
    CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(_id_ INTEGER PRIMARY KEY, start INT, end INT,
        correlationId INT);
    CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(
        _id_ INTEGER PRIMARY KEY, name INT, start INT, end INT, correlationId INT);
    INSERT INTO StringTable VALUES (1, 'a');
"""
_COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {})"


def database(path: Path, *statements: str) -> Path:
    file = sqlite3.connect(path)
    file.executescript(_TABLES)
    for statement in statements:
        file.execute(statement)
    file.commit()
    file.close()
    return path


@pytest.mark.parametrize(
    "statements",
    [
        (
            "DROP TABLE StringTable",
            "CREATE VIEW StringTable AS WITH RECURSIVE n(_id_, value) AS "
            "(SELECT 1, 'a' UNION ALL SELECT _id_ + 1, value FROM n) SELECT * FROM n",
        ),
        # each of so many calls has launched each of so many kernels
        (
            f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME {_COUNT.format(20_000)} SELECT i, 1, 2, 7 FROM n",
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL "
            f"{_COUNT.format(20_000)} SELECT i, 1, 1, 2, 7 FROM n",
        ),
        # begins and ends of one number without an end
        (
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER "
            f"{_COUNT.format(40_000)} SELECT i, 5, i % 2, 1, 0, 0 FROM n",
        ),
        # each of so many ranges holds each of so many kernels
        (
            f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME {_COUNT.format(20_000)} SELECT i, 5, 6, i FROM n",
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL "
            f"{_COUNT.format(20_000)} SELECT i, 1, 5, 6, i FROM n",
            "INSERT INTO CUPTI_ACTIVITY_KIND_MARKER "
            f"{_COUNT.format(20_000)} SELECT i, i / 2, i % 2, 1 + 9 * (1 - i % 2), 0, 0 FROM n",
        ),
    ],
    ids=["view", "launches", "markers", "ranges"],
)
def test_nvprof_files_that_would_never_end(tmp_path: Path, statements: tuple[str, ...]) -> None:
    """Time and memory are in proportion to the file."""
    path = database(tmp_path / "trace", *statements)
    tracemalloc.start()
    try:
        refusal(lambda: parse_nvprof_trace(path), "nvprof")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000


# What arrives from a process that measures.


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b"[" * 60_000, b'{"a": 1}x'])
def test_what_is_no_message_ends_the_line(body: bytes) -> None:
    """A test that writes to a descriptor which is not its own ends itself, and no other."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    with ours, theirs:
        theirs.sendall(struct.pack("<I", len(body)) + body)
        channel.fill()
        with pytest.raises(ChannelClosed):
            channel.pop()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: text\n\tof two lines, 中文 é", "plain: text\n\tof two lines, 中文 é"),
        ("\x1b[31m\x07\x9b1m\x7f", r"\x1b[31m\x07\x9b1m\x7f"),
        ("a\u202eb\u2066\u200b\ufeff\u2028", r"a\u202eb\u2066\u200b\ufeff\u2028"),
        ("\ud800", r"\ud800"),
        ("a\r::error::x", r"a\r::error::x"),
        ("a\n \t::error::x\n::a", "a\n \t\\x3a:error::x\n\\x3a:a"),
        ("tests/test_x.py::test_a", "tests/test_x.py::test_a"),
        (
            "a ##[group]b ##vso[x ##teamcity[y ## c",
            r"a \x23#[group]b \x23#vso[x \x23#teamcity[y ## c",
        ),
    ],
)
def test_unobeyed(text: str, shown: str) -> None:
    """What a terminal or a CI obeys is written out; all else is as it was."""
    assert escape_controls(text) == shown


def test_errors_are_not_obeyed() -> None:
    assert "\x1b" not in str(InstrcountError("a", "b\x1b[2J", "c\x07"))


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_map_of_somebody_else_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """CPython's maps are in a folder of all users: what is not our own file there is not taken."""
    monkeypatch.setattr(perf_map, "PERF_MAP", str(tmp_path / "perf-{pid}.map"))
    place, folder = tmp_path / "perf-7.map", tmp_path / "dumps"
    folder.mkdir()
    (tmp_path / "mine").write_text("7f20 b py::f:/a.py\n")
    if kind == "link":
        place.symlink_to(tmp_path / "mine")
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    assert perf_map.take_names(7, folder) is None
    assert os.path.lexists(place)
    assert not list(folder.iterdir())
    (tmp_path / "perf-8.map").write_text("7f20 b py::f:/a.py\n")
    assert perf_map.take_names(8, folder) == folder / "names.8"


NESTED = b'{"kind": "pytest-instrcount bundle", "x": [%s]}'
ROWS = ", ".join(f'"{number:x}": [1, 1]' for number in range(50_000))
LAYOUT = '{"total": 1, "rows": {}, "callers": {}}'
SHARD = (
    '{"kind": "pytest-instrcount shard", "schema": 1, "noisy": [], "tests": {"t": '
    f'[{{"total": 1, "rows": {{{ROWS}}}, "callers": {{"f": {{{ROWS}}}}}}}, %s]}}}}'
)
CHANGED = '{"total": 1, "rows": {"a": [2, 2]}, "callers": {"f": {"a": [2, 2]}}}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("b.json.gz", NESTED % b",".join([b"[]"] * 15_000_000)),
        ("b.json.gz", NESTED % b",".join([b'{"a":{}}'] * 900_000)),
        ("b.json.gz", NESTED % b",".join([b'"\xf0\x9f\x98\x80 %d"' % n for n in range(600_000)])),
        ("b.json.gz", NESTED % (b'"' + b"a" * 40_000_000 + b'"')),
        ("s.shard", (SHARD % ",".join([LAYOUT] * 30_000)).encode()),
        ("s.shard", (SHARD % ",".join([CHANGED] * 4)).encode()),
        ("s.shard", (SHARD % ",".join([CHANGED] * 3_000)).encode()),
    ],
)
def test_small_files_take_little_memory(tmp_path: Path, name: str, text: bytes) -> None:
    """64 MB, and 150 bytes for each byte of the file, whatever it holds when it is unpacked."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(text, 9))
    del text
    size = path.stat().st_size
    load = load_bundle if name.startswith("b") else load_shard
    tracemalloc.start()
    try:
        with contextlib.suppress(InstrcountError):
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= 64_000_000 + 150 * size, (peak, size)
