"""The channel between pytest, the supervisor and the processes inside Valgrind.

A channel is one end of a socket pair that only the two processes hold: it has no name, so
nobody else can speak on it. A message is a JSON object behind its length in four bytes.
Orders that the zygote takes between two forks are one byte each and have no answer, so that taking
one leaves its heap as it was: a count must not depend on how many tests were measured before. What
a child needs is handed to the child, over a second socket that its parent never reads.
"""

from __future__ import annotations

import _socket
import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, cast

from pytest_instrcount.callgrind.real import os
from pytest_instrcount.host.foreign import plain

#: Orders to a process that forks: fork, go on as your own child, let one ended child go.
FORK, BECOME, REAP = b"F", b"B", b"R"

#: How the names of the children begin that rehearse, each as long as that of any other child.
REHEARSAL = "rehear"


def rehearsal_name(zygote: int) -> str:
    """The name of the child that rehearses in the zygote of this number."""
    return f"{REHEARSAL}{zygote:02}"


#: The answer to a pilot: warm-up rounds and counted rounds.
REPETITION = struct.Struct("<qq")

#: Added to nanoseconds, so that their text has 20 digits, whatever the clock says.
PADDING = 10**19

#: A question that needs no message: a length that no message has.
ASK = b"\xff\xff\xff\xff"

_LENGTH = struct.Struct("<I")
_CHUNK_BYTES = 1 << 16
#: The status of a process that cannot say its result, since its end of the channel is closed.
HUNG_UP = 121
#: Longer ones are none of ours: something else was written to the descriptor.
_LARGEST_BYTES = 1 << 29

# a test may put something else in their place, and leave it there
_dumps, _loads = json.dumps, json.loads


class ChannelClosed(Exception):
    """The other end is gone."""


class ChannelGarbled(ChannelClosed):
    """The received data is not a message of ours."""


def framed(message: Mapping[str, object]) -> bytes:
    """A message as it goes over a channel; what JSON does not know is in it as text."""
    try:
        text = _dumps(message, default=str)
    except Exception:  # a test may hand over whatever it likes: a loop, keys that are no text
        text = _dumps(plain(message))
    body = text.encode("ascii")
    return _LENGTH.pack(len(body)) + body


def open_socket(descriptor: int) -> socket.socket:
    """The socket of a descriptor, which blocks, whatever a conftest has made of ``socket`` and its default."""
    made: Any = _socket.socket(fileno=descriptor)
    made.settimeout(None)
    return cast("socket.socket", made)


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets of this kind."""
    ours, theirs = (open_socket(each.detach()) for each in _socket.socketpair())
    return ours, theirs


class Channel:
    """One end of a conversation; blocking unless said otherwise.

    Only the process that opened it may speak: what a test forks inherits the descriptor, and
    must not answer in the test's name.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._owner = os.getpid()
        self._received = bytearray()

    def adopt(self) -> None:
        """Say that this process, a fork of the one that opened the channel, speaks from now on."""
        self._owner = os.getpid()

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def send(self, message: Mapping[str, object]) -> None:
        """Send one message; what JSON does not know goes as text. Raises ChannelClosed when nobody listens."""
        if os.getpid() != self._owner:
            os._exit(1)
        try:
            self.socket.sendall(framed(message))
        except OSError as error:
            raise ChannelClosed from error

    def receive(self) -> Any:
        """Wait for one message. Raises ChannelClosed at the end, TimeoutError when a limit is set."""
        while True:
            message = self.pop()
            if message is not None:
                return message
            self.fill()

    def fill(self) -> None:
        """Take what has arrived (at least one byte). Raises ChannelClosed at the end."""
        try:
            data = self.socket.recv(_CHUNK_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            raise ChannelClosed from error
        if not data:
            raise ChannelClosed
        self._received += data

    def pop(self) -> Any:
        """The next whole message among what has arrived, or None; of which kind, the reader knows.

        Raises ChannelGarbled for what is no message: a test has written to a descriptor not its own.
        """
        if len(self._received) < _LENGTH.size:
            return None
        if self._received.startswith(ASK):
            del self._received[: len(ASK)]
            return {"kind": "ask"}
        (length,) = _LENGTH.unpack_from(self._received)
        if length > _LARGEST_BYTES:
            raise ChannelGarbled
        end = _LENGTH.size + length
        if len(self._received) < end:
            return None
        try:
            message = _loads(self._received[_LENGTH.size : end])
        except (ValueError, RecursionError) as error:
            raise ChannelGarbled from error
        if not isinstance(message, dict):
            raise ChannelGarbled
        del self._received[:end]
        return message

    def ask(self, form: struct.Struct) -> tuple[Any, ...]:
        """Ask for an answer of fixed size, without a message: few instructions on either side.

        Raises ChannelClosed at the end.
        """
        if os.getpid() != self._owner:
            os._exit(1)
        os.write(self.socket.fileno(), ASK)
        while len(self._received) < form.size:
            self.fill()
        answer = form.unpack_from(self._received)
        del self._received[: form.size]
        return answer
