"""Figures of a step, and the lists of them that publications observe."""

from __future__ import annotations

from collections.abc import Sequence

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest

NAMES: tuple[str, ...] = tuple(name for name, _, _, _ in _core.FIGURES)
"""Names of all figures, in the order of the core's rows."""
PLACES: dict[str, int] = {name: place for place, name in enumerate(NAMES)}
"""Place of each figure in the core's rows."""
BOUNDS: dict[str, tuple[float, float]] = {name: (low, high) for name, low, high, _ in _core.FIGURES}
"""Lowest and highest value of an observation, by figure."""

OBSERVATIONS: dict[str, tuple[str, ...]] = {
    "aurora": ("latency_gradient", "latency_ratio", "send_ratio"),
    "orca": (
        "throughput_ratio",
        "pacing_ratio",
        "lost_ratio",
        "acked_ratio",
        "interval_s",
        "rtt_ratio",
        "delay_metric",
    ),
}
"""Published observations: of Aurora (PCC-RL, `common/sender_obs.py`) and Orca (`rl-module/envwrapper.py`)."""


def figure_names() -> dict[str, str]:
    """Meaning of each figure, by its name. The unit is the end of the name."""
    return {name: meaning for name, _, _, meaning in _core.FIGURES}


def observed(observe: str | Sequence[str]) -> list[str]:
    """Names of the figures that a word such as `aurora`, or a list of names, stands for.

    Raises `BadInputError` for a name that is no figure.
    """
    if isinstance(observe, str):
        names = OBSERVATIONS.get(observe, (observe,))
    elif isinstance(observe, Sequence):
        names = tuple(observe)
    else:
        raise BadInputError(
            "observe", Raw(repr(observe)), f"{' or '.join(OBSERVATIONS)}, or a list of figures"
        )
    for name in names:
        if not isinstance(name, str) or name not in BOUNDS:
            candidates = [*OBSERVATIONS, *NAMES]
            expected = f"{' or '.join(OBSERVATIONS)}, or figures{nearest(str(name), candidates)}"
            raise BadInputError("observe", name, expected)
    if not names:
        raise BadInputError("observe", "nothing", "at least one figure")
    return list(names)
