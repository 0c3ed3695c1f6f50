"""A strict stand-in for the service's runner endpoints: anything it does not know is an error."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, object]

TOKEN = "sms_test-token"


def instruction(text: str, scope: str = "role", order: int = 1) -> dict[str, Any]:
    """One row of `GET /v1/instructions`, with the right digest."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"ref": f"file:x.md#sha256:{digest}", "scope": scope, "order": order, "text": text}


class PlatformDouble:
    """One seat's service. Everything that was said to it is in its attributes."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.tokens = {TOKEN}
        self.generation = 0
        self.held = False
        self.ttl = 30.0
        self.held_elsewhere = False
        self.unavailable = False
        self.retired = False
        self.bootstrap_is_away = False
        self.turned_away: list[str] = []
        self.refuse_acks = False
        self.queue: list[dict[str, Any]] = []
        self.handed_out: dict[str, Any] | None = None
        self.acks: list[dict[str, Any]] = []
        self.states: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.checkpoints: list[dict[str, Any]] = []
        self.renewals: list[dict[str, Any]] = []
        self.released = 0
        self.bootstrap: dict[str, Any] = {
            "self": {"seat_key": "builder"},
            "instructions": [],
            "guidance": "be kind",
            "recovery": {"pending_messages": 0},
        }
        self.instructions = [instruction("Build things.\n")]
        self.problems: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def send(self, body: str, **fields: Any) -> dict[str, Any]:
        """Queue a message from a person."""
        with self.changed:
            number = len(self.queue) + len(self.acks) + 1
            envelope = {
                "message_id": f"m-{number}",
                "organization_id": "o-1",
                "conversation_id": "c-1",
                "origin": "human",
                "recipient_seat": "builder",
                "body": body,
                "created_at": "2026-10-08T01:55:00Z",
                **fields,
            }
            self.queue.append(
                {
                    "delivery_id": number,
                    "execution_id": f"e-{number}",
                    "attempt": 1,
                    "message": envelope,
                    "passive": [],
                }
            )
            self.changed.notify_all()
            return envelope

    def fence(self) -> None:
        """A newer execution takes the seat."""
        with self.changed:
            self.generation += 1
            self.held = False
            self.changed.notify_all()

    def until(self, condition: Callable[[], Any], what: str, *, limit: float = 10.0) -> None:
        """Wait for something to have been said; fails the test after the limit."""
        with self.changed:
            if not self.changed.wait_for(condition, limit):
                raise AssertionError(f"waited {limit:g} s for: {what}; problems: {self.problems}")

    def state_names(self) -> list[str]:
        return [state["state"] for state in self.states]

    # What a request answers; the lock is held.

    def answer(self, method: str, path: str, *, headers: dict[str, str], body: Any) -> Answer:
        target = urlsplit(path)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return 401, {"code": "unauthenticated", "message": "unknown token"}
        if self.retired:
            return 403, {"code": "forbidden", "message": "the seat is retired"}
        if self.unavailable:
            self.turned_away.append(target.path)
            return 503, {"code": "unavailable", "message": "the database is busy"}
        match method, target.path.split("/")[2:]:
            case "POST", ["lease", "acquire"]:
                return self._acquire(body)
            case "POST", ["lease", "renew"]:
                return self._renew(body, headers)
            case "GET", ["bootstrap"] if self.bootstrap_is_away:
                self.turned_away.append(target.path)
                return 503, {"code": "unavailable", "message": "the database is busy"}
            case "GET", ["bootstrap"]:
                return 200, self.bootstrap
            case "GET", ["instructions"]:
                return 200, {"instructions": self.instructions}
        if headers.get("x-steadmesh-generation") != str(self.generation) or not self.held:
            return 409, {"code": "fenced", "message": "a newer execution holds this seat"}
        match method, target.path.split("/")[2:]:
            case "POST", ["lease", "release"]:
                self.held = False
                self.released += 1
                return 204, None
            case "POST", ["state"]:
                self._only(body, "generation", "state", "detail", "adopted_revision")
                if body["state"] not in ("Warm", "Executing", "Quiescing", "Stopped"):
                    self.problems.append(f"state {body}")
                self.states.append(body)
                return 204, None
            case "GET", ["inbox", "next"]:
                return self._next(float(parse_qs(target.query)["wait"][0]))
            case "POST", ["inbox", delivery_id, "ack"]:
                return self._ack(int(delivery_id), body)
            case "POST", ["executions", execution_id, "events"]:
                for event in body if isinstance(body, list) else [body]:
                    self._only(event, "kind", "correlation_id", "data", "time")
                    self.events.append({**event, "execution_id": execution_id})
                return 204, None
            case "PUT", ["checkpoint"]:
                self._only(body, "harness_adapter", "format_version", "checkpoint_ref", "guarantee")
                self.checkpoints.append(body)
                return 204, None
        self.problems.append(f"{method} {path}")
        return 404, {"code": "not_found", "message": "no such endpoint"}

    def _acquire(self, body: Any) -> Answer:
        self._only(body, "holder")
        if self.held_elsewhere:
            return 409, {"code": "conflict", "message": "held by another instance"}
        self.generation += 1
        self.held = True
        return 200, self._lease()

    def _renew(self, body: Any, headers: dict[str, str]) -> Answer:
        self._only(body, "generation", "execution_id")
        if body["generation"] != self.generation or not self.held:
            return 409, {"code": "fenced", "message": "a newer execution holds this seat"}
        self.renewals.append({**body, "header": headers.get("x-steadmesh-execution")})
        return 200, self._lease()

    def _lease(self) -> dict[str, Any]:
        return {
            "seat_id": "s-1",
            "generation": self.generation,
            "expires_at": "2026-10-08T01:55:00Z",
            "ttl_seconds": self.ttl,
        }

    def _next(self, wait: float) -> Answer:
        generation = self.generation
        give_up = time.monotonic() + wait
        while True:
            if self.generation != generation or not self.held:
                return 409, {"code": "fenced", "message": "a newer execution holds this seat"}
            if self.handed_out is not None:
                return 200, self.handed_out
            if self.queue:
                self.handed_out = self.queue.pop(0)
                return 200, self.handed_out
            left = give_up - time.monotonic()
            if left <= 0:
                return 204, None
            self.changed.wait(left)

    def _ack(self, delivery_id: int, body: Any) -> Answer:
        self._only(body, "execution_id", "outcome", "error")
        delivery = self.handed_out
        if self.refuse_acks or delivery is None or delivery["delivery_id"] != delivery_id:
            self.handed_out = None
            return 404, {"code": "not_found", "message": "no such delivery"}
        if body["execution_id"] != delivery["execution_id"]:
            self.problems.append(f"ack {body}")
        self.acks.append({"delivery_id": delivery_id, **body})
        self.handed_out = None
        return 204, None

    def _only(self, body: Any, *names: str) -> None:
        unknown = set(body) - set(names) if isinstance(body, dict) else {repr(body)}
        if unknown:
            self.problems.append(f"unknown fields {unknown}")


def _handler(double: PlatformDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            with double.changed:
                status, answer = double.answer(self.command, self.path, headers=headers, body=body)
                double.changed.notify_all()
            data = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
