"""`dragstrip play --serve`: what it answers, to whom, and what a client can do to it."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dragstrip.playground import server as serving

POLICY = "default-src 'none'; script-src 'sha256-abc'"
PAGE = f'<!doctype html>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'


@contextmanager
def served(page: str = PAGE) -> Iterator[int]:
    """The port of a server at work."""
    with serving.server(page, 0) as it:
        assert it.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=it.serve_forever)
        thread.start()
        try:
            yield it.server_port
        finally:
            it.shutdown()
            thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with served() as number:
        yield number


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def asked(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer to these bytes."""
    with connected(port) as client:
        client.sendall(request)
        answer = b""
        while part := client.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def get(host: str, target: str = "/", method: str = "GET") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "LOCALHOST", "localhost:8080"]
)
def test_this_machine_s_names_are_answered(port: int, host: str) -> None:
    status, headers, body = asked(port, get(host.format(port=port), "/?x"))
    assert (status, body.decode()) == (200, PAGE)
    assert headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (421, get("attacker.example:80")),
        (421, get("localhost.attacker.example")),
        (421, get("127.0.0.1.nip.io")),
        (421, get("10.0.0.1")),
        (421, get("[::2]")),
        (400, get("")),
        (400, get("localhost@attacker.example:1:2")),
        (400, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: attacker.example\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\n\r\n"),
        (400, b"GET /\r\n\r\n"),
        (400, b"GET / HTTP/x\r\n\r\n"),
        (400, b"\x16\x03\x01 \xff\xfe what is this\r\n\r\n"),
        (404, get("localhost", "/../etc/passwd")),
        (404, get("localhost", "http://localhost/")),
        (501, get("localhost", method="POST")),
        (505, b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"),
        (414, get("localhost", "/" + "a" * 70_000)),
        (431, b"GET / HTTP/1.1\r\n" + b"".join(b"A%d: b\r\n" % n for n in range(200)) + b"\r\n"),
    ],
)
def test_others_are_refused_under_the_same_headers(port: int, status: int, request_: bytes) -> None:
    answered, headers, body = asked(port, request_)
    assert answered == status
    assert PAGE.encode() not in body
    assert headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
    assert {name: headers[name] for name in serving.HEADERS} == serving.HEADERS
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert "Python" not in headers["Server"]


def test_an_http_0_9_that_is_spelt_out_gets_the_headers_too(port: int) -> None:
    status, headers, body = asked(port, b"GET / HTTP/0.9\r\nHost: localhost\r\n\r\n")
    assert (status, body.decode()) == (200, PAGE)
    assert headers["Content-Security-Policy"] == f"{POLICY}; frame-ancestors 'none'"
    assert {name: headers[name] for name in serving.HEADERS} == serving.HEADERS


def test_head_is_answered_without_a_body(port: int) -> None:
    status, headers, body = asked(port, get("localhost", method="HEAD"))
    assert (status, headers["Content-Length"], body) == (200, str(len(PAGE)), b"")


def test_a_client_that_resets_is_no_fault(capfd: pytest.CaptureFixture[str]) -> None:
    with served(PAGE + "x" * (8 << 20)) as port:  # more than fits between the two
        for request in (get("localhost"), b"GET / HT", b""):
            client = connected(port)
            client.sendall(request)
            if request.endswith(b"\r\n\r\n"):
                client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()  # a reset, not an end
        assert asked(port, get("localhost"))[0] == 200
        until = time.monotonic() + 60
        while threading.active_count() > 2 and any(
            "process_request" in t.name for t in threading.enumerate()
        ):
            assert time.monotonic() < until, threading.enumerate()
            time.sleep(0.01)
    assert capfd.readouterr() == ("", "")


def test_many_clients_at_once_get_their_connections() -> None:
    """Before the server takes a single one; a connection beyond the queue would wait for seconds."""
    with serving.server(PAGE, 0) as it, ExitStack() as idle:
        for _ in range(50):
            idle.enter_context(connected(it.server_port))


@pytest.mark.parametrize("sends", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "], ids=["idle", "half"])
@pytest.mark.parametrize("drips", [False, True])
def test_a_client_that_never_ends_its_request_is_left(
    monkeypatch: pytest.MonkeyPatch, sends: bytes, drips: bool
) -> None:
    monkeypatch.setattr(serving, "CONNECTION_S", 0.2)
    with served() as port, connected(port) as client:
        client.sendall(sends)
        if not drips:
            assert client.recv(100) == b""
            return
        until = time.monotonic() + 60
        client.settimeout(0.02)
        while True:
            assert time.monotonic() < until, "it lives on"
            try:
                client.sendall(b"a")
                if client.recv(100) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return


def test_a_page_without_a_policy_is_served_under_the_strictest() -> None:
    with served("<!doctype html>") as port:
        assert asked(port, get("localhost"))[1]["Content-Security-Policy"] == "default-src 'none'"
