"""The distributions of an experiment's RTT and throughput, as CAIA's report 110729A draws them.

They use captures at both ends, if the experiment has them (`record.captures`).
"""

from __future__ import annotations

from pathlib import Path

from dragstrip.display.colours import assign
from dragstrip.report import charts, render
from dragstrip.report.collect import captured_curves_of
from dragstrip.report.load import load
from dragstrip.results.comparison.setups import algorithms_of, setups_of

DRAWN = {"rtt": "Distribution of the round-trip time", "throughput": "Distribution of the throughput"}


def distributions(folder: Path) -> dict[str, str]:
    """Return the distributions of an experiment's first set-up as SVG, by kind (`rtt`, `throughput`).

    `folder` is the output folder of the experiment's run.
    """
    runs = load(folder).runs
    setup = setups_of(runs, assign(algorithms_of(runs)))[0]
    curves = captured_curves_of(setup)
    figures = {"rtt": charts.rtt_cdf(setup, curves), "throughput": charts.throughput_cdf(setup, curves)}
    return {kind: render.svg(figure, f"{folder.name}-") for kind, figure in figures.items() if figure}
