"""The platform as a seat's runner sees it: one method for each of its endpoints.

Every request reads the token file afresh, because the token is replaced under a running seat, and
carries the generation of the lease once there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from steadmesh.client.cancellation import Cancellation
from steadmesh.client.http import Answer, Service, Stream, Unreachable
from steadmesh.kernel.clock import rfc3339
from steadmesh.runner.harness.contract import (
    Bootstrap,
    Checkpoint,
    Delivery,
    Envelope,
    Event,
    Recovery,
)

T = TypeVar("T")

REQUEST_TIMEOUT = 10.0
POLL_SLACK = 10.0
"""Seconds that a long poll's answer may be late."""
LONGEST_ERROR = 2_048


class PlatformError(Exception):
    """The platform said no. `code` is its own word for why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{message} (HTTP {status}, {code})")
        self.status = status
        self.code = code


class Fenced(PlatformError):
    """A newer execution holds the seat; nothing this start does counts any more."""


class SeatGone(Fenced):
    """The seat is retired, or its organisation deleted: nobody acts as it any more."""


class LeaseHeld(PlatformError):
    """Another instance holds the lease."""


class NotFound(PlatformError):
    """No such delivery, execution or endpoint."""


class Unavailable(PlatformError):
    """The platform cannot answer now; the same request may succeed later."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to act as the seat, until it is not renewed for `ttl_seconds`."""

    generation: int
    ttl_seconds: float


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction text of the seat. `ref` ends with its SHA-256 digest."""

    ref: str
    scope: str
    order: int
    text: str


class Platform:
    """The runner's endpoints. Every method raises PlatformError and Unreachable.

    `generation` is sent once it is set; `execution_id` names the running turn in renewals and
    requests, for attribution only.
    """

    def __init__(self, service: Service, token_file: Path) -> None:
        self._service = service
        self._token_file = token_file
        self.generation: int | None = None
        self.execution_id: str | None = None

    def acquire(self, holder: str) -> Lease:
        """Take the lease; `holder` is for people. Raises LeaseHeld."""
        lease = _read(self._post("/v1/lease/acquire", {"holder": holder}), _lease)
        self.generation = lease.generation
        return lease

    def renew(self, *, timeout: float) -> Lease:
        """Keep the lease, and the delivery of the running turn. Not retried in here."""
        body: dict[str, Any] = {"generation": self.generation}
        if self.execution_id is not None:
            body["execution_id"] = self.execution_id
        answer = self._post("/v1/lease/renew", body, timeout=timeout, retry_for=0)
        return _read(answer, _lease)

    def release(self) -> None:
        """Give the lease back."""
        self._post("/v1/lease/release", {}, retry_for=2)

    def report(
        self, state: str, *, detail: str | None = None, adopted_revision: str | None = None
    ) -> None:
        """Say which state the seat is in."""
        body = {
            "generation": self.generation,
            "state": state,
            "detail": detail,
            "adopted_revision": adopted_revision,
        }
        given = {name: value for name, value in body.items() if value is not None}
        self._post("/v1/state", given, retry_for=2)

    def bootstrap(self) -> Bootstrap:
        """What the harness gets at start."""
        return _read(self._ask("GET", "/v1/bootstrap"), _bootstrap)

    def instructions(self) -> tuple[Instruction, ...]:
        """The seat's instruction texts, in order."""
        return _read(self._ask("GET", "/v1/instructions"), _instructions)

    def next_delivery(self, *, wait_seconds: float, cancellation: Cancellation) -> Delivery | None:
        """The next turn's work, waiting for it; None when there was none. Raises Cancelled."""
        answer = self._service.exchange(
            "GET",
            f"/v1/inbox/next?wait={wait_seconds:g}",
            headers=self._headers(),
            timeout=wait_seconds + POLL_SLACK,
            retry_for=0,
            streams=False,
            cancellation=cancellation,
        )
        checked = _checked(answer)
        return None if checked.status == 204 else _read(checked, _delivery)

    def ack(self, delivery: Delivery, *, failed: str | None) -> None:
        """Close the delivery: completed, or failed with that text."""
        body: dict[str, Any] = {"execution_id": delivery.execution_id, "outcome": "completed"}
        if failed is not None:
            text = failed.encode("utf-8", "replace")[:LONGEST_ERROR].decode("utf-8", "ignore")
            body |= {"outcome": "failed", "error": text}
        self._post(f"/v1/inbox/{delivery.delivery_id}/ack", body)

    def post_events(self, execution_id: str, events: Sequence[Event], *, retry_for: float) -> None:
        """Record what happened in a turn."""
        self._post(
            f"/v1/executions/{execution_id}/events",
            [_event(event) for event in events],
            retry_for=retry_for,
        )

    def put_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store where the session can be taken up again."""
        _checked(self._send("PUT", "/v1/checkpoint", asdict(checkpoint), retry_for=2))

    def _post(
        self, path: str, body: object, *, timeout: float = REQUEST_TIMEOUT, retry_for: float = 10.0
    ) -> Answer:
        return _checked(self._send("POST", path, body, timeout=timeout, retry_for=retry_for))

    def _ask(self, method: str, path: str) -> Answer:
        # Whoever asks goes on asking for longer, and looks meanwhile whether it is to stop.
        return _checked(self._send(method, path, None, retry_for=0))

    def _send(
        self,
        method: str,
        path: str,
        body: object | None,
        *,
        timeout: float = REQUEST_TIMEOUT,
        retry_for: float = 10.0,
    ) -> Answer:
        return self._service.request(
            method,
            path,
            body=body,
            headers=self._headers(),
            timeout=timeout,
            retry_for=retry_for,
        )

    def _headers(self) -> dict[str, str]:
        try:
            token = self._token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise Unreachable(
                f"the token file {self._token_file} cannot be read: {error.strerror}"
            ) from None
        headers = {"Authorization": f"Bearer {token}"}
        if self.generation is not None:
            headers["X-Steadmesh-Generation"] = str(self.generation)
        if self.execution_id is not None:
            headers["X-Steadmesh-Execution"] = self.execution_id
        return headers


def checked(answer: Answer) -> Answer:
    """The answer when it is a success. Raises PlatformError, of the kind that its code names."""
    if answer.status < 300:
        return answer
    code, message = _words(answer)
    kind = PlatformError
    if answer.status == 409:
        kind = LeaseHeld if code == "conflict" else Fenced
    elif answer.status == 403:
        kind = SeatGone
    elif answer.status == 404:
        kind = NotFound
    elif answer.status in (429, 500, 502, 503, 504):
        kind = Unavailable
    raise kind(answer.status, code, message)


def _checked(answer: Answer | Stream) -> Answer:
    if isinstance(answer, Stream):
        answer.close()
        raise Unreachable("the service answered with a stream where none was asked for")
    return checked(answer)


def _words(answer: Answer) -> tuple[str, str]:
    try:
        document = answer.json()
        return str(document["code"]), str(document["message"])
    except (ValueError, KeyError, TypeError):
        return "unknown", "the service answered with no reason"


def _read(answer: Answer, reader: Callable[[dict[str, Any]], T]) -> T:
    try:
        document = answer.json()
        if not isinstance(document, dict):
            raise TypeError("it is not an object")
        return reader(document)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        # Not ours to crash on: whatever answered may be replaced by the service any moment.
        raise Unreachable(f"the service's answer cannot be read: {problem!r}") from None


def _lease(document: Mapping[str, Any]) -> Lease:
    return Lease(int(document["generation"]), float(document["ttl_seconds"]))


def _instructions(document: Mapping[str, Any]) -> tuple[Instruction, ...]:
    return tuple(
        Instruction(str(row["ref"]), str(row["scope"]), int(row["order"]), str(row["text"]))
        for row in document["instructions"]
    )


def _delivery(document: Mapping[str, Any]) -> Delivery:
    return Delivery(
        delivery_id=int(document["delivery_id"]),
        execution_id=str(document["execution_id"]),
        attempt=int(document["attempt"]),
        message=_envelope(document["message"]),
        passive=tuple(_envelope(row) for row in document.get("passive") or ()),
    )


_ENVELOPE_FIELDS = tuple(Envelope.__dataclass_fields__)


def _envelope(document: Mapping[str, Any]) -> Envelope:
    # A newer service may send more than this version knows.
    return Envelope(
        **{name: str(document[name]) for name in _ENVELOPE_FIELDS if document.get(name) is not None}
    )


def _bootstrap(document: Mapping[str, Any]) -> Bootstrap:
    recovery = document.get("recovery") or {}
    session = recovery.get("session")
    return Bootstrap(
        identity=document.get("self") or {},
        instructions=tuple(document.get("instructions") or ()),
        guidance=tuple(str(line) for line in document.get("guidance") or ()),
        recovery=Recovery(
            session=None if session is None else _checkpoint(session),
            handoff=recovery.get("handoff"),
            pending_messages=int(recovery.get("pending_messages") or 0),
            unknown_operations=tuple(recovery.get("unknown_operations") or ()),
            work=tuple(recovery.get("work") or ()),
            note=recovery.get("note"),
        ),
    )


def _checkpoint(document: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(
        harness_adapter=str(document["harness_adapter"]),
        format_version=str(document["format_version"]),
        checkpoint_ref=str(document["checkpoint_ref"]),
    )


def _event(event: Event) -> dict[str, Any]:
    row = {
        "kind": event.kind,
        "correlation_id": event.correlation_id,
        "data": dict(event.data),
        "time": rfc3339(event.time),
    }
    return {name: value for name, value in row.items() if value is not None}
