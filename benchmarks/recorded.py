"""Pytest with a record of what was measured: the profiles, which no report holds.

    python benchmarks/recorded.py RECORD ARGS...

Runs pytest with the arguments and pickles nodeid -> Measurement into RECORD. Only the pytest that
runs natively is patched; what counts is another interpreter, which does not see this file.
"""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import pytest

from pytest_instrcount.counts.measurement import Measurement
from pytest_instrcount.gate.limit import Limit
from pytest_instrcount.gate.records import TestResult
from pytest_instrcount.gate.rulings import Rulings


def main() -> None:
    """Run pytest as ``python -m pytest`` does, then write the record."""
    record, args = Path(sys.argv[1]), sys.argv[2:]
    sys.path[0] = os.getcwd()
    measured: dict[str, Measurement] = {}
    rule = Rulings.rule

    def recorded(
        self: Rulings, measurement: Measurement, limit: Limit, allocs: Limit | None = None
    ) -> TestResult:
        measured[measurement.nodeid] = measurement
        return rule(self, measurement, limit, allocs)

    Rulings.rule = recorded  # type: ignore[method-assign]
    status = pytest.main(args)
    record.write_bytes(pickle.dumps(measured))
    sys.exit(status)


if __name__ == "__main__":
    main()
