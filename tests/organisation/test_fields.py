"""What each field may hold."""

from __future__ import annotations

from typing import Any

import pytest

from steadmesh.seats.organisation import InvalidOrganisation, compile
from tests.organisation import sample
from tests.organisation.changes import GONE, compiled, said

HEX = "a" * 64
NORMAL = "execution_profiles.normal"
NET = "access_profiles.net"
LEAD = "seats.lead"

WRONG: list[tuple[str, Any, str, str]] = [
    # (field, value, path of the problem, words)
    ("key", GONE, "key", "is required, for example key: lumen"),
    ("key", "Lumen", "key", "lower-case"),
    ("key", "1lumen", "key", "start with a letter"),
    ("key", "x" * 41, "key", "at most 40"),
    ("key", 7, "key", 'Put it in quotes: "7"'),
    ("display_name", "  ", "display_name", "must not be blank"),
    ("display_name", ["x"], "display_name", "must be text, not a list"),
    ("display_name", "a\0b", "display_name", "NUL"),
    ("display_name", "a\ud800", "display_name", "surrogate"),
    ("data_retention", "keep", "data_retention", "retain, delete"),
    ("timezone", "", "timezone", "time zone"),
    ("timezone", 5, "timezone", "must be text"),
    ("seat", {}, "seat", 'unknown field "seat". Did you mean "seats"?'),
    ("zzz", 1, "zzz", "Known are access_profiles"),
    ("seats", [], "seats", "must be a map"),
    ("memory_stores.Company", {}, "memory_stores.Company", "lower-case letters"),
    ("memory_stores.a-b", {}, "memory_stores.a-b", "lower-case letters"),
    ("memory_stores." + "x" * 64, {}, "memory_stores." + "x" * 64, "at most 63"),
    ("memory_stores.company", 1, "memory_stores.company", "must be a map of fields"),
    ("memory_stores.company.retention", "x", "memory_stores.company.retention", "retain"),
    ("memory_stores.company.backing_class", "s3", "memory_stores.company.backing_class", "default"),
    ("memory_stores.company.capacity_mb", 0, "memory_stores.company.capacity_mb", "at least 1"),
    ("shared_workspaces.w", {}, "shared_workspaces.w.access_mode", "is required"),
    ("shared_workspaces.w", {"access_mode": "rw"}, "shared_workspaces.w.access_mode", "ReadWrite"),
    (f"{LEAD}.rolle_ref", "x", f"{LEAD}.rolle_ref", 'Did you mean "role_ref"?'),
    (f"{LEAD}.role_ref", GONE, f"{LEAD}.role_ref", "is required"),
    (f"{LEAD}.role_ref", "lead", f"{LEAD}.role_ref", "sha256"),
    (f"{LEAD}.teams", "build", f"{LEAD}.teams", "must be a list: [build]"),
    (f"{LEAD}.teams", ["build", "build"], f"{LEAD}.teams[1]", "twice"),
    (f"{LEAD}.teams", ["bild"], f"{LEAD}.teams[0]", 'Did you mean "build"?'),
    (f"{LEAD}.harness_profile", "none", f"{LEAD}.harness_profile", "unknown harness profile"),
    (f"{LEAD}.execution_profile", GONE, f"{LEAD}.execution_profile", "is required"),
    (f"{LEAD}.sandbox_profile", "x", f"{LEAD}.sandbox_profile", "Declared are standard"),
    (f"{LEAD}.personal_memory", "x", f"{LEAD}.personal_memory", "unknown memory store"),
    (f"{LEAD}.access_profiles", ["x"], f"{LEAD}.access_profiles[0]", "unknown access profile"),
    (f"{LEAD}.workspace", {"shared": ["x"]}, f"{LEAD}.workspace.shared[0]", "unknown shared"),
    (f"{LEAD}.workspace", {"persist": True}, f"{LEAD}.workspace.persist", '"persistent"'),
    (f"{LEAD}.workspace", {"persistent": "yes"}, f"{LEAD}.workspace.persistent", "true or false"),
    (f"{LEAD}.adopt_from", "lead", f"{LEAD}.adopt_from", "UUID"),
    ("teams.build.templat", "x", "teams.build.templat", '"template"'),
    ("teams.build.roles", {}, "teams.build.roles", "unknown field"),
    ("teams.build.template_lineage", ["a"], "teams.build.template_lineage", "Leave it out"),
    ("teams.build.shared_memory", {"x": ["read"]}, "teams.build.shared_memory.x", "unknown"),
    ("teams.build.shared_memory", {"company": []}, "teams.build.shared_memory.company", "one"),
    ("teams.build.shared_memory", {"company": ["own"]}, "teams.build.shared_memory.company", "own"),
    ("teams.build.access_profiles", ["x"], "teams.build.access_profiles[0]", "unknown"),
    ("team_templates.base.access_profiles", [], "team_templates.base.access_profiles", "unknown"),
    ("team_templates.base.extends", "x", "team_templates.base", "unknown team template"),
    ("harness_profiles.scripted.adapter", "fak", "harness_profiles.scripted.adapter", '"fake"'),
    ("harness_profiles.scripted.image_digest", GONE, "harness_profiles.scripted.image_digest", ""),
    (f"{NORMAL}.backend", GONE, f"{NORMAL}.backend", "is required, one of process"),
    (f"{NORMAL}.backend", "docker", f"{NORMAL}.backend", "process"),
    (f"{NORMAL}.service_class", "batch", f"{NORMAL}.service_class", "background"),
    (f"{NORMAL}.idle_policy", "cold", f"{NORMAL}.idle_policy", "warm_then_stop"),
    (f"{NORMAL}.idle_timeout", "59s", f"{NORMAL}.idle_timeout", "at least 1m"),
    (f"{NORMAL}.idle_timeout", "1d", f"{NORMAL}.idle_timeout", "cannot be read"),
    (f"{NORMAL}.idle_timeout", 15, f"{NORMAL}.idle_timeout", "must be text"),
    (f"{NORMAL}.cpu_limit", "2x", f"{NORMAL}.cpu_limit", "250m"),
    (f"{NORMAL}.cpu_limit", 0, f"{NORMAL}.cpu_limit", "250m"),
    (f"{NORMAL}.cpu_request", 3, f"{NORMAL}.cpu_request", "more than the limit of 2"),
    (f"{NORMAL}.memory_request", "4Gi", f"{NORMAL}.memory_request", "more than the limit"),
    (f"{NORMAL}.memory_limit", "2GiB", f"{NORMAL}.memory_limit", "512Mi"),
    (f"{NORMAL}.workspace_size_gb", True, f"{NORMAL}.workspace_size_gb", "whole number"),
    (f"{NORMAL}.required_features", ["gpu"], f"{NORMAL}.required_features", "does not support"),
    (
        "sandbox_profiles.standard.network_policy_ref",
        "x",
        "sandbox_profiles.standard.network_policy_ref",
        "deny",
    ),
    (
        "sandbox_profiles.standard.required_enforcement",
        ["x"],
        "sandbox_profiles.standard.required_enforcement",
        "does not support",
    ),
    (f"{NET}.tools", {"binaries": ["/bin/sh"]}, f"{NET}.tools.binaries[0]", "without a path"),
    (f"{NET}.egress", {"hosts": ["https://a.b"]}, f"{NET}.egress.hosts[0]", "without https://"),
    (f"{NET}.egress", {"hosts": ["a.b", "*.com"]}, f"{NET}.egress.hosts[1]", "subdomains"),
    (f"{NET}.egress", {"hosts": ["*"]}, f"{NET}.egress.hosts[0]", "not a host"),
    (f"{NET}.egress", {"hosts": ["a.*.b"]}, f"{NET}.egress.hosts[0]", "not a host"),
    (f"{NET}.egress", {"hosts": ["a.b:0"]}, f"{NET}.egress.hosts[0]", "not a host"),
    (f"{NET}.egress", {"hosts": ["a.b:65536"]}, f"{NET}.egress.hosts[0]", "not a host"),
    (f"{NET}.network", {"rules": [{"cidr": "10.0.0.0/33"}]}, f"{NET}.network.rules[0].cidr", "10."),
    (f"{NET}.network", {"rules": [{}]}, f"{NET}.network.rules[0].cidr", "is required"),
    (
        f"{NET}.network",
        {"rules": [{"cidr": "::/0", "ports": [0]}]},
        f"{NET}.network.rules[0].ports[0]",
        "65535",
    ),
    (
        f"{NET}.network",
        {"rules": [{"cidr": "::/0", "protocol": "icmp"}]},
        f"{NET}.network.rules[0].protocol",
        "sctp",
    ),
    (f"{NET}.github", {"connection": "forge", "repos": []}, f"{NET}.github.repos", "at least one"),
    (
        f"{NET}.github",
        {"connection": "forge", "repos": ["app"]},
        f"{NET}.github.repos[0]",
        "owner/name",
    ),
    (
        f"{NET}.github",
        {"connection": "tracker", "repos": ["a/b"]},
        f"{NET}.github.connection",
        "github",
    ),
    (
        f"{NET}.github",
        {"connection": "forge", "repos": ["a/b"], "permissions": {"issue": "read"}},
        f"{NET}.github.permissions.issue",
        '"issues"',
    ),
    (
        f"{NET}.github",
        {"connection": "forge", "repos": ["a/b"], "permissions": {"issues": "admin"}},
        f"{NET}.github.permissions.issues",
        "read or write",
    ),
    (
        f"{NET}.github",
        {"connection": "forge", "repos": ["a/b"], "delivery": "x"},
        f"{NET}.github.delivery",
        "sandbox",
    ),
    (
        f"{NET}.browser",
        {"session": {"connection": "forge"}},
        f"{NET}.browser.session.connection",
        "browser_session",
    ),
    ("connections.chat.adapter", "slak", "connections.chat.adapter", 'Did you mean "slack"?'),
    ("connections.chat.ownership", "managed", "connections.chat.ownership", "Write external"),
    ("connections.chat.required", "yes", "connections.chat.required", "true or false"),
    ("connections.chat.model", {}, "connections.chat.model", "only a model connection"),
    (
        "connections.chat.endpoint_ref",
        "https://u:p@host/",
        "connections.chat.endpoint_ref",
        "raw credentials",
    ),
    ("connections.chat.secret_ref", GONE, "connections.chat.secret_ref", "is required"),
    ("grants.g", {}, "grants.g.subject", "is required"),
    ("grants.ada_reads.subject", "lead", "grants.ada_reads.subject", "seat:<key> or team:<key>"),
    ("grants.ada_reads.subject", "memory:x", "grants.ada_reads.subject", "must be"),
    ("grants.ada_reads.resource", "seat:lead", "grants.ada_reads.resource", "workspace:<key>"),
    ("grants.ada_reads.resource", "workspace:x", "grants.ada_reads.resource", "unknown shared"),
    ("grants.ada_reads.operations", [], "grants.ada_reads.operations", "at least one"),
    ("grants.lead_tracker.targets", [], "grants.lead_tracker.targets", "at least one"),
    ("message_routes.ada_lead.from", GONE, "message_routes.ada_lead.from", "is required"),
    ("message_routes.ada_lead.from", "team:x", "message_routes.ada_lead.from", "unknown team"),
    ("message_routes.ada_lead.to", "seat:rep_ada", "message_routes.ada_lead.to", "itself"),
    ("message_routes.ada_lead.reply", "no", "message_routes.ada_lead.reply", "true or false"),
    ("channel_bindings.ada.mode", "group", "channel_bindings.ada.mode", "direct_message"),
    (
        "channel_bindings.ada.external_user_id",
        " ",
        "channel_bindings.ada.external_user_id",
        "blank",
    ),
    ("channel_bindings.ada.external_user_id", 42, "channel_bindings.ada.external_user_id", '"42"'),
    ("channel_bindings.ada.seat", "ada", "channel_bindings.ada.seat", "unknown seat"),
    ("channel_bindings.ada.connection", "x", "channel_bindings.ada.connection", "unknown"),
    ("channel_bindings.ada.timezone", "", "channel_bindings.ada.timezone", "time zone"),
    ("work_publication.connection", "forge", "work_publication.connection", "not a tracker"),
    ("work_publication.stores", [], "work_publication.stores", "at least one"),
    ("work_publication.stores", ["build", "x"], "work_publication.stores[1]", "unknown"),
]


