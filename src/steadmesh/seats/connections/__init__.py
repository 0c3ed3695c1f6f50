"""Connections to the outside: people who write and are answered over a channel."""

from steadmesh.seats.connections import outbox, talk, terminal, verify
from steadmesh.seats.connections._store import forget_organisation
from steadmesh.seats.connections.people import PEOPLE
from steadmesh.seats.connections.trimming import TRIMMINGS
from steadmesh.seats.connections.verify import Verified, checks_of
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.connections",
    endpoints=[terminal.post_message, terminal.follow, talk.talk, verify.verify],
    jobs=[outbox.SENDING],
    trimmings=TRIMMINGS,
)

FAMILIES = [PEOPLE]

__all__ = ["FAMILIES", "FEATURE", "Verified", "checks_of", "forget_organisation"]
