"""From plain data to records: what each field may hold, looked at one by one.

What a field refers to is looked up later, in the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from steadmesh.kernel import zones
from steadmesh.kernel.ids import is_id
from steadmesh.seats.organisation import _declared as declared
from steadmesh.seats.organisation import _outside as outside
from steadmesh.seats.organisation import _profiles as profiles
from steadmesh.seats.organisation import _references as references
from steadmesh.seats.organisation._adapters import MEMORY_OPERATIONS
from steadmesh.seats.organisation._fields import KEY, Fields
from steadmesh.seats.organisation._problems import Report, inside, item, listed, quoted

_ORGANISATION_KEY = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_R = TypeVar("_R")


def read(data: Mapping[str, Any], report: Report) -> declared.Declaration:
    """The file as records. Everything that is wrong is in the report."""
    top = Fields(data, "", report)
    declaration = declared.Declaration(
        key=_organisation_key(top),
        display_name=top.required("display_name", "Lumen Labs"),
        timezone=zone(top, "timezone", default=zones.UTC),
        data_retention=top.choice("data_retention", profiles.RETENTION, "retain"),
        culture_refs=instructions(top, "culture_refs"),
        team_templates=_each(top, "team_templates", _template),
        teams=_each(top, "teams", _team),
        memory_stores=_each(top, "memory_stores", profiles.memory_store),
        shared_workspaces=_each(top, "shared_workspaces", profiles.shared_workspace),
        harness_profiles=_each(top, "harness_profiles", profiles.harness),
        execution_profiles=_each(top, "execution_profiles", profiles.execution),
        sandbox_profiles=_each(top, "sandbox_profiles", profiles.sandbox),
        access_profiles=_each(top, "access_profiles", outside.access),
        connections=_each(top, "connections", outside.connection),
        seats=_each(top, "seats", _seat),
        grants=_each(top, "grants", _grant),
        message_routes=_each(top, "message_routes", _route),
        channel_bindings=_each(top, "channel_bindings", _binding),
        work_publication=_publication(top),
    )
    top.refuse_unknown()
    return declaration


def _each(top: Fields, name: str, record: Callable[[Fields], _R]) -> dict[str, _R]:
    records = {}
    for key, fields in top.records(name):
        records[key] = record(fields)
        fields.refuse_unknown()
    return records


def _organisation_key(top: Fields) -> str:
    key = top.required("key", "lumen")
    if key and not _ORGANISATION_KEY.fullmatch(key):
        top.wrong(
            "key",
            f"{quoted(key)} must be lower-case letters, digits, - and _, start with a letter, and "
            "have at most 40 characters",
        )
    return key


def zone(fields: Fields, name: str, *, default: str) -> str:
    """A time zone name."""
    value = fields.given(name)
    if value is None:
        return default
    text = value if value == "" else fields.text(name)
    if value != "" and not text:
        return default
    if zones.is_zone(text):
        return text
    near = zones.nearest(text) if text else None
    advice = f" Did you mean {quoted(near)}?" if near else " Write one such as Europe/Paris or UTC."
    fields.wrong(name, f"{quoted(text)} is not a time zone name.{advice}")
    return text


def instructions(fields: Fields, name: str) -> tuple[str, ...]:
    """A list of instruction references."""
    place = fields.place(name)
    return tuple(
        _instruction(fields.report, item(place, index), ref)
        for index, ref in enumerate(fields.texts(name))
    )


def _instruction(report: Report, place: str, ref: str) -> str:
    if not ref:
        return ""
    try:
        return references.instruction(ref)
    except references.BadReference as error:
        report.add(place, f"the instruction reference {quoted(ref)} {error}")
        return ""


def _shared_memory(fields: Fields) -> dict[str, tuple[str, ...]]:
    stores: dict[str, tuple[str, ...]] = {}
    for store, holder in fields.lists("shared_memory"):
        operations = holder.filled(store, "read, search")
        unknown = [name for name in operations if name and name not in MEMORY_OPERATIONS]
        for name in unknown:
            holder.wrong(
                store,
                f"unsupported operation {quoted(name)}. A memory store offers "
                f"{listed(MEMORY_OPERATIONS)}",
            )
        stores[store] = tuple(sorted({name for name in operations if name} - set(unknown)))
    return stores


def _template(fields: Fields) -> declared.Template:
    roles = {
        name: _instruction(fields.report, inside(fields.place("roles"), name), ref)
        for name, ref in fields.texts_by_key("roles").items()
    }
    return declared.Template(
        extends=fields.text("extends"),
        instruction_refs=instructions(fields, "instruction_refs"),
        roles=roles,
        shared_memory=_shared_memory(fields),
        parameters=fields.json_map("parameters"),
    )


def _team(fields: Fields) -> declared.Team:
    template = fields.text("template")
    lineage = fields.texts("template_lineage")
    if template and lineage:
        fields.wrong("template_lineage", "is written by the compiler. Leave it out beside template")
    for index, name in enumerate(lineage):
        if name and not KEY.fullmatch(name):
            fields.report.add(
                item(fields.place("template_lineage"), index), f"{quoted(name)} is no template key"
            )
    return declared.Team(
        template=template,
        template_lineage=lineage,
        instruction_refs=instructions(fields, "instruction_refs"),
        shared_memory=_shared_memory(fields),
        parameters=fields.json_map("parameters"),
        access_profiles=fields.texts("access_profiles"),
    )


def _seat(fields: Fields) -> declared.SeatRecord:
    workspace = fields.inner("workspace")
    return declared.SeatRecord(
        role_ref=_role(fields),
        harness_profile=fields.required("harness_profile", "scripted"),
        execution_profile=fields.required("execution_profile", "normal"),
        sandbox_profile=fields.required("sandbox_profile", "standard"),
        teams=fields.texts("teams"),
        personal_memory=fields.text("personal_memory"),
        workspace=declared.Workspace() if workspace is None else _workspace(workspace),
        display_name=fields.text("display_name"),
        instruction_refs=instructions(fields, "instruction_refs"),
        access_profiles=fields.texts("access_profiles"),
        adopt_from=_adopted(fields),
    )


def _role(fields: Fields) -> str:
    ref = fields.required("role_ref", "role:lead")
    if not ref or ref.startswith(references.ROLE_PREFIX):
        return ref
    return _instruction(fields.report, fields.place("role_ref"), ref)


def _workspace(fields: Fields) -> declared.Workspace:
    workspace = declared.Workspace(
        persistent=fields.flag("persistent", default=True), shared=fields.texts("shared")
    )
    fields.refuse_unknown()
    return workspace


def _adopted(fields: Fields) -> str:
    seat_id = fields.text("adopt_from")
    if seat_id and not is_id(seat_id):
        fields.wrong("adopt_from", f"{quoted(seat_id)} is not the id (a UUID) of a retired seat")
        return ""
    return seat_id


def _pointer(fields: Fields, name: str, kinds: tuple[str, ...], example: str) -> str:
    ref = fields.required(name, example)
    if not ref:
        return ""
    try:
        references.pointer(ref, kinds)
    except references.BadReference as error:
        fields.wrong(name, f"{quoted(ref)} {error}")
        return ""
    return ref


def _grant(fields: Fields) -> declared.Grant:
    targets = None
    if fields.given("targets") is not None:
        targets = fields.texts("targets")
        if not targets and isinstance(fields.given("targets"), list | tuple):
            fields.wrong("targets", "names nothing. Name at least one, or leave it out for all")
    return declared.Grant(
        subject=_pointer(fields, "subject", references.SUBJECT_KINDS, "seat:lead"),
        resource=_pointer(fields, "resource", references.RESOURCE_KINDS, "memory:build"),
        operations=fields.filled("operations", "read"),
        targets=targets,
    )


def _route(fields: Fields) -> declared.Route:
    return declared.Route(
        from_=_pointer(fields, "from", references.SUBJECT_KINDS, "seat:lead"),
        to=_pointer(fields, "to", references.SUBJECT_KINDS, "seat:builder"),
        reply=fields.flag("reply", default=False),
        bidirectional=fields.flag("bidirectional", default=False),
    )


def _binding(fields: Fields) -> declared.ChannelBinding:
    return declared.ChannelBinding(
        connection=fields.required("connection", "chat"),
        external_user_id=fields.required("external_user_id", "ada"),
        seat=fields.required("seat", "rep_ada"),
        mode=fields.choice("mode", ("direct_message",), "direct_message"),
        timezone=zone(fields, "timezone", default=""),
    )


def _publication(top: Fields) -> declared.WorkPublication | None:
    fields = top.inner("work_publication")
    if fields is None:
        return None
    publication = declared.WorkPublication(
        connection=fields.required("connection", "tracker"),
        stores=fields.filled("stores", "build"),
    )
    fields.refuse_unknown()
    return publication
