"""A failing assert about calls shows the branch."""

from __future__ import annotations

from tests.plugin.conftest import Project

SUITE = """
from pytest_instrcount.trace.recorder import TraceOptions
from pytest_instrcount.trace.tracer import trace_call
from pytest_instrcount.trace.tree import Tree

def query(): pass

def page():
    query()
    query()

def test_queries():
    _, columns = trace_call(TraceOptions(), page)
    assert Tree(columns).calls("*.query") == 1

def test_other_asserts():
    assert [1] == [2]
"""


def test_the_branch_is_shown(project: Project) -> None:
    """Only for asserts about calls."""
    project.write(SUITE)
    result = project.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E*assert 2 == 1 (calls of '*.query')",
            "E*test_it.page  1",
            "E*  test_it.query  2",
            "E*assert [[]1] == [[]2]",
        ]
    )
