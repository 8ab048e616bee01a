"""Processes killed, disks full, runs that never end: nothing is lost, nothing counted twice.

A sample of the moments here; all of them with `make test-faults`.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dragstrip.engines import named
from dragstrip.errors import DragstripError
from dragstrip.runs import process as pool_process
from dragstrip.runs.process import Limits
from dragstrip.studies.sweep import command
from dragstrip.studies.sweep.options import Options
from dragstrip.studies.sweep.progress import SweepProgress
from dragstrip.studies.sweep.store import Store

from .conftest import Command, plan
from .conftest import command as words_of
from .faults import FULL, all_gone, children, digest, kill, once_each

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")

AXES = ["path.rate=1mbit,2mbit", "path.rtt=10ms,40ms", "flow.cc=reno,cubic,vegas"]
REPEAT = 40
WORDS = [word for axis in AXES for word in ("--vary", axis)] + ["--repeat", str(REPEAT)]
RUNS = 12 * REPEAT


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, float]:
    """The digest of the whole sweep's dataset, and how long it takes."""
    folder = tmp_path_factory.mktemp("reference")
    began = time.monotonic()
    command.execute(plan(*AXES, repeat=REPEAT), folder / "out", Options(), SweepProgress())
    return digest(folder / "out"), time.monotonic() - began


def test_sigkill_of_the_coordinator_at_random_moments(
    experiment: Path, sweep: Command, tmp_path: Path, uninterrupted: tuple[str, float]
) -> None:
    expected, whole_s = uninterrupted
    draws = random.Random(6)  # noqa: S311
    out, known, killed, finished = tmp_path / "out", set[bytes](), 0, 0
    while killed < (200 if FULL else 10):
        process = subprocess.Popen(
            words_of(str(experiment), *WORDS, "--out", "out"),
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(draws.uniform(0.1, 1.0 + 0.7 * whole_s))
        workers = children(process.pid)
        killed += process.poll() is None
        process.kill()
        process.wait()
        assert all_gone(workers)
        if out.exists():
            now = Store(out / "store").keys()
            assert known <= now, "a run that was on the disk is gone"
            known = now
        if process.returncode == 0:  # it had ended before we came
            assert digest(out) == expected
            shutil.rmtree(out)
            known, finished = set(), finished + 1
    document = json.loads(sweep(*WORDS, "--out", "out", "--json").stdout)
    assert document["reused"] == len(known)
    assert digest(out) == expected
    assert once_each(out) == RUNS
    assert not list(out.glob("**/.draft-*"))


def test_a_sweep_killed_before_it_wrote_anything_leaves_its_folder_free(
    sweep: Command, tmp_path: Path
) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    out = tmp_path / "out"
    out.mkdir()
    (out / f".draft-{socket.gethostname()}-{gone.pid}-0").touch()
    sweep(*WORDS, "--out", str(out))
    assert once_each(out) == RUNS


def _rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "dataset").to_pylist()
    return rows


def test_sigkill_of_workers_costs_their_own_run_only(
    experiment: Path, sweep: Command, tmp_path: Path, uninterrupted: tuple[str, float]
) -> None:
    draws = random.Random(7)  # noqa: S311
    times, killed = (100 if FULL else 8), 0
    expected, whole_s = uninterrupted
    while killed < times:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        process = subprocess.Popen(
            words_of(str(experiment), *WORDS, "--out", "out", "--json", "--no-report"),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        here = 0
        while process.poll() is None:
            # A child must have time to start, which on a busy machine is longer.
            time.sleep(whole_s * draws.uniform(0.1, 0.3))
            workers = children(process.pid)
            here += bool(workers) and kill(draws.choice(workers))
        killed += here
        document = json.loads(process.communicate()[0])
        assert document["made"] == RUNS
        # A run that was hit three times is recorded so; nobody else's run was ever tried again.
        bad = [row for row in _rows(tmp_path / "out") if row["status"] != "ok"]
        assert {row["reason"] for row in bad} <= {"its process ended with signal SIGKILL, 3 times"}
        assert len(bad) == document["failed"]
        assert document["tried_again"] + document["failed"] <= here
        again = json.loads(sweep(*WORDS, "--retry-failed", "--out", "out", "--json", "--no-report").stdout)
        assert again["made"] == len(bad)
        assert digest(tmp_path / "out") == expected


@pytest.fixture
def fake_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_process, "MODULE", "fake_child")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.usefixtures("fake_child")
def test_a_run_that_cannot_be_made_is_recorded_and_the_sweep_goes_on(tmp_path: Path) -> None:
    sweep = plan("flow.label=crash,hang,hungry,wrong,fine,good", repeat=2)
    options = Options(workers=2, limits=Limits(time_s=1.5), report=False)
    document = command.execute(sweep, tmp_path, options, SweepProgress())
    assert (document["made"], document["failed"]) == (12, 8)
    rows = {row["run"]: row for row in pq.read_table(tmp_path / "dataset").to_pylist()}
    assert [rows[2 * number]["status"] for number in range(6)] == [
        "failed",
        "time limit",
        "memory limit",
        "failed",
        "ok",
        "ok",
    ]
    assert rows[0]["reason"] == "its process ended with signal SIGABRT, 3 times"
    assert rows[2]["reason"] == "it took longer than 1.5 s"
    assert rows[6]["reason"].startswith("a fault in dragstrip: ValueError: this cannot be")
    kept = {row["key"]: row for row in pq.read_table(tmp_path / "store").to_pylist()}
    crashed = kept[rows[0]["key"]]
    assert crashed["attempts"] == 3
    assert "these were its last words" in crashed["output"]
    assert json.loads(crashed["scenario"])["flows"][0]["label"] == "crash"
    # What failed stays failed, until it is asked for again.
    assert command.execute(sweep, tmp_path, options, SweepProgress())["made"] == 0


