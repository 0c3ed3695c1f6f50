"""The organisation that the manual shows, resolved."""

from __future__ import annotations

import json
import random
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steadmesh.seats.organisation import (
    Change,
    Instruction,
    Organisation,
    Recipient,
    SeatRevisions,
    compile,
    differences,
    read_text,
)
from tests.organisation import sample

MEMORY = ("archive", "history", "publish", "read", "revise", "search", "write")


def lumen() -> Organisation:
    return compile(sample.data())


def test_the_sample_is_valid_and_gets_the_defaults() -> None:
    organisation = lumen()
    assert (organisation.key, organisation.timezone) == ("lumen", "Europe/Paris")
    assert organisation.data_retention == "retain"
    builder = organisation.seats["builder"]
    assert builder.display_name == "builder"
    assert builder.workspace.persistent
    assert builder.execution.idle_timeout == 900
    assert (builder.execution.cpu_limit, builder.execution.memory_limit) == ("2", "2Gi")
    assert builder.sandbox.required_enforcement == ("network_policy", "non_root", "resource_limits")
    assert builder.sandbox.network_policy_ref == "deny_all_except_platform"


def test_a_file_without_zone_is_in_utc() -> None:
    data = sample.data()
    del data["timezone"]
    assert compile(data).seats["lead"].timezone == "UTC"


def test_instructions_go_from_culture_over_teams_and_role_to_the_seat() -> None:
    data = sample.data()
    data["seats"]["lead"]["instruction_refs"] = [sample.ref("checker"), sample.ref("base")]
    names = ["culture", "base", "build", "lead", "checker"]
    scopes = ["organisation", "team:build", "team:build", "role", "seat"]
    assert compile(data).seats["lead"].instructions == tuple(
        Instruction(sample.ref(name), scope, order)
        for order, (name, scope) in enumerate(zip(names, scopes, strict=True), 1)
    )


def test_the_manifest_of_the_lead_has_one_sorted_entry_for_each_resource() -> None:
    manifest = lumen().seats["lead"].manifest
    assert {entry.resource: entry.operations for entry in manifest} == {
        "connection:forge": ("pull_request.create", "pull_request.read"),
        "connection:tracker": ("project.create", "task.write"),
        "memory:build": ("archive", "history", "read", "revise", "search", "write"),
        "memory:lead": MEMORY,
    }
    assert [entry.resource for entry in manifest] == sorted(entry.resource for entry in manifest)
    assert manifest[0].targets == dict.fromkeys(manifest[0].operations, ("lumen/app",))
    assert manifest[0].sources == ("implicit:access_profile:code",)
    assert manifest[2].sources == ("team:build/shared_memory",)


def test_a_representative_may_answer_her_person_and_nobody_else_there() -> None:
    representative = lumen().seats["rep_ada"]
    chat = representative.manifest[0]
    assert (chat.resource, chat.operations) == ("connection:chat", ("channel.reply",))
    assert chat.targets == {"channel.reply": ("ada",)}
    assert chat.sources == ("implicit:channel_binding/ada",)
    assert representative.is_representative
    assert representative.timezone == "America/New_York"


def test_routes_are_seen_from_both_ends() -> None:
    seats = lumen().seats
    assert seats["rep_ada"].recipients == (Recipient("lead", True, ("ada_lead",)),)
    assert seats["rep_ada"].senders == ()
    assert seats["lead"].recipients == (Recipient("builder", True, ("lead_team",)),)
    assert [sender.seat for sender in seats["lead"].senders] == ["builder", "rep_ada"]


def test_a_connection_is_required_when_it_is_bound_and_otherwise_when_the_file_says_so() -> None:
    data = sample.data()
    data["connections"]["forge"]["required"] = True
    found = {key: c.required for key, c in compile(data).connections.items()}
    assert found == {"chat": True, "forge": True, "tracker": False}


def test_teams_keep_their_lineage_and_know_their_members() -> None:
    team = lumen().teams["build"]
    assert (team.lineage, team.members) == (("base", "build"), ("builder", "lead"))
    assert team.parameters == {"cadence": "daily"}
    assert lumen().stores["lead"].personal_of == "lead"
    assert lumen().stores["build"].personal_of is None


def test_s104_the_resolved_file_has_no_templates_and_compiles_to_itself() -> None:
    """S-104: the same digest twice; the resolved file gives the same revisions."""
    first = lumen()
    assert lumen() == first
    assert "team_templates" not in first.resolved
    again = compile(json.loads(json.dumps(first.resolved)))
    assert (again.digest, again.resolved) == (first.digest, first.resolved)
    assert again.seats == first.seats


