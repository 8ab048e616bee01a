"""Writer of a packet trace in the format of ns-3's ASCII helpers.

`+` is a packet enqueued, `-` sent, `d` dropped, `r` received. Lines are as `CsmaHelper::EnableAscii` makes
them (csma-helper.cc), and headers as they print themselves (ethernet-header.cc, ipv4-header.cc,
tcp-header.cc, udp-header.cc). No recording has packets, so they come from the captures of the run, a file per
host and link. `+` is written only if the interface by which a packet entered its node was captured too,
because only that gives the time.
"""

from __future__ import annotations

import heapq
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip.errors import BadInputError
from dragstrip.interop.writers.packets import TCP, UDP, Packet, capture_of, packets
from dragstrip.model.recording import Recording

Json: TypeAlias = Mapping[str, Any]

EVENTS = {"+": "TxQueue/Enqueue", "-": "TxQueue/Dequeue", "d": "TxQueue/Drop", "r": "MacRx"}
_ECN = ("Not-ECT", "ECT (1)", "ECT (0)", "CE")
_TCP_FLAGS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")


@dataclass(frozen=True)
class Interface:
    """An interface: its node and its device on that node, both counted from 0 in the scenario's order."""

    node: int
    device: int
    line: str
    """The text between the time and the packet of a line, without the event."""
    host: bool

    def rank(self, event: str) -> int:
        """Return the order of simultaneous events: out of a host, into a router, out of it, into a host."""
        return (3 if self.host else 1) if event == "r" else (0 if self.host else 2)


def write(recording: Recording, stem: str, captures: Path) -> dict[str, bytes]:
    """Return one trace of all the run's captures; raises `BadInputError` if there are none."""
    places = _places(recording.scenario, captures)
    if not places:
        expected = "a run whose packets were kept, by --capture"
        raise BadInputError("captures", None, expected, str(captures.parent))
    # At a node, by which of its captured interfaces a packet leaves.
    leaves = {
        (place.node, packet.id): place
        for path, place in places.items()
        for packet in packets(path)
        if packet.event == "-" and not place.host
    }
    events = heapq.merge(*(_events(path, place, leaves) for path, place in places.items()))
    return {f"{stem}.tr": "".join(line for _, line in events).encode()}


def _places(scenario: Json, captures: Path) -> dict[Path, Interface]:
    """Return the interface of each capture file that exists."""
    if not scenario.get("nodes") or not captures.is_dir():
        return {}
    nodes = [node["name"] for node in scenario["nodes"]]
    ends = {link["name"]: nodes.index(link["from"]) for link in scenario["links"]}
    hosts = {node["name"] for node in scenario["nodes"] if node["kind"] == "host"}
    devices: dict[str, int] = {}
    of_node = [0] * len(nodes)
    for link, node in ends.items():
        devices[link] = of_node[node]
        of_node[node] += 1
    places_by_file = {}
    for point in [*hosts, *ends]:
        path = capture_of(captures, point)
        if path is not None:
            node, device = (nodes.index(point), 0) if point in hosts else (ends[point], devices[point])
            line = f"/NodeList/{node}/DeviceList/{device}/$ns3::CsmaNetDevice"
            places_by_file[path] = Interface(node, device, line, nodes[node] in hosts)
    return places_by_file


def _events(
    path: Path, place: Interface, leaves: Mapping[tuple[int, int], Interface]
) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Yield a file's lines with their sort keys; `+` comes before the `-` of the same packet."""
    for number, packet in enumerate(packets(path)):
        headers = _packet(packet)
        key = (packet.at_ns, place.rank(packet.event), number)
        yield key, _line(packet, packet.event, place, headers)
        behind = leaves.get((place.node, packet.id)) if packet.event == "r" else None
        if behind is not None:
            yield key, _line(packet, "+", behind, headers)


def _line(packet: Packet, event: str, place: Interface, headers: str) -> str:
    at = f"{packet.at_ns // 10**9}.{packet.at_ns % 10**9:09}".rstrip("0").rstrip(".")
    return f"{event} {at} {place.line}/{EVENTS[event]} {headers}\n"


def _packet(packet: Packet) -> str:
    """Return the headers, one after the other."""
    frame = packet.frame
    source, target = (":".join(f"{byte:02x}" for byte in part) for part in (frame[6:12], frame[:6]))
    tos, total, number, fragment, ttl, protocol = struct.unpack_from(">xBHHHBB", frame, 14)
    flags = "[DF]" if fragment & 0x4000 else "[none]"
    ends = f"{IPv4Address(frame[26:30])} > {IPv4Address(frame[30:34])}"
    dscp = "Default" if tos < 4 else f"0x{tos >> 2:x}"
    headers = (
        f"ns3::EthernetHeader ( length/type=0x800, source={source}, destination={target}) "
        f"ns3::Ipv4Header (tos 0x{tos:x} DSCP {dscp} ECN {_ECN[tos & 3]} ttl {ttl} id {number} "
        f"protocol {protocol} offset (bytes) 0 flags {flags} length: {total} {ends})"
    )
    if protocol == TCP:
        header, length = _segment(frame[34:])
    elif protocol == UDP:
        ports = struct.unpack_from(">HHH", frame, 34)
        header, length = f"ns3::UdpHeader (length: {ports[2]} {ports[0]} > {ports[1]})", 8
    else:
        kind, code = frame[34:36]
        header, length = f"ns3::Icmpv4Header (type={kind}, code={code})", 4
    payload = total - 20 - length
    data = f" Payload (size={payload})" if payload > 0 else ""
    return f"{headers} {header}{data} ns3::EthernetTrailer (fcs=0)"


def _segment(segment: bytes) -> tuple[str, int]:
    """Return a TCP header as text, and its length in bytes."""
    ports = struct.unpack_from(">HHIIBBHHH", segment)
    length, bits = (ports[4] >> 4) * 4, ports[5]
    flags = "|".join(name for place, name in enumerate(_TCP_FLAGS) if bits >> place & 1)
    fields = f"{ports[0]} > {ports[1]} [{flags}] Seq={ports[2]} Ack={ports[3]} Win={ports[6]}"
    return f"ns3::TcpHeader ({' '.join([fields, *_options(segment[20:length])])})", length


def _options(rest: bytes) -> Iterator[str]:
    while rest and rest[0]:
        if rest[0] == 1:
            yield "ns3::TcpOptionNOP(EOL)"
            rest = rest[1:]
            continue
        if len(rest) < 2 or rest[1] < 2:
            return
        kind, value = rest[0], rest[2 : rest[1]]
        if kind == 2:
            yield f"ns3::TcpOptionMSS(MSS:{int.from_bytes(value, 'big')})"
        elif kind == 3:
            yield f"ns3::TcpOptionWinScale({value[0]})"
        elif kind == 4:
            yield "ns3::TcpOptionSackPermitted([sack_permitted])"
        elif kind == 5:
            edges = struct.unpack(f">{len(value) // 4}I", value)
            pairs = "".join(
                f"[{left_edge},{right}]" for left_edge, right in zip(edges[::2], edges[1::2], strict=True)
            )
            yield f"ns3::TcpOptionSack(blocks: {len(edges) // 2},{pairs})"
        elif kind == 8:
            yield "ns3::TcpOptionTS({};{})".format(*struct.unpack(">II", value))
        rest = rest[rest[1] :]
