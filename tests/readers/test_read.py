"""Files of other programs: what they say is in the recording, what they do not say is empty, and what is damaged is refused."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.errors import BadInputError
from dragstrip.interop import readers
from dragstrip.model.recording import read
from dragstrip.results import measures

IPERF3: dict[str, Any] = {
    "start": {
        "connected": [{"socket": 5, "local_host": "a", "remote_host": "b"}],
        "test_start": {"protocol": "TCP"},
    },
    "intervals": [
        {
            "streams": [
                {
                    "socket": 5,
                    "end": 1.0,
                    "bytes": 1000,
                    "retransmits": 3,
                    "snd_cwnd": 14480,
                    "rtt": 280,
                    "sender": True,
                }
            ]
        },
        {
            "streams": [
                {
                    "socket": 5,
                    "end": 2.5,
                    "bytes": 500,
                    "retransmits": 0,
                    "snd_cwnd": -1,
                    "rtt": 0,
                    "sender": True,
                }
            ]
        },
    ],
    "end": {
        "streams": [
            {
                "sender": {"socket": 5, "start": 0, "end": 2.5, "retransmits": 3},
                "receiver": {"socket": 5, "end": 2.6, "bytes": 1400},
            }
        ],
        "sender_tcp_congestion": "cubic",
    },
}
IPUTILS = """PING h (10.0.0.2) 56(84) bytes of data.
64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.030 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=12.5 ms
64 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=13.1 ms (DUP!)
no answer yet for icmp_seq=3
64 bytes from 10.0.0.2: icmp_seq=4 ttl=64 time=101 ms

--- h ping statistics ---
5 packets transmitted, 3 received, +1 duplicates, 40% packet loss, time 800ms
rtt min/avg/max/mdev = 0.030/0.035/0.038/0.003 ms
"""
STAMPED = """PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.
[1795386279.367944] 64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=10.0 ms
[1795386279.573480] 64 bytes from 127.0.0.1: icmp_seq=2 ttl=64 time=20.0 ms
"""
BUSYBOX = """PING 127.0.0.1 (127.0.0.1): 56 data bytes
64 bytes from 127.0.0.1: seq=0 ttl=64 time=0.042 ms
64 bytes from 127.0.0.1: seq=2 ttl=64 time=0.058 ms

--- 127.0.0.1 ping statistics ---
3 packets transmitted, 2 packets received, 33% packet loss
round-trip min/avg/max = 0.042/0.050/0.058 ms
"""
FPING = """[1795386280.79968] a.example : [0], 64 bytes, 0.037 ms (0.037 avg, 0% loss)
a.example : [1], timed out (0.037 avg, 50% loss)
[1795386281.00146] a.example : [2], 64 bytes, 0.036 ms (0.036 avg, 33% loss)
"""
SS = """1795386282.554022260
State Recv-Q Send-Q  Local Address:Port  Peer Address:PortProcess
ESTAB 0      302      10.0.0.1:52320    10.0.0.2:5998
\t bbr wscale:10,10 rto:204 rtt:40.5/0.011 mss:1448 cwnd:14 ssthresh:8 bytes_acked:900 segs_out:15 bbr:(bw:31275bps,mrtt:0.001) send 106bps lastsnd:372 pacing_rate 38.7Mbps delivery_rate 31275462bps unacked:9 sacked:2 lost:1 retrans:1/6 minrtt:40
1795386282.754022261
ESTAB 0      302      10.0.0.1:52320    10.0.0.2:5998 bbr wscale:10,10 rtt:41/0.1 mss:1448 cwnd:15 bytes_acked:2900
"""
TCP_PROBE = """ iperf3-99 [001] ..s1. 100.000001: tcp_probe: family=AF_INET src=10.0.0.1:5000 dest=10.0.0.2:80 mark=0x0 data_len=0 snd_nxt=0x2000 snd_una=0x1000 snd_cwnd=10 ssthresh=2147483647 snd_wnd=65536 srtt=40000 rcv_wnd=64256 sock_cookie=1
 iperf3-99 [001] ..s1. 100.100001: tcp:tcp_probe: family=AF_INET src=10.0.0.1:5000 dest=10.0.0.2:80 mark=0x0 data_len=0 snd_nxt=0x3000 snd_una=0x2800 snd_cwnd=12 ssthresh=9 snd_wnd=65536 srtt=41000 rcv_wnd=64256 sock_cookie=1
