"""`steadmesh-tools call` and `list`: what is printed where, and the exit codes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from steadmesh import __version__
from tests.client.double import Asked, Double, answer
from tests.client.programs import LIMIT, PROGRAM, SeatFiles, run_tools


def test_s6_a_tool_that_did_it_exits_0_with_its_content_as_json(seat: SeatFiles) -> None:
    """S-6: the good case beside the bad ones."""
    done = seat.run("call", "clock.now", '{"timezone": "Europe/Paris"}')
    assert done.returncode == 0
    assert done.stdout == b'{"now":"noon","arguments":{"timezone":"Europe/Paris"}}\n'
    assert done.stderr == b""


def test_s6_a_tool_error_exits_1_with_json_on_stdout(seat: SeatFiles) -> None:
    """S-6."""
    done = seat.run("call", "fail")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "invalid"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "Expecting property name enclosed in double quotes at line 1 column 2"),
        ('{"a": 1,\n "b" 2}', "at line 2 column 6"),
        ('{"quoted": "NaN", "a": NaN}', "NaN at line 1 column 24"),
        ('{"a": [-Infinity]}', "-Infinity at line 1 column 8"),
        ("[1]", "a list, at line 1 column 1; they must be an object"),
        ('"x"', "a string"),
        ("{} {}", "Extra data at line 1 column 4"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5_000 + "}", "too many digits"),
        (b'{"a": "\xff"}', "not UTF-8: see byte 8"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_s6_bad_arguments_exit_2_and_say_where(
    seat: SeatFiles, service: Double, arguments: str | bytes, said: str
) -> None:
    """S-6: nothing is sent, and nothing stands on stdout."""
    done = seat.run("call", "clock.now", os.fsdecode(arguments))
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert service.asked == []


def test_s6_an_unreachable_platform_exits_3(local_seat: SeatFiles, local_service: Double) -> None:
    """S-6: after the retries, here cut short by an answer that no retry mends."""
    local_service.stop()
    with Double(lambda asked: b"SSH-2.0-OpenSSH\r\n", unix=local_service.unix):
        done = local_seat.run("call", "clock.now")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "it does not speak HTTP" in done.stderr.decode()


def test_s6_a_fenced_call_exits_4(seat: SeatFiles) -> None:
    """S-6: the service's text tells an agent to stop."""
    seat.generation.write_text("6")
    done = seat.run("call", "messages.send", "{}")
    assert (done.returncode, done.stdout) == (4, b"")
    assert "Stop now: the generation is stale." in done.stderr.decode()


def test_a_conflict_is_not_a_fence(seat: SeatFiles) -> None:
    with Double(lambda asked: answer(409, {"code": "conflict", "message": "Held."})) as other:
        seat.environ["STEADMESH_PLATFORM_URL"] = other.url
        assert seat.run("call", "x").returncode == 3


def test_an_http_error_exits_3_with_its_text(seat: SeatFiles) -> None:
    done = seat.run("call", "no.such")
    assert (done.returncode, done.stdout) == (3, b"")
    assert "HTTP 404 not_found: There is no tool no.such." in done.stderr.decode()


def test_a_refused_token_exits_3_and_is_not_shown(seat: SeatFiles) -> None:
    seat.token.write_text("sms_wrong_and_secret")
    done = seat.run("call", "clock.now")
    assert done.returncode == 3
    assert b"sms_wrong" not in done.stderr


def test_a_call_without_a_token_file_says_that_it_is_not_set(seat: SeatFiles) -> None:
    del seat.environ["STEADMESH_TOKEN_FILE"]
    done = seat.run("call", "clock.now")
    assert done.returncode == 3
    assert "STEADMESH_TOKEN_FILE is not set" in done.stderr.decode()


@pytest.mark.parametrize("content", [None, "", "two words", "caf\u00e9"])
def test_a_token_file_without_a_token_exits_2(seat: SeatFiles, content: str | None) -> None:
    seat.token.unlink() if content is None else seat.token.write_text(content)
    done = seat.run("call", "clock.now")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "STEADMESH_TOKEN_FILE" in done.stderr.decode()
    assert "words" not in done.stderr.decode()


