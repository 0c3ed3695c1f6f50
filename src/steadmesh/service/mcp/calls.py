"""Tools as MCP callers reach them: whose list it is, and what a call came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steadmesh.kernel.errors import Failure
from steadmesh.tools import Credentials, Tool
from steadmesh.tools.catalogue import UnknownTool
from steadmesh.tools.run import NOTHING, Runner

STOP = (
    "Stop now and do not try again: a newer execution holds this seat, "
    "and nothing that you write will be accepted."
)
SEATS = "seats"
"""The family whose callers are known by their bearer. A relay token is judged by the tool."""
NAME_SHOWN = 100


class UnknownName(Exception):
    """The caller has no tool of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: {name[:NAME_SHOWN]}. tools/list names those you can call.")


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to: a text, which on success is the JSON of the result."""

    text: str | bytes
    is_error: bool = False

    @property
    def has_object(self) -> bool:
        """Whether there is a result besides the text. A failure has none: clients would take it for one."""
        return not self.is_error and self.text != NOTHING


class Calls:
    """The catalogue, as a request's credentials open it.

    Credentials that do not verify raise their `Failure`, which is for HTTP to answer.
    """

    def __init__(self, runner: Runner, family_of: Callable[[Credentials], str]) -> None:
        self._runner = runner
        self._catalogue = runner.catalogue
        self._family_of = family_of

    async def verify(self, credentials: Credentials) -> None:
        """Refuse a seat's token that is nobody's, for requests that need no caller."""
        if self._family_of(credentials) == SEATS:
            await self._runner.caller(SEATS, credentials)

    async def visible(self, credentials: Credentials) -> tuple[Tool, ...]:
        """The caller's tools, in the order of their declaration."""
        family = self._family_of(credentials)
        if family != SEATS:
            return tuple(tool for tool in self._catalogue.tools.values() if tool.family == family)
        caller = await self._runner.caller(SEATS, credentials)
        return tuple(self._catalogue.visible_to(caller, SEATS))

    async def call(
        self, name: str, arguments: Mapping[str, Any] | None, credentials: Credentials
    ) -> Called:
        """Call a tool by its dotted or its MCP name; `UnknownName` if it is nobody's or not the caller's."""
        called = self._find(name, credentials)
        if called is None:
            await self.verify(credentials)
            raise UnknownName(name)
        answer = await self._runner.run(called, arguments or {}, credentials)
        if answer.failure is None:
            return Called(answer.content)
        return _failed(called, answer.failure, answer.content)

    def _find(self, name: str, credentials: Credentials) -> Tool | None:
        try:
            found = self._catalogue.find(name)
        except UnknownTool:
            return None
        # To somebody without any credential the other family's tools answer that one is needed.
        is_somebody = credentials.bearer is not None or credentials.agent_token is not None
        return None if is_somebody and found.family != self._family_of(credentials) else found


def _failed(called: Tool, failure: Failure, content: bytes) -> Called:
    if failure.kind == "unauthenticated" and called.family == SEATS:
        raise failure
    if failure.kind == "fenced":
        return Called(f"{STOP} ({failure.message})", is_error=True)
    if failure.ends_access:
        return Called(failure.message, is_error=True)
    return Called(content, is_error=True)
