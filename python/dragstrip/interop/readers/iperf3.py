"""Reader of iperf3's JSON, and of its `--json-stream`, one line per event (`iperf_api.c`).

A client's bytes are those that its socket accepted, so they count as written; a server's are those that
arrived.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.interop.readers.measurements import (
    MOST,
    Measurements,
    Row,
    entries,
    missing_content,
    number,
    table,
    text,
    whole,
)
from dragstrip.io.untrusted import one_line

EVENT = re.compile(rb'\s*\{\s*"event"\s*:')
NS = 1e9
_START = re.compile(r'^\s*\{\s*"start"\s*:\s*')
_INTERVALS = re.compile(r'"intervals"\s*:\s*\[\s*')
_COMMA = re.compile(r"\s*,\s*")


def is_one(document: Row) -> bool:
    """Return whether a JSON document is one of iperf3's."""
    return {"start", "intervals", "end"} <= set(document) or ("error" in document and "start" in document)


def joined(events: Sequence[Any], source: str) -> Row:
    """Join the lines of `--json-stream` into the document that iperf3 would have written without it."""
    document: Row = {"start": {}, "intervals": [], "end": {}}
    for event in map(table, events):
        kind, data = event.get("event"), event.get("data")
        if kind == "interval":
            document["intervals"].append(data)
        elif kind in ("start", "end", "error"):
            document[kind] = data
    return document


def cut(content: str) -> Row | None:
    """Return the start and the whole intervals of a document that ends in the middle, with an error.

    None for a text whose start is not whole, or which is damaged and not cut.
    """
    decoder = json.JSONDecoder()
    begin, intervals = _START.search(content), _INTERVALS.search(content)
    if begin is None or _is_whole(content):
        return None
    document: Row = {"start": {}, "intervals": [], "end": {}, "error": "the file ends in the middle"}
    try:
        document["start"], _ = decoder.raw_decode(content, begin.end())
        at = intervals.end() if intervals is not None else len(content)
        while at < len(content):
            interval, at = decoder.raw_decode(content, at)
            document["intervals"].append(interval)
            comma = _COMMA.match(content, at)
            at = comma.end() if comma is not None else len(content)
    except (ValueError, RecursionError):
        pass  # the end of the text
    return document


def _is_whole(content: str) -> bool:
    """Return whether a text closes as many braces as it opens, so that it is damaged rather than cut."""
    return content.count("{") <= content.count("}")


def read(document: Row, source: str) -> Measurements:
    """Return a flow for each stream of data; raises `BadInputError`, also if iperf3 failed before it began.

    One that was interrupted has written its intervals and the error: these are read, with a note.
    """
    measurements = Measurements(began_s=_began(document))
    return _finished(measurements, [_run(measurements, document, source, "", 0)], source)


def read_several(documents: Sequence[Row], source: str) -> Measurements:
    """Return the flows of several runs, a document each, in the first one's time; raises `BadInputError`."""
    begins = [_began(document) for document in documents]
    measurements = Measurements(began_s=begins[0])
    failed = []
    for number_of, (document, begin) in enumerate(zip(documents, begins, strict=True), start=1):
        offset = 0 if begin is None or begins[0] is None else max(begin - begins[0], 0) * 1_000_000_000
        failed.append(_run(measurements, document, source, f"run {number_of}: ", offset))
    return _finished(measurements, failed, source)


def _began(document: Row) -> int | None:
    return whole(table(table(document.get("start")).get("timestamp")).get("timesecs"))


def _finished(measurements: Measurements, failed: Sequence[str], source: str) -> Measurements:
    errors = [message for message in failed if message]
    if not measurements.flows and errors:
        raise BadInputError("", None, f"iperf3 failed: {errors[0]}", source)
    if not measurements.flows:
        raise missing_content(source, "no interval of any stream")
    if measurements.samples:
        measurements.notes.append(
            "bytes of a client's intervals are those that its socket accepted, not those that arrived"
        )
    return measurements


def _run(measurements: Measurements, document: Row, source: str, prefix: str, offset: int) -> str:
    """Add the flows of one run, and return the error with which it ended, empty if it did not."""
    start, end = table(document.get("start")), table(document.get("end"))
    failed = one_line(str(document["error"]))[:300] if document.get("error") else ""
    if failed:
        measurements.notes.append(f"{prefix}iperf3 ended early: {failed}")
    udp = table(start.get("test_start")).get("protocol") == "UDP"
    hosts = {
        whole(peer.get("socket")): peer
        for peer in map(table, entries(start.get("connected"), source, "connected"))
    }
    endings = _endings(end, source)
    streams: dict[object, _Stream] = {}
    omitted = 0
    for stream in _intervals(document, source):
        if stream.get("omitted") is True:
            omitted += 1
            continue
        key = whole(stream.get("socket"))
        if key not in streams:
            sends = stream.get("sender") is not False
            label = f"{prefix}stream {key}"
            target = number(table(start.get("test_start")).get("target_bitrate"))
            ending = endings.get(key, {})
            flow = _flow(measurements, label, table(hosts.get(key)), ending, end, udp, sends, target)
            streams[key] = _Stream(flow, sends)
        _interval(measurements, stream, streams[key], offset)
    if omitted:
        measurements.notes.append(f"{prefix}intervals at the beginning, omitted by -O, are not read")
    _of_server(measurements, document, source, hosts, streams, offset)
    for open_stream in streams.values():
        open_stream.close(measurements, offset)
    return failed


