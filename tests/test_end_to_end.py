"""From the command line to the files, with the simulator."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import dragstrip
from dragstrip.engines.sim import simulate
from dragstrip.experiment.expand import expand
from dragstrip.model.recording import LATER, TABLES, read

ROOT = Path(__file__).parents[1]
OTHERS = ("scenario.json", "provenance.json", "SHA256SUMS")
COLUMNS = {
    "flows": "flow label protocol cc sender receiver start_ns stop_ns bytes_acked bytes_received segments_sent "
    "retransmits rto_count ecn_negotiated",
    "samples": "time_ns flow cwnd_bytes ssthresh_bytes bytes_in_flight srtt_ns rtt_ns min_rtt_ns pacing_bps "
    "delivery_bps bytes_acked bytes_written retransmits state limit",
    "received": "time_ns flow wire_bytes new_bytes",
    "rtts": "time_ns flow rtt_ns",
    "probes": "time_ns probe target rtt_ns lost",
    "queues": "time_ns link backlog_bytes backlog_packets enqueued dropped marked",
}
PATH = ["--rate", "2mbit", "--rtt", "40ms", "--queue", "bfifo limit 20kb", "--duration", "5s"]


def command_line(*words: str, cwd: Path, **given: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragstrip", *words],
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        **given,
    )


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Three algorithms, two repeats, without a report."""
    folder = tmp_path_factory.mktemp("compared")
    ended = command_line(
        "compare",
        *PATH,
        "--repeat",
        "2",
        "--out",
        "out",
        "--json",
        "--no-report",
        "reno",
        "cubic",
        "bbr",
        cwd=folder,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    document: dict[str, Any] = json.loads(ended.stdout)
    return folder, document


def test_the_document_is_as_documented(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, document = compared
    schema = json.loads((ROOT / "docs" / "reference" / "result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    stored = json.loads((folder / "out" / "result.json").read_text())
    jsonschema.validate(stored, schema)
    names = [(run["scenario"], run["seed"]) for run in document["runs"]]
    assert names == [(f"{cc} #{seed}", seed) for seed in (1, 2) for cc in ("reno", "cubic", "bbr")]


def test_figures_fit_the_path(compared: tuple[Path, dict[str, Any]]) -> None:
    _, document = compared
    for run in document["runs"]:
        (flow,) = run["flows"]
        # 1448 of 1514 bytes are new; a loss-based flow fills a 20 kB queue soon.
        assert 1.2e6 < flow["goodput_bps"] < 2e6 * 1448 / 1514 * 1.001, run["scenario"]
        assert flow["share"] == 1.0
        assert run["jain"] == pytest.approx(1.0)
        assert flow["rtt_ms"]["p5"] >= 40.0
        # At most the round trip, a full queue and the packet in service.
        assert flow["rtt_ms"]["p95"] <= 40 + (20 * 1024 + 1514) * 8 / 2e3 + 45
        assert run["probes"][0]["target"] == "s1"
        assert run["probes"][0]["rtt_ms"]["p5"] >= 40.0
        assert run["queues"][0]["link"] == "r-d"
        assert run["queues"][0]["backlog_bytes"]["max"] <= 20 * 1024
        if run["queues"][0]["dropped"] == 0:
            assert flow["retransmits"] == 0


def test_every_recording_has_its_tables_and_columns(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, document = compared
    for run in document["runs"]:
        place = folder / run["recording"]
        recording = read(place)
        for table, columns in COLUMNS.items():
            assert set(columns.split()) <= set(recording[table].column_names), table
        assert recording.scenario["name"] == run["scenario"]
        assert recording.provenance["engine"] == "sim"
        assert len(recording.provenance["recording_sha256"]) == 64
        assert recording.provenance["command"].startswith("dragstrip compare --rate 2mbit")
        assert sorted(file.name for file in place.iterdir()) == sorted(
            [*(f"{table}.parquet" for table in TABLES if table not in LATER), *OTHERS]
        )
    assert not (folder / "out" / "PARTIAL").exists()


def test_every_column_is_documented(compared: tuple[Path, dict[str, Any]]) -> None:
    folder, document = compared
    place = folder / document["runs"][0]["recording"]
    recording = read(place)
    page = (ROOT / "docs" / "reference" / "recording.md").read_text()
    sections = {part.split("`")[0]: part for part in page.split("\n## `")[1:]}
    for table in TABLES:
        for column in recording[table].column_names:
            assert f"`{column}`" in sections[table], f"{table}.{column}"
    for key in recording.provenance:
        assert f"`{key}`" in sections["provenance.json"], key


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    race = dragstrip.compare(
        ["reno", "vegas", "bbr"],
        rate="2mbit",
        rtt="40ms",
        queue="bfifo limit 20kb",
        duration="4s",
        loss="0.5%",
        jitter="2ms",
        flows=2,
    )
    digests = []
    for name, workers in (("one", 1), ("two", 2), ("again", 2)):
        dragstrip.run(race, tmp_path / name, workers=workers, report=False)
        files = sorted((tmp_path / name / "runs").glob("*/*.parquet"))
        digests.append([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])
        assert len(files) == 3 * (len(TABLES) - len(LATER))
    assert digests[0] == digests[1] == digests[2]
    hashes = {read(run).provenance["recording_sha256"] for run in (tmp_path / "one" / "runs").iterdir()}
    assert len(hashes) == 3
    # The same scenario in this very process.
    for run in expand(race):
        recorded = read(tmp_path / "one" / "runs" / run.slug).provenance["recording_sha256"]
        assert simulate(run.scenario).provenance["recording_sha256"] == recorded


def test_another_seed_gives_another_recording() -> None:
    race = dragstrip.compare(
        ["reno"], rate="2mbit", rtt="40ms", queue="bfifo limit 20kb", duration="4s", loss="1%", repeat=2
    )
    first, second = (simulate(run.scenario).provenance["recording_sha256"] for run in expand(race))
    assert first != second


def test_progress_may_end_a_run_and_its_fault_is_passed_on() -> None:
    race = dragstrip.compare(["reno"], rate="2mbit", rtt="40ms", queue="bfifo limit 20kb", duration="20s")
    scenario = expand(race)[0].scenario
    seen: list[int] = []

    def stop_at_five(now_ns: int) -> bool:
        seen.append(now_ns)
        return now_ns < 5_000_000_000

    cut = simulate(scenario, stop_at_five)
    assert 5e9 <= seen[-1] < 7e9
    assert max(cut["samples"]["time_ns"].to_pylist()) < 8e9

    def fail(_now_ns: int) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        simulate(scenario, fail)


def test_together_shares_the_path(tmp_path: Path) -> None:
    race = dragstrip.compare(
        ["cubic", "vegas"], rate="4mbit", rtt="20ms", queue="bfifo limit 60kb", duration="20s", together=True
    )
    (run,) = dragstrip.run(race, tmp_path / "out", report=False).document["runs"]
    assert [flow["cc"] for flow in run["flows"]] == ["cubic", "vegas"]
    assert sum(flow["share"] for flow in run["flows"]) == pytest.approx(1.0)
    assert run["flows"][0]["share"] > run["flows"][1]["share"]  # Vegas yields to a loss-based flow
    assert 0.5 <= run["jain"] < 1.0


def test_traffic_of_every_kind_side_by_side(tmp_path: Path) -> None:
    race = dragstrip.Experiment.build(
        {
            "duration": "12s",
            "path": {
                "rate": "20mbit",
                "rtt": "30ms",
                "queue": "sfq",
                "receivers": 2,
                "loss": "0.1%",
                "jitter": "1ms",
            },
            "flows": [
                {"cc": "cubic", "count": 2, "stagger": "1s"},
                {
                    "application": {"kind": "constant_rate", "rate": "3mbit", "datagram": "1200b"},
                    "start": "2s",
                    "stop": "10s",
                },
                {"cc": "bbr", "application": {"kind": "on_off", "on": "1s", "off": "3s"}},
                {
                    "cc": "reno",
                    "application": {
                        "kind": "request_response",
                        "request": "200b",
                        "response": "20kb",
                        "think": "100ms",
                    },
                },
            ],
            "probes": [{"from": "d1", "target": "r"}, {"from": "s1", "target": "d2", "interval": "1s"}],
        }
    )
    (run,) = dragstrip.run(race, tmp_path / "out", report=False).document["runs"]
    flows = {flow["label"]: flow for flow in run["flows"]}
    assert list(flows) == ["cubic-1", "cubic-2", "udp", "bbr", "reno"]
    assert 2.9e6 < flows["udp"]["goodput_bps"] <= 3.0e6  # unharmed by sfq, but for 0.1 % of loss
    assert flows["udp"]["rtt_ms"] == {"p5": None, "p50": None, "p95": None}
    # A request every 100 ms and two round trips or so: at most ten of 20 kB a second.
    assert 0.5e6 < flows["reno"]["goodput_bps"] < 10 * 20 * 1024 * 8
    assert sum(flow["goodput_bps"] for flow in flows.values()) > 15e6
    assert [probe["target"] for probe in run["probes"]] == ["r", "d2"]
    assert run["probes"][1]["rtt_ms"]["p5"] >= 30.0
    # Once the socket has drained, nobody sends in the quiet seconds of on_off.
    received = read(tmp_path / "out" / run["recording"])["received"].to_pylist()
    quiet = [row["wire_bytes"] for row in received if row["flow"] == 3 and 3.5e9 < row["time_ns"] <= 4e9]
    assert quiet == [0] * 5


def test_an_experiment_in_a_file_with_claims(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("""
duration = "10s"
[path]
rate = "2mbit"
rtt = "20ms"
queue = "codel limit 1000 ecn"
[hosts."*"]
sysctl = { "net.ipv4.tcp_ecn" = 1 }
[[flows]]
cc = "cubic"
bytes = "1mb"
[[probes]]
from = "d"
target = "r"
[[claims]]
id = "marked, not dropped"
source = "RFC 3168"
metric = "retransmits"
value = 0
unit = "segments"
tolerance = 0
[[claims]]
id = "ecn"
source = "RFC 3168"
metric = "ecn_negotiated"
value = 1
tolerance = 0
[[claims]]
id = "faster than the line"
source = "a salesman"
metric = "goodput_bps"
value = 3
unit = "Mbit/s"
tolerance = "10%"
""")
    ended = command_line("run", "mine.toml", "--out", "out", "--no-report", "--json", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    document = json.loads(ended.stdout)
    grades = {claim["id"]: claim["grade"] for claim in document["claims"]}
    assert grades == {
        "marked, not dropped": "reproduced",
        "ecn": "reproduced",
        "faster than the line": "contradicted",
    }
    (run,) = document["runs"]
    assert run["queues"][0]["marked"] > 0
    (flow,) = read(tmp_path / run["recording"])["flows"].to_pylist()
    assert flow["bytes_received"] == 1 << 20
    assert 4e9 < flow["stop_ns"] < 7e9  # 1 MiB at 2 Mbit/s, not the run's 10 s


def test_a_table_in_the_terminal(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "160"}
    ended = command_line("compare", *PATH, "--no-report", "reno", "vegas", cwd=tmp_path, env=environment)
    assert ended.returncode == 0
    assert "reno" in ended.stdout
    assert "vegas" in ended.stdout
    assert "Recordings: runs/compare-001" in ended.stdout
    assert ended.stderr.splitlines()[-1].startswith("[2/2]")


def test_an_interrupt_is_clean(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "dragstrip",
            "compare",
            *PATH[:-1],
            "15000s",
            "--loss",  # without chance there would be two runs
            "0.01%",
            "--repeat",
            "50",
            "--out",
            "out",
            "reno",
            "cubic",
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (workers := _children(running.pid)) or not (tmp_path / "out").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 130
    assert errors.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.iterdir()) == []
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def test_the_readmes_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = (ROOT / "README.md").read_text().split("```python\n")
    assert len(blocks) == 2
    code = blocks[1].split("```")[0].replace("30s", "2s")
    assert len([line for line in code.splitlines() if line.strip()]) <= 6
    monkeypatch.chdir(tmp_path)
    ended = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "bbr" in ended.stdout
