"""Cells of the grid by name; a name defines a scenario completely.

`b-10m-40ms-4bdp-cubic`, `b-10m-40ms-4bdp-fqcodel-ecn-reno`, `b-10m-40ms-4bdp-loss0.1-bbr`,
`b-2m-40ms-4bdp-jitter5-reno` (each packet is delayed by 0 to 10 ms), `b-10m-40ms-1bdp-cubic+reno` for two
flows from hosts of their own. Cells of the wider grid begin with `w` and have further words:
`w-100m-20ms-0.5bdp-nosack-8s-cubic`, `w-10m-10ms-1bdp-spread10-renox10` (ten flows, each with a round trip 10
ms longer than the one before).
"""

from __future__ import annotations

import hashlib
import re

from dragstrip.errors import BadInputError
from dragstrip.model.scenario import algorithms, disciplines
from dragstrip.model.scenario.paths import FRAME_BYTES
from dragstrip.studies.validation.kernel import Json

DURATION_S = 30
"""Seconds of a cell whose name has no duration."""
SMALLEST_QUEUE_BYTES = 3 * FRAME_BYTES
"""Bytes of the grid's smallest queue: three full frames."""
SYSCTL: Json = {
    "net.ipv4.tcp_rmem": "4096 8388608 67108864",
    "net.ipv4.tcp_wmem": "4096 65536 67108864",
}
"""Buffers so large that only the congestion window limits a sender."""
STOCK: Json = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}
"""A host's defaults with 2 GB of memory or more (tcp_init); those of the guest, which has less memory,
differ."""
WITHOUT: Json = {
    "nosack": ("net.ipv4.tcp_sack", 0),
    "norack": ("net.ipv4.tcp_recovery", 0),
    "nots": ("net.ipv4.tcp_timestamps", 0),
}

DISCIPLINES = {name.replace("_", ""): name for name in disciplines.rows()}
"""Disciplines by their spelling in a cell's name."""
LONGER_MS = 0.02
"""Milliseconds added to the round trip from one repeat to the next, where flows compete and nothing is
random."""

CELL = re.compile(
    r"[bw]-(?P<rate>[\d.]+)m-(?P<rtt>[\d.]+)ms-(?P<buffer>[\d.]+)bdp"
    r"(?:-(?P<aqm>codel|fqcodel|red|choke|sfb|pie|fqpie|cake|fq|sfq))?(?P<ecn>-ecn)?(?:-loss(?P<loss>[\d.]+))?(?:-jitter(?P<jitter>[\d.]+))?"
    r"(?P<without>(?:-(?:nosack|norack|nots|nogso|stockbuf))*)"
    r"(?:-late(?P<late>[\d.]+))?(?:-spread(?P<spread>[\d.]+))?(?:-(?P<duration>\d+)s)?"
    r"-(?P<cc>[a-z]+(?:x\d+)?(?:\+[a-z]+(?:x\d+)?)*)"
)
FORM = (
    "b-RATEm-RTTms-BUFFERbdp[-codel|-fqcodel|-red|-choke|-sfb|-pie|-fqpie|-cake|-fq|-sfq][-ecn][-lossPERCENT][-jitterMS][-nosack][-norack][-nots][-nogso]"
    "[-stockbuf][-lateSECONDS][-spreadMS][-SECONDSs]-ALGORITHM[xCOUNT][+ALGORITHM...]"
)

WIDE = "w-"
"""Prefix of the names of the wider grid, a third of which is held out."""


def held_out(name: str) -> bool:
    """Return True for a case of the third that is compared only when the model is finished.

    These are the cells of the wider grid whose name's SHA-256 begins with a byte divisible by three: a fixed
    rule, not a choice.
    """
    return name.startswith(WIDE) and hashlib.sha256(name.encode()).digest()[0] % 3 == 0


