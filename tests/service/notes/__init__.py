"""A small feature of notes in books, and families of its own: enough to call for everything that the
service offers to a feature."""

from __future__ import annotations

from typing import Annotated, Any

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.database import Locks, Transaction, exclusive
from steadmesh.kernel.errors import (
    Conflict,
    Fenced,
    Forbidden,
    NotFound,
    RateLimited,
    Unauthenticated,
    Unavailable,
)
from steadmesh.service.operator import OPERATORS
from steadmesh.tools import (
    Args,
    Call,
    Caller,
    Credentials,
    Doc,
    Entry,
    Family,
    Feature,
    Follow,
    Followed,
    Result,
    Tool,
    endpoint,
    stream,
    tool,
)

ADA, DEAD = "sms_ada", "sms_dead"
PERSON = "the-token-of-mia"
AGENT = "the-token-of-zoe"
GENERATION = 1


class Refused(Unauthenticated):
    """This token is of nobody."""


class Gone(Forbidden):
    """The seat of this token is retired."""

    ends_access = True


class Stale(Fenced):
    """A newer execution holds this seat."""


class Taken(Conflict):
    """There is a note {text} already."""

    details = ("text",)


class NoNote(NotFound):
    """There is no such note."""


class Busy(Unavailable):
    """The database is away."""


class TooMany(RateLimited):
    """Too many calls."""