def shuffled(value: Any, order: random.Random) -> Any:
    if not isinstance(value, dict):
        return value
    keys = list(value)
    order.shuffle(keys)
    return {key: shuffled(value[key], order) for key in keys}


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_s104_the_order_of_maps_changes_nothing(order: random.Random) -> None:
    """S-104."""
    assert compile(shuffled(sample.data(), order)) == lumen()


def test_s104_the_order_of_lists_that_are_sets_changes_nothing() -> None:
    """S-104."""
    data = sample.data()
    data["grants"]["lead_tracker"]["operations"].reverse()
    data["team_templates"]["build"]["shared_memory"]["build"].reverse()
    data["connections"]["forge"]["required"] = False
    data["seats"]["lead"]["display_name"] = "lead"
    assert compile(data).digest == lumen().digest


def moved(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the plan says of each seat that a change touches."""
    before = {
        key: SeatRevisions(seat.config_revision, seat.policy_digest)
        for key, seat in lumen().seats.items()
    }
    changes = differences(before, compile(data))
    return {change.seat: change.revisions for change in changes if change.kind == "changed"}


def test_s15_a_new_text_of_a_role_moves_only_the_seats_that_have_it() -> None:
    """S-15."""
    data = sample.data()
    data["team_templates"]["build"]["roles"]["builder"] = sample.ref("checker")
    assert moved(data) == {"builder": ("configuration",)}


def test_a_role_that_nobody_has_moves_nobody() -> None:
    data = sample.data()
    data["team_templates"]["build"]["roles"]["checker"] = sample.ref("member")
    assert moved(data) == {}


def test_profiles_move_by_what_they_say_and_not_by_their_name() -> None:
    data = sample.data()
    data["execution_profiles"]["usual"] = data["execution_profiles"].pop("normal")
    for seat in data["seats"].values():
        seat["execution_profile"] = "usual"
    assert moved(data) == {}
    data["execution_profiles"]["slow"] = {"backend": "process", "idle_timeout": "20m"}
    data["seats"]["lead"]["execution_profile"] = "slow"
    assert moved(data) == {"lead": ("configuration",)}


def test_access_that_applies_live_moves_no_configuration() -> None:
    data = sample.data()
    data["access_profiles"]["code"]["egress"] = {"hosts": ["example.com"]}
    assert moved(data) == {}
    data["access_profiles"]["code"]["github"]["repos"].append("lumen/site")
    assert moved(data) == {"builder": ("policy",), "lead": ("policy",)}
    data["access_profiles"]["code"]["tools"] = {"binaries": ["git"]}
    assert moved(data) == dict.fromkeys(("builder", "lead"), ("configuration", "policy"))


def test_a_mounted_workspace_belongs_to_the_configuration_and_its_grant_to_the_policy() -> None:
    data = sample.data()
    data["shared_workspaces"] = {"site": {"access_mode": "ReadWriteMany"}}
    data["grants"]["site"] = {
        "subject": "seat:lead",
        "resource": "workspace:site",
        "operations": ["read"],
    }
    assert moved(data) == {"lead": ("policy",)}
    data["seats"]["lead"]["workspace"] = {"shared": ["site"]}
    assert moved(data) == {"lead": ("configuration", "policy")}


def test_the_plan_names_new_and_retiring_seats() -> None:
    data = sample.data()
    data["seats"]["second"] = {**data["seats"]["builder"], "personal_memory": None}
    del data["seats"]["rep_ada"], data["grants"]["ada_reads"]
    del data["message_routes"]["ada_lead"], data["channel_bindings"]
    before = {
        key: SeatRevisions(seat.config_revision, seat.policy_digest)
        for key, seat in lumen().seats.items()
    }
    assert differences(before, compile(data)) == (
        Change("builder", "unchanged", ()),
        Change("lead", "changed", ("policy",)),
        Change("rep_ada", "retiring", ()),
        Change("second", "new", ("configuration", "policy")),
    )


def test_two_hundred_seats_compile_fast() -> None:
    data = sample.data()
    for number in range(200):
        key = f"seat{number}"
        data["memory_stores"][key] = {}
        data["seats"][key] = {**data["seats"]["builder"], "personal_memory": key}
    data["message_routes"]["all"] = {"from": "team:build", "to": "team:build"}
    started = time.process_time()
    assert len(compile(data).seats["seat7"].recipients) == 201
    # It takes 0.4 s; what this is to catch is work that grows with the cube of the seats.
    assert time.process_time() - started < 3


def test_the_text_and_the_data_are_the_same_file() -> None:
    document = read_text(sample.TEXT)
    assert compile(document.data, line_of=document.line_of) == lumen()
