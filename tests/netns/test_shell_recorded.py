"""What `dragstrip shell` in real time records of programs: flows, queues, pings, captures, the live line."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
from pathlib import Path

import pytest

import dragstrip
from dragstrip.model.recording import read
from netns.test_shell import DRAGSTRIP, PATH, SEND, allowed, python, quoted, shell
from shell_client import RECEIVE

__all__ = ["allowed"]
pytestmark = pytest.mark.usefixtures("allowed")
MANY = """
import os, select, socket, sys
kept = []
while len(kept) < int(sys.argv[1]):
    several = [socket.socket() for _ in range(50)]
    for connection in several:
        connection.setblocking(False)
        connection.connect_ex((os.environ["DRAGSTRIP_SERVER"], 5000))
    for connection in several:
        connection.setblocking(True)
        select.select([], [connection], [])
        connection.sendall(b"x" * 100)
    kept += several
for connection in kept:
    connection.recv(100)
print(len(kept))
"""
ANSWER = """
import selectors, socket, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
listener = socket.create_server(("", 5000), backlog=512)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in selector.select():
        if key.fileobj is listener:
            connection, _ = listener.accept()
            selector.register(connection, selectors.EVENT_READ)
        elif data := key.fileobj.recv(1000):
            key.fileobj.sendall(data)
        else:
            selector.unregister(key.fileobj)
            key.fileobj.close()
"""


def transfer(out: Path, *words: str, time_s: float = 4) -> subprocess.CompletedProcess[str]:
    """A download over CUBIC, recorded into `out`."""
    server = quoted(python(SEND, str(time_s)))
    done = shell(*PATH, *words, "--out", str(out), "--server", server, "--", *python(RECEIVE))
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def recorded(allowed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a download with captures."""
    out = tmp_path_factory.mktemp("shell") / "out"
    transfer(out, "--capture")
    return out


def test_a_download_is_a_flow_with_samples(recorded: Path) -> None:
    result = dragstrip.Result.read(recorded)
    (run,) = result.runs
    (flow,) = run.flows
    assert re.fullmatch(r"python[\d.]*:\d+→5000", flow.label)
    assert flow.cc == "cubic"
    assert 1e6 < flow.goodput_bps < 10e6 * 1448 / 1514 * 1.01
    assert flow.rtt_ms is not None
    assert 20 < flow.rtt_ms.p5 < flow.rtt_ms.p50 < 100
    recording = read(recorded / run.recording)
    samples, received = (recording[name].to_pydict() for name in ("samples", "received"))
    assert len(samples["time_ns"]) > 30
    assert min(samples["cwnd_bytes"]) >= 1448
    assert all(19e6 < srtt_ns < 500e6 for srtt_ns in samples["srtt_ns"] if srtt_ns is not None)
    pairs = zip(samples["bytes_written"], samples["bytes_acked"], strict=True)
    assert all(written >= acked for written, acked in pairs)
    assert set(samples["state"]) <= {
        "slow_start",
        "congestion_avoidance",
        "disorder",
        "cwr",
        "recovery",
        "loss",
    }
    assert "cwnd" in set(samples["limit"])
    document = json.loads((recorded / "shell.json").read_text())
    # All new bytes are in the intervals, and all frames of the direction but handshakes and pings.
    assert sum(received["new_bytes"]) == flow.bytes_received
    down = document["directions"][0]
    assert 0.97 < sum(received["wire_bytes"]) / (down["bytes_out"] + 14 * down["packets_out"]) <= 1


def test_queues_drops_and_pings_are_those_of_the_forwarder(recorded: Path) -> None:
    (run,) = dragstrip.Result.read(recorded).runs
    recording = read(recorded / run.recording)
    queues = recording["queues"].to_pylist()
    document = json.loads((recorded / "shell.json").read_text())
    down = [row for row in queues if row["link"] == "r-d"]
    assert 5_000 < max(row["backlog_bytes"] for row in down) <= 25_000
    dropped = document["directions"][0]["drops"].get("full", 0)
    assert dropped - 3 <= down[-1]["dropped"] <= dropped, "those of the last tenth of a second are in no row"
    pings = recording["probes"]["rtt_ns"].to_pylist()
    assert len(pings) >= 4
    assert all(rtt_ns >= 20e6 for rtt_ns in pings if rtt_ns is not None)


def test_the_captures_have_every_packet(recorded: Path) -> None:
    (run,) = dragstrip.Result.read(recorded).runs
    document = json.loads((recorded / "shell.json").read_text())
    down, up = document["directions"]
    captured = document["recorded"]["summary"]["captured"]
    assert captured == [down["packets_in"] + up["packets_out"], up["packets_in"] + down["packets_out"]]
    files = sorted((recorded / run.recording / "captures").iterdir())
    assert [file.name for file in files] == ["d.pcapng", "s1.pcapng"]
    inspected = subprocess.run(
        [*DRAGSTRIP, "inspect", "--json", *map(str, files)], capture_output=True, text=True, check=True
    )
    flows = json.loads(inspected.stdout)["flows"]
    assert [flow["bytes"] for flow in flows] == [run.flows[0].bytes_received]
    assert flows[0]["retransmissions"]["needed"] <= run.flows[0].retransmits
    assert flows[0]["segments"] == run.flows[0].segments_sent
    trips = run.flows[0].rtt_ms
    assert trips is not None
    assert flows[0]["rtt_ms"]["p5"] < trips.p50 < flows[0]["rtt_ms"]["p95"]


