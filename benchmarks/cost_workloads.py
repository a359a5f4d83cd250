"""Thirty calls of the standard library, for benchmarks/cost.py."""

from __future__ import annotations

import ast
import base64
import bisect
import collections
import configparser
import csv
import dataclasses
import datetime
import decimal
import difflib
import fractions
import heapq
import html
import io
import itertools
import json
import operator
import pathlib
import re
import shlex
import statistics
import string
import struct
import textwrap
import urllib.parse
import xml.etree.ElementTree as ET
import zlib

TEXT = "the quick brown fox jumps over the lazy dog " * 5
DOC = json.dumps({"k": {str(i): [i] * 3 for i in range(30)}})
ROWS = "\n".join(",".join(str(i * j) for j in range(8)) for i in range(20))
XML = "<r>" + "".join(f"<a i='{i}'>x</a>" for i in range(30)) + "</r>"
CODE = "def f(a,b=2):\n    return [x*a for x in range(b) if x%2]\n"


@dataclasses.dataclass
class P:
    x: int
    y: int = 0


WORKLOADS = {
    "json_loads": lambda: json.loads(DOC),
    "dumps": lambda: json.dumps(list(range(100))),
    "csv": lambda: list(csv.reader(io.StringIO(ROWS))),
    "re": lambda: re.findall(r"\b\w+\b", TEXT),
    "sub": lambda: re.sub(r"o(\w)", r"0\1", TEXT),
    "difflib": lambda: list(difflib.ndiff(["a", "b", "c"], ["a", "c", "d"])),
    "decimal": lambda: sum(decimal.Decimal(i) / 3 for i in range(30)),
    "fractions": lambda: sum(fractions.Fraction(1, i) for i in range(1, 15)),
    "stat": lambda: statistics.mean(range(100)),
    "wrap": lambda: textwrap.wrap(TEXT, 40),
    "html": lambda: html.escape(TEXT * 3),
    "xml": lambda: ET.fromstring(XML),
    "ast": lambda: ast.unparse(ast.parse(CODE)),
    "shlex": lambda: shlex.split("a 'b c' d --e=f" * 3),
    "url": lambda: urllib.parse.urlsplit("http://a.b/c?d=e&f=g#h").geturl(),
    "counter": lambda: collections.Counter(TEXT).most_common(3),
    "heap": lambda: heapq.nsmallest(5, range(200)),
    "bisect": lambda: [bisect.bisect(range(100), i) for i in range(50)],
    "dc": lambda: [P(i) for i in range(50)],
    "sort": lambda: sorted(range(200), key=operator.neg),
    "b64": lambda: base64.b64encode(TEXT.encode()),
    "zlib": lambda: zlib.crc32(TEXT.encode() * 10),
    "struct": lambda: [struct.pack("<iq", i, i) for i in range(50)],
    "tmpl": lambda: string.Template("$a $b").substitute(a=1, b=2),
    "date": lambda: [datetime.date(2020, 1, 1) + datetime.timedelta(i) for i in range(50)],
    "path": lambda: [pathlib.PurePosixPath("/a/b") / str(i) for i in range(20)],
    "cfg": lambda: configparser.ConfigParser().read_string("[a]\nb=1\nc=2\n"),
    "comb": lambda: list(itertools.combinations(range(10), 3)),
    "deque": lambda: collections.deque(range(500), maxlen=10),
    "loop": lambda: sum(i * i for i in range(300)),
}
