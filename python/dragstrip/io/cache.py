"""The cache folder, which keeps kernels, machines, compiled parts and recordings between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Return the cache folder: `DRAGSTRIP_CACHE` if set, else `dragstrip` in the user's cache folder."""
    own = os.environ.get("DRAGSTRIP_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragstrip"
