"""The one way in: order of checks, one transaction, kept answers, audit."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Annotated, Any

import psycopg
import pytest

from steadmesh.kernel.clock import Instant, TurnedClock
from steadmesh.kernel.database import (
    Database,
    DatabaseUnavailable,
    Locks,
    Transaction,
    exclusive,
)
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.errors import Conflict, Unauthenticated
from steadmesh.kernel.jobs import JobContext
from steadmesh.kernel.paging import Cursors
from steadmesh.kernel.signals import Signals
from steadmesh.tools import (
    Args,
    Call,
    Caller,
    Catalogue,
    Credentials,
    Doc,
    Family,
    Feature,
    Result,
    Services,
    Tool,
    fit_page,
    tool,
)
from steadmesh.tools.audit import Audit
from steadmesh.tools.catalogue import UnknownTool
from steadmesh.tools.kept import TRIMMING
from steadmesh.tools.run import Answer, Runner


class Refused(Unauthenticated):
    """Say who you are."""


class Taken(Conflict):
    """{name} is taken by {owner}."""

    details = ("owner",)


class Name(Args):
    name: Annotated[str, Doc("A name.")]


class Nothing(Args):
    pass


class Count(Result):
    total: int


class Big(Result):
    text: str


def on_the_name(tx: Transaction, caller: Caller, args: Name) -> Locks:
    return [exclusive("name", args.name)]


@tool("names.add", family="test", locks=on_the_name)
def add(call: Call[Caller], args: Name) -> Count:
    """Add a name."""
    call.tx.run("INSERT INTO names (name, owner) VALUES (:n, :o)", n=args.name, o=call.caller.name)
    call.count("added")
    if args.name == "taken":
        raise Taken(name=args.name, owner="bob")
    if args.name == "wrong statement":
        call.tx.run("INSERT INTO nowhere (name) VALUES ('x')")
    if args.name == "bug":
        raise KeyError("a secret detail")
    return count(call)


@tool("names.refuse", family="test", locks=on_the_name)
def refuse(call: Call[Caller], args: Name) -> Count:
    """Refuse; with others in the way at the first time."""
    taken = Taken(name=args.name, owner="bob")
    call.count_refusal(taken, "refused", taken.code)
    REFUSING.append(args.name)
    if len(REFUSING) == 1 and call.tx.engine == "postgresql":
        raise psycopg.errors.SerializationFailure
    raise taken


REFUSING: list[str] = []


@tool("names.count", family="test", reads=True)
def total(call: Call[Caller], args: Nothing) -> Count:
    """Count names."""
    return count(call)


@tool("names.big", family="test", reads=True)
def big(call: Call[Caller], args: Nothing) -> Big:
    """Too much."""
    return Big(text="é" * 9_000)


@tool("names.hidden", family="test", reads=True, visible=lambda caller: False)
def hidden(call: Call[Caller], args: Name) -> Count:
    """Nobody sees it."""
    return count(call)


def count(call: Call[Caller]) -> Count:
    row = call.tx.one("SELECT count(*) AS total FROM names")
    return Count(total=row["total"] if row else 0)


def authenticate(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    if credentials.bearer is None:
        raise Refused()
    return Caller(name=credentials.bearer, scope="test", credential=credentials.bearer)


def nothing(*_: Any) -> None:
    return None


TEST = Family("test", authenticate, nothing, nothing, lambda caller, tool: [])
ADA = Credentials(bearer="ada")


class World:
    """A catalogue of test tools on one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.counted: list[tuple[str, ...]] = []
        self.audit = Audit()
        self.catalogue = Catalogue(
            [TEST], [Feature("none", tools=[add, refuse, total, big, hidden])]
        )
        migrate(database, ["steadmesh.kernel", "steadmesh.tools"], self.clock)
        database.write_blocking(lambda tx: tx.run("CREATE TABLE names (name TEXT, owner TEXT)"))
        services = Services(
            clock=self.clock,
            cursors=Cursors(b"k" * 32),
            signals=Signals(),
            count=lambda *labels: self.counted.append(labels),
        )
        self.runner = Runner(self.catalogue, database, services, self.audit)

    def call(self, called: Tool, credentials: Credentials = ADA, **arguments: Any) -> Answer:
        return asyncio.run(self.runner.run(called, arguments, credentials))

    def content(self, called: Tool, credentials: Credentials = ADA, **arguments: Any) -> Any:
        return json.loads(self.call(called, credentials, **arguments).content)

    @property
    def context(self) -> JobContext:
        return JobContext(self.database, self.clock, lambda: False)

    def audited(self) -> list[tuple[str, str, str]]:
        self.audit.flush(self.context)
        rows = self.database.read_blocking(
            lambda tx: tx.all("SELECT caller, tool, outcome FROM audit ORDER BY id")
        )
        return [(row["caller"], row["tool"], row["outcome"]) for row in rows]


