"""The plain JSON, its reader, and how files are written."""

from __future__ import annotations

import errno
import gzip
import json
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.trace.columns import Folded
from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.export.plain import parse_timeline, plain_chunks
from pytest_instrcount.trace.timeline import Detail, Flow, Mark, MemorySample, Timeline
from tests.schemas import complaints
from tests.timelines import call, deep, ranged, timeline_of, timelines

DATA = Path(__file__).parents[1] / "data/trace"
WHOLE = replace(
    timeline_of(
        call("f", 0, 9_000),
        ranged("r", 1_000, 2_000, detail=Detail(None, ((2, 3), ()), 7, "n=1", "Linear #0", 4, 7)),
        ranged("late", 5_000, 12_000, detail=Detail(end_track=1)),
    ),
    folded={0: Folded(3, 1, 1, 12_000)},
    marks=(Mark("here", 0, 5),),
    memory=(MemorySample(5, 100, 0),),
    flows=(Flow("start", 0, 5, 1, 9),),
    truncated=True,
)

Export = Callable[[EventList, Path], None]
EXPORTS: dict[str, Export] = {
    "chrome": EventList.export_chrome_trace,
    "speedscope": EventList.export_speedscope,
    "stacks": EventList.export_stacks,
    "collapsed": EventList.export_collapsed,
    "pstats": EventList.export_pstats,
    "json": EventList.export_json,
}
every_export = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)


def written(timeline: Timeline) -> dict[str, Any]:
    document: dict[str, Any] = json.loads("".join(plain_chunks(timeline)))
    return document


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    """Everything comes back, packed or not."""
    EventList(WHOLE).export_json(tmp_path / name)
    assert EventList.from_json(tmp_path / name).timeline == WHOLE
    assert (tmp_path / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b'{"')


@given(timelines())
def test_every_timeline_comes_back(timeline: Timeline) -> None:
    """parse(render(x)) = x."""
    assert parse_timeline("".join(plain_chunks(timeline)).encode()) == timeline


def test_version_1_is_read_for_ever() -> None:
    """The file of the first release."""
    assert EventList.from_json(DATA / "trace-1.json").timeline == WHOLE


def test_schema_of_the_docs() -> None:
    """docs/reference/schemas has the keys that are written, no more and no fewer."""
    page = Path(__file__).parents[2] / "docs/reference/schemas/trace-1.json"
    schema = json.loads(page.read_text())
    assert complaints(written(WHOLE), schema) == []
    assert set(schema["required"]) == set(schema["properties"]) == written(WHOLE).keys()


def test_recursion_100_000_deep() -> None:
    """The format is flat."""
    timeline = deep(100_000)
    assert parse_timeline("".join(plain_chunks(timeline)).encode()) == timeline


def changed(path: str, value: object) -> bytes:
    """The good document with one part changed; "columns.label" is a key in a key."""
    document = written(WHOLE)
    part: Any = document
    *above, last = path.split(".")
    for key in above:
        part = part[int(key) if key.isdigit() else key]
    part[int(last) if last.isdigit() else last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="cut"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[" * 200_000, id="deep"),
        pytest.param(b"\xff\xfe\x00", id="no text"),
        pytest.param(b"9" * 5_000, id="a long number"),
        pytest.param(b'{"format": "other"}', id="other format"),
        pytest.param(changed("version", 0), id="version 0"),
        pytest.param(changed("version", True), id="version true"),
        pytest.param(changed("version", "1"), id="version text"),
        pytest.param(changed("more", 1), id="another key"),
        pytest.param(changed("columns", []), id="columns list"),
        pytest.param(changed("columns", {}), id="no columns"),
        pytest.param(changed("columns.start", [1]), id="columns differ"),
        pytest.param(changed("columns.label", [0]), id="labels are missing"),
        pytest.param(changed("columns.start.0", 1.5), id="a float"),
        pytest.param(changed("columns.start.0", None), id="a null"),
        pytest.param(changed("columns.start.0", True), id="a bool"),
        pytest.param(changed("columns.start.0", 1 << 64), id="too large a number"),
        pytest.param(changed("columns.label.0", 99), id="no such label"),
        pytest.param(changed("columns.parent.0", 2), id="a circle"),
        pytest.param(changed("labels.0", ["f"]), id="a short label"),
        pytest.param(changed("labels.0.0", 1), id="a name that is none"),
        pytest.param(changed("tracks", {}), id="tracks object"),
        pytest.param(changed("recorded", [1, 0, 0, 0]), id="recorded numbers"),
        pytest.param(changed("recorded", []), id="recorded nothing"),
        pytest.param(changed("windows", [[1]]), id="half a window"),
        pytest.param(changed("truncated", 1), id="truncated number"),
        pytest.param(changed("details.0.2", [1]), id="a shape that is none"),
        pytest.param(changed("details.0.0", 9), id="details of no row"),
        pytest.param(changed("details.0.4", None), id="no text"),
        pytest.param(changed("folded.0.0", 9), id="folded no row"),
        pytest.param(changed("marks.0.1", 9), id="mark on no track"),
        pytest.param(changed("memory.0.2", -1), id="memory on no track"),
        pytest.param(changed("flows.0.3", 9), id="flow to no track"),
    ],
)
def test_damaged(data: bytes) -> None:
    """One error, whatever is wrong."""
    with pytest.raises(InstrcountError) as error:
        parse_timeline(data)
    assert error.value.slug == "trace-damaged"
    assert len(str(error.value)) < 500


