"""Makes output folders as `dragstrip run` and `compare` write them, with plausible sawtooths in them.

No simulator is needed: the report must be testable by itself, and for states that a healthy run never
shows. The shapes are drawn, not computed: AIMD teeth for the loss-based, a flat line for Vegas, PROBE_RTT
dips for BBR.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dragstrip.results.measures import rates_bps

MSS = 1448
FRAME = 1514
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """How an algorithm's window moves between the path's product and product + buffer (0 to 1)."""

    low: float
    high: float
    period_s: float
    curve: float = 1.0
    retransmits_per_period: int = 0


SHAPES = {
    "reno": Shape(0.0, 1.0, 9.0, 1.0, 12),
    "cubic": Shape(0.35, 1.0, 6.0, 0.6, 18),
    "vegas": Shape(0.03, 0.05, 4.0),
    "cdg": Shape(0.02, 0.3, 3.0, 1.2, 1),
    "bbr": Shape(0.3, 0.45, 0.8, 0.3),
    "exp": Shape(0.2, 1.0, 4.0, 1.5, 30),
    "udp": Shape(0.0, 0.0, 1.0),
}


@dataclass(frozen=True)
class FlowPlan:
    """One flow to be made up."""

    cc: str
    label: str
    sender: str = "s1"
    share: float = 1.0
    start_s: float = 0.0
    stop_s: float | None = None
    bytes_limit: int | None = None


@dataclass(frozen=True)
class RunPlan:
    """One run to be made up."""

    name: str
    flows: list[FlowPlan]
    seed: int = 1
    failed: str | None = None


@dataclass(frozen=True)
class Plan:
    """An output folder to be made up."""

    runs: list[RunPlan]
    name: str = "compare"
    rate_bps: int = 10_000_000
    rtt_ms: float = 40.0
    limit_bytes: int = 204_800
    duration_s: float = 60.0
    probes: bool = True
    claims: list[dict[str, Any]] | None = field(default_factory=list)
    qdisc: dict[str, Any] | None = None
    limited_by: str = "cwnd"
    rtt_samples: int = 24_000


def compare(ccs: list[str], repeats: int = 1, **settings: Any) -> Plan:
    """One flow per algorithm, each alone."""
    runs = [
        RunPlan(cc + (f" #{k + 1}" if repeats > 1 else ""), [FlowPlan(cc, cc)], seed=1 + k)
        for k in range(repeats)
        for cc in ccs
    ]
    return Plan(runs, **settings)


def together(shares: dict[str, float], repeats: int = 1, **settings: Any) -> Plan:
    """Flows with different algorithms at once."""
    flows = [FlowPlan(cc, cc, f"s{i}", share) for i, (cc, share) in enumerate(shares.items(), 1)]
    return Plan([RunPlan("+".join(shares), flows, seed=1 + k) for k in range(repeats)], **settings)


def crowd(cc: str, flows: int, **settings: Any) -> Plan:
    """Many flows of one algorithm at once."""
    plans = [FlowPlan(cc, f"{cc}-{i}", f"s{i}", (1 + 0.3 * math.sin(i)) / flows) for i in range(1, flows + 1)]
    return Plan([RunPlan(cc, plans)], **settings)


def write(plan: Plan, out: Path) -> Path:
    """Writes the folder; answers with it."""
    out.mkdir(parents=True, exist_ok=True)
    runs = [_run(plan, run, number, out) for number, run in enumerate(plan.runs) if run.failed is None]
    failed = [{"scenario": r.name, "seed": r.seed, "reason": r.failed} for r in plan.runs if r.failed]
    result: dict[str, Any] = {"version": "0.1.0", "experiment": plan.name, "runs": runs, "failed": failed}
    if plan.claims is not None:
        result["claims"] = plan.claims
    (out / "result.json").write_text(json.dumps(result))
    (out / "experiment.json").write_text(json.dumps({"name": plan.name, "title": f"Experiment {plan.name}"}))
    return out


def scenario_of(plan: Plan, run: RunPlan) -> dict[str, Any]:
    """The scenario's document."""
    senders = list(dict.fromkeys(flow.sender for flow in run.flows))
    links = []
    for sender in senders:
        links += [_link(sender, "r"), _link("r", sender)]
    leaf = plan.qdisc or {"kind": "bfifo", "limit_bytes": plan.limit_bytes}
    htb = {"kind": "htb", "rate_bps": plan.rate_bps, "burst_bytes": 1600, "cburst_bytes": 1600, "leaf": leaf}
    links += [_link("r", "d", qdisc=htb), _link("d", "r", delay_ns=int(plan.rtt_ms * 1e6))]
    nodes: list[dict[str, Any]] = [{"kind": "host", "name": name, "sysctl": {}} for name in [*senders, "d"]]
    nodes.insert(len(senders), {"kind": "router", "name": "r"})
    return {
        "name": run.name,
        "seed": run.seed,
        "duration_ns": int(plan.duration_s * 1e9),
        "nodes": nodes,
        "links": links,
        "routes": [],
        "flows": [_flow_spec(flow) for flow in run.flows],
        "probes": [
            {"label": "d-s1", "from": "d", "target": "s1", "interval_ns": 200_000_000, "size_bytes": 64}
        ],
        "record": {"interval_ns": 100_000_000, "every_ack": False, "rtts": True},
    }


