"""Hints reach those who watch, in this process."""

from __future__ import annotations

import asyncio

from steadmesh.kernel.signals import Signals


def test_a_topic_that_is_named_twice_is_watched_once() -> None:
    async def watch() -> None:
        signals = Signals()
        with signals.watch("inbox:a", "inbox:a", "inbox:b") as watch:
            assert signals.watchers("inbox:a") == 1
            signals.notify(["inbox:a"])
            assert await watch.wait(10)
        assert (signals.watchers("inbox:a"), signals.watchers("inbox:b")) == (0, 0)

    asyncio.run(watch())


def test_two_who_watch_the_same_are_both_told_and_leave_one_by_one() -> None:
    async def watch() -> None:
        signals = Signals()
        with signals.watch("inbox:a") as one:
            with signals.watch("inbox:a") as other:
                signals.notify(["inbox:a"])
                assert await one.wait(10)
                assert await other.wait(10)
            assert signals.watchers("inbox:a") == 1

    asyncio.run(watch())
