"""Reader of speed tests' results: Ookla's `speedtest -f json`, Cloudflare, LibreSpeed's CLI, speedtest-cli.

A result has a goodput for each direction and averages of round trips: of the idle line, and, where the test
measures them, during the download and during the upload. The phases follow each other; a file has at most
their lengths, so a flow begins where the one before ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragstrip.interop.readers.measurements import (
    DOWNLOADING,
    IDLE,
    MOST,
    UPLOADING,
    Measurements,
    Row,
    missing_content,
    number,
    table,
    text,
    whole,
)

CLIENT = "this host"
_CLOUDFLARE = {"download", "upload", "latency"}
_LOADED = ("downLoadedLatency", "upLoadedLatency")
_SPEEDTEST_CLI = {"ping", "upload", "download", "bytes_sent", "bytes_received", "server", "timestamp"}
_LIBRESPEED = {"ping", "jitter", "upload", "download", "bytes_sent", "bytes_received"}


def is_ookla(document: Row) -> bool:
    """Return whether a JSON document is a result of Ookla's command."""
    return document.get("type") == "result" and bool({"download", "upload", "ping"} & document.keys())


def is_cloudflare(document: Row) -> bool:
    """Return whether a JSON document has a summary of Cloudflare's module (`getSummary`)."""
    return any(document is part or part for part in _summaries(document))


def is_librespeed(document: Row) -> bool:
    """Return whether a JSON document is a result of LibreSpeed's command."""
    return document.keys() >= _LIBRESPEED


def is_speedtest_cli(document: Row) -> bool:
    """Return whether a JSON document is a result of the Python program speedtest-cli."""
    return document.keys() >= _SPEEDTEST_CLI and "jitter" not in document


def read_speedtest_cli(document: Row, source: str) -> Measurements:
    """Return a flow for each direction and the idle round trip; raises `BadInputError` without."""
    content = Measurements()
    host = text(table(document.get("server")).get("host")) or "server"
    _latency(content, 0, IDLE, host, document, "ping")
    clock = 0
    for name, size in (("download", "bytes_received"), ("upload", "bytes_sent")):
        rate = number(document.get(name))  # bit/s
        clock = _phase(content, name, host, clock, rate, whole(document.get(size)), None)
    content.notes.append(
        "the idle round trip alone, of HTTP requests: speedtest-cli measures none under load, so it "
        "cannot show bufferbloat"
    )
    return _complete(content, source)


def read_ookla(document: Row, source: str) -> Measurements:
    """Return a flow for each direction and its round trips; raises `BadInputError` if there is none."""
    content = Measurements()
    server = text(table(document.get("server")).get("host")) or "server"
    ping = table(document.get("ping"))
    _latency(content, 0, IDLE, server, ping, "latency")
    clock = 0
    for name in ("download", "upload"):
        phase = table(document.get(name))
        rate = number(phase.get("bandwidth"))  # bytes per second
        clock = _phase(
            content,
            name,
            server,
            clock,
            None if rate is None else rate * 8,
            whole(phase.get("bytes")),
            number(phase.get("elapsed")),
        )
        label = DOWNLOADING if name == "download" else UPLOADING
        _latency(content, clock, label, server, table(phase.get("latency")), "iqm")
    loss = number(document.get("packetLoss"))
    if loss is not None:
        content.packet_loss_share = float(loss) / 100
        content.notes.append(
            f"packet loss {loss:.3g} %: of datagrams of the test's own, in which phase is not stated"
        )
    content.notes.append(
        "latencies are interquartile means, with the lowest and the highest: no single round trip. Goodput "
        "is the test's own, which leaves out its start"
    )
    return _complete(content, source)


def read_cloudflare(document: Row, source: str) -> Measurements:
    """Return a flow for each direction and its round trips; raises `BadInputError` if there is none."""
    content = Measurements()
    row = next(iter(_summaries(document)), {})
    server = text(document.get("endpoint")) or "speed.cloudflare.com"
    _latency(content, 0, IDLE, server, row, "latency")
    clock = 0
    for name, latency, label in (("download", _LOADED[0], DOWNLOADING), ("upload", _LOADED[1], UPLOADING)):
        clock = _phase(content, name, server, clock, number(row.get(name)), None, None)
        _latency(content, clock, label, server, row, latency)
    loss = number(row.get("packetLoss"))
    if loss is not None:
        content.packet_loss_share = float(loss)
        content.notes.append(
            f"packet loss {100 * loss:.3g} %: of datagrams to a TURN server, in which phase is not stated"
        )
    content.notes.append(
        "latencies are medians of HTTP requests, goodput the 90th percentile of transfers, in bit/s: no "
        "length of a phase is stated, and bytes are not known"
    )
    return _complete(content, source)


def read_librespeed(document: Row, source: str) -> Measurements:
    """Return a flow for each direction and the idle round trip; raises `BadInputError` without."""
    content = Measurements()
    server = table(document.get("server"))
    host = text(server.get("url")) or text(server.get("name")) or "server"
    _latency(content, 0, IDLE, host, document, "ping")
    clock = 0
    for name, size in (("download", "bytes_received"), ("upload", "bytes_sent")):
        rate = number(document.get(name))  # Mbit/s
        clock = _phase(
            content, name, host, clock, None if rate is None else rate * 1e6, whole(document.get(size)), None
        )
    content.notes.append(
        "the idle round trip alone: LibreSpeed measures none under load, so it cannot show bufferbloat"
    )
    return _complete(content, source)


def _summaries(document: Row) -> Sequence[Row]:
    """Return the summaries of Cloudflare's module in a document: itself, or what wraps it."""
    parts = (document, table(document.get("result")), table(document.get("summary")))
    return [
        part
        for part in parts
        if part.keys() >= _CLOUDFLARE and (set(_LOADED) & part.keys() or "jitter" in part)
    ]


def _latency(content: Measurements, time_ns: int, label: str, server: str, row: Row, name: str) -> None:
    value = number(row.get(name))
    if value is not None and value > 0:
        content.summary(time_ns, label, server, value, (number(row.get("low")), number(row.get("high"))))


def _phase(
    content: Measurements,
    name: str,
    server: str,
    begin_ns: int,
    rate_bps: float | None,
    size: int | None,
    ms: float | None,
) -> int:
    """Add a flow of a direction, and return when it ends; without a length or bytes it has its rate alone."""
    if rate_bps is None or rate_bps <= 0:
        return begin_ns
    seconds = size * 8 / rate_bps if size else None
    if ms is not None and ms > 0:
        seconds = ms / 1e3
    length_ns = whole(seconds, 1e9) or 0
    end_ns = min(begin_ns + length_ns, MOST)
    ends = (server, CLIENT) if name == "download" else (CLIENT, server)
    times = {"start_ns": begin_ns, "stop_ns": end_ns} if length_ns else {}
    flow = content.flow(name, sender=ends[0], receiver=ends[1], bytes_received=size, **times)
    content.reported[flow] = {"goodput_bps": rate_bps}
    if size is not None and length_ns:
        content.received.append({"time_ns": end_ns, "flow": flow, "new_bytes": size})
    return end_ns


def _complete(content: Measurements, source: str) -> Measurements:
    if not content.flows and not content.probes:
        raise missing_content(source, "no rate and no latency of a speed test")
    content.notes.append(
        "several connections may have made up a flow; retransmissions and windows are not in the file"
    )
    return content
