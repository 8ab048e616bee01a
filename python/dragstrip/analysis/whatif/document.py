"""A verdict as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.analysis.whatif import wording
from dragstrip.analysis.whatif.identify import Answer
from dragstrip.analysis.whatif.verdict import FlowEvidence, Verdict, figures, flow_name
from dragstrip.experiment.comparison import command

VERSION = 1


def estimates(path: PathEstimate) -> dict[str, Any]:
    """Return an inferred path as JSON, without file and addresses."""
    content = asdict(path)
    for field in ("file", "flow", "rate_over_time"):
        del content[field]
    return content


def document(verdict: Verdict, addresses: bool) -> dict[str, Any]:
    """Return everything as JSON; without `addresses`, the flow is only numbered."""
    flow = verdict.flow
    return {
        "version": VERSION,
        "capture": {**subject(flow, addresses), "other_flows": flow.other_flows, **figures(verdict.capture)},
        "path": estimates(flow.path),
        "assumed": list(verdict.network.assumed),
        "algorithm": verdict.algorithm,
        "identified": None if verdict.answer is None else verdict.answer.document(),
        "explains": {
            **verdict.fit.document(),
            "run": figures(verdict.run),
            "contradictions": list(verdict.reasons),
        },
        "experiment": command([verdict.algorithm], verdict.options),
        "changes": verdict.changed,
        "raced": not verdict.refused,
        "what_if": [
            {
                "algorithm": prediction.algorithm,
                "runs": len(prediction.runs),
                **{figure: _interval(prediction.of(figure)) for figure in figures(prediction.runs[0])},
            }
            for prediction in verdict.predictions
        ],
        "sentence": wording.verdict_sentence(verdict),
    }


def subject(flow: FlowEvidence, addresses: bool) -> dict[str, Any]:
    """Return what a verdict is about, as JSON."""
    return {
        "file": str(flow.file) if addresses else flow.file.name,
        "flow": flow_name(flow, addresses),
        "place": flow.place,
        "duration_s": flow.capture.duration_s,
    }


def identification(flow: FlowEvidence, answer: Answer, addresses: bool) -> dict[str, Any]:
    """Return which congestion control a flow shows as JSON (docs/reference/whatif.md)."""
    return {
        "version": VERSION,
        **subject(flow, addresses),
        "sender_inferred": flow.is_moved,
        **answer.document(),
    }


def _interval(interval: tuple[float, float, float] | None) -> dict[str, float] | None:
    return None if interval is None else dict(zip(("value", "low", "high"), interval, strict=True))