def test_the_report_is_there_and_can_be_drawn_again(recorded: Path) -> None:
    page = (recorded / "report.html").read_text()
    assert "<h1>" in page
    again = subprocess.run([*DRAGSTRIP, "report", str(recorded)], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert (recorded / "report.html").read_text() == page
    assert not list(recorded.glob("PARTIAL"))


def test_a_thousand_connections_are_recorded(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = shell(
        *("--rate", "50mbit", "--rtt", "10ms", "--out", str(out), "--server", quoted(python(ANSWER))),
        *("--", *python(MANY, "1000")),
    )
    assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr
    summary = json.loads((out / "shell.json").read_text())["recorded"]["summary"]
    assert (summary["connections"], summary["not_recorded"], summary["missing"]) == (1000, 0, 0)
    (run,) = dragstrip.Result.read(out).runs
    assert len(run.flows) == 1000
    assert all(flow.bytes_received == 100 for flow in run.flows)


TALK = """
import os, socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talker:
    talker.connect((os.environ["DRAGSTRIP_SERVER"], 5000))
    for number in range(100):
        talker.send(bytes(200))
        time.sleep(0.01)
    time.sleep(0.1)
"""
HEAR = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
    listener.bind(("", 5000))
    while True:
        data, sender = listener.recvfrom(2000)
        if data[0]:
            listener.sendto(data, sender)
"""


def test_datagrams_are_a_flow_with_what_was_lost(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = shell(
        *("--rate", "5mbit", "--up-rate", "100kbit", "--up-queue", "bfifo limit 3000", "--rtt", "20ms"),
        *("--out", str(out), "--server", quoted(python(HEAR)), "--", *python(TALK)),
    )
    assert done.returncode == 0, done.stderr
    (run,) = dragstrip.Result.read(out).runs
    (flow,) = run.flows
    row = read(out / run.recording)["flows"].to_pylist()[0]
    up = json.loads((out / "shell.json").read_text())["directions"][1]
    assert re.fullmatch(r"udp:\d+→5000", row["label"])
    assert (row["protocol"], row["sender"], row["receiver"]) == ("udp", "d", "s1")
    # 200 bytes every 10 ms are more than 100 kbit/s.
    assert row["segments_sent"] == 100
    assert 0 < row["datagrams_lost"] <= sum(up["drops"].values())
    assert row["bytes_received"] == 200 * (100 - row["datagrams_lost"])
    assert 60e3 < flow.goodput_bps < 100e3


def test_programs_without_a_connection_leave_a_report_too(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = shell(*PATH, "--out", str(out), "--", "sleep", "1.2")
    assert done.returncode == 0, done.stderr
    (run,) = dragstrip.Result.read(out).runs
    assert not run.flows
    assert len(read(out / run.recording)["probes"]) == 2


def test_what_does_not_start_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert shell(*PATH, "--out", str(out), "--", "no-such-program").returncode == 2
    assert not out.exists()
    unknown = shell(*PATH, "--out", str(out), "--capture", "r-d", "--", "true")
    assert unknown.returncode == 2
    assert "r-d" in unknown.stderr.splitlines()[-1]
    assert not out.exists()
    lone = shell(*PATH, "--capture", "--", "true")
    assert (lone.returncode, len(lone.stderr.splitlines())) == (2, 1)


def test_a_full_disk_leaves_the_summary_and_one_line(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid():
        pytest.skip("needs root, to mount a small file system")
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
    try:
        done = shell(
            *(*PATH, "--out", str(place / "out"), "--capture", "--snaplen", "1514"),
            *("--server", quoted(python(SEND, "2")), "--", *python(RECEIVE)),
        )
        assert not list(place.iterdir())
    finally:
        subprocess.run(["/bin/umount", str(place)], check=True)
    assert done.returncode == 1
    *_, summary, error = done.stderr.splitlines()
    assert "No space left on device" in error
    assert "lateness" in done.stderr, summary


def on_terminal(*words: str) -> str:
    """Return what a terminal of 24 rows gets from a shell with a command."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, True)
    parts: list[bytes] = []

    def listen() -> None:
        try:
            while part := os.read(ours, 4096):
                parts.append(part)
        except OSError:
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    command = [*DRAGSTRIP, "shell", *PATH, *words]
    subprocess.run(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, check=True, timeout=60
    )
    os.close(theirs)
    listener.join(10)
    os.close(ours)
    return b"".join(parts).decode()


def test_a_terminal_has_a_line_at_its_bottom_meanwhile() -> None:
    server = quoted(python(SEND, "3"))
    text = on_terminal("--server", server, "--", *python(RECEIVE))
    lines = re.findall(r"\x1b7\x1b\[24;1H\x1b\[7m\x1b\[K(.*?)\x1b\[m\x1b8", text)
    assert len(lines) >= 2
    assert any(re.search(r"down [\d.]+ Mbit/s, queue .*RTT \d+\.\d ms", line) for line in lines), lines
    assert "\x1b[r" in text[text.rindex("RTT") :], "the terminal scrolls as before"
    assert "\x1b[24;1H" not in on_terminal("--no-live", "--", "sleep", "1.5")
    assert "\x1b[24;1H" not in shell(*PATH, "--", "sleep", "1.5").stderr
