"""The one way in: every call of every tool, over every transport, passes through `Runner.run`.

Find the tool, authenticate, admit, may the caller see it, read the arguments; then, in one
transaction and under the locks: confirm and judge the caller, run the handler, fit and keep the answer,
write the audit row, commit. The answer leaves only after the commit. Where a database has one writer,
the whole of a writing call is one transaction, so that nothing is read twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from steadmesh.kernel.clock import Clock
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
        request = _Request(
            tool, self.catalogue.families[tool.family], arguments, credentials, self._services.clock
        )
        try:
            if tool.reads or tool.prepare or not self._database.has_one_writer:
                await self._database.read(request.let_in, brief=True)
                if tool.prepare:
                    request.prepared = await asyncio.to_thread(tool.prepare, request.args)
            content = await (self._read(request) if tool.reads else self._write(request))
        except Failure as failure:
            return self._refuse(request, failure)
        except Exception:
            now = self._services.clock.now()
            internal = Internal(call_id=new_id(now))
            log.exception("call failed", extra={"fields": {"tool": tool.name} | internal.fields})
            return self._refuse(request, internal)
        if tool.listed:
            self._services.count("tool_calls_total", tool.name, "ok")
        return Answer(content)

    async def glance(
        self, tool: Tool, arguments: Mapping[str, Any], credentials: Credentials
    ) -> Glance:
        """What a long poll needs to know before it waits. Raises a `Failure` as `run` would answer it."""
        family = self.catalogue.families[tool.family]

        request = _Request(tool, family, arguments, credentials, self._services.clock)

        def work(tx: Transaction) -> Glance:
            request.let_in(tx)
            caller, args = request.caller, request.args
            family.judge(self._open(tx, request))
            return Glance(
                topics=tool.waits(caller, args) if tool.waits else (),
                wait=float(getattr(args, "wait", 0.0)),
                ready=tool.ready is None
                or tool.ready(tx, caller, args, self._services.clock.now()),
            )

        return await self._database.read(work)

    async def _read(self, request: _Request) -> bytes:
        def work(tx: Transaction) -> bytes:
            call = self._open(tx, request)
            request.family.confirm(call)
            request.family.judge(call)
            return _content(call, request.args)

        content = await self._database.read(work)
        if request.tool.audited:
            self._gather(request, "ok")
        return content

    async def _write(self, request: _Request) -> bytes:
        was_let_in = request.caller is not None

        def locks(tx: Transaction) -> Locks:
            held = request.family.locks(request.caller, request.tool)
            held += request.tool.lock_list(tx, request.caller, request.args)
            return [*held, kept.lock] if (kept := request.kept_answer()) else held

        def work(tx: Transaction) -> bytes:
            if not was_let_in:
                request.let_in(tx)
            call = self._open(tx, request)
            kept = request.kept_answer()
            if kept and (answer := kept.find(tx, call.now)) is not None:
                return answer
            if was_let_in:
                request.family.confirm(call)
            request.family.judge(call)
            content = _content(call, request.args)
            if request.tool.audited:
                Audit.write(call, "ok")
            # A long poll that found nothing looks again under the same key.
            if kept and not (request.tool.waits and content == NOTHING):
                kept.keep(tx, call.now, content)
            return content

        content = await self._database.write(work, locks=locks)
        if self._database.full and request.tool.audited:
            self._database.full = False  # the row in the audit found room
        return content

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

    def _refuse(self, request: _Request, failure: Failure) -> Answer:
        tool = request.tool
        for counted in failure.counted:
            self._services.count(*counted)
        if failure.kind == "unavailable" and (cause := failure.__cause__) is not None:
            fields = {"tool": tool.name, "error": type(cause).__name__, "reason": str(cause)}
            log.warning("call not served", extra={"fields": fields})
        if tool.listed:
            denied = failure.kind in ("forbidden", "unauthenticated", "fenced")
            self._services.count("tool_calls_total", tool.name, "denied" if denied else "error")
        if tool.audited:
            self._gather(request, failure.code)
        authenticated = request.caller is not None
        return Answer(to_json(failure.as_content()), failure, authenticated=authenticated)

    def _gather(self, request: _Request, outcome: str) -> None:
        caller = request.caller
        self._audit.gather(
            self._services.clock.now(),
            scope=caller.scope if caller else "",
            caller=caller.name if caller else "",
            tool=request.tool.name,
            outcome=outcome,
            execution=request.credentials.execution,
        )


@dataclass(slots=True)
class _Request:
    """A call on its way in: who makes it and with what is known once it was let in."""

    tool: Tool
    family: Family
    arguments: Mapping[str, Any]
    credentials: Credentials
    clock: Clock
    caller: Any = None
    args: Any = None
    prepared: Any = None
    _kept: KeptAnswer | None = None

    def let_in(self, tx: Transaction) -> None:
        """Everything that is asked of a call before its handler. Safe to do again."""
        tool, credentials = self.tool, self.credentials
        caller = self.family.authenticate(tx, credentials, self.clock.now())
        self.caller = caller
        self.family.admit(caller, tool, credentials)
        if not tool.visible(caller):
            raise Hidden(tool=tool.name)
        self.args = tool.args.read(self.arguments)

    def kept_answer(self) -> KeptAnswer | None:
        """Where the answer is kept, if the caller wants it to be."""
        key = self.credentials.idempotency_key
        if key and self._kept is None:
            self._kept = KeptAnswer(
                credential=self.caller.credential or self.caller.name,
                tool=self.tool.name,
                key=key,
                arguments=self.arguments,
            )
        return self._kept


def _content(call: Call[Any], args: Args) -> bytes:
    result = call.tool.handler(call, args)
    if result is None:
        return NOTHING
    content = result.encoded()
    if call.tool.listed and len(content) > call.cap:
        raise ResultTooLarge(tool=call.tool.name, size=len(content), cap=call.cap)
    return content
