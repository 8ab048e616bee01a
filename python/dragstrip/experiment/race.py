"""The options of a race: Python's keywords and the command line's. Generated: `cargo xtask generate`.

Do not edit: the table is in crates/experiment/src/race.rs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypedDict


@dataclass(frozen=True)
class RaceOption:
    """An option: its name in Python, its word on a command line, and what it takes."""

    name: str
    word: str
    takes: Literal["text", "count", "flag", "texts", "pairs", "files"]
    metavar: str
    default: str
    """What it has where nothing is given, as text; empty: nothing."""
    help: str
    completes: str
    """What completes its values: paths, media, workloads; empty: nothing."""
    varies: str
    """The dotted path by which `vary` and `sweep` vary it; empty: they do not."""


SEED_MAX = 9007199254740991
"""The greatest seed."""

ALGORITHMS = RaceOption(
    "algorithms",
    "ALGORITHM",
    "texts",
    "ALGORITHM",
    "",
    "Congestion controls, such as reno cubic:beta=0.8 bbr*4@20ms+5s: options, number of flows, own round-trip time, own start.",
    "algorithms",
    "",
)
"""The arguments of a race."""

OPTIONS: tuple[RaceOption, ...] = (
    RaceOption(
        "path",
        "--path",
        "text",
        "NAME",
        "",
        "A path by name, such as 'home DSL' (dragstrip list --paths).",
        "paths",
        "path",
    ),
    RaceOption(
        "rate",
        "--rate",
        "text",
        "RATE",
        "",
        "Rate of the bottleneck, such as 10mbit.",
        "",
        "path.rate",
    ),
    RaceOption(
        "medium",
        "--medium",
        "text",
        "NAME",
        "",
        "Medium of the bottleneck instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
        "media",
        "path.medium",
    ),
    RaceOption(
        "trace",
        "--trace",
        "text",
        "FILE",
        "",
        "Recorded link instead of a rate (mahimahi's format).",
        "",
        "",
    ),
    RaceOption(
        "rtt",
        "--rtt",
        "text",
        "TIME",
        "",
        "Round-trip time of the empty path, such as 40ms.",
        "",
        "path.rtt",
    ),
    RaceOption(
        "queue",
        "--queue",
        "text",
        "QUEUE",
        "",
        "Queue of the bottleneck: 1bdp (the default; of a medium pfifo), 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel.",
        "",
        "path.queue",
    ),
    RaceOption(
        "workload",
        "--workload",
        "text",
        "NAME",
        "bulk",
        "What the flows do: bulk, web, 'poisson load=60% sizes=web-search', ... (dragstrip list --workloads).",
        "workloads",
        "",
    ),
    RaceOption(
        "duration",
        "--duration",
        "text",
        "TIME",
        "30s",
        "Duration of each run, such as 30s.",
        "",
        "",
    ),
    RaceOption(
        "flows",
        "--flows",
        "count",
        "N",
        "1",
        "Number of flows of each algorithm.",
        "",
        "",
    ),
    RaceOption(
        "both_ways",
        "--both-ways",
        "flag",
        "TEXT",
        "",
        "Also run the same flows in the other direction.",
        "",
        "",
    ),
    RaceOption(
        "stagger",
        "--stagger",
        "text",
        "TIME",
        "",
        "Time between the starts of a run's flows, such as 5s.",
        "",
        "",
    ),
    RaceOption(
        "loss",
        "--loss",
        "text",
        "SHARE",
        "",
        "Random packet loss behind the bottleneck, such as 1%.",
        "",
        "path.loss",
    ),
    RaceOption(
        "jitter",
        "--jitter",
        "text",
        "TIME",
        "",
        "Jitter: each packet is delayed by 0 to twice this, such as 5ms, and may be overtaken.",
        "",
        "path.jitter",
    ),
    RaceOption(
        "netem",
        "--netem",
        "text",
        "WORDS",
        "",
        "Any impairment behind the bottleneck in netem's words, such as 'slot 5ms packets 20' (packets held and released together).",
        "",
        "path.netem",
    ),
    RaceOption(
        "up_rate",
        "--up-rate",
        "text",
        "RATE",
        "",
        "Rate of the return path, such as 1mbit; default: unlimited; with --both-ways, the forward rate.",
        "",
        "path.up_rate",
    ),
    RaceOption(
        "up_medium",
        "--up-medium",
        "text",
        "NAME",
        "",
        "Medium of the return path, instead of a rate.",
        "media",
        "path.up_medium",
    ),
    RaceOption(
        "up_trace",
        "--up-trace",
        "text",
        "FILE",
        "",
        "Recorded link of the return path, instead of a rate.",
        "",
        "",
    ),
    RaceOption(
        "up_queue",
        "--up-queue",
        "text",
        "QUEUE",
        "",
        "Queue of the return path.",
        "",
        "path.up_queue",
    ),
    RaceOption(
        "receiver_on_line",
        "--receiver-on-line",
        "flag",
        "TEXT",
        "",
        "Uploads leave through the receiver's own interface, without a router w in front of it as the modem.",
        "",
        "path.receiver_on_line",
    ),
    RaceOption(
        "up_netem",
        "--up-netem",
        "text",
        "WORDS",
        "",
        "Any impairment of the return path in netem's words, such as 'slot 4ms' (ACKs held and released together) or 'loss 10%'.",
        "",
        "path.up_netem",
    ),
    RaceOption(
        "link",
        "--link",
        "text",
        "KIND",
        "",
        "Bottleneck: htb, a shaper as tc sets it up (the default), or wire, an ideal store-and-forward link.",
        "",
        "path.link",
    ),
    RaceOption(
        "ecn",
        "--ecn",
        "flag",
        "TEXT",
        "",
        "Negotiate ECN. Queues that mark: fq_codel, and others with the word ecn: 'codel ecn'.",
        "",
        "hosts.*.sysctl.\"net.ipv4.tcp_ecn\"",
    ),
    RaceOption(
        "accurate_ecn",
        "--accurate-ecn",
        "flag",
        "TEXT",
        "",
        "Negotiate accurate ECN (RFC 9768), which counts marks; in the simulator, and in Linux since 7.0.",
        "",
        "hosts.*.sysctl.\"net.ipv4.tcp_ecn\"",
    ),
    RaceOption(
        "sysctl",
        "--sysctl",
        "pairs",
        "KEY=VALUE",
        "",
        "Set a sysctl on all hosts; repeatable.",
        "",
        "",
    ),
    RaceOption(
        "notsent_lowat",
        "--notsent-lowat",
        "text",
        "BYTES",
        "",
        "Applications write only while fewer bytes than this are unsent, such as 131072 (TCP_NOTSENT_LOWAT).",
        "",
        "hosts.*.sysctl.\"net.ipv4.tcp_notsent_lowat\"",
    ),
    RaceOption(
        "receiver_cc",
        "--receiver-cc",
        "text",
        "ALGORITHM",
        "",
        "Congestion control of the receivers' sockets: a listener that runs cubic refuses dctcp's and prague's ECN; default: the sender's.",
        "",
        "flows.receiver_cc",
    ),
    RaceOption(
        "gso",
        "--gso",
        "text",
        "auto|off|whole",
        "auto",
        "Generic segmentation offload: auto, as Linux does, off, or whole: bursts are never cut; overrides --hosts.",
        "",
        "hosts.*.gso",
    ),
    RaceOption(
        "hosts",
        "--hosts",
        "text",
        "KIND",
        "",
        "Kind of hosts: plain (the default), veth (containers, Mininet), card, server, paced (dragstrip list --host-kinds); all: each in turn.",
        "hosts",
        "hosts.*.preset",
    ),
    RaceOption(
        "seed",
        "--seed",
        "count",
        "N",
        "1",
        "Seed of the random numbers, of the first repeat.",
        "",
        "",
    ),
    RaceOption(
        "repeat",
        "--repeat",
        "count",
        "N",
        "1",
        "Number of repeats; their seeds count up from --seed.",
        "",
        "",
    ),
    RaceOption(
        "together",
        "--together",
        "flag",
        "TEXT",
        "",
        "Run all algorithms on the path at once.",
        "",
        "",
    ),
    RaceOption(
        "change",
        "--change",
        "texts",
        "'TIME KEY=VALUE ...'",
        "",
        "Change the bottleneck during the run: '20s rate=2mbit delay=80ms'; keys: rate, delay, rtt, loss, limit, state; repeatable.",
        "",
        "",
    ),
    RaceOption(
        "programs",
        "--program",
        "files",
        "FILE.cc",
        "",
        "An algorithm as a text (FILE.cc) or a policy (FILE.json, FILE.onnx), for the simulator, by the file's name; repeatable.",
        "",
        "",
    ),
    RaceOption(
        "no_rtts",
        "--no-rtts",
        "flag",
        "TEXT",
        "",
        "Record RTTs once an interval, not with every ACK, so that memory does not grow with packets: for 10^8 packets and more.",
        "",
        "",
    ),
)
"""All of them, in the order of help."""


class RaceOptions(TypedDict, total=False):
    """Keyword arguments of `dragstrip.compare` beside the algorithms."""

    path: str | Path | None
    """A path by name, such as 'home DSL' (dragstrip list --paths)."""
    rate: str | None
    """Rate of the bottleneck, such as 10mbit."""
    medium: str | None
    """Medium of the bottleneck instead of a rate: adsl2, wifi-n, ... (dragstrip list --media)."""
    trace: str | None
    """Recorded link instead of a rate (mahimahi's format)."""
    rtt: str | timedelta | None
    """Round-trip time of the empty path, such as 40ms."""
    queue: str | None
    """Queue of the bottleneck: 1bdp (the default; of a medium pfifo), 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel."""
    workload: str | None
    """What the flows do: bulk, web, 'poisson load=60% sizes=web-search', ... (dragstrip list --workloads)."""
    duration: str | timedelta | None
    """Duration of each run, such as 30s."""
    flows: int
    """Number of flows of each algorithm."""
    both_ways: bool
    """Also run the same flows in the other direction."""
    stagger: str | timedelta | None
    """Time between the starts of a run's flows, such as 5s."""
    loss: str | None
    """Random packet loss behind the bottleneck, such as 1%."""
    jitter: str | timedelta | None
    """Jitter: each packet is delayed by 0 to twice this, such as 5ms, and may be overtaken."""
    netem: str | None
    """Any impairment behind the bottleneck in netem's words, such as 'slot 5ms packets 20' (packets held and released together)."""
    up_rate: str | None
    """Rate of the return path, such as 1mbit; default: unlimited; with --both-ways, the forward rate."""
    up_medium: str | None
    """Medium of the return path, instead of a rate."""
    up_trace: str | None
    """Recorded link of the return path, instead of a rate."""
    up_queue: str | None
    """Queue of the return path."""
    receiver_on_line: bool
    """Uploads leave through the receiver's own interface, without a router w in front of it as the modem."""
    up_netem: str | None
    """Any impairment of the return path in netem's words, such as 'slot 4ms' (ACKs held and released together) or 'loss 10%'."""
    link: str | None
    """Bottleneck: htb, a shaper as tc sets it up (the default), or wire, an ideal store-and-forward link."""
    ecn: bool
    """Negotiate ECN. Queues that mark: fq_codel, and others with the word ecn: 'codel ecn'."""
    accurate_ecn: bool
    """Negotiate accurate ECN (RFC 9768), which counts marks; in the simulator, and in Linux since 7.0."""
    sysctl: Mapping[str, str]
    """Set a sysctl on all hosts."""
    notsent_lowat: str | None
    """Applications write only while fewer bytes than this are unsent, such as 131072 (TCP_NOTSENT_LOWAT)."""
    receiver_cc: str | None
    """Congestion control of the receivers' sockets: a listener that runs cubic refuses dctcp's and prague's ECN; default: the sender's."""
    gso: str | None
    """Generic segmentation offload: auto, as Linux does, off, or whole: bursts are never cut; overrides --hosts."""
    hosts: str | None
    """Kind of hosts: plain (the default), veth (containers, Mininet), card, server, paced (dragstrip list --host-kinds); all: each in turn."""
    seed: int
    """Seed of the random numbers, of the first repeat."""
    repeat: int
    """Number of repeats; their seeds count up from --seed."""
    together: bool
    """Run all algorithms on the path at once."""
    change: Sequence[str]
    """Change the bottleneck during the run: '20s rate=2mbit delay=80ms'; keys: rate, delay, rtt, loss, limit, state."""
    programs: Mapping[str, str]
    """An algorithm as a text (FILE.cc) or a policy (FILE.json, FILE.onnx), for the simulator, by the file's name."""
    no_rtts: bool
    """Record RTTs once an interval, not with every ACK, so that memory does not grow with packets: for 10^8 packets and more."""


__all__ = ["ALGORITHMS", "OPTIONS", "SEED_MAX", "RaceOption", "RaceOptions"]
