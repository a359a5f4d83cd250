"""The account of the run that goes on: one at a time, or one within another."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from pytest_instrcount.host.account.debug import LOG, DebugFolder
from pytest_instrcount.host.account.once import Once
from pytest_instrcount.host.account.records import RECORDS, MeasurementRecord
from pytest_instrcount.host.account.timings import PhaseTime, Span, Timings

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


#: of records, in each account from now on
_limit = RECORDS


class Account:
    """The account of one run."""

    def __init__(self, timings: Timings | None = None, debug: DebugFolder | None = None) -> None:
        self.timings = timings or Timings()
        self.debug = debug
        #: category -> what -> how often
        self.counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
        #: the latest ones, and how many there were in all
        self.records: deque[MeasurementRecord] = deque(maxlen=_limit)
        self.seen = 0
        self.said = Once()
        #: CPU seconds of processes under Valgrind and of their supervisors
        self.cpu_beside = 0.0
        #: phases of other processes that have an account of their own: worker -> rows
        self.elsewhere: dict[str, Sequence[PhaseTime]] = {}
        self._spent: defaultdict[str, defaultdict[str, float]] = defaultdict(
            lambda: defaultdict(float)
        )

    def spent(self, span: Span, nodeid: str = "") -> None:
        """A process under Valgrind did something, for a test or for all."""
        self.timings.add(span)
        if nodeid:
            self._spent[nodeid][span.phase] += span.end - span.start
        LOG.debug("%s %.3f s %s", span.phase, span.end - span.start, nodeid)

    def seconds_of(self, nodeid: str) -> dict[str, float]:
        """Phase -> seconds that processes spent for a test, since this was asked last."""
        return {phase: round(seconds, 6) for phase, seconds in self._spent.pop(nodeid, {}).items()}

    def measured(self, record: MeasurementRecord, detail: str = "") -> None:
        """A measurement was made, or failed."""
        self.seen += 1
        self.records.append(record)
        what = record.problem or record.verdict
        self.counters["first counts"][what] += 1
        LOG.debug("%s: %s, ir %s %s", record.nodeid, what, record.ir, record.why)
        if record.problem and self.debug is not None:
            self.debug.failed(record, detail)

    def close(self) -> None:
        """Take away what was put into other modules."""
        if self.debug is not None:
            self.debug.close()


_open: list[Account] = []
_last = Account()


def open_account(account: Account) -> None:
    """From now on this is the current one, until it is closed."""
    global _last  # noqa: PLW0603 - what a run has left is read after it
    _open.append(account)
    _last = account


def close_account(account: Account) -> None:
    """It is complete; the one before it goes on. A second time does nothing."""
    if account in _open:
        _open.remove(account)
        account.close()


def current() -> Account | None:
    """The account of the run that goes on; None outside of a measured run."""
    return _open[-1] if _open else None


@contextmanager
def phase(name: str, function: str = "") -> Iterator[None]:
    """Until its end, the time of the current run belongs to this phase."""
    account = current()
    if account is None:
        yield
        return
    with account.timings.phase(name, function):
        yield


def timed(
    name: str,
) -> Callable[[Callable[Arguments, Value]], Callable[Arguments, Value]]:
    """Have the time within a function belong to a phase; a decorator.

    >>> @timed("parse")
    ... def read(text):
    ...     return text.split()
    >>> account = Account()
    >>> open_account(account)
    >>> read("a b")
    ['a', 'b']
    >>> close_account(account)
    >>> [(row.phase, row.times) for row in account.timings.rows()][:1]
    [('parse', 1)]
    """

    def decorate(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
        @functools.wraps(function)
        def within(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
            account = current()
            if account is None:
                return function(*args, **kwargs)
            with account.timings.phase(name, function.__qualname__):
                return function(*args, **kwargs)

        return within

    return decorate


def count(category: str, what: str, number: int = 1) -> None:
    """Count something of the current run."""
    account = current()
    if account is not None:
        account.counters[category][what] += number


def keep_logs(scratch: Path) -> None:
    """Before a folder of Valgrind's logs is deleted: copy them, if the user wants that."""
    account = current()
    if account is not None and account.debug is not None:
        account.debug.keep_logs(scratch)


def get_counters() -> dict[str, dict[str, int]]:
    """Category -> what -> how often, of the current run, or of the latest."""
    return {category: dict(found) for category, found in _last.counters.items()}


def get_records() -> list[MeasurementRecord]:
    """The records of the current run, or of the latest, the oldest first."""
    return list(_last.records)


def report() -> str:
    """What took the time of the current run, or of the latest, as a table like that of pstats."""
    # the table is made of what only a report needs
    from pytest_instrcount.host.account.render import render_functions

    return render_functions(_last.timings.rows(by_function=True))


def clear_records() -> None:
    """Forget them."""
    _last.records.clear()
    _last.seen = 0


def set_record_limit(limit: int) -> None:
    """Keep so many records, of the current run and of those to come. Raises ValueError below 0."""
    global _limit  # noqa: PLW0603 - it outlives the account
    if limit < 0:
        raise ValueError(f"the limit is a number of records, not {limit}")
    _last.records = deque(_last.records, maxlen=limit)
    _limit = limit
