"""What seats may do: several sources made one, and calls judged by it."""

from __future__ import annotations

from typing import Any

import pytest

from steadmesh.seats.organisation import Capability, allowed, named_targets
from tests.organisation.changes import compiled


def capability(seat: str, resource: str, changes: dict[str, Any]) -> Capability:
    manifest = compiled(changes).seats[seat].manifest
    return next(entry for entry in manifest if entry.resource == resource)


def test_a_grant_to_a_team_is_one_to_each_member() -> None:
    grant = {"subject": "team:build", "resource": "memory:company", "operations": ["read"]}
    for seat in ("lead", "builder"):
        found = capability(seat, "memory:company", {"grants.all": grant})
        assert (found.operations, found.sources) == (("read",), ("grant:all",))


def test_an_operation_granted_with_and_without_targets_stays_restricted() -> None:
    grant = {
        "subject": "seat:lead",
        "resource": "connection:tracker",
        "operations": ["task.write", "task.read"],
        "targets": ["T2", "T1"],
    }
    found = capability("lead", "connection:tracker", {"grants.more": grant})
    assert found.operations == ("project.create", "task.read", "task.write")
    assert found.targets == {"task.read": ("T1", "T2"), "task.write": ("T1", "T2")}
    assert found.sources == ("grant:lead_tracker", "grant:more")


def github(repo: str, level: str, **more: str) -> dict[str, Any]:
    permissions = {"pull_requests": level}
    return {"github": {"connection": "forge", "repos": [repo], "permissions": permissions} | more}


def test_each_access_profile_gives_its_rights_on_its_own_repositories() -> None:
    changes = {
        "access_profiles.other": github("lumen/site", "read", delivery="sandbox"),
        "seats.lead.access_profiles": ["other"],
    }
    found = capability("lead", "connection:forge", changes)
    assert found.targets == {
        "pull_request.create": ("lumen/app",),
        "pull_request.read": ("lumen/app", "lumen/site"),
    }
    access = compiled(changes).seats["lead"].access
    assert access.profiles == ("code", "other")
    assert access.github["forge"].repos == ("lumen/app", "lumen/site")
    assert access.github["forge"].permissions == {"pull_requests": "write"}
    assert access.github["forge"].delivery == "sandbox"


@pytest.mark.parametrize(
    ("permissions", "operations"),
    [
        ({"contents": "read"}, ("repo.read",)),
        ({"metadata": "read"}, ("repo.read",)),
        ({"contents": "write"}, ("repo.read",)),
        ({"pull_requests": "read"}, ("pull_request.read",)),
        ({"pull_requests": "write"}, ("pull_request.create", "pull_request.read")),
        ({"issues": "read"}, ("issue.read",)),
        ({"issues": "write"}, ("issue.comment", "issue.read")),
    ],
)
def test_permissions_amount_to_operations(
    permissions: dict[str, str], operations: tuple[str, ...]
) -> None:
    changes = {"access_profiles.code.github.permissions": permissions}
    assert capability("lead", "connection:forge", changes).operations == operations


def test_a_profile_without_permissions_gives_no_rights() -> None:
    manifest = compiled({"access_profiles.code.github.permissions": {}}).seats["builder"].manifest
    assert "connection:forge" not in [entry.resource for entry in manifest]


@pytest.mark.parametrize(
    ("operation", "params", "config", "named"),
    [
        ("project.read", {"id": "P1"}, {}, ("P1",)),
        ("project.read", {"query": "x"}, {}, ()),
        ("project.create", {"name": "x"}, {"team_id": "T1"}, ("T1",)),
        (
            "project.create",
            {"name": "x", "team_ids": ["T2", "T3"]},
            {"team_id": "T1"},
            ("T2", "T3"),
        ),
        ("project.create", {"name": "x"}, {}, ()),
        ("task.write", {"title": "x"}, {"team_id": "T1"}, ("T1",)),
        ("task.write", {"id": "I1"}, {"team_id": "T1"}, ("I1",)),
        ("task.write", {"id": "I1", "team_id": "T2"}, {"team_id": "T1"}, ("I1", "T2")),
        ("task.write", {"title": "x", "project_id": "P1"}, {"team_id": "T1"}, ("P1", "T1")),
        ("task.read", {"id": None, "project_id": "P1"}, {}, ("P1",)),
        ("comment.write", {"issue_id": "I1", "body": "x"}, {}, ("I1",)),
        ("task.read", {"id": ["T1", 5]}, {}, ("T1", "5")),
    ],
)
def test_a_call_names_what_it_acts_on(
    operation: str, params: dict[str, Any], config: dict[str, Any], named: tuple[str, ...]
) -> None:
    assert named_targets("linear", operation, params, config=config) == named


def test_s14_naming_nothing_or_anything_foreign_is_refused() -> None:
    """S-14, the decision."""
    manifest = (Capability("connection:t", ("w",), {"w": ("T1", "P-*")}, ()),)
    assert allowed(manifest, "connection:t", "w", ("T1", "P-9"))
    assert not allowed(manifest, "connection:t", "w")
    assert not allowed(manifest, "connection:t", "w", ("T2",))
    assert not allowed(manifest, "connection:t", "w", ("T1", "T2"))
    assert not allowed(manifest, "connection:t", "w", ("t1",))
    everything = (Capability("connection:t", ("w",), {"w": ("*",)}, ()),)
    assert allowed(everything, "connection:t", "w", ("whatever",))
    assert not allowed(everything, "connection:t", "w")
