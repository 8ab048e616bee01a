"""Recordings as files of other programs: what they say is what was recorded, and those programs read it."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import itertools
import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.interop import readers, writers
from dragstrip.interop.writers import iperf3, perfetto, tables
from dragstrip.io.files import NotWrittenError
from dragstrip.model.recording import Recording, read
from dragstrip.studies.execution.runner import captured, execute, plan

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 50kb", "duration": "4s"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output folder of one run with two flows."""
    folder = tmp_path_factory.mktemp("export") / "out"
    execute(plan(compare(["cubic", "bbr"], together=True, **PATH)), folder, report=False)
    return folder


@pytest.fixture(scope="module")
def recording(made: Path) -> Recording:
    return read(next((made / "runs").iterdir()))


def exported(made: Path, to: str, out: Path) -> list[Path]:
    return sorted(writers.export(made, to, out))


def test_ns3_has_a_line_for_every_packet(tmp_path: Path) -> None:
    race = tmp_path / "race"
    described = compare(["cubic"], **{**PATH, "duration": "2s"})
    points = ["s1", "d", "r-s1", "r-d"]
    execute(captured(plan(described), CaptureRequest(points)), race, report=False)
    (file,) = writers.export(race, "ns3", tmp_path)
    lines = file.read_text().splitlines()
    times = [float(line.split()[1]) for line in lines]
    assert times == sorted(times)
    recording = read(next((race / "runs").iterdir()))
    (flow,) = recording["flows"].to_pylist()

    def count(event: str, place: str, what: str) -> int:
        return sum(line.startswith(event) and place in line and what in line for line in lines)

    data = "ns3::TcpHeader (30001 > 5001 ["
    segments = sum("Payload" in line for line in lines if line.startswith("- ") and "NodeList/0/" in line)
    segments -= count("-", "NodeList/0/", "Icmpv4Header")
    assert segments == flow["segments_sent"] > 100
    queues = recording["queues"].to_pylist()
    drops = max(row["dropped"] for row in queues if row["link"] == "r-d")
    assert count("d", "/NodeList/1/DeviceList/1/", "TxQueue/Drop") == drops > 0
    sent = count("-", "/NodeList/1/DeviceList/1/", "TxQueue/Dequeue")
    assert count("+", "/NodeList/1/DeviceList/1/", "TxQueue/Enqueue") == sent > 0
    assert count("r", "/NodeList/2/", data) > 0
    assert count("-", "/NodeList/0/", "[SYN] ") == 1
    assert sum("ns3::TcpOptionSack(blocks: " in line for line in lines) > 0


