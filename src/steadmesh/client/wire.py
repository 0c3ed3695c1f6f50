"""HTTP/1.1 messages on a socket: the request as bytes, the answer's head, and its body in pieces."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping

HEAD_LIMIT = 65_536
_READ_SIZE = 65_536
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class NotHttp(Exception):
    """What came back is not an HTTP answer that can be used."""


class CutOff(ConnectionError):
    """The connection ended before the answer did."""


class Channel:
    """A connected socket with one time limit over everything that is sent and read.

    A signal in the middle of a read is no failure: the interpreter starts the read again with
    the time that is left, unless the signal's handler raises.
    """

    def __init__(self, connection: socket.socket, timeout: float) -> None:
        """`timeout`: seconds from now for the whole exchange."""
        self._connection = connection
        self._deadline: float | None = time.monotonic() + timeout
        self._buffer = bytearray()

    def send(self, data: bytes) -> None:
        """Send all of it. Raises OSError."""
        self._connection.settimeout(self._left())
        self._connection.sendall(data)

    def idle_limit(self, seconds: float | None) -> None:
        """From now on the limit is on each silence, not on the whole; None for no limit."""
        self._deadline = None
        self._connection.settimeout(seconds)

    def line(self) -> bytes:
        """The next line of a head, without its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > HEAD_LIMIT:
                raise NotHttp("a header line is too long")
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line.removesuffix(b"\r")

    def some(self) -> bytes:
        """Whatever is there, at least a byte; nothing at the end of the connection."""
        if not self._buffer:
            try:
                self._fill()
            except CutOff:
                return b""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def up_to(self, size: int) -> bytes:
        """Between one byte and `size`."""
        if not self._buffer:
            self._fill()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _fill(self) -> None:
        if self._deadline is not None:
            self._connection.settimeout(self._left())
        data = self._connection.recv(_READ_SIZE)
        if not data:
            raise CutOff("the connection was closed before the answer was complete")
        self._buffer += data

    def _left(self) -> float:
        if self._deadline is None:
            raise AssertionError("nothing is sent on a channel without a limit")
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


class Head:
    """Status and headers of an answer; header names are lower case."""

    __slots__ = ("headers", "method", "status")

    def __init__(self, method: str, status: int, headers: dict[str, str]) -> None:
        """`method` is the request's: it decides whether a body follows."""
        self.method = method
        self.status = status
        self.headers = headers


def request_bytes(
    method: str, target: str, *, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """The whole request. Raises ValueError for a header or path that would break the message."""
    if any(not "!" <= sign <= "~" for sign in target):
        raise ValueError(f"{target!r} cannot be a request path")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers.items():
        if any(not " " <= sign <= "~" for sign in value):
            raise ValueError(f"the value for the header {name} has a character it cannot have")
        lines.append(f"{name}: {value}")
    if body is not None or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body or b'')}")
    return "\r\n".join((*lines, "", "")).encode("ascii") + (body or b"")


def read_head(channel: Channel, method: str) -> Head:
    """The head of the final answer; interim ones (1xx) are passed over."""
    while True:
        status = _status(channel.line())
        headers = _headers(channel)
        if status >= 200:
            return Head(method, status, headers)


def body_pieces(channel: Channel, head: Head) -> Iterator[bytes]:
    """The body, piece by piece, in whichever way the head says it comes."""
    if head.method == "HEAD" or head.status in (204, 304):
        return
    coding = head.headers.get("transfer-encoding", "").lower()
    if coding == "chunked":
        yield from _chunks(channel)
    elif coding:
        raise NotHttp(f"the transfer encoding {coding!r} is not known")
    elif "content-length" in head.headers:
        yield from _counted(channel, _length(head.headers["content-length"]))
    else:
        while piece := channel.some():
            yield piece


def percent_encoded(text: str) -> str:
    """The text as one segment of a path."""
    return "".join(
        chr(byte) if byte in _UNRESERVED else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def _status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or len(code) != 3 or not code.isdigit():
        raise NotHttp("it does not speak HTTP")
    return int(code)


def _headers(channel: Channel) -> dict[str, str]:
    headers: dict[str, str] = {}
    size = 0
    while line := channel.line():
        size += len(line)
        if size > HEAD_LIMIT:
            raise NotHttp("the headers are too long")
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise NotHttp("a header line has no colon")
        key = name.strip().lower()
        text = value.strip()
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _length(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise NotHttp("the content length is not a number")
    return int(text)


def _counted(channel: Channel, size: int) -> Iterator[bytes]:
    while size:
        piece = channel.up_to(size)
        size -= len(piece)
        yield piece


def _chunks(channel: Channel) -> Iterator[bytes]:
    while True:
        digits = channel.line().partition(b";")[0].strip()
        if not digits or not _HEX_DIGITS.issuperset(digits):
            raise NotHttp("a chunk has no size")
        size = int(digits, 16)
        if size == 0:
            _headers(channel)  # trailers, of no use here
            return
        yield from _counted(channel, size)
        if channel.line():
            raise NotHttp("a chunk is longer than its size")
