"""A sweep in words and pictures for the documentation: `python -m tools.sweep_guide FOLDER PAGE`.

Everything on the page is computed from the sweep's dataset; it makes docs/how-to/which-congestion-control.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragstrip import _core
from dragstrip.display import quantity as q
from dragstrip.io import files
from dragstrip.report.render import on_white
from dragstrip.results.intervals import interval
from dragstrip.studies.sweep import dataset
from dragstrip.studies.sweep.claim import read_description
from dragstrip.studies.sweep.drawing import WIDE, WORDS
from dragstrip.studies.sweep.heat import GAP
from dragstrip.studies.sweep.layout import Layout, lay_out
from dragstrip.studies.sweep.map import COLUMNS
from dragstrip.studies.sweep.paper import pictures
from dragstrip.studies.sweep.plan import Sweep
from dragstrip.studies.sweep.stats import Findings, judge, ranking, relative


def write_guide(folder: Path, page: Path) -> None:
    """Write the page, and its pictures into `images` beside it."""
    sweep = read_description(folder)
    data = dataset.read(folder, COLUMNS)
    findings = judge(sweep, data)
    layout = lay_out(sweep, findings)
    images = page.parent / "images"
    files.make_folder(images)
    for name in findings.judged:
        files.write_text(images / f"{page.stem}-{name}.svg", _picture(name, findings, layout))
    files.write_text(page, "\n".join(_lines(sweep, findings, layout, page.stem)) + "\n")


def _lines(sweep: Sweep, findings: Findings, layout: Layout, stem: str) -> Iterator[str]:
    yield f"# {sweep.title or sweep.name}"
    yield ""
    for name in findings.judged:
        yield _advice(name, findings, layout)
    yield ""
    yield (
        f"Generated from {sweep.runs:,} runs by `make guide` ([bench/sweep.toml](../../bench/sweep.toml), "
        f"dragstrip {sweep.version}): {len(findings.cells)} paths, {len(findings.contenders)} algorithms, "
        f"{sweep.repeat} seeds, one flow of {_seconds(sweep)} alone on the path"
        + (f", and again beside a {findings.rival} flow." if findings.rival else ".")
    )
    yield ""
    for axis in sweep.axes:
        yield f"- `{axis.path}`: {', '.join(str(level.label) for level in axis.levels)}"
    yield ""
    yield (
        "Figures are medians over the seeds. Algorithms share a path (stripes) if the difference, seed by "
        "seed, is not certain to exceed 1 %; [how it is judged](sweeps.md#how-it-is-judged) explains how "
        f"certain that is with {sweep.repeat} seeds. Seeds made a difference in "
        f"{findings.random * 100:.0f} % of the cases. "
        "These are simulated paths with one or two flows each. The results do not apply to paths outside "
        "these ranges, to many flows, or to Wi-Fi or cellular links."
    )
    yield ""
    for name in findings.judged:
        yield from _section(name, findings, layout, stem)


def _advice(name: str, findings: Findings, layout: Layout) -> str:
    """Return a list's entry: what to use for this figure, and where another algorithm is better."""
    paths, (first, second, *_) = len(findings.cells), ranking(findings, name)
    goal = f"least harm to a competing {findings.rival} flow" if name == "harm" else WORDS[name]
    text = (
        f"- For {goal} **use `{first.contender}`**: among the best on {first.best_or_tied} of {paths} paths"
    )
    text += f" (`{second.contender}`: {second.best_or_tied})"
    best, names = findings.judged[name].best, list(findings.contenders)
    use = names.index(first.contender)
    for settings, cells in layout.facets:
        counts = best[cells].sum(axis=0)
        better = int(counts.argmax())
        if counts[better] > counts[use]:
            text += (
                f". With {_as_written(settings)} `{names[better]}` is among the best on "
                f"{int(counts[better])} of {len(cells)}, `{first.contender}` on {int(counts[use])}"
            )
    return text + "."


def _section(name: str, findings: Findings, layout: Layout, stem: str) -> Iterator[str]:
    title = WORDS[name].capitalize()
    if name == "harm":
        title = f"Least harm to a competing {findings.rival} flow"
    yield f"## {title}"
    yield ""
    yield f"![{title} on {len(findings.cells)} paths](images/{stem}-{name}.svg)"
    yield ""
    share = "harm" if name == "harm" else "of the best"
    yield f"| | sole best | best or tied | {share}, median | 95 % interval |"
    yield "|---|---|---|---|---|"
    for rank in ranking(findings, name):
        yield (
            f"| {rank.contender} | {rank.sole_best} | {rank.best_or_tied} | {rank.median * 100:.1f} % | "
            f"{rank.low * 100:.1f} % to {rank.high * 100:.1f} % |"
        )
    yield ""
    yield (
        "By queue and round trip: at how many rates each algorithm is among the best, and "
        + ("its median harm." if name == "harm" else "its median share of the best figure.")
    )
    yield ""
    yield from _regions(name, findings, layout)
    yield ""


def _regions(name: str, findings: Findings, layout: Layout) -> Iterator[str]:
    judged = findings.judged[name]
    relative_figures = relative(judged)
    yield f"| | {layout.y or ''} | " + " | ".join(findings.contenders) + " |"
    yield "|---|---|" + "---|" * len(findings.contenders)
    for settings, cells in layout.facets:
        for level in dict.fromkeys(findings.cells[cell].get(layout.y or "") for cell in cells):
            level_cells = [cell for cell in cells if findings.cells[cell].get(layout.y or "") == level]
            median, _, _ = interval(relative_figures[level_cells].T)
            figures = [
                f"{int(judged.best[level_cells, at].sum())}/{len(level_cells)}, {_share(float(median[at]))}"
                for at in range(len(findings.contenders))
            ]
            yield f"| {_as_written(settings)} | {level} | " + " | ".join(figures) + " |"


def _share(value: float) -> str:
    return q.MISSING if math.isnan(value) else f"{value * 100:.0f} %"


def _as_written(settings: Mapping[str, object]) -> str:
    return ", ".join(str(value) for value in settings.values())


def _seconds(sweep: Sweep) -> str:
    return f"{_core.parse_time(str(sweep.base['duration'])) / 1e9:g} s"


def _picture(name: str, findings: Findings, layout: Layout) -> str:
    """Return the maps of a utility with their legend, on white, since a page may be dark."""
    return on_white(pictures(name, findings, layout, 2 * WIDE + GAP)[name])


if __name__ == "__main__":
    write_guide(Path(sys.argv[1]), Path(sys.argv[2]))
