"""The hooks that plugins and conftests may implement. Light: read at every start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_instrcount.trace.recognize import Recognizer


@pytest.hookspec
def pytest_instrcount_recognizers(config: pytest.Config) -> Sequence[Recognizer]:  # type: ignore[empty-body]
    """Say whose objects a trace tells apart; asked once, before the first test that is traced.

    A `Recognizer` is the code of a method and what is to be shown of its object, which it is asked
    for when the object is first called. `recognize_class` makes those of a class. In a conftest:

    >>> from pytest_instrcount import Parameter, Recognizer
    >>> class Cache:
    ...     def __init__(self, size): self.size = size
    ...     def get(self, key): return None
    >>> def entries(cache):
    ...     return (Parameter("entries", shape=(cache.size,)),)
    >>> def pytest_instrcount_recognizers(config):
    ...     return [Recognizer(Cache.get.__code__, entries)]

    Where this plugin may be missing, mark it ``@pytest.hookimpl(optionalhook=True)``.
    """
