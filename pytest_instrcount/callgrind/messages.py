"""The answers: messages from processes under Valgrind to the supervisor, and from there to pytest.

They are plain dicts, typed here: a class would have to be imported under Valgrind, where it would be
part of every heap. The orders are in ``orders.py``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

#: from, to: on the clock of `time.monotonic`, with a name
SpanOf: TypeAlias = tuple[str, float, float]

# From the supervisor to pytest.


class Housed(TypedDict):
    """The folder of the run is made; its name in the one that it is in."""

    kind: Literal["housed"]
    name: str


class Refused(TypedDict):
    """No folder can be made for the run; ``why`` and ``fix`` as in `InstrcountError`."""

    kind: Literal["refused"]
    why: str
    fix: str


class Ready(TypedDict):
    """The first zygote could measure."""

    kind: Literal["ready"]


class Fatal(TypedDict):
    """Nothing can be measured."""

    kind: Literal["fatal"]
    why: str


class Broken(TypedDict):
    """The plugin itself has failed, in the supervisor or in a process under Valgrind."""

    kind: Literal["broken"]
    why: str


class Started(TypedDict):
    """The process of an order runs."""

    kind: Literal["started"]
    index: int


class Spent(TypedDict):
    """Wall time; ``index`` is None where it is for all tests."""

    kind: Literal["spent"]
    index: int | None
    spans: list[SpanOf]


class Cpu(TypedDict):
    """CPU seconds of the supervisor and of all that it started."""

    kind: Literal["cpu"]
    seconds: float


class Given(TypedDict):
    """The answer to an order."""

    kind: Literal["result"]
    index: int
    result: Answer


class NotGiven(TypedDict):
    """Why there is no answer to an order; ``slug``, ``why`` and ``detail`` as in `Problem`."""

    kind: Literal["problem"]
    index: int
    slug: str
    why: str
    detail: str


FromSupervisor: TypeAlias = (
    Housed | Refused | Ready | Fatal | Broken | Started | Spent | Cpu | Given | NotGiven
)

# From a process under Valgrind to the supervisor.


class Hello(TypedDict):
    """The process that has taken a line."""

    kind: Literal["hello"]
    pid: str


class Gone(TypedDict):
    """In the place of a message: the channel is closed."""

    kind: Literal["gone"]


class Threads(TypedDict):
    """Threads that are alive, and who the others are if there is more than one."""

    threads: int
    started: list[str]


class ZygoteReady(Threads):
    """``compiled``: modules whose byte code was not there."""

    kind: Literal["ready"]
    compiled: int


class Unready(TypedDict):
    """Why pytest has ended instead of a zygote."""

    kind: Literal["unready"]
    why: str


class Collected(Threads):
    """The tests of a file: their ids, each with what `case_of` says, or why some are missing."""

    kind: Literal["collected"]
    ids: dict[str, str]
    problem: str
    compiled: int
    #: names of imported top-level modules
    modules: list[str]


class Pilot(TypedDict):
    """Counting begins, in process ``pid``; ``warmup`` and ``rounds`` as the test itself wants them."""

    kind: Literal["pilot"]
    pid: str
    warmup: int | None
    #: rounds of so many calls each
    rounds: int | None
    iterations: int


class Ask(TypedDict):
    """A question: how often to repeat the call."""

    kind: Literal["ask"]


class Counted(TypedDict):
    """All counted calls have been made; see `Counter.steps`."""

    kind: Literal["counted"]


class Uncounted(TypedDict):
    """Why the test, which passed, was not counted."""

    kind: Literal["problem"]
    why: str


class Offspring(TypedDict):
    """The number of processes that a counted call starts and waits for."""

    kind: Literal["offspring"]
    number: int


class Remark(TypedDict):
    """The verdict on the test is to say this, too."""

    kind: Literal["remark"]
    text: str


class AskPresentation(TypedDict):
    """Options for the presentation of a failure are asked for."""

    kind: Literal["presentation"]


class Result(TypedDict):
    """A test has run: what its process knows of it."""

    kind: Literal["result"]
    #: reports, and warnings, as pytest serialises them
    reports: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    #: what --setup-show prints
    shown: str
    #: why the test is not counted; "" if it is
    problem: str
    #: whether a count follows, or came before
    expected: bool
    modules: list[str]
    compiled: int
    #: see ``trace_twice``, and ``trace_by_function`` (its key is "rows")
    traced: dict[str, Any] | None
    group: str | None
    extra_info: dict[str, Any]
    #: whether a benchmark fixture was taken and not called
    unused: bool
    remarks: list[str]


class Ended(TypedDict, total=False):
    """The test has ended the session, by pytest.exit or Ctrl-C."""

    ended: Literal["exit", "interrupt"]
    code: int | None
    why: str


class EndedResult(Result, Ended):
    """A result, of a test that may have ended the session."""


FromZygote: TypeAlias = ZygoteReady | Unready | Gone
FromFile: TypeAlias = Collected | Broken | Gone
FromTest: TypeAlias = (
    Pilot | Ask | Counted | Uncounted | Offspring | Remark | AskPresentation | EndedResult | Broken
)


class Answer(EndedResult):
    """A result, with what the supervisor knows of the test."""

    #: paths of the dumps, the last that of the switch, and of the maps of function names
    dumps: list[str]
    names: list[str]
    #: seconds that the test took, fixtures and warm-up included
    seconds: float
    #: seconds of one call that was not repeated since it waits; 0 of one that was
    once: float
    isolation: str
    #: threads that kept it from being forked, and those beside which it was
    threads: list[str]
    beside: list[str]
    #: warm-up and counted calls; None if nothing was counted
    counted: list[int] | None
    #: processes that the counted call started and waited for; None if it did neither
    offspring: int | None
    #: instructions of the first call; 0 if they were not counted, as they are by Python function alone
    first_ir: int
