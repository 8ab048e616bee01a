"""Reader of polls of `ss -ti` (iproute2's `misc/ss.c`), with a time before each poll or on each line.

The time is that of `date` (seconds, milliseconds, microseconds or nanoseconds since 1970, ISO 8601, or as
`date` prints it) on a line of its own, or the stamp of `ts` (moreutils) in front. ss omits values that are
zero or a default, and they stay empty here. It may round rates to three digits (but not with `-n`). With a
filter such as `state established` it has no column State.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from dragstrip.interop.readers.measurements import MOST, Measurements, Row, missing_content, nanoseconds

_ENDS = r"\d{1,12}\s{1,60}\d{1,12}\s{1,60}(\S{1,100}:\S{1,20})\s{1,60}(\S{1,100}:\S{1,20})"
_SOCKET = re.compile(
    rf"(?:tcp\s{{1,20}})?(?:(?:ESTAB|FIN-WAIT-\d|CLOSE-WAIT|LAST-ACK|CLOSING|SYN-\w{{1,10}})\s{{1,60}})?{_ENDS}"
)
_LISTED = re.compile(rf"(?m)(?:^|\s)(?:ESTAB\s|{_ENDS})")
_EPOCH = re.compile(r"(?:[A-Za-z_ ]{0,20}:?\s*)?(\d{9,10}(?:\.\d{1,9})?|\d{13}|\d{16}|\d{19})\s*$")
_DATE = re.compile(
    r"(?:\w{3} )?(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) "
    r"(?P<clock>\d\d:\d\d:\d\d)(?: (?P<half>[AP]M))?"
    r"(?: [A-Z]{2,5})? (?P<year>\d{4})\s*$"
)
_STAMP = re.compile(
    r"\[?(?:(?P<epoch>\d{10}(?:\.\d{1,9})?)|"
    r"(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)|"
    r"(?:(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) )?"
    r"(?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,9})?))\]?[ \t](?=[ \t]*\S)"
)
"""Time stamp that `ts` puts in front of a line."""
_WATCH = re.compile(r"Every \d{1,6}[.,]\d{1,3}s: [^\n]{1,400}?(\w{3} \w{3} {1,2}\d{1,2} [^\n]{8,30})$")
"""The head of a screen of `watch`: its command, the host, and the date as `date` prints it."""
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
DAY_NS = 86_400_000_000_000
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\s*$")
_PAIR = re.compile(r"(?<!\S)([a-z_]{2,20}):(\S{1,200})")
_RATE = re.compile(r"(?<!\S)(pacing_rate|delivery_rate) (\d{1,18}(?:\.\d{1,6})?)([kKMGT]?)bps")
_CC = re.compile(r"^(?:(?:ts|usec_ts|sack|ecn|ecnseen|fastopen) )*([a-z][a-z0-9_-]{1,15}) (?=\S+:)")
_COUNTERS = {
    name: re.compile(rf"(?<!\S){name}:(\d{{1,12}})ms") for name in ("busy", "rwnd_limited", "sndbuf_limited")
}
_UNITS = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def is_one(begin: str) -> bool:
    """Return whether a text has polls of ss."""
    return bool(_LISTED.search(begin) and re.search(r"\bcwnd:\d", begin))


def read(listing: str, source: str) -> Measurements:
    """Return a flow for each socket whose algorithm and window were shown; raises `BadInputError`."""
    measurements = Measurements()
    flows: dict[tuple[str, str], int] = {}
    begins: dict[tuple[str, str], dict[str, int]] = {}
    polls: dict[tuple[str, str], int] = {}
    waiting: dict[tuple[str, str], int] = {}
    first: int | None = None
    now: int | None = None
    socket: tuple[str, str] | None = None
    for line in listing.splitlines():
        if (at := _time(line)) is not None:
            now, socket = at, None
            first = at if first is None else first
            measurements.began_s = first / 1e9
            continue
        if stamp := _STAMP.match(line):
            line = line[stamp.end() :]
            at = _stamped(stamp, now)
            if at is not None and socket is None:
                now = at
                first = at if first is None else first
        if header := _SOCKET.match(line):
            socket = (header[1], header[2])
        if socket is None or "cwnd:" not in line:
            continue
        if now is None or first is None:
            raise missing_content(
                source,
                "no time before its first socket: put `date +%s.%N` in front of each `ss -tin`, or "
                "pipe it through `ts`",
            )
        words = line[header.end() :].strip() if header else line.strip()
        if socket not in flows:
            algorithm = _CC.match(words)
            ends = {"sender": socket[0], "receiver": socket[1], "cc": algorithm[1] if algorithm else None}
            flows[socket] = measurements.flow(f"{socket[0]} > {socket[1]}", **ends)
        measurements.samples.append({"time_ns": max(now - first, 0), "flow": flows[socket], **_sample(words)})
        counters = _counters(words)
        begins.setdefault(socket, counters)
        polls[socket] = polls.get(socket, 0) + 1
        waiting[socket] = waiting.get(socket, 0) + (" app_limited" in f" {words}")
        measurements.reported[flows[socket]] = {
            "limited_ms": {name: counters[name] - begins[socket][name] for name in counters},
            "app_limited_share": waiting[socket] / polls[socket],
        }
        socket = None
    if not measurements.samples:
        raise missing_content(source, "no TCP socket with its window (ss -tin)")
    return measurements


def _time(line: str) -> int | None:
    if screen := _WATCH.search(line):
        line = screen[1]
    if epoch := _EPOCH.match(line):
        digits = len(epoch[1]) if epoch[1].isdigit() else 0
        return int(epoch[1]) * 10 ** (19 - digits) if digits >= 13 else nanoseconds(epoch[1])
    if date := _DATE.match(line):
        return _of_date(date)
    if iso := _ISO.match(line):
        try:
            moment = datetime.fromisoformat(iso[1].replace(",", "."))
        except ValueError:
            return None
        return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e9)
    return None


def _counters(words: str) -> dict[str, int]:
    """Return the milliseconds in which the socket had data to send, and in which a window limited it.

    They are tcpi_busy_time, tcpi_rwnd_limited and tcpi_sndbuf_limited; ss omits those that are 0.
    """
    return {
        name: int(match[1]) if (match := pattern.search(words)) else 0 for name, pattern in _COUNTERS.items()
    }


def _of_date(date: re.Match[str]) -> int | None:
    hour = int(date["clock"][:2])
    if date["half"]:
        hour = hour % 12 + (12 if date["half"] == "PM" else 0)
    return _moment(f"{date['year']} {date['month']} {date['day']} {hour:02}{date['clock'][2:]}")


def _moment(words: str) -> int | None:
    """Return nanoseconds since 1970 of a year, month, day and time, in English whatever the locale."""
    year, month, day, clock = words.split()
    at = _MONTHS.find(month)
    if at < 0 or at % 3:
        return None
    whole, _, part = clock.partition(".")
    try:
        moment = datetime.fromisoformat(f"{year}-{at // 3 + 1:02}-{int(day):02}T{whole}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1_000_000_000 + int(part[:9].ljust(9, "0"))


def _stamped(stamp: re.Match[str], before: int | None) -> int | None:
    """Return the time of a stamp in front of a line, by the clock after `before`; without a year, of 2000."""
    if stamp["epoch"]:
        return nanoseconds(stamp["epoch"])
    if stamp["iso"]:
        return _time(stamp["iso"].replace(" ", "T"))
    at = _moment(f"2000 {stamp['month'] or 'Jan'} {stamp['day'] or 1} {stamp['clock']}")
    if at is None or stamp["month"] or before is None:
        return at
    return at + max(before - at + DAY_NS // 2, 0) // DAY_NS * DAY_NS


def _sample(words: str) -> Row:
    """Return the values in one socket's line."""
    pairs = dict(_PAIR.findall(words))

    def value(name: str, factor: float = 1, part: int = 0) -> int | None:
        parts = pairs.get(name, "").split("/")
        if part >= len(parts) or not re.fullmatch(r"\d{1,18}(?:\.\d{1,9})?", parts[part]):
            return None
        scaled = float(parts[part]) * factor
        return round(scaled) if scaled <= MOST else None

    mss = value("mss")
    cwnd, ssthresh, unacked = value("cwnd"), value("ssthresh"), value("unacked")
    in_flight = None
    if unacked is not None:  # tcp_packets_in_flight
        in_flight = unacked - (value("sacked") or 0) - (value("lost") or 0) + (value("retrans") or 0)
    rates = {
        name: round(float(rate) * _UNITS[unit])
        for name, rate, unit in _RATE.findall(words)
        if float(rate) * _UNITS[unit] <= MOST
    }

    def in_bytes(packets: int | None) -> int | None:
        return (
            None if packets is None or mss is None or packets < 0 or packets * mss > MOST else packets * mss
        )

    return {
        "cwnd_bytes": in_bytes(cwnd),
        "ssthresh_bytes": in_bytes(ssthresh),
        "bytes_in_flight": in_bytes(in_flight),
        "srtt_ns": value("rtt", 1e6),
        "min_rtt_ns": value("minrtt", 1e6),
        "pacing_bps": rates.get("pacing_rate"),
        "delivery_bps": rates.get("delivery_rate"),
        "bytes_acked": value("bytes_acked"),
        "retransmits": value("retrans", part=1),
    }
