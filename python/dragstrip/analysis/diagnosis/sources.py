"""Observations from files: scripts and listings of tc, captures, files of other programs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from dragstrip import _core
from dragstrip.analysis import captures
from dragstrip.analysis.diagnosis import commands, listing
from dragstrip.analysis.diagnosis.observations import (
    BUSY_S,
    CapturePair,
    Datagrams,
    Floats,
    LostSegments,
    Observations,
    ObservedFlow,
    ObservedQueue,
    PingSeries,
    Series,
    Tree,
    Unanswered,
    hosts,
    of_one_path,
)
from dragstrip.analysis.inference import arrivals, queue, rate, series
from dragstrip.analysis.inference.estimate import unknown
from dragstrip.analysis.inference.path import PathEstimate, of_segments
from dragstrip.errors import BadInputError
from dragstrip.interop import scripts
from dragstrip.interop.inputs import input_of
from dragstrip.interop.readers.measurements import BOTH_WAYS, DOWNLOADING, IDLE, UPLOADING
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import grouped
from dragstrip.results import measures

SCRIPT = "tc commands"
CAPTURE = "capture"
SMALL_SHARE = 0.01
"""Flows with less than this share of the largest flow's bytes are left out."""
STEADY = 0.95
"""Ratio of median to 95th percentile of the bytes in flight from which on they hardly change."""
FILES_MAX = 100
UNTOLD = "cannot tell"
"""The queue of an inferred path of which the capture does not show it."""
EVEN = "segments come evenly spread: the capture was taken behind a bottleneck"
INTERVALS_MIN = 3
"""Intervals from which on a flow has a course over time."""
LOADED_SHARE = 0.8
"""Share of the pings' time in which a flow must have been busy to call them loaded."""
LATE_MS = 30.0
"""Median RTT above the least of the same pings from which on they need not be of an idle path."""
RUN_GAP_S = 600
"""Seconds without a ping that part two runs of one file."""
HOP = "mtr hop "
"""Beginning of the name of a series of mtr."""
MEDIANS = frozenset({"cloudflare"})
"""Programs whose summaries have a median; those of others have a mean."""
CLOCKS_S = 2.0
"""Seconds by which times of different files must lie apart to be called different."""
SAMPLES = (
    "time_ns",
    "bytes_acked",
    "bytes_written",
    "retransmits",
    "srtt_ns",
    "rtt_ns",
    "min_rtt_ns",
    "cwnd_bytes",
    "bytes_in_flight",
    "limit",
)


def observed(files: Sequence[Path], quiet: bool = False) -> Observations:
    """Return what files show; raises `BadInputError` for one that is unknown or damaged.

    The order of the files changes nothing.
    """
    if len(files) > FILES_MAX:
        raise BadInputError("FILE", len(files), f"at most {FILES_MAX} files", "command line")
    observations = Observations()
    packets: list[Path] = []
    listed: list[dict[str, Any]] = []
    for path in sorted(dict.fromkeys(files), key=str):
        file = input_of(path)
        file.expect_file()
        if file.kind == "measurements":
            file_observations, rows = _of_recording(path, file.recording())
            observations += file_observations
            listed += rows
        elif file.kind == "script":
            observations += _of_script(path, file.text)
        else:
            packets.append(path)
    observations += Observations(queues=listing.queues(listed))
    if packets:
        observations += _of_captures(packets, quiet)
    return replace(
        observations,
        probes=[part for probe in observations.probes for part in _with_load(probe, observations.flows)],
    )