"""
PROC = """2.221032535 10.0.0.1:5000 10.0.0.2:80 32 0x58200000 0x581ff000 11 9 65536 40000 64256
2.321032535 10.0.0.1:5000 10.0.0.2:80 32 0x58201000 0x58200000 12 9 65536 40000 64256
"""
QLOG: dict[str, Any] = {
    "file_schema": "urn:ietf:params:qlog:file:contained",
    "traces": [
        {
            "title": "t",
            "common_fields": {"time_format": "relative_to_previous_event"},
            "events": [
                {
                    "time": 10,
                    "name": "quic:recovery_metrics_updated",
                    "data": {"smoothed_rtt": 40.5, "congestion_window": 12000},
                },
                {"time": 5, "name": "quic:packet_lost", "data": {}},
                {"time": 5, "name": "recovery:metrics_updated", "data": {"congestion_window": 6000}},
            ],
        }
    ],
}
IRTT: dict[str, Any] = {
    "config": {"remote_address": "127.0.0.1:2112"},
    "round_trips": [
        {"lost": "false", "timestamps": {"client": {"send": {"monotonic": 500}}}, "delay": {"rtt": 258184}},
        {"lost": "true_up", "timestamps": {"client": {"send": {"monotonic": 100500}}}, "delay": {}},
    ],
}
FLENT: dict[str, Any] = {
    "version": 4,
    "metadata": {"NAME": "tcp_1up", "T0": "2001-09-09T01:46:40.000000Z", "HOST": "b", "LOCAL_HOST": "a"},
    "x_values": [0.1],
    "results": {
        "TCP upload": [8.0],
        "TCP upload::tcp_rtt": [1],
        "TCP upload sum": [8.0],
        "Ping (ms) ICMP": [50.0],
    },
    "raw_values": {
        "TCP upload": [{"t": 1000000000.5, "dur": 0.5, "val": 8.0}, {"t": 1000000000.5, "tcp_rtt": 41.0}],
        "Ping (ms) ICMP": [{"t": 1000000000.2, "val": 50.0, "seq": 1}],
    },
}


def written(folder: Path, content: object, name: str = "given") -> Path:
    path = folder / name
    path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())
    return path


def rows(folder: Path, content: object, table: str) -> list[dict[str, Any]]:
    """A table's rows, with the columns that are known."""
    found = readers.read(written(folder, content))[table].to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def test_iperf3_says_windows_round_trips_and_what_was_written(tmp_path: Path) -> None:
    (flow,) = rows(tmp_path, IPERF3, "flows")
    assert flow == {
        "flow": 0,
        "label": "stream 5",
        "protocol": "tcp",
        "cc": "cubic",
        "sender": "a",
        "receiver": "b",
        "start_ns": 0,
        "stop_ns": 2_600_000_000,
        "bytes_received": 1400,
        "retransmits": 3,
    }
    first, last = rows(tmp_path, IPERF3, "samples")
    assert first == {
        "time_ns": 1_000_000_000,
        "flow": 0,
        "cwnd_bytes": 14480,
        "srtt_ns": 280_000,
        "bytes_written": 1000,
        "retransmits": 3,
    }
    assert last == {"time_ns": 2_500_000_000, "flow": 0, "bytes_written": 1500, "retransmits": 3}


def test_iperf3_s_stream_of_events_is_the_same_document(tmp_path: Path) -> None:
    events = [
        ("start", IPERF3["start"]),
        *(("interval", it) for it in IPERF3["intervals"]),
        ("end", IPERF3["end"]),
    ]
    stream = "\n".join(json.dumps({"event": kind, "data": data}) for kind, data in events)
    for table in ("flows", "samples"):
        assert rows(tmp_path, stream, table) == rows(tmp_path, IPERF3, table)


def test_an_iperf3_that_failed_says_why(tmp_path: Path) -> None:
    path = written(tmp_path, {"start": {}, "intervals": [], "end": {}, "error": "unable to connect\x1b[1m"})
    with pytest.raises(BadInputError, match=r"given: iperf3 failed: unable to connect\\x1b"):
        readers.read(path)


def test_an_interrupted_iperf3_has_the_intervals_it_wrote(tmp_path: Path) -> None:
    document = {**IPERF3, "end": {}, "error": "interrupt - the client has terminated"}
    found = readers.read(written(tmp_path, document))
    assert found["samples"].num_rows == 2
    assert "iperf3 ended early: interrupt - the client has terminated" in found.provenance["notes"]


def test_iperf3_s_warnings_and_nan_are_no_obstacle(tmp_path: Path) -> None:
    text = json.dumps({**IPERF3, "end": {**IPERF3["end"], "cpu": -1}}, indent=1).replace(
        '"cpu": -1', '"cpu": -nan'
    )
    (flow,) = rows(tmp_path, f"warning: this system has no SCTP\n{text}\n", "flows")
    assert flow["retransmits"] == 3


def inspected(*files: Path) -> dict[str, Any]:
    """What `inspect --json` prints."""
    ended = CliRunner().invoke(app, ["inspect", *map(str, files), "--json"])
    assert ended.exit_code == 0, ended.output
    said: dict[str, Any] = json.loads(ended.stdout)
    return said


