"""Captures that runs write: the programs of the field read them, and count what the recording has.

Every header field is held against the simulation in `crates/sim/tests/capture.rs`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragstrip.cli.capture import _is_algorithm, capture_request, spread
from dragstrip.engines.capture import CaptureRequest, names
from dragstrip.engines.registry import named
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import TABLES, Recording, read
from dragstrip.studies.execution.runner import captured, execute, plan
from dragstrip.studies.sweep import command

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 50kb", "duration": "4s"}


def run(
    folder: Path, capture: CaptureRequest | None = None, workers: int | None = None, **given: Any
) -> Path:
    """The folder of the first run's recording."""
    described = compare(given.pop("algorithms", ["cubic"]), **{**PATH, **given})
    execute(captured(plan(described), capture or CaptureRequest()), folder, report=False, workers=workers)
    return next(folder.glob("runs/000-*"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("written") / "out")


def tool(*words: str | Path) -> str:
    """What a program says; skips the test where it is not installed."""
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is not installed (`make capture-tools` installs it)")
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def flows(recording: Recording) -> list[dict[str, Any]]:
    return recording["flows"].to_pylist()


def test_a_file_for_each_host_and_for_the_bottleneck(made: Path) -> None:
    written = sorted(file.name for file in (made / "captures").iterdir())
    assert written == ["d.pcapng", "r-d.pcapng", "s1.pcapng"]


def test_the_section_says_how_to_make_it_again(made: Path) -> None:
    told = tool("capinfos", made / "captures" / "s1.pcapng")
    digest = hashlib.sha256((made / "scenario.json").read_bytes()).hexdigest()
    assert f"engine sim, seed 1, scenario.json has SHA-256 {digest}" in told
    assert "First packet time:   2001-09-09" in told
    assert "nanoseconds (9)" in told
    assert "Strict time order:   True" in told


def test_tcptrace_counts_the_sender_s_segments_and_retransmissions(made: Path) -> None:
    told = tool("tcptrace", "-n", "-l", made / "captures" / "s1.pcapng")

    def of_sender(what: str) -> int:
        found = re.search(rf"^ +{what}: +(\d+)", told, re.MULTILINE)
        assert found, what
        return int(found[1])

    (flow,) = flows(read(made))
    assert of_sender("actual data pkts") == flow["segments_sent"]
    assert of_sender("rexmt data pkts") == flow["retransmits"] > 0
    assert of_sender("outoforder pkts") == 0
    assert of_sender("max segm size") == 1448


def test_tcpdump_reads_as_many_packets_as_the_file_s_statistics_say(made: Path) -> None:
    for point in ("s1", "r-d", "d"):
        file = made / "captures" / f"{point}.pcapng"
        lines = tool("tcpdump", "-nn", "-r", file).splitlines()
        told = tool("capinfos", "-c", "-M", file)
        assert f"Number of packets:   {len(lines)}" in told
        assert not [line for line in lines if "[|" in line or "bad" in line]


def test_tcpstat_counts_ip_s_bytes_at_the_receiver(made: Path) -> None:
    file = made / "captures" / "d.pcapng"
    options = ("-f", "tcp and dst host 10.0.0.3 and greater 1000", "-o", "%N\n", "1000")
    told = tool("tcpstat", "-r", file, *options)
    wire = sum(row["wire_bytes"] for row in read(made)["received"].to_pylist())
    segments = wire // 1514
    assert wire % 1514 == 0
    assert sum(map(int, told.split())) == wire - 14 * segments


def test_wireshark_s_bytes_per_interval_are_the_recording_s(made: Path) -> None:
    words = ("-T", "fields", "-e", "frame.time_relative", "-e", "frame.len", "-Y", "tcp.len > 0")
    lines = tool("tshark", "-n", "-r", made / "captures" / "d.pcapng", *words).splitlines()
    # The first packet, a ping's request, leaves at 0.
    told: dict[int, int] = {}
    for time_s, length in (line.split() for line in lines):
        end = -(-int(time_s.replace(".", "")) // 100_000_000)
        told[end] = told.get(end, 0) + int(length)
    recorded = {
        row["time_ns"] // 100_000_000: row["wire_bytes"] for row in read(made)["received"].to_pylist()
    }
    differ = {end for end in recorded if recorded[end] != told.get(end, 0)}
    assert len(recorded) >= 39
    assert not differ


def test_drops_at_the_bottleneck_are_packets_with_a_comment(made: Path) -> None:
    words = ("-Y", "frame.comment", "-T", "fields", "-e", "frame.comment")
    told = tool("tshark", "-n", "-r", made / "captures" / "r-d.pcapng", *words).splitlines()
    rows = [row for row in read(made)["queues"].to_pylist() if row["link"] == "r-d"]
    assert len(told) == rows[-1]["dropped"] > 0
    assert set(told) == {"dropped by the queue: no room"}


def test_pings_have_the_recorded_round_trips(made: Path) -> None:
    words = ("-Y", "icmp", "-T", "fields", "-e", "frame.time_relative", "-e", "icmp.type", "-e", "icmp.seq")
    lines = tool("tshark", "-n", "-r", made / "captures" / "d.pcapng", *words).splitlines()
    seen = [
        (int(time.replace(".", "")), int(kind), int(number)) for time, kind, number in map(str.split, lines)
    ]
    asked_at = {number: time for time, kind, number in seen if kind == 8}
    trips = {number: time - asked_at[number] for time, kind, number in seen if kind == 0}
    recorded = read(made)["probes"].to_pylist()
    answered = {at: row["rtt_ns"] for at, row in enumerate(recorded) if not row["lost"]}
    assert trips == answered
    assert len(answered) > 10


def test_ecn_marks_are_in_the_headers(tmp_path: Path) -> None:
    made = run(tmp_path / "out", CaptureRequest(["d"]), ecn=True, queue="codel ecn")
    words = ("-T", "fields", "-e", "frame.number", "-Y", "ip.dsfield.ecn == 3 and tcp.len > 0")
    told = tool("tshark", "-n", "-r", made / "captures" / "d.pcapng", *words).splitlines()
    rows = [row for row in read(made)["queues"].to_pylist() if row["link"] == "r-d"]
    assert len(told) > 5
    # Those marked last are still under way.
    assert 0 <= rows[-1]["marked"] - len(told) <= 2


def test_the_same_bytes_whatever_makes_them(tmp_path: Path) -> None:
    one = run(tmp_path / "a", workers=1, algorithms=["cubic", "bbr"], jitter="5ms", duration="2s")
    two = run(tmp_path / "b", workers=2, algorithms=["cubic", "bbr"], jitter="5ms", duration="2s")
    for file in (one / "captures").iterdir():
        assert file.read_bytes() == (two / "captures" / file.name).read_bytes()
    bare = compare(["cubic"], **{**PATH, "jitter": "5ms", "duration": "2s"})
    execute(plan(bare), tmp_path / "c", report=False)
    assert not list(tmp_path.glob("c/**/captures"))
    captured, alone = read(one), read(next(tmp_path.glob("c/runs/000-*")))
    for table in set(TABLES) - {"spp", "tcpstat"}:
        assert captured[table].equals(alone[table]), table


def test_a_sweep_captures_beside_its_recordings(tmp_path: Path) -> None:
    described = compare(["reno"], **{**PATH, "duration": "1s"})
    (tmp_path / "e.json").write_text(json.dumps(described.content()))
    sweep = command.plan.describe(Experiment.build(described.content()), "", vary=["path.rtt=20ms,40ms"])
    with pytest.raises(BadInputError, match="--keep-recordings"):
        command.checked(CaptureRequest(), sweep, keep_recordings=False)
    capture = command.checked(CaptureRequest(["d"]), sweep, keep_recordings=True)
    options = command.Options(workers=1, keep_recordings=True, capture=capture, report=False)
    command.run(sweep, tmp_path / "out", options, quiet=True)
    assert len(list(tmp_path.glob("out/recordings/*/captures/d.pcapng"))) == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"points": ["r"]},
            "got 'r', expected a host or a link: s1 d s1-r r-s1 r-d d-r; of the router r one of",
        ),
        ({"snaplen": 20}, "--snaplen: got 20, expected 54"),
    ],
)
def test_what_cannot_be_captured_is_refused(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInputError) as caught:
        captured(plan(compare(["cubic"], **PATH)), CaptureRequest(**given))
    assert expected in str(caught.value)


