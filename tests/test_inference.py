"""`dragstrip inspect --infer`: known paths are inferred from captures, and what cannot be told is not guessed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dragstrip.analysis import captures
from dragstrip.analysis.diagnosis import walk
from dragstrip.analysis.inference import arrivals, console, policer, rate, series
from dragstrip.analysis.inference import path as paths
from dragstrip.analysis.inference.estimate import Estimate
from dragstrip.analysis.inference.path import PathEstimate, infer
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.io.untrusted import capture_pieces
from dragstrip.studies.execution.runner import captured, execute, plan

IP = 1500 / 1514
"""The simulator's links count Ethernet frames, estimates IP packets."""
PATHS: dict[str, dict[str, Any]] = {
    "tail": {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 50kb"},
    "codel": {"rate": "10mbit", "rtt": "40ms", "queue": "codel"},
    "policed": {"rate": "50mbit", "rtt": "40ms", "queue": "police rate 5mbit burst 60kb"},
    "shaped": {"rate": "40mbit", "rtt": "40ms", "queue": "tbf rate 10mbit burst 100kb limit 50kb"},
    "as ever": {"rate": "40mbit", "rtt": "40ms", "queue": "tbf rate 10mbit burst 3kb limit 50kb"},
    "lossy": {"rate": "100mbit", "rtt": "40ms", "queue": "1bdp", "loss": "1%"},
    "short": {"rate": "20mbit", "rtt": "40ms", "queue": "1bdp", "duration": "100ms"},
}
SHARED = Path(__file__).parents[2] / "shared" / "captures" / "policing"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, PathEstimate]]:
    """A sender's capture of each path, and what is inferred from it."""
    folder = tmp_path_factory.mktemp("paths")
    result = {}
    for name, options in PATHS.items():
        planned = plan(compare(["cubic"], **{"duration": "8s", **options}))
        execute(captured(planned, CaptureRequest(("s1", "d"))), folder / name, report=False, workers=1)
        file = next((folder / name).rglob("s1.pcapng"))
        result[name] = file, infer(file)[0]
    return result


def near(value: float | None, truth: float, most: float) -> bool:
    return value is not None and abs(value / truth - 1) <= most


