"""Keeping one seat, where no whole organisation is needed to see it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from steadmesh.client.address import Operator
from steadmesh.client.http import Service
from steadmesh.runner import starts
from steadmesh.runner.control import Control
from steadmesh.runner.keeper import Keeper, SupervisorSettings
from steadmesh.runner.places import SeatPlaces
from steadmesh.runner.starts import Record, Start
from tests.runner.waiting import until

NOWHERE = "unix:/nowhere/steadmesh.sock"


def left_behind(places: SeatPlaces, *command: str, instance: str = "start-1") -> Start:
    """A start that an earlier supervisor made."""
    record = Record(
        instance,
        "s-1",
        "builder",
        config_revision="rev-1",
        began=time.time(),
        organization_id="o-1",
    )
    places.make()
    return starts.launch(
        record,
        starts.prepare(record, places.runs, "sms_token"),
        command=command,
        environment={"PATH": os.environ["PATH"]},
        directory=places.runner,
        memory_limit_bytes=None,
    )


def keeper(folder: Path, told: list[str]) -> Keeper:
    settings = SupervisorSettings([NOWHERE], "o-1", folder)
    control = Control(Operator(Service([NOWHERE])), "o-1")
    return Keeper("s-1", folder, settings, control=control, tell=told.append)


def test_a_seat_that_is_no_more_is_stopped_and_forgotten(tmp_path: Path) -> None:
    places = SeatPlaces(tmp_path)
    # A child of the runner that outlives it, as a harness that does not listen.
    start = left_behind(places, "/bin/sh", "-c", "(trap '' TERM; sleep 60) & exec sleep 60")
    told: list[str] = []
    kept = keeper(tmp_path, told)
    kept.adopt()

    def ended() -> bool:
        start.runs()  # reaps it, as the system would after its parent's death
        kept.notice_end()
        kept.step(None, view_age=0.0, may_start=False)
        return not kept.is_busy

    until(ended, "the seat is forgotten")
    assert told == ["builder found running", "builder is no more"]
    assert list(places.runs.iterdir()) == []
    assert not start.has_leftovers()


def test_a_start_that_was_recorded_but_never_made_is_not_waited_for_for_ever(
    tmp_path: Path,
) -> None:
    places = SeatPlaces(tmp_path)
    places.make()
    for instance, began in (("old", time.time() - 61), ("new", time.time())):
        record = Record(instance, "s-1", "builder", config_revision="rev-1", began=began)
        starts.prepare(record, places.runs, "sms_token")
    found = {start.record.instance: start.runs() for start in starts.found_again(places.runs)}
    assert found == {"old": False, "new": True}


def test_a_damaged_record_is_left_alone(tmp_path: Path) -> None:
    places = SeatPlaces(tmp_path)
    places.make()
    (places.runs / "x").mkdir()
    (places.runs / "x/start.json").write_text("{")
    assert starts.found_again(places.runs) == []


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("echo first >&2; echo the reason >&2; exit 1", "the reason"),
        ("exit 1", "the runner ended with 1"),
        ("exit 2", "the lease was not obtained in time"),
        ("kill -9 $$", "the runner was ended by signal 9 (SIGKILL)"),
    ],
)
def test_the_last_word_of_a_start_says_how_it_ended(script: str, word: str, tmp_path: Path) -> None:
    start = left_behind(SeatPlaces(tmp_path), "/bin/sh", "-c", script)
    until(lambda: not start.runs(), "it has ended")
    assert start.last_word() == word


def test_everything_of_a_start_is_private(tmp_path: Path) -> None:
    places = SeatPlaces(tmp_path / "seat")
    start = left_behind(places, "/bin/true")
    until(lambda: not start.runs(), "it has ended")
    for path in (places.folder, *places.folder.rglob("*")):
        if path.name != "stderr":  # it lies in a folder that is closed to others
            assert not path.stat().st_mode & 0o077, path


def test_starts_of_another_service_with_the_same_organisation_are_left_alone(
    tmp_path: Path,
) -> None:
    places = SeatPlaces(tmp_path)
    start = left_behind(places, "/bin/sleep", "60")
    try:
        assert starts.found_again(places.runs, "o-2") == []
        assert len(starts.found_again(places.runs, "o-1")) == 1
    finally:
        start.kill_everything()
        until(lambda: not start.runs(), "it has ended")
