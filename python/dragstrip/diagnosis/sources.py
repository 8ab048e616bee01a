"""Files as what they show of a path: scripts and listings of tc, captures, files of other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from dragstrip.diagnosis import listing
from dragstrip.diagnosis.evidence import Between, Flow, Inferred, Probe, Queue, Seen
from dragstrip.diagnosis.losses import Floats, pattern
from dragstrip.errors import BadInputError
from dragstrip.formats import captures, guess, readers, scripts
from dragstrip.inference.path import Estimate, PathEstimate, of_segments
from dragstrip.io.untrusted import DESCRIPTION_MAX, capture_pieces, text
from dragstrip.recording import Recording
from dragstrip.results import per_flow
from dragstrip.scenario.paths import FRAME_OVER_IP

SCRIPT = "tc commands"
CAPTURE = "capture"
SMALL_SHARE = 0.01
"""Flows with less than this share of the largest flow's bytes are left out."""
STEADY = 0.95
"""Ratio of median to 95th percentile of the bytes in flight from which on they hardly change."""
FILES_MAX = 100


def seen(files: Sequence[Path], quiet: bool = False) -> Seen:
    """Return what files show; raises `BadInputError` for one that is unknown or damaged."""
    if len(files) > FILES_MAX:
        raise BadInputError("FILE", len(files), f"at most {FILES_MAX} files", "command line")
    found = Seen()
    packets: list[Path] = []
    for file in files:
        if file.is_dir():
            raise BadInputError("", None, guess.of_folder(file), str(file))
        if readers.is_one(file):
            found += _of_recording(file, readers.read(file))
        elif _is_script(file):
            found += _of_script(file)
        else:
            packets.append(file)
    return found + _of_captures(packets, quiet) if packets else found


def _is_script(file: Path) -> bool:
    begin = next(capture_pieces(file), (b"", 1.0))[0][: readers.LOOKED_AT]
    return b"\0" not in begin and scripts.is_script(begin.decode("utf-8", "replace"))


def _of_script(file: Path) -> Seen:
    """Return the queues of a script of tc commands."""
    imported = scripts.imported(text(file, DESCRIPTION_MAX, "a script of tc commands"), str(file))
    queues, notes = [], []
    for row in imported["queues"]:
        way = "outgoing" if row["direction"] == "out" else "incoming"
        queues.append(
            Queue(
                source=str(file),
                place=f"{row['device']}, {way}",
                device=row["through"] or row["device"],
                words=row["queue"],
                queue=row["queue"],
                kind=listing.kind_of(row["queue"]),
                shaped_bps=row["rate_bps"],
            )
        )
        notes += [f"{file}: {note}" for note in row["notes"]]
    if not queues:
        notes.append(f"{file}: no queue is left: the commands delete every queue that they add")
    return Seen([(str(file), SCRIPT)], queues=queues, notes=notes)


def _of_captures(files: Sequence[Path], quiet: bool) -> Seen:
    """Return the flows of captures, which are vantage points of the same connections."""
    document, recording, each = captures.inspect_with_segments(files, rows=True, quiet=quiet)
    assert recording is not None
    inferred = {
        (file, path.flow): _inferred(path)
        for file, found in zip(files, each, strict=True)
        for path in of_segments(file, found)
    }
    samples = per_flow.grouped(
        recording, "samples", "flow", ("time_ns", "retransmits", "bytes_in_flight", "limit")
    )
    rtts = per_flow.grouped(recording, "rtts", "flow", ("time_ns", "rtt_ns"))
    largest = max((flow["bytes"] for flow in document["flows"]), default=0)
    between = {row["flow"]: _between(row) for row in reversed(document["between"])}
    flows = [
        replace(
            _captured(
                flow, str(files[flow["file"]]), samples.get(flow["flow"], {}), rtts.get(flow["flow"], {})
            ),
            between=between.get(flow["flow"]),
            inferred=inferred.get((files[flow["file"]], flow["label"])),
        )
        for flow in document["flows"]
        if flow["bytes"] >= SMALL_SHARE * largest
    ]
    notes = list(document["notes"])
    if not flows:
        notes.append(f"{', '.join(map(str, files))}: no TCP connection with data")
    return Seen([(str(file), CAPTURE) for file in files], flows=flows, notes=notes)


