"""The page of class trees on simulator and kernel, docs/reference/agreement-trees.md.

`python -m tools.tree_agreement docs/reference/agreement-trees.md` runs every tree of validation/trees on the kernel of
engine `vm` and on the simulator, and compares each flow's goodput and round-trip time and the tree's drops. A second
argument takes only the trees whose names contain it, and prints the page instead of writing it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Protocol, TypeVar

from dragstrip.engines import named
from dragstrip.engines.contract import Json, Progress
from dragstrip.engines.recall import recall
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import expand
from dragstrip.io import untrusted
from dragstrip.io.files import write_text
from dragstrip.model.recording import Recording
from dragstrip.runs import run_parallel
from dragstrip.studies.validation.both import lengthened

ROOT = Path(__file__).parents[1]
TREES = ROOT / "validation" / "trees"
CAUSES = "causes.toml"
"""File beside the trees: why a figure differs, by tree and figure."""
SIZE_MAX = 1 << 20

KERNEL_RUNS = 3
SIMULATOR_RUNS = 9
STEP_NS = 5_000_000
"""Run number k of the kernel, from 0: each flow starts k of these after the one before it."""
SMALL_STEP_NS = 200_000
"""The simulator makes these runs again with each flow so much later, and again with twice that."""

GOODPUT_LIMIT = 3.0
RTT_LIMIT = 5.0
DROPS_LIMIT = 10.0
DROPS_FEW = 3.0
"""Packets by which drops may differ where a share of them is less."""


@dataclass(frozen=True)
class Run:
    """Figures of one run."""

    goodputs: list[float]
    """Mbit/s of each flow."""
    rtts: list[float | None]
    """Median of each TCP flow's smoothed RTT in ms; None for datagrams."""
    drops: float
    """Packets that the tree has dropped."""


@dataclass(frozen=True)
class Figure:
    """One quantity of a tree on both engines."""

    name: str
    unit: str
    kernel: list[float]
    simulator: list[float]
    limit: float
    """Per cent."""
    few: float = 0.0
    """The error, in the figure's unit, that is always within the limit."""

    @property
    def error(self) -> float:
        """Difference of the means in per cent of the kernel's."""
        kernel, simulator = fmean(self.kernel), fmean(self.simulator)
        return abs(simulator - kernel) / kernel * 100 if kernel else (0.0 if not simulator else 100.0)

    @property
    def agrees(self) -> bool:
        """True when the means are within the limit."""
        return self.error <= self.limit or abs(fmean(self.simulator) - fmean(self.kernel)) <= self.few

    @property
    def overlaps(self) -> bool:
        """True when the ranges of both engines' runs have a value in common."""
        return min(self.kernel) <= max(self.simulator) and min(self.simulator) <= max(self.kernel)


@dataclass
class Tree:
    """A tree, and its figures."""

    name: str
    title: str
    scenario: Json
    labels: list[str]
    figures: list[Figure] = field(default_factory=list)
    release: str = ""
    refusal: str = ""
    """Why the kernel did not run it."""

    @property
    def key(self) -> str:
        """Name of the tree among all."""
        return self.name


def trees(only: str = "") -> list[Tree]:
    """Return the trees whose names contain `only`; raises `BadInputError` if there is none."""
    selected = []
    for file in sorted(TREES.glob("*.toml")):
        if file.name == CAUSES or only not in file.stem:
            continue
        experiment, _ = catalogue.load(str(file), "sim")
        (run,) = expand(experiment)
        labels = [flow["label"] for flow in run.scenario["flows"]]
        selected.append(Tree(file.stem, experiment.title, run.scenario, labels))
    if not selected:
        raise BadInputError("TREE", only, "a part of the name of a file in validation/trees", "command line")
    return selected


def figures_of(recording: Recording) -> Run:
    """Return the figures of a run."""
    flows, samples, queues = (recording[name] for name in ("flows", "samples", "queues"))
    goodputs, rtts = [], []
    rows = list(zip(samples["flow"].to_pylist(), samples["srtt_ns"].to_pylist(), strict=True))
    for flow in flows.to_pylist():
        goodputs.append(flow["bytes_received"] * 8e3 / (flow["stop_ns"] - flow["start_ns"]))
        own = [rtt / 1e6 for number, rtt in rows if number == flow["flow"] and rtt]
        rtts.append(median(own) if own else None)
    last = {row["link"]: row["dropped"] for row in queues.to_pylist()}
    return Run(goodputs, rtts, float(sum(last.values())))


