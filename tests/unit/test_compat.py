"""Pytest's private names, with the pytest that is installed."""

from __future__ import annotations

import io
from collections import deque
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


def test_a_test_made_anew(pytester: pytest.Pytester) -> None:
    """It has what plugins and its own class gave it, and nothing of what another run left at it."""
    pytester.makeconftest("""
        import pytest, types
        from collections import Counter, defaultdict, deque
        KEY = pytest.StashKey()
        class Special(pytest.Function):
            def __init__(self, *args, size, **kwargs):
                super().__init__(*args, **kwargs)
                self.size = size
        class Wrapper:
            def __init__(self, body): self.body = body
            def call(self): self.body.__self__.rows.append(1)
        def pytest_pycollect_makeitem(collector, name, obj):
            if name == "special":
                return Special.from_parent(collector, name=name, size=3)
        def pytest_collection_modifyitems(items):
            for item in items:
                item.stash[KEY], item.seen = [], defaultdict(list, {"a": deque()})
                item.itself = [item.seen]
                item.itself.append(item.itself)
                item.counts = Counter("aab")
                if item.name == "test_replaced":
                    item.obj = print
                if item.name == "test_bound":
                    item.obj = types.MethodType(lambda self: self.rows.append(1), item.instance)
                if item.name == "test_wrapped":
                    item.obj = Wrapper(item.obj).call
    """)
    module = pytester.getmodulecol("""
        import unittest
        def special(): pass
        def test_replaced(): pass
        class TestPlain:
            def setup_method(self): self.rows = []
            def test_method(self): pass
            @staticmethod
            def test_static(): pass
            def test_bound(self): pass
            def test_wrapped(self): pass
        class TestSlots:
            __slots__ = ()
            def test_replaced(self): pass
        class TestCase(unittest.TestCase):
            def test_case(self): pass
    """)
    items: Any = [item for item in pytester.genitems([module]) if isinstance(item, pytest.Function)]
    module.config.hook.pytest_collection_modifyitems(
        session=module.session, config=module.config, items=items
    )
    assert len(items) == 8
    for item in items:
        renewal, body = compat.Renewal(item), item.obj
        instances = []
        for _ in range(2):
            new: Any = renewal()
            instances.append(getattr(new, "instance", None))
            assert (new.nodeid, new.cls) == (item.nodeid, item.cls)
            assert getattr(new, "size", 3) == 3
            [kept] = new.stash._storage.values()
            assert (kept, new.seen) == ([], {"a": deque()})
            assert (new.counts, type(new.counts)) == ({"a": 2, "b": 1}, type(item.counts))
            assert new.itself[0] is new.seen
            assert new.itself[1] is new.itself is not item.itself
            assert "xfail" not in new.keywords
            assert new.own_markers == []
            assert item.name in new.keywords
            kept.append(1)
            new.seen["a"].append(1)
            new.add_marker("xfail")
            new.stash[pytest.StashKey[int]()] = 2
            if item.name in ("test_replaced", "test_bound", "test_wrapped"):
                assert new.obj is body
            # before 8.2, pytest takes what is bound for the instance
            if item.name in ("test_bound", "test_wrapped") and isinstance(new.instance, new.cls):
                assert not hasattr(new.instance, "rows")
                new.instance.rows = []
                new.obj()
                assert new.instance.rows == [1]
        if item.name == "test_method":
            assert instances[0] is not instances[1]
            assert item.instance not in instances


def test_what_a_conftest_sets_is_there_again(pytester: pytest.Pytester) -> None:
    """In attributes that pytest has, too, and in slots of a class of its own."""
    module: Any = pytester.getmodulecol("def test_plain(): pass\n")

    class Slotted(pytest.Function):
        __slots__ = ("mode",)

    for kind in (pytest.Function, Slotted):
        item: Any = kind.from_parent(module, name="test_plain")
        plain = compat.Renewal(item)()
        usual = plain.fixturenames
        assert "tmp_path" not in usual and not plain.funcargs
        item.fixturenames = ["tmp_path"]
        item.funcargs["size"] = 1
        item.mode = "slow"
        new: Any = compat.Renewal(item)()
        assert (new.fixturenames, new.funcargs, new.mode) == (["tmp_path"], {"size": 1}, "slow")
    del item.mode
    item.fixturenames, item.funcargs = usual, {}
    assert not hasattr(compat.Renewal(item)(), "mode")


def test_conftests_come_before_the_configuration_for_a_while(
    pytestconfig: pytest.Config,
) -> None:
    with compat.before_configuration(pytestconfig):
        assert pytest.mark.nobody_declared_this.name == "nobody_declared_this"
    with pytest.raises(pytest.fail.Exception, match="nobody_declared_this"):
        assert pytest.mark.nobody_declared_this


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
