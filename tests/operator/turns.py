"""Seats that work and fail, played by a test on a running service."""

from __future__ import annotations

from typing import Any

from tests.operator.conftest import Lumen
from tests.support.seats import Client


def ada_writes(lumen: Lumen, text: str) -> None:
    """A message to Ada's representative."""
    said = lumen.run("chat", "--user", "ada", "--token", lumen.token, "--wait", "0", stdin=text)
    assert said.code == 0, said


class Played:
    """A seat whose turns the test plays."""

    def __init__(self, lumen: Lumen, key: str) -> None:
        self.client: Client = lumen.seat(key)
        self.delivery: dict[str, Any] = {}

    def begins(self) -> dict[str, Any]:
        """Takes the next delivery."""
        self.delivery = self._ask("GET", "/v1/inbox/next?wait=10")
        return self.delivery

    def reports(self, kind: str, **data: Any) -> None:
        """Something happens in the turn."""
        place = f"/v1/executions/{self.delivery['execution_id']}/events"
        self._ask("POST", place, {"kind": kind, "data": data})

    def ends(self, *, error: str | None = None) -> None:
        """The turn is over."""
        outcome = "completed" if error is None else "failed"
        body = {"execution_id": self.delivery["execution_id"], "outcome": outcome, "error": error}
        self._ask("POST", f"/v1/inbox/{self.delivery['delivery_id']}/ack", body)

    def says(self, state: str) -> None:
        """What the runner reports."""
        self._ask("POST", "/v1/state", {"state": state})

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.client.service.request(method, path, body, headers=self.client.headers)
        assert answer.status < 300, answer.body
        return answer.json() if answer.body else None


def dead_letter(lumen: Lumen, text: str = "print it", *, error: str = "no paper") -> int:
    """A message of Ada that was given up; its id. Five attempts would take six minutes."""
    ada_writes(lumen, text)
    database = lumen.service.service.database

    def bury(tx: Any) -> int:
        row = tx.one("SELECT max(number) AS number FROM deliveries")
        tx.run(
            "UPDATE deliveries SET state = 'dead', open = 0, attempt = 5, error = :error"
            " WHERE number = :number",
            number=row["number"],
            error=error,
        )
        return int(row["number"])

    return database.write_blocking(bury)
