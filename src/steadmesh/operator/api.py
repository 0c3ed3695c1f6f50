"""The service as commands call it, and what they say when it refuses."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from steadmesh.client.address import Operator, for_operator
from steadmesh.operator.trouble import CommandFailed


@dataclass(frozen=True, slots=True)
class Organisation:
    """An organisation of the service."""

    id: str
    key: str
    display_name: str


class Api:
    """The operator's endpoints of one service."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    @classmethod
    def find(cls, data: str | None) -> Api:
        """The service of a data directory, or of STEADMESH_URL. Raises NoService."""
        return cls(for_operator(os.environ, data))

    def get(self, path: str, **query: object) -> Any:
        """The answer of a GET."""
        text = "&".join(f"{name}={quote(str(value))}" for name, value in query.items())
        return self._call("GET", f"{path}?{text}" if text else path, None)

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
        answer = self.operator.request(method, path, body=body)
        if answer.status < 400 and not answer.body:
            return None
        if answer.status < 400:
            return answer.json()
        raise Refused(answer.status, _message(answer))


class Refused(CommandFailed):
    """The service refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def nearest(name: str, known: list[str]) -> str:
    """` Did you mean lead?`, or what there is."""
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f" Did you mean {near[0]}?"
    return f" There are: {', '.join(known)}." if known else ""


def _message(answer: Any) -> str:
    try:
        body = answer.json()
        message = str(body["message"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered HTTP {answer.status} without saying why"
    if answer.status == 401:
        return f"{message} (as the operator: over the socket, or with STEADMESH_OPERATOR_KEY_FILE)"
    problems = body.get("details", {}).get("problems", [])
    lines = [f"{problem['path']}: {problem['message']}" for problem in problems]
    return "\n".join([message, *lines[1:]]) if lines else message
