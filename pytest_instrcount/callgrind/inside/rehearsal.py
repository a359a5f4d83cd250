"""Two tests run before the first one, so that Valgrind has translated what every test needs.

A forked child inherits translated code. The rehearsal goes all the way of a test child, with a
pytest of its own that knows no plugin, no conftest and no file of the user.
"""

from __future__ import annotations

import io
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_instrcount.callgrind.channel import REPETITION, rehearsal_name, socket_pair
from pytest_instrcount.callgrind.inside.forking import Line
from pytest_instrcount.callgrind.requests import Requests
from pytest_instrcount.config.stash import COUNTING
from pytest_instrcount.fixtures.instrcount import InstrCount

Silence = Callable[[pytest.Config, io.StringIO], None]

_TESTS = Path(__file__).with_name("rehearsed.py")


class _Plugin:
    """Stands for this package's plugin, and runs the tests as a zygote would."""

    def __init__(
        self, name: str, scratch: str, requests: Requests, child_class: Any, silence: Silence
    ) -> None:
        self._name = name
        self._scratch = scratch
        self._requests = requests
        self._child_class = child_class
        self._silence = silence
        self._sink = io.StringIO()

    @pytest.fixture
    def instrcount(self, request: pytest.FixtureRequest) -> InstrCount:
        return request.config.stash[COUNTING](request)  # type: ignore[no-any-return]

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        self._silence(config, self._sink)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # Throws away all that starting up has translated: START in every child would have to.
        self._requests.start()
        self._requests.stop()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        nothing = self._requests.nothing
        requests = Requests(*(nothing for _ in Requests.__slots__))
        loader = type("Loader", (), {"compiled": 0})
        child = self._child_class(session, self._sink, loader, rehearses=True)
        session.config.pluginmanager.register(child)
        for item in session.items:
            line, ours = _open_line()
            order = {
                "nodeid": item.nodeid,
                "child": self._name,
                "verbose": 0,
                "pilot": 0,
                "trace": 0,
                "by_python": 0,
            }
            body = json.dumps(order).encode()
            ours.sendall(len(body).to_bytes(4, "little") + body + REPETITION.pack(1, 1))
            child.run(line.channel, self._scratch, requests)
            line.close()
            ours.close()
        return True


def _open_line() -> tuple[Line, socket.socket]:
    """A line whose other end we hold."""
    hand, their_hand = socket_pair()
    ours, theirs = socket_pair()
    socket.send_fds(hand, [b"L"], [theirs.fileno(), their_hand.fileno()])
    line = Line.take(their_hand)
    for each in (hand, their_hand, theirs):
        each.close()
    return line, ours


def rehearse(
    zygote: int, scratch: str, requests: Requests, child_class: Any, silence: Silence
) -> None:
    """Run the tests of ``rehearsed`` in the zygote of this number.

    What this leaves in the environment is put back.
    """
    name, before = rehearsal_name(zygote), dict(os.environ)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ.pop("PYTEST_PLUGINS", None)
    try:
        pytest.main(
            [
                f"--rootdir={_TESTS.parent}",
                f"-c{os.devnull}",
                f"--confcutdir={_TESTS.parent}",
                "--noconftest",
                "--import-mode=importlib",
                "--assert=plain",
                "-q",
                "--no-header",
                "--no-summary",
                "-pno:cacheprovider",
                "-pno:faulthandler",
                str(_TESTS),
            ],
            plugins=[_Plugin(name, scratch, requests, child_class, silence)],
        )
    finally:
        os.environ.clear()
        os.environ.update(before)
