"""What `inspect` reads of captures besides plain data segments: tunnels, handshakes, accurate ECN, what is not TCP."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.analysis.captures import segments
from dragstrip.analysis.inference.path import of_segments
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan
from packets import (
    ACK,
    AE,
    CLIENT,
    CWR,
    ECE,
    FIN,
    MAC,
    PSH,
    RST,
    SERVER,
    SYN,
    Flow,
    ether,
    ipv4,
    ipv6,
    pcap,
    segment,
    udp,
)

CASES = Path(__file__).parent / "cases"


def inspect(path: Path) -> dict[str, Any]:
    """The document."""
    result = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def text(path: Path) -> str:
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0, result.output
    return result.stdout


def only(document: dict[str, Any]) -> dict[str, Any]:
    (flow,) = document["flows"]
    assert isinstance(flow, dict)
    return flow


def tshark(path: Path, *words: str) -> list[str]:
    """The lines of tshark; skips the test where it is not installed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (`make capture-tools` installs it)")
    command = ["tshark", "-r", str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


# Segments below the MSS


def window_limited(length: int, mss: int, options: bytes = b"", pushed: int = 0, merged: int = 1) -> Flow:
    """Ten segments a round trip of 40 ms for 4 s; each acknowledgement lets the next ones go."""
    flow = Flow(mss=mss, options=options).open()
    sent = 1
    for round_trip in range(1, 101):
        for burst in range(0, 10, merged):
            ms = 10.2 + 40 * round_trip + 0.5 * burst
            last = pushed and (sent // length) % pushed == 0
            flow.data(ms, sent, merged * length, ACK | (PSH if last else 0))
            sent += merged * length
            flow.ack(ms + 39.9, sent)
    return flow


NARROW = {
    "a tunnel on the path": (1348, 1460, b"", 10, 1),
    "PPPoE": (1452, 1460, b"", 10, 1),
    "jumbo hosts": (1460, 8960, b"", 10, 1),
    "an option on every segment": (1440, 1460, b"\x13\x12" + bytes(16) + b"\x01\x01", 10, 1),
    "super-segments": (1348, 1460, b"", 10, 2),
    "PSH on every segment": (1348, 1460, b"", 1, 1),
}


@pytest.mark.parametrize("name", NARROW)
def test_segments_below_the_mss_are_full_sized(tmp_path: Path, name: str) -> None:
    path = window_limited(*NARROW[name]).write(tmp_path / "a.pcap")
    flow = only(inspect(path))
    assert flow["place"] == "sender"
    assert flow["limited_s"]["application"] < 0.03 * flow["duration_s"]
    assert flow["limited_s"]["cwnd"] > 0.9 * flow["duration_s"]
    _, (rows,) = segments(path, quiet=True)
    assert rows["full_bytes"] == NARROW[name][0]


def test_writes_of_an_application_stay_its_own(tmp_path: Path) -> None:
    flow = Flow().open()
    for number in range(200):
        flow.data(50 + 23 * number, 1 + 1000 * number, 1000, ACK | PSH)
        flow.ack(90 + 23 * number, 1001 + 1000 * number)
    path = flow.write(tmp_path / "a.pcap")
    assert only(inspect(path))["limited_s"]["application"] > 4
    _, (rows,) = segments(path, quiet=True)
    assert rows["full_bytes"] == 1460


# Accurate ECN


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The captures of a run with accurate ECN over a queue."""

    def run(queue: str) -> Path:
        folder = tmp_path_factory.mktemp("accurate") / "out"
        described = compare(
            ["cubic"], rate="10mbit", rtt="40ms", queue=queue, duration="10s", accurate_ecn=True
        )
        execute(captured(plan(described), CaptureRequest()), folder, report=False)
        return next(folder.glob("runs/000-*")) / "captures"

    return run


def test_accurate_ecn_is_no_congestion_behind_a_bfifo(counted: Callable[[str], Path]) -> None:
    sender = counted("bfifo limit 50kb") / "s1.pcapng"
    flow = only(inspect(sender))
    assert (flow["ecn"], flow["ecn_feedback"], flow["marks_reported"]) == (True, "accurate", 0)
    flags = tshark(sender, "-Y", "tcp.flags.ace == 5 && ip.src == 10.0.0.3")
    assert len(flags) > 1000, "as Wireshark reads it: the counter begins at 5, in which ECE is set"
    (path,) = of_segments(sender, segments(sender, quiet=True))
    assert "congestion marks" not in str(path)


def test_accurate_ecn_counts_the_marks_that_the_receiver_saw(counted: Callable[[str], Path]) -> None:
    folder = counted("codel ecn target 1ms")
    marked = len(tshark(folder / "d.pcapng", "-Y", "ip.dsfield.ecn == 3"))
    assert marked > 10
    assert only(inspect(folder / "s1.pcapng"))["marks_reported"] == marked
    assert only(inspect(folder / "d.pcapng"))["marks_reported"] == marked
    _, (rows,) = segments(folder / "s1.pcapng", quiet=True)
    flags = struct.unpack(f"<{len(rows['marked']) // 8}q", rows["marked"])
    assert 0 < sum(flags) <= marked


def test_the_handshake_decides_what_the_three_bits_are(tmp_path: Path) -> None:
    """RFC 9768, table 2: only 010, 011, 100 and 110 answer a SYN with all three bits as accurate ECN."""
    for answer in range(8):
        ace = (ECE if answer & 1 else 0) | (CWR if answer & 2 else 0) | (AE if answer & 4 else 0)
        flow = Flow(syn_flags=SYN | AE | CWR | ECE, answer_flags=SYN | ACK | ace).open()
        for number in range(20):
            flow.data(50 + number, 1 + 1000 * number, 1000, ecn=2)
            flow.ack(90 + number, 1001 + 1000 * number, flags=ACK | AE | ECE)
        said = only(inspect(flow.write(tmp_path / "a.pcap")))
        accurate = answer in (2, 3, 4, 6)
        assert said["ecn_feedback"] == ("accurate" if accurate else "classic"), answer
        assert said["marks_reported"] == (0 if accurate else 20), answer


# Goodput


def test_goodput_at_the_sender_is_what_was_acknowledged(tmp_path: Path) -> None:
    flow = Flow().open()
    for number in range(100):
        flow.data(50 + number, 1 + 1000 * number, 1000)
        if number < 60:
            flow.ack(90.5 + number, 1001 + 1000 * number)
    said = only(inspect(flow.write(tmp_path / "a.pcap")))
    assert (said["place"], said["bytes"], said["duration_s"]) == ("sender", 100_000, 0.1495)
    assert said["goodput_bps"] == pytest.approx(60_000 * 8 / 0.1495)


# Handshakes and FINs


def test_twelve_connections_without_an_answer() -> None:
    path = CASES / "syn-unanswered.pcap"
    document = inspect(path)
    rows = document["unanswered"]
    assert len(rows) == 12
    assert {row["server"] for row in rows} == {"10.0.0.9:80"}
    assert (sum(row["syns"] for row in rows), sum(row["retransmitted"] for row in rows)) == (36, 24)
    assert all(0 <= row["first_s"] < row["last_s"] for row in rows)
    assert not any("without data" in note for note in document["notes"])
    shown = " ".join(text(path).split())
    assert "12 connections to 10.0.0.9:80 were not answered: 36 SYNs, of which 24 retransmitted" in shown
    again = tshark(path, "-Y", "tcp.analysis.retransmission && tcp.flags.syn == 1")
    assert len(again) == 24


def test_a_reset_is_a_refusal(tmp_path: Path) -> None:
    flow = Flow()
    flow.put(0, segment(7, 0, SYN))
    flow.put(1000, segment(7, 0, SYN))
    flow.put(1040, segment(0, 8, RST | ACK, to_server=False), to_server=False)
    path = flow.write(tmp_path / "a.pcap")
    document = inspect(path)
    assert document["unanswered"] == []
    (row,) = document["refused"]
    assert (row["client"], row["server"]) == ("10.0.0.1:40000", "10.0.0.2:80")
    assert (row["syns"], row["retransmitted"], row["first_s"], row["last_s"]) == (2, 1, 0, 1)
    assert "1 connection to 10.0.0.2:80 was refused (RST)" in text(path)


def test_retransmitted_syn_acks_and_fins_are_counted(tmp_path: Path) -> None:
    flow = Flow().open()
    mss = struct.pack(">BBH", 2, 4, 1460)
    flow.put(-1000, segment(0, 0, SYN, options=mss))
    answer = segment(0, 1, SYN | ACK, options=mss, to_server=False)
    flow.put(40.05, answer, to_server=False)
    flow.data(50, 1, 1000)
    flow.ack(90, 1001)
    for ms in (100, 400, 1000):
        flow.put(ms, segment(1001, 1, FIN | ACK))
    flow.ack(1040, 1002)
    path = flow.write(tmp_path / "a.pcap")
    said = only(inspect(path))
    names = ("syn_retransmissions", "syn_ack_retransmissions", "fin_retransmissions")
    assert [said[name] for name in names] == [1, 1, 2]
    assert sum(said["retransmissions"].values()) == 0
    assert "1 SYN retransmitted, 1 SYN-ACK retransmitted, 2 FINs retransmitted" in text(path)
    assert len(tshark(path, "-Y", "tcp.analysis.retransmission")) == 4


# A closed window


def closed(far: bool) -> Flow:
    """The window is closed from 100 ms to 2600 ms; `far`: as the receiver's capture has it."""
    flow = Flow().open()
    shift = 39.9 if far else 0
    if far:
        flow.packets = [
            (ms + shift if number != 1 else ms, frame) for number, (ms, frame) in enumerate(flow.packets)
        ]
    flow.data(50 + shift, 1, 1460)
    flow.ack(90, 1461, window=0)
    for ms in (300, 700, 1500):
        flow.put(ms + shift, segment(1460, 1, ACK))
        flow.ack(ms + 40, 1461, window=0)
    flow.ack(2590, 1461, window=500)
    flow.data(2590.1 + shift, 1461, 1460)
    flow.ack(2631, 2921, window=500)
    return flow


@pytest.mark.parametrize("far", [False, True])
def test_a_closed_window_is_time_and_a_limit_at_either_end(tmp_path: Path, far: bool) -> None:
    path = closed(far).write(tmp_path / "a.pcap")
    said = only(inspect(path))
    assert said["place"] == ("receiver" if far else "sender")
    assert said["closed_s"] == pytest.approx(2.5)
    assert said["limited_s"]["receiver"] == pytest.approx(2.5, abs=0.05)
    assert sum(said["limited_s"].values()) == pytest.approx(said["duration_s"])
    assert "receive window closed for 2.5 s" in text(path)


def test_a_window_that_stays_closed_limits_to_the_end(tmp_path: Path) -> None:
    flow = Flow().open()
    flow.data(50, 1, 1460, ACK | PSH)
    flow.ack(90, 1461, window=0)
    for ms in (300, 700, 1500, 3100):
        flow.put(ms, segment(1460, 1, ACK))
        flow.ack(ms + 40, 1461, window=0)
    said = only(inspect(flow.write(tmp_path / "a.pcap")))
    assert said["closed_s"] == pytest.approx(3.05)


# Time


def test_a_capture_appended_to_itself_is_read_once(tmp_path: Path) -> None:
    flow = window_limited(1348, 1460)
    once = pcap(sorted(flow.packets))
    (tmp_path / "once").write_bytes(once)
    (tmp_path / "twice").write_bytes(once + once[24:])
    document = inspect(tmp_path / "twice")
    assert document["flows"] == inspect(tmp_path / "once")["flows"]
    (file,) = document["files"]
    assert (file["repeated"], file["disorder"], file["clock_steps"]) == (len(flow.packets), 0, 0)
    (note,) = document["notes"]
    assert "appended to itself" in note


def test_a_clock_set_back_is_one_note(tmp_path: Path) -> None:
    packets = sorted(window_limited(1348, 1460).packets)
    plain = pcap(packets)
    (tmp_path / "plain").write_bytes(plain)
    stepped = [(ms - 3_000 if number > 900 else ms, frame) for number, (ms, frame) in enumerate(packets)]
    (tmp_path / "stepped").write_bytes(pcap(stepped))
    document = inspect(tmp_path / "stepped")
    flow, whole = only(document), only(inspect(tmp_path / "plain"))
    assert (flow["bytes"], flow["segments"]) == (whole["bytes"], whole["segments"])
    assert sum(flow["retransmissions"].values()) == 0
    (file,) = document["files"]
    assert (file["clock_steps"], file["disorder"], file["missing"]) == (1, 0, 0)
    assert len(document["notes"]) == 1


# What is not TCP


def test_what_is_not_tcp_is_summed_up(tmp_path: Path) -> None:
    arp = MAC + b"\x08\x06" + bytes(28)
    solicit = ether(ipv6(17, udp(547, bytes(60), source_port=546)))
    advertise = ether(ipv6(17, udp(546, bytes(60), source_port=547)))
    ping = ether(ipv4(1, b"\x08\x00" + bytes(6)))
    later = ether(bytes([0x45, 0, 0, 40, 0, 1, 0x20, 100, 64, 17, 0, 0]) + CLIENT + SERVER + bytes(20))
    frames = [solicit] * 1000 + [advertise] * 959 + [ping] * 5 + [arp] * 3 + [later]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(float(ms), frame) for ms, frame in enumerate(frames)]))
    document = inspect(path)
    rows = [tuple(row[name] for name in ("protocol", "port", "packets", "name")) for row in document["other"]]
    assert rows == [
        ("UDP", 547, 1959, "DHCPv6"),
        ("ICMP", None, 5, "echo request"),
        ("ARP", None, 3, None),
        ("UDP", None, 1, "later fragments"),
    ]
    assert document["other"][0]["bytes"] == 1959 * len(solicit)
    shown = " ".join(text(path).split())
    assert "No TCP connection with data. 1,959 packets of UDP port 547 (DHCPv6), 5 packets of ICMP" in shown


