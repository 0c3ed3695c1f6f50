"""The service as commands call it, and what they say when it refuses."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from steadmesh.client import address
from steadmesh.client.address import Operator, for_operator
from steadmesh.client.http import Unreachable, new_idempotency_key
from steadmesh.operator.terminal import note
from steadmesh.operator.trouble import CommandFailed

if TYPE_CHECKING:
    from steadmesh.client.http import Answer

ADDRESSES = ("STEADMESH_URL", "STEADMESH_PLATFORM_URL")
RETRY_SECONDS = 10.0
POLL_SLACK = 10.0
"""Seconds that the answer of a long poll may come late."""


@dataclass(frozen=True, slots=True)
class Organisation:
    """An organisation of the service."""

    id: str
    key: str
    display_name: str


class Api:
    """The operator's endpoints of one service."""

    def __init__(self, operator: Operator, *, patient: bool = True) -> None:
        """`patient`: a service that does not answer is asked for a while longer."""
        self.operator = operator
        self._patient = patient

    @classmethod
    def find(cls, data: str | None, *, patient: bool = True) -> Api:
        """The service of a data directory, or of STEADMESH_URL. Raises NoService."""
        if data is None and not any(os.environ.get(name) for name in ADDRESSES):
            data = _configured_data()
        return cls(for_operator(os.environ, data), patient=patient)

    def get(self, path: str, **query: object) -> Any:
        """The answer of a GET."""
        return self._call("GET", _with_query(path, query), None)

    def poll(self, path: str, *, wait: float, **query: object) -> Any:
        """The answer of a GET once there is one, nothing if there was none for so many seconds.

        Never tried again: whoever follows something asks anew anyway.
        """
        place = _with_query(path, {"wait": f"{wait:g}", **query})
        answer = self.operator.request("GET", place, timeout=wait + POLL_SLACK, retry_for=0)
        return self._content(answer)

    def post(self, path: str, body: Mapping[str, object]) -> Any:
        """The answer of a POST; nothing for one without content."""
        return self._call("POST", path, body)

    def delete(self, path: str) -> None:
        self._call("DELETE", path, None)

    def organisations(self) -> list[Organisation]:
        """Those of the service, by key."""
        found = self.get("/internal/v1/organizations")["organizations"]
        return [Organisation(o["organization_id"], o["key"], o["display_name"]) for o in found]

    def organisation(self, key: str | None) -> Organisation:
        """The one that was named, or the only one there is."""
        known = self.organisations()
        if not known:
            raise CommandFailed(
                "the service has no organisation yet. Apply one: steadmesh apply FILE "
                "(`steadmesh quickstart DIR` writes an example)"
            )
        keys = [organisation.key for organisation in known]
        if key is None and len(known) == 1:
            return known[0]
        if key is None:
            raise CommandFailed(
                f"the service has several organisations; name one with --org: {', '.join(keys)}"
            )
        for organisation in known:
            if organisation.key == key:
                return organisation
        raise CommandFailed(f"there is no organisation {key}.{nearest(key, keys)}")

    def seats(self, organisation: Organisation) -> dict[str, dict[str, Any]]:
        """Each live seat as the supervisor sees it, by key."""
        runtime = self.get(f"/internal/v1/organizations/{organisation.id}/runtime")
        seats: dict[str, dict[str, Any]] = runtime["seats"]
        return seats

    def seat(self, organisation: Organisation, key: str) -> dict[str, Any]:
        """One live seat."""
        seats = self.seats(organisation)
        if key not in seats:
            raise CommandFailed(
                f"{organisation.key} has no seat {key}.{nearest(key, sorted(seats))}"
            )
        return seats[key]

    def _call(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        return self._content(self._answer(method, path, body))

    @staticmethod
    def _content(answer: Answer) -> Any:
        if answer.status < 400 and not answer.body:
            return None
        if answer.status < 400:
            return answer.json()
        raise Refused(answer.status, _message(answer))

    def _answer(self, method: str, path: str, body: Mapping[str, object] | None) -> Answer:
        """Tried once, then for a while longer, of which the person hears."""
        headers = {"Idempotency-Key": new_idempotency_key()} if method == "POST" else {}
        ask = partial(self.operator.request, method, path, body=body, headers=headers)
        if not self._patient:
            return ask(retry_for=0)
        try:
            return ask(retry_for=0)
        except Unreachable as problem:
            note(f"{problem}; trying for {RETRY_SECONDS:.0f} s")
        return ask(retry_for=RETRY_SECONDS)


class Refused(CommandFailed):
    """The service refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def data_directory(data: str | None) -> str:
    """The data directory that a command is about. Raises ConfigError."""
    return address.data_directory(os.environ, data or _configured_data())


def _configured_data() -> str | None:
    """That of the file that STEADMESH_CONFIG names; clients read no such file."""
    if not os.environ.get("STEADMESH_CONFIG"):
        return None
    from steadmesh.kernel.config import load

    return str(load({}, os.environ).data)


def _with_query(path: str, query: Mapping[str, object]) -> str:
    text = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items())
    return f"{path}?{text}" if text else path


def nearest(name: str, known: list[str]) -> str:
    """` Did you mean lead?`, or what there is."""
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f" Did you mean {near[0]}?"
    return f" There are: {', '.join(known)}." if known else ""


def _message(answer: Answer) -> str:
    try:
        body = answer.json()
        message = str(body["message"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered HTTP {answer.status} without saying why"
    if answer.status == 401:
        return (
            f"{message.rstrip('.')}. As the operator: STEADMESH_OPERATOR_KEY_FILE names the file with"
            " the key, or --data the service's data directory"
        )
    problems = body.get("details", {}).get("problems", [])
    lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
    return "\n".join([message, *lines[1:]]) if lines else message
