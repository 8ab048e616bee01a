"""`dragstrip shell`: programs behind a path, in real time on this machine. What needs a TUN device is skipped by name without."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragstrip.engines.agent import binaries
from dragstrip.errors import DragstripError
from shell_client import RECEIVE

DRAGSTRIP = [sys.executable, "-m", "dragstrip"]
PATH = ["--rate", "10mbit", "--rtt", "20ms"]
SEND = """
import os, socket, sys, time
listener = socket.create_server(("", 5000))
connection, _ = listener.accept()
end = time.monotonic() + float(sys.argv[1])
data = bytes(65536)
while time.monotonic() < end:
    try:
        connection.sendall(data)
    except OSError:
        break
"""


def shell(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    command = [*DRAGSTRIP, "shell", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **settings)


@pytest.fixture(scope="module")
def allowed() -> None:
    """Skip where this machine lacks what a shell needs; the message says what."""
    try:
        binaries.program()  # compiled now, if need be: that takes minutes
    except DragstripError as error:
        pytest.skip(str(error))
    tried = shell(*PATH, "--", "true")
    if tried.returncode == 2 and ("TUN" in tried.stderr or "rights" in tried.stderr):
        pytest.skip(f"needs a TUN device and the rights to make namespaces: {tried.stderr.splitlines()[-1]}")
    assert tried.returncode == 0, tried.stderr


def python(script: str, *words: str) -> list[str]:
    return [sys.executable, "-c", script, *words]


def rate_bps(document: dict[str, Any]) -> float:
    """Rate of IP packets that came down, over the whole time of the programs."""
    return float(document["directions"][0]["bytes_out"]) * 8e9 / float(document["duration_ns"])


def quoted(words: list[str]) -> str:
    return shlex.join(words)


def processes(mark: str) -> list[str]:
    lines = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in lines.splitlines() if mark in line and "ps -eo" not in line]


@pytest.mark.usefixtures("allowed")
def test_the_exit_status_and_the_output_are_the_commands() -> None:
    done = shell(*PATH, "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, "out\n")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("path: down: ")
    assert any(line.startswith("down: ") and "lateness" in line for line in lines)
    assert shell(*PATH, "--", "sh", "-c", "kill -TERM $$").returncode == 143


@pytest.mark.usefixtures("allowed")
def test_a_ping_takes_the_round_trip_in_both_families() -> None:
    script = """
import os, socket, time
for family, name in ((socket.AF_INET, "DRAGSTRIP_SERVER"), (socket.AF_INET6, "DRAGSTRIP_SERVER6")):
    start = time.monotonic()
    try:
        socket.create_connection((os.environ[name], 9), 5)
    except ConnectionRefusedError:
        print(time.monotonic() - start)
"""
    done = shell(*PATH, "--", *python(script))
    trips = [float(line) for line in done.stdout.split()]
    assert len(trips) == 2, done.stderr
    for trip in trips:
        assert 0.0199 < trip < 0.060


@pytest.mark.usefixtures("allowed")
def test_a_transfer_gets_the_rate_and_the_document_counts_it(tmp_path: Path) -> None:
    done = shell(
        *(*PATH, "--json", "--out", str(tmp_path / "out"), "--server", quoted(python(SEND, "4"))),
        *("--", *python(RECEIVE)),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    down, up = document["directions"]
    assert json.loads((tmp_path / "out/shell.json").read_text()) == document
    # A frame counts 14 bytes more than its IP packet. The programs take some time to start.
    assert 8e6 < rate_bps(document) < 10e6 * 1500 / 1514 * 1.01
    assert down["drops"].get("full", 0) > 0
    assert down["packets_out"] + sum(down["drops"].values()) <= down["packets_in"]
    assert up["packets_out"] > 100
    assert down["device_drops"] == up["device_drops"] == down["refused"] == up["refused"] == 0
    for direction in (down, up):
        lateness = direction["lateness"]
        assert 0 < lateness["median_ns"] <= lateness["p99_ns"] <= lateness["worst_ns"]


@pytest.mark.usefixtures("allowed")
def test_marks_reach_the_receiver() -> None:
    done = shell(
        *(*PATH, "--ecn", "--queue", "fq_codel", "--json", "--server", quoted(python(SEND, "3"))),
        *("--", *python(RECEIVE)),
    )
    down = json.loads(done.stdout)["directions"][0]
    assert down["marks"] > 0, done.stderr
    # A sender that hears them needs no drop.
    assert down["drops"].get("aqm", 0) == 0


@pytest.mark.usefixtures("allowed")
def test_a_medium_limits_as_it_does_in_the_simulator() -> None:
    done = shell(
        "--path", "home DSL", "--json", "--server", quoted(python(SEND, "3")), "--", *python(RECEIVE)
    )
    # 1500 bytes of IP in 33 cells of 53 bytes at 12 Mbit/s: 10.3 Mbit/s.
    assert 8e6 < rate_bps(json.loads(done.stdout)) < 10.4e6, done.stderr


@pytest.mark.usefixtures("allowed")
def test_what_cannot_start_is_one_line_with_status_2() -> None:
    missing = shell(*PATH, "--", "no-such-program")
    assert missing.returncode == 2
    assert "no-such-program" in missing.stderr.splitlines()[-1]
    assert "command not found" in missing.stderr
    gone = shell(*PATH, "--server", "false", "--", "true")
    assert gone.returncode == 2
    assert "ended with status 1" in gone.stderr
    silent = shell(*PATH, "--timeout", "1s", "--server", "sleep 4714.1", "--", "true")
    assert silent.returncode == 2
    assert "--server: got sleep, expected a server that listens on some port within 1 s" in silent.stderr
    assert processes("4714.1") == []
    unknown = shell(*PATH, "--cc", "vegas9", "--", "true")
    assert unknown.returncode == 2


def wait_for(done: Callable[[], object]) -> None:
    """Wait until something holds; fails after 300 looks."""
    for _ in range(300):
        if done():
            return
        time.sleep(0.1)
    pytest.fail("it never came")


@pytest.mark.usefixtures("allowed")
def test_a_timeout_ends_the_command() -> None:
    done = shell(*PATH, "--timeout", "1s", "--", "sleep", "4711.1")
    assert done.returncode == 124
    assert processes("4711.1") == []


def _hear_hangups() -> None:
    """Undo what tests under nohup(1) inherit: there a hangup is ignored, as it should be."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_no_process_is_left_by_a_signal(number: signal.Signals) -> None:
    words = ["shell", *PATH, "--server", "python3 -m http.server 4712", "--", "sleep", "4712.1"]
    started = subprocess.Popen([*DRAGSTRIP, *words], stderr=subprocess.DEVNULL, preexec_fn=_hear_hangups)
    wait_for(lambda: [line for line in processes("sleep 4712.1") if "dragstrip" not in line])
    started.send_signal(number)
    started.wait(60)
    wait_for(lambda: not processes("4712"))
    wait_for(lambda: not processes(f"parent={started.pid}"))  # the forwarder and the relay