def test_a_scan_of_all_ports_takes_bounded_memory(tmp_path: Path) -> None:
    frames = [ether(ipv4(17, udp(port, b"", source_port=65_535))) for port in range(1, 20_000)]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(ms / 10, frame) for ms, frame in enumerate(frames)]))
    rows = inspect(path)["other"]
    assert len(rows) == 1_001
    assert sum(row["packets"] for row in rows) == len(frames)


# Tunnels


def gre(kind: int, payload: bytes, flags: int = 0, fields: bytes = b"") -> bytes:
    return ipv4(47, struct.pack(">HH", flags, kind) + fields + payload)


def vxlan(ip: bytes, network: int = 7) -> bytes:
    return ipv4(17, udp(4789, struct.pack(">II", 0x08000000, network << 8) + ether(ip)))


def geneve(ip: bytes) -> bytes:
    return ipv4(17, udp(6081, struct.pack(">HHI", 0x0100, 0x6558, 9 << 8) + bytes(4) + ether(ip)))


def gtp(ip: bytes, flags: int = 0x30, extra: bytes = b"") -> bytes:
    return ipv4(17, udp(2152, struct.pack(">BBHI", flags, 255, len(extra) + len(ip), 1) + extra + ip))


TUNNELS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "GRE": ("GRE", lambda ip: ether(gre(0x800, ip))),
    "GRE with checksum, key and sequence": (
        "GRE",
        lambda ip: ether(gre(0x800, ip, 0xB000, bytes(12))),
    ),
    "Ethernet in GRE": ("GRE", lambda ip: ether(gre(0x6558, ether(ip)))),
    "PPTP": ("GRE", lambda ip: ether(gre(0x880B, b"\xff\x03\x00\x21" + ip, 0x3081, bytes(12)))),
    "ERSPAN": ("GRE, ERSPAN", lambda ip: ether(gre(0x88BE, ether(ip)))),
    "ERSPAN II": (
        "GRE, ERSPAN",
        lambda ip: ether(gre(0x88BE, b"\x10" + bytes(7) + ether(ip), 0x1000, bytes(4))),
    ),
    "ERSPAN III": (
        "GRE, ERSPAN",
        lambda ip: ether(gre(0x22EB, b"\x20" + bytes(11) + ether(ip), 0x1000, bytes(4))),
    ),
    "VXLAN": ("VXLAN 7", lambda ip: ether(vxlan(ip))),
    "VXLAN in IPv6": (
        "VXLAN 7",
        lambda ip: ether(ipv6(17, udp(4789, struct.pack(">II", 0x08000000, 7 << 8) + ether(ip)))),
    ),
    "Geneve": ("Geneve 9", lambda ip: ether(geneve(ip))),
    "GTP-U": ("GTP-U", lambda ip: ether(gtp(ip))),
    "GTP-U with an extension": (
        "GTP-U",
        lambda ip: ether(gtp(ip, 0x34, b"\x00\x00\x00\x85" + b"\x01\x00\x00\x00")),
    ),
    "IPIP": ("IPIP", lambda ip: ether(ipv4(4, ip))),
    "4in6": ("4in6", lambda ip: ether(ipv6(4, ip))),
    "EtherIP": ("EtherIP", lambda ip: ether(ipv4(97, b"\x30\x00" + ether(ip)))),
    "MPLS": ("MPLS", lambda ip: MAC + b"\x88\x47" + b"\x00\x01\x00\x40" + b"\x00\x02\x01\x40" + ip),
    "MPLS with a pseudowire": (
        "MPLS",
        lambda ip: MAC + b"\x88\x47" + b"\x00\x02\x01\x40" + bytes(4) + ether(ip),
    ),
    "QinQ": ("QinQ", lambda ip: MAC + b"\x88\xa8\x00\x01\x81\x00\x00\x02\x08\x00" + ip),
    "PPPoE": (
        "PPPoE",
        lambda ip: MAC + b"\x88\x64\x11\x00\x00\x01" + struct.pack(">H", len(ip) + 2) + b"\x00\x21" + ip,
    ),
    "GRE in VXLAN in IPIP": ("GRE, VXLAN 7, IPIP", lambda ip: ether(ipv4(4, vxlan(gre(0x800, ip))))),
}


