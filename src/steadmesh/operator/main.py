"""`steadmesh`: the command of the people who run it. Commands are in modules of their own, imported
when one of them is called."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from steadmesh import __version__
from steadmesh.operator import seat_commands
from steadmesh.operator.options import Data, Database, File, Host, Json, Org, Port, Yes
from steadmesh.operator.options import leave as _leave

app = typer.Typer(
    name="steadmesh",
    help="Where AI agents work together: identity, mail, and a window for people.",
    epilog="First time here? steadmesh quickstart demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
seat_app = typer.Typer(
    help="Act as a seat by hand.", no_args_is_help=True, pretty_exceptions_enable=False
)
app.add_typer(seat_app, name="seat")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"steadmesh {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Where AI agents work together: identity, mail, and a window for people."""


# The service


@app.command(rich_help_panel="Service")
def serve(
    data: Data = None, port: Port = None, host: Host = None, database: Database = None
) -> None:
    """Run the service in the foreground. Says `listening on http://…` on stderr when it is ready.

    Example: steadmesh serve --data ./data --port 0
    """
    from steadmesh.operator import service

    _leave(service.serve({"data": data, "port": port, "host": host, "database": database}))


@app.command(rich_help_panel="Service")
def stop(data: Data = None) -> None:
    """Stop the service and wait until it has ended.

    Example: steadmesh stop --data ./data
    """
    from steadmesh.operator import service

    _leave(service.stop(data))


@app.command(rich_help_panel="Service")
def restart(data: Data = None) -> None:
    """Stop the service and start it again in the background, with the flags it had.

    Example: steadmesh restart --data ./data
    """
    from steadmesh.operator import service

    _leave(service.restart(data))


@app.command(rich_help_panel="Service")
def doctor(data: Data = None, json: Json = False) -> None:
    """Say what is right and what is wrong on this machine and with the service, and what to do.

    The exit status is 1 if anything is wrong.

    Example: steadmesh doctor --data ./data
    """
    from steadmesh.operator import doctor as examination

    _leave(examination.doctor(data, as_json=json))


@app.command(rich_help_panel="Service")
def config(data: Data = None, json: Json = False) -> None:
    """Show every setting, its value (secrets masked) and where it came from.

    Example: steadmesh config --data ./data
    """
    from steadmesh.operator import service

    _leave(service.show_config(data, as_json=json))


@app.command(rich_help_panel="Service")
def supervise(
    organisation: Annotated[
        str | None, typer.Argument(metavar="[ORG]", help="Key of the organisation.")
    ] = None,
    data: Data = None,
    org: Org = None,
) -> None:
    """Start seats when mail waits for them, and stop them when they are idle. Against any service.

    Example: steadmesh supervise lumen
    """
    from steadmesh.operator import supervision

    _leave(supervision.supervise(data, organisation or org))


@app.command(rich_help_panel="Service")
def up(
    file: File,
    data: Data = None,
    port: Port = None,
    host: Host = None,
    database: Database = None,
) -> None:
    """Serve, apply and supervise under one foreground command. Ctrl-C ends all of it.

    Example: steadmesh up demo/organisation.yaml --data demo/data
    """
    from steadmesh.operator import supervision

    flags = {"data": data, "port": port, "host": host, "database": database}
    _leave(supervision.up(file, flags))


# The organisation


@app.command(rich_help_panel="Organisation")
def quickstart(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="An empty or new folder.")],
) -> None:
    """Write the example organisation as files of your own, to edit and run.

    Example: steadmesh quickstart demo
    """
    from steadmesh.operator import quickstart as example

    _leave(example.write(folder))


@app.command(rich_help_panel="Organisation")
def bundle(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An instruction file (Markdown).")],
    root: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the organisation file [the nearest above with an organisation.yaml].",
        ),
    ] = None,
) -> None:
    """Print the reference of an instruction file with its digest.

    Example: steadmesh bundle demo/instructions/lead.md
    """
    from steadmesh.operator import organisation

    _leave(organisation.bundle(file, root))


@app.command(rich_help_panel="Organisation")
def check(file: File, json: Json = False) -> None:
    """Check an organisation file; every mistake as FILE:LINE: path: message.

    Example: steadmesh check demo/organisation.yaml
    """
    from steadmesh.operator import organisation

    _leave(organisation.check(file, as_json=json))


@app.command(rich_help_panel="Organisation")
def plan(file: File, data: Data = None, json: Json = False) -> None:
    """Show what applying the file would change, seat by seat. Nothing is written.

    Example: steadmesh plan demo/organisation.yaml
    """
    from steadmesh.operator import organisation

    _leave(organisation.plan(file, data, as_json=json))


