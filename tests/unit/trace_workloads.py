"""Twenty-five uses of libraries, each small, warm after one call, and without a clock or luck.

As a script it prints their counts as JSON: ``python -m tests.unit.trace_workloads BACKEND [NAME...]``.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import base64
import collections
import configparser
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import email
import email.policy
import enum
import fractions
import functools
import gc
import graphlib
import heapq
import html.parser
import inspect
import io
import json
import logging
import pickle
import pprint
import re
import shlex
import statistics
import string
import sys
import textwrap
import typing
import urllib.parse
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable
from typing import Any

from pytest_instrcount.trace.columns import Columns
from pytest_instrcount.trace.counts import Part, count_edges
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from tests.invariants import broken_invariants

SOURCE = (
    "def f(a, *b, c=1, **d):\n    return [x for x in a if x] or {k: v for k, v in d.items()}\n" * 5
)
MESSAGE = b"From: a@example.org\nTo: b@example.org\nSubject: =?utf-8?q?caf=C3=A9?=\n\nBody\n"


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
    names: list[str] = dataclasses.field(default_factory=list)


class Colour(enum.Flag):
    RED = enum.auto()
    GREEN = enum.auto()


@functools.singledispatch
def describe(value: object) -> str:
    return "object"


@describe.register
def _(value: int) -> str:
    return "int"


@describe.register
def _(value: list) -> str:  # type: ignore[type-arg]
    return ",".join(map(describe, value))


def use_argparse() -> None:
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("--number", type=int, default=1)
    parser.add_argument("files", nargs="*")
    parser.parse_args(["--number", "3", "a", "b"])
    parser.format_help()


def use_asyncio() -> None:
    async def one(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def items(n: int) -> typing.AsyncIterator[int]:
        for each in range(n):
            yield await one(each)

    async def all_() -> list[int]:
        gathered = await asyncio.gather(*(one(n) for n in range(5)))
        return gathered + [each async for each in items(3)]

    asyncio.run(all_())


def use_collections() -> None:
    counter = collections.Counter("abracadabra")
    counter.update(a=2)
    counter.most_common(2)
    chain = collections.ChainMap({"a": 1}, {"b": 2})
    dict(chain)
    ordered = collections.OrderedDict(a=1, b=2)
    ordered.move_to_end("a")
    collections.UserList([1, 2]).sort()


def use_configparser() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[a]\nx = 1\ny = %(x)s2\n[b]\nz = yes\n")
    parser.get("a", "y")
    parser.getboolean("b", "z")
    parser.write(io.StringIO())


def use_contextlib() -> None:
    @contextlib.contextmanager
    def managed() -> typing.Iterator[int]:
        try:
            yield 1
        finally:
            pass

    with contextlib.ExitStack() as stack:
        stack.enter_context(managed())
        stack.callback(int)
    with contextlib.suppress(KeyError), managed():
        raise KeyError


def use_csv() -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, ["a", "b"])
    writer.writeheader()
    writer.writerows({"a": n, "b": str(n) * n} for n in range(9))
    list(csv.DictReader(io.StringIO(out.getvalue())))


def use_datetime() -> None:
    day = datetime.datetime(2020, 1, 31, tzinfo=datetime.UTC)
    [(day + datetime.timedelta(days=n)).isoformat() for n in range(9)]
    day.strftime("%Y-%m-%d")


def use_difflib() -> None:
    list(difflib.unified_diff(["a", "b", "c", "d", "e"], ["a", "c", "d", "x", "e"]))
    difflib.get_close_matches("appel", ["ape", "apple", "peach"])


def use_email() -> None:
    message = email.message_from_bytes(MESSAGE, policy=email.policy.default)
    str(message["subject"])
    message.as_string()


def use_enum() -> None:
    both = Colour.RED | Colour.GREEN
    [str(Colour(n)) for n in (1, 2, 3)]
    assert Colour.RED in both


def use_html() -> None:
    class Links(html.parser.HTMLParser):
        found = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.found += tag == "a"

    Links().feed('<p>Text <a href="x">y</a> &amp; <b>z</b></p>' * 5)


def use_inspect() -> None:
    signature = inspect.signature(use_html)
    str(signature)
    inspect.signature(Point).bind(1, y=2).apply_defaults()


def use_logging() -> None:
    out = io.StringIO()
    logger = logging.Logger("here")
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    logger.addHandler(handler)
    logger.warning("%d of %s", 1, "two")
    logger.debug("not me")
    handler.close()


def use_pickle() -> None:
    data = [Point(n, n, ["a"]) for n in range(5)]
    assert pickle.loads(pickle._dumps(data)) == data  # type: ignore[attr-defined]
    copy.deepcopy(data)


def use_statistics() -> None:
    statistics.pstdev([1, 2, 4])
    statistics.median_low([3, 1, 2])
    fractions.Fraction(3, 4) + fractions.Fraction("1/3")
    decimal.Decimal("1.1").quantize(decimal.Decimal("1"))


def use_string() -> None:
    string.Template("$a and ${b}").substitute(a=1, b=2)
    string.Formatter().format("{0!r:>{1}}", "x", 5)
    textwrap.fill("word " * 60, 30)
    shlex.split("a 'b c' d\\ e")


def use_xml() -> None:
    root = ElementTree.fromstring("<a><b c='1'>t</b><b/></a>")
    root.findall(".//b[@c]")
    ElementTree.tostring(root)


def use_zipfile() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(zipfile.ZipInfo("a.txt"), "text" * 50)
    with zipfile.ZipFile(out) as file:
        file.read("a.txt")


WORKLOADS: dict[str, Callable[[], Any]] = {
    "argparse": use_argparse,
    "ast": lambda: (ast.unparse(ast.parse(SOURCE)), ast.dump(ast.parse("a + b"))),
    "asyncio": use_asyncio,
    "base64": lambda: base64.b85decode(base64.b85encode(b"some bytes" * 9)),
    "collections": use_collections,
    "configparser": use_configparser,
    "contextlib": use_contextlib,
    "csv": use_csv,
    "dataclasses": lambda: (
        sorted(Point(n % 3, n) for n in range(9)),
        dataclasses.asdict(Point(1)),
    ),
    "datetime": use_datetime,
    "difflib": use_difflib,
    "email": use_email,
    "enum": use_enum,
    "graphlib": lambda: list(graphlib.TopologicalSorter({1: [2], 2: [3], 4: [1]}).static_order()),
    "heapq": lambda: (list(heapq.merge([1, 4], [2, 3])), heapq.nsmallest(2, [3, 1, 2], key=abs)),
    "html": use_html,
    "inspect": use_inspect,
    "json": lambda: json.loads(json.dumps({"a": [1, 2.5, None, {"b": "ä"}]}, indent=1)),
    "logging": use_logging,
    "pickle": use_pickle,
    "pprint": lambda: pprint.pformat({"k" * n: [list(range(n))] * 3 for n in range(12)}),
    "re": lambda: re.sub(
        r"(?P<a>\w+)@(\w+)", lambda found: found["a"].upper(), "me@here you@there"
    ),
    "singledispatch": lambda: describe([1, "a", [2]]),
    "statistics": use_statistics,
    "string": use_string,
    "urllib": lambda: urllib.parse.urlsplit(urllib.parse.urljoin("http://a/b/c?d", "../e?f=g#h")),
    "xml": use_xml,
    "zipfile": use_zipfile,
}


def trace_warm(name: str, backend: str) -> Columns:
    """The trace of one workload, warm, with builtins."""
    work = WORKLOADS[name]
    work()
    work()
    # finalizers run when the collector does
    gc.collect()
    gc.disable()
    try:
        options = TraceOptions(backend=backend, c_calls=True)  # type: ignore[arg-type]
        _, columns = trace_call(options, work)
    finally:
        gc.enable()
    assert broken_invariants(columns) == ()
    return columns


def counts_of(name: str, backend: str) -> dict[str, int]:
    """Its edges: calls and resumes."""
    found: dict[str, int] = {}
    edges = count_edges(trace_warm(name, backend), lambda key: Part.own)
    for edge, (calls, resumes) in edges.items():
        found |= {" -> ".join(edge): calls, f"{' -> '.join(edge)} resumed": resumes}
    return found


if __name__ == "__main__":
    names = sys.argv[2:] or list(WORKLOADS)
    json.dump({name: counts_of(name, sys.argv[1]) for name in names}, sys.stdout)