def _with_load(probe: PingSeries, flows: Sequence[ObservedFlow]) -> list[PingSeries]:
    """Return pings of another file with whether flows were busy meanwhile, as far as the clocks say.

    Pings that begin before a flow or outlast it are two series: those during the flow and those outside.
    """
    if probe.loaded is not None or probe.clock_s is None:
        return [probe]
    timed = [flow for flow in flows if flow.clock_s and flow.busy and of_one_path(flow.hosts, probe.hosts)]
    if not timed:
        return [probe]
    begin, end = probe.clock_s
    inside = [
        min(end, flow.clock_s[1]) - max(begin, flow.clock_s[0]) for flow in timed if flow.clock_s is not None
    ]
    if max(inside) >= LOADED_SHARE * (end - begin):
        return [replace(probe, loaded=True)]
    if max(inside) < -CLOCKS_S:
        return [replace(probe, loaded=False)]
    if probe.at_s is None or probe.summed_up:
        return [probe]
    times = probe.at_s
    clocks = [flow.clock_s for flow in timed if flow.clock_s is not None]
    during = np.any([(times >= low + CLOCKS_S) & (times <= high - CLOCKS_S) for low, high in clocks], axis=0)
    near = np.any([(times >= low - CLOCKS_S) & (times <= high + CLOCKS_S) for low, high in clocks], axis=0)
    series = [_part(probe, mask, loaded) for mask, loaded in ((during, True), (~near, False)) if mask.any()]
    least = min((part.rtt_min_ms for part in series if part.rtt_min_ms is not None), default=0.0)
    # Long round trips outside of the flows: of traffic that no file shows, or of a queue that stands.
    return [
        replace(part, loaded=None)
        if part.loaded is False and (part.rtt_p50_ms or 0.0) - least >= LATE_MS
        else part
        for part in series
    ]


def _part(probe: PingSeries, mask: npt.NDArray[np.bool_], loaded: bool) -> PingSeries:
    """Return the requests of a series in a part of its time."""
    assert probe.at_s is not None
    assert probe.trip_ms is not None
    times, trips = probe.at_s[mask], probe.trip_ms[mask]
    answered = trips[np.isfinite(trips)]
    figures = measures.round_trips(answered * 1e6)
    return replace(
        probe,
        pings_sent=len(trips),
        pings_lost=len(trips) - len(answered),
        rtt_min_ms=figures["min"],
        rtt_p50_ms=figures["p50"],
        rtt_p95_ms=figures["p95"] if figures["p95"] is not None else figures["max"],
        loaded=loaded,
        of_all=(probe.pings_sent, probe.pings_lost),
        clock_s=(float(times[0]), float(times[-1])) if probe.clock_s is not None else None,
        at_s=times,
        trip_ms=trips,
    )


def _of_script(file: Path, script: str) -> Observations:
    """Return the queues of a script of tc commands."""
    imported = scripts.imported(script, str(file))
    queues, notes = [], []
    for row in imported["queues"]:
        way = "outgoing" if row["direction"] == "out" else "incoming"
        queues.append(
            ObservedQueue(
                source=str(file),
                place=f"{row['device']}, {way}",
                device=row["through"] or row["device"],
                words=row["queue"],
                queue=row["queue"],
                kind=listing.kind_of(row["queue"]),
                shaped_bps=row["rate_bps"],
                tree=_tree(row["commands"], row["rate_bps"]),
            )
        )
        notes += [f"{file}: {note}" for note in row["notes"]]
    if not queues:
        notes.append(f"{file}: no queue is left: the commands delete every queue that they add")
    return Observations([(str(file), SCRIPT)], queues=queues, notes=notes)


def _tree(lines: Sequence[str], rate_bps: float | None) -> Tree | None:
    """Return where a script's queue stands; no class borrows, so that each has the shaper's rate."""
    tree = commands.tree_of(lines)
    if tree is None:
        return None
    classes = tuple(replace(htb_class, rate_bps=rate_bps, ceil_bps=rate_bps) for htb_class in tree.classes)
    return replace(tree, classes=classes)


@dataclass(frozen=True)
class _Vantage:
    """A flow as the segments of one capture show it, with the place of the capture."""

    path: PathEstimate | None = None
    lost_segments: LostSegments | None = None
    opened_s: float | None = None
    """Duration of the handshake in seconds, if it is in the capture."""
    drained: bool = False
    """True when the bottleneck's queue was seen empty, so that the base RTT is no upper bound."""
    at_queue: bool = False
    """True when the capture was taken behind the bottleneck's queue."""
    away: bool = False
    """True when another flow of the same host was captured away from its sender."""
    even: bool = False
    """True when segments come evenly spread, as behind a bottleneck."""


