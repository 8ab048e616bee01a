"""An unprivileged user's race in user and network namespaces of this machine: what `make check` runs of the engine netns.

Tests are skipped, by name, with what this machine lacks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.netns import ENGINE, host
from dragstrip.errors import DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

UNPRIVILEGED = "setpriv --reuid 65534 --regid 65534 --clear-groups"


@pytest.fixture
def unprivileged(program: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The facts that the agent reports when it runs without any rights of root."""
    if os.geteuid():
        yield facts()
        return
    if shutil.which("setpriv") is None:
        pytest.skip("as root, an unprivileged agent needs setpriv (util-linux)")
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="dragstrip-agent-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        shutil.copy(program, place / "agent")
        wrapper = place / "unprivileged"
        wrapper.write_text(f'#!/bin/sh\nexec {UNPRIVILEGED} {place}/agent "$@"\n')
        wrapper.chmod(0o755)
        monkeypatch.setenv("DRAGSTRIP_AGENT", str(wrapper))
        yield facts()


def facts() -> dict[str, Any]:
    try:
        return host.about()
    except DragstripError as error:
        pytest.skip(str(error))


def interfaces() -> list[str]:
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


@pytest.mark.parametrize("rtt", ["0ms", "20ms"])
def test_an_unprivileged_user_races_in_namespaces(unprivileged: dict[str, Any], rtt: str) -> None:
    assert unprivileged["rights"] == "user namespace"
    race = compare(["cubic"], rate="10mbit", rtt=rtt, queue="bfifo limit 60kb", duration="1s")
    scenario = expand(race)[0].scenario
    (refusal,) = host.missing([scenario], "media")
    if refusal is not None:
        pytest.skip(str(refusal.error("engine netns")))
    before = interfaces()
    recording = ENGINE.run(scenario, {})
    assert interfaces() == before
    assert any("htb rate 10mbit" in line for line in recording.provenance["verified"]["path"])
    (flow,) = recording["flows"].to_pylist()
    assert 100_000 < flow["bytes_received"] < 10e6 / 8, "a second at 10 Mbit/s, even on a busy machine"
    if rtt == "20ms":
        rtts = [row["rtt_ns"] for row in recording["samples"].to_pylist() if row["rtt_ns"]]
        assert min(rtts) >= 20_000_000
