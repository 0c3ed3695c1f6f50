"""Keeping the claim: who may decide, as time passes and answers come."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from steadmesh.client.http import Unreachable
from steadmesh.runner.claim import Claim, Claimant
from steadmesh.runner.control import Control, Held, Rival
from steadmesh.runner.processes import own_process


class Service:
    """Answers what a test lays down, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answer: Held | Rival | Exception = Held(30.0, continued=False)
        self.replaced: list[str | None] = []
        self.ended: list[str] = []

    def claim(self, claimant: dict[str, object], *, replaces: str | None) -> Held | Rival:
        self.replaced.append(replaces)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def end_claim(self, instance: str) -> None:
        self.ended.append(instance)


class Kept:
    """A claim whose clock a test turns."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000.0
        self.changes = 0
        self.service = Service()
        self.claimant = Claimant.here(folder)
        self.claim = Claim(
            cast(Control, self.service),
            self.claimant,
            on_change=self.count,
            now=lambda: self.now,
        )

    def count(self) -> None:
        self.changes += 1

    def rival(self, **more: Any) -> Rival:
        """A supervisor of this machine with the same folder, whose process lives."""
        me = own_process()
        base = Rival("here", os.getppid(), "soon", "other", self.claimant.machine, me.started)
        return replace(base, **more)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_nothing_is_decided_before_the_claim_is_had(kept: Kept) -> None:
    assert not kept.claim.holds
    kept.claim.try_once()
    assert kept.claim.holds
    assert (kept.claim.turn, kept.changes) == (1, 1)


def test_a_claim_lasts_from_when_it_was_asked_for(kept: Kept) -> None:
    kept.claim.try_once()
    kept.now += 29.9
    assert kept.claim.holds
    kept.now += 0.1
    assert not kept.claim.holds


def test_a_renewal_is_no_new_turn_but_another_in_between_is(kept: Kept) -> None:
    kept.claim.try_once()
    kept.service.answer = Held(30.0, continued=True)
    kept.claim.try_once()
    assert (kept.claim.turn, kept.changes) == (1, 1)
    kept.service.answer = Held(30.0, continued=False)
    kept.claim.try_once()
    assert (kept.claim.turn, kept.changes) == (2, 2)


def test_a_service_that_is_away_for_a_moment_changes_nothing(kept: Kept) -> None:
    kept.claim.try_once()
    kept.service.answer = Unreachable("away")
    with pytest.raises(Unreachable):
        kept.claim.try_once()
    assert kept.claim.holds


def test_a_rival_ends_it_at_once_and_is_told_once(kept: Kept) -> None:
    kept.claim.try_once()
    kept.service.answer = kept.rival(pid=os.getpid())
    kept.claim.try_once()
    kept.claim.try_once()
    assert not kept.claim.holds
    assert kept.claim.rival == kept.service.answer
    assert kept.changes == 2


def test_a_rival_whose_process_lives_is_waited_for(kept: Kept) -> None:
    kept.service.answer = kept.rival(pid=os.getpid())
    kept.claim.try_once()
    kept.claim.try_once()
    assert kept.service.replaced == [None, None]


def test_a_rival_whose_process_is_gone_is_replaced(kept: Kept) -> None:
    kept.service.answer = kept.rival(started="long ago")
    kept.claim.try_once()
    kept.service.answer = Held(30.0, continued=False)
    kept.claim.try_once()
    assert kept.service.replaced == [None, "other"]
    assert kept.claim.holds


@pytest.mark.parametrize(
    "more", [{"machine": "elsewhere 1-1"}, {"machine": None}, {"started": None}]
)
def test_of_a_process_elsewhere_nobody_knows_that_it_is_gone(
    kept: Kept, more: dict[str, object]
) -> None:
    kept.service.answer = kept.rival(**{"started": "long ago", **more})
    kept.claim.try_once()
    kept.claim.try_once()
    assert kept.service.replaced == [None, None]


def test_a_folder_of_its_own_is_no_reason_to_wait_for_a_process_that_is_gone(kept: Kept) -> None:
    space = kept.claimant.machine.rpartition(" ")[0]
    rival = kept.rival(started="long ago", machine=f"{space} 1-1")
    assert kept.claimant.knows_gone(rival)
    assert not kept.claimant.shares_files_with(rival)


def test_only_a_claim_that_is_held_is_given_back(kept: Kept) -> None:
    kept.service.answer = kept.rival(pid=os.getpid())
    kept.claim.start()
    kept.claim.end()
    assert kept.service.ended == []


def test_a_claim_that_is_held_is_given_back(kept: Kept) -> None:
    kept.claim.try_once()
    kept.service.answer = Held(30.0, continued=True)
    kept.claim.start()
    kept.claim.end()
    assert kept.service.ended == [kept.claimant.instance]
