"""Finds what leaks into the count of one test, by counting it under one change after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from pytest_instrcount.callgrind.command import FIXED
from pytest_instrcount.cli.doctor.check import Check, State
from pytest_instrcount.cli.doctor.hints import find_hints
from pytest_instrcount.cli.doctor.project import Collected
from pytest_instrcount.cli.doctor.trials import Counts, Outcome, Trial, Trials
from pytest_instrcount.counts.noise import differing_functions
from pytest_instrcount.counts.profile import NOTHING, Profile
from pytest_instrcount.report.words import count, percent

#: So many tests around the one in question are counted before and after it.
NEIGHBOURS = 4
#: So many functions are named, those that moved most.
MOST_FUNCTIONS = 5
#: So many trials at a time; each measures one test, and counts do not depend on load.
AT_A_TIME = 2

#: Where no clue says what helps.
NOISY = "see docs/how-to/noisy-tests, what differs"

_MOVED = ("regressed", "improved", "nondeterministic")


@dataclass(frozen=True, slots=True)
class Surrounded:
    """The test in question, and what there is to try it in."""

    nodeid: str
    #: as pytest is given it
    typed: str
    #: its file, likewise
    file: str
    #: ids of the tests before and after it, as pytest is given them
    before: tuple[str, ...]
    after: tuple[str, ...]
    let_through: tuple[str, ...] = ()


def surround(
    tests: Sequence[Collected],
    nodeid: str,
    type_it: Callable[[str], str],
    let_through: Sequence[str],
) -> Surrounded:
    """Find the neighbours of a test in its file."""
    ids = [each.nodeid for each in tests]
    place = ids.index(nodeid)
    half = NEIGHBOURS // 2
    typed = [type_it(each) for each in ids]
    return Surrounded(
        nodeid,
        typed[place],
        typed[place].partition("::")[0],
        tuple(typed[max(0, place - half) : place]),
        tuple(typed[place + 1 : place + 1 + half]),
        tuple(let_through),
    )


def find_leaks(test: Surrounded, trials: Trials, folder: Path) -> Iterator[Check]:
    """Count the test in all ways; one check for each."""
    usual = trials.usual()
    plan = Plan(test, trials, folder, usual, trials.other_environment(), trials.other_seed())
    yield from plan.run()


@dataclass(slots=True)
class Plan:
    """The trials of one test, and what they come to."""

    test: Surrounded
    counts: Counts
    folder: Path
    usual: dict[str, str]
    other_environment: dict[str, str]
    other_seed: dict[str, str]

    def run(self) -> Iterator[Check]:
        """Count once, then under each change; what differs from the first is a leak."""
        first = self.counts.count(self._trial("baseline", stores=True))
        if first.profile is None or not first.verdict:
            yield self._not_counted(first)
            return
        ir = count(first.profile.total)
        yield Check("counted", "ok", f"{self.test.nodeid}: Ir {ir} in all counted calls")
        if first.verdict == "nondeterministic":
            again = self.counts.count(self._trial("again", stores=True))
            yield self._differs_from_itself(first.profile, again)
            return
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            copied = pool.submit(self._count_in_copy)
            others = {
                trial.name: pool.submit(self.counts.count, trial)
                for trial in (
                    self._trial("again"),
                    replace(self._trial("environment"), environment=self.other_environment),
                    replace(self._trial("hash-seed"), environment=self.other_seed),
                )
            }
            yield from self._judge(first, others, copied)

    def _trial(self, name: str, *, stores: bool = False) -> Trial:
        return Trial(name, (self.test.typed,), self.folder, self.usual, stores)

    @property
    def _neighbours(self) -> tuple[str, ...]:
        return (*self.test.before, *self.test.after)

    def _count_in_copy(self) -> list[Outcome]:
        """In another path: alone, before its neighbours, and once they have run, behind them.

        All that runs neighbours is done there, so that nothing of theirs is left in the project.
        """
        copy = self.counts.copy_project()
        if copy is None:
            return []
        found = [self.counts.count(replace(self._trial("path"), folder=copy))]
        if self._neighbours:
            test, others = (self.test.typed,), self._neighbours
            first = replace(self._trial("first"), folder=copy, tests=test + others)
            found.append(self.counts.count(first))
            self.counts.run_natively(copy, [self.test.file, "--deselect", self.test.nodeid])
            found.append(self.counts.count(replace(first, name="last", tests=others + test)))
        return found

    def _judge(
        self,
        first: Outcome,
        others: dict[str, Future[Outcome]],
        copied: Future[list[Outcome]],
    ) -> Iterator[Check]:
        yield judge_trial("again", first, others["again"].result(), "counted a second time", ())
        through = [name for name in self.test.let_through if name in FIXED]
        suspects = f"take {' '.join(through)} out of instrcount_env" if through else ""
        yield judge_trial(
            "environment",
            first,
            others["environment"].result(),
            "other variables, another TMPDIR",
            (suspects or "set what it reads in the test itself, with monkeypatch.setenv",),
        )
        yield judge_trial(
            "hash seed",
            first,
            others["hash-seed"].result(),
            "another PYTHONHASHSEED",
            (suspects or "sort sets and dicts of strings before they are walked",),
        )
        yield from self._judge_copy(first, copied.result())

    def _judge_copy(self, first: Outcome, found: list[Outcome]) -> Iterator[Check]:
        if not found:
            what = "not tried: the project is too large to be copied"
            yield Check("path, order", "warn", what)
            return
        yield judge_trial(
            "path",
            first,
            found[0],
            "in a copy of the project with another path",
            ("keep the path of the project out of what is counted: tmp_path, a relative path",),
        )
        fix = ("let a fixture make what the test needs, and take away what others leave behind",)
        for outcome, what in zip(found[1:], ("before its neighbours", "once they have run")):
            yield judge_trial("order", found[0], outcome, what, fix)

    def _not_counted(self, first: Outcome) -> Check:
        """It failed or was skipped: perhaps it needs what other tests leave behind."""
        alone = self.counts.run_natively(self.folder, [self.test.typed])
        together = self.counts.run_natively(self.folder, [self.test.file])
        if not alone and together:
            return Check(
                "order",
                "fail",
                f"{self.test.nodeid} passes after its neighbours and fails alone: it depends on "
                "what they leave behind, and a test is counted alone",
                "let a fixture make what the test needs",
                first.said[-3:],
            )
        what = "passes without --instrcount and" if alone else "fails alone, too:"
        return Check(
            "counted",
            "fail",
            f"{self.test.nodeid} {what} has no count",
            f"pytest {'--instrcount ' if alone else ''}{self.test.typed}",
            first.said,
        )

    def _differs_from_itself(self, first: Profile, again: Outcome) -> Check:
        found = "counts another number each time"
        moved: tuple[str, ...] = ()
        hints = find_hints(first.rows)
        if again.profile is not None:
            found += f": {count(first.total)} and {count(again.profile.total)}"
            moved = tuple(moved_functions(first, again.profile))
        fix = NOISY
        if hints:
            found += f"; {_told(hints)}"
            fix = hints[0][2]
        return Check("again", "fail", found, fix, moved)


def judge_trial(
    name: str, first: Outcome, now: Outcome, what: str, remedies: tuple[str, ...]
) -> Check:
    """One trial against the first count.

    A leak is what moves the gated count by more than the detection limit; it fails where the gate
    would have said so, and else is a warning. ``remedies`` are for a leak that no clue explains.
    """
    if not now.verdict or now.profile is None or first.profile is None:
        fix = remedies[0] if remedies else ""
        return Check(name, "fail", f"{what}: the test does not pass there", fix, now.said[-3:])
    raw = raw_growth(first.profile, now.profile)
    gated = _relative(first.gated, now.gated)
    figures = f"{what}: raw {percent(raw)}, gated {percent(gated)}"
    state = _state(gated, now)
    if state == "ok":
        return Check(name, "ok", figures)
    fix = remedies[0] if remedies else ""
    if not remedies:  # nothing was changed: then what it calls is to blame
        hints = find_hints(now.profile.rows)
        figures += f"; {_told(hints)}" if hints else ""
        fix = hints[0][2] if hints else NOISY
    told = "leaks" if state == "fail" else "leaks, within the limit"
    moved = tuple(moved_functions(first.profile, now.profile))
    return Check(name, state, f"{told}: {figures}", fix, moved)


def _state(gated: Fraction, now: Outcome) -> State:
    if now.verdict != "nondeterministic" and abs(gated) <= now.floor:
        return "ok"
    return "fail" if now.verdict in _MOVED else "warn"


def _relative(first: Fraction | None, now: Fraction | None) -> Fraction:
    """Growth of one count against the other, of what both grew against one baseline."""
    before, after = (1 + (each or Fraction(0)) for each in (first, now))
    return after / before - 1 if before else Fraction(0)


def raw_growth(first: Profile, now: Profile) -> Fraction:
    """Growth of what Callgrind counted; 0 from nothing."""
    return Fraction(now.total, first.total) - 1 if first.total else Fraction(0)


def moved_functions(first: Profile, now: Profile) -> Iterator[str]:
    """A line for each of the functions that moved most: by how many instructions, and which."""
    for name in differing_functions(first, now)[:MOST_FUNCTIONS]:
        moved = now.rows.get(name, NOTHING).ir - first.rows.get(name, NOTHING).ir
        yield f"{moved:+,}".rjust(12) + f"  {name}"


def _told(hints: Sequence[tuple[str, str, str]]) -> str:
    return ", ".join(f"{what} ({name})" for what, name, _ in hints[:2])
