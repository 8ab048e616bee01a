"""Reader of cake-autorate's log: lines `DATA` and `LOAD`, whose columns the lines `..._HEADER` name.

Half of a round trip counts as either direction's delay unless the pinger measures both by the hosts' clocks;
the two together are the round trip in both cases, since the clocks' offset cancels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragstrip.interop.readers.measurements import (
    BOTH_WAYS,
    DOWNLOADING,
    IDLE,
    MOST,
    NAME_MAX,
    UPLOADING,
    Measurements,
    missing_content,
    nanoseconds,
)

_HEAD = re.compile(r"(?m)^(?:(DATA|LOAD)_HEADER|HEADER); LOG_DATETIME; LOG_TIMESTAMP;")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,9})?")
_EPOCH = re.compile(r"\d{9,11}(?:[.,]\d{1,9})?")
UNKNOWN_LOAD = "ping"
_RATES = (("DL_ACHIEVED_RATE_KBPS", "download"), ("UL_ACHIEVED_RATE_KBPS", "upload"))
_SHAPERS = (("CAKE_DL_RATE_KBPS", "cake_rate_bps"), ("CAKE_UL_RATE_KBPS", "cake_rate_bps"))
LONGEST_NS = 10_000_000_000
"""Between two lines further apart than this the log says nothing of the rate: the script slept."""


def is_one(begin: str) -> bool:
    """Return whether a text is a log of cake-autorate's, from a header on."""
    return _HEAD.search(begin) is not None


def read(log: str, source: str) -> Measurements:
    """Return a probe for each reflector and load, and what passed each way; raises `BadInputError`."""
    content = Measurements()
    columns: dict[str, Sequence[str]] = {}
    first: int | None = None
    loads = re.search(r"(?m)^LOAD; ", log) is not None
    before: int | None = None
    flows: list[int] = []
    measured_ns = 0
    for line in log.splitlines():
        kind, *cells = [cell.strip() for cell in line.split(";")]
        if kind.endswith("HEADER"):
            columns[kind.removesuffix("_HEADER") if kind != "HEADER" else "DATA"] = cells
            continue
        if kind not in ("DATA", "LOAD") or len(cells) != len(columns.get(kind, ())):
            continue
        row = dict(zip(columns[kind], cells, strict=True))
        if not _EPOCH.fullmatch(row.get("LOG_TIMESTAMP", "")):
            continue
        at = nanoseconds(row["LOG_TIMESTAMP"].replace(",", "."))
        first = at if first is None else first
        time_ns = min(max(at - first, 0), MOST)
        if kind == "DATA":
            _probe(content, row, time_ns)
        if (kind == "LOAD") == loads:
            if not flows:
                flows = [_flow(content, name, time_ns) for _, name in _RATES]
            _load(content, row, time_ns, before, flows)
            measured_ns += time_ns - before if before is not None and _follows(time_ns, before) else 0
            before = time_ns
    if not content.probes and not content.received:
        raise missing_content(source, "no line DATA or LOAD with the columns of its header")
    for flow in flows:
        content.reported[flow] = {"measured_s": measured_ns / 1e9}
    content.notes.append(
        "a round trip is the sum of the two directions' delays; requests without an answer are not "
        "in the log, so loss is not known"
    )
    content.notes.append(
        "bytes are cake-autorate's achieved rate times the time between two lines: of all hosts, with headers"
    )
    return content


def _follows(time_ns: int, before: int) -> bool:
    """Return whether the rate of a line is that of the time since the line before."""
    return 0 < time_ns - before <= LONGEST_NS


def _flow(content: Measurements, name: str, begin_ns: int) -> int:
    ends = ("internet", "LAN") if name == "download" else ("LAN", "internet")
    return content.flow(name, protocol="", sender=ends[0], receiver=ends[1], start_ns=begin_ns)


def _value(row: dict[str, str], name: str) -> float | None:
    cell = row.get(name, "")
    return float(cell) if _NUMBER.fullmatch(cell) else None


def _probe(content: Measurements, row: dict[str, str], time_ns: int) -> None:
    down, up = _value(row, "DL_OWD_US"), _value(row, "UL_OWD_US")
    trip = _value(row, "RTT_US") if down is None or up is None else down + up
    if trip is None or not 0 <= trip <= MOST / 1e3:
        return
    content.probe(time_ns, _load_of(row), row.get("REFLECTOR", "")[:NAME_MAX], round(trip * 1e3))


def _load_of(row: dict[str, str]) -> str:
    """Return under which load a request was sent, by the log's words: idle, low, high; `_bb` for delayed."""
    down, up = (row.get(name, "").lower() for name in ("DL_LOAD_CONDITION", "UL_LOAD_CONDITION"))
    if "high" in down or "high" in up:
        if "high" in down and "high" in up:
            return BOTH_WAYS
        return DOWNLOADING if "high" in down else UPLOADING
    return IDLE if "idle" in down and "idle" in up else UNKNOWN_LOAD


def _load(
    content: Measurements, row: dict[str, str], time_ns: int, before: int | None, flows: Sequence[int]
) -> None:
    for flow, (name, _), (shaper, variable) in zip(flows, _RATES, _SHAPERS, strict=True):
        rate = _value(row, name)
        if rate is not None and rate >= 0 and before is not None and _follows(time_ns, before):
            size = round(rate * 1e3 / 8 * (time_ns - before) / 1e9)
            content.received.append({"time_ns": time_ns, "flow": flow, "new_bytes": min(size, MOST)})
        limit = _value(row, shaper)
        if limit is not None and limit >= 0:
            content.cc_state.append(
                {"time_ns": time_ns, "flow": flow, "name": variable, "value": limit * 1e3}
            )
