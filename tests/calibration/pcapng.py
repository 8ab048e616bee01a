"""Captures cut, begun late, and of a receiver whose application stopped reading, made of simulated ones.

A pcapng file is a sequence of blocks; stamps of the simulator's captures are nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PACKET = 6
ETHERNET, SYN, ACK = 14, 2, 16
PAUSE_NS = 500_000_000
"""Silence of a receiver from which on its application is taken for one that stopped reading."""
RTO_NS = 200_000_000
ANSWER_NS = 30_000


@dataclass
class Block:
    """A block; of packets with time and frame."""

    kind: int
    body: bytes
    time_ns: int = 0
    frame: bytes = b""

    def written(self) -> bytes:
        """Return the block as bytes."""
        body = self.body
        if self.kind == PACKET:
            (length,) = struct.unpack_from("<I", self.body, 16)
            frame = self.frame + b"\0" * (-len(self.frame) % 4)
            head = struct.pack("<II", self.time_ns >> 32, self.time_ns & 0xFFFFFFFF)
            body = self.body[:4] + head + struct.pack("<II", len(self.frame), max(length, len(self.frame)))
            body += frame
        size = len(body) + 12
        return struct.pack("<II", self.kind, size) + body + struct.pack("<I", size)


def blocks(content: bytes) -> Iterator[Block]:
    """Yield the blocks of a file."""
    at = 0
    while at + 12 <= len(content):
        kind, size = struct.unpack_from("<II", content, at)
        body = content[at + 8 : at + size - 4]
        if kind == PACKET:
            high, low, kept = struct.unpack_from("<III", body, 4)
            yield Block(kind, body, high << 32 | low, body[20 : 20 + kept])
        else:
            yield Block(kind, body)
        at += size


def joined(parts: Iterable[Block]) -> bytes:
    """Return a file of blocks."""
    return b"".join(part.written() for part in parts)


def late(content: bytes, seconds: float) -> bytes:
    """Return a capture that was started so long after the first TCP packet."""
    every = list(blocks(content))
    begin = next((part.time_ns for part in every if part.kind == PACKET and _is_tcp(part.frame)), 0)
    return joined(it for it in every if it.kind != PACKET or it.time_ns >= begin + seconds * 1e9)


def cut(content: bytes, share: float) -> bytes:
    """Return the beginning of a file, which may end within a packet."""
    return content[: max(400, int(len(content) * share))]


def _is_tcp(frame: bytes) -> bool:
    return frame[12:14] == b"\x08\x00" and len(frame) > ETHERNET + 23 and frame[ETHERNET + 9] == 6


class _Segment:
    """The fields of TCP's header that a stopped reader changes."""

    def __init__(self, frame: bytes) -> None:
        self.at = ETHERNET + (frame[ETHERNET] & 15) * 4
        self.source = frame[ETHERNET + 12 : ETHERNET + 16]
        self.seq, self.ack = struct.unpack_from(">II", frame, self.at + 4)
        self.header = (frame[self.at + 12] >> 4) * 4
        self.flags = frame[self.at + 13]
        (self.window,) = struct.unpack_from(">H", frame, self.at + 14)
        (total,) = struct.unpack_from(">H", frame, ETHERNET + 2)
        self.payload = total - (self.at - ETHERNET) - self.header

    def shift(self, frame: bytes) -> int:
        """Return the window scale that a SYN offers."""
        options, at = frame[self.at + 20 : self.at + self.header], 0
        while at < len(options) and options[at]:
            if options[at] == 1:
                at += 1
                continue
            if options[at] == 3:
                return options[at + 2]
            at += max(2, options[at + 1]) if at + 1 < len(options) else 2
        return 0


def _with_window(frame: bytes, at: int, window: int) -> bytes:
    return frame[: at + 14] + struct.pack(">H", min(window, 0xFFFF)) + frame[at + 16 :]


def _bare(frame: bytes, segment: _Segment, seq: int) -> bytes:
    """Return a segment without payload, with a sequence number."""
    end = segment.at + segment.header
    made = frame[:end]
    made = made[: ETHERNET + 2] + struct.pack(">H", end - ETHERNET) + made[ETHERNET + 4 :]
    return made[: segment.at + 4] + struct.pack(">I", seq % (1 << 32)) + made[segment.at + 8 :]


def stopped_reader(content: bytes, data_sender: bytes, rtt_ns: int, at_sender: bool) -> tuple[bytes, float]:
    """Return a capture in which the receiver's pauses are those of an application that does not read.

    The run's sender waits for its receiver's next request. Here the receive buffer fills in each burst before a
    pause of half a second or more, so that the window closes with its last byte; the sender probes it, with the
    kernel's backoff, until the receiver speaks again. Also returns the seconds with a closed window.
    """
    every = list(blocks(content))
    packets = [it for it in every if it.kind == PACKET and _is_tcp(it.frame)]
    segments = [_Segment(it.frame) for it in packets]
    mine = [at for at, it in enumerate(segments) if it.source != data_sender]
    shift = next((segments[at].shift(packets[at].frame) for at in mine if segments[at].flags & SYN), 0)
    added: list[Block] = []
    closed = 0.0
    begin = 0
    for position, at in enumerate(mine):
        following = mine[position + 1] if position + 1 < len(mine) else None
        if following is None or packets[following].time_ns - packets[at].time_ns < PAUSE_NS:
            continue
        last = segments[at]
        data = [n for n in range(at) if segments[n].source == data_sender and segments[n].payload > 0]
        if last.payload or last.flags & SYN or not data:
            begin = position + 1
            continue
        for earlier in mine[begin : position + 1]:
            held = segments[earlier]
            if held.flags & SYN or held.payload:
                continue
            left = (last.ack - held.ack) % (1 << 32)
            if left < 1 << 31 and left >> shift < held.window:
                packets[earlier].frame = _with_window(packets[earlier].frame, held.at, left >> shift)
        closed += (packets[following].time_ns - packets[at].time_ns) / 1e9
        pattern = packets[data[-1]]
        probe = _bare(pattern.frame, segments[data[-1]], last.ack - 1)
        wait, time = RTO_NS + rtt_ns, packets[at].time_ns + (0 if at_sender else rtt_ns)
        while time + wait + rtt_ns + 10_000_000 < packets[following].time_ns:
            time += wait
            wait *= 2
            added.append(Block(PACKET, pattern.body, time, probe))
            answer = time + (rtt_ns if at_sender else 0) + ANSWER_NS
            added.append(Block(PACKET, packets[at].body, answer, packets[at].frame))
        begin = position + 1
    for it in added:
        it.body = it.body[:16] + struct.pack("<I", len(it.frame)) + it.body[20:]
    first = [it for it in every if it.kind != PACKET]
    rest = sorted([it for it in every if it.kind == PACKET] + added, key=lambda it: it.time_ns)
    return joined([*first, *rest]), closed