def test_a_full_buffer_is_measured(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    path = found["tail"][1]
    assert path.queue == "tail drop"
    assert near(path.rate_bps.value, 10e6 * IP, 0.03)
    assert near(path.base_rtt_ms.value, 40, 0.02)
    assert near(path.buffer_bytes.value, 50_000 * IP, 0.1)
    assert path.random_loss.value == 0
    assert path.random_loss.high is not None
    assert path.random_loss.high < 0.002
    assert all(abs(rate / (10e6 * IP) - 1) < 0.15 for _, rate in path.rate_over_time)


def test_a_queue_that_drops_early_has_no_measured_buffer(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    path = found["codel"][1]
    assert path.queue == "aqm"
    assert near(path.rate_bps.value, 10e6 * IP, 0.03)
    assert path.buffer_bytes.value is None
    assert path.buffer_bytes.reason


def test_a_policer_is_found_with_its_rate_and_burst(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    path = found["policed"][1]
    assert path.queue == "policer"
    assert near(path.policer_rate_bps.value, 5e6 * IP, 0.05)
    assert near(path.policer_burst_bytes.value, 60_000 * IP, 0.1)
    assert path.rate_bps.value is None


def test_a_shaper_is_told_by_what_passes_before_segments_wait(
    found: dict[str, tuple[Path, PathEstimate]],
) -> None:
    path = found["shaped"][1]
    burst = path.shaper_burst_bytes
    assert path.queue == "shaper"
    assert near(path.rate_bps.value, 10e6 * IP, 0.03)
    assert near(burst.value, 100 * 1024 * IP, 0.05)
    assert burst.low is not None
    assert burst.high is not None
    assert burst.low < 100 * 1024 * IP < burst.high
    assert near(path.buffer_bytes.value, 50 * 1024 * IP, 0.1)


@pytest.mark.parametrize("name", ["tail", "as ever"])
def test_a_link_and_a_bucket_of_two_packets_are_no_shaper(
    found: dict[str, tuple[Path, PathEstimate]], name: str
) -> None:
    path = found[name][1]
    assert path.queue == "tail drop"
    assert path.shaper_burst_bytes.value is None
    assert path.shaper_burst_bytes.reason


def test_random_loss_is_no_queue(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    path = found["lossy"][1]
    assert path.queue == "cannot tell"
    assert path.buffer_bytes.value is None
    loss = path.random_loss
    assert loss.low is not None
    assert loss.high is not None
    assert loss.low <= 0.01 <= loss.high


def inferred(folder: Path, algorithms: list[str], **options: Any) -> list[PathEstimate]:
    """Return the paths of the flows of a run of all these algorithms, as their one sender's capture shows them."""
    planned = plan(compare(algorithms, **{"duration": "15s", **options}))
    execute(captured(planned, CaptureRequest(("s1",))), folder, report=False, workers=1)
    return infer(next(folder.rglob("s1.pcapng")))


@pytest.mark.parametrize(
    ("algorithm", "queue"), [("bbr", "codel"), ("bbr", "fq_codel"), ("reno", "pie"), ("cubic", "codel")]
)
def test_an_aqms_drops_are_not_random_loss(tmp_path: Path, algorithm: str, queue: str) -> None:
    """Of a path without any loss but the queue's, none is claimed: the interval begins at nothing."""
    (path,) = inferred(tmp_path / "run", [algorithm], rate="10mbit", rtt="40ms", queue=queue)
    assert not path.random_loss.value
    assert not path.random_loss.low
    assert path.random_loss.high is not None
    assert path.random_loss.high > 0


def test_random_loss_beside_a_full_buffer_is_not_none(tmp_path: Path) -> None:
    """Most losses find the queue full, but the interval holds the 0.3 % that are random."""
    options = {"rate": "20mbit", "rtt": "20ms", "queue": "0.6bdp", "loss": "0.3%"}
    (path,) = inferred(tmp_path / "run", ["reno"], **options)
    loss = path.random_loss
    assert loss.high is not None
    assert (loss.low or 0.0) <= 0.003 <= loss.high


@pytest.mark.parametrize(("rtt", "jitter"), [("62.3ms", "2.37ms"), ("11.9ms", "0.96ms")])
def test_the_base_rtts_interval_holds_it_with_jitter(tmp_path: Path, rtt: str, jitter: str) -> None:
    options = {"rate": "6mbit", "rtt": rtt, "queue": "2bdp", "jitter": jitter, "duration": "25s"}
    (path,) = inferred(tmp_path / "run", ["illinois"], **options)
    truth, base = float(rtt[:-2]), path.base_rtt_ms
    assert base.low is not None
    assert base.high is not None
    assert base.low <= truth <= base.high + 0.01
    assert near(path.jitter_ms.value, float(jitter[:-2]) / 1.5, 0.25), "mean change between neighbours"


def test_flows_behind_one_policer_are_compared(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    """Two flows at once whose rates exclude each other: neither is told."""
    flows = paths._flows(*captures.segments(found["policed"][0], quiet=True))
    (flow,) = flows
    other = replace(flow, number=1)
    mine = found["policed"][1]
    faster = Estimate(20e6, 19e6, 21e6)
    theirs = replace(mine, policer_rate_bps=faster)
    compared = paths._compared(flow, [flow, other], {0: mine, 1: theirs})
    rate = compared.policer_rate_bps
    assert rate.value is None
    assert rate.low == mine.policer_rate_bps.low
    assert rate.high == 21e6
    assert "one policer or several" in rate.reason
    assert compared.policer_burst_bytes.value is None
    assert paths._compared(flow, [flow, other], {0: mine, 1: mine}) == mine


def test_the_burst_is_not_told_where_another_flow_takes_from_it(
    found: dict[str, tuple[Path, PathEstimate]],
) -> None:
    (flow,) = paths._flows(*captures.segments(found["policed"][0], quiet=True))
    other = replace(flow, number=1)
    path = paths._before_bottleneck("x", flow, [other], rate.trips(flow), [], paths.Buckets())
    assert path.queue == "policer"
    assert near(path.policer_rate_bps.value, 5e6 * IP, 0.05)
    assert path.policer_burst_bytes.value is None
    assert "same bucket" in path.policer_burst_bytes.reason


def test_a_flow_that_never_filled_the_path_tells_no_rate(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    path = found["short"][1]
    assert path.rate_bps.value is None
    assert path.rate_bps.reason
    assert path.queue == "cannot tell"


@pytest.mark.parametrize("name", ["tail", "shaped"])
def test_at_the_receiver_the_rate_is_seen_and_the_buffer_is_not(
    found: dict[str, tuple[Path, PathEstimate]], name: str
) -> None:
    path = infer(next(found[name][0].parent.glob("d.pcapng")))[0]
    assert path.place == "receiver"
    assert near(path.rate_bps.value, 10e6 * IP, 0.03)
    assert near(path.base_rtt_ms.value, 40, 0.02)
    assert path.queue == "cannot tell"
    assert path.buffer_bytes.value is None
    assert "at the receiver; one at the sender shows it" in path.buffer_bytes.reason


@pytest.mark.parametrize("name", ["policed", "lossy", "short"])
def test_at_the_receiver_a_rate_is_no_capacity_without_a_queue(
    found: dict[str, tuple[Path, PathEstimate]], name: str
) -> None:
    path = infer(next(found[name][0].parent.glob("d.pcapng")))[0]
    assert path.place == "receiver"
    assert path.rate_bps.value is None
    assert path.rate_bps.reason


def test_the_text_fits_and_the_document_has_it_all(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    for _, path in found.values():
        assert all(len(line) <= 80 for line in console.text([path]).splitlines())
    result = CliRunner().invoke(app, ["inspect", str(found["tail"][0]), "--infer", "--json"])
    assert result.exit_code == 0, result.output
    (said,) = json.loads(result.output)["paths"]
    assert said["rate_bps"]["value"] == pytest.approx(found["tail"][1].rate_bps.value)


def test_each_file_is_read_once_and_inferred_from_alone(
    found: dict[str, tuple[Path, PathEstimate]], monkeypatch: pytest.MonkeyPatch
) -> None:
    near = found["tail"][0]
    files = [near, near.parent / "d.pcapng"]
    read: list[Path] = []

    def counted(path: Path) -> Iterator[tuple[bytes, float]]:
        read.append(path)
        return capture_pieces(path)

    monkeypatch.setattr(captures, "capture_pieces", counted)
    result = CliRunner().invoke(app, ["inspect", *map(str, files), "--infer", "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    assert read == files
    assert [one["file"] for one in document["paths"]] == [str(file) for file in files]
    assert document["between"], "together they are two vantage points"
    assert document["paths"] == json.loads(json.dumps(console.document([*infer(files[0]), *infer(files[1])])))


def test_a_flow_by_name(found: dict[str, tuple[Path, PathEstimate]]) -> None:
    file, path = found["tail"]
    assert [one.flow for one in infer(file, path.flow)] == [path.flow]
    with pytest.raises(BadInputError, match="no such"):
        infer(file, "no such")


@pytest.mark.parametrize("keep", [1, 10, 300])
def test_a_capture_that_ends_early(
    found: dict[str, tuple[Path, PathEstimate]], tmp_path: Path, keep: int
) -> None:
    """The first packets alone: few are too few, and nothing fails."""
    file = tmp_path / "early.pcapng"
    file.write_bytes(_first(found["tail"][0].read_bytes(), keep))
    for path in infer(file):
        assert path.queue == "cannot tell"
        assert path.buffer_bytes.value is None


def test_one_direction_alone(found: dict[str, tuple[Path, PathEstimate]], tmp_path: Path) -> None:
    file = tmp_path / "one.pcapng"
    file.write_bytes(_first(found["tail"][0].read_bytes(), 10**6, bytes([10, 0, 0, 1])))
    (path,) = infer(file)
    assert path.rate_bps.value is None
    assert "acknowledgements" in path.rate_bps.reason


def _first(data: bytes, packets: int, source: bytes | None = None) -> bytes:
    """Return a pcapng file with its first packets, or those of one IPv4 source."""
    kept, at, count = [], 0, 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        block = data[at : at + length]
        at += length
        if kind == 6:
            if source is not None and block[28 + 26 : 28 + 30] != source:
                continue
            count += 1
            if count > packets:
                break
        kept.append(block)
    return b"".join(kept)


def test_random_losses_are_no_bucket() -> None:
    """A steady flow of which each segment is lost with a probability of 2 %."""
    drawn = np.random.default_rng(1)
    times = np.arange(5_000) * 0.002
    hit = drawn.random(len(times)) < 0.02
    events = policer.Events(times, np.where(hit, 0.0, 1500.0), np.where(hit, 1500.0, 0.0))
    for method in (policer.by_losses, policer.by_grid):
        bucket = method(events, 1500.0)
        assert bucket is None or not bucket.explains


@pytest.mark.skipif(not SHARED.is_dir(), reason="the captures of USC-NSL/policing-detection are not here")
@pytest.mark.parametrize(
    ("name", "rate"), [("CP=10008", 1.5e6), ("CP=10018", 10e6), ("CP=10836", None), ("CP=10811", None)]
)
def test_real_policers_and_shapers(name: str, rate: float | None) -> None:
    (file,) = SHARED.glob(f"*{name}.pcap.xz")
    path = max(infer(file), key=lambda one: one.receiver_window_bytes.value or 0)
    if rate is None:
        assert path.queue != "policer"
    else:
        assert path.queue == "policer"
        assert near(path.policer_rate_bps.value, rate, 0.05)


@pytest.fixture(scope="module")
def bloated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A CUBIC flow behind a buffer of 200 kB at 6 Mbit/s: captured at its ends, at the queue, from the middle."""
    folder = tmp_path_factory.mktemp("bloated")
    race = {"rate": "6mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "30s"}
    planned = plan(compare(["cubic"], **race))
    execute(captured(planned, CaptureRequest(("s1", "r-d", "d"))), folder, report=False, workers=1)
    files = {name: next(folder.rglob(f"{name}.pcapng")) for name in ("s1", "r-d", "d")}
    for name, data in {
        "middle": _later(files["s1"].read_bytes(), 0.4),
        "egress": _undropped(files["r-d"].read_bytes()),
    }.items():
        files[name] = folder / f"{name}.pcapng"
        files[name].write_bytes(data)
    return files


@pytest.mark.parametrize("name", ["r-d", "egress"])
def test_a_capture_behind_the_queue_is_not_the_sender_s(bloated: dict[str, Path], name: str) -> None:
    """With the packets that the queue drops in the file, and without them."""
    (path,) = infer(bloated[name])
    assert path.place == "queue"
    assert path.queue == "cannot tell"
    assert path.policer_rate_bps.value is None
    assert path.buffer_bytes.value is None
    assert near(path.base_rtt_ms.high, 40, 0.01)
    assert near(path.rate_bps.low, 6e6 * IP, 0.01)
    assert "behind the bottleneck's queue" in console.text([path])
    assert infer(bloated["s1"])[0].queue == "tail drop"


@pytest.mark.parametrize("name", ["r-d", "egress"])
@pytest.mark.parametrize("race", [{}, {"rate": "6mbit"}])
def test_behind_the_queue_neither_a_policer_nor_a_host_limits(
    bloated: dict[str, Path], name: str, race: dict[str, Any]
) -> None:
    document = walk.diagnose([bloated[name]], race, quiet=True, trials=False)
    causes = {cause for finding in document["findings"] for cause in finding["causes"]}
    assert not causes & {"policer", "small_queue_limit", "application", "send_buffer", "receive_window"}
    assert all(finding["certainty"] != "certain" for finding in document["findings"])
    assert any("behind the bottleneck's queue" in note for note in document["notes"])


def test_a_bucket_of_less_than_two_packets_is_no_policer(
    bloated: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths.arrivals, "is_behind_queue", lambda flow, concurrent: False)
    (path,) = infer(bloated["r-d"])
    assert path.queue != "policer" or (path.policer_burst_bytes.value or 0) >= 2 * 1500


def test_from_the_middle_the_base_rtt_is_a_bound(bloated: dict[str, Path]) -> None:
    """Without the handshake, and with a queue that never emptied."""
    (path,) = infer(bloated["middle"])
    assert path.base_rtt_ms.low is None
    assert path.base_rtt_ms.high is not None
    assert path.base_rtt_ms.high > 2 * 40
    assert path.buffer_bytes.high is None
    assert path.buffer_bytes.low is not None
    assert path.buffer_bytes.low < 200_000
    assert "at most" in console.text([path])
    (whole,) = infer(bloated["s1"])
    assert whole.base_rtt_ms.low is not None
    assert whole.buffer_bytes.high is not None


def test_from_the_middle_nothing_is_certain(bloated: dict[str, Path]) -> None:
    document = walk.diagnose([bloated["middle"]], {}, quiet=True)
    (finding,) = document["findings"]
    assert (finding["name"], finding["certainty"]) == ("bufferbloat", "likely")
    assert "or more" in finding["sentence"]
    assert not document["advice"]
    (finding,) = walk.diagnose(
        [bloated["middle"]], {"rtt": "40ms", "rate": "6mbit"}, quiet=True, trials=False
    )["findings"]
    assert near(finding["figures"]["buffer_bytes"], 200_000, 0.1)


def test_a_drained_queue_shows_the_base_rtt(tmp_path: Path) -> None:
    """BBR empties the queue every ten seconds, which a capture shows without the handshake."""
    planned = plan(compare(["bbr"], rate="10mbit", rtt="40ms", queue="bfifo limit 200kb", duration="25s"))
    execute(captured(planned, CaptureRequest(("s1",))), tmp_path, report=False, workers=1)
    file = tmp_path / "middle.pcapng"
    file.write_bytes(_later(next(tmp_path.rglob("s1.pcapng")).read_bytes(), 0.2))
    (path,) = infer(file)
    assert path.base_rtt_ms.low is not None
    assert near(path.base_rtt_ms.value, 40, 0.03)


def test_a_receiver_s_capture_has_the_handshake_s_idle_rtt(bloated: dict[str, Path]) -> None:
    document = walk.diagnose([bloated["d"]], {}, quiet=True, trials=False)
    (finding,) = document["findings"]
    assert finding["name"] == "bufferbloat"
    assert near(finding["figures"]["idle_rtt_ms"], 40, 0.01)
    assert near(finding["figures"]["buffer_bytes"], 200_000, 0.1)


def _blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at : at + length]
        at += length


def _later(data: bytes, share: float) -> bytes:
    """Return a pcapng file without this share of its packets, the first."""
    packets = sum(kind == 6 for kind, _ in _blocks(data))
    blocks, count = [], 0
    for kind, block in _blocks(data):
        count += kind == 6
        if kind != 6 or count > share * packets:
            blocks.append(block)
    return b"".join(blocks)


def _undropped(data: bytes) -> bytes:
    """Return a pcapng file without the packets that a queue dropped."""
    return b"".join(block for _, block in _blocks(data) if b"dropped by the queue" not in block)


@pytest.mark.parametrize("race", [{}, {"rate": "6mbit"}])
def test_behind_the_queue_a_flow_without_a_loss_has_no_certain_limit(
    tmp_path: Path, race: dict[str, Any]
) -> None:
    """Constant bytes in flight at the idle RTT: a host that limits, or any flow behind the bottleneck's queue."""
    described = {"rate": "6mbit", "rtt": "40ms", "queue": "bfifo limit 2mb", "duration": "10s"}
    planned = plan(compare(["cubic"], **described))
    execute(captured(planned, CaptureRequest(("r-d",))), tmp_path, report=False, workers=1)
    document = walk.diagnose([next(tmp_path.rglob("r-d.pcapng"))], race, quiet=True, trials=False)
    assert document["findings"] == []
    (limit,) = (it for it in document["unknown"] if "in flight" in it["sentence"])
    assert "behind the bottleneck's queue" in limit["sentence"]


def test_evenly_spread_segments_with_long_round_trips_are_a_paced_sender_s(bloated: dict[str, Path]) -> None:
    """What a sender paces waits behind its own capture; behind the bottleneck nothing does."""
    document, rows = captures.segments(bloated["egress"], quiet=True)
    flow = series.of(document["flows"][0], rows[0], document["files"][0])
    assert arrivals.is_behind_queue(flow, [])
    longer = np.linspace(0.04, 0.3, len(flow.returned.rtt_s))
    paced = replace(flow, returned=replace(flow.returned, rtt_s=longer))
    assert arrivals.is_spread([paced])
    assert not arrivals.is_behind_queue(paced, [])


def test_the_table_has_the_place_that_the_segments_show(bloated: dict[str, Path]) -> None:
    result = CliRunner().invoke(app, ["inspect", str(bloated["r-d"]), "--infer", "--json"])
    (flow,) = json.loads(result.output)["flows"]
    assert flow["place"] == "queue"
