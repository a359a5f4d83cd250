"""The options on the command line and their ini twins, declared. Light: read at every start."""

from __future__ import annotations

from typing import Any

import pytest

DEFAULT_TIMEOUT = 600.0

POLICIES = ("changed", "all", "missing", "failing")
MISSING = ("auto", "fail", "note")
INCOMPARABLE = ("auto", "warn", "fail")
IMPROVED = ("note", "fail")
ISOLATIONS = ("fork", "process")
BLAME = ("auto", "trampolines", "tracer", "off")
REPORT_TYPES = ("json", "html", "markdown", "markdown-append", "speedscope", "collapsed")
BACKENDS = ("auto", "monitoring", "setprofile")
#: What counts.
COUNTERS = ("callgrind", "auto", "bytecode")

#: Set on the options of the pytest inside: whether benchmarks are adopted.
ADOPTS = "adopts_benchmarks"

#: What ``getini`` raises for a value that is none: pytest 9.2 the first, others one of the others.
INI_ERRORS = (pytest.UsageError, ValueError, TypeError)

MARKER_LINE = (
    "instrcount(max_delta=None, max_allocs_delta=None, warmup=None, calls=None, timeout=None, "
    "isolation=None, max_ir=None, max_ratio=None, scaling=None, sizes=None): "
    "count the instructions of this test under --instrcount and fail when they grow past "
    'max_delta ("1%", "5000ir" or both, "1%|5000ir"), or are more than a budget: max_ir=20_000, '
    'max_ratio=("test_other", 0.5), scaling="n log n".'
)

TRACE_MARKER_LINE = (
    "trace_profile(tracer='python', c_calls=False, phases=('call',), max_delta=None, ignore=None, "
    "max_calls=None, max_memory_delta=None): trace the calls of this test's body; under "
    "--instrcount, fail when one function calls another more often than in the baseline, or for more "
    "than "
    'max_calls={"module:function": 3}.'
)


#: Options by which tests run in this process: to be looked at, or to have snapshots written.
NATIVE_OPTIONS = "--pdb, --trace, --snapshot-update, --inline-snapshot"
#: What is said where one of them was given.
RAN_NATIVELY = f"nothing is measured under {NATIVE_OPTIONS}: the tests ran natively"
# what inline-snapshot writes snapshots into tests for
_INLINE = frozenset(("create", "fix", "review", "trim", "update"))


def runs_natively(config: pytest.Config) -> bool:
    """True if one of `NATIVE_OPTIONS` was given. With ``-p no:debugging`` there are no first two."""
    inline = str(config.getoption("inline_snapshot", "")).split(",")
    flags = ("usepdb", "trace", "update_snapshots")
    return any(config.getoption(name, False) for name in flags) or not _INLINE.isdisjoint(inline)


def uses_xdist(option: object) -> bool:
    """True if pytest-xdist deals out the tests; a project may have an option ``--dist`` of its own."""
    return hasattr(option, "numprocesses") and getattr(option, "dist", "no") != "no"


def leave_snapshots(config: pytest.Config) -> None:
    """Have syrupy not take for unused what tests use under Valgrind: it would fail the run."""
    for name in ("disable_unused_snapshots", "warn_unused_snapshots"):
        if hasattr(config.option, name):
            setattr(config.option, name, True)


def is_switched_on(config: pytest.Config) -> bool:
    """True if the ini setting says to measure. Raises pytest.UsageError for what is no yes or no."""
    return _switch(config, "instrcount", "pytest -o instrcount=true")


def _switch(config: pytest.Config, name: str, fix: str) -> bool:
    """The value of an ini setting that is true or false."""
    try:
        return bool(config.getini(name))
    except INI_ERRORS as error:
        raise pytest.UsageError(
            f"instrcount: wrong settings [settings]\n{name}: {error}: write true or false, like\n"
            f"  fix: {fix}"
        ) from None


