"""Instruction counts of pytest tests under Valgrind's Callgrind, gated against baselines.

PYTEST_DONT_REWRITE: inside Valgrind this package is imported before pytest can rewrite asserts.
"""

from __future__ import annotations

__version__ = "0.1.0"