def carried(outside: Callable[[bytes], bytes]) -> list[tuple[float, bytes]]:
    """A transfer of 50 segments; `outside` makes a frame of an IP packet."""
    flow = Flow().open()
    for number in range(50):
        flow.data(50 + number, 1 + 1000 * number, 1000)
        flow.ack(90 + number, 1001 + 1000 * number)
    return [(ms, outside(frame[14:])) for ms, frame in sorted(flow.packets)]


@pytest.mark.parametrize("name", TUNNELS)
def test_tcp_inside_a_tunnel_is_read(tmp_path: Path, name: str) -> None:
    layers, outside = TUNNELS[name]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(carried(outside)))
    document = inspect(path)
    flow = only(document)
    assert (flow["label"], flow["bytes"], flow["segments"]) == ("10.0.0.1:40000 → 10.0.0.2:80", 50_000, 50)
    assert (flow["encapsulation"], document["other"]) == (layers, [])
    assert document["notes"] == [f"1 TCP connection is inside {layers}"]
    assert flow["rtt_ms"]["p50"] == pytest.approx(40)
    if "pseudowire" not in name:  # Wireshark has to be told that there is Ethernet behind a label
        lengths = tshark(path, "-T", "fields", "-e", "tcp.len")
        assert sum(int(length) for length in lengths) == 50_000, "as Wireshark reads these headers"


