"""Wrong use of the fixtures and of what is called in Python: the user's line, and none of ours."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project

SUITE = """
    import pytest
    from pytest_instrcount import profile

    def broken(): raise KeyError("x")

    @pytest.mark.parametrize("use", [
        lambda count, trace: [count(len, "a"), count(len, "b")],
        lambda count, trace: count(3),
        lambda count, trace: count(broken),
        lambda count, trace: count.pedantic(len, ("a",), rounds=0),
        lambda count, trace: count.pedantic(len, ("a",), setup=print, iterations=2),
        lambda count, trace: count.pedantic(len, ("a",), setup=lambda: (("b",), {})),
        lambda count, trace: count.pedantic(len, setup=lambda: 3),
        lambda count, trace: count.pedantic(len, setup=3),
        lambda count, trace: count.pedantic(len, args="abc"),
        lambda count, trace: count.pedantic(len, args=3),
        lambda count, trace: count.pedantic(len, kwargs=3),
        lambda count, trace: count.pedantic(broken),
        lambda count, trace: count.pedantic(len, (), setup=broken),
        lambda count, trace: count.pedantic(print, teardown=broken),
        lambda count, trace: trace(3),
        lambda count, trace: trace(broken),
        lambda count, trace: trace.tree,
        lambda count, trace: trace.events,
        lambda count, trace: trace(lambda: trace.start()),
        lambda count, trace: profile().function_events,
        lambda count, trace: profile().table(),
        lambda count, trace: profile(backend="x"),
    ])
    def test_use(use, instrcount, trace_profile):
        use(instrcount, trace_profile)

    @pytest.mark.trace_profile
    def test_marked():
        broken()
    """


@pytest.fixture
def misused(project: Project) -> Project:
    project.write(SUITE)
    return project


def test_no_source_of_ours_is_shown(misused: Project) -> None:
    """Every failure ends in a line of the test's own file."""
    result = misused.run("--tb=short")
    result.assert_outcomes(failed=23)
    text = result.stdout.str()
    assert "pytest_instrcount/" not in text
    assert text.count("test_it.py:") >= 23
    for words in (
        "counts one call per test",
        "counts a call: 3 cannot be called",
        "rounds=0 is not an int >= 1",
        "setup returned 3, not None or (args, kwargs)",
        "setup=3 cannot be called",
        "args='abc' is not a tuple, like ('abc',)",
        "args=3 is not a tuple, like (3,)",
        "kwargs=3 is not a dict",
        "trace_profile traces a call: 3 cannot be called",
        "[tracer-order]",
        "[tracer-busy]",
        "[profile-unfinished]",
        "[tracer-backend]",
    ):
        assert words in text, words


def test_all_is_shown_to_whoever_asks(misused: Project) -> None:
    """``--full-trace`` hides nothing."""
    result = misused.run("--full-trace", "test_it.py::test_use[<lambda>20]")
    assert "pytest_instrcount/trace/events/profile.py" in result.stdout.str()
