"""Organisation F in force on one database, and its seats as they act: by calls through the pipeline."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Instant, TurnedClock
from steadmesh.kernel.config_tables import Retention
from steadmesh.kernel.database import Database, Transaction
from steadmesh.kernel.database.migrations import migrate
from steadmesh.kernel.errors import Failure
from steadmesh.kernel.jobs import JobContext
from steadmesh.kernel.paging import Cursors
from steadmesh.kernel.signals import Signals
from steadmesh.seats import (
    automations,
    briefing,
    connections,
    identity,
    lifecycle,
    messages,
    organisation,
    turns,
)
from steadmesh.tools import Caller, Catalogue, Credentials, Family, Services
from steadmesh.tools.audit import Audit
from steadmesh.tools.run import Answer, Runner
from tests.support.organisations import BUNDLES, fixture_f, folder_of


def _operator(tx: Transaction, credentials: Credentials, now: Instant) -> Caller:
    return Caller(name="operator", scope="operator", credential="")


def _nothing(*_: Any) -> None:
    return None


OPERATOR = Family("operator", _operator, _nothing, _nothing, lambda caller, tool: [])
FEATURES = [
    organisation.FEATURE,
    identity.FEATURE,
    messages.FEATURE,
    turns.FEATURE,
    automations.FEATURE,
    connections.FEATURE,
    lifecycle.FEATURE,
    briefing.FEATURE,
]


class Refusal(Exception):
    """A call that was refused."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.code = failure.code
        self.kind = failure.kind
        self.details = failure.detail()


class Actor:
    """A seat that acts: with a token of its own, and after `acquire` with a lease."""

    def __init__(self, world: World, key: str, instance: str = "one") -> None:
        self.world = world
        self.key = key
        self.seat_id = world.seats[key]
        issued = world.operate(
            "POST /internal/v1/seats/{seat}/tokens", seat=self.seat_id, instance=instance
        )
        self.token: str = issued["token"]
        self.generation: int | None = None

    def acquire(self) -> Actor:
        """Take the lease."""
        self.generation = self("POST /v1/lease/acquire")["generation"]
        return self

    def __call__(self, name: str, **arguments: Any) -> Any:
        """Call a tool or an endpoint; the content of its answer, or `Refusal`."""
        answer = self.answer(name, **arguments)
        if answer.failure is not None:
            raise Refusal(answer.failure)
        return json.loads(answer.content)

    def answer(self, name: str, **arguments: Any) -> Answer:
        credentials = Credentials(bearer=self.token, generation=self.generation)
        return self.world.run(name, arguments, credentials)

    def next(self) -> Any:
        """The next delivery, or None."""
        return self("GET /v1/inbox/next")

    def finish(self, delivery: Any, outcome: str = "completed", error: str | None = None) -> None:
        """Acknowledge a delivery."""
        self(
            "POST /v1/inbox/{delivery}/ack",
            delivery=delivery["delivery_id"],
            execution_id=delivery["execution_id"],
            outcome=outcome,
            error=error,
        )


class World:
    """One organisation on one database, with a clock that tests turn."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = TurnedClock()
        self.signals = Signals()
        self.counted: list[tuple[str, ...]] = []
        families = [identity.SEATS, OPERATOR, *connections.FAMILIES]
        self.catalogue = Catalogue(families, FEATURES)
        self._endpoints = {tool.name: tool for tool in self.catalogue.endpoints}
        migrate(database, self.catalogue.packages, self.clock)
        services = Services(
            clock=self.clock,
            cursors=Cursors(b"k" * 32),
            signals=self.signals,
            count=lambda *labels: self.counted.append(labels),
            disk_is_full=lambda: database.full,
        )
        self.trimmings = [outbox.TRIMMING, *self.catalogue.trimmings]
        self.audit = Audit()
        self.runner = Runner(self.catalogue, database, services, self.audit)
        self.seats: dict[str, str] = {}
        self.organisation_id = ""
        self.apply(fixture_f())

    def apply(self, document: dict[str, Any], bundles: dict[str, str] | None = None) -> Any:
        """Put a file in force; what the operator is answered."""
        synced = self.operate(
            "POST /internal/v1/organizations:sync",
            file=document,
            bundles=bundles or BUNDLES,
            folder=folder_of(document),
        )
        self.organisation_id = synced["organization_id"]
        self.seats = {key: seat["seat_id"] for key, seat in synced["seats"].items()}
        return synced

    def actor(self, key: str, instance: str = "one") -> Actor:
        """A seat that holds its lease."""
        return Actor(self, key, instance).acquire()

    def operate(self, name: str, **arguments: Any) -> Any:
        """Call an operator's endpoint."""
        answer = self.run(name, arguments, Credentials(local=True))
        if answer.failure is not None:
            raise Refusal(answer.failure)
        return json.loads(answer.content)

    def run(self, name: str, arguments: dict[str, Any], credentials: Credentials) -> Answer:
        tool = self._endpoints.get(name) or self.catalogue.find(name)
        return asyncio.run(self.runner.run(tool, arguments, credentials))

    def jobs(self) -> int:
        """Run every background job until nothing is due; how much was done."""
        context = JobContext(
            self.database,
            self.clock,
            lambda: False,
            lambda *labels: self.counted.append(labels),
        )
        return sum(job.run(context) for job in self.catalogue.jobs)

    def trim(self, *tables: str, retention: Retention | None = None) -> int:
        """Remove what is old from these tables, or from all; how much was removed."""
        return sum(self.trimmed(*tables, retention=retention).values())

    def trimmed(self, *tables: str, retention: Retention | None = None) -> dict[str, int]:
        """As `trim`, by table."""
        context = JobContext(
            self.database, self.clock, lambda: False, retention=retention or Retention()
        )
        found = dict.fromkeys(tables or (t.table for t in self.trimmings), 0)
        for trimming in self.trimmings:
            while trimming.table in found and (done := trimming.step(context)):
                found[trimming.table] += done
        return found
