"""Captures of QUIC: packets that Wireshark's programs decrypt with the keys in the file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dragstrip.engines.capture import CaptureRequest
from dragstrip.engines.sim.quic import absence
from dragstrip.experiment.comparison import compare
from dragstrip.model.recording import read
from dragstrip.studies.execution.runner import captured, execute, plan

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 100kb", "duration": "4s", "together": True}
QUIC = ("noq/cubic", "quinn/newreno", "s2n-quic/cubic", "ngtcp2/cubic")
STACKS = [*(word for word in QUIC if absence(word) is None), "cubic"]
"""By host: s1, s2, …; a library that this machine lacks is left out."""


def run(folder: Path, capture: CaptureRequest | None = None) -> Path:
    described = compare(STACKS, **PATH)
    execute(captured(plan(described), capture or CaptureRequest()), folder, report=False)
    return next(folder.glob("runs/000-*"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("quic") / "out")


def tshark(path: Path, *words: str) -> list[str]:
    """The lines of tshark; skips the test where it is not installed."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (`make capture-tools` installs it)")
    command = ["tshark", "-r", str(path), "-o", "udp.check_checksum:TRUE", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("host", [*(f"s{at}" for at in range(1, len(STACKS))), "d"])
def test_every_packet_at_a_host_is_decrypted(made: Path, host: str) -> None:
    path = made / "captures" / f"{host}.pcapng"
    datagrams = len(tshark(path, "-Y", "quic"))
    assert datagrams > 500
    assert not tshark(path, "-Y", "quic.decryption_failed or _ws.malformed or udp.checksum.status == 0")
    assert len(tshark(path, "-Y", "quic.frame")) == datagrams
    assert tshark(path, "-Y", "tls.handshake.type == 1")
    assert tshark(path, "-Y", "tls.handshake.type == 20")


def test_streams_carry_what_the_recording_counts(made: Path) -> None:
    recording = read(made)
    words = (
        "-Y",
        "udp.dstport == 5001",
        "-T",
        "fields",
        "-e",
        "quic.stream.stream_id",
        "-e",
        "quic.stream.offset",
    )
    offsets: dict[str, int] = {}
    for line in tshark(made / "captures" / "d.pcapng", *words):
        stream, offset = line.split("\t")
        if stream and offset and "," not in line:
            offsets[stream] = max(offsets.get(stream, 0), int(offset))
    received = recording["flows"].to_pylist()[0]["bytes_received"]
    assert len(offsets) == 4, "a flow is spread over four streams"
    assert sum(offsets.values()) == pytest.approx(received, rel=0.05)


def test_the_same_run_writes_the_same_bytes(made: Path, tmp_path: Path) -> None:
    again = run(tmp_path / "again")
    for path in sorted((made / "captures").iterdir()):
        assert (again / "captures" / path.name).read_bytes() == path.read_bytes(), path.name


def test_headers_alone_are_kept_where_they_are_asked_for(made: Path, tmp_path: Path) -> None:
    cut = run(tmp_path / "cut", CaptureRequest(["s1"], 96)) / "captures/s1.pcapng"
    assert cut.stat().st_size < 0.3 * (made / "captures/s1.pcapng").stat().st_size
    lengths = {int(line) for line in tshark(cut, "-T", "fields", "-e", "frame.cap_len")}
    assert max(lengths) == 96
