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
from dragstrip.formats.readers.found import MOST, Found, Row, entries, nothing, number, table, text, whole
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
    made: Row = {"start": {}, "intervals": [], "end": {}}
    for event in map(table, events):
        kind, data = event.get("event"), event.get("data")
        if kind == "interval":
            made["intervals"].append(data)
        elif kind in ("start", "end", "error"):
            made[kind] = data
    return made


def cut(said: str) -> Row | None:
    """Return the start and the whole intervals of a document that ends in the middle, with an error.

    None for a text whose start is not whole, or which is damaged and not cut.
    """
    decoder = json.JSONDecoder()
    begin, intervals = _START.search(said), _INTERVALS.search(said)
    if begin is None or _is_whole(said):
        return None
    made: Row = {"start": {}, "intervals": [], "end": {}, "error": "the file ends in the middle"}
    try:
        made["start"], _ = decoder.raw_decode(said, begin.end())
        at = intervals.end() if intervals is not None else len(said)
        while at < len(said):
            interval, at = decoder.raw_decode(said, at)
            made["intervals"].append(interval)
            comma = _COMMA.match(said, at)
            at = comma.end() if comma is not None else len(said)
    except (ValueError, RecursionError):
        pass  # the end of the text
    return made


def _is_whole(said: str) -> bool:
    """Return whether a text closes as many braces as it opens, so that it is damaged rather than cut."""
    return said.count("{") <= said.count("}")


def read(document: Row, source: str) -> Found:
    """Return a flow for each stream of data; raises `BadInputError`, also if iperf3 failed before it began.

    One that was interrupted has written its intervals and the error: these are read, with a note.
    """
    found = Found(began_s=_began(document))
    return _finished(found, [_run(found, document, source, "", 0)], source)


def read_several(documents: Sequence[Row], source: str) -> Found:
    """Return the flows of several runs, a document each, in the first one's time; raises `BadInputError`."""
    begins = [_began(document) for document in documents]
    found = Found(began_s=begins[0])
    failed = []
    for number_of, (document, begin) in enumerate(zip(documents, begins, strict=True), start=1):
        offset = 0 if begin is None or begins[0] is None else max(begin - begins[0], 0) * 1_000_000_000
        failed.append(_run(found, document, source, f"run {number_of}: ", offset))
    return _finished(found, failed, source)


def _began(document: Row) -> int | None:
    return whole(table(table(document.get("start")).get("timestamp")).get("timesecs"))


def _finished(found: Found, failed: Sequence[str], source: str) -> Found:
    errors = [said for said in failed if said]
    if not found.flows and errors:
        raise BadInputError("", None, f"iperf3 failed: {errors[0]}", source)
    if not found.flows:
        raise nothing(source, "no interval of any stream")
    if found.samples:
        found.notes.append(
            "bytes of a client's intervals are those that its socket accepted, not those that arrived"
        )
    return found


def _run(found: Found, document: Row, source: str, prefix: str, offset: int) -> str:
    """Add the flows of one run, and return the error with which it ended, empty if it did not."""
    start, end = table(document.get("start")), table(document.get("end"))
    failed = one_line(str(document["error"]))[:300] if document.get("error") else ""
    if failed:
        found.notes.append(f"{prefix}iperf3 ended early: {failed}")
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
            flow = _flow(found, label, table(hosts.get(key)), ending, end, udp, sends, target)
            streams[key] = _Stream(flow, sends)
        _interval(found, stream, streams[key], offset)
    if omitted:
        found.notes.append(f"{prefix}intervals at the beginning, omitted by -O, are not read")
    _of_server(found, document, source, hosts, streams, offset)
    for it in streams.values():
        it.close(found, offset)
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

    def close(self, found: Found, offset: int) -> None:
        """Give the flow the times of its intervals where iperf3 wrote no end."""
        flow = found.flows[self.flow]
        ended = flow["stop_ns"] is not None
        for name, own in (("start_ns", self.begin_ns), ("stop_ns", self.end_ns)):
            flow[name] = own if flow[name] is None else flow[name]
            if flow[name] is not None:
                flow[name] = min(flow[name] + offset, MOST)
        if not ended and self.measured_ns:
            found.reported.setdefault(self.flow, {})["measured_s"] = self.measured_ns / NS


def _intervals(document: Row, source: str) -> Iterator[Row]:
    for interval in entries(document.get("intervals"), source, "intervals"):
        yield from map(table, entries(table(interval).get("streams"), source, "streams"))


def _of_server(
    found: Found,
    document: Row,
    source: str,
    hosts: Mapping[int | None, Row],
    streams: Mapping[object, _Stream],
    offset: int,
) -> None:
    """Add what the server measured (`--get-server-output`), its streams known by their ports."""
    server = table(document.get("server_output_json"))
    if document.get("server_output_text"):
        found.notes.append("the server's output is text and not read: start iperf3 -s with -J, too")
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
        own = theirs.get(whole(stream.get("socket")))
        if own is not None and own.sends == (stream.get("sender") is not False) and not stream.get("omitted"):
            _interval(found, stream, own, offset)


def _endings(end: Row, source: str) -> dict[object, Row]:
    made: dict[object, Row] = {}
    for stream in map(table, entries(end.get("streams"), source, "end.streams")):
        sides = {side: table(stream.get(side)) for side in ("sender", "receiver", "udp")}
        for side in sides.values():
            if "socket" in side:
                made[whole(side["socket"])] = sides
    return made


def _flow(
    found: Found,
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
    flow = found.flow(
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
    # Of all its reports, in microseconds; 0 where the sender is the other host.
    trips = {name: number(sender.get(f"{name}_rtt")) for name in ("min", "mean", "max")}
    if all(trips.values()):
        found.reported[flow] = {"rtt_ms": {name: (value or 0) / 1e3 for name, value in trips.items()}}
    if target:  # 0 is as fast as it goes
        found.reported.setdefault(flow, {})["target_bps"] = target
    return flow


def _interval(found: Found, stream: Row, of: _Stream, offset: int) -> None:
    begin_ns, time_ns, size = (
        whole(stream.get("start"), NS),
        whole(stream.get("end"), NS),
        whole(stream.get("bytes")),
    )
    if time_ns is None or size is None:
        return
    if begin_ns is not None and begin_ns <= time_ns:
        of.begin_ns = begin_ns if of.begin_ns is None else min(of.begin_ns, begin_ns)
        of.measured_ns += time_ns - begin_ns
    of.end_ns = time_ns if of.end_ns is None else max(of.end_ns, time_ns)
    time_ns = min(time_ns + offset, MOST)
    if stream.get("sender") is False:
        found.received.append({"time_ns": time_ns, "flow": of.flow, "new_bytes": size})
        return
    again = whole(stream.get("retransmits"))
    of.bytes += size
    of.again += again or 0
    rtt = number(stream.get("rtt"))
    found.samples.append(
        {
            "time_ns": time_ns,
            "flow": of.flow,
            "cwnd_bytes": whole(stream.get("snd_cwnd")),
            "srtt_ns": whole(rtt, 1e3) if rtt else None,  # 0 before the first sample
            "bytes_written": of.bytes,
            "retransmits": None if again is None else of.again,
        }
    )
