"""The plugin's account of its own run: where the time went, what was counted, what failed."""

from pytest_instrcount.host.account.current import (
    clear_records,
    get_counters,
    get_records,
    report,
    set_record_limit,
)
from pytest_instrcount.host.account.records import MeasurementRecord

__all__ = [
    "MeasurementRecord",
    "clear_records",
    "get_counters",
    "get_records",
    "report",
    "set_record_limit",
]
