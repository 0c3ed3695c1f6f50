"""Waiting for a hint while a client listens: it ends when the client hangs up or the service stops."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType

from steadmesh.kernel.signals import Signals, Watch
from steadmesh.service.requests import Request


class Waiting:
    """A watch on topics that also hears of the client's end."""

    def __init__(self, signals: Signals, topics: Iterable[str], request: Request) -> None:
        self._signals = signals
        self._topics = tuple(topics)
        self._request = request
        self._stack = ExitStack()
        self._watch: Watch | None = None
        self._hung_up: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Waiting:
        watch = self._stack.enter_context(self._signals.watch(*self._topics))
        self._watch = watch
        self._hung_up = asyncio.create_task(self._request.hung_up())
        self._hung_up.add_done_callback(lambda _: watch.stir())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._hung_up is not None:
            self._hung_up.cancel()
        self._stack.close()

    @property
    def over(self) -> bool:
        """Nobody listens any more, or the service is stopping."""
        return self._signals.closed or (self._hung_up is not None and self._hung_up.done())

    async def hint(self, seconds: float) -> None:
        """Returns at a hint, at the end of either side, or after the time."""
        if self._watch is not None and not self.over:
            await self._watch.wait(seconds)
