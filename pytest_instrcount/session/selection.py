"""The tests that a run collected, and the baselines that have lost their test."""

from __future__ import annotations

import fnmatch
import importlib.util
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath

import pytest

from pytest_instrcount.config.options import runs_natively
from pytest_instrcount.config.stash import is_traced
from pytest_instrcount.gate.cause import Cause


def deselect(config: pytest.Config, items: list[pytest.Item], *, only: bool, skip: bool) -> None:
    """Leave the measured tests alone in ``items``, or leave them out. Raises pytest.UsageError."""
    update = config.getoption("instrcount_update_baseline") or config.getoption("instrcount_prune")
    if skip and (only or update):
        raise pytest.UsageError(
            "instrcount: with --instrcount-skip nothing is measured, and something else was asked "
            "for [settings]\n  fix: pytest --instrcount-only"
        )
    chosen: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        (chosen if is_measured(item) is only else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


def is_measured(item: pytest.Item) -> bool:
    """True if a run with ``--instrcount`` counts instructions or calls of a test."""
    return item.get_closest_marker("instrcount") is not None or is_traced(item)


_TOO_LATE = (
    "instrcount: it got its marker or fixture while it ran, and was not counted [not-measured]\n"
    "  fix: take instrcount as an argument, or write @pytest.mark.instrcount above the test"
)
_FACTS = "files measured traced deselected ignored dropped collected broken skipped"


class Selection:
    """Listens to collection. A baseline is stale only where its file was collected whole, or is gone."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files: set[str] = set()
        self._measured: set[str] = set()
        self._traced: set[str] = set()
        self._deselected: set[str] = set()
        #: those that were left out, and would not have been measured
        self._ignored: set[str] = set()
        #: those of both kinds that a plugin has left out without a word
        self._dropped: set[str] = set()
        self._collected: set[str] = set()
        self._broken: set[str] = set()
        self._skipped: set[str] = set()
        #: what each item was called when it was collected, before --dist=loadgroup
        self._called: list[tuple[str, pytest.Item]] = []
        #: whether --lf has left out tests, which it does not name
        self._failed_alone = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the collectors that worked."""
        if report.failed:
            self._broken.add(report.nodeid.partition("::")[0])
        elif report.skipped:
            self._skipped.add(report.nodeid)
        else:
            self._files.add(report.nodeid)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Note what -k, -m, --lf or --deselect left out."""
        for item in items:
            # pytest-testmon's are no tests, and have an id at most
            plain = isinstance(item, pytest.Item) and not is_measured(item)
            (self._ignored if plain else self._deselected).add(getattr(item, "nodeid", ""))

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note each test, whatever becomes of it."""
        self._collected.add(item.nodeid)
        self._called.append((item.nodeid, item))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what plugins have left out without a word, as some that make shards do."""
        present = set(map(id, session.items))
        known = self._ignored | self._deselected
        for nodeid, item in self._called:
            if id(item) not in present and nodeid not in known:
                self._dropped.add(nodeid)
                (self._deselected if is_measured(item) else self._ignored).add(nodeid)
        self._called.clear()
        self._failed_alone = self._runs_failed_alone()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """A test that asks to be counted when it is running already is an error, and not just passed."""
        known = item.nodeid in self._measured or runs_natively(self._config)
        if item.get_closest_marker("instrcount") and not known:
            pytest.fail(_TOO_LATE, pytrace=False)

    def facts(self) -> dict[str, frozenset[str]]:
        """Sets of node ids that a run knows, by name."""
        return {name: frozenset(getattr(self, f"_{name}")) for name in _FACTS.split()}

    def learn(self, facts: Mapping[str, frozenset[str]]) -> None:
        """Know what another process has collected."""
        for name in _FACTS.split():
            getattr(self, f"_{name}").update(facts[name])
        self._failed_alone = self._runs_failed_alone()

    def _runs_failed_alone(self) -> bool:
        """True if --lf has tests to run again: it deselects a few of the others, and does not collect most."""
        if not self._config.getoption("lf", False):
            return False
        assert self._config.cache  # what has the option has the cache
        return bool(self._config.cache.get("cache/lastfailed", {}))

    def note_measured(self, nodeids: Iterable[str]) -> None:
        """The tests of this run that are measured."""
        self._measured.update(nodeids)

    def note_traced(self, nodeids: Iterable[str]) -> None:
        """The tests of this run whose calls are counted."""
        self._traced.update(nodeids)

    @property
    def measured(self) -> frozenset[str]:
        """The tests of this run whose instructions are counted."""
        return frozenset(self._measured)

    @property
    def dropped(self) -> frozenset[str]:
        """Tests that a plugin or a conftest has taken out of the list, where pytest says nothing of them."""
        return frozenset(self._dropped)

    @property
    def left_out(self) -> bool:
        """True if tests were deselected that would have been measured, or dropped without a word."""
        return bool(self._deselected)

    def stale_table(self, nodeid: str) -> Cause | None:
        """Why the test of a table of calls is known to be traced no longer; None if it is not."""
        return self._stale(nodeid, self._traced)

    def stale(self, nodeid: str) -> Cause | None:
        """Why a baseline's test is known to be measured no longer; None if it is not."""
        return self._stale(nodeid, self._measured)

    def is_selected(self, nodeid: str) -> bool:
        """True if it was collected, and nothing left it out."""
        left_out = nodeid in self._deselected or nodeid in self._ignored
        return nodeid in self._collected and not left_out

    def _stale(self, nodeid: str, known: set[str]) -> Cause | None:
        if self.is_selected(nodeid) and nodeid not in known:
            return Cause.unmarked
        if not self._is_stale(nodeid, known):
            return None
        file = nodeid.partition("::")[0]
        if file not in self._files and os.path.exists(self._config.rootpath / file):
            return Cause.uncollected
        return Cause.unmarked if nodeid in self._collected else Cause.gone

    def _is_stale(self, nodeid: str, known: set[str]) -> bool:
        file = nodeid.partition("::")[0]
        if not os.path.exists(self._config.rootpath / file):
            # an id that a conftest has made does not say which file it is of
            whole = self._config.args_source is not pytest.Config.ArgsSource.ARGS
            return whole or "::" in nodeid
        if self._partial_arguments() or self._failed_alone:
            return False
        if file in self._broken:
            return False
        if file not in self._files:
            return self._was_to_be_collected(file)
        if nodeid in self._ignored and self._config.option.keyword:
            return False  # it may have got its marker after -k
        return not any(nodeid in each for each in (known, self._deselected, self._dropped))

    def _was_to_be_collected(self, file: str) -> bool:
        """True if the arguments hold a file that pytest has left out, and neither they nor the file say so."""
        option, names = self._config.option, (file, *map(str, PurePath(file).parents))
        if self._skipped.intersection(names):
            return False
        path = self._config.rootpath / file
        folders = set(map(str, path.parents))
        places = {str(path), *folders}
        if not places.isdisjoint(map(self._absolute, option.ignore or ())) or any(
            fnmatch.filter(places, self._absolute(each)) for each in option.ignore_glob or ()
        ):
            return False
        return any(not folders.isdisjoint(self._places_of(each)) for each in self._config.args)

    def _places_of(self, argument: str) -> list[str]:
        """What is collected for an argument: a path, or with ``--pyargs`` a module."""
        spec = None
        if self._config.option.pyargs:
            with suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(argument)
        if spec is None:
            return [self._absolute(argument)]
        return [*(spec.submodule_search_locations or ())]

    def _absolute(self, argument: object) -> str:
        return os.path.normpath(Path(self._config.invocation_params.dir, str(argument)))

    def why_partial(self) -> str:
        """Why this run does not know all tests; empty if it does."""
        if self._partial_arguments():
            return "only some tests of a file were asked for"
        if not self._collected:
            return "no test was collected"
        left_out = len(self._deselected) + len(self._ignored)
        if left_out:
            return f"{left_out} tests were deselected"
        if self._broken:
            return "some files could not be collected"
        if self._failed_alone:
            return "--lf leaves tests out"
        return ""

    def knows_all(self) -> bool:
        """True if no test was left out of the files of this run that it would have measured."""
        by_name = self._partial_arguments() or self._failed_alone
        return not (by_name or self._deselected or self._broken)

    def _partial_arguments(self) -> bool:
        return any("::" in str(arg) for arg in self._config.args)
