"""The end of several kinds of run: a test's fixtures, and tests that are cut short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pytest_instrcount.config.compat import end_setups, has_setups
from pytest_instrcount.session.findings import Findings


@contextmanager
def noting_interruption(findings: Findings) -> Iterator[None]:
    """Around the tests: if they are cut short, say that nothing is judged."""
    session = pytest.Session
    try:
        yield
    except (session.Interrupted, session.Failed, KeyboardInterrupt, pytest.exit.Exception):
        kept = "" if findings.rulings.policy.update is None else "; no baseline was written"
        findings.note(f"gate skipped: the run was interrupted{kept}")
        raise


def finalise(item: pytest.Item, nextitem: pytest.Item | None) -> Any:
    """End what is set up and the next test does not share; a report of the error, if there is one."""
    call = end_setups(item.session, nextitem)
    if call.excinfo is None:
        return None
    return item.ihook.pytest_runtest_makereport(item=item, call=call)


def end_neighbours(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a test that ran elsewhere: end what native tests have set up and the next does not share."""
    report = finalise(item, nextitem) if has_setups(item.session) else None
    if report is not None:
        item.ihook.pytest_runtest_logreport(report=report)
