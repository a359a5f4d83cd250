"""What is fuzzed: each target takes bytes, and raises if a promise about data is broken.

The promise: data that is wrong ends in an InstrcountError and in nothing else, and data that is read
is written back as the same, and can be judged and shown.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.callgrind.channel import Channel, ChannelClosed
from pytest_instrcount.cli.show import render_shown
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import find_noise
from pytest_instrcount.counts.outfile import header_lines, join_dumps
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, Row
from pytest_instrcount.counts.python.blame import find_blame
from pytest_instrcount.counts.python.contexts import parse_names, tree_from
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.counts.standardize import standardize_profile
from pytest_instrcount.counts.totals import read_total
from pytest_instrcount.counts.work import count_work
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.calls import judge_calls
from pytest_instrcount.gate.compare import compare
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.limit import Limit, parse_count_limit, parse_limit
from pytest_instrcount.gate.records import RunSummary, measured_result
from pytest_instrcount.gate.store.baseline_json import parse_baseline, render_baseline
from pytest_instrcount.gate.store.calls import CallTable, parse_calls, render_calls
from pytest_instrcount.gate.store.schema import Baseline, to_baseline
from pytest_instrcount.gate.store.summary import parse_summary, summary_text
from pytest_instrcount.report.bundle import load_bundle, render_bundle
from pytest_instrcount.report.callgrind import profiles_of
from pytest_instrcount.report.calls import render_calls_failure
from pytest_instrcount.report.failure import render_failure
from pytest_instrcount.report.json import render_json
from pytest_instrcount.report.page import render_page
from pytest_instrcount.report.page_data import page_data
from pytest_instrcount.report.stacks import collapsed_lines, speedscope_chunks
from pytest_instrcount.report.summary import render_summary
from pytest_instrcount.trace.events.nvprof import load_nvprof, parse_nvprof_trace
from pytest_instrcount.trace.events.run import run_chunks
from pytest_instrcount.trace.ranges.remote import pack_events, unpack_events

#: What a target may take of memory: bytes for each of its input, beside so many.
MOST_BYTES, LEAST_BYTES = 150, 64_000_000

_HERE = Path("data")
_FOLDER = tempfile.TemporaryDirectory(prefix="instrcount-fuzz")
_FILE = Path(_FOLDER.name, "input")
_LIMIT = Limit(Fraction(1, 100), None)


def callgrind(data: bytes) -> None:
    """A file of Callgrind's: read, cleaned, joined with itself, and its total read by itself."""
    _FILE.write_bytes(data)
    with suppress(InstrcountError):
        read_total(_FILE)
    with suppress(InstrcountError):
        join_dumps([_FILE, _FILE], header_lines("fuzz", []))
    profile = parse_profile(_FILE)
    if sum(row.ir for row in profile.rows.values()) != profile.total:
        raise AssertionError("rows do not add up")
    standard = standardize_profile(profile)
    if standard.total != profile.total:
        raise AssertionError("standard names change the total")
    measurement = _measurement(standard)
    baseline = to_baseline(measurement, {})
    parse_baseline(render_baseline(baseline), _HERE)
    profiles_of(measurement.nodeid, measurement, baseline, _TREE)
    find_noise([standard, _PROFILE])
    count_work(standard)
    with suppress(InstrcountError):
        tree_from([profile], parse_names(_NAMES), 1, lambda function: function.qualname)


def names(data: bytes) -> None:
    """A map of trampolines."""
    functions = parse_names(data.decode(errors="replace").splitlines(keepends=True))
    profile = Profile(5, {f"???:{address:#x} [x]": Row(1, 1) for address in functions})
    tree_from([profile], functions, 1, lambda function: function.qualname)


def baseline(data: bytes) -> None:
    """A baseline: read, written again, compared, judged, and shown in every report."""
    with suppress(InstrcountError):
        alone = parse_summary(_text(data), _HERE)
        if parse_summary(summary_text(alone, alone.lost), _HERE) != alone:
            raise AssertionError("what was written is not what was read")
        _judge(alone, replace(_measurement(_PROFILE), nodeid=alone.nodeid))
    found = parse_baseline(_text(data), _HERE, "test_x.py::test_a")
    again = parse_baseline(render_baseline(found), _HERE)
    if again != found:
        raise AssertionError("what was written is not what was read")
    _judge(found, replace(_measurement(_PROFILE), nodeid=found.nodeid))
    profiles_of(found.nodeid, None, found, found.python)


def calls(data: bytes) -> None:
    """A table of calls: read, written again, and judged against another one."""
    found = parse_calls(_text(data), _HERE)
    if parse_calls(render_calls(found), _HERE) != found:
        raise AssertionError("what was written is not what was read")
    new = CallTable(found.nodeid, {("", "m:f"): (3, 0)}, found.environment, {"load": 9})
    for old, now in ((found, new), (new, found)):
        result = judge_calls(old, now, _LIMIT, memory_limit=_LIMIT)
        _check_lines(render_calls_failure(result, "pytest", 80))


def bundle(data: bytes) -> None:
    """A bundle: read, written again, and shown."""
    _FILE.write_bytes(data)
    found = load_bundle(_FILE)
    _FILE.write_bytes(render_bundle(found, packed=True))
    if load_bundle(_FILE) != found:
        raise AssertionError("what was written is not what was read")
    _check_lines(render_shown(found, found.tests))


