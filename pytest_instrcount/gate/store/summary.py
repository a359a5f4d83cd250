"""The summary of a baseline: the few lines that people review, and all that a verdict needs.

It names the profile, which has the rest. A baseline whose profile is not there is known by its summary alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pytest_instrcount.counts.denoised import Denoised
from pytest_instrcount.counts.measurement import ISOLATIONS
from pytest_instrcount.counts.noise import Noise
from pytest_instrcount.gate.store.baseline_json import SCHEMA, check_text, damaged
from pytest_instrcount.gate.store.layouts_json import MOST_LAYOUTS
from pytest_instrcount.gate.store.ledger import LONGEST_REASON, Entry
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.gate.store.schema import HASHED, Baseline, hashed
from pytest_instrcount.gate.store.values import Invalid, count_of, list_of, object_of, text_of

#: Digits of the digest in the name of a profile.
PROFILE_DIGITS = 12
#: The keys, line by line.
_LINES = (
    ("nodeid",),
    ("ir", "denoised_ir"),
    ("reason",),
    ("calls", "warmup", "isolation", "totals"),
    ("facts", "profile", "schema"),
)
_KEYS = frozenset(chain.from_iterable(_LINES))


def without_profile(baseline: Baseline, profile: str) -> Baseline:
    """The part of a baseline that its summary has."""
    known = baseline.denoised
    ir, reason = baseline.compared_ir, baseline.reason_for(baseline.compared_ir)
    return replace(
        baseline,
        rows={},
        inclusive={},
        packages={},
        environment=hashed(baseline.environment),
        denoised=None if known is None else known.in_total(),
        work={},
        python=None,
        ledger=(Entry(None, ir, reason),) if reason else (),
        body="",
        formerly=(),
        lost=profile,
    )


def summary_text(baseline: Baseline, profile: str) -> str:
    """The JSON text of the summary of a baseline with this profile, in the order in which people read it."""
    known = baseline.denoised
    values: dict[str, object] = {
        "nodeid": baseline.nodeid,
        "ir": baseline.ir,
        "denoised_ir": None if known is None else baseline.compared_ir,
        "reason": baseline.reason_for(baseline.compared_ir),
        "calls": baseline.calls,
        "warmup": baseline.warmup,
        "isolation": baseline.isolation,
        "totals": [baseline.total_ir] if known is None else list(known.totals),
        "facts": hashed(baseline.environment)[HASHED],
        "profile": profile,
        "schema": SCHEMA,
    }
    text = [", ".join(f'"{name}": {json.dumps(values[name])}' for name in line) for line in _LINES]
    return "{\n " + ",\n ".join(text) + "\n}\n"


def parse_summary(text: str, path: Path, nodeid: str = "") -> Baseline:
    """Read the JSON text, as a baseline that lost its profile. Raises InstrcountError as `parse_baseline`."""
    try:
        return _validated(
            object_of(check_text(text, path, SCHEMA, nodeid, oldest=SCHEMA), "it", _KEYS)
        )
    except Invalid as error:
        raise damaged(path, printable(str(error)[:200]), nodeid) from None


def _validated(found: dict[str, object]) -> Baseline:
    nodeid, reason, isolation, facts, profile = (
        text_of(found[key], key) for key in ("nodeid", "reason", "isolation", "facts", "profile")
    )
    if isolation not in ISOLATIONS or len(reason) > LONGEST_REASON:
        raise Invalid("isolation or reason")
    if not re.fullmatch(f"[0-9a-f]{{{PROFILE_DIGITS}}}", profile):
        raise Invalid(f"profile is not {PROFILE_DIGITS} hex digits")
    counts = [count_of(each, "totals") for each in list_of(found["totals"], "totals", MOST_LAYOUTS)]
    numbers = [name for name in ("ir", "denoised_ir", "warmup") if found[name] is not None]
    known = {name: count_of(found[name], name) for name in numbers}
    baseline = Baseline(
        nodeid=nodeid,
        total_ir=counts[0],
        calls=count_of(found["calls"], "calls", least=1),
        warmup=known.get("warmup", 0),
        isolation=isolation,
        rows={},
        packages={},
        environment={HASHED: facts},
        denoised=Denoised(Noise(), tuple(counts)).in_total() if "denoised_ir" in known else None,
        lost=profile,
    )
    if reason:
        baseline = replace(baseline, ledger=(Entry(None, baseline.compared_ir, reason),))
    if json.loads(summary_text(baseline, profile)) != found:
        raise Invalid("ir and denoised_ir are not what totals are per call")
    return baseline
