"""The evidence as one document: each clause with its verdict, its rows and what is not answered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from dragstrip.studies.evidence import ranges
from dragstrip.studies.evidence.clauses import CLAUSES, Clause

FORMAT = 2
"""The version of the document's form."""
SUPPORTED = "supported"
IN_PART = "supported in part"
OPEN = "to be justified"
CONTRADICTED = "contradicted"
UNANSWERED = "not answered"
BY_AUTHOR = "for the authors"
NOT_RUN = "its rows were not run"
SHOWN = 6
"""Rows of a clause that are shown: misses of limits first, then those furthest from limit or baselines."""
TELLING = 3
"""Rows that are shown of a clause that nothing speaks against."""


def of_passport(passport: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evidence that a passport's document holds; the same passport gives the same bytes.

    A clause is `contradicted` where a document's limit is missed or a run failed under one, `to be justified`
    where a target is missed or a figure is worse than CUBIC's and Reno's, and else `supported`, or `supported
    in part` where no row answers some of its question. It is `not answered` without a row.
    """
    clauses = [_clause(clause, passport) for clause in CLAUSES]
    answering = {name for clause in clauses for name in clause["rows"]}
    return {
        "evidence": FORMAT,
        "document": "RFC 9743",
        **{
            key: passport[key]
            for key in ("version", "suite", "build", "engine", "kernel", "algorithm", "quick")
        },
        "clauses": clauses,
        "counts": {
            verdict: sum(clause["verdict"] == verdict for clause in clauses)
            for verdict in (SUPPORTED, IN_PART, OPEN, CONTRADICTED, UNANSWERED, BY_AUTHOR)
        },
        "rows": {row["id"]: _shown(row) for row in passport["rows"] if row["id"] in answering},
    }


def _clause(clause: Clause, passport: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        row for row in passport["rows"] if any(fnmatchcase(row["id"], pattern) for pattern in clause.rows)
    ]
    covered = (
        ranges.covered(passport["algorithm"], (row["id"] for row in passport["rows"]))
        if clause.ranges
        else None
    )
    against = sorted(
        (row for row in rows if _gravity(row)), key=lambda row: (-_gravity(row), -_excess(row), row["id"])
    )
    return {
        "number": clause.number,
        "title": clause.title,
        "level": clause.level,
        "question": clause.question,
        "verdict": SUPPORTED if covered else _verdict(clause, rows),
        "rows": [row["id"] for row in rows],
        "against": [_shown(row) for row in against],
        "telling": [] if against else [_shown(row) for row in _telling(rows)],
        "ranges": covered,
        "lacks": [*([NOT_RUN] if clause.rows and not rows else []), *clause.lacks],
        "author": clause.author,
    }


def _telling(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that say most of what supports a clause: those with limits, of different scenarios."""
    ordered = sorted(rows, key=lambda row: "PTKR".index(row["kind"]))
    by_scenario = {row["title"]: row for row in reversed(ordered)}
    return [row for row in ordered if by_scenario[row["title"]] is row][:TELLING]


def _gravity(row: Mapping[str, Any]) -> int:
    """Return how much a row says against the algorithm: 2 against a limit, 1 against a target, 0 nothing."""
    verdict = row["verdict"]
    if verdict in ("failed", "missed"):
        return 2 if row["kind"] == "P" else 1
    return 1 if verdict in ("missed, as by CUBIC", "worse") else 0


def _excess(row: Mapping[str, Any]) -> float:
    """Return by how many times a figure differs from its limit, or from the nearest baseline's figure."""
    limits = [row[name] for name in ("least", "most") if row[name] is not None]
    others = [baseline["value"] for baseline in row["baselines"].values()]
    ratios = [
        max(row["value"] / other, other / row["value"])
        for other in limits or others
        if other and row["value"] and other / row["value"] > 0
    ]
    return min(ratios, default=math.inf)


def _verdict(clause: Clause, rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return BY_AUTHOR if clause.author and not clause.lacks else UNANSWERED
    supported = IN_PART if clause.lacks else SUPPORTED
    return (supported, OPEN, CONTRADICTED)[max(map(_gravity, rows))]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as a clause lists it: its figure with the range over seeds, and the baselines'."""
    values = row["values"]
    return {
        "id": row["id"],
        "title": row["title"],
        "measure": row["measure"],
        "unit": row["unit"],
        "value": row["value"],
        "low": min(values, default=None),
        "high": max(values, default=None),
        "seeds": len(values),
        "baselines": {name: baseline["value"] for name, baseline in row["baselines"].items()},
        "differences": {
            name: baseline["difference"]
            for name, baseline in row["baselines"].items()
            if "difference" in baseline
        },
        "verdict": row["verdict"],
        "least": row["least"],
        "most": row["most"],
        "rule": row["rule"],
        "source": row["source"],
        "failure": row.get("failure", ""),
        "replay": row["replay"],
    }