def test_ipv6_inside_ipv4(tmp_path: Path) -> None:
    packets = []
    for ms, ip in carried(lambda ip: ip):
        packets.append((ms, ether(ipv4(41, ipv6(6, ip[20:], ip[12:16], ip[16:20])))))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets))
    flow = only(inspect(path))
    assert (flow["bytes"], flow["encapsulation"]) == (50_000, "6in4")


@pytest.mark.parametrize("name", ["gre", "vxlan"])
def test_the_encapsulated_cases(name: str) -> None:
    path = CASES / f"{name}.pcap"
    document = inspect(path)
    flow = only(document)
    lengths = tshark(path, "-Y", "tcp.srcport == 80", "-T", "fields", "-e", "tcp.len")
    assert flow["bytes"] == sum(int(length) for length in lengths) == 28_000
    assert flow["encapsulation"] == {"gre": "GRE", "vxlan": "VXLAN 1"}[name]


def test_a_flow_inside_a_tunnel_and_outside_is_listed_once(tmp_path: Path) -> None:
    inside = [(ms + 0.3, frame) for ms, frame in carried(lambda ip: ether(gre(0x800, ip)))]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(sorted(carried(ether) + inside)))
    document = inspect(path)
    flow = only(document)
    assert (flow["bytes"], flow["segments"], flow["encapsulation"]) == (50_000, 50, None)
    assert sum(flow["retransmissions"].values()) == 0
    assert any("inside a tunnel and outside" in note for note in document["notes"])


