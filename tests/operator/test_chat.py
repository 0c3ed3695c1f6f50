"""chat: what a person at a terminal sees, and what goes wrong for her."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadmesh.operator import chat
from tests.operator.commands import Said, started, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.terminals import Terminal, on_terminal
from tests.support.seats import Client
from tests.support.service import RunningService


def talk(lumen: Lumen, text: str = "hello\n", *words: str, wait: str = "0") -> Said:
    given = ["--user", "ada", "--token-file", lumen.token_file, "--wait", wait]
    return lumen.run("chat", *given, *words, stdin=text)


def next_message(lumen: Lumen, seat: Client, *, wait: int = 20) -> str | None:
    """What a seat gets next; it is done with it at once."""
    path = f"/v1/inbox/next?wait={wait}"
    answer = lumen.service.request("GET", path, headers=seat.headers)
    if answer.status == 204:
        return None
    delivery = answer.json()
    path = f"/v1/inbox/{delivery['delivery_id']}/ack"
    body = {"execution_id": delivery["execution_id"]}
    assert lumen.service.request("POST", path, body, headers=seat.headers).status == 204
    return str(delivery["message"]["body"])


def received(lumen: Lumen, seat: Client) -> list[str]:
    """All that waits for a seat, oldest first."""
    return list(iter(lambda: next_message(lumen, seat, wait=0) or "", ""))


def test_lines_from_a_pipe_arrive_in_order_and_blank_ones_do_not(lumen: Lumen) -> None:
    waits = "no supervisor is running: mail will wait\n"  # said once, not for every line
    assert talk(lumen, "one\n\n  \ntwo\nthree").failure == (0, waits)
    assert received(lumen, lumen.seat("rep_ada")) == ["one", "two", "three"]


def test_a_backslash_goes_on_in_the_same_message(lumen: Lumen) -> None:
    talk(lumen, "/delegate lead /task\\\n/tool clock.now\nand\\\n")
    seat = lumen.seat("rep_ada")
    assert received(lumen, seat) == ["/delegate lead /task\n/tool clock.now", "and"]


def test_what_came_meanwhile_is_printed_and_is_no_answer_to_what_is_said_now(lumen: Lumen) -> None:
    seat = lumen.seat("rep_ada")
    lumen.says(seat, "from before")
    said = talk(lumen, wait="1")
    assert said.code == 0
    assert said.out == "representative> from before\n"
    assert said.err.startswith("no answer yet to 1 message;")


@contextlib.contextmanager
def answering(lumen: Lumen, text: str) -> Iterator[None]:
    """Ada's representative answers the next message."""
    seat = lumen.seat("rep_ada")

    def answer() -> None:
        next_message(lumen, seat)
        lumen.says(seat, text)

    thread = threading.Thread(target=answer)
    thread.start()
    yield
    thread.join()


def test_an_answer_is_printed_and_ends_the_waiting(lumen: Lumen) -> None:
    with answering(lumen, "I see\nyou"):
        said = talk(lumen, wait="20")
    assert (said.code, said.out, said.err) == (0, "representative> I see\nyou\n", "")


def test_nothing_in_an_answer_steers_the_terminal(lumen: Lumen) -> None:
    with answering(lumen, "\x1b]0;title\x07\x1b[31mred\x1b[0m\x08\x9b2J plain\r"):
        said = talk(lumen, wait="20")
    assert said.out == "representative> red plain\n"


def test_a_wrong_token_is_explained_before_anything_is_sent(lumen: Lumen) -> None:
    said = lumen.run("chat", "--user", "ada", "--token", "wrong", stdin="hello\n")
    code, words = said.failure
    assert code == 1
    assert "token is of no user of the connection chat of lumen" in words
    assert "--token-file" in words
    assert words.count("\n") == 1


