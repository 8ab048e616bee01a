"""A run of programs in real time as an output folder: recording, result and report, as `run` writes."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragstrip import _core
from dragstrip.engines.agent.answers import Answer, RunStart
from dragstrip.engines.contract import Json
from dragstrip.experiment.expand import PlannedRun
from dragstrip.io.files import aside, write_json
from dragstrip.studies.execution import unfinished
from dragstrip.studies.execution.runner import PARTIAL, claimed, clean_up, write_documents, write_report

if TYPE_CHECKING:
    from dragstrip.model.recording import Recording

NAME = "shell"
PING_NS = 1_000_000_000
"""Time between two pings through the path."""


def with_pings(scenario: Json, pings: bool) -> Json:
    """Return the scenario with a ping each second, or none, instead of those of a race."""
    probes = [{**probe, "interval_ns": PING_NS} for probe in scenario["probes"]] if pings else []
    return {**scenario, "probes": probes}


@dataclass(frozen=True)
class RunFolder:
    """An output folder that is being filled."""

    folder: Path
    captures: Path
    """Where packet captures are written meanwhile."""
    start: RunStart = field(default_factory=RunStart)

    def write(
        self,
        answer: Answer,
        scenario: Json,
        document: Mapping[str, Any],
        about: Mapping[str, Any],
        title: str,
    ) -> None:
        """Write everything.

        `document` is that of `shell.json`, `about` becomes part of the recording's provenance.
        """
        from dragstrip.model.recording import core_build, write

        recording = _recording(answer, scenario, {"build": core_build.provenance(), **about}, self.start)
        run = PlannedRun(1, NAME, recording.scenario)
        write_json(self.folder / "shell.json", document)
        captures = self.captures if any(self.captures.iterdir()) else None
        write(recording, self.folder / "runs" / run.slug, captures)
        experiment = {"name": NAME, "title": title, "claims": []}
        write_documents(self.folder, experiment, unfinished.document(self.folder), ["shell.json"])
        write_report(self.folder)


@contextlib.contextmanager
def filling(out: Path) -> Iterator[RunFolder]:
    """Claim an output folder; nothing is left in it unless the block succeeds.

    Raises `BadInputError` for a folder that cannot be used.
    """
    with claimed(out) as made_here:
        try:
            with aside(out / "runs") as draft:
                captures = draft / "captures"
                captures.mkdir()
                yield RunFolder(out, captures)
        except BaseException:
            clean_up(out, made_here, finished=False)
            raise
        (out / PARTIAL).unlink()


def _recording(answer: Answer, scenario: Json, about: Mapping[str, Any], start: RunStart) -> Recording:
    """Return the recording of an answer; its scenario has the flows that appeared."""
    from dragstrip.engines.agent.tables import tables_of
    from dragstrip.model.recording import Recording

    head, raw = answer
    tables = tables_of(head, memoryview(raw))
    recorded = head["run"]["recorded"]
    interval_ns, duration_ns = recorded["interval_ns"], recorded["duration_ns"]
    run_scenario = {
        **scenario,
        "name": NAME,
        "duration_ns": duration_ns,
        "flows": [_flow(row) for row in tables["flows"].to_pylist()],
        "probes": [probe for probe in scenario["probes"] if probe["start_ns"] < duration_ns],
        "changes": [change for change in scenario.get("changes", ()) if change["at_ns"] < duration_ns],
        "record": {"interval_ns": interval_ns, "every_ack": False, "rtts": False, "cc_state": False},
    }
    if not run_scenario["changes"]:
        del run_scenario["changes"]
    provenance = {
        "engine": "netns",
        "version": _core.__version__,
        "seed": scenario["seed"],
        "started": start.at.isoformat(timespec="seconds"),
        "recording_sha256": head["sha256"],
        "kernel": {"release": platform.release(), "package": platform.version()},
        "experiment": NAME,
        "settings": {},
        "repeat": 0,
        "wall_s": round(duration_ns / 1e9, 3),
        "recorded": recorded["summary"],
        **about,
    }
    return Recording(run_scenario, tables, provenance)


def _flow(row: Mapping[str, Any]) -> Json:
    """Return a flow that was seen as a scenario describes one: its data were there when it began.

    Datagrams count as sent at their mean rate, in their mean size.
    """
    transport, application = {"protocol": "tcp", "cc": row["cc"]}, {"kind": "bulk", "bytes": None}
    if row["protocol"] == "udp":
        transport = {"protocol": "udp"}
        arrived = max(row["segments_sent"] - row["datagrams_lost"], 1)
        duration_s = max(row["stop_ns"] - row["start_ns"], 1) / 1e9
        application = {
            "kind": "constant_rate",
            "rate_bps": max(round(row["bytes_received"] * 8 / duration_s), 1),
            "datagram_bytes": max(round(row["bytes_received"] / arrived), 1),
        }
    return {
        "label": row["label"],
        "sender": row["sender"],
        "receiver": row["receiver"],
        "transport": transport,
        "application": application,
        "start_ns": row["start_ns"],
        "stop_ns": None,
    }


def notes(recorded: Mapping[str, Any]) -> Sequence[str]:
    """Return a line for each thing that is not in the recording."""
    summary = recorded.get("summary") or {}
    lines = []
    if summary.get("not_recorded"):
        lines.append(
            f"{summary['not_recorded']} connections are not in the recording: it has the first "
            f"{summary['connections']}"
        )
    if summary.get("missing"):
        lines.append(f"{summary['missing']} packets are not in the recording: this machine was too busy")
    return lines
