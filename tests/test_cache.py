"""Folders of the user: where the cache is."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragstrip.io.cache import base_folder, cache


def test_a_relative_folder_of_xdg_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG Base Directory Specification: a relative path is invalid and is to be ignored."""
    monkeypatch.delenv("DRAGSTRIP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("there", "./there", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert cache() == tmp_path / ".cache" / "dragstrip"
        assert base_folder("XDG_CACHE_HOME") is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache() == tmp_path / "there" / "dragstrip"
