"""What every command has in common: exit statuses, streams, and no traceback."""

from __future__ import annotations

import io
import os
import signal
import subprocess
from pathlib import Path

import pytest

from steadmesh import __version__
from steadmesh.kernel.text import for_terminal
from steadmesh.operator import api, terminal
from steadmesh.operator.trouble import CommandFailed, WrongUse, explained
from tests.operator.commands import PROGRAM, Screen, environment, run, steadmesh
from tests.test_documentation import commands


def raising(problem: BaseException) -> int:
    def command() -> None:
        raise problem

    return explained(command)


def test_the_version_is_a_result(tmp_path: Path) -> None:
    assert steadmesh("--version").out == f"steadmesh {__version__}\n"
    assert run("--version", home=tmp_path).out == f"steadmesh {__version__}\n"


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    said = steadmesh(*words, "--help")
    assert said.code == 0
    assert "Example: steadmesh" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("serve", "--prot", "1"),
        ("serve", "--port", "many"),
        ("quickstart",),
        ("chat",),
        ("status", "extra"),
        ("seat", "walk"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_status_2_and_said_on_stderr(words: tuple[str, ...]) -> None:
    code, said = steadmesh(*words).failure
    assert code == 2
    assert said != ""


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("status", "--watch"),
        ("logs", "lead"),
        ("dead-letters", "list"),
        ("dead-letters", "show", "1"),
        ("dead-letters", "requeue", "1"),
        ("suspend", "lead"),
        ("resume", "lead"),
        ("delete", "lumen", "--yes"),
        ("token", "lead"),
        ("supervise",),
        ("seat", "run", "lead", "ls"),
        ("chat", "--user", "ada", "--token", "x"),
    ],
    ids=" ".join,
)
def test_without_a_service_every_command_says_how_to_start_one(words: tuple[str, ...]) -> None:
    code, said = steadmesh(*words, "--data", "nowhere").failure
    assert code == 1
    assert said.startswith("steadmesh: no service runs on the data directory ")
    assert "steadmesh serve --data " in said


def test_a_wrong_address_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADMESH_URL", "somewhere")
    assert "STEADMESH_URL: 'somewhere' is not a service address" in steadmesh("status").err


def test_a_mistake_of_ours_is_one_sentence_and_the_traceback_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert raising(ZeroDivisionError("oh")) == 1
    said = capsys.readouterr().err
    assert said.startswith("steadmesh: this is a mistake in steadmesh: ZeroDivisionError: oh.")
    assert said.count("\n") == 1
    monkeypatch.setenv("STEADMESH_DEBUG", "1")
    assert raising(ZeroDivisionError("oh")) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (CommandFailed("no"), 1),
        (WrongUse("no"), 2),
        (KeyboardInterrupt(), 130),
        (SystemExit(7), 7),
        (SystemExit(None), 0),
        (FileNotFoundError(2, "No such file", "a.yaml"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_how_a_command_ends_is_its_exit_status(problem: BaseException, code: int) -> None:
    assert raising(problem) == code


def test_a_file_that_fails_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    raising(PermissionError(13, "Permission denied", "a.yaml"))
    assert capsys.readouterr().err == "steadmesh: a.yaml: Permission denied\n"


def test_a_reader_that_goes_away_is_no_mistake(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, "config"],
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        env=environment(tmp_path),
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 1


def test_a_terminal_that_lacks_a_character_gets_it_escaped(tmp_path: Path) -> None:
    variables = {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*PROGRAM, "check", "caf\u00e9.yaml"],
        capture_output=True,
        timeout=60,
        env=environment(tmp_path, **variables),
        check=False,
    )
    assert b"caf\\xe9.yaml: (file): " in done.stdout
    assert done.returncode == 1


def test_a_note_to_a_closed_terminal_does_not_end_us(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stderr", Closed())
    terminal.note("anybody there?")


def test_a_table_is_drawn_on_a_terminal_and_has_tabs_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, rows = ["seat", "dead", "state"], [["lead", "", "Warm"]]
    terminal.table(columns, rows)
    assert capsys.readouterr().out == "seat\tdead\tstate\nlead\t\tWarm\n"
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    terminal.table(columns, rows, title="Lumen")
    lines = [line.split() for line in for_terminal(screen.getvalue()).splitlines()]
    assert lines == [["Lumen"], ["seat", "state"], ["lead", "Warm"]]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (200_000, "2 days")],
)
def test_an_age_is_told_in_its_largest_fitting_unit(seconds: int | None, words: str) -> None:
    assert terminal.age(seconds) == words


def test_the_nearest_name_is_offered_or_all_of_them() -> None:
    assert api.nearest("lad", ["lead", "rep"]) == " Did you mean lead?"
    assert api.nearest("x", ["lead", "rep"]) == " There are: lead, rep."
    assert api.nearest("x", []) == ""


def test_ctrl_c_while_the_commands_are_loaded_ends_the_program_without_a_word(
    tmp_path: Path,
) -> None:
    script = (
        "import os, signal, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'steadmesh.operator.main':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from steadmesh.operator.program import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [PROGRAM[0], "-P", "-c", script],
        capture_output=True,
        timeout=60,
        env=environment(tmp_path),
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_the_program_runs_the_command_that_was_typed(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM[0], "-P", "-m", "steadmesh.operator.program", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(tmp_path),
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"steadmesh {__version__}\n")


def test_what_is_asked_first_loads_neither_the_service_nor_tables(tmp_path: Path) -> None:
    """`steadmesh --version` and `steadmesh status` are answered in a blink."""
    heavy = ("steadmesh.service", "steadmesh.seats", "apsw", "psycopg", "uvicorn", "rich.table")
    script = (
        "import sys; sys.argv = ['steadmesh', *sys.argv[1:]]\n"
        "from steadmesh.operator.trouble import explained\n"
        "from steadmesh.operator.main import app\n"
        "explained(app)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    for words in (["--version"], ["status", "--data", "nowhere"]):
        done = subprocess.run(
            [PROGRAM[0], "-P", "-c", script, *words],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(tmp_path),
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "[]"
