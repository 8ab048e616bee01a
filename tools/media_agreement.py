"""The page of links in the simulator's code under a kernel, docs/reference/agreement-media.md.

`python -m tools.media_agreement docs/reference/agreement-media.md` runs every case of validation/media on the kernel of
engine `vm` and on the simulator, and every case of validation/lines on the kernel with its own links and with the
simulator's. A second argument takes only the files whose names contain it, and prints the page instead of writing it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragstrip.engines import named
from dragstrip.engines.contract import Json, Options, Progress
from dragstrip.engines.recall import recall
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import expand
from dragstrip.io import untrusted
from dragstrip.model.recording import Recording
from tools.tree_agreement import (
    GOODPUT_LIMIT,
    RTT_LIMIT,
    Figure,
    Run,
    figures_between,
    figures_of,
    number_text,
    spread,
    write_page,
)

ROOT = Path(__file__).parents[1]
MEDIA, LINES = ROOT / "validation" / "media", ROOT / "validation" / "lines"
CAUSES = "causes.toml"
"""File beside the media: why a figure differs, by case and figure."""
SIZE_MAX = 1 << 20
KERNEL_RUNS = 2
SIMULATOR_RUNS = 6


@dataclass
class Case:
    """A path with an algorithm, and its figures."""

    file: str
    title: str
    name: str
    scenario: Json
    both_kernel: bool
    """On the kernel twice, the second time with its links in the simulator's code."""
    figures: list[Figure] = field(default_factory=list)
    release: str = ""
    late_us: int = 0
    """The 99th percentile of the lateness of the line that is latest."""
    idle: float = 1.0
    """Idle share of the guest's processor."""
    refusal: str = ""
    """Why the kernel did not run it."""

    @property
    def key(self) -> str:
        """Name of the case among all."""
        return f"{self.file} {self.name}"


def cases(only: str = "") -> list[Case]:
    """Return the cases of files whose names contain `only`; raises `BadInputError` if there is none."""
    selected = []
    for folder in (MEDIA, LINES):
        for file in sorted(folder.glob("*.toml")):
            if file.name == CAUSES or only not in file.stem:
                continue
            experiment, _ = catalogue.load(str(file), "sim")
            selected += [
                Case(file.stem, experiment.title, run.scenario["name"], run.scenario, folder == LINES)
                for run in expand(experiment)
            ]
    if not selected:
        expected = "a part of the name of a file in validation/media or validation/lines"
        raise BadInputError("CASE", only, expected, "command line")
    return selected


def measure(case: Case, progress: Progress) -> Case:
    """Run a case on both sides; one that the kernel does not take has the reason."""

    def on_kernel(number: int, options: Options) -> Recording:
        return recall(named("vm"), {**case.scenario, "seed": 1 + number}, options, progress)

    def in_simulator(number: int) -> Recording:
        return named("sim").run({**case.scenario, "seed": 1 + number}, {}, progress)

    try:
        kernel = [on_kernel(number, {}) for number in range(KERNEL_RUNS)]
        if case.both_kernel:
            other = [on_kernel(number, {"lines": "all"}) for number in range(KERNEL_RUNS)]
        else:
            other = [in_simulator(number) for number in range(SIMULATOR_RUNS)]
    except DragstripError as error:
        case.refusal = str(error)
        return case
    carried = other if case.both_kernel else kernel
    reports = [recording.provenance["verified"] for recording in carried]
    case.late_us = max(
        direction["lateness"]["p99_ns"] // 1_000
        for report in reports
        for line in report["lines"]
        for direction in line["directions"]
    )
    case.idle = min(report["cpu_idle_share"] for report in reports)
    case.release = kernel[0].provenance["kernel"]["release"]
    labels = [flow["label"] for flow in case.scenario["flows"]]
    sides: list[list[Run]] = [[figures_of(one) for one in side] for side in (kernel, other)]
    case.figures = list(figures_between(labels, *sides))
    return case


def _causes(done: Sequence[Case]) -> dict[str, dict[str, str]]:
    """Return the causes of differences by case and figure; raises `DragstripError` for one of a figure that agrees."""
    text = untrusted.text(MEDIA / CAUSES, SIZE_MAX, "the causes of differences")
    causes: dict[str, dict[str, str]] = tomllib.loads(text)
    for case in done:
        outside = {figure.name for figure in _compared(case) if not figure.agrees}
        for name in causes.get(case.key, {}):
            if name not in outside:
                raise DragstripError(f"{CAUSES}: {case.key} agrees in {name!r}: its cause is to be taken out")
    return causes