def events(data: bytes) -> None:
    """Events of another process: as plain values, and as a worker sends them."""
    found = _json(data)
    threads = unpack_events(found)
    if unpack_events(json.loads(json.dumps(pack_events(threads)))) != threads:
        raise AssertionError("what was written is not what was read")
    text = json.dumps(["test", 1, "MainThread", 0, 1, [found]])
    json.loads("".join(run_chunks([("gw0", text)])))


def limit(data: bytes) -> None:
    """A limit as users write it, of instructions and of what is counted."""
    with suppress(InstrcountError):
        parse_count_limit(_text(data))
    found = parse_limit(_text(data))
    # a fraction without an end in base 10 is shown rounded
    if found.relative is not None and parse_limit(str(found)).absolute != found.absolute:
        raise AssertionError("what is shown is not what was read")


def nvprof(data: bytes) -> None:
    """A file of nvprof's: SQLite, whatever is in it."""
    _FILE.write_bytes(data)
    parse_nvprof_trace(_FILE)
    load_nvprof(_FILE)


def channel(data: bytes) -> None:
    """What arrives from a process that measures."""
    line = Channel.__new__(Channel)
    line._received = bytearray(data)
    with suppress(ChannelClosed):
        while (message := line.pop()) is not None:
            if not isinstance(message, dict):
                raise AssertionError("no message")


#: Name -> target; a corpus of the same name is beside this file.
TARGETS: Mapping[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        callgrind,
        names,
        baseline,
        calls,
        bundle,
        events,
        limit,
        nvprof,
        channel,
    )
}

#: As libFuzzer takes them: what its mutations of bytes would take long to find.
WORDS: Mapping[str, str] = {
    "callgrind": (
        "events:,Ir,totals:,summary:,positions:,line,fn=,fl=,fi=,fe=,ob=,cfn=,cfi=,cfl=,cob=,calls=,"
        "jump=,jcnd=,jfi=,jfn=,part:,version:,(1),(2),+1,-1,*,'2,rec="
    ),
    "names": "py:,py::,py:1:,7f20 b ",
    "baseline": (
        '"schema","nodeid","ir","total_ir","calls","warmup","isolation","environment","packages",'
        '"functions","denoised","python","work","how","rows","low","high","total","noisy",'
        '"layouts","rules","tracer","trampolines","totals","facts","profile","lost","reason",null,<<<<<<<,9223372036854775807,1e9'
    ),
    "calls": '"schema","nodeid","environment","calls","memory",9223372036854775807,-1,1e9,<<<<<<<',
    "bundle": (
        '"kind","schema","command","commit","versions","environment","tests","nodeid","verdict",'
        '"text","numbers","profiles",".callgrind.out",".python.callgrind.out","regressed",-1,null,NaN'
    ),
    "events": "true,false,null,9223372036854775808,1e9,NaN,[[,]],-1",
    "limit": "%,ir,|,e+30,e-30,_,.5,+,1%|5000ir",
    "nvprof": "SQLite format 3,CREATE TABLE,CREATE VIEW,StringTable,CUPTI_ACTIVITY_KIND_MARKER",
    "channel": '{"kind":,ask,\\xff\\xff\\xff\\xff',
}


def run(name: str, data: bytes) -> None:
    """Run one target: returns where the data was refused as it should be, else raises what it raised."""
    with suppress(InstrcountError):
        TARGETS[name](data)


_PROFILE = Profile(
    110, {"a.c:f": Row(60, 1), "obmalloc.c:PyObject_Malloc": Row(50, 5)}, {}, {"a.c:f": 110}
)
_TREE = CallTree("tracer", 1, {("t:a",): Row(1, 1), ("t:a", "s:b"): Row(3, 3)})
_NAMES = ["7f20 b py::Order.total:/shop/orders.py\n"]


def _measurement(profile: Profile) -> Measurement:
    return Measurement(
        "test_x.py::test_a",
        profile.total,
        1,
        20,
        "fork",
        profile.rows,
        {},
        profile.callers,
        (),
        (),
        profile.inclusive,
    )


def _judge(old: Baseline, new: Measurement) -> None:
    """Compare with a baseline, and show it in all reports."""
    environment = old.environment
    comparison = compare(new, old, environment)
    result = measured_result(new, old, comparison, Verdict.regressed, _LIMIT)
    if old.python is not None:
        result = replace(result, python=find_blame(old.python, replace(_TREE, how=old.python.how)))
    summary = RunSummary((result,), environment, title="fuzz")
    _check_lines(render_failure(result, "pytest", 80))
    _check_lines(render_summary(summary, 2, 80))
    json.loads(render_json(summary))
    for chunks in (
        [render_page(page_data(summary, {}, ""))],
        collapsed_lines(summary),
        speedscope_chunks(summary),
    ):
        for chunk in chunks:
            chunk.encode()


def _check_lines(lines: list[str]) -> None:
    """What goes to a terminal holds nothing that one obeys."""
    for line in lines:
        if not line.isprintable():
            raise AssertionError(f"a terminal would obey {line!a}")


def _text(data: bytes) -> str:
    """As files of ours are read: what is no UTF-8 is refused before."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InstrcountError("baseline-damaged", str(error), "") from None


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InstrcountError("event-plain", str(error), "") from None


def make_nvprof(statements: str) -> bytes:
    """A file of SQLite, as a seed."""
    _FILE.unlink(missing_ok=True)
    file = sqlite3.connect(_FILE)
    file.executescript(statements)
    file.close()
    return _FILE.read_bytes()
