"""The standard library: mostly C, mostly Python, and regular expressions."""

import argparse
import ast
import base64
import csv
import datetime
import decimal
import difflib
import hashlib
import heapq
import html.parser
import io
import json
import pathlib
import pickle
import random
import re
import statistics
import string
import struct
import textwrap
import tokenize
import xml.etree.ElementTree as ET
import zlib

import pytest

pytestmark = pytest.mark.instrcount

RECORDS = [{"id": n, "name": f"name {n}", "tags": ["a", "b"], "score": n / 4} for n in range(60)]
DOCUMENT = json.dumps(RECORDS)
CODE = "def area(width, height=2):\n    return [width * h for h in range(height) if h % 2]\n" * 5
TABLE = "\n".join(",".join(str(row * column) for column in range(8)) for row in range(100))
XML = "<list>" + "".join(f'<item id="{n}">text {n}</item>' for n in range(100)) + "</list>"


def test_json_loads():
    assert len(json.loads(DOCUMENT)) == 60


def test_json_dumps():
    assert json.dumps(RECORDS, sort_keys=True) == json.dumps(RECORDS, sort_keys=True)


def test_json_indent():
    assert json.dumps(RECORDS[:8], indent=2).startswith("[\n")


def test_pickle():
    assert pickle.loads(pickle.dumps(RECORDS)) == RECORDS


def test_regex_findall(text):
    assert len(re.findall(r"\b(\w)(\w*)\b", text)) == 680


def test_regex_sub(text):
    assert re.sub(r"(?P<first>[aeiou])(\w)", lambda found: found[2] + found["first"], text[:1200])


def test_regex_compile():
    for pattern in (r"(a|b)*c{2,3}[^x-z]+", r"\d{4}-\d\d-\d\d(?:T\d+)?"):
        re.purge()
        assert re.compile(pattern)


def test_regex_backtracking():
    assert not re.match(r"(?:a|aa)+(?:b|c)?d", "a" * 14)


def test_ast():
    assert "range" in ast.unparse(ast.parse(CODE))


def test_tokenize():
    assert len(list(tokenize.generate_tokens(io.StringIO(CODE).readline))) > 100


def test_csv():
    assert len(list(csv.DictReader(io.StringIO(TABLE)))) == 99


def test_xml():
    assert len(ET.tostring(ET.fromstring(XML))) > 1000


def test_html():
    class Parser(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            self.seen = (tag, attributes)

    Parser().feed(XML[:1500])


def test_argparse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", type=int)
    parser.add_argument("names", nargs="+")
    assert parser.parse_args(["--level", "3", "a", "b"]).level == 3


def test_decimal():
    total = decimal.Decimal(0)
    for number in range(1, 300):
        total += decimal.Decimal(1) / number
    assert total > 6


def test_statistics(numbers):
    assert statistics.pstdev(numbers[:100]) > 17


def test_difflib():
    old, new = "private thread currentThread;" * 3, "volatile thread currentThread" * 3
    assert difflib.SequenceMatcher(None, old, new).ratio() > 0.5


def test_textwrap(text):
    assert len(textwrap.wrap(text[:1500], 60)) > 10


def test_template():
    template = string.Template("$greeting, $name! " * 30)
    assert template.substitute(greeting="Hello", name="you").startswith("Hello, you")


def test_pathlib():
    base = pathlib.PurePosixPath("/srv/data")
    assert [(base / f"part{n}" / "x.tar.gz").with_suffix(".txt").name for n in range(60)]


def test_datetime():
    start = datetime.datetime(2024, 1, 1)
    days = [(start + datetime.timedelta(hours=n)).isoformat() for n in range(150)]
    assert datetime.datetime.fromisoformat(days[24]).day == 2


def test_struct_and_base64():
    packed = b"".join(struct.pack("<iqd", n, n * n, n / 2) for n in range(400))
    assert len(base64.b64decode(base64.b64encode(packed))) == 8000


def test_zlib_and_hashes(text):
    data = text.encode()
    assert zlib.decompress(zlib.compress(data)) == data
    assert hashlib.md5(data[:1000]).hexdigest()


def test_random_and_heapq():
    generator = random.Random(1)
    heap = []
    for _ in range(500):
        heapq.heappush(heap, generator.random())
    assert heapq.heappop(heap) < 0.1
