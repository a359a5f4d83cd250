"""The standard library, through the fixture: only the call is counted."""

from __future__ import annotations

import argparse
import ast
import base64
import collections
import configparser
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import heapq
import html
import io
import itertools
import json
import pathlib
import random
import re
import shlex
import statistics
import string
import struct
import textwrap
import urllib.parse
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

RECORDS = [{"id": n, "name": f"name {n}", "tags": ["a", "b"], "score": n / 4} for n in range(40)]
DOCUMENT = json.dumps(RECORDS)
TABLE = "\n".join(",".join(str(row * column) for column in range(8)) for row in range(60))
XML = "<list>" + "".join(f'<item id="{n}">text {n}</item>' for n in range(60)) + "</list>"
CODE = "def area(width, height=2):\n    return [width * h for h in range(height) if h % 2]\n" * 6
CONFIG = "".join(f"[section{n}]\nkey = {n}\nother = value\n" for n in range(12))

Count = Callable[..., Any]


def test_json_loads(instrcount: Count) -> None:
    assert len(instrcount(json.loads, DOCUMENT)) == 40


def test_json_dumps(instrcount: Count) -> None:
    assert instrcount(json.dumps, RECORDS, sort_keys=True).startswith('[{"id": 0')


def test_re_findall(instrcount: Count, text: str) -> None:
    assert len(instrcount(re.compile(r"\b\w+\b").findall, text)) == 204


def test_re_sub(instrcount: Count, text: str) -> None:
    assert instrcount(re.compile(r"(\w)he").sub, r"\1HE", text).startswith("THE")


def test_difflib_ratio(instrcount: Count) -> None:
    def compare() -> list[Any]:
        # made anew in each call: a matcher keeps what it has found
        matcher = difflib.SequenceMatcher(
            None, "private thread currentThread;" * 3, "volatile thread" * 4
        )
        return list(matcher.get_grouped_opcodes())

    assert instrcount(compare)


def test_argparse(instrcount: Count) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", type=int)
    parser.add_argument("names", nargs="+")
    assert instrcount(parser.parse_args, ["--level", "3", "a", "b"]).level == 3


def test_decimal(instrcount: Count) -> None:
    def harmonic() -> decimal.Decimal:
        return sum((decimal.Decimal(1) / n for n in range(1, 80)), decimal.Decimal(0))

    assert instrcount(harmonic) > 4


def test_fractions(instrcount: Count) -> None:
    def harmonic() -> fractions.Fraction:
        return sum((fractions.Fraction(1, n) for n in range(1, 30)), fractions.Fraction(0))

    assert instrcount(harmonic).numerator > 0


def test_csv(instrcount: Count) -> None:
    assert len(instrcount(lambda: list(csv.DictReader(io.StringIO(TABLE))))) == 59


def test_statistics(instrcount: Count) -> None:
    assert instrcount(statistics.pstdev, range(60)) > 17


def test_textwrap(instrcount: Count, text: str) -> None:
    assert len(instrcount(textwrap.wrap, text, 60)) > 10


def test_html_escape(instrcount: Count, text: str) -> None:
    assert instrcount(html.escape, f"<b>{text}</b>" * 4).startswith("&lt;b")


def test_xml_parse(instrcount: Count) -> None:
    assert len(instrcount(ET.fromstring, XML)) == 60


def test_ast_unparse(instrcount: Count) -> None:
    assert "range" in instrcount(lambda: ast.unparse(ast.parse(CODE)))


def test_configparser(instrcount: Count) -> None:
    def read() -> configparser.ConfigParser:
        parser = configparser.ConfigParser()
        parser.read_string(CONFIG)
        return parser

    assert instrcount(read)["section3"]["key"] == "3"


def test_shlex(instrcount: Count) -> None:
    assert len(instrcount(shlex.split, "run 'a b' --flag=\"c d\" e " * 4)) == 16


def test_url(instrcount: Count) -> None:
    query = urllib.parse.urlencode({f"key{n}": f"value {n}" for n in range(20)})
    assert len(instrcount(urllib.parse.parse_qs, query)) == 20


def test_template(instrcount: Count) -> None:
    template = string.Template("$greeting, $name! " * 10)
    assert instrcount(template.substitute, greeting="Hello", name="you").startswith("Hello, you")


def test_struct(instrcount: Count) -> None:
    def pack() -> bytes:
        return b"".join(struct.pack("<iqd", n, n * n, n / 2) for n in range(100))

    assert len(instrcount(pack)) == 2000


def test_datetime(instrcount: Count) -> None:
    def days() -> list[str]:
        start = datetime.date(2024, 1, 1)
        return [(start + datetime.timedelta(n)).isoformat() for n in range(100)]

    assert instrcount(days)[60] == "2024-03-01"


def test_pathlib(instrcount: Count) -> None:
    def join() -> list[str]:
        root = pathlib.PurePosixPath("/srv/data")
        return [(root / f"part{n}" / "file.txt").suffix for n in range(30)]

    assert instrcount(join) == [".txt"] * 30


def test_base64_zlib(instrcount: Count, text: str) -> None:
    assert instrcount(lambda: zlib.crc32(base64.b64encode(text.encode() * 3)))


def test_random_shuffle(instrcount: Count, numbers: list[int]) -> None:
    instrcount(random.shuffle, numbers)
    assert len(numbers) == 400


def test_dataclass(instrcount: Count) -> None:
    @dataclasses.dataclass(order=True)
    class Point:
        x: int
        y: int = 0

    assert instrcount(lambda: max(Point(n, -n) for n in range(60))) == Point(59, -59)


def test_sort_pedantic(instrcount: Any) -> None:
    def unsorted() -> tuple[tuple[list[int]], dict[str, Any]]:
        return ([(number * 7919) % 1009 for number in range(300)],), {}

    assert instrcount.pedantic(list.sort, setup=unsorted, rounds=3, warmup_rounds=5) is None


@pytest.mark.instrcount
def test_sort_in_place(numbers: list[int]) -> None:
    numbers.sort(key=lambda number: -number)
    assert numbers[0] > numbers[-1]


@pytest.mark.instrcount
def test_counter(text: str) -> None:
    assert collections.Counter(text.split()).most_common(1)[0][0] == "the"


@pytest.mark.instrcount
def test_heap(numbers: list[int]) -> None:
    heapq.heapify(numbers)
    assert heapq.heappop(numbers) == 0


@pytest.mark.instrcount
@pytest.mark.parametrize("size", [4, 5, 6])
def test_permutations(size: int) -> None:
    assert sum(1 for _ in itertools.permutations(range(size))) in (24, 120, 720)


@pytest.mark.instrcount
def test_lru_cache() -> None:
    @functools.cache
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    assert fibonacci(60) == 1548008755920


@pytest.mark.instrcount
def test_enum() -> None:
    colour = enum.Enum("colour", "red green blue")
    assert [colour[name].value for name in ("red", "blue")] == [1, 3]


@pytest.mark.instrcount
def test_generator_chain() -> None:
    def squares() -> Iterator[int]:
        yield from (n * n for n in range(300))

    assert sum(itertools.chain(squares(), squares())) == 17910100


@pytest.mark.instrcount
def test_tomllib() -> None:
    tomllib = pytest.importorskip("tomllib", reason="new in Python 3.11")
    assert (
        tomllib.loads('[tool]\nnames = ["a", "b"]\nlevel = 3\n' + "x = 1\n")["tool"]["level"] == 3
    )