@app.command(rich_help_panel="Organisation")
def apply(
    file: File,
    grace: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How long seats that are not declared any more may take to finish. [default: 10m]",
        ),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Put an organisation file in force. Doing it again changes nothing.

    Example: steadmesh apply demo/organisation.yaml --grace 30m
    """
    from steadmesh.operator import organisation

    _leave(organisation.apply(file, data, grace=grace, as_json=json))


@app.command(rich_help_panel="Organisation")
def verify(
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long seats may take to answer.")
    ] = "10m",
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Check connections, people's ways in, and that every seat works. Always anew; stopped seats are started.

    Exit status 1 unless the organisation is ready; the first condition that is false is named.

    Example: steadmesh verify --timeout 2m
    """
    from steadmesh.operator import verify as checks

    _leave(checks.verify(data, org, timeout=timeout, as_json=json))


@app.command(rich_help_panel="Organisation")
def delete(
    key: Annotated[str, typer.Argument(metavar="ORG", help="Key of the organisation.")],
    retention: Annotated[
        str, typer.Option(metavar="retain|delete", help="What becomes of its data.")
    ] = "retain",
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Retire an organisation with all its seats at once. Asks you to type its key.

    Example: steadmesh delete lumen --retention retain
    """
    from steadmesh.operator import steering

    _leave(steering.delete(data, key=key, retention=retention, yes=yes))


# Seats and people


app.add_typer(seat_commands.app)


@app.command(rich_help_panel="Seats and people")
def chat(
    user: Annotated[str, typer.Option("--user", "-u", metavar="U", help="Who you are.")],
    connection: Annotated[
        str | None, typer.Option(metavar="K", help="Which terminal connection, if several.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            envvar="STEADMESH_TERMINAL_TOKEN",
            help="Your token; better in the environment, where others cannot read it.",
        ),
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of tokens: the connection's secret.")
    ] = None,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for answers after the end of input.")
    ] = 5.0,
    last: Annotated[
        int | None,
        typer.Option(metavar="N", help="Show the last N lines first; 10 on a terminal, else none."),
    ] = None,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Talk to your representative in a terminal. Lines go out, answers print as they come.

    A paste of several lines is one message; Esc and Enter begins a new line. In a pipe each line is a
    message, and a backslash at its end goes on in the next.

    Example: steadmesh chat --user ada --token-file demo/secrets/chat.json --data demo/data
    """
    from steadmesh.operator import chat as talk

    credentials = talk.Credentials(token=token, token_file=token_file)
    _leave(
        talk.chat(
            data,
            org,
            user=user,
            connection=connection,
            given=credentials,
            wait=wait,
            last=last,
            as_json=json,
        )
    )


@app.command(rich_help_panel="Seats and people")
def token(
    seat: Annotated[str, typer.Argument(metavar="SEAT", help="Key of the seat.")],
    instance: Annotated[
        str, typer.Option(metavar="NAME", help="The runner instance it is bound to.")
    ] = "manual",
    ttl: Annotated[str, typer.Option(help="How long it lives.")] = "24h",
    revoke: Annotated[
        bool, typer.Option("--revoke", help="End the instance's tokens at once instead.")
    ] = False,
    data: Data = None,
    org: Org = None,
    json: Json = False,
) -> None:
    """Print a fresh identity token of a seat. Issuing again for an instance rotates it.

    Example: steadmesh token lead --ttl 2h > token
    """
    from steadmesh.operator import seats

    _leave(
        seats.token(data, org, seat=seat, instance=instance, ttl=ttl, revoke=revoke, as_json=json)
    )


@seat_app.command("run")
def seat_run(
    seat: Annotated[str, typer.Argument(metavar="SEAT", help="Key of the seat.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="What to run; put -- before it.")
    ] = None,
    print_mcp: Annotated[
        bool, typer.Option("--print-mcp", help="Print the MCP client's configuration and end.")
    ] = False,
    data: Data = None,
    org: Org = None,
) -> None:
    """Run a command as a seat: with its lease, its environment and its tools.

    No supervisor starts the seat meanwhile. The exit status is the command's;
    2 if the seat runs elsewhere, 3 if it was taken over.

    Example: steadmesh seat run lead -- bash
    """
    from steadmesh.operator import seats

    _leave(seats.run(data, org, seat=seat, command=command or [], print_mcp=print_mcp))


def main() -> None:
    """The entry point: no traceback ever reaches a person."""
    from steadmesh.operator.terminal import never_fail_on_characters
    from steadmesh.operator.trouble import explained

    never_fail_on_characters()
    sys.exit(explained(_run))


def _run() -> Any:
    return app()


if __name__ == "__main__":
    main()
