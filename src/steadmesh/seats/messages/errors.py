"""What can be wrong with a message."""

from __future__ import annotations

from steadmesh.kernel.errors import Forbidden, Full, Invalid, NotFound, Unavailable


class NoRoute(Forbidden):
    """There is no route from you to {seat}. `messages.recipients` lists the seats that you may write to."""


class NotLive(Unavailable):
    """{seat} is not there any more, so nothing was sent."""


class Retiring(Unavailable):
    """{seat} is retiring and takes no new messages; nothing was sent. Find out who takes over."""

    details = ("recipient_state",)


class InboxFull(Full):
    """{seat} has {limit} messages waiting and takes no more now. Try again later; `status` shows its queue."""

    code = "inbox_full"


class NoConversation(NotFound):
    """There is no such conversation that you take part in."""


class NoMessage(NotFound):
    """No message with this id was delivered to you."""


class WhichMessage(Invalid):
    """Give exactly one of message_id (the message you answer) and binding (your person's channel)."""


class NotYourPerson(Forbidden):
    """The binding {binding} is not yours: only its representative writes to that person."""


class NoReplyRoute(Forbidden):
    """You may not answer {seat}: it did not ask for a reply, and there is no route from you to it."""


class NotReplyable(Invalid):
    """A message of origin {origin} cannot be answered. Act on it, or write to somebody with messages.send."""
