"""More of the standard library: what is written in Python and does much of its work there."""

import _pydecimal
import ast
import calendar
import collections
import configparser
import copy
import csv
import dataclasses
import datetime
import email
import email.header
import fractions
import functools
import graphlib
import heapq
import inspect
import io
import ipaddress
import json
import logging
import pprint
import random
import shlex
import textwrap
import tokenize
import types
import urllib.parse

import test_library

try:
    import tomllib
except ImportError:  # before 3.11
    tomllib = None

INI = "\n".join(
    f"[part{n}]\nbase = /srv/{n}\npath = %(base)s/data\nlevel = {n}\nname: thing {n}\n"
    for n in range(8)
)
TOML = "\n".join(
    f'[part{n}]\nname = "thing number {n}"\nport = {8000 + n}\ntags = ["a", "b"]\nx.y = {n}.5\n'
    for n in range(6)
)
MAIL = "".join(f"X-Header-{n}: some value, number {n}\n" for n in range(12)) + (
    "From: a@example.org\nTo: b@example.org\nSubject: =?utf-8?q?caf=C3=A9?= and more\n"
    "Content-Type: text/plain; charset=utf-8\n\nHello.\n"
)
URLS = [f"https://user@example.org:80/path/{n % 12}?q={n % 12}&x=a+b#part" for n in range(24)]
HTML = "".join(f'<a href="/page?x={n}&amp;y=2" class="link">text &lt; {n}</a>' for n in range(30))


@dataclasses.dataclass
class Address:
    """Part of a person."""

    street: str
    number: int


@dataclasses.dataclass
class Person:
    """A record of records."""

    name: str
    tags: list
    address: Address


class Shape:
    """Has a property and a class method."""

    def __init__(self, width, height):
        self.width = width
        self.height = height

    @classmethod
    def square(cls, width):
        return cls(width, width)

    @property
    def area(self):
        return self.width * self.height

    def __lt__(self, other):
        return self.area < other.area


def test_shapes():
    shapes = [Shape.square(number % 13) for number in range(60)]
    assert sorted(shapes)[0].area == 0
    assert max(shapes).area == 144


def test_configparser():
    parser = configparser.ConfigParser()
    parser.read_string(INI)
    assert parser.get("part3", "path") == "/srv/3/data"
    assert sum(parser.getint(section, "level") for section in parser.sections()) == 28
    assert {parser[section]["name"] for section in parser.sections()}


def test_tomllib():
    assert len(tomllib.loads(TOML)) == 6


def test_email():
    message = email.message_from_string(MAIL)
    assert message.get_content_type() == "text/plain"
    assert all(message[f"x-header-{n}"] for n in range(12))
    for _ in range(6):
        assert email.header.decode_header(message["subject"])[0][1] == "utf-8"


def test_html_attributes():
    parser = test_library.html.parser.HTMLParser()
    parser.feed(HTML)
    parser.close()


def test_pprint():
    record = {f"key{n}": {"values": list(range(n)), "name": "x" * n} for n in range(14)}
    assert pprint.pformat(record, width=60).count("\n") > 10


def test_urls():
    parts = [urllib.parse.urlparse(url) for url in URLS]
    pairs = [pair for each in parts for pair in urllib.parse.parse_qsl(each.query)]
    text = "&".join(urllib.parse.quote(f"{key} = {value} / ä") for key, value in pairs)
    assert len(urllib.parse.unquote(text)) < len(text)


def test_strptime():
    days = [f"{1 + n % 28:02}/03/2024 {n % 24:02}:30" for n in range(40)]
    found = [datetime.datetime.strptime(day, "%d/%m/%Y %H:%M") for day in days]
    found += [datetime.datetime.strptime("11:30", "%H:%M") for _ in range(2)]
    weeks = [datetime.datetime.strptime(f"2024 {n} 1", "%Y %U %w") for n in range(1, 30)]
    assert len({*found, *weeks}) > 40


def test_pydecimal():
    total = _pydecimal.Decimal(0)
    for number in range(1, 25):
        total += _pydecimal.Decimal(number) / 7
    assert round(total) == 43


def test_fractions():
    total = fractions.Fraction(0)
    for number in range(1, 90):
        total += fractions.Fraction(number, 2 + number % 6)
    assert total > 1


