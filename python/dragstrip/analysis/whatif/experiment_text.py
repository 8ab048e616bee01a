"""A verdict's path as an experiment that can be edited, run and played."""

from __future__ import annotations

from dragstrip.analysis.whatif import network, walk
from dragstrip.analysis.whatif.verdict import Verdict
from dragstrip.io import toml
from dragstrip.io.untrusted import printable


def experiment(verdict: Verdict) -> str:
    """Return the text of the experiment: the capture's algorithm and the others, each alone on the path."""
    names = [prediction.algorithm for prediction in verdict.predictions] or [verdict.algorithm]
    options = walk.raced_options(verdict.options, verdict.changed)
    race = network.experiment(options, names, f"The path of {printable(verdict.flow.file.name)}")
    return toml.toml_text(race.content())
