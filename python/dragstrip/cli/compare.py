"""`dragstrip compare`: congestion controls on a path."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli import words
from dragstrip.cli.execute import check_twice, execute
from dragstrip.cli.options import BOTH, Check, EngineOption, Figures, JsonFlag, Load, Out, Report, Workers


def compare(
    algorithms: Annotated[list[str], typer.Argument(metavar="ALGORITHM...", help="Such as reno cubic bbr.")],
    rate: Annotated[str, typer.Option("--rate", help="Of the bottleneck, such as 10mbit.")],
    rtt: Annotated[str, typer.Option("--rtt", help="Round-trip time of the empty path, such as 40ms.")],
    queue: Annotated[
        str, typer.Option("--queue", help="The bottleneck's queue in the words of tc: 'bfifo limit 200kb'.")
    ],
    duration: Annotated[str, typer.Option("--duration", help="Of each run, such as 30s.")] = "30s",
    flows: Annotated[int, typer.Option("--flows", min=1, help="Flows of each algorithm.")] = 1,
    loss: Annotated[
        str | None, typer.Option("--loss", help="Random loss behind the bottleneck, such as 1%.")
    ] = None,
    jitter: Annotated[
        str | None,
        typer.Option("--jitter", help="Behind the bottleneck: 0 to twice this, such as 5ms; it reorders."),
    ] = None,
    up_rate: Annotated[str | None, typer.Option("--up-rate", help="Of the return path: 1mbit.")] = None,
    up_queue: Annotated[str | None, typer.Option("--up-queue", help="Queue of the return path.")] = None,
    ecn: Annotated[
        bool, typer.Option("--ecn", help="Hosts negotiate ECN; whether the queue marks is part of --queue.")
    ] = False,
    sysctl: Annotated[
        list[str] | None, typer.Option("--sysctl", metavar="KEY=VALUE", help="For all hosts; repeatable.")
    ] = None,
    link: Annotated[
        str, typer.Option("--link", help="htb: shaped as tc does it; wire: ideal store and forward.")
    ] = "htb",
    gso: Annotated[
        str, typer.Option("--gso", help="auto: TCP builds bursts of several segments, as Linux does; off.")
    ] = "auto",
    together: Annotated[bool, typer.Option("--together", help="All algorithms on the path at once.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 1,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="With seeds counting up.")] = 1,
    engine: Annotated[str, typer.Option("--engine", help=BOTH)] = "sim",
    engine_option: EngineOption = None,
    load: Load = None,
    check: Check = False,
    out: Out = None,
    workers: Workers = None,
    report: Report = True,
    figures: Figures = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare congestion controls on a path, each alone or all together.

    Example: dragstrip compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 30s
    reno cubic vegas cdg bbr
    """
    from dragstrip.comparison import compare as describe
    from dragstrip.comparison import reworded

    wanted = words.figures(figures, report)
    described = describe(
        algorithms,
        rate=rate,
        rtt=rtt,
        queue=queue,
        duration=duration,
        flows=flows,
        loss=loss,
        jitter=jitter,
        up_rate=up_rate,
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
    from dragstrip.runner import plan  # after a misspelt option was reported: it loads Arrow

    planned = reworded(lambda: plan(described))
    if check:
        check_twice(planned, out, workers, as_json)
    else:
        execute(planned, out, "compare", workers, report, wanted, as_json)
