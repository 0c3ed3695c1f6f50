"""How long conversations are remembered: each message by its own age, a conversation while it has any.

Whoever goes on in a conversation has its row first, and looks whether it was still there.
"""

from __future__ import annotations

from functools import partial

from steadmesh.kernel.clock import HOUR
from steadmesh.kernel.trimming import Trimming
from steadmesh.seats.messages import _trimming_store as _store

QUIET = 24 * HOUR
"""A conversation outlives its last message by this: nobody can be replying to that any more."""

TRIMMINGS = [
    Trimming("messages", _store.old_messages, _store.remove_messages, setting="messages"),
    Trimming(
        "conversations",
        _store.old_conversations,
        partial(_store.remove_conversations, quiet=QUIET),
        setting="messages",
        start="",
    ),
    Trimming(
        "participants",
        _store.old_participants,
        _store.remove_participants,
        setting="messages",
        start="",
        whole=True,
    ),
]