@pytest.mark.parametrize(
    ("field", "value", "path", "words"), WRONG, ids=[f"{row[0]}-{n}" for n, row in enumerate(WRONG)]
)
def test_a_wrong_value_is_told_at_its_path(field: str, value: Any, path: str, words: str) -> None:
    found = said({field: value})
    assert words in found.get(path, f"nothing at {path}, but {found}")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "a-b_9"),
        ("key", "x" * 40),
        ("memory_stores", {"company": None, "build": {}, "ada": {}, "lead": {}, "builder": {}}),
        ("memory_stores.company", {"retention": "delete", "capacity_mb": 5}),
        (f"{LEAD}.workspace", {"persistent": False}),
        (f"{LEAD}.adopt_from", "0191d2d0-7c3f-7000-8000-000000000000"),
        (f"{LEAD}.personal_memory", None),
        (f"{NORMAL}.cpu_limit", 2),
        (f"{NORMAL}.cpu_limit", 0.5),
        (f"{NORMAL}.memory_limit", "1000000000"),
        (f"{NORMAL}.idle_timeout", "1m"),
        (f"{NORMAL}.idle_policy", "warm"),
        (f"{NORMAL}.required_features", ["warm_idle", "resource_limits"]),
        ("sandbox_profiles.standard", {"required_enforcement": ["microvm"], "runtime_class": "k"}),
        ("sandbox_profiles.standard", {"required_enforcement": ["filesystem_policy"]}),
        ("harness_profiles.scripted.required_capabilities", ["cli", "native_resume"]),
        ("harness_profiles.scripted.config", {"anything": {"Nested-Key": [1, None]}}),
        (f"{NET}.egress", {"hosts": ["example.com", "*.example.com:8443", "localhost"]}),
        (f"{NET}.network", {"rules": [{"cidr": "10.1.2.3/8", "ports": [1, 65535]}]}),
        (f"{NET}.tools", {"binaries": ["git", "python3.11"]}),
        ("connections.vault", {"adapter": "slack", "secret_ref": "vault:kv/team/slack"}),
        ("connections.kube", {"adapter": "slack", "secret_ref": "k8s:slack-token"}),
        ("connections.web", {"adapter": "browser_session", "secret_ref": "file:/etc/state.json"}),
        ("culture_refs", [f"configmap:texts/culture.md#sha256:{HEX}"]),
        ("culture_refs", [f"https://example.com/a/b.md?x=1#sha256:{HEX}"]),
        ("culture_refs", [f"file:a folder/c.md#sha256:{HEX.upper()}"]),
        ("work_publication", None),
        ("grants.lead_tracker.targets", ["T1", "P*"]),
    ],
    ids=repr,
)
def test_a_right_value_is_taken_and_survives_resolving(field: str, value: Any) -> None:
    organisation = compiled({field: value})
    again = compile(organisation.resolved)
    assert (again.digest, again.seats) == (organisation.digest, organisation.seats)


