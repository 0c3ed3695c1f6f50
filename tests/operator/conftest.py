"""The example organisation, as files and in force on a running service."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from steadmesh.operator.quickstart import write_files
from tests.operator.commands import Said, steadmesh
from tests.support.seats import Client
from tests.support.service import RunningService


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of ours, and a home of the test's own."""
    for name in os.environ:
        if name.startswith("STEADMESH_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The folder that `steadmesh quickstart` writes."""
    folder = tmp_path / "lumen"
    write_files(folder)
    return folder


@dataclass(frozen=True)
class Lumen:
    """The example organisation in force."""

    service: RunningService
    folder: Path

    @property
    def file(self) -> str:
        return str(self.folder / "organisation.yaml")

    @property
    def token_file(self) -> str:
        return str(self.folder / "secrets" / "chat.json")

    @property
    def token(self) -> str:
        """Ada's."""
        return str(json.loads(Path(self.token_file).read_text())["ada"])

    def run(self, command: str, *words: str, stdin: str = "") -> Said:
        """A command about this service."""
        return steadmesh(command, *words, "--data", str(self.service.data), stdin=stdin)

    def seat_id(self, key: str) -> str:
        seats = json.loads(self.run("status", "--json").out)["seats"]
        return str(next(seat["seat_id"] for seat in seats if seat["seat"] == key))

    def seat(self, key: str) -> Client:
        """A seat, played by the test."""
        return Client.of(self.service, self.seat_id(key), self.folder / f"played-{key}")

    def says(self, seat: Client, text: str) -> None:
        """Ada's representative writes to her."""
        arguments = {"arguments": {"binding": "ada", "body": text}}
        path = "/v1/tools/messages.reply"
        answer = self.service.request("POST", path, arguments, headers=seat.headers)
        assert answer.json()["content"]["delivery"] == "queued", answer.body


@pytest.fixture
def empty() -> Iterator[RunningService]:
    """A service without an organisation."""
    with RunningService() as service:
        yield service


@pytest.fixture
def lumen(empty: RunningService, example: Path) -> Lumen:
    """A service of the test's own with the example in force."""
    town = Lumen(empty, example)
    assert town.run("apply", town.file).code == 0
    return town
