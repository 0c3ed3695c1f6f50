"""The one HTTP application: what every request has to pass, and where it goes then.

Calls of tools and of `/mcp` are most of the traffic; the way to them is as short as the checks allow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pydantic_core import to_json
from starlette.types import Message, Receive, Scope, Send

from steadmesh.kernel.clock import Clock
from steadmesh.kernel.datadir import OPERATOR_KEY_PREFIX
from steadmesh.kernel.errors import Failure, Internal
from steadmesh.kernel.ids import new_id
from steadmesh.service import operator
from steadmesh.service.calls import Endpoints, call_tool, tool_arguments
from steadmesh.service.health import Health
from steadmesh.service.openapi import document
from steadmesh.service.replies import Flow, Headers, Refusal, Reply, refused, send_reply
from steadmesh.service.requests import BODY_LIMIT, Gone, Request
from steadmesh.service.routes import Match, Routes, unescaped
from steadmesh.service.security import (
    SEAT_PREFIX,
    Wall,
    is_preflight,
    needs_secret,
    preflight_headers,
)
from steadmesh.tools import Credentials, Tool
from steadmesh.tools.run import Runner

log = logging.getLogger(__name__)

TOOLS = b"/v1/tools/"
TOOL_ROUTE = "/v1/tools/{name}"
ABOUT_ROUTE = "/internal/v1/service"
STOP_ROUTE = "/internal/v1/service:stop"
UNKNOWN_ROUTE = "other"
WITHOUT_CHECKS = ("/healthz", "/readyz")
HELLO_ROUTE = "/v1/hello"
WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")
SEATS = "seats"
RELAY = "relay"


@dataclass(frozen=True, slots=True)
class Handover:
    """The rest of the exchange is somebody else's: it is given the way to send."""

    run: Callable[[Send], Awaitable[None]]


class Mcp(Protocol):
    """What `/mcp` is handed to: a short path, and one that streams."""

    async def answer(self, body: bytes, scope: Scope, credentials: Credentials) -> Reply | None:
        """The answer, or nothing where the long path is needed. Raises a `Failure`."""

    async def pass_on(
        self, body: bytes, scope: Scope, receive: Receive, send: Send, credentials: Credentials
    ) -> None:
        """The long path. Raises a `Failure` only before it has sent anything."""


Outcome = Reply | Flow | Handover
Target = Callable[[Request, Mapping[str, str], Credentials], Awaitable[Outcome]]


def family_of(credentials: Credentials) -> str:
    """Whose tools a caller is shown: a seat its own, everybody else the relay's."""
    is_seat = credentials.bearer is not None and credentials.bearer.startswith(SEAT_PREFIX)
    return SEATS if is_seat else RELAY