def test_two_virtual_networks_with_the_same_addresses_are_two_flows(tmp_path: Path) -> None:
    def renumbered(ip: bytes) -> bytes:
        at = 24 if ip[12:16] == CLIENT else 28
        (number,) = struct.unpack_from(">I", ip, at)
        return ip[:at] + struct.pack(">I", number + 7_000_000) + ip[at + 4 :]

    first = carried(lambda ip: ether(vxlan(ip, 7)))
    other = carried(lambda ip: ether(vxlan(renumbered(ip), 8)))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(sorted(first + [(ms + 0.2, frame) for ms, frame in other])))
    flows = inspect(path)["flows"]
    assert [(flow["encapsulation"], flow["bytes"]) for flow in flows] == [
        ("VXLAN 7", 50_000),
        ("VXLAN 8", 50_000),
    ]


def test_a_marked_outer_header_is_a_mark(tmp_path: Path) -> None:
    """RFC 6040 §4.2: a decapsulator copies CE to a packet that is ECN-capable."""
    flow = Flow().open()
    for number in range(20):
        flow.data(50 + number, 1 + 1000 * number, 1000, ecn=2)
        flow.ack(90 + number, 1001 + 1000 * number)
    wrapped = [(ms, ether(ipv4(4, frame[14:], ecn=3))) for ms, frame in sorted(flow.packets)]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(wrapped))
    assert only(inspect(path))["marked"] == 20


