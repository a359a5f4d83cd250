"""The side of the other commit: a pytest of its own, which stores what the user's side compares with."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.inside.forking import die_with_parent
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.stash import EDITABLE, OTHER_SIDE, OWN_PACKAGE
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.session.against.git import Repository
from pytest_instrcount.session.against.origins import (
    check_changed,
    check_copies,
    check_modules,
    check_origins,
    check_path,
)
from pytest_instrcount.session.against.request import Answer, Request, unpack

#: This package, by name.
OURS = __name__.partition(".")[0]
#: Options that would write a file where the user's side writes its own.
_REPORTS = ("xmlpath", "htmlpath", "report_log", "pastebin", "trace_profile")


def run_other_side(found: Mapping[str, Any]) -> int:
    """Run pytest; returns its exit code."""
    die_with_parent()
    request = Request.load(found)
    side = OtherSide(request)
    status = pytest.main(list(request.args), plugins=[side])
    side.answer.write(request.answer)
    return int(status)


class OtherSide:
    """Measures the wanted tests and no others, as the user's side measures them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._wanted = None if request.wanted is None else frozenset(request.wanted)
        self.answer = Answer()

    @property
    def first_look(self) -> bool:
        """True if one layout is to do."""
        return self._request.first_look

    def settings(self, own: Settings) -> Settings:
        """The user's, but for what the marker says and what is written."""
        given: Settings = unpack(self._request.packed)
        return replace(
            given,
            active=True,
            update=True,
            policy="all",
            inline=False,
            prune=False,
            reports=(),
            keep=None,
            bundle=None,
            timings=False,
            timings_csv=None,
            verbosity=own.verbosity,
            against=None,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Before this plugin reads its settings."""
        config.stash[OTHER_SIDE] = self
        config.stash[EDITABLE] = self._request.editable
        config.stash[OWN_PACKAGE] = self._request.own_package
        for name in _REPORTS:
            if getattr(config.option, name, None) is not None:
                setattr(config.option, name, None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect tests that the user's side does not run."""
        wanted = self._wanted
        others = [item for item in items if wanted is not None and item.nodeid not in wanted]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if wanted is None or item.nodeid in wanted]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """All that tests import at their top is imported: see from where."""
        request = self._request
        self.answer.collected = [item.nodeid for item in session.items]
        try:
            base = Path(request.move.new)
            check_origins(request.packages, base, request.move.moves, request.repository)
            check_copies(importlib.metadata.distributions(), base, request.repository)
            check_modules(self._others(), request.move)
            check_changed(self._others(), Repository(base).tracked(), base, request.repository)
            check_path(sys.path, request.move)
        except InstrcountError as error:
            self.answer.problem = [error.slug, error.why, error.fix]
            raise pytest.UsageError(str(error)) from None

    def _others(self) -> dict[str, object]:
        """The modules of this process, without our own: those are the user's side's."""
        return {name: each for name, each in sys.modules.items() if name.partition(".")[0] != OURS}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what did not pass, and why."""
        if report.failed or report.skipped:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(getattr(crash, "message", "") or "").strip()
            if isinstance(report.longrepr, tuple):
                why = str(report.longrepr[2])
            word = "fails" if report.failed else "is skipped"
            line = why.partition("\n")[0][:120]
            self.answer.outcomes.setdefault(report.nodeid, f"{word}: {line}" if line else word)
