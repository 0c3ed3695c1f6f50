"""verify, and the conditions and readiness that status shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steadmesh.runner._rules import Policy, blocked_reason
from steadmesh.runner.harness import ADAPTERS
from steadmesh.runner.view import SeatView
from steadmesh.seats.briefing._conditions import SANDBOX_REFUSED
from steadmesh.seats.organisation import AVAILABLE
from tests.seats.test_probes import answer, ask, without
from tests.seats.world import Refusal, World
from tests.support.organisations import fixture_f

NAMES = [
    "Configured",
    "IdentitiesReady",
    "ConnectionsAuthenticated",
    "IngressReady",
    "BindingsValid",
    "StorageReady",
    "HarnessCompatible",
    "SandboxEnforced",
    "RoutesExecutable",
    "OperationalReady",
    "IntegrationsDegraded",
]
TOKENS = {"alice": "secret-of-alice", "bob": "secret-of-bob"}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Tokens and keys as organisation F needs them."""
    monkeypatch.setenv("CHAT", json.dumps(TOKENS))
    monkeypatch.setenv("LINEAR", '{"api_key": "lin_1"}')
    return monkeypatch


def status(world: World) -> Any:
    return world.operate(
        "GET /internal/v1/organizations/{organization}/status", organization=world.organisation_id
    )


def verified(world: World) -> Any:
    return world.operate(
        "POST /internal/v1/organizations/{organization}/verify", organization=world.organisation_id
    )


def condition(world: World, name: str) -> tuple[bool, str | None]:
    found = {entry["name"]: entry for entry in status(world)["conditions"]}[name]
    return found["ok"], found.get("reason")


def seat(world: World, key: str) -> tuple[bool, str | None]:
    found = next(row for row in status(world)["seats"] if row["seat"] == key)
    return found["ready"], found.get("reason")


def pass_probes(world: World, *keys: str) -> None:
    for key in keys or tuple(world.seats):
        ask(world, key)
        actor = world.actor(key)
        answer(actor)
        actor("POST /v1/lease/release")


# verify


def test_verify_tells_of_each_connection_binding_ingress_and_credential(world: World) -> None:
    found = verified(world)
    away = "adapter linear is not available in this version"
    assert found == {
        "connections": {
            "chat": {"ok": True, "adapter": "terminal", "required": True},
            "tracker": {"ok": False, "detail": away, "adapter": "linear", "required": False},
        },
        "ingress": {"chat": {"ok": True}},
        "bindings": {"alice": {"ok": True}, "bob": {"ok": True}},
        "credentials": {"chat": {"ok": True}, "tracker": {"ok": True}},
    }


def test_verify_of_an_unknown_organisation_is_not_found(world: World) -> None:
    world.organisation_id = "none"
    with pytest.raises(Refusal) as refused:
        verified(world)
    assert refused.value.kind == "not_found"


def test_verify_looks_anew_each_time(world: World, secrets: pytest.MonkeyPatch) -> None:
    assert verified(world)["credentials"]["chat"]["ok"]
    secrets.delenv("CHAT")
    found = verified(world)
    assert not found["credentials"]["chat"]["ok"]
    assert not found["connections"]["chat"]["ok"]
    assert not found["ingress"]["chat"]["ok"]
    assert not found["bindings"]["alice"]["ok"]
    assert "environment variable CHAT" in found["credentials"]["chat"]["detail"]


@pytest.mark.parametrize(
    ("tokens", "where", "key", "words"),
    [
        ({"alice": "a"}, "bindings", "bob", "no token of bob"),
        ({"alice": "same", "bob": "same"}, "ingress", "chat", "the token of alice, bob is empty"),
        ({"alice": " ", "bob": "b"}, "ingress", "chat", "the token of alice is empty"),
        ({}, "credentials", "chat", "has no token of any user"),
    ],
)
def test_verify_names_people_who_cannot_come_in(
    world: World,
    secrets: pytest.MonkeyPatch,
    tokens: dict[str, str],
    where: str,
    key: str,
    words: str,
) -> None:
    secrets.setenv("CHAT", json.dumps(tokens))
    assert words in verified(world)[where][key]["detail"]


def test_verify_says_nothing_of_what_is_in_a_secret(
    world: World, secrets: pytest.MonkeyPatch
) -> None:
    secrets.setenv("CHAT", json.dumps({"tok-1": "alice", "tok-2": "alice", "alice": "alice"}))
    secrets.setenv("LINEAR", json.dumps({"wrong": "lin_77"}))
    text = json.dumps([verified(world), status(world)])
    assert not any(word in text for word in ("tok-1", "tok-2", "lin_77"))
    assert verified(world)["credentials"]["tracker"]["detail"] == "the secret has no api_key"


