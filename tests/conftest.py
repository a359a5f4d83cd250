"""For all tests: pytest's own fixture for running pytest."""

from __future__ import annotations

pytest_plugins = ["pytester"]
