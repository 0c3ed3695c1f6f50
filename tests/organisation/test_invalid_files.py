"""What an organisation file must not say: each case with its path and its words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadmesh.seats.organisation import InvalidOrganisation, Problem, compile
from tests.support.organisations import REF, fixture_f

OTHER_REF = REF.replace("instruction.md", "other.md")


def changed(**changes: Any) -> dict[str, Any]:
    """Organisation F with values set at paths: `a__b="x"` sets a.b."""
    document = copy.deepcopy(fixture_f())
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = document
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is ...:
            del place[name]
        else:
            place[name] = value
    return document


def problems(document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(InvalidOrganisation) as invalid:
        compile(document)
    return {problem.path: problem.message for problem in invalid.value.problems}


ANOTHER_TEAM = {
    "team_templates__other": {"roles": {"lead": OTHER_REF}},
    "teams__other": {"template": "other"},
}
CASES: list[tuple[str, dict[str, Any], str, list[str]]] = [
    (
        "template inheritance loop",
        {"team_templates__plain": {"extends": "b"}, "team_templates__b": {"extends": "plain"}},
        "team_templates.plain",
        ["cycle", "plain -> b -> plain"],
    ),
    (
        "unknown template",
        {"teams__delivery__template": "plan"},
        "teams.delivery.template",
        ["unknown team template"],
    ),
    (
        "unknown parent of a template",
        {"team_templates__plain__extends": "nothing"},
        "team_templates.plain",
        ["unknown team template"],
    ),
    (
        "a store with two sets of operations along a chain",
        {"teams__delivery__shared_memory": {"engineering": ["read"]}},
        "teams.delivery.shared_memory.engineering",
        ["ambiguous"],
    ),
    (
        "a role that two teams define differently",
        {
            **ANOTHER_TEAM,
            "team_templates__plain__roles": {"lead": REF},
            "seats__lead__teams": ["delivery", "other"],
            "seats__lead__role_ref": "role:lead",
        },
        "seats.lead.role_ref",
        ["ambiguous"],
    ),
    (
        "a role that is not defined",
        {"seats__lead__role_ref": "role:captain"},
        "seats.lead.role_ref",
        ["not defined"],
    ),
    (
        "one store personal to two seats",
        {"seats__lead__personal_memory": "engineer"},
        "seats.lead.personal_memory",
        ["contradictory ownership"],
    ),
    (
        "a personal store shared with a team",
        {"teams__delivery__shared_memory": {"lead": ["read"]}},
        "teams.delivery.shared_memory.lead",
        ["contradictory ownership"],
    ),
    (
        "a personal store granted to a team",
        {
            "grants__g": {
                "subject": "team:delivery",
                "resource": "memory:lead",
                "operations": ["read"],
            }
        },
        "grants.g.resource",
        ["contradictory ownership"],
    ),
    (
        "one person bound twice",
        {"channel_bindings__bob__external_user_id": "alice"},
        "channel_bindings.bob.external_user_id",
        ["already bound"],
    ),
    (
        "a seat bound to two people",
        {"channel_bindings__bob__seat": "rep_a"},
        "channel_bindings.bob.seat",
        ["different human"],
    ),
    (
        "two zones for one representative",
        {
            "connections__chat2": {"adapter": "terminal", "secret_ref": "env:CHAT2"},
            "channel_bindings__alice__timezone": "Europe/Paris",
            "channel_bindings__alice2": {
                "connection": "chat2",
                "external_user_id": "alice",
                "seat": "rep_a",
                "timezone": "Europe/Berlin",
            },
        },
        "channel_bindings.alice2.timezone",
        ["one time zone"],
    ),
    (
        "a binding on a tracker",
        {"channel_bindings__bob__connection": "tracker"},
        "channel_bindings.bob.connection",
        ["not a communication"],
    ),
    (
        "a route to an unknown seat",
        {"message_routes__a_lead__to": "seat:leed"},
        "message_routes.a_lead.to",
        ["unknown", "lead"],
    ),
    (
        "a grant for an unknown team",
        {"grants__lead_writes__subject": "team:none"},
        "grants.lead_writes.subject",
        ["unknown"],
    ),
    (
        "a grant on an unknown store",
        {"grants__lead_writes__resource": "memory:none"},
        "grants.lead_writes.resource",
        ["unknown"],
    ),
    (
        "a grant on an unknown connection",
        {"grants__lead_tracker__resource": "connection:none"},
        "grants.lead_tracker.resource",
        ["unknown"],
    ),
    (
        "a raw secret",
        {"connections__tracker__secret_ref": "lin_api_0123456789"},
        "connections.tracker.secret_ref",
        ["raw credentials"],
    ),
    (
        "an instruction without a digest",
        {"culture_refs": ["file:culture.md"]},
        "culture_refs[0]",
        ["sha256"],
    ),
    (
        "a capability that the adapter lacks",
        {"harness_profiles__scripted__required_capabilities": ["telepathy"]},
        "harness_profiles.scripted.required_capabilities",
        ["does not support"],
    ),
    (
        "the idle policy suspend",
        {"execution_profiles__normal__idle_policy": "suspend"},
        "execution_profiles.normal.idle_policy",
        ["does not support"],
    ),
    (
        "gvisor without a runtime class",
        {"sandbox_profiles__standard__required_enforcement": ["gvisor"]},
        "sandbox_profiles.standard.required_enforcement",
        ["requires runtime_class"],
    ),
    (
        "a shared workspace without a grant",
        {
            "shared_workspaces__site": {"access_mode": "ReadWriteMany"},
            "seats__lead__workspace": {"shared": ["site"]},
        },
        "seats.lead.workspace.shared",
        ["without a grant"],
    ),
    (
        "publication of a personal store",
        {"work_publication": {"connection": "tracker", "stores": ["engineering", "lead"]}},
        "work_publication.stores[1]",
        ["personal"],
    ),
    (
        "an operation that the resource does not offer",
        {"grants__lead_tracker__operations": ["project.create", "project.destroy"]},
        "grants.lead_tracker.operations",
        ["unsupported operation", "project.create, task.read"],
    ),
    (
        "targets where there are none",
        {"grants__lead_writes__targets": ["x"]},
        "grants.lead_writes.targets",
        ["takes no targets"],
    ),
    ("an unknown zone", {"timezone": "Europe/Pariss"}, "timezone", ["time zone", "Europe/Paris"]),
    (
        "an unknown zone of a binding",
        {"channel_bindings__alice__timezone": "localtime"},
        "channel_bindings.alice.timezone",
        ["time zone"],
    ),
]


@pytest.mark.parametrize(
    ("changes", "path", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_s103_each_invalid_case_is_told_at_its_path_with_its_words(
    changes: dict[str, Any], path: str, words: list[str]
) -> None:
    """S-103."""
    found = problems(changed(**changes))
    assert path in found, found
    for word in words:
        assert word in found[path]


def test_s103_every_mistake_of_a_file_is_told_at_once_and_sorted() -> None:
    """S-103, several at a time."""
    document = changed(
        timezone="Mars/Base",
        seats__lead__role_ref="role:captain",
        connections__tracker__secret_ref="lin_api_0123456789",
        grants__lead_writes__targets=["x"],
        message_routes__a_lead__to="seat:nobody",
        nonsense=1,
        display_name="",
    )
    found = problems(document)
    assert list(found) == sorted(found)
    assert len(found) == 7
    assert "lin_api" not in str(found)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(sorted(fixture_f())) | st.text(max_size=5), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(fixture_f())), JSON))
def test_no_document_raises_anything_but_its_problems(changes: dict[str, Any]) -> None:
    found: tuple[Problem, ...] | None = None
    try:
        compile(fixture_f() | changes)
    except InvalidOrganisation as invalid:
        found = invalid.problems
    assert found is None or found