def test_ns3_needs_captures(made: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="--capture"):
        writers.export(made, "ns3", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def of_flow(recording: Recording, table: str, flow: int) -> list[dict[str, Any]]:
    return [row for row in recording[table].to_pylist() if row["flow"] == flow]


def test_flent_reads_goodput_and_pings(made: Path, recording: Recording, tmp_path: Path) -> None:
    (file,) = exported(made, "flent", tmp_path)
    if shutil.which("flent") is None:
        pytest.skip("flent is not installed (`make capture-tools` installs it)")
    words = ["flent", "-i", str(file), "-f", "csv"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout
    lines = said[said.index("tcp_nup") :]
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert len(rows) == 40
    for number in (1, 2):
        arrived = {
            row["time_ns"]: row["new_bytes"] * 8 / 1e5 for row in of_flow(recording, "received", number - 1)
        }
        told = {round(float(row["tcp_nup"]) * 10): row[f"TCP upload::{number}"] for row in rows}
        known = {at: float(value) for at, value in told.items() if value}
        assert known == pytest.approx({time // 10**8: rate for time, rate in arrived.items()})
    pings = [float(row["Ping (ms) ICMP"]) for row in rows if row["Ping (ms) ICMP"]]
    recorded = [row["rtt_ns"] / 1e6 for row in recording["probes"].to_pylist() if not row["lost"]]
    assert pings
    assert set(pings) <= set(recorded)


def test_flent_s_file_says_what_the_flows_are(made: Path, tmp_path: Path) -> None:
    (file,) = exported(made, "flent", tmp_path)
    document = json.loads(gzip.decompress(file.read_bytes()))
    assert {len(series) for series in document["results"].values()} == {40}
    meta = document["metadata"]
    assert (meta["NAME"], meta["TEST_PARAMETERS"]) == ("tcp_nup", {"upload_streams": "2"})
    assert meta["SERIES_META"]["TCP upload::2"]["CONG_CONTROL"] == "bbr"
    total, one, two = (document["results"][f"TCP upload{name}"] for name in (" sum", "::1", "::2"))
    assert total[-1] == pytest.approx(one[-1] + two[-1])


def test_iperf3_s_document_has_the_fields_that_iperf3_writes(
    made: Path, recording: Recording, tmp_path: Path
) -> None:
    files = exported(made, "iperf3", tmp_path)
    assert len(files) == 2
    documents = {document["end"]["sender_tcp_congestion"]: document for document in map(_json, files)}
    for flow in recording["flows"].to_pylist():
        document = documents[flow["cc"]]
        samples = of_flow(recording, "samples", flow["flow"])
        assert [round(it["sum"]["end"]) for it in document["intervals"]] == [1, 2, 3, 4]
        assert document["end"]["sum_sent"]["bytes"] == samples[-1]["bytes_written"]
        assert document["end"]["sum_received"]["bytes"] == flow["bytes_received"]
        assert sum(it["sum"]["retransmits"] for it in document["intervals"]) == samples[-1]["retransmits"]
        # As iperf 3.12 -J of a TCP test has them.
        assert set(document["intervals"][0]["streams"][0]) == {
            "socket", "start", "end", "seconds", "bytes", "bits_per_second", "retransmits", "snd_cwnd", "snd_wnd",
            "rtt", "rttvar", "pmtu", "omitted", "sender",
        }  # fmt: skip
        assert set(document["end"]["streams"][0]["sender"]) == {
            "socket", "start", "end", "seconds", "bytes", "bits_per_second", "retransmits", "max_snd_cwnd", "max_snd_wnd",
            "max_rtt", "min_rtt", "mean_rtt", "sender",
        }  # fmt: skip


def test_what_is_exported_and_read_again_is_the_same(
    made: Path, recording: Recording, tmp_path: Path
) -> None:
    (file,) = exported(made, "qlog", tmp_path)
    again = readers.read(file)
    columns = [
        "time_ns",
        "flow",
        "cwnd_bytes",
        "srtt_ns",
        "min_rtt_ns",
        "bytes_in_flight",
        "ssthresh_bytes",
        "state",
    ]

    def rows(given: Recording) -> list[dict[str, Any]]:
        ordered = sorted(given["samples"].to_pylist(), key=lambda row: (row["flow"], row["time_ns"]))
        return [{name: row[name] for name in columns} for row in ordered]

    recorded = {(row["time_ns"], row["flow"]): row for row in rows(recording)}
    found = rows(again)
    assert len(found) > 40
    # Only changes are written; what is empty again keeps its last value there.
    for row in found:
        expected = recorded[row["time_ns"], row["flow"]]
        assert {name: row[name] for name in columns if expected[name] is not None} == {
            name: value for name, value in expected.items() if value is not None
        }
    (packed,) = exported(made, "flent", tmp_path)
    received = readers.read(packed)["received"].to_pylist()
    sums = [sum(row["new_bytes"] for row in received if row["flow"] == flow) for flow in (0, 1)]
    assert sums == [sum(row["new_bytes"] for row in of_flow(recording, "received", flow)) for flow in (0, 1)]


def test_perfetto_has_every_sample_as_counters_and_every_stretch_as_a_slice(
    made: Path, recording: Recording, tmp_path: Path
) -> None:
    (file,) = exported(made, "perfetto", tmp_path)
    events = _json(file)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    flows = recording["flows"].to_pylist()
    assert list(names.values()) == [
        *(f"{flow['label']} ({flow['sender']} to {flow['receiver']})" for flow in flows),
        "queue r-d",
        *(f"ping {name}" for name in dict.fromkeys(recording["probes"]["probe"].to_pylist())),
    ]

    def values(pid: int, name: str) -> list[tuple[float, float]]:
        found = [it for it in events if it["ph"] == "C" and (it["pid"], it["name"]) == (pid, name)]
        return [(it["ts"], it["args"]["value"]) for it in found]

    for pid, flow in enumerate(flows, 1):
        samples = of_flow(recording, "samples", flow["flow"])
        windows = [(it["time_ns"] / 1e3, it["cwnd_bytes"] / 1e3) for it in samples]
        assert values(pid, "cwnd (kB)") == windows
        rtts = of_flow(recording, "rtts", flow["flow"]) or samples
        assert values(pid, "RTT (ms)") == [
            (it["time_ns"] / 1e3, it["rtt_ns"] / 1e6) for it in rtts if it["rtt_ns"] is not None
        ]
        rates = values(pid, "goodput (Mbit/s)")
        carried = sum((end - at) * rate / 8 for (at, rate), (end, _) in itertools.pairwise(rates))
        assert carried == pytest.approx(flow["bytes_received"])
        slices = [it for it in events if it["ph"] == "X" and (it["pid"], it["tid"]) == (pid, perfetto.STATE)]
        states = [(word, next(rows)) for word, rows in itertools.groupby(samples, key=lambda it: it["state"])]
        assert [(it["name"], it["ts"]) for it in slices] == [(w, it["time_ns"] / 1e3) for w, it in states]
        assert all(
            one["ts"] + one["dur"] == pytest.approx(two["ts"]) for one, two in itertools.pairwise(slices)
        )
    backlog = [(it["time_ns"] / 1e3, it["backlog_bytes"] / 1e3) for it in recording["queues"].to_pylist()]
    assert values(len(flows) + 1, "backlog (kB)") == backlog
    assert not [event for event in events if event["ph"] in "sf"]


@pytest.mark.parametrize("algorithms", [("cubic", "bbr"), ("noq/cubic", "bbr")])
def test_qlog_has_what_qvis_looks_for(tmp_path: Path, algorithms: tuple[str, str]) -> None:
    """States, windows and pacing of every sample, and the packets from which qvis takes its axes.

    As in QlogLoaderV2.ts and CongestionGraphD3Renderer.ts of qvis.
    """
    race = tmp_path / "race"
    described = compare(algorithms, together=True, **{**PATH, "duration": "2s"})
    execute(captured(plan(described), CaptureRequest(["s1"])), race, report=False)
    recording = read(next((race / "runs").iterdir()))
    (file,) = exported(race, "qlog", tmp_path)
    assert '"qlog_version": "0.3", "qlog_format": "JSON"' in file.read_text()[:1024]
    sent = []
    for trace, flow in zip(_json(file)["traces"], recording["flows"].to_pylist(), strict=True):
        assert trace["common_fields"]["time_format"] == "relative"
        assert trace["vantage_point"] == {"name": flow["sender"], "type": "client"}
        events = trace["events"]
        times = [event["time"] for event in events]
        assert times == sorted(times)

        def named(name: str, events: list[dict[str, Any]] = events) -> list[dict[str, Any]]:
            return [event for event in events if event["name"] == name]

        samples = of_flow(recording, "samples", flow["flow"])
        states = [state for state, _ in itertools.groupby(samples, key=lambda it: it["state"])]
        assert [it["data"]["new"] for it in named("recovery:congestion_state_updated")] == states
        metrics = named("recovery:metrics_updated")
        for metric, column in (("congestion_window", "cwnd_bytes"), ("pacing_rate", "pacing_bps")):
            told = [it["data"][metric] for it in metrics if metric in it["data"]]
            assert told == [
                value for value, _ in itertools.groupby(it[column] for it in samples) if value is not None
            ]
        packets = named("transport:packet_sent")
        sent.append(sum(it["data"]["raw"]["length"] > 1000 for it in packets))
        assert [it["data"]["header"]["packet_number"] for it in packets] == list(range(len(packets)))
    # Only the first flow's sender was captured; a packet of it may hold several segments.
    assert sent[1] == 0 < sent[0] <= recording["flows"]["segments_sent"][0].as_py()


def test_perfetto_leads_from_each_drop_to_its_retransmission(tmp_path: Path) -> None:
    """CUBIC resends each segment that the queue drops once: as many arrows, from queue to flow, forward in time."""
    race = tmp_path / "race"
    described = compare(["cubic"], **{**PATH, "duration": "3s"})
    execute(captured(plan(described), CaptureRequest()), race, report=False)
    recording = read(next((race / "runs").iterdir()))
    (flow,) = recording["flows"].to_pylist()
    dropped = max(row["dropped"] for row in recording["queues"].to_pylist())
    (file,) = exported(race, "perfetto", tmp_path)
    document = _json(file)
    events = document["traceEvents"]
    drops = [event for event in events if event["name"] == "drop"]
    assert document["otherData"]["drops"] == sum(it["args"]["packets"] for it in drops) == dropped > 10
    begins = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert begins.keys() == ends.keys()
    assert len(begins) == flow["retransmits"] == dropped
    slices = {(it["pid"], it["tid"], it["ts"]) for it in events if it["ph"] == "X"}
    for number, begin in begins.items():
        end = ends[number]
        # A retransmission takes a round trip at least: duplicate acknowledgements must come back first.
        assert end["ts"] - begin["ts"] > 20_000
        assert {(it["pid"], it["tid"], it["ts"]) for it in (begin, end)} <= slices


def test_perfetto_s_file_is_bounded(
    made: Path, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter of too many values keeps its extremes."""
    monkeypatch.setattr(perfetto, "POINTS_MAX", 16)
    (file,) = exported(made, "perfetto", tmp_path)
    events = _json(file)["traceEvents"]
    for pid, flow in enumerate(recording["flows"].to_pylist(), 1):
        shown = [it["args"]["value"] for it in events if (it["pid"], it["name"]) == (pid, "cwnd (kB)")]
        windows = [it["cwnd_bytes"] / 1e3 for it in of_flow(recording, "samples", flow["flow"])]
        assert len(shown) <= 17 < len(windows)
        assert (min(shown), max(shown), shown[-1]) == (min(windows), max(windows), windows[-1])


def test_csv_has_a_file_for_each_table(made: Path, recording: Recording, tmp_path: Path) -> None:
    files = exported(made, "csv", tmp_path)
    (flows,) = [file for file in files if file.name.endswith(".flows.csv")]
    told = list(csv.DictReader(flows.open()))
    assert [(row["label"], int(row["bytes_received"])) for row in told] == [
        (row["label"], row["bytes_received"]) for row in recording["flows"].to_pylist()
    ]


@pytest.mark.parametrize("label", ["=1+1", "+1", "-1", "@sum"])
def test_a_text_of_csv_is_no_formula(label: str, recording: Recording) -> None:
    flows = recording["flows"]
    at = flows.column_names.index("label")
    named = flows.set_column(at, "label", pa.array([label] * len(flows)))
    changed = replace(recording, tables={**recording.tables, "flows": named})
    head, *lines = csv.reader(io.StringIO(tables.write(changed, "run")["run.flows.csv"].decode()))
    assert {line[head.index("label")] for line in lines} == {f"'{label}"}
    assert {line[head.index("cc")] for line in lines} == {"cubic", "bbr"}


def test_a_label_that_no_file_can_be_named_after_is_named_itself(recording: Recording) -> None:
    """The error named the folder; a recording from elsewhere may have any label."""
    flows = recording["flows"]
    at = flows.column_names.index("label")
    named = flows.set_column(at, "label", pa.array(["x" * 300] * len(flows)))
    changed = replace(recording, tables={**recording.tables, "flows": named})
    with pytest.raises(BadInputError, match=r"flows\.label: got 'xxx"):
        iperf3.write(changed, "run")


def test_labels_that_are_alike_in_ascii_have_a_file_each(recording: Recording) -> None:
    """`ü` and `ö` are both `-` in a file's name: the second flow took the first one's place."""
    flows = recording["flows"]
    at = flows.column_names.index("label")
    named = flows.set_column(at, "label", pa.array(["ü", "ö"]))
    changed = replace(recording, tables={**recording.tables, "flows": named})
    files = iperf3.write(changed, "run")
    assert list(files) == ["run.-.iperf3.json", "run.--1.iperf3.json"]
    sent = [json.loads(text)["end"]["sum_sent"]["bytes"] for text in files.values()]
    known = [json.loads(text)["end"]["sum_sent"]["bytes"] for text in iperf3.write(recording, "run").values()]
    assert sent == known
    assert sent[0] != sent[1]


def test_nothing_is_overwritten_and_what_is_none_is_refused(made: Path, tmp_path: Path) -> None:
    exported(made, "qlog", tmp_path)
    with pytest.raises(BadInputError, match=r"--out: got .*qlog.*, expected a file that does not exist yet"):
        writers.export(made, "qlog", tmp_path)
    with pytest.raises(
        BadInputError, match="--to: got 'xml', expected one of csv flent iperf3 ns3 perfetto qlog"
    ):
        writers.export(made, "xml", tmp_path)
    with pytest.raises(BadInputError, match=r"RUN: got .*, expected the folder of a recording"):
        writers.export(tmp_path, "csv", tmp_path)


def _json(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_disk_that_fills_leaves_none_of_the_files(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft is written whole, or nothing appears, and the next try finds the folder free."""
    written = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if "rtts" in path.name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return written(path, content)

    for folder in (tmp_path / "new" / "csv", tmp_path):
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", full)
            with pytest.raises(NotWrittenError, match=f"^{folder}: cannot be written: No space left"):
                exported(made, "csv", folder)
        assert list(tmp_path.iterdir()) == []
    assert all(file.exists() for file in exported(made, "csv", tmp_path / "new" / "csv"))
