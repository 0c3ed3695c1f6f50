"""Options that several commands have, said once."""

from __future__ import annotations

from typing import Annotated

import typer

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="Data directory [STEADMESH_DATA, ~/.steadmesh]."),
]
Org = Annotated[
    str | None,
    typer.Option("--org", metavar="KEY", help="Which organisation, if the service has several."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="The organisation file.")]
Seat = Annotated[str, typer.Argument(metavar="SEAT", help="Key of the seat.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Host = Annotated[
    str | None, typer.Option(help="Address to listen on; anything but loopback needs a secret.")
]
Port = Annotated[int | None, typer.Option(help="Port [3777]; 0 takes any free one.")]
Database = Annotated[
    str | None,
    typer.Option(metavar="URL", help="PostgreSQL URL without a password; default is SQLite."),
]


def leave(status: int) -> None:
    """End a command with its exit status."""
    if status:
        raise typer.Exit(status)