@dataclass
class _Stream:
    """A flow while its intervals are read."""

    flow: int
    sends: bool
    bytes: int = 0
    again: int = 0
    begin_ns: int | None = None
    end_ns: int | None = None
    measured_ns: int = 0

    def close(self, measurements: Measurements, offset: int) -> None:
        """Give the flow the times of its intervals where iperf3 wrote no end."""
        flow = measurements.flows[self.flow]
        ended = flow["stop_ns"] is not None
        for name, interval_edge_ns in (("start_ns", self.begin_ns), ("stop_ns", self.end_ns)):
            flow[name] = interval_edge_ns if flow[name] is None else flow[name]
            if flow[name] is not None:
                flow[name] = min(flow[name] + offset, MOST)
        if not ended and self.measured_ns:
            measurements.reported.setdefault(self.flow, {})["measured_s"] = self.measured_ns / NS


def _intervals(document: Row, source: str) -> Iterator[Row]:
    for interval in entries(document.get("intervals"), source, "intervals"):
        yield from map(table, entries(table(interval).get("streams"), source, "streams"))


def _of_server(
    measurements: Measurements,
    document: Row,
    source: str,
    hosts: Mapping[int | None, Row],
    streams: Mapping[object, _Stream],
    offset: int,
) -> None:
    """Add what the server measured (`--get-server-output`), its streams known by their ports."""
    server = table(document.get("server_output_json"))
    if document.get("server_output_text"):
        measurements.notes.append("the server's output is text and not read: start iperf3 -s with -J, too")
    ports = {
        (peer.get("local_port"), peer.get("remote_port")): key
        for key, peer in hosts.items()
        if whole(peer.get("local_port")) is not None and whole(peer.get("remote_port")) is not None
    }
    theirs: dict[int | None, _Stream] = {}
    for peer in map(table, entries(table(server.get("start")).get("connected"), source, "connected")):
        ours = (whole(peer.get("remote_port")), whole(peer.get("local_port")))
        mine = streams.get(ports.get(ours)) if None not in ours else None
        if mine is not None:
            theirs[whole(peer.get("socket"))] = _Stream(mine.flow, not mine.sends)
    for stream in _intervals(server, source):
        server_stream = theirs.get(whole(stream.get("socket")))
        if (
            server_stream is not None
            and server_stream.sends == (stream.get("sender") is not False)
            and not stream.get("omitted")
        ):
            _interval(measurements, stream, server_stream, offset)


def _endings(end: Row, source: str) -> dict[object, Row]:
    sides_by_socket: dict[object, Row] = {}
    for stream in map(table, entries(end.get("streams"), source, "end.streams")):
        sides = {side: table(stream.get(side)) for side in ("sender", "receiver", "udp")}
        for side in sides.values():
            if "socket" in side:
                sides_by_socket[whole(side["socket"])] = sides
    return sides_by_socket


def _flow(
    measurements: Measurements,
    label: str,
    hosts: Row,
    ending: Row,
    end: Row,
    udp: bool,
    sends: bool,
    target: float | None = None,
) -> int:
    local, remote = text(hosts.get("local_host")), text(hosts.get("remote_host"))
    sender, receiver = table(ending.get("sender")), table(ending.get("receiver"))
    datagrams = table(ending.get("udp"))
    flow = measurements.flow(
        label,
        protocol="udp" if udp else "tcp",
        cc="" if udp else text(end.get("sender_tcp_congestion")),
        sender=local if sends else remote,
        receiver=remote if sends else local,
        start_ns=whole(sender.get("start"), NS),
        stop_ns=whole(receiver.get("end"), NS),
        bytes_received=whole(receiver.get("bytes")),
        retransmits=whole(sender.get("retransmits")),
        segments_sent=whole(datagrams.get("packets")),
        datagrams_lost=whole(datagrams.get("lost_packets")),
    )
    # Over all of its reports, in microseconds; 0 where the sender is the other host.
    trips = {name: number(sender.get(f"{name}_rtt")) for name in ("min", "mean", "max")}
    if all(trips.values()):
        measurements.reported[flow] = {"rtt_ms": {name: (value or 0) / 1e3 for name, value in trips.items()}}
    if target:  # 0 is as fast as it goes
        measurements.reported.setdefault(flow, {})["target_bps"] = target
    return flow


def _interval(measurements: Measurements, stream: Row, counters: _Stream, offset: int) -> None:
    begin_ns, time_ns, size = (
        whole(stream.get("start"), NS),
        whole(stream.get("end"), NS),
        whole(stream.get("bytes")),
    )
    if time_ns is None or size is None:
        return
    if begin_ns is not None and begin_ns <= time_ns:
        counters.begin_ns = begin_ns if counters.begin_ns is None else min(counters.begin_ns, begin_ns)
        counters.measured_ns += time_ns - begin_ns
    counters.end_ns = time_ns if counters.end_ns is None else max(counters.end_ns, time_ns)
    time_ns = min(time_ns + offset, MOST)
    if stream.get("sender") is False:
        measurements.received.append({"time_ns": time_ns, "flow": counters.flow, "new_bytes": size})
        return
    again = whole(stream.get("retransmits"))
    counters.bytes += size
    counters.again += again or 0
    rtt = number(stream.get("rtt"))
    measurements.samples.append(
        {
            "time_ns": time_ns,
            "flow": counters.flow,
            "cwnd_bytes": whole(stream.get("snd_cwnd")),
            "srtt_ns": whole(rtt, 1e3) if rtt else None,  # 0 before the first sample
            "bytes_written": counters.bytes,
            "retransmits": None if again is None else counters.again,
        }
    )
