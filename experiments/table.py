"""Writes docs/catalogue.md: every claim of the catalogue with its grade, from runs of all experiments.

python experiments/table.py             writes the page (about a minute)
python experiments/table.py NAME...     prints the part about these experiments
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dragstrip import catalogue
from dragstrip.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, Finished, grade
from dragstrip.engines.sim import simulate
from dragstrip.experiment import Experiment
from dragstrip.measures import Measured
from dragstrip.runner import plan

PAGE = Path(__file__).parents[1] / "docs" / "catalogue.md"

INTRODUCTION = """\
<!-- Written by `python experiments/table.py`: do not edit. -->
# The catalogue

Each folder of [experiments](../experiments) is a publication, each file an experiment of it, which
`dragstrip run PUBLICATION/EXPERIMENT` repeats, and each figure that the publication gives is a *claim*:
*reproduced* (ours lies in the published range, widened by the claim's tolerance), *contradicted* (it does
not) or *not testable here*, with the reason. None is dropped because it does not fit. What a publication's
text says is a claim too, named `text-...`; where its own data deny it, *contradicted* is right.

The files say what was calibrated and where a tolerance comes from, and quote each claim's words. The
[format](experiments.md) and the [measures](measures.md) have pages of their own.
"""


def graded(experiment: Experiment) -> list[dict[str, Any]]:
    """The claims of an experiment, run in this process."""
    finished = [Finished(run, Measured(simulate(run.scenario))) for run in plan(experiment).runs]
    return [grade(claim, finished) for claim in experiment.claims]


def section(name: str, experiment: Experiment, lines: list[dict[str, Any]]) -> str:
    """An experiment's heading, and its claims as a table."""
    rows = [f"## {name}", "", f"{experiment.title}. [File](../experiments/{name}.toml)", ""]
    rows += ["| claim | published | measured | unit | grade |", "|---|---|---|---|---|"]
    for line in lines:
        figures = f"{_shown(line['published'])} | {_shown(line['measured'])}"
        reason = f": {line['reason']}" if "reason" in line else ""
        rows.append(f"| {line['id']} | {figures} | {line['unit']} | {line['grade']}{reason} |")
    return "\n".join(rows) + "\n"


def _shown(figure: Any) -> str:
    """Four digits; a range or an order with its parts."""
    if figure is None:
        return "–"
    if isinstance(figure, list):
        ordered = any(isinstance(part, str) for part in figure)
        return (" < " if ordered else " to ").join(_shown(part) for part in figure)
    return figure if isinstance(figure, str) else f"{float(f'{figure:.4g}'):.10g}"


def summary(sections: Iterable[tuple[str, list[dict[str, Any]]]]) -> str:
    """How many claims of each publication have which grade."""
    counts: dict[str, Counter[str]] = {}
    for name, lines in sections:
        of = counts.setdefault(name.split("/")[0], Counter())
        of.update(line["grade"] for line in lines)
    rows = ["| publication | reproduced | contradicted | not testable here |", "|---|---|---|---|"]
    for publication, of in counts.items():
        rows.append(f"| {publication} | {of[REPRODUCED]} | {of[CONTRADICTED]} | {of[NOT_TESTABLE]} |")
    return "\n".join(rows) + "\n"


def main(names: list[str]) -> None:
    """Writes the page, or prints the sections of the experiments named."""
    sections = []
    for name in names or catalogue.files():
        experiment, _ = catalogue.load(name)
        sections.append((name, experiment, graded(experiment)))
    text = "\n".join(section(*part) for part in sections)
    if names:
        sys.stdout.write(text)
        return
    total = summary((name, lines) for name, _, lines in sections)
    PAGE.write_text("\n".join([INTRODUCTION, total, text]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
