"""What excuses a check that did not pass, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import Check, Ran
from tests.conformance.verdict import Exceptions, judge, judge_all

LISTED = """
generic = ["ping", "both"]

[[not_offered]]
reason = "There are no pictures."
checks = ["image", "both:picture"]

[[not_offered]]
reason = "There are no sessions."
on = ["service"]
checks = ["both:session"]
"""

GOOD = Check("works", "SUCCESS", "")
WIRE = Check("wire-schema-valid", "SUCCESS", "")


@pytest.fixture
def exceptions(tmp_path: Path) -> Exceptions:
    return listed(tmp_path, LISTED)


def listed(folder: Path, text: str) -> Exceptions:
    path = folder / "exceptions.toml"
    path.write_text(text)
    return Exceptions.read(path)


def ran(scenario: str, *checks: Check) -> Ran:
    return Ran("2026-07-28", scenario, checks)


def bad(name: str, status: str = "FAILURE") -> Check:
    return Check(name, status, "it does not work")


def test_a_scenario_whose_checks_succeed_passes(exceptions: Exceptions) -> None:
    verdict = judge("service", ran("ping", GOOD, Check("note", "INFO", ""), WIRE), exceptions)
    assert (verdict.word, verdict.passed) == ("pass", 2)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED", "NEW"])
def test_whatever_is_no_success_fails_unless_it_is_listed(
    exceptions: Exceptions, status: str
) -> None:
    verdict = judge("service", ran("ping", GOOD, bad("late", status)), exceptions)
    assert verdict.word == "FAIL"
    assert [check.id for check in verdict.failed] == ["late"]


def test_a_scenario_that_looked_at_nothing_has_not_passed(exceptions: Exceptions) -> None:
    assert judge("service", ran("ping", Check("note", "INFO", "")), exceptions).word == "FAIL"
    assert judge("service", ran("ping"), exceptions).word == "FAIL"


def test_a_listed_scenario_is_not_offered(exceptions: Exceptions) -> None:
    verdict = judge("fixtures", ran("image", bad("image"), WIRE), exceptions)
    assert verdict.word == "not offered"
    assert verdict.excused == (("image", "There are no pictures."),)


def test_a_listed_check_excuses_no_other_of_its_scenario(exceptions: Exceptions) -> None:
    assert judge("fixtures", ran("both", bad("picture"), GOOD), exceptions).word == "part"
    assert judge("fixtures", ran("both", bad("picture"), bad("works")), exceptions).word == "FAIL"


def test_a_message_against_the_schema_fails_in_a_listed_scenario_too(
    exceptions: Exceptions,
) -> None:
    wrong = bad("wire-schema-valid")
    assert judge("fixtures", ran("image", bad("image"), wrong), exceptions).failed == (wrong,)


def test_an_entry_holds_where_it_says(exceptions: Exceptions) -> None:
    session = ran("both", bad("session"), GOOD)
    assert judge("service", session, exceptions).word == "part"
    assert judge("fixtures", session, exceptions).word == "FAIL"


def test_only_scenarios_without_a_fixture_are_judged_on_the_product(
    exceptions: Exceptions,
) -> None:
    every = [ran("ping", GOOD), ran("image", bad("image")), ran("new", bad("new"))]
    judged = judge_all("service", every, exceptions)
    assert [verdict.ran.scenario for verdict in judged] == ["ping"]
    assert [verdict.word for verdict in judge_all("fixtures", every, exceptions)] == [
        "pass",
        "not offered",
        "FAIL",
    ]


def test_an_entry_that_excuses_nothing_is_named(exceptions: Exceptions) -> None:
    judge("fixtures", ran("image", bad("image")), exceptions)
    assert exceptions.unused() == ["fixtures both:picture", "service both:session"]


@pytest.mark.parametrize("reason", ['""', '"  "'])
def test_an_entry_needs_a_reason(tmp_path: Path, reason: str) -> None:
    entry = f'generic = []\n[[not_offered]]\nreason = {reason}\nchecks = ["a"]\n'
    with pytest.raises(ValueError, match="reason"):
        listed(tmp_path, entry)


def test_an_entry_stands_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="twice"):
        listed(tmp_path, LISTED + '[[not_offered]]\nreason = "So."\nchecks = ["image"]\n')


def test_the_product_s_own_list_can_be_read() -> None:
    assert Exceptions.read().generic
