"""Time zone names."""

from __future__ import annotations

import zoneinfo
from importlib.resources import files

import pytest

from steadmesh.kernel import zones


@pytest.mark.parametrize("name", ["UTC", "Europe/Paris", "America/New_York", "Etc/GMT+5", "GMT"])
def test_a_name_of_the_list_is_a_zone(name: str) -> None:
    assert zones.is_zone(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "UTC ",
        "utc",
        "europe/paris",
        "Europe",
        "Europe/",
        "localtime",
        "Local",
        "Factory",
        "posix/UTC",
        "posixrules",
        "right/UTC",
        "../UTC",
        "/usr/share/zoneinfo/UTC",
        "+02:00",
        "CET-1CEST",
    ],
)
def test_anything_else_is_none(name: str) -> None:
    assert not zones.is_zone(name)


def test_the_zones_are_those_that_the_package_can_load() -> None:
    listed = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    assert zones.names() == {*listed} - {"Factory"}
    for name in sorted(zones.names())[::50]:
        assert zoneinfo.ZoneInfo(name).key == name


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Europe/Pariss", "Europe/Paris"),
        ("europe/paris", "Europe/Paris"),
        ("paris", "Europe/Paris"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
        ("zzzzqqqq", None),
    ],
)
def test_a_wrong_name_leads_to_the_nearest_right_one(written: str, meant: str | None) -> None:
    assert zones.nearest(written) == meant