def test_no_address_exits_2_and_names_the_variable(seat: SeatFiles) -> None:
    del seat.environ["STEADMESH_PLATFORM_URL"]
    done = seat.run("list")
    assert done.returncode == 2
    assert "STEADMESH_PLATFORM_URL is not set" in done.stderr.decode()


def test_the_other_variable_for_the_address_counts_too(seat: SeatFiles, service: Double) -> None:
    del seat.environ["STEADMESH_PLATFORM_URL"]
    seat.environ["STEADMESH_URL"] = service.url
    assert seat.run("list").returncode == 0


def test_a_password_in_the_address_is_refused_and_not_shown(seat: SeatFiles) -> None:
    seat.environ["STEADMESH_PLATFORM_URL"] = "http://user:hunter2@127.0.0.1:1"
    done = seat.run("list")
    assert done.returncode == 2
    assert b"hunter2" not in done.stderr


def test_arguments_may_come_from_standard_input(seat: SeatFiles) -> None:
    done = seat.run("call", "clock.now", "-", stdin='\ufeff{"a": "é"}\n'.encode())
    assert json.loads(done.stdout)["arguments"] == {"a": "é"}


def test_the_output_is_utf8_in_any_locale(seat: SeatFiles) -> None:
    done = run_tools("call", "clock.now", '{"a": "é"}', environ={**seat.environ, "LC_ALL": "C"})
    assert "é".encode() in done.stdout


def test_more_than_4_mib_on_standard_input_exits_2(seat: SeatFiles, service: Double) -> None:
    done = seat.run("call", "clock.now", "-", stdin=b'{"a":"' + b"x" * 4_194_304 + b'"}')
    assert (done.returncode, done.stdout) == (2, b"")
    assert "more than 4194304 bytes" in done.stderr.decode()
    assert service.asked == []


def test_absent_and_null_arguments_are_an_empty_object(seat: SeatFiles, service: Double) -> None:
    assert seat.run("call", "clock.now").returncode == 0
    assert seat.run("call", "clock.now", "null").returncode == 0
    assert [one.json for one in service.asked] == [{"arguments": {}}] * 2


def test_arguments_go_out_as_they_were_written(seat: SeatFiles, service: Double) -> None:
    """Numbers keep their digits: the service reads them, not the client."""
    seat.run("call", "clock.now", '{"a": 1.10, "b": 123456789012345678901234567890}')
    assert b"1.10" in service.asked[0].body
    assert b"123456789012345678901234567890" in service.asked[0].body


def test_c1_dots_and_underscores_both_go_out_as_given(seat: SeatFiles, service: Double) -> None:
    """C1: the service takes both spellings."""
    assert seat.run("call", "clock.now").returncode == 0
    assert seat.run("call", "clock_now").returncode == 0
    assert [one.path for one in service.asked] == ["/v1/tools/clock.now", "/v1/tools/clock_now"]


def test_a_strange_name_stays_one_segment_of_the_path(seat: SeatFiles, service: Double) -> None:
    seat.run("call", "../é?x")
    assert service.asked[0].path == "/v1/tools/..%2F%C3%A9%3Fx"


def test_generation_and_execution_are_sent(seat: SeatFiles, service: Double) -> None:
    seat.execution.write_text("e1\n")
    seat.run("call", "clock.now")
    assert service.asked[0].headers["x-steadmesh-generation"] == "7"
    assert service.asked[0].headers["x-steadmesh-execution"] == "e1"


def test_variables_beat_the_files(seat: SeatFiles, service: Double) -> None:
    seat.environ |= {"STEADMESH_GENERATION": "9", "STEADMESH_EXECUTION": "e2"}
    seat.run("call", "clock.now")
    assert service.asked[0].headers["x-steadmesh-generation"] == "9"
    assert service.asked[0].headers["x-steadmesh-execution"] == "e2"


