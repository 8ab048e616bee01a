"""QUIC stacks from the command line: a race beside TCP, and refusals that say why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "1bdp", "--duration", "3s"]


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragstrip", "compare", *PATH, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_race_with_tcp_has_the_same_bytes_with_one_worker_and_with_two(tmp_path: Path) -> None:
    tables = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        ended = compare(
            "--workers", workers, "--out", str(out), "--together", "noq/cubic", "quinn/bbr", "cubic"
        )
        assert ended.returncode == 0, ended.stderr
        assert "noq/cubic" in ended.stdout
        tables.append({file.name: file.read_bytes() for file in sorted(out.rglob("*.parquet"))})
    assert tables[0]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["noq/bbr3", "cubic"], "cannot be seeded"),
        (["noq/cubik", "cubic"], 'did you mean "noq/cubic"?'),
        (["noq/cubic:beta=0.8", "cubic"], "expected one of ack_threshold"),
        (["--workload", "web", "noq/cubic", "cubic"], "bulk or on_off over QUIC"),
        (["--engine", "netns", "noq/cubic", "cubic"], "the QUIC stacks run in the engine sim"),
        (["--engine", "vm", "noq/cubic", "cubic"], "the QUIC stacks run in the engine sim"),
    ],
)
def test_what_quic_does_not_have_is_refused(words: list[str], reason: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = compare("--out", str(out), *words)
    assert ended.returncode == 2
    assert reason in " ".join(ended.stderr.split())
    assert not out.exists()
