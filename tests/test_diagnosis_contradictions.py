"""`diagnose` on files that contradict each other, of two directions, two times, and of what averages hide."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip.analysis.diagnosis import walk
from dragstrip.analysis.diagnosis.delays import step_of
from dragstrip.analysis.diagnosis.finding import CAUSES
from dragstrip.analysis.diagnosis.observations import Floats
from dragstrip.errors import BadInputError

HERE, THERE = "192.168.1.10", "192.0.2.7"
BEGAN = 1_700_000_000
COUNT = 20
TC_CAKE = """qdisc cake 8001: root refcnt 2 bandwidth 9500Kbit diffserv3 triple-isolate nat rtt 100ms raw overhead 0
 Sent 123456 bytes 321 pkt (dropped 3, overlimits 55 requeues 0)
 backlog 0b 0p requeues 0
"""


def iperf3(
    mbps: list[float],
    trips_ms: list[float],
    cwnd: int = 300_000,
    reverse: bool = False,
    began: int = BEGAN,
) -> str:
    """A run of iperf3 with an interval a second; without RTTs if the other host sends."""
    hosts = {"socket": 5, "local_host": HERE, "remote_host": THERE, "local_port": 4, "remote_port": 5201}
    start = {"connected": [hosts], "timestamp": {"timesecs": began}, "version": "iperf 3.12"}
    start["test_start"] = {"protocol": "TCP", "num_streams": 1, "reverse": int(reverse)}
    intervals = []
    for at, (rate, trip) in enumerate(zip(mbps, trips_ms, strict=True)):
        row = {"socket": 5, "start": at, "end": at + 1, "bytes": int(rate * 125_000), "sender": not reverse}
        if not reverse:
            window = 1_448 if rate == 0 else cwnd
            row |= {"retransmits": 0, "snd_cwnd": window, "rtt": int(trip * 1e3)}
        intervals.append({"streams": [row]})
    total = sum(int(rate * 125_000) for rate in mbps)
    sender: dict[str, Any] = {"socket": 5, "start": 0, "end": len(mbps), "retransmits": 0}
    if not reverse:
        sender |= {
            "min_rtt": min(trips_ms) * 1e3,
            "mean_rtt": sum(trips_ms) / len(trips_ms) * 1e3,
            "max_rtt": max(trips_ms) * 1e3,
        }
    receiver = {"socket": 5, "start": 0, "end": len(mbps), "bytes": total}
    end = {"streams": [{"sender": sender, "receiver": receiver}], "sender_tcp_congestion": "cubic"}
    return json.dumps({"start": start, "intervals": intervals, "end": end})


def ping(trips_ms: list[float | None], began: float | None = None, step: float = 0.2) -> str:
    """Output of ping; None is a request without an answer."""
    lines = [
        (f"[{began + at * step:.6f}] " if began is not None else "")
        + f"64 bytes from example.com ({THERE}): icmp_seq={at + 1} ttl=56 time={trip:.1f} ms"
        for at, trip in enumerate(trips_ms)
        if trip is not None
    ]
    sent, answers = len(trips_ms), sum(trip is not None for trip in trips_ms)
    counts = f"{sent} packets transmitted, {answers} received, 1% packet loss, time {sent * step * 1e3:.0f}ms"
    head = f"PING example.com ({THERE}) 56(84) bytes of data."
    return "\n".join([head, *lines, "", "--- example.com ping statistics ---", counts, ""])


DICE = random.Random(3)  # noqa: S311 - not for secrets
CLEAN = iperf3([94.0] * COUNT, [21.0] * COUNT)
IDLE = ping([20 + DICE.random() for _ in range(20)], step=1.0)
LOADED: list[float | None] = [220 + 40 * DICE.random() for _ in range(140)]
UPLOAD = iperf3([9.4] * COUNT, [25.0, *(200 + 20 * DICE.random() for _ in range(COUNT - 1))], cwnd=240_000)
DOWNLOAD = iperf3([90.0] * COUNT, [0.0] * COUNT, reverse=True, began=BEGAN + 100)


@pytest.fixture
def diagnosed(tmp_path: Path) -> Any:
    def diagnose(*texts: str, trials: bool = False, **race: Any) -> dict[str, Any]:
        files = []
        for at, text in enumerate(texts):
            files.append(tmp_path / f"{at}.{'json' if text.startswith('{') else 'txt'}")
            files[-1].write_text(text)
        document = walk.diagnose(files, race, quiet=True, trials=trials)
        for finding in document["findings"]:
            assert set(finding["causes"]) <= set(CAUSES)
        return document

    return diagnose


def names(document: dict[str, Any]) -> dict[str, str]:
    return {finding["name"]: finding["certainty"] for finding in document["findings"]}


def sentence(document: dict[str, Any], name: str) -> str:
    return next(str(it["sentence"]) for it in document["findings"] if it["name"] == name)


def test_a_clean_path_is_still_nothing(diagnosed: Any) -> None:
    assert names(diagnosed(CLEAN, IDLE, rate="100mbit")) == {"nothing": "certain"}


# 1
@pytest.mark.parametrize("began", [BEGAN + 0.1, None])
def test_pings_that_wait_beside_a_clean_flow_are_no_nothing(diagnosed: Any, began: float | None) -> None:
    """Before: nothing is wrong (certain), since 28 s of pings outlast 20 s of flow."""
    document = diagnosed(CLEAN, IDLE, ping(LOADED, began), trials=True, rate="100mbit")
    assert document["advice"] == []
    assert "did not meet it" in document["not_tried"][0]
    assert names(document) == {"bufferbloat": "likely"}
    assert "buffer of" not in sentence(document, "bufferbloat")
    assert (began is None) or any("did not share a queue" in it for it in document["contradictions"])


def test_pings_that_wait_behind_the_flow_s_end_are_no_nothing(diagnosed: Any) -> None:
    trips = [20 + DICE.random() if at < 100 else 240.0 + at % 20 for at in range(300)]
    assert names(diagnosed(CLEAN, ping(trips, float(BEGAN)), rate="100mbit")) == {"bufferbloat": "likely"}


# 2 and 17
def test_lost_pings_are_a_finding_and_no_nothing(diagnosed: Any) -> None:
    trips: list[float | None] = [None if at % 9 == 3 else 20 + DICE.random() for at in range(200)]
    for texts in ((CLEAN, ping(trips)), (ping(trips),)):
        document = diagnosed(*texts, **({"rate": "100mbit"} if len(texts) > 1 else {}))
        assert names(document) == {"packet_loss": "certain"}
        assert "22 of 200 pings" in sentence(document, "packet_loss")
    trips[-1] = None
    assert names(diagnosed(ping([20.0] * 19 + [None]))) == {}, "the last one before the end"


def test_a_host_that_answers_no_ping_is_a_finding(diagnosed: Any) -> None:
    down = ping([None] * 20)
    assert names(diagnosed(down)) == {"unreachable": "certain"}
    document = diagnosed(CLEAN, down, IDLE, rate="100mbit")
    assert names(document) == {"unreachable": "certain"}
    assert "while TCP passes to the same host" in sentence(document, "unreachable")


def test_a_router_s_answer_is_a_note(diagnosed: Any) -> None:
    down = ping([None] * 20).replace(
        "\n\n", "\nFrom 192.0.2.1 icmp_seq=1 Destination Host Unreachable\n\n", 1
    )
    document = diagnosed(down)
    assert names(document) == {"unreachable": "certain"}
    assert any("192.0.2.1 reports Destination Host Unreachable" in note for note in document["notes"])


def test_lost_datagrams_are_a_finding_and_no_nothing(diagnosed: Any) -> None:
    udp = json.loads(iperf3([9.5] * 10, [0.0] * 10, reverse=True))
    udp["start"]["test_start"] |= {"protocol": "UDP", "reverse": 0}
    counts = {"socket": 5, "bytes": 11_900_000, "packets": 8633, "lost_packets": 350, "jitter_ms": 0.5}
    udp["end"]["streams"] = [{"udp": counts | {"start": 0, "end": 10}}]
    for texts in ((json.dumps(udp),), (CLEAN, json.dumps(udp), IDLE)):
        document = diagnosed(*texts, rate="100mbit")
        assert names(document) == {"packet_loss": "certain"}
        assert "350 of 8633 datagrams" in sentence(document, "packet_loss")


# 3
def test_a_long_delay_in_a_part_of_the_time_is_no_nothing(diagnosed: Any) -> None:
    late = [160.0 + 5 * at for at in range(8)]  # no level that holds
    document = diagnosed(iperf3([94.0] * COUNT, [21.0] * 12 + late), IDLE, rate="100mbit")
    assert names(document) == {"bufferbloat": "likely"}
    assert "for 40" in sentence(document, "bufferbloat")
    short = diagnosed(iperf3([94.0] * COUNT, [21.0] * 17 + late[:3]), IDLE, rate="100mbit")
    assert names(short) == {}
    assert "Whether all is well" in short["unknown"][0]["sentence"]


def test_a_second_without_a_byte_is_an_outage(diagnosed: Any) -> None:
    run = json.loads(iperf3([94.0] * 8 + [0.0] + [94.0] * 91, [21.0] * 100))
    run["intervals"][8]["streams"][0]["snd_cwnd"] = 300_000
    assert names(diagnosed(json.dumps(run), IDLE, rate="100mbit")) == {"outage": "likely"}


# 18
@pytest.mark.parametrize(
    ("mbps", "span"), [([94.0] * 5 + [0.0] * 15, "from 5 s to 20 s"), ([0.0] * 20, "from 0 s to 20 s")]
)
def test_a_time_in_which_nothing_arrives_is_an_outage(diagnosed: Any, mbps: list[float], span: str) -> None:
    document = diagnosed(iperf3(mbps, [21.0] * 20), IDLE, rate="100mbit")
    assert names(document) == {"outage": "certain"}
    assert span in sentence(document, "outage")


def test_a_send_buffer_that_drains_is_no_outage(diagnosed: Any) -> None:
    rates = [20.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    run = json.loads(iperf3(rates, [21.0] * len(rates)))
    for interval in run["intervals"]:
        interval["streams"][0]["snd_cwnd"] = 30_000
    assert "outage" not in names(diagnosed(json.dumps(run), IDLE))


# 4
def test_more_goodput_than_the_rate_is_no_nothing(diagnosed: Any) -> None:
    document = diagnosed(CLEAN, IDLE, rate="50mbit")
    assert names(document) == {}
    assert "contradict each other" in document["verdict"]
    assert document["contradictions"]


def test_a_plain_fifo_and_nothing_do_not_stand_in_one_list(diagnosed: Any) -> None:
    assert names(diagnosed(CLEAN, IDLE, rate="100mbit", queue="pfifo limit 1000")) == {"fifo": "certain"}


# 5
def test_the_upload_s_delay_goes_with_the_upload_s_rate(diagnosed: Any) -> None:
    """Before: at 94.1 Mbit/s a buffer of 2.35 MB, and a shaper at 89.4mbit."""
    document = diagnosed(DOWNLOAD, UPLOAD, trials=True)
    figures = next(it for it in document["findings"] if it["name"] == "bufferbloat")["figures"]
    assert figures["rate_bps"] == pytest.approx(9.8e6, rel=0.02)
    assert 200e3 < figures["buffer_bytes"] < 260e3
    commands = [line for it in document["advice"] for change in it["changes"] for line in change["commands"]]
    assert all("rate 9.3" in line for line in commands if "htb rate" in line)


def test_the_download_s_rate_and_the_upload_s_delay_are_no_nothing(diagnosed: Any) -> None:
    slow = iperf3([9.4] * COUNT, [24.0] * COUNT, cwnd=60_000)
    document = diagnosed(slow, DOWNLOAD, IDLE, rate="90mbit")
    assert "nothing" not in names(document)
    assert any("different directions" in it["sentence"] for it in document["unknown"])


# 6
def test_runs_at_two_times_are_not_joined(diagnosed: Any) -> None:
    slow = iperf3([9.5] * COUNT, [230.0] * COUNT, began=BEGAN + 100)
    for texts in ((CLEAN, slow), (f"{CLEAN}\n{slow}",)):
        document = diagnosed(*texts)
        assert names(document) == {"bufferbloat": "likely"}
        figures = document["findings"][0]["figures"]
        assert figures["rate_bps"] == pytest.approx(9.9e6, rel=0.02)
        assert any("at another time" in it for it in document["contradictions"])


# 11
def test_traffic_that_did_not_pass_a_shaper_says_nothing_of_it(diagnosed: Any) -> None:
    document = diagnosed(CLEAN, IDLE, TC_CAKE, rate="100mbit")
    assert names(document) == {"shaper_bypassed": "certain"}


# 12
def test_the_buffer_is_not_that_of_a_link_that_is_hardly_busy(diagnosed: Any) -> None:
    document = diagnosed(iperf3([9.5] * COUNT, [20.5, *[230.0] * 19]), IDLE, rate="100mbit")
    figures = document["findings"][0]["figures"]
    assert names(document) == {"bufferbloat": "certain"}
    assert 240e3 < figures["buffer_bytes"] < 280e3
    assert "the queue is at another, slower link" in sentence(document, "bufferbloat")


def test_a_flat_rtt_at_a_hardly_busy_link_is_a_contradiction(diagnosed: Any) -> None:
    flat = iperf3([40.0] * COUNT, [50.0] * COUNT, cwnd=250_000)
    document = diagnosed(flat, rate="1gbit", rtt="20ms")
    assert names(document) == {}
    assert document["contradictions"]
    document = diagnosed(flat, IDLE, rate="1gbit", rtt="50ms")
    assert "bufferbloat" not in names(document)
    assert any("--rtt says 50 ms" in it for it in document["contradictions"])


# 14
def test_a_step_between_two_levels_is_a_change_of_the_path(diagnosed: Any) -> None:
    run = iperf3([50.0] * COUNT, [20.0] * 10 + [80.0] * 10, cwnd=1_500_000)
    pings = ping([20 + DICE.random() for _ in range(60)] + [90 + DICE.random() for _ in range(100)], step=1.0)
    for text in (run, pings):
        document = diagnosed(text)
        assert names(document) == {"path_change": "likely"}
        assert document["advice"] == []
    busy = [20.0] * 10 + [60 + 40 * DICE.random() for _ in range(10)]
    assert "path_change" not in names(diagnosed(iperf3([50.0] * COUNT, busy)))


def test_a_link_that_varies_by_itself_is_ambiguous(diagnosed: Any) -> None:
    satellite = [(25 if at // 15 % 2 == 0 else 65) + 30 * DICE.random() for at in range(150)]
    sleep = [3 + at * 74 % 200 for at in range(60)]
    for trips in (satellite, sleep):
        (finding,) = diagnosed(ping(trips, step=1.0))["findings"]
        assert (finding["name"], finding["certainty"]) == ("ambiguous", "likely")
        assert {"bufferbloat", "link_jitter"} <= set(finding["causes"])


def test_pings_a_day_apart_are_not_compared(diagnosed: Any) -> None:
    trips = [20 + DICE.random() for _ in range(20)], [181 + DICE.random() for _ in range(20)]
    text = ping(trips[0], float(BEGAN), 1.0) + "\n" + ping(trips[1], BEGAN + 86_400.0, 1.0)
    document = diagnosed(text)
    assert names(document) == {}
    assert any("24 hours apart" in it for it in document["contradictions"])


def test_a_step_is_two_levels_that_hold() -> None:
    at: Floats = np.arange(40.0)
    level = at * 0 + 20
    assert step_of(at, level) is None
    level[20:] = 90
    step = step_of(at, level)
    assert step is not None
    assert (step.at_s, step.before_ms, step.after_ms) == (19.0, 20.0, 90.0)
    assert step_of(at, 20 + 2 * at) is None, "a ramp"


# 15 and 17
OOKLA = {
    "type": "result",
    "timestamp": "2026-11-20T10:00:00Z",
    "ping": {"jitter": 1.2, "latency": 14.1, "low": 13.2, "high": 16.0},
    "download": {
        "bandwidth": 11_750_000,
        "bytes": 105_000_000,
        "elapsed": 9000,
        "latency": {"iqm": 210.5, "low": 15.1, "high": 400.2, "jitter": 30.1},
    },
    "upload": {
        "bandwidth": 1_250_000,
        "bytes": 11_000_000,
        "elapsed": 9000,
        "latency": {"iqm": 16.2, "low": 13.1, "high": 40.2, "jitter": 3.1},
    },
    "packetLoss": 7.3,
    "server": {"host": "st.example.com", "port": 8080},
}
MTR = """Start: 2026-11-28T10:00:00+0100
HOST: laptop                     Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 192.168.1.1                0.0%   100    0.5   0.6   0.4   2.1   0.2
  2.|-- 10.64.0.1                 12.0%   100    8.5   209.6   7.4  422.1   83.2
  3.|-- example.com               13.0%   100   14.0  215.0  13.0  433.0   82.1