def _captured(
    flow: Mapping[str, Any], file: str, samples: Mapping[str, Floats], rtts: Mapping[str, Floats]
) -> Flow:
    again = flow["retransmissions"]
    spent = sum(flow["limited_s"].values())
    trips = rtts["rtt_ns"] / 1e6 if rtts else np.empty(0)
    least = float(trips.min()) if len(trips) else flow["rtt_ms"]["p5"]
    limited = {name: seconds / spent for name, seconds in flow["limited_s"].items()} if spent else None
    if limited is not None and limited.get("unknown", 0.0) > 0.5:
        limited = None  # away from the sender
    losses = None
    if samples and flow["place"] == "sender":
        at = rtts["time_ns"] / 1e9 if rtts else np.empty(0)
        losses = pattern(samples["time_ns"] / 1e9, np.nan_to_num(samples["retransmits"]), at, trips)
    return Flow(
        source=file,
        label=flow["label"],
        sender=_host(flow["label"]),
        bytes=flow["bytes"],
        duration_s=flow["duration_s"],
        goodput_bps=flow["goodput_bps"],
        segments=flow["segments"],
        retransmitted=(again["needed"] or 0) + (again["unknown"] or 0),
        rtt_min_ms=least,
        rtt_p50_ms=flow["rtt_ms"]["p50"],
        rtt_p95_ms=flow["rtt_ms"]["p95"],
        limited=limited,
        ecn=flow["ecn"],
        losses=losses,
        steady_bytes=_steady(samples),
    )


def _inferred(path: PathEstimate) -> Inferred:
    loss = path.random_loss
    share = loss.value if loss.value is None or loss.low else 0.0
    return Inferred(
        rate_bps=_framed(path.rate_bps.value),
        queue=path.queue,
        buffer_bytes=_framed(path.buffer_bytes.value),
        policer_bps=_framed(path.policer_rate_bps.value),
        policer_range_bps=_range(path.policer_rate_bps),
        burst_bytes=_framed(path.policer_burst_bytes.value),
        random_loss_share=share,
    )


def _range(estimate: Estimate) -> tuple[float, float] | None:
    low, high = _framed(estimate.low), _framed(estimate.high)
    return None if estimate.value is not None or low is None or high is None else (low, high)


def _framed(value: float | None) -> float | None:
    """Return a rate or a size with the bytes of Ethernet headers, as queues and lines count them."""
    return None if value is None else value * FRAME_OVER_IP


def _between(row: Mapping[str, Any]) -> Between:
    there, back = row["there"], row["back"]
    return Between(there["lost"], there["queueing_ms"]["p95"], back["queueing_ms"]["p95"])


def _host(label: str) -> str:
    return label.partition(" ")[0].rpartition(":")[0]


def _steady(samples: Mapping[str, Floats]) -> float | None:
    """Return the bytes in flight of a sender that waits for its application, if they hardly change."""
    if not samples:
        return None
    waits = np.array([word == "app" for word in samples["limit"]])
    held = samples["bytes_in_flight"][waits]
    held = held[np.isfinite(held) & (held > 0)]
    if len(held) < per_flow.TAIL_SAMPLES:
        return None
    middle, high = np.percentile(held, (50, 95))
    return float(middle) if middle >= STEADY * high else None


