"""Pytest's private names, with the pytest that is installed."""

from __future__ import annotations

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


def test_markers_are_unchecked_for_a_while(pytester: pytest.Pytester) -> None:
    with compat.unchecked_markers():
        assert pytest.mark.nobody_declared_this.name == "nobody_declared_this"


def test_fixture_info_knows_who_asks(pytester: pytest.Pytester) -> None:
    item = pytester.getitem("def test_func(tmp_path): pass")
    info = compat.fixture_info(item)
    assert info.argnames == ("tmp_path",)
    assert {"tmp_path", "tmp_path_factory"} <= set(info.name2fixturedefs)
