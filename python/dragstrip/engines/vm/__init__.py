"""A stock Linux kernel with its TCP and queue disciplines, in QEMU with virtual time (docs/how-to/vm.md)."""

from __future__ import annotations

from dragstrip.engines.vm.engine import ENGINE

__all__ = ["ENGINE"]