def streams(*intervals: dict[str, Any]) -> list[dict[str, Any]]:
    """Intervals of one stream, a second each."""
    made = []
    for at, interval in enumerate(intervals):
        row = {"socket": 5, "start": at, "end": at + 1, "seconds": 1, "sender": True, **interval}
        made.append({"streams": [row], "sum": {}})
    return made


def test_an_interrupted_iperf3_divides_by_all_its_intervals(tmp_path: Path) -> None:
    sent = streams(*[{"bytes": 1_200_000, "rtt": 20_000, "retransmits": 1}] * 2)
    arrived = streams(*[{"bytes": 2_450_000, "sender": False}] * 2)
    for intervals, rate in ((sent, 9.6e6), (arrived, 19.6e6)):
        file = written(tmp_path, {**IPERF3, "intervals": intervals, "end": {}, "error": "interrupt"})
        (flow,) = inspected(file)["flows"]
        assert (flow["duration_s"], flow["goodput_bps"]) == (2.0, rate)


def test_iperf3_s_own_round_trips_are_used(tmp_path: Path) -> None:
    end: dict[str, Any] = json.loads(json.dumps(IPERF3["end"]))
    end["streams"][0]["sender"] |= {"min_rtt": 150, "mean_rtt": 250, "max_rtt": 900}
    (flow,) = inspected(written(tmp_path, {**IPERF3, "end": end}))["flows"]
    assert [flow["rtt_ms"][name] for name in ("min", "mean", "max")] == [0.15, 0.25, 0.9]
    assert (flow["rtt_ms"]["p5"], flow["rtt_ms"]["p95"]) == (None, None)


@pytest.mark.parametrize("count", [19, 20])
def test_percentiles_need_a_sample_beyond_them(tmp_path: Path, count: int) -> None:
    text = "".join(f"64 bytes from h: icmp_seq={n} ttl=64 time={n} ms\n" for n in range(1, count + 1))
    (probe,) = inspected(written(tmp_path, text))["probes"]
    trips = probe["rtt_ms"]
    assert (trips["min"], trips["mean"], trips["max"]) == (1.0, (count + 1) / 2, float(count))
    assert (trips["p5"] is None, trips["p95"] is None, trips["p50"]) == (
        count < 20,
        count < 20,
        (count + 1) / 2,
    )


def test_iperf3_s_omitted_intervals_are_left_out(tmp_path: Path) -> None:
    intervals = [*streams({"bytes": 9_000_000, "omitted": True}), *streams({"bytes": 1_000_000})]
    said = inspected(written(tmp_path, {**IPERF3, "intervals": intervals, "end": {}}))
    assert said["flows"][0]["goodput_bps"] == 8e6
    assert any("omitted by -O" in note for note in said["notes"])


@pytest.mark.parametrize(
    "join",
    [
        lambda runs: "\n".join(json.dumps(run, indent=1) for run in runs),
        lambda runs: "\n".join(json.dumps(run) for run in runs) + "\n",
        lambda runs: "warning: x\n" + "\nwarning: {y}\n".join(json.dumps(run, indent="\t") for run in runs),
    ],
)
def test_several_runs_of_iperf3_in_one_file(tmp_path: Path, join: Callable[[Any], str]) -> None:
    runs = [
        {
            "start": {**IPERF3["start"], "timestamp": {"timesecs": begin}},
            "intervals": streams({"bytes": 1000}),
            "end": {},
        }
        for begin in (1_700_000_000, 1_700_000_060)
    ]
    said = inspected(written(tmp_path, join(runs)))
    assert [flow["label"] for flow in said["flows"]] == ["run 1: stream 5", "run 2: stream 5"]
    found = rows(tmp_path, join(runs), "flows")
    assert found[1]["start_ns"] - found[0]["start_ns"] == 60_000_000_000


def test_what_iperf3_s_server_measured_belongs_to_the_same_flow(tmp_path: Path) -> None:
    ends = {"local_host": "a", "local_port": 1000, "remote_host": "b", "remote_port": 5201}
    back = {"local_host": "b", "local_port": 5201, "remote_host": "a", "remote_port": 1000}
    document = {
        "start": {"connected": [{"socket": 5, **ends}]},
        "intervals": streams({"bytes": 3_000}),
        "end": {},
        "server_output_json": {
            "start": {"connected": [{"socket": 9, **back}]},
            "intervals": streams({"bytes": 2_000, "sender": False, "socket": 9}),
            "end": {},
        },
    }
    assert [row["new_bytes"] for row in rows(tmp_path, document, "received")] == [2_000]
    (flow,) = inspected(written(tmp_path, document))["flows"]
    assert (flow["bytes"], flow["goodput_bps"]) == (2_000, 16_000.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            IPUTILS,
            [
                (0, 30_000),
                (200_000_000, 12_500_000),
                (400_000_000, None),
                (600_000_000, 101_000_000),
                (800_000_000, None),
            ],
        ),
        (STAMPED, [(0, 10_000_000), (195_536_000, 20_000_000)]),
        (BUSYBOX, [(0, 42_000), (1_000_000_000, None), (2_000_000_000, 58_000)]),
        (FPING, [(0, 37_000), (100_890_500, None), (201_781_000, 36_000)]),
    ],
)
def test_pings(tmp_path: Path, text: str, expected: list[tuple[int, int | None]]) -> None:
    found = [(row["time_ns"], row.get("rtt_ns")) for row in rows(tmp_path, text, "probes")]
    assert sorted(found) == sorted(expected)


