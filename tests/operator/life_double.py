"""Stands in for the endpoints of suspension and deletion where the service does not offer them.

As strict as their contract: exactly these routes, with exactly these fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

from steadmesh.operator.api import Api
from steadmesh.service.assembly import FEATURES
from tests.support.service import RunningService

_SUSPENSION = re.compile(r"/internal/v1/seats/([0-9a-f-]{36}):(suspend|resume)")
_DELETION = re.compile(r"/internal/v1/organizations/([0-9a-f-]{36})\?retention=(?:retain|delete)")


def is_offered(route: str) -> bool:
    """Whether the service has a route of this form itself."""
    names = {endpoint.name for feature in FEATURES for endpoint in feature.endpoints}
    form = re.sub(r"\{[a-z_]+\}", "{}", route)
    return form in {re.sub(r"\{[a-z_]+\}", "{}", name) for name in names}


@contextmanager
def suspending_and_deleting(service: RunningService) -> Iterator[None]:
    """While it lasts commands can do both, by the service itself or by the double."""
    with (
        mock.patch.object(Api, "post", _post(service)),
        mock.patch.object(Api, "delete", _delete(service)),
    ):
        yield


def _post(service: RunningService) -> Any:
    real = Api.post

    def post(self: Api, path: str, body: Mapping[str, object]) -> Any:
        found = _SUSPENSION.fullmatch(path)
        if found is None or is_offered(f"POST /internal/v1/seats/{{seat}}:{found[2]}"):
            return real(self, path, body)
        assert set(body) <= ({"reason"} if found[2] == "suspend" else set()), body
        suspended = int(found[2] == "suspend")
        _change(service, "UPDATE seats SET suspended = :value WHERE id = :id", suspended, found[1])
        detail = f"suspended by an operator: {body.get('reason')}" if suspended else None
        _change(
            service, "UPDATE leases SET state_detail = :value WHERE seat_id = :id", detail, found[1]
        )
        return None

    return post


def _delete(service: RunningService) -> Any:
    real = Api.delete

    def delete(self: Api, path: str) -> None:
        found = _DELETION.fullmatch(path)
        if found is None or is_offered("DELETE /internal/v1/organizations/{organization}"):
            return real(self, path)
        _change(service, "UPDATE organisations SET deleted_at = :value WHERE id = :id", 1, found[1])
        return None

    return delete


def _change(service: RunningService, sql: Any, value: object, row: str) -> None:
    service.service.database.write_blocking(lambda tx: tx.run(sql, value=value, id=row))
