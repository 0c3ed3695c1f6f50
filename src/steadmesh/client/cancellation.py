"""Ending a request from another thread."""

from __future__ import annotations

import threading

from steadmesh.client.endpoint import hang_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket


class Cancelled(Exception):
    """The request was cancelled before its answer came."""


class Cancellation:
    """Handed to one request; `cancel` from any thread closes its connection and ends its retries."""

    def __init__(self) -> None:
        """Not cancelled yet."""
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None

    @property
    def requested(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Wake whoever reads or waits. Calling it again does nothing."""
        self._event.set()
        with self._lock:
            if self._connection is not None:
                hang_up(self._connection)

    def attach(self, connection: socket.socket) -> None:
        """The request now waits on this connection. Raises Cancelled."""
        with self._lock:
            self._connection = connection
        self.check()

    def detach(self) -> None:
        """The connection is about to be closed, and its number may be used for another."""
        with self._lock:
            self._connection = None

    def check(self) -> None:
        """Raises Cancelled after `cancel`."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        """A pause that `cancel` cuts short. Raises Cancelled."""
        self._event.wait(seconds)
        self.check()
