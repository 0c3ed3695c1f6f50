"""Reading the file: YAML without surprises, and the line of everything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steadmesh.seats.organisation import (
    InvalidOrganisation,
    Problem,
    compile,
    load,
    read_text,
    render,
)
from tests.organisation import sample


def found(text: str) -> list[Problem]:
    with pytest.raises(InvalidOrganisation) as invalid:
        read_text(text)
    return list(invalid.value.problems)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "empty"),
        ("# only a comment\n", 1, "empty"),
        ("- a\n- b\n", 1, "not a list"),
        ("\n\njust text\n", 3, "not a single value"),
        ("a: 1\nb:\n\tc: 1\n", 3, "Indent with spaces"),
        ("a: 1\nb: c: d\n", 2, "in quotes"),
        ("a:\n    b: 1\n  c: 2\n", 3, "same indentation"),
        ("a: 1\nb: [1, 2\n", 2, "never closed"),
        ("a: 1\nb: 'open\nc: 2\n", 2, "never closed"),
        ("a: 1\nb: *nowhere\n", 2, "&name"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 1\nb: @here\n", 2, "Put it in quotes"),
        ("a: 1\nb: bell\x07\n", 2, "control character (U+0007)"),
        ("a: 1\nb: nul\x00\n", 2, "NUL"),
        ("a: 1\nb: \ud800\n", 2, "lone surrogate"),
        ("a: 1\nb:\n" + "- " * 2_000, 1, "deep"),
        ("a: 1\nb: " + "[ " * 40 + "]" * 40, 2, "deep"),
        ("a: 1\nb: &x [*x]\n", 2, "holds itself"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_cannot_be_read_is_told_with_its_line(text: str, line: int, words: str) -> None:
    (problem,) = found(text)
    assert (problem.path, problem.line) == ("(file)", line)
    assert words in problem.message


@pytest.mark.parametrize(
    ("text", "path", "line", "words"),
    [
        ("seats:\n  a: {}\n  b: {}\n  a: {}\n", "seats.a", 4, "twice, first in line 2"),
        ("a: 1\n2: x\n", "(file)", 2, "Put it in quotes"),
        ("a:\n  true: x\n", "a", 2, "not text"),
        ("a:\n  ? [x]\n  : y\n", "a", 2, "must be text"),
        ("a:\n  b: !secret x\n", "a.b", 2, "tag"),
        ("a: !!python/object:os.system {}\n", "a", 1, "tag"),
        ("a: !!binary aGVsbG8=\n", "a", 1, "tag"),
        ("a: !!set {x}\n", "a", 1, "tag"),
        ('a: "x\\0y"\n', "a", 1, "NUL"),
        ('a: ["x\\ud800y"]\n', "a[0]", 1, "surrogate"),
        ('"a\\0": 1\n', "(file)", 1, "NUL"),
        ("a: .nan\n", "a", 1, "no number"),
        ("a: -.inf\n", "a", 1, "no number"),
        ("a: " + "9" * 5_000 + "\n", "a", 1, "no number"),
        ("a:\n  <<: text\n", "a", 2, "takes in maps"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_value_that_json_cannot_hold_is_told_at_its_path(
    text: str, path: str, line: int, words: str
) -> None:
    (problem,) = found(text)
    assert (problem.path, problem.line) == (path, line)
    assert words in problem.message


def test_several_such_values_are_told_together() -> None:
    problems = found("b: .nan\na: !x y\nc: 1\nc: 2\n")
    assert [problem.path for problem in problems] == ["a", "b", "c"]


def test_values_are_what_json_has() -> None:
    text = (
        "a: text\nb: 12\nc: 1.5\nd: true\ne:\nf: 2026-01-31\ng: off\nh: 0x1F\ni: [1, {j: ~}]\n"
        'k: "9"\nl: 1_000\nm: 010\nn: 1e3\n'
    )
    assert read_text(text).data == {
        "a": "text",
        "b": 12,
        "c": 1.5,
        "d": True,
        "e": None,
        "f": "2026-01-31",
        "g": "off",
        "h": 31,
        "i": [1, {"j": None}],
        "k": "9",
        "l": 1000,
        "m": 10,
        "n": 1000.0,
    }


def test_aliases_and_merge_keys_save_writing() -> None:
    text = "a: &x {one: 1, two: 2}\nb: *x\nc:\n  <<: *x\n  two: 3\nd:\n  <<: [*x, {four: 4}]\n"
    data = read_text(text).data
    assert data["b"] == {"one": 1, "two": 2}
    assert data["c"] == {"one": 1, "two": 3}
    assert data["d"] == {"one": 1, "two": 2, "four": 4}


def test_aliases_cannot_blow_a_small_file_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    (problem,) = found("\n".join(lines))
    assert "Use fewer aliases" in problem.message


def test_merge_keys_cannot_blow_a_small_file_up() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
    (problem,) = found("\n".join(lines))
    assert "Use fewer aliases" in problem.message


def test_each_path_has_the_line_where_it_stands() -> None:
    document = read_text(
        "key: x\nseats:\n  lead:\n    teams:\n      - build\n      - other\n    role_ref: >-\n      r\n"
    )
    lines = {
        "key": 1,
        "seats": 2,
        "seats.lead": 3,
        "seats.lead.teams": 4,
        "seats.lead.teams[1]": 6,
        "seats.lead.role_ref": 7,
        "seats.lead.missing": 3,
        "seats.lead.teams[7]": 4,
        "missing": 1,
        "": 1,
    }
    assert {path: document.line_of(path) for path in lines} == lines


def test_problems_are_rendered_with_file_line_and_path(tmp_path: Path) -> None:
    file = tmp_path / "lumen.yaml"
    text = sample.TEXT.replace("role:lead", "role:captain").replace("Europe/Paris", "Europe/Pari")
    file.write_text(text.replace("warm_then_stop", "suspend"))
    with pytest.raises(InvalidOrganisation) as invalid:
        load(file)
    assert render(invalid.value.problems, "lumen.yaml").splitlines() == [
        "lumen.yaml:22: execution_profiles.normal.idle_policy: the process backend does not "
        "support suspend: it cannot suspend a process. Use warm_then_stop or warm",
        'lumen.yaml:33: seats.lead.role_ref: the role "captain" is not defined by a template of '
        "the seat's teams. They define builder, checker, lead, member.",
        'lumen.yaml:3: timezone: "Europe/Pari" is not a time zone name. Did you mean '
        '"Europe/Paris"?',
    ]


def test_mistakes_of_form_and_of_meaning_are_told_together(tmp_path: Path) -> None:
    file = tmp_path / "lumen.yaml"
    file.write_text(sample.TEXT.replace("role:lead", "role:captain") + "key: again\n")
    with pytest.raises(InvalidOrganisation) as invalid:
        load(file)
    assert [problem.path for problem in invalid.value.problems] == ["key", "seats.lead.role_ref"]


def test_a_good_file_is_read_and_compiled_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "lumen.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + sample.TEXT.replace("\n", "\r\n").encode())
    document, organisation = load(file)
    assert document.data == sample.data()
    assert organisation == compile(sample.data())


def unreadable(file: Path) -> Problem:
    with pytest.raises(InvalidOrganisation) as invalid:
        load(file)
    (problem,) = invalid.value.problems
    return problem


def test_a_file_that_is_not_there_is_told_without_a_line(tmp_path: Path) -> None:
    problem = unreadable(tmp_path / "none.yaml")
    assert problem.line is None
    assert "No such file" in problem.message
    assert render([problem], "none.yaml").startswith("none.yaml: (file): the file cannot be read")


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    assert "not a file" in unreadable(tmp_path).message
    os.mkfifo(tmp_path / "pipe")
    assert "not a file" in unreadable(tmp_path / "pipe").message


def test_a_file_that_is_not_utf_8_is_told_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"key: x\ndisplay_name: Caf\xe9\n")
    assert unreadable(file).line == 2
    assert "Save it as UTF-8" in unreadable(file).message


def test_a_huge_file_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "film.yaml"
    file.write_bytes(b"#" * 1_048_577)
    assert "larger than" in unreadable(file).message


WORDS = (
    "key seats a : ? - [ ] { } , &a *a << ! !!int !!map | > ' \" \\ # % @ --- ... ~ 1 "
    '0x .inf true null 1e999 2026-01-01 "\\U00110000" "\\x"'
)
SPACED = (": ", "- ", ", ", "\n", "\n  ", "\n    ", "\t", "\r", "\x00", "\x85", "\u2028")
ODD = ("\ufeff", "\ud800", "%YAML 1.1\n---\n", "%TAG ! x\n")
YAML_PIECES = st.sampled_from([*WORDS.split(), *SPACED, *ODD])


def outcome(text: str) -> tuple[Problem, ...] | None:
    """The problems of a text, None when it is a valid organisation."""
    try:
        document = read_text(text)
        compile(document.data, line_of=document.line_of)
    except InvalidOrganisation as invalid:
        return invalid.problems
    return None


@settings(deadline=None)
@given(st.lists(YAML_PIECES, max_size=30).map("".join) | st.text(max_size=60))
@example('"\\U00110000": 1')
@example("a: !<> x")
@example("a: !!int x")
@example("{{{{")
def test_no_text_raises_anything_but_its_problems(text: str) -> None:
    found = outcome(text)
    assert found is None or (found and all(problem.line for problem in found))


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, len(sample.TEXT)),
    st.integers(0, 40),
    st.lists(YAML_PIECES, max_size=2).map("".join),
)
def test_no_damage_to_a_file_raises_anything_but_its_problems(
    start: int, length: int, piece: str
) -> None:
    text = sample.TEXT[:start] + piece + sample.TEXT[start + length :]
    found = outcome(text)
    assert found is None or (found and all(problem.line for problem in found))
