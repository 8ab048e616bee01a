"""The options of a race, which `compare` and `play` share."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli import completion
from dragstrip.cli.options import SEED_MAX

Algorithms = Annotated[
    list[str],
    typer.Argument(
        metavar="ALGORITHM",
        help="Such as reno cubic:beta=0.8 bbr*4@20ms+5s: options, number of flows, own RTT, own start.",
        autocompletion=completion.algorithms,
    ),
]
PathName = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="NAME",
        help="A path by name, such as 'home DSL' (dragstrip list --paths).",
        autocompletion=completion.paths,
    ),
]
Rate = Annotated[
    str | None, typer.Option("--rate", metavar="RATE", help="Rate of the bottleneck, such as 10mbit.")
]
Medium = Annotated[
    str | None,
    typer.Option(
        "--medium",
        metavar="NAME",
        help="Instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
        autocompletion=completion.media,
    ),
]
Trace = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Instead of a rate: a recorded link (mahimahi format)."),
]
Rtt = Annotated[
    str | None,
    typer.Option("--rtt", metavar="TIME", help="Round-trip time of the empty path, such as 40ms."),
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="QUEUE",
        help="Queue of the bottleneck: 1bdp, 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel.",
    ),
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        metavar="NAME",
        help="What the flows do: bulk, web, rrul (dragstrip list --workloads).",
        autocompletion=completion.workloads,
    ),
]
RaceDuration = Annotated[
    str, typer.Option("--duration", metavar="TIME", help="Duration of each run, such as 30s.")
]
Flows = Annotated[int, typer.Option("--flows", metavar="N", min=1, help="Number of flows of each algorithm.")]
BothWays = Annotated[
    bool, typer.Option("--both-ways", help="Also run the same flows in the other direction.")
]
Stagger = Annotated[
    str | None,
    typer.Option("--stagger", metavar="TIME", help="Time between the starts of a run's flows, such as 5s."),
]
Loss = Annotated[
    str | None,
    typer.Option("--loss", metavar="SHARE", help="Random packet loss behind the bottleneck, such as 1%."),
]
Jitter = Annotated[
    str | None,
    typer.Option(
        "--jitter",
        metavar="TIME",
        help="Delay each packet by 0 to twice this, such as 5ms; packets are reordered.",
    ),
]
UpRate = Annotated[
    str | None,
    typer.Option(
        "--up-rate", metavar="RATE", help="Rate of the return path, such as 1mbit; default: unlimited."
    ),
]
UpMedium = Annotated[
    str | None,
    typer.Option("--up-medium", metavar="NAME", help="Medium of the return path, instead of a rate."),
]
UpTrace = Annotated[
    str | None,
    typer.Option("--up-trace", metavar="FILE", help="Recorded link of the return path, instead of a rate."),
]
UpQueue = Annotated[str | None, typer.Option("--up-queue", metavar="QUEUE", help="Queue of the return path.")]
Ecn = Annotated[
    bool,
    typer.Option(
        "--ecn",
        help="Negotiate ECN. Queues that mark: fq_codel, and others with the word ecn: 'codel ecn'.",
    ),
]
AccurateEcn = Annotated[
    bool,
    typer.Option(
        "--accurate-ecn",
        help="Negotiate accurate ECN (RFC 9768), which counts marks; the simulator has it, Linux since 6.18.",
    ),
]
Sysctl = Annotated[
    list[str] | None,
    typer.Option("--sysctl", metavar="KEY=VALUE", help="Set a sysctl on all hosts; repeatable."),
]
Link = Annotated[
    str | None,
    typer.Option(
        "--link",
        metavar="KIND",
        help="Bottleneck: htb, a shaper as set up by tc, or wire, an ideal store-and-forward link.",
        show_default="htb",
    ),
]
Gso = Annotated[
    str,
    typer.Option(
        "--gso",
        metavar="auto|off|whole",
        help="Generic segmentation offload: auto, as Linux does, off, or whole: never cut.",
    ),
]
Together = Annotated[bool, typer.Option("--together", help="Run all algorithms on the path at once.")]
Change = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        metavar="'TIME KEY=VALUE ...'",
        help="Change the bottleneck during the run: '20s rate=2mbit delay=80ms'; keys: rate, delay, rtt, "
        "loss, limit, state; repeatable.",
    ),
]
RaceSeed = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, max=SEED_MAX, help="Seed of the random numbers."),
]
RaceRepeat = Annotated[
    int,
    typer.Option("--repeat", metavar="N", min=1, help="Number of repeats; their seeds count up from --seed."),
]
