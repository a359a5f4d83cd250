"""The command that accepts what a run has measured: what it needs of the command line, and no more."""

from __future__ import annotations

import os
import re
import shlex
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_instrcount.gate.gate import NEVER_WRITTEN, Verdict

UPDATE = "--instrcount-update-baseline"
_PRUNE = "--instrcount-prune"
_POLICY = "--instrcount-update-policy"

#: More tests than these are not named one by one; nor are more files.
_MOST_NAMES = 5

# What neither selects tests nor changes what they do: how the run is shown, where it stops, what
# fails it. All else stays, since options of other plugins and of a conftest may matter.
_NEEDLESS_FLAGS = f"""
    --cache-clear --clean-durations --debug --disable-pytest-warnings --disable-warnings --exitfirst
    --failed-first --ff --fold-skipped --force-short-summary --full-trace --instrcount
    --instrcount-prune --instrcount-shard --instrcount-timings --instrcount-update-inline --last-failed
    --lf --new-first --nf --no-fold-skipped --no-header --no-showlocals --no-summary --quiet --setup-show
    --showlocals --stepwise --stepwise-reset --stepwise-skip --store-durations --sw --sw-reset --sw-skip
    --verbose {UPDATE}
"""
_NEEDLESS_VALUED = f"""
    --capture --code-highlight --color --debug --durations --durations-min --instrcount-bundle
    --instrcount-debug --instrcount-improved --instrcount-incomparable --instrcount-keep --instrcount-max-delta
    --instrcount-missing --instrcount-reason --instrcount-reason-above --instrcount-report
    --instrcount-timings-csv --instrcount-trace-tolerance
    --junit-prefix --junit-xml --junitprefix --junitxml --last-failed-no-failures --lfnf
    --log-cli-level --log-file --log-file-level --maxfail --pastebin --show-capture --tb
    --trace-profile --verbosity --xfail-tb -r {_POLICY}
"""
# What selects tests; not needed where they are named.
_SELECTING_VALUED = """
    --deselect --durations-path --group --ignore --ignore-glob --num-shards --shard-id
    --splits --splitting-algorithm --test-group --test-group-by --test-group-count
    --test-group-random-seed -k -m
"""
#: Options whose value is a number.
_OF_SHARDS = ("--splits", "--group", "--num-shards", "--shard-id")
# Stays, with a value that may be a word of its own.
_NEEDED_VALUED = """
    --basetemp --config-file --confcutdir --import-mode --instrcount-against --instrcount-backend
    --instrcount-baseline-dir
    --instrcount-blame --instrcount-calls --instrcount-isolation --instrcount-timeout
    --instrcount-trace-backend --instrcount-valgrind --instrcount-warmup --override-ini
    --pythonwarnings --rootdir
    -W -c -n -o -p
"""
_FLAGS = frozenset(_NEEDLESS_FLAGS.split())
_VALUED = frozenset(_NEEDLESS_VALUED.split())
_SELECTING = frozenset(_SELECTING_VALUED.split())
_WITH_VALUE = _VALUED | _SELECTING | frozenset(_NEEDED_VALUED.split())
_SHORT_FLAGS = "hlqsvx"
#: Of Python: what comes before a module's name, or code, and options whose value is a word of its own.
_MODULE = re.compile(r"(-[bBdEiIOPqRsSuvx]*[mc])(.*)", re.DOTALL)
_PYTHON_VALUED = re.compile(r"-[bBdEiIOPqRsSuvx]*[XW]|--check-hash-based-pycs")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The arguments that the user typed after ``pytest``, and their values as parsed by pytest."""

    words: tuple[str, ...]
    #: those of them that name files, folders and tests
    names: frozenset[str]
    #: the policy of an update without an option
    policy: str = "changed"
    #: whether -k or -m stand in the ini, too: then those of the command line have replaced them
    selects_always: bool = False
    #: whether --lf or its like left tests out, which a second run would not leave out
    by_history: bool = False
    #: how pytest was started
    program: tuple[str, ...] = ("pytest",)

    def needed(self, *, selecting: bool) -> list[str]:
        """The words that another run needs; ``selecting``: also those that select tests.

        Names come first: an option of a plugin may take the word behind it for its value.

        >>> typed = CommandLine(("-xq", "-p", "mine", "--tb=short", "-k", "a", "t.py"), frozenset(["t.py"]))
        >>> typed.needed(selecting=False), typed.needed(selecting=True)
        (['-p', 'mine'], ['t.py', '-p', 'mine', '-k', 'a'])
        """
        needed = [
            (name, words)
            for name, words in self._options()
            if self._is_needed(name, words, selecting=selecting)
        ]
        needed.sort(key=lambda each: each[0] != "" or each[1][0] not in self.names)
        return [word for _, words in needed for word in words]

    def _options(self) -> Iterator[tuple[str, list[str]]]:
        """Name and words of each option; "" for any other word, "--" for all that is behind one."""
        left = deque(self.words)
        while left:
            word = left.popleft()
            if word == "--":
                yield word, [word, *left]
                return
            if not word.startswith("-"):
                yield "", [word]
                continue
            if not word.startswith("--"):
                word = _without_flags(word)
            if not word or word in _FLAGS:
                continue
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            with_value = word == name and name in _WITH_VALUE and left
            yield name, [word, left.popleft()] if with_value else [word]

    def _is_needed(self, name: str, words: Sequence[str], *, selecting: bool) -> bool:
        if name in ("-k", "-m") and self.selects_always:
            return True
        if name in _OF_SHARDS and not words[-1].removeprefix(f"{name}=").isdecimal():
            return True  # the project's own
        if name in _VALUED:
            return False
        word = words[0]
        selects = name == "--" or name in _SELECTING or word in self.names or word[:1] == "@"
        return selecting or not selects

    @property
    def selects(self) -> bool:
        """True if some tests were asked for, not all that there are."""
        return self.by_history or self.needed(selecting=True) != self.needed(selecting=False)


def program_of(words: Sequence[str]) -> tuple[str, ...]:
    """How pytest was started with these: ``python -m pytest`` finds modules that ``pytest`` does not.

    Options of Python are kept, since counts differ with them.

    >>> program_of(["bin/python", "-m", "pytest", "-q"]), program_of(["python", "bin/pytest", "-m", "pytest"])
    (('bin/python', '-m', 'pytest'), ('pytest',))
    >>> program_of(["python", "-OX", "dev", "-mpytest", "-q"]), program_of(["python", "-O", "bin/pytest", "-q"])
    (('python', '-OX', 'dev', '-m', 'pytest'), ('python', '-O', 'bin/pytest'))
    >>> program_of(["python", "-c", "pytest.main()"]), program_of(["python", "-O", "bin/coverage", "run"])
    (('pytest',), ('pytest',))
    """
    at, words = 1, (*words, "", "")
    while words[at].startswith("-"):
        if found := _MODULE.fullmatch(words[at]):
            module = found[2] or words[at + 1]
            return (*words[:at], found[1], module) if module == "pytest" else ("pytest",)
        at += 2 if _PYTHON_VALUED.fullmatch(words[at]) else 1
    return words[: at + 1] if at > 1 and os.path.basename(words[at]) == "pytest" else ("pytest",)


def _without_flags(word: str) -> str:
    """A word like ``-xqk`` without its letters that nothing needs: ``-k``.

    >>> _without_flags("-vvx"), _without_flags("-xkname"), _without_flags("-n2")
    ('', '-kname', '-n2')
    """
    letters = word[1:].lstrip(_SHORT_FLAGS)
    return f"-{letters}" if letters else ""


def accept_tests(typed: CommandLine, tests: Sequence[str]) -> str:
    """The command that stores these tests, however many, and no others."""
    return _command(typed, typed.needed(selecting=False), tests)


def measure_tests(typed: CommandLine, words: Sequence[str]) -> str:
    """The command that measures these tests and stores nothing.

    >>> measure_tests(CommandLine(("-x", "-p", "mine", "-k", "a"), frozenset()), ["t.py::b"])
    'pytest --instrcount t.py::b -p mine'
    """
    return shlex.join([*typed.program, "--instrcount", *words, *typed.needed(selecting=False)])


def prune_run(typed: CommandLine) -> str:
    """The command that deletes stale baselines: of the files that were asked for, without a selection.

    >>> prune_run(CommandLine(("-c", "b.ini", "-k", "a", "bench", "t.py::b"), frozenset(["bench", "t.py::b"])))
    'pytest --instrcount-prune bench -c b.ini'
    """
    places = [word for word in typed.words if word in typed.names and "::" not in word]
    return shlex.join([*typed.program, _PRUNE, *places, *typed.needed(selecting=False)])


def accept_run(typed: CommandLine, verdicts: Mapping[str, Collection[Verdict]]) -> str:
    """The command that stores what an update would settle; tests by name as they are to be typed.

    A few are named. Of many, those that the user's own selection has, since an update leaves alone
    what is unchanged; where a second run would not select them again, those of the same files.
    """
    accepted = [test for test, found in verdicts.items() if _SETTLED.union(found) != _SETTLED]
    leaves_out = any(map(_is_left, verdicts.values()))
    if 0 < len(accepted) <= _MOST_NAMES and (typed.selects or leaves_out):
        return accept_tests(typed, accepted)
    files = sorted({test.partition("::")[0] for test in accepted})
    if typed.by_history and len(files) <= _MOST_NAMES:
        return accept_tests(typed, files)
    return _command(typed, typed.needed(selecting=True), ())


_SETTLED = NEVER_WRITTEN | {Verdict.unchanged}


def _is_left(verdicts: Collection[Verdict]) -> bool:
    """True if nothing has changed in a test."""
    return Verdict.unchanged in verdicts and _SETTLED.issuperset(verdicts)


def _command(typed: CommandLine, words: Sequence[str], tests: Sequence[str]) -> str:
    chosen = [] if typed.policy in ("changed", "all") else [f"{_POLICY}=changed"]
    return shlex.join([*typed.program, UPDATE, *chosen, *tests, *words])
