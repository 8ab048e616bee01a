from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.engines.sim import fingerprint
from dragstrip.studies.sweep import build
from dragstrip.studies.sweep.plan import Index

from .conftest import plan


def test_another_kernel_in_use_is_another_version_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    builds = iter(["1" * 64, "2" * 64])
    monkeypatch.setattr(build, "named", lambda _: SimpleNamespace(build=lambda _: next(builds)))
    assert build.version("vm") != build.version("vm")


def test_a_build_that_behaves_otherwise_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.version()
    keys = set(Index(plan("flow.cc=reno,bbr")).all_keys())
    assert before.startswith(f"{_core.__version__}+")
    fingerprint.fingerprint.cache_clear()
    assert build.version() == before

    real = _core.Scenario

    class Changed:
        """A scenario whose recording has another hash if a flow runs BBR."""

        def __init__(self, document: dict[str, Any]) -> None:
            self.core = real(document)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def run(self) -> dict[str, Any]:
            outcome = self.core.run()
            return {**outcome, "sha256": "0" * 64} if '"cc":"bbr"' in self.core.to_json() else outcome

    monkeypatch.setattr(_core, "Scenario", Changed)
    fingerprint.fingerprint.cache_clear()
    try:
        assert build.version() != before
        assert not keys & set(Index(plan("flow.cc=reno,bbr")).all_keys())
    finally:
        fingerprint.fingerprint.cache_clear()
