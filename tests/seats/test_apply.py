"""Putting an organisation file in force."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from steadmesh.kernel.database import Transaction
from steadmesh.kernel.jobs import JobContext
from steadmesh.seats.identity import SEATS
from steadmesh.seats.identity.states import SEATS_BY_STATE
from steadmesh.seats.lifecycle.secrets import misplaced
from steadmesh.seats.organisation import compile
from steadmesh.tools import Credentials
from tests.seats.world import Actor, Refusal, World
from tests.support.organisations import BUNDLES, REF, fixture_f

SYNC = "POST /internal/v1/organizations:sync"


def changed(**changes: Any) -> dict[str, Any]:
    """Organisation F with values set at paths: `a__b="x"` sets a.b, `...` removes it."""
    document = copy.deepcopy(fixture_f())
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = document
        for folder in folders:
            place = place[folder]
        if value is ...:
            del place[name]
        else:
            place[name] = value
    return document


def without_reviewer() -> dict[str, Any]:
    return changed(seats__reviewer=..., message_routes__engineer_reviewer=...)


def test_s104_applying_twice_changes_nothing(world: World) -> None:
    """S-104, with the database: no seat, revision or event moves."""
    before = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )
    again = world.apply(fixture_f())
    assert again["changed"] is False
    assert {seat["change"] for seat in again["seats"].values()} == {"unchanged"}
    after = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )
    assert after["cursor"] == before["cursor"]
    events = world.database.read_blocking(
        lambda tx: tx.one("SELECT count(*) AS n FROM events WHERE kind = 'organisation.applied'")
    )
    assert events == {"n": 1}


def test_a_policy_change_bites_at_the_next_call_on_the_same_lease(world: World) -> None:
    lead = world.actor("lead")
    assert lead("self")["policy_revision"] == 1
    lead("messages.send", to="engineer", body="x")
    synced = world.apply(changed(message_routes__lead_engineer=...))
    assert synced["seats"]["lead"]["policy_revision"] == 2
    assert synced["seats"]["rep_a"]["policy_revision"] == 1
    with pytest.raises(Refusal) as refusal:
        lead("messages.send", to="engineer", body="x")
    assert refusal.value.code == "forbidden"
    assert lead("self")["policy_revision"] == 2


def test_a_configuration_change_moves_the_configuration_revision_alone(world: World) -> None:
    lead = world.actor("lead")
    before = lead("self")
    world.apply(changed(seats__lead__display_name="The lead"))
    after = lead("self")
    assert after["config_revision"] != before["config_revision"]
    assert after["policy_revision"] == before["policy_revision"]
    assert after["display_name"] == "The lead"
    lead("POST /v1/state", state="Warm", adopted_revision=before["config_revision"])
    assert lead("status")["self"]["on_current_config"] is False


def test_a_seat_that_is_no_longer_declared_retires_and_can_come_back_in_time(world: World) -> None:
    engineer, reviewer = world.actor("engineer"), world.actor("reviewer")
    first = world.apply(without_reviewer())["retiring"]["reviewer"]["retire_by"]
    world.clock.advance(60)
    assert world.apply(without_reviewer())["retiring"]["reviewer"]["retire_by"] == first
    assert reviewer("status")["self"]["state"] == "Retiring"
    assert reviewer("self")["retiring_until"] == first
    back = world.apply(fixture_f())
    assert back["seats"]["reviewer"]["seat_id"] == reviewer.seat_id
    assert engineer("messages.send", to="reviewer", body="welcome back")["message_id"]


def test_an_invalid_file_is_refused_with_every_problem_and_nothing_changes(world: World) -> None:
    bad = changed(timezone="Mars/Base", seats__lead__role_ref="role:none")
    with pytest.raises(Refusal) as refusal:
        world.operate(SYNC, file=bad, bundles=BUNDLES)
    assert refusal.value.code == "invalid"
    paths = [problem["path"] for problem in refusal.value.details["problems"]]
    assert paths == ["seats.lead.role_ref", "timezone"]
    assert world.apply(fixture_f())["changed"] is False


@pytest.mark.parametrize(
    ("bundles", "words"),
    [({}, "is missing"), ({REF: "another text"}, "does not have the sha256")],
)
def test_the_service_checks_the_digest_of_each_instruction_itself(
    world: World, bundles: dict[str, str], words: str
) -> None:
    with pytest.raises(Refusal) as refusal:
        world.operate(SYNC, file=fixture_f(), bundles=bundles)
    assert words in refusal.value.failure.message


def test_a_file_of_another_organisation_than_was_named_is_refused(world: World) -> None:
    with pytest.raises(Refusal) as refusal:
        world.operate(SYNC, key="g", file=fixture_f(), bundles=BUNDLES)
    assert refusal.value.details["problems"][0]["path"] == "key"


def test_no_key_or_id_of_one_organisation_resolves_in_another(world: World) -> None:
    lead = world.actor("lead")
    sent = lead("messages.send", to="engineer", body="a secret of F")
    world.apply(changed(key="g", display_name="Organisation G"))
    stranger = world.actor("engineer")
    assert stranger.seat_id != lead.seat_id
    assert stranger("status")["self"]["pending_messages"] == 0
    assert stranger.next() is None
    for arguments in (
        {"message_id": sent["message_id"], "body": "x"},
        {"binding": "alice", "body": "x"},
    ):
        with pytest.raises(Refusal):
            stranger("messages.reply", **arguments)
    with pytest.raises(Refusal) as refusal:
        stranger("messages.history", conversation_id=sent["conversation_id"])
    assert refusal.value.code == "not_found"


def test_a_seat_of_the_file_starts_stopped_with_nothing(world: World) -> None:
    runtime = world.operate(
        "GET /internal/v1/organizations/{organization}/runtime",
        organization=world.organisation_id,
    )
    seat = runtime["seats"]["lead"]
    assert (seat["state"], seat["pending_deliveries"], seat["lease_generation"]) == (
        "Stopped",
        0,
        0,
    )
    assert Actor(world, "lead")("GET /v1/instructions")["instructions"][0]["text"] == BUNDLES[REF]


class Trouble(Exception):
    pass


def test_a_policy_that_was_rolled_back_is_never_judged_by(world: World) -> None:
    """An apply fails when it is committed: its revision's number comes again, with another policy."""
    lead = world.actor("lead")
    credentials = Credentials(bearer=lead.token)

    def apply_and_call_and_fail(tx: Transaction) -> None:
        tx.run(
            "UPDATE seats SET policy_revision = 2, policy_digest = 'lost' WHERE id = :id",
            id=lead.seat_id,
        )
        SEATS.authenticate(tx, credentials, world.clock.now())
        raise Trouble

    with pytest.raises(Trouble):
        world.database.write_blocking(apply_and_call_and_fail)
    world.apply(changed(message_routes__lead_engineer=...))
    assert lead("self")["policy_revision"] == 2
    with pytest.raises(Refusal) as refusal:
        lead("messages.send", to="engineer", body="x")
    assert refusal.value.code == "forbidden"


