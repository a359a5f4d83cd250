"""The schema of a baseline, and how it is made from a measurement."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pytest_instrcount.counts.denoised import Denoised, denoise_layouts
from pytest_instrcount.counts.fold import fold_rows
from pytest_instrcount.counts.measurement import Counted, Measurement, per_call
from pytest_instrcount.counts.noise import Noise, find_noise
from pytest_instrcount.counts.python.tree import CallTree
from pytest_instrcount.gate.store.ledger import Entry
from pytest_instrcount.gate.store.names import hash8

#: Earlier names of a test that are kept, the newest.
MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Baseline(Counted):
    """A stored count: what `Measurement` was once, small rows folded, with its environment."""

    #: fact -> value; a baseline is comparable only where all of them are the same
    environment: Mapping[str, str]
    #: None where there are no layouts of memory: then the raw count is compared
    denoised: Denoised | None = None
    #: function name -> instructions with all that it called, over all counted calls; of the names in
    #: ``rows``
    inclusive: Mapping[str, int] = field(default_factory=dict)
    #: allocations and the like -> how often, as `count_work`
    work: Mapping[str, int] = field(default_factory=dict)
    #: what it is made of by Python function, to name the cause of a change; None if not known
    python: CallTree | None = None
    #: why it was changed, the newest last; bounded
    ledger: tuple[Entry, ...] = ()
    #: a hash of what the test does, to know it again under another name; "" if not known
    body: str = ""
    #: earlier ids of the test, the newest last
    formerly: tuple[str, ...] = ()
    #: the name of its profile, if that is not there: then all that is known is in its summary
    lost: str = ""

    @property
    def compared_ir(self) -> int:
        """Instructions per call as they are compared: the mean of all layouts, where there are some."""
        known = self.denoised
        if known is None:
            return self.ir
        return per_call(sum(known.totals), self.calls * known.layouts)

    def reason_for(self, ir: int) -> str:
        """The last reason for which a count was accepted; "" if there is none."""
        return next((each.reason for each in reversed(self.ledger) if each.new == ir), "")


#: The one fact of a baseline that lost its profile.
HASHED = "hash of all facts"


def hashed(environment: Mapping[str, str]) -> Mapping[str, str]:
    """The facts of an environment as one.

    >>> hashed({"python": "3.11.7"}), hashed(hashed({"python": "3.11.7"}))
    ({'hash of all facts': '549da11c'}, {'hash of all facts': '549da11c'})
    """
    if HASHED in environment:
        return environment
    return {HASHED: hash8("\n".join(map("=".join, sorted(environment.items()))))}


def to_baseline(
    measurement: Measurement,
    environment: Mapping[str, str],
    known: Collection[str] = (),
) -> Baseline:
    """The baseline that a measurement becomes: rows folded, facts added; nothing is written.

    ``known`` are functions that other tests of this environment have shown to be noise.
    """
    # The first of the layouts is the usual one, counted as every check counts it: without a pilot,
    # whose own calls are among the calls that Callgrind counts.
    profiles = measurement.layouts or (measurement.profile,)
    if measurement.unsteady:
        # what differs between equal processes must not be taken for noise
        profiles = (measurement.profile, *measurement.layouts)
        noise = Noise()
    else:
        noise = find_noise(profiles, known)
        # else the next update would find other calls, and store the same count again
        usual = profiles[0]
        measurement = replace(
            measurement,
            total_ir=usual.total,
            rows=usual.rows,
            callers=usual.callers,
            inclusive=usual.inclusive,
        )
    raw = raw_baseline(measurement, environment)
    return replace(raw, denoised=denoise_layouts(profiles, noise))


def raw_baseline(measurement: Measurement, environment: Mapping[str, str]) -> Baseline:
    """The part of a baseline that needs no other layout: the raw count."""
    rows = fold_rows(measurement.rows, measurement.total_ir)
    return Baseline(
        nodeid=measurement.nodeid,
        total_ir=measurement.total_ir,
        calls=measurement.calls,
        warmup=measurement.warmup,
        isolation=measurement.isolation,
        rows=rows,
        # the switch, which is subtracted, can have cost more than what came back to a function
        inclusive={
            name: max(row.ir, measurement.inclusive.get(name, row.ir)) for name, row in rows.items()
        },
        work=measurement.work,
        environment=dict(environment),
        packages=dict(measurement.packages),
    )
