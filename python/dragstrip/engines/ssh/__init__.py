"""Engine `ssh`: the hosts of a lab, reached by the system's own ssh."""

from __future__ import annotations

from dragstrip.engines.ssh.engine import ENGINE

__all__ = ["ENGINE"]
