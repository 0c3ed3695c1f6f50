"""What goes back: a status, headers and bytes, or a stream of bytes; and failures in the words of HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from pydantic_core import to_json
from starlette.types import Send

from steadmesh.kernel.errors import Failure, Kind

Headers = tuple[tuple[bytes, bytes], ...]

JSON: Headers = ((b"content-type", b"application/json"),)
NO_STORE = (b"cache-control", b"no-store")

STATUS: dict[Kind, int] = {
    "invalid": 400,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "full": 409,
    "fenced": 409,
    "too_large": 413,
    "rate_limited": 429,
    "unavailable": 503,
    "internal": 500,
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer."""

    status: int
    body: bytes = b""
    headers: Headers = JSON


@dataclass(frozen=True, slots=True)
class Flow:
    """An answer that goes on: pieces are sent as they come, an empty one is a chance to end it."""

    pieces: AsyncGenerator[bytes, None]
    headers: Headers
    status: int = 200


class Refusal(Exception):
    """A request that was turned down before any tool heard of it."""

    def __init__(
        self, status: int, message: str, *, code: str = "invalid", headers: Headers = ()
    ) -> None:
        super().__init__(message)
        self.reply = Reply(status, _error(code, message), JSON + headers)


def refused(failure: Failure, status: int | None = None) -> Reply:
    """`{"code", "message"}`, with `call_id` or `details` where the failure has them."""
    body: dict[str, object] = {"code": failure.code, "message": failure.message}
    detail = failure.detail()
    if failure.kind == "internal":
        body |= detail
    elif detail:
        body["details"] = detail
    status = status or STATUS[failure.kind]
    headers = JSON + CHALLENGE if status == 401 else JSON
    return Reply(status, to_json(body), headers)


CHALLENGE: Headers = ((b"www-authenticate", b"Bearer"),)


def _error(code: str, message: str) -> bytes:
    return to_json({"code": code, "message": message})


async def send_reply(send: Send, reply: Reply) -> None:
    """Send a whole answer."""
    body = reply.body
    headers = [*reply.headers]
    if reply.status != 204:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
