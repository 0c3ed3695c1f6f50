"""dead-letters: what was given up after the last attempt, to be looked at and tried again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from steadmesh.kernel.text import for_terminal
from steadmesh.operator.api import Api, Organisation, Refused
from steadmesh.operator.reasons import sender
from steadmesh.operator.terminal import confirmed, count, moment, note, result, result_json, table
from steadmesh.operator.trouble import CommandFailed, WrongUse

PAGE = 200


def list_letters(data: str | None, org: str | None, *, seat: str | None, as_json: bool) -> int:
    """List an organisation's dead letters, oldest first."""
    api = Api.find(data)
    organisation = api.organisation(org)
    letters = list(_letters(api, organisation, _known(api, organisation, seat)))
    if as_json:
        result_json(letters)
        return 0
    table(
        ["id", "seat", "from", "written", "attempts", "error"],
        [_row(letter) for letter in letters],
    )
    if not letters:
        note(f"{seat or organisation.key} has no dead letters")
    return 0


def show(data: str | None, *, letter: int, as_json: bool) -> int:
    """Print one dead letter with its text."""
    found = Api.find(data).get(f"/internal/v1/dead-letters/{letter}")
    if as_json:
        result_json(found)
        return 0
    lines = {
        "dead letter": str(found["id"]),
        "to": found["recipient_seat"],
        "from": sender(found),
        "written": moment(found["created_at"]),
        "attempts": str(found["attempts"]),
        "error": found.get("error", ""),
        "message": found["message_id"],
        "conversation": found["conversation_id"],
    }
    for name, value in lines.items():
        result(for_terminal(f"{name:<13} {value}"))
    result("")
    result(for_terminal(found["body"]))
    if found["can_be_requeued"]:
        note(f"try it again: steadmesh dead-letters requeue {letter}")
    else:
        note(f"it cannot be tried again: {found['recipient_seat']} is retired, or retires")
    return 0


def requeue(
    data: str | None,
    org: str | None,
    *,
    letter: int | None,
    seat: str | None,
    every: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Give one dead letter, or all of a seat or organisation, five fresh attempts."""
    if (letter is None) is not every:
        raise WrongUse("name the id of one dead letter, or --all, with --seat for those of one")
    if letter is not None and seat is not None:
        raise WrongUse("--seat goes with --all; an id needs none")
    api = Api.find(data)
    if letter is not None:
        _requeue(api, letter)
        chosen = [letter]
    else:
        chosen = _requeue_all(api, org, seat=seat, yes=yes)
    if as_json:
        result_json({"requeued": chosen})
    elif chosen:
        note(f"{count(len(chosen), 'message is', 'messages are')} in the inbox again")
    return 0


def _requeue_all(api: Api, org: str | None, *, seat: str | None, yes: bool) -> list[int]:
    organisation = api.organisation(org)
    whose = seat or organisation.key
    chosen = [int(letter["id"]) for letter in _letters(api, organisation, seat)]
    if not chosen:
        _known(api, organisation, seat)
        note(f"{whose} has no dead letters")
        return []
    _agreed(f"Try all {count(len(chosen), 'dead letter', 'dead letters')} of {whose} again?", yes)
    done = []
    for letter in chosen:
        try:
            _requeue(api, letter)
        except Refused as refused:
            if refused.status != 404:
                raise
            note(f"left out: {refused}")
        else:
            done.append(letter)
    return done


def _agreed(question: str, yes: bool) -> None:
    if yes or confirmed(f"{question} [y/N]", "y"):
        return
    if sys.stdin.isatty():
        raise CommandFailed("nothing was done")
    raise CommandFailed("nothing was done; without a terminal to ask on, say --yes")


def _requeue(api: Api, letter: int) -> None:
    api.post(f"/internal/v1/dead-letters/{letter}:requeue", {})


def _letters(api: Api, organisation: Organisation, seat: str | None) -> Iterator[Mapping[str, Any]]:
    after = 0
    while True:
        page = api.get(
            "/internal/v1/dead-letters",
            organization=organisation.id,
            seat=seat or "",
            after=after,
            limit=PAGE,
        )["dead_letters"]
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1]["id"]


def _known(api: Api, organisation: Organisation, seat: str | None) -> str | None:
    """The seat that was named. One that is not there is told from one without dead letters."""
    if seat is not None:
        api.get(f"/internal/v1/organizations/{organisation.id}/seats/{seat}/log", limit=1)
    return seat


def _row(letter: Mapping[str, Any]) -> list[str]:
    return [
        str(letter["id"]),
        letter["recipient_seat"],
        sender(letter),
        moment(letter["created_at"]),
        str(letter["attempts"]),
        " ".join(letter.get("error", "").split()),
    ]
