"""One document of many experiments, which `dragstrip run all --json` prints and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dragstrip.results.claims import CONTRADICTED, GRADES, LIMITED, REPRODUCED
from dragstrip.studies.execution.runner import Plan

Json = dict[str, Any]


def document(name: str, plans: Mapping[str, Plan], documents: Mapping[str, Json]) -> Json:
    """Collect what the experiments' documents say about their claims, all keyed by the experiments' names.

    The entries of `runs` stay in each experiment's `result.json`.
    """
    experiments = [
        {
            "name": member,
            "title": planned.experiment.title,
            "claims": documents[member]["claims"],
            "flow_tables": documents[member]["flow_tables"],
        }
        for member, planned in plans.items()
    ]
    return {
        "version": next(iter(documents.values()))["version"],
        "publication": name,
        "grades": grades(line for part in experiments for line in part["claims"]),
        "experiments": experiments,
        "failed": [
            {"experiment": member, **line}
            for member, member_document in documents.items()
            for line in member_document["failed"]
        ],
    }


def grades(claims: Iterable[Json]) -> dict[str, int]:
    """Return the number of claims with each grade."""
    counts = Counter(line["grade"] for line in claims)
    return {grade: counts[grade] for grade in (*GRADES, *([LIMITED] if counts[LIMITED] else []))}


def reproduced_share(counts: Mapping[str, int]) -> float | None:
    """Return the share of testable claims that are reproduced, or None if none can be tested."""
    tested = counts[REPRODUCED] + counts[CONTRADICTED]
    return counts[REPRODUCED] / tested if tested else None


def figure_text(figure: Any) -> str:
    """Return a figure with four significant digits; a range or an order shows each of its parts."""
    if figure is None:
        return "–"
    if isinstance(figure, list):
        ordered = any(isinstance(part, str) for part in figure)
        return (" < " if ordered else " to ").join(figure_text(part) for part in figure)
    return figure if isinstance(figure, str) else f"{float(f'{figure:.4g}'):.10g}"
