"""A streaming answer (`subscriptions/listen`): passed on line by line, taken up when it breaks."""

from __future__ import annotations

import json
import time

from steadmesh.client.cancellation import Cancelled
from steadmesh.client.http import Answer, Stream, Unreachable
from steadmesh.client.jsonrpc import (
    ACKNOWLEDGED,
    SUBSCRIPTION_KEY,
    is_answer,
    line_of,
    notification_line,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from steadmesh.client.cancellation import Cancellation
    from steadmesh.client.jsonrpc import Message

LISTEN = "subscriptions/listen"
FIRST_PAUSE, LONGEST_PAUSE, STEADY = 0.05, 5.0, 10.0
_EVENT_LIMIT = 4 * 1_048_576


class Subscription:
    """One listening client.

    When the service goes away the client must not notice: the same request is sent again, the
    second acknowledgement is kept back, and one `resources/updated` for each subscribed resource
    stands for whatever happened in between.
    """

    def __init__(
        self, message: Message, cancellation: Cancellation, write: Callable[[bytes], None]
    ) -> None:
        """`write` takes lines for the client."""
        self._message = message
        self._cancellation = cancellation
        self._write = write
        self._acknowledged = False

    def follow(self, stream: Stream, again: Callable[[], Answer | Stream]) -> Answer | None:
        """Pass the stream on until it ends with an answer.

        `again` sends the request once more. An answer that is no stream is the result, for the
        caller to pass on. Raises Unreachable and Cancelled.
        """
        pause = FIRST_PAUSE
        while True:
            began = time.monotonic()
            with stream:
                if self._passed_on(stream):
                    return None
            self._cancellation.check()
            if self._message.method != LISTEN:
                raise Unreachable("the answer broke off")
            if time.monotonic() - began > STEADY:
                pause = FIRST_PAUSE
            self._cancellation.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            outcome = again()
            if isinstance(outcome, Answer):
                return outcome
            stream = outcome

    def _passed_on(self, stream: Stream) -> bool:
        """Whether the stream came to its own end, with an answer to the request."""
        repeated = self._acknowledged
        try:
            for data in _events(stream):
                fields = _parsed(data)
                if fields is None:
                    continue
                if repeated and fields.get("method") == ACKNOWLEDGED:
                    self._report_changes()
                    continue
                self._acknowledged = True
                self._write(line_of(fields) if b"\n" in data or b"\r" in data else data)
                if is_answer(fields):
                    return True
        except Unreachable:
            if self._cancellation.requested:
                raise Cancelled from None
        return False

    def _report_changes(self) -> None:
        wanted = self._message.params.get("notifications")
        uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
        for uri in uris if isinstance(uris, list) else []:
            meta = {SUBSCRIPTION_KEY: self._message.id}
            self._write(
                notification_line("notifications/resources/updated", {"uri": uri, "_meta": meta})
            )


def _events(lines: Stream) -> Iterator[bytes]:
    """The data of each server-sent event. Comments, names and ids are of no use here."""
    data: list[bytes] = []
    size = 0
    for line in lines:
        if not line:
            if data:
                yield b"\n".join(data)
            data, size = [], 0
        elif line.startswith(b"data:"):
            size += len(line)
            if size > _EVENT_LIMIT:
                raise Unreachable(f"an event is larger than {_EVENT_LIMIT} bytes")
            data.append(line[5:].removeprefix(b" "))


def _parsed(data: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None
