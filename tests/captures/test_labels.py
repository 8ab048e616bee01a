"""`inspect --labels`: what Wireshark and tcptrace call packets, held against the programs packet by packet."""

from __future__ import annotations

import lzma
import random
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip.analysis import captures
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

PATHS: dict[str, dict[str, Any]] = {
    "drops": {"queue": "bfifo limit 50kb"},
    "loss and jitter": {"queue": "bfifo limit 100kb", "loss": "2%", "jitter": "5ms"},
}
REAL = Path(__file__).parents[3] / "shared" / "captures" / "policing"
FIELDS = {
    "retransmission": "retransmission",
    "fast_retransmission": "fast_retransmission",
    "spurious_retransmission": "spurious_retransmission",
    "out_of_order": "out_of_order",
    "lost_segment": "lost_segment",
    "keep_alive": "keep_alive",
    "duplicate_ack": "duplicate_ack",
    "ack_lost_segment": "ack_lost_segment",
    "window_update": "window_update",
    "zero_window": "zero_window",
}
OF_ACKS = ("duplicate_ack", "ack_lost_segment", "window_update", "zero_window")


@pytest.fixture(scope="module", params=PATHS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures of a run at its sender and at its receiver."""
    out = tmp_path_factory.mktemp("labels") / "out"
    described = compare(["cubic"], rate="10mbit", rtt="40ms", duration="4s", **PATHS[request.param])
    execute(captured(plan(described), CaptureRequest()), out, report=False)
    return next(out.glob("runs/000-*")) / "captures"


def program(*words: str | Path) -> str:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is not installed (`make capture-tools` installs it)")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def tshark(path: Path) -> list[dict[str, str]]:
    names = ["frame.time_epoch", "tcp.seq_raw", "tcp.len", "tcp.srcport", "tcp.dstport"]
    names += [f"tcp.analysis.{name}" for name in FIELDS.values()]
    asked = [word for name in names for word in ("-e", name)]
    said = program("tshark", "-r", path, "-Y", "tcp", "-T", "fields", *asked)
    return [dict(zip(names, line.split("\t"), strict=True)) for line in said.splitlines()]


def compared_with_tshark(path: Path) -> int:
    """Labels that were compared, of every listed flow."""
    rows = tshark(path)
    said, _ = captures.inspect([path], quiet=True, labels=True)
    found = 0
    for flow in said["flows"]:
        source, target = (end.rsplit(":", 1)[1] for end in flow["label"].split(" → "))
        for name, field in FIELDS.items():
            ends = (target, source) if name in OF_ACKS else (source, target)
            chosen = [row for row in rows if (row["tcp.srcport"], row["tcp.dstport"]) == ends]
            with_it = [row for row in chosen if row[f"tcp.analysis.{field}"]]
            if name == "retransmission":
                more_exact = ("tcp.analysis.fast_retransmission", "tcp.analysis.spurious_retransmission")
                with_it = [row for row in with_it if not any(row[it] for it in more_exact)]
            assert flow["wireshark"][name] == len(with_it), (path.name, flow["label"], name)
            found += len(with_it)
        calls = ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
        theirs = {
            (row["frame.time_epoch"], int(row["tcp.seq_raw"]))
            for row in rows
            if (row["tcp.srcport"], row["tcp.dstport"]) == (source, target)
            and int(row["tcp.len"])
            and any(row[f"tcp.analysis.{name}"] for name in calls)
        }
        ours = {
            (f"{event['time_ns'] // 10**9}.{event['time_ns'] % 10**9:09}", event["seq"])
            for event in said.get("events", [])
            if event["flow"] == flow["flow"] and event["wireshark"]
        }
        assert ours == theirs, (path.name, flow["label"])
    return found


@pytest.mark.parametrize("place", ["s1", "d"])
def test_wireshark_s_labels_are_what_tshark_prints(folder: Path, place: str) -> None:
    assert compared_with_tshark(folder / f"{place}.pcapng") > 20


@pytest.mark.parametrize("number", range(4))
def test_a_capture_with_holes_gets_tshark_s_labels(tmp_path: Path, number: int) -> None:
    """Of traffic in both directions, of which the capture lacks packets here and there: their ACKs are of the unseen."""
    if shutil.which("editcap") is None:
        pytest.skip("editcap is not installed (`make capture-tools` installs it)")
    given = {"rate": "2mbit", "rtt": "40ms", "queue": "bfifo limit 50kb", "duration": "4s", "gso": "off"}
    workload: dict[str, Any] = {"both_ways": True, "up_rate": "2mbit"} if number % 2 else {}
    described = compare(["cubic"], **given, **workload)
    execute(captured(plan(described), CaptureRequest(["s1"])), tmp_path / "out", report=False)
    (whole,) = (tmp_path / "out").rglob("s1.pcapng")
    count = len(program("tshark", "-r", whole, "-T", "fields", "-e", "frame.number").split())
    # Not those of the opening, without which neither says much.
    missing = random.Random(number).sample(range(30, count), count // 20)  # noqa: S311
    path = tmp_path / "holes.pcapng"
    program("editcap", whole, path, *map(str, missing))
    assert compared_with_tshark(path) > 20


def written(path: Path, seed: int) -> None:
    """A capture that misses packets: both ends send and acknowledge, repeat themselves and close their windows."""
    chosen = random.Random(seed)  # noqa: S311 - no secret
    addresses, ports = (bytes((192, 0, 2, 1)), bytes((198, 51, 100, 2))), (4_000, 5_001)
    isns = (chosen.randrange(2**32), chosen.randrange(2**32))
    now_us, sent, acked = 0, [1, 1], [1, 1]
    capture = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)

    def packet(side: int, seq: int, ack: int, flags: int, length: int, window: int = 1_000) -> bytes:
        nonlocal now_us
        now_us += chosen.choice([100, 500, 3_000, 30_000])
        numbers = ((isns[side] + seq) % 2**32, (isns[1 - side] + ack) % 2**32)
        tcp = struct.pack("!HHIIBBHHH", ports[side], ports[1 - side], *numbers, 0x50, flags, window, 0, 0)
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + length, now_us % 65_521, 0, 64, 6, 0)
        frame = bytes(12) + b"\x08\x00" + ip + addresses[side] + addresses[1 - side] + tcp + bytes(length)
        return struct.pack("<IIII", 1_700_000_000, now_us, len(frame), len(frame)) + frame

    if chosen.random() < 0.7:
        capture += packet(0, 0, 0, 2, 0) + packet(1, 0, 1, 18, 0) + packet(0, 1, 1, 16, 0)
    for _ in range(60):
        side = chosen.randrange(2)
        acked[1 - side] = ack = chosen.choice([sent[1 - side], sent[1 - side], acked[1 - side]])
        length = chosen.choice([0, 0, 1, 100, 1_000])
        if chosen.random() < 0.1 and sent[side] > 200:
            capture += packet(side, sent[side] - chosen.choice([1, 100, 150]), ack, 24, length)
            continue
        if chosen.random() < 0.8:
            window = chosen.choice([1_000] * 6 + [900, 0])
            capture += packet(side, sent[side], ack, 24 if length else 16, length, window)
        sent[side] += length
    path.write_bytes(capture)


@pytest.mark.parametrize("seeds", [range(start, start + 8) for start in (0, 8, 16)], ids=str)
def test_labels_of_captures_that_miss_packets_are_what_tshark_prints(seeds: range, tmp_path: Path) -> None:
    found = 0
    for seed in seeds:
        written(tmp_path / f"{seed}.pcap", seed)
        found += compared_with_tshark(tmp_path / f"{seed}.pcap")
    assert found > 50


def counted_by_tcptrace(path: Path, flow: dict[str, Any]) -> dict[str, int]:
    said = program("tcptrace", "-n", "-l", path)
    source, target = (end.replace("]", "").replace("[", "") for end in flow["label"].split(" → "))
    for part in said.split("TCP connection ")[1:]:
        hosts = re.findall(r"host \w+: +(\S+)", part)
        if sorted(hosts) != sorted([source, target]):
            continue
        column = hosts.index(source)
        wanted = {"rexmt data pkts": 0, "rexmt data bytes": 0, "outoforder pkts": 0, "zwnd probe pkts": 0}
        for name in wanted:
            found = re.search(rf"{name}: +(\d+) +{name}: +(\d+)", part)
            assert found, name
            wanted[name] = int(found[1 + column])
        return {name.replace(" ", "_"): count for name, count in wanted.items()}
    raise AssertionError(f"tcptrace knows no {flow['label']}")


@pytest.mark.parametrize("place", ["s1", "d"])
def test_tcptrace_s_counts_are_what_it_prints(folder: Path, place: str) -> None:
    path = folder / f"{place}.pcapng"
    said, _ = captures.inspect([path], quiet=True, labels=True)
    for flow in said["flows"]:
        assert flow["tcptrace"] == counted_by_tcptrace(path, flow)


def in_order(capture: bytes) -> bytes:
    """A pcap file of little-endian microseconds with its packets sorted: `inspect` sorts, these programs do not."""
    assert capture[:4] == bytes.fromhex("d4c3b2a1")
    records, at = [], 24
    while at < len(capture):
        seconds, fraction, length = struct.unpack_from("<III", capture, at)
        records.append(((seconds, fraction), capture[at : at + 16 + length]))
        at += 16 + length
    return capture[:24] + b"".join(record for _, record in sorted(records, key=lambda record: record[0]))


def test_a_real_sender_s_labels(tmp_path: Path) -> None:
    """Of the smallest of the captures whose truth is known, its packets in the order of their stamps."""
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is not here")
    packed = min(REAL.rglob("*.xz"), key=lambda path: (path.stat().st_size, path.name))
    path = tmp_path / "a.pcap"
    path.write_bytes(in_order(lzma.decompress(packed.read_bytes())))
    assert compared_with_tshark(path) > 20
    said, _ = captures.inspect([path], quiet=True, labels=True)
    for flow in said["flows"]:
        assert flow["tcptrace"] == counted_by_tcptrace(path, flow)


def test_every_event_is_in_the_sums(folder: Path) -> None:
    files = [folder / "s1.pcapng", folder / "d.pcapng"]
    for given in (files[:1], files):
        said, _ = captures.inspect(given, quiet=True, labels=True)
        (flow,) = said["flows"]
        column = "one" if len(given) == 1 else "two"
        words = [event[column] for event in said["events"]]
        tallied = {word: words.count(word) for word in ("needed", "spurious", "unknown")}
        assert tallied == flow["retransmissions"]
