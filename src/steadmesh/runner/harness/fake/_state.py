"""What the fake harness keeps between turns and starts: its session and open delegations."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from steadmesh.runner.folder import write_atomically
from steadmesh.runner.harness.contract import Envelope

KEPT_MESSAGE_IDS = 20
KEPT_DELEGATIONS = 1_000
"""Keys, two to a delegation; the oldest go first, so that unanswered ones never fill the disk."""


@dataclass(frozen=True, slots=True)
class Session:
    """The fake agent's session, in `<home>/.fake-session`."""

    session_id: str
    turns: int = 0
    """Completed turns."""
    last_message_ids: tuple[str, ...] = ()
    config_revision: str = ""
    updated_at: str = ""

    def after(self, message_id: str, *, now: str) -> Session:
        """The session once the turn of that message is completed."""
        recent = (*self.last_message_ids, message_id)[-KEPT_MESSAGE_IDS:]
        return replace(self, turns=self.turns + 1, last_message_ids=recent, updated_at=now)


def load_session(path: Path) -> Session | None:
    """The stored session; None when there is none, or none that can be read."""
    document = _load(path)
    try:
        return Session(
            session_id=str(document["session_id"]),
            turns=int(document["turns"]),
            last_message_ids=tuple(str(item) for item in document["last_message_ids"]),
            config_revision=str(document["config_revision"]),
            updated_at=str(document["updated_at"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


def save_session(path: Path, session: Session) -> None:
    """Store the session, whole or not at all."""
    write_atomically(path, json.dumps(asdict(session)))


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """Whom an answer goes to: the sender of a message, or the person of a binding."""

    message_id: str | None = None
    binding: str | None = None

    def arguments(self, body: str) -> dict[str, str]:
        """The arguments of `messages.reply` with that body."""
        if self.message_id is not None:
            return {"message_id": self.message_id, "body": body}
        return {"binding": self.binding or "", "body": body}


class Delegations:
    """Work handed to other seats and not reported back yet, in `<runner dir>/fake-state.json`.

    Each is found by the id of the message that caused it and by the id of the message sent, since
    an answer names one as its correlation and the other as its parent.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def record(self, trigger_id: str, sent_id: str, reply_to: ReplyTo) -> None:
        """Remember that the answer to `sent_id` is to be passed on to `reply_to`."""
        open_ones = self._open()
        entry = {key: value for key, value in asdict(reply_to).items() if value is not None}
        for key in (trigger_id, sent_id):
            open_ones.pop(key, None)
            open_ones[key] = {**entry, "trigger": trigger_id}
        for oldest in tuple(open_ones)[: max(0, len(open_ones) - KEPT_DELEGATIONS)]:
            del open_ones[oldest]
        self._save(open_ones)

    def answered_by(self, message: Envelope) -> ReplyTo | None:
        """To whom this message's news is to be passed on, if it answers a delegation."""
        found = self._entry(message)
        return None if found is None else ReplyTo(found.get("message_id"), found.get("binding"))

    def forget(self, message: Envelope) -> None:
        """The delegation that this message answers has been reported back.

        A turn that was tried again has sent twice; both answers belong to the one trigger, and
        the first of them closes it.
        """
        found = self._entry(message)
        if found is not None:
            trigger = found.get("trigger")
            kept = {k: entry for k, entry in self._open().items() if entry["trigger"] != trigger}
            self._save(kept)

    def _entry(self, message: Envelope) -> dict[str, Any] | None:
        open_ones = self._open()
        # The parent names the very message that was sent; the correlation may be shared.
        for key in (message.parent_id, message.correlation_id):
            if key is not None and key in open_ones:
                return open_ones[key]
        return None

    def _open(self) -> dict[str, dict[str, Any]]:
        delegations = _load(self._path).get("delegations")
        if not isinstance(delegations, dict):
            return {}
        return {k: e for k, e in delegations.items() if isinstance(e, dict) and "trigger" in e}

    def _save(self, delegations: dict[str, dict[str, Any]]) -> None:
        write_atomically(self._path, json.dumps({"delegations": delegations}))


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
