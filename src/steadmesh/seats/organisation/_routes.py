"""Who may write to whom, seat by seat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from steadmesh.seats.organisation._declared import Declaration
from steadmesh.seats.organisation._model import Recipient


@dataclass(slots=True)
class _Link:
    can_reply: bool = False
    routes: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Every pair with a route, from both ends: seat → other seat → what the routes say."""

    outgoing: Mapping[str, dict[str, _Link]]
    incoming: Mapping[str, dict[str, _Link]]


def members(declaration: Declaration, subject: str) -> tuple[str, ...]:
    """The seats that a subject (`seat:x`, `team:x`) stands for, in the order of their keys."""
    kind, _, key = subject.partition(":")
    if kind == "seat":
        return (key,)
    return tuple(name for name, seat in declaration.seats.items() if key in seat.teams)


def pairs_of(declaration: Declaration) -> Pairs:
    """All routes with their teams expanded; several between one pair are one."""
    outgoing: dict[str, dict[str, _Link]] = defaultdict(dict)
    incoming: dict[str, dict[str, _Link]] = defaultdict(dict)
    for name, sender, receiver, can_reply in _directed(declaration):
        link = outgoing[sender].setdefault(receiver, _Link())
        link.can_reply = link.can_reply or can_reply
        link.routes.add(name)
        incoming[receiver][sender] = link
    return Pairs(outgoing, incoming)


def _directed(declaration: Declaration) -> Iterator[tuple[str, str, str, bool]]:
    for name, route in declaration.message_routes.items():
        for sender in members(declaration, route.from_):
            for receiver in members(declaration, route.to):
                if sender != receiver:  # a team's members do not get routes to themselves
                    yield name, sender, receiver, route.reply or route.bidirectional
                    if route.bidirectional:
                        yield name, receiver, sender, True


def recipients_of(links: Mapping[str, _Link]) -> tuple[Recipient, ...]:
    """The other ends, in the order of their keys."""
    return tuple(
        Recipient(seat=seat, can_reply=link.can_reply, routes=tuple(sorted(link.routes)))
        for seat, link in sorted(links.items())
    )
