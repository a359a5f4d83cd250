"""Pytest's private names: here and nowhere else, each with what would make it unnecessary.

Tried with the oldest pytest that is supported and with 9.2. ``tests/unit/test_imports.py`` finds the names
elsewhere.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO
from unittest import TestCase

import pytest


def fixture_info(item: pytest.Item) -> Any:
    """Names and definitions of a test's fixtures (``argnames``, ``name2fixturedefs``).

    Public is only ``fixturenames``, without who defines them and who is asked for.
    """
    return item._fixtureinfo  # type: ignore[attr-defined]


def ensure_request(item: pytest.Item) -> None:
    """Give a test the request that its set-up fills; pytest's own protocol does, and none else."""
    plain: Any = item
    if not plain._request:  # a plugin that runs a test again leaves it without one
        plain._initrequest()


#: What pytest has in a test function, from 8.0 on.
_OF_PYTEST = """
    _explicit_tearDown _fixtureinfo _instance _obj _report_sections _request _testcase callspec
    extra_keyword_matches fixturenames fspath funcargs keywords originalname own_markers path stash
    user_properties
"""


class Renewal:
    """A test as it is now, before its first run, to be made anew as often as it is to be run.

    What a plugin or the test's own class gave it is there again. Where a plugin replaced a method, which may
    hold on to its instance, that is kept, and its attributes are reset. A test that was given nothing is made
    as pytest makes one: to copy it would move counts.
    """

    def __init__(self, item: pytest.Function) -> None:
        self._item: Any = item
        self._instance: Any = None
        self._markers, self._keywords = list(item.own_markers), dict(item.keywords)
        parent: Any = item.parent
        own = _function(getattr(getattr(parent, "obj", None), item.originalname, None))
        values = dict(vars(item))
        body = values.get("_obj")
        is_own = body is None or _function(body) is own
        self._kept: Any = None
        if is_own and _was_given_nothing(item):
            return
        kept = {"values": values, "stash": item.stash._storage}
        if is_own and item.cls is not None:
            values.pop("_instance", None)
            if hasattr(body, "__self__"):
                values.pop("_obj", None)
        elif (
            item.cls and isinstance(item.instance, item.cls) and hasattr(item.instance, "__dict__")
        ):
            self._instance = item.instance
            kept["instance"] = vars(item.instance)
        self._kept = _apart(kept, {})

    def __call__(self) -> pytest.Function:
        """The test, with no fixture set up."""
        new = self._made() if self._kept is None else self._copied()
        new.own_markers[:] = self._markers
        new.keywords.update(self._keywords)
        return new  # type: ignore[no-any-return]

    def _made(self) -> Any:
        item = self._item
        return type(item).from_parent(
            item.parent,
            name=item.name,
            callspec=getattr(item, "callspec", None),
            fixtureinfo=fixture_info(item),
            originalname=item.originalname,
        )

    def _copied(self) -> Any:
        new, kept = copy.copy(self._item), _apart(self._kept, {})
        vars(new).clear()
        vars(new).update(kept["values"])
        new.stash = new._store = pytest.Stash()
        new.stash._storage.update(kept["stash"])
        new.keywords = type(self._item.keywords)(new)
        if self._instance is not None:
            vars(self._instance).clear()
            vars(self._instance).update(kept["instance"])
        new._initrequest()
        new.funcargs.update(kept["values"]["funcargs"])
        return new


def _was_given_nothing(item: pytest.Function) -> bool:
    kinds = (each for each in type(item).__mro__ if not each.__module__.startswith("_pytest."))
    return (
        vars(item).keys() <= {*_OF_PYTEST.split()}
        and item.fixturenames == fixture_info(item).names_closure
        and not (
            item.funcargs or len(item.stash) or any(vars(each).get("__slots__") for each in kinds)
        )
    )


def _function(body: Any) -> Any:
    return getattr(body, "__func__", body)


def _apart(value: Any, known: dict[int, Any]) -> Any:
    """Containers in containers, each a copy; all else is the same. ``known``: copies by what they are of."""
    if not isinstance(value, (dict, list, set, deque)):
        return value
    if id(value) in known:
        return known[id(value)]
    new: Any = known.setdefault(id(value), copy.copy(value))
    # the methods of the classes themselves: a Counter adds up what it is updated with
    if isinstance(value, dict):
        dict.update(new, {name: _apart(each, known) for name, each in value.items()})
    elif not isinstance(value, set):
        kind: Any = list if isinstance(value, list) else deque
        kind.clear(new)
        kind.extend(new, [_apart(each, known) for each in value])
    return new


def has_setups(session: pytest.Session) -> bool:
    """True if anything is set up that a later test may share."""
    state: Any = session._setupstate
    return bool(state.stack)


def end_setups(session: pytest.Session, nextitem: pytest.Item | None) -> pytest.CallInfo[None]:
    """End what is set up and ``nextitem`` does not share.

    Public is only ``runtestprotocol`` with its hooks, which run for a test that is to be torn down.
    """
    return pytest.CallInfo.from_call(
        lambda: session._setupstate.teardown_exact(nextitem),
        when="teardown",
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )


