"""Waiting for something to happen without asking the database all the time.

A topic is a short text such as `inbox:<seat id>`. Work that changes something names the topic; those
who wait are told after the commit. It is a hint: whoever waits looks again by itself now and then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Watch:
    """One waiter, on one event loop. Begin to watch, then look, then wait: no hint falls between."""

    __slots__ = ("_event", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def stir(self) -> None:
        """Called from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:  # the loop has closed
            return

    async def wait(self, seconds: float) -> bool:
        """Whether a hint came within the time; the next wait is for the next hint."""
        try:
            await asyncio.wait_for(self._event.wait(), max(seconds, 0))
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Signals:
    """Who waits for what, in this process."""

    def __init__(self) -> None:
        self._watches: dict[str, set[Watch]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def notify(self, topics: Iterable[str]) -> None:
        """Tell those who watch one of the topics. Cheap when nobody does."""
        if not self._watches:
            return
        with self._lock:
            stirred = {watch for topic in topics for watch in self._watches.get(topic, ())}
        for watch in stirred:
            watch.stir()

    @contextmanager
    def watch(self, *topics: str) -> Iterator[Watch]:
        """Watch the topics for as long as the block runs."""
        watch = Watch()
        wanted = set(topics)
        with self._lock:
            for topic in wanted:
                self._watches.setdefault(topic, set()).add(watch)
        try:
            yield watch
        finally:
            with self._lock:
                for topic in wanted:
                    watches = self._watches[topic]
                    watches.discard(watch)
                    if not watches:
                        del self._watches[topic]

    def watchers(self, topic: str) -> int:
        """How many wait for the topic."""
        return len(self._watches.get(topic, ()))

    def stir_all(self) -> None:
        """Let every waiter look again: the service is stopping."""
        self._closed = True
        with self._lock:
            everyone = {watch for watches in self._watches.values() for watch in watches}
        for watch in everyone:
            watch.stir()

    @property
    def closed(self) -> bool:
        """Whether waiting makes no sense any more."""
        return self._closed
