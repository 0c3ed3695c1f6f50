"""Following the service: one long poll for all seats of an organisation."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from steadmesh.client.http import Unreachable
from steadmesh.kernel.log import fields
from steadmesh.runner.control import Control
from steadmesh.runner.platform import PlatformError, Unavailable
from steadmesh.runner.view import OrganisationView

_log = logging.getLogger(__name__)

WAIT = 25.0
_PAUSE_AFTER_FAILURE = 1.0
_PAUSE_AFTER_NEWS = 0.05
"""Seconds. A busy organisation changes all the time; one picture for several changes is enough."""


class Watch:
    """Calls `on_news` from a thread of its own with every new view, until `stop`.

    A refusal (the organisation is gone, the key is not valid) is passed on too, and ends it.
    """

    def __init__(
        self,
        control: Control,
        cursor: str,
        *,
        on_news: Callable[[OrganisationView | PlatformError], None],
    ) -> None:
        self._control = control
        self._cursor = cursor
        self._on_news = on_news
        self._ended = threading.Event()
        # A daemon: a poll that is under way when we end may go on for its whole wait.
        self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Say nothing more."""
        self._ended.set()

    def _follow(self) -> None:
        while not self._ended.is_set():
            pause = _PAUSE_AFTER_NEWS
            try:
                view = self._control.runtime(wait_seconds=WAIT, after=self._cursor)
            except (Unavailable, Unreachable) as problem:
                _log.warning("the service does not answer", extra=fields(reason=str(problem)))
                pause = _PAUSE_AFTER_FAILURE
            except PlatformError as refusal:
                self._on_news(refusal)
                return
            else:
                if view is not None and not self._ended.is_set():
                    self._cursor = view.cursor
                    self._on_news(view)
            self._ended.wait(pause)
