"""The tables of the configuration file: settings that belong together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from steadmesh.kernel import config_values as values
from steadmesh.kernel import durations
from steadmesh.kernel.config_values import Reader

SANDBOX_FEATURES = ("network_policy", "non_root", "filesystem_policy")


def setting(sentence: str, reader: Reader, *, default: Any = None, secret: bool = False) -> Any:
    metadata = {"sentence": sentence, "reader": reader, "secret": secret}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """The `[supervisor]` table: how seats are run on this machine."""

    unenforced: tuple[str, ...] = setting(
        "Sandbox features that seats ask for and this machine knowingly runs them without.",
        values.words_from(*SANDBOX_FEATURES),
        default=(),
    )
    idle_timeout: int | None = setting(
        "How long an idle seat is kept warm, instead of what the organisation file says.",
        values.duration,
    )
    """Nanoseconds."""


def _kept(sentence: str, days: int) -> Any:
    return setting(sentence, values.period, default=days * values.DAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The `[retention]` table: how long what is done with is kept. Nanoseconds, or nothing for ever."""

    messages: int | None = _kept(
        "What was said in conversations, counted from each message; their memory of it.", 730
    )
    deliveries: int | None = _kept("Messages' way through an inbox, once it is at its end.", 30)
    executions: int | None = _kept("Turns, from their end.", 90)
    execution_events: int | None = _kept("What turns reported, from the turn's end.", 30)
    replies: int | None = _kept("Replies' way to people, once it is at its end.", 30)
    terminal_lines: int | None = _kept("Lines in people's terminals, once they were shown.", 30)
    outside_events: int | None = _kept(
        "Which events of channels were taken, so that a repeated one does nothing.", 30
    )
    events: int | None = _kept("What happened, for those who follow it.", 30)
    audit: int | None = _kept("Who called what.", 365)

    def period(self, name: str) -> int | None:
        """One of these in microseconds; nothing for ever."""
        value: int | None = getattr(self, name)
        return None if value is None else value // durations.MICROSECOND
