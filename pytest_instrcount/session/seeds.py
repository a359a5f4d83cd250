"""Measures under other hash seeds what may have grown by which keys collide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Zygote, ZygoteFailed
from pytest_instrcount.counts.profile import Row
from pytest_instrcount.gate.collisions import OTHER_SEEDS, in_tables
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.host.account.current import count, timed
from pytest_instrcount.host.text import several
from pytest_instrcount.session.answers import Heartbeat, profiles_in
from pytest_instrcount.session.findings import Findings

_BY_CHANCE = "not counted: keys of dicts and sets collide differently, by chance of the hash seed"


@timed("hash seeds")
def measure_seeds(
    zygote: Zygote,
    findings: Findings,
    order_of: Callable[[str], Order],
    limits_of: Callable[[str], tuple[Limit, Limit | None]],
    say: Callable[[str], None],
) -> None:
    """Rule anew on the tests whose verdict hangs on that, if pytest starts under other seeds."""
    hanging = findings.rulings.colliding()
    if not hanging:
        return
    seeds = len(OTHER_SEEDS)
    say(f"instrcount: measuring {several(len(hanging), 'test')} under {seeds} other hash seeds")
    count("asked", "hash seeds", len(hanging) * seeds)
    first = zygote.ask(
        [
            replace(
                order_of(each.nodeid),
                warmup=each.warmup,
                calls=each.calls_elsewhere,
                pilot=False,
                layout=-seed,
            )
            for seed in OTHER_SEEDS
            for each in hanging
        ]
    )
    valgrind, heartbeat = findings.rulings.environment["valgrind"], Heartbeat(say, "", len(hanging))
    for place, each in enumerate(hanging):
        found: list[Mapping[str, Row]] = []
        for number in range(first + place, first + len(hanging) * seeds, len(hanging)):
            try:
                answer = zygote.wait(number, heartbeat.of(each.nodeid))
            except ZygoteFailed as error:
                why = error.why.partition("\n")[0]
                findings.note(f"no test was measured under other hash seeds: {why}")
                return
            found += [in_tables(one.rows) for one in profiles_in(answer, valgrind, each.calls)]
        if len(found) < seeds:
            failed = f"it failed under {seeds - len(found)} of {seeds} other hash seeds"
            findings.note(f"{each.nodeid}: {failed}")
            continue
        result = findings.rule(replace(each, seeds=tuple(found)), *limits_of(each.nodeid))
        if result.by_chance:
            findings.remark(each.nodeid, [_BY_CHANCE])