def measure(tree: Tree, progress: Progress) -> Tree:
    """Run a tree on both engines; a tree that the kernel does not take has the reason."""
    kernel = []
    path = tree.scenario
    for number in range(KERNEL_RUNS):
        try:
            recording = recall(named("vm"), staggered(tree.scenario, number), {}, progress)
        except DragstripError as error:
            tree.refusal = str(error)
            return tree
        kernel.append(figures_of(recording))
        path = lengthened(tree.scenario, recording.provenance["verified"]["idle_rtt_ns"])
        tree.release = recording.provenance["kernel"]["release"]
    simulator = []
    for number in range(SIMULATOR_RUNS):
        recording = named("sim").run(staggered(path, number), {}, progress)
        simulator.append(figures_of(recording))
    tree.figures = list(figures_between(tree.labels, kernel, simulator))
    return tree


def staggered(scenario: Json, number: int) -> Json:
    """Return the scenario of a run: another seed, and flows that start one after the other."""
    repetition, step = divmod(number, KERNEL_RUNS)
    apart_ns = step * STEP_NS + repetition * SMALL_STEP_NS
    flows = [
        {**flow, "start_ns": flow.get("start_ns", 0) + index * apart_ns}
        for index, flow in enumerate(scenario["flows"])
    ]
    return {**scenario, "seed": 1 + number, "flows": flows}


def figures_between(
    labels: Sequence[str], kernel: Sequence[Run], simulator: Sequence[Run]
) -> Iterator[Figure]:
    """Return the figures of the flows with these labels, and the drops."""
    for index, label in enumerate(labels):
        on_kernel, in_model = ([run.goodputs[index] for run in runs] for runs in (kernel, simulator))
        yield Figure(f"{label}: goodput", "Mbit/s", on_kernel, in_model, GOODPUT_LIMIT)
    for index, label in enumerate(labels):
        on_kernel, in_model = (
            [rtt for run in runs if (rtt := run.rtts[index]) is not None] for runs in (kernel, simulator)
        )
        if on_kernel and in_model:
            yield Figure(f"{label}: RTT", "ms", on_kernel, in_model, RTT_LIMIT)
    on_kernel, in_model = ([run.drops for run in runs] for runs in (kernel, simulator))
    yield Figure("drops", "", on_kernel, in_model, DROPS_LIMIT, DROPS_FEW)


def _causes(done: Sequence[Tree]) -> dict[str, dict[str, str]]:
    """Return the causes of differences by tree and figure; raises `DragstripError` for one of a figure that agrees."""
    text = untrusted.text(TREES / CAUSES, SIZE_MAX, "the causes of differences")
    causes: dict[str, dict[str, str]] = tomllib.loads(text)
    for tree in done:
        outside = {figure.name for figure in tree.figures if not figure.agrees}
        for name in causes.get(tree.name, {}):
            if name not in outside:
                raise DragstripError(
                    f"{CAUSES}: {tree.name} agrees in {name!r}: its cause is to be taken out"
                )
    return causes


