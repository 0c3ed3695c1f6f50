"""The one way in: every call of every tool, over every transport, passes through `Runner.run`.

Find the tool, authenticate, admit, may the caller see it, read the arguments; then, in one
transaction and under the locks: confirm the caller, run the handler, fit and keep the answer, write
the audit row, commit. The answer leaves only after the commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from steadmesh.kernel.database import Database, Locks, Transaction
from steadmesh.kernel.errors import Failure, Forbidden, Internal, TooLarge
from steadmesh.kernel.ids import new_id
from steadmesh.kernel.signals import Signals
from steadmesh.tools.arguments import Args
from steadmesh.tools.audit import Audit
from steadmesh.tools.call import Call, Caller, Credentials, Services
from steadmesh.tools.catalogue import Catalogue, Family
from steadmesh.tools.kept import KeptAnswer
from steadmesh.tools.tool import Tool

log = logging.getLogger(__name__)

NOTHING = b"null"


class Hidden(Forbidden):
    """{tool} is not among the tools of this caller. It needs a grant, route or binding that is not there."""


class ResultTooLarge(TooLarge):
    """The result of {tool} is {size} bytes, more than the {cap} that fit in an answer. Ask for less."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to: JSON, or the failure that it is the content of."""

    content: bytes
    failure: Failure | None = None
    authenticated: bool = True
    """False for a failure that came before the caller was known: it is the transport's to tell."""

    @property
    def is_error(self) -> bool:
        return self.failure is not None


@dataclass(frozen=True, slots=True)
class Glance:
    """What a long poll waits for, and whether a call would find something now."""

    topics: tuple[str, ...]
    wait: float
    """Seconds the caller is ready to wait."""
    ready: bool


class Runner:
    """Runs calls on one database."""

    def __init__(
        self, catalogue: Catalogue, database: Database, services: Services, audit: Audit
    ) -> None:
        self.catalogue = catalogue
        self._database = database
        self._services = services
        self._audit = audit

    @property
    def signals(self) -> Signals:
        """Where long polls hear of what they wait for."""
        return self._services.signals

    async def caller(self, family: str, credentials: Credentials) -> Caller:
        """Who is behind the credentials, or a refusal."""
        authenticate = self.catalogue.families[family].authenticate
        now = self._services.clock.now()
        return await self._database.read(lambda tx: authenticate(tx, credentials, now), brief=True)

    async def run(
        self, tool: Tool, arguments: Mapping[str, Any], credentials: Credentials
    ) -> Answer:
        """Call a tool. Every failure, expected or not, becomes an answer."""
        caller: Caller | None = None
        try:
            family = self.catalogue.families[tool.family]
            caller = await self.caller(tool.family, credentials)
            family.admit(caller, tool, credentials)
            if not tool.visible(caller):
                raise Hidden(tool=tool.name)
            args = tool.args.read(arguments)
            prepared = await asyncio.to_thread(tool.prepare, args) if tool.prepare else None
            request = _Request(tool, family, caller, args, arguments, credentials, prepared)
            content = await (self._read(request) if tool.reads else self._write(request))
        except Failure as failure:
            return self._refuse(tool, caller, credentials, failure)
        except Exception:
            now = self._services.clock.now()
            internal = Internal(call_id=new_id(now))
            log.exception("call failed", extra={"fields": {"tool": tool.name} | internal.fields})
            return self._refuse(tool, caller, credentials, internal)
        if tool.listed:
            self._services.count("tool_calls_total", tool.name, "ok")
        return Answer(content)

    async def glance(
        self, tool: Tool, arguments: Mapping[str, Any], credentials: Credentials
    ) -> Glance:
        """What a long poll needs to know before it waits. Raises a `Failure` as `run` would answer it."""
        family = self.catalogue.families[tool.family]

        def work(tx: Transaction) -> Glance:
            now = self._services.clock.now()
            caller = family.authenticate(tx, credentials, now)
            family.admit(caller, tool, credentials)
            args = tool.args.read(arguments)
            request = _Request(tool, family, caller, args, arguments, credentials, None)
            family.confirm(self._open(tx, request))
            return Glance(
                topics=tool.waits(caller, args) if tool.waits else (),
                wait=float(getattr(args, "wait", 0.0)),
                ready=tool.ready is None or tool.ready(tx, caller, args, now),
            )

        return await self._database.read(work)

    async def _read(self, request: _Request) -> bytes:
        def work(tx: Transaction) -> bytes:
            call = self._open(tx, request)
            request.family.confirm(call)
            return _content(call, request.args)

        content = await self._database.read(work)
        if request.tool.audited:
            self._gather(request.tool, request.caller, request.credentials, "ok")
        return content

    async def _write(self, request: _Request) -> bytes:
        key = request.credentials.idempotency_key
        kept = key and KeptAnswer(
            credential=request.caller.credential or request.caller.name,
            tool=request.tool.name,
            key=key,
            arguments=request.arguments,
        )

        def locks(tx: Transaction) -> Locks:
            held = request.family.locks(request.caller, request.tool)
            held += request.tool.lock_list(tx, request.caller, request.args)
            return [*held, kept.lock] if kept else held

        def work(tx: Transaction) -> bytes:
            call = self._open(tx, request)
            if kept and (answer := kept.find(tx, call.now)) is not None:
                return answer
            request.family.confirm(call)
            content = _content(call, request.args)
            if request.tool.audited:
                Audit.write(call, "ok")
            # A long poll that found nothing looks again under the same key.
            if kept and not (request.tool.waits and content == NOTHING):
                kept.keep(tx, call.now, content)
            return content

        return await self._database.write(work, locks=locks)

    def _open(self, tx: Transaction, request: _Request) -> Call[Any]:
        return Call(
            tx=tx,
            now=self._services.clock.now(),
            caller=request.caller,
            tool=request.tool,
            arguments=request.arguments,
            credentials=request.credentials,
            services=self._services,
            cap=request.family.cap,
            prepared=request.prepared,
        )

    def _refuse(
        self, tool: Tool, caller: Caller | None, credentials: Credentials, failure: Failure
    ) -> Answer:
        if failure.kind == "unavailable" and (cause := failure.__cause__) is not None:
            fields = {"tool": tool.name, "error": type(cause).__name__, "reason": str(cause)}
            log.warning("call not served", extra={"fields": fields})
        if tool.listed:
            denied = failure.kind in ("forbidden", "unauthenticated", "fenced")
            self._services.count("tool_calls_total", tool.name, "denied" if denied else "error")
        if tool.audited:
            self._gather(tool, caller, credentials, failure.code)
        return Answer(to_json(failure.as_content()), failure, authenticated=caller is not None)

    def _gather(
        self, tool: Tool, caller: Caller | None, credentials: Credentials, outcome: str
    ) -> None:
        self._audit.gather(
            self._services.clock.now(),
            scope=caller.scope if caller else "",
            caller=caller.name if caller else "",
            tool=tool.name,
            outcome=outcome,
            execution=credentials.execution,
        )


@dataclass(slots=True)
class _Request:
    """A call that was let in and waits for its transaction."""

    tool: Tool
    family: Family
    caller: Caller
    args: Args
    arguments: Mapping[str, Any]
    credentials: Credentials
    prepared: Any


def _content(call: Call[Any], args: Args) -> bytes:
    result = call.tool.handler(call, args)
    if result is None:
        return NOTHING
    content = result.encoded()
    if call.tool.listed and len(content) > call.cap:
        raise ResultTooLarge(tool=call.tool.name, size=len(content), cap=call.cap)
    return content