def keep_nodeid(item: pytest.Item) -> Callable[[], None]:
    """Make a function that restores a test's present nodeid. The public API can only read it."""
    name = "_id" if hasattr(item, "_id") else "_nodeid"  # pytest 9.2 and later; 8.0 to 9.1
    kept = getattr(item, name)
    return lambda: setattr(item, name, kept)


def terminal_width(reporter: pytest.TerminalReporter) -> int:
    """Columns of the terminal as pytest's own lines use them. Public is none."""
    return int(reporter._tw.fullwidth)


def end_line(reporter: pytest.TerminalReporter) -> None:
    """Begin a new line, if pytest's dots stand in this one.

    The public ``ensure_newline`` forgets them once it was called: the file's name is not written again.
    """
    reporter.ensure_newline()
    if reporter._tw.width_of_current_line:
        reporter.line("")


def renew_tmp_path_factory(config: pytest.Config, basetemp: str) -> None:
    """Have ``tmp_path`` begin afresh in ``basetemp``: its factory has been made with the configuration."""
    plain: Any = config
    factory = getattr(config, "_tmp_path_factory", None)
    if factory is not None:
        config.option.basetemp = basetemp
        plain._tmp_path_factory = type(factory).from_config(config, _ispytest=True)


@contextmanager
def before_configuration(config: pytest.Config) -> Iterator[None]:
    """While it lasts, a conftest below rootdir is taken as one that comes before the configuration.

    Every marker can be used, which its ``pytest_configure`` may be about to declare, and it can name
    ``pytest_plugins``. pytest outside has checked the same file.
    """
    marks: Any = pytest.mark
    manager: Any = config.pluginmanager
    checked, marks._config = marks._config, None
    configured, manager._configured = manager._configured, False
    try:
        yield
    finally:
        marks._config, manager._configured = checked, configured


def on_rewritten(
    note: Callable[[CodeType], CodeType], imported: Callable[[ModuleType], None]
) -> None:
    """Have ``note`` see, and replace, the code of each file that is compiled with rewritten assertions.

    ``imported`` gets each module that was imported so.
    """
    rewrite: Any = importlib.import_module("_pytest.assertion.rewrite")
    rewriting = rewrite._rewrite_test

    def noted(path: Path, config: pytest.Config) -> Any:
        status, code = rewriting(path, config)
        return status, note(code)

    rewrite._rewrite_test = noted
    hook = rewrite.AssertionRewritingHook
    execute = hook.exec_module

    def executed(self: Any, module: ModuleType) -> None:
        execute(self, module)
        imported(module)

    hook.exec_module = executed


def leave_readline_out() -> None:
    """Have pytest not import readline, as it does for the sake of another one than GNU's, and with pdb.

    The terminal library below readline looks for its databases again when a second begins: whether
    one began while it was imported would be in the heap of every test.
    """
    capture: Any = importlib.import_module("_pytest.capture")
    capture._readline_workaround = lambda: None  # some versions of pytest have none
    if sys.version_info >= (3, 13) and "readline" not in sys.modules:
        sys.modules["readline"] = None  # pdb imports what completes names, which does without
        importlib.import_module("pdb")
        del sys.modules["readline"]


def explain_assertions(config: pytest.Config, verbose: int) -> None:
    """Have assertions of this test explained as with ``-v``, which fixtures and bodies see nothing of.

    Not in a fork, which counts.
    """
    util: Any = importlib.import_module("_pytest.assertion.util")
    compare, option, pid = util._reprcompare, config.option, os.getpid()

    def at_length(explain: Callable[..., Any], *args: Any) -> Any:
        before, option.verbose = option.verbose, verbose if os.getpid() == pid else 0
        try:
            return explain(*args)
        finally:
            option.verbose = before

    util._config = copy.copy(config)
    util._config.get_verbosity = partial(at_length, config.get_verbosity)
    if compare is not None:  # None where assertions are plain
        util._reprcompare = partial(at_length, compare)


def make_reporter(config: pytest.Config, sink: TextIO) -> pytest.TerminalReporter:
    """A reporter of pytest's own that writes to ``sink``; before 8.4 its class is not public."""
    terminal: Any = importlib.import_module("_pytest.terminal")
    return terminal.TerminalReporter(config, sink)  # type: ignore[no-any-return]


def note_failed_subtest(item: pytest.Item, report: Any) -> None:
    """Have the test fail that this sub-test is of, but a ``TestCase``'s; pytest 8 has no sub-tests."""
    if issubclass(getattr(item, "cls", None) or object, TestCase):
        return
    with suppress(ImportError):
        subtests: Any = importlib.import_module("_pytest.subtests")
        failed = item.config.stash[subtests.failed_subtests_key]
        failed[getattr(report, "id", report.nodeid)] += 1


def failure(path: str, line: int, text: str) -> Any:
    """What failed a test, as a report holds an exception: ``text`` is shown, and its first line in summaries.

    Of a plain text all lines stand in the summary of a run in CI, and in the attribute of a JUnit report.
    Where a terminal lacks a letter, pytest escapes the whole entry: an end of a line is one of its own.
    """
    code: Any = importlib.import_module("_pytest._code.code")
    parts = [part for line in text.split("\n") for part in (line, "\n")]
    shown = code.ReprTraceback([code.ReprEntryNative([part]) for part in parts], None, "native")
    return code.ReprExceptionInfo(shown, code.ReprFileLocation(path, line, text.partition("\n")[0]))