def test_the_token_may_come_from_the_environment(
    lumen: Lumen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_TERMINAL_TOKEN", lumen.token)
    assert lumen.run("chat", "--user", "ada", "--wait", "0", stdin="hello\n").code == 0
    assert received(lumen, lumen.seat("rep_ada")) == ["hello"]


@pytest.mark.parametrize(
    ("user", "words"),
    [("adda", "lumen has no terminal binding for adda. Did you mean ada?"), ("bob", "are: ada.")],
)
def test_an_unknown_person_gets_the_nearest_or_all(lumen: Lumen, user: str, words: str) -> None:
    code, said = lumen.run("chat", "--user", user, "--token", "x", stdin="hello\n").failure
    assert code == 1
    assert words in said


def test_an_unknown_connection_gets_those_there_are(lumen: Lumen) -> None:
    code, said = talk(lumen, "hello\n", "--connection", "phone").failure
    assert code == 1
    assert "ada has no terminal connection phone. There are: chat." in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("tokens", "is not a JSON object of users and tokens"),
        ('["ada"]', "is not a JSON object of users and tokens"),
        ('{"adda": "x"}', "has no token for ada. Did you mean adda?"),
    ],
)
def test_a_file_of_tokens_that_has_none_for_her_is_explained(
    lumen: Lumen, tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "tokens.json"
    if content is not None:
        file.write_text(content)
    said = lumen.run("chat", "--user", "ada", "--token-file", str(file), stdin="hello\n")
    assert said.failure[0] == 1
    assert f"steadmesh: {file}" in said.err
    assert words in said.err


def test_without_a_token_it_says_how_to_give_one(lumen: Lumen) -> None:
    code, said = lumen.run("chat", "--user", "ada", stdin="hello\n").failure
    assert code == 1
    assert "STEADMESH_TERMINAL_TOKEN" in said
    assert "--token-file" in said


def test_a_text_that_is_too_long_is_not_sent_and_ends_a_pipe(lumen: Lumen) -> None:
    code, said = talk(lumen, "a" * 65_537 + "\nlater\n").failure
    assert code == 1
    assert "not sent: text: is 65537 bytes long" in said
    assert received(lumen, lumen.seat("rep_ada")) == []


def test_her_own_token_is_enough_where_organisation_and_connection_are_named(
    lumen: Lumen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADMESH_URL", lumen.service.url)
    words = ["chat", "--user", "ada", "--token", lumen.token, "--wait", "0"]
    code, said = steadmesh(*words, stdin="hello\n").failure
    assert code == 1
    assert "--org and --connection" in said
    assert steadmesh(*words, "--org", "lumen", "--connection", "chat", stdin="hi\n").code == 0
    assert received(lumen, lumen.seat("rep_ada")) == ["hi"]


def test_a_restart_in_between_loses_nothing_in_either_direction(
    example: Path, tmp_path: Path
) -> None:
    data = tmp_path / "d"
    words = ["chat", "--user", "ada", "--token-file", str(example / "secrets" / "chat.json")]
    with contextlib.ExitStack() as at_end:
        with RunningService(data=data) as service:
            lumen = Lumen(service, example)
            lumen.run("apply", lumen.file)
            seat = lumen.seat("rep_ada")
            person = at_end.enter_context(
                started(*words, "--data", str(data), "--wait", "20", home=tmp_path)
            )
            person.write("before\n")
            assert next_message(lumen, seat) == "before"
        person.write("while it was away\n")
        person.close_input()
        with RunningService(data=data) as service:
            lumen, seat.service = Lumen(service, example), service
            lumen.says(seat, "first answer")
            assert next_message(lumen, seat) == "while it was away"
            lumen.says(seat, "second answer")
            said = person.wait()
    assert said.code == 0
    assert said.out == "representative> first answer\nrepresentative> second answer\n"


def test_a_token_that_stops_counting_in_the_middle_ends_the_chat(lumen: Lumen) -> None:
    service = lumen.service
    words = ["chat", "--user", "ada", "--token", lumen.token, "--data", str(service.data)]
    with started(*words, home=lumen.folder) as person:
        person.write("hello\n")
        seat = lumen.seat("rep_ada")
        assert next_message(lumen, seat) == "hello"
        Path(lumen.token_file).write_text(json.dumps({"ada": "another-token-of-some-length"}))
        person.write("again\n")
        said = person.wait()
    assert said.code == 1
    assert "not sent: This token is of no user" in said.err


def test_characters_that_are_none_are_replaced(lumen: Lumen) -> None:
    words = ["chat", "--user", "ada", "--token", lumen.token, "--wait", "0"]
    with started(*words, "--data", str(lumen.service.data), home=lumen.folder) as person:
        stdin = person.input_of_bytes()
        stdin.write(b"caf\xe9\n")
        stdin.close()
        assert person.wait().code == 0
    assert received(lumen, lumen.seat("rep_ada")) == ["caf\ufffd"]


def test_messages_are_put_together_from_lines() -> None:
    assert list(chat.messages(["a\\\n", "b\n", " \n", "c\n", "d\\\n", "\\\n"])) == [
        "a\nb",
        "c",
        "d\n",
    ]


def test_a_script_reads_what_happens_as_json(lumen: Lumen) -> None:
    seat = lumen.seat("rep_ada")
    lumen.says(seat, "from before")
    said = talk(lumen, "hello\n", "--json", wait="0")
    events = [json.loads(line) for line in said.out.splitlines()]
    assert [event["event"] for event in events if event["event"] != "remark"].count("sent") == 1
    assert events[0]["event"] == "talk"
    assert events[0]["user"] == "ada"
    [sent] = [event for event in events if event["event"] == "sent"]
    assert sent["text"] == "hello"
    assert len(sent["id"]) == 32
    [said_before] = [event for event in events if event["event"] == "said"]
    assert (said_before["text"], said_before["origin"]) == ("from before", "representative")


def test_the_last_lines_are_shown_on_request_both_directions(lumen: Lumen) -> None:
    seat = lumen.seat("rep_ada")
    talk(lumen, "one\ntwo\n")
    lumen.says(seat, "an answer")
    talk(lumen, "", wait="1")
    said = talk(lumen, "", "--last", "2")
    words = [line.partition("] ")[2] for line in said.out.splitlines()]
    assert words == ["you> two", "representative> an answer"]


def typed(lumen: Lumen, *words: str) -> contextlib.AbstractContextManager[Terminal]:
    given = ["--user", "ada", "--token-file", lumen.token_file, "--data", str(lumen.service.data)]
    return on_terminal("chat", *given, *words, home=lumen.folder)


def test_a_terminal_shows_names_and_what_was_said_before(lumen: Lumen) -> None:
    seat = lumen.seat("rep_ada")
    talk(lumen, "good morning\n")
    with typed(lumen, "--wait", "0") as terminal:
        place = terminal.until_shows("good morning")
        place = terminal.until_shows("earlier", after=place)
        place = terminal.until_shows("ada>", after=place)
        lumen.says(seat, "good morning, Ada")
        terminal.until_shows("good morning, Ada", after=place)
        terminal.presses(b"\x04")
        assert terminal.wait() == 0


def test_a_paste_of_several_lines_is_one_message(lumen: Lumen) -> None:
    seat = lumen.seat("rep_ada")
    with typed(lumen, "--wait", "0") as terminal:
        terminal.until_shows("ada>")
        terminal.presses(b"\x1b[200~/task\n/tool clock.now\x1b[201~")
        terminal.presses(b"\r")
        assert next_message(lumen, seat) == "/task\n/tool clock.now"
        terminal.presses(b"\x04")
        assert terminal.wait() == 0


def test_ctrl_c_ends_the_talk_without_a_traceback(lumen: Lumen) -> None:
    with typed(lumen) as terminal:
        terminal.until_shows("ada>")
        terminal.presses(b"\x03")
        assert terminal.wait() == 130
        assert "Traceback" not in terminal.written
