"""Organisation F on a running service, and its seats as clients outside see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.organisations import BUNDLES, fixture_f, folder_of
from tests.support.service import RunningService

TOOLS_PROGRAM = Path(sys.executable).with_name("steadmesh-tools")


def apply(service: RunningService, document: dict[str, Any] | None = None) -> dict[str, str]:
    """Put organisation F, or another one, in force; the id of each seat by its key."""
    given = document or fixture_f()
    body = {"file": given, "bundles": BUNDLES, "folder": folder_of(given)}
    answer = service.request("POST", "/internal/v1/organizations:sync", body, local=True)
    assert answer.status == 200, answer.body
    return {key: seat["seat_id"] for key, seat in answer.json()["seats"].items()}


@dataclass
class Client:
    """A seat outside the service: it has a token and a lease, and files that name them."""

    service: RunningService
    seat_id: str
    folder: Path
    token: str = field(default="", repr=False)
    generation: int = 0

    @classmethod
    def of(cls, service: RunningService, seat_id: str, folder: Path) -> Client:
        """A seat with a fresh token that holds its lease."""
        client = cls(service, seat_id, folder)
        path = f"/internal/v1/seats/{seat_id}/tokens"
        issued = service.request("POST", path, {"instance": "test"}, local=True)
        client.token = issued.json()["token"]
        client.acquire()
        return client

    def acquire(self) -> None:
        """Take the lease, and write token and generation where programs look for them."""
        answer = self.service.request(
            "POST", "/v1/lease/acquire", {}, headers={"Authorization": f"Bearer {self.token}"}
        )
        self.generation = answer.json()["generation"]
        self.folder.mkdir(exist_ok=True)
        (self.folder / "token").write_text(self.token)
        (self.folder / "generation").write_text(str(self.generation))

    @property
    def headers(self) -> dict[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "X-Steadmesh-Generation": str(self.generation),
        }

    def environment(self, address: str | None = None) -> Mapping[str, str]:
        """What a harness would give its programs."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "STEADMESH_PLATFORM_URL": address or f"unix:{self.service.socket}",
            "STEADMESH_TOKEN_FILE": str(self.folder / "token"),
            "STEADMESH_GENERATION_FILE": str(self.folder / "generation"),
        }

    def run(
        self, *words: str, stdin: str | None = None, address: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `steadmesh-tools` as this seat."""
        return subprocess.run(
            [str(TOOLS_PROGRAM), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=dict(self.environment(address)),
            check=False,
        )

    def mcp(self, method: str, **params: Any) -> dict[str, Any]:
        """One request to `/mcp`."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = self.headers | {"Accept": "application/json, text/event-stream"}
        answer = self.service.request("POST", "/mcp", body, headers=headers)
        result: dict[str, Any] = json.loads(answer.body)
        return result
