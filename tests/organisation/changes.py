"""Changing one thing of the sample and looking at what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from steadmesh.seats.organisation import InvalidOrganisation, Organisation, compile
from tests.organisation import sample


class _Gone:
    """Stands for a field that is taken out."""


GONE = _Gone()


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The sample with values set at dotted paths; maps on the way are made."""
    data = sample.data()
    for path, value in changes.items():
        *folders, name = path.split(".")
        place = data
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is GONE:
            place.pop(name, None)
        else:
            place[name] = value
    return data


def compiled(changes: dict[str, Any]) -> Organisation:
    """The changed sample, which must be valid."""
    return compile(changed(changes))


def said(changes: dict[str, Any]) -> dict[str, str]:
    """What is wrong with the changed sample, by path."""
    with pytest.raises(InvalidOrganisation) as invalid:
        compile(changed(changes))
    return {problem.path: problem.message for problem in invalid.value.problems}
