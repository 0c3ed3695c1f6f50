"""What the records say about each other: that names exist, and that nothing is contradictory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from steadmesh.seats.organisation._adapters import (
    ADAPTERS,
    MEMORY_OPERATIONS,
    WORKSPACE_OPERATIONS,
    Kind,
    of_kind,
)
from steadmesh.seats.organisation._declared import Declaration, Grant, SeatRecord
from steadmesh.seats.organisation._lookup import Lookup
from steadmesh.seats.organisation._problems import inside, item, listed, quoted
from steadmesh.seats.organisation._references import ROLE_PREFIX
from steadmesh.seats.organisation._templates import FlatTeam

# A thousand seats that may all write to each other.
_MOST_PAIRS = 1_000_000


def check(declaration: Declaration, flat: Mapping[str, FlatTeam], lookup: Lookup) -> None:
    """Report every reference that leads nowhere and every contradiction."""
    owners = _check_seats(declaration, flat, lookup)
    _check_teams(declaration, flat, owners=owners, lookup=lookup)
    _check_access(declaration, lookup)
    for key, grant in declaration.grants.items():
        _check_grant(declaration, key, grant, owners=owners, lookup=lookup)
    _check_routes(declaration, lookup)
    _check_bindings(declaration, lookup)
    _check_publication(declaration, owners, lookup)


def _check_seats(
    declaration: Declaration, flat: Mapping[str, FlatTeam], lookup: Lookup
) -> dict[str, str]:
    """Returns the owner of each personal store."""
    owners: dict[str, str] = {}
    for key, seat in declaration.seats.items():
        path = inside("seats", key)
        for name in ("harness_profile", "execution_profile", "sandbox_profile"):
            lookup.finds(inside(path, name), f"{name}s", getattr(seat, name))
        known = [
            lookup.finds(item(f"{path}.teams", i), "teams", team)
            for i, team in enumerate(seat.teams)
        ]
        for i, team in enumerate(seat.teams):
            if team and team in seat.teams[:i]:
                message = f"the team {quoted(team)} is named twice. Keep one"
                lookup.report.add(item(f"{path}.teams", i), message)
        _check_profile_names(path, seat.access_profiles, lookup)
        _check_role(path, seat, flat, lookup=lookup, all_known=all(known))
        _check_mounts(declaration, key, lookup)
        store = seat.personal_memory
        if not lookup.finds(f"{path}.personal_memory", "memory_stores", store):
            continue
        if store in owners:
            lookup.report.add(
                f"{path}.personal_memory",
                f"contradictory ownership: the store {quoted(store)} is already personal to the "
                f"seat {owners[store]}. Give each seat its own",
            )
        owners.setdefault(store, key)
    return owners


def _check_profile_names(path: str, names: tuple[str, ...], lookup: Lookup) -> None:
    for index, name in enumerate(names):
        lookup.finds(item(f"{path}.access_profiles", index), "access_profiles", name)


def _check_role(
    path: str,
    seat: SeatRecord,
    flat: Mapping[str, FlatTeam],
    *,
    lookup: Lookup,
    all_known: bool,
) -> None:
    if not seat.role_ref.startswith(ROLE_PREFIX):
        return
    name = seat.role_ref.removeprefix(ROLE_PREFIX)
    teams = [team for team in dict.fromkeys(seat.teams) if team in flat]
    found = {team: flat[team].roles[name] for team in teams if name in flat[team].roles}
    place = f"{path}.role_ref"
    if len(set(found.values()) - {""}) > 1:
        lookup.report.add(
            place,
            f"ambiguous role {quoted(name)}: the teams {listed(found)} define it differently. "
            "Write the instruction reference itself, or give the roles different names",
        )
    elif not found and all_known and all(flat[team].complete for team in teams):
        roles = sorted({role for team in teams for role in flat[team].roles})
        offered = f"They define {listed(roles)}." if roles else "They define none."
        where = offered if teams else "The seat is in no team."
        message = f"the role {quoted(name)} is not defined by a template of the seat's teams."
        lookup.report.add(place, f"{message} {where}")


def _check_mounts(declaration: Declaration, key: str, lookup: Lookup) -> None:
    seat = declaration.seats[key]
    if not seat.workspace.shared:
        return
    subjects = {f"seat:{key}", *(f"team:{team}" for team in seat.teams)}
    granted = {g.resource for g in declaration.grants.values() if g.subject in subjects}
    place = f"{inside('seats', key)}.workspace.shared"
    for index, name in enumerate(seat.workspace.shared):
        line = item(place, index)
        known = lookup.finds(line, "shared_workspaces", name)
        if known and f"workspace:{name}" not in granted:
            lookup.report.add(
                place,
                f"the workspace {quoted(name)} is mounted without a grant. Add one with "
                f"subject seat:{key}, resource workspace:{name}",
                at=line,
            )


def _check_teams(
    declaration: Declaration,
    flat: Mapping[str, FlatTeam],
    *,
    owners: Mapping[str, str],
    lookup: Lookup,
) -> None:
    for key, team in declaration.teams.items():
        path = inside("teams", key)
        _check_profile_names(path, team.access_profiles, lookup)
        # The line to show is that of the most derived place that names the store.
        sources: list[tuple[str, Mapping[str, tuple[str, ...]]]] = [(path, team.shared_memory)]
        for name in reversed(flat[key].team.template_lineage):
            if name in declaration.team_templates:
                template = declaration.team_templates[name]
                sources.append((inside("team_templates", name), template.shared_memory))
        for store in flat[key].team.shared_memory:
            if store not in owners:
                continue
            source = next((s for s, stores in sources if store in stores), path)
            lookup.report.add(
                inside(f"{path}.shared_memory", store),
                f"contradictory ownership: the store {quoted(store)} is personal to the seat "
                f"{owners[store]} and cannot be shared with a team",
                at=inside(f"{source}.shared_memory", store),
            )


def _check_access(declaration: Declaration, lookup: Lookup) -> None:
    for key, profile in declaration.access_profiles.items():
        path = inside("access_profiles", key)
        if profile.github:
            place = f"{path}.github.connection"
            _check_adapter(declaration, place, profile.github.connection, "github", lookup=lookup)
        if profile.browser.session:
            place = f"{path}.browser.session.connection"
            name = profile.browser.session.connection
            _check_adapter(declaration, place, name, "browser_session", lookup=lookup)


def _check_adapter(
    declaration: Declaration, path: str, name: str, adapter: str, *, lookup: Lookup
) -> None:
    if lookup.finds(path, "connections", name):
        found = declaration.connections[name].adapter
        if found and found != adapter:
            message = f"{quoted(name)} is a {found} connection; here belongs one with the adapter"
            lookup.report.add(path, f"{message} {adapter}")


def _check_kind(
    declaration: Declaration, path: str, name: str, kind: Kind, *, lookup: Lookup
) -> bool:
    if not lookup.finds(path, "connections", name):
        return False
    adapter = declaration.connections[name].adapter
    if adapter and ADAPTERS[adapter].kind != kind:
        message = f"{quoted(name)} is not a {kind} connection but {adapter}. Those have the adapter"
        lookup.report.add(path, f"{message} {listed(of_kind(kind))}")
        return False
    return bool(adapter)


def _check_grant(
    declaration: Declaration,
    key: str,
    grant: Grant,
    *,
    owners: Mapping[str, str],
    lookup: Lookup,
) -> None:
    path = inside("grants", key)
    lookup.finds_pointer(f"{path}.subject", grant.subject)
    if not lookup.finds_pointer(f"{path}.resource", grant.resource):
        return
    kind, _, name = grant.resource.partition(":")
    if kind == "memory" and name in owners and grant.subject.startswith("team:"):
        lookup.report.add(
            f"{path}.resource",
            f"contradictory ownership: the store {quoted(name)} is personal to the seat "
            f"{owners[name]} and cannot be granted to a team",
        )
    offered = _offered(declaration, kind, name)
    if offered is None:
        return
    for index, operation in enumerate(grant.operations):
        if operation and operation not in offered:
            names = f"offers {listed(offered)}" if offered else "offers none"
            lookup.report.add(
                f"{path}.operations",
                f"unsupported operation {quoted(operation)}. {grant.resource} {names}",
                at=item(f"{path}.operations", index),
            )
        elif operation and grant.targets and not offered[operation]:
            lookup.report.add(
                f"{path}.targets",
                f"the operation {operation} takes no targets. Leave targets out, or grant it "
                "separately",
            )


def _offered(declaration: Declaration, kind: str, name: str) -> dict[str, tuple[str, ...]] | None:
    """Operation → the params that can be targets. None when the adapter is not known."""
    if kind == "memory":
        return dict.fromkeys(MEMORY_OPERATIONS, ())
    if kind == "workspace":
        return dict.fromkeys(WORKSPACE_OPERATIONS, ())
    adapter = declaration.connections[name].adapter
    if not adapter:
        return None
    return {name: offered.targets for name, offered in ADAPTERS[adapter].operations.items()}


def _check_routes(declaration: Declaration, lookup: Lookup) -> None:
    sizes = Counter(f"team:{team}" for seat in declaration.seats.values() for team in seat.teams)
    sizes.update(f"seat:{key}" for key in declaration.seats)
    pairs = sum(sizes[r.from_] * sizes[r.to] for r in declaration.message_routes.values())
    if pairs > _MOST_PAIRS:
        lookup.report.add(
            "message_routes",
            f"these routes stand for {pairs} pairs of seats; at most {_MOST_PAIRS} are allowed. "
            "Connect fewer or smaller teams",
        )
    for key, route in declaration.message_routes.items():
        path = inside("message_routes", key)
        lookup.finds_pointer(f"{path}.from", route.from_)
        known = lookup.finds_pointer(f"{path}.to", route.to)
        if known and route.from_ == route.to and route.to.startswith("seat:"):
            message = f"{route.to} cannot have a route to itself. Name another seat or a team"
            lookup.report.add(f"{path}.to", message)


def _check_bindings(declaration: Declaration, lookup: Lookup) -> None:
    by_identity: dict[tuple[str, str], str] = {}
    by_seat: dict[str, str] = {}
    report = lookup.report
    for key, binding in declaration.channel_bindings.items():
        path = inside("channel_bindings", key)
        connection, user = binding.connection, binding.external_user_id
        _check_kind(declaration, f"{path}.connection", connection, "communication", lookup=lookup)
        if connection and user:
            first = by_identity.setdefault((connection, user), key)
            if first != key:
                message = f"{quoted(user)} on {connection} is already bound by {first}. Keep one"
                report.add(f"{path}.external_user_id", message)
        if not lookup.finds(f"{path}.seat", "seats", binding.seat) or not user:
            continue
        other = declaration.channel_bindings[by_seat.setdefault(binding.seat, key)]
        if other.external_user_id != user:
            report.add(
                f"{path}.seat",
                f"the seat {binding.seat} already represents a different human, "
                f"{quoted(other.external_user_id)}. A seat represents one; use another seat",
            )
        elif other.timezone != binding.timezone:
            report.add(
                f"{path}.timezone",
                f"a representative has one time zone, but {by_seat[binding.seat]} says "
                f"{other.timezone or 'nothing'} and {key} says {binding.timezone or 'nothing'}. "
                "Give both bindings the same",
            )


def _check_publication(declaration: Declaration, owners: Mapping[str, str], lookup: Lookup) -> None:
    publication = declaration.work_publication
    if publication is None:
        return
    place = "work_publication.connection"
    _check_kind(declaration, place, publication.connection, "tracker", lookup=lookup)
    for index, store in enumerate(publication.stores):
        path = item("work_publication.stores", index)
        if lookup.finds(path, "memory_stores", store) and store in owners:
            lookup.report.add(
                path,
                f"the store {quoted(store)} is personal to the seat {owners[store]}; "
                "personal stores are never published",
            )
