"""One colour per algorithm, the same in every figure, on paper, in reports and in the playground.

The colours are those of crates/display, from which the playground's page takes them too. There are two
palettes, for white and for dark pages. Each colour has a contrast of at least 3:1 with its page (WCAG 2.2,
1.4.11). Any two of the first five differ by 15 or more in CIEDE2000, and any two of all by 13, for readers
with normal vision and with each of the three dichromacies (after Machado, Oliveira, Fernandes: "A
Physiologically-based Model for Simulation of Color Vision Deficiency", 2009); tests compute this. The last
colour is close to the ink of axes and text and is used last.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragstrip import _core
from dragstrip.display.look import LOOK

_PAIRS: dict[str, tuple[str, str]] = {name: tuple(pair) for name, pair in LOOK["colours"].items()}
GREY, INK, MUTED, GRID = (_PAIRS[name][0] for name in ("grey", "ink", "muted", "grid"))
VERMILION, GREEN, ROSE, SKY, BLACK = (
    _PAIRS[name][0] for name in ("vermilion", "green", "rose", "sky", "black")
)

# The five of the demonstration first, so that they differ most.
PALETTE = tuple(_PAIRS[name][0] for name in LOOK["palette"])
KNOWN = {algorithm: _PAIRS[name][0] for algorithm, name in LOOK["known"].items()}
# The same places in the palette for a dark page (#0d1117).
ON_DARK = dict(_PAIRS.values())


def assign(algorithms: Iterable[str]) -> dict[str, str]:
    """Assign a colour to every algorithm, in the order given.

    The core chooses (crates/display/src/rules.rs): known algorithms always have their own colour.
    """
    names = list(dict.fromkeys(algorithms))
    colours = _core.curve_colours(names)
    return {name: _PAIRS[colour][0] for name, colour in zip(names, colours, strict=True)}
