"""The bridge as a part: what a kind of caller can hook into, and its limits."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest

from steadmesh.client import bridge as bridge_module
from steadmesh.client.bridge import Bridge, Identity, NoIdentity
from steadmesh.client.http import Service
from steadmesh.client.stdio import Output
from tests.client.double import Asked, Double, answer
from tests.client.platform import TOKEN, Platform

LIMIT = 10.0


class Learner(Identity):
    """Sends what it learnt from the last answer, as a relay's bridge does with its token."""

    def __init__(self) -> None:
        self.token: str | None = "first"

    def headers(self) -> Mapping[str, str]:
        if self.token is None:
            raise NoIdentity("there is no token yet")
        return {"X-Agent-Token": self.token, "Authorization": f"Bearer {TOKEN}"}

    def learn(self, headers: Mapping[str, str]) -> None:
        self.token = headers.get("x-relay-credential", self.token)


class Wired:
    """A bridge whose output can be read, line by line."""

    def __init__(self, url: str, identity: Identity) -> None:
        reading, writing = os.pipe()
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._file = os.fdopen(reading, "rb")
        threading.Thread(target=self._read, daemon=True).start()
        self.settled = threading.Semaphore(0)
        self.bridge = Bridge(
            Service([url]),
            identity,
            Output(writing),
            settled=lambda: self.settled.release(),
            retry_for=0.0,
        )

    def call(self, message_id: object, name: str = "x") -> None:
        params = {"name": name, "arguments": {}}
        fields = {"jsonrpc": "2.0", "id": message_id, "method": "tools/call", "params": params}
        self.bridge.receive(json.dumps(fields).encode())

    def next(self) -> dict[str, object]:
        return dict(json.loads(self._lines.get(timeout=LIMIT)))

    def _read(self) -> None:
        for line in self._file:
            self._lines.put(line)


@pytest.fixture
def wired() -> Iterator[Callable[[str, Identity], Wired]]:
    """Makes bridges, and ends them."""
    made: list[Wired] = []

    def make(url: str, identity: Identity) -> Wired:
        made.append(Wired(url, identity))
        return made[-1]

    yield make
    for one in made:
        one.bridge.abort()


Make = Callable[[str, Identity], Wired]


def test_what_an_answer_teaches_is_sent_with_the_next_message(wired: Make) -> None:
    platform = Platform()

    def teaching(asked: Asked) -> bytes:
        reply = platform(asked)
        assert isinstance(reply, bytes)
        return reply.replace(b"\r\n", b"\r\nX-Relay-Credential: second\r\n", 1)

    with Double(teaching) as double:
        one = wired(double.url, Learner())
        one.call(1)
        one.next()
        one.call(2)
        one.next()
    assert [asked.headers["x-agent-token"] for asked in double.asked] == ["first", "second"]


def test_an_identity_that_is_not_there_is_said_in_the_result(wired: Make) -> None:
    learner = Learner()
    learner.token = None
    with Double(lambda asked: answer(200)) as double:
        one = wired(double.url, learner)
        one.call(1)
        assert "There is no token yet." in str(one.next()["result"])
        assert double.asked == []


def test_too_many_in_flight_are_refused_and_the_others_go_on(
    wired: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_module, "MAX_IN_FLIGHT", 2)
    platform = Platform()
    with Double(platform) as double:
        one = wired(double.url, Learner())
        one.call(1, "hold")
        one.call(2, "hold")
        one.call(3)
        refused = one.next()
        assert refused["id"] == 3
        assert "More than 2 requests are in flight" in str(refused["result"])
        platform.released.set()
        assert {one.next()["id"], one.next()["id"]} == {1, 2}


def test_an_id_that_is_used_twice_is_answered_twice(wired: Make) -> None:
    platform = Platform()
    with Double(platform) as double:
        one = wired(double.url, Learner())
        one.call(1, "hold")
        one.call(1, "quick")
        assert "quick" in str(one.next()["result"])
        platform.released.set()
        assert "hold" in str(one.next()["result"])
        assert one.settled.acquire(timeout=LIMIT)
        assert one.settled.acquire(timeout=LIMIT)
        assert one.bridge.in_flight == 0


def test_aborting_ends_what_is_in_flight_unanswered(wired: Make) -> None:
    platform = Platform()
    with Double(platform) as double:
        one = wired(double.url, Learner())
        one.call(1, "hold")
        double.wait_for(lambda asked: len(asked) == 1)
        one.bridge.abort()
        assert one.settled.acquire(timeout=LIMIT)
        platform.released.set()
        one.call(2)
        assert one.next()["id"] == 2
