"""`dragstrip compare`: congestion controls on a path."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli import completion, words
from dragstrip.cli.execute import check_twice, execute
from dragstrip.cli.options import (
    BOTH,
    Check,
    EngineOption,
    Figures,
    JsonFlag,
    Load,
    Out,
    Report,
    TimeLimit,
    Workers,
)


def compare(
    algorithms: Annotated[
        list[str],
        typer.Argument(
            metavar="ALGORITHM...",
            help="Such as reno cubic:beta=0.8 bbr*4@20ms: options, number of flows, own RTT.",
            autocompletion=completion.algorithms,
        ),
    ],
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            help="A known path, such as 'home DSL' (dragstrip list --paths).",
            autocompletion=completion.paths,
        ),
    ] = None,
    rate: Annotated[str | None, typer.Option("--rate", help="Of the bottleneck, such as 10mbit.")] = None,
    medium: Annotated[
        str | None,
        typer.Option(
            "--medium",
            help="Instead of a rate: adsl2, wifi-n, ... (dragstrip list --media).",
            autocompletion=completion.media,
        ),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option("--trace", metavar="FILE", help="Instead of a rate: a recorded link (mahimahi format)."),
    ] = None,
    rtt: Annotated[
        str | None, typer.Option("--rtt", help="Round-trip time of the empty path, such as 40ms.")
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option(
            "--queue", help="Of the bottleneck: 1bdp, 100ms, or the words of tc, such as 'bfifo limit 200kb'."
        ),
    ] = None,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="What the flows do: bulk, web, rrul (dragstrip list --workloads).",
            autocompletion=completion.workloads,
        ),
    ] = "bulk",
    duration: Annotated[str, typer.Option("--duration", help="Of each run, such as 30s.")] = "30s",
    flows: Annotated[int, typer.Option("--flows", min=1, help="Flows of each algorithm.")] = 1,
    both_ways: Annotated[
        bool, typer.Option("--both-ways", help="As many flows from the receiver to the senders.")
    ] = False,
    stagger: Annotated[
        str | None, typer.Option("--stagger", help="Between the starts of a run's flows, such as 5s.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", help="Random loss behind the bottleneck, such as 1%.")
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option("--jitter", help="Behind the bottleneck: 0 to twice this, such as 5ms; it reorders."),
    ] = None,
    up_rate: Annotated[str | None, typer.Option("--up-rate", help="Of the return path: 1mbit.")] = None,
    up_medium: Annotated[
        str | None, typer.Option("--up-medium", help="Of the return path, instead of a rate.")
    ] = None,
    up_trace: Annotated[
        str | None, typer.Option("--up-trace", metavar="FILE", help="Of the return path, instead of a rate.")
    ] = None,
    up_queue: Annotated[str | None, typer.Option("--up-queue", help="Queue of the return path.")] = None,
    ecn: Annotated[
        bool, typer.Option("--ecn", help="Hosts negotiate ECN; whether the queue marks is part of --queue.")
    ] = False,
    sysctl: Annotated[
        list[str] | None, typer.Option("--sysctl", metavar="KEY=VALUE", help="For all hosts; repeatable.")
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            "--link", help="htb: shaped as tc does it; wire: ideal store and forward.", show_default="htb"
        ),
    ] = None,
    gso: Annotated[
        str, typer.Option("--gso", help="auto: TCP builds bursts of several segments, as Linux does; off.")
    ] = "auto",
    together: Annotated[bool, typer.Option("--together", help="All algorithms on the path at once.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 1,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="With seeds counting up.")] = 1,
    engine: Annotated[str, typer.Option("--engine", help=BOTH)] = "sim",
    engine_option: EngineOption = None,
    load: Load = None,
    time_limit: TimeLimit = None,
    check: Check = False,
    out: Out = None,
    workers: Workers = None,
    report: Report = True,
    figures: Figures = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print the experiment that this means, as TOML; run nothing.")
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

    wanted = words.figures(figures, report)
    limits = words.time_limit(time_limit)
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
        engine_options=words.engine_options(engine_option or []),
        load=load or [],
    )
    if show:
        from dragstrip import toml

        typer.echo(toml.written(described.content()), nl=False)
        return
    from dragstrip.runner import plan  # after a misspelt option was reported: it loads Arrow

    planned = reworded(lambda: plan(described))
    if check:
        check_twice(planned, out, workers, limits, as_json)
    else:
        execute(planned, out, "compare", workers, limits, report, wanted, as_json)
