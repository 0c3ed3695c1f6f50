"""Instruction bundles and files of secrets, beside the organisation file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from steadmesh.seats.organisation import (
    InvalidOrganisation,
    Problem,
    absolute_secrets,
    bundle_reference,
    compile,
    read_bundles,
    read_text,
    verify_bundle,
)
from tests.organisation import sample


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The sample with all its bundles on disk."""
    folder = tmp_path / "lumen"
    (folder / "instructions").mkdir(parents=True)
    for name, text in sample.BUNDLES.items():
        (folder / "instructions" / f"{name}.md").write_text(text)
    (folder / "lumen.yaml").write_text(sample.TEXT)
    return folder / "lumen.yaml"


def read(file: Path) -> dict[str, str]:
    document = read_text(sample.TEXT)
    return read_bundles(file, compile(document.data), line_of=document.line_of)


def problems(file: Path) -> tuple[Problem, ...]:
    with pytest.raises(InvalidOrganisation) as invalid:
        read(file)
    return invalid.value.problems


def test_every_bundle_in_use_is_read_and_fits_its_reference(file: Path) -> None:
    bundles = read(file)
    used = ("culture", "base", "build", "lead", "builder", "rep")
    assert bundles == {sample.ref(name): sample.BUNDLES[name] for name in used}
    assert all(verify_bundle(ref, text) for ref, text in bundles.items())


def test_a_changed_text_does_not_fit() -> None:
    assert not verify_bundle(sample.ref("lead"), sample.BUNDLES["lead"] + " ")


def test_the_reference_of_a_bundle_is_what_the_file_wants(file: Path) -> None:
    bundle = file.parent / "instructions" / "lead.md"
    assert bundle_reference(bundle, root=file.parent) == sample.ref("lead")


def test_the_reference_of_a_file_elsewhere_is_refused(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "lead.md"
    elsewhere.write_text("x")
    with pytest.raises(InvalidOrganisation, match="lies outside"):
        bundle_reference(elsewhere, root=file.parent)


def test_a_changed_bundle_is_told_with_both_digests_and_the_command(file: Path) -> None:
    bundle = file.parent / "instructions" / "lead.md"
    bundle.write_text("new\n")
    (problem,) = problems(file)
    assert (problem.path, problem.line) == ("team_templates.build.roles.lead", 12)
    assert hashlib.sha256(b"new\n").hexdigest() in problem.message
    assert sample.ref("lead").rpartition(":")[2] in problem.message
    assert f"steadmesh bundle {bundle}" in problem.message


def test_all_missing_bundles_are_told_at_once(file: Path) -> None:
    for name in ("culture", "rep", "base"):
        (file.parent / "instructions" / f"{name}.md").unlink()
    assert [(problem.path, problem.line) for problem in problems(file)] == [
        ("culture_refs[0]", 5),
        ("seats.rep_ada.role_ref", 31),
        ("team_templates.base.instruction_refs[0]", 8),
    ]
    assert 'there is no file "instructions/culture.md"' in problems(file)[0].message


def test_a_bundle_of_a_role_that_nobody_has_is_not_read(file: Path) -> None:
    (file.parent / "instructions" / "checker.md").unlink()
    assert sample.ref("checker") not in read(file)


def test_a_link_out_of_the_folder_is_not_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text(sample.BUNDLES["lead"])
    bundle = file.parent / "instructions" / "lead.md"
    bundle.unlink()
    bundle.symlink_to(tmp_path / "secret.md")
    (problem,) = problems(file)
    assert "by a link" in problem.message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"Caf\xe9", "not UTF-8"),
        (b"a\0b", "NUL"),
        (b"x" * 1_048_577, "at most 1048576 bytes"),
    ],
    ids=["latin", "nul", "large"],
)
def test_what_is_no_text_of_bearable_size_is_refused(
    file: Path, content: bytes, words: str
) -> None:
    bundle = file.parent / "instructions" / "lead.md"
    bundle.write_bytes(content)
    (problem,) = problems(file)
    assert words in problem.message
    with pytest.raises(InvalidOrganisation, match=words):
        bundle_reference(bundle, root=file.parent)


def test_a_folder_is_no_bundle(file: Path) -> None:
    bundle = file.parent / "instructions" / "lead.md"
    bundle.unlink()
    bundle.mkdir()
    assert "is not a file" in problems(file)[0].message


DIGEST = "#sha256:" + "a" * 64


@pytest.mark.parametrize("where", ["configmap:texts/lead.md", "https://example.com/lead.md"])
def test_other_places_are_valid_but_cannot_be_read(file: Path, where: str) -> None:
    data = sample.data()
    data["seats"]["rep_ada"]["role_ref"] = where + DIGEST
    organisation = compile(data)
    with pytest.raises(InvalidOrganisation) as invalid:
        read_bundles(file, organisation)
    (problem,) = invalid.value.problems
    assert problem.path == "seats.rep_ada.role_ref"
    assert "cannot be read by this version" in problem.message


def test_secret_files_get_absolute_paths_and_nothing_else_changes(tmp_path: Path) -> None:
    data = sample.data()
    made = absolute_secrets(data, tmp_path / "lumen")
    assert data == sample.data()
    chat = made["connections"]["chat"]
    assert chat["secret_ref"] == f"file:{tmp_path}/lumen/secrets/chat.json"
    assert made["connections"]["forge"] == data["connections"]["forge"]
    assert absolute_secrets(made, tmp_path / "other") == made
    seats = compile(made).seats
    assert seats == compile(data).seats


@pytest.mark.parametrize("connections", [None, [], {"a": 1}, {"a": {"secret_ref": 1}}, {"a": {}}])
def test_malformed_connections_are_left_for_the_check(connections: Any, tmp_path: Path) -> None:
    data = {"key": "x", "connections": connections}
    assert absolute_secrets(data, tmp_path) == data
