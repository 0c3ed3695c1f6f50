"""chat: a person and her representative, in a terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steadmesh.client.http import Refused, Unreachable
from steadmesh.kernel.text import for_terminal
from steadmesh.operator.api import Api, Organisation
from steadmesh.operator.terminal import note
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Callable

    from steadmesh.client.http import Service

RECONNECT_SECONDS = 2.0
SEND_SECONDS = 30.0
SILENCE_SECONDS = 90.0
"""The service speaks every 30 s; three times nothing is a lost stream."""


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
            raise CommandFailed(f"{self.token_file} is not a JSON object of users") from None
        if not isinstance(tokens, dict) or not isinstance(tokens.get(user), str):
            raise CommandFailed(f"{self.token_file} has no token for {user}")
        return str(tokens[user])


def chat(
    data: str | None,
    org: str | None,
    *,
    user: str,
    connection: str | None,
    given: Credentials,
    wait: float,
) -> int:
    """Send lines from stdin, print what comes back."""
    token = given.of(user)
    api = Api.find(data)
    organisation = api.organisation(org)
    name = connection or _only_connection(api, organisation, user)
    talk = Conversation(api.operator.service, organisation.key, name, token)
    listener = threading.Thread(target=talk.listen, daemon=True)
    listener.start()
    if sys.stdin.isatty():
        note(f"you are {user} at {organisation.display_name}; end with Ctrl-D")
    for text in _messages():
        talk.send(text)
    talk.wait_for_answers(wait)
    return talk.status


def _messages() -> Any:
    """One message a line; a backslash at its end goes on in the next."""
    parts: list[str] = []
    for line in sys.stdin:
        text = line.rstrip("\n")
        if text.endswith("\\"):
            parts.append(text[:-1])
            continue
        whole = "\n".join([*parts, text])
        parts = []
        if whole.strip():
            yield whole
    if parts:
        yield "\n".join(parts)


class Conversation:
    """One person's end of a terminal channel."""

    def __init__(
        self,
        service: Service,
        organisation: str,
        connection: str,
        token: str,
        *,
        show: Callable[[str], None] | None = None,
    ) -> None:
        """`show` gets each answer; without it they are printed."""
        self._show = show or _print
        self._service = service
        self._path = f"/v1/channels/{organisation}/{connection}"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._last_id = ""
        self._sent = 0
        self._heard = threading.Condition()
        self._answers = 0
        self.status = 0

    def send(self, text: str) -> None:
        """Send one message; repeated under one id until the service has it."""
        body = {"id": os.urandom(16).hex(), "text": text}
        answer = self._service.request(
            "POST",
            f"{self._path}/messages",
            body=body,
            headers=self._headers,
            retry_for=SEND_SECONDS,
        )
        if answer.status != 202:
            self.status = 1
            note(f"steadmesh: not sent: {_said(answer)}")
            if answer.status == 401:
                raise CommandFailed("give the token of this user with --token or --token-file")
            return
        self._sent += 1

    def listen(self) -> None:
        """Print what comes, and go on after a break where it was."""
        while True:
            try:
                self._follow()
            except Refused as refused:
                if refused.answer.status in (401, 403, 404):
                    note(f"steadmesh: {_said(refused.answer)}")
                    self.status = 1
                    return
            except Unreachable:
                pass
            threading.Event().wait(RECONNECT_SECONDS)

    def wait_for_answers(self, seconds: float) -> bool:
        """Until each message has an answer, or the time is over; whether all have."""
        with self._heard:
            return self._heard.wait_for(lambda: self._answers >= self._sent, timeout=seconds)

    def _follow(self) -> None:
        headers = self._headers | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        stream = self._service.stream(
            f"{self._path}/events", headers=headers, timeout=SILENCE_SECONDS
        )
        with stream:
            for line in stream:
                self._take(line.decode().rstrip("\r\n"))

    def _take(self, line: str) -> None:
        if line.startswith("id:"):
            self._last_id = line[3:].strip()
        elif line.startswith("data:"):
            self._show(json.loads(line[5:])["text"])
            with self._heard:
                self._answers += 1
                self._heard.notify_all()


def _print(text: str) -> None:
    print(f"representative> {for_terminal(text)}", flush=True)


def _said(answer: Any) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {answer.status}"


def _only_connection(api: Api, organisation: Organisation, user: str) -> str:
    """The terminal connection of the user's binding. Raises `CommandFailed` when it is not plain."""
    view = api.get(f"/internal/v1/organizations/{organisation.id}/status")
    found = sorted(
        {
            binding["connection"]
            for binding in view["bindings"]
            if binding["external_user_id"] == user and binding["adapter"] == "terminal"
        }
    )
    if len(found) == 1:
        return str(found[0])
    if not found:
        people = sorted({binding["external_user_id"] for binding in view["bindings"]})
        known = f" It knows {', '.join(people)}." if people else " It has no people yet."
        raise CommandFailed(f"{organisation.key} has no terminal binding for {user}.{known}")
    raise CommandFailed(f"{user} has several terminal connections; name one: --connection {found}")
