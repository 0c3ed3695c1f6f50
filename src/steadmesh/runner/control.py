"""The service's operator endpoints, as far as a supervisor needs them."""

from __future__ import annotations

import time
from typing import Any

from steadmesh.client.address import NoService, Operator
from steadmesh.client.http import Answer, Unreachable
from steadmesh.runner.platform import checked
from steadmesh.runner.view import OrganisationView, read_view

_POLL_SLACK = 10.0


class Control:
    """Every method raises PlatformError and Unreachable."""

    def __init__(self, operator: Operator, organization_id: str) -> None:
        self._operator = operator
        self._runtime = f"/internal/v1/organizations/{organization_id}/runtime"

    def runtime(self, *, wait_seconds: float = 0.0, after: str = "") -> OrganisationView | None:
        """All seats; with `after` and a wait None when nothing changed meanwhile."""
        query = f"?wait={wait_seconds:g}&after={after}" if after else ""
        asked_at = time.monotonic()
        answer = self._request(
            "GET", self._runtime + query, timeout=wait_seconds + _POLL_SLACK, retry_for=0.0
        )
        if answer.status == 204:
            return None
        try:
            return read_view(answer.json(), asked_at=asked_at, seen_at=time.monotonic())
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise Unreachable(f"the service's answer cannot be read: {problem!r}") from None

    def issue_token(self, seat_id: str, instance: str) -> str:
        """A fresh identity token; a second one for an instance is a rotation."""
        answer = self._request("POST", _seat(seat_id, "tokens"), {"instance": instance})
        return str(answer.json()["token"])

    def end_tokens(self, seat_id: str, instance: str) -> None:
        """No token of that instance opens anything any more."""
        self._request("DELETE", _seat(seat_id, f"tokens/{instance}"))

    def fence(self, seat_id: str, expected_generation: int) -> None:
        """End a generation whose start is confirmed gone."""
        self._request("POST", _seat(seat_id, "fence"), {"expected_generation": expected_generation})

    def set_state(self, seat_id: str, state: str, detail: str | None) -> None:
        """Our word on a seat that does not run."""
        body = {"state": state} if detail is None else {"state": state, "detail": detail}
        self._request("POST", _seat(seat_id, "state"), body)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        timeout: float = 10.0,
        retry_for: float = 2.0,
    ) -> Answer:
        try:
            return checked(
                self._operator.request(
                    method, path, body=body, timeout=timeout, retry_for=retry_for
                )
            )
        except NoService as problem:
            raise Unreachable(str(problem)) from None


def _seat(seat_id: str, rest: str) -> str:
    return f"/internal/v1/seats/{seat_id}/{rest}"