@pytest.mark.parametrize(
    "ref",
    [
        "file:a.md",
        "file:a.md#sha256:abc",
        f"file:a.md#sha256:{HEX}0",
        f"file:/a.md#sha256:{HEX}",
        f"file:../a.md#sha256:{HEX}",
        f"file:a/../../b.md#sha256:{HEX}",
        f"file:a\\b.md#sha256:{HEX}",
        f"file:#sha256:{HEX}",
        f"a.md#sha256:{HEX}",
        f"http://example.com/a.md#sha256:{HEX}",
        f"https://u@example.com/a.md#sha256:{HEX}",
        f"configmap:a#sha256:{HEX}",
    ],
)
def test_an_instruction_reference_has_one_of_three_forms(ref: str) -> None:
    assert "the instruction reference" in said({"culture_refs": [ref]})["culture_refs[0]"]


@pytest.mark.parametrize(
    "secret",
    [
        *("xoxb-12345-secret", "env:", "env:A B", "file:", "vault:", "k8s:"),
        *({"token": "hunter2"}, "https://user:hunter2@host/", "env:A\nhunter2"),
    ],
    ids=repr,
)
def test_s110_a_raw_secret_is_refused_and_never_repeated(secret: Any) -> None:
    """S-110: no secret value appears in an error text."""
    found = said({"connections.tracker.secret_ref": secret})
    assert "raw credentials are never accepted" in found["connections.tracker.secret_ref"]
    assert "hunter2" not in str(found)
    assert "xoxb" not in str(found)