def test_an_engine_that_writes_none_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of ours, but somebody's own need not."""
    monkeypatch.setattr(type(named("ssh")), "captures", False)
    with pytest.raises(BadInputError, match="--engine: got 'ssh', expected an engine that writes captures"):
        CaptureRequest().check_engine(named("ssh"))


def test_any_number_of_names_follows_the_option() -> None:
    assert spread(["e", "--capture", "a", "b", "--json"]) == ["e", "--capture=a", "--capture=b", "--json"]
    assert spread(["e", "--capture"]) == ["e", "--capture="]
    algorithms = ["--capture", "s1", "d", "cubic:beta=0.8*2", "bbr"]
    assert spread(algorithms, _is_algorithm) == ["--capture=s1", "--capture=d", "cubic:beta=0.8*2", "bbr"]
    assert spread(["--capture=a", "e", "--", "--capture"]) == ["--capture=a", "e", "--", "--capture"]
    assert capture_request(None, None) is None
    assert capture_request([""], None) == CaptureRequest([])
    with pytest.raises(BadInputError, match="--snaplen"):
        capture_request(None, 100)


def test_files_are_called_as_the_points_are() -> None:
    assert names(["a b", "a/b", "..", "d"]) == {
        "a b": "a-b.pcapng",
        "a/b": "a-b-2.pcapng",
        "..": "point.pcapng",
        "d": "d.pcapng",
    }