WINDOWS = """
Pinging example.org [192.0.2.1] with 32 bytes of data:
Reply from 192.0.2.1: bytes=32 time=12ms TTL=57
Request timed out.
Reply from 192.0.2.254: Destination host unreachable.
Reply from 192.0.2.1: bytes=32 time<1ms TTL=57

Ping statistics for 192.0.2.1:
    Packets: Sent = 4, Received = 2, Lost = 2 (50% loss),
"""
GERMAN = """
Ping wird ausgeführt für 192.0.2.1 mit 32 Bytes Daten:
Antwort von 192.0.2.1: Bytes=32 Zeit=12ms TTL=57
Zeitüberschreitung der Anforderung.

Ping-Statistik für 192.0.2.1:
"""
SIX = """
Pinging 2001:db8::1 with 32 bytes of data:
Reply from 2001:db8::1: time=7ms

Ping statistics for 2001:db8::1:
"""
MAC_LOST = """PING 192.0.2.1 (192.0.2.1): 56 data bytes
Request timeout for icmp_seq 0
Request timeout for icmp_seq 1

--- 192.0.2.1 ping statistics ---
3 packets transmitted, 0 packets received, 100.0% packet loss
"""
LOGGED = "\n".join(
    f"Nov 25 10:00:0{at} router ping[7]: {line}" for at, line in enumerate(BUSYBOX.splitlines())
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (WINDOWS, [12_000_000, None, None, 1_000_000]),
        (GERMAN, [12_000_000, None]),
        (SIX, [7_000_000]),
        (MAC_LOST, [None, None, None]),
        (LOGGED, [42_000, None, 58_000]),
    ],
)
def test_pings_of_other_systems(tmp_path: Path, text: str, expected: list[int | None]) -> None:
    assert [row.get("rtt_ns") for row in rows(tmp_path, text, "probes")] == expected


def test_a_dead_host_has_lost_every_request(tmp_path: Path) -> None:
    text = "PING h (192.0.2.1) 56(84) bytes of data.\n\n--- h ping statistics ---\n"
    text += "5 packets transmitted, 0 received, 100% packet loss, time 4081ms\n"
    found = rows(tmp_path, text, "probes")
    assert [(row["time_ns"], row["lost"]) for row in found] == [(at * 1_020_250_000, True) for at in range(5)]
    with pytest.raises(BadInputError, match="no answer"):
        readers.read(written(tmp_path, text.replace("5 packets", "0 packets")))


TWO = """PING a (192.0.2.1) 56(84) bytes of data.
64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=1.0 ms

--- a ping statistics ---
3 packets transmitted, 1 received, 66% packet loss, time 2002ms
PING b (192.0.2.2) 56(84) bytes of data.
64 bytes from 192.0.2.2: icmp_seq=1 ttl=64 time=2.0 ms
64 bytes from 192.0.2.2: icmp_seq=2 ttl=64 time=2.0 ms

--- b ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 1001ms
"""
AT_ONCE = """PING a (192.0.2.1) 56(84) bytes of data.
PING b (192.0.2.2) 56(84) bytes of data.
64 bytes from 192.0.2.2: icmp_seq=1 ttl=64 time=2.0 ms
64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=1.0 ms
64 bytes from 192.0.2.2: icmp_seq=2 ttl=64 time=2.0 ms
--- b ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 1001ms
--- a ping statistics ---
3 packets transmitted, 1 received, 66% packet loss, time 2002ms
"""
AGAIN = (
    TWO.replace("PING b (192.0.2.2)", "PING a (192.0.2.1)")
    .replace("--- b", "--- a")
    .replace("192.0.2.2", "192.0.2.1")
)


@pytest.mark.parametrize("text", [TWO, AT_ONCE], ids=["one after the other", "at once"])
def test_two_pings_in_a_file_lose_their_own(tmp_path: Path, text: str) -> None:
    found = rows(tmp_path, text, "probes")
    assert {row["target"]: [] for row in found} == {"192.0.2.1": [], "192.0.2.2": []}
    of_a = [row.get("rtt_ns") for row in found if row["target"] == "192.0.2.1"]
    assert of_a == [1_000_000, None, None]
    assert [row.get("rtt_ns") for row in found if row["target"] == "192.0.2.2"] == [2_000_000] * 2


