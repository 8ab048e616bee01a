"""The cache folder, which keeps kernels, machines, compiled parts and recordings between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """Return the cache folder: `DRAGSTRIP_CACHE` if set, else `dragstrip` in the user's cache folder."""
    override = os.environ.get("DRAGSTRIP_CACHE")
    if override:
        return Path(override)
    return (base_folder("XDG_CACHE_HOME") or Path.home() / ".cache") / "dragstrip"


def base_folder(variable: str) -> Path | None:
    """Return the folder that a variable of the XDG Base Directory Specification names, or None.

    A relative path is ignored, as the specification has it.
    """
    folder = Path(os.environ.get(variable) or "")
    return folder if folder.is_absolute() else None
