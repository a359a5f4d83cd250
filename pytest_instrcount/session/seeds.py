"""Measures under other hash seeds what may have grown by which keys collide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pytest_instrcount.callgrind.orders import Order
from pytest_instrcount.callgrind.zygote import Zygote
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
    """Rule anew on the tests whose verdict hangs on that. Raises ZygoteFailed."""
    hanging = findings.rulings.colliding()
    if not hanging:
        return
    say(
        f"instrcount: measuring {several(len(hanging), 'test')} under {len(OTHER_SEEDS)} other hash seeds"
    )
    count("asked", "hash seeds", len(hanging) * len(OTHER_SEEDS))
    valgrind, heartbeat = (
        findings.rulings.environment["valgrind"],
        Heartbeat(say, total=len(hanging)),
    )
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
    for place, each in enumerate(hanging):
        seeds: list[Mapping[str, Row]] = []
        for number in range(first + place, first + len(hanging) * len(OTHER_SEEDS), len(hanging)):
            answer = zygote.wait(number, heartbeat.of(each.nodeid))
            seeds += [in_tables(found.rows) for found in profiles_in(answer, valgrind, each.calls)]
        if len(seeds) < len(OTHER_SEEDS):
            failed = len(OTHER_SEEDS) - len(seeds)
            findings.note(
                f"{each.nodeid}: it failed under {failed} of {len(OTHER_SEEDS)} other hash seeds"
            )
            continue
        result = findings.rule(replace(each, seeds=tuple(seeds)), *limits_of(each.nodeid))
        if result.by_chance:
            findings.remark(each.nodeid, [_BY_CHANCE])
