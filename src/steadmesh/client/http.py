"""HTTP for the thin clients: one connection per request, retries under one idempotency key.

On plain sockets, because a client program lives for a few milliseconds: `http.client` and
`urllib` cost more to import than the whole of a call. Proxy variables are not read.
"""

from __future__ import annotations

import json
import os
import time

from steadmesh import __version__
from steadmesh.client.endpoint import BadAddress, Endpoint
from steadmesh.client.exchange import (
    EVENT_STREAM,
    WRITING_METHODS,
    Answer,
    Failure,
    Request,
    Stream,
    Unreachable,
)
from steadmesh.client.wire import percent_encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steadmesh.client.cancellation import Cancellation

__all__ = [
    "Answer",
    "BadAddress",
    "Refused",
    "Service",
    "Stream",
    "Unreachable",
    "new_idempotency_key",
    "percent_encoded",
]

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Refused(Exception):
    """A stream was asked for and something else was answered; `answer` is what."""

    def __init__(self, answer: Answer) -> None:
        """Keep the answer for whoever has to explain it."""
        super().__init__(f"HTTP {answer.status} instead of a stream")
        self.answer = answer


class Service:
    """A service behind one or several addresses (replicas), tried in turn.

    An address that answered is asked first the next time. Objects are cheap and may be shared
    between threads: every request has a connection of its own.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        *,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`http://host:port[/prefix]`, `https://…` or `unix:/path.sock`. Raises BadAddress."""
        self._endpoints = [Endpoint(address) for address in addresses]
        if not self._endpoints:
            raise BadAddress("no service address was given")
        self._pause = pause
        self._clock = clock
        self._first = 0

    @property
    def is_local(self) -> bool:
        """Whether it is reached by Unix sockets alone, which prove to be the same user."""
        return all(endpoint.is_local_socket for endpoint in self._endpoints)

    @property
    def port(self) -> int | None:
        """The port of the one TCP address; none for several, and for a Unix socket."""
        return self._endpoints[0].port if len(self._endpoints) == 1 else None

    def __str__(self) -> str:
        """The addresses, for messages."""
        return ", ".join(endpoint.text for endpoint in self._endpoints)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        idempotent_key: bool = True,
    ) -> Answer:
        """One request and its complete answer, whatever the status.

        `body` is sent as JSON; bytes are sent as they are. `timeout` is for each attempt, and
        one that ran into it is not repeated. Connection errors and 503 are, over all addresses,
        until `retry_for` seconds after the first of them (0: every address once); a 503 is
        returned if it is the last word. POST and PUT carry one `Idempotency-Key` through all
        attempts, so that a repeated write does nothing twice; without it (`idempotent_key`
        false) they are not repeated once they were sent. Raises Unreachable, and ValueError for
        what cannot be sent.
        """
        answer = self.exchange(
            method,
            path,
            body=body,
            headers=headers,
            timeout=timeout,
            retry_for=retry_for,
            idempotent_key=idempotent_key,
            streams=False,
        )
        assert isinstance(answer, Answer)  # noqa: S101 - tells the type checker about `streams`
        return answer

    def stream(
        self,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        retry_for: float = 0.0,
    ) -> Stream:
        """The lines of a streaming answer (server-sent events) to a GET.

        `timeout` is the longest silence in seconds, None for no limit. Raises Refused for any
        other answer and Unreachable, here or while it is read.
        """
        result = self.exchange(
            "GET",
            path,
            headers={"Accept": EVENT_STREAM, **(headers or {})},
            retry_for=retry_for,
            silence=timeout,
        )
        if isinstance(result, Answer):
            raise Refused(result)
        return result

    def exchange(
        self,
        method: str,
        path: str,
        *,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        retry_for: float = 10.0,
        idempotent_key: bool = True,
        streams: bool = True,
        silence: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> Answer | Stream:
        """As `request`, but an answer of server-sent events comes as an open Stream.

        `silence` is the stream's limit, as in `stream`. `cancellation` ends it from another
        thread. Raises Unreachable, Cancelled and ValueError.
        """
        request = Request(
            method,
            path,
            body=_encoded(body),
            headers=_headers(method, body, headers or {}, keyed=idempotent_key),
            timeout=timeout,
            streams=streams,
            silence=silence,
            cancellation=cancellation,
        )
        until: float | None = None
        step = FIRST_PAUSE
        while True:
            outcome = self._round(request)
            if not isinstance(outcome, Failure):
                return outcome
            # The time runs from the first failure: a long poll that breaks after 20 s has as
            # long to find the restarted service as a request that never got through.
            until = self._clock() + retry_for if until is None else until
            left = until - self._clock()
            if left <= 0 or outcome.final:
                return self._given_up(outcome, 0.0 if outcome.final else retry_for)
            wait = self._pause if cancellation is None else cancellation.wait
            wait(min(max(_jittered(step), outcome.wait), left))
            step = min(2 * step, LONGEST_PAUSE)

    def _round(self, request: Request) -> Answer | Stream | Failure:
        """One attempt at each address. Of the failures a 503 counts before silence."""
        kept = Failure("nothing was tried")
        count = len(self._endpoints)
        for index in [(self._first + turn) % count for turn in range(count)]:
            outcome = request.attempt(self._endpoints[index])
            if not isinstance(outcome, Failure):
                self._first = index
                return outcome
            if outcome.final:
                return outcome
            if outcome.busy is not None or kept.busy is None:
                kept = outcome
        return kept

    def _given_up(self, failure: Failure, tried_for: float) -> Answer:
        if failure.busy is not None:
            return failure.busy
        tried = f" after trying for {tried_for:g} s" if tried_for else ""
        raise Unreachable(f"no answer from {self}{tried}: {failure.reason}")


def new_idempotency_key() -> str:
    """128 random bits as text."""
    return os.urandom(16).hex()


def _headers(
    method: str, body: object | None, given: Mapping[str, str], *, keyed: bool
) -> dict[str, str]:
    headers = {
        "User-Agent": f"steadmesh-client/{__version__}",
        "Accept": "application/json",
        "Accept-Encoding": "identity",
        "Connection": "close",
    }
    if body is not None:
        headers["Content-Type"] = "application/json"
    if keyed and method in WRITING_METHODS:
        headers["Idempotency-Key"] = new_idempotency_key()
    # Names differ in case only to us: the service refuses a header that comes twice.
    own = {name.lower() for name in given}
    return {name: value for name, value in headers.items() if name.lower() not in own} | dict(given)


def _encoded(body: object | None) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    try:
        return _dumped(body, ascii_only=False).encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate: the service refuses it by name, which helps more than we could here.
        return _dumped(body, ascii_only=True).encode("ascii")


def _dumped(value: object, *, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))


def _jittered(pause: float) -> float:
    """Between half of it and all of it, so that a hundred clients do not come back at once."""
    return pause * (0.5 + os.urandom(1)[0] / 512)