def test_nesting_is_bounded(tmp_path: Path) -> None:
    ip = ipv4(6, segment(0, 0, SYN))
    for _ in range(200):
        ip = ipv4(4, ip)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap([(float(ms), ether(ip)) for ms in range(3)]))
    document = inspect(path)
    assert document["flows"] == []
    assert [(row["protocol"], row["packets"]) for row in document["other"]] == [("IPv4 in IP", 3)]


def test_a_datagram_at_a_tunnel_s_port_that_is_none_is_udp(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    frames = [ether(ipv4(17, udp(port, b"\xff" * 40))) for port in (4789, 6081, 2152, 8472, 6635)]
    path.write_bytes(pcap([(float(ms), frame) for ms, frame in enumerate(frames)]))
    names = {(row["port"], row["name"]) for row in inspect(path)["other"]}
    assert names == {
        (4789, "VXLAN"),
        (6081, "Geneve"),
        (2152, "GTP-U"),
        (8472, "VXLAN"),
        (6635, "MPLS in UDP"),
    }


def test_damaged_tunnels_do_not_end_the_reading(tmp_path: Path) -> None:
    numbers = random.Random(7)  # noqa: S311
    frames = [frame for _, outside in TUNNELS.values() for _, frame in carried(outside)[:6]]
    packets = []
    for ms in range(4_000):
        frame = bytearray(numbers.choice(frames))
        for _ in range(numbers.randint(1, 4)):
            frame[numbers.randrange(12, min(len(frame), 110))] = numbers.randrange(256)
        packets.append((float(ms), bytes(frame[: numbers.randint(14, len(frame))])))
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets))
    document = inspect(path)
    assert document["files"][0]["packets"] == 4_000


# Multipath TCP, Fast Open


CAPABLE, JOIN = b"\x1e\x0c\x01\x81" + bytes(8), b"\x1e\x0c\x10\x01" + bytes(8)


@pytest.mark.parametrize(
    ("asked", "answered", "expected"),
    [
        (CAPABLE, CAPABLE, "initial"),
        (JOIN, JOIN, "joined"),
        (CAPABLE, b"", "offered"),
        (b"", b"", None),
    ],
)
def test_multipath_tcp_is_named(tmp_path: Path, asked: bytes, answered: bytes, expected: str | None) -> None:
    flow = Flow(syn_options=asked, answer_options=answered).open()
    flow.data(50, 1, 1000)
    flow.ack(90, 1001)
    assert only(inspect(flow.write(tmp_path / "a.pcap")))["mptcp"] == expected