"""


def test_a_mean_is_called_a_mean(diagnosed: Any) -> None:
    document = diagnosed(json.dumps(OOKLA))
    assert names(document) == {"bufferbloat": "certain", "packet_loss": "certain"}
    text = sentence(document, "bufferbloat")
    assert "210 ms (mean) instead of 13.2 ms idle" in text
    assert "95 %" not in text
    assert "7.30 % of the test's own datagrams" in sentence(document, "packet_loss")


def test_mtr_s_path_is_its_last_hop(diagnosed: Any) -> None:
    document = diagnosed(MTR)
    assert names(document) == {"ambiguous": "likely", "packet_loss": "certain"}
    assert "215 ms (mean) instead of 13 ms" in sentence(document, "ambiguous")
    assert "13 of 100 pings to example.com" in sentence(document, "packet_loss")


# 20
def test_an_rtt_of_nothing_is_refused_by_its_name(diagnosed: Any) -> None:
    with pytest.raises(BadInputError, match=r"--rtt.*0ms"):
        diagnosed(CLEAN, rtt="0ms")


# 21
def test_an_upload_is_compared_with_the_uplink_of_a_named_path(diagnosed: Any) -> None:
    document = diagnosed(iperf3([9.4] * COUNT, [24.0] * COUNT, cwnd=60_000), IDLE, path="cable")
    rates = {it["value"] for it in document["evidence"] if it["name"] == "rate_bps"}
    assert rates == {10_000_000}
    assert "receive_window" not in json.dumps(document["findings"])


# 22
def test_a_flow_s_own_least_rtt_is_no_idle_rtt(diagnosed: Any) -> None:
    run = iperf3([9.5] * COUNT, [99.0, *(200 + 60 * DICE.random() for _ in range(19))])
    text = sentence(diagnosed(run), "bufferbloat")
    assert "instead of at most 99 ms idle" in text
    assert "or more: no file has the RTT of the idle path" in text