def test_the_seats_are_counted_by_the_state_that_people_see(world: World) -> None:
    world.actor("lead")
    world.apply(without_reviewer())
    counted = world.database.read_blocking(
        lambda tx: dict(SEATS_BY_STATE.read(tx, world.clock.now()))
    )
    assert counted == {("f", "Provisioning"): 1, ("f", "Retiring"): 1, ("f", "Stopped"): 3}


def test_what_an_operator_does_to_seats_is_audited_and_what_a_runner_reports_is_not(
    world: World,
) -> None:
    lead = world.actor("lead")
    lead("POST /v1/state", state="Warm")
    with pytest.raises(Refusal):
        world.operate(
            "POST /internal/v1/seats/{seat}/fence", seat=lead.seat_id, expected_generation=99
        )
    world.audit.flush(JobContext(world.database, world.clock, lambda: False))
    rows = world.database.read_blocking(lambda tx: tx.all("SELECT tool, outcome FROM audit"))
    assert {(row["tool"], row["outcome"]) for row in rows} == {
        (SYNC, "ok"),
        ("POST /internal/v1/seats/{seat}/tokens", "ok"),
        ("POST /internal/v1/seats/{seat}/fence", "conflict"),
    }


@pytest.mark.parametrize("folder", [None, "organisation", "relative"])
def test_a_secret_lies_in_the_folder_of_the_file_or_in_secrets_dir(
    world: World, tmp_path: Path, folder: str | None
) -> None:
    """The file of an organisation must not make the service read what it likes."""
    named = str(tmp_path / folder) if folder == "organisation" else folder
    document = fixture_f(f"file:{tmp_path}/elsewhere/tokens.json")
    with pytest.raises(Refusal) as refusal:
        world.operate(SYNC, file=document, bundles=BUNDLES, folder=named)
    [problem] = refusal.value.details["problems"]
    assert problem["path"] == "connections.chat.secret_ref"
    assert "lies neither in the folder of the organisation file nor in" in problem["message"]
    assert "secrets_dir" in problem["message"]
    world.operate(SYNC, file=document, bundles=BUNDLES, folder=str(tmp_path / "elsewhere"))


def test_a_secret_does_not_get_out_of_its_folder_by_dots_or_links(
    world: World, tmp_path: Path
) -> None:
    inside = tmp_path / "organisation"
    inside.mkdir()
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    for name in ("../outside.json", "link.json"):
        document = fixture_f(f"file:{inside}/{name}")
        with pytest.raises(Refusal) as refusal:
            world.operate(SYNC, file=document, bundles=BUNDLES, folder=str(inside))
        assert f"leads to {tmp_path}/outside.json" in refusal.value.failure.message


def test_a_secret_may_lie_in_secrets_dir_whatever_the_folder() -> None:
    connections = compile(fixture_f("file:/srv/vault/tokens.json")).connections
    assert misplaced(connections, folder=None, secrets_dir=Path("/srv/vault")) == []
    [problem] = misplaced(connections, folder="/srv/elsewhere", secrets_dir=Path("/srv/other"))
    assert "nor in /srv/other" in problem.message
