"""Files of other programs: what they say is in the recording, what they do not say is empty, and what is damaged is refused."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip import foreign, observed
from dragstrip.cli import app
from dragstrip.errors import BadInputError
from dragstrip.recording import read

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
    found = foreign.read(written(folder, content))[table].to_pylist()
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
        foreign.read(path)


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
        (FPING, [(0, 37_000), (1_000_000_000, None), (201_781_000, 36_000)]),
    ],
)
def test_pings(tmp_path: Path, text: str, expected: list[tuple[int, int | None]]) -> None:
    found = [(row["time_ns"], row.get("rtt_ns")) for row in rows(tmp_path, text, "probes")]
    assert sorted(found) == sorted(expected)


def test_ping_s_numbers_wrap(tmp_path: Path) -> None:
    lines = [
        f"64 bytes from h: icmp_seq={number % 65536} ttl=64 time=1.0 ms" for number in range(65_530, 65_545)
    ]
    found = rows(tmp_path, "\n".join(lines), "probes")
    assert sum(not row["lost"] for row in found) == 15
    assert found[-1]["time_ns"] - found[-15]["time_ns"] == 14_000_000_000


def test_a_ping_may_claim_any_number_of_requests(tmp_path: Path) -> None:
    text = BUSYBOX.replace("3 packets transmitted", "999999999 packets transmitted")
    found = foreign.read(written(tmp_path, text))
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
        foreign.read(written(tmp_path, SS.split("\n", 1)[1]))


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
    found = foreign.read(packed)
    assert [flow["label"] for flow in found["flows"].to_pylist()] == ["TCP upload"]
    assert found["received"].to_pylist()[0]["new_bytes"] == 500_000
    assert found["samples"].to_pylist()[0]["srtt_ns"] == 41_000_000
    ping = found["probes"].to_pylist()[0]
    assert (ping["time_ns"], ping["rtt_ns"]) == (150_000_000, 50_000_000)


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
    assert flow["rtt_ms"] == {"method": "srtt", "samples": 1, "p5": 0.28, "p50": 0.28, "p95": 0.28}
    assert (said["probes"][0]["sent"], said["probes"][0]["lost"]) == (5, 2)
    assert read(tmp_path / "out" / "a")["samples"].num_rows == 2
    told = CliRunner().invoke(app, ["inspect", str(file), str(pings)])
    assert "stream 5" in told.stdout
    assert "2 of 5" in told.stdout


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("nothing of the kind", "is no JSON of iperf3, irtt, flent or qlog, or output of ping"),
        ('{"x": 1}', "is no JSON of iperf3"),
        ('{"start": ', "is not a JSON document"),
        ({"start": {}, "intervals": [], "end": {}}, "has no interval"),
        ({"round_trips": 5}, "has no round trip"),
        ({"x_values": [], "results": {}}, "has no raw values"),
        ({"qlog_version": "0.3", "traces": [None, {"events": "x"}]}, "has no event"),
    ],
)
def test_what_is_none_of_these_is_refused_in_one_line(tmp_path: Path, content: object, expected: str) -> None:
    with pytest.raises(BadInputError) as caught:
        foreign.read(written(tmp_path, content))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dragstrip import outside

    monkeypatch.setattr(outside, "JSON_MAX", 1 << 20)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(BadInputError, match="more, unpacked"):
        foreign.read(tmp_path / "bomb.gz")


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
            kind, found = foreign.understood(given, "given")
        except BadInputError as refused:
            refusals.append(str(refused))
            continue
        recording = found.recording({"engine": kind})
        observed.flows(recording)
        for table in ("samples", "received", "probes"):
            assert all(time >= 0 for time in recording[table]["time_ns"].to_pylist())
        read_well += 1
    assert read_well > 0
    assert not [said for said in refusals if "\n" in said]
