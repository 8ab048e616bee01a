"""Reader of the kernel's own traces of senders.

It reads lines of the tracepoint `tcp:tcp_probe` (`include/trace/events/tcp.h`), as ftrace, perf and bpftrace
print them, and lines of `/proc/net/tcpprobe`, which kernels had until 4.15. Windows are in segments, whose
size neither gives, so they become variables (`snd_cwnd`, `ssthresh`) rather than bytes.
"""

from __future__ import annotations

import re

from dragstrip.interop.readers.measurements import MOST, Measurements, Row, missing_content, nanoseconds

_POINT = re.compile(r"(?P<at>\d{1,10}\.\d{1,9}): (?:tcp:)?tcp_probe: (?P<pairs>.{1,2000})$")
_PAIR = re.compile(r"(\w{1,30})=(\S{1,100})")
_PROC = re.compile(
    r"(\d{1,10}\.\d{1,9}) (\S{1,60}:\d{1,5}) (\S{1,60}:\d{1,5}) \d{1,6} 0x([0-9a-f]{1,8}) 0x([0-9a-f]{1,8}) "
    r"(\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,10})(?: \d{1,10})?$"
)
INFINITE = 0x7FFF_FFFF
"""The kernel's `TCP_INFINITE_SSTHRESH`."""


def is_one(begin: str) -> bool:
    """Return whether a text has lines of tcp_probe."""
    lines = begin.splitlines()[:200]
    return any(_POINT.search(line) or _PROC.match(line.strip()) for line in lines)


def read(listing: str, source: str) -> Measurements:
    """Return a flow for each pair of addresses, seen from the sender; raises `BadInputError`."""
    measurements = Measurements()
    flows: dict[tuple[str, str], tuple[int, int]] = {}
    origin: int | None = None
    for line in listing.splitlines():
        row = _of_point(line) or _of_proc(line)
        if row is None:
            continue
        origin = row["at"] if origin is None else origin
        ends = (row["src"], row["dest"])
        if ends not in flows:
            flows[ends] = (
                measurements.flow(f"{ends[0]} > {ends[1]}", sender=ends[0], receiver=ends[1]),
                row["snd_una"],
            )
        number, first = flows[ends]
        time_ns = max(row["at"] - origin, 0)
        acked = (row["snd_una"] - first) % (1 << 32)
        srtt = row["srtt_us"] * 1000 or None
        measurements.samples.append(
            {"time_ns": time_ns, "flow": number, "srtt_ns": srtt, "bytes_acked": acked}
        )
        variables = {
            "snd_cwnd": row["cwnd"],
            "outstanding_bytes": (row["snd_nxt"] - row["snd_una"]) % (1 << 32),
        }
        if row["ssthresh"] < INFINITE:
            variables["ssthresh"] = row["ssthresh"]
        for name, value in variables.items():
            measurements.cc_state.append(
                {"time_ns": time_ns, "flow": number, "name": name, "value": float(value)}
            )
    if not measurements.samples:
        raise missing_content(source, "no line of tcp_probe with its values")
    wrapped = any(row["bytes_acked"] >= 1 << 31 for row in measurements.samples)
    if wrapped:
        measurements.notes.append("bytes_acked is counted from sequence numbers, which wrap at 4 GiB")
    measurements.notes.append("windows are in segments: tcp_probe does not report the MSS")
    return measurements


def _of_point(line: str) -> Row | None:
    event = _POINT.search(line)
    if event is None:
        return None
    pairs = dict(_PAIR.findall(event["pairs"]))
    try:
        numbers = {
            name: int(pairs[name], 0) for name in ("snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "srtt")
        }
        ends = {"src": pairs["src"], "dest": pairs["dest"]}
    except (KeyError, ValueError):
        return None
    if not all(0 <= value <= MOST // 1000 for value in numbers.values()):
        return None
    return {
        "at": nanoseconds(event["at"]),
        **ends,
        "snd_nxt": numbers["snd_nxt"],
        "snd_una": numbers["snd_una"],
        "cwnd": numbers["snd_cwnd"],
        "ssthresh": numbers["ssthresh"],
        "srtt_us": numbers["srtt"],
    }


def _of_proc(line: str) -> Row | None:
    event = _PROC.match(line.strip())
    if event is None:
        return None
    at, src, dest, nxt, una, cwnd, ssthresh, _, srtt = event.groups()[:9]
    return {
        "at": nanoseconds(at),
        "src": src,
        "dest": dest,
        "snd_nxt": int(nxt, 16),
        "snd_una": int(una, 16),
        "cwnd": int(cwnd),
        "ssthresh": int(ssthresh),
        "srtt_us": int(srtt),
    }
