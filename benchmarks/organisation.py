"""An organisation for measurements: senders, recipients, and a service that holds them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from steadmesh.client.http import Service

SENDERS = 32
RECIPIENTS = 200
INSTRUCTION = "Measure, do not guess.\n"


def document() -> dict[str, Any]:
    """The organisation file: every sender may write to every recipient."""
    digest = hashlib.sha256(INSTRUCTION.encode()).hexdigest()
    ref = f"file:instruction.md#sha256:{digest}"
    seat = {
        "role_ref": ref,
        "harness_profile": "scripted",
        "execution_profile": "normal",
        "sandbox_profile": "standard",
    }
    seats = {f"sender_{n:02d}": seat | {"teams": ["senders"]} for n in range(SENDERS)}
    seats |= {f"recipient_{n:03d}": seat | {"teams": ["recipients"]} for n in range(RECIPIENTS)}
    return {
        "key": "measured",
        "display_name": "Measured",
        "team_templates": {"plain": {}},
        "teams": {"senders": {"template": "plain"}, "recipients": {"template": "plain"}},
        "harness_profiles": {"scripted": {"adapter": "fake", "image_digest": "local"}},
        "execution_profiles": {"normal": {"backend": "process"}},
        "sandbox_profiles": {"standard": {}},
        "seats": seats,
        "message_routes": {"all": {"from": "team:senders", "to": "team:recipients", "reply": True}},
    }


class MeasuredService:
    """A real service in a process of its own, with the organisation applied."""

    def __init__(self, database: str | None = None) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="steadmesh-bench-")
        self.data = Path(self.folder.name) / "data"
        self._database = database
        self.port = 0
        self.start()
        self.seats = self._apply()

    def start(self) -> None:
        """Start the process; after the first time on the same port and the same data."""
        command = [sys.executable, "-m", "steadmesh.operator.main", "serve"]
        command += ["--port", str(self.port), "--data", str(self.data)]
        own = {"STEADMESH_DATABASE": self._database} if self._database else {}
        log = Path(self.folder.name) / "serve.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, stderr=output, stdout=output, env=os.environ | own
            )
        self.address = self._wait_for_address(log)
        self.port = int(self.address["url"].rsplit(":", 1)[1])
        self.service = Service([f"unix:{self.address['socket']}"])

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(30)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()

    def token(self, seat: str, instance: str = "bench") -> str:
        """A token of a seat."""
        path = f"/internal/v1/seats/{self.seats[seat]}/tokens"
        answer = self.service.request("POST", path, body={"instance": instance})
        return str(answer.json()["token"])

    def acquire(self, token: str) -> int:
        """The generation of a lease that was taken for the seat of the token."""
        headers = {"Authorization": f"Bearer {token}"}
        answer = self.service.request("POST", "/v1/lease/acquire", body={}, headers=headers)
        return int(answer.json()["generation"])

    def _wait_for_address(self, log: Path) -> dict[str, Any]:
        file = self.data / "address.json"
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            if file.exists():
                address = dict(json.loads(file.read_text()))
                if address["pid"] == self.process.pid:  # not what a killed one left behind
                    return address
            time.sleep(0.02)
        raise SystemExit(f"the service did not start:\n{log.read_text()}")

    def _apply(self) -> dict[str, str]:
        file = document()
        ref = file["seats"]["sender_00"]["role_ref"]
        body = {"file": file, "bundles": {ref: INSTRUCTION}}
        answer = self.service.request("POST", "/internal/v1/organizations:sync", body=body)
        if answer.status != 200:
            raise SystemExit(f"apply: {answer.status} {answer.body.decode()}")
        return {key: seat["seat_id"] for key, seat in answer.json()["seats"].items()}
