"""The built-in simulator: our own endpoints, queues and links in virtual time, in this process."""

from __future__ import annotations

from dragstrip.engines.sim.engine import ENGINE, simulate

__all__ = ["ENGINE", "simulate"]
