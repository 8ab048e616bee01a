"""Texts that people have of iperf3, iperf 2 and ss: intervals, hosts and directions as printed, and what is damaged refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.errors import BadInputError
from dragstrip.interop import readers
from dragstrip.results import measures

IPERF3 = """Connecting to host 198.51.100.7, port 5201
[  5] local 192.0.2.10 port 44832 connected to 198.51.100.7 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    3   90.5 KBytes
[  5]   1.00-2.00   sec  1.12 MBytes  9.44 Mbits/sec   12   48.1 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  2.38 MBytes  9.96 Mbits/sec   15             sender
[  5]   0.00-2.04   sec  2.25 MBytes  9.25 Mbits/sec                  receiver

iperf Done.
"""
REVERSE = """Connecting to host 198.51.100.7, port 5201
Reverse mode, remote host 198.51.100.7 is sending
[  5] local 192.0.2.10 port 44840 connected to 198.51.100.7 port 5201
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  4.00 MBytes  33.5 Mbits/sec                  (omitted)
[  5]   0.00-1.00   sec  5.00 MBytes  41.9 Mbits/sec
[  5]   1.00-2.00   sec  5.00 MBytes  41.9 Mbits/sec
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.03   sec  11.2 MBytes  46.3 Mbits/sec   21             sender
[  5]   0.00-2.00   sec  10.0 MBytes  41.9 Mbits/sec                  receiver
"""
BIDIR = """[  5] local 192.0.2.10 port 38402 connected to 198.51.100.7 port 5201
[  7] local 192.0.2.10 port 38404 connected to 198.51.100.7 port 5201
[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd
[  5][TX-C]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    0    120 KBytes
[  7][RX-C]   0.00-1.00   sec  2.00 MBytes  16.8 Mbits/sec
"""
UDP = """[  5] local 192.0.2.10 port 5201 connected to 198.51.100.7 port 49402
[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.041 ms  3/91 (3.3%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec  0.041 ms  3/91 (3.3%)  receiver
"""
IPERF2 = """------------------------------------------------------------
Client connecting to 198.51.100.7, TCP port 5001 with pid 90972 (1 flows)
Write buffer size: 131072 Byte
TCP window size: 85.0 KByte (default)
------------------------------------------------------------
[  1] local 192.0.2.10%eth0 port 56462 connected with 198.51.100.7 port 5001 (MSS=1448) (sock=3) (irtt/icwnd=25/14) (ct=0.14 ms)
[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr
[  1] 0.0000-1.0000 sec   128 KBytes  1.05 Mbits/sec  1/0          0       14K/137773(26) us  17
[  1] 1.0000-2.0000 sec   256 KBytes  2.10 Mbits/sec  2/0          5       20K/140000(543) us  25
[  1] 0.0000-2.0034 sec   384 KBytes  1.57 Mbits/sec  3/0          5       20K/140000(543) us  50
"""
IPERF2_SERVER = """------------------------------------------------------------
Server listening on TCP port 5001
TCP window size:  128 KByte (default)
------------------------------------------------------------
[  4] local 198.51.100.7 port 5001 connected with 192.0.2.10 port 39690
[ ID] Interval       Transfer     Bandwidth
[  4]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec
"""


def rows(folder: Path, text: str | bytes, table: str) -> list[dict[str, Any]]:
    """Return a table's rows, with the columns that the file has."""
    path = folder / "given.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in readers.read(path)[table].to_pylist()
    ]


def test_iperf3_s_text_has_intervals_hosts_and_what_arrived(tmp_path: Path) -> None:
    (flow,) = rows(tmp_path, IPERF3, "flows")
    assert (flow["sender"], flow["receiver"], flow["retransmits"]) == ("192.0.2.10", "198.51.100.7", 15)
    assert (flow["stop_ns"], flow["bytes_received"]) == (2_040_000_000, round(2.25 * 2**20))
    samples = rows(tmp_path, IPERF3, "samples")
    assert [(row["time_ns"], row["retransmits"]) for row in samples] == [(10**9, 3), (2 * 10**9, 15)]
    assert (samples[0]["cwnd_bytes"], samples[1]["bytes_written"]) == (
        round(90.5 * 1024),
        round(1.25 * 2**20) + round(1.12 * 2**20),
    )


def test_iperf3_s_text_in_reverse_is_what_arrived_here(tmp_path: Path) -> None:
    (flow,) = rows(tmp_path, REVERSE, "flows")
    assert (flow["sender"], flow["receiver"], flow["retransmits"]) == ("198.51.100.7", "192.0.2.10", 21)
    assert [row["new_bytes"] for row in rows(tmp_path, REVERSE, "received")] == [5 * 2**20] * 2
    assert rows(tmp_path, REVERSE, "samples") == []
    path = tmp_path / "given.txt"
    (figures,) = measures.flow_figures(readers.read(path))
    assert figures["goodput_bps"] == pytest.approx(41.9e6, rel=0.01)
    assert "omitted by -O" in " ".join(readers.read(path).provenance["notes"])


def test_both_directions_and_datagrams_of_iperf3_s_text(tmp_path: Path) -> None:
    up, down = rows(tmp_path, BIDIR, "flows")
    assert (up["sender"], down["sender"]) == ("192.0.2.10", "198.51.100.7")
    (flow,) = rows(tmp_path, UDP, "flows")
    assert (flow["protocol"], flow["datagrams_lost"], flow["segments_sent"]) == ("udp", 3, 91)


def test_iperf_2_s_text_has_round_trips_and_its_last_line_is_no_interval(tmp_path: Path) -> None:
    (flow,) = rows(tmp_path, IPERF2, "flows")
    assert (flow["sender"], flow["retransmits"]) == ("192.0.2.10%eth0", 5)
    first, last = rows(tmp_path, IPERF2, "samples")
    assert (first["srtt_ns"], first["cwnd_bytes"]) == (137_773_000, 14 * 1024)
    assert (last["retransmits"], last["bytes_written"]) == (5, 384 * 1024)
    (flow,) = rows(tmp_path, IPERF2_SERVER, "flows")
    assert (flow["sender"], flow["receiver"]) == ("192.0.2.10", "198.51.100.7")
    (arrived,) = rows(tmp_path, IPERF2_SERVER, "received")
    assert (arrived["time_ns"], arrived["new_bytes"]) == (10**10, round(1.1 * 2**30))


def test_an_iperf_text_without_an_interval_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="has no interval of any stream"):
        rows(tmp_path, "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n", "flows")


DETAILS = (
    "\t cubic wscale:7,7 rto:230 rtt:{rtt}/2.1 mss:1448 cwnd:20 bytes_acked:{acked} segs_out:15 retrans:0/3\n"
)
ENDS = "0      302      192.0.2.10:52320    198.51.100.7:5201\n"
HEAD = "Recv-Q Send-Q  Local Address:Port  Peer Address:Port\n"


def polls(*stamps: str) -> str:
    """Return polls of `ss -tin state established`, which has no column State, behind their stamps."""
    return "".join(
        f"{stamp}\n{HEAD}{ENDS}{DETAILS.format(rtt=28.5 + at, acked=1000 * (at + 1))}"
        for at, stamp in enumerate(stamps)
    )


@pytest.mark.parametrize(
    "stamps",
    [
        ("1795386282", "1795386284"),
        ("1795386282554", "1795386284554"),
        ("1795386282554022", "1795386284554022"),
        ("1795386282554022260", "1795386284554022260"),
        ("Sun Nov 22 23:59:59 UTC 2026", "Mon Nov 23 00:00:01 UTC 2026"),
        ("Sun Nov 22 11:59:59 PM CET 2026", "Mon Nov 23 12:00:01 AM CET 2026"),
    ],
)
def test_ss_without_a_state_behind_the_stamps_of_date(tmp_path: Path, stamps: tuple[str, str]) -> None:
    text = polls(*stamps)
    (flow,) = rows(tmp_path, text, "flows")
    assert (flow["sender"], flow["receiver"], flow["cc"]) == (
        "192.0.2.10:52320",
        "198.51.100.7:5201",
        "cubic",
    )
    samples = rows(tmp_path, text, "samples")
    assert [(row["time_ns"], row["srtt_ns"]) for row in samples] == [(0, 28_500_000), (2 * 10**9, 29_500_000)]


@pytest.mark.parametrize(
    "stamps",
    [
        ("Nov 22 23:59:59", "Nov 23 00:00:01"),
        ("1795386282.554022", "1795386284.554022"),
        ("2026-11-22 23:59:59.000000", "2026-11-23 00:00:01.000000"),
        ("[2026-11-22T23:59:59]", "[2026-11-23T00:00:01]"),
        ("23:59:59", "00:00:01"),
        ("00:00:00", "00:00:02"),
    ],
)
def test_ss_with_the_stamps_of_ts_in_front_of_each_line(tmp_path: Path, stamps: tuple[str, str]) -> None:
    parts = [HEAD + f"ESTAB {ENDS}" + DETAILS.format(rtt=28.5, acked=1000)] * 2
    text = "".join(
        f"{stamp} {line}\n" for stamp, part in zip(stamps, parts, strict=True) for line in part.splitlines()
    )
    assert [row["time_ns"] for row in rows(tmp_path, text, "samples")] == [0, 2 * 10**9]


def test_ss_without_any_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no time before its first socket"):
        rows(tmp_path, HEAD + ENDS + DETAILS.format(rtt=1, acked=1), "samples")