def _vantages(file: Path, inspected: captures.Segments) -> dict[str, _Vantage]:
    """Return what the segments of one capture show of each of its flows, by label."""
    paths = {path.flow: path for path in of_segments(file, inspected)}
    vantages: dict[str, _Vantage] = {}
    by_host: dict[frozenset[str], list[series.CapturedFlow]] = {}
    for flow, rows in zip(*(inspected[0]["flows"], inspected[1]), strict=True):
        label = flow["label"]
        if label in paths:
            segments = series.of(flow, rows, inspected[0]["files"][0])
            vantages[label] = _Vantage(
                paths[label].framed(),
                _lost_segments(segments, paths[label]),
                segments.opening_s,
                drained=paths[label].base_rtt_ms.low is not None,
                at_queue=paths[label].place == "queue",
            )
            by_host.setdefault(hosts(label.split(" → ")[0]), []).append(segments)
    for flows in by_host.values():
        # A capture is at one point: away from the sender for one flow of a host, it is so for all.
        away = any(segments.place == "between" for segments in flows)
        even = away or arrivals.is_spread(flows)
        for segments in flows:
            vantage = vantages[segments.name]
            if even or vantage.at_queue or (len(flows) > 1 and arrivals.is_spread([segments])):
                assert vantage.path is not None
                path = replace(vantage.path, queue=UNTOLD, random_loss=unknown(EVEN))
                vantage = replace(vantage, path=path, even=True)
            vantages[segments.name] = replace(vantage, away=away)
    return vantages


def _of_captures(files: Sequence[Path], quiet: bool) -> Observations:
    """Return the flows of captures, which are vantage points of the same connections."""
    document, recording, inspections = captures.inspect_with_segments(files, rows=True, quiet=quiet)
    assert recording is not None
    vantages = {
        (file, label): vantage
        for file, inspected in zip(files, inspections, strict=True)
        for label, vantage in _vantages(file, inspected).items()
    }
    samples = grouped(recording, "samples", "flow", SAMPLES)
    rtts = grouped(recording, "rtts", "flow", ("time_ns", "rtt_ns"))
    largest = max((flow["bytes"] for flow in document["flows"]), default=0)
    capture_pairs = {row["flow"]: _capture_pair(row) for row in reversed(document["between"])}
    nearest = _nearest(files, [inspected[0] for inspected in inspections])
    flows = []
    for joint in document["flows"]:
        if joint["bytes"] < SMALL_SHARE * largest and not joint.get("closed_s"):
            continue
        key, flow = nearest.get(joint["label"], (files[joint["file"]], joint))
        recorded = key == files[joint["file"]]
        vantage = vantages.get((key, flow["label"]), _Vantage())
        if vantage.away and flow["place"] == "sender":
            flow = {**flow, "place": "between", "limited_s": {"unknown": flow["duration_s"]}}
        number = joint["flow"]
        flows.append(
            replace(
                _captured(
                    flow,
                    str(key),
                    samples.get(number, {}) if recorded else {},
                    rtts.get(number, {}) if recorded else {},
                    vantage,
                ),
                capture_pair=capture_pairs.get(number),
            )
        )
    notes = list(document["notes"])
    notes += [
        f"{flow.source}: {flow.label} was captured behind the bottleneck's queue, which shows neither the "
        "queueing delay nor what limits the sender: capture at the sender"
        for flow in flows
        if flow.behind_queue
    ]
    name = ", ".join(map(str, files))
    unanswered = [
        Unanswered(name, row["client"], row["server"], row["syns"], row["retransmitted"])
        for row in document.get("unanswered", [])
    ]
    if not flows and not unanswered:
        advice = captures.one_way_text(document)
        notes.append(f"{name}: no TCP connection with data{advice and ': '}{advice}")
    files_read = [(str(file), CAPTURE) for file in files]
    return Observations(files_read, flows=flows, unanswered=unanswered, notes=notes)


def _lost_segments(flow: series.CapturedFlow, path: PathEstimate) -> LostSegments:
    """Return a flow's lost segments, and the queueing delay that their neighbours found."""
    trips = rate.trips(flow)
    is_lost = flow.segments.lost_bytes > 0
    base_ms = path.base_rtt_ms.value
    if base_ms is None:
        base_ms = float(trips.rtt_s.min(initial=np.inf)) * 1e3
    # At 8 bit/s a byte of queue is a second of delay.
    waits = queue.waits(flow, trips, base_ms / 1e3, 8.0) if np.isfinite(base_ms) else None
    fresh = ~flow.segments.again
    flights = np.sort(flow.segments.in_flight[fresh])
    ranks = np.searchsorted(flights, flow.segments.in_flight[is_lost & fresh], "right") / max(1, len(flights))
    return LostSegments(
        at_s=flow.segments.time_s[is_lost],
        wait_ms=np.empty(0) if waits is None else waits.at_loss * 1e3,
        flight_rank=float(ranks.mean()) if len(ranks) else 1.0,
        sent_at_s=flow.segments.time_s,
    )


