"""suspend, resume, delete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from unittest import mock

import pytest

from tests.operator.commands import Said, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.life_double import suspending_and_deleting


@pytest.fixture(autouse=True)
def able(lumen: Lumen) -> Iterator[None]:
    with suspending_and_deleting(lumen.service):
        yield


def status_of(lumen: Lumen, key: str) -> dict[str, object]:
    seats = json.loads(lumen.run("status", "--json").out)["seats"]
    return next(seat for seat in seats if seat["seat"] == key)


def test_a_suspended_seat_is_blocked_with_the_reason_until_it_is_resumed(lumen: Lumen) -> None:
    said = lumen.run("suspend", "lead", "--reason", "wrong instructions")
    assert (said.code, said.out) == (0, "")
    assert said.err == "lead is suspended. Go on: steadmesh resume lead\n"
    row = status_of(lumen, "lead")
    assert row["state"] == "Blocked"
    assert lumen.run("status").out.count(str(row["detail"])) == 1
    assert lumen.run("resume", "lead").err == "lead is resumed\n"
    assert status_of(lumen, "lead")["state"] == "Stopped"


def test_resuming_what_was_not_suspended_does_nothing_and_says_so(lumen: Lumen) -> None:
    said = lumen.run("resume", "lead")
    assert (said.code, said.err) == (0, "lead was not suspended; it is Stopped\n")


@pytest.mark.parametrize("command", ["suspend", "resume"])
def test_a_seat_that_is_not_there_gets_the_nearest(lumen: Lumen, command: str) -> None:
    code, words = lumen.run(command, "leed").failure
    assert (code, "Did you mean lead?" in words) == (1, True)


def keys(lumen: Lumen) -> list[str]:
    answer = lumen.service.request("GET", "/internal/v1/organizations", local=True)
    return [organisation["key"] for organisation in answer.json()["organizations"]]


@pytest.fixture
def asked() -> Iterator[mock.Mock]:
    with mock.patch("steadmesh.operator.steering.confirmed", return_value=False) as confirmed:
        yield confirmed


def test_deleting_says_what_is_lost_and_wants_the_key_typed(lumen: Lumen, asked: mock.Mock) -> None:
    said = lumen.run("delete", "lumen", "--retention", "delete")
    assert said.code == 1
    assert "every message, note and workspace of its 5 seats is removed for good" in said.err
    assert "nothing was done" in said.err
    assert keys(lumen) == ["lumen"]
    asked.return_value = True
    assert lumen.run("delete", "lumen").code == 0
    assert asked.call_args.args[1] == "lumen"
    assert keys(lumen) == []


def test_without_a_terminal_deleting_needs_to_be_told_not_to_ask(lumen: Lumen) -> None:
    said = lumen.run("delete", "lumen", stdin="lumen\n")
    assert (said.code, "say --yes" in said.err) == (1, True)
    assert lumen.run("delete", "lumen", "--yes").code == 0
    assert keys(lumen) == []


def test_what_is_deleted_has_to_be_there_and_named(lumen: Lumen) -> None:
    assert "Did you mean lumen?" in lumen.run("delete", "lumn", "--yes").failure[1]
    said: Said = steadmesh("delete", "--yes", "--data", str(lumen.service.data))
    assert said.failure[0] == 2
    assert lumen.run("delete", "lumen", "--retention", "all", "--yes").failure[0] == 2
    assert keys(lumen) == ["lumen"]
