"""`dragstrip help TOPIC`: the pages of docs/ in a few lines each, and the glossary, for the terminal."""

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
    from dragstrip.display import glossary

    return [name for name in (*TOPICS, *glossary.names()) if name.startswith(typed.lower())]


def help_(
    context: typer.Context,
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="A topic, a command or a term such as bufferbloat; without one: the list.",
            autocompletion=_topics,
        ),
    ] = None,
) -> None:
    """Explain a topic (paths, queues, units, ...), a command, or a term of the field such as bufferbloat.

    Example: dragstrip help paths
    """
    if not topic:
        typer.echo(_contents())
        return
    words = " ".join(topic)
    if words in TOPICS:
        title, text, pages = TOPICS[words]
        typer.echo(f"{title}\n\n{text}\n\nMore: {pages}")
        return
    group = context.parent.command if context.parent is not None else None
    commands = getattr(group, "commands", {})
    if words in commands:
        command = commands[words]
        with command.make_context(words, [], parent=context.parent, resilient_parsing=True) as inner:
            typer.echo(command.get_help(inner))
        return
    _explain_term(words, [*TOPICS, *commands])


def _contents() -> str:
    """Return the list of topics and terms."""
    from textwrap import fill

    from dragstrip.display import glossary

    topics = "\n".join(f"  {name:<12} {title}" for name, (title, _, _) in TOPICS.items())
    terms = fill(
        ", ".join(glossary.terms()), 98, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )
    return f"Topics of dragstrip help TOPIC:\n{topics}\n\nTerms of dragstrip help TERM:\n{terms}"


def _explain_term(words: str, topics: list[str]) -> None:
    """Print a term of the glossary; raises `BadInputError` if neither a topic nor a term is called this."""
    from textwrap import fill

    from dragstrip.display import glossary
    from dragstrip.errors import BadInputError, nearest

    term = glossary.find(words)
    if term is None:
        expected = f"a topic ({', '.join(TOPICS)}), a command or a term of the field"
        raise BadInputError(
            "TOPIC", words, expected + nearest(words, [*topics, *glossary.names()]), "command line"
        )
    typer.echo(f"{term.heading}\n\n{fill(term.text, 98, break_on_hyphens=False)}\n")
    facts = {
        "Also": ", ".join(term.also),
        "Here": term.here,
        "Source": term.source,
        "See": ", ".join(term.see),
    }
    for label, value in facts.items():
        if value:
            typer.echo(f"{label + ':':<8}{value}")
