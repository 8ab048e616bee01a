"""Files that are cut, that hold an error, a summary or one direction alone, or that another program stamped."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragstrip.analysis import captures
from dragstrip.analysis.diagnosis import walk
from dragstrip.cli import app
from dragstrip.errors import BadInputError
from dragstrip.interop import readers
from packets import ACK, SERVER, ether, ipv4, pcap, segment
from readers.test_read import IPERF3
from readers.test_reports import AUTORATE
from readers.test_texts import DETAILS, ENDS, HEAD

WINDOWS = """
Envoi d\ufffdune requ\ufffdte 'ping' sur example.com [192.0.2.7] avec 32 octets de donn\ufffdes :
R\ufffdponse de 192.0.2.7 : octets=32 temps=22 ms TTL=56
D\ufffdlai d\ufffdattente de la demande d\ufffdpass\ufffd.
R\ufffdponse de 192.0.2.7 : octets=32 temps=24 ms TTL=56

Statistiques Ping pour 192.0.2.7:
    Paquets : envoy\ufffds = 3, re\ufffdus = 2, perdus = 1 (perte 33%),
"""
SPANISH = """
Haciendo ping a 192.0.2.7 con 32 bytes de datos:
Respuesta desde 192.0.2.7: bytes=32 tiempo=22ms TTL=56
Tiempo de espera agotado para esta solicitud.
Respuesta desde 192.0.2.7: bytes=32 tiempo=24ms TTL=56

"""
SUMMARY = """--- example.com ping statistics ---
100 packets transmitted, 97 received, 3% packet loss, time 99123ms
rtt min/avg/max/mdev = 19.8/220.3/410.2/99.1 ms
"""
SPEEDTEST_CLI = {
    "download": 94e6,
    "upload": 9e6,
    "ping": 14.2,
    "server": {"host": "speed.example.net:8080", "latency": 14.2},
    "timestamp": "2026-11-20T10:00:00Z",
    "bytes_sent": 10_000_000,
    "bytes_received": 100_000_000,
    "client": {"ip": "203.0.113.9"},
}


def written(tmp_path: Path, content: str | bytes, name: str = "file.txt") -> Path:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize("indent", [None, 1])
def test_a_cut_document_of_iperf3_has_its_whole_intervals(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(IPERF3, indent=indent)
    file = written(tmp_path, text[: text.index('"bytes": 500')])
    recording = readers.read(file)
    (flow,) = recording["flows"].to_pylist()
    assert len(recording["samples"].to_pylist()) == 1
    assert any("ends in the middle" in note for note in recording.provenance["notes"])
    assert flow["stop_ns"] == 10**9


def test_a_cut_document_of_iperf3_without_an_interval_is_refused(tmp_path: Path) -> None:
    text = json.dumps(IPERF3, indent=1)
    file = written(tmp_path, text[: text.index('"intervals"')])
    with pytest.raises(BadInputError, match="ends in the middle") as caught:
        readers.read(file)
    assert "line 1 column" not in str(caught.value)


@pytest.mark.parametrize(
    "error", ["the server is busy running a test. try again later", "Connection refused"]
)
def test_an_error_of_iperf_is_quoted(tmp_path: Path, error: str) -> None:
    ended = CliRunner().invoke(app, ["inspect", str(written(tmp_path, f"iperf3: error - {error}\n"))])
    assert error in str(ended.exception)


@pytest.mark.parametrize("text", [WINDOWS, SPANISH])
def test_windows_ping_in_other_languages(tmp_path: Path, text: str) -> None:
    rows = readers.read(written(tmp_path, text))["probes"].to_pylist()
    assert [row["rtt_ns"] for row in rows] == [22_000_000, None, 24_000_000]
    assert {row["target"] for row in rows} == {"192.0.2.7"}


def test_a_ping_s_summary_alone(tmp_path: Path) -> None:
    recording = readers.read(written(tmp_path, SUMMARY))
    (row,) = recording.provenance["summaries"]
    assert (row["target"], row["sent"], row["lost"]) == ("example.com", 100, 3)
    assert row["rtt_ms"] == {"min": 19.8, "mean": 220.3, "max": 410.2}


def test_speedtest_cli_s_result_has_rates_in_bits(tmp_path: Path) -> None:
    recording = readers.read(written(tmp_path, json.dumps(SPEEDTEST_CLI), "speedtest.json"))
    assert recording.provenance["engine"] == "speedtest-cli"
    assert [row["goodput_bps"] for row in recording.provenance["reported"].values()] == [94e6, 9e6]
    (row,) = recording["probes"].to_pylist()
    assert row["rtt_ns"] == 14_200_000


def test_a_rotated_log_of_cake_autorate_says_what_it_lacks(tmp_path: Path) -> None:
    lines = [line for line in AUTORATE.splitlines(keepends=True) if "HEADER" not in line]
    assert any(line.startswith("DATA;") for line in lines)
    with pytest.raises(BadInputError, match="without its lines DATA_HEADER"):
        readers.read(written(tmp_path, "".join(lines)))


def test_screens_of_watch_have_the_date_of_their_head(tmp_path: Path) -> None:
    heads = [
        f"\x1b[H\x1b[2JEvery 2.0s: ss -tin    host: Sun Nov 22 {clock} 2026\n\n"
        for clock in ("23:59:58", "23:59:59")
    ]
    poll = HEAD + f"ESTAB {ENDS}" + DETAILS.format(rtt=28.5, acked=1000)
    recording = readers.read(written(tmp_path, "".join(head + poll for head in heads)))
    assert [row["time_ns"] for row in recording["samples"].to_pylist()] == [0, 10**9]


def test_acknowledgements_alone_are_one_direction(tmp_path: Path) -> None:
    packets = [
        (float(number), ether(ipv4(6, segment(1, 1 + 1448 * number, ACK), SERVER, bytes([10, 0, 0, 1]))))
        for number in range(1, 60)
    ]
    file = written(tmp_path, pcap(packets), "acks.pcap")
    text = captures.empty_text(captures.inspect([file], quiet=True)[0])
    assert "one direction alone" in text
    assert "tcpdump" in text
    notes = walk.diagnose([file], {}, quiet=True, trials=False)["notes"]
    assert any("one direction alone" in note for note in notes)


def test_headers_that_are_cut_off_get_a_length(tmp_path: Path) -> None:
    frame = ether(ipv4(6, segment(1, 1, ACK, 1448)))[:40]
    data = pcap([(float(number), frame) for number in range(20)])
    data = data.replace(struct.pack("<II", 40, 40), struct.pack("<II", 40, 1514))
    text = captures.empty_text(captures.inspect([written(tmp_path, data, "short.pcap")], quiet=True)[0])
    assert "tcpdump -s 96" in text