def test_two_pings_of_one_host_are_two(tmp_path: Path) -> None:
    found = rows(tmp_path, AGAIN, "probes")
    assert (len(found), sum(row["lost"] for row in found)) == (5, 2)


@pytest.mark.parametrize(
    "text",
    [
        "PING 2001:db8::1(2001:db8::1) 56 data bytes\n64 bytes from 2001:db8::1: icmp_seq=1 ttl=64 time=7.0 ms\n",
        "64 bytes from 2001:db8::1: icmp_seq=1 ttl=64 time=7.0 ms\n",
        "PING6(56=40+8+8 bytes) 2001:db8::2 --> 2001:db8::1\n"
        "16 bytes from 2001:db8::1, icmp_seq=0 hlim=64 time=7.0 ms\n",
        "PING 2001:db8::1 (2001:db8::1): 56 data bytes\n64 bytes from 2001:db8::1: seq=0 ttl=64 time=7.0 ms\n",
        "2001:db8::1 : [0], 64 bytes, 7.0 ms (7.0 avg, 0% loss)\n",
    ],
    ids=["iputils", "no head", "macOS", "busybox", "fping"],
)
def test_pings_of_ipv6(tmp_path: Path, text: str) -> None:
    (found,) = rows(tmp_path, text, "probes")
    assert (found["target"], found["rtt_ns"]) == ("2001:db8::1", 7_000_000)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("no answer yet for icmp_seq=1\nno answer yet for icmp_seq=2\n", 2),
        ("From 192.0.2.254 icmp_seq=1 Destination Host Unreachable\n", 1),
        ("Request timeout for icmp_seq 0\nRequest timeout for icmp_seq 1\n", 2),
        (
            "64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=1.0 ms\nno answer yet for icmp_seq=2\n"
            "From gw (192.0.2.254) icmp_seq=3 Destination Host Unreachable\n",
            2,
        ),
    ],
)
def test_an_outage_of_a_ping_that_was_cut_off(tmp_path: Path, text: str, lost: int) -> None:
    found = rows(tmp_path, f"PING h (192.0.2.1) 56(84) bytes of data.\n{text}", "probes")
    assert sum(row["lost"] for row in found) == lost


def test_ping_s_numbers_wrap(tmp_path: Path) -> None:
    lines = [
        f"64 bytes from h: icmp_seq={number % 65536} ttl=64 time=1.0 ms" for number in range(65_530, 65_545)
    ]
    found = rows(tmp_path, "\n".join(lines), "probes")
    assert sum(not row["lost"] for row in found) == 15
    assert found[-1]["time_ns"] - found[-15]["time_ns"] == 14_000_000_000


def test_a_ping_may_claim_any_number_of_requests(tmp_path: Path) -> None:
    text = BUSYBOX.replace("3 packets transmitted", "999999999 packets transmitted")
    found = readers.read(written(tmp_path, text))
    assert found["probes"].num_rows == 2
    assert "127.0.0.1: 999999997 requests without an answer are left out" in found.provenance["notes"][-1]


def test_half_a_surrogate_pair_in_a_stream_is_replaced(tmp_path: Path) -> None:
    peer = '{"socket": 5, "local_host": "\\ud800", "remote_host": "b"}'
    start = f'{{"event": "start", "data": {{"connected": [{peer}]}}}}'
    interval = json.dumps({"event": "interval", "data": IPERF3["intervals"][0]})
    (flow,) = rows(tmp_path, f"{start}\n{interval}\n", "flows")
    assert flow["sender"] == "?"


def test_an_iperf3_socket_without_a_number_is_no_stream_s(tmp_path: Path) -> None:
    start = {**IPERF3["start"], "connected": [{"socket": {}, "local_host": "a", "remote_host": "b"}]}
    (flow,) = rows(tmp_path, {**IPERF3, "start": start}, "flows")
    assert "sender" not in flow


def test_ss_polls_say_what_the_kernel_knows(tmp_path: Path) -> None:
    (flow,) = rows(tmp_path, SS, "flows")
    assert (flow["cc"], flow["sender"], flow["receiver"]) == ("bbr", "10.0.0.1:52320", "10.0.0.2:5998")
    first, last = rows(tmp_path, SS, "samples")
    assert first == {
        "time_ns": 0,
        "flow": 0,
        "cwnd_bytes": 14 * 1448,
        "ssthresh_bytes": 8 * 1448,
        "bytes_in_flight": (9 - 2 - 1 + 1) * 1448,
        "srtt_ns": 40_500_000,
        "min_rtt_ns": 40_000_000,
        "pacing_bps": 38_700_000,
        "delivery_bps": 31_275_462,
        "bytes_acked": 900,
        "retransmits": 6,
    }
    assert last == {
        "time_ns": 200_000_001,
        "flow": 0,
        "cwnd_bytes": 15 * 1448,
        "srtt_ns": 41_000_000,
        "bytes_acked": 2900,
    }
    with pytest.raises(BadInputError, match="no time before its first socket"):
        readers.read(written(tmp_path, SS.split("\n", 1)[1]))


