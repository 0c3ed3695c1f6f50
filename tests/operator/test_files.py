"""quickstart, check, bundle: what needs no service."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from steadmesh.operator.quickstart import write_files
from tests.operator.commands import steadmesh

WRONG = """\
key: lumen
display_name: Lumen Labs
timezone: Europe/Pariss
memory_stores: {build: {}, lead: {}}
harness_profiles:
  scripted: {adapter: fakee, image_digest: local}
execution_profiles:
  normal: {backend: process, idle_timeout: 10d}
sandbox_profiles: {standard: {}}
connections:
  chat: {adapter: terminal, secret_ref: "file:secrets/chat.json"}
seats:
  lead:
    role_ref: "file:lead.md"
    harness_profile: scripted
    execution_profile: normal
    sandbox_profile: standard
    personal_memory: led
message_routes:
  away: {from: "seat:lead", to: "seat:nobody"}
channel_bindings:
  ada: {connection: chatt, external_user_id: ada, seat: lead}
"""


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    """A file with seven mistakes."""
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    return str(file)


def test_the_example_is_a_good_file(example: Path) -> None:
    said = steadmesh("check", str(example / "organisation.yaml"))
    assert said.failure[0] == 0
    assert "good: 5 seats, 1 person" in said.err


def test_quickstart_prints_the_file_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "my lumen"
    said = steadmesh("quickstart", str(folder))
    assert said.code == 0
    assert said.out == f"{folder}/organisation.yaml\n"
    assert f"steadmesh up '{folder}/organisation.yaml' --data '{folder}/data'" in said.err
    assert f"--token-file '{folder}/secrets/chat.json'" in said.err


def test_what_is_secret_in_the_example_is_readable_by_its_owner_alone(example: Path) -> None:
    for name in ("secrets", "data"):
        assert stat.S_IMODE((example / name).stat().st_mode) == 0o700
    for name in ("secrets/chat.json", "data/steadmesh.toml"):
        assert stat.S_IMODE((example / name).stat().st_mode) == 0o600


def test_each_example_has_a_token_of_its_own(example: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "another")
    tokens = [json.loads((folder / "secrets/chat.json").read_text())["ada"]
              for folder in (example, tmp_path / "another")]  # fmt: skip
    assert len(set(tokens)) == 2
    assert min(map(len, tokens)) >= 40


@pytest.mark.parametrize("name", ["full", "full/file"])
def test_quickstart_touches_nothing_that_is_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    code, words = steadmesh("quickstart", str(tmp_path / name)).failure
    assert code == 1
    assert "is not an empty folder" in words
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["file"]


def test_quickstart_below_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, words = steadmesh("quickstart", str(tmp_path / "file" / "demo")).failure
    assert (code, words.count("\n")) == (1, 1)
    assert "Not a directory" in words


def test_seven_mistakes_are_shown_at_once_each_with_file_line_and_path(wrong: str) -> None:
    said = steadmesh("check", wrong)
    assert said.code == 1
    places = [line.removeprefix(f"{wrong}:").split(": ")[:2] for line in said.out.splitlines()]
    assert places == [
        ["22", "channel_bindings.ada.connection"],
        ["8", "execution_profiles.normal.idle_timeout"],
        ["6", "harness_profiles.scripted.adapter"],
        ["20", "message_routes.away.to"],
        ["18", "seats.lead.personal_memory"],
        ["14", "seats.lead.role_ref"],
        ["3", "timezone"],
    ]
    assert said.err == "7 mistakes\n"


def test_mistakes_as_json_are_for_programs(wrong: str) -> None:
    said = steadmesh("check", wrong, "--json")
    found = json.loads(said.out)
    assert (said.code, said.err, len(found)) == (1, "", 7)
    assert {"path", "line", "message"} == set(found[0])


def test_a_good_file_is_an_empty_list_of_mistakes(example: Path) -> None:
    said = steadmesh("check", str(example / "organisation.yaml"), "--json")
    assert (said.code, json.loads(said.out)) == (0, [])


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_a_file_that_cannot_be_read_is_a_mistake_too(tmp_path: Path, name: str) -> None:
    said = steadmesh("check", str(tmp_path / name))
    assert said.code == 1
    assert said.out.startswith(f"{tmp_path / name}: (file): ")


def test_an_edited_instruction_is_found_by_its_digest(example: Path) -> None:
    (example / "instructions" / "lead.md").write_text("Something else.\n")
    said = steadmesh("check", str(example / "organisation.yaml"))
    assert said.code == 1
    assert "organisation.yaml:" in said.out
    assert hashlib.sha256(b"Something else.\n").hexdigest() in said.out


def test_a_bundle_is_named_from_the_folder_of_its_organisation_file(
    example: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = (example / "instructions" / "lead.md").read_bytes()
    expected = f"file:instructions/lead.md#sha256:{hashlib.sha256(text).hexdigest()}\n"
    monkeypatch.chdir(tmp_path)
    file = str(example / "instructions" / "lead.md")
    assert steadmesh("bundle", file).out == expected
    assert steadmesh("bundle", file, "--root", str(example)).out == expected
    (example / "organisation.yaml").rename(example / "other.yaml")
    assert steadmesh("bundle", file).out.startswith("file:lumen/instructions/lead.md#")


@pytest.mark.parametrize(
    ("name", "words"), [("nowhere.md", "there is no such file"), ("/etc/hostname", "lies outside")]
)
def test_a_bundle_that_cannot_be_one_is_explained(example: Path, name: str, words: str) -> None:
    code, said = steadmesh("bundle", str(example / name), "--root", str(example)).failure
    assert code == 1
    assert words in said
