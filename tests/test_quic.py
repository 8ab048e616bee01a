"""QUIC stacks from the command line: a race beside TCP, and refusals that say why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.engines.sim import quic

PATH = ["--rate", "10mbit", "--rtt", "40ms", "--queue", "1bdp", "--duration", "3s"]


def compare(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragstrip", "compare", *PATH, *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def words() -> Iterator[object]:
    """A word of each stack with another one; skipped by name where this machine lacks a library."""
    for pair in (
        ("noq/cubic", "quinn/bbr"),
        ("s2n-quic/cubic", "s2n-quic/bbr"),
        ("ngtcp2/cubic", "ngtcp2/bbr2"),
    ):
        absent = next(filter(None, map(quic.absence, pair)), None)
        yield pytest.param(pair, marks=pytest.mark.skipif(absent is not None, reason=f"needs {absent}"))


@pytest.mark.parametrize("pair", list(words()), ids=" ".join)
def test_a_race_with_tcp_has_the_same_bytes_with_one_worker_and_with_two(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    tables = []
    for workers in ("1", "2"):
        out = tmp_path / workers
        ended = compare(
            "--workers", workers, "--out", str(out), "--repeat", "2", "--together", *pair, "cubic"
        )
        assert ended.returncode == 0, ended.stderr
        assert pair[0] in ended.stdout
        tables.append({file.name: file.read_bytes() for file in sorted(out.rglob("*.parquet"))})
    assert tables[0]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["noq/bbr3", "cubic"], "cannot be seeded"),
        (["noq/cubik", "cubic"], 'did you mean "noq/cubic"?'),
        (["noq/cubic:beta=0.8", "cubic"], "expected one of ack_threshold"),
        (["ngtcp2/newreno", "cubic"], 'did you mean "ngtcp2/reno"?'),
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


def test_a_stack_without_its_library_is_refused_with_its_package_and_marked_in_the_list(
    tmp_path: Path,
) -> None:
    (tmp_path / "libngtcp2.so.9").write_bytes(b"")  # the loader finds it first, and cannot load it
    out = tmp_path / "out"
    ended = compare("--out", str(out), "ngtcp2/cubic", "cubic", LD_LIBRARY_PATH=str(tmp_path))
    assert ended.returncode == 2
    assert "apt install libngtcp2-9" in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
    assert not out.exists()
    listed = subprocess.run(
        [sys.executable, "-m", "dragstrip", "list", "--algorithms", "--json"],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = {row["name"]: row["models"] for row in json.loads(listed.stdout)["algorithms"]}
    assert rows["ngtcp2/cubic"].endswith("not installed here")
    assert not rows["noq/cubic"].endswith("not installed here")


def test_a_recording_names_the_releases_of_its_stacks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert compare("--out", str(out), "noq/cubic", "cubic").returncode == 0
    provenances = [json.loads(file.read_text()) for file in sorted(out.rglob("provenance.json"))]
    assert sorted(provenance.get("stacks", []) for provenance in provenances) == [[], ["noq-proto 1.4.0"]]


def test_a_build_is_the_same_with_and_without_a_library() -> None:
    words = quic.words_of_build()
    assert "noq/cubic" in words
    assert not any(word.startswith("ngtcp2/") for word in words)


def test_every_word_has_its_stack_and_its_release() -> None:
    for row in _core.quic_table():
        assert row["name"].startswith(f"{row['stack']}/")
        assert row["release"].split()[1][0].isdigit()
