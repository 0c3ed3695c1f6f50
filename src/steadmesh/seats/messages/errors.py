"""What can be wrong with a message."""

from __future__ import annotations

from steadmesh.kernel.errors import Forbidden, Full, Invalid, NotFound, Unavailable


class NoRoute(Forbidden):
    """You have no route to {seat}. Nothing was sent; `messages.recipients` lists the seats that you can write to."""


class NotLive(Unavailable):
    """{seat} is not there any more: it was removed from the organisation or replaced. Nothing was sent; `messages.recipients` lists the seats that you can write to."""


class Retiring(Unavailable):
    """{seat} is retiring and takes no new messages. Nothing was sent; find out who takes over."""

    details = ("recipient_state",)


class InboxFull(Full):
    """{seat} has {limit} messages waiting and takes no more now. Nothing was sent; try again later. `status` shows its queue."""

    code = "inbox_full"


class NotContinuable(NotFound):
    """You take part in no conversation between seats with this conversation_id. Nothing was sent; leave it out to begin a new one."""


class NoConversation(NotFound):
    """You take part in no such conversation. Without conversation_id this tool lists yours."""


class NoMessage(NotFound):
    """There is no such message in a conversation that you take part in."""


class NotYourMessage(NotFound):
    """No message with this message_id was sent to you. Use the id from the envelope of a message you got."""


class NotReplyable(Invalid):
    """message_id: a message of origin {origin} cannot be answered. Act on it, or write to somebody with messages.send."""


class NoReplyRoute(Forbidden):
    """You may not answer {seat}: it asked for no reply, and you have no route to it. Nothing was sent."""


class NotYourPerson(Forbidden):
    """You are not the representative behind the binding {binding}. Nothing was sent; `self` lists your channel_bindings."""


class PersonLost(Forbidden):
    """You no longer represent the person who wrote this message. Nothing was sent."""