def number_text(value: float) -> str:
    """Return a figure in three digits, or whole."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    """Return the range of some figures."""
    low, high = number_text(min(values)), number_text(max(values))
    return low if low == high else f"{low} to {high}"


def _standings(done: Sequence[Tree]) -> Iterator[str]:
    yield "| figure | limit | within it | outside, but the engines' ranges overlap | outside |"
    yield "|---|---|---|---|---|"
    kinds = [
        ("goodput of a flow", "goodput", f"{GOODPUT_LIMIT:.0f} %"),
        ("median RTT of a TCP flow", "RTT", f"{RTT_LIMIT:.0f} %"),
        ("drops of a tree", "drops", f"{DROPS_LIMIT:.0f} % or {DROPS_FEW:.0f} packets"),
    ]
    for kind, ending, limit in kinds:
        figures = [figure for tree in done for figure in tree.figures if figure.name.endswith(ending)]
        within = sum(figure.agrees for figure in figures)
        chance = sum(figure.overlaps and not figure.agrees for figure in figures)
        outside = len(figures) - within - chance
        yield f"| {kind} | {limit} | {within} of {len(figures)} | {chance} | {outside} |"


def _outside(done: Sequence[Tree]) -> Iterator[str]:
    causes = _causes(done)
    yield "| tree | figure | kernel | simulator | off by | cause |"
    yield "|---|---|---|---|---|---|"
    for tree in done:
        for figure in tree.figures:
            if figure.agrees:
                continue
            usual = "chance: the ranges overlap" if figure.overlaps else "not known"
            cause = causes.get(tree.name, {}).get(figure.name, usual)
            cells = (spread(figure.kernel), spread(figure.simulator), f"{figure.error:.1f} %")
            yield f"| {tree.name} | {figure.name} | {' | '.join(cells)} | {cause} |"


def _cells(tree: Tree, ending: str) -> tuple[str, str, str]:
    figures = [figure for figure in tree.figures if figure.name.endswith(ending)]
    kernel = ", ".join(number_text(fmean(figure.kernel)) for figure in figures)
    simulator = ", ".join(number_text(fmean(figure.simulator)) for figure in figures)
    errors = [f"{figure.error:.1f}" for figure in figures]
    marked = [
        error if figure.agrees else f"**{error}**" for error, figure in zip(errors, figures, strict=True)
    ]
    return kernel, simulator, ", ".join(marked)


def page(selected: Sequence[Tree], command: str) -> str:
    """Return the page's text."""
    done = [tree for tree in selected if not tree.refusal]
    seconds = sorted({tree.scenario["duration_ns"] / 1e9 for tree in done})
    lasts = " or ".join(f"{value:g}" for value in seconds)
    releases = ", ".join(sorted({tree.release for tree in done}))
    agreeing = sum(all(figure.agrees for figure in tree.figures) for tree in done)
    grown = sum(any(link["qdisc"]["kind"] == "tc" for link in tree.scenario["links"]) for tree in done)
    lines = [
        f"<!-- Written by `{command}`: do not edit. -->",
        "# Class trees on the simulator and on a kernel\n",
        f"{len(done)} queues of routers as people write them, {grown} of them [class trees](../how-to/class-trees.md) "
        f"and the others cake that shapes by itself, each set up on Linux {releases} "
        f"(engine [vm](../how-to/vm.md)) by the messages that tc sends, and in the simulator: two to four flows, "
        f"{lasts} s. The files are in `validation/trees`. Written by\n",
        f"    {command}\n",
        f"The kernel runs each {KERNEL_RUNS} times: the flows start together, then {STEP_NS / 1e6:g} ms apart, then twice "
        "that. The simulator makes the same runs on a path with the time that the kernel's hosts take themselves, as pings "
        f"show it, and each again with flows {SMALL_STEP_NS / 1e6:g} and {2 * SMALL_STEP_NS / 1e6:g} ms further apart: with "
        "a few flows in a queue that decides whose packet is dropped, so that the spread shows what chance does. Means are "
        "compared.\n",
        *_standings(done),
        "",
        f"In {agreeing} of {len(done)} trees every figure is within its limit. RTT: the median of the sender's smoothed "
        "RTT, every 100 ms. Drops: of the whole tree, with those of policers.\n",
        "## Outside\n",
        *_outside(done),
        "\n## All trees\n",
        "Means in the order of the flows, Mbit/s and ms; errors in per cent; bold: outside.\n",
        "| tree | flows | goodput, kernel | simulator | off by | RTT, kernel | simulator | off by | drops, kernel "
        "| simulator |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for tree in done:
        cells = [tree.title, ", ".join(tree.labels), *_cells(tree, "goodput"), *_cells(tree, "RTT")]
        kernel, simulator, error = _cells(tree, "drops")
        cells += [kernel, f"**{simulator}**" if "*" in error else simulator]
        lines.append(f"| {' | '.join(cells)} |")
    refused = [tree for tree in selected if tree.refusal]
    if refused:
        lines += ["\n## Refused by the kernel's engine\n", "| tree | why |", "|---|---|"]
        lines += [f"| {tree.title} | {tree.refusal} |" for tree in refused]
    return "\n".join(lines) + "\n"


class Named(Protocol):
    """A case with a name to show while it is measured."""

    @property
    def key(self) -> str:
        """Name of the case among all."""


T = TypeVar("T", bound=Named)


def write_page(
    tool: str,
    words: Sequence[str],
    cases: Callable[[str], list[T]],
    measure: Callable[[T, Progress], T],
    page: Callable[[Sequence[T], str], str],
) -> None:
    """Write the page of all cases into the file `words[0]`, or print one of those that `words[1]` selects.

    `tool` is the module's name, for the page's first line. Raises `BadInputError` for other arguments.
    """
    if len(words) not in (1, 2):
        raise BadInputError(
            "arguments", " ".join(words), "FILE, and perhaps a part of cases' names", "command line"
        )
    file, only = Path(words[0]), words[1] if len(words) > 1 else ""
    selected = cases(only)
    measured = run_parallel(
        measure,
        selected,
        finished=lambda index, _: print(selected[index].key, file=sys.stderr),
    )
    text = page(measured, f"python -m tools.{tool} {words[0]}")
    if only:
        print(text)
    else:
        write_text(file, text)


if __name__ == "__main__":
    try:
        write_page("tree_agreement", sys.argv[1:], trees, measure, page)
    except DragstripError as error:
        raise SystemExit(f"error: {error}") from error
