"""How long it is kept what came from people and went to them. Lines nobody saw and replies on their way
stay; of the lines of a person who never looks, the newest 200."""

from __future__ import annotations

from steadmesh.kernel.trimming import Trimming
from steadmesh.seats.connections import _trimming_store as _store

TRIMMINGS = [
    Trimming("ingress_events", _store.old_events, _store.remove_events, setting="outside_events"),
    Trimming("channel_outbox", _store.old_replies, _store.remove_replies, setting="replies"),
    Trimming("terminal_lines", _store.old_lines, _store.remove_lines, setting="terminal_lines"),
]
