"""Mail between seats and with people: conversations, messages, and what waits in an inbox."""

from steadmesh.seats.messages import history, inbox, recipients, reply, send
from steadmesh.seats.messages._store import MESSAGE, forget_conversation, move_conversations
from steadmesh.seats.messages._store import forget_talk as forget_seat
from steadmesh.seats.messages.counts import OLDEST_PENDING, InboxCounts, inbox_counts
from steadmesh.seats.messages.envelope import Envelope, envelope
from steadmesh.seats.messages.inbox import own_inbox
from steadmesh.seats.messages.notices import (
    retiring_representative,
    silence,
    talk_of_person,
    talks_of_messages,
    talks_waiting,
    tell_authors,
    tell_if_silent,
    tell_turned_away,
    tell_waiting,
    why_silent,
)
from steadmesh.seats.messages.people import (
    OUTBOX_TOPIC,
    Person,
    human_conversation,
    talk_of,
    talk_with,
)
from steadmesh.seats.messages.queueing import (
    Inbox,
    Origin,
    Sender,
    open_conversation,
    queue_message,
)
from steadmesh.seats.messages.trimming import TRIMMINGS
from steadmesh.tools import Feature

FEATURE = Feature(
    package="steadmesh.seats.messages",
    tools=[
        recipients.recipients,
        send.send,
        reply.reply,
        inbox.inbox,
        history.history,
    ],
    gauges=[OLDEST_PENDING],
    trimmings=TRIMMINGS,
)

__all__ = [
    "FEATURE",
    "MESSAGE",
    "OUTBOX_TOPIC",
    "Envelope",
    "Inbox",
    "InboxCounts",
    "Origin",
    "Person",
    "Sender",
    "envelope",
    "forget_conversation",
    "forget_seat",
    "human_conversation",
    "inbox_counts",
    "move_conversations",
    "open_conversation",
    "own_inbox",
    "queue_message",
    "retiring_representative",
    "silence",
    "talk_of",
    "talk_of_person",
    "talk_with",
    "talks_of_messages",
    "talks_waiting",
    "tell_authors",
    "tell_if_silent",
    "tell_turned_away",
    "tell_waiting",
    "why_silent",
]
