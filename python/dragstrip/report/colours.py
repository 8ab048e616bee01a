"""One colour per algorithm, the same in every figure.

Okabe and Ito's palette ("Color Universal Design", 2008): its colours stay apart for readers with any
of the common colour-vision deficiencies. Its yellow is left to the last (too pale on white), its
black is the ink of axes and text.
"""

from __future__ import annotations

from collections.abc import Iterable

BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
ORANGE = "#e69f00"
SKY = "#56b4e9"
YELLOW = "#c9b500"  # The palette's #f0e442, darkened: 1.3:1 against white could not be read.
GREY = "#7f7f7f"

INK = "#1f2328"
MUTED = "#59636e"
GRID = "#dfe3e8"

# The five of the demonstration first, so that they differ most.
KNOWN = {
    "reno": BLUE,
    "newreno": BLUE,
    "cubic": VERMILION,
    "vegas": GREEN,
    "bbr": PURPLE,
    "cdg": ORANGE,
    "exp": SKY,
    "udp": GREY,
}
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW)

# Told apart by dashes: contenders of the same algorithm, then of the same colour.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 2), (2, 2), (8, 2, 2, 2), (1, 2), (12, 3))

# The same hues, lighter, on a dark page (contrast of at least 4.5:1 against #0d1117).
ON_DARK = {
    BLUE: "#4aa8e0",
    VERMILION: "#f08542",
    GREEN: "#2fc49a",
    PURPLE: "#dc98bd",
    ORANGE: "#f0b429",
    SKY: "#7cc8f5",
    YELLOW: "#e3d54a",
    GREY: "#9aa2ab",
    INK: "#e6edf3",
    MUTED: "#9ba5b0",
    GRID: "#2b323b",
}


def assign(algorithms: Iterable[str]) -> dict[str, str]:
    """A colour for every algorithm, in the order given; known ones always have their own."""
    names = list(dict.fromkeys(algorithms))
    taken = {KNOWN[name] for name in names if name in KNOWN}
    free = [colour for colour in PALETTE if colour not in taken]
    colours: dict[str, str] = {}
    for name in names:
        if name in KNOWN:
            colours[name] = KNOWN[name]
        elif free:
            colours[name] = free.pop(0)
        else:
            colours[name] = PALETTE[len(colours) % len(PALETTE)]
    return colours
