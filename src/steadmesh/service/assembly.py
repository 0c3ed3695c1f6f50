"""What the product is made of: the families and the features, each in one plain list; and how they are
put together on a database. Nowhere else is a feature named."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from steadmesh.kernel import outbox
from steadmesh.kernel.clock import Clock
from steadmesh.kernel.config import Config, is_loopback
from steadmesh.kernel.database import Database, open_database
from steadmesh.kernel.database.migrations import is_newer, migrate
from steadmesh.kernel.datadir import DataDirectory
from steadmesh.kernel.jobs import Job, JobContext, JobRunner
from steadmesh.kernel.metrics import Metrics, Reading
from steadmesh.kernel.paging import Cursors
from steadmesh.kernel.secret import purpose_key, service_secret
from steadmesh.kernel.signals import Signals
from steadmesh.kernel.trimming import Kept, trimming_job
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
from steadmesh.service import sizes
from steadmesh.service.health import Health
from steadmesh.service.http import HttpService, family_of
from steadmesh.service.mcp import McpService
from steadmesh.service.operator import OPERATORS, remember_key
from steadmesh.service.security import Wall
from steadmesh.tools import Catalogue, Family, Feature, Gauge, Services
from steadmesh.tools import audit as audits
from steadmesh.tools import kept as answers
from steadmesh.tools.audit import Audit
from steadmesh.tools.run import Runner

log = logging.getLogger(__name__)

FAMILIES: tuple[Family, ...] = (
    identity.SEATS,
    OPERATORS,
    *connections.FAMILIES,
)
FEATURES: tuple[Feature, ...] = (
    organisation.FEATURE,
    identity.FEATURE,
    messages.FEATURE,
    turns.FEATURE,
    automations.FEATURE,
    connections.FEATURE,
    lifecycle.FEATURE,
    briefing.FEATURE,
    sizes.FEATURE,
)


@dataclass(slots=True)
class Service:
    """A service on its database, without a port yet."""

    config: Config
    instance_id: str
    database: Database
    catalogue: Catalogue
    runner: Runner
    signals: Signals
    metrics: Metrics
    audit: Audit
    jobs: JobRunner
    mcp: McpService
    app: HttpService
    clock: Clock
    stopping: Callable[[str], None] = field(default=lambda reason: None)
    """What ends the service; whoever runs it puts it here."""

    def stop(self, reason: str) -> None:
        """Ask for the end, from any thread. Whoever runs the service finishes what goes on."""
        self.stopping(reason)

    async def close(self) -> None:
        """End what runs in the background, write what waits, close the database. Blocks for a moment."""
        with contextlib.ExitStack() as steps:  # each is taken, whatever becomes of the one before
            steps.callback(self.database.close)
            steps.callback(self._flush_audit)
            steps.callback(self.jobs.stop)
            await self.mcp.close()

    def _flush_audit(self) -> None:
        context = JobContext(self.database, self.clock, lambda: False)
        try:
            while self.audit.flush(context):
                pass
        except Exception:
            log.exception("the last rows of the audit were not written")


def build(
    config: Config,
    clock: Clock,
    *,
    data: DataDirectory | None = None,
    families: Sequence[Family] = FAMILIES,
    features: Sequence[Feature] = FEATURES,
) -> Service:
    """Open and migrate the database, and put everything together. Nothing listens or runs yet.

    Raises `DataDirectoryError` and `DatabaseProblem` in words for people.
    """
    data = data or DataDirectory.open(config.data)
    catalogue = Catalogue(families, features)
    database = open_database(config.database or data.database)
    try:
        migrate(database, catalogue.packages, clock)
        remember_key(database, data)
        secret = service_secret(database)
    except BaseException:
        database.close()
        raise
    return _put_together(
        config, clock, catalogue, database, secret=secret, operator_key=data.operator_key()
    )


def _put_together(
    config: Config,
    clock: Clock,
    catalogue: Catalogue,
    database: Database,
    *,
    secret: bytes,
    operator_key: str,
) -> Service:
    metrics, signals, audit = Metrics(), Signals(), Audit()
    instance_id = secrets.token_hex(16)
    trimmings = [outbox.TRIMMING, audits.TRIMMING, answers.TRIMMING, *catalogue.trimmings]
    services = Services(
        clock=clock,
        cursors=Cursors(purpose_key(secret, "cursors")),
        signals=signals,
        count=metrics.count,
        disk_is_full=lambda: database.full,
        kept=Kept(trimmings, config.retention),
        secrets_dir=config.secrets_dir,
    )
    runner = Runner(catalogue, database, services, audit)
    mcp = McpService(runner, family_of=family_of)
    schema_watch = _SchemaWatch(catalogue.packages)
    own_jobs = [outbox.NUMBERING, audit.job, schema_watch.job]
    jobs = JobRunner(
        [*own_jobs, *catalogue.jobs, trimming_job(trimmings)],
        database,
        clock,
        retention=config.retention,
        observed=metrics.job_observed,
        count=metrics.count,
    )

    def wake(topics: Iterable[str]) -> None:
        gathered = list(topics)
        signals.notify(gathered)
        jobs.stir(gathered)

    database.on_wake(wake)
    _measure(metrics, database, clock, gauges=catalogue.gauges)
    metrics.observe(
        "audit_rows_dropped",
        "Rows of the audit that this service lost, as its buffer was full.",
        lambda: [((), audit.dropped)],
    )
    hosts = (*config.allowed_hosts, *_own_name(config.host))
    wall = Wall(hosts=hosts, origins=config.allowed_origins, secret=config.http_secret)
    app = HttpService(
        runner=runner,
        mcp=mcp,
        wall=wall,
        health=Health(
            database,
            metrics,
            audit,
            instance_id=instance_id,
            started_at=clock.now(),
            operator_key=operator_key,
        ),
        clock=clock,
        metrics_open=is_loopback(config.host),
        stop=lambda reason: service.stop(reason),
    )
    service = Service(
        config=config,
        instance_id=instance_id,
        database=database,
        catalogue=catalogue,
        runner=runner,
        signals=signals,
        metrics=metrics,
        audit=audit,
        jobs=jobs,
        mcp=mcp,
        app=app,
        clock=clock,
    )
    schema_watch.stop = service.stop
    return service


def _own_name(host: str) -> tuple[str, ...]:
    """The address that the service was told to listen on is a name of it, unless it means all."""
    if host in ("0.0.0.0", "::", "*"):  # noqa: S104 - compared with, not bound to
        return ()
    return (f"[{host}]" if ":" in host else host,)


def _measure(
    metrics: Metrics, database: Database, clock: Clock, *, gauges: Sequence[Gauge]
) -> None:
    """Gauges, and what the writer tells of its batches."""
    database.batch_observed = metrics.write_observed

    def reader(gauge: Gauge) -> Callable[[], Iterable[Reading]]:
        def read() -> Iterable[Reading]:
            return database.read_blocking(lambda tx: list(gauge.read(tx, clock.now())))

        return read

    for gauge in gauges:
        metrics.observe(gauge.name, gauge.help, reader(gauge), labels=gauge.labels)


class _SchemaWatch:
    """A newer program may migrate the database under a running older one, which then has to stop."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = packages
        self.stop: Callable[[str], None] = lambda reason: None

    @property
    def job(self) -> Job:
        return Job("watch schema", self._look, every=5.0, batch=1_000_000)

    def _look(self, context: JobContext) -> int:
        if context.database.read_blocking(lambda tx: is_newer(tx, self._packages)):
            self.stop("a newer steadmesh has migrated the database; start that version")
        return 0


__all__ = ["FAMILIES", "FEATURES", "Service", "build"]
