"""Packets made by hand, and pcap files of them; built by nothing of ours."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

FIN, SYN, RST, PSH, ACK, ECE, CWR, AE = 1, 2, 4, 8, 16, 64, 128, 256
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
MAC = bytes(12)
ETHERNET_IPV4 = MAC + b"\x08\x00"
START_NS = 10**18


def ipv4(
    protocol: int, payload: bytes, source: bytes = CLIENT, to: bytes = SERVER, ecn: int = 0, identity: int = 0
) -> bytes:
    """An IPv4 packet without options; its checksum is zero."""
    length = 20 + len(payload)
    return (
        struct.pack(">BBHHHBBH", 0x45, ecn, length, identity, 0x4000, 64, protocol, 0) + source + to + payload
    )


def ipv6(protocol: int, payload: bytes, source: bytes = CLIENT, to: bytes = SERVER) -> bytes:
    """An IPv6 packet whose addresses end in these bytes."""
    head = struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64)
    return head + bytes([0xFD, *bytes(11)]) + source + bytes([0xFD, *bytes(11)]) + to + payload


def udp(port: int, payload: bytes, source_port: int = 50_000) -> bytes:
    """A UDP datagram."""
    return struct.pack(">HHHH", source_port, port, 8 + len(payload), 0) + payload


def ether(ip: bytes) -> bytes:
    """An Ethernet frame of an IP packet."""
    return MAC + (b"\x86\xdd" if ip[0] >> 4 == 6 else b"\x08\x00") + ip


def segment(
    seq: int,
    ack: int,
    flags: int,
    data: int = 0,
    options: bytes = b"",
    window: int = 500,
    to_server: bool = True,
) -> bytes:
    """A TCP segment of zeros between the client's port 40000 and the server's port 80."""
    ports = (40_000, 80) if to_server else (80, 40_000)
    options += bytes([1]) * (-len(options) % 4)
    words = (5 + len(options) // 4) << 12 | flags
    head = struct.pack(">HHIIHHHH", *ports, seq % 2**32, ack % 2**32, words, window, 0, 0)
    return head + options + bytes(data)


def pcap(packets: list[tuple[float, bytes]], link: int = 1) -> bytes:
    """A file with nanoseconds of frames and their times in ms."""
    written = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, link)
    for ms, frame in packets:
        time = START_NS + round(ms * 1e6)
        written += struct.pack("<IIII", time // 10**9, time % 10**9, len(frame), len(frame)) + frame
    return written


@dataclass
class Flow:
    """A TCP connection as a capture at the client shows it; the client sends from sequence number 1."""

    mss: int = 1460
    options: bytes = b""
    """Options of every segment."""
    syn_options: bytes = b""
    answer_options: bytes = b""
    syn_flags: int = SYN
    answer_flags: int = SYN | ACK
    packets: list[tuple[float, bytes]] = field(default_factory=list)
    identity: int = 0

    def put(self, ms: float, tcp: bytes, to_server: bool = True, ecn: int = 0) -> None:
        """Add a packet, with an IP identification of its own."""
        self.identity = self.identity % 65_535 + 1
        ends = (CLIENT, SERVER) if to_server else (SERVER, CLIENT)
        self.packets.append((ms, ether(ipv4(6, tcp, *ends, ecn=ecn, identity=self.identity))))

    def open(self) -> Flow:
        """A handshake over 40 ms."""
        mss = struct.pack(">BBH", 2, 4, self.mss) + b"\x01\x03\x03\x07"
        self.put(0, segment(0, 0, self.syn_flags, options=mss + self.syn_options, window=64_000))
        answer = segment(
            0, 1, self.answer_flags, options=mss + self.answer_options, window=64_000, to_server=False
        )
        self.put(40, answer, to_server=False)
        self.put(40.1, segment(1, 1, ACK, options=self.options))
        return self

    def data(self, ms: float, seq: int, length: int, flags: int = ACK, ecn: int = 0) -> None:
        """The client sends."""
        self.put(ms, segment(seq, 1, flags, length, self.options), ecn=ecn)

    def ack(self, ms: float, ack: int, window: int = 500, flags: int = ACK, options: bytes = b"") -> None:
        """The server acknowledges."""
        tcp = segment(1, ack, flags, options=options + self.options, window=window, to_server=False)
        self.put(ms, tcp, to_server=False)

    def write(self, path: Path) -> Path:
        """Write the file, in the order of time."""
        path.write_bytes(pcap(sorted(self.packets, key=lambda packet: packet[0])))
        return path
