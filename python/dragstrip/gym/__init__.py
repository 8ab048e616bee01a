"""Environments in which policies learn, for Gymnasium (docs/how-to/learning.md).

    import gymnasium

    env = gymnasium.make("dragstrip.gym:CongestionControl-v0", rate=("1mbit", "20mbit"), rtt="40ms")

Importing the module registers `CongestionControl-v0`. It needs the extra `gym`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dragstrip.errors import DragstripError

if find_spec("gymnasium") is None:
    raise DragstripError("dragstrip.gym needs gymnasium: pip install gymnasium")

from gymnasium import register, registry

from dragstrip.gym.env import CongestionControl
from dragstrip.gym.figures import OBSERVATIONS, figure_names
from dragstrip.gym.rewards import REWARDS, aurora, mvfst_rl, orca, sage
from dragstrip.gym.template import Between
from dragstrip.gym.vector import CongestionControlVector

if TYPE_CHECKING:
    from dragstrip.gym.parallel import CongestionControlParallel

ID = "CongestionControl-v0"
"""Name of the environment in Gymnasium's registry."""

if ID not in registry:
    register(
        ID,
        entry_point="dragstrip.gym.env:CongestionControl",
        vector_entry_point="dragstrip.gym.vector:CongestionControlVector",
    )


def parallel_env(**words: Any) -> CongestionControlParallel:
    """Return an environment of several agents for PettingZoo.

    `words` are those of `dragstrip.gym.parallel.CongestionControlParallel`. It needs the extra `pettingzoo`.
    Raises `BadInputError` for a word that is wrong.
    """
    from dragstrip.gym.parallel import CongestionControlParallel

    return CongestionControlParallel(**words)


__all__ = [
    "ID",
    "OBSERVATIONS",
    "REWARDS",
    "Between",
    "CongestionControl",
    "CongestionControlVector",
    "aurora",
    "figure_names",
    "mvfst_rl",
    "orca",
    "parallel_env",
    "sage",
]
