"""chat: a person and her representative, in a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steadmesh.client.http import Refused, Unreachable, percent_encoded
from steadmesh.operator import api as operators
from steadmesh.operator.api import Api, Organisation, nearest
from steadmesh.operator.chat_view import Line, View, view_for
from steadmesh.operator.terminal import count, note
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from steadmesh.client.http import Answer, Service, Stream

USUAL_LAST = 10
AWAY = "the connection is lost; trying again. What you write is kept for 30 s"
BACK = "connected again; nothing was lost"
RECONNECT_SECONDS = 2.0
CONNECT_SECONDS = 10.0
SEND_SECONDS = 30.0
SILENCE_SECONDS = 90.0
"""The service speaks every 30 s; three times nothing is a lost stream."""
CLOCKS_AGREE = timedelta(seconds=5)
NEEDS_OTHER_WORDS = (401, 403, 404)
"""Answers that trying again does not change."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the person's token comes from."""

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None

    def of(self, user: str) -> str:
        """Her token. Raises `CommandFailed` that says how to give one."""
        if self.token:
            return self.token
        if self.token_file is None:
            raise CommandFailed(
                f"{user}'s token is needed: set STEADMESH_TERMINAL_TOKEN, or name the file of "
                "tokens with --token-file (the connection's secret, such as secrets/chat.json)"
            )
        try:
            tokens = json.loads(Path(self.token_file).read_text(encoding="utf-8"))
        except OSError as problem:
            raise CommandFailed(f"{self.token_file}: {problem.strerror}") from None
        except ValueError:
            tokens = None
        if not isinstance(tokens, dict):
            raise CommandFailed(
                f'{self.token_file} is not a JSON object of users and tokens, {{"{user}": "…"}}'
            )
        if not isinstance(tokens.get(user), str):
            raise CommandFailed(
                f"{self.token_file} has no token for {user}.{nearest(user, sorted(tokens))}"
            )
        return str(tokens[user])


def chat(
    data: str | None,
    org: str | None,
    *,
    user: str,
    connection: str | None,
    given: Credentials,
    wait: float,
    last: int | None = None,
    as_json: bool = False,
) -> int:
    """Send lines from stdin, print what comes back. `last` lines of before are shown first."""
    token = given.of(user)
    api = Api.find(data)
    if org is not None and connection is not None:  # then her own token is all that is needed
        organisation, name = org, connection
    else:
        organisation, name = _looked_up(api, org, user=user, connection=connection)
    view = view_for(as_json=as_json, lines=lambda: messages(sys.stdin))
    talk = Conversation(api.operator.service, organisation, name, token, view=view)
    if last is None:
        last = USUAL_LAST if view.wants_past else 0
    talk.begin(last)
    talk.connect()
    try:
        return _hold(talk, view, wait=wait)
    finally:
        talk.close()


def _hold(talk: Conversation, view: View, *, wait: float) -> int:
    """Send what comes from stdin; the exit status."""
    status = 0
    interactive = sys.stdin.isatty()
    with view.messages() as said:
        for text in said:
            try:
                talk.send(text)
            except NotSent as problem:
                if problem.final or not interactive:
                    raise
                view.remark(f"steadmesh: {problem}")
                status = 1
    missing = talk.wait_for_answers(wait)
    if missing and wait:
        view.remark(
            f"no answer yet to {count(missing, 'message', 'messages')}; what comes later is shown "
            "by the next `steadmesh chat`, and --wait waits longer"
        )
    return status


def messages(lines: Iterable[str]) -> Iterator[str]:
    """One message a line; a backslash at its end goes on in the next."""
    parts: list[str] = []
    for line in lines:
        text = line.rstrip("\n")
        if text.endswith("\\"):
            parts.append(text[:-1])
            continue
        whole = "\n".join([*parts, text])
        parts = []
        if whole.strip():
            yield whole
    if any(part.strip() for part in parts):
        yield "\n".join(parts)


