"""The path of a diagnosis as one that a user keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.analysis.diagnosis.advice import rate_words, rtt_words
from dragstrip.analysis.diagnosis.evidence import Evidence
from dragstrip.analysis.diagnosis.observations import Fact
from dragstrip.errors import BadInputError
from dragstrip.experiment.saved_paths import CARRIERS, PATH_OPTIONS, Knowledge, SavedPath

SOURCE = "dragstrip diagnose"


def from_evidence(evidence: Evidence, race: Mapping[str, Any]) -> SavedPath:
    """Return the path that files and options show; options come first.

    Raises `BadInputError` if they show no rate or no idle round trip.
    """
    options = {name: value for name, value in race.items() if name in PATH_OPTIONS}
    knowledge = {name: Knowledge(source="described") for name in options}
    if not any(name in options for name in CARRIERS):
        if not evidence.line_bps:
            raise _lacking("a file or an option that shows the rate (--rate)")
        options["rate"] = rate_words(evidence.line_bps)
        knowledge["rate"] = _knowledge(evidence.rate or evidence.floor, options["rate"])
    if "path" not in options and "rtt" not in options:
        if evidence.idle is None:
            raise _lacking("a file or an option that shows the idle round trip (--rtt)")
        options["rtt"] = rtt_words(float(evidence.idle.value))
        bound = "at most" if evidence.idle_is_bound else None
        knowledge["rtt"] = _knowledge(evidence.idle, options["rtt"], bound)
    queue = evidence.queue
    if "path" not in options and "queue" not in options and queue is not None and queue.words:
        options["queue"] = queue.words
        knowledge["queue"] = Knowledge(source=queue.source)
    return SavedPath("", options, SOURCE, knowledge)


def _knowledge(fact: Fact | None, words: str, bound: str | None = None) -> Knowledge:
    if fact is None:
        return Knowledge(source="the least that carries the goodput")
    basis = bound or fact.basis
    return Knowledge(
        low=words if basis == "at least" else None,
        high=words if basis == "at most" else None,
        source=" ".join(filter(None, [fact.source, fact.place])),
    )


def _lacking(expected: str) -> BadInputError:
    return BadInputError("--save-path", None, f"needs {expected}", "command line")
