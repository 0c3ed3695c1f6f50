"""Long polls: they wait without holding anything, and end when there is something or nobody left."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from steadmesh.tools import Tool
from steadmesh.tools.run import Runner
from tests.runner.waiting import until
from tests.service import notes
from tests.service.notes import ADA
from tests.support.service import Response, RunningService

SEAT = {"Authorization": f"Bearer {ADA}", "X-Steadmesh-Generation": "1"}
LIMIT = 10.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def take(running: RunningService, book: str, wait: float | str) -> Response:
    return running.request("GET", f"/v1/books/{book}/next?wait={wait}", headers=SEAT)


def write(running: RunningService, book: str, text: str) -> None:
    path = f"/v1/books/{book}/events"
    assert running.request("POST", path, {"text": text}, headers=SEAT).status == 204


def watchers(running: RunningService, book: str) -> int:
    return running.service.signals.watchers(f"book:{book}")


def test_what_is_there_is_answered_at_once(books: RunningService) -> None:
    write(books, "a", "one")
    assert take(books, "a", 30).json() == {"text": "one"}


def test_without_a_wait_nothing_is_no_content(books: RunningService) -> None:
    assert take(books, "a", 0).status == 204
    assert books.request("GET", "/v1/books/a/next", headers=SEAT).status == 204


def test_a_poll_ends_with_what_comes(books: RunningService, pool: ThreadPoolExecutor) -> None:
    polling = pool.submit(take, books, "a", 30)
    until(lambda: watchers(books, "a"), "a poll that waits")
    write(books, "a", "one")
    assert polling.result(LIMIT).json() == {"text": "one"}


def test_what_no_hint_told_of_is_found_within_a_round(
    books: RunningService, pool: ThreadPoolExecutor
) -> None:
    polling = pool.submit(take, books, "a", 30)
    until(lambda: watchers(books, "a"), "a poll that waits")
    books.service.database.write_blocking(
        lambda tx: tx.run("INSERT INTO notes (book, text, taken) VALUES ('a', 'quiet', 0)")
    )
    assert polling.result(LIMIT).json() == {"text": "quiet"}


def test_of_many_polls_one_takes_it(books: RunningService, pool: ThreadPoolExecutor) -> None:
    polls = [pool.submit(take, books, "a", 0.8) for _ in range(4)]
    until(lambda: watchers(books, "a") == 4, "four polls that wait")
    write(books, "a", "one")
    answers = [poll.result(LIMIT) for poll in polls]
    assert sorted(answer.status for answer in answers) == [200, 204, 204, 204]


def test_a_poll_ends_empty_when_its_time_is_over(shared: RunningService) -> None:
    started = time.monotonic()
    assert take(shared, "never", 0.2).status == 204
    assert 0.2 <= time.monotonic() - started < 5


def test_the_wait_is_a_number_and_below_zero_is_none(shared: RunningService) -> None:
    assert take(shared, "never", "soon").error == (400, "invalid")
    assert take(shared, "never", "NaN").error == (400, "invalid")
    assert take(shared, "never", -5).status == 204


def test_who_may_not_call_is_refused_before_waiting(shared: RunningService) -> None:
    path = "/v1/books/never/next?wait=30"
    assert shared.request("GET", path).error == (401, "unauthenticated")
    bare = {"Authorization": f"Bearer {ADA}"}
    assert shared.request("GET", path, headers=bare).error == (409, "fenced")
    stale = bare | {"X-Steadmesh-Generation": "2"}
    assert shared.request("GET", path, headers=stale).error == (409, "fenced")


def test_who_is_fenced_while_waiting_hears_it(
    shared: RunningService, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    polling = pool.submit(take, shared, "fenced", 30)
    until(lambda: watchers(shared, "fenced"), "a poll that waits")
    monkeypatch.setattr(notes, "GENERATION", 2)
    assert polling.result(LIMIT).error == (409, "fenced")


def test_an_idle_poll_writes_nothing(shared: RunningService) -> None:
    batches: list[int] = []
    database = shared.service.database
    counted = database.batch_observed
    database.batch_observed = lambda size, seconds: batches.append(size)
    try:
        assert take(shared, "never", 0.6).status == 204
    finally:
        database.batch_observed = counted
    assert batches == []


def test_a_client_that_hangs_up_is_waited_for_no_more(shared: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", shared.port)) as opened:
        opened.sendall(
            b"GET /v1/books/left/next?wait=30 HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer sms_ada\r\nX-Steadmesh-Generation: 1\r\n\r\n"
        )
        until(lambda: watchers(shared, "left"), "a poll that waits")
    until(lambda: not watchers(shared, "left"), "the end of the poll")
    write(shared, "left", "for somebody else")
    assert take(shared, "left", 0).json() == {"text": "for somebody else"}


def test_a_stop_answers_who_waits(pool: ThreadPoolExecutor) -> None:
    with RunningService(families=notes.FAMILIES, features=[notes.FEATURE]) as running:
        polling: Future[Response] = pool.submit(take, running, "a", 30)
        until(lambda: watchers(running, "a"), "a poll that waits")
        started = time.monotonic()
        running.stop()
        assert polling.result(LIMIT).status == 204
        assert time.monotonic() - started < LIMIT


def test_polls_hold_nothing_while_they_wait(
    books: RunningService, pool: ThreadPoolExecutor
) -> None:
    """More of them than there are connections to the database."""
    gone = threading.Event()

    def hold() -> None:
        with socket.create_connection(("127.0.0.1", books.port)) as opened:
            opened.sendall(
                b"GET /v1/books/held/next?wait=30 HTTP/1.1\r\nHost: localhost\r\n"
                b"Authorization: Bearer sms_ada\r\nX-Steadmesh-Generation: 1\r\n\r\n"
            )
            gone.wait(LIMIT)

    threads = [threading.Thread(target=hold) for _ in range(40)]
    for thread in threads:
        thread.start()
    until(lambda: watchers(books, "held") == 40, "40 polls that wait")
    write(books, "b", "one")
    assert take(books, "b", 0).json() == {"text": "one"}
    gone.set()
    for thread in threads:
        thread.join(LIMIT)


def test_what_only_moves_with_a_hint_is_looked_at_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = Runner.glance

    async def counted(self: Runner, tool: Tool, *rest: Any) -> Any:
        looks.append(tool.name)
        return await look(self, tool, *rest)

    monkeypatch.setattr(Runner, "glance", counted)
    endpoints = [replace(endpoint, looks_every=5.0) for endpoint in notes.FEATURE.endpoints]
    feature = replace(notes.FEATURE, endpoints=endpoints)
    with RunningService(families=notes.FAMILIES, features=[feature]) as running:
        assert take(running, "never", 1.2).status == 204
        assert len(looks) == 3  # before it waits, when it begins to, and at the end
        taking = threading.Thread(target=take, args=(running, "a", LIMIT))
        taking.start()
        until(lambda: watchers(running, "a"), "a poll that waits")
        write(running, "a", "one")
        taking.join(LIMIT / 2)
        assert not taking.is_alive()