def cell(name: str, seed: int = 1) -> Json:
    """Return the scenario of a cell, in the exchange format, for one of its repeats.

    Repeats differ in their seed. If flows compete and nothing is random, the path is also a little longer
    each time: microseconds decide which of them loses the packet at a full queue, so that one run is only one
    sample of many there too. Raises `BadInputError` for a name that is no cell's.
    """
    cell_match = CELL.fullmatch(name)
    if cell_match is None:
        raise BadInputError("CELL", name, f"a cell: {FORM}", "command line")
    rate_kbit, rtt_ms = round(float(cell_match["rate"]) * 1000), float(cell_match["rtt"])
    words = cell_match["without"].split("-")[1:]
    sysctl = dict(STOCK if "stockbuf" in words else SYSCTL)
    sysctl.update(WITHOUT[word] for word in words if word in WITHOUT)
    if cell_match["aqm"]:
        sysctl["net.ipv4.tcp_ecn"] = int(bool(cell_match["ecn"]))
    spec: Json = {
        "name": name,
        "duration_s": int(cell_match["duration"] or DURATION_S),
        "rtt_ms": rtt_ms,
        "sysctl": sysctl,
        "bottleneck": {"rate_kbit": rate_kbit, "qdisc": _queue(cell_match, rate_kbit, rtt_ms)},
        "flows": _flows(cell_match),
    }
    if "nogso" in words:
        spec["gso"] = "off"
    impairments = [f"delay {cell_match['jitter']}ms {cell_match['jitter']}ms"] if cell_match["jitter"] else []
    impairments += [f"loss random {cell_match['loss']}%"] if cell_match["loss"] else []
    if impairments:
        spec["fwd_netem"] = " ".join([*impairments, "limit 100000"])
    is_random = bool({flow["cc"] for flow in spec["flows"]}.intersection(algorithms.random_in_linux()))
    is_random |= disciplines.is_probabilistic(DISCIPLINES.get(cell_match["aqm"], "bfifo"))
    if len(spec["flows"]) > 1 and not impairments and not is_random:
        spec["rtt_ms"] = round(rtt_ms + LONGER_MS * (seed - 1), 3)
    if seed > 1:
        spec["seed"] = seed
    return spec


def _flows(cell_match: re.Match[str]) -> list[Json]:
    parts = [part.partition("x") for part in cell_match["cc"].split("+")]
    algorithms = [cc for cc, _, count in parts for _ in range(int(count or 1))]
    flows: list[Json] = [{"src": f"s{n}", "cc": cc} for n, cc in enumerate(algorithms, 1)]
    for before, flow in enumerate(flows):
        if cell_match["late"] and before:
            flow["start_s"] = float(cell_match["late"]) * before
        if cell_match["spread"] and before:
            flow["extra_rtt_ms"] = float(cell_match["spread"]) * before
    return flows


def _queue(cell_match: re.Match[str], rate_kbit: int, rtt_ms: float) -> str:
    bdp_bytes = rate_kbit * rtt_ms / 8
    marks = "ecn" if cell_match["ecn"] else "noecn"
    limit = max(round(bdp_bytes * float(cell_match["buffer"])), SMALLEST_QUEUE_BYTES)
    ecn = " ecn" if cell_match["ecn"] else ""
    match cell_match["aqm"]:
        case "codel":
            return f"codel limit 1000 {marks}"
        case "fqcodel":
            return f"fq_codel {marks}"
        case "red":
            return f"red limit {limit} avpkt 1000 bandwidth {rate_kbit}kbit{ecn}"
        case "choke":
            return f"choke limit {limit // FRAME_BYTES} bandwidth {rate_kbit}kbit{ecn}"
        case "pie" | "fqpie":
            return {"pie": "pie", "fqpie": "fq_pie"}[cell_match["aqm"]] + ecn
        case "sfb" | "cake" | "fq" | "sfq":  # sfb and cake mark whatever can be marked
            return str(cell_match["aqm"])
        case _:
            return f"bfifo limit {limit}"
