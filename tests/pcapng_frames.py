"""The frames of a pcapng file, read by nothing of ours."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

ENHANCED_PACKET = 6
IPV4 = b"\x08\x00"


def ipv4(file: Path) -> Iterator[tuple[int, bytes]]:
    """Time (ns) and bytes of each Ethernet frame with an IPv4 packet; what follows a frame in its block may stand behind it."""
    content, at = file.read_bytes(), 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        frame = content[at + 28 : at + size]
        if kind == ENHANCED_PACKET and frame[12:14] == IPV4:
            high, low = struct.unpack_from("<II", content, at + 12)
            yield high << 32 | low, frame
        at += size
