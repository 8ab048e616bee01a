"""What `dragstrip compare` means, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.comparison import compare
from dragstrip.expand import expand

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "30s"}


def scenarios(*algorithms: str, **given: Any) -> list[dict[str, Any]]:
    return [run.scenario for run in expand(compare(algorithms, **{**PATH, **given}))]


def links(scenario: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {link["name"]: link for link in scenario["links"]}


def test_each_algorithm_runs_alone_on_the_same_path() -> None:
    reno, cubic = scenarios("reno", "cubic")
    assert [flow["transport"]["cc"] for flow in reno["flows"]] == ["reno"]
    assert [flow["transport"]["cc"] for flow in cubic["flows"]] == ["cubic"]
    assert reno["links"] == cubic["links"]
    assert reno["seed"] == cubic["seed"] == 1
    assert reno["duration_ns"] == 30_000_000_000


def test_the_bottleneck_is_an_htb_class_with_the_kernels_burst() -> None:
    path = links(scenarios("reno")[0])
    assert set(path) == {"s1-r", "r-s1", "r-d", "d-r"}
    down = path["r-d"]
    assert (down["rate_bps"], down["delay_ns"], down["netem"]) == (None, 0, None)
    qdisc = down["qdisc"]
    assert (qdisc["kind"], qdisc["rate_bps"], qdisc["ceil_bps"] or 10_000_000) == (
        "htb",
        10_000_000,
        10_000_000,
    )
    assert qdisc["burst_bytes"] == qdisc["cburst_bytes"] == 1600
    assert qdisc["leaf"] == {"kind": "bfifo", "limit_bytes": 204_800}


def test_the_whole_delay_is_on_the_way_back_and_access_is_a_plain_veth() -> None:
    path = links(scenarios("reno")[0])
    assert path["d-r"]["delay_ns"] == 40_000_000
    for name in ("s1-r", "r-s1"):
        link = path[name]
        assert (link["rate_bps"], link["delay_ns"], link["qdisc"]["kind"]) == (None, 0, "noqueue")
    assert path["d-r"]["rate_bps"] is None
    assert path["d-r"]["qdisc"]["kind"] == "noqueue"


def test_the_receiver_pings_the_first_sender_five_times_a_second() -> None:
    (probe,) = scenarios("reno", flows=3)[0]["probes"]
    assert (probe["from"], probe["target"], probe["interval_ns"]) == ("d", "s1", 200_000_000)
    assert (probe["size_bytes"], probe["start_ns"]) == (64, 0)


def test_link_wire_stores_and_forwards() -> None:
    down = links(scenarios("reno", link="wire")[0])["r-d"]
    assert down["rate_bps"] == 10_000_000
    assert down["qdisc"] == {"kind": "bfifo", "limit_bytes": 204_800}


def test_loss_and_jitter_come_behind_the_bottleneck() -> None:
    down = links(scenarios("reno", loss="1%", jitter="5ms")[0])["r-d"]
    netem = down["netem"]
    assert (netem["delay_ns"], netem["jitter_ns"]) == (5_000_000, 5_000_000)
    assert netem["loss"]["model"] == "random"
    assert netem["loss"]["probability"] == pytest.approx(0.01)
    assert netem["limit_packets"] >= 100_000
    assert netem["distribution"] == "uniform"
    assert down["qdisc"]["kind"] == "htb"


def test_the_way_back_has_a_rate_and_a_queue() -> None:
    up = links(scenarios("reno", up_rate="1mbit", up_queue="pfifo limit 50")[0])["d-r"]
    assert up["qdisc"]["rate_bps"] == 1_000_000
    assert up["qdisc"]["leaf"] == {"kind": "pfifo", "limit_packets": 50}
    assert up["delay_ns"] == 40_000_000


def test_flows_repeat_together() -> None:
    runs = scenarios("reno", "cubic", flows=2, repeat=3, seed=5)
    assert [run["seed"] for run in runs] == [5, 5, 6, 6, 7, 7]
    assert [flow["label"] for flow in runs[0]["flows"]] == ["reno-1", "reno-2"]
    assert [flow["sender"] for flow in runs[0]["flows"]] == ["s1", "s2"]
    (mixed,) = scenarios("reno", "cubic", flows=2, together=True)
    assert [flow["label"] for flow in mixed["flows"]] == ["reno-1", "reno-2", "cubic-1", "cubic-2"]
    assert [flow["sender"] for flow in mixed["flows"]] == ["s1", "s2", "s3", "s4"]


def test_ecn_and_sysctls_go_to_every_host() -> None:
    hosts = [
        node
        for node in scenarios("reno", ecn=True, sysctl={"net.ipv4.tcp_sack": "0"}, gso="auto")[0]["nodes"]
        if node["kind"] == "host"
    ]
    assert [host["name"] for host in hosts] == ["s1", "d"]
    for host in hosts:
        assert host["sysctl"] == {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_ecn": "1"}
        assert host["gso"] == "auto"


def test_ecn_does_not_change_the_queues_words() -> None:
    queue = "codel limit 100 target 10ms"
    plain, negotiated = (scenarios("reno", queue=queue, ecn=ecn)[0] for ecn in (False, True))
    assert plain["links"] == negotiated["links"]
    assert links(plain)["r-d"]["qdisc"]["leaf"]["ecn"] is False


def test_the_core_accepts_every_comparison() -> None:
    for scenario in scenarios(*_core.algorithms(), loss="0.1%", up_rate="1mbit", link="wire"):
        assert _core.validate(json.dumps(scenario)) == []