def test_a_binding_of_a_retiring_seat_is_not_valid(world: World) -> None:
    def retire(tx: Any) -> None:
        tx.run("UPDATE seats SET retire_by = 1 WHERE key = 'rep_a'")

    world.database.write_blocking(retire)
    assert verified(world)["bindings"]["alice"]["detail"] == "the seat rep_a is retiring"


# Conditions


def test_the_conditions_come_in_order_and_all_hold_once_every_seat_passed(world: World) -> None:
    pass_probes(world)
    found = status(world)["conditions"]
    assert [entry["name"] for entry in found] == NAMES
    assert [entry["name"] for entry in found if not entry["ok"]] == ["IntegrationsDegraded"]


def test_s_95_an_optional_tracker_degrades_and_blocks_nothing(world: World) -> None:
    pass_probes(world)
    found = {entry["name"]: entry for entry in status(world)["conditions"]}
    assert found["OperationalReady"] == {"name": "OperationalReady", "ok": True}
    assert found["IntegrationsDegraded"] == {
        "name": "IntegrationsDegraded",
        "ok": False,
        "reason": "tracker: adapter linear is not available in this version",
        "informational": True,
    }


def test_s_95_a_required_chat_that_fails_blocks(world: World, secrets: pytest.MonkeyPatch) -> None:
    pass_probes(world)
    secrets.setenv("CHAT", "no json")
    ok, reason = condition(world, "OperationalReady")
    assert (ok, reason) == (False, "ConnectionsAuthenticated: chat: CHAT holds no JSON")
    assert condition(world, "IngressReady")[0] is False
    assert condition(world, "BindingsValid")[0] is False


def test_a_chat_that_is_said_to_be_optional_degrades(
    world: World, secrets: pytest.MonkeyPatch
) -> None:
    document = fixture_f()
    document["connections"]["chat"]["required"] = False
    world.apply(document)
    pass_probes(world)
    secrets.delenv("CHAT")
    assert condition(world, "OperationalReady") == (True, None)
    assert "chat: " in (condition(world, "IntegrationsDegraded")[1] or "")


def test_a_person_without_a_token_makes_bindings_false(
    world: World, secrets: pytest.MonkeyPatch
) -> None:
    secrets.setenv("CHAT", json.dumps({"alice": "a"}))
    assert condition(world, "BindingsValid") == (
        False,
        "bob: the secret of chat has no token of bob",
    )
    assert condition(world, "ConnectionsAuthenticated")[0]


def test_an_empty_token_makes_ingress_false(world: World, secrets: pytest.MonkeyPatch) -> None:
    secrets.setenv("CHAT", json.dumps({"alice": "", "bob": "b"}))
    assert condition(world, "IngressReady")[0] is False
    assert condition(world, "BindingsValid")[0]


def test_a_seat_that_lost_its_identity_makes_identities_false(world: World) -> None:
    def lose(tx: Any) -> None:
        tx.run("DELETE FROM leases WHERE seat_id = :seat", seat=world.seats["lead"])

    world.database.write_blocking(lose)
    assert condition(world, "IdentitiesReady") == (
        False,
        "lead has no identity; apply the organisation file again",
    )


def test_an_instruction_that_is_not_stored_makes_configured_false(world: World) -> None:
    world.database.write_blocking(lambda tx: tx.run("DELETE FROM bundles"))
    ok, reason = condition(world, "Configured")
    assert not ok
    assert (reason or "").startswith("the instruction file:instruction.md#sha256:")


def test_a_file_that_this_version_refuses_is_said_and_breaks_nothing(world: World) -> None:
    def age(tx: Any) -> None:
        tx.run("UPDATE organisations SET document = replace(document, 'process', 'steam')")

    world.database.write_blocking(age)
    ok, reason = condition(world, "Configured")
    assert not ok
    assert "not valid in this version (execution_profiles.normal.backend: " in (reason or "")
    with pytest.raises(Refusal) as refused:
        verified(world)
    assert refused.value.kind == "invalid"
    assert "apply it again" in str(refused.value)


def test_a_full_disk_makes_storage_false_until_a_write_succeeds(world: World) -> None:
    world.database.full = True
    assert condition(world, "StorageReady") == (False, "the disk of the database is full")
    verified(world)
    assert condition(world, "StorageReady") == (True, None)


