"""Following a service over its long polls, across restarts, until a signal ends it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from types import FrameType
from typing import Any

from steadmesh.client.address import NoService
from steadmesh.client.http import Unreachable
from steadmesh.operator.api import Api, Organisation, Refused

WAIT = 2.0
"""Seconds after which what moves without a hint (ages, numbers of messages) is asked for again."""
LEAST = 0.25
"""Seconds between two pictures: a busy organisation changes all the time."""
AWAY = 1.0
"""Seconds until a service that does not answer is asked again."""
FINAL = (400, 401, 403, 404)
"""Refusals that asking again does not change."""


@dataclass(frozen=True, slots=True)
class Picture:
    """How things were at a moment; or, without a view, why that is not known."""

    view: dict[str, Any] | None
    trouble: str = ""
    since: datetime | None = None
    """Since when there is trouble."""


class Ended(BaseException):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 0 if number == signal.SIGINT else 128 + number
        """Ctrl-C is how one stops watching: that is no failure."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """The first Ctrl-C or SIGTERM raises `Ended`; later ones do not disturb the clearing up."""
    heard = (signal.SIGINT, signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        for each in heard:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)

    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Service:
    """One organisation of a service that may go away and come back, perhaps elsewhere."""

    def __init__(self, data: str | None, org: str | None) -> None:
        """Raises `CommandFailed`, NoService and Unreachable if there is nothing to follow now."""
        self._data = data
        first = Api.find(data)
        self.organisation: Organisation = first.organisation(org)
        self._api: Api | None = Api(first.operator, patient=False)
        self._away_since: datetime | None = None

    def ask(self, question: Callable[[Api], Any]) -> Any:
        """The answer. Raises `Away` while there is none, and Refused for one that is final."""
        try:
            if self._api is None:
                self._api = Api.find(self._data, patient=False)
            answer = question(self._api)
        except (NoService, Unreachable) as problem:
            raise self._gone(str(problem)) from None
        except Refused as refused:
            if refused.status in FINAL:
                raise
            raise self._gone(str(refused)) from None
        self._away_since = None
        return answer

    def _gone(self, reason: str) -> Away:
        self._api = None
        self._away_since = self._away_since or datetime.now(UTC)
        return Away(reason, self._away_since)


class Away(Exception):
    """The service does not answer now."""

    def __init__(self, reason: str, since: datetime) -> None:
        super().__init__(reason)
        self.since = since


def pictures(service: Service) -> Iterator[Picture]:
    """The status of the organisation whenever something has changed, and at least every 2 s."""
    place = f"/internal/v1/organizations/{service.organisation.id}"
    cursor = ""
    while True:
        began = time.monotonic()
        try:
            yield Picture(service.ask(lambda api: api.get(f"{place}/status")))
            news = service.ask(partial(Api.poll, path=f"{place}/runtime", wait=WAIT, after=cursor))
        except Away as away:
            yield Picture(None, str(away), away.since)
            time.sleep(AWAY)
            continue
        cursor = news["cursor"] if news else cursor
        time.sleep(max(0.0, began + LEAST - time.monotonic()))
