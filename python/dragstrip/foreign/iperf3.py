"""iperf3's JSON, and its `--json-stream`, a line per event (`iperf_api.c`).

A client's bytes are those that its socket took, so they are what was written; a server's are what arrived.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.foreign.found import Found, Row, entries, nothing, number, table, text, whole
from dragstrip.outside import one_line

EVENT = re.compile(rb'\s*\{\s*"event"\s*:')
NS = 1e9


def is_one(document: Row) -> bool:
    """Whether a JSON document is one."""
    return {"start", "intervals", "end"} <= set(document) or ("error" in document and "start" in document)


def joined(events: Sequence[Any], source: str) -> Row:
    """The lines of `--json-stream` as the one document that they would have been."""
    made: Row = {"start": {}, "intervals": [], "end": {}}
    for event in map(table, events):
        kind, data = event.get("event"), event.get("data")
        if kind == "interval":
            made["intervals"].append(data)
        elif kind in ("start", "end", "error"):
            made[kind] = data
    return made


def read(document: Row, source: str) -> Found:
    """A flow for each stream of data."""
    if document.get("error"):
        raise BadInputError("", None, f"iperf3 failed: {one_line(str(document['error']))[:300]}", source)
    start, end = table(document["start"]), table(document["end"])
    found = Found(notes=["bytes of a client's intervals are what its socket took, not what arrived"])
    udp = table(start.get("test_start")).get("protocol") == "UDP"
    numbers: dict[object, int] = {}
    hosts = {
        whole(peer.get("socket")): peer
        for peer in map(table, entries(start.get("connected"), source, "connected"))
    }
    endings = _endings(end, source)
    totals: dict[int, list[int]] = {}
    for interval in entries(document["intervals"], source, "intervals"):
        for stream in map(table, entries(table(interval).get("streams"), source, "streams")):
            key = whole(stream.get("socket"))
            if key not in numbers:
                sends = stream.get("sender") is not False
                numbers[key] = _flow(found, table(hosts.get(key)), endings.get(key, {}), end, udp, sends, key)
            _interval(found, stream, numbers[key], totals.setdefault(numbers[key], [0, 0]))
    if not found.flows:
        raise nothing(source, "no interval of any stream")
    return found


def _endings(end: Row, source: str) -> dict[object, Row]:
    made: dict[object, Row] = {}
    for stream in map(table, entries(end.get("streams"), source, "end.streams")):
        sides = {side: table(stream.get(side)) for side in ("sender", "receiver", "udp")}
        for side in sides.values():
            if "socket" in side:
                made[whole(side["socket"])] = sides
    return made


def _flow(found: Found, hosts: Row, ending: Row, end: Row, udp: bool, sends: bool, key: int | None) -> int:
    local, remote = text(hosts.get("local_host")), text(hosts.get("remote_host"))
    sender, receiver = table(ending.get("sender")), table(ending.get("receiver"))
    datagrams = table(ending.get("udp"))
    return found.flow(
        f"stream {key}",
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


def _interval(found: Found, stream: Row, flow: int, totals: list[int]) -> None:
    time_ns, size = whole(stream.get("end"), NS), whole(stream.get("bytes"))
    if time_ns is None or size is None:
        return
    if stream.get("sender") is False:
        found.received.append({"time_ns": time_ns, "flow": flow, "new_bytes": size})
        return
    again = whole(stream.get("retransmits"))
    totals[0] += size
    totals[1] += again or 0
    rtt = number(stream.get("rtt"))
    found.samples.append(
        {
            "time_ns": time_ns,
            "flow": flow,
            "cwnd_bytes": whole(stream.get("snd_cwnd")),
            "srtt_ns": whole(rtt, 1e3) if rtt else None,  # 0 before the first sample
            "bytes_written": totals[0],
            "retransmits": None if again is None else totals[1],
        }
    )
