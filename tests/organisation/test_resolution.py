"""What a valid file comes to: instructions, rights, routes, and the two revisions."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadmesh.seats.organisation import Capability, Organisation, allowed, compile
from tests.organisation.test_invalid_files import OTHER_REF, changed
from tests.support.organisations import REF, fixture_f


def revisions(organisation: Organisation) -> dict[str, tuple[str, str]]:
    return {k: (s.config_revision, s.policy_digest) for k, s in organisation.seats.items()}


def moved(**changes: Any) -> tuple[set[str], set[str]]:
    """The seats whose configuration and policy move with a change."""
    before, after = revisions(compile(fixture_f())), revisions(compile(changed(**changes)))
    both = before.keys() & after.keys()
    return (
        {key for key in both if before[key][0] != after[key][0]},
        {key for key in both if before[key][1] != after[key][1]},
    )


def test_s15_a_role_instruction_moves_only_the_seats_that_use_it() -> None:
    """S-15."""
    assert moved(seats__lead__role_ref=OTHER_REF) == ({"lead"}, set())


@pytest.mark.parametrize(
    ("changes", "configuration", "policy"),
    [
        ({"seats__lead__display_name": "The lead"}, {"lead"}, set()),
        ({"channel_bindings__alice__timezone": "Asia/Tokyo"}, {"rep_a"}, set()),
        ({"message_routes__engineer_reviewer": ...}, set(), {"engineer", "reviewer"}),
        ({"grants__a_reads__operations": ["read"]}, set(), {"rep_a"}),
        ({"seats__reviewer__teams": []}, set(), {"reviewer"}),
        ({"seats__lead__personal_memory": ""}, set(), {"lead"}),
        ({"display_name": "Another name"}, set(), set()),
        (
            {"teams__delivery__instruction_refs": [OTHER_REF]},
            {"lead", "engineer", "reviewer"},
            set(),
        ),
        (
            {"access_profiles__net": {"egress": {"hosts": ["example.com"]}}},
            set(),
            set(),
        ),
    ],
)
def test_a_change_moves_only_what_it_is_about(
    changes: dict[str, Any], configuration: set[str], policy: set[str]
) -> None:
    if "seats__lead__personal_memory" in changes:
        changes = {"seats__lead__personal_memory": ...}
    assert moved(**changes) == (configuration, policy)


def test_s104_compiling_twice_and_compiling_the_resolved_file_give_the_same() -> None:
    """S-104, without the database."""
    document = changed(
        team_templates__plain__roles={"lead": REF},
        seats__lead__role_ref="role:lead",
        team_templates__sub={"extends": "plain", "instruction_refs": [OTHER_REF]},
        teams__delivery__template="sub",
    )
    first = compile(document)
    assert compile(document).digest == first.digest
    again = compile(first.resolved)
    assert again.digest == first.digest
    assert again.resolved == first.resolved
    assert revisions(again) == revisions(first)


@settings(deadline=None, max_examples=40)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_file_changes_nothing(order: random.Random) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            order.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    assert compile(shuffled(fixture_f())) == compile(fixture_f())


def test_instructions_come_from_wide_to_narrow_and_once() -> None:
    document = changed(
        culture_refs=[OTHER_REF],
        team_templates__plain__instruction_refs=[REF],
        seats__lead__instruction_refs=[OTHER_REF],
    )
    lead = compile(document).seats["lead"]
    assert [(entry.ref, entry.scope) for entry in lead.instructions] == [
        (OTHER_REF, "organisation"),
        (REF, "team:delivery"),
    ]


def test_routes_merge_and_teams_expand_to_members() -> None:
    document = changed(
        message_routes__team={"from": "team:delivery", "to": "team:delivery"},
        message_routes__again={"from": "seat:engineer", "to": "seat:reviewer", "reply": True},
    )
    engineer = compile(document).seats["engineer"]
    assert {(r.seat, r.can_reply, r.routes) for r in engineer.recipients} == {
        ("lead", True, ("lead_engineer", "team")),
        ("reviewer", True, ("again", "engineer_reviewer", "team")),
    }


def test_the_zone_of_a_representative_is_that_of_her_person() -> None:
    """S-84, the zones."""
    document = changed(
        timezone="Europe/London", channel_bindings__alice__timezone="America/New_York"
    )
    zones = {key: seat.timezone for key, seat in compile(document).seats.items()}
    assert zones["rep_a"] == "America/New_York"
    assert set(zones.values()) == {"America/New_York", "Europe/London"}


def test_targets_add_up_and_stay_with_their_operation() -> None:
    document = changed(
        grants__one={
            "subject": "seat:lead",
            "resource": "connection:tracker",
            "operations": ["project.read"],
            "targets": ["P1"],
        },
        grants__lead_tracker__operations=["project.create", "project.read"],
    )
    tracker = next(
        c for c in compile(document).seats["lead"].manifest if c.resource == "connection:tracker"
    )
    assert tracker.targets == {"project.read": ("P1",)}
    assert tracker.sources == ("grant:lead_tracker", "grant:one")


MANIFEST = (
    Capability("memory:a", ("read",), {}, ()),
    Capability("connection:c", ("get", "put"), {"put": ("x", "y/*")}, ()),
)


@pytest.mark.parametrize(
    ("resource", "operation", "named", "is_allowed"),
    [
        ("memory:a", "read", (), True),
        ("memory:a", "write", (), False),
        ("memory:b", "read", (), False),
        ("connection:c", "get", ("anything",), True),
        ("connection:c", "put", (), False),
        ("connection:c", "put", ("x",), True),
        ("connection:c", "put", ("xx",), False),
        ("connection:c", "put", ("y/1", "x"), True),
        ("connection:c", "put", ("x", "z"), False),
    ],
)
def test_everything_named_must_match_and_naming_nothing_never_does(
    resource: str, operation: str, named: tuple[str, ...], is_allowed: bool
) -> None:
    assert allowed(MANIFEST, resource, operation, named) is is_allowed
