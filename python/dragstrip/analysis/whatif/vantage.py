"""A capture from elsewhere on the path, as its sender would have taken it.

Data that answer an acknowledgement leave the sender when it arrives, and carry its time stamp back (RFC 7323,
section 4). So each segment is put at the time at which the acknowledgement that it echoes passed the capture:
the whole path from there to the sender and back lies in front of it then, as if it were the way of the data
to the receiver. Round trips, the bytes in flight and what the sender did upon each acknowledgement stay as
they were; the sender's pacing between two acknowledgements is lost.

Behind the queue that drops, lost segments were never seen. Each that leaves a hole which a later segment
fills is put in front of the segment that showed the hole.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dragstrip import _core
from dragstrip.analysis.captures import beginning, refusing
from dragstrip.io.untrusted import capture_pieces

PACKETS_MAX = 400_000
"""Packets of a capture that are read, the first ones."""
HEAD = 24
"""Bytes of a pcap file's header (pcap-savefile(5)), and below of a packet's."""
RECORD = struct.Struct("<IIII")
IPV4, IPV4_BYTES, IPV6_BYTES = 4, 20, 40
"""The version and the lengths of headers (RFC 791, RFC 8200)."""
SYN, RST, ACK = 2, 4, 16
TIME_STAMP = 8
"""TCP's option of time stamps (RFC 7323)."""
SEQUENCES = 1 << 32
SYNTHETIC_MAX = 10_000
"""Lost segments that are put in, at most, per hole."""


@dataclass(frozen=True)
class Header:
    """A TCP packet of a capture, with what of it matters here."""

    at_ns: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    seq: int
    ack: int
    flags: int
    data_bytes: int
    """Payload."""
    stamps: tuple[int, int] | None
    """Time stamp and echo."""
    frame: bytes
    """Headers of IP and TCP."""
    ip_bytes: int

    @property
    def is_opening(self) -> bool:
        """True for a SYN or a SYN-ACK."""
        return bool(self.flags & SYN)


def at_sender(file: Path, ports: tuple[int, int], data_bytes: int) -> bytes | None:
    """Return a pcap file of one flow as its sender would have seen it, or None where the capture cannot show.

    `ports` are the sender's and the receiver's, `data_bytes` what `inspect` counts of the flow: with the
    ports they tell it from others. Raises `BadInputError` for a file that is no capture.
    """
    forth, back = _directions(_packets(file), ports, data_bytes)
    if not forth or not back:
        return None
    handshake = _handshake(forth, back)
    moved = _by_echoes(forth, back, handshake) or _by_handshake(forth, back, handshake)
    if moved is None:
        return None
    everything = sorted([*back, *moved], key=lambda packet: packet.at_ns)
    return _file(everything)


def _packets(file: Path) -> Iterator[Header]:
    """Yield the TCP packets of a capture of any form, as the core writes them without link layers."""
    content, place, begin = b"", -HEAD, b""
    copy, count = _core.Anonymous(), 0
    for piece, _ in capture_pieces(file):
        begin = begin or beginning(piece)
        with refusing(file, begin):
            content += copy.feed(piece)
        if place < 0 and len(content) >= HEAD:
            content, place = content[HEAD:], 0
        at = 0
        while place == 0 and at + RECORD.size <= len(content):
            seconds, fraction, captured_bytes, _length = RECORD.unpack_from(content, at)
            if at + RECORD.size + captured_bytes > len(content):
                break
            frame = content[at + RECORD.size : at + RECORD.size + captured_bytes]
            at += RECORD.size + captured_bytes
            if (packet := _header(seconds * 10**9 + fraction, frame)) is not None:
                yield packet
                count += 1
            if count == PACKETS_MAX:
                return
        content = content[at:]


def _header(at_ns: int, frame: bytes) -> Header | None:
    if frame[0] >> 4 == IPV4:
        front, ip_bytes = IPV4_BYTES, int.from_bytes(frame[2:4])
        ends = frame[12:16], frame[16:20]
    else:
        front, ip_bytes = IPV6_BYTES, IPV6_BYTES + int.from_bytes(frame[4:6])
        ends = frame[8:24], frame[24:40]
    if len(frame) < front + 20:
        return None
    source, target, seq, ack, offset, flags = struct.unpack_from(">HHIIBB", frame, front)
    length = (offset >> 4) * 4
    data = max(0, ip_bytes - front - length)
    stamps = _stamps(frame[front + 20 : front + length])
    return Header(at_ns, (ends[0], source), (ends[1], target), seq, ack, flags, data, stamps, frame, ip_bytes)


def _stamps(options: bytes) -> tuple[int, int] | None:
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            return None
        if kind == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if kind == TIME_STAMP and length == 10 and at + 10 <= len(options):
            value, echo = struct.unpack_from(">II", options, at + 2)
            return value, echo
        if length < 2:
            return None
        at += length
    return None


def _directions(
    packets: Iterator[Header], ports: tuple[int, int], data_bytes: int
) -> tuple[list[Header], list[Header]]:
    """Return the packets of the flow with these ports and nearly so many bytes of data, and those back."""
    flows: dict[tuple[tuple[bytes, int], tuple[bytes, int]], list[Header]] = defaultdict(list)
    for packet in packets:
        if {packet.source[1], packet.target[1]} == set(ports):
            flows[packet.source, packet.target].append(packet)
    sizes = {
        ends: sum(packet.data_bytes for packet in flow)
        for ends, flow in flows.items()
        if (ends[0][1], ends[1][1]) == ports
    }
    if not sizes:
        return [], []
    source, target = min(sizes, key=lambda ends: abs(sizes[ends] - data_bytes))
    return flows[source, target], flows.get((target, source), [])