def _of_recording(file: Path, recording: Recording) -> Seen:
    """Return the flows, pings and queues of another program's file."""
    name = str(file)
    rows = recording["flows"].to_pylist()
    samples = per_flow.grouped(recording, "samples", "flow", ("min_rtt_ns",))
    told = recording.provenance.get("reported") or {}
    own = {flow for flow, figures in told.items() if "rtt_ms" in figures}
    flows = [
        made
        for row, flow in zip(rows, per_flow.flows(recording), strict=True)
        if row["protocol"] == "tcp"
        and (made := _reported(name, row, flow, samples.get(row["flow"], {}), str(row["flow"]) in own))
        is not None
    ]
    listed = [{"file": name, **row} for row in recording.provenance.get("disciplines", [])]
    notes = [f"{name}: {note}" for note in recording.provenance["notes"]]
    kind = str(recording.provenance["engine"])
    return Seen([(name, kind)], flows, _probes(name, recording, flows), listing.queues(listed), [], notes)


def _reported(
    file: str, row: Mapping[str, Any], flow: Mapping[str, Any], samples: Mapping[str, Floats], reported: bool
) -> Flow | None:
    if not flow["bytes"] or flow["goodput_bps"] is None:
        return None
    trips = flow["rtt_ms"]
    # What a kernel took for the least itself (ss), or another program reported (iperf3).
    kept = samples["min_rtt_ns"][np.isfinite(samples["min_rtt_ns"])] if samples else np.empty(0)
    least = min((value for value in (trips["min"], *kept[:1] / 1e6, *kept[-1:] / 1e6) if value), default=None)
    smoothed = trips["method"] == "srtt" and not len(kept) and not reported
    return Flow(
        source=file,
        label=flow["label"],
        smoothed=smoothed,
        sender=row["sender"] or "",
        bytes=flow["bytes"],
        duration_s=flow["duration_s"],
        goodput_bps=flow["goodput_bps"],
        segments=flow["segments"],
        retransmitted=flow["retransmissions"]["unknown"],
        rtt_min_ms=None if least is None else float(least),
        rtt_p50_ms=trips["p50"] if trips["p50"] is not None else trips["mean"],
        rtt_p95_ms=trips["p95"] if trips["p95"] is not None else trips["max"],
        ecn=flow["ecn"],
        cc=flow["cc"],
    )


def _probes(file: str, recording: Recording, flows: Sequence[Flow]) -> list[Probe]:
    """Return the pings; where the file has flows too, those before and behind them are of an idle path."""
    rows = recording["probes"].to_pylist()
    tables = ("samples", "received")
    ends: list[Any] = [pc.min_max(recording[table]["time_ns"]).as_py() for table in tables]
    ends = [end for end in ends if end["min"] is not None]
    busy = None
    if ends and any(flow.busy for flow in flows):
        busy = min(end["min"] for end in ends), max(end["max"] for end in ends)
    made = []
    for probe, target in dict.fromkeys((row["probe"], row["target"]) for row in rows):
        mine = [row for row in rows if (row["probe"], row["target"]) == (probe, target)]
        if busy is None:
            made.append(_probe(file, target, mine, None))
            continue
        inside = [row for row in mine if busy[0] <= row["time_ns"] <= busy[1]]
        outside = [row for row in mine if not busy[0] <= row["time_ns"] <= busy[1]]
        made += [_probe(file, target, part, part is inside) for part in (outside, inside) if part]
    return made


def _probe(file: str, target: str, rows: Sequence[Mapping[str, Any]], loaded: bool | None) -> Probe:
    answered = np.array([row["rtt_ns"] for row in rows if not row["lost"]], dtype=np.float64)
    trips = per_flow.round_trips(answered, "echo" if len(answered) else None)
    return Probe(
        source=file,
        target=re.sub(r"\s", " ", target),
        sent=len(rows),
        lost=len(rows) - len(answered),
        rtt_min_ms=trips["min"],
        rtt_p50_ms=trips["p50"],
        rtt_p95_ms=trips["p95"] if trips["p95"] is not None else trips["max"],
        loaded=loaded,
    )
