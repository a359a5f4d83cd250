"""Where a function stands, and where it calls another."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_instrcount.counts.python.source import Site, call_sites, first_line, is_resumed

SOURCE = """\
import functools

class Order:
    @functools.cached_property
    @functools.wraps(len)
    def total(self):
        é = 1; return sum(item.price() for item in self.items)

    def check(self):
        if self.items: return self.total
        def helper():
            return price()
        return sorted(self.items, key=price) + [Item(1),
            Item(2)]

    async def run(self):
        return await price(
            1, 2)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "shop.py"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("qualname", "callee", "marked"),
    [
        (
            "Order.total",
            "Order.total.<locals>.<genexpr>",
            ["(item.price() for item in self.items)"],
        ),
        ("Order.total.<locals>.<genexpr>", "Item.price", ["item.price()"]),
        ("Order.check", "Item.__init__", ["Item(1)", "Item(2)"]),
        ("Order.check", "price", ["price"]),
        ("Order.check", "Order.total", ["self.total"]),
        ("Order.check.<locals>.helper", "price", ["price()"]),
        ("Order.run", "price", ["price("]),
        ("Order.check", "nothing", []),
        ("Order.gone", "price", []),
    ],
)
def test_call_sites(path: str, qualname: str, callee: str, marked: list[str]) -> None:
    """By name, in the order of the source; a property and a key function are mentioned, not called."""
    found = call_sites(path, qualname, 0, callee)
    assert [site.text[site.start : site.end] for site in found] == marked


def test_first_line(path: str) -> None:
    """That of the first decorator, as a code object has it."""
    assert first_line(path, "Order.total") == 4
    assert first_line(path, "Order.check.<locals>.helper") == 11
    assert first_line(path, "Order.check", 99) == 99
    assert first_line(path, "nothing") == 0


@pytest.mark.parametrize("text", ["def f(:\n", "\0", "x = '\udcff'"])
def test_no_source(tmp_path: Path, text: str) -> None:
    """What cannot be read has no lines to show, and is no error."""
    broken = tmp_path / "broken.py"
    broken.write_bytes(text.encode("utf-8", "surrogateescape"))
    for file in (str(broken), str(tmp_path / "none.py"), "<string>", ""):
        assert call_sites(file, "f", 0, "g") == []
        assert first_line(file, "f") == 0


def test_what_a_definition_says_is_not_called_in_it(tmp_path: Path) -> None:
    """A default is a name, and no call; the body of a class runs, too."""
    file = tmp_path / "shop.py"
    file.write_text(
        "def use(f=t):\n    return f() + t()\n\ndef make():\n    class K:\n        a = t()\n"
    )
    assert [site.line for site in call_sites(str(file), "use", 1, "t")] == [2]
    assert first_line(str(file), "make.<locals>.K") == 5
    assert [site.line for site in call_sites(str(file), "make.<locals>.K", 5, "t")] == [6]


def test_a_method_that_is_passed_on_may_be_what_is_called(tmp_path: Path) -> None:
    """``config.get`` is called, and ``cache.get`` by map: a name does not say whose it is."""
    file = tmp_path / "shop.py"
    file.write_text(
        "def f(cache, keys, config):\n    get = cache.get\n    n = config.get(1)\n"
        "    return n, map(get, keys)\n"
    )
    assert {site.line for site in call_sites(str(file), "f", 1, "Cache.get")} == {2, 3}


def test_namesakes(tmp_path: Path) -> None:
    """Which of them is meant only a line says; what they call, each may."""
    file = tmp_path / "shop.py"
    getter, setter = (
        "    def v(self):\n        return f(1)\n",
        "    def v(self, x):\n        g(x)\n",
    )
    file.write_text(f"class A:\n    @property\n{getter}    @v.setter\n{setter}")
    path = str(file)
    assert [first_line(path, "A.v", line) for line in (0, 5)] == [0, 5]
    assert [site.line for site in call_sites(path, "A.v", 0, "g")] == [7]
    assert call_sites(path, "A.v", 2, "g") == []
    file = tmp_path / "typed.py"
    file.write_text(
        "@typing.overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\ndef f(x): g(x)\n"
    )
    assert first_line(str(file), "f") == 5


def test_lines_are_cut_to_the_width() -> None:
    """So that the carets still stand below what they mark."""
    site = Site(1, "        " + "x" * 60 + "call()" + "y" * 40, 68, 74)
    text, carets = site.lines(30)
    assert len(text) <= 30
    assert text[carets.index("^") : len(carets)] == "call()"
    assert Site(1, "\tcall()", 1, 7).lines(30) == ["call()", "^^^^^^"]


@pytest.mark.parametrize(
    ("source", "qualname", "resumed"),
    [
        ("async def f(): pass\n", "f", True),
        ("def f():\n    yield\n", "f", True),
        ("def f(): pass\n", "f", False),
        ("async def f():\n    [await g() for g in x]\n", "f.<locals>.<listcomp>", True),
        ("async def f():\n    {g async for g in x}\n", "f.<locals>.<setcomp>", True),
        ("async def f():\n    {g: 1 for g in x}\n", "f.<locals>.<dictcomp>", False),
    ],
)
def test_what_is_resumed(tmp_path: Path, source: str, qualname: str, resumed: bool) -> None:
    """Comprehensions that await are, too."""
    path = tmp_path / "shop.py"
    path.write_text(source)
    assert is_resumed(str(path), qualname, 0) is resumed
