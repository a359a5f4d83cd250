"""Which tests are measured, and how: their markers, checked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pytest_instrcount.config.settings import MARKER, Settings, settings_for_item
from pytest_instrcount.host.text import escape_controls
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.plugins import ask_for_limit
from pytest_instrcount.session.replay import Place
from pytest_instrcount.session.selection import is_measured


def plan_measured(
    items: Sequence[pytest.Item],
    settings: Settings,
    findings: Findings,
    adjust: Callable[[Settings], Settings] = lambda chosen: chosen,
) -> dict[str, tuple[pytest.Function, Settings]]:
    """The tests to be measured, by id, with their settings as ``adjust`` leaves them.

    Raises pytest.UsageError with all that is wrong with their markers.
    """
    mistakes = _outside_rootdir(items)
    planned: dict[str, tuple[pytest.Function, Settings]] = {}
    for item in items:
        if item.get_closest_marker(MARKER) is None:
            continue
        chosen, wrong = settings_for_item(item, settings, ask_for_limit)
        mistakes += [f"{item.nodeid}: the instrcount marker {each}" for each in wrong]
        if not isinstance(item, pytest.Function):
            mistakes.append(f"{item.nodeid}: {_why_not(item)}")
        elif item.nodeid not in planned:
            planned[item.nodeid] = item, adjust(chosen)
            findings.expect(Place.of(item))
    mistakes += [
        f"{item.nodeid}: another test has this id, and one of them would not run: "
        + ("give their parameters ids" if hasattr(item, "callspec") else "rename one of them")
        for item in items
        if item.nodeid in planned
        and _definition_of(item) != _definition_of(planned[item.nodeid][0])
    ]
    mistakes += findings.budgets.plan(
        items, {nodeid: chosen.budget for nodeid, (_, chosen) in planned.items()}
    )
    if mistakes:
        text = "\n".join(["instrcount: wrong markers [marker]", *mistakes])
        raise pytest.UsageError(escape_controls(text))
    return planned


def _outside_rootdir(items: Sequence[pytest.Item]) -> list[str]:
    """What is wrong with these: pytest makes an id of the argument that led there, and two files have one."""
    return [
        f"{item.nodeid}: {item.path} is not below rootdir; fix: pytest --rootdir=DIR"
        for item in items
        if is_measured(item) and not item.path.is_relative_to(item.config.rootpath)
    ]


def _why_not(item: pytest.Item) -> str:
    inherits = all(mark.name != MARKER for mark in item.own_markers)
    which = "these, not all of the file" if inherits else "only what is a pytest.Function"
    return f"only Python test functions can be measured: mark {which}"


def _definition_of(item: pytest.Item) -> object:
    """Where a test stands, and which parameters it gets: pytest may join those of two to the same id."""
    return item.location, getattr(getattr(item, "callspec", None), "indices", None)
