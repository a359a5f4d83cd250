"""What projects keep for pytest-benchmark and pytest-codspeed, known where they are not installed.

Options in addopts, hooks in a conftest, markers: pytest refuses each that no plugin declares.
"""

from __future__ import annotations

import argparse
from typing import Any

MARKERS = (
    "benchmark: measured under --instrcount; without the fixture, the whole test.",
    "codspeed_benchmark: measured under --instrcount, the whole test.",
)

_FLAGS = (
    "--benchmark-disable-gc",
    "--benchmark-skip",
    "--benchmark-disable",
    "--benchmark-enable",
    "--benchmark-only",
    "--benchmark-autosave",
    "--benchmark-save-data",
    "--benchmark-verbose",
    "--benchmark-quiet",
    "--codspeed",
)
#: Option -> how many values it takes, as argparse says it.
_VALUED: dict[str, Any] = {
    "--benchmark-min-time": None,
    "--benchmark-max-time": None,
    "--benchmark-min-rounds": None,
    "--benchmark-precision": None,
    "--benchmark-confidence": None,
    "--benchmark-timer": None,
    "--benchmark-calibration-precision": None,
    "--benchmark-warmup": "?",
    "--benchmark-warmup-iterations": None,
    "--benchmark-save": None,
    "--benchmark-json": None,
    "--benchmark-compare": "?",
    "--benchmark-compare-fail": "+",
    "--benchmark-cprofile": None,
    "--benchmark-cprofile-loops": None,
    "--benchmark-cprofile-top": None,
    "--benchmark-cprofile-dump": "?",
    "--benchmark-storage": None,
    "--benchmark-netrc": "?",
    "--benchmark-sort": None,
    "--benchmark-group-by": None,
    "--benchmark-columns": None,
    "--benchmark-name": None,
    "--benchmark-time-unit": None,
    "--benchmark-histogram": "?",
    "--codspeed-mode": None,
    "--codspeed-warmup-time": None,
    "--codspeed-max-time": None,
    "--codspeed-max-rounds": None,
}


def declare_options(parser: Any) -> None:
    """Declare those of their options that no plugin has declared; they have no effect."""
    group = parser.getgroup("instrcount")
    declared = {
        name for each in parser._groups for option in each.options for name in option.names()
    }
    for name in (*_FLAGS, *_VALUED):
        if name in declared:
            continue
        if name in _FLAGS:
            group.addoption(name, action="store_true", default=False, help=argparse.SUPPRESS)
        else:
            group.addoption(name, nargs=_VALUED[name], default=None, help=argparse.SUPPRESS)


def plugins_inside(plugins: list[str]) -> list[str]:
    """What ``-p`` says inside Valgrind: pytest-benchmark is not even loaded there.

    It runs git to declare its options, and what it reads from there is another each time.
    """
    kept = [name for name in plugins if not name.startswith("pytest_benchmark")]
    return [*kept, "no:benchmark"]


class BenchmarkHooks:
    """The hooks of pytest-benchmark, as ``hookspec.py`` of 5.3 has them; nobody calls them."""

    def pytest_benchmark_scale_unit(
        self, config: Any, unit: Any, benchmarks: Any, best: Any, worst: Any, sort: Any
    ) -> None:
        """Not called."""

    def pytest_benchmark_generate_machine_info(self, config: Any) -> None:
        """Not called."""

    def pytest_benchmark_update_machine_info(self, config: Any, machine_info: Any) -> None:
        """Not called."""

    def pytest_benchmark_generate_commit_info(self, config: Any) -> None:
        """Not called."""

    def pytest_benchmark_update_commit_info(self, config: Any, commit_info: Any) -> None:
        """Not called."""

    def pytest_benchmark_group_stats(self, config: Any, benchmarks: Any, group_by: Any) -> None:
        """Not called."""

    def pytest_benchmark_generate_json(
        self, config: Any, benchmarks: Any, include_data: Any, machine_info: Any, commit_info: Any
    ) -> None:
        """Not called."""

    def pytest_benchmark_update_json(self, config: Any, benchmarks: Any, output_json: Any) -> None:
        """Not called."""

    def pytest_benchmark_compare_machine_info(
        self, config: Any, benchmarksession: Any, machine_info: Any, compared_benchmark: Any
    ) -> None:
        """Not called."""
