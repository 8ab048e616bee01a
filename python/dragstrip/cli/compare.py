"""`dragstrip compare`: congestion controls on a path."""

from __future__ import annotations

from typing import Annotated

import typer

from dragstrip.cli import words
from dragstrip.cli.capture import asked
from dragstrip.cli.execute import check_twice, execute
from dragstrip.cli.options import (
    CaptureAt,
    Check,
    EngineOption,
    Engines,
    Figures,
    JsonFlag,
    LabOption,
    Load,
    Out,
    Program,
    Report,
    Snaplen,
    Strict,
    TimeLimit,
    Width,
    Workers,
)
from dragstrip.cli.race import (
    AccurateEcn,
    Algorithms,
    BothWays,
    Change,
    Ecn,
    Flows,
    Gso,
    Jitter,
    Link,
    Loss,
    Medium,
    PathName,
    Queue,
    RaceDuration,
    RaceRepeat,
    RaceSeed,
    Rate,
    Rtt,
    Stagger,
    Sysctl,
    Together,
    Trace,
    UpMedium,
    UpQueue,
    UpRate,
    UpTrace,
    Workload,
)
from dragstrip.errors import BadInputError


def compare(
    algorithms: Algorithms,
    path: PathName = None,
    rate: Rate = None,
    medium: Medium = None,
    trace: Trace = None,
    rtt: Rtt = None,
    queue: Queue = None,
    workload: Workload = "bulk",
    duration: RaceDuration = "30s",
    flows: Flows = 1,
    both_ways: BothWays = False,
    stagger: Stagger = None,
    loss: Loss = None,
    jitter: Jitter = None,
    up_rate: UpRate = None,
    up_medium: UpMedium = None,
    up_trace: UpTrace = None,
    up_queue: UpQueue = None,
    ecn: Ecn = False,
    accurate_ecn: AccurateEcn = False,
    sysctl: Sysctl = None,
    link: Link = None,
    gso: Gso = "auto",
    together: Together = False,
    change: Change = None,
    seed: RaceSeed = 1,
    repeat: RaceRepeat = 1,
    engine: Engines = "sim",
    engine_option: EngineOption = None,
    load: Load = None,
    program: Program = None,
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
    from dragstrip.programs import of_files

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
        accurate_ecn=accurate_ecn,
        sysctl=words.settings(sysctl or []),
        gso=gso,
        seed=seed,
        repeat=repeat,
        together=together,
        change=change or [],
        engine=engine,
        engine_options=words.with_strict(words.engine_options(engine_option or [], lab), strict),
        load=load or [],
        programs=of_files(program or []),
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
