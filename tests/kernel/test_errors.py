"""Failures: their texts are part of the product."""

from __future__ import annotations

from steadmesh.kernel.errors import REPEATED_BYTES, NotFound


class NoSuchThing(NotFound):
    """There is no {name} among the {count} things."""

    details = ("name",)


def test_a_message_repeats_no_more_than_its_share_of_what_was_sent() -> None:
    """The details stay whole: programs compare them."""
    failure = NoSuchThing(name="é" * 100_000, count=3)
    assert failure.message == f"There is no {'é' * (REPEATED_BYTES // 2)} among the 3 things."
    assert failure.detail() == {"name": "é" * 100_000}
