"""A small HTTP load generator: keep-alive connections, prepared requests, latencies in microseconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import uvloop


@dataclass(slots=True)
class Measured:
    """What a run of one number of callers came to."""

    callers: int
    seconds: float
    latencies: list[float] = field(default_factory=list)
    errors: int = 0

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1_000


class _Connection(asyncio.Protocol):
    """One caller: the next request goes out when the answer to the last one is whole."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.Transport | None = None
        self._received = b""
        self._started = 0.0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        length = _content_length(self._received[:head])
        if len(self._received) < head + 4 + length:
            return
        now = time.perf_counter()
        self._run.answered(self._received, now - self._started)
        self._received = b""
        if now < self._run.until:
            self._send()
        else:
            self._end()

    def connection_lost(self, problem: Exception | None) -> None:
        self._end()

    def _send(self) -> None:
        assert self._transport is not None
        self._started = time.perf_counter()
        self._transport.write(self._run.next_request())

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
        if self._transport is not None:
            self._transport.close()


class _Run:
    def __init__(
        self, measured: Measured, until: float, request: Callable[[], bytes], good: bytes
    ) -> None:
        self.measured = measured
        self.until = until
        self.next_request = request
        self._good = good

    def answered(self, answer: bytes, seconds: float) -> None:
        if self._good in answer:
            self.measured.latencies.append(seconds)
        else:
            self.measured.errors += 1


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


def measure(
    port: int, request: Callable[[], bytes], *, callers: int, seconds: float, good: bytes
) -> Measured:
    """Keep `callers` requests in flight for a while. An answer without `good` in it is an error."""

    async def run() -> Measured:
        measured = Measured(callers, seconds)
        started = time.perf_counter()
        one = _Run(measured, started + seconds, request, good)
        loop = asyncio.get_running_loop()
        made = [
            await loop.create_connection(lambda: _Connection(one), "127.0.0.1", port)
            for _ in range(callers)
        ]
        await asyncio.gather(*(connection.ended for _, connection in made))
        measured.seconds = time.perf_counter() - started
        return measured

    return uvloop.run(run())


def http_post(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    """A whole request as bytes."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
