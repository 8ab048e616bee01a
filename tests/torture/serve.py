"""`play --serve` under random HTTP: wrong hosts, halves of requests, resets, long headers, many idle connections.

Every answer has the server's security headers, the page goes to no other host's name, the server then still answers an
honest request, says nothing of its clients, and ends with Ctrl-C like any command.
"""

from __future__ import annotations

import contextlib
import random
import re
import signal
import socket
import struct
from pathlib import Path

from common import FAULT, INTERRUPTED, LIMIT_S, end, main, start

from dragstrip.playground.server import HEADERS, OWN_NAMES

METHODS = (
    "GET",
    "GET",
    "GET",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "OPTIONS",
    "CONNECT",
    "get",
    "G\0T",
    "GETGETGET" * 9,
)
TARGETS = (
    *(
        "/",
        "/",
        "/",
        "/?x=1",
        "/#a",
        "//",
        "/index.html",
        "/../../etc/passwd",
        "/%00",
        "*",
        "http://localhost/",
        "",
    ),
    *("/" + "a" * 70_000, "/\x1b[2J", "/é", "\\", "/?" + "b" * 3000, "//attacker.example/", "/./"),
)
OTHER_HOSTS = (
    *(
        "attacker.example",
        "localhost.attacker.example",
        "127.0.0.1.nip.io",
        "10.0.0.1",
        "[::2]",
        "127.0.0.2",
        "127.1",
    ),
    *(
        "",
        " ",
        "localhost@attacker.example",
        "localhost:80:80",
        "localhost:x",
        "localhost\0",
        "127.0.0.1:999999",
        "é",
    ),
    *(
        "localhost, attacker.example",
        "l" * 5000,
        "localhost.",
        "user@localhost",
        "[::1",
        "::1",
        "[::1]x",
        "2130706433",
    ),
)
VERSIONS = (
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/2.0",
    "HTTP/x",
    "HTTP/1.1.1",
    "HTTP/",
    "",
    "HTTP/0.9",
)
PAGE_BEGINS = b"<!doctype html>"


def request(dice: random.Random, port: int) -> tuple[bytes, bool]:
    """A request, and whether it names this machine once, so that the page may be the answer."""
    own = dice.random() < 0.5
    name = dice.choice(OWN_NAMES) if own else dice.choice(OTHER_HOSTS)
    host = name + dice.choice(["", f":{port}", ":8080"]) if own else name
    lines = [
        f"{dice.choice(METHODS)} {dice.choice(TARGETS)} {dice.choice(VERSIONS)}".rstrip(),
        f"Host: {host}",
    ]
    match dice.randrange(10):
        case 0:
            lines.append(f"Host: {dice.choice(OTHER_HOSTS)}")
            own = False
        case 1:
            lines.pop()
            own = False
        case 2:
            lines += [f"A{number}: b" for number in range(dice.choice([5, 99, 150, 2000]))]
        case 3:
            lines.append("X: " + "y" * dice.choice([100, 65_000, 70_000, 300_000]))
        case 4:
            lines += [
                "Content-Length: 99999999999999999999",
                "Transfer-Encoding: chunked",
                "Connection: keep-alive",
            ]
        case 5:
            lines.insert(
                dice.randrange(len(lines) + 1),
                dice.choice([" folded", "no colon", ": ", "\0", "Expect: 100-continue"]),
            )
        case _:
            pass
    text = dice.choice(["\r\n", "\r\n", "\r\n", "\n"]).join(lines) + "\r\n\r\n"
    made = bytearray(text.encode("utf-8"))
    if dice.random() < 0.1:  # a few bytes exchanged, so that its host is whatever it now is
        for _ in range(dice.randint(1, 4)):
            made[dice.randrange(len(made))] = dice.randrange(256)
    if dice.random() < 0.05:
        return dice.randbytes(dice.choice([1, 100, 10_000])) + b"\r\n\r\n", False
    return bytes(made), own


