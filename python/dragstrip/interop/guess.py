"""Guesses at files that are neither captures nor of a known format, each with a remedy.

Belongs here: signatures of files that people have instead, each with a remedy. Does not belong here: reading
any of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dragstrip.io.untrusted import one_line

CAPTURES = "pcap or pcapng"
SHOWN_MAX = 60
"""Characters of a file's first line, or keys of a document, that a message has at most."""
LINES_MAX = 50
"""Lines at the beginning of a text that are looked at, each up to `LINE_MAX` characters."""
LINE_MAX = 400
_REMEDY = re.compile(r"^[^\"]*: ")
_MAGIC: Sequence[tuple[bytes, str]] = (
    (b"BZh", "compressed with bzip2: unpack it, or compress it with gzip, xz or zstd"),
    (b"\x04\x22\x4d\x18", "compressed with lz4: unpack it, or compress it with gzip, xz or zstd"),
    (b"\x1f\x9d", "compressed with compress: unpack it, or compress it with gzip, xz or zstd"),
    (b"PK\x03\x04", "a ZIP archive: unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (b"Rar!", "a RAR archive: unpack it"),
    (b"GMBU", "a capture of Microsoft's Network Monitor: editcap -F pcapng converts it"),
    (b"RTSS", "a capture of Microsoft's Network Monitor: editcap -F pcapng converts it"),
    (b"TRSNIFF data", "a capture of the Sniffer: editcap -F pcapng converts it"),
    (b"PAR1", "a table of a recording: dragstrip report takes the recording's folder"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"SQLite format 3", "a database of SQLite"),
    (b"\x7fELF", "a program"),
)
_LINES: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(
            r"(?:(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{6}|\d{10}\.\d{6}) "
            r"(?:\S{1,20} {1,5}(?:In|Out|B|M|P) {1,5})?(?:IP6?|ARP)[ ,]"
        ),
        "what tcpdump prints: the packets are needed, tcpdump -w FILE.pcap",
    ),
    (
        re.compile(r"tcpdump: |reading from file "),
        "what tcpdump prints: the packets are needed, tcpdump -w FILE.pcap",
    ),
    (
        re.compile(
            r" {0,10}\d{1,10} {1,5}\d{1,10}\.\d{6,9} {1,5}\S{1,60} {1,5}(?:→|->) {1,5}\S{1,60} {1,5}\S"
        ),
        "what tshark prints: the packets are needed, tshark -w FILE.pcapng",
    ),
    (
        re.compile(r'"?No\.?"?,"?Time"?,'),
        "Wireshark's list of packets as CSV: the packets are needed, File > Save As, pcapng",
    ),
    (
        re.compile(r"No\. {1,20}Time {1,40}Source"),
        "Wireshark's list of packets: the packets are needed, File > Save As, pcapng",
    ),
    (
        re.compile(r"frame\.number[,\t]|frame\.time"),
        "a list of tshark's fields with a name that is none: inspect reads tshark -T fields -E header=y",
    ),
    (
        re.compile(r"(?:0x)?[0-9a-fA-F]{4,8}:? {1,5}(?:[0-9a-fA-F]{2,4} ){4}"),
        "a hex dump: text2pcap converts it to a capture",
    ),
    (
        re.compile(r"(?:[+-]\d{4}:)?\d{14}(?:\.\d{1,6})?,[0-9a-fA-F.:]{1,60},\d{1,6},"),
        "CSV of iperf 2: inspect reads JSON of iperf3, iperf3 -J",
    ),
    (
        re.compile(r"MIGRATED [A-Z_]{1,30} |(?:THROUGHPUT|NETPERF_INTERIM_RESULT\[\d{1,9}\])="),
        "what netperf prints: inspect reads the files that flent makes of it",
    ),
    (
        re.compile(r"traceroute to |Tracing route to |Start: \d{4}-"),
        "a traceroute: inspect reads ping, fping and mtr --report",
    ),
    (
        re.compile(r"(?:Netid {1,20})?State {1,20}Recv-Q|(?:tcp {1,5})?ESTAB {1,20}\d"),
        "a listing of ss without times or TCP's values: date +%s.%N; ss -tin",
    ),
    (
        re.compile(
            r"(?:\+{1,9} )?(?:sudo )?(?:\S{0,40}/)?tc (?:-\S{1,10} )?"
            r"(?:qdisc|class|filter) (?:add|replace|change|del)\b"
        ),
        "a script for tc: dragstrip tc-import reads it",
    ),
    (
        re.compile(r"\d{1,5}: \S{1,40}: <[A-Z,_-]{1,100}> "),
        "a listing of ip: tc -s qdisc show prints a queue's counts",
    ),
    (
        re.compile(r"filter (?:parent|protocol) "),
        "a listing of tc's filters: tc -s qdisc show prints the queues",
    ),
    (
        re.compile(r"\[{1,2}(?:path|flows|vary|record|hosts|changes|claims|workload)[\].]"),
        "an experiment: dragstrip run runs it",
    ),
    (
        re.compile(r"\S{1,30} \S{1,30} [\w.:]{2,60} ?: \S{1,20}=\d{1,5} \S{2,20}[=<]\d{1,9} ?ms TTL="),
        "Windows' ping in another language: English and German are read",
    ),
    (
        re.compile(r"ping: |fping: |\S{1,200}: (?:Name or service not known|Temporary failure in name)"),
        "the error of a ping that was not sent",
    ),
    (re.compile(r"iperf3?: error"), "an error of iperf, without any result: {line}"),
    (
        re.compile(r"(?:DATA|LOAD); \d{4}-\d\d-\d\d-\d\d:\d\d:\d\d; "),
        "a log of cake-autorate without its lines DATA_HEADER and LOAD_HEADER, which name the columns, as a "
        "rotated one: put these lines of the log before it in front",
    ),
    (
        re.compile(r"(?:ba)?sh: |-bash: |.{1,80}: command not found"),
        "the error of a shell: its command did not run",
    ),
)
"""Beginnings of a line."""
_FIRST: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"<!doctype html|<html", re.IGNORECASE), "a web page, such as that of a failed download"),
    (
        re.compile(r"<\?xml|<pdml|<psml"),
        "XML, such as tshark -T pdml: the packets are needed, tshark -w FILE.pcapng",
    ),
    (re.compile(r"version https://git-lfs"), "a pointer to a file in Git LFS: git lfs pull fetches it"),
    (re.compile(r"#!"), "a script"),
)
"""Beginnings of a text."""
_KEYS: Sequence[tuple[frozenset[str], str]] = (
    (frozenset({"_index", "_source"}), "is tshark's JSON: the packets are needed, tshark -w FILE.pcapng"),
    (frozenset({"index"}), "is tshark's JSON: the packets are needed, tshark -w FILE.pcapng"),
    (frozenset({"timestamp", "layers"}), "is tshark's JSON: the packets are needed, tshark -w FILE.pcapng"),
    (frozenset({"ifname", "link_type"}), "is a listing of ip: tc -j -s qdisc show prints a queue's counts"),
    (frozenset({"ifname", "operstate"}), "is a listing of ip: tc -j -s qdisc show prints a queue's counts"),
    (frozenset({"nodes", "links", "flows"}), "is a scenario: dragstrip report takes a run's folder"),
    (
        frozenset({"engine", "engine_version"}),
        "is a recording's provenance: dragstrip report takes its folder",
    ),
    (frozenset({"version", "runs"}), "is a run's result: dragstrip report takes its folder"),
    (frozenset({"version", "files", "flows"}), "is what inspect --json printed"),
    (
        frozenset({"type", "ping", "download"}),
        "is a line of a speed test's progress: inspect reads the line of type result",
    ),
    (frozenset({"start", "connected"}), "is a part of iperf3's JSON: the whole document is needed"),
)
"""Keys of a JSON document."""


