"""Files that `inspect` cannot read are told what they are, and what to do with them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app

TCPDUMP = "10:00:00.123456 IP 10.0.0.1.5000 > 10.0.0.2.80: Flags [S], seq 1, win 64240, length 0\n"
PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.pcap", PCAP)
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.pcap"), io.BytesIO(b""))
    return out.getvalue()


GIVEN: dict[str, tuple[bytes | str, str]] = {
    "empty.pcap": (b"", "is empty"),
    "blank.txt": ("\n \n", "is not a capture but blanks"),
    "a.pcap.bz2": (bz2.compress(PCAP), "bzip2: unpack it"),
    "a.zip": (zipped(), "ZIP archive: unpack it"),
    "a.tar": (tarred(), "tar archive: unpack it"),
    "packed.tar.gz": (gzip.compress(tarred()), "tar archive: unpack it"),
    "a.snoop": (b"snoop\0\0\0\0\0\0\2\0\0\0\4", "is a snoop capture"),
    "a.etl": (b"\0\0\1\0\x48\x01\0\0" * 100, "etl2pcap"),
    "a.cap": (b"GMBU\0\2\1\0" * 10, "editcap"),
    "zeros.pcap": (bytes(5000), "is not a capture but zeros"),
    "page.pcap": ("<!DOCTYPE html>\n<html><head>", "is not a capture but a web page"),
    "page.pcap.gz": (gzip.compress(b"<html><title>404 Not Found</title>"), "is not a capture but a web page"),
    "a.pdml": ('<?xml version="1.0"?>\n<pdml version="0">', "tshark -w"),
    "dump.txt": (TCPDUMP, "tcpdump -w FILE"),
    "any.txt": ("10:00:00.123456 eth0  In  IP6 ::1.5 > ::1.80: Flags [.]\n", "tcpdump -w FILE"),
    "dated.txt": ("2026-11-25 10:00:00.123456 IP 10.0.0.1.5000 > 10.0.0.2.80: tcp 0\n", "tcpdump -w FILE"),
    "dump.txt.xz": (lzma.compress(TCPDUMP.encode()), "tcpdump -w FILE"),
    "shark.txt": ("    1 0.000000000     10.0.0.1 → 10.0.0.2     TCP 74 50000 → 80 [SYN]\n", "tshark -w"),
    "list.csv": ('"No.","Time","Source","Destination","Protocol"\n"1","0.0"\n', "packets as CSV"),
    "layers.json": ('[{"_index": "packets", "_source": {"layers": {}}}]', "tshark's JSON"),
    "hex.txt": ("0x0000:  4500 003c 1c46 4000 4006 b1e6\n", "text2pcap"),
    "iperf.txt": ("[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n", "no interval"),
    "iperf2.csv": ("20261125100000,10.0.0.1,5001,10.0.0.2,5001,3,0.0-1.0,1,8\n", "iperf 2"),
    "netperf.txt": ("MIGRATED TCP_STREAM TEST from 0.0.0.0 () port 0\n", "flent"),
    "trace.txt": ("traceroute to 192.0.2.1 (192.0.2.1), 30 hops max\n", "a traceroute"),
    "ss.txt": ("State    Recv-Q Send-Q Local Address:Port\nLISTEN   0      128\n", "ss -tin"),
    "script.sh": ("#!/bin/sh\ntc qdisc add dev eth0 root fq_codel\n", "a script"),
    "tc.txt": ("tc qdisc replace dev eth0 root fq_codel\n", "dragstrip tc-import reads it"),
    "ip.txt": ("2: eth0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc fq\n", "a listing of ip"),
    "mine.toml": ('[path]\nrate = "10mbit"\n', "dragstrip run runs it"),
    "ping.txt": ("Réponse de 192.0.2.1 : octets=32 temps=12 ms TTL=57\n", "Windows' ping"),
    "other.json": ('{"hits": [], "took": 5}', 'is JSON with "hits, took", expected JSON of iperf3'),
    "list.json": ("[1, 2]", "is a JSON list, expected JSON of iperf3"),
    "cells.csv": ("a,b,c\n1,2,3\n", 'a table whose first line is "a,b,c"'),
    "notes.txt": ("shopping\nlist\n", 'is not a capture but a text that begins with "shopping"'),
    "long.txt": ("x" * 500_000, "..."),
    "noise": (bytes(range(1, 256)) * 4, "is no capture: it begins with 01020304"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_a_file_is_and_what_to_do(tmp_path: Path, name: str) -> None:
    content, expected = GIVEN[name]
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    ended = CliRunner().invoke(app, ["inspect", str(file)])
    said = str(ended.exception)
    assert ended.exit_code != 0
    assert expected in said.removeprefix(str(file))
    assert "\n" not in said
    assert len(said) - len(str(file)) < 300


@pytest.mark.parametrize("pack", [lambda said: said, gzip.compress, lzma.compress])
def test_a_capture_stays_a_capture(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    file = tmp_path / "a.etl"
    file.write_bytes(pack(PCAP))
    ended = CliRunner().invoke(app, ["inspect", str(file)])
    assert ended.exit_code == 0, ended.output


def test_powershell_s_text_is_read(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_bytes("64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\r\n".encode("utf-16"))
    ended = CliRunner().invoke(app, ["inspect", str(file)])
    assert ended.exit_code == 0, ended.output
    assert "0 of 1" in ended.stdout


@pytest.mark.parametrize(("inside", "expected"), [("result.json", "dragstrip report"), ("x", "files in it")])
def test_a_folder(tmp_path: Path, inside: str, expected: str) -> None:
    (tmp_path / inside).write_text("{}")
    ended = CliRunner().invoke(app, ["inspect", str(tmp_path)])
    assert expected in str(ended.exception)
