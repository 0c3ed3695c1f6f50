"""Pure decisions about messages: figures, who sees what, who may answer whom."""

from __future__ import annotations

from collections.abc import Callable

from steadmesh.kernel.fitting import largest_that_fits
from steadmesh.kernel.text import size, truncated
from steadmesh.seats.identity import Policy, SeatCaller

INBOX_CAP = 1_000
"""Messages that may wait in an inbox: pending, in a turn, and queued without wake."""

BODY_BYTES = 12_288
CORRELATION_BYTES = 200
SHOWN_BYTES = 4_096
"""Of a body on a page of several messages."""

OPENING_CHARACTERS = 60
"""Of a message that a notice is about."""

SHOWN_KEY_BYTES = 100
"""Of a key from the arguments that an error repeats."""


def may_send(caller: SeatCaller) -> bool:
    """At least one outgoing route, be it to a seat on its way out."""
    return bool(caller.policy.recipients or caller.policy.leaving)


def may_reply(caller: SeatCaller) -> bool:
    """A route in either direction, or a person."""
    policy = caller.policy
    return bool(policy.recipients or policy.senders or policy.bindings or policy.leaving)


def may_answer(policy: Policy, sender: str) -> bool:
    """Whether a message of this seat may be answered: over an own route, or one that allows replies."""
    return sender in policy.recipients or bool(policy.senders.get(sender))


def shown(key: str) -> str:
    """A key as an error repeats it."""
    return truncated(key, SHOWN_KEY_BYTES)


def opening(body: str) -> str:
    """The beginning of a message on one line and in quotes, by which its author knows it again."""
    words = " ".join(body[: 4 * OPENING_CHARACTERS].split())
    if len(words) <= OPENING_CHARACTERS and len(body) <= 4 * OPENING_CHARACTERS:
        return f'"{words}"'
    return f'"{words[:OPENING_CHARACTERS].rstrip()}…"'


def fitted(body: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of a body that fits; escaping can make its encoded form six times longer."""
    return truncated(body, largest_that_fits(size(body), lambda most: fits(truncated(body, most))))
