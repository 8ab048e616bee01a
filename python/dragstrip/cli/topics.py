"""`dragstrip help TOPIC`: the pages of docs/ in a few lines each, for the terminal."""

from __future__ import annotations

from typing import Annotated

import typer

TOPICS = {
    "algorithms": (
        "Congestion controls, their parameters, several at once",
        """An algorithm is a name, optionally with parameters, a number of flows and its own RTT:

  dragstrip compare --path LTE cubic bbr vegas
  dragstrip compare --path LTE cubic cubic:beta=0.8,hystart=0
  dragstrip compare --path LTE --together cubic bbr*4@80ms

`dragstrip list --algorithms` lists them with their parameters and defaults. --together runs all of them
on the path at once; without it each has the path to itself.""",
        "docs/how-to/compare.md, docs/reference/algorithms.md, docs/how-to/new-algorithm.md",
    ),
    "paths": (
        "Paths by name, or by rate, round-trip time and queue",
        """A path is a name, or a bottleneck's rate (or medium, or trace), a round-trip time and a queue:

  dragstrip compare --path "home DSL" cubic bbr
  dragstrip compare --path cable --queue fq_codel cubic bbr
  dragstrip compare --rate 50mbit --rtt 30ms --queue 1bdp cubic bbr
  dragstrip compare --medium adsl2 --rtt 30ms --queue 300ms cubic bbr

`dragstrip list --paths` and `--media` list them. --loss, --jitter, --up-rate, --up-queue add to a path.""",
        "docs/how-to/compare.md, docs/reference/paths.md",
    ),
    "queues": (
        "Queues in the words of tc, or sized relative to the path",
        """A queue is written in the words of tc(8), or sized relative to the path:

  --queue "bfifo limit 200kb"     drop-tail, holds 200 KiB
  --queue 1bdp                    one bandwidth-delay product
  --queue 300ms                   300 ms at the bottleneck's rate
  --queue fq_codel                with tc's defaults, which mark ECN
  --queue "codel limit 100 target 10ms ecn" --ecn

`dragstrip list --queues` lists the disciplines and their words; `dragstrip tc-import router.sh` imports
the tc commands of a router. To see whether another queue helps, put
both into one experiment (dragstrip help experiments): "path.queue" = ["300ms", "fq_codel"] under [vary].
Its report compares them.""",
        "docs/how-to/compare.md, docs/reference/qdiscs.md",
    ),
    "workloads": (
        "What the flows do: bulk, web, rrul, ...",
        """What the flows do; the default is bulk transfer:

  dragstrip compare --path LTE --workload web cubic bbr
  dragstrip compare --path cable --workload rrul cubic bbr
  dragstrip compare --path cable --workload tcp_4up cubic bbr
  dragstrip compare --path LTE --flows 3 --stagger 5s --both-ways cubic bbr

`dragstrip list --workloads` lists them. rrul and tcp_* are flent's tests, without DSCP marks.""",
        "docs/reference/paths.md#workloads",
    ),
    "experiments": (
        "Experiments: TOML files, what varies, claims",
        """An experiment is a TOML file: a path, flows, what varies, claims. Start from a comparison:

  dragstrip compare --path LTE --show cubic bbr > mine.toml

The file ends with what varies. Add lines to that table; several fields multiply:

  [vary]
  "flows.cc" = ["cubic", "bbr"]
  "path.queue" = ["1bdp", "fq_codel"]

and run it:

  dragstrip show mine.toml
  dragstrip run mine.toml

`dragstrip list` lists the experiments of the catalogue; `dragstrip show NAME` shows what one runs.""",
        "docs/how-to/experiments.md",
    ),
    "sweeps": (
        "Sweeps: many combinations, and maps of who wins where",
        """Many values of many fields, and a map of who wins where:

  dragstrip sweep mine.toml --vary path.rate=1mbit..100mbit:log:8 --vary path.queue=1bdp,fq_codel \\
    --vary flow.cc=cubic,bbr --repeat 5 --out map

The same command resumes an interrupted sweep; --dry-run estimates time and disk.
In Python: dragstrip.load("map") is a table of all figures.""",
        "docs/how-to/sweeps.md",
    ),
    "engines": (
        "Engines: the simulator, and real Linux kernels",
        """sim, the default, simulates. vm boots a stock Linux kernel in virtual time, netns uses this
machine's own kernel in real time. None of these needs root. ssh runs on your lab's hosts in real time:

  dragstrip kernel fetch
  dragstrip compare --engine vm --path LTE --duration 10s cubic bbr
  dragstrip compare --engine sim,vm --path LTE --duration 10s cubic bbr

The last one runs both and reports how far apart they are. `dragstrip doctor` shows what is missing.""",
        "docs/how-to/vm.md, docs/how-to/netns.md, docs/how-to/lab.md, docs/reference/fidelity.md",
    ),
    "results": (
        "Results: the output folder, JSON, figures, DataFrames",
        """A run writes a folder: report.html, result.json, experiment.json and a recording per run.

  dragstrip compare --path LTE --json cubic bbr | jq '.runs[].flows[] | {cc, goodput_bps}'
  dragstrip report OUT --figures svg,png,pdf,csv
  dragstrip report OUT --figures pdf --width 84mm      as wide as a column of the paper

In Python: dragstrip.load("OUT") is a table with a row per flow and run;
dragstrip.load("OUT", "samples") is one of the recordings' tables.
`dragstrip list --measures` lists the figures.""",
        "docs/reference/result-json.md, docs/how-to/report.md, docs/reference/measures.md",
    ),
    "units": (
        "Units of rates, sizes, times and shares",
        """Quantities have a unit, in tc's grammar:

  rates   10mbit, 1.5gbit, 500kbit: 1000-based; bps means bytes: 5mbps is 40 Mbit/s
  sizes   200kb, 1mb, 1500b: 1024-based, so 200kb is 204,800 bytes
  times   40ms, 100us, 30s
  shares  1%

Output has Mbit/s, ms, kB (1000 bytes) and KiB (1024).""",
        "docs/how-to/experiments.md#quantities",
    ),
}
"""Title, text and further pages of each topic."""


def _topics(typed: str) -> list[str]:
    return [name for name in TOPICS if name.startswith(typed)]


def help_(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(help="A topic or a command; without one: the list.", autocompletion=_topics),
    ] = None,
) -> None:
    """Explain a topic: algorithms, paths, queues, workloads, experiments, sweeps, engines, results, units.

    Example: dragstrip help paths
    """
    from dragstrip.errors import BadInputError, nearest

    if topic is None:
        typer.echo("Topics of dragstrip help TOPIC:")
        for name, (title, _, _) in TOPICS.items():
            typer.echo(f"  {name:<12} {title}")
        return
    if topic in TOPICS:
        title, text, pages = TOPICS[topic]
        typer.echo(f"{title}\n\n{text}\n\nMore: {pages}")
        return
    group = context.parent.command if context.parent is not None else None
    commands = getattr(group, "commands", {})
    if topic in commands:
        command = commands[topic]
        with command.make_context(topic, [], parent=context.parent, resilient_parsing=True) as inner:
            typer.echo(command.get_help(inner))
        return
    topic_names = [*TOPICS, *commands]
    expected = f"a topic ({', '.join(TOPICS)}) or a command{nearest(topic, topic_names)}"
    raise BadInputError("TOPIC", topic, expected, "command line")
