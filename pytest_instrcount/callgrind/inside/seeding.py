"""The same random numbers in each repetition, and the process whose repetitions they are."""

from __future__ import annotations

import os
import random
import sys
import time
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

#: The generator behind the functions of ``random``, and its own C method of seeding: what
#: ``random.seed(0)`` comes to, with fewer instructions for Valgrind to translate.
_generator: Any = random._inst
_seed_generator = super(random.Random, _generator).seed

#: The module ``time``, but for a clock that stands still.
_no_time = partial(float)
_STILL: Any = SimpleNamespace(**{**vars(time), "perf_counter": _no_time})

#: The process that repeats. A test that forks and returns twice would repeat in both, and fork
#: again in both; the copy ends where the next repetition begins.
_repeating = [0]


def repeat_here() -> None:
    """From now on it is this process that repeats."""
    _repeating[0] = os.getpid()


def seed_random() -> None:
    """Give ``random``, and NumPy's if it is loaded, the same numbers in each repetition."""
    if os.getpid() != _repeating[0]:
        os._exit(0)
    _seed_generator(0)
    _generator.gauss_next = None
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(0)
    seed_trio()


def seed_trio() -> None:
    """Give trio the same order of tasks; it shuffles those that are ready by a generator of its own."""
    trio_run: Any = sys.modules.get("trio._core._run")
    if trio_run is not None:
        trio_run._r.seed(0)


def steady_hypothesis(function: Any) -> None:
    """Give a test of Hypothesis no examples of earlier runs, and no limit of time: all is slower here.

    Its seed was set when Hypothesis was imported. The settings are replaced where Hypothesis's own plugin for
    pytest does it. A method has another instance in each repetition, which Hypothesis takes for an error.
    """
    function = getattr(function, "__func__", function)
    settings: Any = getattr(function, "_hypothesis_internal_use_settings", None)
    if settings is None:
        return
    health = sys.modules["hypothesis"].HealthCheck
    unfit = {health.too_slow, health.differing_executors, *settings.suppress_health_check}
    function._hypothesis_internal_use_settings = type(settings)(
        settings, database=None, deadline=None, suppress_health_check=unfit
    )


def stop_hypothesis_clock() -> None:
    """Have no example of Hypothesis take any time: it adds and sorts the times, which counts would follow."""
    modules = sys.modules.items() if "hypothesis" in sys.modules else ()
    for names in [vars(module) for name, module in modules if name.startswith("hypothesis.")]:
        clocks = [name for name, value in names.items() if value is time.perf_counter]
        names.update(dict.fromkeys(clocks, _no_time))
        if names.get("time") is time:
            names["time"] = _STILL


@dataclass(frozen=True, slots=True)
class RandomState:
    """The state of the generators that ``seed_random`` changes, to be put back."""

    python: Any
    numpy: Any

    @classmethod
    def save(cls) -> RandomState:
        numpy_random = sys.modules.get("numpy.random")
        return cls(random.getstate(), None if numpy_random is None else numpy_random.get_state())

    def restore(self) -> None:
        random.setstate(self.python)
        if self.numpy is not None:
            sys.modules["numpy.random"].set_state(self.numpy)
