"""Reading the fake harness's script language."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadmesh.kernel import durations
from steadmesh.runner.harness.fake import _script


def words_of(body: str) -> list[tuple[str, str]]:
    return [(c.word, c.argument) for c in _script.commands_in(_script.lines_of(body))]


def test_prose_is_ignored_once_there_is_a_command() -> None:
    assert words_of("please\n/claim done\nthank you") == [("claim", "done")]


def test_an_indented_command_is_a_command_and_windows_line_ends_do_not_matter() -> None:
    assert words_of("\t /sleep  10ms \r\n  /claim\tit works\r\n") == [
        ("sleep", "10ms"),
        ("claim", "it works"),
    ]


def test_a_command_knows_the_lines_after_it() -> None:
    first = _script.commands_in(_script.lines_of("/delegate lead /task\n  /tool clock.now\nbye"))[0]
    assert first.following == ("/tool clock.now", "bye")
    assert _script.delegation_text("/task", first.following) == "/task\n/tool clock.now\nbye"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("/task", ("",)),
        ("/task /tool clock.now", ("/tool clock.now",)),
        ("/task\tgo\n /claim x", ("go", "/claim x")),
        ("/tasks", None),
        ("do /task", None),
        ("", None),
    ],
)
def test_a_body_is_a_task_when_it_starts_with_the_word(
    body: str, lines: tuple[str, ...] | None
) -> None:
    assert _script.task_in(body) == lines


def test_a_cut_counts_bytes_and_splits_no_character() -> None:
    assert _script.cut("äöü", 5) == "äö"
    assert _script.cut("äöü", 6) == "äöü"
    assert _script.cut("a" * 300, 200) == "a" * 200


def test_a_long_sleep_is_cut_to_ten_minutes() -> None:
    assert _script.sleep_length("2h") == 10 * durations.MINUTE
    assert _script.sleep_length("1.5s") == 1_500_000_000


@pytest.mark.parametrize("text", ["", "-1s", "soon", "1d"])
def test_a_bad_sleep_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        _script.sleep_length(text)


@pytest.mark.parametrize("path", ["../../x", "/x", "a/../../x", "./x", "x"])
def test_every_path_lies_in_the_workspace(path: str, tmp_path: Path) -> None:
    assert _script.confined(tmp_path, path) == tmp_path.resolve() / "x"


def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "out").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="leads out"):
        _script.confined(workspace, "out/secret")
