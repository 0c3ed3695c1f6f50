"""Apply an organisation file: the service compiles it itself and puts it in force, or changes nothing."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import MINUTE, rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.ids import new_id
from steadmesh.seats import organisation as organisations
from steadmesh.seats.identity import (
    add_seat,
    change_seat,
    live_seats,
    policy_text,
    start_retiring,
)
from steadmesh.seats.organisation import InvalidOrganisation, Organisation, Seat
from steadmesh.tools import Args, Call, Doc, Result, endpoint

RETIREMENT_GRACE = 10 * MINUTE


class InvalidFile(Invalid):
    """the organisation file has {count} {errors}; nothing was applied. {first}"""

    details = ("problems",)


class Sync(Args):
    namespace: Annotated[str, Doc("Which tool or machine applies it.")] = "default"
    key: Annotated[str | None, Doc("The organisation's key, to be sure of the right file.")] = None
    source_uid: Annotated[str, Doc("What tells the source of the file from another.")] = ""
    file: Annotated[dict[str, Any], Doc("The organisation file as JSON.")]
    bundles: Annotated[dict[str, Any] | None, Doc("Text of each instruction reference.")] = None


class SyncedSeat(Result):
    seat_id: str
    config_revision: str
    policy_revision: int
    change: str


class RetiringSeat(Result):
    seat_id: str
    retire_by: str


class Synced(Result):
    organization_id: str
    changed: bool
    seats: dict[str, SyncedSeat]
    retiring: dict[str, RetiringSeat]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A file that was found good, before the transaction opens."""

    organisation: Organisation
    bundles: dict[str, str]


def compile_file(args: Sync) -> Prepared:
    """Everything that can be judged without the database."""
    problems: list[organisations.Problem] = []
    try:
        compiled = organisations.compile(args.file)
    except InvalidOrganisation as invalid:
        raise _invalid(invalid.problems) from None
    if args.key is not None and args.key != compiled.key:
        problems.append(_problem("key", f"the file is of {compiled.key}, not of {args.key}"))
    given = args.bundles or {}
    bundles = {}
    for ref in sorted(
        {entry.ref for seat in compiled.seats.values() for entry in seat.instructions}
    ):
        text = given.get(ref)
        if not isinstance(text, str):
            problems.append(_problem(f"bundles.{ref}", "the text of this instruction is missing"))
        elif not organisations.verify_bundle(ref, text):
            problems.append(
                _problem(f"bundles.{ref}", "the text does not have the sha256 it names")
            )
        else:
            bundles[ref] = text
    for key, seat in compiled.seats.items():
        if seat.adopt_from is not None:
            reason = "adopting a retired seat is not available in this version"
            problems.append(_problem(f"seats.{key}.adopt_from", reason))
    if problems:
        raise _invalid(tuple(problems))
    return Prepared(compiled, bundles)


def one_organisation(tx: Transaction, caller: Any, args: Sync) -> Locks:
    """Alone with the organisation; a new one is alone with its key."""
    key = str(args.file.get("key"))
    row = organisations.organisation_by_key(tx, key)
    held = [exclusive("organisation key", key)]
    return [*held, exclusive("organisation", row["id"])] if row else held


@endpoint(
    "POST /internal/v1/organizations:sync",
    family="operator",
    audited=True,
    locks=one_organisation,
    prepare=compile_file,
)
def sync(call: Call[Any], args: Sync) -> Synced:
    """Put a file in force. On return the policy holds for the next call; the same file changes nothing."""
    prepared: Prepared = call.prepared
    wanted = prepared.organisation
    organisation_id, changed = _keep_organisation(call, args, wanted)
    organisations.replace_bundles(call.tx, organisation_id, prepared.bundles)
    organisations.replace_bindings(call.tx, organisation_id, _binding_rows(organisation_id, wanted))
    live = {row["key"]: row for row in live_seats(call.tx, organisation_id)}
    seats = {
        key: _keep_seat(call, organisation_id, seat, live.get(key))
        for key, seat in sorted(wanted.seats.items())
    }
    retiring = {
        key: _start_retiring(call, row) for key, row in live.items() if key not in wanted.seats
    }
    changed = changed or any(seat.change != "unchanged" for seat in seats.values())
    if changed:
        outbox.record(
            call.tx,
            "organisation.applied",
            scope=organisation_id,
            at=call.now,
            organisation=wanted.key,
        )
        call.tx.wake(f"runtime:{organisation_id}")
    return Synced(organization_id=organisation_id, changed=changed, seats=seats, retiring=retiring)


