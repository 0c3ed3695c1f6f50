"""The runner's side of a seat: the lease, the next delivery, and what a turn leaves behind."""

from steadmesh.seats.turns import dead_letters, executions, handoff, inbox, leases, log, requeue
from steadmesh.seats.turns._store import (
    checkpoints,
    checkpoints_of,
    is_idle,
    move_handoff,
    running_turns,
)
from steadmesh.seats.turns._store import handoff as handoff_of
from steadmesh.seats.turns.leaving import Unhandled, forget_seat, give_up_inbox, withdraw
from steadmesh.seats.turns.trimming import TRIMMINGS
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.turns",
    tools=[handoff.update],
    endpoints=[
        leases.acquire,
        leases.renew,
        leases.release,
        leases.report_state,
        leases.fence,
        leases.set_state,
        inbox.next_delivery,
        inbox.acknowledge,
        executions.post_events,
        executions.save_checkpoint,
        executions.instructions,
        executions.list_executions,
        executions.list_events,
        log.seat_log,
        dead_letters.list_dead_letters,
        dead_letters.show_dead_letter,
        dead_letters.requeue,
    ],
    jobs=[requeue.EXPIRY],
    trimmings=TRIMMINGS,
)

__all__ = [
    "FEATURE",
    "Unhandled",
    "checkpoints",
    "checkpoints_of",
    "forget_seat",
    "give_up_inbox",
    "handoff_of",
    "is_idle",
    "move_handoff",
    "running_turns",
    "withdraw",
]
