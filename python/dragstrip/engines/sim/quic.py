"""QUIC stacks of a scenario: their releases, and those that this machine lacks the library of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragstrip import _core
from dragstrip.engines.contract import Json, Refusal


def _rows(scenario: Json) -> Iterator[tuple[Json, dict[str, Any]]]:
    """Yield each flow over QUIC, and the row of its stack in the core's table."""
    flows = [flow for flow in scenario["flows"] if flow["transport"]["protocol"] == "quic"]
    by_stack = {row["stack"]: row for row in _core.quic_table()} if flows else {}
    for flow in flows:
        row = by_stack.get(flow["transport"]["cc"].partition("/")[0])
        if row is not None:
            yield flow, row


def releases(scenario: Json) -> list[str]:
    """Return the releases of the stacks that a scenario's flows use, such as `noq-proto 1.4.0`, sorted."""
    return sorted({row["release"] for _, row in _rows(scenario)})


def refused(scenario: Json) -> list[Refusal]:
    """Return refusals of flows whose stack needs a library that this machine does not have."""
    return [
        Refusal(f"flow {flow['label']}: cc", flow["transport"]["cc"], row["absent"])
        for flow, row in _rows(scenario)
        if row["absent"]
    ]


def runnable_words() -> list[str]:
    """Return the words of the congestion controls whose stack this machine can run."""
    return [row["name"] for row in _core.quic_table() if not row["absent"]]


def words_of_build() -> list[str]:
    """Return the words of the congestion controls whose stack is a part of this build, not a library."""
    return [row["name"] for row in _core.quic_table() if not row["library"]]


def absence(word: str) -> str | None:
    """Return what a word of a QUIC stack needs that this machine does not have; None if it has everything."""
    absent: str | None = next((row["absent"] for row in _core.quic_table() if row["name"] == word), None)
    return absent