@pytest.mark.parametrize(
    ("text", "acked", "ssthresh"), [(TCP_PROBE, 0x1800, [9.0]), (PROC, 0x1000, [9.0, 9.0])]
)
def test_the_kernel_s_probes_have_windows_in_segments(
    tmp_path: Path, text: str, acked: int, ssthresh: list[float]
) -> None:
    first, last = rows(tmp_path, text, "samples")
    assert (first["srtt_ns"], last["time_ns"], last["bytes_acked"]) == (40_000_000, 100_000_000, acked)
    assert "cwnd_bytes" not in first
    variables = rows(tmp_path, text, "cc_state")
    assert [row["value"] for row in variables if row["name"] == "ssthresh"] == ssthresh
    assert [row["value"] for row in variables if row["name"] == "snd_cwnd"][-1] == 12


def test_qlog_s_metrics_stay_until_they_change(tmp_path: Path) -> None:
    first, last = rows(tmp_path, QLOG, "samples")
    assert (first["time_ns"], last["time_ns"]) == (10_000_000, 20_000_000)
    assert (last["srtt_ns"], first["cwnd_bytes"], last["cwnd_bytes"]) == (40_500_000, 12_000, 6_000)
    head = {"file_schema": "urn:ietf:params:qlog:file:sequential", "trace": {"common_fields": {}}}
    records = "".join(f"\x1e{json.dumps(record)}\n" for record in (head, *QLOG["traces"][0]["events"]))
    assert len(rows(tmp_path, records, "samples")) == 2


def test_irtt_s_requests_that_were_lost_are_there(tmp_path: Path) -> None:
    answered, lost = rows(tmp_path, IRTT, "probes")
    assert (answered["time_ns"], answered["rtt_ns"], answered["lost"]) == (0, 258_184, False)
    assert (lost["time_ns"], lost["lost"]) == (100_000, True)


def test_flent_s_raw_values(tmp_path: Path) -> None:
    packed = tmp_path / "x.flent.gz"
    packed.write_bytes(gzip.compress(json.dumps(FLENT).encode()))
    found = readers.read(packed)
    assert [flow["label"] for flow in found["flows"].to_pylist()] == ["TCP upload"]
    assert found["received"].to_pylist()[0]["new_bytes"] == 500_000
    assert found["samples"].to_pylist()[0]["srtt_ns"] == 41_000_000
    ping = found["probes"].to_pylist()[0]
    assert (ping["time_ns"], ping["rtt_ns"]) == (150_000_000, 50_000_000)


@pytest.mark.parametrize(
    ("version", "name", "row", "rtt_ns"),
    [
        (3, "Ping (ms) UDP BE1", {"dur": 0.2, "val": 20.0}, 50_000_000),  # netperf UDP_RR, transactions/s
        (4, "Ping (ms) UDP BE1", {"dur": 0.2, "val": 50.0}, 50_000_000),
        (3, "Ping (ms) UDP BE1", {"val": 50.0}, 50_000_000),  # irtt
        (3, "Ping (ms) ICMP", {"val": 50.0}, 50_000_000),
        (1, "Ping (ms) UDP EF", {"dur": 0.2, "val": 25.0}, 40_000_000),
    ],
)
def test_what_a_raw_ping_of_flent_s_is(
    tmp_path: Path, version: int, name: str, row: dict[str, float], rtt_ns: int
) -> None:
    document: dict[str, Any] = {**FLENT, "version": version, "results": {name: [50.0]}}
    values = {name: [{"t": 1000000000.5, **row}, {"t": 1000000000.7, **row, "val": 0.0}]}
    if version == 1:
        del document["version"], document["raw_values"]
        document["metadata"] = {**FLENT["metadata"], "SERIES_META": {name: {"RAW_VALUES": values[name]}}}
    else:
        document["raw_values"] = values
    assert rows(tmp_path, document, "probes")[0]["rtt_ns"] == rtt_ns


