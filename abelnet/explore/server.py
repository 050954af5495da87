"""HTTP server of the page, on 127.0.0.1 alone: static files, and tasks whose steps and result are lines of JSON.

Only requests of the page itself are answered: a ``Host`` other than this machine's (DNS rebinding) and an ``Origin``
other than the page's (cross-site requests) are refused. A body is refused by its declared length before any of it is
kept, and the number of connections, of waiting tasks and of seconds is limited.
"""

from __future__ import annotations

__all__ = ["MOST_BYTES", "Explorer", "open_page"]

import errno
import json
import os
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from abelnet.errors import AbelnetError
from abelnet.explore.tasks import TASKS
from abelnet.explore.workers import BusyError, Worker
from abelnet.reporting.charts import CHART_STYLE

MOST_BYTES = 20 * 2**20
"""Bytes of a request."""
_ADDRESS = "127.0.0.1"
_CONNECTIONS = 64  # at a time
_SILENCE = 30.0  # seconds until a connection that sends nothing is closed
_DRAIN = 5.0  # seconds for which a refused body is thrown away, so that the reason is read
_SECONDS = {"tables": 20.0, "laws": 90.0, "analogies": 60.0, "multisets": 120.0}
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Explorer(ThreadingHTTPServer):
    """The server and its workers.

    Arguments:
        port: Port; 0 for any that is free.
        seconds: Time limits of the tasks of each worker, where they are not the usual ones.
        waiting: Number of tasks that may wait for each worker.

    Example:
        >>> with Explorer(0) as explorer:
        ...     explorer.address.startswith("http://127.0.0.1:")
        True
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0, *, seconds: Mapping[str, float] | None = None, waiting: int = 8) -> None:
        limits = {**_SECONDS, **(seconds or {})}
        self.workers = {name: Worker(limit, waiting) for name, limit in limits.items()}
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        self._thread: threading.Thread | None = None
        try:
            super().__init__((_ADDRESS, port), _Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise AbelnetError(
                f"port: expected a free one, got {port}, which is in use; choose another, or 0 for any free one"
            ) from None

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{_ADDRESS}:{self.server_port}/"

    def start(self) -> None:
        """Serves requests in a thread of its own, until the server is closed."""
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()

    def server_close(self) -> None:
        if self._thread is not None:
            self.shutdown()
            self._thread = None
        super().server_close()
        for worker in self.workers.values():
            worker.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            with suppress(OSError):
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says in a line what went wrong in a request, unless its sender has left."""
        error = sys.exception()
        if not isinstance(error, OSError):
            print(f"abelnet: a request failed: {type(error).__name__}: {error}", file=sys.stderr)


class _Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    timeout = _SILENCE
    server_version, sys_version = "abelnet", ""

    def do_GET(self) -> None:
        self._answer(self._send_file)

    def do_HEAD(self) -> None:
        self._answer(self._send_file)

    def do_POST(self) -> None:
        self._answer(self._run)

    def _answer(self, work: Any) -> None:
        try:
            self._check_sender()
            work()
        except _Refusal as refusal:
            self._send_json(refusal.status, {"error": str(refusal)})
            self._drain()

    def _check_sender(self) -> None:
        hosts = {f"{name}:{self.server.server_port}" for name in (_ADDRESS, "localhost")}
        host = self.headers.get("Host", "")
        if host not in hosts:
            raise _Refusal(HTTPStatus.MISDIRECTED_REQUEST, "host: expected 127.0.0.1 or localhost with the port")
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "same-origin")
        is_own = origin is None or origin == f"http://{host}"
        # A link from another page may open this one; nothing else may be asked from there.
        if not is_own or (self.command == "POST" and site not in ("same-origin", "none")):
            raise _Refusal(HTTPStatus.FORBIDDEN, "origin: expected a request of the page itself")

    def _send_file(self) -> None:
        found = _files().get(self.path.partition("?")[0])
        if found is None:
            raise _Refusal(HTTPStatus.NOT_FOUND, "path: no such page")
        kind, content = found
        self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", content)

    def _run(self) -> None:
        name = self.path.removeprefix("/api/")
        if name not in TASKS or not self.path.startswith("/api/"):
            raise _Refusal(HTTPStatus.NOT_FOUND, "path: no such task")
        if self.headers.get_content_type() != "application/json":
            raise _Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type: expected application/json")
        worker, is_started = self.server.workers[TASKS[name].worker], False

        def tell(line: dict[str, Any]) -> None:
            nonlocal is_started
            if not is_started:
                self._send_head(HTTPStatus.OK, "application/x-ndjson")
                is_started = True
            self.wfile.write(json.dumps(line).encode() + b"\n")
            self.wfile.flush()

        try:
            # The body is read when there is a place for the task: no more than those that wait are in memory.
            found = worker.run(name, self._body, lambda step, seconds: tell({"step": step, "seconds": seconds}))
            tell({"result": found})
        except BusyError as error:
            raise _Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None
        except AbelnetError as error:
            tell({"error": str(error)})

    def _body(self) -> bytes:
        length = self._length()
        if length is None:
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "Content-Length: expected the size of the request")
        if length > MOST_BYTES:
            raise _Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"table: expected at most {MOST_BYTES // 2**20} MB, got {length / 2**20:,.0f} MB; take a sample of its "
                "sets, or run abelnet learn FILE on the command line, which has no limit",
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise _Refusal(HTTPStatus.BAD_REQUEST, "request: expected as many bytes as it says")
        return body

    def _length(self) -> int | None:
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None

    def handle_expect_100(self) -> bool:
        """Refuses a large body before it is sent, if its sender asks."""
        if (self._length() or 0) <= MOST_BYTES:
            return super().handle_expect_100()
        return True

    def _send_json(self, status: HTTPStatus, content: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(content).encode() + b"\n")

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._send_head(status, kind, len(content))
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_head(self, status: HTTPStatus, kind: str, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def _drain(self) -> None:
        """Throws a refused body away: a connection that is closed before loses the answer on its way."""
        with suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            end = time.monotonic() + _DRAIN
            self.connection.settimeout(0.5)
            while time.monotonic() < end and self.rfile.read1(2**16):
                pass

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


@cache
def _files() -> dict[str, tuple[str, bytes]]:
    """Returns all files of the page by path, with their types; no other is ever opened."""
    folder = resources.files("abelnet.explore") / "static"
    found = {}
    for file in folder.iterdir():
        kind = _KINDS.get(os.path.splitext(file.name)[1])
        if kind is not None:
            found[f"/{file.name}"] = (kind, file.read_bytes())
    found["/charts.css"] = ("text/css", CHART_STYLE.encode())
    found["/"] = found["/index.html"]
    return found


def open_page(address: str) -> None:
    """Opens the page in the default browser, if there is a screen; a browser in the terminal would take it over."""
    has_screen = sys.platform in ("win32", "darwin") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if has_screen:
        with suppress(webbrowser.Error):
            webbrowser.open(address)
