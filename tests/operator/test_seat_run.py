"""seat run: a program of one's own as a seat."""

from __future__ import annotations

import json
from pathlib import Path

from tests.operator.commands import Said, run, started, steadmesh
from tests.operator.conftest import Lumen
from tests.runner.waiting import until
from tests.support.seats import TOOLS_PROGRAM


def as_lead(lumen: Lumen, *command: str) -> Said:
    words = ["seat", "run", "lead", "--data", str(lumen.service.data), "--", *command]
    return run(*words, home=lumen.folder)


def test_a_command_has_the_seat_s_tools(lumen: Lumen) -> None:
    arguments = json.dumps({"to": "builder_one", "body": "from a person"})
    said = as_lead(lumen, str(TOOLS_PROGRAM), "call", "messages.send", arguments)
    assert said.code == 0
    assert json.loads(said.out)["recipient_pending"] == 1
    assert said.err == ""


def test_the_exit_status_is_the_command_s(lumen: Lumen) -> None:
    assert as_lead(lumen, "sh", "-c", "exit 7").code == 7
    assert as_lead(lumen, "sh", "-c", "kill -9 $$").code == 137


def test_a_program_that_is_not_there_is_named(lumen: Lumen) -> None:
    assert as_lead(lumen, "no-such-program").failure == (
        127,
        "steadmesh: no-such-program: no such program\n",
    )


def test_a_seat_that_runs_is_not_taken_from_who_has_it(lumen: Lumen) -> None:
    lumen.seat("lead")
    code, words = as_lead(lumen, "true").failure
    assert code == 2
    assert "lead runs already, as test" in words


def test_the_seat_is_free_and_the_token_void_when_the_command_has_ended(lumen: Lumen) -> None:
    token = as_lead(lumen, "sh", "-c", "cat $STEADMESH_TOKEN_FILE").out
    assert token.startswith("sms_")
    assert lumen.service.call("self", token.strip()).status == 401
    assert as_lead(lumen, "true").code == 0
    assert not list((lumen.service.data / "seats").rglob("token"))


def test_the_client_s_configuration_names_files_that_are_there_while_it_runs(
    lumen: Lumen, tmp_path: Path
) -> None:
    words = ["seat", "run", "lead", "--data", str(lumen.service.data)]
    said = steadmesh(*words, "--print-mcp")
    server = json.loads(said.out)["mcpServers"]["steadmesh"]
    assert server["args"] == ["mcp"]
    assert "sms_" not in said.out
    files = [Path(value) for name, value in server["env"].items() if name.endswith("_FILE")]
    assert not any(file.exists() for file in files)
    with started(*words, "--", "cat", home=tmp_path) as program:
        until(lambda: all(file.exists() for file in files), "the files are there")
        program.close_input()
        assert program.wait().code == 0
    assert not any(file.exists() for file in files)


def test_without_a_command_it_says_how(lumen: Lumen) -> None:
    said = steadmesh("seat", "run", "lead", "--data", str(lumen.service.data))
    assert said.failure == (
        2,
        "steadmesh: name a command to run: steadmesh seat run SEAT -- COMMAND…\n",
    )


def test_an_option_before_the_command_is_ours_and_checked() -> None:
    said = steadmesh("seat", "run", "lead", "--prnt-mcp")
    assert said.code == 2
    assert "--print-mcp" in said.err
