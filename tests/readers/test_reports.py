"""Results of speed tests, mtr, cake-autorate, NeST and tshark: round trips by load, hosts, direction, time series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragstrip.errors import BadInputError
from dragstrip.interop import readers
from dragstrip.interop.readers.measurements import DOWNLOADING, IDLE, UPLOADING
from dragstrip.model.recording import Recording
from dragstrip.results import measures

OOKLA: dict[str, Any] = {
    "type": "result",
    "timestamp": "2026-04-09T17:52:04Z",
    "ping": {"jitter": 2.462, "latency": 8.05, "low": 5.557, "high": 11.447},
    "download": {
        "bandwidth": 23594617,
        "bytes": 248400056,
        "elapsed": 11009,
        "latency": {"iqm": 18.997, "low": 9.37, "high": 224.945, "jitter": 7.982},
    },
    "upload": {
        "bandwidth": 1329170,
        "bytes": 15720936,
        "elapsed": 11215,
        "latency": {"iqm": 89.243, "low": 3.653, "high": 155.824, "jitter": 24.453},
    },
    "packetLoss": 0,
    "isp": "Example",
    "interface": {"internalIp": "192.0.2.18", "name": "en0", "isVpn": False, "externalIp": "198.51.100.9"},
    "server": {
        "id": 1,
        "host": "speedtest.example.net",
        "port": 8080,
        "name": "Example",
        "ip": "203.0.113.5",
    },
    "result": {"id": "0", "url": "https://www.speedtest.net/result/c/0", "persisted": True},
}
LIBRESPEED: list[dict[str, Any]] = [
    {
        "timestamp": "2026-10-16T15:51:29Z",
        "server": {"name": "Example", "url": "http://speed.example.net/"},
        "client": {"ip": "", "hostname": "", "city": ""},
        "bytes_sent": 991330304,
        "bytes_received": 1761691176,
        "ping": 9,
        "jitter": 0.25,
        "upload": 508.29,
        "download": 903.39,
        "share": "",
    }
]
CLOUDFLARE: dict[str, Any] = {
    "sessionID": "0",
    "endpoint": "https://speed.example.net",
    "success": True,
    "result": {
        "download": 71965572.58,
        "upload": 35293340.94,
        "latency": 7.5,
        "jitter": 1.21,
        "downLoadedLatency": 22.8,
        "downLoadedJitter": 6.72,
        "upLoadedLatency": 51.5,
        "upLoadedJitter": 14.26,
    },
}
MTR_JSON: dict[str, Any] = {
    "report": {
        "mtr": {
            "src": "laptop",
            "dst": "203.0.113.5",
            "tos": 0,
            "tests": 10,
            "psize": "64",
            "bitpattern": "0x00",
        },
        "hubs": [
            {
                "count": 1,
                "host": "192.0.2.1",
                "Loss%": 0.0,
                "Snt": 10,
                "Last": 0.255,
                "Avg": 0.477,
                "Best": 0.2,
                "Wrst": 0.664,
            },
            {
                "count": 2,
                "host": "???",
                "Loss%": 100.0,
                "Snt": 10,
                "Last": 0.0,
                "Avg": 0.0,
                "Best": 0.0,
                "Wrst": 0.0,
            },
            {
                "count": 3,
                "host": "203.0.113.5",
                "Loss%": 20.0,
                "Snt": 10,
                "Last": 18.4,
                "Avg": 13.8,
                "Best": 11.5,
                "Wrst": 18.5,
            },
        ],
    }
}
MTR = """Start: 2026-11-25T15:15:20+0000
HOST: laptop                      Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 192.0.2.1                  0.0%    10    0.3   0.5   0.2   0.7   0.1
  2.|-- ???                       100.0    10    0.0   0.0   0.0   0.0   0.0
  3.|-- 203.0.113.5               20.0%    10   18.4  13.8  11.5  18.5   1.2
