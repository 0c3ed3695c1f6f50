"""What a seat's clients expect of the service, small enough to read: a handler for the double."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request

from tests.client.double import LIMIT, Asked, Bytes, Reset, answer, event, event_stream

TOKEN = "sms_right"
GENERATION = "7"
MODERN = "2026-07-28"


class Platform:
    """One seat, at generation 7, with the tools `clock.now`, `hold`, `fail`, and `messages.send`.

    `hold` answers once the test sets `released`. A listening client gets an acknowledgement and
    then whatever `updates` yields.
    """

    def __init__(self) -> None:
        self.released = threading.Event()
        self.updates: list[dict[str, Any]] = []
        self.listening = threading.Event()

    def __call__(self, asked: Asked) -> bytes | Bytes | Reset:
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return answer(401, {"code": "unauthenticated", "message": "The token is not known."})
        if (asked.method, asked.path) == ("GET", "/v1/tools"):
            tool = {"name": "clock.now", "description": "The time.", "input_schema": {}}
            return answer(200, [tool])
        if asked.method == "POST" and asked.path.startswith("/v1/tools/"):
            return self._tool(asked, asked.path.removeprefix("/v1/tools/"))
        if (asked.method, asked.path) == ("POST", "/mcp"):
            return self._mcp(asked)
        return answer(404, {"code": "not_found", "message": "There is no such path."})

    def _tool(self, asked: Asked, name: str) -> bytes:
        arguments = asked.json["arguments"]
        if name in ("clock.now", "clock_now"):
            return answer(200, {"content": {"now": "noon", "arguments": arguments}})
        if name == "messages.send":
            if asked.headers.get("x-steadmesh-generation") != GENERATION:
                return answer(
                    409, {"code": "fenced", "message": "Stop now: the generation is stale."}
                )
            return answer(200, {"content": {"message_id": "m1"}})
        if name == "fail":
            return answer(200, {"content": {"error": "invalid", "message": "no"}, "is_error": True})
        return answer(404, {"code": "not_found", "message": f"There is no tool {name}."})

    def _mcp(self, asked: Asked) -> bytes | Bytes:
        message = asked.json
        meta = message.get("params", {}).get("_meta", {})
        if "io.modelcontextprotocol/protocolVersion" in meta:
            verdict = classify_inbound_request(message, headers=asked.headers)
            if isinstance(verdict, InboundLadderRejection):
                error = {"code": verdict.code, "message": verdict.message}
                return answer(400, {"jsonrpc": "2.0", "id": None, "error": error})
        if "id" not in message:
            return answer(202)
        if message["method"] == "subscriptions/listen":
            return event_stream(self._listen(message))
        return self._result(message)

    def _result(self, message: dict[str, Any]) -> bytes:
        method = message["method"]
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            return _result(message, {"protocolVersion": version, "serverInfo": {}})
        if method == "tools/list":
            return _result(message, {"tools": [{"name": "clock_now"}]})
        if method == "tools/call":
            return self._call(message, message["params"]["name"])
        error = {"code": -32601, "message": "Method not found"}
        return answer(404, {"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _call(self, message: dict[str, Any], name: str) -> bytes:
        if name == "hold":
            assert self.released.wait(LIMIT)
        elif name == "broken":
            return answer(500, {"code": "internal", "message": "It broke."})
        elif name == "page":
            return b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"
        elif name == "fenced":
            return answer(409, {"code": "fenced", "message": "Stop now: the generation is stale."})
        elif name == "pretty":
            fields = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
            body = json.dumps(fields, indent=2).encode()
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        return _result(message, {"content": [{"type": "text", "text": name}]})

    def _listen(self, message: dict[str, Any]) -> Iterator[bytes]:
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        acknowledged = "notifications/subscriptions/acknowledged"
        yield event({"jsonrpc": "2.0", "method": acknowledged, "params": {"_meta": meta}})
        yield b": ping\r\n\r\n"
        for fields in self.updates:
            yield event(fields)
        self.listening.set()
        self.released.wait(LIMIT)
        yield event({"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"}})


def _result(message: dict[str, Any], result: dict[str, Any]) -> bytes:
    return answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
