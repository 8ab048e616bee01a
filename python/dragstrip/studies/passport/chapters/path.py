"""Chapter path: one flow, several, and one beside CUBIC on a path that the user names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from dragstrip.experiment.saved_paths import DEFAULT_PATH
from dragstrip.studies.passport.chapters import beside, many
from dragstrip.studies.passport.figures import (
    GOODPUT,
    IMBALANCE,
    JAIN,
    LEAST,
    NEIGHBOUR,
    PING_P95,
    RESENT,
)
from dragstrip.studies.passport.rows import PLACE, Options, PassportRow, RowRule, Scenario, rated, several

NAME = "path"
TITLE = "on the path named"
DURATION = "20s"
COMPARED = RowRule("K", "RFC 9743 5.1.2: no worse than the deployed on the user's own path")
FLOWS = 4


def rows(path: Options = DEFAULT_PATH, name: str = "") -> Iterator[PassportRow]:
    """The rows of the chapter on a path of these options of `compare`; its name stands in their titles.

    Ids hold a hash of the options, so that passports of different paths are not compared row by row.
    """
    options = {**path, "duration": DURATION}
    key = hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:8]
    words = name or ", ".join(map(str, path.values()))
    yield from rated(
        NAME,
        f"{key}-alone",
        f"alone on {words}",
        Scenario((PLACE,), options),
        (GOODPUT, COMPARED),
        (PING_P95, COMPARED),
        (RESENT, many.LITTLE_LOSS),
        quick=True,
    )
    yield from rated(
        NAME,
        f"{key}-{FLOWS}-flows",
        f"{FLOWS} flows on {words}",
        Scenario((several(PLACE, FLOWS),), {**options, "stagger": "1ms"}),
        (LEAST, many.STARVES_NONE),
        (JAIN, many.FAIR),
        quick=True,
    )
    yield from rated(
        NAME,
        f"{key}-cubic",
        f"beside one cubic on {words}",
        Scenario((f"{PLACE}+0.3s", "cubic"), options, subjects=1),
        (NEIGHBOUR, beside.HARM),
        (IMBALANCE, beside.ORDER),
        quick=True,
    )
