"""One colour per algorithm, the same in every figure, on paper, in reports and in the playground.

There are two palettes, for white and for dark pages. Each colour has a contrast of at least 3:1 with its page
(WCAG 2.2, 1.4.11). Any two of the first five differ by 15 or more in CIEDE2000, and any two of all by 13, for
readers with normal vision and with each of the three dichromacies (after Machado, Oliveira, Fernandes: "A
Physiologically-based Model for Simulation of Color Vision Deficiency", 2009); tests compute this. The last
colour is close to the ink of axes and text and is used last.
"""

from __future__ import annotations

from collections.abc import Iterable

BLUE = "#02387a"
VERMILION = "#b04204"
GREEN = "#09745c"
ROSE = "#dc5c91"
BROWN = "#492600"
SKY = "#0591f1"
OLIVE = "#a48d3f"
BLACK = "#161616"
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
    "bbr": ROSE,
    "cdg": BROWN,
    "exp": SKY,
    "udp": GREY,
}
PALETTE = (BLUE, VERMILION, GREEN, ROSE, BROWN, SKY, OLIVE, BLACK)


# The same places in the palette for a dark page (#0d1117).
ON_DARK = {
    BLUE: "#57a9ff",
    VERMILION: "#dd5902",
    GREEN: "#3d916f",
    ROSE: "#a8709f",
    BROWN: "#f7ba29",
    SKY: "#b3e6fe",
    OLIVE: "#f2f6bf",
    BLACK: "#afafaf",
    GREY: "#9aa2ab",
    INK: "#e6edf3",
    MUTED: "#9ba5b0",
    GRID: "#2b323b",
}


def assign(algorithms: Iterable[str]) -> dict[str, str]:
    """Assign a colour to every algorithm, in the order given; known algorithms always have their own."""
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
