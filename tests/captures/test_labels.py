"""`inspect --labels`: what Wireshark and tcptrace call packets, held against the programs packet by packet."""

from __future__ import annotations

import lzma
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip import captures
from dragstrip.comparison import compare
from dragstrip.engines.capture import Asked
from dragstrip.runner import captured, execute, plan

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
    execute(captured(plan(described), Asked()), out, report=False)
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