def asks_to_measure(config: pytest.Config, option: object) -> bool:
    """True if the user wants a measured run. ``option`` is what the command line says."""
    # the ini is read in any case: a value that is none is to be told at once
    names = (
        "instrcount_update_baseline",
        "instrcount_update_inline",
        "instrcount_prune",
        "instrcount_only",
    )
    asked = is_switched_on(config) or any(getattr(option, name) for name in ("instrcount", *names))
    asked = asked or getattr(option, "instrcount_against", None) is not None
    return asked and not getattr(option, "instrcount_skip")  # noqa: B009 - it is anything


def adopts_benchmarks(config: pytest.Config, option: object) -> bool:
    """True if benchmarks of other plugins are looked at as ours, to be measured or to be skipped.

    Inside Valgrind an option says what was found outside.
    """
    found = getattr(option, ADOPTS, None)
    if found is not None:
        return bool(found)
    fix = "pytest --instrcount -o instrcount_adopt_benchmarks=false"
    adopts = _switch(config, "instrcount_adopt_benchmarks", fix)
    skips = bool(getattr(option, "instrcount_skip"))  # noqa: B009 - it is anything
    return adopts and (skips or asks_to_measure(config, option))


def add_options(parser: pytest.Parser) -> None:
    """Declare options and their ini twins. An option that is not given is None or False."""
    group = parser.getgroup("instrcount", "instruction counts under Valgrind's Callgrind")

    def add(name: str, help_: str, *, default: object = None, **kwargs: Any) -> None:
        """One with a value is written as in ``--help``: "name=VALUE"."""
        name, _, metavar = name.partition("=")
        kwargs |= {"metavar": metavar} if metavar else {}
        group.addoption(f"--{name}", help=help_, default=default, **kwargs)

    def add_flag(name: str, help_: str) -> None:
        add(name, help_, action="store_true", default=False)

    def add_with_ini(name: str, help_: str, **kwargs: Any) -> None:
        add(name, help_, **kwargs)
        shown = help_.replace("\n", " ").replace("%%", "%")  # no format here
        parser.addini(name.partition("=")[0].replace("-", "_"), shown, default="")

    add(
        "instrcount",
        "Measure marked tests under Callgrind and compare them with their baselines",
        action="store_true",
    )
    parser.addini("instrcount", "Measure marked tests on every run", type="bool", default=False)
    add_flag(
        "instrcount-update-baseline",
        "Write what was measured as the new baselines, in CI too (implies --instrcount)",
    )
    add_flag(
        "instrcount-update-inline",
        "Write what tests cost into their markers, as max_ir, for use without baselines (implies "
        "--instrcount)",
    )
    add_with_ini(
        "instrcount-update-policy",
        "Which baselines an update writes: changed, all, missing, or failing (default: changed)",
        choices=POLICIES,
    )
    add(
        "instrcount-reason=TEXT",
        "Why an update changes baselines, in one line; kept in their ledgers",
    )
    add_with_ini(
        "instrcount-reason-above=PERCENT",
        "An update that moves a test by more than this needs a reason, like 5%% (default: none does)",
    )
    add_flag(
        "instrcount-prune",
        "Delete baselines whose test is gone (implies --instrcount; whole runs only)",
    )
    add_flag(
        "instrcount-shard",
        "An update of some of the tests, to be merged with others: also write what the merge needs",
    )
    add_flag(
        "instrcount-init",
        "Write a first job for CI, which needs no baselines, and run no test",
    )
    add_flag("instrcount-only", "Run the measured tests alone (implies --instrcount)")
    add_flag(
        "instrcount-skip",
        "Leave out the tests that --instrcount would measure; nothing is measured",
    )
    add(
        "instrcount-against=REF",
        "Measure the same tests of this commit and compare with that, not with baselines (implies "
        "--instrcount)",
    )
    parser.addini(
        "instrcount_against_build",
        "Command that builds the files of the commit of --instrcount-against, run in their folder",
        default="",
    )
    add_with_ini(
        "instrcount-max-delta=LIMIT",
        'Growth that a test is allowed: "1%%", "5000ir" or "1%%|5000ir" (default: 1%%)',
    )
    add_with_ini(
        "instrcount-missing",
        "A test without a baseline: fail, note, or auto: fail in CI (default: auto)",
        choices=MISSING,
    )
    add_with_ini(
        "instrcount-incomparable",
        "A baseline of another environment: warn, fail, or auto: fail in CI (default: auto)",
        choices=INCOMPARABLE,
    )
    parser.addini(
        "instrcount_allow",
        "Why a test may miss the comparison with its baseline in CI: gone, uncollected, unmarked, "
        "skipped, uncounted, warmup, isolation",
        type="args",
    )
    add_with_ini(
        "instrcount-improved",
        "A test that shrank by more than its limit: note or fail (default: note)",
        choices=IMPROVED,
    )
    add_with_ini(
        "instrcount-baseline-dir=DIR",
        "Folder of the baselines, from rootdir (default: instrcount_baselines)",
    )
    add(
        "instrcount-report=TYPE:PATH",
        f"Write a report; TYPE is one of {', '.join(REPORT_TYPES)}. Can be given more than once",
        action="append",
    )
    add(
        "instrcount-keep=DIR",
        "Keep Callgrind's profile of each measured test in this folder, and both sides of a failure",
    )
    add(
        "instrcount-bundle=PATH",
        "Write everything about the failures, if any, into one .json.gz or .json file",
    )
    add_flag("instrcount-timings", "Say at the end where the time of a measured run went")
    add("instrcount-timings-csv=PATH", "Write these timings as CSV, by function")
    add(
        "instrcount-debug=DIR",
        "Keep logs and a record of each failed measurement in a new folder below this one",
    )
    add_with_ini(
        "instrcount-blame",
        "How Python functions are separated to find the cause of a change: auto, trampolines, tracer or "
        "off (default: auto)",
        choices=BLAME,
    )
    add(
        "trace-profile=DIR",
        "Write a trace of each test that the trace_profile marker or fixture traces",
    )
    add_with_ini(
        "instrcount-trace-backend",
        "How calls are traced: auto, monitoring (3.12 and later) or setprofile (default: auto)",
        choices=BACKENDS,
    )
    add_with_ini(
        "instrcount-trace-tolerance=LIMIT",
        'Growth of traced calls that is allowed, in all and of each function: "2%%" or 5 (default: 0)',
    )
    add_with_ini(
        "instrcount-backend",
        "What counts: callgrind; auto: callgrind, or nothing where there is no Valgrind; bytecode: "
        "a rough local gate without Valgrind (default: callgrind)",
        choices=COUNTERS,
    )
    add_with_ini("instrcount-valgrind=PATH", "The valgrind to run (default: the one on PATH)")
    add_with_ini(
        "instrcount-timeout=SECONDS",
        f"Longest time for one test under Valgrind (default: {DEFAULT_TIMEOUT:g})",
    )
    add_with_ini(
        "instrcount-warmup=CALLS",
        "Calls before the counted ones (default: chosen by the cost of a call)",
    )
    add_with_ini("instrcount-calls=CALLS", "Counted calls (default: chosen by the cost of a call)")
    add_with_ini(
        "instrcount-isolation",
        "fork: from a process that has the test's file imported;\n"
        "process: a process of its own (default: fork)",
        choices=ISOLATIONS,
    )
    parser.addini(
        "instrcount_adopt_benchmarks",
        "Measure benchmarks of pytest-benchmark and pytest-codspeed, too",
        type="bool",
        default=True,
    )
    parser.addini(
        "instrcount_env", "Environment variables that tests see under Valgrind", type="args"
    )
    parser.addini(
        "instrcount_recognizers",
        "Classes whose objects a trace tells apart, as package.module.Class",
        type="args",
    )
    parser.addini(
        "verbosity_instrcount", "Verbosity of the instrcount section alone", default="auto"
    )