@given(st.data())
def test_any_damage_is_our_error(data: st.DataObject) -> None:
    """Bytes changed, cut out or put in: it is read, or it is damaged."""
    good = "".join(plain_chunks(WHOLE)).encode()
    at = data.draw(st.integers(0, len(good)))
    bad = good[:at] + data.draw(st.binary(max_size=4)) + good[at + data.draw(st.integers(0, 9)) :]
    try:
        timeline = parse_timeline(bad)
    except InstrcountError as error:
        assert error.slug in ("trace-damaged", "trace-newer")
    else:
        assert parse_timeline("".join(plain_chunks(timeline)).encode()) == timeline


def test_newer() -> None:
    """It asks for an upgrade, however much newer."""
    for version in (2, 10**400):
        with pytest.raises(InstrcountError) as error:
            parse_timeline(changed("version", version))
        assert error.value.slug == "trace-newer"
        assert "--upgrade" in error.value.fix


@pytest.mark.parametrize("name", ["missing.json", "folder", "bad.gz", "cut.gz"])
def test_unreadable(name: str, tmp_path: Path) -> None:
    """No file, no file to read, or not what its name says."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad.gz").write_bytes(b"no gzip")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"{}" * 1_000)[:20])
    with pytest.raises(InstrcountError) as error:
        EventList.from_json(tmp_path / name)
    assert error.value.slug == "trace-unreadable"


@every_export
def test_nothing_to_export(export: Export, tmp_path: Path) -> None:
    """An error, and no empty file."""
    with pytest.raises(InstrcountError) as error:
        export(EventList(), tmp_path / "out")
    assert error.value.slug == "profile-empty"
    assert list(tmp_path.iterdir()) == []


def test_marks_alone(tmp_path: Path) -> None:
    """Are something where a format has them."""
    events = EventList(replace(timeline_of(), marks=(Mark("here", 0, 5),)))
    events.export_chrome_trace(tmp_path / "chrome")
    events.export_json(tmp_path / "json")
    for export in (events.export_speedscope, events.export_pstats, events.export_collapsed):
        with pytest.raises(InstrcountError, match="profile-empty"):
            export(tmp_path / "out")


@every_export
def test_equal_events_make_equal_files(export: Export, tmp_path: Path) -> None:
    """Also packed."""
    events = EventList(replace(WHOLE, folded={}))
    for name in ("a.gz", "b.gz"):
        export(events, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


@contextmanager
def small_disk() -> Iterator[None]:
    """No file gets larger than 100 bytes: as on a full disk, some of it is written.

    Not a fixture: pytest's own output may go to a file.
    """
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)


@every_export
@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_full_disk(name: str, export: Export, tmp_path: Path) -> None:
    """Our error; what was there is there, and no half file beside it."""
    path = tmp_path / name
    path.write_text("before")
    many = [call(f"function_{number}", 2 * number, 2 * number + 1) for number in range(200)]
    with pytest.raises(InstrcountError) as error, small_disk():
        export(EventList(timeline_of(*many)), path)
    assert error.value.slug == "profile-write"
    assert isinstance(error.value.__cause__, OSError)
    assert error.value.__cause__.errno == errno.EFBIG
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@every_export
@pytest.mark.parametrize("place", ["folder", "file/below", "nul\0l"])
def test_where_no_file_can_be(place: str, export: Export, tmp_path: Path) -> None:
    """Our error, with the path."""
    (tmp_path / "folder" / "x").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(InstrcountError) as error:
        export(EventList(timeline_of(call("f", 0, 9_000))), tmp_path / place)
    assert error.value.slug == "profile-write"
    assert place.partition("/")[0].replace("\0", "\\x00") in str(error.value).replace("\\\\", "\\")


@every_export
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(timeline=timelines())
def test_every_export_takes_every_timeline(
    export: Export, timeline: Timeline, tmp_path: Path
) -> None:
    """A file, or a word why there is none."""
    path = tmp_path / "out"
    path.unlink(missing_ok=True)
    try:
        export(EventList(timeline), path)
    except InstrcountError as error:
        assert error.slug == "profile-empty"
        assert not path.exists()
    else:
        assert path.stat().st_size