def test_one_mistake_gives_one_message() -> None:
    assert list(said({"connections.tracker.adapter": "linnear"})) == ["connections.tracker.adapter"]
    assert list(said({"seats": "none"})) == ["seats"]
    assert list(said({"team_templates": []})) == ["team_templates"]
    assert list(said({"grants.ada_reads.subject": 5})) == ["grants.ada_reads.subject"]
    assert list(said({"team_templates.base.extends": "x"})) == ["team_templates.base"]


def test_control_characters_of_the_file_do_not_reach_the_terminal() -> None:
    (message,) = said({"seats.lead.harness_profile": "a\x1b[31mb\u202ec\x9b"}).values()
    assert message.isprintable()


def test_a_long_value_is_cut_in_the_message() -> None:
    (message,) = said({"seats.lead.harness_profile": "x" * 10_000}).values()
    assert len(message) < 300


def test_a_file_over_the_limit_is_told_its_size() -> None:
    found = said({"teams.build.parameters": {"text": "x" * 262_144}})
    assert "at most 262144 are allowed" in found["(file)"]


def test_a_file_that_grows_over_the_limit_with_its_templates_is_told_so() -> None:
    changes: dict[str, Any] = {
        f"teams.team{number}": {"template": "build"} for number in range(100)
    }
    changes["team_templates.base.parameters"] = {"text": "x" * 4_000}
    assert "with its templates written out" in said(changes)["(file)"]


def test_routes_of_whole_armies_are_refused_before_they_are_written_out() -> None:
    changes: dict[str, Any] = {
        f"seats.s{n}": {**sample.data()["seats"]["builder"], "personal_memory": None}
        for n in range(400)
    }
    changes |= {
        f"message_routes.r{n}": {"from": "team:build", "to": "team:build"} for n in range(9)
    }
    assert "pairs of seats" in said(changes)["message_routes"]


@pytest.mark.parametrize("data", [[], "x", None, 5])
def test_what_is_no_map_is_no_organisation(data: Any) -> None:
    with pytest.raises(InvalidOrganisation, match="must be a map"):
        compile(data)


@pytest.mark.parametrize(
    "value",
    [float("nan"), 10**30, {1: 2}, {"a", "b"}, b"x"],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_say_is_told(value: Any) -> None:
    assert "harness_profiles.scripted.config.x" in said(
        {"harness_profiles.scripted.config": {"x": value}}
    )


def test_values_that_lie_too_deep_are_told() -> None:
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    (message,) = said({"harness_profiles.scripted.config": {"x": deep}}).values()
    assert "deep" in message
