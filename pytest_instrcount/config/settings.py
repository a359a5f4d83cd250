"""Settings from command line, ini, marker and environment, read here and nowhere else."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.config.child_spec import ChildSpec
from pytest_instrcount.config.command_line import CommandLine, program_of
from pytest_instrcount.config.given import (
    Given,
    parse_calls,
    parse_isolation,
    parse_seconds,
    parse_share,
    parse_warmup,
    read_markers,
)
from pytest_instrcount.config.options import (
    BLAME,
    COUNTERS,
    DEFAULT_TIMEOUT,
    IMPROVED,
    INCOMPARABLE,
    INI_ERRORS,
    ISOLATIONS,
    MISSING,
    NATIVE_OPTIONS,
    POLICIES,
    runs_natively,
)
from pytest_instrcount.config.outputs import read_outputs
from pytest_instrcount.config.stash import CI
from pytest_instrcount.gate.budget import BUDGET_ARGUMENTS, Budget
from pytest_instrcount.gate.cause import Cause, parse_causes
from pytest_instrcount.gate.limit import Limit, parse_count_limit, parse_limit
from pytest_instrcount.gate.records import Base
from pytest_instrcount.gate.store.ledger import parse_reason
from pytest_instrcount.gate.store.names import shown_path
from pytest_instrcount.host.ci import ci_variable

MARKER = "instrcount"

_WRITE_ENV = "write names of variables, without values, like instrcount_env = DATABASE_URL TOKEN"


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the user chose for a run; a test's marker replaces some of it for that test."""

    active: bool
    update: bool
    inline: bool
    policy: str
    prune: bool
    shard: bool
    reason: str
    reason_above: Fraction | None
    max_delta: Limit
    missing: str
    incomparable: str
    improved: str
    baseline_dir: Path
    reports: tuple[tuple[str, Path], ...]
    keep: Path | None
    bundle: Path | None
    timings: bool
    timings_csv: Path | None
    debug: Path | None
    backend: str
    valgrind: str
    timeout: float
    warmup: int | None
    calls: int | None
    isolation: str
    blame: str
    max_allocs_delta: Limit | None
    budget: Budget
    let_through: tuple[str, ...]
    verbosity: int
    #: the variable that says that this is a machine of CI; "" if it is none
    ci: str
    #: causes for which a test may miss the comparison with its baseline
    allow: frozenset[Cause] = frozenset()
    #: what is measured instead of baselines
    against: Base | None = None
    #: what plugins wish of the processes that measure
    child: ChildSpec = field(default_factory=ChildSpec)

    @property
    def missing_fails(self) -> bool:
        """True if a test without a baseline fails the run: in CI, unless said otherwise."""
        return self.missing == "fail" or (self.missing == "auto" and self.ci != "")

    @property
    def incomparable_fails(self) -> bool:
        """True if baselines of another environment fail the run: in CI, unless said otherwise."""
        return self.incomparable == "fail" or (self.incomparable == "auto" and self.ci != "")

    @property
    def strict(self) -> bool:
        """True if each test that has a baseline is to be compared: by a gate in CI."""
        return self.ci != "" and not self.writing

    @property
    def writing(self) -> str:
        """The option by which this run changes or deletes what is stored; "" if there is none."""
        given = {"update-baseline": self.update, "update-inline": self.inline, "prune": self.prune}
        return next((f"--instrcount-{name}" for name, value in given.items() if value), "")


def load_settings(config: pytest.Config) -> Settings:
    """Read command line and ini. Raises pytest.UsageError with every mistake in one message."""
    given = Given(config)
    update, inline, prune, shard = (
        config.getoption(f"instrcount_{name}")
        for name in ("update_baseline", "update_inline", "prune", "shard")
    )
    given.need_update("shard", "reason")
    baseline_dir = config.rootpath / (
        given.value("instrcount_baseline_dir") or "instrcount_baselines"
    )
    settings = Settings(
        active=bool(given.value("instrcount") or update or inline or prune),
        update=update,
        inline=inline,
        policy=given.choice("instrcount_update_policy", POLICIES),
        prune=prune,
        shard=shard,
        reason=given.checked("instrcount_reason", parse_reason, "", ini=False),
        reason_above=given.checked("instrcount_reason_above", parse_share, None),
        max_delta=given.checked("instrcount_max_delta", parse_limit, parse_limit("1%")),
        missing=given.choice("instrcount_missing", MISSING),
        incomparable=given.choice("instrcount_incomparable", INCOMPARABLE),
        improved=given.choice("instrcount_improved", IMPROVED),
        baseline_dir=baseline_dir,
        timings=config.getoption("instrcount_timings"),
        **read_outputs(config, baseline_dir, given.mistakes),
        backend=given.choice("instrcount_backend", COUNTERS),
        valgrind=given.value("instrcount_valgrind") or "valgrind",
        timeout=given.checked("instrcount_timeout", parse_seconds, DEFAULT_TIMEOUT),
        warmup=given.checked("instrcount_warmup", parse_warmup, None),
        calls=given.checked("instrcount_calls", parse_calls, None),
        isolation=given.choice("instrcount_isolation", ISOLATIONS),
        blame=given.choice("instrcount_blame", BLAME),
        max_allocs_delta=None,  # the marker's alone
        budget=Budget(),  # likewise
        let_through=_let_through(config, given.mistakes),
        verbosity=_verbosity(config, given.mistakes),
        # a conftest may be what loads this plugin: then nobody has looked before
        ci=config.stash.get(CI, ci_variable(os.environ)),
        allow=_allowed(config, given.mistakes),
    )
    if settings.active:
        given.mistakes += _hindrances(config, settings)
    given.raise_mistakes()
    return settings