def test_a_worker_whose_engine_is_another_build_than_the_sweep_s_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where another kernel was put into use meanwhile: nothing of that one is kept as the first one's."""
    monkeypatch.setattr(type(named("sim")), "slow", True)
    sweep = replace(plan("flow.cc=reno,cubic"), engine_build="0.1.0+ffffffff")
    with pytest.raises(DragstripError, match="a different build than at the start"):
        command.execute(sweep, tmp_path, Options(report=False), SweepProgress())
    assert not list((tmp_path / "store").iterdir())


@pytest.mark.usefixtures("fake_child")
def test_failed_runs_are_made_again_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = plan("flow.label=crash,fine")
    command.execute(sweep, tmp_path, Options(report=False), SweepProgress())
    monkeypatch.setattr(pool_process, "MODULE", "dragstrip.runs.child")
    again = command.execute(sweep, tmp_path, Options(report=False, retry_failed=True), SweepProgress())
    assert (again["reused"], again["made"], again["failed"]) == (1, 1, 0)
    assert pq.read_table(tmp_path / "dataset")["status"].to_pylist() == ["ok", "ok"]


def test_workers_that_cannot_start_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_process, "MODULE", "no_such_module")
    with pytest.raises(DragstripError, match=r"do not start: .* exit status 1.*no_such_module"):
        command.execute(plan("flow.cc=reno,cubic"), tmp_path, Options(), SweepProgress())


def test_a_run_that_wants_too_much_memory_meets_its_limit(sweep: Command, tmp_path: Path) -> None:
    words = [
        "--vary",
        "path.rate=1mbit,1gbit",
        "--vary",
        "path.queue=bfifo limit 1bdp",
        "--vary",
        "path.loss=0%",
    ]
    words += ["--vary", "record.every_ack=true", "--duration", "60s", "--memory-limit", "512mb"]
    sweep(*words, "--out", "out", "--no-report", status=1)
    assert pq.read_table(tmp_path / "out" / "dataset")["status"].to_pylist() == ["ok", "memory limit"]


# --- disks that are full ----------------------------------------------------------------------

UNSHARE = shutil.which("unshare")
SMALL = [word for axis in AXES for word in ("--vary", axis)] + ["--repeat", "2", "--workers", "1"]


def _broken_at(monkeypatch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """The `step`-th write, fsync or rename says that the disk is full; gives how many there were."""
    count = 0

    def breaking(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == step:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*given, **named)

        return wrapped

    for owner, name in (
        (os, "fsync"),
        (Path, "replace"),
        (Path, "write_text"),
        (pq, "write_table"),
        (pq.ParquetWriter, "write_table"),
        (Path, "mkdir"),
    ):
        monkeypatch.setattr(owner, name, breaking(getattr(owner, name)))
    return lambda: count


def _said(act: Callable[[], object]) -> str:
    """The error of an act, or nothing."""
    try:
        act()
    except DragstripError as error:
        return str(error)
    return ""


def test_an_error_at_any_write_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    sweep = plan("path.rate=1mbit,2mbit", "flow.cc=reno,cubic", repeat=3)
    command.execute(sweep, tmp_path / "whole", Options(workers=1), SweepProgress())
    expected = digest(tmp_path / "whole")
    step, out = 0, tmp_path / "out"
    while True:
        step += 1
        with pytest.MonkeyPatch.context() as patched:
            steps = _broken_at(patched, step)
            said = _said(lambda: command.execute(sweep, out, Options(workers=1), SweepProgress()))
            if not said:
                assert steps() < step, "an error went unnoticed"
                break
            assert str(out) in said
            assert "No space left" in said
        if (out / "dataset").exists() and list((out / "dataset").glob("*.parquet")):
            assert digest(out) == expected
        if out.exists():
            assert not list(out.glob("**/.draft-*"))
        command.execute(sweep, out, Options(workers=1), SweepProgress())
        assert digest(out) == expected
        shutil.rmtree(out)
    assert step > 12


def _small_disk(folder: Path, size: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command on a file system of this size; what is on it at the end is copied to `saved`."""
    script = (
        'mkdir disk && mount -t tmpfs -o size=$1 none disk || exit 77; shift; "$@"; status=$?; '
        "cp -a disk saved; exit $status"
    )
    return subprocess.run(
        [
            str(UNSHARE),
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            size,
            *words,
        ],
        cwd=folder,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.skipif(UNSHARE is None, reason="needs unshare of util-linux")
@pytest.mark.parametrize("size", ["8k", "24k", "48k"])
def test_a_disk_that_is_full(size: str, experiment: Path, sweep: Command, tmp_path: Path) -> None:
    ended = _small_disk(tmp_path, size, words_of(str(experiment), *SMALL, "--out", "disk/out"))
    if ended.returncode == 77 or "unshare" in ended.stderr:
        pytest.skip("user namespaces are not allowed here")
    assert ended.returncode == 1, ended.stdout
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert "disk/out" in line
    assert "No space left on device" in line
    saved = tmp_path / "saved" / "out"
    done = len(Store(saved / "store").keys()) if saved.exists() else 0
    document = json.loads(sweep(*SMALL, "--out", "saved/out", "--json").stdout)
    assert document["reused"] == done
    assert once_each(saved) == 24