def _seat(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    if credentials.bearer == DEAD:
        raise Gone()
    if credentials.bearer == "sms_away":
        raise Busy()
    if credentials.bearer != ADA:
        raise Refused()
    return Caller(name="ada", scope="books", credential="ada")


def _admit(caller: Caller, called: Tool, credentials: Credentials) -> None:
    if called.fenced and credentials.generation is None:
        raise Stale()


def _judge(call: Call[Caller]) -> None:
    if call.tool.fenced and call.credentials.generation != GENERATION:
        raise Stale()


def _person(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    if credentials.bearer != PERSON or credentials.path.get("organization") != "acme":
        raise Refused()
    return Caller(name="mia", scope="acme", credential="mia")


def _agent(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    if credentials.agent_token != AGENT:
        raise Refused()
    return Caller(name="zoe", scope="relay", credential="zoe")


def _nothing(*_: Any) -> None:
    return None


def _no_locks(caller: Caller, called: Tool) -> Locks:
    return []


FAMILIES = (
    Family("seats", _seat, _admit, _nothing, _no_locks, _judge),
    OPERATORS,
    Family("people", _person, _nothing, _nothing, _no_locks),
    Family("relay", _agent, _nothing, _nothing, _no_locks),
)


class Note(Args):
    text: Annotated[str, Doc("What to remember.")]
    data: Annotated[dict[str, Any] | None, Doc("More of it.")] = None


class Nothing(Args):
    pass


class Count(Result):
    total: int


def on_the_book(tx: Transaction, caller: Caller, args: Args) -> Locks:
    return [exclusive("book", getattr(args, "book", "ada"))]


@tool("notes.add", locks=on_the_book)
def add(call: Call[Caller], args: Note) -> Count:
    """Remember something."""
    if args.text == "taken":
        raise Taken(text=args.text)
    if args.text == "broken":
        raise KeyError("a detail that nobody should see")
    if args.text == "hasty":
        raise TooMany()
    write(call.tx, "ada", args.text)
    return count(call.tx)


@tool("notes.count", reads=True)
def total(call: Call[Caller], args: Nothing) -> Count:
    """Count what is remembered."""
    return count(call.tx)


@tool("notes.hidden", reads=True, visible=lambda caller: False)
def hidden(call: Call[Caller], args: Nothing) -> Count:
    """Nobody sees it."""
    return count(call.tx)


@tool("notes.other", family="relay", reads=True)
def other(call: Call[Caller], args: Nothing) -> Count:
    """A tool of the other family."""
    return count(call.tx)


def write(tx: Transaction, book: str, text: str) -> None:
    tx.run("INSERT INTO notes (book, text, taken) VALUES (:book, :text, 0)", book=book, text=text)
    tx.wake(f"book:{book}")


def count(tx: Transaction) -> Count:
    row = tx.one("SELECT count(*) AS total FROM notes")
    return Count(total=row["total"] if row else 0)


# Endpoints


class Post(Args):
    book: str
    events: list[dict[str, Any]] | None = None
    text: str | None = None


@endpoint("POST /v1/books/{book}/events", family="seats", fenced=True, locks=on_the_book)
def post(call: Call[Caller], args: Post) -> None:
    """Write one note, or an array of them."""
    for event in args.events or [{"text": args.text}]:
        write(call.tx, args.book, str(event.get("text")))


class Take(Args):
    book: str
    wait: Annotated[float, Doc("Seconds to wait for one.")] = 0.0


class Taking(Result):
    text: str


def book_topics(caller: Caller, args: Take) -> tuple[str, ...]:
    return (f"book:{args.book}",)


def something_waits(tx: Transaction, caller: Caller, args: Take, now: Instant) -> bool:
    return _next(tx, args.book) is not None


@endpoint(
    "GET /v1/books/{book}/next",
    family="seats",
    fenced=True,
    locks=on_the_book,
    waits=book_topics,
    ready=something_waits,
)
def take(call: Call[Caller], args: Take) -> Taking | None:
    """Take the next note, once there is one."""
    row = _next(call.tx, args.book)
    if row is None:
        return None
    call.tx.run("UPDATE notes SET taken = 1 WHERE position = :position", position=row["position"])
    return Taking(text=row["text"])


def _next(tx: Transaction, book: str) -> Any:
    return tx.one(
        "SELECT position, text FROM notes WHERE book = :book AND taken = 0 ORDER BY position LIMIT 1",
        book=book,
    )


class Forget(Args):
    book: str


@endpoint("DELETE /v1/books/{book}", family="seats", fenced=True, locks=on_the_book)
def forget(call: Call[Caller], args: Forget) -> None:
    """Forget a book."""
    if not call.tx.run("DELETE FROM notes WHERE book = :book", book=args.book):
        raise NoNote()


class Listing(Args):
    book: str
    limit: int = 10
    exact: bool = False


class Listed(Result):
    book: str
    limit: int
    exact: bool


@endpoint("GET /v1/books/{book}", family="seats", reads=True)
def show(call: Call[Caller], args: Listing) -> Listed:
    """What was asked for."""
    return Listed(book=args.book, limit=args.limit, exact=args.exact)


class Mend(Args):
    book: str
    text: str = "mended"


@endpoint("POST /internal/v1/books/{book}:mend", family="operator", locks=on_the_book, status=201)
def mend(call: Call[Caller], args: Mend) -> Count:
    """For operators only."""
    write(call.tx, args.book, args.text)
    return count(call.tx)


class Watching(Follow):
    organization: str
    connection: str


def connection_topics(caller: Caller, args: Watching) -> tuple[str, ...]:
    return (f"book:{args.connection}",)


@stream(
    "GET /v1/channels/{organization}/{connection}/events", family="people", topics=connection_topics
)
def watch(call: Call[Caller], args: Watching) -> Followed:
    """What is written to the book of the connection."""
    after = args.after or 0
    rows = call.tx.all(
        "SELECT position, text FROM notes WHERE book = :book AND position > :after"
        " ORDER BY position LIMIT 10",
        book=args.connection,
        after=after,
    )
    entries = [Entry(position=row["position"], data={"text": row["text"]}) for row in rows]
    return Followed(entries=entries, after=entries[-1].position if entries else after)


FEATURE = Feature(
    package="tests.service.notes",
    tools=[add, total, hidden, other],
    endpoints=[post, take, forget, show, mend, watch],
)