def _hindrances(config: pytest.Config, settings: Settings) -> Iterator[str]:
    """What keeps a run from being a gate."""
    if runs_natively(config) and settings.strict:
        yield f"{NATIVE_OPTIONS}: nothing is measured with them, and {settings.ci} is set"
    if any(config.getoption(name, False) for name in ("stepwise", "stepwise_skip")):
        yield (
            "--stepwise goes on behind tests that have regressed, since they fail when all have run; "
            "fix: pytest --instrcount --last-failed"
        )
    folder = settings.baseline_dir
    if os.path.lexists(folder) and not os.path.isdir(folder):
        shown = shown_path(folder)
        yield f"instrcount_baseline_dir: {shown} is no folder; fix: ls -ld {shown}"


def _verbosity(config: pytest.Config, mistakes: list[str]) -> int:
    try:
        return config.get_verbosity("instrcount")
    except AttributeError:  # pytest 8.0 with -p no:terminal
        return 0
    except ValueError:
        said = config.getini("verbosity_instrcount")
        mistakes.append(f"verbosity_instrcount = {said!r}: write auto or a whole number")
        return 0


def _let_through(config: pytest.Config, mistakes: list[str]) -> tuple[str, ...]:
    try:
        variables = config.getini("instrcount_env")
    except INI_ERRORS as error:
        mistakes.append(f"instrcount_env: {error}: {_WRITE_ENV}")
        return ()
    for name in variables:
        if not name or any(each in name for each in "=,*?"):
            mistakes.append(f"instrcount_env: {name!r} is no name: {_WRITE_ENV}")
    return tuple(variables)


def _allowed(config: pytest.Config, mistakes: list[str]) -> frozenset[Cause]:
    try:
        return parse_causes(config.getini("instrcount_allow"))
    except INI_ERRORS as error:
        mistakes.append(f"instrcount_allow: {error}")
        return frozenset()


def load_command_line(config: pytest.Config) -> CommandLine:
    """The user's arguments, for the command that accepts a change."""
    always = [*config.getini("addopts"), *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))]
    history = ("lf", "last_failed", "stepwise", "stepwise_skip")
    return CommandLine(
        words=tuple(map(str, config.invocation_params.args)),
        names=frozenset(map(str, config.args)),
        policy=config.getini("instrcount_update_policy") or POLICIES[0],
        selects_always=any(word.startswith(("-k", "-m")) for word in always),
        by_history=any(getattr(config.option, name, False) for name in history),
        program=program_of(sys.orig_argv),
    )


_MARKER_ARGUMENTS: Mapping[str, Any] = {
    "max_delta": parse_limit,
    "max_allocs_delta": parse_count_limit,
    "warmup": parse_warmup,
    "calls": parse_calls,
    "timeout": parse_seconds,
    "isolation": parse_isolation,
    **BUDGET_ARGUMENTS,
}


def settings_for_item(
    item: pytest.Item,
    settings: Settings,
    limit_of: Callable[[pytest.Item, Limit], Limit] = lambda item, limit: limit,
) -> tuple[Settings, list[str]]:
    """The settings of one test, and what is wrong with its markers.

    ``limit_of`` is asked for the limit of a test whose marker has none.
    """
    chosen, mistakes = read_markers(item, MARKER, _MARKER_ARGUMENTS, "max_delta='1%'")
    budget = Budget(**{name: chosen.pop(name, None) for name in BUDGET_ARGUMENTS})
    if "max_delta" not in chosen:
        chosen["max_delta"] = limit_of(item, settings.max_delta)
    return replace(settings, **chosen, budget=budget), mistakes
