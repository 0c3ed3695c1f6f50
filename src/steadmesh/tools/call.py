"""One call: who makes it, with what credentials, inside which transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from steadmesh.kernel.clock import Clock, Instant
from steadmesh.kernel.database import Transaction
from steadmesh.kernel.errors import Failure
from steadmesh.kernel.paging import Cursors, Position
from steadmesh.kernel.signals import Signals
from steadmesh.kernel.trimming import Kept

if TYPE_CHECKING:
    from steadmesh.tools.tool import Tool


# Made for every call, and a frozen dataclass takes four times as long to make: these are not frozen.


@dataclass(slots=True)
class Credentials:
    """What a request brought along to say who it is. Secrets in here are never printed."""

    bearer: str | None = field(default=None, repr=False)
    agent_token: str | None = field(default=None, repr=False)
    local: bool = False
    """It came over the Unix socket: from the same user on this machine."""
    generation: int | None = None
    execution: str | None = None
    idempotency_key: str | None = field(default=None, repr=False)
    path: Mapping[str, str] = field(default_factory=dict)
    """The values of the names in braces in the route, for families whose callers depend on them."""


@dataclass(slots=True)
class Caller:
    """Somebody whose credentials were verified. Families extend it."""

    name: str
    """How the audit names the caller."""
    scope: str
    """What the caller belongs to: an organisation's id, or a family's name."""
    credential: str = field(repr=False)
    """The digest of the credential; empty for one that was not needed."""


@dataclass(frozen=True, slots=True)
class Services:
    """What every call may use."""

    clock: Clock
    cursors: Cursors
    signals: Signals
    count: Callable[..., None]
    """Add one to a metric: `count("messages_accepted_total", "seat")`."""
    disk_is_full: Callable[[], bool] = lambda: False
    """Whether the database's last write failed for want of space."""
    kept: Kept = field(default_factory=Kept)
    secrets_dir: Path | None = None
    """Where secrets may lie besides the folder of the organisation file."""


C = TypeVar("C", bound=Caller, covariant=True)


@dataclass(slots=True)
class Call(Generic[C]):
    """A call that was let in, with its transaction open and its locks held."""

    tx: Transaction
    now: Instant
    caller: C
    tool: Tool
    arguments: Mapping[str, Any]
    credentials: Credentials
    services: Services
    cap: int = 16_384
    prepared: Any = None
    """What the tool's `prepare` made of the arguments."""

    def position(self, cursor: str | None) -> Position | None:
        """Where a list goes on; nothing at its beginning. A cursor of another list is `invalid`."""
        return self.services.cursors.read(cursor or "", caller=self._owner, query=self._query)

    def cursor(self, *position: int | str) -> str:
        """The cursor that continues this list behind a position."""
        return self.services.cursors.write(position, caller=self._owner, query=self._query)

    def count(self, metric: str, *labels: str) -> None:
        """Add one to a metric once the work is durable."""
        count = self.services.count
        self.tx.after_commit(lambda: count(metric, *labels))

    def count_refusal(self, failure: Failure, metric: str, *labels: str) -> None:
        """Add one to a metric if the call ends with this failure: the handler may yet run again."""
        failure.counted.append((metric, *labels))

    @property
    def _owner(self) -> str:
        return f"{self.caller.scope}/{self.caller.name}"

    @property
    def _query(self) -> dict[str, Any]:
        """All arguments but the cursor and the page size, and the tool's name."""
        paging = ("cursor", "limit", "max_results")
        query = {k: v for k, v in self.arguments.items() if k not in paging and v is not None}
        return {"tool": self.tool.name} | query
