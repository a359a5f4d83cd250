"""Sub-tests where a test is repeated: their blocks run, and nothing is made of them."""

from __future__ import annotations

import unittest
from contextlib import AbstractContextManager, nullcontext
from typing import Any

_REPORTING = ("_pytest.subtests", "pytest_subtests.")
_BLOCK: AbstractContextManager[None] = nullcontext()


def _subtest(*_: object, **__: object) -> AbstractContextManager[None]:
    """In the place of ``subTest``: what fails in the block, fails the repetition."""
    return _BLOCK


class Unreported:
    """In the place of the ``subtests`` fixture."""

    test = staticmethod(_subtest)


def leave_unreported(item: Any) -> None:
    """Have a test that is set up report none of its sub-tests: that would be counted with it."""
    case = getattr(item, "instance", None)
    if isinstance(case, unittest.TestCase):
        case.subTest = _subtest  # type: ignore[method-assign]
    subtests = getattr(item, "funcargs", {}).get("subtests")
    if type(subtests).__module__.startswith(_REPORTING):
        item.funcargs["subtests"] = Unreported()
