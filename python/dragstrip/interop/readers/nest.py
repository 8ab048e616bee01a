"""Reader of NeST's dumps: `ss.json`, `ping.json`, `netperf.json` and `tc.json` of an experiment.

Each is a JSON object, `{node: [{what: rows}]}`, whose rows have a `timestamp` in seconds since 1970 and
values as text; a first row may describe the flow (NeST's `experiment/parser`). Windows are in segments, whose
size NeST does not record, so they become variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragstrip.interop.readers.measurements import (
    MOST,
    Measurements,
    Row,
    entries,
    missing_content,
    nanoseconds,
    table,
    text,
)

_STAMP = re.compile(r"\d{1,11}(?:\.\d{1,9})?")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_RATE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMG]?)(?:bps)?")
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_COUNTS = {
    "backlog_bytes": "backlog",
    "backlog_packets": "qlen",
    "dropped": "drops",
    "marked": "ecn_mark",
    "sent_bytes": "bytes",
}
_KEYS = {"rtt", "cwnd", "sending_rate", "kind", "dev_rtt", "ssthresh"}
DEPTH_MAX = 4


def is_one(document: Row) -> bool:
    """Return whether a JSON document is one of NeST's: nodes with lists of rows that have a time stamp."""
    for _, path, rows in _series(document):
        if path and any(_stamped(row) and _KEYS & row.keys() for row in rows[:3]):
            return True
    return False


def read(document: Row, source: str) -> Measurements:
    """Return flows, pings and queues of a dump; raises `BadInputError` if it has no row with a time stamp."""
    content = Measurements()
    series = [
        (node, path, [row for row in entries(rows, source, node) if _stamped(row)])
        for node, path, rows in _series(document)
    ]
    first = min((_time(row) for _, _, rows in series for row in rows), default=None)
    if first is None:
        raise missing_content(source, "no row with a time stamp")
    rates = False
    for node, path, rows in series:
        keys = {key for row in rows for key in row}
        place = " ".join((node, *path))
        if "kind" in keys:
            _queue(content, place, rows, first)
        elif "sending_rate" in keys:
            rates = True
            _rates(content, node, path, rows, first)
        elif keys & {"cwnd", "dev_rtt", "ssthresh"}:
            _sockets(content, node, path, rows, first)
        elif "rtt" in keys:
            for row in rows:
                if (trip := _scaled(row.get("rtt"), 1e6)) is not None:
                    content.probe(_time(row) - first, f"ping from {node}", ":".join(path), trip)
    if not (content.flows or content.probes or content.queues):
        raise missing_content(source, "no flow, no ping and no queue")
    if content.cc_state:
        content.notes.append("windows are in segments: NeST does not record the MSS")
    if content.queues:
        places = len({row["link"] for row in content.queues})
        content.notes.append(
            f"{len(content.queues)} counts of {places} queue(s) over time: --out writes them as a recording"
        )
    if content.probes:
        content.notes.append("requests without an answer are not in NeST's dump: loss is not known")
    if rates:
        content.notes.append(
            "rates are what netperf's sender wrote, not what arrived; its last interval is left out by NeST"
        )
    return content


def _series(document: Row) -> Iterator[tuple[str, tuple[str, ...], list[Row]]]:
    """Yield each list of rows with its node and what it belongs to: host, port, device, handle."""
    for node, items in document.items():
        if not isinstance(items, list):
            continue
        for item in items:
            yield from _below(str(node), (), item)


def _below(
    node: str, path: tuple[str, ...], value: object
) -> Iterator[tuple[str, tuple[str, ...], list[Row]]]:
    if isinstance(value, list):
        yield node, path, [row for row in value if isinstance(row, dict)]
    elif isinstance(value, dict) and len(path) < DEPTH_MAX:
        for name, inner in value.items():
            yield from _below(node, (*path, str(name)), inner)


def _stamped(row: object) -> bool:
    return _STAMP.fullmatch(str(table(row).get("timestamp"))) is not None


def _time(row: Row) -> int:
    return nanoseconds(str(row["timestamp"]))


def _scaled(value: object, factor: float = 1) -> int | None:
    """Return a number, which NeST writes as text, times `factor`, None for anything else."""
    words = str(value)
    if isinstance(value, bool) or not _NUMBER.fullmatch(words):
        return None
    scaled = float(words) * factor
    return round(scaled) if scaled <= MOST else None


def _sockets(content: Measurements, node: str, path: tuple[str, ...], rows: list[Row], first: int) -> None:
    peer = ":".join(path)
    flow = content.flow(f"{node} > {peer}", sender=node, receiver=peer)
    for row in rows:
        time_ns = _time(row) - first
        rate = _RATE.fullmatch(str(row.get("delivery_rate", "")))
        delivery = float(rate[1]) * _UNITS[rate[2]] if rate else None
        content.samples.append(
            {
                "time_ns": time_ns,
                "flow": flow,
                "srtt_ns": _scaled(row.get("rtt"), 1e6),
                "delivery_bps": round(delivery)
                if delivery is not None and rate and rate[2] and delivery <= MOST
                else None,
            }
        )
        for name, variable in (("cwnd", "snd_cwnd"), ("ssthresh", "ssthresh")):
            if (value := _scaled(row.get(name))) is not None:
                content.cc_state.append(
                    {"time_ns": time_ns, "flow": flow, "name": variable, "value": float(value)}
                )


def _rates(content: Measurements, node: str, path: tuple[str, ...], rows: list[Row], first: int) -> None:
    peer = ":".join(path)
    flow = content.flow(f"{node} > {peer}", sender=node, receiver=peer)
    written_bytes, before = 0, None
    for row in rows:
        time_ns = _time(row) - first
        size = _scaled(row.get("sending_rate"), 1e6 / 8)  # Mbit/s, over the interval that ends now
        if size is not None and before is not None and time_ns > before:
            written_bytes = min(written_bytes + round(size * ((time_ns - before) / 1e9)), MOST)
        content.samples.append({"time_ns": time_ns, "flow": flow, "bytes_written": written_bytes})
        before = time_ns


def _queue(content: Measurements, place: str, rows: list[Row], first: int) -> None:
    for row in rows:
        counts = {column: _scaled(row.get(name)) for column, name in _COUNTS.items()}
        link = f"{place} {text(row.get('kind')) or ''}".strip()
        content.queues.append({"time_ns": _time(row) - first, "link": link, **counts})
