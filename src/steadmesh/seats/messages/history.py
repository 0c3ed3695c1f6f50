"""messages.history: the conversations that a seat takes part in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from steadmesh.kernel.clock import rfc3339
from steadmesh.kernel.database import Row
from steadmesh.kernel.text import size, truncated
from steadmesh.seats.identity import SeatCall
from steadmesh.seats.messages import _store
from steadmesh.seats.messages.errors import NoConversation
from steadmesh.tools import Args, Clamped, Doc, Result, fit_page, tool

SHOWN_BYTES = 4_096


class ReadHistory(Args):
    conversation_id: Annotated[str | None, Doc("Without it, your conversations are listed.")] = None
    message_id: Annotated[str | None, Doc("Only this message of the conversation, whole.")] = None
    limit: Annotated[int, Clamped(maximum=50, default=20), Doc("Entries of a page.")] = 20
    cursor: Annotated[str | None, Doc("next_cursor of the page before.")] = None


class ConversationView(Result):
    conversation_id: str
    kind: str
    binding: str | None = None
    created_at: str
    last_message_at: str


class MessageView(Result):
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
    """Without an id `conversations`, most recent first; with one its `messages`, oldest first."""

    conversations: list[ConversationView] | None = None
    conversation_id: str | None = None
    kind: str | None = None
    messages: list[MessageView] | None = None
    next_cursor: str


@tool("messages.history", reads=True)
def history(call: SeatCall, args: ReadHistory) -> History:
    """List your conversations, or read one. Bodies are cut at 4 KiB unless a page holds one message."""
    if args.conversation_id is None:
        return _conversations(call, args)
    found = _store.own_conversation(call.tx, args.conversation_id, call.caller.seat_id)
    if found is None or not _still_ours(call, found):
        raise NoConversation()
    return _messages(call, args, found)


def _still_ours(call: SeatCall, conversation: Row) -> bool:
    """A person's conversation is for whoever represents her now."""
    human = conversation["kind"] == "human"
    return not human or conversation["binding"] in call.caller.policy.bindings


def _conversations(call: SeatCall, args: ReadHistory) -> History:
    position = call.position(args.cursor)
    before = (int(position[0]), str(position[1])) if position else None
    rows = _store.conversations_of(
        call.tx, call.caller.seat_id, before=before, limit=args.limit + 1
    )
    page = rows[: args.limit]
    shown = [row for row in page if _still_ours(call, row)]
    if not shown and len(rows) > args.limit:
        return History(
            conversations=[], next_cursor=call.cursor(page[-1]["last_message_at"], page[-1]["id"])
        )
    return fit_page(
        shown,
        lambda some, cursor: History(
            conversations=[_conversation(row) for row in some], next_cursor=cursor
        ),
        cursor_after=lambda row: call.cursor(row["last_message_at"], row["id"]),
        more=len(rows) > args.limit,
        cap=call.cap,
    )


def _conversation(row: Row) -> ConversationView:
    return ConversationView(
        conversation_id=row["id"],
        kind=row["kind"],
        binding=row["binding"],
        created_at=rfc3339(row["created_at"]),
        last_message_at=rfc3339(row["last_message_at"]),
    )


def _messages(call: SeatCall, args: ReadHistory, conversation: Row) -> History:
    position = call.position(args.cursor)
    rows = _store.messages_of(
        call.tx,
        conversation["id"],
        after=int(position[0]) if position else 0,
        limit=args.limit + 1,
        message_id=args.message_id,
    )
    if args.message_id is not None and not rows:
        raise NoConversation()
    alone = args.limit == 1 or args.message_id is not None

    def page(some: Sequence[Row], cursor: str) -> History:
        limit = None if alone else SHOWN_BYTES
        views = [_message(row, limit) for row in some]
        whole = _page(conversation, views, cursor)
        if len(views) == 1 and len(whole.encoded()) > call.cap:
            return _page(conversation, [_fitting(some[0], conversation, cursor, call.cap)], cursor)
        return whole

    return fit_page(
        rows[: args.limit],
        page,
        cursor_after=lambda row: call.cursor(row["number"]),
        more=len(rows) > args.limit,
        cap=call.cap,
    )


def _page(conversation: Row, views: list[MessageView], cursor: str) -> History:
    return History(
        conversation_id=conversation["id"],
        kind=conversation["kind"],
        messages=views,
        next_cursor=cursor,
    )


def _fitting(row: Row, conversation: Row, cursor: str, cap: int) -> MessageView:
    """A body that escaping makes larger than the cap is cut until it fits."""
    low, high = 0, size(row["body"])
    while low < high:
        middle = (low + high + 1) // 2
        view = _message(row, middle)
        if len(_page(conversation, [view], cursor).encoded()) <= cap:
            low = middle
        else:
            high = middle - 1
    return _message(row, low)


def _message(row: Row, limit: int | None) -> MessageView:
    cut = limit is not None and size(row["body"]) > limit
    to_person = row["recipient_seat"] is None
    return MessageView(
        message_id=row["message_id"],
        conversation_id=row["conversation_id"],
        binding=row["binding"] if not to_person else None,
        origin=row["origin"],
        sender_seat=row["sender_seat"],
        recipient_seat=row["recipient_seat"],
        recipient_binding=row["binding"] if to_person else None,
        parent_id=row["parent_id"],
        correlation_id=row["correlation_id"],
        body=truncated(row["body"], limit) if cut and limit is not None else row["body"],
        created_at=rfc3339(row["created_at"]),
        truncated=cut or None,
    )
