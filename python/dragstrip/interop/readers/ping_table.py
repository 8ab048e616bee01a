"""Reader of pings printed as a table: RouterOS's `/ping` (MikroTik) and PowerShell's Test-Connection.

A row is a request, a second after the one before: both programs send one each second unless told
otherwise, and print no time.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dragstrip.interop.readers.measurements import LOST_MAX, MOST, Measurements, missing_content

SECOND_NS = 1_000_000_000
_MIKROTIK_HEAD = re.compile(r"^\s{0,10}SEQ\s{1,40}HOST\s{1,60}SIZE\s{1,10}TTL\s{1,10}TIME\s", re.M)
_MIKROTIK = re.compile(
    r"^\s{0,10}(?P<seq>\d{1,9})\s{1,10}(?P<host>\S{1,200})(?:\s{1,60}(?P<size>\d{1,6})\s{1,10}(?P<ttl>\d{1,4})"
    r"\s{1,10}(?P<time>(?:\d{1,9}(?:s|ms|us))+))?(?:\s{1,60}(?P<status>[a-z][a-z -]{1,60}))?\s*$"
)
_PART = re.compile(r"(\d{1,9})(s|ms|us)")
_UNIT_NS = {"s": SECOND_NS, "ms": 1_000_000, "us": 1_000}
_CORE_HEAD = re.compile(r"^\s{0,10}Ping\s{1,20}Source\s{1,60}Address\s{1,60}Latency", re.M)
_CORE = re.compile(
    r"^\s{0,10}(?P<seq>\d{1,9})\s{1,20}(?P<source>\S{1,100})\s{1,60}(?P<host>\S{1,100})\s{1,60}(?P<rtt>\d{1,9}|\*)"
    r"\s{1,60}(?:\d{1,9}|\*)\s{1,20}(?P<status>\w{1,60})\s*$"
)
_DESTINATION = re.compile(r"^\s{0,10}Destination: (?P<host>\S{1,200})\s*$")
_DESKTOP_HEAD = re.compile(
    r"^Source\s{1,40}Destination\s{1,40}IPV4Address\s{1,40}IPV6Address\s{1,60}Bytes\s{1,10}Time\(ms\)", re.M
)
_DESKTOP = re.compile(
    r"^(?P<source>\S{1,100})\s{1,60}(?P<host>\S{1,100})\s.{0,200}?\s(?P<bytes>\d{1,6})\s{1,20}(?P<rtt>\d{1,9})\s*$"
)


def is_one(begin: str) -> bool:
    """Return whether a text is a table of RouterOS's ping or of Test-Connection."""
    return any(head.search(begin) for head in (_MIKROTIK_HEAD, _CORE_HEAD, _DESKTOP_HEAD))


def read(text: str, source: str) -> Measurements:
    """Return a probe for each host that was pinged; raises `BadInputError` if there is no row."""
    content = Measurements()
    lines = text.splitlines()
    if _MIKROTIK_HEAD.search(text):
        _rows(content, lines, _of_mikrotik)
        content.notes.append("times are numbers of requests times 1 s: RouterOS prints none")
    else:
        _rows(content, lines, _Windows())
        content.notes.append(
            "times are numbers of requests times 1 s, and round trips whole ms: so prints Test-Connection"
        )
    if not content.probes:
        raise missing_content(source, "no request")
    return content


def _rows(
    content: Measurements,
    lines: list[str],
    read_row: Callable[[str], tuple[int | None, str, int | None] | None],
) -> None:
    left_out = 0
    count: dict[str, int] = {}
    for line in lines:
        row = read_row(line)
        if row is None:
            continue
        number, host, rtt_ns = row
        number = count.get(host, 0) if number is None else number
        count[host] = number + 1
        if rtt_ns is None and content.lost_requests >= LOST_MAX:
            left_out += 1
            continue
        content.probe(min(number * SECOND_NS, MOST), "ping", host, rtt_ns)
    if left_out:
        content.notes.append(f"{left_out} requests without an answer are left out: more than {LOST_MAX}")


def _of_mikrotik(line: str) -> tuple[int | None, str, int | None] | None:
    row = _MIKROTIK.match(line)
    if row is None or not (row["time"] or row["status"]):
        return None
    rtt_ns = None
    if row["time"] and not row["status"]:
        rtt_ns = sum(int(value) * _UNIT_NS[unit] for value, unit in _PART.findall(row["time"]))
    return int(row["seq"]), row["host"], rtt_ns if rtt_ns is None else min(rtt_ns, MOST)


class _Windows:
    """Rows of Test-Connection: of PowerShell 7 below the host's own line, of 5.1 with the host."""

    def __init__(self) -> None:
        self.destination: str | None = None
        self.desktop = False

    def __call__(self, line: str) -> tuple[int | None, str, int | None] | None:
        """Return the number, the host and the round trip of a row, None for any other line."""
        if destination := _DESTINATION.match(line):
            self.destination = destination["host"]
            return None
        self.desktop = bool(_DESKTOP_HEAD.match(line)) or self.desktop
        if row := _CORE.match(line):
            answered = row["rtt"] != "*" and row["status"] == "Success"
            host = self.destination or row["host"]
            return max(int(row["seq"]) - 1, 0), host, int(row["rtt"]) * 1_000_000 if answered else None
        if self.desktop and (row := _DESKTOP.match(line)):
            return None, row["host"], int(row["rtt"]) * 1_000_000
        return None
