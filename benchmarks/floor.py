"""The floor that sends are compared with: bare Starlette that inserts one row for each request.

The same uvicorn, the same group commit, and nothing else: what is above it is ours.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from steadmesh.kernel.clock import SystemClock
from steadmesh.kernel.database import Transaction, open_database
from steadmesh.kernel.ids import new_id

CLOCK = SystemClock()


def main(place: str, port: int) -> None:
    """Serve the floor on a port of loopback until told to stop."""
    database = open_database(place if "://" in place else Path(place))

    def make(tx: Transaction) -> None:
        tx.run("DROP TABLE IF EXISTS rows")
        tx.run("CREATE TABLE rows (id TEXT PRIMARY KEY, body TEXT NOT NULL)")

    database.write_blocking(make)

    async def insert(request: Request) -> JSONResponse:
        body = (await request.json())["arguments"]["body"]
        row_id = new_id(CLOCK.now())
        await database.write(
            lambda tx: tx.run(
                "INSERT INTO rows (id, body) VALUES (:id, :body)", id=row_id, body=body
            )
        )
        return JSONResponse({"content": {"message_id": row_id}})

    app = Starlette(routes=[Route("/insert", insert, methods=["POST"])])
    try:
        uvicorn.run(
            app, port=port, log_level="warning", access_log=False, loop="uvloop", http="httptools"
        )
    finally:
        database.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
