"""Where a seat's files lie."""

from __future__ import annotations

from pathlib import Path

from steadmesh.runner.places import SeatPlaces


def test_a_seat_works_in_a_workspace_of_its_own(tmp_path: Path) -> None:
    places = SeatPlaces(tmp_path / "one")
    places.make()
    assert places.workspace == tmp_path / "one" / "workspace"
    assert places.workspace.is_dir()


def test_a_seat_that_adopted_another_goes_on_in_its_workspace(tmp_path: Path) -> None:
    before = SeatPlaces(tmp_path / "old")
    before.make()
    before.workspace.joinpath("plan.md").write_text("kept")
    after = SeatPlaces(tmp_path / "new", workspace_of="old")
    after.make()
    assert after.workspace.joinpath("plan.md").read_text() == "kept"
    assert after.home == tmp_path / "new" / "home"


def test_a_workspace_that_never_was_is_made(tmp_path: Path) -> None:
    places = SeatPlaces(tmp_path / "new", workspace_of="elsewhere")
    places.make()
    assert places.workspace.is_dir()
