"""A kernel's scenario as a scenario of the simulator.

    s1 s2 ... ─ r ─ (w) ─ d

The bottleneck is an htb class on r → d, the whole round-trip delay lies on d → r (netem at d's egress), and
impairments of the forward path come behind the bottleneck, as on a host of their own. Neighbour caches start
cold, and no metrics of earlier connections are used.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import complete
from dragstrip.studies.validation.kernel import Json, KernelRun

PING_NS = 200_000_000
SCENARIO_FIELDS = {
    "name",
    "duration_s",
    "rtt_ms",
    "sysctl",
    "bottleneck",
    "flows",
    "fwd_netem",
    "gso",
    "seed",
}
BOTTLENECK_FIELDS = {"rate_kbit", "qdisc", "overhead"}
FLOW_FIELDS = {"src", "cc", "type", "start_s", "stop_s", "rate_kbit", "datagram_bytes", "extra_rtt_ms"}


LATE_MS_MAX = 20.0
"""Milliseconds; a first ping that is slower by more met a queue rather than a machine that was late."""
IDLE_MS_MAX = 0.2
"""Milliseconds; a ping that is slower by more met a queue."""
IDLE_SHARE = 0.05
"""Share of all pings that must have taken the same time on an idle path to show the hosts' own work."""
IDLE_MS, IDLE_MS_FARTHER = 0.05, 0.07
"""The hosts' own work in ms otherwise, as in all other recordings, without and with a host for netem. CUBIC
counts the round trip in whole ticks, rounded up: 40.05 ms are 11 ticks of 4 ms, 40.00 are 10."""


@dataclass(frozen=True)
class RecordingHost:
    """Properties of the recording machine, which the scenario does not give."""

    late_ns: int
    """Delay of what should start at 0: 6.04 ms in linux-6.1, where a capture has the SYN at 6.041 ms."""
    idle_ns: int
    """Addition of the hosts' own work to the round trip: 50 µs there, 70 µs with a host for netem."""


def machine(run: KernelRun) -> RecordingHost:
    """Return the hosts' work, from most pings of an idle path or as the recording states it.

    The delay at the start comes from the first ping, which is stamped 0 and leaves with the first SYN.
    """
    run_info = run.content.get("run", {})
    series, rtt_ms = run.content["ping_series"], float(run.scenario["rtt_ms"])
    idle_ms = _usual_ms([rtt for rtt in series["rtt_ms"] if rtt is not None], rtt_ms)
    if idle_ms is None:
        idle_ms = run_info.get("idle_ms", IDLE_MS_FARTHER if run.scenario.get("fwd_netem") else IDLE_MS)
    late_ms = run_info.get("late_ms")
    if late_ms is None:
        first = series["rtt_ms"][0] if series["t_s"] and series["t_s"][0] == 0 else None
        late_ms = first - rtt_ms - idle_ms if first is not None else 0.0
        late_ms = late_ms if 0 <= late_ms <= LATE_MS_MAX else 0.0
    return RecordingHost(round(late_ms * 1e6), round(idle_ms * 1e6))


def _usual_ms(pings: list[float], rtt_ms: float) -> float | None:
    """Return the most frequent excess of a ping on an idle path, or None if hardly any ping met one."""
    added = [round(ping - rtt_ms, 2) for ping in pings if 0 <= ping - rtt_ms <= IDLE_MS_MAX]
    counts = Counter(added).most_common(1)
    if not counts or counts[0][1] < IDLE_SHARE * len(pings):
        return None
    return counts[0][0]


def scenario(run: KernelRun, seed: int | None = None, longer_ns: int = 0, nominal: bool = False) -> Json:
    """Return the scenario of a kernel's run with all defaults written out.

    `seed` replaces the run's own, and `longer_ns` is added to the round-trip delay. `nominal` leaves out what
    the recording shows of its machine. Raises `BadInputError` for an unknown field, because without it this
    would be another case.
    """
    spec = run.scenario
    host_timing = RecordingHost(0, 0) if nominal else machine(run)
    _refuse_unknown(run, spec, SCENARIO_FIELDS, "scenario")
    _refuse_unknown(run, spec["bottleneck"], BOTTLENECK_FIELDS, "scenario.bottleneck")
    senders = sorted({flow["src"] for flow in spec["flows"]})
    sysctl = {"net.ipv4.tcp_no_metrics_save": "1"}
    sysctl.update({key: str(value) for key, value in spec.get("sysctl", {}).items()})
    host = {
        "kind": "host",
        "profile": _core.stack_of_release(run.kernel.removeprefix("linux-image-")),
        "sysctl": sysctl,
        "gso": spec.get("gso", "auto"),
    }
    nodes = [
        *({**host, "name": name} for name in senders),
        {"kind": "router", "name": "r"},
        {**host, "name": "d"},
    ]
    farther_ns = {flow["src"]: round(flow.get("extra_rtt_ms", 0) * 1e6) for flow in spec["flows"]}
    links = [
        link
        for name in senders
        for link in (
            {"name": f"{name}-r", "from": name, "to": "r"},
            {"name": f"r-{name}", "from": "r", "to": name, "delay_ns": farther_ns[name]},
        )
    ]
    back = {
        "name": "d-r",
        "from": "d",
        "to": "r",
        "delay_ns": round(spec["rtt_ms"] * 1e6) + host_timing.idle_ns + longer_ns,
    }
    return complete(
        {
            "name": run.name,
            "seed": run.seed if seed is None else seed,
            "duration_ns": round(spec["duration_s"] * 1e9),
            "nodes": nodes,
            "links": [*links, _bottleneck(spec), back],
            "flows": [
                _flow(run, number, flow, host_timing.late_ns) for number, flow in enumerate(spec["flows"], 1)
            ],
            "cold_arp": True,
            "probes": [{"label": "ping", "from": "d", "target": senders[0], "interval_ns": PING_NS}],
        }
    )


def _refuse_unknown(run: KernelRun, part: Json, allowed: set[str], where: str) -> None:
    unknown = sorted(set(part) - allowed)
    if unknown:
        raise BadInputError(f"{where}.{unknown[0]}", part[unknown[0]], "a field known here", run.name)


def _bottleneck(spec: Json) -> Json:
    bottleneck = spec["bottleneck"]
    overhead = f" overhead {bottleneck['overhead']}" if bottleneck.get("overhead") else ""
    words = f"htb rate {bottleneck['rate_kbit']}kbit{overhead} leaf {bottleneck['qdisc']}"
    link: Json = {"name": "r-d", "from": "r", "to": "d", "qdisc": _core.parse_qdisc(words)}
    if spec.get("fwd_netem"):
        netem = _core.parse_qdisc(f"netem {spec['fwd_netem']}")
        netem.pop("kind")
        link["netem"] = netem
    return link


def _flow(run: KernelRun, number: int, flow: Json, late_ns: int) -> Json:
    _refuse_unknown(run, flow, FLOW_FIELDS, f"scenario.flows[{number - 1}]")
    flow_spec: Json = {
        "label": f"{flow['cc']}-{number}",
        "sender": flow["src"],
        "receiver": "d",
        "transport": {"protocol": "tcp", "cc": flow["cc"]},
        "application": {"kind": "bulk"},
        "start_ns": round(flow.get("start_s", 0) * 1e9) or late_ns,
    }
    if flow.get("stop_s") is not None:
        flow_spec["stop_ns"] = round(flow["stop_s"] * 1e9)
    return flow_spec
