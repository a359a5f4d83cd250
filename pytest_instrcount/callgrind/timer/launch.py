"""Programs under Callgrind that are no tests: started, watched, and ended with all they started."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_instrcount.callgrind.command import temporary_folder, valgrind_command
from pytest_instrcount.callgrind.endings import describe_status, read_lines, wait_status_of
from pytest_instrcount.callgrind.process import answer_signals, skip_small_ids
from pytest_instrcount.callgrind.scratch import take_scratch
from pytest_instrcount.callgrind.timer.statement import DUMPS
from pytest_instrcount.errors import InstrcountError

_LOG, _OUTPUT = "valgrind.log", "output"
_TAIL_LINES = 30
_OPEN_CALL = re.compile(r"^calls=0 .*\n.*\n", re.MULTILINE)


class Launch:
    """One Valgrind process in a session of its own, with a scratch folder. Always to be ended."""

    def __init__(self, valgrind: str) -> None:
        self._scratch = take_scratch()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self.path = self._scratch.path
        self._output, self._log = self.path / _OUTPUT, self.path / _LOG
        self._valgrind = valgrind
        self._said = 0

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        stdin: int = subprocess.DEVNULL,
    ) -> None:
        """Start a program, which must see to it itself that it dies with this process."""
        skip_small_ids()
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*valgrind_command(self._valgrind, self.path, self._log), *command],
                stdin=stdin,
                stdout=output,
                stderr=output,
                env={**environment, "TMPDIR": temporary_folder(str(self.path))},
                cwd=folder,
                # not in reach of Ctrl-C, and with all that it starts in that of killpg()
                start_new_session=True,
                preexec_fn=answer_signals,
            )

    @property
    def ours(self) -> bool:
        """True if this process started it; a fork of that one must let it be."""
        return self._owner == os.getpid()

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait_status(self, seconds: float | None = None) -> int:
        """Wait for the end of the process; its status as of waitpid().

        Raises InstrcountError ``timeout``.
        """
        assert self._process is not None
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            assert seconds is not None
            raise out_of_time(seconds) from None
        return wait_status_of(code)

    def forget_dumps(self) -> None:
        """Make ready for the next count: what was dumped and said before is not its own."""
        for path in (self.path / DUMPS, *(self.path / "dumps").iterdir()):
            path.unlink(missing_ok=True)
        self._said = self._output.stat().st_size

    def read_dumps(self, number: int) -> list[str]:
        """The text of each of so many counts, in order.

        Raises InstrcountError ``no-dump`` if one is missing.
        """
        files: dict[str, list[Path]] = {}
        for path in self._dumps():
            files.setdefault(path.name.split(".")[1], []).append(path)
        noted = self.path / DUMPS
        pids = noted.read_text().split() if noted.exists() else []
        paths = [pair[1] for pid in pids if len(pair := _take_pair(files.get(pid, []))) == 2]
        if len(paths) != number:
            raise InstrcountError(
                "no-dump",
                f"Callgrind left {len(paths)} counts of the statement, not {number}\n"
                f"{self.last_words()}".rstrip(),
                "look for free disk space (df -h), and for a return or an exit in the statement",
            )
        return [
            without_open_calls(path.read_text(encoding="utf-8", errors="backslashreplace"))
            for path in paths
        ]

    def _dumps(self) -> list[Path]:
        """Files that were dumped on request: ``out.PID.NUMBER``."""
        found = [
            (int(match[1]), path)
            for path in (self.path / "dumps").iterdir()
            if (match := re.fullmatch(r"out\.[0-9]+\.([0-9]+)", path.name))
        ]
        return [path for _, path in sorted(found)]

    def last_words(self) -> str:
        """The end of what the program printed, and of what Valgrind said."""
        said = [line for line in read_lines(self._log) if line.strip("=- 0123456789")]
        printed = read_lines(self._output, self._said)
        return "\n".join([*printed[-_TAIL_LINES:], *said[-_TAIL_LINES:]]).strip()

    def end(self) -> None:
        """Kill the process and all it started, and remove the scratch folder."""
        if not self.ours:
            return
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            self._process.wait()
        self._scratch.remove()
        os.close(self._scratch.lock)

    def died(self, status: int) -> InstrcountError:
        """The error for a process that ended before it had counted; ``status`` as of waitpid()."""
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        return InstrcountError(
            "process-died",
            f"the statement's process {describe_status(status)} under Valgrind\n"
            f"{self.last_words()}".rstrip(),
            "timeit.timeit(stmt, setup, number=1)    # the same without Valgrind"
            if soft == resource.RLIM_INFINITY
            else "ulimit -v unlimited    # the limit is too low for Valgrind",
        )


def without_open_calls(text: str) -> str:
    """A dump without the calls that had begun before the count: those of 0 calls.

    They lead from the start of the process to the statement, each with the cost of all of it.
    callgrind_annotate would take that for the caller's own.

    >>> lines = ["fn=(1) main", "cfn=(2) f", "calls=0 5", "0 700", "fn=(2)", "5 700", ""]
    >>> without_open_calls(chr(10).join(lines)).split()
    ['fn=(1)', 'main', 'cfn=(2)', 'f', 'fn=(2)', '5', '700']
    """
    return _OPEN_CALL.sub("", text)


def _take_pair(paths: list[Path]) -> list[Path]:
    pair = paths[:2]
    del paths[:2]
    return pair


def out_of_time(seconds: float) -> InstrcountError:
    """The error for a statement that does not end."""
    return InstrcountError(
        "timeout",
        f"the statement did not end within {seconds:g} s under Valgrind",
        "collect_callgrind(number=1), or Timer.timeout_seconds = ... for more time",
    )


def count_program(
    launch: Launch,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    dumps: int,
    seconds: float,
) -> list[str]:
    """Run a program that counts itself to its end; returns the text of each of its dumps.

    The program writes the process ids of its dumps. Raises InstrcountError ``timeout``,
    ``process-died`` or ``no-dump``.
    """
    launch.start(command, environment, folder)
    status = launch.wait_status(seconds)
    if status:
        raise launch.died(status)
    return launch.read_dumps(dumps)
