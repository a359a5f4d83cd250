"""Random numbers that a test draws are its own: what others draw in between is put back."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keep_random_state() -> Iterator[None]:
    """Put ``random``, and NumPy's generator if it is loaded, back to where they were.

    >>> random.seed(1)
    >>> with keep_random_state():
    ...     drawn = random.random()
    >>> random.random() == drawn
    True
    """
    state = random.getstate()
    numpy: Any = sys.modules.get("numpy.random")
    numpy_state = None if numpy is None else numpy.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        if numpy_state is not None:
            numpy.set_state(numpy_state)
