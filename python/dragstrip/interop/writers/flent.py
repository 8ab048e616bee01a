"""Writer of flent's data file, version 4 (`flent/resultset.py`): goodput per interval, pings, TCP statistics.

The test is one of flent's own, so that its plots work: `tcp_1up`, or `tcp_nup` for several flows. Series are
numbered in the order of flows; `SERIES_META` names the congestion control of each.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from dragstrip.interop.writers.rows import EPOCH_S, Row, about, of_flow, tcp_flows
from dragstrip.model.recording import Recording
from dragstrip.results.measures import jain

PING = "Ping (ms) ICMP"
UPLOAD = "TCP upload"
Series: TypeAlias = list[float | None]


def write(recording: Recording, stem: str) -> dict[str, bytes]:
    """Return one file for the run, or none if it has no TCP flow."""
    flows = tcp_flows(recording)
    if not flows:
        return {}
    scenario = recording.scenario
    step_ns, duration_ns = scenario["record"]["interval_ns"], scenario["duration_ns"]
    ends = list(range(step_ns, duration_ns + 1, step_ns))
    names = [UPLOAD] if len(flows) == 1 else [f"{UPLOAD}::{number}" for number in range(1, len(flows) + 1)]
    results: dict[str, Series] = {}
    raw: dict[str, list[Row]] = {}
    meta: dict[str, Row] = {}
    for name, flow in zip(names, flows, strict=True):
        rows = of_flow(recording, "received", flow["flow"])
        arrived = {row["time_ns"]: row for row in rows if row["time_ns"] in ends}
        rates = {end: row["new_bytes"] * 8e3 / step_ns for end, row in arrived.items()}
        results[name] = [rates.get(end) for end in ends]
        raw[name] = _raw(recording, flow, rates, step_ns)
        meta[name] = {"UNITS": "Mbits/s", "CONG_CONTROL": flow["cc"], "LABEL": flow["label"]}
    if len(flows) > 1:
        results |= _together([results[name] for name in names])
        meta |= {f"{UPLOAD} {statistic}": {"UNITS": "Mbits/s"} for statistic in ("sum", "avg")}
        meta[f"{UPLOAD} fairness"] = {"UNITS": "Idx"}
    pings = _pings(recording)
    results[PING] = _last(pings, ends, step_ns)
    raw[PING] = [
        {"seq": at, "t": EPOCH_S + ping["at_ns"] / 1e9, "val": ping["ms"]} for at, ping in enumerate(pings)
    ]
    meta[PING] = {"UNITS": "ms"}
    document = {
        "version": 4,
        "metadata": _metadata(recording, flows, meta, stem),
        "x_values": [end / 1e9 for end in ends],
        "results": results,
        "raw_values": raw,
    }
    text = json.dumps(document, allow_nan=False)
    return {f"{stem}.flent.gz": gzip.compress(text.encode(), mtime=0)}


def _raw(recording: Recording, flow: Row, rates: Mapping[int, float], step_ns: int) -> list[Row]:
    """Return goodput in Mbit/s by time, followed by the sender's statistics in ms and Mbit/s."""
    rows: list[Row] = [
        {"t": EPOCH_S + end / 1e9, "dur": step_ns / 1e9, "val": rate} for end, rate in rates.items()
    ]
    for sample in of_flow(recording, "samples", flow["flow"]):
        present = {"tcp_rtt": (sample["srtt_ns"], 1e6), "tcp_delivery_rate": (sample["delivery_bps"], 1e6)}
        present["tcp_pacing_rate"] = (sample["pacing_bps"], 1e6)
        values = {name: value / unit for name, (value, unit) in present.items() if value is not None}
        if values:
            rows.append({"t": EPOCH_S + sample["time_ns"] / 1e9, **values})
    return sorted(rows, key=lambda row: row["t"])


def _together(series: Sequence[Series]) -> dict[str, Series]:
    """Return flent's own combinations of several flows, with Jain's index of those that sent."""
    total: Series = []
    average: Series = []
    fairness: Series = []
    for values in zip(*series, strict=True):
        measured = [value for value in values if value is not None]
        total.append(sum(measured) if measured else None)
        average.append(sum(measured) / len(measured) if measured else None)
        fairness.append(jain(measured))
    return {f"{UPLOAD} sum": total, f"{UPLOAD} avg": average, f"{UPLOAD} fairness": fairness}


def _pings(recording: Recording) -> list[Row]:
    """Return the answers to the first probe, by time of arrival."""
    rows = recording["probes"].to_pylist()
    answered = [row for row in rows if row["probe"] == rows[0]["probe"] and not row["lost"]]
    return [{"at_ns": row["time_ns"] + row["rtt_ns"], "ms": row["rtt_ns"] / 1e6} for row in answered]


def _last(pings: Sequence[Row], ends: Sequence[int], step_ns: int) -> Series:
    """Return the last ping of each interval in ms, with None where there is none."""
    last_ms = {-(-ping["at_ns"] // step_ns) * step_ns: ping["ms"] for ping in pings}
    return [last_ms.get(end) for end in ends]


def _metadata(recording: Recording, flows: Sequence[Row], series: Mapping[str, Any], stem: str) -> Row:
    scenario = recording.scenario
    began = datetime.fromtimestamp(EPOCH_S, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    length = scenario["duration_ns"] / 1e9
    hosts = list(dict.fromkeys(flow["receiver"] for flow in flows))
    return {
        "NAME": "tcp_1up" if len(flows) == 1 else "tcp_nup",
        "TITLE": scenario["name"] or stem,
        "NOTE": about(recording),
        "TIME": began,
        "T0": began,
        "LENGTH": length,
        "TOTAL_LENGTH": length,
        "STEP_SIZE": scenario["record"]["interval_ns"] / 1e9,
        "HOST": hosts[0],
        "HOSTS": hosts,
        "LOCAL_HOST": flows[0]["sender"],
        "DATA_FILENAME": f"{stem}.flent.gz",
        "TEST_PARAMETERS": {} if len(flows) == 1 else {"upload_streams": str(len(flows))},
        "SERIES_META": dict(series),
    }
