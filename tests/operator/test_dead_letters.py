"""dead-letters: list, show, requeue."""

from __future__ import annotations

import json
from unittest import mock

import pytest

from tests.operator.commands import Said, steadmesh
from tests.operator.conftest import Lumen
from tests.operator.turns import dead_letter


def run(lumen: Lumen, *words: str, stdin: str = "") -> Said:
    return steadmesh("dead-letters", *words, "--data", str(lumen.service.data), stdin=stdin)


def listed(lumen: Lumen) -> list[int]:
    return [letter["id"] for letter in json.loads(run(lumen, "list", "--json").out)]


def test_a_dead_letter_is_listed_with_who_wrote_it_and_why_it_failed(lumen: Lumen) -> None:
    number = dead_letter(lumen, error="no\npaper")
    header, row = run(lumen, "list").out.splitlines()
    assert header.split("\t") == ["id", "seat", "from", "written", "attempts", "error"]
    cells = row.split("\t")
    assert [*cells[:3], *cells[4:]] == [str(number), "rep_ada", "ada", "5", "no paper"]
    assert run(lumen, "list", "--seat", "rep_ada").out == run(lumen, "list").out


def test_a_seat_without_dead_letters_is_told_from_one_that_is_not_there(lumen: Lumen) -> None:
    dead_letter(lumen)
    said = run(lumen, "list", "--seat", "lead")
    assert (said.code, len(said.out.splitlines())) == (0, 1)
    assert said.err == "lead has no dead letters\n"
    code, words = run(lumen, "list", "--seat", "leed").failure
    assert (code, "no seat leed" in words) == (1, True)


def test_a_dead_letter_is_shown_with_its_text_and_how_to_try_it_again(lumen: Lumen) -> None:
    number = dead_letter(lumen, "print \x1b[31mit")
    said = run(lumen, "show", str(number))
    assert said.out.endswith("\n\nprint it\n")
    assert "from          ada\n" in said.out
    assert said.err == f"try it again: steadmesh dead-letters requeue {number}\n"
    assert json.loads(run(lumen, "show", str(number), "--json").out)["id"] == number


def test_one_that_is_not_there_is_said_to_be_so(lumen: Lumen) -> None:
    for word in ("show", "requeue"):
        code, words = run(lumen, word, "77").failure
        assert code == 1
        assert "There is no dead letter 77" in words


def test_requeueing_one_puts_it_back_into_its_inbox(lumen: Lumen) -> None:
    number = dead_letter(lumen)
    assert run(lumen, "requeue", str(number)).code == 0
    assert listed(lumen) == []
    seats = json.loads(lumen.run("status", "--json").out)["seats"]
    assert next(s for s in seats if s["seat"] == "rep_ada")["pending_messages"] == 1


def test_requeueing_all_asks_first_and_does_nothing_without_an_answer(lumen: Lumen) -> None:
    numbers = [dead_letter(lumen, text) for text in ("one", "two")]
    code, words = run(lumen, "requeue", "--all").failure
    assert (code, "say --yes" in words) == (1, True)
    with mock.patch("steadmesh.operator.dead_letters.confirmed", return_value=False) as asked:
        assert run(lumen, "requeue", "--all").code == 1
    assert asked.call_args.args[0] == "Try all 2 dead letters of lumen again? [y/N]"
    assert listed(lumen) == numbers
    said = run(lumen, "requeue", "--all", "--yes", "--json")
    assert json.loads(said.out) == {"requeued": numbers}
    assert listed(lumen) == []


def test_requeueing_all_of_a_seat_leaves_those_of_others(lumen: Lumen) -> None:
    number = dead_letter(lumen)
    assert run(lumen, "requeue", "--all", "--seat", "lead", "--yes").code == 0
    assert listed(lumen) == [number]


@pytest.mark.parametrize(
    "words", [(), ("1", "--all"), ("1", "--seat", "lead"), ("one",)], ids=" ".join
)
def test_it_has_to_be_said_what_is_requeued(lumen: Lumen, words: tuple[str, ...]) -> None:
    assert run(lumen, "requeue", *words).failure[0] == 2
