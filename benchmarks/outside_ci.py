"""The environment of a user at home, for the runs that a benchmark starts."""

from __future__ import annotations

import os

from pytest_instrcount.host.ci import OF_CI


def outside_ci(*also: str) -> dict[str, str]:
    """The variables of this process, without those of CI, options of pytest, and those named."""
    left_out = (*OF_CI, "PYTEST_ADDOPTS", *also)
    return {name: value for name, value in os.environ.items() if name not in left_out}