def test_flent_s_first_interval_counts_and_computed_series_are_no_flows(tmp_path: Path) -> None:
    raw = [{"t": 1000000000.0 + at / 5, "dur": 0.2, "val": 8.0} for at in range(50)]
    document = {
        **FLENT,
        "results": {"TCP upload": [8.0], "TCP totals": [8.0]},
        "raw_values": {"TCP upload": raw, "TCP totals": []},
    }
    file = written(tmp_path, document, "a.flent")
    said = json.loads(CliRunner().invoke(app, ["inspect", str(file), "--json"]).stdout)
    (flow,) = said["flows"]
    assert (flow["bytes"], flow["duration_s"], flow["goodput_bps"]) == (10_000_000, 10.0, 8e6)


def test_a_goodput_of_flent_s_is_bytes_over_the_measured_time(tmp_path: Path) -> None:
    """Netperf's intervals may leave a hole: a second of 8 Mbit/s, ten without a value, one of 8 Mbit/s."""
    raw = [{"t": 1000000001.0, "dur": 1.0, "val": 8.0}, {"t": 1000000012.0, "dur": 1.0, "val": 8.0}]
    document = {**FLENT, "results": {"TCP upload": [8.0]}, "raw_values": {"TCP upload": raw}}
    (flow,) = inspected(written(tmp_path, document))["flows"]
    assert (flow["bytes"], flow["duration_s"], flow["goodput_bps"]) == (2_000_000, 12.0, 8e6)


@pytest.mark.parametrize(
    ("raw", "lost"),
    [
        ([{"seq": at, "t": 1000000000.5 + at / 5, "val": 20.0} for at in (0, 1, 4, 5)], [2, 3]),
        (
            [
                {"seq": 0, "t": 1000000000.5, "val": 20.0},
                {"seq": 1, "t": 1000000000.7, "lost": True, "lost_dir": None},
            ],
            [1],
        ),
        ([{"seq": at % 65536, "t": 1000000000.5 + at / 5, "val": 20.0} for at in (65535, 65537)], [1]),
    ],
)
def test_flent_s_pings_that_were_lost(tmp_path: Path, raw: list[dict[str, Any]], lost: list[int]) -> None:
    name = "Ping (ms) ICMP"
    document = {**FLENT, "results": {name: [20.0]}, "raw_values": {name: raw}}
    found = rows(tmp_path, document, "probes")
    assert [at for at, row in enumerate(found) if row["lost"]] == lost


@pytest.mark.parametrize(
    ("name", "meta", "row", "table", "expected"),
    [
        ("latency", {"RUNNER": "PingRunner", "UNITS": "ms"}, {"val": 5.0}, "probes", {"rtt_ns": 5_000_000}),
        (
            "x",
            {"RUNNER": "NetperfDemoRunner", "UNITS": "ms"},
            {"val": 50.0, "dur": 0.2},
            "probes",
            {"rtt_ns": 20_000_000},
        ),
        ("UDP upload", {}, {"val": 8.0, "dur": 1.0}, "received", {"new_bytes": 1_000_000}),
    ],
)
def test_a_raw_value_of_flent_s_is_what_its_runner_measured(
    tmp_path: Path,
    name: str,
    meta: dict[str, str],
    row: dict[str, float],
    table: str,
    expected: dict[str, int],
) -> None:
    metadata = {**FLENT["metadata"], "SERIES_META": {name: meta}}
    document = {**FLENT, "version": 3, "metadata": metadata, "results": {name: [1.0]}}
    document["raw_values"] = {name: [{"t": 1000000001.0, **row}]}
    (found,) = rows(tmp_path, document, table)
    assert found.items() >= expected.items()


@pytest.mark.parametrize("runner", ["DitgRunner", "HttpGetterRunner", "SumRunner"])
def test_what_is_no_round_trip_and_no_flow_of_flent_s_is_not_read(tmp_path: Path, runner: str) -> None:
    name = "Ping (ms) UDP"
    document = {**FLENT, "results": {name: [1.0]}, "raw_values": {name: [{"t": 1000000001.0, "val": 1.0}]}}
    document["metadata"] = {**FLENT["metadata"], "SERIES_META": {name: {"RUNNER": runner, "UNITS": "ms"}}}
    with pytest.raises(BadInputError, match="no raw values"):
        readers.read(written(tmp_path, document))


def test_iperf_s_values_in_flent_s_files_have_the_length_between_them(tmp_path: Path) -> None:
    raw = [{"t": 1000000000.0 + at / 2, "val": 8.0} for at in range(5)]
    meta = {"TCP upload": {"RUNNER": "IperfCsvRunner", "UNITS": "Mbits/s"}}
    document = {**FLENT, "results": {"TCP upload": [8.0]}, "raw_values": {"TCP upload": raw}}
    document["metadata"] = {**FLENT["metadata"], "SERIES_META": meta}
    (flow,) = inspected(written(tmp_path, document))["flows"]
    assert (flow["bytes"], flow["duration_s"], flow["goodput_bps"]) == (2_000_000, 2.0, 8e6)


