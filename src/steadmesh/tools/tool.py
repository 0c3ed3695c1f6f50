"""The declaration of a tool, and of an endpoint: a tool that is in no list."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Transaction
from steadmesh.tools.arguments import Args, input_schema
from steadmesh.tools.call import Call, Caller
from steadmesh.tools.result import Result, output_schema

LOOKS_EVERY = 0.5

A = TypeVar("A", bound=Args)
Handler = Callable[[Any, Any], Result | None]
LocksOf = Callable[[Transaction, Any, Any], Locks]


def always(caller: Caller) -> bool:
    """Everybody sees it."""
    return True


@dataclass(frozen=True, slots=True)
class Tool:
    """Everything that is to be known of a tool; transports add nothing to it."""

    name: str
    family: str
    description: str
    args: type[Args]
    result: type[Result] | None
    handler: Handler
    reads: bool
    """It changes nothing, and needs no generation."""
    fenced: bool
    """It is refused to a caller whose lease is not the current one."""
    visible: Callable[[Any], bool]
    locks: LocksOf | None
    idempotent: bool
    destructive: bool
    open_world: bool
    method: str = ""
    path: str = ""
    """An endpoint's own route; a tool has none and is listed."""
    audited: bool = True
    """Calls leave a row in the audit."""
    prepare: Callable[[Any], Any] | None = None
    """Heavy pure work on the arguments, done before the transaction opens; see `Call.prepared`."""
    waits: Callable[[Any, Any], tuple[str, ...]] | None = None
    """The topics of caller and arguments whose hints end a long poll early (argument `wait`, in seconds)."""
    ready: Callable[[Transaction, Any, Any, Instant], bool] | None = None
    """A glance that keeps an idle long poll from writing."""
    looks_every: float = LOOKS_EVERY
    """Seconds after which a long poll looks again although no hint came."""
    status: int = 200
    """The HTTP status of an endpoint's result."""
    streams: bool = False
    """It is followed as server-sent events; see `tools.stream`."""

    @property
    def listed(self) -> bool:
        return not self.path

    @property
    def mcp_name(self) -> str:
        """Dots are refused by clients; every one becomes an underscore."""
        return self.name.replace(".", "_")

    def input_schema(self) -> dict[str, Any]:
        return input_schema(self.args)

    def output_schema(self) -> dict[str, Any]:
        return output_schema(self.result) if self.result else {"type": "object"}

    def annotations(self) -> dict[str, bool]:
        """The hints that MCP clients read."""
        return {
            "readOnlyHint": self.reads,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent or self.reads,
            "openWorldHint": self.open_world,
        }

    def lock_list(self, tx: Transaction, caller: Caller, args: Args) -> Locks:
        return self.locks(tx, caller, args) if self.locks else []


def tool(
    name: str,
    *,
    family: str = "seats",
    reads: bool = False,
    visible: Callable[[Any], bool] = always,
    locks: LocksOf | None = None,
    idempotent: bool = False,
    destructive: bool = False,
    open_world: bool = False,
) -> Callable[[Callable[[Any, A], Result | None]], Tool]:
    """Declare a tool; its handler's docstring is what models read of it."""

    def declare(handler: Callable[[Any, A], Result | None]) -> Tool:
        args, result = _shapes(handler)
        return Tool(
            name=name,
            family=family,
            description=inspect.cleandoc(handler.__doc__ or ""),
            args=args,
            result=result,
            handler=handler,
            reads=reads,
            fenced=not reads,
            visible=visible,
            locks=locks,
            idempotent=idempotent,
            destructive=destructive,
            open_world=open_world,
        )

    return declare


def endpoint(
    route: str,
    *,
    family: str,
    reads: bool = False,
    fenced: bool = False,
    locks: LocksOf | None = None,
    prepare: Callable[[Any], Any] | None = None,
    waits: Callable[[Any, Any], tuple[str, ...]] | None = None,
    ready: Callable[[Transaction, Any, Any, Instant], bool] | None = None,
    looks_every: float = LOOKS_EVERY,
    status: int = 200,
    audited: bool = False,
) -> Callable[[Callable[[Any, A], Result | None]], Tool]:
    """Declare what is called by its own route, `POST /v1/lease/acquire`, and listed nowhere.

    `audited` is for what people and supervisors do to seats; a runner's many reports are not.
    Names in braces in the path, and query values, are arguments. No result answers 204. With
    `waits`, a call that answers nothing is made again until something is there or its `wait` is over.
    """
    method, path = route.split(" ", 1)

    def declare(handler: Callable[[Any, A], Result | None]) -> Tool:
        args, result = _shapes(handler)
        return Tool(
            name=route,
            family=family,
            description=inspect.cleandoc(handler.__doc__ or ""),
            args=args,
            result=result,
            handler=handler,
            reads=reads,
            fenced=fenced,
            visible=always,
            locks=locks,
            idempotent=False,
            destructive=False,
            open_world=False,
            method=method,
            path=path,
            prepare=prepare,
            waits=waits,
            ready=ready,
            looks_every=looks_every,
            status=status,
            audited=audited,
        )

    return declare


def _shapes(handler: Callable[..., Any]) -> tuple[type[Args], type[Result] | None]:
    hints = get_type_hints(handler)
    args = next(hint for hint in hints.values() if inspect.isclass(hint) and issubclass(hint, Args))
    returned = hints.get("return")
    for candidate in (returned, *getattr(returned, "__args__", ())):
        if inspect.isclass(candidate) and issubclass(candidate, Result):
            return args, candidate
    return args, None


__all__ = ["Call", "Tool", "always", "endpoint", "tool"]
