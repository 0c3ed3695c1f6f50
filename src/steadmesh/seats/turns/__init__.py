"""The runner's side of a seat: the lease, the next delivery, and what a turn leaves behind."""

from steadmesh.seats.turns import dead_letters, executions, inbox, leases, requeue
from steadmesh.seats.turns._store import checkpoints, checkpoints_of
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.turns",
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
        dead_letters.list_dead_letters,
        dead_letters.requeue,
    ],
    jobs=[requeue.EXPIRY],
)

__all__ = ["FEATURE", "checkpoints", "checkpoints_of"]
