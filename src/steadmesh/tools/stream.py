"""The declaration of a stream: an endpoint that is followed, by position, as server-sent events.

A stream is listed among a feature's endpoints. The transport calls it again and again, each time with
the position that was reached, so every round is judged like any other call; a revoked token ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Transaction
from steadmesh.tools.arguments import Args, Clamped, Doc
from steadmesh.tools.result import Result
from steadmesh.tools.tool import LocksOf, Tool, endpoint


class Follow(Args):
    """The arguments of a stream; those of its path are added by a subclass."""

    after: Annotated[
        int | None, Doc("Position of the last event received; the Last-Event-ID header.")
    ] = None
    limit: Annotated[int, Doc("Events of one round."), Clamped(maximum=100, default=100)] = 100


class Entry(Result):
    """One event: sent as `id: <position>` and `data: <JSON>`."""

    position: int
    data: dict[str, Any]


class Followed(Result):
    """The next events, in rising order of position, and the position to go on from.

    `after` is needed even without entries: it is what the next round is asked with.
    """

    entries: list[Entry] = Field(default_factory=list)
    after: int


def stream(
    route: str,
    *,
    family: str,
    topics: Callable[[Any, Any], tuple[str, ...]],
    reads: bool = True,
    locks: LocksOf | None = None,
    ready: Callable[[Transaction, Any, Any, Instant], bool] | None = None,
) -> Callable[[Callable[[Any, Any], Followed]], Tool]:
    """Declare what is followed under its own route: `stream("GET /v1/.../events", ...)`.

    The handler takes arguments derived from `Follow` and returns `Followed`; without `after` it
    decides where a new follower begins. `topics` names those whose hints let it look again; it looks
    by itself every second. One that marks what it hands over (`reads=False`) gives `ready`, so that
    an idle round does not write.
    """

    def declare(handler: Callable[[Any, Any], Followed]) -> Tool:
        declared = endpoint(
            route, family=family, reads=reads, locks=locks, waits=topics, ready=ready
        )(handler)
        return replace(declared, streams=True)

    return declare
