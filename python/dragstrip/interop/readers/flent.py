"""Reader of flent's data files (`flent/resultset.py`, versions 1 to 4): goodput, pings, polls of `ss`.

Raw values are used, because `results` are interpolated to a common grid; a series without any is computed
from others. `RUNNERS` has what a raw value is, by the class of `flent/runners.py` that measured it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dragstrip.interop.readers.measurements import (
    LOST_MAX,
    MOST,
    Measurements,
    Row,
    entries,
    missing_content,
    number,
    table,
    text,
    unwrapped,
    whole,
)

VERSION_OF_TIMES = 4
"""The first version whose raw values have the unit of their series (`unserialise_compat`)."""
TRIPS, RATES = "round trips in ms", "Mbit/s"
RUNNERS: Mapping[str, Mapping[str, str]] = {
    "PingRunner": {"ms": TRIPS},  # ping, fping: `t` is the answer's, `seq` counts requests
    "IrttRunner": {"ms": TRIPS},  # `t` is the answer's, or of a `lost` request the request's
    # netperf. TCP_STREAM, TCP_MAERTS: the mean of the `dur` seconds that end at `t`. UDP_RR: likewise; before
    # version 4 transactions per second, one after the other, so that a second holds that many round trips.
    "NetperfDemoRunner": {"ms": TRIPS, "Mbits/s": RATES},
    "IperfCsvRunner": {"Mbits/s": RATES},  # iperf 2: the mean of the interval that ends at `t`
    "DitgRunner": {},  # D-ITG: one way in ms, by two hosts' clocks
    "HttpGetterRunner": {},  # http-getter: seconds for a whole page before version 4, then ms
    "DashJsRunner": {},  # a video player's bit rate, stalls and buffer
    "SsRunner": {},  # polls of ss, which flent puts among the values of the flow that they belong to
    "TcRunner": {},  # tc's counters
    "CpuStatsRunner": {},
    "WifiStatsRunner": {},
    "NetstatRunner": {},
    "CommandOutputRunner": {},
    "MosquittoSubRunner": {},
    "StressNgRunner": {},
    "AverageRunner": {},
    "SmoothAverageRunner": {},
    "SumRunner": {},
    "DiffMinRunner": {},
    "FairnessRunner": {},
    "NullRunner": {},
}
"""Meaning of a raw value by runner and unit (`SERIES_META`); an empty entry has no place in a recording."""
_UNITS = {"Ping (ms)": "ms", "TCP": "Mbits/s", "UDP upload": "Mbits/s", "UDP download": "Mbits/s"}
"""The unit by the beginning of a series' name, for files that name no runner."""


@dataclass(frozen=True)
class _Series:
    name: str
    meaning: str
    netperf: bool
    rows: Sequence[Row]
    cc: str | None


def is_one(document: Row) -> bool:
    """Return whether a JSON document is one of flent's."""
    return "x_values" in document and "results" in document


def read(document: Row, source: str) -> Measurements:
    """Return a flow for each series of throughput and a probe for each series of pings.

    Raises `BadInputError` if there is none.
    """
    metadata = table(document.get("metadata"))
    described = table(metadata.get("SERIES_META"))
    version = number(document.get("version")) or 1
    raw = table(document.get("raw_values"))
    if not raw:  # version 1
        raw = {name: table(meta).get("RAW_VALUES") for name, meta in described.items()}
    series_list = []
    for name in table(document["results"]):
        rows = [table(row) for row in entries(raw.get(name), source, name)]
        if rows and (series := _series(name, table(described.get(name)), rows)):
            series_list.append(series)
    ends = (text(metadata.get("LOCAL_HOST")), text(metadata.get("HOST")))
    begins = [
        begin for series_item in series_list for row in series_item.rows if (begin := _begin(row)) is not None
    ]
    origin = min([_began(metadata), *begins])
    measurements = Measurements(began_s=origin or None)
    means = []
    for one_series in series_list:
        if one_series.meaning is TRIPS:
            if _pings(measurements, one_series, origin, transactions=version < VERSION_OF_TIMES):
                means.append(one_series.name)
        else:
            _rates(measurements, one_series, ends[::-1] if "download" in one_series.name else ends, origin)
    if not (measurements.received or measurements.probes):
        raise missing_content(source, "no raw values of TCP, UDP or pings")
    if means:
        names = ", ".join(means)
        measurements.notes.append(
            f"{names}: netperf's means over intervals, which show no single round trip and no loss"
        )
    return measurements


