"""Appearance and axis names of charts, in the report and in the playground: look.json.

`cargo xtask generate` writes look.json from the tables of crates/display. The core also has the rules that
choose from them, so a colour, a dash pattern, an axis or a mark is changed there alone, for the page too
(docs/decisions/0018-one-viewer.md). Each colour is a pair, for white and for dark pages. `units` are pairs
of a size in base units and a name, from the smallest up. `panels` are titles over time with the units that
they are drawn in. `headroom` is how far above the greatest value an axis ends.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dragstrip.io import untrusted

LOOK: dict[str, Any] = json.loads(
    untrusted.text(Path(__file__).with_name("look.json"), untrusted.MIB, "our look of charts")
)
DASHES: tuple[tuple[int, ...], ...] = tuple(map(tuple, LOOK["dashes"]))
"""Dash patterns that distinguish contenders of the same algorithm, and then of the same colour."""
HEADROOM: float = LOOK["headroom"]


def panel(name: str) -> tuple[str, str]:
    """Return a panel's title, and the name of its units; raises `KeyError` if there is no such panel."""
    title, units = LOOK["panels"][name]
    return title, units