def test_asdict():
    people = [Person(f"name {n}", ["a", "b"], Address("street", n)) for n in range(20)]
    assert [dataclasses.asdict(person) for person in people][3]["address"]["number"] == 3
    assert {dataclasses.replace(person, name="x").name for person in people} == {"x"}


def test_logging(monkeypatch):
    # by the clock, numbers in a record are small ones, which exist already, or new ones
    still = types.SimpleNamespace(time=lambda: 1e9, time_ns=lambda: 10**18)
    monkeypatch.setattr(logging, "time", still)
    logger = logging.Logger("app.part", logging.INFO)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        logging.Formatter("%(levelname)s %(name)s %(funcName)s %(lineno)d: %(message)s")
    )
    logger.addHandler(handler)
    for number in range(25):
        logger.warning("the value of %s is %d", "x", number)
        logger.debug("not shown")
    assert stream.getvalue().count("\n") == 25


def test_untokenize():
    tokens = list(tokenize.generate_tokens(io.StringIO(test_library.CODE).readline))
    assert "def area" in tokenize.untokenize(tokens)


def test_heapq():
    numbers = [[(n * factor) % 97 for n in range(60)] for factor in (7, 11, 13)]
    assert len(list(heapq.merge(*map(sorted, numbers)))) == 180
    words = collections.Counter(n % 60 for row in numbers for n in row)
    assert len(words.most_common(5)) == 5
    assert len(words.most_common()) == len(words)
    assert heapq.nlargest(8, numbers[0], key=lambda n: -n)[0] < 97


def test_chain_map():
    settings = collections.ChainMap({"a": 1}, {"b": 2}, {"c": 3})
    assert sum(settings[name] for name in "abcab" * 20) == 180


def test_graphlib():
    sorter = graphlib.TopologicalSorter()
    for number in range(60):
        sorter.add(number, number // 2 + 100, number // 3 + 200)
    assert len(list(sorter.static_order())) == 60 + 30 + 20


def test_random():
    generator = random.Random(5)
    numbers = list(range(120))
    generator.shuffle(numbers)
    assert sum(generator.randrange(10) for _ in range(60)) > 0
    assert len(generator.sample(numbers, 20)) == 20


def test_deepcopy():
    record = {f"key{n}": [n, {"name": "x", "more": (1, [2])}] for n in range(15)}
    assert copy.deepcopy(record) == record


def test_singledispatch():
    @functools.singledispatch
    def show(value):
        return str(value)

    @show.register(int)
    def _(value):
        return f"{value:d}"

    assert len([show(n) for n in range(150)]) + len([show(x) for x in (1.5, 2.5)]) == 152


def test_ipaddress():
    addresses = [ipaddress.ip_address(f"10.0.{n}.{n * 2}") for n in range(40)]
    network = ipaddress.ip_network("10.0.0.0/20")
    assert sum(address in network for address in addresses) == 16


def test_shlex():
    line = "run --name 'a b' --level=3 \"c d\" # and more\n" * 4
    assert len(shlex.split(line, comments=True)) == 20


def test_calendar():
    assert "February" in calendar.TextCalendar().formatmonth(2024, 2)


def test_literal_eval():
    text = repr({f"key{n}": [n, (1, 2.5), {"x": None}] for n in range(20)})
    assert len(ast.literal_eval(text)) == 20


def test_signature():
    names = "abcdefgh"
    code = "def made(" + ", ".join(f"{name}={n}" for n, name in enumerate(names)) + "): pass"
    space = {}
    exec(compile(code, "<made>", "exec"), space)
    assert isinstance(space["made"], types.FunctionType)
    assert list(inspect.signature(space["made"]).parameters) == list(names)


def test_dict_writer():
    stream = io.StringIO()
    writer = csv.DictWriter(stream, ["id", "name", "score"])
    writer.writeheader()
    writer.writerows({"id": n, "name": f"name {n}", "score": n / 4} for n in range(40))
    assert stream.getvalue().count("\n") == 41


def test_dedent():
    text = "\n".join(f"    line {n} of a text\n      deeper" for n in range(20))
    assert textwrap.indent(textwrap.dedent(text), "> ").startswith("> line 0")


def test_json_objects():
    class Encoder(json.JSONEncoder):
        def default(self, o):
            return dataclasses.asdict(o)

    people = [Person(f"name {n}", ["a"], Address("street", n)) for n in range(6)]
    records = [{"people": people, "number": number} for number in range(2)]
    assert "".join(Encoder(indent=1).iterencode(records)).count("street") == 24