def test_an_empty_or_missing_file_sends_no_header(seat: SeatFiles, service: Double) -> None:
    seat.generation.unlink()
    seat.run("call", "clock.now")
    assert "x-steadmesh-generation" not in service.asked[0].headers
    assert "x-steadmesh-execution" not in service.asked[0].headers


def test_every_call_has_an_idempotency_key_of_its_own(seat: SeatFiles, service: Double) -> None:
    seat.run("call", "clock.now")
    seat.run("call", "clock.now")
    first, second = (one.headers["idempotency-key"] for one in service.asked)
    assert first != second
    assert all(len(key) <= 200 and key.isascii() and key.isalnum() for key in (first, second))


def test_list_prints_the_descriptors_as_indented_json(seat: SeatFiles) -> None:
    done = seat.run("list")
    assert done.returncode == 0
    assert json.loads(done.stdout)[0]["name"] == "clock.now"
    assert b'\n    "name"' in done.stdout


def test_list_takes_a_list_inside_an_object_too(seat: SeatFiles) -> None:
    with Double(lambda asked: answer(200, {"tools": []})) as other:
        seat.environ["STEADMESH_PLATFORM_URL"] = other.url
        assert seat.run("list").stdout == b"[]\n"


@pytest.mark.parametrize("body", [[], {"is_error": True}, None])
def test_an_answer_that_is_no_result_exits_3(seat: SeatFiles, body: object) -> None:
    with Double(lambda asked: answer(200, body)) as other:
        seat.environ["STEADMESH_PLATFORM_URL"] = other.url
        assert seat.run("call", "x").returncode == 3


@pytest.mark.parametrize("word", ["help", "-h", "--help"])
def test_help_exits_0_without_an_environment(word: str) -> None:
    done = run_tools(word, environ={})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"usage: steadmesh-tools call NAME")


def test_the_version_is_printed() -> None:
    assert run_tools("--version", environ={}).stdout.decode().split()[1] == __version__


@pytest.mark.parametrize(
    "words", [(), ("call",), ("call", ""), ("call", "a", "{}", "x"), ("list", "x"), ("serve",)]
)
def test_c14_wrong_usage_exits_2_with_nothing_on_stdout(words: tuple[str, ...]) -> None:
    """C14: a program that reads JSON must never find usage text in it."""
    done = run_tools(*words, environ={})
    assert (done.returncode, done.stdout) == (2, b"")
    assert "usage: steadmesh-tools" in done.stderr.decode()


def test_control_sequences_of_an_error_do_not_reach_the_terminal(seat: SeatFiles) -> None:
    with Double(lambda asked: answer(400, {"code": "invalid", "message": "\x1b[2Jx"})) as other:
        seat.environ["STEADMESH_PLATFORM_URL"] = other.url
        assert b"\x1b" not in seat.run("call", "x").stderr


def test_a_reader_that_goes_away_is_no_traceback(seat: SeatFiles) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as stdout:
        done = subprocess.run(
            [*PROGRAM, "list"],
            env=seat.environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_full_disk_exits_3_and_says_so(seat: SeatFiles, tmp_path: Path) -> None:
    """A limit of no bytes per file stands for the full disk."""
    with (tmp_path / "result").open("wb") as stdout:
        done = subprocess.run(
            [*PROGRAM, "list"],
            env=seat.environ,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        )
    assert done.returncode == 3
    assert "cannot write the result" in done.stderr.decode()


def test_an_interrupt_is_no_traceback(seat: SeatFiles) -> None:
    asked = []

    def interrupt(one: Asked) -> bytes:
        asked.append(one)
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT)
        return answer(200, {"content": None})

    with Double(interrupt) as other:
        seat.environ["STEADMESH_PLATFORM_URL"] = other.url
        process = subprocess.Popen(
            [*PROGRAM, "call", "x"], env=seat.environ, stderr=subprocess.PIPE
        )
        _, errors = process.communicate(timeout=LIMIT)
    assert (process.returncode, errors) == (130, b"")
    assert len(asked) == 1
