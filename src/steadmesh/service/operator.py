"""The family of operators: whoever runs the service, shown by the Unix socket or the operator key."""

from __future__ import annotations

import hashlib
import os
import socket

from steadmesh.kernel.clock import Instant
from steadmesh.kernel.crypto import digest, same
from steadmesh.kernel.database import Database, Locks, Transaction, exclusive
from steadmesh.kernel.datadir import OPERATOR_KEY_PREFIX, DataDirectory
from steadmesh.kernel.errors import Unauthenticated
from steadmesh.service import _store
from steadmesh.tools import Call, Caller, Credentials, Family, Tool

NAME = "operator"


class NoOperatorKey(Unauthenticated):
    """This is for operators. Come over the Unix socket of the data directory, or send the key in its operator.key as `Authorization: Bearer smo_…`."""


class BadOperatorKey(Unauthenticated):
    """This Bearer token is not the operator key of this service; the key is in operator.key in the data directory."""


def authenticate(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    """An operator, by key or by local proof. A presented token that is no key never counts as none."""
    bearer = credentials.bearer
    if bearer is None:
        if not credentials.local:
            raise NoOperatorKey()
        return Caller(name=NAME, scope=NAME, credential="")
    presented = digest(bearer)
    known = [same(presented, expected) for expected in _store.operator_digests(tx)]
    if not bearer.startswith(OPERATOR_KEY_PREFIX) or not any(known):
        raise BadOperatorKey()
    return Caller(name=NAME, scope=NAME, credential=presented)


def admit(caller: Caller, tool: Tool, credentials: Credentials) -> None:
    """An operator may call every endpoint of operators."""


def confirm(call: Call[Caller]) -> None:
    """Under the locks: a key that was replaced meanwhile counts no more."""
    call.caller = authenticate(call.tx, call.credentials, call.now)


def locks(caller: Caller, tool: Tool) -> Locks:
    """An endpoint names its own; those that name none take turns."""
    return [] if tool.locks else [exclusive(NAME)]


OPERATORS = Family(NAME, authenticate, admit, confirm, locks)


def remember_key(database: Database, data: DataDirectory) -> None:
    """Let the key of this data directory open the service, on every replica of the database.

    Raises `DataDirectoryError` if the key cannot be used.
    """
    found = digest(data.operator_key())
    place = _place(data)

    def remember(tx: Transaction) -> None:
        if tx.engine == "sqlite":  # the file lies in the one data directory that counts
            _store.drop_other_operator_digests(tx, place)
        _store.keep_operator_digest(tx, place, found)

    database.write_blocking(remember)


def _place(data: DataDirectory) -> str:
    """What tells this data directory from those of other replicas."""
    name = f"{socket.gethostname()}\0{os.fspath(data.path)}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
