"""Ids and secrets.

Ids are UUIDv7: their time prefix keeps index pages together (a table of random ids took a quarter
more time per insert). They do not order by commit and open nothing.
"""

from __future__ import annotations

import os
import re
import secrets
from array import array
from collections import deque
from itertools import count

from steadmesh.kernel.clock import Instant

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_sequence = count(int.from_bytes(os.urandom(2), "big"))

_random: deque[int] = deque()
"""Random numbers of 64 bits in store: asking the system for each costs more than the rest of an id."""
_STORE_BYTES = 4_096
os.register_at_fork(after_in_child=_random.clear)


def new_id(now: Instant) -> str:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, 12 bits of a running number, 62 random bits."""
    milliseconds = now // 1_000
    running = next(_sequence) & 0xFFF
    random = _next_random() & 0x3FFF_FFFF_FFFF_FFFF
    digits = f"{milliseconds:012x}7{running:03x}{0x8000_0000_0000_0000 | random:016x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _next_random() -> int:
    while True:
        try:
            return _random.popleft()
        except IndexError:  # threads may both fill it up, which does no harm
            _random.extend(array("Q", os.urandom(_STORE_BYTES)))


def is_id(text: str) -> bool:
    """Whether the text has the form of a UUID."""
    return _UUID.fullmatch(text) is not None


def new_secret(prefix: str = "") -> str:
    """256 random bits, URL-safe, behind a prefix that says what the secret is."""
    return prefix + secrets.token_urlsafe(32)
