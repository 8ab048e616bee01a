"""Random experiments, run and reported: every figure on the page and in the terminal is the one that the result has.

Labels, algorithms and their options, starts, stops, applications, directions, paths, parking lots, workloads, pings,
repeats and what varies are drawn. What should be shown is worked out anew (`pages/`) from the result document, the
scenarios and the recordings.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from common import main
from pages.checks import check
from pages.experiments import experiment

from dragstrip.report.console import show_result
from dragstrip.studies.execution.runner import execute, plan


def trial(number: int, folder: Path) -> str:
    """Runs the experiment with this number and looks at what it shows."""
    planned = plan(experiment(number))
    document = execute(planned, folder / "out", workers=1)
    terminal = io.StringIO()
    os.environ["COLUMNS"] = "400"
    with contextlib.redirect_stdout(terminal):
        show_result(document, planned.runs, verbose=True)
    return check(folder / "out", terminal.getvalue())


if __name__ == "__main__":
    main("true-pages", trial, count=500, sample=30, about=__doc__)
