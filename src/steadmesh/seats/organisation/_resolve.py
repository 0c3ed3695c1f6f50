"""A valid declaration with its templates written out and its lists in one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from steadmesh.seats.organisation import _declared as declared
from steadmesh.seats.organisation._adapters import ADAPTERS
from steadmesh.seats.organisation._declared import Declaration
from steadmesh.seats.organisation._harnesses import ALWAYS_ENFORCED, HARNESSES
from steadmesh.seats.organisation._problems import inside, item
from steadmesh.seats.organisation._references import ROLE_PREFIX
from steadmesh.seats.organisation._templates import FlatTeam, first_of_each


def flatten(
    declaration: Declaration,
    flat: Mapping[str, FlatTeam],
    models: Mapping[str, declared.ModelUse],
) -> Declaration:
    """The same organisation without templates. Flattening it again changes nothing."""
    harness_profiles = {
        key: replace(
            profile,
            model=models.get(key),
            required_capabilities=unique(profile.required_capabilities),
        )
        for key, profile in declaration.harness_profiles.items()
    }
    return replace(
        declaration,
        culture_refs=first_of_each(declaration.culture_refs),
        team_templates={},
        teams={key: team.team for key, team in flat.items()},
        harness_profiles=harness_profiles,
        execution_profiles={
            key: replace(profile, required_features=unique(profile.required_features))
            for key, profile in declaration.execution_profiles.items()
        },
        sandbox_profiles={
            key: replace(
                profile,
                required_enforcement=unique(set(profile.required_enforcement) - {*ALWAYS_ENFORCED}),
            )
            for key, profile in declaration.sandbox_profiles.items()
        },
        access_profiles={
            key: _access(profile) for key, profile in declaration.access_profiles.items()
        },
        connections={
            key: _connection(declaration, key, connection)
            for key, connection in declaration.connections.items()
        },
        seats={key: _seat(key, seat, flat) for key, seat in declaration.seats.items()},
        grants={key: _grant(grant) for key, grant in declaration.grants.items()},
        work_publication=_publication(declaration.work_publication),
    )


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """The names sorted, each once."""
    return tuple(sorted(set(names)))


def _access(profile: declared.AccessProfile) -> declared.AccessProfile:
    rules = {replace(rule, ports=tuple(sorted(set(rule.ports)))) for rule in profile.network.rules}
    ordered = sorted(rules, key=lambda rule: (rule.cidr, rule.protocol, rule.ports))
    github = profile.github
    return replace(
        profile,
        tools=declared.Tools(unique(profile.tools.binaries)),
        egress=declared.Egress(unique(profile.egress.hosts)),
        network=declared.Network(tuple(ordered)),
        github=replace(github, repos=unique(github.repos)) if github else None,
    )


def is_needed(declaration: Declaration, key: str) -> bool:
    """Whether the organisation cannot work without the connection, if the file does not say."""
    kind = ADAPTERS[declaration.connections[key].adapter].kind
    if kind == "communication":
        return any(b.connection == key for b in declaration.channel_bindings.values())
    if kind == "model":
        used = {seat.harness_profile for seat in declaration.seats.values()}
        profiles = (declaration.harness_profiles[name] for name in used)
        return any(
            HARNESSES[profile.adapter].needs_model and profile.model.connection == key
            for profile in profiles
            if profile.model is not None
        )
    return False


def _connection(
    declaration: Declaration, key: str, connection: declared.Connection
) -> declared.Connection:
    as_by_default = connection.required == is_needed(declaration, key)
    service = connection.model
    if service is not None:
        models = tuple(
            replace(model, apis=first_of_each(model.apis))
            for model in sorted(service.models, key=lambda model: model.id)
        )
        service = replace(service, apis=first_of_each(service.apis), models=models)
    required = None if as_by_default else connection.required
    return replace(connection, required=required, model=service)


def _seat(key: str, seat: declared.SeatRecord, flat: Mapping[str, FlatTeam]) -> declared.SeatRecord:
    role = seat.role_ref
    if role.startswith(ROLE_PREFIX):
        name = role.removeprefix(ROLE_PREFIX)
        role = next(flat[team].roles[name] for team in seat.teams if name in flat[team].roles)
    return replace(
        seat,
        role_ref=role,
        instruction_refs=first_of_each(seat.instruction_refs),
        access_profiles=unique(seat.access_profiles),
        workspace=replace(seat.workspace, shared=unique(seat.workspace.shared)),
        display_name="" if seat.display_name == key else seat.display_name,
    )


def _grant(grant: declared.Grant) -> declared.Grant:
    targets = None if grant.targets is None else unique(grant.targets)
    return replace(grant, operations=unique(grant.operations), targets=targets)


def _publication(publication: declared.WorkPublication | None) -> declared.WorkPublication | None:
    return publication and replace(publication, stores=unique(publication.stores))


def named_references(declaration: Declaration) -> dict[str, str]:
    """Each instruction reference of the file with the first path that names it."""
    found: dict[str, str] = {}
    for ref, path in _references(declaration):
        found.setdefault(ref, path)
    return found


def _references(declaration: Declaration) -> Iterator[tuple[str, str]]:
    yield from _listed(declaration.culture_refs, "culture_refs")
    for key, template in declaration.team_templates.items():
        path = inside("team_templates", key)
        yield from _listed(template.instruction_refs, f"{path}.instruction_refs")
        for name, ref in template.roles.items():
            yield ref, inside(f"{path}.roles", name)
    for key, team in declaration.teams.items():
        yield from _listed(team.instruction_refs, f"{inside('teams', key)}.instruction_refs")
    for key, seat in declaration.seats.items():
        path = inside("seats", key)
        if not seat.role_ref.startswith(ROLE_PREFIX):
            yield seat.role_ref, f"{path}.role_ref"
        yield from _listed(seat.instruction_refs, f"{path}.instruction_refs")


def _listed(refs: tuple[str, ...], path: str) -> Iterator[tuple[str, str]]:
    for index, ref in enumerate(refs):
        yield ref, item(path, index)
