"""The commands with which people see and steer seats."""

from __future__ import annotations

from typing import Annotated

import typer

from steadmesh.operator.options import Data, Json, Org, Seat, Yes, leave

PANEL = "Seats and people"

app = typer.Typer(pretty_exceptions_enable=False)
letters = typer.Typer(
    help="Messages given up after five attempts: look at them, try them again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(letters, name="dead-letters", rich_help_panel=PANEL)

Letter = Annotated[int, typer.Argument(metavar="ID", help="Id of the dead letter.")]


@app.command(rich_help_panel=PANEL)
def status(
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep it up to date until Ctrl-C.")
    ] = False,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Show an organisation's seats: state, what they do, waiting mail, dead letters, and why.

    Example: steadmesh status --watch --org lumen
    """
    if watch:
        from steadmesh.operator import watch as board

        leave(board.watch(data, org, as_json=json))
        return
    from steadmesh.operator import status as table

    leave(table.status(data, org, as_json=json))


@app.command(rich_help_panel=PANEL)
def logs(
    seat: Annotated[
        str | None, typer.Argument(metavar="[SEAT]", help="Key of the seat, or its id.")
    ] = None,
    service: Annotated[
        bool, typer.Option("--service", help="The service's own log instead of a seat's.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many turns [20, at most 200], or lines of the service's log [100]."
        ),
    ] = None,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Show what a seat did, turn by turn, and why it does nothing now.

    Example: steadmesh logs lead -f
    """
    from steadmesh.operator import logs as reading
    from steadmesh.operator.trouble import WrongUse

    if service is (seat is not None):
        raise WrongUse("name a seat, or --service for the log of the service")
    if seat is None:
        leave(reading.service_log(data, follow=follow, limit=limit or 100, as_json=json))
        return
    leave(reading.seat_log(data, org, seat=seat, follow=follow, limit=limit or 20, as_json=json))


@letters.command("list")
def list_letters(
    seat: Annotated[
        str | None, typer.Option("--seat", metavar="SEAT", help="Only those of this seat.")
    ] = None,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """List dead letters, oldest first.

    Example: steadmesh dead-letters list --seat lead
    """
    from steadmesh.operator import dead_letters

    leave(dead_letters.list_letters(data, org, seat=seat, as_json=json))


@letters.command("show")
def show_letter(letter: Letter, data: Data = None, json: Json = False) -> None:
    """Show one dead letter with its text and its error.

    Example: steadmesh dead-letters show 17
    """
    from steadmesh.operator import dead_letters

    leave(dead_letters.show(data, letter=letter, as_json=json))


@letters.command("requeue")
def requeue_letters(
    letter: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="Id of the dead letter.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them; asks first.")] = False,
    seat: Annotated[
        str | None, typer.Option("--seat", metavar="SEAT", help="With --all: those of this seat.")
    ] = None,
    yes: Yes = False,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Put dead letters back into their inbox, with five fresh attempts.

    Example: steadmesh dead-letters requeue 17
    """
    from steadmesh.operator import dead_letters

    leave(
        dead_letters.requeue(
            data, org, letter=letter, seat=seat, every=every, yes=yes, as_json=json
        )
    )


@app.command(rich_help_panel=PANEL)
def suspend(
    seat: Seat,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; people see it in status.")
    ] = None,
    data: Data = None,
    org: Org = None,
) -> None:
    """Stop a seat and keep it stopped until it is resumed. Its mail waits.

    Example: steadmesh suspend lead --reason 'wrong instructions'
    """
    from steadmesh.operator import steering

    leave(steering.suspend(data, org, seat=seat, reason=reason))


@app.command(rich_help_panel=PANEL)
def resume(seat: Seat, data: Data = None, org: Org = None) -> None:
    """Let a suspended seat go on with the mail that waits for it.

    Example: steadmesh resume lead
    """
    from steadmesh.operator import steering

    leave(steering.resume(data, org, seat=seat))
