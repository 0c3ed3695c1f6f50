"""Apply an organisation file: the service compiles it itself and puts it in force, or changes nothing."""

from __future__ import annotations

import json
from collections.abc import Set
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from steadmesh.kernel import durations, outbox
from steadmesh.kernel.clock import MINUTE, Instant, rfc3339
from steadmesh.kernel.database import Locks, Row, Transaction, exclusive
from steadmesh.kernel.errors import Invalid
from steadmesh.kernel.ids import new_id
from steadmesh.seats import organisation as organisations
from steadmesh.seats.identity import (
    add_seat,
    change_seat,
    live_seats,
    parse_policy,
    start_retiring,
    stored_policy,
)
from steadmesh.seats.identity import seat as seat_row
from steadmesh.seats.lifecycle import adopt, retire
from steadmesh.seats.lifecycle.secrets import misplaced
from steadmesh.seats.organisation import InvalidOrganisation, Organisation, Seat
from steadmesh.tools import Args, Call, Doc, Result, endpoint

RETIREMENT_GRACE = 10 * MINUTE


class InvalidFile(Invalid):
    """the organisation file has {count} {errors}; nothing was applied. {first}"""

    details = ("problems",)


class InvalidGrace(Invalid):
    """grace: {reason}"""


class Sync(Args):
    namespace: Annotated[str, Doc("Which tool or machine applies it.")] = "default"
    key: Annotated[str | None, Doc("The organisation's key, to be sure of the right file.")] = None
    source_uid: Annotated[str, Doc("What tells the source of the file from another.")] = ""
    file: Annotated[dict[str, Any], Doc("The organisation file as JSON.")]
    bundles: Annotated[dict[str, Any] | None, Doc("Text of each instruction reference.")] = None
    grace: Annotated[
        str | None, Doc("How long a seat that is not declared any more may take to finish: 10m.")
    ] = None
    folder: Annotated[
        str | None, Doc("The file's folder on the service's machine; its secrets may lie in it.")
    ] = None


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
    grace: int
    """Microseconds."""


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
    if problems:
        raise _invalid(tuple(problems))
    return Prepared(compiled, bundles, _grace(args.grace))


def _grace(text: str | None) -> int:
    if text is None:
        return RETIREMENT_GRACE
    try:
        return 0 if text == "0" else durations.parse(text) // durations.MICROSECOND
    except ValueError as problem:
        raise InvalidGrace(reason=str(problem)) from None


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
    astray = misplaced(
        wanted.connections, folder=args.folder, secrets_dir=call.services.secrets_dir
    )
    if astray:
        raise _invalid(tuple(astray))
    organisation_id, changed = _keep_organisation(call, args, wanted)
    organisations.replace_bundles(call.tx, organisation_id, prepared.bundles)
    organisations.replace_bindings(call.tx, organisation_id, _binding_rows(organisation_id, wanted))
    live = {row["key"]: row for row in live_seats(call.tx, organisation_id)}
    _check_adoptions(call, organisation_id, wanted, live)
    leaving = {key: row for key, row in live.items() if key not in wanted.seats}
    seats = {
        key: _keep_seat(call, organisation_id, seat, live.get(key), leaving.keys())
        for key, seat in sorted(wanted.seats.items())
    }
    retire_by = call.now + prepared.grace
    for row in leaving.values():  # all of them first: what goes back goes to those that stay
        start_retiring(call.tx, row["id"], retire_by)
    retiring = {key: _start_retiring(call, row, retire_by) for key, row in leaving.items()}
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


def _keep_seat(
    call: Call[Any],
    organisation_id: str,
    seat: Seat,
    row: Row | None,
    leaving: Set[str],
) -> SyncedSeat:
    policy = stored_policy(seat, _lost(row, leaving) if row else ())
    values = {
        "id": row["id"] if row else new_id(call.now),
        "display_name": seat.display_name,
        "timezone": seat.timezone,
        "adapter": seat.harness.adapter,
        "config_revision": seat.config_revision,
        "policy_digest": policy.digest,
        "profile": _profile(seat),
        "policy": policy.text,
    }
    if row is None:
        _add_seat(call, organisation_id, seat, values)
        return _synced(values, 1, "new")
    same_policy = row["policy_digest"] == policy.digest
    policy_revision = row["policy_revision"] + (0 if same_policy else 1)
    change_seat(call.tx, policy_revision=policy_revision, **values)
    if row["retire_by"] is not None:
        retire.cancel(call.tx, row, now=call.now)
    unchanged = (
        same_policy
        and row["config_revision"] == seat.config_revision
        and row["retire_by"] is None
        and row["profile"] == values["profile"]
    )
    return _synced(values, policy_revision, "unchanged" if unchanged else "changed")


def _lost(row: Row, leaving: Set[str]) -> Set[str]:
    """The seats on their way out that a seat could write to, or answer."""
    before = parse_policy(row["policy"])
    answered = {key for key, can_reply in before.senders.items() if can_reply}
    return leaving & (before.recipients.keys() | answered | before.leaving)


def _add_seat(call: Call[Any], organisation_id: str, seat: Seat, values: dict[str, Any]) -> None:
    adopted = seat.adopt_from and seat_row(call.tx, seat.adopt_from)
    add_seat(
        call.tx,
        organisation_id=organisation_id,
        key=seat.key,
        now=call.now,
        adopted_from=seat.adopt_from,
        workspace_of=adopt.workspace_of(adopted) if adopted else None,
        **values,
    )
    if adopted:
        adopt.take_over(call.tx, adopted["id"], values["id"])


def _synced(values: dict[str, Any], policy_revision: int, change: str) -> SyncedSeat:
    return SyncedSeat(
        seat_id=values["id"],
        config_revision=values["config_revision"],
        policy_revision=policy_revision,
        change=change,
    )


def _start_retiring(call: Call[Any], row: Row, retire_by: Instant) -> RetiringSeat:
    """A seat that is no longer declared takes no new mail. A repeated apply does not move the time."""
    until = retire.begin(call.tx, row, retire_by=retire_by, now=call.now)
    return RetiringSeat(seat_id=row["id"], retire_by=rfc3339(until))


def _check_adoptions(
    call: Call[Any], organisation_id: str, wanted: Organisation, live: dict[str, Row]
) -> None:
    """Whether every `adopt_from` can be done, or was done by an earlier apply of the same file."""
    problems = []
    for key, seat in sorted(wanted.seats.items()):
        if seat.adopt_from is None:
            continue
        row = live.get(key)
        if row is None:
            reason = adopt.objection(call.tx, organisation_id, key, seat.adopt_from)
        elif row["adopted_from"] == seat.adopt_from:
            reason = None
        elif row["id"] == seat.adopt_from:
            reason = f"{seat.adopt_from} is live; only a retired seat can be adopted"
        else:
            reason = f"{key} exists already, as {row['id']}; a seat can only adopt when it is new"
        if reason:
            problems.append(_problem(f"seats.{key}.adopt_from", reason))
    if problems:
        raise _invalid(tuple(problems))


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
