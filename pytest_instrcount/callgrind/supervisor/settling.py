"""Decides the outcome of a test whose process has ended: its result, a problem, or another attempt."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pytest_instrcount.callgrind.channel import HUNG_UP
from pytest_instrcount.callgrind.endings import describe_status
from pytest_instrcount.callgrind.messages import Answer, EndedResult, Given, NotGiven
from pytest_instrcount.callgrind.supervisor.runs import Run

#: A test whose process was killed is measured again, so often in all.
MOST_TRIES = 3

#: In the place of a message: the test is measured once more.
AGAIN: Final = "again"

Decision: TypeAlias = Given | NotGiven | Literal["again"]


@dataclass(frozen=True, slots=True)
class Ended:
    """A run whose process is gone."""

    run: Run
    #: its wait status; None if its parent is gone as well
    status: int | None
    #: where it ran, in words
    place: str
    #: what it said last, looked for only where it is told
    words: Callable[[], str]
    #: whether byte code that is missing is written
    writes_byte_code: bool

    def message(self) -> Decision:
        """The message to pytest, or `AGAIN`."""
        for rule in _RULES:
            found = rule(self)
            if found is not None:
                return found
        return self._died()

    def _again(self) -> Decision:
        """Once more, with no other test beside it."""
        self.run.test.suspect = True
        return AGAIN

    def _problem(self, why: str, detail: str = "", slug: str = "not-measured") -> NotGiven:
        index = self.run.test.index
        return {"kind": "problem", "index": index, "slug": slug, "why": why, "detail": detail}

    def _needs_threads(self) -> Decision | None:
        """It was forked where threads were alive, and may need one of them."""
        if not threads_beside(self.run) or _has_passed(self.run):
            return None
        test = self.run.test
        test.order = replace(test.order, forks=False)
        return AGAIN

    def _was_disturbed(self) -> Decision | None:
        """Its output is lost, or it could not write."""
        return self._again() if self.run.disturbed and self._may_try else None

    def _is_late(self) -> Decision | None:
        if not self.run.timed_out or self._has_counted:
            return None
        limit = f"{self.run.test.order.timeout:g} s"
        return self._problem(
            f"it did not end within {limit} {self.place}", self.words(), slug="timeout"
        )

    def _has_failed(self) -> Decision | None:
        if not self.run.failed:
            return None
        slug, why = self.run.failed
        if slug != "channel" and self._may_try:
            return self._again()  # somebody's files may have filled the disk
        return self._problem(why, self.words(), slug=slug)

    def _hung_up(self) -> Decision | None:
        if not (self.run.hung_up or self.status == HUNG_UP << 8) or self._has_counted:
            return None
        why = "it closed all descriptors, with the plugin's among them: no result can be had"
        return self._problem(why, self.words(), slug="channel")

    def _has_result(self) -> Decision | None:
        run, test, result = self.run, self.run.test, self.run.result
        if result is None:
            return None
        if result["kind"] == "broken":
            return self._problem(f"{_failing(result['why'])} {self.place}: {result['why']}")
        if result["compiled"] and not test.recompiled and self.writes_byte_code:
            test.recompiled = True
            return AGAIN
        lost = result["expected"] and (run.counted is None or not run.has_all_dumps)
        if lost and not run.problem and not result["problem"]:
            if self._may_try:
                return self._again()  # killed between its result and its count
            why = f"its process {self._ending} while it was counted{self._or_full}"
            run.problem = f"{why}\n{self.words()}".strip()
        return {"kind": "result", "index": test.index, "result": _answer(run, result)}

    def _was_killed(self) -> Decision | None:
        """Somebody's doing (or the kernel's), not the test's."""
        if self.status not in (None, signal.SIGKILL) or not self._may_try:
            return None
        return self._again() if self.status is None else AGAIN

    def _died(self) -> Decision:
        return self._problem(
            f"its process {self._ending} before the test ended",
            self.words() or self.run.test.why,
            slug="process-died",
        )

    @property
    def _ending(self) -> str:
        return "went down with the zygote" if self.status is None else describe_status(self.status)

    @property
    def _or_full(self) -> str:
        """Where it has killed itself, which it does after its last dump: that may have had no space."""
        return ", or TMPDIR is full (df -h)" if self.status == signal.SIGKILL else ""

    @property
    def _may_try(self) -> bool:
        return self.run.test.tries < MOST_TRIES

    @property
    def _has_counted(self) -> bool:
        return self.run.result is not None and self.run.counted is not None


#: In this order; the first that says something decides.
_RULES: tuple[Callable[[Ended], Decision | None], ...] = (
    Ended._needs_threads,
    Ended._was_disturbed,
    Ended._is_late,
    Ended._has_failed,
    Ended._hung_up,
    Ended._has_result,
    Ended._was_killed,
)


def threads_beside(run: Run) -> Sequence[str]:
    """The threads that were alive where a test was forked all the same."""
    if run.file.only is not None or not run.test.order.forks:
        return ()
    collected = run.file.collected
    return run.file.valgrind.started or (collected["started"] if collected else ())


def _answer(run: Run, result: EndedResult) -> Answer:
    """A result, with what is known of the run beside."""
    collected = run.file.collected
    return {
        **result,
        "dumps": run.counted_dumps,
        "names": run.names,
        "seconds": time.monotonic() - run.times["started"],
        "once": run.once,
        "isolation": "process" if run.file.only else "fork",
        "threads": list(run.test.started),
        "beside": list(threads_beside(run)),
        "counted": run.counted,
        "modules": result["modules"] + (collected["modules"] if collected else []),
        "problem": run.problem or result["problem"],
        "offspring": run.offspring,
        "first_ir": run.first_ir,
        "remarks": [*result["remarks"], *run.remarks],
    }


def _has_passed(run: Run) -> bool:
    """True if a test has passed in all its phases, and was counted."""
    result = run.result
    if result is None or result["kind"] != "result" or run.counted is None or run.problem:
        return False
    return all(report["outcome"] == "passed" for report in result["reports"])


def _failing(why: str) -> str:
    # for the report of its end there is none, either
    return "it left no memory" if why.startswith("MemoryError") else "the plugin failed"
