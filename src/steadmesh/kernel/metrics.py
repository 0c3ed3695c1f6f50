"""Prometheus metrics of one service instance.

Each `Metrics` has a registry of its own, so several services can live in one process. A series is
looked up once per combination of labels and kept: on the way of a request there is a dictionary
look-up and an increment. Labels come from closed sets (a route's template, a tool's name); should
one not, everything above 1 000 series of a metric is counted as `other`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

log = logging.getLogger(__name__)

M = TypeVar("M", bound=MetricWrapperBase)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SERIES = 1_000
_PREFIX = "steadmesh"
_REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_WRITE_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_JOB_SECONDS = (0.001, 0.01, 0.1, 0.5, 1, 5, 30, 120)
_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)

Reading = tuple[Sequence[str], float]
"""The values of a gauge's labels, and its value."""


class Metrics:
    """What is counted and measured. Names and labels are part of the product's contract."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.counters: dict[str, Series[Counter]] = {}
        """By name, without the prefix."""
        self.http_requests = self._counter(
            "http_requests_total", "HTTP requests answered.", "route", "status"
        )
        self.http_request_seconds = self._histogram(
            "http_request_duration_seconds", "From request to answer.", _REQUEST_SECONDS
        ).of()
        self.tool_calls = self._counter(
            "tool_calls_total", "Tool calls by result: ok, denied, error.", "tool", "result"
        )
        self.messages_accepted = self._counter(
            "messages_accepted_total", "Messages put into an inbox.", "origin"
        )
        self.messages_rejected = self._counter(
            "messages_rejected_total", "Messages refused.", "reason"
        )
        self.ingress_events = self._counter(
            "ingress_events_total", "Messages that people sent in.", "outcome"
        )
        self.seats_retired = self._counter("seats_retired_total", "Seats that have left.")
        self.deliveries_dead_lettered = self._counter(
            "deliveries_dead_lettered_total", "Deliveries given up after the last attempt."
        )
        self.job_runs = self._counter("job_runs_total", "Runs of background jobs.", "job")
        self.job_items = self._counter(
            "job_items_total", "Items that background jobs dealt with.", "job"
        )
        self.job_seconds = self._histogram(
            "job_duration_seconds", "One run of a background job.", _JOB_SECONDS, "job"
        )
        self.write_batch_size = self._histogram(
            "database_write_batch_size", "Writes that shared one commit.", _BATCH_SIZES
        ).of()
        self.write_seconds = self._histogram(
            "database_write_duration_seconds",
            "One shared commit, its writes included.",
            _WRITE_SECONDS,
        ).of()

    def observe(
        self,
        name: str,
        help: str,
        read: Callable[[], Iterable[Reading]],
        *,
        labels: Sequence[str] = (),
    ) -> None:
        """A gauge that is read whenever the metrics are: `seats`, `inbox_oldest_pending_seconds`.

        `read` runs in the thread that calls `render`. If it fails, the gauge is left out and the
        failure logged. Raises ValueError for a name that is taken.
        """
        self.registry.register(_Observed(f"{_PREFIX}_{name}", help, read, labels))

    def count(self, name: str, *labels: str) -> None:
        """Add one to a counter. Never fails, as it is called after commits: a mistake is logged."""
        try:
            self.counters[name].of(*labels).inc()
        except (KeyError, ValueError):
            log.exception("not a counter", extra={"fields": {"name": name, "labels": labels}})

    def job_observed(self, name: str, done: int, seconds: float) -> None:
        """Count one run of a background job."""
        self.job_runs.of(name).inc()
        self.job_items.of(name).inc(done)
        self.job_seconds.of(name).observe(seconds)

    def write_observed(self, size: int, seconds: float) -> None:
        """Count one shared commit."""
        self.write_batch_size.observe(size)
        self.write_seconds.observe(seconds)

    def render(self) -> bytes:
        """Everything in the text format of Prometheus (see `CONTENT_TYPE`)."""
        return generate_latest(_WithoutBirthdays(self.registry))

    def _counter(self, name: str, help: str, *labels: str) -> Series[Counter]:
        counter = Counter(f"{_PREFIX}_{name}", help, labels, registry=self.registry)
        series = self.counters[name] = Series(counter, labels)
        return series

    def _histogram(
        self, name: str, help: str, buckets: Sequence[float], *labels: str
    ) -> Series[Histogram]:
        metric = Histogram(
            f"{_PREFIX}_{name}", help, labels, registry=self.registry, buckets=buckets
        )
        return Series(metric, labels)


class Series(Generic[M]):
    """The series of one metric by their labels' values."""

    def __init__(self, metric: M, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self._metric = metric
        self._other = ("other",) * len(labels)
        self._known: dict[tuple[str, ...], M] = {} if labels else {(): metric}

    def of(self, *values: str) -> M:
        """The series with these values, in the order in which the labels were declared."""
        known = self._known.get(values)
        return known if known is not None else self._bound(values)

    def _bound(self, values: tuple[str, ...]) -> M:
        if len(self._known) >= MOST_SERIES:
            values = self._other
        # Two threads may both come here: the library gives both the same series.
        bound = self._known[values] = self._metric.labels(*values)
        return bound


class _Observed(Collector):
    def __init__(
        self,
        name: str,
        help: str,
        read: Callable[[], Iterable[Reading]],
        labels: Sequence[str],
    ) -> None:
        self._name = name
        self._help = help
        self._read = read
        self._labels = labels

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Asked when registered, so that nothing is read then."""
        yield GaugeMetricFamily(self._name, self._help, labels=self._labels)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._help, labels=self._labels)
        try:
            for values, number in self._read():
                family.add_metric(values, number)
        except Exception:
            log.exception("a gauge could not be read", extra={"fields": {"gauge": self._name}})
            return
        yield family


class _WithoutBirthdays(Collector):
    """Leaves out the time at which each series was made, which would double their number."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for family in self._registry.collect():
            family.samples = [s for s in family.samples if not s.name.endswith("_created")]
            yield family