@pytest.fixture
def world(database: Database) -> World:
    return World(database)


def test_a_call_answers_its_result(world: World) -> None:
    assert world.call(add, name="a") == Answer(b'{"total":1}')
    assert world.content(total) == {"total": 1}


def test_a_failed_call_changes_nothing_and_says_code_message_and_details(world: World) -> None:
    answer = world.call(add, name="taken")
    assert answer.is_error
    assert json.loads(answer.content) == {
        "error": "conflict",
        "message": "taken is taken by bob.",
        "details": {"owner": "bob"},
    }
    assert world.content(total) == {"total": 0}
    assert ("added",) not in world.counted


def test_a_fault_of_ours_shows_a_call_id_and_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        content = world.content(add, name="bug")
    assert content["error"] == "internal"
    assert content["details"]["call_id"] in content["message"]
    assert "secret detail" not in json.dumps(content)
    assert "secret detail" in caplog.text


def test_a_wrong_statement_is_a_fault_of_ours_and_logged_whole(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no word on the database: nobody is told to try again."""
    with caplog.at_level(logging.ERROR):
        content = world.content(add, name="wrong statement")
    assert content["error"] == "internal"
    assert "nowhere" not in json.dumps(content)
    assert "nowhere" in caplog.text


def test_the_log_says_why_a_call_could_not_be_served(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise DatabaseUnavailable(reason="no room") from OSError("disk full")

    monkeypatch.setattr(world.database, "write", full)
    with caplog.at_level(logging.WARNING):
        assert world.content(add, name="a")["error"] == "unavailable"
    [record] = caplog.records
    fields = record.__dict__["fields"]
    assert fields == {"tool": "names.add", "error": "OSError", "reason": "disk full"}


@pytest.mark.parametrize(
    ("called", "credentials", "code"),
    [
        (hidden, Credentials(), "unauthenticated"),
        (hidden, ADA, "forbidden"),
        (add, ADA, "invalid"),
    ],
)
def test_the_first_check_that_fails_answers(
    world: World, called: Tool, credentials: Credentials, code: str
) -> None:
    """Who are you, may you see it, and only then the arguments, which are wrong in each case."""
    assert world.content(called, credentials, nme="a")["error"] == code


def test_a_result_over_the_cap_is_refused_by_its_size_in_bytes(world: World) -> None:
    content = world.content(big)
    assert content["error"] == "result_too_large"
    assert "18011 bytes" in content["message"]


def test_names_are_found_dotted_and_with_underscores(world: World) -> None:
    assert world.catalogue.find("names.add") is world.catalogue.find("names_add") is add
    with pytest.raises(UnknownTool, match=r"no tool named names\.ad\b"):
        world.catalogue.find("names.ad")
    with pytest.raises(UnknownTool):
        world.catalogue.find("names.add", family="relay")


def keyed(key: str, bearer: str = "ada") -> Credentials:
    return Credentials(bearer=bearer, idempotency_key=key)


def test_the_same_key_gives_the_same_answer_and_does_nothing(world: World) -> None:
    first = world.call(add, keyed("k1"), name="a")
    assert world.call(add, keyed("k1"), name="a") == first
    assert world.content(total) == {"total": 1}


def test_the_same_key_with_other_arguments_is_refused(world: World) -> None:
    world.call(add, keyed("k1"), name="a")
    assert world.content(add, keyed("k1"), name="b")["error"] == "invalid"
    assert world.content(total) == {"total": 1}


def test_a_key_belongs_to_its_credential(world: World) -> None:
    world.call(add, keyed("k1"), name="a")
    assert world.content(add, keyed("k1", "bob"), name="a") == {"total": 2}


def test_a_kept_answer_cannot_be_read_from_the_database(world: World) -> None:
    world.call(add, keyed("k1"), name="a")
    rows = world.database.read_blocking(lambda tx: tx.all("SELECT id, answer FROM kept_answers"))
    assert len(rows) == 1
    assert b"total" not in bytes(rows[0]["answer"])


def test_a_kept_answer_is_forgotten_after_ten_minutes(world: World) -> None:
    world.call(add, keyed("k1"), name="a")
    world.clock.advance(601)
    assert TRIMMING.step(world.context) == 1
    assert world.content(add, keyed("k1"), name="a") == {"total": 2}


def test_a_failed_call_may_be_tried_again_under_its_key(world: World) -> None:
    world.call(add, keyed("k1"), name="taken")
    assert world.content(add, keyed("k1"), name="a") == {"total": 1}


def test_many_callers_with_one_key_have_one_effect(world: World) -> None:
    async def together() -> list[Answer]:
        calls = [world.runner.run(add, {"name": "a"}, keyed("k1")) for _ in range(12)]
        return await asyncio.gather(*calls)

    assert {answer.content for answer in asyncio.run(together())} == {b'{"total":1}'}


def test_every_call_is_audited_once(world: World) -> None:
    world.call(add, name="a")
    world.call(add, name="taken")
    world.call(total)
    world.call(total, Credentials())
    assert sorted(world.audited()) == [
        ("", "names.count", "unauthenticated"),
        ("ada", "names.add", "conflict"),
        ("ada", "names.add", "ok"),
        ("ada", "names.count", "ok"),
    ]


def test_a_refusal_is_counted_once_however_often_the_handler_ran(world: World) -> None:
    REFUSING.clear()
    assert world.call(refuse, name="x").is_error
    assert len(REFUSING) == (2 if world.database.engine == "postgresql" else 1)
    assert world.counted.count(("refused", "conflict")) == 1


def test_a_full_audit_buffer_drops_the_oldest_and_counts_it() -> None:
    audit = Audit()
    for n in range(10_003):
        audit.gather(n, scope="", caller="", tool="t", outcome="ok")
    assert audit.dropped == 3


def test_calls_are_counted_by_how_they_ended(world: World) -> None:
    world.call(add, name="a")
    world.call(add, name="taken")
    world.call(hidden, name="a")
    results = [labels[2] for labels in world.counted if labels[0] == "tool_calls_total"]
    assert results == ["ok", "error", "denied"]


class Page(Result):
    entries: list[str]
    next_cursor: str


@pytest.mark.parametrize("cap", [20, 100, 1_000, 10_000])
def test_a_page_is_the_largest_that_fits_and_never_empty(cap: int) -> None:
    entries = [str(n) * 9 for n in range(40)]
    build: Callable[[Any, str], Page] = lambda some, cursor: Page(  # noqa: E731 - one line each
        entries=list(some), next_cursor=cursor
    )
    page = fit_page(entries, build, cursor_after=lambda entry: entry, more=False, cap=cap)
    count = len(page.entries)
    assert page.entries == entries[:count]
    assert count >= 1
    assert page.next_cursor == ("" if count == len(entries) else entries[count - 1])
    if count > 1:
        assert len(page.encoded()) <= cap
    if count < len(entries):
        more = build(entries[: count + 1], entries[count] if count + 1 < len(entries) else "")
        assert len(more.encoded()) > cap
