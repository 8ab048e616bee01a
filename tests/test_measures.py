from __future__ import annotations

import re
from pathlib import Path

import pytest

from dragstrip.engines import named
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.model.recording import Recording
from dragstrip.results.measures import FIGURES, SERIES, Measured, Window, find, jain, summarise

DOCS = Path(__file__).parents[1] / "docs"


def figure(recording: Recording, name: str, flow: int = 0, window: Window = Window()) -> float | None:  # noqa: B008
    measure = find(name)
    assert measure is not None, name
    run = Measured(recording)
    subject = {"flow": run.flows[flow], "probe": "d-s1", "queue": "r-d", "run": None}[measure.level]
    value = measure.figure(run, subject, window)
    return None if value is None else float(value)


@pytest.mark.parametrize(
    ("name", "flow", "expected"),
    [
        ("goodput_bps", 0, 1e6),
        ("goodput_bps", 1, 3e6),  # 1.5 MB in its own 4 s, not in the run's 10 s
        ("throughput_bps_p50", 1, 6e6),  # intervals outside its life do not count as zeros
        ("share", 0, 0.5 / 2.0),  # of the bytes while both live: 500 kB of 1.25 MB
        ("rtt_ms_p50", 0, 30.0),
        ("rtt_ms_p5", 0, 12.0),
        ("rtt_ms_p50", 1, 45.0),  # no rtts: samples of 3 to 6 s
        ("cwnd_packets_max", 0, 100.0),
        ("cwnd_packets_first", 1, 30.0),
        ("flight_packets_mean", 0, 1.0),
        ("retransmits", 0, 3.0),
        ("segments_sent", 1, 1100.0),
        ("completion_s", 1, 4.0),
        ("probe_ms_p50", 0, 42.0),
        ("probe_lost", 0, 1.0),
        ("backlog_bytes_max", 0, 15140.0),
        ("dropped", 0, 3.0),
        ("idle_s", 0, 6.8),  # 400 kB a second of 10 Mbit/s
        ("reductions", 0, 2.0),
        ("timeouts", 0, 0.0),
        ("pacing_limited_s", 0, 3.0),
        ("pacing_limited_s", 1, 1.0),  # of its life, 2 to 6 s
        ("cwnd_limited_s", 1, 3.0),
        ("app_limited_s", 0, 0.0),
        ("slow_start_s", 1, 2.0),
        ("recovery_s", 0, 0.0),
        ("jain", 0, 0.8),
        ("goodput_bps_total", 0, 4e6),
    ],
)
def test_figures_worked_out_by_hand(recording: Recording, name: str, flow: int, expected: float) -> None:
    assert figure(recording, name, flow) == pytest.approx(expected, rel=1e-12)


def test_a_kernel_that_counts_timeouts_of_several_flows_has_none_of_one(recording: Recording) -> None:
    assert figure(recording, "timeouts", 1) is None
    assert [flow["timeouts"] for flow in summarise(recording)["flows"]] == [0, None]


def test_steady_leaves_out_five_seconds(recording: Recording) -> None:
    table = recording["received"].to_pydict()
    for row, (time, flow) in enumerate(zip(table["time_ns"], table["flow"], strict=True)):
        if flow == 0 and time > 5e9:
            table["new_bytes"][row] = 250_000
    import pyarrow as pa

    changed = Recording(recording.scenario, {**recording.tables, "received": pa.table(table)})
    assert figure(changed, "goodput_bps_steady") == pytest.approx(2e6)


def test_throughput_is_counted_in_seconds(recording: Recording) -> None:
    import pyarrow as pa

    recording.scenario["record"]["interval_ns"] = 100_000_000
    times = [100_000_000 * tick for tick in range(1, 26)]
    wire = [12 * 1514 if tick % 2 else 13 * 1514 for tick in range(25)]
    received = pa.table({"time_ns": times, "flow": [0] * 25, "wire_bytes": wire, "new_bytes": wire})
    changed = Measured(Recording(recording.scenario, {**recording.tables, "received": received}))
    rates = changed.throughput_bps(changed.flows[0], Window())
    assert rates.tolist() == [125 * 1514 * 8, 125 * 1514 * 8]  # the last half second is no whole one


def test_a_window_leaves_out_the_start_and_other_states(recording: Recording) -> None:
    late = Window(after_ns=8_000_000_000)
    assert figure(recording, "cwnd_packets_min", window=late) == pytest.approx(80.0)
    slow_start = Window(state="slow_start")
    assert figure(recording, "cwnd_packets_max", window=slow_start) == pytest.approx(40.0)
    assert figure(recording, "cwnd_packets_max", window=Window(state="no_such_state")) is None


def test_a_window_has_an_end(recording: Recording) -> None:
    import pyarrow as pa

    times = [1_000_000_000 * second for second in range(1, 11)]
    new = [1_000 * second for second in range(1, 11)]
    received = pa.table({"time_ns": times, "flow": [0] * 10, "wire_bytes": new, "new_bytes": new})
    recording.scenario["record"]["interval_ns"] = 1_000_000_000
    changed = Recording(recording.scenario, {**recording.tables, "received": received})
    middle = Window(after_ns=2_000_000_000, until_ns=4_000_000_000)
    start = Measured(changed).flows[0].start_ns
    assert start == 0
    assert figure(changed, "goodput_bps", window=middle) == pytest.approx((3_000 + 4_000) * 8 / 2)
    assert figure(changed, "throughput_bps_max", window=middle) == pytest.approx(4_000 * 8)
    early = figure(recording, "cwnd_packets_max", window=Window(until_ns=2_000_000_000))
    assert early != figure(recording, "cwnd_packets_max")
    assert early == figure(recording, "cwnd_packets_max", window=Window(0, 2_500_000_000))
    assert figure(changed, "goodput_bps", window=Window(until_ns=99_000_000_000)) == pytest.approx(
        sum(new) * 8 / 10
    )


