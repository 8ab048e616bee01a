"""Pictures of objects for notebooks."""

from __future__ import annotations

from markupsafe import Markup

from dragstrip.display import html
from dragstrip.display.colours import INK, assign
from dragstrip.errors import DragstripError
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.report import picture
from dragstrip.results.comparison.setups import UnmeasuredRun, algorithms_of, setups_of


def experiment_html(experiment: Experiment) -> str:
    """Return the path of an experiment's first set-up as a picture, and what is set, as HTML."""
    return html.part(
        "interop/experiment_cell.html", picture=path_picture(experiment), settings=experiment.settings()
    )


def path_picture(experiment: Experiment) -> Markup:
    """Return the path of an experiment's first set-up; nothing for one that cannot run."""
    try:
        planned = expand(experiment)
    except DragstripError:
        return Markup("")  # an experiment that cannot run has no path
    runs = [
        UnmeasuredRun({"engine": run.engine, "flows": []}, run.facts, run.settings)
        for run in planned
        if run.repeat == 0
    ]
    colours = assign(algorithms_of(runs))
    first = setups_of(runs[:1], colours)[0]
    wide, _ = picture.draw([run.scenario for run in runs] if len(runs) < 9 else first.scenarios, colours)
    # The colours of the page around it: text and lines its own, boxes its background.
    drawing = wide.replace(INK, "currentColor").replace('fill="#ffffff"', 'fill="none"')
    return Markup(drawing)  # noqa: S704 - our own SVG
