"""A small catalogue behind `McpService`, and requests to it by both of its ways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from starlette.types import Message, Scope

from steadmesh.kernel.clock import Instant, TurnedClock
from steadmesh.kernel.database import Transaction, open_database
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.errors import Conflict, Fenced, Forbidden, Unauthenticated
from steadmesh.kernel.paging import Cursors
from steadmesh.kernel.signals import Signals
from steadmesh.service.http import family_of
from steadmesh.service.mcp import McpService
from steadmesh.tools import (
    Args,
    Call,
    Caller,
    Catalogue,
    Credentials,
    Doc,
    Family,
    Feature,
    Result,
    Services,
    Tool,
    tool,
)
from steadmesh.tools.audit import Audit
from steadmesh.tools.run import Runner

T = TypeVar("T")

ADA = Credentials(bearer="sms_ada", generation=7)
STALE = Credentials(bearer="sms_ada", generation=6)
UNFENCED = Credentials(bearer="sms_ada")
STRANGER = Credentials(bearer="sms_stranger")
DEAD = Credentials(bearer="sms_dead", generation=7)
NOBODY = Credentials()
AGENT = Credentials(agent_token="agent")

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


class NoToken(Unauthenticated):
    """Send a token."""


class BadToken(Unauthenticated):
    """This token is nobody's."""


class Dead(Forbidden):
    """This seat is retired."""

    ends_access = True


class Stale(Fenced):
    """The generation is not the current one."""


class Taken(Conflict):
    """{name} is taken by {owner}."""

    details = ("owner",)


class BadAgent(Unauthenticated):
    """Register first."""

    code = "AUTH_FAILED"


class Named(Args):
    name: Annotated[str, Doc("A name.")]


class Given(Args):
    value: Annotated[dict[str, Any] | None, Doc("Anything.")] = None
    text: Annotated[str, Doc("Any text.")] = ""


class Nothing(Args):
    pass


class Written(Result):
    name: str


class Echo(Result):
    value: dict[str, Any] | None = None
    text: str


class People(Result):
    names: list[str]


@tool("notes.write")
def write(call: Call[Caller], args: Named) -> Written:
    """Write a note."""
    if args.name == "taken":
        raise Taken(name=args.name, owner="bob")
    if args.name == "bug":
        raise KeyError("a secret detail")
    return Written(name=args.name)


@tool("notes.echo", reads=True)
def echo(call: Call[Caller], args: Given) -> Echo:
    """Say it again."""
    return Echo(value=args.value, text=args.text)


@tool("notes.forget", reads=True)
def forget(call: Call[Caller], args: Nothing) -> None:
    """Answer nothing."""


@tool("notes.perhaps", reads=True)
def perhaps(call: Call[Caller], args: Given) -> Written | None:
    """Answer something or nothing."""
    return Written(name=args.text) if args.text else None


@tool("notes.hidden", reads=True, visible=lambda caller: caller.name == "root")
def hidden(call: Call[Caller], args: Named) -> Written:
    """Only root sees it."""
    return Written(name=args.name)


@tool("list_agents", family="relay", reads=True)
def list_agents(call: Call[Caller], args: Nothing) -> People:
    """Name the agents."""
    return People(names=["bob"])


