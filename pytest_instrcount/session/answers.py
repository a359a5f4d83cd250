"""Orders for the zygote, and measurements from its answers."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_instrcount.callgrind.facts import Packages
from pytest_instrcount.callgrind.inside.collect import case_of
from pytest_instrcount.callgrind.messages import Answer
from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Problem, Zygote
from pytest_instrcount.config.settings import Settings
from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.counts.noise import MOST_OTHER_LAYOUTS, OTHER_LAYOUTS, differing_functions
from pytest_instrcount.counts.parse import parse_profile
from pytest_instrcount.counts.profile import Profile, sum_profiles
from pytest_instrcount.counts.standardize import standardize_profile
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.store.schema import Baseline
from pytest_instrcount.host.account.current import count, timed
from pytest_instrcount.host.text import duration, several
from pytest_instrcount.report.words import cut_left
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.progress import Pulse

#: The version of the Valgrind that made a dump is in its first lines.
_CREATOR = re.compile(rb"^creator: callgrind-([!-~]+)$", re.MULTILINE)
_HEADER_BYTES = 4096
#: Columns for a test that is awaited, in a line of 80.
_ROOM = 45


def order_for(item: pytest.Item, settings: Settings, known: Baseline | None, verbose: int) -> Order:
    """The order for one test; repeated as often as its baseline was, unless the user says how often."""
    warmup, calls = settings.warmup, settings.calls
    if known is not None:
        warmup = known.warmup if warmup is None else warmup
        calls = known.calls if calls is None else calls
    isolation, forks = settings.isolation, False
    if known is not None and not settings.update:  # a check repeats what was stored
        forks = known.isolation == isolation == "fork"
        isolation = "process" if known.isolation == "process" else isolation
    return Order(
        nodeid=item.nodeid,
        case=case_of(item),
        path=str(item.path),
        isolation=isolation,
        forks=forks,
        timeout=settings.timeout,
        warmup=warmup,
        calls=calls,
        pilot=warmup is None or calls is None,
        verbose=verbose,
    )


def measurement_of(nodeid: str, result: Answer, packages: Packages, valgrind: str) -> Measurement:
    """The measurement in an answer; ``valgrind`` is the version that is to have counted.

    Raises InstrcountError if there is no count in it, or another Valgrind's.
    """
    check_creator(result, valgrind)
    dumps = len(result["dumps"])
    if dumps < 2 or result["counted"] is None:
        raise InstrcountError(
            "no-dump",
            f"Callgrind left {dumps} dumps of the test",
            "pytest --instrcount --instrcount-isolation=process",
        )
    profile, alike = read_profile(result)
    warmup, calls = result["counted"]
    if profile.total <= 0:
        raise InstrcountError(
            "no-count",
            "Callgrind counted nothing between the start and the end of the call",
            "pytest --instrcount --instrcount-isolation=process",
        )
    return Measurement(
        nodeid=nodeid,
        total_ir=profile.total,
        calls=calls,
        warmup=warmup,
        isolation=result["isolation"],
        rows=profile.rows,
        packages=_imported(packages, result),
        callers=profile.callers,
        inclusive=profile.inclusive,
        alike=alike,
    )


def is_lost(answer: Answer | Problem) -> bool:
    """True if the dumps of a result are gone: somebody has emptied the folder of the run."""
    return not isinstance(answer, Problem) and not all(map(os.path.exists, answer["dumps"]))


def check_creator(result: Answer, valgrind: str) -> None:
    """Raise InstrcountError ``valgrind-changed`` if another version counted than began the run.

    A zygote that is started anew, or has a test for itself, runs what is installed by then.
    """
    for path in result["dumps"][:1]:
        try:
            with open(path, "rb") as file:
                found = _CREATOR.search(file.read(_HEADER_BYTES))
        except OSError:
            return  # who reads it all will say so
        version = found[1].decode() if found else valgrind
        if version != valgrind:
            raise InstrcountError(
                "valgrind-changed",
                f"Valgrind {version} counted it, and the run began with {valgrind}",
                "pytest --instrcount    # once more, with one Valgrind",
            )


@timed("packages")
def _imported(packages: Packages, result: Answer) -> dict[str, str]:
    return packages.imported(result["modules"])


@timed("parse")
def read_profile(result: Answer) -> tuple[Profile, bool]:
    """The counts of one answer, without the switch, under standard names; the dumps are deleted.

    With them, whether each call gave the same.
    """
    dumps = [Path(path) for path in result["dumps"]]
    with collector_paused():
        try:
            *counted, switch = map(parse_profile, dumps)
        finally:
            for dump in dumps:
                dump.unlink(missing_ok=True)
        # not the calls: the first count has one more of the stub that asks for a dump
        alike = all(each.inclusive == counted[0].inclusive for each in counted)
        return standardize_profile(sum_profiles(each - switch for each in counted)), alike


@contextmanager
def collector_paused() -> Iterator[None]:
    """While thousands of objects are made that hold no cycle: they would have all others looked at."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@timed("layouts")
