"""HTTP on a connection: uvicorn's reader, with limits on what a request may take, and one packet an answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

HEAD_BYTES = 65_536
HEAD_SECONDS = 65.0
BODY_SECONDS = 60.0
DRAIN_BYTES = 32 * 1024 * 1024
DRAIN_SECONDS = 1.0
GATHERED_BYTES = 65_536
"""More than this is not held back."""

UNREADABLE = "this is not an HTTP request that can be read"
SPACE = 32


class BoundedHttp(HttpToolsProtocol):
    """Who connects and says nothing, or never ends its headers, is hung up on; who never ends its body is
    told so first. Whoever still sends what was answered already may go on for a moment: a connection that
    is cut with something unread in it takes the answer along.

    One timer watches a connection, not one each request: it looks when the time would be up.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._until: float | None = None
        """When what is being sent to us has to be whole; nothing while we are the ones to act."""
        self._in_body = False
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at = 0.0
        self._head_bytes = 0
        self._unreadable = False
        self._drained: int | None = None
        """Bytes that came after their answer; nothing while none are expected."""
        self._wire: OnePacket

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._wire = OnePacket(
            transport, self.loop, more_comes=lambda: self._in_body or self._unreadable
        )
        super().connection_made(cast(asyncio.Transport, self._wire))
        self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._until = None
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._drained is not None:
            self._drained += len(data)
            if self._drained > DRAIN_BYTES:
                self._wire.hang_up()
            if self._drained > DRAIN_BYTES or self._unreadable:
                return
        waited = self._until is not None and not self._in_body
        super().data_received(data)
        # The reader keeps an unfinished line to itself, so what counts is what was fed to it.
        if waited and self._until is not None and not self._in_body:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("too long")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        if self._until is None:
            self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._expect(BODY_SECONDS)
        # The reader leaves the blanks behind a value in; they are no part of it (RFC 9110, 5.5).
        for at, (name, value) in enumerate(self.headers):
            if value and value[-1] <= SPACE:
                self.headers[at] = (name, value.rstrip(b" \t"))
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._until = None
        super().on_message_complete()
        if self._drained is not None:
            self._drained = None
            if self.transport.is_closing():
                self._wire.hang_up()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._in_body and self.cycle.response_complete:
            self._drain()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as HTTP gets the same form of answer as every other mistake."""
        self._refuse(UNREADABLE)

    def _refuse(self, message: str) -> None:
        body = b'{"code":"invalid","message":"%b"}' % message.encode()
        head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
        self._unreadable = True
        self.transport.write(STATUS_LINE[400] + head % len(body) + body)
        self.transport.close()
        self._drain()

    def _drain(self) -> None:
        """Let what is still being sent come, up to a limit, and forget it."""
        self._drained = 0
        self._expect(DRAIN_SECONDS)

    def _expect(self, seconds: float) -> None:
        self._until = self.loop.time() + seconds
        if self._timer is not None and self._looks_at > self._until:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._look_after(seconds)

    def _look_after(self, seconds: float) -> None:
        self._looks_at = self.loop.time() + seconds
        self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._until is None:
            return
        left = self._until - self.loop.time()
        if left > 0:
            self._look_after(left)
        elif self._drained is not None:
            self._wire.hang_up()
        elif self._in_body and not self.cycle.response_started:
            self._refuse(f"the body did not arrive within {BODY_SECONDS:g} seconds")
        else:
            self.timeout_keep_alive_handler()


class OnePacket:
    """A transport that sends what is written in one turn of the event loop together.

    The head of an answer and its body go out in one packet: each costs the system more than all that
    we do to make them, and wakes the client up.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        more_comes: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._more_comes = more_comes
        self._closing = False
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send this with what else is written before the loop turns."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > GATHERED_BYTES:
            self._flush()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        """Send all of these."""
        self.write(b"".join(pieces))

    def close(self) -> None:
        """Hang up after what was written; while more comes only our end, the other one is read on."""
        self._flush()
        if self._closing or not self._more_comes():
            self._transport.close()
            return
        self._closing = True
        with contextlib.suppress(OSError):
            self._transport.write_eof()

    def hang_up(self) -> None:
        """Close both ends, whatever comes."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether nothing is to be written any more."""
        return self._closing or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if not self._held:
            return
        whole = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held.clear()
        self._size = 0
        self._transport.write(whole)