"""
AUTORATE = """INFO; 2026-11-25-10:00:00; 1795600800.000000; Starting cake-autorate 3.2.1
DATA_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; DL_LOAD_PERCENT; UL_LOAD_PERCENT; ICMP_TIMESTAMP; REFLECTOR; SEQUENCE; DL_OWD_BASELINE; DL_OWD_US; DL_OWD_DELTA_EWMA_US; DL_OWD_DELTA_US; DL_ADJ_DELAY_THR; UL_OWD_BASELINE; UL_OWD_US; UL_OWD_DELTA_EWMA_US; UL_OWD_DELTA_US; UL_ADJ_DELAY_THR; DL_SUM_DELAYS; DL_AVG_OWD_DELTA_US; DL_ADJ_AVG_OWD_DELTA_THR_US; UL_SUM_DELAYS; UL_AVG_OWD_DELTA_US; UL_ADJ_AVG_OWD_DELTA_THR_US; DL_LOAD_CONDITION; UL_LOAD_CONDITION; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS
LOAD_HEADER; LOG_DATETIME; LOG_TIMESTAMP; PROC_TIME_US; DL_ACHIEVED_RATE_KBPS; UL_ACHIEVED_RATE_KBPS; CAKE_DL_RATE_KBPS; CAKE_UL_RATE_KBPS
LOAD; 2026-11-25-10:00:00; 1795600800.200000; 1795600800.200100; 100; 50; 40000; 8000
DATA; 2026-11-25-10:00:00; 1795600800.250000; 1795600800.250100; 100; 50; 0; 0; 1795600800.24; 1.1.1.1; 1; 10000; 10500; 500; 500; 30000; 10000; 10500; 500; 500; 30000; 0; 500; 60000; 0; 500; 60000; dl_idle; ul_idle; 40000; 8000
LOAD; 2026-11-25-10:00:01; 1795600801.200000; 1795600801.200100; 38000; 700; 40000; 8000
DATA; 2026-11-25-10:00:01; 1795600801.250000; 1795600801.250100; 38000; 700; 95; 8; 1795600801.24; 1.1.1.1; 2; 10000; 60000; 9000; 50000; 30000; 10000; 60000; 9000; 50000; 30000; 3; 50000; 60000; 3; 50000; 60000; dl_high_bb; ul_low; 36000; 8000
DATA; 2026-11-25-10:00:02; 1795600802.250000; 1795600802.250100; 900; 7900; 2; 98; 1795600802.24; 1.1.1.1; 3; 10000; 40000; 9000; 30000; 30000; 10000; 40000; 9000; 30000; 30000; 3; 30000; 60000; 3; 30000; 60000; dl_low; ul_high; 36000; 8000
SHAPER; 2026-11-25-10:00:01; 1795600801.260000; tc qdisc change root dev ifb-wan cake bandwidth 36000Kbit
"""
NEST_SS: dict[str, Any] = {
    "h1": [
        {
            "10.0.1.2:5201": [
                {"start_time": "0", "stop_time": "2", "destination_node": "h2"},
                {"timestamp": "1795600800.1", "cwnd": "10", "rtt": "40.5", "dev_rtt": "2.5", "ssthresh": "9"},
                {"timestamp": "1795600800.3", "cwnd": "14", "rtt": "61", "dev_rtt": "3"},
            ]
        }
    ]
}
NEST_PING = {"h1": [{"10.0.1.2": [{"destination_node": "h2"}, {"timestamp": "1795600800.5", "rtt": "40.1"}]}]}
NEST_NETPERF = {
    "h1": [
        {
            "10.0.1.2:12865": [
                {"destination_node": "h2"},
                {"timestamp": "1795600800.2", "sending_rate": "8.00"},
                {"timestamp": "1795600800.4", "sending_rate": "16.00"},
            ]
        }
    ]
}
NEST_TC = {
    "r1": [
        {
            "r1-h2-0": {
                "11:": [
                    {
                        "timestamp": "1795600800.0",
                        "kind": "codel",
                        "bytes": 3028,
                        "packets": 2,
                        "drops": 0,
                        "backlog": 0,
                        "qlen": 0,
                    },
                    {
                        "timestamp": "1795600800.2",
                        "kind": "codel",
                        "bytes": 9084,
                        "packets": 6,
                        "drops": 1,
                        "backlog": 4542,
                        "qlen": 3,
                    },
                ]
            }
        }
    ]
}
FIELDS = """frame.time_epoch\tip.src\tip.dst\ttcp.srcport\ttcp.dstport\ttcp.len\ttcp.seq\ttcp.analysis.ack_rtt\ttcp.analysis.retransmission
1795600800.000000000\t192.0.2.1\t203.0.113.5\t50000\t443\t0\t0\t\t
1795600800.040000000\t203.0.113.5\t192.0.2.1\t443\t50000\t0\t0\t0.040000000\t
1795600800.100000000\t192.0.2.1\t203.0.113.5\t50000\t443\t1448\t1\t\t
1795600800.110000000\t192.0.2.1\t203.0.113.5\t50000\t443\t1448\t1449\t\t
1795600800.140500000\t203.0.113.5\t192.0.2.1\t443\t50000\t0\t1\t0.040500000\t
1795600800.300000000\t192.0.2.1\t203.0.113.5\t50000\t443\t1448\t1449\t\t1
1795600800.900000000\t192.0.2.1\t203.0.113.5\t50000\t443\t1448\t2897\t\t
1795600801.000000000\t\t\t\t\t\t\t\t
"""


def recording(folder: Path, content: object) -> Recording:
    """Return the recording of a text or a document."""
    path = folder / "given"
    path.write_bytes((content if isinstance(content, str) else json.dumps(content)).encode())
    return readers.read(path)


def test_ookla_s_result_is_three_latencies_and_a_flow_each_way(tmp_path: Path) -> None:
    result = recording(tmp_path, OOKLA)
    down, up = measures.flow_figures(result)
    assert (down["bytes"], down["duration_s"], down["goodput_bps"]) == (248400056, 11.009, 23594617 * 8)
    assert up["goodput_bps"] == 1329170 * 8
    ends = [(row["sender"], row["receiver"]) for row in result["flows"].to_pylist()]
    assert ends == [("speedtest.example.net", "this host"), ("this host", "speedtest.example.net")]
    probes = {row["probe"]: row["rtt_ms"] for row in measures.probe_figures(result)}
    assert list(probes) == [IDLE, DOWNLOADING, UPLOADING]
    assert [probes[UPLOADING][name] for name in ("min", "mean", "max")] == [3.653, 89.243, 155.824]
    times = {row["probe"]: row["time_ns"] for row in result["probes"].to_pylist()}
    assert times == {IDLE: 0, DOWNLOADING: 11_009_000_000, UPLOADING: 22_224_000_000}


def test_librespeed_s_result_has_an_idle_latency_alone(tmp_path: Path) -> None:
    for content in (LIBRESPEED, LIBRESPEED[0]):
        result = recording(tmp_path, content)
        down, up = measures.flow_figures(result)
        assert (down["goodput_bps"], up["goodput_bps"]) == (903.39e6, 508.29e6)
        assert down["duration_s"] == pytest.approx(1761691176 * 8 / 903.39e6)
        assert [row["probe"] for row in measures.probe_figures(result)] == [IDLE]
        assert "cannot show bufferbloat" in " ".join(result.provenance["notes"])


def test_cloudflare_s_summary_has_rates_without_bytes(tmp_path: Path) -> None:
    for content in (CLOUDFLARE, CLOUDFLARE["result"], {"summary": CLOUDFLARE["result"]}):
        result = recording(tmp_path, content)
        flows = measures.flow_figures(result)
        assert [(flow["goodput_bps"], flow["bytes"]) for flow in flows] == [
            (71965572.58, None),
            (35293340.94, None),
        ]
        probes = {row["probe"]: row["rtt_ms"]["mean"] for row in measures.probe_figures(result)}
        assert probes == {IDLE: 7.5, DOWNLOADING: 22.8, UPLOADING: 51.5}


@pytest.mark.parametrize("content", [MTR, MTR_JSON])
def test_mtr_s_hops_are_probes_with_their_losses(tmp_path: Path, content: object) -> None:
    probes = measures.probe_figures(recording(tmp_path, content))
    assert [(row["probe"], row["sent"], row["lost"]) for row in probes] == [
        ("mtr hop 1", 10, 0),
        ("mtr hop 2", 10, 10),
        ("mtr hop 3", 10, 2),
    ]
    assert probes[1]["rtt_ms"]["mean"] is None
    assert [probes[2]["rtt_ms"][name] for name in ("min", "mean", "max")] == [11.5, 13.8, 18.5]


def test_cake_autorate_s_log_has_round_trips_by_load_and_rates(tmp_path: Path) -> None:
    result = recording(tmp_path, AUTORATE)
    rows = [(row["probe"], row["time_ns"], row["rtt_ns"]) for row in result["probes"].to_pylist()]
    assert rows == [
        (IDLE, 50_000_000, 21_000_000),
        (DOWNLOADING, 1_050_000_000, 120_000_000),
        (UPLOADING, 2_050_000_000, 80_000_000),
    ]
    down, up = result["flows"].to_pylist()
    assert (down["sender"], up["sender"]) == ("internet", "LAN")
    arrived = [(row["flow"], row["time_ns"], row["new_bytes"]) for row in result["received"].to_pylist()]
    assert arrived == [(0, 10**9, 4_750_000), (1, 10**9, 87_500)]
    rates = [flow["goodput_bps"] for flow in measures.flow_figures(result)]
    assert rates == [38e6, 700e3]
    shaper = [row["value"] for row in result["cc_state"].to_pylist() if row["flow"] == 0]
    assert shaper == [40e6, 40e6]


def test_nest_s_dumps(tmp_path: Path) -> None:
    sockets = recording(tmp_path, NEST_SS)
    (flow,) = sockets["flows"].to_pylist()
    assert (flow["sender"], flow["receiver"]) == ("h1", "10.0.1.2:5201")
    assert [(row["time_ns"], row["srtt_ns"]) for row in sockets["samples"].to_pylist()] == [
        (0, 40_500_000),
        (200_000_000, 61_000_000),
    ]
    windows = [row["value"] for row in sockets["cc_state"].to_pylist() if row["name"] == "snd_cwnd"]
    assert windows == [10, 14]
    (ping,) = recording(tmp_path, NEST_PING)["probes"].to_pylist()
    assert (ping["probe"], ping["target"], ping["rtt_ns"]) == ("ping from h1", "10.0.1.2", 40_100_000)
    written = recording(tmp_path, NEST_NETPERF)["samples"].to_pylist()
    assert [row["bytes_written"] for row in written] == [0, 400_000]
    dump = recording(tmp_path, NEST_TC)
    assert "2 counts of 1 queue(s)" in " ".join(dump.provenance["notes"])
    queue = dump["queues"].to_pylist()
    assert [(row["link"], row["time_ns"], row["backlog_bytes"], row["dropped"]) for row in queue] == [
        ("r1 r1-h2-0 11: codel", 0, 0, 0),
        ("r1 r1-h2-0 11: codel", 200_000_000, 4542, 1),
    ]


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_tshark_s_fields_are_flows_with_round_trips(tmp_path: Path, separator: str) -> None:
    result = recording(tmp_path, FIELDS.replace("\t", separator))
    (flow,) = result["flows"].to_pylist()
    assert (flow["sender"], flow["receiver"], flow["retransmits"]) == (
        "192.0.2.1:50000",
        "203.0.113.5:443",
        1,
    )
    assert [row["new_bytes"] for row in result["received"].to_pylist()] == [1448, 1448, 0, 1448]
    assert [row["rtt_ns"] for row in result["rtts"].to_pylist()] == [40_500_000]
    (figures,) = measures.flow_figures(result)
    assert (figures["bytes"], figures["duration_s"]) == (3 * 1448, 0.8)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({**OOKLA, "ping": {}, "download": {}, "upload": 3}, "no rate and no latency"),
        ([{**LIBRESPEED[0], "ping": None, "upload": "x", "download": -1}], "no rate and no latency"),
        (
            {"result": {**CLOUDFLARE["result"], **dict.fromkeys(CLOUDFLARE["result"], "x")}},
            "no rate and no latency",
        ),
        ({"report": {"mtr": {"hubs": 5}}}, "no hop"),
        (MTR.split("\n  1.")[0] + "\n", "no hop"),
        (AUTORATE.split("\nLOAD;")[0].replace("\nDATA;", "\nX;") + "\n", "no line DATA or LOAD"),
        (FIELDS.split("\n")[0] + "\n", "no line of TCP with data"),
        (FIELDS.replace("tcp.len", "tcp.window_size"), "has no tcp.len: add -e tcp.len"),
        (FIELDS.replace("frame.time_epoch", "frame.number"), "has no time: add -e frame.time_epoch"),
    ],
)
def test_what_is_damaged_is_refused_in_one_line(tmp_path: Path, content: object, expected: str) -> None:
    with pytest.raises(BadInputError) as caught:
        recording(tmp_path, content)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
