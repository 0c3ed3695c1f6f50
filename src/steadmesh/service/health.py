"""For machines that watch the service: is it up, is it ready, what does it count."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import re
from dataclasses import dataclass, field

from pydantic_core import to_json

from steadmesh import __version__
from steadmesh.kernel.clock import Instant, rfc3339
from steadmesh.kernel.crypto import proof
from steadmesh.kernel.database import Database
from steadmesh.kernel.errors import Failure
from steadmesh.kernel.metrics import CONTENT_TYPE, Metrics
from steadmesh.service import _store
from steadmesh.service.replies import JSON, NO_STORE, Refusal, Reply
from steadmesh.tools.audit import Audit

log = logging.getLogger(__name__)

READY_SECONDS = 2.0
NONCE = re.compile(r"[A-Za-z0-9_-]{16,128}")


@dataclass(frozen=True, slots=True)
class Health:
    """What is said of one running service."""

    database: Database
    metrics: Metrics
    audit: Audit
    instance_id: str
    started_at: Instant
    operator_key: str = field(repr=False)
    """Of the data directory; never said, only proved to be known."""

    def alive(self) -> Reply:
        """The process is up; which one it is, a client that knows the instance id can tell."""
        content = {"status": "ok", "version": __version__, "instance_id": self.instance_id}
        return Reply(200, to_json(content), (*JSON, NO_STORE))

    def hello(self, nonce: str, port: int) -> Reply:
        """Proof that this is the service of the data directory whose operator key the asker has."""
        if not NONCE.fullmatch(nonce):
            raise Refusal(400, "give nonce= with 16 to 128 letters, digits, - or _")
        content = {"proof": proof(self.operator_key, nonce, port)}
        return Reply(200, to_json(content), (*JSON, NO_STORE))

    async def ready(self) -> Reply:
        """Whether calls can be served: the database answers in time, and takes writes."""
        reason = await self._obstacle()
        if reason is None:
            return Reply(200, to_json({"status": "ready"}), (*JSON, NO_STORE))
        content = {"code": "unavailable", "message": f"not ready: {reason}"}
        return Reply(503, to_json(content), (*JSON, NO_STORE))

    async def about(self) -> Reply:
        """For operators: which process serves which database, and what it had to leave undone."""
        obstacle = await self._obstacle()
        content = {
            "version": __version__,
            "instance_id": self.instance_id,
            "pid": os.getpid(),
            "started_at": rfc3339(self.started_at),
            "python": platform.python_version(),
            "database": {
                "engine": self.database.engine,
                "place": self.database.place,
                "ready": obstacle is None,
                **({} if obstacle is None else {"reason": obstacle}),
            },
            "audit_rows_dropped": self.audit.dropped,
        }
        return Reply(200, to_json(content), (*JSON, NO_STORE))

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
