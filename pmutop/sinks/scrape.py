"""The HTTP door of the metrics: GET /metrics, and nothing else."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pmutop.errors import PmutopError, UsageError
from pmutop.sinks.openmetrics import OPENMETRICS, PLAIN, Metrics

PATIENCE = 10.0  # seconds that a client may take for its request or for reading the answer


class Server:
    """Answers on (host, port) from threads of its own; port 0 takes a free one. Close it when done."""

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        class Handler(Answer):
            pass

        Handler.metrics = metrics

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

            def handle_error(self, request, client_address) -> None:
                """A client that goes away is its own affair."""

        try:
            self.http = Listener((host, port), Handler)
        except OSError as error:
            cause = error.strerror or str(error)
            raise PmutopError(
                f"cannot listen on {host}:{port}: {cause}", "name another address with --listen HOST:PORT"
            ) from None
        host, port = self.http.server_address[:2]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"
        self.thread = threading.Thread(target=self.http.serve_forever, name="pmutop-http", daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


class Answer(BaseHTTPRequestHandler):
    metrics: Metrics
    timeout = PATIENCE
    server_version, sys_version = "pmutop", ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404, "metrics are at /metrics")
            return
        openmetrics = "application/openmetrics-text" in self.headers.get("Accept", "")
        body = self.metrics.text(openmetrics).encode()
        self.send_response(200)
        self.send_header("Content-Type", OPENMETRICS if openmetrics else PLAIN)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments) -> None:
        """A scrape is no news."""


def parse_address(text: str) -> tuple[str, int]:
    """'HOST:PORT', ':PORT' (this machine only) or '[IPv6]:PORT' -> host, port."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen {text}: not HOST:PORT", "for instance --listen 127.0.0.1:9741")
    return host.strip("[]") or "127.0.0.1", int(port)
