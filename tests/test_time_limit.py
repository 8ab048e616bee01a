"""Runs that meet `--time-limit`: what is said, what stays, and that nothing goes on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dragstrip.engines.kernels import kernel
from dragstrip.engines.vm import machine

EXPERIMENT = """
title = "A run that ends in time and one that does not"
duration = "100ms"
record = { rtts = false }

[path]
rate = "1gbit"
rtt = "20ms"
queue = "bfifo limit 300kb"

[[flows]]
cc = "cubic"
"""
LIMIT = "2s"
REASON = "it took longer than 2 s"
ENDLESS = "5000s"
"""Of the simulator on this path: minutes. Of the kernel: hours."""


def dragstrip(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "path.toml").write_text(EXPERIMENT)
    command = [sys.executable, "-P", "-m", "dragstrip", *words]
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False, timeout=120)


def at_work(mark: Path) -> list[str]:
    """Processes with this folder in their command line, or at work in it."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
            here = (entry / "cwd").readlink() == mark
        except OSError:
            continue
        if here or str(mark) in words:
            found.append(words)
    return found


def gone(mark: Path) -> bool:
    """Whether none is left in the end: a worker ends by itself when its parent has ended."""
    until = time.monotonic() + 60
    while at_work(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_a_run_that_takes_too_long_fails_beside_the_others(tmp_path: Path) -> None:
    vary = tmp_path / "vary.toml"
    vary.write_text(f'{EXPERIMENT}\n[vary]\nduration = ["100ms", "{ENDLESS}"]\n')
    ended = dragstrip(tmp_path, "run", "vary.toml", "--time-limit", LIMIT, "--out", "out", "--workers", "2")
    assert ended.returncode == 1, ended.stderr
    assert REASON in ended.stdout + ended.stderr
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert [failed["reason"] for failed in document["failed"]] == [REASON]
    assert len(document["runs"]) == 1
    assert [entry.name for entry in (tmp_path / "out" / "runs").iterdir()] == ["000-100ms"]
    assert not (tmp_path / "out" / "PARTIAL").exists()
    assert (tmp_path / "out" / "report.html").exists()
    assert gone(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "path.toml"],
        ["compare", "--rate", "1gbit", "--rtt", "20ms", "--queue", "bfifo limit 300kb", "--no-rtts", "cubic"],
    ],
    ids=lambda words: words[0],
)
def test_where_every_run_takes_too_long_nothing_is_left(words: list[str], tmp_path: Path) -> None:
    ended = dragstrip(tmp_path, *words, "--duration", ENDLESS, "--time-limit", LIMIT)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, f"error: {REASON}")
    assert "Traceback" not in ended.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["path.toml"]
    assert gone(tmp_path)


def test_a_sweep_keeps_that_a_run_takes_too_long_and_does_not_make_it_again(tmp_path: Path) -> None:
    words = ["sweep", "path.toml", "--vary", f"duration=100ms,{ENDLESS}", "--workers", "2", "--out", "out"]
    words += ["--time-limit", LIMIT]
    ended = dragstrip(tmp_path, *words)
    assert ended.returncode == 1, ended.stderr
    assert f"time limit: run 1 (duration={ENDLESS}): {REASON}" in ended.stderr
    rows = pq.read_table(tmp_path / "out" / "dataset").to_pylist()
    assert [(row["status"], row["reason"]) for row in rows] == [("ok", None), ("time limit", REASON)]
    assert gone(tmp_path)
    again = json.loads(dragstrip(tmp_path, *words, "--json").stdout)
    assert (again["made"], again["reused"]) == (0, 2)


@pytest.mark.skipif(machine.missing() is not None, reason=str(machine.missing()))
def test_a_kernel_s_run_that_takes_too_long_leaves_no_emulator(tmp_path: Path) -> None:
    if not kernel.kernels():
        pytest.skip("no kernel: dragstrip kernel fetch")
    # The same cache under a name of our own, so that our emulators are known by it; what they share is made before.
    words = ["run", "path.toml", "--engine", "vm"]
    assert dragstrip(tmp_path, *words, "--out", "made").returncode == 0
    shutil.rmtree(tmp_path / "made")
    before = set(emulated())
    ended = dragstrip(tmp_path, *words, "--duration", ENDLESS, "--time-limit", LIMIT)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (1, f"error: {REASON}")
    assert [entry.name for entry in tmp_path.iterdir()] == ["path.toml"]
    assert set(emulated()) <= before
    assert gone(tmp_path)


def emulated() -> list[str]:
    """Folders of running emulators, in memory."""
    return [str(folder) for folder in Path("/dev/shm").glob("dragstrip-vm-*")]  # noqa: S108
