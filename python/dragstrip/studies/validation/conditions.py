"""The conditions of a scenario that decide how its figures are measured and how far they may differ."""

from __future__ import annotations

from dataclasses import dataclass

from dragstrip.model.scenario import algorithms, disciplines
from dragstrip.model.scenario.paths import FRAME_BYTES, path_of
from dragstrip.studies.validation.kernel import Json

FULL_FRAME_BITS = 8 * FRAME_BYTES
"""Bits that htb charges for a full segment: the frame without FCS, preamble and gap."""

KERNEL_FIFOS = ("pfifo_fast", "noqueue")
"""Disciplines, besides the FIFOs of the registry, that drop only what does not fit."""

CHOOSES = ("cdg", "dctcp")
"""Algorithms that also reduce the window without a loss, so that counting losses is not enough."""

CHANCES = ("jitter_ns", "reorder", "duplicate", "corrupt")
"""Fields of netem, besides `loss`, that are random."""


@dataclass(frozen=True)
class Conditions:
    """The conditions of one scenario."""

    algorithms: tuple[str, ...]
    """The algorithms of its flows, each once, in order."""
    stochastic: bool
    """True when netem impairs at random: loss, jitter, reordering."""
    bottleneck: str | None
    """The link at whose queue the first flow waits."""
    discipline: str
    """The discipline that drops or marks at the bottleneck; below a shaper its leaf."""
    packet_ms: float
    """Transmission time of a full segment at the bottleneck, in milliseconds."""
    marked: bool
    """True when hosts negotiate ECN."""

    @property
    def random(self) -> bool:
        """True when one run is one sample of many."""
        random_algorithms = set(self.algorithms).intersection(algorithms.random_in_linux())
        return self.stochastic or disciplines.is_probabilistic(self.discipline) or bool(random_algorithms)

    @property
    def managed(self) -> bool:
        """True when the bottleneck's queue does more than drop what does not fit."""
        return not (disciplines.is_fifo(self.discipline) or self.discipline in KERNEL_FIFOS)

    @property
    def losses_alone_reduce(self) -> bool:
        """True when every reduction of the window is counted as a recovery or a timeout."""
        return not self.marked and not any(name in CHOOSES for name in self.algorithms)


def conditions(scenario: Json) -> Conditions:
    """Return the conditions of a scenario with all defaults written out."""
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
