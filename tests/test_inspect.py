"""`dragstrip inspect`: forms of files, bad input, the document. What is said of flows is tested in crates/inspect."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from dragstrip.cli import app
from dragstrip.io import untrusted
from dragstrip.model.recording import read

A, B = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])


def tcp(source: bytes, port: int, seq: int, ack: int, flags: int, data: int = 0, peer: int = 80) -> bytes:
    """An IP packet with a segment of zeros; what goes to A goes to its port."""
    ports = (port, peer) if source == A else (peer, port)
    segment = struct.pack(">HHIIBBHHH", *ports, seq, ack, 5 << 4, flags, 500, 0, 0) + bytes(data)
    ends = source + (B if source == A else A)
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0) + ends + segment


def transfer(link: bytes = bytes(12) + b"\x08\x00", port: int = 4000) -> list[tuple[int, bytes]]:
    """Times in ns and frames of a handshake and two segments of 1000 bytes."""
    packets = [
        (0, tcp(A, port, 0, 0, 2)),
        (40_000_000, tcp(B, port, 0, 1, 18)),
        (40_100_000, tcp(A, port, 1, 1, 16)),
        (50_000_000, tcp(A, port, 1, 1, 16, 1000)),
        (50_010_000, tcp(A, port, 1001, 1, 24, 1000)),
        (90_500_000, tcp(B, port, 1, 2001, 16)),
    ]
    return [(10**18 + time, link + packet) for time, packet in packets]


def pcap(packets: list[tuple[int, bytes]], order: str = "<", link: int = 1, unit: int = 1) -> bytes:
    magic = 0xA1B23C4D if unit == 1 else 0xA1B2C3D4
    written = struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 262_144, link)
    for time, frame in packets:
        fraction = time % 10**9 // unit
        written += struct.pack(order + "IIII", time // 10**9, fraction, len(frame), len(frame)) + frame
    return written


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + length + body + length


def section(packets: list[tuple[int, bytes]], order: str = "<", resolution: int = 9, link: int = 1) -> bytes:
    """A section of pcapng with blocks and options that nobody knows, and two interfaces."""
    written = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(order + "HHB3x", 9, 1, resolution) + struct.pack(order + "HH4s", 77, 4, b"what")
    written += block(order, 1, struct.pack(order + "HHI", link, 0, 0))
    written += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + option)
    written += block(order, 0x0BAD, b"anything")
    units = 10**resolution if resolution < 128 else 2 ** (resolution - 128)
    for time, frame in packets:
        ticks = time * units // 10**9 % 2**64
        head = struct.pack(order + "IIIII", 1, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        written += block(order, 6, head + frame)
    return written


def inspect(*files: Path, options: tuple[str, ...] = ("--json",)) -> Result:
    return CliRunner().invoke(app, ["inspect", *map(str, files), *options])


def said(path: Path, content: bytes) -> dict[str, object]:
    path.write_bytes(content)
    result = inspect(path)
    assert result.exit_code == 0, result.output
    document: dict[str, object] = json.loads(result.stdout)
    return document


def expect_transfer(document: dict[str, object], near_ms: float = 40.49, off_ms: float = 1e-9) -> None:
    (flow,) = document["flows"]  # type: ignore[misc]
    assert (flow["bytes"], flow["segments"], sum(flow["retransmissions"].values())) == (2000, 2, 0)
    assert flow["label"].endswith(":80")
    assert flow["rtt_ms"]["samples"] == 1
    assert flow["rtt_ms"]["p50"] == pytest.approx(near_ms, abs=off_ms)


PPPOE = bytes(12) + b"\x81\x00\x00\x05\x88\x64" + bytes(6) + b"\x00\x21"
LINKS = {
    "Ethernet": (1, bytes(12) + b"\x08\x00"),
    "VLAN in VLAN": (1, bytes(12) + b"\x88\xa8\x00\x01\x81\x00\x00\x02\x08\x00"),
    "VLAN, PPPoE": (1, PPPOE),
    "SLL": (113, bytes(14) + b"\x08\x00"),
    "SLL2": (276, b"\x08\x00" + bytes(18)),
    "NULL": (0, b"\x02\x00\x00\x00"),
    "NULL, other order": (0, b"\x00\x00\x00\x02"),
    "LOOP": (108, b"\x00\x00\x00\x02"),
    "RAW": (101, b""),
    "IPv4": (228, b""),
    "PPP": (50, b"\xff\x03\x00\x21"),
}


@pytest.mark.parametrize("name", LINKS)
def test_link_types(tmp_path: Path, name: str) -> None:
    number, header = LINKS[name]
    expect_transfer(said(tmp_path / "a.pcap", pcap(transfer(header), link=number)))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("unit", [1, 1000])
def test_pcap_in_both_orders_and_units(tmp_path: Path, order: str, unit: int) -> None:
    expect_transfer(said(tmp_path / "a.pcap", pcap(transfer(), order, unit=unit)))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [3, 6, 9, 10, 128 + 30])
def test_pcapng_in_both_orders_and_several_units(tmp_path: Path, order: str, resolution: int) -> None:
    coarse = {3: 1.0, 128 + 30: 1e-5}.get(resolution, 1e-9)
    expect_transfer(said(tmp_path / "a.pcapng", section(transfer(), order, resolution)), off_ms=coarse)


def test_sections_of_both_orders(tmp_path: Path) -> None:
    packets = transfer()
    expect_transfer(said(tmp_path / "a", section(packets[:3], "<") + section(packets[3:], ">")))


def test_sections_of_other_link_types(tmp_path: Path) -> None:
    first, then = transfer()[:3], transfer(LINKS["SLL"][1])[3:]
    expect_transfer(said(tmp_path / "a", section(first, ">") + section(then, link=113)))


def test_interfaces_of_other_link_types(tmp_path: Path) -> None:
    """libpcap, and what is built on it, stops at the second one."""
    written = section([], "<")[:28]
    option = struct.pack("<HHB3x", 9, 1, 9)
    for number in (1, 113, 101):
        written += block("<", 1, struct.pack("<HHI", number, 0, 0) + option)
    plain = [frame for _, frame in transfer(b"")]
    for at, (time, _) in enumerate(transfer()):
        frame = [LINKS["Ethernet"][1], LINKS["SLL"][1], b""][at % 3] + plain[at]
        stamp = (at % 3, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
        written += block("<", 6, struct.pack("<IIIII", *stamp) + frame)
    expect_transfer(said(tmp_path / "a", written))


def test_captures_of_other_link_types_are_matched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pcap(transfer()))
    half = 20_000_000
    far = [
        (time + (half if A + B in packet else -half), packet) for time, packet in transfer(LINKS["SLL2"][1])
    ]
    (tmp_path / "b").write_bytes(section(sorted(far), link=276))
    document = json.loads(inspect(tmp_path / "a", tmp_path / "b").stdout)
    expect_transfer(document)
    (between,) = document["between"]
    assert (between["there"]["lost"], between["back"]["lost"]) == (0, 0)


def test_ipv6_with_an_extension_header(tmp_path: Path) -> None:
    packets = []
    for time, frame in transfer(b""):
        source, destination, segment = frame[12:16], frame[16:20], frame[20:]
        head = struct.pack(">IHBB", 6 << 28, 8 + len(segment), 0, 64)
        packets.append((time, head + source * 4 + destination * 4 + b"\x06" + bytes(7) + segment))
    expect_transfer(said(tmp_path / "a", pcap(packets, link=101)))


def test_cut_packets_count_with_their_whole_length(tmp_path: Path) -> None:
    written = pcap([])
    for time, frame in transfer():
        written += struct.pack("<IIII", time // 10**9, time % 10**9, 54, len(frame)) + frame[:54]
    expect_transfer(said(tmp_path / "a", written))


def packed_with_zstd(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, packed_with_zstd])
def test_packed_files(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    content = pcap(transfer())
    expect_transfer(said(tmp_path / "a", pack(content)))
    expect_transfer(said(tmp_path / "b", pack(content[:99]) + pack(content[99:])))
    damaged = bytearray(pack(content))
    damaged[len(damaged) // 2 :] = bytes(len(damaged) - len(damaged) // 2)
    (tmp_path / "c").write_bytes(damaged)
    assert "cannot be unpacked" in str(inspect(tmp_path / "c").exception)


def test_the_document(tmp_path: Path) -> None:
    document = said(tmp_path / "a.pcap", pcap(transfer()))
    assert document["version"] == 1
    (file,) = document["files"]  # type: ignore[misc]
    expected = {"path": str(tmp_path / "a.pcap"), "packets": 6, "missing": 0, "duplicates": 0, "disorder": 0}
    expected |= {"clock_steps": 0, "repeated": 0}
    assert file == expected
    (flow,) = document["flows"]  # type: ignore[misc]
    assert set(flow) >= {
        "flow", "label", "bytes", "duration_s", "goodput_bps", "rtt_ms", "segments", "retransmissions",
        "reordered", "limited_s", "closed_s", "ecn", "ecn_feedback", "marks_reported", "mptcp", "fast_open",
        "encapsulation", "syn_retransmissions", "syn_ack_retransmissions", "fin_retransmissions",
    }  # fmt: skip
    assert set(flow["rtt_ms"]) == {"method", "samples", "p5", "p50", "p95"}
    assert set(flow["retransmissions"]) == {"needed", "spurious", "unknown"}
    assert set(flow["limited_s"]) == {"cwnd", "receiver", "application", "unknown"}
    assert sum(flow["limited_s"].values()) == pytest.approx(flow["duration_s"]) == pytest.approx(0.0905)
    assert flow["goodput_bps"] == pytest.approx(2000 * 8 / 0.0905)


def test_the_table(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(transfer()))
    shown = inspect(path, options=()).stdout
    assert "10.0.0.1:4000 → 10.0.0.2:80" in shown
    assert "40.49" in shown
    assert "6 packets" in shown


BAD = {
    "empty": (b"", "is empty"),
    "short": (b"\xd4\xc3\xb2\xa1", "too short"),
    "text": (b"hello, world, this is text", "is not a capture"),
    "snoop": (b"snoop\0\0\0" + bytes(40), "snoop"),
    "802.11": (pcap([], link=105), "802.11"),
    "a packet of 4 GB": (
        pcap([]) + struct.pack("<IIII", 0, 0, 2**32 - 1, 2**32 - 1) + bytes(24),
        "4294967295",
    ),
    "a block of 4 GB": (section([])[:28] + struct.pack("<II", 1, 2**32 - 4) + bytes(28), "4294967292"),
    "a block of 5 bytes": (section([])[:28] + struct.pack("<II", 1, 5) + bytes(28), "multiple of 4"),
    "an unknown interface": (section([])[:28] + block("<", 6, bytes(20)), "interface 0"),
    "a block of two lengths": (
        section([])[:28] + struct.pack("<IIHHII", 1, 20, 1, 0, 0, 24),
        "length is 20 at its beginning and 24",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    content, expected = BAD[name]
    path = tmp_path / "bad"
    path.write_bytes(content)
    result = inspect(path)
    assert isinstance(result.exception, Exception)
    assert expected in str(result.exception)
    assert str(path) in str(result.exception)
    assert "\n" not in str(result.exception)


def test_what_was_read_before_a_fault_is_told(tmp_path: Path) -> None:
    whole = pcap(transfer())
    document = said(tmp_path / "cut", whole[:-3])
    assert "ends in the middle of a packet" in str(document["notes"])
    document = said(tmp_path / "lies", whole + struct.pack("<IIII", 0, 0, 2**31, 2**31) + bytes(99))
    expect_transfer(document)
    assert "could be read only as far as" in str(document["notes"])


@pytest.mark.parametrize("order", "<>")
def test_a_section_cut_anywhere_is_read_as_far_as_it_goes(tmp_path: Path, order: str) -> None:
    whole = section(transfer(), order)
    ends = [len(section(transfer()[:number])) for number in range(7)]
    heads = (28, 48, 84)  # behind the header of the section and the descriptions of its interfaces
    for length in (*range(0, len(whole), 61), *heads, *ends):
        (tmp_path / "cut").write_bytes(whole[:length])
        result = inspect(tmp_path / "cut")
        if length < 12:
            assert ("is empty" if length == 0 else "too short") in str(result.exception), length
            continue
        document = json.loads(result.stdout)
        assert document["files"][0]["packets"] == sum(end <= length for end in ends[1:]), length
        cut = not any(length == end for end in (*ends, *heads))
        assert ("ends in the middle of a packet" in str(document["notes"])) == cut, length


def test_an_unknown_block_of_4_gb_ends_a_file_of_64_bytes(tmp_path: Path) -> None:
    content = section([])[:28] + struct.pack("<II", 0x0BAD, 2**32 - 4) + bytes(28)
    document = said(tmp_path / "a", content)
    assert document["files"][0]["packets"] == 0  # type: ignore[index]
    assert "ends in the middle of a packet" in str(document["notes"])


def test_disorder_and_copies_are_counted(tmp_path: Path) -> None:
    packets = transfer()
    twice = [packet for packet in packets for _ in range(2 if len(packet[1]) > 100 else 1)]
    twice[0], twice[1] = twice[1], twice[0]
    document = said(tmp_path / "a", pcap(twice))
    expect_transfer(document)
    (file,) = document["files"]  # type: ignore[misc]
    assert (file["disorder"], file["duplicates"]) == (1, 2)


def test_a_hole_in_the_capture_is_missing_and_no_loss(tmp_path: Path) -> None:
    packets = transfer()
    document = said(tmp_path / "a", pcap(packets[:3] + packets[4:]))
    (file,), (flow,) = document["files"], document["flows"]  # type: ignore[misc]
    assert (file["missing"], flow["bytes"], sum(flow["retransmissions"].values())) == (1, 1000, 0)


def test_flows_of_one_packet_are_counted(tmp_path: Path) -> None:
    lone = [(10**18, bytes(12) + b"\x08\x00" + tcp(A, port, 0, 0, 16)) for port in range(1, 2001)]
    document = said(tmp_path / "a", pcap(lone))
    assert (document["flows"], document["unanswered"]) == ([], [])
    assert "2000 connections of a single packet" in str(document["notes"])


def test_a_scan_that_nobody_answers_is_listed_up_to_a_bound(tmp_path: Path) -> None:
    scan = [(10**18, bytes(12) + b"\x08\x00" + tcp(A, port, 0, 0, 2)) for port in range(1, 12_001)]
    document = said(tmp_path / "a", pcap(scan))
    assert len(document["unanswered"]) == 10_000  # type: ignore[arg-type]
    assert "2000 more connections were not answered" in str(document["notes"])


def test_a_recording_of_what_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(transfer()))
    assert inspect(path, options=("--out", str(tmp_path / "out"))).exit_code == 0
    recording = read(tmp_path / "out" / "captures")
    assert recording["rtts"].to_pylist() == [{"time_ns": 90_500_000, "flow": 0, "rtt_ns": 40_490_000}]
    (flow,) = recording["flows"].to_pylist()
    assert (flow["bytes_received"], flow["bytes_acked"], flow["stop_ns"]) == (2000, 2000, 90_500_000)
    assert recording.provenance["origin_ns"] == 10**18
    samples = recording["samples"].to_pydict()
    assert samples["cwnd_bytes"] == [None] * len(samples["cwnd_bytes"])


def test_two_captures_that_share_nothing(tmp_path: Path) -> None:
    for name, port in (("a", 4000), ("b", 5000)):
        (tmp_path / name).write_bytes(pcap(transfer(port=port)))
    document = json.loads(inspect(tmp_path / "a", tmp_path / "b").stdout)
    assert len(document["flows"]) == 2
    assert document["between"] == []
    assert "file 2 shares no answered packet with file 1" in document["notes"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, packed_with_zstd])
def test_a_bomb_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragstrip.io.untrusted.EXPANSION_FREE", 1 << 20)
    monkeypatch.setattr("dragstrip.io.untrusted.EXPANSION_MAX", 100)
    path = tmp_path / "bomb"
    path.write_bytes(pack(pcap(transfer()) + bytes(64 << 20)))
    assert path.stat().st_size < 200_000
    result = inspect(path)
    assert "times its size, unpacked" in str(result.exception)
    assert str(path) in str(result.exception)


def test_a_file_that_grows_is_read_as_far_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(pcap(transfer()))
    pieces = untrusted.capture_pieces(path)
    first, share = next(pieces)
    with path.open("ab") as file:
        file.write(pcap(transfer(port=5000))[24:])
    assert b"".join([first, *(piece for piece, _ in pieces)]) == pcap(transfer())
    assert share == 1.0


def test_stamps_that_run_backwards_are_counted(tmp_path: Path) -> None:
    frames = [frame for _, frame in transfer()] + [transfer()[-1][1]] * 300
    backwards = [(10**18 - number * 10**6, frame) for number, frame in enumerate(frames)]
    document = said(tmp_path / "a", pcap(backwards))
    (file,) = document["files"]  # type: ignore[misc]
    assert file["clock_steps"] + file["disorder"] > 200
    assert "times the clock was set back" in str(document["notes"])
    (flow,) = document["flows"]  # type: ignore[misc]
    assert flow["duration_s"] >= 0