def authenticate_seat(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    if credentials.bearer is None:
        raise NoToken()
    if credentials.bearer == "sms_stranger":
        raise BadToken()
    if credentials.bearer == "sms_dead":
        raise Dead()
    name = credentials.bearer.removeprefix("sms_")
    return Caller(name=name, scope="org", credential=credentials.bearer)


def admit(caller: Caller, called: Tool, credentials: Credentials) -> None:
    if called.fenced and credentials.generation is None:
        raise Stale()


def judge(call: Call[Caller]) -> None:
    if call.tool.fenced and call.credentials.generation != 7:
        raise Stale()


def authenticate_agent(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    return Caller(name=credentials.agent_token or "", scope="relay", credential="")


def admit_agent(caller: Caller, called: Tool, credentials: Credentials) -> None:
    if not caller.name:
        raise BadAgent()


def nothing(*_: Any) -> None:
    return None


SEATS = Family("seats", authenticate_seat, admit, nothing, lambda caller, called: [], judge)
RELAY = Family("relay", authenticate_agent, admit_agent, nothing, lambda caller, called: [])
FAMILIES = (SEATS, RELAY)
FEATURE = Feature("steadmesh.testing", tools=(write, echo, forget, perhaps, hidden, list_agents))


@dataclass(frozen=True, slots=True)
class Heard:
    """What a client gets to see of an answer."""

    status: int
    content_type: str | None
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def result(self) -> Any:
        return self.content["result"]

    @property
    def error(self) -> Any:
        return self.content["error"]


class World:
    """The service on one event loop, as tests call it."""

    def __init__(self, folder: Path, *, budgets: Mapping[str, int] | None = None) -> None:
        self._loop = asyncio.Runner()
        self._database = open_database(str(folder / "mcp.db"))
        clock = TurnedClock()
        migrate(self._database, ["steadmesh.kernel", "steadmesh.tools"], clock)
        services = Services(
            clock=clock,
            cursors=Cursors(b"k" * 32),
            signals=Signals(),
            count=lambda *labels: None,
        )
        catalogue = Catalogue(FAMILIES, [FEATURE])
        self.runner = Runner(catalogue, self._database, services, Audit())
        self.mcp = McpService(
            self.runner, family_of=family_of, budgets=budgets or {"seats": 50_000}
        )

    def close(self) -> None:
        self.run(self.mcp.close())
        self._loop.close()
        self._database.close()

    def run(self, coroutine: Any) -> Any:
        return self._loop.run(coroutine)

    def directly(
        self, body: bytes, headers: Mapping[str, str], credentials: Credentials = ADA
    ) -> Heard | None:
        """The direct answer, or nothing if the request is left to the SDK."""
        reply = self.run(self.mcp.answer(body, scope_of(headers), credentials))
        if reply is None:
            return None
        return Heard(reply.status, _content_type(reply.headers), reply.body)

    def by_sdk(
        self, body: bytes, headers: Mapping[str, str], credentials: Credentials = ADA
    ) -> Heard:
        """The SDK's answer to the same request."""
        return heard(self.run(self.passed_on(body, headers, credentials)))

    def ask(self, body: bytes, headers: Mapping[str, str], credentials: Credentials = ADA) -> Heard:
        """The answer that a client gets."""
        return self.directly(body, headers, credentials) or self.by_sdk(body, headers, credentials)

    async def passed_on(
        self, body: bytes, headers: Mapping[str, str], credentials: Credentials
    ) -> list[Message]:
        sent: list[Message] = []

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

        async def send(message: Message) -> None:
            sent.append(message)

        await self.mcp.pass_on(body, scope_of(headers), receive, send, credentials)
        return sent

    def call(self, tool_name: str, credentials: Credentials = ADA, **arguments: Any) -> Any:
        """The result of a tool, called in the era of the handshake."""
        params = {"name": tool_name, "arguments": arguments}
        answer = self.directly(request("tools/call", params), HANDSHAKE, credentials)
        assert answer is not None
        return answer.result


HANDSHAKE = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-06-18",
}


def scope_of(headers: Mapping[str, str]) -> Scope:
    named = {"host": "127.0.0.1", "content-type": "application/json", **headers}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in named.items()],
    }


def request(method: str, params: Any = None, *, id: Any = 1) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def notification(method: str, params: Any = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def modern_meta(**more: Any) -> dict[str, Any]:
    return {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientInfo": {"name": "test", "version": "1"},
        PREFIX + "clientCapabilities": {},
        **more,
    }


def modern(method: str, params: Mapping[str, Any] | None = None, *, id: Any = 1) -> bytes:
    return request(method, {"_meta": modern_meta(), **(params or {})}, id=id)


def modern_headers(method: str, name: str | None = None) -> dict[str, str]:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": method,
    }
    return headers if name is None else {**headers, "mcp-name": name}


def heard(sent: list[Message]) -> Heard:
    start, *bodies = sent
    body = b"".join(message.get("body", b"") for message in bodies)
    return Heard(start["status"], _content_type(start["headers"]), body)


def _content_type(headers: Any) -> str | None:
    return next((v.decode() for k, v in headers if k.lower() == b"content-type"), None)
