"""One attempt: a request on one connection to one address, and what came of it."""

from __future__ import annotations

import json

from steadmesh.client.endpoint import hang_up
from steadmesh.client.wire import (
    Channel,
    CutOff,
    NotHttp,
    body_pieces,
    read_head,
    request_bytes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from typing import Any

    from steadmesh.client.cancellation import Cancellation
    from steadmesh.client.endpoint import Endpoint
    from steadmesh.client.wire import Head

ANSWER_LIMIT = 64 * 1_048_576
EVENT_LINE_LIMIT = 4 * 1_048_576
CONNECT_TIMEOUT = 5.0
EVENT_STREAM = "text/event-stream"
WRITING_METHODS = ("POST", "PUT", "PATCH")


class Unreachable(Exception):
    """No usable answer came, from any address, within the time allowed."""


class Answer:
    """A complete answer. Header names are lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        """Status, headers, and the body as it came."""
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        """The body read as JSON. Raises ValueError."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


class Stream:
    """An answer that goes on: an iterator over its lines, without their ends.

    It ends with the answer, and raises Unreachable when the connection breaks before that. Close
    it, or use it in a `with`; closing it from another thread wakes the reader.
    """

    def __init__(self, head: Head, connection: _Connection) -> None:
        """Takes over the connection."""
        self.status = head.status
        self.headers = head.headers
        self._connection = connection
        self._lines = _lines(body_pieces(connection.channel, head))

    def __iter__(self) -> Iterator[bytes]:
        """The stream itself."""
        return self

    def __next__(self) -> bytes:
        """The next line, as soon as it is there."""
        try:
            return next(self._lines)
        except StopIteration:
            self.close()
            raise
        except (OSError, NotHttp) as error:
            self.close()
            raise Unreachable(f"the stream broke: {_reason(error)}") from None

    def __enter__(self) -> Stream:
        """For `with`."""
        return self

    def __exit__(self, *_exception: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close the connection; the service sees that nobody listens any more."""
        self._connection.close()


class Failure:
    """An attempt without a usable answer, or with 503 (`busy`).

    `final` says that no further attempt is allowed, `wait` how many seconds the service asked
    to be left alone.
    """

    __slots__ = ("busy", "final", "reason", "wait")

    def __init__(self, reason: str, *, busy: Answer | None = None, final: bool = False) -> None:
        """`reason` is a clause for a message."""
        self.reason = reason
        self.busy = busy
        self.final = final
        self.wait = _retry_after(busy)


class Request:
    """What is sent, to whichever address."""

    def __init__(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
        streams: bool,
        silence: float | None,
        cancellation: Cancellation | None,
    ) -> None:
        """As `Service.exchange` has it, with all headers but Host."""
        self._method = method
        self._path = path
        self._body = body
        self._headers = headers
        self._timeout = timeout
        self._streams = streams
        self._silence = silence
        self._cancellation = cancellation
        keyed = any(name.lower() == "idempotency-key" for name in headers)
        self._repeatable = keyed or method not in WRITING_METHODS

    def attempt(self, endpoint: Endpoint) -> Answer | Stream | Failure:
        """Once, at one address. Raises Cancelled, and ValueError for what cannot be sent."""
        data = request_bytes(
            self._method,
            endpoint.prefix + self._path,
            headers={"Host": endpoint.host_header, **self._headers},
            body=self._body,
        )
        if self._cancellation is not None:
            self._cancellation.check()
        try:
            opened = endpoint.connect(min(self._timeout, CONNECT_TIMEOUT))
        except OSError as error:
            return Failure(_reason(error))
        connection = _Connection(opened, self._timeout, self._cancellation)
        try:
            outcome = self._talk(connection, data)
        except BaseException:
            connection.close()
            raise
        if not isinstance(outcome, Stream):
            connection.close()
        if isinstance(outcome, Failure) and self._cancellation is not None:
            self._cancellation.check()
        return outcome

    def _talk(self, connection: _Connection, data: bytes) -> Answer | Stream | Failure:
        try:
            return self._exchange(connection, data)
        except TimeoutError:
            return Failure(f"it did not answer within {self._timeout:g} s", final=True)
        except NotHttp as error:
            return Failure(f"the answer cannot be used ({error})", final=True)
        except OSError as error:
            return Failure(_reason(error), final=not self._repeatable)

    def _exchange(self, connection: _Connection, data: bytes) -> Answer | Stream | Failure:
        channel = connection.channel
        try:
            channel.send(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            # Refused before it was read to the end, a body too large for instance: the answer
            # may be there all the same.
            head = _head_after(error, channel, self._method)
        else:
            head = read_head(channel, self._method)
        if self._streams and head.headers.get("content-type", "").startswith(EVENT_STREAM):
            channel.idle_limit(self._silence)
            return Stream(head, connection)
        answer = Answer(head.status, head.headers, _whole(body_pieces(channel, head)))
        if answer.status == 503:
            return Failure("it is not ready (503)", busy=answer)
        return answer


class _Connection:
    """A socket, its channel, and the cancellation that may cut it."""

    __slots__ = ("_cancellation", "_socket", "channel")

    def __init__(
        self, opened: socket.socket, timeout: float, cancellation: Cancellation | None
    ) -> None:
        self._socket = opened
        self._cancellation = cancellation
        self.channel = Channel(opened, timeout)
        if cancellation is not None:
            try:
                cancellation.attach(opened)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._cancellation is not None:
            self._cancellation.detach()
        hang_up(self._socket)
        self._socket.close()


def _head_after(error: OSError, channel: Channel, method: str) -> Head:
    try:
        return read_head(channel, method)
    except (OSError, NotHttp):
        raise error from None


def _whole(pieces: Iterator[bytes]) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > ANSWER_LIMIT:
            raise NotHttp(f"it is larger than {ANSWER_LIMIT} bytes")
    return bytes(body)


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *complete, rest = (rest + piece).split(b"\n")
        for line in complete:
            yield line.removesuffix(b"\r")
        if len(rest) > EVENT_LINE_LIMIT:
            raise NotHttp(f"a line of the stream is longer than {EVENT_LINE_LIMIT} bytes")
    if rest:
        yield rest


def _retry_after(answer: Answer | None) -> float:
    """How long a 503 asks us to wait, within reason."""
    text = answer.headers.get("retry-after", "") if answer is not None else ""
    return min(float(text), 2.0) if text.isascii() and text.isdigit() else 0.0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the connection timed out"
    if isinstance(error, CutOff | NotHttp):
        return str(error)
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
