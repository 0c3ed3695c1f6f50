"""Metrics: counted cheaply, one registry per service, named as promised."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import steadmesh
from steadmesh.kernel import metrics as module
from steadmesh.kernel.metrics import Metrics, Reading

SOURCE = Path(steadmesh.__file__).parent


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def _samples(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Every sample by its name and its labels as `label=value`."""
    return {
        (sample.name, *(f"{name}={value}" for name, value in sorted(sample.labels.items()))): (
            sample.value
        )
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_a_count_is_shown_under_its_labels(metrics: Metrics) -> None:
    for _ in range(2):
        metrics.count("tool_calls_total", "clock.now", "ok")
    name = ("steadmesh_tool_calls_total", "result=ok", "tool=clock.now")
    assert _samples(metrics)[name] == 2


def test_two_services_count_apart(metrics: Metrics) -> None:
    other = Metrics()
    metrics.count("messages_accepted_total", "seat")
    assert not [name for name in _samples(other) if "messages_accepted_total" in name[0]]


def test_the_metrics_of_the_contract_have_their_labels(metrics: Metrics) -> None:
    assert {
        ("http_requests_total", ("route", "status")),
        ("tool_calls_total", ("tool", "result")),
        ("messages_accepted_total", ("origin",)),
        ("messages_rejected_total", ("reason",)),
        ("deliveries_dead_lettered_total", ()),
    } <= {(name, series.labels) for name, series in metrics.counters.items()}
    assert ("steadmesh_http_request_duration_seconds_count",) in _samples(metrics)


def test_a_count_of_nothing_known_is_logged_and_not_raised(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    metrics.count("no_such_total")
    metrics.count("tool_calls_total", "one label too few")
    assert [record.getMessage() for record in caplog.records] == ["not a counter"] * 2


def test_a_run_of_a_job_is_counted_and_timed(metrics: Metrics) -> None:
    metrics.job_observed("outbox", 3, 0.2)
    samples = _samples(metrics)
    assert samples["steadmesh_job_runs_total", "job=outbox"] == 1
    assert samples["steadmesh_job_items_total", "job=outbox"] == 3
    assert samples["steadmesh_job_duration_seconds_sum", "job=outbox"] == 0.2


def test_a_shared_commit_is_counted_and_timed(metrics: Metrics) -> None:
    metrics.write_observed(7, 0.2)
    samples = _samples(metrics)
    assert samples[("steadmesh_database_write_batch_size_sum",)] == 7
    assert samples[("steadmesh_database_write_duration_seconds_sum",)] == 0.2


def test_a_gauge_is_read_when_the_metrics_are(metrics: Metrics) -> None:
    waiting = [3.0]
    metrics.observe("inbox_oldest_pending_seconds", "Age.", lambda: [((), waiting[0])])
    waiting[0] = 4.0
    assert _samples(metrics)[("steadmesh_inbox_oldest_pending_seconds",)] == 4


def test_a_gauge_has_labels(metrics: Metrics) -> None:
    metrics.observe(
        "seats", "Seats.", lambda: [(("acme", "warm"), 2)], labels=("organization", "state")
    )
    assert _samples(metrics)["steadmesh_seats", "organization=acme", "state=warm"] == 2


def test_a_gauge_that_cannot_be_read_hides_no_other_metric(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Iterator[Reading]:
        yield (), 1
        raise OSError("the database is gone")

    metrics.observe("seats", "Seats.", broken)
    metrics.count("deliveries_dead_lettered_total")
    samples = _samples(metrics)
    assert samples[("steadmesh_deliveries_dead_lettered_total",)] == 1
    assert ("steadmesh_seats",) not in samples
    assert caplog.records[0].getMessage() == "a gauge could not be read"


def test_too_many_series_are_counted_together(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 2)
    for reason in "abcd":
        metrics.count("messages_rejected_total", reason)
    assert {
        name[1]: value
        for name, value in _samples(metrics).items()
        if name[0] == "steadmesh_messages_rejected_total"
    } == {"reason=a": 1, "reason=b": 1, "reason=other": 2}


def test_a_series_has_one_sample(metrics: Metrics) -> None:
    metrics.count("messages_accepted_total", "seat")
    assert b"_created" not in metrics.render()


def _counted(path: Path) -> Iterator[tuple[str, int]]:
    """What a file counts by name, and with how many labels."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="count"), args=[ast.Constant(value=str(name)), *labels]
            ) if name.endswith("_total"):
                yield name, len(labels)


def test_whatever_the_code_counts_is_a_counter_with_these_labels(metrics: Metrics) -> None:
    declared = {(name, len(series.labels)) for name, series in metrics.counters.items()}
    counted = {use for path in SOURCE.rglob("*.py") for use in _counted(path)}
    assert len(counted) > 3
    assert counted <= declared
