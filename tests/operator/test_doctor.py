"""doctor: everything that is looked at, right and wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from steadmesh import __version__
from steadmesh.operator.doctor_machine import size
from tests.operator.commands import Screen, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.turns import dead_letter
from tests.support.service import RunningService


def examined(data: Path | str) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Exit status, and the findings by what they are about."""
    said = steadmesh("doctor", "--data", str(data), "--json")
    document = json.loads(said.out)
    assert document["ok"] is (said.code == 0)
    found: dict[str, list[dict[str, str]]] = {}
    for finding in document["findings"]:
        found.setdefault(finding["about"], []).append(finding)
    return said.code, found


def problems(data: Path | str) -> dict[str, str]:
    """What is wrong, by what it is about; each says what to do."""
    _, found = examined(data)
    wrong = [f for findings in found.values() for f in findings if f["verdict"] == "wrong"]
    assert all(finding["do"] for finding in wrong)
    return {finding["about"]: finding["says"] for finding in wrong}


def supervised(lumen: Lumen) -> None:
    """A supervisor says that it is there."""
    seats = lumen.service.request("GET", "/internal/v1/organizations", local=True).json()
    place = f"/internal/v1/organizations/{seats['organizations'][0]['organization_id']}/supervision"
    body = {"instance": "one", "host": "here", "pid": 1}
    assert lumen.service.request("POST", place, body, local=True).status == 200


def test_where_all_is_well_it_says_so_and_ends_with_0(lumen: Lumen) -> None:
    supervised(lumen)
    said = lumen.run("doctor")
    assert said.err == "nothing is wrong\n"
    assert said.code == 0
    assert "WRONG" not in said.out
    for words in (
        f"ok     program: steadmesh {__version__}, Python 3.",
        f"ok     data directory: {lumen.service.data}, closed to others (0700)",
        f"at {lumen.service.url} and unix:{lumen.service.socket}, up for ",
        "ok     database: sqlite, ",
        "ok     lumen, supervisor: on here (pid 1), heard of 0 s ago",
        "ok     lumen, seats: 5 seats, 0 running, none stuck",
    ):
        assert words in said.out, said.out


def test_without_a_service_the_machine_is_looked_at_and_it_ends_with_1(tmp_path: Path) -> None:
    said = steadmesh("doctor", "--data", str(tmp_path / "d"))
    assert said.code == 1
    assert said.err == "1 thing is wrong\n"
    assert f"       do: steadmesh serve --data {tmp_path}/d\n" in said.out
    assert "ok     program: " in said.out


def test_a_missing_supervisor_is_wrong(lumen: Lumen) -> None:
    assert problems(lumen.service.data) == {
        "lumen, supervisor": "no supervisor is running: mail will wait"
    }


def test_seats_that_are_stuck_are_wrong_each_with_what_to_do(lumen: Lumen) -> None:
    supervised(lumen)
    dead_letter(lumen)
    path = f"/internal/v1/seats/{lumen.seat_id('lead')}/state"
    body = {"state": "Blocked", "detail": "no sandbox"}
    lumen.service.request("POST", path, body, local=True)
    code, found = examined(lumen.service.data)
    assert code == 1
    assert [(f["says"], f["do"]) for f in found["lumen, seats"]] == [
        ("lead blocked: no sandbox", "remove the cause; it is tried again every 30 s"),
        ("1 dead letter: rep_ada (1)", "steadmesh dead-letters list --org lumen"),
    ]


def test_mail_that_waits_for_long_is_wrong(lumen: Lumen) -> None:
    supervised(lumen)
    lumen.run("chat", "--user", "ada", "--token", lumen.token, "--wait", "0", stdin="hello\n")
    assert problems(lumen.service.data) == {}
    lumen.service.service.database.write_blocking(
        lambda tx: tx.run("UPDATE deliveries SET created_at = created_at - 7200000000")
    )
    assert problems(lumen.service.data) == {"lumen, seats": "mail waits for 2 h at rep_ada"}


def test_rows_that_the_audit_lost_are_wrong(lumen: Lumen) -> None:
    supervised(lumen)
    lumen.service.service.audit.dropped = 3
    assert problems(lumen.service.data)["audit"].startswith("3 rows lost since the start")


