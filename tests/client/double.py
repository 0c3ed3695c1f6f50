"""A strict HTTP listener on real sockets, for clients that speak HTTP by hand.

It accepts only well-formed requests, records them, and lets a test decide about every byte that
goes back.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT = 10.0


class Reset:
    """Break the connection instead of answering."""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Bytes = Iterable[bytes]
Handler = Callable[[Asked], bytes | Bytes | Reset]


def answer(status: int, content: object = None, **headers: str) -> bytes:
    """A complete answer with a JSON body (none for None) and a length."""
    body = b"" if content is None else json.dumps(content).encode()
    return raw(status, body, content_type="application/json", **headers)


def raw(status: int, body: bytes, **headers: str) -> bytes:
    """A complete answer with that body and a length."""
    given = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Whatever\r\n{given}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def event_stream(events: Iterable[bytes]) -> Iterator[bytes]:
    """A chunked answer of server-sent events; each item is written as it comes."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    for event in events:
        yield b"%x\r\n%b\r\n" % (len(event), event)
    yield b"0\r\n\r\n"


def event(fields: object) -> bytes:
    """One server-sent event with a JSON message."""
    return b"event: message\r\ndata: " + json.dumps(fields).encode() + b"\r\n\r\n"


@dataclass
class Double:
    """The listener; use it in a `with`. One thread for each connection."""

    handler: Handler
    unix: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Double:
        self._open: set[socket.socket] = set()
        self._news = threading.Condition()
        self._listener = self._listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        assert not self.faults, self.faults

    @property
    def url(self) -> str:
        if self.unix is not None:
            return f"unix:{self.unix}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def stop(self) -> None:
        """Stop listening and break every connection, as a killed service does."""
        _shut(self._listener)
        if self.unix is not None:
            self.unix.unlink(missing_ok=True)
        with self._news:
            connections = list(self._open)
        for connection in connections:
            _shut(connection)

    def wait_for(self, wanted: Callable[[list[Asked]], bool]) -> None:
        """Until the recorded requests satisfy the condition, within the limit."""
        with self._news:
            assert self._news.wait_for(lambda: wanted(self.asked), LIMIT), self.asked

    def keys(self, path: str) -> list[str]:
        """The idempotency keys of the requests to a path, in order."""
        return [one.headers["idempotency-key"] for one in self.asked if one.path == path]

    def _listen(self) -> socket.socket:
        if self.unix is not None:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.unix))
        else:
            family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
            listener = socket.socket(family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            self.port = listener.getsockname()[1]
        listener.listen(64)
        return listener

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._news:
            self._open.add(connection)
        try:
            with connection:
                request = self._read(connection)
                if request is None:
                    return
                with self._news:
                    self.asked.append(request)
                    self._news.notify_all()
                self._reply(connection, self.handler(request))
        except OSError:
            self.hung_up.set()
        finally:
            with self._news:
                self._open.discard(connection)

    def _reply(self, connection: socket.socket, reply: bytes | Bytes | Reset) -> None:
        if isinstance(reply, Reset):
            # Lingering for no time turns the close into a reset.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        for piece in [reply] if isinstance(reply, bytes) else reply:
            connection.sendall(piece)

    def _read(self, connection: socket.socket) -> Asked | None:
        file = connection.makefile("rb")
        line = file.readline().decode("ascii")
        if not line:
            return None
        method, path, version = line.removesuffix("\r\n").split(" ")
        headers: dict[str, str] = {}
        while (text := file.readline().decode("ascii")) != "\r\n":
            name, _, value = text.removesuffix("\r\n").partition(": ")
            if name.lower() in headers:
                self.faults.append(f"{name} came twice")
            headers[name.lower()] = value
        if version != "HTTP/1.1" or not headers.get("host"):
            self.faults.append(f"not HTTP/1.1 with a Host: {line!r} {headers}")
        body = file.read(int(headers.get("content-length", "0")))
        if method == "POST" and body and headers.get("content-type") != "application/json":
            self.faults.append(f"a body that is not declared as JSON: {headers}")
        return Asked(method, path, headers, body)


def _shut(opened: socket.socket) -> None:
    with contextlib.suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)
    opened.close()
