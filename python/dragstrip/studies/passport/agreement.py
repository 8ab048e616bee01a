"""The same rows on a second engine: the number of equal verdicts, and the rows with different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragstrip.studies.passport.rows import On
from dragstrip.studies.passport.verdicts import RowVerdict


def compare(
    judged: Sequence[RowVerdict], second_judged: Sequence[RowVerdict], lacking: Mapping[str, str], on: On
) -> dict[str, Any]:
    """Counts the rows with the same verdict on the engine `on` too, and lists those with another one.

    `lacking` are the rows that it does not run, by id, with the reason.
    """
    second_by_id = {entry.row.id: entry for entry in second_judged}
    pairs = [(entry, second_by_id[entry.row.id]) for entry in judged if entry.row.id in second_by_id]
    different = [_difference(first, second) for first, second in pairs if first.verdict != second.verdict]
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


def _difference(first: RowVerdict, second: RowVerdict) -> dict[str, Any]:
    return {
        "id": first.row.id,
        "title": first.row.title,
        "measure": first.row.figure.name,
        "unit": first.row.figure.unit,
        "verdict": first.verdict,
        "value": first.value.median,
        "baselines": {name: baseline.median for name, baseline in first.baselines.items()},
        "other_verdict": second.verdict,
        "other_value": second.value.median,
        "other_baselines": {name: baseline.median for name, baseline in second.baselines.items()},
        **({"other_failure": second.value.failure} if second.value.failure else {}),
    }