def check_headers(answer: bytes, what: object) -> int:
    """The status of an answer, which has all of the headers."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    found = re.fullmatch(r"HTTP/1\.[01] (\d{3}) .*", first)
    assert found, f"no status line: {answer[:200]!r} to {what}"
    headers = dict(line.split(": ", 1) for line in lines)
    assert HEADERS.items() <= headers.items(), f"{headers} to {what}"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], f"{headers} to {what}"
    assert "Python" not in headers.get("Server", ""), f"{headers} to {what}"
    assert int(headers["Content-Length"]) >= len(body), f"more than it says: {headers} to {what}"
    return int(found[1])


def asked(port: int, sent: bytes) -> bytes:
    """All that the server answers; a reset ends it, as one may if it leaves before it has read everything."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as client:
        answer = b""
        with contextlib.suppress(OSError):
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while part := client.recv(1 << 16):
                answer += part
        return answer


def reset(port: int, sent: bytes, wait: bool) -> None:
    """Sends something and resets the connection, perhaps in the middle of the answer."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as client,
        contextlib.suppress(OSError),
    ):
        client.sendall(sent)
        if wait:
            client.recv(1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def attack(dice: random.Random, port: int, idle: list[socket.socket]) -> None:
    """One thing that a client may do."""
    sent, own = request(dice, port)
    match dice.randrange(8):
        case 0:
            reset(port, sent[: dice.randrange(len(sent) + 1)], wait=False)
        case 1:
            reset(port, f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode(), wait=True)
        case 2:
            for _ in range(dice.choice([1, 5, 30])):
                client = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
                client.sendall(sent[: dice.choice([0, 0, 1, 20])])
                idle.append(client)
        case 3:
            part = sent[: dice.randrange(len(sent) + 1)]
            answer = asked(port, part)
            assert own or PAGE_BEGINS not in answer or own_host(part), f"the page for {part[:300]!r}"
            if answer:
                check_headers(answer, part[:300])
        case _:
            answer = asked(port, sent)
            assert own or PAGE_BEGINS not in answer or own_host(sent), f"the page for {sent[:300]!r}"
            if answer:
                status = check_headers(answer, sent[:300])
                assert status < 500 or status in (501, 505), f"{status} for {sent[:300]!r}"


def own_host(sent: bytes) -> bool:
    """Whether bytes that were exchanged or cut off name this machine, by their only line of a host."""
    hosts = re.findall(rb"(?im)^host:[ \t]*([^\r\n]*)", sent)
    names = "|".join(map(re.escape, OWN_NAMES))
    return len(hosts) == 1 and bool(
        re.fullmatch(rf"({names})(:\d{{1,5}})?", hosts[0].decode("latin-1").strip(), re.I)
    )


def trial(number: int, folder: Path) -> str:
    """Attacks a server with what this number says."""
    dice = random.Random(number)
    process = start(
        folder, "play", "cubic", "--rate", "2mbit", "--rtt", "20ms", "--queue", "sfq", "--no-open", "--serve"
    )
    idle: list[socket.socket] = []
    try:
        assert process.stdout
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
        assert found, f"it says no address: {end(process)}"
        port = int(found[1])
        for _ in range(60):
            attack(dice, port, idle)
            assert process.poll() is None, f"it has ended: {end(process)}"
        page = asked(port, f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        assert check_headers(page, "an honest request") == 200
        assert PAGE_BEGINS in page[:2000], f"no page: {page[:300]!r}"
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        for client in idle:
            client.close()
    ended = end(process)
    assert ended.status in (0, INTERRUPTED), f"it ends otherwise: {ended}"
    assert ended.status != FAULT
    assert ended.stderr.strip() in ("", "error: interrupted"), f"it says something of its clients: {ended}"
    return f"ended {ended.status}"


if __name__ == "__main__":
    main("serve", trial, count=200, sample=2, about=__doc__)
