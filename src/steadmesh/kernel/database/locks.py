"""Names of what a write must be alone with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple


class Lock(NamedTuple):
    """A noun and what tells this one from its neighbours: `("inbox", org, seat)`."""

    name: tuple[str, ...]
    shared: bool = False

    @property
    def number(self) -> int:
        """The signed 64-bit number that stands for the name in PostgreSQL."""
        name = "\0".join(self.name).encode()
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)


Locks = list[Lock]


def exclusive(*name: str) -> Lock:
    """Alone with the thing."""
    return Lock(name)


def shared(*name: str) -> Lock:
    """With others that also share it, and with nobody who is alone with it."""
    return Lock(name, shared=True)


def in_order(locks: Iterable[Lock]) -> list[tuple[int, bool]]:
    """Number and shared flag of each lock, ascending, so that two writers never wait crosswise."""
    wanted: dict[int, bool] = {}
    for lock in locks:
        number = lock.number
        wanted[number] = wanted.get(number, True) and lock.shared
    return sorted(wanted.items())
