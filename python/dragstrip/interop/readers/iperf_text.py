"""Reader of the tables that iperf3 and iperf 2 print for people (`iperf_locale.c`; iperf 2's `Locale.c`).

Sizes are multiples of 1024 bytes, rates of 1000 bits, both rounded to three digits. A sender's bytes are
those that its socket accepted, so they count as written; a receiver's are those that arrived. iperf3 ends
with a line for either side; iperf 2 with one over the whole time, which is no interval.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dragstrip.interop.readers.measurements import MOST, ROWS_MAX, Measurements, missing_content

_NUMBER = r"\d{1,12}(?:\.\d{1,9})?"
_LINE = re.compile(
    rf"\[ {{0,4}}\*?(?P<stream>\d{{1,5}})\](?:\[(?P<role>[RT]X-[CS])\])? {{1,6}}"
    rf"(?P<begin>{_NUMBER}) {{0,4}}- {{0,4}}(?P<end>{_NUMBER}) {{1,6}}sec {{1,6}}"
    rf"(?P<size>{_NUMBER}) (?P<unit>[KMGT]?)Bytes {{1,6}}"
    rf"{_NUMBER} [KMGT]?(?:bits|Bytes)/sec(?P<rest>.{{0,200}})$"
)
_LOCAL = re.compile(
    r"\[ {0,4}\*?(?P<stream>\d{1,5})\](?:\[[RT]X-[CS]\])? {1,6}local (?P<local>\S{1,100}) port \d{1,5} "
    r"connected (?:to|with) (?P<remote>\S{1,100}) port \d{1,5}"
)
_HEAD = re.compile(r"\[ {0,4}ID\](?:\[Role\])? {1,6}Interval ")
_RUN = re.compile(r"Connecting to host |Client connecting to |Accepted connection from ")
_REVERSE = re.compile(r"Reverse mode, remote host ")
_SERVER = re.compile(r"Server listening on |Accepted connection from ")
_UDP = re.compile(r"Total Datagrams|Lost/Total|UDP port ")
_IPERF3 = re.compile(
    r" {1,6}(?P<again>\d{1,9})(?: {1,20}(?P<cwnd>\d{1,9}(?:\.\d{1,3})?) (?P<unit>[KMG]?)Bytes)?\s*$"
)
_IPERF2 = re.compile(
    r" {1,6}\d{1,12}/\d{1,12} {1,20}(?P<again>\d{1,9})"
    r"(?: {1,20}(?:NA|(?P<cwnd>-?\d{1,9})K)/(?P<rtt>\d{1,9}))?"
)
_LOST = re.compile(r" ms {1,6}(?P<lost>\d{1,9})/ {0,9}(?P<total>\d{1,9}) ")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SECOND = 1e9


@dataclass
class _TextStream:
    flow: int
    sends: bool
    ends: list[float] = field(default_factory=list)
    written_bytes: int = 0
    again: int = 0
    begin: float | None = None


def is_one(begin: str) -> bool:
    """Return whether a text is a table of iperf3 or iperf 2."""
    return any(_LINE.search(line) or _HEAD.search(line) for line in begin.splitlines())


def read(text: str, source: str) -> Measurements:
    """Return a flow for each stream, with its intervals; raises `BadInputError` if there is no interval."""
    content = Measurements()
    reader = _Reader(content)
    for line in text.splitlines()[:ROWS_MAX]:
        reader.line(line)
    if not content.flows:
        raise missing_content(source, "no interval of any stream")
    for stream in reader.all_streams:
        flow = content.flows[stream.flow]
        if stream.begin is not None and flow.get("start_ns") is None:
            flow["start_ns"] = _ns(stream.begin)
        if stream.ends and flow.get("stop_ns") is None:
            flow["stop_ns"] = _ns(max(stream.ends))
    content.notes.append("sizes, and with them goodput, are rounded to three digits: so prints iperf")
    if content.samples:
        content.notes.append(
            "bytes of a sender's intervals are those that its socket accepted, not those that arrived"
        )
    if reader.omitted:
        content.notes.append("intervals at the beginning, omitted by -O, are not read")
    if reader.run > 1:
        content.notes.append(
            "several runs: each counts its time from its own begin, since none states when it was"
        )
    return content


class _Reader:
    """State between the lines of a text: the run, its side and direction, and its streams."""

    def __init__(self, content: Measurements) -> None:
        self.content = content
        self.streams: dict[tuple[str, str], _TextStream] = {}
        self.all_streams: list[_TextStream] = []
        self.hosts: dict[str, tuple[str, str]] = {}
        self.run, self.omitted = 1, 0
        self.server = self.reverse = self.udp = self.totals = False

    def line(self, line: str) -> None:
        """Read one line."""
        if _RUN.search(line) and self.all_streams and (self.totals or self.streams):
            self.run += 1
            self.streams, self.hosts = {}, {}
            self.reverse = self.udp = self.totals = False
        self.server = self.server or bool(_SERVER.search(line))
        self.reverse = self.reverse or bool(_REVERSE.search(line))
        self.udp = self.udp or bool(_UDP.search(line))
        if line.lstrip().startswith("- - -"):
            self.totals = True
        elif local := _LOCAL.search(line):
            self.hosts[local["stream"]] = (local["local"], local["remote"])
        elif row := _LINE.search(line):
            if row["rest"].rstrip().endswith("(omitted)"):
                self.omitted += 1
                return
            self.interval(row)

    def stream(self, row: re.Match[str]) -> _TextStream:
        """Return the stream of a line, added when its first line appears."""
        role = row["role"] or ""
        key = (row["stream"], role)
        if key not in self.streams:
            sends = role.startswith("TX") if role else self.server == self.reverse
            local, remote = self.hosts.get(row["stream"], (None, None))
            prefix = f"run {self.run}: " if self.run > 1 else ""
            flow = self.content.flow(
                f"{prefix}stream {row['stream']}",
                protocol="udp" if self.udp else "tcp",
                sender=local if sends else remote,
                receiver=remote if sends else local,
            )
            self.streams[key] = _TextStream(flow, sends)
            self.all_streams.append(self.streams[key])
        return self.streams[key]

    def interval(self, row: re.Match[str]) -> None:
        """Add an interval, or a total to its flow."""
        stream = self.stream(row)
        begin, end = float(row["begin"]), float(row["end"])
        size = _bytes(row["size"], row["unit"])
        if size is None or end <= begin:
            return
        flow = self.content.flows[stream.flow]
        rest = row["rest"]
        side = rest.split()[-1] if rest.split() else ""
        total = (
            self.totals
            or side in ("sender", "receiver")
            or bool(stream.ends and begin < stream.ends[-1] - 1e-6)
        )
        if loss := _LOST.search(rest):
            flow["segments_sent"], flow["datagrams_lost"] = int(loss["total"]), int(loss["lost"])
        if total and stream.ends:
            self.total(flow, rest, side, size, begin, end, stream)
            return
        if total and side == "receiver":
            flow |= {"bytes_received": size, "stop_ns": _ns(end)}
            return
        stream.begin = begin if stream.begin is None else min(stream.begin, begin)
        stream.ends.append(end)
        if not stream.sends:
            self.content.received.append({"time_ns": _ns(end), "flow": stream.flow, "new_bytes": size})
            return
        stream.written_bytes = min(stream.written_bytes + size, MOST)
        values = _IPERF2.match(rest) or _IPERF3.match(rest.removesuffix("sender").rstrip())
        again, cwnd, rtt = None, None, None
        if values and not self.udp:
            again = int(values["again"])
            groups = values.groupdict()
            if groups["cwnd"] and float(groups["cwnd"]) > 0:
                cwnd = _bytes(groups["cwnd"], groups.get("unit", "K"))
            rtt = int(groups["rtt"]) * 1000 if groups.get("rtt") else None
            stream.again += again
        self.content.samples.append(
            {
                "time_ns": _ns(end),
                "flow": stream.flow,
                "cwnd_bytes": cwnd,
                "srtt_ns": rtt or None,
                "bytes_written": stream.written_bytes,
                "retransmits": None if again is None else stream.again,
            }
        )

    @staticmethod
    def total(
        flow: dict[str, object],
        rest: str,
        side: str,
        size: int,
        begin: float,
        end: float,
        stream: _TextStream,
    ) -> None:
        """Add what a line over the whole time has: iperf3's of either side, or iperf 2's."""
        if side == "receiver" or (not side.startswith("sender") and not stream.sends):
            flow["bytes_received"] = size
            flow["start_ns"], flow["stop_ns"] = _ns(begin), _ns(end)
        values = _IPERF2.match(rest) or _IPERF3.match(rest.rstrip().removesuffix("sender").rstrip())
        if values and side != "receiver":
            flow["retransmits"] = int(values["again"])


def _bytes(value: str, unit: str) -> int | None:
    size = float(value) * _SIZES[unit]
    return round(size) if size <= MOST else None


def _ns(seconds: float) -> int:
    return min(round(seconds * SECOND), MOST)