@pytest.mark.usefixtures("allowed")
def test_ctrl_c_ends_the_command_and_not_the_summary() -> None:
    started = subprocess.Popen(
        [*DRAGSTRIP, "shell", *PATH, "--", "sleep", "4713.1"],
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    wait_for(lambda: [line for line in processes("sleep 4713.1") if "dragstrip" not in line])
    os.killpg(started.pid, signal.SIGINT)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 130
    assert "lateness" in errors


@pytest.mark.usefixtures("allowed")
def test_the_ends_have_names_and_the_machine_keeps_its_files() -> None:
    before = Path("/etc/hosts").read_bytes()
    done = shell(*PATH, "--", "getent", "hosts", "server", "server6")
    if "server" in done.stdout:
        assert "198.18.0.2" in done.stdout
        assert "2001:2::2" in done.stdout
    assert Path("/etc/hosts").read_bytes() == before


SERVE = """
import socket, socketserver, sys, threading
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while part := self.request.recv(65536):
            self.request.sendall(part)
class Sink(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(b"go")
        total, end = 0, "closed"
        try:
            while part := self.request.recv(65536):
                total += len(part)
        except ConnectionResetError:
            end = "reset"
        print(end, total, flush=True)
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 512
class Server6(Server):
    address_family = socket.AF_INET6
def datagrams(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.bind((address, 7001))
        while True:
            data, sender = sock.recvfrom(65536)
            sock.sendto(data, sender)
for family, address, kind in ((socket.AF_INET, "203.0.113.2", Server), (socket.AF_INET6, "2001:db8::2", Server6)):
    threading.Thread(target=datagrams, args=(family, address), daemon=True).start()
    threading.Thread(target=kind((address, 7000), Echo).serve_forever, daemon=True).start()
threading.Thread(target=Server(("203.0.113.2", 7002), Sink).serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
ASK = """
import socket, sys, time
def trip(family, address):
    start = time.monotonic()
    with socket.create_connection((address, 7000), 10) as connection:
        first = time.monotonic() - start
        connection.sendall(b"x" * 3000)
        connection.shutdown(socket.SHUT_WR)
        total = 0
        while part := connection.recv(65536):
            total += len(part)
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(5)
        sock.connect((address, 7001))
        start = time.monotonic()
        sock.send(b"y" * 4000)
        size = len(sock.recv(65536))
    print(address, first, total, size, time.monotonic() - start)
trip(socket.AF_INET, "203.0.113.2")
trip(socket.AF_INET6, "2001:db8::2")
for address, port in (("203.0.113.2", 9), ("203.0.113.1", 7000), ("198.18.0.3", 80)):
    try:
        socket.create_connection((address, port), 5)
        print("connected to", address)
    except ConnectionRefusedError:
        print("refused", address)
def begin(port):
    sock = socket.socket()
    sock.setblocking(False)
    sock.connect_ex(("203.0.113.2", port))
    return sock
first = [begin(7002) for _ in range(6)]
time.sleep(0.5)
print([sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for sock in first])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(2)
    sock.connect(("203.0.113.2", 7001))
    for number in range(10):
        sock.send(bytes([number]))
    print(sorted(sock.recv(9)[0] for _ in range(10)))
open_at_once = [socket.create_connection(("203.0.113.2", 7000), 10) for _ in range(300)]
for number, connection in enumerate(open_at_once):
    connection.sendall(number.to_bytes(4, "big"))
print(all(int.from_bytes(c.recv(4), "big") == n for n, c in enumerate(open_at_once)))
"""


class Outside(NamedTuple):
    """A host with a network of its own, in which 203.0.113.2 and 2001:db8::2 answer."""

    words: list[str]
    """Words that run a program on the host."""
    server: subprocess.Popen[str]

    def line(self) -> str:
        """Return the next line that the server prints."""
        assert self.server.stdout is not None
        return self.server.stdout.readline().strip()


@pytest.fixture
def outside(allowed: None) -> Iterator[Outside]:
    """A network outside, which goes with the test."""
    program = shutil.which("ip", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if os.geteuid() or program is None:
        pytest.skip("needs root and ip (apt-get install iproute2), to make a network outside")
    home, web = (f"dragstrip-{name}-{os.getpid()}" for name in ("home", "web"))

    def ip(*words: str) -> None:
        subprocess.run([program, *words], check=True, capture_output=True)

    with contextlib.ExitStack() as stack:
        for name in (home, web):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
        ip("link", "add", "h0", "netns", home, "type", "veth", "peer", "name", "w0", "netns", web)
        for name, device, host in ((home, "h0", 1), (web, "w0", 2)):
            ip("-n", name, "address", "add", f"203.0.113.{host}/24", "dev", device)
            ip("-n", name, "address", "add", f"2001:db8::{host}/64", "dev", device, "nodad")
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        words = [program, "netns", "exec", web, *python(SERVE)]
        server = stack.enter_context(
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        made = Outside([program, "netns", "exec", home], server)
        assert made.line() == "ready"
        yield made
        server.kill()


def test_the_real_network_is_behind_the_path(outside: Outside, tmp_path: Path) -> None:
    words = [*outside.words, *DRAGSTRIP, "shell", *PATH, "--json", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [*words, "--", *python(ASK)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("path:")]
    for line, address in zip(lines, ("203.0.113.2", "2001:db8::2"), strict=False):
        name, first, total, size, trip = line.split()
        assert (name, total, size) == (address, "3000", "4000")
        assert float(first) > 0.020
        assert float(trip) > 0.020
    # What is refused outside, this machine itself, and a port that the name server has not.
    assert lines[2:5] == ["refused 203.0.113.2", "refused 203.0.113.1", "refused 198.18.0.3"]
    # First connections at once to one address, and the first datagrams of a flow.
    assert lines[5] == str([0] * 6)
    assert lines[6] == str(list(range(10)))
    assert lines[7] == "True"
    counts = json.loads(done.stdout)["outside"]
    assert counts == {"connections": 308, "refused": 3, "datagram_flows": 3, "not_relayed": 0}


def test_offline_nothing_but_the_server_is_there(outside: Outside) -> None:
    connect = "import socket; socket.create_connection(('203.0.113.2', 7000), 5)"
    words = [*outside.words, *DRAGSTRIP, "shell", *PATH, "--offline", "--json", "--", *python(connect)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "Network is unreachable" in done.stderr
    assert json.loads(done.stdout)["outside"] is None


UPLOAD = """
import socket, sys
connection = socket.create_connection(("203.0.113.2", 7002))
connection.recv(2)
connection.sendall(b"k" * int(sys.argv[1]))
connection.close()
"""


def test_what_a_program_sent_before_it_ended_arrives_or_is_reset(outside: Outside) -> None:
    words = [*outside.words, *DRAGSTRIP, "shell", "--rate", "10mbit", "--up-rate", "10mbit", "--rtt", "40ms"]
    done = subprocess.run(
        [*words, "--", *python(UPLOAD, "1000000")], capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, outside.line()) == (0, "closed 1000000")
    # Its time is over before all has passed: what arrived must not look whole.
    cut = subprocess.run(
        [*words, "--timeout", "2s", "--", *python(UPLOAD, "9000000")],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert cut.returncode == 124
    assert outside.line().split()[0] == "reset"


def test_this_machines_own_services_hear_nothing(outside: Outside) -> None:
    script = """
import socket, subprocess, sys
listener = socket.create_server(("203.0.113.1", 7003))
listener.settimeout(1)
ended = subprocess.run(sys.argv[1:])
try:
    listener.accept()
    print("heard")
except TimeoutError:
    print("silence", ended.returncode)
"""
    connect = "import socket; socket.create_connection(('203.0.113.1', 7003), 5)"
    command = [*DRAGSTRIP, "shell", *PATH, "--", *python(connect)]
    words = [*outside.words, *python(script, *command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "silence 1\n", done.stderr
    assert "Connection refused" in done.stderr
