"""The machine's own kernel, in network namespaces and in real time."""

from __future__ import annotations

from dragstrip.engines.netns.engine import ENGINE

__all__ = ["ENGINE"]