def test_a_harness_that_is_not_in_the_program_is_named_with_its_seats(world: World) -> None:
    document = fixture_f()
    document["connections"]["gpt"] = {"adapter": "openai", "secret_ref": "env:GPT"}
    document["harness_profiles"]["smart"] = {
        "adapter": "codex",
        "image_digest": "local",
        "model": {"connection": "gpt", "id": "m-1"},
    }
    for key in ("lead", "reviewer"):
        document["seats"][key]["harness_profile"] = "smart"
    world.apply(document)
    reason = "lead, reviewer: adapter codex is not available in this version"
    assert condition(world, "HarnessCompatible") == (False, reason)
    assert seat(world, "lead") == (False, "adapter codex is not available in this version")


def test_what_is_said_to_be_available_is_what_the_runner_has() -> None:
    assert set(ADAPTERS) == AVAILABLE


def test_a_sandbox_that_a_supervisor_cannot_enforce_is_named_with_its_seats(world: World) -> None:
    view = SeatView("s", "lead", "r", "fake", "warm", 1.0, sandbox_required=("network_policy",))
    reason = blocked_reason(view, Policy(), unavailable=None)
    assert reason is not None
    assert reason.startswith(SANDBOX_REFUSED)
    for key in ("engineer", "lead"):
        world.operate(
            "POST /internal/v1/seats/{seat}/state",
            seat=world.seats[key],
            state="Blocked",
            detail=reason,
        )
    assert condition(world, "SandboxEnforced") == (False, f"engineer, lead: {reason}")
    assert seat(world, "lead") == (False, f"blocked: {reason}")


# Seats


def test_a_seat_that_was_never_probed_is_not_ready(world: World) -> None:
    assert seat(world, "engineer") == (False, "it was never probed")
    ask(world, "engineer")
    assert seat(world, "engineer") == (False, "its first probe is under way")


def test_a_stopped_seat_that_passed_its_probe_is_ready(world: World) -> None:
    pass_probes(world, "engineer")
    assert seat(world, "engineer") == (True, None)
    assert condition(world, "RoutesExecutable")[0] is False


def test_readiness_is_told_before_and_after_a_probe_is_settled(world: World) -> None:
    pass_probes(world, "engineer")
    before = status(world)
    world.jobs()
    assert status(world) == before


def test_a_probe_under_way_takes_nothing_from_one_that_passed(world: World) -> None:
    pass_probes(world, "engineer")
    world.jobs()
    probe = ask(world, "engineer")
    assert seat(world, "engineer") == (True, None)
    row = next(row for row in status(world)["seats"] if row["seat"] == "engineer")
    assert (row["probe"]["probe_id"], row["probe"]["status"]) == (probe, "pending")


def test_the_newest_probe_counts_and_its_failing_check_is_the_reason(world: World) -> None:
    pass_probes(world)
    ask(world, "engineer")
    answer(world.actor("engineer"), {"workspace": "fail: no room"})
    reason = "its probe failed: workspace: fail: no room"
    assert seat(world, "engineer") == (False, reason)
    assert condition(world, "RoutesExecutable") == (False, f"engineer: {reason}")
    assert condition(world, "OperationalReady") == (
        False,
        f"RoutesExecutable: engineer: {reason}",
    )


def test_a_changed_configuration_wants_a_new_probe(world: World) -> None:
    pass_probes(world)
    document = fixture_f()
    document["seats"]["engineer"]["display_name"] = "The engineer"
    world.apply(document)
    assert seat(world, "engineer") == (False, "it was not probed since its configuration changed")
    pass_probes(world, "engineer")
    assert seat(world, "engineer") == (True, None)


def test_a_suspended_seat_is_not_ready(world: World) -> None:
    pass_probes(world)
    about = {"seat": world.seats["engineer"], "reason": "on leave"}
    world.operate("POST /internal/v1/seats/{seat}:suspend", **about)
    assert seat(world, "engineer") == (False, "suspended by an operator: on leave")
    assert condition(world, "RoutesExecutable")[0] is False


def test_a_retiring_seat_counts_to_no_condition(world: World) -> None:
    pass_probes(world, *(key for key in world.seats if key != "engineer"))
    world.apply(without("engineer"))
    assert seat(world, "engineer") == (False, "it is retiring")
    assert condition(world, "OperationalReady") == (True, None)


def test_secrets_in_files_are_read_too(
    world: World, secrets: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "chat.json"
    document = fixture_f()
    document["connections"]["chat"]["secret_ref"] = f"file:{file}"
    world.apply(document)
    assert str(file) in verified(world)["connections"]["chat"]["detail"]
    file.write_text(json.dumps(TOKENS))
    assert verified(world)["connections"]["chat"]["ok"]
