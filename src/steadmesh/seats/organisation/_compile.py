"""From a file's data to the resolved organisation."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from steadmesh.kernel import durations
from steadmesh.seats.organisation import _model as model
from steadmesh.seats.organisation import _rules as rules
from steadmesh.seats.organisation import _structure as structure
from steadmesh.seats.organisation._access import access_of, access_profiles_of
from steadmesh.seats.organisation._adapters import ADAPTERS
from steadmesh.seats.organisation._declared import Declaration, Grant, ModelService, as_data
from steadmesh.seats.organisation._harnesses import ALWAYS_ENFORCED
from steadmesh.seats.organisation._lookup import Lookup
from steadmesh.seats.organisation._manifest import manifest_of
from steadmesh.seats.organisation._models import resolve_models
from steadmesh.seats.organisation._problems import (
    WHOLE_FILE,
    InvalidOrganisation,
    LineOf,
    Report,
    no_lines,
)
from steadmesh.seats.organisation._resolve import flatten, is_needed, named_references, unique
from steadmesh.seats.organisation._revisions import config_revision, digest, policy_digest
from steadmesh.seats.organisation._routes import Pairs, members, pairs_of, recipients_of
from steadmesh.seats.organisation._templates import check_templates, flatten_teams
from steadmesh.seats.organisation._text import LARGEST, check_values, encoded, too_large


def compile(data: Mapping[str, Any], *, line_of: LineOf = no_lines) -> model.Organisation:
    """Check a whole organisation file and resolve it.

    Pure: the same data gives the same result, whatever the order of its maps. `line_of` tells
    the line of a path for messages. Raises InvalidOrganisation with everything that is wrong.
    """
    report = Report(line_of)
    if not isinstance(data, Mapping):
        report.add(WHOLE_FILE, "must be a map of fields")
    if report.problems or not check_values(data, report):
        raise InvalidOrganisation(report.problems)
    declaration = structure.read(data, report)
    lookup = Lookup(declaration, data, report)
    check_templates(declaration, lookup)
    flat = flatten_teams(declaration, lookup)
    models = resolve_models(declaration, lookup)
    rules.check(declaration, flat, lookup)
    if report.problems:
        raise InvalidOrganisation(report.problems)
    resolved = flatten(declaration, flat, models)
    document = as_data(resolved)
    if (size := len(encoded(document))) > LARGEST:
        report.add(WHOLE_FILE, too_large(size, "the file with its templates written out"))
        raise InvalidOrganisation(report.problems)
    return _organisation(resolved, document, named_references(declaration))


def _organisation(
    resolved: Declaration, document: dict[str, Any], references: Mapping[str, str]
) -> model.Organisation:
    return model.Organisation(
        key=resolved.key,
        display_name=resolved.display_name,
        timezone=resolved.timezone,
        data_retention=resolved.data_retention,
        digest=digest(document),
        resolved=document,
        teams=_teams(resolved),
        stores=_stores(resolved),
        connections={key: _connection(resolved, key) for key in resolved.connections},
        bindings={
            key: model.Binding(
                key=key,
                connection=binding.connection,
                external_user_id=binding.external_user_id,
                seat=binding.seat,
                timezone=binding.timezone or None,
                mode=binding.mode,
            )
            for key, binding in resolved.channel_bindings.items()
        },
        shared_workspaces=resolved.shared_workspaces,
        harness_profiles={key: _harness(resolved, key) for key in resolved.harness_profiles},
        execution_profiles={key: _execution(resolved, key) for key in resolved.execution_profiles},
        sandbox_profiles={key: _sandbox(resolved, key) for key in resolved.sandbox_profiles},
        work_publication=resolved.work_publication,
        references=_used(resolved, references),
        seats=_seats(resolved),
    )


def _used(resolved: Declaration, references: Mapping[str, str]) -> dict[str, str]:
    used = named_references(resolved)
    return {ref: references[ref] for ref in used}


def _teams(resolved: Declaration) -> dict[str, model.Team]:
    return {
        key: model.Team(
            key=key,
            lineage=team.template_lineage,
            instruction_refs=team.instruction_refs,
            shared_memory=team.shared_memory,
            parameters=team.parameters,
            access_profiles=team.access_profiles,
            members=members(resolved, f"team:{key}"),
        )
        for key, team in resolved.teams.items()
    }


def _stores(resolved: Declaration) -> dict[str, model.Store]:
    owners = {seat.personal_memory: key for key, seat in resolved.seats.items()}
    return {
        key: model.Store(
            key=key,
            retention=store.retention,
            personal_of=owners.get(key),
            backing_class=store.backing_class,
            capacity_mb=store.capacity_mb,
        )
        for key, store in resolved.memory_stores.items()
    }


def _connection(resolved: Declaration, key: str) -> model.Connection:
    connection = resolved.connections[key]
    adapter = ADAPTERS[connection.adapter]
    service = connection.model
    if adapter.kind == "model":
        service = service or ModelService()
        service = dataclasses.replace(
            service, apis=service.apis or adapter.apis, auth=service.auth or adapter.auth
        )
    required = connection.required
    return model.Connection(
        key=key,
        adapter=connection.adapter,
        kind=adapter.kind,
        account_id=connection.account_id,
        endpoint_ref=connection.endpoint_ref,
        secret_ref=connection.secret_ref,
        required=is_needed(resolved, key) if required is None else required,
        config=connection.config,
        model=service,
    )


def _harness(resolved: Declaration, key: str) -> model.Harness:
    profile = resolved.harness_profiles[key]
    return model.Harness(
        profile=key,
        adapter=profile.adapter,
        image_digest=profile.image_digest,
        model=profile.model,
        required_capabilities=profile.required_capabilities,
        config=profile.config,
    )


def _execution(resolved: Declaration, key: str) -> model.Execution:
    profile = resolved.execution_profiles[key]
    return model.Execution(
        profile=key,
        backend=profile.backend,
        service_class=profile.service_class,
        idle_policy=profile.idle_policy,
        idle_timeout=durations.parse(profile.idle_timeout) / durations.SECOND,
        cpu_request=profile.cpu_request,
        cpu_limit=profile.cpu_limit,
        memory_request=profile.memory_request,
        memory_limit=profile.memory_limit,
        workspace_size_gb=profile.workspace_size_gb,
        required_features=profile.required_features,
    )


def _sandbox(resolved: Declaration, key: str) -> model.Sandbox:
    profile = resolved.sandbox_profiles[key]
    return model.Sandbox(
        profile=key,
        network_policy_ref=profile.network_policy_ref,
        filesystem_policy_ref=profile.filesystem_policy_ref,
        runtime_class=profile.runtime_class,
        required_enforcement=unique((*profile.required_enforcement, *ALWAYS_ENFORCED)),
    )


def _seats(resolved: Declaration) -> dict[str, model.Seat]:
    grants: dict[str, dict[str, Grant]] = defaultdict(dict)
    for name, grant in resolved.grants.items():
        for key in members(resolved, grant.subject):
            grants[key][name] = grant
    pairs = pairs_of(resolved)
    return {key: _seat(resolved, key, grants=grants[key], pairs=pairs) for key in resolved.seats}


def _seat(
    resolved: Declaration, key: str, *, grants: Mapping[str, Grant], pairs: Pairs
) -> model.Seat:
    seat = resolved.seats[key]
    instructions = instructions_of(resolved, key)
    profiles = access_profiles_of(resolved, key)
    access = access_of(resolved, profiles)
    timezone = timezone_of(resolved, key)
    manifest = manifest_of(resolved, key, grants, profiles)
    recipients = recipients_of(pairs.outgoing[key])
    senders = recipients_of(pairs.incoming[key])
    return model.Seat(
        key=key,
        display_name=seat.display_name or key,
        teams=seat.teams,
        lineage={team: resolved.teams[team].template_lineage for team in seat.teams},
        role_ref=seat.role_ref,
        instructions=instructions,
        harness=_harness(resolved, seat.harness_profile),
        execution=_execution(resolved, seat.execution_profile),
        sandbox=_sandbox(resolved, seat.sandbox_profile),
        workspace=model.SeatWorkspace(
            persistent=seat.workspace.persistent,
            shared={name: resolved.shared_workspaces[name] for name in seat.workspace.shared},
        ),
        personal_memory=seat.personal_memory or None,
        access=access,
        timezone=timezone,
        bindings=tuple(k for k, b in resolved.channel_bindings.items() if b.seat == key),
        manifest=manifest,
        recipients=recipients,
        senders=senders,
        adopt_from=seat.adopt_from or None,
        config_revision=config_revision(
            resolved, key, instructions, access=access, timezone=timezone
        ),
        policy_digest=policy_digest(
            resolved, key, manifest, recipients=recipients, senders=senders
        ),
    )


def instructions_of(resolved: Declaration, key: str) -> tuple[model.Instruction, ...]:
    """Culture, then each team's, then the role's, then the seat's own; each reference once."""
    seat = resolved.seats[key]
    scopes: dict[str, str] = {}
    _claim(scopes, resolved.culture_refs, "organisation")
    for team in seat.teams:
        _claim(scopes, resolved.teams[team].instruction_refs, f"team:{team}")
    _claim(scopes, (seat.role_ref,), "role")
    _claim(scopes, seat.instruction_refs, "seat")
    return tuple(
        model.Instruction(ref, scope, order) for order, (ref, scope) in enumerate(scopes.items(), 1)
    )


def _claim(scopes: dict[str, str], refs: Iterable[str], scope: str) -> None:
    for ref in refs:
        scopes.setdefault(ref, scope)


def timezone_of(resolved: Declaration, key: str) -> str:
    """The zone of the person a seat represents if her binding names one, else the organisation's."""
    for binding in resolved.channel_bindings.values():
        if binding.seat == key and binding.timezone:
            return binding.timezone
    return resolved.timezone
