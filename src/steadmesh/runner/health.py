"""`/healthz` and `/readyz` of a runner, for whoever watches processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HealthEndpoint:
    """Answers on `host:port` until closed. Raises OSError, ValueError at once if it cannot."""

    def __init__(self, address: str, *, is_ready: Callable[[], bool]) -> None:
        host, _, port = address.rpartition(":")
        self._server = ThreadingHTTPServer(
            (host.strip("[]") or "127.0.0.1", int(port)), _handler(is_ready)
        )
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


def _handler(is_ready: Callable[[], bool]) -> type[BaseHTTPRequestHandler]:
    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"/healthz": True, "/readyz": is_ready()}
            good = known.get(self.path)
            status = 404 if good is None else 200 if good else 503
            text = b"ok\n" if good else b"no\n"
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Probes come every few seconds; the log is for what happens."""

    return Health
