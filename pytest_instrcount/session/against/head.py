"""The user's side: takes the files of the commit, has its tests measured, and compares with them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.interpreter import own_options
from pytest_instrcount.config.settings import Settings, load_command_line
from pytest_instrcount.config.stash import EDITABLE, OWN_PACKAGE
from pytest_instrcount.config.usage import as_usage_errors
from pytest_instrcount.errors import InstrcountError
from pytest_instrcount.gate.gate import Verdict
from pytest_instrcount.gate.records import Base
from pytest_instrcount.gate.store.calls import CallStore
from pytest_instrcount.gate.store.names import printable
from pytest_instrcount.host.account.current import timed
from pytest_instrcount.host.git import FOREIGN
from pytest_instrcount.host.programs import Popen
from pytest_instrcount.host.text import several
from pytest_instrcount.session.against.checkout import Checkout, tail_of
from pytest_instrcount.session.against.git import Repository, find_repository
from pytest_instrcount.session.against.moved import Move, editable_tables, environments_in
from pytest_instrcount.session.against.request import Answer, Request, pack
from pytest_instrcount.session.against.worktree import take_worktree
from pytest_instrcount.session.findings import Findings
from pytest_instrcount.session.progress import Pulse, say
from pytest_instrcount.session.selection import is_measured

_LAUNCH = Path(__file__).parent / "launch.py"
_PACKAGE = Path(__file__).parents[2]
#: Exit codes of pytest: all passed, some failed, none collected.
_RAN = (0, 1, 5)
_POLL_SECONDS = 0.25
#: What a pytest or its worker has set for itself.
_OWN_VARIABLES = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "OLDPWD")


class Head:
    """A plugin object of the run: measures the other side before this one, then again what moved."""

    def __init__(self, config: pytest.Config, base: Base, repository: Repository) -> None:
        self.base = base
        self._config = config
        self._repository = repository
        self._owner = os.getpid()
        spelled = _spelled(config.rootpath, repository.path)
        self._worktree = take_worktree(spelled)
        self._top = spelled
        old = tuple(dict.fromkeys((str(spelled), str(repository.path))))
        self._move = Move(old, str(self._worktree.tree), environments_in(old))
        #: ours, where no test looks
        self._own = self._worktree.tree / ".git" / "instrcount-against"
        self.store = self._own / "baselines"
        self._unmeasured: dict[str, str] = {}
        self._files: dict[str, str] = {}

    @classmethod
    def prepare(cls, config: pytest.Config, ref: str) -> Head:
        """Find the commit, and a place for its files. Raises InstrcountError."""
        repository = find_repository(config.rootpath)
        head = cls(config, Base(ref, repository.resolve(ref)), repository)
        config.add_cleanup(head.remove)
        return head

    def begin(
        self,
        config: pytest.Config,
        settings: Settings,
        findings: Findings,
        sys_path: Sequence[str],
        *,
        ahead: bool,
    ) -> None:
        """Know what this side is measured with: the other is to be measured alike."""
        self._ahead = ahead
        self._settings, self._rulings = settings, findings.rulings
        self._notes = findings.notes
        self._sys_path = list(sys_path)
        self._tables = editable_tables(sys.modules)
        config.stash[EDITABLE] = self._tables
        # to be measured with another release of this plugin would be to compare two of them
        self._own_package = str(_PACKAGE) if self._move.moves(str(_PACKAGE)) else ""
        config.stash[OWN_PACKAGE] = self._own_package

    # The story.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Before pytest-xdist starts its workers, who collect: the request made here selects the tests."""
        if not self._ahead:
            return
        words = load_command_line(self._config).needed(selecting=True)
        arguments = ["--instrcount-only", *map(self._move.word, words)]
        with as_usage_errors():
            self._take_files()
            self._say(f"instrcount: measuring {self.base}, in all layouts")
            self._note_outcomes(self._run(arguments, None, first_look=False))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Measure the same tests at the commit, before any of this side is asked for."""
        self._files = {item.nodeid: str(item.path) for item in filter(is_measured, session.items)}
        if not self._files or self._ahead:
            return
        with as_usage_errors():
            self._take_files()
            self._measure(self._files, first_look=True)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self) -> Generator[None, Any, Any]:
        """Before this side is measured again where it may have moved, the other one is."""
        result = yield
        suspects = [measurement.nodeid for measurement in self._rulings.unsettled()]
        if suspects and not self._ahead:
            with as_usage_errors():
                self._measure(suspects, first_look=False)
            self._rulings.baselines.read_again(suspects)
        self._say_what_is_missing()
        return result

    def remove(self) -> None:
        """Leave nothing behind."""
        if os.getpid() == self._owner:
            self._worktree.remove()

    def _take_files(self) -> None:
        checkout = Checkout(self._repository, self.base, self._worktree.tree)
        self._notes += checkout.take()
        self._own.mkdir()
        packages = checkout.packages()
        self._packages = [name for name in packages if name != _PACKAGE.name]
        if len(packages) > len(self._packages):
            self._notes.append(
                f"{_PACKAGE.name} measures both sides as it is here: its own code is not compared"
            )
        command = str(self._config.getini("instrcount_against_build")).strip()
        if command:
            self._say(f"instrcount: building {self.base}: {printable(command)}")
            where = self._move(str(self._config.rootpath))
            checkout.build(command, where, self._environment(), self._own / "build.log")
        else:
            checkout.check_built()

    # The other side.

    def _measure(self, nodeids: Collection[str], *, first_look: bool) -> None:
        files = list(dict.fromkeys(self._move(self._files[nodeid]) for nodeid in nodeids))
        files = [file for file in files if os.path.exists(file)]
        if not files:
            return
        number = several(len(nodeids), "test")
        self._say(
            f"instrcount: measuring {number} at {self.base}"
            + ("" if first_look else " again, and in other layouts")
        )
        words = load_command_line(self._config).needed(selecting=False)
        arguments = [*map(self._move.word, words), *files]
        self._note_outcomes(self._run(arguments, nodeids, first_look=first_look))

    def _note_outcomes(self, answer: Answer) -> None:
        for nodeid in answer.collected:
            if not self._is_stored(nodeid):
                outcome = answer.outcomes.get(nodeid, "could not be measured")
                self._unmeasured[nodeid] = outcome

    @timed("the other commit")
    def _run(
        self, arguments: Sequence[str], nodeids: Collection[str] | None, *, first_look: bool
    ) -> Answer:
        """Run pytest there, with what selects tests or with ids of them."""
        answer, log = self._own / "answer.json", self._own / "pytest.log"
        answer.unlink(missing_ok=True)
        request = Request(
            args=[*arguments, *self._arguments()],
            sys_path=list(map(self._move, self._sys_path)),
            editable=self._move.tables(self._tables),
            own_package=self._own_package,
            wanted=None if nodeids is None else list(nodeids),
            first_look=first_look,
            packed=pack(self._settings),
            move=self._move,
            repository=str(self._repository.path),
            packages=self._packages,
            answer=str(answer),
        )
        request.write(self._own / "request.json")
        with log.open("wb") as output:
            process = Popen(
                [sys.executable, *own_options(), str(_LAUNCH), str(self._own / "request.json")],
                cwd=self._move(str(self._config.invocation_params.dir)),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is this process's to pass on
            )
        try:
            status = self._wait(process)
        finally:
            if process.poll() is None:
                process.kill()  # what it has under Valgrind ends with it
                process.wait()
        found = Answer.read(answer)
        if found.problem:
            raise InstrcountError(*found.problem)
        if status not in _RAN:
            short = self.base.commit[:7]
            raise InstrcountError(
                "against-failed",
                f"pytest does not run at {self.base}: it ended with exit code {status}\n"
                f"--- its last lines ---\n{tail_of(log)}",
                f"git worktree add --detach ../{short} {short}    # does pytest run there?",
            )
        return found

    def _arguments(self) -> list[str]:
        """The command that measures and stores, and the folder in which pytest appears to run."""
        config = self._config
        found = ["--instrcount-update-baseline", "--maxfail=0"]
        if hasattr(config.option, "numprocesses"):  # by itself it uses all cores
            found += ["-n0", "--dist=no"]
        found.append(f"--rootdir={self._move(str(config.rootpath))}")
        if config.inipath is not None:
            ini = self._move(str(config.inipath))
            found += ["-c", ini] if os.path.exists(ini) else []
        return found

    def _environment(self) -> dict[str, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name not in FOREIGN and name not in _OWN_VARIABLES
        }
        if environment.get("PYTHONPATH"):
            environment["PYTHONPATH"] = self._move.search_path(environment["PYTHONPATH"])
        if "PWD" in environment:
            environment["PWD"] = self._move(environment["PWD"])
        return environment

    def _wait(self, process: Popen[bytes]) -> int:
        pulse = Pulse(self._say)
        while True:
            try:
                return process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                pulse(f"measuring at {self.base}")

    # What is said of it.

    def _is_stored(self, nodeid: str) -> bool:
        store = self._rulings.store
        calls = CallStore(store)
        return os.path.exists(store.path(nodeid)) or os.path.exists(calls.path(nodeid))

    def _say_what_is_missing(self) -> None:
        results = self._rulings.results
        for nodeid, why in self._unmeasured.items():
            result = results.get(nodeid)
            if result is not None and result.verdict is Verdict.new:
                reason = f"it {why} at {self.base} [against-failing]"
                results[nodeid] = replace(result, verdict=Verdict.incomparable, reason=reason)
                self._notes.append(f"{nodeid}: compared with nothing, since {reason}")
        new = [nodeid for nodeid, result in results.items() if result.verdict is Verdict.new]
        note = f"compared with {self.base}"
        if new:
            note += f"; {len(new)} test{' is' if len(new) == 1 else 's are'} not there"
        self._notes.insert(0, note)
        extra = len(str(self._worktree.tree)) - len(str(self._top))
        if extra:
            self._notes.append(
                f"no temporary path is as short as {self._top}: more counts move by noise, and are "
                "measured again"
            )

    def _say(self, line: str) -> None:
        say(self._config, self._settings, line)


def _spelled(folder: Path, top: Path) -> Path:
    """The top of the work tree as the path of a folder in it has it, links and all."""
    for each in (folder, *folder.parents):
        if os.path.realpath(each) == os.path.realpath(top):
            return each
    return top
