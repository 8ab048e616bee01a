"""Reader of `tshark -T fields -E header=y`: TCP's data and round trips from the columns that are there.

Needed are a time (`frame.time_epoch` or `frame.time_relative`), both addresses, both ports, `tcp.len`. With
`tcp.seq` bytes count once; `tcp.analysis.ack_rtt` is a round trip of the other direction's flow.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from dragstrip.errors import BadInputError
from dragstrip.interop.readers.measurements import (
    MOST,
    NAME_MAX,
    ROWS_MAX,
    Measurements,
    missing_content,
    nanoseconds,
)

_HEAD = re.compile(r"(?:frame|ip|ipv6|tcp|eth|_ws)\.[\w.]{1,60}")
_SEPARATORS = ("\t", ",", ";", "|", " ")
_TIMES = ("frame.time_epoch", "frame.time_relative")
_TIME = re.compile(r"\d{1,11}(?:\.\d{1,9})?")
_NUMBER = re.compile(r"\d{1,15}")
_AGAIN = (
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
)
WRAP = 1 << 32


def is_one(begin: str) -> bool:
    """Return whether the first line of a text names fields of tshark's."""
    return _separator(begin.lstrip("\ufeff").split("\n", 1)[0].strip("\r")) is not None


def _separator(head: str) -> str | None:
    for separator in _SEPARATORS:
        names = head.replace('"', "").replace("'", "").split(separator)
        if len(names) > 1 and all(_HEAD.fullmatch(name.strip()) for name in names):
            return separator
    return None


def read(listing: str, source: str) -> Measurements:
    """Return a flow for each direction with data.

    Raises `BadInputError` if a column that is needed is missing, or no line has TCP data.
    """
    lines = listing.lstrip("\ufeff").splitlines()
    separator = _separator(lines[0]) or "\t"
    names = [name.strip().strip("\"'") for name in lines[0].split(separator)]
    columns = _Columns(names, source)
    content = Measurements()
    flows: dict[tuple[str, str], _Flow] = {}
    first: int | None = None
    for cells in csv.reader(lines[1 : ROWS_MAX + 1], delimiter=separator):
        row = columns.row(cells)
        if row is None:
            continue
        at, ends, size, seq = row
        first = at if first is None else min(first, at)
        if size > 0:
            if ends not in flows:
                number = content.flow(f"{ends[0]} > {ends[1]}"[:NAME_MAX], sender=ends[0], receiver=ends[1])
                flows[ends] = _Flow(number, columns.has_labels)
            flows[ends].add(content, at, size, seq, columns.repeated(cells))
        back = flows.get(ends[::-1])
        trip = columns.trip(cells)
        if back is not None and trip is not None:
            content.rtts.append({"time_ns": at, "flow": back.number, "rtt_ns": trip})
    if not content.flows or first is None:
        raise missing_content(source, "no line of TCP with data")
    for event in (*content.received, *content.rtts):
        event["time_ns"] = min(event["time_ns"] - first, MOST)
    for flow in flows.values():
        content.flows[flow.number] |= {
            "start_ns": min(flow.first - first, MOST),
            "stop_ns": min(flow.last - first, MOST),
            "retransmits": flow.again if columns.has_labels else None,
        }
    content.notes.append(
        "where the packets were captured is not stated; retransmissions are by Wireshark's labels"
    )
    if not columns.has_seq:
        content.notes.append("bytes sent twice count twice: there is no column tcp.seq")
    return content


class _Columns:
    """The places of the columns by name."""

    def __init__(self, names: Sequence[str], source: str) -> None:
        self.at = {name: place for place, name in enumerate(names)}
        self.time = next((name for name in _TIMES if name in self.at), None)
        if self.time is None:
            raise BadInputError("", None, f"has no time: add -e {_TIMES[0]}", source)
        hosts = [
            (a, b)
            for a, b in (("ip.src", "ip.dst"), ("ipv6.src", "ipv6.dst"))
            if a in self.at and b in self.at
        ]
        if not hosts:
            raise BadInputError("", None, "has no addresses: add -e ip.src -e ip.dst", source)
        self.hosts = hosts
        for name in ("tcp.srcport", "tcp.dstport", "tcp.len"):
            if name not in self.at:
                raise BadInputError("", None, f"has no {name}: add -e {name}", source)
        self.has_seq = "tcp.seq" in self.at or "tcp.seq_raw" in self.at
        self.has_labels = any(name in self.at for name in _AGAIN)

    def cell(self, cells: Sequence[str], name: str) -> str:
        """Return a cell, empty if the column or the cell is missing."""
        place = self.at.get(name)
        return cells[place].strip() if place is not None and place < len(cells) else ""

    def row(self, cells: Sequence[str]) -> tuple[int, tuple[str, str], int, int | None] | None:
        """Return time, ends, bytes of data and sequence number of a line, None if it is not TCP."""
        assert self.time is not None
        time, size = self.cell(cells, self.time), self.cell(cells, "tcp.len")
        hosts = next(((a, b) for a, b in self.hosts if self.cell(cells, a) and self.cell(cells, b)), None)
        ports = self.cell(cells, "tcp.srcport"), self.cell(cells, "tcp.dstport")
        if hosts is None or not (_TIME.fullmatch(time) and _NUMBER.fullmatch(size) and all(ports)):
            return None
        ends = tuple(f"{self.cell(cells, host)}:{port}" for host, port in zip(hosts, ports, strict=True))
        seq = self.cell(cells, "tcp.seq") or self.cell(cells, "tcp.seq_raw")
        number = int(seq) if _NUMBER.fullmatch(seq) else None
        return nanoseconds(time), (ends[0], ends[1]), min(int(size), 1 << 20), number

    def repeated(self, cells: Sequence[str]) -> bool:
        """Return whether Wireshark labels a line as a retransmission."""
        return any(self.cell(cells, name) not in ("", "0", "False") for name in _AGAIN)

    def trip(self, cells: Sequence[str]) -> int | None:
        """Return the round trip that an acknowledgement closes, in ns."""
        value = self.cell(cells, "tcp.analysis.ack_rtt")
        return min(nanoseconds(value), MOST) if _TIME.fullmatch(value) else None


class _Flow:
    """Data of one direction while lines are read."""

    def __init__(self, number: int, labelled: bool) -> None:
        self.number, self.labelled = number, labelled
        self.next: int | None = None
        self.again = 0
        self.first, self.last = MOST, 0

    def add(self, content: Measurements, at: int, size: int, seq: int | None, repeated: bool) -> None:
        """Count data once, by sequence number or, without one, by Wireshark's label."""
        self.first, self.last = min(self.first, at), max(self.last, at)
        self.again += repeated
        new = 0 if repeated else size
        if seq is not None:
            end = seq + size
            ahead = size if self.next is None else (end - self.next + WRAP // 2) % WRAP - WRAP // 2
            new = min(max(ahead, 0), size)
            self.next = end if self.next is None or ahead > 0 else self.next
        content.received.append({"time_ns": at, "flow": self.number, "new_bytes": new})