def _nearest(
    files: Sequence[Path], documents: Sequence[Mapping[str, Any]]
) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Return each flow as the capture nearest to its sender shows it: there round trips are longest."""
    nearest: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for file, document in zip(files, documents, strict=True):
        for flow in document["flows"]:
            previous = nearest.get(flow["label"])
            if previous is None or _nearness(flow) > _nearness(previous[1]):
                nearest[flow["label"]] = (file, flow)
    return nearest


def _nearness(flow: Mapping[str, Any]) -> tuple[bool, float]:
    return flow["place"] == "sender", flow["rtt_ms"]["p50"] or 0.0


def _captured(
    flow: Mapping[str, Any],
    file: str,
    samples: Mapping[str, Floats],
    rtts: Mapping[str, Floats],
    vantage: _Vantage,
) -> ObservedFlow:
    """Return a flow of a capture.

    Behind the bottleneck's queue the round trips lack the time in the queue, so they are left out.
    """
    opened_s, at_queue = vantage.opened_s, vantage.at_queue
    again = flow["retransmissions"]
    total_s = sum(flow["limited_s"].values())
    trips = rtts["rtt_ns"] / 1e6 if rtts else np.empty(0)
    least = float(trips.min()) if len(trips) else flow["rtt_ms"]["p5"]
    if opened_s is not None:
        least = min(opened_s * 1e3, least or np.inf)
    again_opened = flow["syn_retransmissions"] + flow["syn_ack_retransmissions"]
    limited = {name: seconds / total_s for name, seconds in flow["limited_s"].items()} if total_s else None
    if limited is not None and limited.get("unknown", 0.0) > 0.5:
        limited = None  # away from the sender
    ends = flow["label"].split(" → ")
    return ObservedFlow(
        source=file,
        label=flow["label"],
        sender=ends[0],
        receiver=ends[-1] if len(ends) > 1 else "",
        vantage="between" if at_queue else flow["place"],
        behind_queue=at_queue,
        drained=vantage.drained or opened_s is not None,
        from_start=opened_s is not None or again_opened > 0,
        bytes=flow["bytes"],
        duration_s=flow["duration_s"],
        goodput_bps=flow["goodput_bps"],
        segments=flow["segments"],
        retransmitted=(again["needed"] or 0) + (again["unknown"] or 0),
        rtt_min_ms=least,
        rtt_p50_ms=None if at_queue else flow["rtt_ms"]["p50"],
        rtt_p95_ms=None if at_queue else flow["rtt_ms"]["p95"],
        limited=None if at_queue else limited,
        ecn=flow["ecn"],
        series=None if at_queue else _series(samples),
        steady_bytes=None if at_queue else _steady(samples),
        closed_s=flow.get("closed_s") or 0.0,
        even=vantage.even,
        path=vantage.path,
        lost_segments=vantage.lost_segments if flow["place"] == "sender" and not vantage.even else None,
    )


def _capture_pair(row: Mapping[str, Any]) -> CapturePair:
    forward, backward = row["there"], row["back"]
    return CapturePair(forward["lost"], forward["queueing_ms"]["p95"], backward["queueing_ms"]["p95"])


def _steady(samples: Mapping[str, Floats]) -> float | None:
    """Return the bytes in flight of a sender that waits for its application, if they hardly change."""
    if not samples:
        return None
    waits = np.array([word == "app" for word in samples["limit"]])
    flights = samples["bytes_in_flight"][waits]
    flights = flights[np.isfinite(flights) & (flights > 0)]
    if len(flights) < _core.TAIL_SAMPLES:
        return None
    middle, high = np.percentile(flights, (50, 95))
    return float(middle) if middle >= STEADY * high else None


def _of_recording(file: Path, recording: Recording) -> tuple[Observations, list[dict[str, Any]]]:
    """Return the flows and pings of another program's file, and the disciplines of a listing."""
    name = str(file)
    rows = recording["flows"].to_pylist()
    samples = grouped(recording, "samples", "flow", SAMPLES)
    reported = recording.provenance.get("reported") or {}
    began = recording.provenance.get("began_s")
    flows, datagrams = [], []
    for row, flow in zip(rows, measures.flow_figures(recording), strict=True):
        if row["protocol"] == "udp" and row["datagrams_lost"] is not None and row["segments_sent"]:
            datagrams_lost, datagrams_sent = row["datagrams_lost"], row["segments_sent"]
            datagrams.append(
                Datagrams(
                    name, flow["label"], datagrams_lost / datagrams_sent, datagrams_lost, datagrams_sent
                )
            )
        if row["protocol"] != "tcp" or flow["goodput_bps"] is None:
            continue
        if not flow["bytes"] and not (flow["duration_s"] >= BUSY_S and row["flow"] in samples):
            continue
        flow_report = reported.get(str(row["flow"])) or {}
        flows.append(_reported(name, row, flow, samples.get(row["flow"], {}), flow_report, began))
    listed = [{"file": name, **row} for row in recording.provenance.get("disciplines", [])]
    notes = [f"{name}: {note}" for note in recording.provenance["notes"]]
    kind = str(recording.provenance["engine"])
    probes = _probes(name, recording, flows, began)
    share = recording.provenance.get("packet_loss_share")
    if isinstance(share, float):
        datagrams.append(Datagrams(name, "the test's own datagrams", share))
    return Observations([(name, kind)], flows, probes, datagrams=datagrams, notes=notes), listed


