"""The same rows on a second engine: where both give the same verdict, and where they do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.passport.rows import On
from dragstrip.passport.verdicts import Judged


def compare(
    judged: Sequence[Judged], others: Sequence[Judged], lacking: Mapping[str, str], on: On
) -> dict[str, Any]:
    """Counts the rows with the same verdict on the engine `on` too, and lists those with another one.

    `lacking` are the rows that it does not run, by id, with the reason.
    """
    there = {entry.row.id: entry for entry in others}
    pairs = [(entry, there[entry.row.id]) for entry in judged if entry.row.id in there]
    different = [_difference(one, other) for one, other in pairs if one.verdict != other.verdict]
    return {
        "engine": on.engine,
        "kernel": on.kernel,
        "build": on.build,
        "rows": len(pairs),
        "same": len(pairs) - len(different),
        "different": different,
        "not_run": [
            {"id": entry.row.id, "title": entry.row.title, "why": lacking[entry.row.id]}
            for entry in judged
            if entry.row.id in lacking
        ],
    }


def _difference(one: Judged, other: Judged) -> dict[str, Any]:
    return {
        "id": one.row.id,
        "title": one.row.title,
        "measure": one.row.figure.name,
        "unit": one.row.figure.unit,
        "verdict": one.verdict,
        "value": one.value.median,
        "baselines": {name: found.median for name, found in one.baselines.items()},
        "other_verdict": other.verdict,
        "other_value": other.value.median,
        "other_baselines": {name: found.median for name, found in other.baselines.items()},
        **({"other_failure": other.value.failure} if other.value.failure else {}),
    }
