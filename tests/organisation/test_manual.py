"""The page about the organisation file says what the program does."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from steadmesh.seats.organisation import ADAPTERS, HARNESSES, compile, read_text
from steadmesh.seats.organisation import _declared as declared

PAGE = (Path(__file__).parents[2] / "docs" / "organisation-file.md").read_text(encoding="utf-8")
NAMED = {name for span in re.findall(r"`([^`\n]+)`", PAGE) for name in re.findall(r"[\w.-]+", span)}
RECORDS = [record for record in vars(declared).values() if dataclasses.is_dataclass(record)]


def test_its_example_is_a_valid_organisation() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    document = read_text(example.replace("<digest>", "0" * 64))
    seats = compile(document.data, line_of=document.line_of).seats
    assert sorted(seats) == ["builder", "lead", "rep_ada"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.__name__))
def test_it_names_every_field(record: type) -> None:
    fields = {field.name.rstrip("_") for field in dataclasses.fields(record)}
    assert fields - NAMED == set()


def test_it_names_every_adapter_with_its_operations_and_every_harness_with_its_settings() -> None:
    for adapter in ADAPTERS.values():
        assert {adapter.name, *adapter.operations, *adapter.apis} - NAMED == set()
    for harness in HARNESSES.values():
        assert {harness.name, *harness.settings, *harness.capabilities} - NAMED == set()
