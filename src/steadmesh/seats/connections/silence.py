"""What a person is told where she writes and where she begins to read: why nobody answers."""

from __future__ import annotations

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Row, Transaction
from steadmesh.seats.identity import NOBODY, is_live, live_supervisor
from steadmesh.seats.messages import silence, why_silent
from steadmesh.seats.organisation import organisation


def why_it_waits(
    tx: Transaction, organisation_id: str, representative: Row, now: Instant
) -> str | None:
    """Why a message is not dealt with for now, though the representative could: nobody starts it."""
    if why_silent(representative) is not None or is_live(representative, now):
        return None  # the former she hears in the channel
    return NOBODY if live_supervisor(tx, organisation_id, now) is None else None


def why_nobody_answers(
    tx: Transaction, organisation_id: str, representative: Row | None, now: Instant
) -> str | None:
    """Everything that keeps a person from being answered, for somebody who begins to talk."""
    if representative is None:
        return nobody_represents(tx, organisation_id)
    return silence(representative) or why_it_waits(tx, organisation_id, representative, now)


def nobody_represents(tx: Transaction, organisation_id: str) -> str:
    row = organisation(tx, organisation_id)
    who = row["display_name"] if row else "this organisation"
    return f"nobody represents you here: what you write goes to nobody. Ask whoever runs {who}."
