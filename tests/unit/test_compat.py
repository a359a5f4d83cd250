"""Pytest's private names, with the pytest that is installed."""

from __future__ import annotations

import io
from typing import Any

import pytest

from pytest_instrcount.config import compat


def test_a_nodeid_is_given_back(pytester: pytest.Pytester) -> None:
    """Whatever was put in its place: pytest-xdist writes where pytest kept it before 9.2."""
    item, other = pytester.getitems("def test_it(): pass\ndef test_other(): pass")
    restore = compat.keep_nodeid(item)
    before = item.nodeid
    for name in ("_id", "_nodeid"):
        if hasattr(other, name):
            setattr(item, name, getattr(other, name))
    assert item.nodeid == other.nodeid != before
    restore()
    assert item.nodeid == before


def test_a_test_once_more(pytester: pytest.Pytester) -> None:
    """It has what plugins and its own class gave it, and an instance and a stash of its own."""
    pytester.makeconftest("""
        import pytest
        KEY = pytest.StashKey()
        class Special(pytest.Function):
            def __init__(self, *args, size, **kwargs):
                super().__init__(*args, **kwargs)
                self.size = size
        def pytest_pycollect_makeitem(collector, name, obj):
            if name == "special":
                return Special.from_parent(collector, name=name, size=3)
        def pytest_collection_modifyitems(items):
            for item in items:
                item.stash[KEY], item.seen = 1, []
                if item.name == "test_wrapped":
                    item.obj = print
    """)
    module = pytester.getmodulecol("""
        import unittest
        def special(): pass
        def test_wrapped(): pass
        class TestPlain:
            def test_method(self): pass
            @staticmethod
            def test_static(): pass
        class TestCase(unittest.TestCase):
            def test_case(self): pass
    """)
    items: Any = [item for item in pytester.genitems([module]) if isinstance(item, pytest.Function)]
    module.config.hook.pytest_collection_modifyitems(
        session=module.session, config=module.config, items=items
    )
    assert [item.name for item in items] == [
        "special",
        "test_wrapped",
        "test_method",
        "test_static",
        "test_case",
    ]
    for item in items:
        new: Any = compat.once_more(item)
        assert new.nodeid == item.nodeid
        assert len(new.stash) == len(item.stash) == 1
        new.stash[pytest.StashKey[int]()] = 2
        new.seen.append(1)
        assert (len(item.stash), item.seen) == (1, [])
        assert new.size == 3 if item.name == "special" else new.obj.__name__ == item.obj.__name__
        assert item.name != "test_wrapped" or new.obj is print
        assert new.cls is item.cls
        if item.cls is not None:
            assert isinstance(new.instance, item.cls | type(None))
            assert new.instance is None or new.instance is not item.instance


def test_markers_are_unchecked_for_a_while(pytester: pytest.Pytester) -> None:
    with compat.unchecked_markers():
        assert pytest.mark.nobody_declared_this.name == "nobody_declared_this"


def test_fixture_info_knows_who_asks(pytester: pytest.Pytester) -> None:
    item = pytester.getitem("def test_func(tmp_path): pass")
    info = compat.fixture_info(item)
    assert info.argnames == ("tmp_path",)
    assert {"tmp_path", "tmp_path_factory"} <= set(info.name2fixturedefs)


def test_a_line_between_dots(pytester: pytest.Pytester) -> None:
    """Each begins at the left, also where the name of the file was not written again."""
    pytester.makeconftest("""
        from pytest_instrcount.config.compat import end_line

        def pytest_runtest_setup(item):
            reporter = item.config.pluginmanager.getplugin("terminalreporter")
            end_line(reporter)
            reporter.write_line("said")

        pytest_runtest_teardown = pytest_runtest_setup
    """)
    pytester.makepyfile("def test_a(): pass\ndef test_b(): pass")
    assert pytester.runpytest().outlines.count("said") == 4


def test_a_failure_keeps_its_lines_where_a_letter_is_missing(pytestconfig: pytest.Config) -> None:
    """On a terminal of ASCII alone."""
    binary = io.BytesIO()
    terminal = io.TextIOWrapper(binary, "ascii")
    writer: Any = type(pytestconfig.get_terminal_writer())
    compat.failure("test_it.py", 1, "\xe9 +1 %\n  accept: pytest").toterminal(writer(terminal))
    terminal.flush()
    assert binary.getvalue().decode().splitlines()[:2] == ["\\xe9 +1 %", "  accept: pytest"]
