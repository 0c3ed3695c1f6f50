"""Forwards MCP messages between an input of lines and `POST /mcp`.

It knows no tool and keeps no list. Several requests may be in flight; their answers are written
as they come. What is particular to one kind of caller is in its `Identity`.
"""

from __future__ import annotations

import json
import sys
import threading

from steadmesh.client.cancellation import Cancellation, Cancelled
from steadmesh.client.http import Answer, Stream, Unreachable
from steadmesh.client.jsonrpc import (
    INVALID_REQUEST,
    Fault,
    Message,
    failed_call,
    is_answer,
    line_of,
    parse,
)
from steadmesh.client.stdio import TooLong
from steadmesh.client.subscription import LISTEN, Subscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from steadmesh.client.http import Service
    from steadmesh.client.stdio import Output

MAX_IN_FLIGHT = 128
# Above what any tool takes; who has waited enough cancels.
CALL_TIMEOUT = 300.0
_TRY_AGAIN = "Wait a moment and try again; if that does not help, tell whoever runs the service."


class NoIdentity(Exception):
    """The caller's credentials cannot be read at the moment; the text says why."""


class Identity:
    """Who a bridge speaks for. A kind of caller overrides what it needs."""

    def headers(self) -> Mapping[str, str]:
        """Credentials and attribution for the next request. Raises NoIdentity."""
        return {}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Look at the headers (lower case) of an answer from the service."""


class Bridge:
    """Takes lines in, writes lines out, and has threads in between.

    `settled` is called, from any thread, whenever something in flight has ended.
    """

    def __init__(
        self,
        service: Service,
        identity: Identity,
        output: Output,
        *,
        settled: Callable[[], None],
        retry_for: float = 10.0,
    ) -> None:
        """`retry_for`: how many seconds a message waits for a service that is away."""
        self._service = service
        self._identity = identity
        self._output = output
        self._settled = settled
        self._retry_for = retry_for
        self._lock = threading.Lock()
        self._flights: dict[object, _Flight] = {}
        self._agreed: str | None = None
        self._input_ended = False
        self._no_handshake = threading.Event()
        self._no_handshake.set()

    @property
    def in_flight(self) -> int:
        """How many messages wait for their answer, streams included."""
        return len(self._flights)

    def receive(self, line: bytes | TooLong) -> None:
        """Take one line of input. Never waits, never raises."""
        try:
            if isinstance(line, TooLong):
                raise Fault(INVALID_REQUEST, "the line is too long")
            message = parse(line)
        except Fault as fault:
            self._output.write(fault.answer)
            return
        if message is None:
            return
        if message.method == "notifications/cancelled":
            self._cancel(message.params.get("requestId"))
        elif self.in_flight >= MAX_IN_FLIGHT:
            self._fail(message, f"More than {MAX_IN_FLIGHT} requests are in flight.")
        else:
            self._start(message)

    def end_streams(self) -> None:
        """Input has ended: close what would go on for ever; the rest ends by itself."""
        self._input_ended = True
        self._cancel_where(lambda flight: flight.is_endless)

    def abort(self) -> None:
        """Cancel everything."""
        self._cancel_where(lambda flight: True)

    def _cancel_where(self, chosen: Callable[[_Flight], bool]) -> None:
        with self._lock:
            flights = [flight for flight in self._flights.values() if chosen(flight)]
        for flight in flights:
            flight.cancellation.cancel()

    def _cancel(self, message_id: object) -> None:
        with self._lock:
            flight = self._flights.get(_key(message_id))
        if flight is not None:
            flight.cancellation.cancel()

    def _start(self, message: Message) -> None:
        flight = _Flight(message)
        if message.method == "initialize":
            self._no_handshake.clear()
        with self._lock:
            if flight.key in self._flights:
                flight.key = flight  # an id used twice: the first one keeps it
            self._flights[flight.key] = flight
        threading.Thread(target=self._fly, args=(flight,), daemon=True).start()

    def _fly(self, flight: _Flight) -> None:
        message = flight.message
        try:
            if message.method != "initialize" and message.own_version is None:
                # Only the answer says which version to name; a client may not have waited.
                self._no_handshake.wait()
            self._forward(flight)
        except Cancelled:
            pass  # whoever cancels does not want an answer
        except (Unreachable, NoIdentity, ValueError) as error:
            text = str(error)
            self._fail(message, f"{text[:1].upper()}{text[1:]}. {_TRY_AGAIN}")
        finally:
            if message.method == "initialize":
                self._no_handshake.set()
            with self._lock:
                del self._flights[flight.key]
            self._settled()

    def _forward(self, flight: _Flight) -> None:
        outcome = self._ask(flight)
        answer = self._follow(flight, outcome) if isinstance(outcome, Stream) else outcome
        if answer is not None and flight.message.is_request:
            self._pass_on(flight.message, answer)

    def _follow(self, flight: _Flight, stream: Stream) -> Answer | None:
        flight.is_endless = flight.message.method == LISTEN
        if flight.is_endless and self._input_ended:
            stream.close()
            return None
        subscription = Subscription(flight.message, flight.cancellation, self._output.write)
        return subscription.follow(stream, lambda: self._ask(flight))

    def _ask(self, flight: _Flight) -> Answer | Stream:
        """Send the message as the client wrote it, under an idempotency key of its own."""
        message = flight.message
        outcome = self._service.exchange(
            "POST",
            "/mcp",
            body=message.raw,
            headers={
                "Accept": "application/json, text/event-stream",
                **message.era_headers(None if message.method == "initialize" else self._agreed),
                **self._identity.headers(),
            },
            timeout=CALL_TIMEOUT,
            retry_for=self._retry_for,
            cancellation=flight.cancellation,
        )
        self._identity.learn(outcome.headers)
        return outcome

    def _pass_on(self, message: Message, answer: Answer) -> None:
        try:
            fields = answer.json()
        except ValueError:
            fields = None
        if not is_answer(fields) or answer.status >= 500:
            self._fail(message, _explanation(answer.status, fields))
            return
        if message.method == "initialize":
            self._agreed = _agreed_version(fields)
        if fields.get("id") is None:
            # Refused before its id was read; the client needs it to know which request this was.
            self._output.write(line_of({**fields, "id": message.id}))
        elif b"\n" in answer.body or b"\r" in answer.body:
            self._output.write(line_of(fields))
        else:
            self._output.write(answer.body)

    def _fail(self, message: Message, text: str) -> None:
        if message.is_request:
            self._output.write(failed_call(message, text))
        else:
            sys.stderr.write(f"steadmesh: {message.method} was not delivered: {text}\n")


class _Flight:
    """A message on its way. Notifications have no id, so each is its own key."""

    __slots__ = ("cancellation", "is_endless", "key", "message")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.cancellation = Cancellation()
        self.is_endless = False
        self.key: object = _key(message.id) if message.is_request else self


def _key(message_id: object) -> str:
    """1 and "1" are different ids."""
    return json.dumps(message_id)


def _agreed_version(fields: dict[str, Any]) -> str | None:
    result = fields.get("result")
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    plain = isinstance(version, str) and all("!" <= sign <= "~" for sign in version)
    return version if plain else None


def _explanation(status: int, fields: object) -> str:
    """A sentence for an answer that is no JSON-RPC answer, from what it says itself if it does."""
    fields = fields if isinstance(fields, dict) else {}
    inner = fields.get("error")
    source = inner if isinstance(inner, dict) else fields
    text = source.get("message")
    if not isinstance(text, str) or not text:
        return f"Steadmesh answered HTTP {status} without saying why. {_TRY_AGAIN}"
    if fields.get("code") == "fenced":
        return f"{text} A newer execution holds this seat: stop now, and do not retry."
    return f"{text} {_TRY_AGAIN}" if status >= 500 else text