def _flow_spec(flow: FlowPlan) -> dict[str, Any]:
    udp = flow.cc == "udp"
    return {
        "label": flow.label,
        "sender": flow.sender,
        "receiver": "d",
        "transport": {"protocol": "udp"} if udp else {"protocol": "tcp", "cc": flow.cc, "cc_options": {}},
        "application": {"kind": "constant_rate", "rate_bps": 10**6, "datagram_bytes": 1470}
        if udp
        else {"kind": "bulk", "bytes": flow.bytes_limit},
        "start_ns": int(flow.start_s * 1e9),
        "stop_ns": None,
    }


def _link(start: str, end: str, **given: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": f"{start}-{end}",
        "from": start,
        "to": end,
        "rate_bps": None,
        "delay_ns": 0,
        "overhead_bytes": 0,
        "qdisc": {"kind": "noqueue"},
        "netem": None,
    }
    return made | given


def _run(plan: Plan, run: RunPlan, number: int, out: Path) -> dict[str, Any]:
    slug = f"{number:03d}-{run.name.replace(' #', '-').replace('+', '-')}"
    summary: dict[str, Any] = {
        "scenario": run.name,
        "engine": "sim",
        "seed": run.seed,
        "recording": f"runs/{slug}",
        "duration_s": plan.duration_s,
    }
    folder = out / "runs" / slug
    folder.mkdir(parents=True)
    (folder / "scenario.json").write_text(json.dumps(scenario_of(plan, run)))
    (folder / "provenance.json").write_text(
        json.dumps(
            {
                "engine": "sim",
                "version": "0.1.0",
                "seed": run.seed,
                "started": "2026-11-20T14:00:00Z",
                "command": f"dragstrip compare --rate {plan.rate_bps // 1_000_000}mbit --rtt {plan.rtt_ms:g}ms --queue 'bfifo limit 200kb' reno cubic vegas",
                "recording_sha256": f"{number * 7919 + 13:064x}",
                "verified": {"rate": True, "delay": True},
            }
        )
    )
    rng = np.random.default_rng(run.seed * 1000 + number)
    made = [_flow(plan, flow, index, rng) for index, flow in enumerate(run.flows)]
    queue = np.clip(
        sum((m["queue"] for m in made), np.zeros(len(made[0]["t"]))) if made else np.zeros(1),
        0,
        plan.limit_bytes,
    )
    _tables(plan, run, made, queue, folder, rng)
    return summary | _summary(plan, run, made, queue)


def _flow(plan: Plan, flow: FlowPlan, index: int, rng: np.random.Generator) -> dict[str, Any]:
    shape = SHAPES.get(flow.cc, Shape(0.1, 0.8, 5.0))
    t = np.arange(0.1, plan.duration_s + 1e-9, 0.1)
    period = shape.period_s * (1 + 0.1 * rng.standard_normal())
    phase = np.mod(t / period + rng.random(), 1.0) ** shape.curve
    fill = shape.low + (shape.high - shape.low) * phase
    if flow.cc == "bbr":
        fill = np.where(np.mod(t, 10.0) < 0.2, 0.0, fill + 0.1 * (np.mod(t, 0.32) < 0.04))
    queue = fill * plan.limit_bytes * flow.share
    rtt_ms = plan.rtt_ms + fill * plan.limit_bytes * 8e3 / plan.rate_bps + 0.4 * rng.random(len(t))
    active = t > flow.start_s
    wire = plan.rate_bps * flow.share * 0.1 / 8 * (0.99 + 0.01 * rng.standard_normal(len(t))) * active
    wire = np.floor(np.minimum(wire, plan.rate_bps * 0.1 / 8) / FRAME) * FRAME
    if flow.cc == "vegas":
        wire *= 0.97
    retransmits = np.floor(t / period) * shape.retransmits_per_period
    cwnd = (plan.rate_bps * plan.rtt_ms / 8e3 * flow.share + queue) // MSS * MSS
    return {
        "index": index,
        "plan": flow,
        "t": t,
        "queue": queue,
        "rtt_ms": rtt_ms,
        "wire": wire,
        "new": wire * MSS / FRAME,
        "retransmits": retransmits,
        "cwnd": cwnd,
    }


