"""A client without waiting, and a double that answers by a script."""

from __future__ import annotations

import itertools

from steadmesh.client.http import Service
from tests.client.double import Bytes, Double, Reset

Reply = bytes | Bytes | Reset


class Clock:
    """Time that passes only when somebody waits; the waits are kept."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def client(*addresses: str, clock: Clock | None = None) -> Service:
    clock = clock or Clock()
    return Service(addresses, pause=clock.pause, clock=clock)


def replies(*script: Reply) -> Double:
    """A double that gives these answers in turn, the last one for ever."""
    turns = itertools.chain(script, itertools.repeat(script[-1]))
    return Double(lambda asked: next(turns))
