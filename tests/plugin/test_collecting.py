"""A file is collected alone under Valgrind; what is to run of it was decided outside."""

from __future__ import annotations

import pytest

from pytest_instrcount.callgrind.inside.collect import Collecting


def test_tests_taken_by_their_place_are_there(pytester: pytest.Pytester) -> None:
    """A conftest that gives each machine its share takes other tests of one file; one may replace an item."""
    pytester.makeconftest(
        """
        import copy
        def pytest_collection_modifyitems(items):
            items[:] = items[1::2]
            items[0] = copy.copy(items[0])
            items[0].replaced = True
        """
    )
    path = pytester.makepyfile("def test_a(): pass\ndef test_b(): pass\ndef test_c(): pass\n")
    recorded = pytester.inline_run("--co", "-pno:asyncio", path, plugins=[Collecting(str(path))])
    session = recorded.getcall("pytest_collection_finish").session
    assert [(item.name, hasattr(item, "replaced")) for item in session.items] == [
        ("test_b", True),
        ("test_a", False),
        ("test_c", False),
    ]
