"""Messages to a reader who may be busy for long: none of them is waited for."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket

from pytest_instrcount.callgrind.channel import framed
from pytest_instrcount.callgrind.messages import FromSupervisor


class Stopped(Exception):
    """The supervisor has nothing more to do: pytest says so, or is gone."""


class SendQueue:
    """Sends on a socket what it takes now, and the rest when a selector says that it takes more.

    pytest reads its results between tests of its own, and may be stopped (Ctrl-Z): who waited for it
    would not answer the processes that are measured meanwhile.
    """

    def __init__(self, sock: socket.socket, selector: selectors.BaseSelector) -> None:
        self._socket = sock
        self._selector = selector
        self._unsent = bytearray()
        # the socket itself is registered for what comes in
        self._own = os.dup(sock.fileno())

    def send(self, message: FromSupervisor) -> None:
        """Send it soon, behind all others. Raises Stopped when nobody listens."""
        self._unsent += framed(message)
        self._send_some()

    def flush(self) -> None:
        """Send what is left, and wait until it is taken; a reader who is gone misses nothing."""
        with contextlib.suppress(OSError):
            self._socket.sendall(self._unsent)
        self._unsent.clear()

    def _send_some(self) -> None:
        try:
            sent = self._socket.send(self._unsent, socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise Stopped from error
        del self._unsent[:sent]
        registered = self._own in self._selector.get_map()
        if self._unsent and not registered:
            self._selector.register(self._own, selectors.EVENT_WRITE, self._send_some)
        elif registered and not self._unsent:
            self._selector.unregister(self._own)
