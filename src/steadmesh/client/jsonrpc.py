"""The JSON-RPC messages of MCP, as far as a bridge must look into them."""

from __future__ import annotations

import binascii
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
# What the name of a message is, for the methods that have one (2026-07-28, "Mcp-Name").
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Fault(Exception):
    """A line that is no message; `answer` is the line that says so."""

    def __init__(self, code: int, text: str, message_id: object = None) -> None:
        """The JSON-RPC error code, what is wrong, and the id if one was given."""
        super().__init__(text)
        self.answer = error_line(message_id, code, text)


class Message:
    """A request or a notification of the client; `raw` is what it wrote."""

    __slots__ = ("id", "is_request", "method", "params", "raw")

    def __init__(self, raw: bytes, fields: dict[str, Any]) -> None:
        """From a JSON object with a method. Raises Fault."""
        self.raw = raw
        self.is_request = "id" in fields
        self.id: str | int | None = _id(fields)
        if self.is_request and self.id is None:
            raise Fault(INVALID_REQUEST, "the id of a request must be a string or an integer")
        if not isinstance(fields["method"], str):
            raise Fault(INVALID_REQUEST, "the method must be a string", self.id)
        self.method: str = fields["method"]
        params = fields.get("params")
        self.params: dict[str, Any] = params if isinstance(params, dict) else {}

    @property
    def own_version(self) -> str | None:
        """The protocol version the message itself names, as every one does since 2026-07-28."""
        meta = self.params.get("_meta")
        version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
        return version if isinstance(version, str) else None

    def era_headers(self, agreed: str | None) -> dict[str, str]:
        """The HTTP headers that the message's protocol era wants; `agreed` is from initialize."""
        version = self.own_version
        if version is None:
            return {"MCP-Protocol-Version": agreed} if agreed else {}
        headers = {
            "MCP-Protocol-Version": header_value(version),
            "Mcp-Method": header_value(self.method),
        }
        name = self.params.get(_NAMED_BY.get(self.method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = header_value(name)
        return headers


def parse(line: bytes) -> Message | None:
    """The message on a line; None for a blank line or an answer to nothing we asked.

    Raises Fault.
    """
    if not line.strip():
        return None
    try:
        fields = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Fault(PARSE_ERROR, "the line is not JSON") from None
    if not isinstance(fields, dict):
        raise Fault(INVALID_REQUEST, "a line must hold one JSON-RPC message; batches are not taken")
    if "method" not in fields:
        if "result" in fields or "error" in fields:
            return None
        raise Fault(INVALID_REQUEST, "the message has no method", _id(fields))
    return Message(line, fields)


def is_answer(fields: object) -> bool:
    """Whether it is an answer to a request, rather than a notification or anything else."""
    return (
        isinstance(fields, dict)
        and "method" not in fields
        and bool({"result", "error"} & set(fields))
    )


def error_line(message_id: object, code: int, text: str) -> bytes:
    """A JSON-RPC error."""
    return line_of({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}})


def failed_call(message: Message, text: str) -> bytes:
    """The line for a request that got no usable answer.

    A tool call gets a result that its model can read; anything else a JSON-RPC error.
    """
    if message.method != "tools/call":
        return error_line(message.id, INTERNAL_ERROR, text)
    result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": True}
    if message.own_version is not None:
        result["resultType"] = "complete"
    return line_of({"jsonrpc": "2.0", "id": message.id, "result": result})


def notification_line(method: str, params: dict[str, object]) -> bytes:
    """A notification."""
    return line_of({"jsonrpc": "2.0", "method": method, "params": params})


def line_of(fields: object) -> bytes:
    """Any message on one line; ASCII, as a lone surrogate can only be written escaped."""
    return json.dumps(fields, separators=(",", ":")).encode("ascii")


def header_value(text: str) -> str:
    """Text as an MCP header value: as it is, or in base64 where a header could not carry it."""
    plain = all(" " <= sign <= "~" for sign in text) and text == text.strip()
    if plain and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    data = binascii.b2a_base64(text.encode("utf-8", "surrogatepass"), newline=False)
    return f"=?base64?{data.decode('ascii')}?="


def _id(fields: dict[str, Any]) -> str | int | None:
    found = fields.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None
