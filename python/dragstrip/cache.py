"""The folder of what is made or fetched once and kept: kernels, machines, compiled parts, recordings."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """DRAGSTRIP_CACHE, or the user's cache folder."""
    own = os.environ.get("DRAGSTRIP_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragstrip"
