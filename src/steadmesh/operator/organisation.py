"""bundle, check, plan, apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steadmesh.operator.api import Api, Refused
from steadmesh.operator.terminal import count, note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed
from steadmesh.seats.organisation import (
    Change,
    Document,
    InvalidOrganisation,
    Organisation,
    SeatRevisions,
    absolute_secrets,
    bundle_reference,
    differences,
    load,
    read_bundles,
    render,
)


def bundle(file: str, root: str | None) -> int:
    """Print the reference of an instruction file."""
    path = Path(file)
    if not path.is_file():
        raise CommandFailed(f"{file}: there is no such file")
    folder = _root_of(path) if root is None else Path(root)
    try:
        result(bundle_reference(path, root=folder))
    except InvalidOrganisation as invalid:
        raise CommandFailed("\n".join(f"{file}: {p.message}" for p in invalid.problems)) from None
    return 0


def _root_of(path: Path) -> Path:
    """The nearest folder above with an organisation file of the usual name, else where we are."""
    for folder in path.resolve().parents:
        if (folder / "organisation.yaml").is_file():
            return folder
    return Path.cwd()


def check(file: str, *, as_json: bool) -> int:
    """Report every mistake of a file."""
    try:
        organisation, _, _ = _read(file)
    except InvalidOrganisation as invalid:
        return explain(invalid, file, as_json=as_json)
    if as_json:
        result_json([])
    else:
        note(
            f"{file}: good: {count(len(organisation.seats), 'seat', 'seats')}, "
            f"{count(len(organisation.bindings), 'person', 'people')}, "
            f"digest {organisation.digest[:12]}"
        )
    return 0


def plan(file: str, data: str | None, *, as_json: bool) -> int:
    """Show what an apply would change."""
    try:
        organisation, _, _ = _read(file)
    except InvalidOrganisation as invalid:
        return explain(invalid, file, as_json=as_json)
    changes = differences(_in_force(Api.find(data), organisation.key), organisation)
    if as_json:
        result_json([_change_as_json(change) for change in changes])
        return 0
    table(["", "seat", "what", "effect"], [_row(change) for change in changes])
    moved = sum(change.kind != "unchanged" for change in changes)
    note(
        f"{moved} of {count(len(changes), 'seat', 'seats')} would change; nothing is written"
        if moved
        else "nothing would change"
    )
    return 0


def apply(file: str, data: str | None, *, grace: str | None = None, as_json: bool) -> int:
    """Put a file in force."""
    try:
        _read(file)  # its mistakes are told even if no service runs
        synced = put_in_force(Api.find(data), file, grace=grace)
    except InvalidOrganisation as invalid:
        return explain(invalid, file, as_json=as_json)
    if as_json:
        result_json(synced)
        return 0
    result(f"organisation {synced['key']} ({synced['organization_id']})")
    rows = [[key, seat["change"], seat["seat_id"]] for key, seat in synced["seats"].items()]
    rows += [
        [key, f"retiring until {seat['retire_by']}", seat["seat_id"]]
        for key, seat in synced["retiring"].items()
    ]
    table(["seat", "what", "id"], rows)
    note("applied; the policy holds from now on" if synced["changed"] else "nothing changed")
    return 0


def put_in_force(api: Api, file: str, *, grace: str | None = None) -> dict[str, Any]:
    """Apply a file; what the service answered, with the key. Raises `InvalidOrganisation`."""
    organisation, document, bundles = _read(file)
    path = Path(file).resolve()
    body = {
        "key": organisation.key,
        "namespace": "local",
        "source_uid": str(path),
        "file": absolute_secrets(document.data, path.parent),
        "bundles": bundles,
        "folder": str(path.parent),
        "grace": grace,
    }
    try:
        synced: dict[str, Any] = api.post("/internal/v1/organizations:sync", body)
    except Refused as refused:
        raise CommandFailed(f"{file}: {refused}") from None
    return {"key": organisation.key, **synced}


def _read(file: str) -> tuple[Organisation, Document, dict[str, str]]:
    """A good file with its bundles. Raises `InvalidOrganisation` with all that is wrong."""
    document, organisation = load(Path(file))
    return organisation, document, read_bundles(Path(file), organisation, line_of=document.line_of)


def explain(invalid: InvalidOrganisation, file: str, *, as_json: bool = False) -> int:
    """Print every mistake of a file; the exit status."""
    if as_json:
        result_json(
            [{"path": p.path, "line": p.line, "message": p.message} for p in invalid.problems]
        )
    else:
        result(render(invalid.problems, file))
        note(count(len(invalid.problems), "mistake", "mistakes"))
    return 1


def _in_force(api: Api, key: str) -> dict[str, SeatRevisions]:
    for organisation in api.organisations():
        if organisation.key == key:
            return {
                seat: SeatRevisions(row["config_revision"], row["policy_digest"])
                for seat, row in api.seats(organisation).items()
                if row.get("retire_by") is None
            }
    return {}


_SIGNS = {"new": "+", "changed": "~", "unchanged": "", "retiring": "-"}
_EFFECTS = {
    "configuration": "its runner starts anew at a turn boundary",
    "policy": "its rights change with the next call",
}


def _row(change: Change) -> list[str]:
    effects = {
        "changed": "; ".join(_EFFECTS[revision] for revision in change.revisions),
        "retiring": "it is no longer in the file",
    }
    return [_SIGNS[change.kind], change.seat, change.kind, effects.get(change.kind, "")]


def _change_as_json(change: Change) -> dict[str, Any]:
    return {"seat": change.seat, "kind": change.kind, "revisions": list(change.revisions)}
