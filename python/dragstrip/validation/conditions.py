"""What of a scenario decides how its figures are taken, and how far they may be apart."""

from __future__ import annotations

from dataclasses import dataclass

from dragstrip.paths import path_of
from dragstrip.validation.kernel import Json

FULL_FRAME_BITS = 1514 * 8
"""What htb charges for a full segment: the frame without FCS, preamble and gap."""

RANDOMIZED = ("bbr", "cdg", "lp", "nv")
"""Algorithms of Linux that draw random numbers, so that one run of them is one sample of many.

CDG backs off with a probability (tcp_cdg_backoff), BBR begins PROBE_BW at a random phase
(bbr_reset_probe_bw_mode), LP takes what the peer's time stamps begin at, a random number, for a delay
(secure_tcp_ts_off, tcp_lp_remote_hz_estimator), NV looks for a shorter RTT after a random time (tcpnv_acked).
"""

DRAWING_QUEUES = ("red", "choke", "sfb", "pie", "fq_pie")
"""Disciplines of Linux that drop or mark with a probability: one run of them is one sample of many too."""

FIFOS = ("bfifo", "pfifo", "pfifo_fast", "noqueue")
"""Disciplines that decide nothing: what does not fit is dropped."""

CHOOSES = ("cdg", "dctcp")
"""Algorithms that reduce the window of their own accord too: losses are not all there is to count."""

CHANCES = ("jitter_ns", "reorder", "duplicate", "corrupt")
"""Fields of netem, beside `loss`, that are random."""


@dataclass(frozen=True)
class Conditions:
    """Of one scenario."""

    algorithms: tuple[str, ...]
    """Of its flows, each once, in their order."""
    stochastic: bool
    """Whether netem impairs at random: loss, jitter, reordering."""
    bottleneck: str | None
    """The link at whose queue the first flow waits."""
    discipline: str
    """What decides there who is dropped or marked; below a shaper its leaf."""
    packet_ms: float
    """Time of a full segment there."""
    marked: bool
    """Whether hosts ask for ECN."""

    @property
    def random(self) -> bool:
        """Whether one run is one sample of many."""
        draws = self.discipline in DRAWING_QUEUES or any(name in RANDOMIZED for name in self.algorithms)
        return self.stochastic or draws

    @property
    def managed(self) -> bool:
        """Whether the bottleneck's queue has more to decide than what does not fit."""
        return self.discipline not in FIFOS

    @property
    def losses_alone_reduce(self) -> bool:
        """Whether the counts of recoveries and timeouts are all reductions of the window."""
        return not self.marked and not any(name in CHOOSES for name in self.algorithms)


def conditions(scenario: Json) -> Conditions:
    """Those of a scenario of ours, all defaults written out."""
    first = scenario["flows"][0]
    way = path_of(scenario, first["sender"], first["receiver"])
    chances = [link["netem"] for link in scenario["links"] if link["netem"]]
    chances += [link["qdisc"] for link in scenario["links"] if link["qdisc"]["kind"] == "netem"]
    return Conditions(
        tuple(dict.fromkeys(flow["transport"].get("cc", "udp") for flow in scenario["flows"])),
        any(_rolls(netem) for netem in chances),
        str(way.bottleneck["name"]) if way.bottleneck is not None else None,
        _discipline(way.bottleneck["qdisc"]) if way.bottleneck is not None else "noqueue",
        FULL_FRAME_BITS / way.rate_bps * 1e3 if way.rate_bps else 0.0,
        any(node.get("sysctl", {}).get("net.ipv4.tcp_ecn") == "1" for node in scenario["nodes"]),
    )


def _discipline(qdisc: Json) -> str:
    leaf = qdisc.get("leaf")
    return _discipline(leaf) if leaf else str(qdisc["kind"])


def _rolls(netem: Json) -> bool:
    return netem["loss"]["model"] != "none" or any(netem[field] for field in CHANCES)
