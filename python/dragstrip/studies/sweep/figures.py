"""A run's summary as columns of the store."""

from __future__ import annotations

from typing import Any


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that the store keeps of a run and of each of its flows.

    `measures.summarise` has further figures.
    """
    queue = next(iter(summary["queues"]), None)
    probe = next(iter(summary["probes"]), None)
    run: dict[str, Any] = {
        "goodput_bps_total": sum(flow["goodput_bps"] for flow in summary["flows"]),
        "jain": summary["jain"],
    }
    if queue is not None:
        run.update({f"queue_bytes_{part}": queue["backlog_bytes"][part] for part in ("p50", "p95", "max")})
        run.update(dropped=queue["dropped"], marked=queue["marked"])
    if probe is not None:
        run.update(
            probe_ms_p50=probe["rtt_ms"]["p50"],
            probe_ms_p95=probe["rtt_ms"]["p95"],
            probe_lost=probe["lost"],
        )
    return {"run": run, "flows": [_flow(flow) for flow in summary["flows"]]}


def _flow(flow: dict[str, Any]) -> dict[str, Any]:
    copied_fields = ("flow", "label", "cc", "goodput_bps", "throughput_bps_p50")
    figures = {name: flow[name] for name in (*copied_fields, "retransmits", "segments_sent", "share")}
    figures.update({f"rtt_ms_{part}": flow["rtt_ms"][part] for part in ("p5", "p50", "p95")})
    delay_ms = flow["rtt_ms"]["p50"]
    # Kleinrock's power: throughput over delay (L. Kleinrock, Power and deterministic rules of thumb for
    # probabilistic problems in computer communications, ICC 1979).
    figures["power_bps_per_ms"] = flow["goodput_bps"] / delay_ms if delay_ms else None
    if transfer := flow.get("transfer"):
        figures.update(
            size_bytes=transfer["bytes"], fct_s=transfer["completion_s"], slowdown=transfer["slowdown"]
        )
    return figures
