"""The playground in a notebook's cell: its page in a frame, and the race of its sliders as an experiment."""

from __future__ import annotations

import importlib
import importlib.util
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.experiment.types import Experiment
from dragstrip.playground import write

WIDGET = Path(__file__).with_name("widget.js")


class Playground:
    """The playground's page with a race, in a frame of a notebook's cell; it needs no network.

    Where anywidget is installed, `experiment` follows the page's controls.
    """

    def __init__(self, html: str, experiment: Experiment | None = None) -> None:
        self.html = html
        """The whole page."""
        self._experiment = experiment

    @property
    def experiment(self) -> Experiment:
        """The race as the page has it now, for `run` and `sweep`; without anywidget the one it began with.

        Raises `BadInputError` for the page's own race before a cell has shown it, and for one that cannot be
        right.
        """
        text = self._widget.experiment if self._shown else ""
        if text:
            return Experiment.build(json.loads(text))
        if self._experiment is None:
            expected = "is needed: play('cubic'), or a cell that has shown the page, with anywidget"
            raise BadInputError("algorithms", None, expected)
        return self._experiment

    def save(self, file: str | Path) -> None:
        """Write the page to a file; an earlier page of the playground is replaced."""
        write(Path(file), self.html)

    @property
    def _shown(self) -> bool:
        return "_widget" in vars(self)

    @cached_property
    def _widget(self) -> Any:
        """The widget that holds the page and hears of its experiment."""
        anywidget, traitlets = (importlib.import_module(name) for name in ("anywidget", "traitlets"))
        content = {
            "_esm": WIDGET.read_text(encoding="utf-8"),
            "page": traitlets.Unicode().tag(sync=True),
            "experiment": traitlets.Unicode().tag(sync=True),
        }
        return type("PlaygroundWidget", (anywidget.AnyWidget,), content)(page=self.html)

    def __repr__(self) -> str:
        return f"<Playground: a page of {len(self.html) / 1e6:.1f} MB; .save(file) writes it>"

    def _repr_html_(self) -> str:
        from dragstrip.display import html

        return html.part("playground/cell.html", page=self.html)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Return the widget where anywidget is installed, else the page in a frame."""
        if importlib.util.find_spec("anywidget") is None:
            return {"text/html": self._repr_html_(), "text/plain": repr(self)}
        return self._widget._repr_mimebundle_(include=include, exclude=exclude)
