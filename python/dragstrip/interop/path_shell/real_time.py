"""Programs behind a path in real time, on this machine's kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragstrip.engines.contract import Json, Say, quietly
from dragstrip.engines.netns import shell as engine
from dragstrip.interop.path_shell.path import (
    FLOODED,
    KILLED,
    REAL,
    TIMED_OUT,
    Ending,
    ProgramEnds,
    described,
    hosts,
    planned,
    say_path,
    summary,
)


def run(
    ends: ProgramEnds,
    race: Mapping[str, Any],
    limit_s: float,
    programs: engine.Programs,
    say: Say = quietly,
) -> Ending:
    """Run programs; `say` gets lines about the path and the work.

    Raises `BadInputError` for what cannot be and what this machine does not allow, `DragstripError` for
    anything else.
    """
    planned_run = planned(ends.cc, race)
    scenario = planned_run.scenario
    path = say_path(planned_run, ends.cc, say)
    outcome = engine.run(scenario, hosts(planned_run), ends.cc, programs, limit_s, say)
    streams = outcome.pop("streams", {})
    document = document_of(ends, programs, path, outcome, scenario)
    notes = [*summary(outcome), *(f"MARKED {mark}" for mark in document["marked"])]
    return Ending(document, status_of(outcome), notes, streams)


def document_of(
    ends: ProgramEnds,
    programs: engine.Programs,
    path: dict[str, Any],
    outcome: Mapping[str, Any],
    scenario: Json,
) -> Json:
    """Return the document of a run, `shell.json`."""
    return {
        **described(ends, programs.command, path, REAL),
        "marked": engine.reasons(outcome),
        **outcome,
        "scenario": scenario,
    }


def status_of(outcome: Mapping[str, Any]) -> int:
    """Return the exit status of the command."""
    if outcome.get("flooded") is not None:
        return FLOODED
    if outcome["timed_out"]:
        return TIMED_OUT
    return KILLED if outcome["status"] is None else int(outcome["status"])
