"""Collects the findings of a run: each count as it comes, and its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from pytest_instrcount.config.commands import Commands
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.baselines import Baselines
from pytest_instrcount.gate.call_rulings import CallRulings, TracedCount
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.policy import Policy
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.rulings import Rulings
from pytest_instrcount.gate.store.baseline import Store
from pytest_instrcount.gate.store.baseline_json import OLDER
from pytest_instrcount.gate.store.calls import CallStore
from pytest_instrcount.gate.store.ledger import COMMIT_DIGITS
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.gate.store.shard import Shard
from pytest_instrcount.host.account.current import timed
from pytest_instrcount.host.account.once import Once
from pytest_instrcount.report.trees import OF_TREES
from pytest_instrcount.session.budgets import Budgets
from pytest_instrcount.session.bundle import git_commit
from pytest_instrcount.session.profiles import Keeper, joined_dumps
from pytest_instrcount.session.renames import find_renames
from pytest_instrcount.session.replay import Place
from pytest_instrcount.session.selection import Selection

if TYPE_CHECKING:
    from pytest_instrcount.session.uncompared import Left


@dataclass(slots=True)
class Findings:
    """Takes what is measured, wherever that was."""

    rulings: Rulings
    calls: CallRulings
    budgets: Budgets
    keeper: Keeper
    #: nodeid -> where a test stands that was to be measured or traced
    places: dict[str, Place] = field(default_factory=dict)
    #: nodeid -> the group that a benchmark is in
    groups: dict[str, str] = field(default_factory=dict)
    #: nodeid -> what a benchmark has put into ``extra_info``, in JSON's terms
    extra_info: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: nodeid -> why a measured test that has not failed has no count
    left: dict[str, Left] = field(default_factory=dict)
    #: what is to be said of tests -> of which
    remarks: dict[str, list[str]] = field(default_factory=dict)
    #: to be said below the table
    notes: list[str] = field(default_factory=list)
    #: nodeid -> how long it took to count it once
    seconds: dict[str, float] = field(default_factory=dict)
    _said: Once = field(default_factory=Once)

    def seconds_of(self, nodeids: Iterable[str]) -> float:
        """How long it took to count these tests once, one after the other."""
        return sum(self.seconds.get(nodeid, 0.0) for nodeid in nodeids)

    def expect(self, place: Place) -> None:
        """A test is to be measured or traced."""
        self.places[place.nodeid] = place

    def fail(self, nodeid: str, limit: Limit, reason: str) -> None:
        """A test has no count; why."""
        self.rulings.fail(nodeid, limit, reason)

    def leave(self, nodeid: str, left: Left) -> None:
        """A test has not failed, and was not counted; why."""
        self.left[nodeid] = left

    def remark(self, nodeid: str, remarks: Sequence[str]) -> None:
        """The verdict on a test is to say this, too."""
        for text in remarks:
            self.remarks.setdefault(text, []).append(nodeid)

    @timed("compare")
    def rule(self, measurement: Measurement, limit: Limit, allocs: Limit | None) -> TestResult:
        """A test was counted, or more is known of its count."""
        self.budgets.note(measurement)
        return self.rulings.rule(measurement, limit, allocs)

    def keep(self, nodeid: str, answer: Mapping[str, Any]) -> None:
        """Keep the profile in an answer, if the user wants that."""
        if self.keeper.folder is not None:
            profile = joined_dumps(nodeid, answer)
            if profile is not None:
                self.keeper.keep(nodeid, profile)

    @timed("compare")
    def attribute(self, nodeid: str, tree: CallTree) -> None:
        """Store the tree of a test by Python function."""
        self.rulings.attribute(nodeid, tree, self.places[nodeid].body)
        self.keeper.attributed(nodeid, tree)

    def expect_calls(self, place: Place, *, read: bool) -> None:
        """A test is to be traced; have its table ``read``, unless that is another process's work.

        Raises pytest.UsageError where tables are of an older format.
        """
        self.expect(place)
        if read:
            with as_usage_errors():
                self.calls.expect(place.nodeid)

    @timed("compare")
    def rule_calls(self, count: TracedCount) -> None:
        """The calls of a traced test were counted."""
        try:
            self.calls.rule(count)
        except InstrcountError as error:
            if error.slug == OLDER:  # so are all others
                raise pytest.UsageError(str(error)) from None
            reason = str(error).removeprefix("instrcount: ")
            self.calls.fail(count.table.nodeid, count.limit, reason)

    def fail_calls(self, nodeid: str, limit: Limit, reason: str) -> None:
        """The calls of a traced test could not be counted; why."""
        self.calls.fail(nodeid, limit, reason)

    def find_renames(self, selection: Selection) -> None:
        """Hold tests that were renamed against the baselines that they had, and say so."""
        bodies = self.bodies(selection)
        self.rename(find_renames(self.rulings.baselines.store, selection, bodies))

    def bodies(self, selection: Selection) -> dict[str, str]:
        """What each measured test does, as `body_of`."""
        return {nodeid: self.places[nodeid].body for nodeid in selection.measured}

    def rename(self, renamed: Mapping[str, str]) -> None:
        """Tests, new nodeid -> old, are to be held against the baselines of the old ones."""
        self.rulings.baselines.renamed |= renamed
        for new, old in renamed.items():
            self.note(f"renamed: {printable(old)} -> {printable(new)}")

    def set_group(self, nodeid: str, group: str) -> None:
        """A test is a benchmark of a group."""
        self.groups[nodeid] = group

    def set_extra_info(self, nodeid: str, extra_info: dict[str, Any]) -> None:
        """A test is a benchmark that says more of itself."""
        self.extra_info[nodeid] = extra_info

    def note(self, line: str) -> None:
        """Something is to be said below the table, once."""
        if self._said.first(line):
            self.notes.append(line)


def find_with(
    config: pytest.Config,
    settings: Settings,
    store: Store,
    environment: Mapping[str, str],
    keeper: Keeper,
) -> Findings:
    """Findings that are held against the baselines of a store."""
    policy = Policy(
        missing="fail" if settings.missing_fails else "note",
        incomparable="fail" if settings.incomparable_fails else "warn",
        improved=settings.improved,  # type: ignore[arg-type]
        update=settings.policy if settings.update else None,  # type: ignore[arg-type]
        strict=settings.strict,
        allowed=settings.allow,
    )
    baselines = Baselines(store, settings.update)
    rulings = Rulings(baselines, environment, policy, hold=settings.bundle is not None)
    rulings.shard = Shard() if settings.shard else None
    rulings.trees = any(kind in OF_TREES for kind, _ in settings.reports)
    rulings.reason = settings.reason
    if settings.reason:
        rulings.commit = git_commit(config.rootpath).removesuffix("+")[:COMMIT_DIGITS]
    return Findings(
        rulings,
        CallRulings(CallStore(store), policy),
        Budgets(config.rootpath, Commands(config).measure),
        keeper,
    )