class HttpService:
    """The ASGI application of one service."""

    def __init__(
        self,
        *,
        runner: Runner,
        mcp: Mcp,
        wall: Wall,
        health: Health,
        clock: Clock,
        metrics_open: bool,
        stop: Callable[[str], None],
    ) -> None:
        """`metrics_open`: who asks for `/metrics` needs no secret. `stop` ends the service; it takes
        the reason."""
        self._runner = runner
        self._wall = wall
        self._health = health
        self._clock = clock
        self._metrics_open = metrics_open
        self._stop = stop
        self._mcp = mcp
        self._descriptors = {
            tool.name: to_json(_descriptor(tool)) for tool in runner.catalogue.tools.values()
        }
        self._document: bytes | None = None
        self._tool_targets: dict[str, Target] = {"POST": self._call_tool}
        self._routes = self._all_routes()

    def _all_routes(self) -> Routes[Target]:
        own: list[tuple[str, str, Target]] = [
            ("GET", "/healthz", self._alive),
            ("HEAD", "/healthz", self._alive),
            ("GET", HELLO_ROUTE, self._hello),
            ("GET", "/readyz", self._ready),
            ("HEAD", "/readyz", self._ready),
            ("GET", "/metrics", self._metrics),
            ("GET", "/openapi.json", self._openapi),
            ("GET", "/v1/tools", self._list_tools),
            ("POST", "/mcp", self._call_mcp),
            ("GET", ABOUT_ROUTE, self._about),
            ("POST", STOP_ROUTE, self._stop_service),
        ]
        endpoints = Endpoints(self._runner)
        declared: list[tuple[str, str, Target]] = [
            (tool.method, tool.path, partial(_call_endpoint, endpoints, tool))
            for tool in self._runner.catalogue.endpoints
        ]
        return Routes([*own, *declared])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Other kinds of connections are not offered."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        sending = _Sending(send)
        match: Match[Target] | None = None
        outcome: Outcome
        try:
            try:
                request = Request.of(scope, receive)
                match = self._find(request.path)
                outcome = await self._outcome(request, match, sending)
            except Refusal as refusal:
                outcome = refusal.reply
            except Failure as failure:
                outcome = refused(failure)
            await self._finish(outcome, sending)
        except Gone:
            return
        except Exception:
            await self._fail(scope, sending)
        metrics = self._health.metrics
        route = match.template if match else UNKNOWN_ROUTE
        metrics.http_requests.of(route, str(sending.status)).inc()
        if not sending.flowed:
            metrics.http_request_seconds.observe(time.perf_counter() - started)

    def _find(self, path: bytes) -> Match[Target] | None:
        if path.startswith(TOOLS):
            name = path[len(TOOLS) :]
            if name and b"/" not in name:
                return Match(TOOL_ROUTE, self._tool_targets, {"name": unescaped(name)})
        return self._routes.find(path)

    async def _outcome(
        self, request: Request, match: Match[Target] | None, sending: _Sending
    ) -> Outcome:
        """The order of checks; each may refuse."""
        if match is not None and match.template in WITHOUT_CHECKS:
            target = match.targets.get(request.method)
            if target is None:
                raise _other_method(match, request)
            return await target(request, match.values, Credentials())
        sending.extra = self._wall.check_source(request)
        if match is not None and is_preflight(request):  # it never carries a credential
            return Reply(204, headers=preflight_headers(request, match.allowed))
        if request.method in WITH_BODY:
            self._wall.check_kind(request)
        credentials = self._wall.credentials(request)
        if not self._is_open(match) and not self._wall.admits(request, credentials):
            raise needs_secret()
        target = match.targets.get(request.method) if match is not None else None
        if match is not None and target is not None:
            return await target(request, match.values, credentials)
        await self._verify(credentials)
        if match is not None:
            raise _other_method(match, request)
        raise Refusal(404, f"there is nothing at {_shown(request.path)}", code="not_found")

    def _is_open(self, match: Match[Target] | None) -> bool:
        """Whether the secret's gate lets anybody through: who is not sure of us sends no secret yet."""
        if match is None:
            return False
        return match.template == HELLO_ROUTE or (
            self._metrics_open and match.template == "/metrics"
        )

    async def _verify(self, credentials: Credentials) -> None:
        """For what nobody else judges: a presented token that is none is refused here too."""
        bearer = credentials.bearer or ""
        if bearer.startswith(SEAT_PREFIX):
            await self._runner.caller(SEATS, credentials)
        elif bearer.startswith(OPERATOR_KEY_PREFIX):
            await self._runner.caller(operator.NAME, credentials)

    async def _finish(self, outcome: Outcome, sending: _Sending) -> None:
        if isinstance(outcome, Reply):
            await send_reply(sending.send, outcome)
            return
        sending.flowed = True
        if isinstance(outcome, Flow):
            await _send_flow(outcome, sending.send)
            return
        try:
            await outcome.run(sending.send)
        except Failure as failure:
            await send_reply(sending.send, refused(failure))

    async def _fail(self, scope: Scope, sending: _Sending) -> None:
        failure = Internal(call_id=new_id(self._clock.now()))
        where = {"method": scope["method"], "path": scope["path"][:200]}
        log.exception("request failed", extra={"fields": where | failure.fields})
        if sending.status is None:
            await send_reply(sending.send, refused(failure))

    # Targets

    async def _call_tool(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        arguments = tool_arguments(await request.json(BODY_LIMIT))
        family = RELAY if credentials.agent_token else None
        if credentials.bearer is not None and credentials.bearer.startswith(SEAT_PREFIX):
            family = SEATS
        tool = self._runner.catalogue.find(values["name"], family=family)
        return await call_tool(self._runner, tool, arguments, credentials)

    async def _list_tools(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        family = family_of(credentials)
        if family == RELAY:
            await self._verify(credentials)
            shown = [t for t in self._runner.catalogue.tools.values() if t.family == RELAY]
        else:
            caller = await self._runner.caller(family, credentials)
            shown = self._runner.catalogue.visible_to(caller, family)
        return Reply(200, b"[%b]" % b",".join(self._descriptors[tool.name] for tool in shown))

    async def _call_mcp(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        if (credentials.bearer or "").startswith(OPERATOR_KEY_PREFIX):
            await self._verify(credentials)
        body = await request.body(BODY_LIMIT)
        if not body:
            raise Refusal(400, "the body is empty; send one message of JSON-RPC")
        answer = await self._mcp.answer(body, request.scope, credentials)
        if answer is not None:
            return answer
        scope, receive = request.scope, request.receive
        return Handover(lambda send: self._mcp.pass_on(body, scope, receive, send, credentials))

    async def _alive(self, *_: object) -> Outcome:
        return self._health.alive()

    async def _hello(self, request: Request, *_: object) -> Outcome:
        server = request.scope.get("server")
        port = (server[1] if server else None) or 0
        return self._health.hello(request.query_values().get("nonce", ""), port)

    async def _ready(self, *_: object) -> Outcome:
        return await self._health.ready()

    async def _metrics(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        await self._verify(credentials)
        return await self._health.measured()

    async def _openapi(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        await self._verify(credentials)
        if self._document is None:
            self._document = to_json(document(self._runner.catalogue))
        return Reply(200, self._document)

    async def _about(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        await self._runner.caller(operator.NAME, credentials)
        return await self._health.about()

    async def _stop_service(
        self, request: Request, values: Mapping[str, str], credentials: Credentials
    ) -> Outcome:
        await self._runner.caller(operator.NAME, credentials)
        self._stop("an operator asked for it")
        return Reply(202, b'{"status":"stopping"}')


class _Sending:
    """The way back of one exchange: adds what every answer carries, and knows whether one began."""

    __slots__ = ("_send", "extra", "flowed", "status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self.extra: Headers = ()
        self.status: int | None = None
        self.flowed = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.extra:
                message = {**message, "headers": [*message.get("headers", ()), *self.extra]}
        await self._send(message)


async def _call_endpoint(
    endpoints: Endpoints,
    tool: Tool,
    request: Request,
    values: Mapping[str, str],
    credentials: Credentials,
) -> Outcome:
    return await endpoints.call(tool, values, request=request, credentials=credentials)


async def _send_flow(flow: Flow, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": flow.status, "headers": list(flow.headers)}
    )
    try:
        async for piece in flow.pieces:
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    finally:
        await flow.pieces.aclose()
    await send({"type": "http.response.body", "body": b""})


def _descriptor(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema(),
        "output_schema": tool.output_schema(),
    }


def _other_method(match: Match[Target], request: Request) -> Refusal:
    return Refusal(
        405,
        f"{match.template} takes {match.allowed}, not {request.method}",
        headers=((b"allow", match.allowed.encode()),),
    )


def _shown(path: bytes) -> str:
    return path[:200].decode("ascii", "replace")
