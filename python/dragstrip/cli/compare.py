"""`dragstrip compare`: congestion controls on a path."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.capture import asked
from dragstrip.cli.execute import check_twice, execute
from dragstrip.cli.options import (
    SEED_MAX,
    CaptureAt,
    Check,
    EngineOption,
    Engines,
    Figures,
    JsonFlag,
    LabOption,
    Load,
    Out,
    Report,
    Snaplen,
    Strict,
    TimeLimit,
    Width,
    Workers,
)
from dragstrip.errors import BadInputError


def compare(
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM",
            help="Such as reno cubic:beta=0.8 bbr*4@20ms: options, number of flows, own RTT.",
            autocompletion=completion.algorithms,
        ),
    ],
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="NAME",
            help="A path by name, such as 'home DSL' (dragstrip list --paths).",
            autocompletion=completion.paths,
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="RATE", help="Rate of the bottleneck, such as 10mbit.")
    ] = None,
    medium: Annotated[
        str | None,
        typer.Option(
            "--medium",
            metavar="NAME",
            help="Instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
            autocompletion=completion.media,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Instead of a rate: a recorded link (mahimahi format)."),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option("--rtt", metavar="TIME", help="Round-trip time of the empty path, such as 40ms."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue",
            metavar="QUEUE",
            help="Queue of the bottleneck: 1bdp, 100ms, or in tc's words: 'bfifo limit 200kb', fq_codel.",
        ),
    ] = None,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            metavar="NAME",
            help="What the flows do: bulk, web, rrul (dragstrip list --workloads).",
            autocompletion=completion.workloads,
        ),
    ] = "bulk",
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Duration of each run, such as 30s.")
    ] = "30s",
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", min=1, help="Number of flows of each algorithm.")
    ] = 1,
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="Also run the same flows in the other direction.")
    ] = False,
    stagger: Annotated[
        str | None,
        typer.Option(
            "--stagger", metavar="TIME", help="Time between the starts of a run's flows, such as 5s."
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option("--loss", metavar="SHARE", help="Random packet loss behind the bottleneck, such as 1%."),
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option(
            "--jitter",
            metavar="TIME",
            help="Delay each packet by 0 to twice this, such as 5ms; packets are reordered.",
        ),
    ] = None,
    up_rate: Annotated[
        str | None,
        typer.Option(
            "--up-rate", metavar="RATE", help="Rate of the return path, such as 1mbit; default: unlimited."
        ),
    ] = None,
    up_medium: Annotated[
        str | None,
        typer.Option("--up-medium", metavar="NAME", help="Medium of the return path, instead of a rate."),
    ] = None,
    up_trace: Annotated[
        str | None,
        typer.Option(
            "--up-trace", metavar="FILE", help="Recorded link of the return path, instead of a rate."
        ),
    ] = None,
    up_queue: Annotated[
        str | None, typer.Option("--up-queue", metavar="QUEUE", help="Queue of the return path.")
    ] = None,
    ecn: Annotated[
        bool,
        typer.Option(
            "--ecn",
            help="Negotiate ECN. Queues that mark: fq_codel, and others with the word ecn: 'codel ecn'.",
        ),
    ] = False,
    sysctl: Annotated[
        list[str] | None,
        typer.Option("--sysctl", metavar="KEY=VALUE", help="Set a sysctl on all hosts; repeatable."),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="KIND",
            help="Bottleneck: htb, a shaper as set up by tc, or wire, an ideal store-and-forward link.",
            show_default="htb",
        ),
    ] = None,
    gso: Annotated[
        str,
        typer.Option(
            "--gso",
            metavar="auto|off|whole",
            help="Generic segmentation offload: auto, as Linux does, off, or whole: never cut.",
        ),
    ] = "auto",
    together: Annotated[
        bool, typer.Option("--together", help="Run all algorithms on the path at once.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", min=0, max=SEED_MAX, help="Seed of the random numbers."),
    ] = 1,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat", metavar="N", min=1, help="Number of repeats; their seeds count up from --seed."
        ),
    ] = 1,
    engine: Engines = "sim",
    engine_option: EngineOption = None,
    load: Load = None,
    strict: Strict = False,
    lab: LabOption = None,
    time_limit: TimeLimit = None,
    check: Check = False,
    capture: CaptureAt = None,
    snaplen: Snaplen = None,
    out: Out = None,
    workers: Workers = None,
    report: Report = True,
    figures: Figures = None,
    width: Width = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the comparison as an experiment in TOML; run nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare congestion controls on a path, each alone or all together.

    Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s
    reno cubic vegas cdg bbr

    Example: dragstrip compare --path "home DSL" --queue fq_codel cubic bbr
    """
    from dragstrip.comparison import compare as describe
    from dragstrip.comparison import reworded

    wanted = words.figures(figures, width, report)
    limits = words.time_limit(time_limit)
    packets = asked(capture, snaplen)
    if check and packets:
        raise BadInputError(
            "--capture", None, "is not for --check, which keeps no recordings", "command line"
        )
    described = describe(
        algorithms,
        path=path,
        rate=rate,
        medium=medium,
        trace=trace,
        rtt=rtt,
        queue=queue,
        duration=duration,
        workload=workload,
        flows=flows,
        both_ways=both_ways,
        stagger=stagger,
        loss=loss,
        jitter=jitter,
        up_rate=up_rate,
        up_medium=up_medium,
        up_trace=up_trace,
        up_queue=up_queue,
        link=link,
        ecn=ecn,
        sysctl=words.settings(sysctl or []),
        gso=gso,
        seed=seed,
        repeat=repeat,
        together=together,
        engine=engine,
        engine_options=words.with_strict(words.engine_options(engine_option or [], lab), strict),
        load=load or [],
    )
    if show:
        from dragstrip import toml

        typer.echo(toml.written(described.content()), nl=False)
        return
    from dragstrip.runner import captured, plan  # after a misspelt option was reported: it loads Arrow
    from dragstrip.spoken import spoken

    with spoken("expanding the experiment ...", as_json):
        planned = captured(reworded(lambda: plan(described)), packets)
    if check:
        check_twice(planned, out, workers, limits, as_json)
    else:
        execute(planned, out, "compare", workers, limits, report, wanted, as_json)