def _tables(
    plan: Plan, run: RunPlan, made: list[dict[str, Any]], queue: Array, folder: Path, rng: np.random.Generator
) -> None:
    def save(name: str, columns: dict[str, Any]) -> None:
        pq.write_table(pa.table(columns), folder / f"{name}.parquet", compression="zstd")

    def stacked(key: str) -> Array:
        return np.concatenate([np.empty(0), *(m[key] for m in tcp)])

    def ints(values: Any) -> Any:
        return pa.array(np.asarray(values, dtype=np.float64).round().astype(np.int64))

    def text(values: list[str | None]) -> Any:
        return pa.array(values, pa.string()).dictionary_encode()

    flows = [m["plan"] for m in made]
    save(
        "flows",
        {
            "flow": ints([m["index"] for m in made]),
            "label": text([f.label for f in flows]),
            "protocol": text(["udp" if f.cc == "udp" else "tcp" for f in flows]),
            "cc": text([None if f.cc == "udp" else f.cc for f in flows]),
            "sender": text([f.sender for f in flows]),
            "receiver": text(["d" for _ in flows]),
            "start_ns": ints([f.start_s * 1e9 for f in flows]),
            "stop_ns": ints([(f.stop_s or plan.duration_s) * 1e9 for f in flows]),
            "bytes_acked": ints([m["new"].sum() for m in made]),
            "bytes_received": ints([m["new"].sum() for m in made]),
            "segments_sent": ints([m["wire"].sum() / FRAME + m["retransmits"][-1] for m in made]),
            "retransmits": ints([m["retransmits"][-1] for m in made]),
            "rto_count": ints([0 for _ in made]),
            "ecn_negotiated": pa.array([False for _ in made], pa.bool_()),
        },
    )
    tcp = [m for m in made if m["plan"].cc != "udp"]
    rows = sum(len(m["t"]) for m in tcp)
    srtt = stacked("rtt_ms") * 1e6
    save(
        "samples",
        {
            "time_ns": ints(stacked("t") * 1e9),
            "flow": ints(np.concatenate([np.empty(0), *(np.full(len(m["t"]), m["index"]) for m in tcp)])),
            "cwnd_bytes": ints(stacked("cwnd")),
            "ssthresh_bytes": pa.array([None if i % 600 < 50 else 60 * MSS for i in range(rows)], pa.int64()),
            "bytes_in_flight": ints(stacked("cwnd")),
            "srtt_ns": ints(srtt),
            "rtt_ns": ints(srtt),
            "min_rtt_ns": ints(np.full(rows, plan.rtt_ms * 1e6)),
            "pacing_bps": ints(np.zeros(rows)),
            "delivery_bps": ints(stacked("wire") * 80),
            "bytes_acked": ints(np.zeros(rows)),
            "retransmits": ints(stacked("retransmits")),
            "state": text(["open"] * rows),
            "limit": text([plan.limited_by] * rows),
        },
    )
    everything = made
    save(
        "received",
        {
            "time_ns": ints(np.concatenate([np.empty(0), *(m["t"] for m in everything)]) * 1e9),
            "flow": ints(
                np.concatenate([np.empty(0), *(np.full(len(m["t"]), m["index"]) for m in everything)])
            ),
            "wire_bytes": ints(np.concatenate([np.empty(0), *(m["wire"] for m in everything)])),
            "new_bytes": ints(np.concatenate([np.empty(0), *(m["new"] for m in everything)])),
        },
    )
    fine = {
        m["index"]: np.sort(rng.random(max(1, plan.rtt_samples // max(1, len(tcp)))) * plan.duration_s)
        for m in tcp
    }
    save(
        "rtts",
        {
            "time_ns": ints(np.concatenate([np.empty(0), *fine.values()]) * 1e9),
            "flow": ints(np.concatenate([np.empty(0), *(np.full(len(v), k) for k, v in fine.items())])),
            "rtt_ns": ints(
                np.concatenate(
                    [np.empty(0), *(np.interp(fine[m["index"]], m["t"], m["rtt_ms"]) * 1e6 for m in tcp)]
                )
            ),
        },
    )
    ping_t = np.arange(0.2, plan.duration_s, 0.2) if plan.probes and made else np.empty(0)
    waiting = np.interp(ping_t, made[0]["t"], queue) if made else ping_t
    ping_ns = (plan.rtt_ms + waiting * 8e3 / plan.rate_bps) * 1e6
    lost = [i % 97 == 5 for i in range(len(ping_t))]
    save(
        "probes",
        {
            "time_ns": ints(ping_t * 1e9),
            "probe": text(["d-s1"] * len(ping_t)),
            "target": text(["s1"] * len(ping_t)),
            "rtt_ns": pa.array(
                [None if gone else int(v) for gone, v in zip(lost, ping_ns, strict=True)], pa.int64()
            ),
            "lost": pa.array(lost, pa.bool_()),
        },
    )
    queue_t = made[0]["t"] if made else np.empty(0)
    queue = queue if made else np.empty(0)
    save(
        "queues",
        {
            "time_ns": ints(np.tile(queue_t, 2) * 1e9),
            "link": text(["r-d"] * len(queue_t) + ["d-r"] * len(queue_t)),
            "backlog_bytes": ints(np.concatenate([queue, queue * 0])),
            "backlog_packets": ints(np.concatenate([queue, queue * 0]) // FRAME),
            "enqueued": ints(np.tile(np.arange(len(queue_t)), 2)),
            "dropped": ints(np.tile(np.zeros(len(queue_t)), 2)),
            "marked": ints(np.tile(np.zeros(len(queue_t)), 2)),
        },
    )


def _summary(plan: Plan, run: RunPlan, made: list[dict[str, Any]], queue: Array) -> dict[str, Any]:
    sizes = [int(m["new"].sum().round()) for m in made]
    lives = [(m["plan"].start_s, m["plan"].stop_s or plan.duration_s) for m in made]
    goodputs = [size * 8 / (stop - start) for size, (start, stop) in zip(sizes, lives, strict=True)]
    total = sum(goodputs)
    flows = []
    for m, goodput, size, (start, stop) in zip(made, goodputs, sizes, lives, strict=True):
        udp = m["plan"].cc == "udp"
        flows.append(
            {
                "flow": m["index"],
                "label": m["plan"].label,
                "cc": m["plan"].cc,
                "start_s": start,
                "stop_s": stop,
                "bytes_received": size,
                "goodput_bps": goodput,
                "throughput_bps_p50": float(np.median(rates_bps(m["wire"].round(), 100_000_000))),
                "rtt_ms": None if udp else quantiles(m["rtt_ms"]),
                "retransmits": 0 if udp else int(m["retransmits"][-1]),
                "segments_sent": int(m["wire"].sum() / FRAME + m["retransmits"][-1]),
                "share": size / sum(sizes) if sum(sizes) else None,
            }
        )
    squares = sum(g * g for g in goodputs)
    jain = total * total / (len(made) * squares) if squares else None
    waiting = queue * 8e3 / plan.rate_bps + plan.rtt_ms
    return {
        "flows": flows,
        "probes": [{"target": "s1", "rtt_ms": quantiles(waiting), "lost": 3}] if plan.probes and made else [],
        "queues": [
            {
                "link": "r-d",
                "backlog_bytes": {
                    "p50": float(np.median(queue)),
                    "p95": float(np.quantile(queue, 0.95)),
                    "max": float(queue.max()),
                },
                "dropped": sum(int(m["retransmits"][-1]) for m in made),
                "marked": 0,
            }
        ],
        "competing": [{"flows": [m["index"] for m in made], "jain": jain}] if made else [],
        "jain": jain,
    }


def quantiles(values: Array) -> dict[str, float]:
    """p5, p50 and p95."""
    return {name: float(np.quantile(values, q)) for name, q in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95))}