def _reported(
    file: str,
    row: Mapping[str, Any],
    flow: Mapping[str, Any],
    samples: Mapping[str, Floats],
    reported: Mapping[str, Any],
    began_s: float | None,
) -> ObservedFlow:
    trips = flow["rtt_ms"]
    # The least RTT by the kernel itself (ss), or as another program reports it (iperf3).
    kernel_minima = samples["min_rtt_ns"][np.isfinite(samples["min_rtt_ns"])] if samples else np.empty(0)
    least = min(
        (value for value in (trips["min"], *kernel_minima[:1] / 1e6, *kernel_minima[-1:] / 1e6) if value),
        default=None,
    )
    clock = None
    if began_s is not None and row["start_ns"] is not None:
        clock = (began_s + row["start_ns"] / 1e9, began_s + row["start_ns"] / 1e9 + flow["duration_s"])
    elif began_s is not None:
        clock = (began_s, began_s + flow["duration_s"])
    return ObservedFlow(
        source=file,
        label=flow["label"],
        smoothed=trips["method"] == "srtt" and not len(kernel_minima),
        sender=row["sender"] or "",
        receiver=row["receiver"] or "",
        clock_s=clock,
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
        limited=_limits(reported),
        series=_series(samples),
        target_bps=reported.get("target_bps"),
    )


