"""Packets of the captures that a run has written.

A run numbers the ports of its flows from 30001 at senders and from 5001 at receivers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragstrip.engines.capture import names
from dragstrip.errors import BadInputError
from dragstrip.interop.writers.rows import EPOCH_S
from dragstrip.io.untrusted import capture_pieces

TCP, UDP = 6, 17
_SENDER_PORT, _RECEIVER_PORT = 30_001, 5_001
_SHB, _EPB = 0x0A0D0D0A, 6
_KINDS = (_SHB, 1, 5, _EPB, 10)
_COMMENT, _FLAGS, _ID = 1, 2, 5
_INBOUND = 1


@dataclass(frozen=True)
class Packet:
    """A packet of a capture."""

    at_ns: int
    event: str
    id: int
    frame: bytes
    original: int


def capture_of(captures: Path, point: str) -> Path | None:
    """Return the file of a host or link in a folder of captures, or None if there is none.

    Which of several points got a plain name depends on the order in which they were captured; a name that
    holds nothing but what a file may be called by is its own.
    """
    path = captures / names([point])[point]
    return path if path.is_file() else None


def packets(path: Path) -> Iterator[Packet]:
    """Yield the packets of a capture that Dragstrip wrote; raises `BadInputError` for another one.

    Such a file is pcapng, little-endian, with one Ethernet interface and nanoseconds.
    """
    partial = b""
    for piece, _ in capture_pieces(path):
        partial += piece
        at = 0
        while len(partial) - at >= 12:
            kind, length = struct.unpack_from("<II", partial, at)
            if length < 12 or length % 4 or (at == 0 and kind not in _KINDS):
                raise BadInputError("block", length, "a capture that a run has written", str(path))
            if len(partial) - at < length:
                break
            if kind == _EPB:
                yield _block(partial[at + 8 : at + length - 4])
            at += length
        partial = partial[at:]


def _block(body: bytes) -> Packet:
    _, high, low, captured, original = struct.unpack_from("<IIIII", body)
    at = 20 + captured + -captured % 4
    options: dict[int, bytes] = {}
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        options[code] = body[at + 4 : at + 4 + length]
        at += 4 + length + -length % 4
    inbound = int.from_bytes(options.get(_FLAGS, b""), "little") & 3 == _INBOUND
    event = "d" if _COMMENT in options else "r" if inbound else "-"
    time_ns = (high << 32 | low) - EPOCH_S * 10**9
    number = int.from_bytes(options.get(_ID, b""), "little")
    return Packet(time_ns, event, number, body[20 : 20 + captured], original)


def flow_of(packet: Packet) -> int | None:
    """Return the number of the flow that the ports tell, or None."""
    frame = packet.frame
    if len(frame) < 38 or frame[23] not in (TCP, UDP):
        return None
    return by_ports(*struct.unpack_from(">HH", frame, 34))[0]


def by_ports(source: int, target: int) -> tuple[int | None, bool]:
    """Return the flow, and whether the end that begins it has sent the packet."""
    from_opener = source > target
    low, high = sorted((source, target))
    flow = low - _RECEIVER_PORT
    return (flow, from_opener) if 0 <= flow == high - _SENDER_PORT else (None, from_opener)
