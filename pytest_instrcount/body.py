"""Another function in the place of a test's body, for a while."""

from __future__ import annotations

import inspect
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced_body(item: Any, function: Callable[..., Any]) -> Iterator[None]:
    """Have pytest call ``function`` as the body of a test that is set up.

    Of an async method of unittest pytest does not call ``item.obj``: unittest takes it from its
    ``TestCase`` by name, so it is put there.
    """
    body, case = item.obj, getattr(item, "instance", None)
    asked_by_name = inspect.iscoroutinefunction(body) and isinstance(case, unittest.TestCase)
    item.obj = function
    if asked_by_name:
        setattr(case, item.name, function)
    try:
        yield
    finally:
        item.obj = body
        if asked_by_name:
            delattr(case, item.name)
