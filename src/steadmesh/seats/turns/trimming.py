"""How long it is kept how messages went through inboxes and turns. What is not done with stays: what
waits, runs, or was given up and waits for people."""

from __future__ import annotations

from steadmesh.kernel.trimming import Trimming
from steadmesh.seats.turns import _trimming_store as _store

TRIMMINGS = [
    Trimming("deliveries", _store.old_deliveries, _store.remove_deliveries, setting="deliveries"),
    Trimming(
        "executions",
        _store.old_executions,
        _store.remove_executions,
        setting="executions",
        start="",
    ),
    Trimming(
        "execution_events",
        _store.old_execution_events,
        _store.remove_execution_events,
        setting="execution_events",
    ),
]
