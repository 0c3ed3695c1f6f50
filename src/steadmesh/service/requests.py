"""A request as it came: its headers, its query, and its body as JSON within a limit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive, Scope

from steadmesh.service.replies import Refusal
from steadmesh.tools import DEPTH_LIMIT

BODY_LIMIT = 1024 * 1024
OPERATOR_BODY_LIMIT = 32 * 1024 * 1024
QUERY_LIMIT = 100
IN_A_THREAD = 256 * 1024
"""Bytes of JSON from which on reading it would keep other requests waiting."""

SINGLE = frozenset(
    (
        b"host",
        b"origin",
        b"authorization",
        b"x-relay-secret",
        b"x-agent-token",
        b"x-steadmesh-generation",
        b"x-steadmesh-execution",
        b"idempotency-key",
        b"content-type",
        b"last-event-id",
    )
)
"""Headers of which two would leave open which one counts."""


class Gone(Exception):
    """The client hung up before it had sent its request."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, its body not yet read."""

    method: str
    path: bytes
    """As it was sent, percent signs and all."""
    query: bytes
    headers: dict[bytes, bytes]
    """By name in lower case."""
    local: bool
    """It came over the Unix socket."""
    receive: Receive
    scope: Scope

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> Request:
        given = scope["headers"]
        headers = dict(given)
        if len(headers) != len(given):
            _refuse_twins(given)
        # A Unix socket has a path for an address, and no port.
        server = scope.get("server")
        local = server is not None and server[1] is None
        return cls(
            scope["method"],
            scope["raw_path"],
            scope["query_string"],
            headers,
            local,
            receive,
            scope,
        )

    def header(self, name: bytes) -> str | None:
        """A header as text, or a refusal if it is not visible ASCII."""
        value = self.headers.get(name)
        if value is None:
            return None
        if not value.isascii() or not (text := value.decode()).isprintable():
            raise Refusal(400, f"the header {name.decode()} holds characters that it cannot have")
        return text

    async def body(self, limit: int) -> bytes:
        """The whole body, or a refusal as soon as it is known to be over the limit."""
        announced = self.headers.get(b"content-length")
        if announced is not None and len(announced) < 20 and int(announced) > limit:
            raise _too_large(limit)
        pieces: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self.receive()
            if message["type"] != "http.request":
                raise Gone
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(limit)
            pieces.append(piece)
            more = message.get("more_body", False)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def json(self, limit: int) -> Any:
        """The body as JSON; nothing for an empty one."""
        body = await self.body(limit)
        if not body:
            return None
        return (
            await asyncio.to_thread(read_json, body) if len(body) > IN_A_THREAD else read_json(body)
        )

    def query_values(self) -> dict[str, str]:
        """The values behind the question mark, each at most once."""
        if not self.query:
            return {}
        try:
            pairs = parse_qsl(
                self.query.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=QUERY_LIMIT,
            )
        except ValueError:
            raise Refusal(400, "the query of this address cannot be read") from None
        values = dict(pairs)
        if len(values) != len(pairs):
            raise Refusal(400, "a value of the query is given twice")
        return values

    async def hung_up(self) -> None:
        """Returns when the client is gone. For when the body was read, or does not matter."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


def read_json(body: bytes) -> Any:
    """JSON, with NaN and broken characters left in for the argument reader, which names their field."""
    try:
        value = json.loads(body.decode())
    except UnicodeDecodeError as problem:
        raise Refusal(400, f"the body is not UTF-8 text: byte {problem.start} is wrong") from None
    except json.JSONDecodeError as problem:
        where = f"line {problem.lineno}, column {problem.colno}"
        raise Refusal(400, f"the body is not JSON: {problem.msg} at {where}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # an integer of thousands of digits
        raise Refusal(400, "the body holds a number that is too long to be read") from None
    if body.count(b"[") + body.count(b"{") > DEPTH_LIMIT and is_deep(value):
        raise _too_deep()
    return value


def is_deep(value: Any) -> bool:
    """Whether lists and objects stand in one another more than `DEPTH_LIMIT` times."""
    level: list[Any] = [value]
    for _ in range(DEPTH_LIMIT + 1):
        level = [
            inner
            for item in level
            if isinstance(item, list | dict)
            for inner in (item if isinstance(item, list) else item.values())
        ]
        if not level:
            return False
    return True


def _too_deep() -> Refusal:
    return Refusal(400, f"the body is nested more than {DEPTH_LIMIT} levels deep")


def _too_large(limit: int) -> Refusal:
    return Refusal(
        400, f"the body is larger than {limit} bytes, the most this takes. Send less at a time."
    )


def _refuse_twins(given: Iterable[tuple[bytes, bytes]]) -> None:
    seen: set[bytes] = set()
    for name, _ in given:
        if name in SINGLE and name in seen:
            raise Refusal(400, f"the header {name.decode()} is given twice")
        seen.add(name)
