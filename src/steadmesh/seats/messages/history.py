"""messages.history: the conversations of a seat, and what was said in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.text import truncated
from steadmesh.seats.identity import SeatCall
from steadmesh.seats.messages import _store
from steadmesh.seats.messages._rules import SHOWN_BYTES, fitted
from steadmesh.seats.messages.errors import NoConversation, NoMessage
from steadmesh.tools import Args, Clamped, Doc, Result, fit_page, tool

MOST = 50
USUAL = 20


class ReadHistory(Args):
    conversation_id: Annotated[
        str | None, Doc("What was said in it. Without: your conversations, most recent first.")
    ] = None
    message_id: Annotated[str | None, Doc("Only this message, with its whole body.")] = None
    limit: Annotated[int, Doc("Entries on a page."), Clamped(maximum=MOST, default=USUAL)] = USUAL
    cursor: Annotated[str | None, Doc("Where a list goes on.")] = None


class Conversation(Result):
    conversation_id: str
    kind: str
    binding: str | None = None
    created_at: str
    last_message_at: str


class PastMessage(Result):
    message_id: str
    conversation_id: str
    binding: str | None = None
    origin: str
    sender_seat: str | None = None
    recipient_seat: str | None = None
    recipient_binding: str | None = None
    parent_id: str | None = None
    correlation_id: str | None = None
    body: str
    created_at: str
    truncated: bool | None = None


class History(Result):
    conversations: list[Conversation] | None = None
    conversation_id: str | None = None
    kind: str | None = None
    messages: list[PastMessage] | None = None
    next_cursor: str


@tool("messages.history", reads=True)
def history(call: SeatCall, args: ReadHistory) -> History:
    """Your conversations, or the messages of one, oldest first. Long bodies are cut at 4 KiB; limit 1 or message_id shows one whole."""
    if args.conversation_id is None and args.message_id is None:
        return _conversations(call, args)
    if args.message_id is not None:
        return _one_message(call, args.message_id, args.conversation_id)
    return _messages(call, args, _own_conversation(call, args.conversation_id or ""))


def _conversations(call: SeatCall, args: ReadHistory) -> History:
    position = call.position(args.cursor)
    before = (int(position[0]), str(position[1])) if position else None
    rows = _store.conversations_of(
        call.tx, call.caller.seat_id, before=before, limit=args.limit + 1
    )
    return fit_page(
        rows[: args.limit],
        lambda page, next_cursor: _conversation_page(call, page, next_cursor),
        cursor_after=lambda row: call.cursor(row["last_message_at"], row["id"]),
        more=len(rows) > args.limit,
        cap=call.cap,
    )


def _conversation_page(call: SeatCall, rows: Sequence[Row], next_cursor: str) -> History:
    return History(
        conversations=[
            Conversation(
                conversation_id=row["id"],
                kind=row["kind"],
                binding=row["binding"],
                created_at=rfc3339(row["created_at"]),
                last_message_at=rfc3339(row["last_message_at"]),
            )
            for row in rows
            if _is_open_to(call, row)
        ],
        next_cursor=next_cursor,
    )


def _own_conversation(call: SeatCall, conversation_id: str) -> Row:
    row = _store.own_conversation(call.tx, conversation_id, call.caller.seat_id)
    if row is None or not _is_open_to(call, row):
        raise NoConversation()
    return row


def _is_open_to(call: SeatCall, conversation: Row) -> bool:
    """A talk with a person closes for a seat that no longer represents her."""
    return conversation["kind"] != "human" or conversation["binding"] in call.caller.policy.bindings


def _messages(call: SeatCall, args: ReadHistory, conversation: Row) -> History:
    position = call.position(args.cursor)
    rows = _store.messages_of(
        call.tx,
        conversation["id"],
        after=int(position[0]) if position else 0,
        limit=args.limit + 1,
    )
    whole = args.limit == 1
    numbers = {row["message_id"]: row["number"] for row in rows}
    page = fit_page(
        [_view(row, whole=whole) for row in rows[: args.limit]],
        lambda views, next_cursor: _page(conversation, views, next_cursor),
        cursor_after=lambda view: call.cursor(numbers[view.message_id]),
        more=len(rows) > args.limit,
        cap=call.cap,
    )
    return _within(page, conversation, call.cap)


def _one_message(call: SeatCall, message_id: str, conversation_id: str | None) -> History:
    where = conversation_id or _store.conversation_of_message(call.tx, message_id)
    if where is None:
        raise NoMessage()
    conversation = _own_conversation(call, where)
    row = _store.message_of(call.tx, conversation["id"], message_id)
    if row is None:
        raise NoMessage()
    return _within(_page(conversation, [_view(row, whole=True)], ""), conversation, call.cap)


def _page(conversation: Row, views: Sequence[PastMessage], next_cursor: str) -> History:
    return History(
        conversation_id=conversation["id"],
        kind=conversation["kind"],
        messages=list(views),
        next_cursor=next_cursor,
    )


def _within(page: History, conversation: Row, cap: int) -> History:
    """A page whose only message is too long for the cap, with its body cut."""
    views = page.messages or []
    if len(views) != 1 or len(page.encoded()) <= cap:
        return page
    [message] = views

    def cut(body: str) -> History:
        shorter = message.model_copy(update={"body": body, "truncated": True})
        return _page(conversation, [shorter], page.next_cursor)

    return cut(fitted(message.body, lambda body: len(cut(body).encoded()) <= cap))


def _view(row: Row, *, whole: bool) -> PastMessage:
    body = row["body"] if whole else truncated(row["body"], SHOWN_BYTES)
    to_person = row["recipient_seat_id"] is None
    return PastMessage(
        message_id=row["message_id"],
        conversation_id=row["conversation_id"],
        binding=None if to_person else row["binding"],
        origin=row["origin"],
        sender_seat=row["sender_seat"],
        recipient_seat=row["recipient_seat"],
        recipient_binding=row["binding"] if to_person else None,
        parent_id=row["parent_id"],
        correlation_id=row["correlation_id"],
        body=body,
        created_at=rfc3339(row["created_at"]),
        truncated=True if len(body) < len(row["body"]) else None,
    )