def _compared(case: Case) -> list[Figure]:
    """The figures with a target: goodput and RTT."""
    return [figure for figure in case.figures if figure.name.endswith(("goodput", "RTT"))]


def _standings(done: Sequence[Case]) -> Iterator[str]:
    yield "| figure | limit | within it | outside, but the sides' ranges overlap | outside |"
    yield "|---|---|---|---|---|"
    kinds = [("goodput of a flow", "goodput", GOODPUT_LIMIT), ("median RTT of a flow", "RTT", RTT_LIMIT)]
    for kind, ending, limit in kinds:
        figures = [figure for case in done for figure in case.figures if figure.name.endswith(ending)]
        within = sum(figure.agrees for figure in figures)
        chance = sum(figure.overlaps and not figure.agrees for figure in figures)
        outside = len(figures) - within - chance
        yield f"| {kind} | {limit:.0f} % | {within} of {len(figures)} | {chance} | {outside} |"


def _outside(done: Sequence[Case], sides: str) -> Iterator[str]:
    causes = _causes(done)
    outside = [(case, figure) for case in done for figure in _compared(case) if not figure.agrees]
    if not outside:
        return
    yield f"\n| case | figure | {sides} | off by | cause |"
    yield "|---|---|---|---|---|---|"
    for case, figure in outside:
        usual = "chance: the ranges overlap" if figure.overlaps else "not known"
        cause = causes.get(case.key, {}).get(figure.name, usual)
        cells = (spread(figure.kernel), spread(figure.simulator), f"{figure.error:.1f} %")
        yield f"| {case.key} | {figure.name} | {' | '.join(cells)} | {cause} |"


def _cells(case: Case, ending: str) -> Iterator[str]:
    figures = [figure for figure in case.figures if figure.name.endswith(ending)]
    for side in ("kernel", "simulator"):
        yield ", ".join(number_text(sum(v) / len(v)) for v in (getattr(figure, side) for figure in figures))
    yield ", ".join(
        f"{figure.error:.1f}" if figure.agrees else f"**{figure.error:.1f}**" for figure in figures
    )


def _table(done: Sequence[Case], sides: str) -> Iterator[str]:
    yield f"| path | algorithm | goodput, {sides} | off by | RTT, {sides} | off by | late, p99 | CPU idle |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for case in done:
        name = case.name if case.both_kernel else ", ".join(_algorithms(case))
        cells = [case.title, name, *_cells(case, "goodput"), *_cells(case, "RTT")]
        yield f"| {' | '.join(cells)} | {case.late_us} µs | {case.idle:.2f} |"


def _algorithms(case: Case) -> list[str]:
    return [flow["transport"]["cc"] for flow in case.scenario["flows"]]


def page(selected: Sequence[Case], command: str) -> str:
    """Return the page's text."""
    done = [case for case in selected if not case.refusal]
    media = [case for case in done if not case.both_kernel]
    own = [case for case in done if case.both_kernel]
    releases = ", ".join(sorted({case.release for case in done}))
    lines = [
        f"<!-- Written by `{command}`: do not edit. -->",
        "# Links in the simulator's code under a kernel\n",
        f"Linux {releases} in virtual time (engine [vm](../how-to/vm.md#links-that-no-kernel-has)). Written by\n",
        f"    {command}\n",
        f"The kernel runs each case {KERNEL_RUNS} times, the simulator {SIMULATOR_RUNS} times, with other seeds; means "
        "are compared. Goodput is in Mbit/s; RTT is the median of the sender's smoothed RTT every 100 ms, in ms; errors "
        "are in per cent, bold where outside their limit. *Late* is the 99th percentile of the time that packets left a "
        "line after they were due, what the receiving host does with a packet included.\n",
    ]
    if media:
        sides = "kernel | simulator"
        lines += [
            "## The kernel's hosts beside the simulator's\n",
            f"{len(media)} cases of `validation/media`.\n",
        ]
        lines += [*_standings(media), *_outside(media, sides), "", *_table(media, sides), ""]
    if own:
        sides = "own links | simulator's"
        lines += ["## A kernel's own links beside the simulator's under the same kernel\n"]
        lines += [
            f"{len(own)} cases of `validation/lines`, the second time with `--engine-option lines=all`.\n"
        ]
        lines += [*_standings(own), *_outside(own, sides), "", *_table(own, sides), ""]
    refused = [case for case in selected if case.refusal]
    if refused:
        lines += ["## Not run\n", "| case | why |", "|---|---|"]
        lines += [f"| {case.key} | {case.refusal} |" for case in refused]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    try:
        write_page("media_agreement", sys.argv[1:], cases, measure, page)
    except DragstripError as error:
        raise SystemExit(f"error: {error}") from error