def test_another_version_of_the_service_is_wrong(
    lumen: Lumen, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervised(lumen)
    monkeypatch.setattr("steadmesh.operator.doctor_service.__version__", "9.0")
    assert problems(lumen.service.data)["version"] == (
        f"the service is {__version__}, this program 9.0"
    )


def test_what_others_can_read_is_wrong(lumen: Lumen) -> None:
    supervised(lumen)
    lumen.service.data.joinpath("operator.key").chmod(0o640)
    lumen.service.data.chmod(0o755)
    assert problems(lumen.service.data) == {
        "data directory": f"{lumen.service.data} is open to others (0755)",
        "files": f"{lumen.service.data}/operator.key can be read by others (0640)",
    }


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_disk_that_is_nearly_full_is_wrong(lumen: Lumen) -> None:
    supervised(lumen)
    usage = Usage(1, 1, 1_000_000)
    with mock.patch("shutil.disk_usage", return_value=usage):
        assert problems(lumen.service.data) == {"disk": "976.6 KiB free"}


def line(level: str, ago: timedelta, event: str) -> str:
    time = (datetime.now(UTC) - ago).isoformat()
    return json.dumps({"time": time, "level": level, "event": event}) + "\n"


def test_errors_in_the_log_of_the_last_hour_are_wrong(lumen: Lumen) -> None:
    supervised(lumen)
    with lumen.service.data.joinpath("steadmesh.log").open("w") as log:
        log.write(line("error", timedelta(hours=2), "long ago"))
        log.write("no json\n")
        log.write(line("error", timedelta(minutes=5), "call failed"))
        log.write(line("warning", timedelta(minutes=4), "no error"))
        log.write(line("error", timedelta(minutes=3), "job failed"))
    says = problems(lumen.service.data)["log"]
    assert says.startswith("2 errors in steadmesh.log within the last hour, the last at ")
    assert says.endswith(": job failed")


def test_a_setting_that_is_none_is_wrong(lumen: Lumen, monkeypatch: pytest.MonkeyPatch) -> None:
    supervised(lumen)
    monkeypatch.setenv("STEADMESH_PROT", "1")
    assert "STEADMESH_PROT" in problems(lumen.service.data)["settings"]
    monkeypatch.setenv("STEADMESH_PORT", "many")
    assert "STEADMESH_PORT" in problems(lumen.service.data)["settings"]


@contextmanager
def answering(path: str, answer: Any) -> Iterator[None]:
    """The service, with one of its answers played."""
    from steadmesh.operator.api import Api

    real = Api.get

    def get(self: Api, asked: str, **query: object) -> Any:
        return answer if asked.endswith(path) else real(self, asked, **query)

    with mock.patch.object(Api, "get", get):
        yield


def test_conditions_that_do_not_hold_are_wrong(lumen: Lumen) -> None:
    conditions = [
        {"name": "Configured", "ok": True},
        {"name": "RoutesExecutable", "ok": False, "reason": "lead did not pass"},
    ]
    view = {"seats": [], "conditions": conditions}
    with answering("/status", view):
        assert problems(lumen.service.data) == {
            "lumen, conditions": "RoutesExecutable does not hold: lead did not pass"
        }


def test_sizes_are_told_where_the_service_tells_them(lumen: Lumen) -> None:
    tables = [
        {"name": "messages", "rows": 12, "bytes": 4_096},
        {"name": "audit", "rows": 3, "bytes": 512, "kept": "90d"},
    ]
    with answering("/internal/v1/sizes", {"bytes": 1_048_576, "tables": tables}):
        _, found = examined(lumen.service.data)
    assert found["size"][0]["says"] == (
        "database 1.0 MiB; largest: messages 4.0 KiB (12 rows), audit 512 B (3 rows, kept 90d)"
    )


def test_a_service_that_has_stopped_answering_is_wrong(tmp_path: Path) -> None:
    with RunningService(data=tmp_path / "d") as service:
        service.socket.unlink()
        says = problems(service.data)["service"]
    assert says.startswith("its process is there, but no answer from unix:")


def test_a_service_without_an_organisation_is_not_wrong(empty: RunningService) -> None:
    code, found = examined(empty.data)
    assert (code, found["organisations"][0]["verdict"]) == (0, "info")


def test_on_a_terminal_what_is_wrong_has_a_colour(lumen: Lumen) -> None:
    screen = Screen()
    steadmesh("doctor", "--data", str(lumen.service.data), screen=screen)
    assert "\033[1;31mWRONG \033[0m lumen, supervisor: " in screen.getvalue()


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5 * 1024**4, "5120.0 GiB")],
)
def test_a_size_is_told_in_its_largest_fitting_unit(number: int, words: str) -> None:
    assert size(number) == words