def of_bytes(begin: bytes, name: str, formats: str) -> str | None:
    """Return what a file is by its first bytes and its name, with a remedy; None for a capture."""
    if begin[:4] in _CAPTURES or begin.startswith(b"snoop\0"):
        return None
    for magic, description in _MAGIC:
        if begin.startswith(magic):
            return _refusal(description, formats)
    if begin[257:262] == b"ustar":
        return _refusal("a tar archive: unpack it", formats)
    if name.lower().endswith(".etl"):
        return _refusal("an event trace of Windows: pktmon etl2pcap or etl2pcapng converts it", formats)
    if not begin.strip(b"\0"):
        return _refusal(f"zeros in its first {len(begin)} bytes", formats)
    if b"\0" in begin[:LINE_MAX] or _controls(begin) > len(begin[:LINE_MAX]) // 10:
        return None
    return of_text(begin.decode("utf-8", "replace"), formats)


_CAPTURES = frozenset(
    bytes.fromhex(magic)
    for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1", "a1b2cd34", "34cdb2a1", "0a0d0d0a")
)


def _controls(begin: bytes) -> int:
    return sum(byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1b\x1e" for byte in begin[:LINE_MAX])


def of_text(begin: str, formats: str) -> str:
    """Return what a text is, with a remedy, or how it begins."""
    begin = begin.lstrip("\ufeff \t\r\n")
    lines = [line[:LINE_MAX] for line in begin[: LINES_MAX * LINE_MAX].splitlines()[:LINES_MAX]]
    for pattern, description in _FIRST:
        if lines and pattern.match(lines[0]):
            return _refusal(description, formats)
    for line in lines:
        for pattern, description in _LINES:
            if pattern.match(line):
                return _refusal(description.replace("{line}", _quoted(line, LINE_MAX)), formats)
    if not lines:
        return _refusal("blanks alone", formats)
    if (
        len(lines) > 1
        and lines[0].count(",") >= 2
        and all(line.count(",") == lines[0].count(",") for line in lines[:3])
    ):
        return _refusal(f"a table whose first line is {_quoted(lines[0])}", formats)
    return _refusal(f"a text that begins with {_quoted(lines[0])}", formats)


def of_document(value: Any, formats: str) -> str:
    """Return what a JSON document is, with a remedy, or which keys it has."""
    first = value[0] if isinstance(value, list) and value else value
    if not isinstance(first, dict):
        return f"is a JSON {'list' if isinstance(value, list) else 'value'}, expected {formats}"
    for keys, description in _KEYS:
        if keys <= set(first):
            return description
    first_keys = ", ".join(list(first)[:8])
    return f"is JSON with {_quoted(first_keys) if first_keys else 'nothing in it'}, expected {formats}"


def _refusal(description: str, formats: str) -> str:
    """Return a guess as a message, with what is read if it has no remedy."""
    remedy = "" if _REMEDY.search(description) else f", expected {CAPTURES}, {formats}"
    return f"is not a capture but {description}{remedy}"


def _quoted(line: str, most: int = SHOWN_MAX) -> str:
    printable_line = one_line(line)
    return f'"{printable_line if len(printable_line) <= most else printable_line[: most - 3] + "..."}"'
