"""Two passports compared: which rows got better or worse, and which are proved to be unchanged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.io.files import read_json
from dragstrip.io.shape import COUNT, FIGURE, NUMBER, TEXT, Plain, Shape, expect
from dragstrip.studies.passport import suite
from dragstrip.studies.passport.document import FORMAT, VERDICTS
from dragstrip.studies.passport.verdicts import ratio

_ORDER = ("worse", "better", "same")
MARGIN = 0.03
"""Part of the earlier figure by which a figure must change to count."""
_FLAG = Plain("true or false", lambda value: isinstance(value, bool))
_EITHER = Plain("true, false or null", lambda value: value is None or isinstance(value, bool))
_VERDICT = Plain(f"one of {', '.join(VERDICTS)}", VERDICTS.__contains__)
_SHAPE: Mapping[str, Shape] = {
    "passport": COUNT,
    "suite": COUNT,
    "algorithm": TEXT,
    "quick": _FLAG,
    "rows": [
        {
            "id": TEXT,
            "kind": TEXT,
            "verdict": _VERDICT,
            "value": FIGURE,
            "values": [FIGURE],
            "recordings": [TEXT],
            "more_is_better": _EITHER,
            "floor": NUMBER,
        }
    ],
}


def read(file: Path, of: str = "algorithm", version: int = suite.VERSION) -> dict[str, Any]:
    """The passport in a file, of this form and suite; raises `BadInputError` for anything else.

    `of` is the kind of its subject, and `version` that of the kind's suite.
    """
    passport = read_json(file)
    expect(passport, {"passport": COUNT, "suite": COUNT}, str(file))
    kind = {"of": "algorithm", **passport}
    for field, expected in (("passport", FORMAT), ("of", of), ("suite", version)):
        if kind[field] != expected:
            raise BadInputError(field, kind[field], f"{expected}, as of this version", str(file))
    expect(passport, _SHAPE, str(file))
    return passport


def compare(now: Mapping[str, Any], before: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Lists the changes since an earlier passport, which is called `name`.

    Rows whose recordings have equal hashes are unchanged and not judged. Of the others, a row is worse if
    a limit was held and is missed, if its runs fail that did not, or if its figure is worse by more than 3 %
    and its floor for every pair of seeds. The rows that got worse come first, the largest change first.
    """
    earlier = {row["id"]: row for row in before["rows"]}
    changed, unchanged, alone = [], 0, 0
    for row in now["rows"]:
        old = earlier.get(row["id"])
        if old is None:
            alone += 1
        elif row["recordings"] and row["recordings"] == old["recordings"]:
            unchanged += 1
        else:
            changed.append((_amount(row, old), _change(row, old)))
    changed.sort(key=lambda entry: (_ORDER.index(entry[1]["how"]), -entry[0], entry[1]["id"]))
    return {
        "against": name,
        "algorithm": before["algorithm"],
        "unchanged": unchanged,
        "only_now": alone,
        "only_before": len(earlier) - (len(changed) + unchanged),
        "changed": [change for _, change in changed],
    }


def _amount(row: Mapping[str, Any], old: Mapping[str, Any]) -> float:
    """The ratio of a row's two figures as an absolute natural logarithm; infinite where one run failed."""
    if row["value"] is None or old["value"] is None:
        return math.inf
    return abs(ratio(row["value"], old["value"], row["floor"]))


def _change(row: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "how": _how(row, old),
        "before": old["value"],
        "now": row["value"],
        "verdict_before": old["verdict"],
        "verdict_now": row["verdict"],
    }


def _how(row: Mapping[str, Any], old: Mapping[str, Any]) -> str:
    failed = row["verdict"] == "failed", old["verdict"] == "failed"
    if failed[0] != failed[1]:
        return "worse" if failed[0] else "better"
    if failed[0]:
        return "same"
    missed = row["verdict"].startswith("missed"), old["verdict"].startswith("missed")
    if missed[0] != missed[1]:
        return "worse" if missed[0] else "better"
    more = row["more_is_better"]
    if more is None or row["kind"] == "R":
        return "same"
    sign = 1.0 if more else -1.0
    now, before = ([sign * value for value in entry["values"]] for entry in (row, old))
    if _apart(now, before, row["floor"]):
        return "better"
    return "worse" if _apart(before, now, row["floor"]) else "same"


def _apart(high: Sequence[float], low: Sequence[float], floor: float) -> bool:
    """True when all figures of one passport are above all of the other, by the margin and the floor."""
    if not high or not low:
        return False
    least, most = min(high), max(low)
    return least - most > max(floor, MARGIN * max(abs(least), abs(most)))


def worse(change: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows that got worse."""
    return [row for row in change["changed"] if row["how"] == "worse"]