def test_segment_size_follows_mtu_and_timestamps(recording: Recording) -> None:
    run = Measured(recording)
    assert run.segment_bytes(run.flows[0]) == 1448
    recording.scenario["nodes"][0]["sysctl"]["net.ipv4.tcp_timestamps"] = "0"
    run = Measured(recording)
    assert run.segment_bytes(run.flows[0]) == 1460


def test_jain() -> None:
    assert jain([1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([0.0]) is None


def test_summary_has_one_entry_per_flow_probe_and_queue(recording: Recording) -> None:
    summary = summarise(recording)
    assert [flow["label"] for flow in summary["flows"]] == ["reno-1", "reno-2"]
    assert summary["probes"] == [
        {"target": "s1", "rtt_ms": pytest.approx({"p5": 41.1, "p50": 42, "p95": 42.9}), "lost": 1}
    ]
    assert [queue["link"] for queue in summary["queues"]] == ["r-d"]
    assert summary["queues"][0]["dropped"] == 3


def test_flows_in_opposite_directions_compete_with_their_own_direction_alone(recording: Recording) -> None:
    back = recording.scenario["flows"][1]
    back["sender"], back["receiver"] = back["receiver"], back["sender"]
    for link in recording.scenario["links"]:  # the way back has a rate too
        link["rate_bps"] = link["rate_bps"] or 10_000_000
    summary = summarise(recording)
    assert [flow["share"] for flow in summary["flows"]] == [1.0, 1.0]
    alone = {"jain": 1.0, "max_min_bps": None, "from_s": None, "until_s": None}
    assert summary["competing"] == [{"flows": [0], **alone}, {"flows": [1], **alone}]
    assert summary["jain"] is None
    assert Measured(recording).figure("jain") is None


def test_a_ping_whose_answer_is_on_its_way_at_the_end_is_not_lost() -> None:
    """40 ms of round trip, pings every 10 ms: the last four are under way when the run ends."""
    described = compare(["reno"], rate="10mbit", rtt="40ms", queue="bfifo limit 200kb", duration="1s")
    made = expand(described)[0].scenario
    made["flows"][0]["start_ns"] = 900_000_000
    made["probes"][0]["interval_ns"] = 10_000_000
    run = named("sim").run(made, {})
    assert int(sum(run["probes"]["lost"].to_pylist())) >= 4
    assert [probe["lost"] for probe in summarise(run)["probes"]] == [0]
    every_packet = {"limit_packets": 1000, "delay_ns": 0, "loss": {"model": "random", "probability": 1.0}}
    made["links"] = [
        link | ({"netem": every_packet} if link["name"] == "d-r" else {}) for link in made["links"]
    ]
    lost = summarise(named("sim").run(made, {}))["probes"][0]["lost"]
    assert lost == 93  # of a hundred; the last 80 ms may still be answered


@pytest.mark.parametrize("name", ["rtt", "rtt_ms", "rtt_ms_p", "rtt_ms_p500", "goodput_bps_p50", ""])
def test_unknown_measures_are_not_found(name: str) -> None:
    assert find(name) is None


def test_every_measure_is_documented() -> None:
    documented = set(re.findall(r"`(\w+?)(?:_\*)?`", (DOCS / "reference" / "measures.md").read_text()))
    assert set(FIGURES) | set(SERIES) <= documented


def test_what_a_socket_took_counts_from_the_flow_s_start(recording: Recording) -> None:
    import pyarrow as pa

    second = 1_000_000_000
    # The second flow lives from 2 s to 6 s; its socket took 5000 bytes at once and 1000 more each second.
    times = [second * tick for tick in range(2, 7)]
    written = [5000 + 1000 * tick for tick in range(5)]
    samples = pa.table({"time_ns": times, "flow": [1] * 5, "bytes_written": written})
    run = Measured(Recording(recording.scenario, {**recording.tables, "samples": samples}))
    flow = run.flows[1]
    assert run.written_bps(flow, Window()).tolist() == [48_000, 8_000, 8_000, 8_000]
    assert run.written_bps(flow, Window(after_ns=second)).tolist() == [8_000, 8_000, 8_000]


def test_a_stall_is_a_second_without_an_acknowledgement(recording: Recording) -> None:
    import pyarrow as pa

    interval_ns = 100_000_000
    # Bytes until 1 s, none until 3.5 s, again until 4 s, a pause of 0.9 s, and on.
    growing = [tick <= 10 or 35 <= tick <= 40 or tick >= 49 for tick in range(1, 61)]
    acked = [1000 * sum(growing[: tick + 1]) for tick in range(60)]
    times = [interval_ns * tick for tick in range(1, 61)]
    samples = pa.table({"time_ns": times, "flow": [0] * 60, "bytes_acked": acked})
    changed = Recording(recording.scenario, {**recording.tables, "samples": samples})
    assert figure(changed, "stalls") == 1.0
    assert figure(changed, "stall_s_longest") == pytest.approx(2.5)
    steady = pa.table({"time_ns": times, "flow": [0] * 60, "bytes_acked": list(range(60))})
    changed = Recording(recording.scenario, {**recording.tables, "samples": steady})
    assert figure(changed, "stalls") == 0.0
    assert figure(changed, "stall_s_longest") == 0.0