@pytest.mark.parametrize("accepted", [True, False])
def test_data_in_a_syn_count_once(tmp_path: Path, accepted: bool) -> None:
    flow = Flow()
    cookie = b"\x22\x0a" + bytes(8)
    mss = b"\x02\x04\x05\xb4"
    flow.put(0, segment(0, 0, SYN, 300, mss + cookie))
    taken = 301 if accepted else 1
    flow.put(40, segment(0, taken, SYN | ACK, options=mss, to_server=False), to_server=False)
    flow.put(40.1, segment(taken, 1, ACK))
    if not accepted:
        flow.data(40.2, 1, 300)
    flow.data(40.3, 301, 1000)
    flow.ack(80.3, 1301)
    path = flow.write(tmp_path / "a.pcap")
    said = only(inspect(path))
    assert said["bytes"] == 1300
    assert said["fast_open"] == {"cookie": "sent", "bytes": 300, "accepted": accepted}
    assert said["retransmissions"] == {"needed": 0 if accepted else 1, "spurious": 0, "unknown": 0}
    assert said["syn_retransmissions"] == 0


# QUIC


def quic(spins: bool) -> list[tuple[float, bytes]]:
    """A download over 50 ms, as the client's capture has it."""
    long_header = b"\xc3\x00\x00\x00\x01" + bytes(1195)
    packets = [(0.0, ether(ipv4(17, udp(443, long_header))))]
    numbers = random.Random(3)  # noqa: S311
    for ms in range(60, 2_060):
        turn = (ms // 50) % 2 if spins else numbers.getrandbits(1)
        first = bytes([0x40 | turn << 5])
        down = udp(50_000, first + bytes(1199), source_port=443)
        packets.append((float(ms), ether(ipv4(17, down, SERVER, CLIENT))))
        # The client inverts what it has from the server.
        up = bytes([0x40 | ((1 - turn) if spins else numbers.getrandbits(1)) << 5])
        packets.append((ms + 0.1, ether(ipv4(17, udp(443, up + bytes(40))))))
    return packets


def test_quic_is_named_with_its_round_trip_by_the_spin_bit(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(quic(spins=True)))
    document = inspect(path)
    (row,) = document["quic"]
    assert (row["client"], row["server"], row["version"]) == ("10.0.0.1:50000", "10.0.0.2:443", "1")
    assert (row["packets"], row["packets_to_server"]) == (4001, 2001)
    assert row["bytes"] == sum(len(frame) for _, frame in quic(spins=True))
    assert row["rtt_ms"]["p50"] == pytest.approx(50)
    assert row["rtt_ms"]["samples"] >= 30
    (other,) = document["other"]
    assert (other["port"], other["name"], other["packets"]) == (443, "QUIC", 4001)
    assert "RTT p5/p50/p95 50/50/50 ms by the spin bit" in " ".join(text(path).split())


def test_a_random_spin_bit_is_no_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(quic(spins=False)))
    (row,) = inspect(path)["quic"]
    assert row["rtt_ms"] is None
    assert "no spin bit" in text(path)


def test_another_protocol_at_port_443_is_not_quic(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    dtls = ether(ipv4(17, udp(443, b"\x17\xfe\xfd" + bytes(60))))
    path.write_bytes(pcap([(float(ms), dtls) for ms in range(20)]))
    document = inspect(path)
    assert document["quic"] == []
    assert [(row["port"], row["name"]) for row in document["other"]] == [(443, None)]


# Anonymous copies


def test_an_anonymous_copy_keeps_what_is_read(tmp_path: Path) -> None:
    flow = Flow(syn_flags=SYN | AE | CWR | ECE, answer_flags=SYN | ACK | CWR, syn_options=CAPABLE).open()
    for number in range(20):
        flow.data(50 + number, 1 + 1000 * number, 1000, ecn=2)
        counter = (
            bytes([174, 11]) + struct.pack(">I", 1)[1:] + struct.pack(">I", 0)[1:] + struct.pack(">I", 1)[1:]
        )
        flow.ack(90 + number, 1001 + 1000 * number, flags=ACK | AE | ECE, options=counter)
    path = flow.write(tmp_path / "a.pcap")
    copied = tmp_path / "b.pcap"
    assert CliRunner().invoke(app, ["inspect", str(path), "--anonymise", str(copied)]).exit_code == 0
    first, second = only(inspect(path)), only(inspect(copied))
    assert {**first, "label": ""} == {**second, "label": ""}
    assert (first["ecn_feedback"], first["mptcp"]) == ("accurate", "offered")