def test_inspect_knows_them_and_writes_recordings(tmp_path: Path) -> None:
    file = written(tmp_path, IPERF3, "a.json")
    pings = written(tmp_path, IPUTILS, "p.txt")
    ended = CliRunner().invoke(
        app, ["inspect", str(file), str(pings), "--json", "--out", str(tmp_path / "out")]
    )
    assert ended.exit_code == 0, ended.output
    said = json.loads(ended.stdout)
    assert [it["format"] for it in said["files"]] == ["iperf3", "ping"]
    (flow,) = said["flows"]
    assert (flow["bytes"], flow["duration_s"], flow["retransmissions"]["unknown"]) == (1400, 2.6, 3)
    assert flow["rtt_ms"] == {
        "method": "srtt",
        "samples": 1,
        **{"p5": None, "p50": 0.28, "p95": None, "min": 0.28, "mean": 0.28, "max": 0.28},
    }
    assert (said["probes"][0]["sent"], said["probes"][0]["lost"]) == (5, 2)
    assert read(tmp_path / "out" / "a")["samples"].num_rows == 2
    told = CliRunner().invoke(app, ["inspect", str(file), str(pings)])
    assert "stream 5" in told.stdout
    assert "2 of 5" in told.stdout


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("nothing of the kind", 'begins with "nothing of the kind", expected pcap or pcapng, JSON of iperf3'),
        ('{"x": 1}', 'is JSON with "x", expected JSON of iperf3'),
        ('{"start": ', "ends in the middle"),
        ('{"starts": ', "is not a JSON document"),
        ({"start": {}, "intervals": [], "end": {}}, "has no interval"),
        ({"round_trips": 5}, "has no round trip"),
        ({"x_values": [], "results": {}}, "has no raw values"),
        ({"qlog_version": "0.3", "traces": [None, {"events": "x"}]}, "has no event"),
    ],
)
def test_what_is_none_of_these_is_refused_in_one_line(tmp_path: Path, content: object, expected: str) -> None:
    with pytest.raises(BadInputError) as caught:
        readers.read(written(tmp_path, content))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragstrip.io import untrusted

    monkeypatch.setattr(untrusted, "JSON_MAX", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(BadInputError, match="more, unpacked"):
        readers.read(tmp_path / "bomb.gz")


SAMPLES: Mapping[str, str] = {
    "iperf3": json.dumps(IPERF3),
    "stream": '{"event": "start", "data": {}}\n{"event": "interval", "data": '
    + json.dumps(IPERF3["intervals"][0])
    + "}\n",
    "iputils": IPUTILS,
    "stamped": STAMPED,
    "fping": FPING,
    "ss": SS,
    "probe": TCP_PROBE,
    "proc": PROC,
    "qlog": json.dumps(QLOG),
    "irtt": json.dumps(IRTT),
    "flent": json.dumps(FLENT),
}
PIECES = [
    b"-1",
    b"0",
    b"1e400",
    b"NaN",
    b"null",
    b"[]",
    b"{}",
    b'"x"',
    b"9" * 40,
    b"0x" + b"f" * 30,
    b"\xff\x00",
    b"true",
    b"1e18",
    b"\n",
    b":",
]


def damaged(said: bytes, chance: random.Random) -> bytes:
    """Some bytes replaced, a value put in another's place, a piece cut out or doubled."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(said) + 1)
        end = min(len(said), at + chance.choice((1, 1, 3, 20, 200)))
        said = said[:at] + chance.choice([*PIECES, b"", said[at:end] * 2]) + said[end:]
    numbers = [at for at in range(len(said)) if said[at : at + 1].isdigit()]
    if numbers and chance.random() < 0.5:
        at = chance.choice(numbers)
        said = said[:at] + chance.choice(PIECES) + said[at + 1 :]
    return said


@pytest.mark.parametrize("name", SAMPLES)
def test_whatever_is_damaged_is_read_or_refused(tmp_path: Path, name: str) -> None:
    chance = random.Random(name)  # noqa: S311 - damage, the same every time
    read_well, refusals = 0, []
    for _ in range(300):
        given = damaged(SAMPLES[name].encode(), chance)
        try:
            kind, found = readers.parsed(given, "given")
        except BadInputError as refused:
            refusals.append(str(refused))
            continue
        recording = found.recording({"engine": kind})
        measures.flow_figures(recording)
        for table in ("samples", "received", "probes"):
            assert all(time >= 0 for time in recording[table]["time_ns"].to_pylist())
        read_well += 1
    assert read_well > 0
    assert not [said for said in refusals if "\n" in said]


def test_a_rate_of_ss_beyond_any_is_left_out(tmp_path: Path) -> None:
    text = SS.replace("rtt:41/0.1", "rtt:41/0.1 pacing_rate 15999999999994Mbps")
    assert "pacing_bps" not in rows(tmp_path, text, "samples")[-1]
