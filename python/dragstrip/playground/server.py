"""A server of one page, on this machine alone.

It answers only requests to this machine's own names, so that a site whose name is made to resolve to this
machine (DNS rebinding) reads nothing, and waits for no client longer than `CONNECTION_S`.
"""

from __future__ import annotations

import re
import sys
import threading
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any

from dragstrip.errors import DragstripError

LOOPBACK = "127.0.0.1"
OWN_NAMES = ("localhost", LOOPBACK, "[::1]")
"""Names of this machine that a client may give in `Host`, with any port: a tunnel's end has another."""
CONNECTION_S = 30.0
"""Seconds a connection lives, whatever its client sends: the page is sent in one."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[^:\[\]]+)(?::[0-9]{1,5})?", re.IGNORECASE)


def server(content: str, port: int) -> ThreadingHTTPServer:
    """Return a server of the page at `/`, reachable from this machine only; port 0 takes any free port.

    Raises `DragstripError` if the port cannot be used.
    """
    match = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', content)
    policy = f"{match[1]}; frame-ancestors 'none'" if match else "default-src 'none'"
    handler = partial(_Handler, content.encode("utf-8", "backslashreplace"), policy)
    try:
        return _Server((LOOPBACK, port), handler)
    except OSError as error:
        raise DragstripError(f"--port {port}: {error.strerror}") from None


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # with Python's 5, a client beside 30 others waits seconds for its connection

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone, which is no fault here."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of a connection, every one with the same headers."""

    server_version, sys_version = "dragstrip", ""
    default_request_version = "HTTP/1.0"  # of HTTP/0.9 an answer would have no headers

    def __init__(self, page: bytes, policy: str, *connection: Any) -> None:
        self._page, self._policy = page, policy
        super().__init__(*connection)

    def do_GET(self) -> None:
        if refused := self._refused():
            self.send_error(refused)
        elif self.path.split("?")[0] != "/":
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self._page)

    def do_HEAD(self) -> None:
        self.do_GET()

    def handle(self) -> None:
        """Answer, unless the connection's time is over before."""
        over = threading.Timer(CONNECTION_S, _end, [self.connection])
        over.daemon = True
        over.start()
        try:
            super().handle()
        finally:
            over.cancel()

    def _refused(self) -> HTTPStatus | None:
        """Return why a request is not answered, or None."""
        hosts = self.headers.get_all("Host", [])
        match = _HOST.fullmatch(hosts[0].strip()) if len(hosts) == 1 else None
        if match is None:
            return HTTPStatus.BAD_REQUEST
        return None if match[1].lower() in OWN_NAMES else HTTPStatus.MISDIRECTED_REQUEST

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        """Send a whole answer, without its body to HEAD."""
        if self.request_version == "HTTP/0.9":  # spelt out: an answer to it would have no headers either
            self.request_version = self.default_request_version
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", self._policy)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send an error as a line of text."""
        self.close_connection = True
        self._answer(code, "text/plain; charset=utf-8", f"{HTTPStatus(code).phrase}\n".encode())

    def log_message(self, *_: object) -> None:
        """Log nothing, because a line per request helps nobody here."""


def _end(connection: socket) -> None:
    with suppress(OSError):  # it has ended by itself
        connection.shutdown(SHUT_RDWR)