def _series(name: str, described: Row, rows: Sequence[Row]) -> _Series | None:
    """Return what a series is, or None if it has nothing that a recording has."""
    if "::tcp_" in name:
        return None
    runner = text(described.get("RUNNER"))
    unit = next((unit for begin, unit in _UNITS.items() if name.startswith(begin)), None)
    if runner is not None and runner in RUNNERS:
        meaning = RUNNERS[runner].get(text(described.get("UNITS")) or unit or "")
    else:
        meaning = {"ms": TRIPS, "Mbits/s": RATES}.get(unit or "")
    if meaning is None:
        return None
    # Before files named the runner, only netperf's values had a duration (`unserialise_compat`).
    netperf = runner == "NetperfDemoRunner" or (runner not in RUNNERS and "UDP" in name)
    return _Series(name, meaning, netperf, rows, text(described.get("CONG_CONTROL")))


def _began(metadata: Row) -> float:
    """Return the start in seconds since 1970, or 0 if it is unknown."""
    try:
        moment = datetime.strptime(str(metadata.get("T0")), "%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        return 0.0
    return moment.replace(tzinfo=UTC).timestamp()


def _since(at: float, origin: float) -> int | None:
    """Return nanoseconds since the start, rounded to the microseconds that a floating-point stamp holds."""
    micros = whole(max(at - origin, 0.0), 1e6)
    return None if micros is None or micros > MOST // 1000 else micros * 1000


def _begin(row: Row) -> float | None:
    """Return when the interval of a raw value of netperf began, in seconds since 1970."""
    at, lasted = number(row.get("t")), number(row.get("dur"))
    return None if at is None or lasted is None else at - lasted


def _pings(measurements: Measurements, series: _Series, origin: float, transactions: bool) -> bool:
    """Add a probe, with the requests of `seq` that are missing as lost ones.

    Return whether its values are means over intervals.
    """
    before: tuple[int, int] | None = None  # number and time of the latest request
    left_out, means = 0, False
    for row in series.rows:
        at, value = number(row.get("t")), number(row.get("val"))
        if series.netperf and "dur" in row:
            means = True
            value = (1e3 / value if value else None) if transactions else value
        is_lost = row.get("lost") is True
        trip = None if is_lost else whole(value, 1e6)
        if at is None or (trip is None and not is_lost):
            continue
        sent_ns = _since(at - (trip or 0) / 1e9, origin)  # an answer's stamp is of its arrival
        if sent_ns is None:
            continue
        seq = whole(row.get("seq"))
        if seq is not None and before is not None:
            seq = unwrapped(seq, before[0])
            missing = seq - before[0] - 1
            if missing > LOST_MAX - measurements.lost_requests:
                left_out, missing = left_out + missing, 0
            for step in range(1, missing + 1):
                lost_ns = before[1] + (sent_ns - before[1]) * step // (missing + 1)
                measurements.probe(max(lost_ns, 0), series.name, "", None)
        if seq is not None and (before is None or seq > before[0]):
            before = (seq, sent_ns)
        measurements.probe(sent_ns, series.name, "", trip)
    if left_out:
        measurements.notes.append(f"{series.name}: {left_out} requests without an answer are left out")
    return means


def _rates(
    measurements: Measurements, series: _Series, ends: tuple[str | None, str | None], origin: float
) -> None:
    """Add a flow. Netperf's intervals have lengths; iperf's are those between two values."""
    begins = [begin for row in series.rows if (begin := _begin(row)) is not None]
    protocol = "udp" if series.name.startswith("UDP") else "tcp"
    flow = measurements.flow(
        series.name,
        protocol=protocol,
        cc=series.cc or None,
        sender=ends[0],
        receiver=ends[1],
        start_ns=_since(min(begins), origin) if begins else None,
    )
    measured, before, first_unknown = 0.0, None, False
    for row in series.rows:
        at = number(row.get("t"))
        time_ns = None if at is None else _since(at, origin)
        if at is None or time_ns is None:
            continue
        rate, lasted = number(row.get("val")), number(row.get("dur"))
        if rate is not None and "dur" not in row:
            lasted = None if before is None else at - before
            first_unknown = first_unknown or before is None
            if before is None:
                measurements.flows[flow]["start_ns"] = time_ns
        if rate is not None:
            before = at
        if rate is not None and lasted is not None and lasted >= 0:
            size = whole(rate * lasted, 1e6 / 8)
            measurements.received.append({"time_ns": time_ns, "flow": flow, "new_bytes": size})
            measured += lasted if size is not None else 0
        socket_values = {
            "srtt_ns": whole(row.get("tcp_rtt"), 1e6),
            "delivery_bps": whole(row.get("tcp_delivery_rate"), 1e6),
            "pacing_bps": whole(row.get("tcp_pacing_rate"), 1e6),
        }
        if any(value is not None for value in socket_values.values()):
            measurements.samples.append({"time_ns": time_ns, "flow": flow, **socket_values})
    measurements.reported[flow] = {"measured_s": round(measured, 6)}
    if first_unknown:
        measurements.notes.append(f"{series.name}: its first interval, whose length is unknown, is left out")
