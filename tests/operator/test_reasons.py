"""Why a seat does nothing, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steadmesh.operator.reasons import doing, has_supervisor, sender, why

NOW = datetime.now(UTC)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).isoformat()


def local(seconds: float) -> str:
    return f"{(NOW + timedelta(seconds=seconds)).astimezone():%H:%M:%S}"


def seat(**fields: Any) -> dict[str, Any]:
    quiet = {"seat": "lead", "state": "Stopped", "pending_messages": 0, "running": False}
    return {**quiet, "suspended": False, "on_current_config": True, **fields}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, ""),
        ({"state": "Warm", "running": True, "lease_holder": "start-1"}, ""),
        ({"pending_messages": 2}, ""),
        ({"detail": "the seat failed: no binary"}, "the seat failed: no binary"),
        ({"state": "Blocked", "detail": "no sandbox"}, "blocked: no sandbox"),
        ({"state": "Blocked"}, "blocked"),
        (
            {"state": "Blocked", "suspended": True, "detail": "suspended by an operator: lunch"},
            "suspended by an operator: lunch",
        ),
        ({"state": "Blocked", "suspended": True}, "suspended by an operator"),
        (
            {
                "state": "Warm",
                "running": True,
                "lease_holder": "start-1",
                "on_current_config": False,
            },
            "still runs with an older configuration",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_reason_is_told_if_there_is_one(fields: dict[str, Any], words: str) -> None:
    assert why(seat(**fields), supervised=True) == words


def test_without_a_supervisor_it_is_told_of_seats_whose_mail_waits_and_that_run_nowhere() -> None:
    words = "no supervisor is running: mail will wait"
    assert why(seat(pending_messages=1), supervised=False) == words
    assert why(seat(), supervised=False) == ""
    running = {"state": "Warm", "running": True, "lease_holder": "start-1"}
    assert why(seat(pending_messages=1, **running), supervised=False) == ""


def test_back_off_is_told_with_its_end_until_that_has_come() -> None:
    waits = {"state": "Warm", "running": True, "lease_holder": "start-1", "pending_messages": 1}
    words = f"waiting for back-off until {local(3_600)}"
    assert why(seat(**waits, next_attempt_at=at(3_600)), supervised=True) == words
    assert why(seat(**waits, next_attempt_at=at(-5)), supervised=True) == ""
    turn = {"attempt": 1, "since": at(-1), "origin": "seat", "sender_seat": "rep"}
    assert why(seat(**waits, next_attempt_at=at(3_600), turn=turn), supervised=True) == ""


@pytest.mark.parametrize(("state", "holder"), [("Warm", "seat-run"), ("Provisioning", "start-1")])
def test_a_lease_that_keeps_others_out_is_told_with_its_holder(state: str, holder: str) -> None:
    held = seat(state=state, running=True, lease_holder=holder, lease_expires_at=at(4_000))
    words = f"lease held by instance {holder} until {local(4_000)} unless renewed"
    assert why(held, supervised=True) == words
    said = {**held, "detail": f"lease held by instance {holder}", "pending_messages": 1}
    assert why(said, supervised=True) == words


def test_retiring_is_told_with_its_end() -> None:
    words = why(seat(state="Retiring", retiring_until=at(3_600)), supervised=True)
    assert words == f"retiring until {local(3_600)}; it takes no new mail"


@pytest.mark.parametrize(
    ("turn", "name"),
    [
        ({"origin": "seat", "sender_seat": "lead"}, "lead"),
        ({"origin": "human", "external_user_id": "ada"}, "ada"),
        ({"origin": "schedule"}, "a schedule"),
        ({"origin": "system"}, "the platform"),
        ({"origin": "probe"}, "a probe"),
        ({}, "somebody"),
    ],
)
def test_whoever_wrote_is_named(turn: dict[str, Any], name: str) -> None:
    assert sender(turn) == name


def test_a_turn_is_told_by_its_age_its_sender_and_its_attempt_from_the_second_on() -> None:
    turn = {"since": at(-200_000), "attempt": 1, "origin": "seat", "sender_seat": "rep"}
    assert doing(seat(turn=turn)) == "2 days on mail from rep"
    assert doing(seat(turn={**turn, "attempt": 3})) == "2 days on mail from rep, attempt 3"
    assert doing(seat()) == ""


def test_a_supervisor_is_there_when_the_view_names_one() -> None:
    assert has_supervisor({"supervisor": {"host": "h", "pid": 1}})
    assert not has_supervisor({"supervisor": None})
    assert not has_supervisor({})
