"""Drops of a run, and the retransmission that repaired each, from the captures of the run.

A retransmission is the first packet after the drop that carries the segment's first byte again, seen at the
host that sends the data or, if that was not captured, where the packet was dropped.
"""

from __future__ import annotations

import bisect
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dragstrip.interop.writers.packets import TCP, Packet, by_ports, capture_of, flow_of, packets
from dragstrip.model.recording import Recording

_FLOWS_MAX = 25_000
"""Flows whose ports are their own."""
_SYN_FIN = 0x03


@dataclass
class Drop:
    """A dropped packet, and the time when its first byte was retransmitted."""

    where: str
    """The link, or the host at whose interface it was."""
    at_ns: int
    flow: int | None
    """Its flow by number, or None for a ping."""
    size: int
    """Bytes of the frame."""
    again_ns: int | None = None
    """None if it carries no data, or was not retransmitted before the run ended."""


class _Segment(NamedTuple):
    """A TCP packet's flow, its sender (the end that opened the connection or the other) and its bytes."""

    flow: int
    from_opener: bool
    first: int
    length: int


def repairs(recording: Recording, captures: Path) -> list[Drop]:
    """Return the drops by time, each once; none without captures.

    Raises `BadInputError` for a file among the captures that no run has written.
    """
    files = dict(_files(recording, captures))
    first_drops: dict[tuple[int, int], tuple[Drop, _Segment | None]] = {}
    for point, path in files.items():
        for packet in packets(path):
            if packet.event == "d":
                segment, flow = _segment(packet), flow_of(packet)
                first_drop = Drop(point, packet.at_ns, flow, packet.original)
                first_drops.setdefault((packet.at_ns, packet.id), (first_drop, segment))
    drops = sorted(first_drops.values(), key=lambda entry: (entry[0].at_ns, entry[0].where))
    for path, served in _served(recording, drops, files).items():
        _repair(served, packets(path))
    return [drop for drop, _ in drops]


def _files(recording: Recording, captures: Path) -> Iterator[tuple[str, Path]]:
    """Yield the capture of each link, then of each host, that has one."""
    scenario = recording.scenario
    if len(scenario.get("flows", ())) > _FLOWS_MAX:
        return
    for point in [element["name"] for element in (*scenario.get("links", ()), *scenario.get("nodes", ()))]:
        path = capture_of(captures, point)
        if path is not None:
            yield point, path


def _served(
    recording: Recording, drops: Iterable[tuple[Drop, _Segment | None]], files: dict[str, Path]
) -> dict[Path, list[tuple[Drop, _Segment]]]:
    """Return the drops of data by the file in which their retransmissions are looked for."""
    ends = {row["flow"]: (row["receiver"], row["sender"]) for row in recording["flows"].to_pylist()}
    served = defaultdict(list)
    for drop, segment in drops:
        if segment is not None and segment.length and segment.flow in ends:
            host = ends[segment.flow][segment.from_opener]
            served[files.get(host, files[drop.where])].append((drop, segment))
    return served


def _repair(drops: list[tuple[Drop, _Segment]], sent_packets: Iterable[Packet]) -> None:
    """Set when each drop was retransmitted; drops and packets are in order of time."""
    open_: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
    last: dict[tuple[int, bool], int] = {}

    def place(segment: _Segment) -> int:
        """Return the first byte's number without its wrap at 2^32, near the latest one of its stream."""
        stream = segment.flow, segment.from_opener
        near = last.get(stream, segment.first)
        last[stream] = near + ((segment.first - near + 2**31) & 0xFFFF_FFFF) - 2**31
        return last[stream]

    at = 0
    for packet in sent_packets:
        while at < len(drops) and drops[at][0].at_ns < packet.at_ns:
            segment = drops[at][1]
            bisect.insort(open_[segment.flow, segment.from_opener], (place(segment), at))
            at += 1
        segment_sent = None if packet.event == "r" else _segment(packet)
        if segment_sent is None or not segment_sent.length:
            continue
        first = place(segment_sent)
        waiting = open_[segment_sent.flow, segment_sent.from_opener]
        begin = bisect.bisect_left(waiting, (first, -1))
        end = bisect.bisect_left(waiting, (first + segment_sent.length, -1))
        for _, drop_index in waiting[begin:end]:
            drops[drop_index][0].again_ns = packet.at_ns
        del waiting[begin:end]


def _segment(packet: Packet) -> _Segment | None:
    """Return what a TCP packet carries, or None for another packet."""
    frame = packet.frame
    if len(frame) < 54 or frame[23] != TCP:
        return None
    (total,) = struct.unpack_from(">H", frame, 16)
    source, target, first, _, offset, flags = struct.unpack_from(">HHIIBB", frame, 34)
    flow, from_opener = by_ports(source, target)
    if flow is None:
        return None
    length = total - 20 - (offset >> 4) * 4 + (flags & _SYN_FIN).bit_count()
    return _Segment(flow, from_opener, first, max(length, 0))
