"""From the names by which features count to the metrics that are shown."""

from __future__ import annotations

import logging
from collections.abc import Callable

from steadmesh.kernel.metrics import Metrics

log = logging.getLogger(__name__)


def counting(metrics: Metrics) -> Callable[..., None]:
    """`count(name, *labels)`. It never fails: it runs after a commit, for many callers at once."""
    known = {
        "tool_calls_total": metrics.tool_calls,
        "messages_accepted_total": metrics.messages_accepted,
        "messages_rejected_total": metrics.messages_rejected,
        "ingress_events_total": metrics.ingress_events,
        "deliveries_dead_lettered_total": metrics.deliveries_dead_lettered,
    }

    def count(name: str, *labels: str) -> None:
        try:
            known[name].of(*labels).inc()
        except (KeyError, ValueError):
            fields = {"metric": name, "labels": len(labels)}
            log.error("something unknown was counted", extra={"fields": fields})

    return count
