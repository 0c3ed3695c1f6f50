"""The service's operator endpoints, as far as a supervisor needs them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from steadmesh.client.address import NoService, Operator
from steadmesh.client.http import Answer, Unreachable
from steadmesh.runner.platform import checked
from steadmesh.runner.view import OrganisationView, read_view

_POLL_SLACK = 10.0
_CLAIM_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class Rival:
    """The supervisor that has the claim to an organisation's seats."""

    host: str
    pid: int
    expires_at: str
    instance: str
    machine: str | None = None
    started: str | None = None

    def __str__(self) -> str:
        """For people."""
        return f"{self.host}, pid {self.pid}"


@dataclass(frozen=True, slots=True)
class Held:
    """The claim is ours for `ttl_seconds` from when we asked."""

    ttl_seconds: float
    continued: bool
    """Nobody else had it since we last did."""


class Control:
    """Every method raises PlatformError and Unreachable."""

    def __init__(self, operator: Operator, organization_id: str) -> None:
        self._operator = operator
        organisation = f"/internal/v1/organizations/{organization_id}"
        self._runtime = f"{organisation}/runtime"
        self._supervision = f"{organisation}/supervision"

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

    def claim(self, claimant: dict[str, object], *, replaces: str | None) -> Held | Rival:
        """Take the claim or keep it; who has it instead. `replaces` names one known to be gone."""
        body = claimant if replaces is None else {**claimant, "replaces": replaces}
        try:
            # Not repeated in here: an answer is as old as the first of the attempts.
            answer = self._operator.request(
                "POST", self._supervision, body=body, timeout=_CLAIM_TIMEOUT, retry_for=0.0
            )
        except NoService as problem:
            raise Unreachable(str(problem)) from None
        try:
            if answer.status == 409:
                return _rival(answer.json()["details"])
            given = checked(answer).json()
            return Held(float(given["ttl_seconds"]), bool(given["continued"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise Unreachable(f"the service's answer cannot be read: {problem!r}") from None

    def end_claim(self, instance: str) -> None:
        """Decide no more; the next one may at once."""
        self._request("DELETE", f"{self._supervision}/{instance}")

    def issue_token(self, seat_id: str, instance: str) -> str:
        """A fresh identity token; a second one for an instance is a rotation."""
        answer = self._request("POST", _seat(seat_id, "tokens"), {"instance": instance})
        return str(answer.json()["token"])

    def end_tokens(self, seat_id: str, instance: str, *, lapse: bool = False) -> None:
        """No token of that instance opens anything any more, or will in ten minutes."""
        query = "?lapse=true" if lapse else ""
        self._request("DELETE", _seat(seat_id, f"tokens/{instance}{query}"))

    def fence(self, seat_id: str, expected_generation: int) -> None:
        """End a generation whose start is confirmed gone."""
        self._request("POST", _seat(seat_id, "fence"), {"expected_generation": expected_generation})

    def set_state(self, seat_id: str, state: str, detail: str | None) -> None:
        """Our word on a seat that does not run."""
        body = {"state": state} if detail is None else {"state": state, "detail": detail}
        self._request("POST", _seat(seat_id, "state"), body)

    def explain(self, seat_id: str, detail: str) -> None:
        """Why we leave a seat alone, whose state is somebody else's to tell."""
        self._request("POST", _seat(seat_id, "state"), {"detail": detail})

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


def _rival(details: dict[str, Any]) -> Rival:
    return Rival(
        host=str(details["host"]),
        pid=int(details["pid"]),
        expires_at=str(details["expires_at"]),
        instance=str(details["instance"]),
        machine=details.get("machine"),
        started=details.get("started"),
    )