def _limits(reported: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the shares of the time in which a window limited a sender, by the kernel's counters."""
    limited_ms = reported.get("limited_ms") or {}
    busy = limited_ms.get("busy", 0)
    if not busy:
        return None
    receiver, buffer = limited_ms["rwnd_limited"] / busy, limited_ms["sndbuf_limited"] / busy
    if receiver < 0 or buffer < 0 or receiver + buffer > 1.05:
        return None
    return {"receiver": receiver, "send_buffer": buffer, "cwnd": max(0.0, 1 - receiver - buffer)}


def _series(samples: Mapping[str, Floats]) -> Series | None:
    """Return a flow interval by interval, if there are three intervals or more."""
    if not samples or len(samples["time_ns"]) < INTERVALS_MIN:
        return None
    times = samples["time_ns"] / 1e9
    bytes_ = samples["bytes_acked"]
    if not np.isfinite(bytes_).any():
        bytes_ = samples["bytes_written"]
    srtt = np.where(np.isfinite(samples["srtt_ns"]), samples["srtt_ns"], samples["rtt_ns"])
    return Series(
        end_s=times,
        bytes=_steps(bytes_),
        retransmitted=_steps(samples["retransmits"]),
        rtt_ms=srtt / 1e6,
        cwnd_bytes=samples["cwnd_bytes"],
        flight_bytes=samples["bytes_in_flight"],
    )


def _steps(counter: Floats) -> Floats:
    """Return how much a counter rose in each interval; gaps count with the next value."""
    is_sampled = np.isfinite(counter)
    if not is_sampled.any():
        return np.full(len(counter), np.nan)
    filled_counter = counter.copy()
    at = np.where(is_sampled, np.arange(len(counter)), 0)
    filled_counter = filled_counter[np.maximum.accumulate(at)]
    filled_counter[: int(np.argmax(is_sampled))] = 0.0
    return np.clip(np.diff(filled_counter, prepend=0.0), 0.0, None)


def _probes(
    file: str, recording: Recording, flows: Sequence[ObservedFlow], began_s: float | None
) -> list[PingSeries]:
    """Return the pings; where the file has flows too, those before and behind them are of an idle path.

    A speed test's own words for the load take the place of times. Where a file sums up its pings, the central
    value stands for the median.
    """
    rows = recording["probes"].to_pylist()
    tables = ("samples", "received")
    ends: list[Any] = [pc.min_max(recording[table]["time_ns"]).as_py() for table in tables]
    ends = [end for end in ends if end["min"] is not None]
    busy = None
    if ends and any(flow.busy for flow in flows):
        begins = [row["start_ns"] for row in recording["flows"].to_pylist() if row["start_ns"] is not None]
        busy = min([*begins, *(end["min"] for end in ends)]), max(end["max"] for end in ends)
    flow_hosts = frozenset().union(*(flow.hosts for flow in flows))
    summaries = [row for row in measures.probe_figures(recording) if row["rtt_ms"]["method"] == "summary"]
    sums = {(row["probe"], row["target"]): row["rtt_ms"] for row in summaries}
    counts = {
        (row["probe"], row["target"]): (row["sent"], row["lost"])
        for row in summaries
        if row["sent"] and row["lost"] is not None
    }
    probes = []
    names = list(dict.fromkeys((row["probe"], row["target"]) for row in rows))
    hops = [name for name in names if name[0].startswith(HOP)]
    # A router answers late or not at all and forwards everything: the last hop is the path.
    for name, target in [name for name in names if name not in hops[:-1]]:
        mine = [row for row in rows if (row["probe"], row["target"]) == (name, target)]
        parts: list[tuple[list[dict[str, Any]], bool | None]] = [(mine, LOADED.get(name))]
        if busy is not None and name not in LOADED:
            inside = [row for row in mine if busy[0] <= row["time_ns"] <= busy[1]]
            outside = [row for row in mine if not busy[0] <= row["time_ns"] <= busy[1]]
            parts = [(outside, False), (inside, True)]
        for part, loaded in [(run, state) for part_rows, state in parts for run in _runs(part_rows)]:
            if part:
                probe = _probe(file, name, target, part, loaded, began_s)
                if (trips := sums.get((name, target))) is not None:
                    middle = trips["mean"]
                    probe = replace(probe, rtt_min_ms=trips["min"], rtt_p50_ms=middle, rtt_p95_ms=None)
                    averaged = recording.provenance["engine"] not in MEDIANS
                    probe = replace(probe, summed_up=True, averaged=averaged)
                    if trips_sent := counts.get((name, target)):
                        probe = replace(probe, pings_sent=trips_sent[0], pings_lost=trips_sent[1])
                probes.append(replace(probe, hosts=hosts(target) or flow_hosts))
    return probes


def _runs(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the runs of a series, which a pause of `RUN_GAP_S` parts."""
    cuts = [
        at
        for at in range(1, len(rows))
        if rows[at]["time_ns"] - rows[at - 1]["time_ns"] > RUN_GAP_S * 1_000_000_000
    ]
    return [rows[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


LOADED = {IDLE: False, DOWNLOADING: True, UPLOADING: True, BOTH_WAYS: True}
"""Names of pings by the readers of speed tests, and whether the path was loaded meanwhile."""


def _probe(
    file: str,
    name: str,
    target: str,
    rows: Sequence[Mapping[str, Any]],
    loaded: bool | None,
    began_s: float | None,
) -> PingSeries:
    answered = np.array([row["rtt_ns"] for row in rows if not row["lost"]], dtype=np.float64)
    trips = measures.round_trips(answered)
    clock = None
    times = np.array([row["time_ns"] for row in rows], dtype=np.float64) / 1e9
    if began_s is not None:
        times += began_s
        clock = (float(times[0]), float(times[-1]))
    return PingSeries(
        source=file,
        target=re.sub(r"\s", " ", target),
        name=re.sub(r"\s", " ", name) or "ping",
        pings_sent=len(rows),
        pings_lost=len(rows) - len(answered),
        rtt_min_ms=trips["min"],
        rtt_p50_ms=trips["p50"],
        rtt_p95_ms=trips["p95"] if trips["p95"] is not None else trips["max"],
        loaded=loaded,
        clock_s=clock,
        at_s=times,
        trip_ms=np.array([np.nan if row["lost"] else row["rtt_ns"] / 1e6 for row in rows], dtype=np.float64),
    )
