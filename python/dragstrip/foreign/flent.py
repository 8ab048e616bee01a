"""flent's data files (`flent/resultset.py`, version 4): goodput, pings, and what flent's own `ss` polls saw.

Raw values are taken where they are: `results` are theirs, interpolated to a common grid.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dragstrip.foreign.found import MOST, Found, Row, entries, nothing, number, table, text, whole


def is_one(document: Row) -> bool:
    """Whether a JSON document is one."""
    return "x_values" in document and "results" in document


def read(document: Row, source: str) -> Found:
    """A flow for each series of TCP, a probe for each of pings."""
    metadata = table(document.get("metadata"))
    origin = _began(metadata)
    raw, results = table(document.get("raw_values")), table(document["results"])
    found = Found()
    for name in results:
        if name.startswith("Ping (ms)"):
            _pings(found, name, entries(raw.get(name), source, name), origin)
        elif (
            name.startswith("TCP")
            and name.rsplit(" ", 1)[-1] not in ("sum", "avg", "fairness")
            and "::tcp_" not in name
        ):
            described = table(table(metadata.get("SERIES_META")).get(name))
            cc = text(described.get("CONG_CONTROL"))
            ends = (text(metadata.get("LOCAL_HOST")), text(metadata.get("HOST")))
            if "download" in name:
                ends = ends[::-1]
            flow = found.flow(name, cc=cc or None, sender=ends[0], receiver=ends[1])
            _rates(found, flow, entries(raw.get(name), source, name), origin)
    if not (found.received or found.probes):
        raise nothing(source, "no raw values of TCP or of pings")
    return found


def _began(metadata: Row) -> float:
    """Seconds since 1970, or 0."""
    try:
        moment = datetime.strptime(str(metadata.get("T0")), "%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        return 0.0
    return moment.replace(tzinfo=UTC).timestamp()


def _since(at: float, origin: float) -> int | None:
    """Nanoseconds since the beginning; a stamp in floating point is good for microseconds."""
    micros = whole(max(at - origin, 0.0), 1e6)
    return None if micros is None or micros > MOST // 1000 else micros * 1000


def _pings(found: Found, name: str, rows: list[Row], origin: float) -> None:
    for row in map(table, rows):
        at, trip = number(row.get("t")), whole(row.get("val"), 1e6)
        if at is None or trip is None:
            continue
        # The stamp is the answer's.
        sent = _since(at - trip / 1e9, origin)
        if sent is not None:
            found.probes.append({"time_ns": sent, "probe": name, "target": "", "rtt_ns": trip, "lost": False})


def _rates(found: Found, flow: int, rows: list[Row], origin: float) -> None:
    for row in map(table, rows):
        at = number(row.get("t"))
        time_ns = None if at is None else _since(at, origin)
        if time_ns is None:
            continue
        rate, lasted = number(row.get("val")), number(row.get("dur"))
        if rate is not None and lasted is not None:
            size = whole(rate * lasted, 1e6 / 8)
            found.received.append({"time_ns": time_ns, "flow": flow, "new_bytes": size})
        known = {
            "srtt_ns": whole(row.get("tcp_rtt"), 1e6),
            "delivery_bps": whole(row.get("tcp_delivery_rate"), 1e6),
            "pacing_bps": whole(row.get("tcp_pacing_rate"), 1e6),
        }
        if any(value is not None for value in known.values()):
            found.samples.append({"time_ns": time_ns, "flow": flow, **known})
