"""Programs of the user's own as flows of a run in real time, on this machine's kernel."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines import registry
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment

SERVER = "import socket; s = socket.create_server(('', 5000)); [s.accept()[0].sendall(bytes(300_000)) for _ in range(9)]"
CLIENT = """
import os, socket
with socket.create_connection((os.environ["DRAGSTRIP_SERVER"], 5000)) as connection:
    count = 0
    while count < 300_000:
        count += len(connection.recv(65536))
print(count)
"""


@pytest.fixture
def scenario(tmp_path: Path) -> dict[str, Any]:
    """A program beside a bulk flow, without a delay: a kernel may lack netem."""
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "lasting.sh").write_text("sleep 4322 &\nsetsid sleep 4323 &\nsleep 4324\n")
    python = "python3"
    flows = [
        {"cc": "reno"},
        {
            **{"cc": "reno", "label": "mine", "start": "500ms"},
            "application": {
                **{"kind": "program", "folder": str(tmp_path)},
                **{"server": f"{python} server.py", "client": f"{python} client.py"},
            },
        },
        {
            **{"cc": "reno", "label": "lasting"},
            "application": {"kind": "program", "folder": str(tmp_path), "client": "sh lasting.sh"},
        },
    ]
    path = {"rate": "20mbit", "queue": "pfifo limit 100"}
    (run,) = expand(Experiment.build({"duration": "4s", "path": path, "flows": flows}))
    return run.scenario


@pytest.mark.usefixtures("machine")
def test_programs_run_beside_a_flow_and_end_with_the_run(scenario: dict[str, Any]) -> None:
    engine = registry.named("netns")
    assert engine.refusals(scenario, {}) == []
    recording = engine.run(scenario, {})
    mine, lasting = recording.provenance["verified"]["programs"]
    assert (mine["status"], mine["stdout"]["end"]) == (0, "300000\n"), mine
    assert (lasting["status"], lasting["completion_ns"]) == (None, None)
    bulk, flow, idle = recording.tables["flows"].to_pylist()
    assert bulk["bytes_received"] > 1_000_000
    assert 300_000 <= flow["bytes_received"] < 310_000
    assert flow["stop_ns"] - flow["start_ns"] == mine["completion_ns"]
    assert (idle["stop_ns"], idle["bytes_received"]) == (4_000_000_000, 0)
    notes = engine.notes(recording)
    assert any("program lasting had not ended when the run was over" in note for note in notes)
    lines = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in lines.splitlines() if line.startswith("sleep 432")]