def _handshake(forth: Sequence[Header], back: Sequence[Header]) -> tuple[Header, Header, int] | None:
    """Return the last of the first SYNs, its answer, and the time at which the third packet passed."""
    syn = next((packet for packet in forth if packet.is_opening and not packet.flags & ACK), None)
    answer = next((packet for packet in back if packet.is_opening), None)
    if syn is None or answer is None or answer.at_ns < syn.at_ns:
        return None
    third = next((packet for packet in forth if packet.at_ns >= answer.at_ns and not packet.is_opening), None)
    return None if third is None else (syn, answer, third.at_ns)


def _by_echoes(
    forth: Sequence[Header], back: Sequence[Header], handshake: tuple[Header, Header, int] | None
) -> list[Header] | None:
    """Return the data at the times of what they echo; None without time stamps."""
    if any(packet.stamps is None for packet in (*forth, *back) if not packet.flags & (SYN | RST)):
        return None
    passed: dict[int, list[int]] = defaultdict(list)
    for packet in back:
        if packet.stamps is not None:
            passed[packet.stamps[0]].append(packet.at_ns)
    echoing: dict[int, int] = defaultdict(int)
    for packet in forth:
        if packet.stamps is not None and not packet.is_opening:
            echoing[packet.stamps[1]] += 1
    opening = [packet for packet in forth if packet.is_opening]
    if handshake is not None:
        _, answer, third_ns = handshake
        earlier_ns = third_ns - answer.at_ns
        opening = [replace(packet, at_ns=packet.at_ns - earlier_ns) for packet in opening]
    counts: dict[int, int] = defaultdict(int)
    moved: list[Header] = []
    # In the order in which they were sent: on their way here packets overtake each other.
    for packet in sorted(forth, key=_sent):
        if packet.is_opening or packet.stamps is None:
            continue
        echo = packet.stamps[1]
        times = passed.get(echo, ())
        if not times:
            continue
        number = counts[echo]
        counts[echo] += 1
        moved.append(replace(packet, at_ns=times[number * len(times) // echoing[echo]]))
    return opening + _with_lost(moved)


def _by_handshake(
    forth: Sequence[Header], back: Sequence[Header], handshake: tuple[Header, Header, int] | None
) -> list[Header] | None:
    """Return the data earlier by the handshake's way to the sender and back; None if some were lost."""
    if handshake is None:
        return None
    _, answer, third_ns = handshake
    if any(True for _ in _holes(forth)):
        return None
    near_ns = third_ns - answer.at_ns
    return [replace(packet, at_ns=max(0, packet.at_ns - near_ns)) for packet in forth]


def _sent(packet: Header) -> tuple[int, int]:
    """Return what orders packets as they were sent: their time stamp, and their place among the bytes."""
    return (packet.stamps or (0, 0))[0], packet.seq


def _after(seq: int, other: int) -> int:
    """Return how far a sequence number is behind another one."""
    distance = (seq - other) % SEQUENCES
    return distance - SEQUENCES if distance >= SEQUENCES // 2 else distance


def _holes(forth: Sequence[Header]) -> Iterator[tuple[int, int, int]]:
    """Yield the place of each segment that shows a hole before it, where the hole begins, and its bytes."""
    expected: int | None = None
    for place, packet in enumerate(forth):
        if not packet.data_bytes:
            continue
        end = (packet.seq + packet.data_bytes) % SEQUENCES
        if expected is not None and (missing := _after(packet.seq, expected)) > 0:
            yield place, expected, missing
        if expected is None or _after(end, expected) > 0:
            expected = end


def _with_lost(forth: Sequence[Header]) -> list[Header]:
    """Return the packets with those that were lost on their way here in front of what showed the hole."""
    arrivals: dict[int, list[Header]] = defaultdict(list)
    for packet in forth:
        if packet.data_bytes:
            arrivals[packet.seq].append(packet)
    losses: dict[int, list[Header]] = defaultdict(list)
    full = max((packet.data_bytes for packet in forth), default=0)
    for place, begin, _ in _holes(forth):
        behind = forth[place]
        at, pieces = begin, 0
        while _after(behind.seq, at) > 0 and pieces < SYNTHETIC_MAX:
            size = min(full, _after(behind.seq, at))
            fills = [fill for fill in arrivals.get(at, ()) if fill.at_ns > behind.at_ns]
            if fills:
                size = min(size, fills[0].data_bytes)
                losses[place].append(_copy(behind, at, size))
            at, pieces = (at + size) % SEQUENCES, pieces + 1
    whole: list[Header] = []
    for place, packet in enumerate(forth):
        whole += losses.get(place, ())
        whole.append(packet)
    return whole


def _copy(packet: Header, seq: int, data_bytes: int) -> Header:
    """Return a packet that left with this one and carried other data.

    It has this one's stamps and identification: what repeats those of the repair is a capture's duplicate.
    """
    ip_bytes = packet.ip_bytes - packet.data_bytes + data_bytes
    frame = bytearray(packet.frame)
    if frame[0] >> 4 == IPV4:
        front = IPV4_BYTES
        struct.pack_into(">H", frame, 2, ip_bytes)
    else:
        front = IPV6_BYTES
        struct.pack_into(">H", frame, 4, ip_bytes - IPV6_BYTES)
    struct.pack_into(">I", frame, front + 4, seq)
    return replace(packet, seq=seq, data_bytes=data_bytes, ip_bytes=ip_bytes, frame=bytes(frame))


def _file(packets: Sequence[Header]) -> bytes:
    first = min(0, min(packet.at_ns for packet in packets))
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)]
    for packet in packets:
        seconds, fraction = divmod(packet.at_ns - first, 10**9)
        parts.append(RECORD.pack(seconds, fraction, len(packet.frame), packet.ip_bytes) + packet.frame)
    return b"".join(parts)
