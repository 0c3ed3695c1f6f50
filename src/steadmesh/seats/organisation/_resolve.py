"""Compile: check everything, then write out what follows."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from steadmesh.kernel import durations
from steadmesh.seats.organisation import _model as model
from steadmesh.seats.organisation import _rules as rules
from steadmesh.seats.organisation import _structure as structure
from steadmesh.seats.organisation._adapters import ADAPTERS
from steadmesh.seats.organisation._declared import (
    AccessProfile,
    Declaration,
    SeatRecord,
    as_data,
)
from steadmesh.seats.organisation._lookup import Lookup
from steadmesh.seats.organisation._manifest import (
    Routes,
    access_names,
    ends_of,
    manifest_of,
    routes,
)
from steadmesh.seats.organisation._models import resolve_models
from steadmesh.seats.organisation._problems import InvalidOrganisation, LineOf, Report, no_lines
from steadmesh.seats.organisation._references import ROLE_PREFIX
from steadmesh.seats.organisation._revisions import config_revision, policy_digest
from steadmesh.seats.organisation._templates import (
    FlatTeam,
    check_templates,
    first_of_each,
    flatten_teams,
)
from steadmesh.seats.organisation._text import canonical, check_values

ALWAYS_ENFORCED = ("network_policy", "non_root", "resource_limits")
_STRONGER = {"read": 0, "write": 1}


def compile(data: Mapping[str, Any], *, line_of: LineOf = no_lines) -> model.Organisation:
    """Validate a document and resolve it. Pure: the same document gives the same result.

    Raises `InvalidOrganisation` with every mistake that was found.
    """
    declaration = _resolved_declaration(data, line_of)
    document = as_data(declaration)
    merged = routes(declaration)
    owners = {s.personal_memory: key for key, s in declaration.seats.items() if s.personal_memory}
    return model.Organisation(
        key=declaration.key,
        display_name=declaration.display_name,
        timezone=declaration.timezone,
        data_retention=declaration.data_retention,
        digest=hashlib.sha256(canonical(document)).hexdigest(),
        resolved=document,
        stores={
            key: model.Store(key, store.retention, owners.get(key))
            for key, store in sorted(declaration.memory_stores.items())
        },
        connections=_connections(declaration),
        bindings={
            key: model.Binding(
                key=key,
                connection=binding.connection,
                external_user_id=binding.external_user_id,
                seat=binding.seat,
                mode=binding.mode,
                timezone=binding.timezone or None,
            )
            for key, binding in sorted(declaration.channel_bindings.items())
        },
        seats={key: _seat(declaration, key, merged) for key in sorted(declaration.seats)},
        work_publication=document.get("work_publication"),
    )


def _resolved_declaration(data: Mapping[str, Any], line_of: LineOf) -> Declaration:
    """The declaration without templates, every role and model settled; or every problem."""
    report = Report(line_of)
    if not check_values(data, report):
        raise InvalidOrganisation(report.problems)
    declaration = structure.read(data, report)
    lookup = Lookup(declaration, data, report)
    check_templates(declaration, lookup)
    flat = flatten_teams(declaration, lookup)
    rules.check(declaration, flat, lookup)
    models = resolve_models(declaration, lookup)
    if report.problems:
        raise InvalidOrganisation(report.problems)
    return dataclasses.replace(
        declaration,
        team_templates={},
        teams={key: team.team for key, team in flat.items()},
        seats={key: _settled(seat, flat) for key, seat in declaration.seats.items()},
        harness_profiles={
            key: dataclasses.replace(profile, model=models.get(key, profile.model))
            for key, profile in declaration.harness_profiles.items()
        },
    )


def _settled(seat: SeatRecord, flat: Mapping[str, FlatTeam]) -> SeatRecord:
    """The seat with its role as an instruction reference."""
    if not seat.role_ref.startswith(ROLE_PREFIX):
        return seat
    name = seat.role_ref.removeprefix(ROLE_PREFIX)
    found = next(flat[team].roles[name] for team in seat.teams if name in flat[team].roles)
    return dataclasses.replace(seat, role_ref=found)


def _seat(declaration: Declaration, key: str, merged: Routes) -> model.Seat:
    seat = declaration.seats[key]
    recipients, senders = ends_of(merged, key)
    shared = {name: declaration.teams[name].shared_memory for name in seat.teams}
    resolved = model.Seat(
        key=key,
        display_name=seat.display_name or key,
        teams=seat.teams,
        team_lineage={name: declaration.teams[name].template_lineage for name in seat.teams},
        role_ref=seat.role_ref,
        instructions=_instructions(declaration, seat),
        harness=_harness(declaration, seat),
        execution=_execution(declaration, seat),
        sandbox=_sandbox(declaration, seat),
        workspace_persistent=seat.workspace.persistent,
        shared_workspaces=seat.workspace.shared,
        personal_memory=seat.personal_memory or None,
        access=_access(declaration, key),
        timezone=_timezone(declaration, key),
        bindings=tuple(
            sorted(name for name, b in declaration.channel_bindings.items() if b.seat == key)
        ),
        manifest=manifest_of(declaration, key, shared),
        recipients=recipients,
        senders=senders,
        adopt_from=seat.adopt_from or None,
        config_revision="",
        policy_digest="",
    )
    return dataclasses.replace(
        resolved, config_revision=config_revision(resolved), policy_digest=policy_digest(resolved)
    )


def _instructions(declaration: Declaration, seat: SeatRecord) -> tuple[model.Instruction, ...]:
    """Culture, teams in the seat's order, role, seat; a reference keeps its first position."""
    scoped: list[tuple[str, str]] = [("organisation", ref) for ref in declaration.culture_refs]
    for name in seat.teams:
        scoped += [(f"team:{name}", ref) for ref in declaration.teams[name].instruction_refs]
    scoped.append(("role", seat.role_ref))
    scoped += [("seat", ref) for ref in seat.instruction_refs]
    scope_of: dict[str, str] = {}
    for scope, ref in scoped:
        scope_of.setdefault(ref, scope)
    ordered = first_of_each(ref for _, ref in scoped)
    return tuple(
        model.Instruction(ref, scope_of[ref], order) for order, ref in enumerate(ordered, 1)
    )


