"""Teams with their templates written out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from steadmesh.seats.organisation._declared import Declaration, Team, Template
from steadmesh.seats.organisation._lookup import Lookup
from steadmesh.seats.organisation._problems import Report, inside, listed, quoted


@dataclass(frozen=True, slots=True)
class FlatTeam:
    """A team without template, the roles its templates define, and whether all were found."""

    team: Team
    roles: Mapping[str, str]
    complete: bool


def check_templates(declaration: Declaration, lookup: Lookup) -> None:
    """Report unknown parents and inheritance loops, used by a team or not."""
    templates = declaration.team_templates
    for key, template in templates.items():
        path = inside("team_templates", key)
        line = inside(path, "extends")
        if template.extends and lookup.finds(path, "team_templates", template.extends, at=line):
            chain = _upwards(declaration, key)
            if templates[chain[-1]].extends == key:
                shown = " -> ".join((*chain, key))
                message = f"an inheritance cycle: {shown}. Take one extends away"
                lookup.report.add(path, message, at=line)
        for store in template.shared_memory:
            lookup.finds(inside(inside(path, "shared_memory"), store), "memory_stores", store)


def _upwards(declaration: Declaration, key: str) -> tuple[str, ...]:
    """The template and its parents, as far as they exist and do not repeat."""
    chain: list[str] = []
    while key in declaration.team_templates and key not in chain:
        chain.append(key)
        key = declaration.team_templates[key].extends
    return tuple(chain)


def flatten_teams(declaration: Declaration, lookup: Lookup) -> dict[str, FlatTeam]:
    """Every team with its chain merged, base first. Reports what is unknown or ambiguous."""
    flat = {}
    for key, team in declaration.teams.items():
        path = inside("teams", key)
        if team.template:
            lookup.finds(inside(path, "template"), "team_templates", team.template)
        for store in team.shared_memory:
            lookup.finds(inside(inside(path, "shared_memory"), store), "memory_stores", store)
        flat[key] = _flatten(declaration, key, lookup.report)
    return flat


def _flatten(declaration: Declaration, key: str, report: Report) -> FlatTeam:
    team = declaration.teams[key]
    upwards = _upwards(declaration, team.template)
    lineage = tuple(reversed(upwards))
    templates = [declaration.team_templates[name] for name in lineage]
    parts: list[Template | Team] = [*templates, team]
    parameters: dict[str, Any] = {}
    for part in parts:
        parameters.update(part.parameters)
    roles: dict[str, str] = {}
    for template in templates:
        roles.update(template.roles)
    return FlatTeam(
        team=Team(
            template_lineage=lineage or team.template_lineage,
            instruction_refs=first_of_each(ref for part in parts for ref in part.instruction_refs),
            shared_memory=_merged_memory(declaration, key, lineage, report),
            parameters=parameters,
            access_profiles=tuple(sorted({name for name in team.access_profiles if name})),
        ),
        roles=roles,
        complete=not team.template or bool(upwards and not templates[0].extends),
    )


def _merged_memory(
    declaration: Declaration, key: str, lineage: tuple[str, ...], report: Report
) -> dict[str, tuple[str, ...]]:
    merged: dict[str, tuple[str, ...]] = {}
    said_by: dict[str, str] = {}
    for source, store, operations in _memory_sources(declaration, key, lineage):
        if operations and merged.get(store, operations) != operations:
            report.add(
                inside(inside(inside("teams", key), "shared_memory"), store),
                f"ambiguous operations for the store {quoted(store)}: {listed(merged[store])} in "
                f"{said_by[store]}, {listed(operations)} in {source}. Give both the same",
                at=inside(inside(source, "shared_memory"), store),
            )
        elif operations and store not in merged:
            merged[store] = operations
            said_by[store] = source
    return merged


def _memory_sources(
    declaration: Declaration, key: str, lineage: tuple[str, ...]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for name in lineage:
        for store, operations in declaration.team_templates[name].shared_memory.items():
            yield inside("team_templates", name), store, operations
    for store, operations in declaration.teams[key].shared_memory.items():
        yield inside("teams", key), store, operations


def first_of_each(refs: Iterable[str]) -> tuple[str, ...]:
    """The references in order, each at its first position, unreadable ones left out."""
    return tuple(dict.fromkeys(ref for ref in refs if ref))
