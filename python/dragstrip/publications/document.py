"""One document of many experiments: `dragstrip run all --json`, and what pages are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dragstrip.claims import CONTRADICTED, GRADES, REPRODUCED
from dragstrip.runner import Plan

Json = dict[str, Any]


def document(name: str, plans: Mapping[str, Plan], documents: Mapping[str, Json]) -> Json:
    """What the experiments' documents say about their claims; `runs` stay in each one's `result.json`."""
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
            {"experiment": member, **line} for member, found in documents.items() for line in found["failed"]
        ],
    }


def grades(claims: Iterable[Json]) -> dict[str, int]:
    """How many claims have each grade."""
    counts = Counter(line["grade"] for line in claims)
    return {grade: counts[grade] for grade in GRADES}


def reproduced_share(counts: Mapping[str, int]) -> float | None:
    """Of what could be tested."""
    tested = counts[REPRODUCED] + counts[CONTRADICTED]
    return counts[REPRODUCED] / tested if tested else None
