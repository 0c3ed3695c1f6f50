"""For machines that watch the service: is it up, is it ready, what does it count."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from pydantic_core import to_json

from steadmesh import __version__
from steadmesh.kernel.database import Database
from steadmesh.kernel.errors import Failure
from steadmesh.kernel.metrics import CONTENT_TYPE, Metrics
from steadmesh.service import _store
from steadmesh.service.replies import JSON, NO_STORE, Reply

log = logging.getLogger(__name__)

READY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Health:
    """What is said of one running service."""

    database: Database
    metrics: Metrics
    instance_id: str

    def alive(self) -> Reply:
        """The process is up; which one it is, a client that knows the instance id can tell."""
        content = {"status": "ok", "version": __version__, "instance_id": self.instance_id}
        return Reply(200, to_json(content), (*JSON, NO_STORE))

    async def ready(self) -> Reply:
        """Whether calls can be served: the database answers in time, and takes writes."""
        reason = await self._obstacle()
        if reason is None:
            return Reply(200, to_json({"status": "ready"}), (*JSON, NO_STORE))
        content = {"code": "unavailable", "message": f"not ready: {reason}"}
        return Reply(503, to_json(content), (*JSON, NO_STORE))

    async def measured(self) -> Reply:
        """All metrics, in the text format of Prometheus."""
        text = await asyncio.to_thread(self.metrics.render)  # some are read from the database
        return Reply(200, text, ((b"content-type", CONTENT_TYPE.encode()), NO_STORE))

    async def _obstacle(self) -> str | None:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self.database.read(_store.touch)
                if self.database.full:
                    await self.database.write(lambda tx: _store.probe(tx, self.instance_id))
                    self.database.full = False
        except TimeoutError:
            return f"the database did not answer within {READY_SECONDS:g} s"
        except Failure as failure:
            return failure.message
        except Exception:
            log.exception("the database could not be asked whether it is ready")
            return "the database cannot be asked"
        return None