def _harness(declaration: Declaration, seat: SeatRecord) -> model.Harness:
    profile = declaration.harness_profiles[seat.harness_profile]
    return model.Harness(
        profile=seat.harness_profile,
        adapter=profile.adapter,
        image_digest=profile.image_digest,
        model=None if profile.model is None else as_data(profile.model),
        config=profile.config,
    )


def _execution(declaration: Declaration, seat: SeatRecord) -> model.Execution:
    profile = declaration.execution_profiles[seat.execution_profile]
    values = {spec.name: getattr(profile, spec.name) for spec in dataclasses.fields(profile)}
    values["idle_timeout"] = durations.parse(profile.idle_timeout) / durations.SECOND
    return model.Execution(profile=seat.execution_profile, **values)


def _sandbox(declaration: Declaration, seat: SeatRecord) -> model.Sandbox:
    profile = declaration.sandbox_profiles[seat.sandbox_profile]
    required = {*profile.required_enforcement, *ALWAYS_ENFORCED}
    return model.Sandbox(
        profile=seat.sandbox_profile,
        network_policy_ref=profile.network_policy_ref,
        filesystem_policy_ref=profile.filesystem_policy_ref,
        runtime_class=profile.runtime_class,
        required_enforcement=tuple(sorted(required)),
    )


def _timezone(declaration: Declaration, key: str) -> str:
    zones = [b.timezone for b in declaration.channel_bindings.values() if b.seat == key]
    return next((zone for zone in zones if zone), declaration.timezone)


def _access(declaration: Declaration, key: str) -> model.Access:
    """All profiles united: repositories add up, the stronger permission and delivery win."""
    profiles = [declaration.access_profiles[name] for name in access_names(declaration, key)]
    sessions = [p.browser.session.connection for p in profiles if p.browser.session]
    rules_ = [as_data(rule) for profile in profiles for rule in profile.network.rules]
    return model.Access(
        binaries=_union(profile.tools.binaries for profile in profiles),
        hosts=_union(profile.egress.hosts for profile in profiles),
        network=tuple(sorted(rules_, key=canonical)),
        github=_github(profiles),
        browser_sessions=tuple(sorted(set(sessions))),
    )


def _github(profiles: list[AccessProfile]) -> dict[str, dict[str, Any]]:
    united: dict[str, dict[str, Any]] = {}
    for github in (profile.github for profile in profiles if profile.github is not None):
        known = united.setdefault(
            github.connection, {"repos": [], "permissions": {}, "delivery": "platform"}
        )
        known["repos"] = sorted({*known["repos"], *github.repos})
        for permission, level in sorted(github.permissions.items()):
            have = known["permissions"].get(permission, level)
            known["permissions"][permission] = max(have, level, key=lambda each: _STRONGER[each])
        if github.delivery == "sandbox":
            known["delivery"] = "sandbox"
    return united


def _union(lists: Any) -> tuple[str, ...]:
    return tuple(sorted({entry for entries in lists for entry in entries}))


def _connections(declaration: Declaration) -> dict[str, model.Connection]:
    bound = {binding.connection for binding in declaration.channel_bindings.values()}
    profiles = declaration.harness_profiles
    used = {profiles[seat.harness_profile].model for seat in declaration.seats.values()}
    needed = bound | {use.connection for use in used if use is not None}
    return {
        key: model.Connection(
            key=key,
            adapter=connection.adapter,
            kind=ADAPTERS[connection.adapter].kind,
            account_id=connection.account_id,
            endpoint_ref=connection.endpoint_ref,
            secret_ref=connection.secret_ref,
            required=key in needed if connection.required is None else connection.required,
            config=connection.config,
            model=None if connection.model is None else as_data(connection.model),
        )
        for key, connection in sorted(declaration.connections.items())
    }