class NotSent(CommandFailed):
    """A message was not sent. `final`: neither will be the next one."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(f"not sent: {reason}")
        self.final = final


class Conversation:
    """One person's end of a terminal channel."""

    def __init__(
        self,
        service: Service,
        organisation: str,
        connection: str,
        token: str,
        *,
        view: View | None = None,
        show: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`view` shows the talk; `show` gets the text of each answer."""
        self._view = view
        self._show = show
        self._noted: str | None = None
        self._service = service
        self._path = f"/v1/channels/{percent_encoded(organisation)}/{percent_encoded(connection)}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._closed = threading.Event()
        self._heard = threading.Condition()
        self._last_id = ""
        self._began = datetime.now(UTC)
        self._sent = 0
        self._answers = 0

    def begin(self, last: int) -> None:
        """Show whose talk it is, the last lines of it, and why nobody answers, if so.

        Raises `CommandFailed` if this person cannot talk here, and Unreachable.
        """
        answer = self._service.request(
            "GET",
            f"{self._path}/talk?limit={max(1, last)}",
            headers=self._headers,
            retry_for=CONNECT_SECONDS,
        )
        if answer.status != 200:
            raise CommandFailed(_said(answer))
        talk = answer.json()
        if self._view is not None:
            self._view.began(
                user=talk["user"],
                organisation=talk["organization"],
                representative=talk.get("representative"),
            )
            if last:
                self._view.past([Line.of(line) for line in talk["lines"][-last:]])
        self._remark(talk.get("note"))

    def _remark(self, remark: str | None) -> None:
        """A word on the talk, unless it was the last one already."""
        if remark and remark != self._noted and self._view is not None:
            self._view.remark(remark)
        self._noted = remark

    def connect(self) -> None:
        """Open the stream of answers, and go on with it in a thread, over every break.

        Raises `CommandFailed` if this person cannot talk here, and Unreachable.
        """
        try:
            self._stream = self._open(retry_for=CONNECT_SECONDS)
        except Refused as refused:
            raise CommandFailed(_said(refused.answer)) from None
        self._began = _now_there(self._stream.headers.get("date"))
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def close(self) -> None:
        """Listen no more."""
        self._closed.set()
        self._stream.close()
        self._listener.join(RECONNECT_SECONDS)

    def send(self, text: str) -> None:
        """Send one message; repeated under one id until the service has it. Raises `NotSent`."""
        message_id = os.urandom(16).hex()
        try:
            answer = self._service.request(
                "POST",
                f"{self._path}/messages",
                body={"id": message_id, "text": text},
                headers=self._headers,
                retry_for=SEND_SECONDS,
            )
        except Unreachable as problem:
            raise NotSent(f"{problem}", final=False) from None
        if answer.status != 202:
            raise NotSent(_said(answer), final=answer.status in NEEDS_OTHER_WORDS)
        self._sent += 1
        if self._view is not None:
            self._view.sent(message_id, text)
        self._remark(answer.json().get("note"))

    def wait_for_answers(self, seconds: float) -> int:
        """Until each message has an answer, or the time is over; how many have none."""
        with self._heard:
            self._heard.wait_for(lambda: self._answers >= self._sent, timeout=seconds)
            return max(0, self._sent - self._answers)

    def _listen(self) -> None:
        while True:
            with contextlib.suppress(Unreachable), self._stream as stream:
                for line in stream:
                    self._take(line.decode())
            if not self._reopened():
                return

    def _reopened(self) -> bool:
        """Whether the stream goes on, behind what was heard last."""
        while not self._closed.wait(RECONNECT_SECONDS):
            self._remark(AWAY)
            try:
                self._stream = self._open(retry_for=0)
            except Unreachable:
                continue
            except Refused as refused:
                if refused.answer.status in NEEDS_OTHER_WORDS:
                    note(f"steadmesh: answers are not shown any more: {_said(refused.answer)}")
                    return False
            else:
                self._remark(BACK)
                return True
        return False

    def _open(self, *, retry_for: float) -> Stream:
        headers = self._headers | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        return self._service.stream(
            f"{self._path}/events", headers=headers, timeout=SILENCE_SECONDS, retry_for=retry_for
        )

    def _take(self, line: str) -> None:
        if line.startswith("id:"):
            self._last_id = line[3:].strip()
        elif line.startswith("data:"):
            event = json.loads(line[5:])
            said = Line.of(event)
            self._show(said.text)
            if self._view is not None:
                self._view.said(said)
            with self._heard:
                # What waited from before is no answer to what is sent now; nor is a word of the
                # platform's.
                now = datetime.fromisoformat(said.at) >= self._began
                self._answers += now and said.origin is None
                self._heard.notify_all()


def _now_there(date: str | None) -> datetime:
    """The service's time. `Date` tells it roughly, which is of use where the clocks differ much."""
    now = datetime.now(UTC)
    with contextlib.suppress(ValueError):
        there = parsedate_to_datetime(date or "")
        if abs(there - now) > CLOCKS_AGREE:
            return there
    return now


def _said(answer: Answer) -> str:
    try:
        message = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        message = f"the service answered HTTP {answer.status} without saying why"
    if answer.status == 401:
        return f"{message} STEADMESH_TERMINAL_TOKEN or --token-file gives the token."
    return message


def _looked_up(api: Api, org: str | None, *, user: str, connection: str | None) -> tuple[str, str]:
    """Organisation and connection. Raises `CommandFailed` when they are not plain."""
    try:
        organisation = api.organisation(org)
        return organisation.key, _connection(api, organisation, user=user, named=connection)
    except operators.Refused as refused:
        if refused.status == 401:
            raise CommandFailed(
                f"{refused} Or name both --org and --connection: then {user}'s own token is enough."
            ) from None
        raise


def _connection(api: Api, organisation: Organisation, *, user: str, named: str | None) -> str:
    """A terminal connection that the user is bound to."""
    view = api.get(f"/internal/v1/organizations/{organisation.id}/status")
    bound = [row for row in view["bindings"] if row["adapter"] == "terminal"]
    found = sorted({row["connection"] for row in bound if row["external_user_id"] == user})
    if not found:
        people = sorted({row["external_user_id"] for row in bound})
        known = nearest(user, people) or " It has no people on a terminal yet."
        raise CommandFailed(f"{organisation.key} has no terminal binding for {user}.{known}")
    if named is not None and named not in found:
        raise CommandFailed(f"{user} has no terminal connection {named}.{nearest(named, found)}")
    if named is None and len(found) > 1:
        raise CommandFailed(
            f"{user} has several terminal connections; name one with --connection: "
            f"{', '.join(found)}"
        )
    return str(named or found[0])
