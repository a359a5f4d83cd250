"""Typed keys for what the plugin keeps on pytest's config."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

#: True in the pytest that runs inside Valgrind.
INSIDE = pytest.StashKey[bool]()
#: Makes the fixture that counts; present only while a test is measured.
COUNTING = pytest.StashKey[Callable[[pytest.FixtureRequest], Any]]()