def _keep_organisation(call: Call[Any], args: Sync, wanted: Organisation) -> tuple[str, bool]:
    row = organisations.organisation_by_key(call.tx, wanted.key)
    values = {
        "id": row["id"] if row else new_id(call.now),
        "namespace": args.namespace,
        "source_uid": args.source_uid,
        "display_name": wanted.display_name,
        "timezone": wanted.timezone,
        "digest": wanted.digest,
        "document": json.dumps(wanted.resolved, separators=(",", ":"), ensure_ascii=False),
        "now": call.now,
    }
    if row is None:
        organisations.add_organisation(call.tx, key=wanted.key, **values)
        return str(values["id"]), True
    organisations.change_organisation(call.tx, **values)
    return str(row["id"]), row["digest"] != wanted.digest


def _keep_seat(call: Call[Any], organisation_id: str, seat: Seat, row: Row | None) -> SyncedSeat:
    values = {
        "id": row["id"] if row else new_id(call.now),
        "display_name": seat.display_name,
        "timezone": seat.timezone,
        "adapter": seat.harness.adapter,
        "config_revision": seat.config_revision,
        "policy_digest": seat.policy_digest,
        "profile": _profile(seat),
        "policy": policy_text(seat),
    }
    if row is None:
        add_seat(call.tx, organisation_id=organisation_id, key=seat.key, now=call.now, **values)
        return _synced(values, 1, "new")
    same_policy = row["policy_digest"] == seat.policy_digest
    policy_revision = row["policy_revision"] + (0 if same_policy else 1)
    change_seat(call.tx, policy_revision=policy_revision, **values)
    unchanged = (
        same_policy
        and row["config_revision"] == seat.config_revision
        and row["retire_by"] is None
        and row["profile"] == values["profile"]
    )
    return _synced(values, policy_revision, "unchanged" if unchanged else "changed")


def _synced(values: dict[str, Any], policy_revision: int, change: str) -> SyncedSeat:
    return SyncedSeat(
        seat_id=values["id"],
        config_revision=values["config_revision"],
        policy_revision=policy_revision,
        change=change,
    )


def _start_retiring(call: Call[Any], row: Row) -> RetiringSeat:
    """A seat that is no longer declared takes no new mail. A repeated apply does not move the time."""
    retire_by = row["retire_by"] or call.now + RETIREMENT_GRACE
    start_retiring(call.tx, row["id"], retire_by)
    return RetiringSeat(seat_id=row["id"], retire_by=rfc3339(retire_by))


def _profile(seat: Seat) -> str:
    """What a runner is started with, and what a seat is told of itself."""
    document = {
        "role": seat.role_ref,
        "teams": list(seat.teams),
        "instructions": [asdict(entry) for entry in seat.instructions],
        "harness": asdict(seat.harness),
        "execution": asdict(seat.execution),
        "sandbox": asdict(seat.sandbox),
        "personal_memory": seat.personal_memory,
    }
    return json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _binding_rows(organisation_id: str, wanted: Organisation) -> list[dict[str, Any]]:
    return [
        {
            "organisation_id": organisation_id,
            "key": key,
            "connection": binding.connection,
            "external_user_id": binding.external_user_id,
            "seat": binding.seat,
        }
        for key, binding in sorted(wanted.bindings.items())
    ]


def _problem(path: str, message: str) -> organisations.Problem:
    return organisations.Problem(path, None, message)


def _invalid(problems: tuple[organisations.Problem, ...]) -> InvalidFile:
    listed = [{"path": problem.path, "message": problem.message} for problem in problems]
    return InvalidFile(
        count=len(problems),
        errors="error" if len(problems) == 1 else "errors",
        first=f"{problems[0].path}: {problems[0].message}",
        problems=listed,
    )