def measure_layouts(
    zygote: Zygote,
    findings: Findings,
    order_of: Callable[[str], Order],
    limits_of: Callable[[str], tuple[Limit, Limit | None]],
    say: Callable[[str], None],
    jobs: int,
) -> None:
    """Measure in other layouts of memory what one count does not settle: in few, then in more.

    How many follows from counts alone; so many ``jobs`` at a time. Raises ZygoteFailed.
    """
    for layouts in (range(OTHER_LAYOUTS + 1), range(OTHER_LAYOUTS + 1, MOST_OTHER_LAYOUTS + 1)):
        _measure_in(layouts, zygote, findings, order_of, limits_of, say, jobs)


def _measure_in(
    layouts: range,
    zygote: Zygote,
    findings: Findings,
    order_of: Callable[[str], Order],
    limits_of: Callable[[str], tuple[Limit, Limit | None]],
    say: Callable[[str], None],
    jobs: int,
) -> None:
    """Measure what is unsettled in these layouts; the first of all is the usual one, once more."""

    def unsettled() -> Iterator[Measurement]:
        return findings.rulings.unsettled(layouts.start)

    repetition = {
        each.nodeid: (each.warmup, each.calls, each.calls_elsewhere) for each in unsettled()
    }
    if not repetition:
        return
    tests = several(len(repetition), "test")
    more = f"{len(layouts)} more layouts" if layouts.start else f"{OTHER_LAYOUTS} other layouts"
    about = duration(findings.seconds_of(repetition) * len(layouts) / jobs)
    say(f"instrcount: measuring {tests} {'' if layouts.start else 'again, and '}in {more}{about}")
    size = len(repetition) * len(layouts)
    count("asked", "layouts", size)
    number = zygote.ask(
        [
            replace(
                order_of(nodeid),
                warmup=warmup,
                calls=elsewhere if layout else calls,  # the usual one is to show that it repeats
                pilot=False,
                layout=layout,
            )
            for nodeid, (warmup, calls, elsewhere) in repetition.items()
            for layout in layouts
        ]
    )
    valgrind = findings.rulings.environment["valgrind"]
    heartbeat = Heartbeat(say, total=len(repetition))
    firsts = dict(zip(repetition, range(number, number + size, len(layouts))))
    for known in unsettled():
        profiles = []
        for place in range(len(layouts)):
            answer = zygote.wait(firsts[known.nodeid] + place, heartbeat.of(known.nodeid))
            profiles += profiles_in(answer, valgrind, known.calls)
        if len(profiles) < len(layouts):
            failed = len(layouts) - len(profiles)
            findings.note(f"{known.nodeid}: {failed} of the repeated measurements failed")
            continue
        settled = replace(known, layouts=(*known.layouts, *profiles))
        if not layouts.start:
            settled = replace(settled, unsteady=differing_functions(known.profile, profiles[0]))
        findings.rule(settled, *limits_of(known.nodeid))


def profiles_in(answer: Answer | Problem, valgrind: str, calls: int) -> list[Profile]:
    """One profile, of so many calls, or none where the measurement failed: then one layout has to do."""
    if isinstance(answer, Problem) or not answer["counted"] or len(answer["dumps"]) < 2:
        return []
    times, rest = divmod(calls, answer["counted"][1])
    if rest:  # the test itself says how often, and says another number each time
        return []
    try:
        check_creator(answer, valgrind)
        profile, _ = read_profile(answer)
        return [sum_profiles([profile] * times)]
    except InstrcountError:
        return []


class Heartbeat:
    """Called while a result is awaited; says so every half minute.

    Where pytest shows no progress of its own, one serves for all ``total`` tests, see `of`.
    """

    def __init__(self, say: Callable[[str], None], nodeid: str = "", total: int = 0) -> None:
        self._pulse = Pulse(say)
        self._nodeid = nodeid
        self._done = -1
        self._total = total

    def of(self, nodeid: str) -> Heartbeat:
        """The next test is awaited; those before it are done."""
        if nodeid != self._nodeid:
            self._nodeid, self._done = nodeid, self._done + 1
        self()  # results that are there at once would never have it called
        return self

    def __call__(self) -> None:
        done = f"{self._done:,} of {self._total:,} done, " if self._total else ""
        self._pulse(f"{done}waiting for {cut_left(self._nodeid, _ROOM - len(done))}")
