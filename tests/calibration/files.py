"""A situation as the files that people have: which there are, how they look, what they can show.

Belongs here: renderers of what Dragstrip writes nowhere else (ping, `ss`, tc), sets of files as people hand
them in, whole, cut or begun late, and for each cause whether a set can show it. The rules of what a set can
show are written from what the programs record, not from what `diagnose` makes of it.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip.interop.writers import flent, iperf3
from dragstrip.interop.writers.rows import EPOCH_S, of_flow
from dragstrip.model.recording import Recording

from . import pcapng
from .situations import IDLE_S, Router, Situation
from .truth import Truth

Json = dict[str, Any]

MSS = 1448
IPERF3, NO_RTT, REVERSE = "iperf3", "iperf3 without RTT", "iperf3 -R"
IDLE, LOADED, SS, FLENT = "ping idle", "ping loaded", "ss", "flent"
LISTING, SCRIPT = "tc listing", "tc script"
SENDER, RECEIVER, ROUTER = "capture at the sender", "capture at the receiver", "capture at the router"
CAPTURES = (SENDER, RECEIVER, ROUTER)
ANOTHER = "ping of another host"

SETS: tuple[tuple[str, ...], ...] = (
    (IPERF3,),
    (NO_RTT,),
    (REVERSE,),
    (LOADED,),
    (SS,),
    (FLENT,),
    (LISTING,),
    (SCRIPT,),
    (SENDER,),
    (RECEIVER,),
    (ROUTER,),
    (IDLE, LOADED),
    (IPERF3, IDLE),
    (IPERF3, LISTING),
    (NO_RTT, LISTING),
    (NO_RTT, IDLE, LOADED),
    (IPERF3, SS),
    (IPERF3, IDLE, LOADED),
    (IPERF3, IDLE, LOADED, LISTING),
    (IPERF3, IDLE, LOADED, SCRIPT),
    (LISTING, IDLE, LOADED),
    (FLENT, LISTING),
    (SS, IDLE),
    (SENDER, RECEIVER),
    (SENDER, LISTING),
    (SENDER, IDLE),
    (SENDER, IDLE, LOADED),
    (SENDER, ROUTER),
    (SENDER, SCRIPT),
)
"""What people hand in at once."""


@dataclass(frozen=True)
class FileSet:
    """Files of one situation, as they stand in a folder."""

    kinds: tuple[str, ...]
    how: str
    """`whole`, `cut`, `late`, or `beside another host's ping`."""
    files: tuple[Path, ...]
    race: Mapping[str, Any]
    shows: bool
    """Whether the files can show the cause."""

    @property
    def name(self) -> str:
        """The kinds in one line."""
        return " + ".join(self.kinds)


def points_of(it: Situation, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return hosts and links where packets must be captured for these kinds."""
    places = {SENDER: "s1", RECEIVER: _receiver(it), ROUTER: it.router.link}
    return tuple(places[kind] for kind in CAPTURES if kind in kinds)


def _receiver(it: Situation) -> str:
    return "d"


def sets_of(it: Situation, truth: Truth) -> list[tuple[str, ...]]:
    """Return the sets that somebody could have of a situation."""
    heavy = truth.segments > 25_000  # a capture would take seconds to read
    made = []
    for kinds in SETS:
        if heavy and set(kinds) & set(CAPTURES):
            continue
        if it.cause == "no_answer" and not set(kinds) <= {SENDER, ROUTER, IPERF3, IDLE, LISTING, SCRIPT}:
            continue
        if it.cause == "no_answer" and not set(kinds) & {SENDER, ROUTER, IPERF3}:
            continue
        if it.cause == "receiver_closed" and not set(kinds) & {SENDER, RECEIVER}:
            continue
        if it.cause == "receiver_closed" and not set(kinds) <= {SENDER, RECEIVER, IDLE, LISTING, SCRIPT}:
            continue
        if it.cause == "marked_class" and FLENT not in kinds:
            continue
        if it.cause == "policer" and LISTING in kinds:
            continue  # a listing of disciplines does not have filters
        made.append(kinds)
    return made


def _seconds(it: Situation) -> float:
    return float(str(it.experiment["duration"]).removesuffix("s")) - IDLE_S


# --- what a set can show ----------------------------------------------------------------------------


def can_show(it: Situation, truth: Truth, kinds: Sequence[str], how: str) -> bool:
    """Return whether files of these kinds can show the cause of a situation."""
    return _SHOWS[it.cause](it, truth, set(kinds), how)


def _flow(kinds: set[str]) -> bool:
    return bool(kinds & {IPERF3, SS, FLENT, SENDER})


def _busy(kinds: set[str]) -> bool:
    return bool(kinds & {IPERF3, NO_RTT, REVERSE, SS, FLENT, SENDER, RECEIVER})


def _delay(it: Situation, kinds: set[str], how: str) -> bool:
    """Return whether an idle and a loaded round trip of the same hosts are there, with a flow that loads."""
    if FLENT in kinds or (IDLE in kinds and LOADED in kinds):
        return True
    own = SENDER in kinds and how != "late"  # its handshake found an empty path
    return own or (IDLE in kinds and bool(kinds & {IPERF3, SS, SENDER}))


def _seconds_of_losses(kinds: set[str]) -> bool:
    return bool(kinds & {IPERF3, SS, SENDER})


def _shaped(it: Situation, kinds: set[str]) -> bool:
    return it.router.shaped_bps is not None and bool(kinds & {LISTING, SCRIPT})


_SHOWS: Mapping[str, Callable[[Situation, Truth, set[str], str], bool]] = {
    "bufferbloat": lambda it, truth, kinds, how: _delay(it, kinds, how),
    "bufferbloat_up": lambda it, truth, kinds, how: {SENDER, RECEIVER} <= kinds and how == "whole",
    "slow_start_overshoot": lambda it, truth, kinds, how: _seconds_of_losses(kinds) and how != "late",
    "random_loss": lambda it, truth, kinds, how: (
        truth.retransmitted >= 20
        and how == "whole"
        and (SENDER in kinds or ({IPERF3, IDLE} <= kinds and LOADED in kinds))
    ),
    "aqm": lambda it, truth, kinds, how: (
        truth.retransmitted >= 20 and how == "whole" and (SENDER in kinds or {IPERF3, LISTING} <= kinds)
    ),
    "policer": lambda it, truth, kinds, how: (
        SCRIPT in kinds or (SENDER in kinds and how == "whole" and truth.retransmitted >= 15)
    ),
    "shaper_above_line": lambda it, truth, kinds, how: (
        _shaped(it, kinds) and (bool(it.races) or (_delay(it, kinds, how) and _flow(kinds)))
    ),
    "shaper_below_line": lambda it, truth, kinds, how: _shaped(it, kinds),
    # Without the handshake the window's scale is unknown.
    "receive_window": lambda it, truth, kinds, how: SS in kinds or (SENDER in kinds and how != "late"),
    "send_buffer": lambda it, truth, kinds, how: bool(kinds & {SENDER, SS}),
    "small_queue_limit": lambda it, truth, kinds, how: SS in kinds,
    "application": lambda it, truth, kinds, how: bool(kinds & {SENDER, SS}) or (IPERF3 in kinds and it.paced),
    "receiver_closed": lambda it, truth, kinds, how: bool(kinds & {SENDER, RECEIVER}) and how == "whole",
    "no_answer": lambda it, truth, kinds, how: bool(kinds & {SENDER, IPERF3}),
    "ack_path": lambda it, truth, kinds, how: {SENDER, RECEIVER} <= kinds and how == "whole",
    "marked_class": lambda it, truth, kinds, how: FLENT in kinds,
    "other_bottleneck": lambda it, truth, kinds, how: (
        bool(kinds & {LISTING, SCRIPT}) and _delay(it, kinds, how) and _busy(kinds)
    ),
    "no_ecn": lambda it, truth, kinds, how: (
        SENDER in kinds and bool(kinds & {LISTING, SCRIPT}) and how == "whole"
    ),
    "fifo": lambda it, truth, kinds, how: bool(kinds & {LISTING, SCRIPT}),
    "nothing": lambda it, truth, kinds, how: (
        bool(it.races) and how == "whole" and ({IPERF3, IDLE, LOADED} <= kinds or {SENDER, IDLE} <= kinds)
    ),
}


# --- rendering --------------------------------------------------------------------------------------


def rendered(
    it: Situation,
    truth: Truth,
    recording: Recording,
    captures: Path,
    folder: Path,
    kinds: Sequence[str],
    how: str,
    dice: random.Random,
) -> FileSet:
    """Write the files of a set into a folder."""
    made = []
    for kind in kinds:
        content = _RENDER[kind](it, recording, captures, how, dice)
        for name, data in content.items():
            (folder / name).write_bytes(data)
            made.append(folder / name)
    if how == "beside another host's ping":
        (folder / "other.txt").write_bytes(_another(dice))
        made.append(folder / "other.txt")
    dice.shuffle(made)
    return FileSet(tuple(kinds), how, tuple(made), it.races, can_show(it, truth, kinds, how))


def addresses(recording: Recording) -> dict[str, str]:
    """Return the address of each node, as the simulator's captures have them."""
    nodes = recording.scenario["nodes"]
    return {node["name"]: f"10.0.{(at + 1) >> 8}.{(at + 1) & 255}" for at, node in enumerate(nodes)}


def _measured(it: Situation, recording: Recording) -> list[Json]:
    """Return the measured flows, with the hosts that send and receive the data."""
    rows = recording["flows"].to_pylist()[: it.flows]
    turned = [{**row, "sender": row["receiver"], "receiver": row["sender"]} for row in rows]
    return turned if it.answers else rows


def _iperf3_document(it: Situation, recording: Recording, how: str) -> Json:
    """Return the document of all measured flows, as `iperf3 -P N` of one client writes it."""
    written = [json.loads(text) for text in iperf3.write(recording, "x").values()][: it.flows]
    known = addresses(recording)
    merged: Json = written[0]
    rows = min(len(document["intervals"]) for document in written)
    merged["intervals"] = merged["intervals"][:rows]
    for number, document in enumerate(written):
        socket = 5 + 2 * number
        if it.answers:
            _turn(document["start"]["connected"][0])
        peer = document["start"]["connected"][0]
        peer |= {
            "socket": socket,
            "local_host": known[peer["local_host"]],
            "remote_host": known[peer["remote_host"]],
        }
        for at in range(rows):
            (stream,) = document["intervals"][at]["streams"][:1]
            stream["socket"] = socket
        for side in document["end"]["streams"][0].values():
            side["socket"] = socket
        if number == 0:
            continue
        merged["start"]["connected"].append(peer)
        for at in range(rows):
            stream = document["intervals"][at]["streams"][0]
            merged["intervals"][at]["streams"].append(stream)
            for key in ("bytes", "bits_per_second", "retransmits"):
                merged["intervals"][at]["sum"][key] += stream[key]
        merged["end"]["streams"].append(document["end"]["streams"][0])
        for name in ("sum_sent", "sum_received"):
            for key in ("bytes", "bits_per_second", "retransmits"):
                if key in merged["end"][name]:
                    merged["end"][name][key] += document["end"][name][key]
    merged["start"]["test_start"] |= {
        "num_streams": len(written),
        "target_bitrate": _target_bps(it, recording),
    }
    merged["start"]["connecting_to"] = {
        "host": written[0]["start"]["connected"][0]["remote_host"],
        "port": 5201,
    }
    if how == "cut":
        merged["intervals"] = merged["intervals"][: max(3, rows * 2 // 3)]
        merged["end"] = {}
        merged["error"] = "interrupt - the client has terminated"
    if how == "late":  # -O 2
        merged["start"]["test_start"]["omit"] = 2
        for interval in merged["intervals"][:2]:
            for stream in interval["streams"]:
                stream["omitted"] = True
    return merged


def _target_bps(it: Situation, recording: Recording) -> int:
    """Return what `-b` was told, which is what a stream reached: three digits of it, or 0 for no limit."""
    rate = _measured(it, recording)[0]["bytes_received"] * 8 / _seconds(it)
    return round(float(f"{rate:.3g}")) if it.paced else 0


NO_SERVER: Json = {
    "start": {
        "connected": [],
        "version": "iperf 3.12",
        "system_info": "Linux host 6.1.0-18-amd64 #1 SMP x86_64",
    },
    "intervals": [],
    "end": {},
    "error": "error - unable to connect to server: Connection timed out",
}


def _json(document: Json) -> bytes:
    return (json.dumps(document, indent="\t") + "\n").encode()


def _iperf3(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    if it.cause == "no_answer":
        return {"load.json": _json(NO_SERVER)}
    return {"load.json": _json(_iperf3_document(it, recording, how))}


def _no_rtt(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    """Return the document of a client whose system has no TCP_INFO, or of an old iperf3."""
    document = _iperf3_document(it, recording, how)
    counts = dice.random() < 0.5
    gone = {
        "snd_cwnd",
        "snd_wnd",
        "rtt",
        "rttvar",
        "pmtu",
        "max_snd_cwnd",
        "max_snd_wnd",
        "max_rtt",
        "min_rtt",
    }
    gone |= {"mean_rtt"} | (set() if counts else {"retransmits"})

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: without(part) for key, part in value.items() if key not in gone}
        return [without(part) for part in value] if isinstance(value, list) else value

    return {"load.json": _json(without(document))}


def _turn(peer: Json) -> None:
    """Exchange the local and the remote end."""
    for one, other in (("local_host", "remote_host"), ("local_port", "remote_port")):
        peer[one], peer[other] = peer[other], peer[one]


def _reverse(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    """Return what the receiving client writes: bytes alone, and at the end what the sender counted."""
    document = _iperf3_document(it, recording, "whole")
    document["start"]["test_start"]["reverse"] = 1
    for number, row in enumerate(_measured(it, recording)):
        peer = document["start"]["connected"][number]
        _turn(peer)
        arrived = of_flow(recording, "received", row["flow"])
        steps = len(document["intervals"])
        sums = [0] * (steps + 1)
        for part in arrived:
            second = int((part["time_ns"] - row["start_ns"] - 1) // 1_000_000_000)
            sums[min(max(second, 0), steps)] += part["new_bytes"]
        for at, interval in enumerate(document["intervals"]):
            old = interval["streams"][number]
            keys = ("socket", "start", "end", "seconds", "omitted")
            stream = {key: old[key] for key in keys} | {"bytes": sums[at], "sender": False}
            stream["bits_per_second"] = sums[at] * 8 / max(1e-9, old["seconds"])
            interval["streams"][number] = stream
        for side in document["end"]["streams"][number].values():
            side["sender"] = False
            for name in ("max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt"):
                if name in side:
                    side[name] = 0
    for interval in document["intervals"]:
        first = interval["streams"][0]
        total = sum(stream["bytes"] for stream in interval["streams"])
        interval["sum"] = {
            **first,
            "bytes": total,
            "bits_per_second": total * 8 / max(1e-9, first["seconds"]),
        }
    if how == "cut":
        document["intervals"] = document["intervals"][: max(3, len(document["intervals"]) * 2 // 3)]
        document |= {"end": {}, "error": "interrupt - the client has terminated"}
    return {"load.json": _json(document)}


def _pings(recording: Recording, begin_s: float, end_s: float) -> list[Json]:
    rows = recording["probes"].to_pylist()
    return [row for row in rows if row["probe"] == "ping" and begin_s * 1e9 <= row["time_ns"] < end_s * 1e9]


def _ping_text(rows: Sequence[Json], address: str, stamps: bool, ended: bool) -> bytes:
    lines = [f"PING server.example ({address}) 56(84) bytes of data."]
    trips = []
    for number, row in enumerate(rows, start=1):
        if row["lost"]:
            continue
        ms = row["rtt_ns"] / 1e6
        trips.append(ms)
        at = EPOCH_S + (row["time_ns"] + row["rtt_ns"]) / 1e9
        shown = (
            f"{ms:.3f}" if ms < 1 else f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"
        )
        stamp = f"[{at:.6f}] " if stamps else ""
        lines.append(f"{stamp}64 bytes from {address}: icmp_seq={number} ttl=61 time={shown} ms")
    if ended:
        lost = len(rows) - len(trips)
        took = (rows[-1]["time_ns"] - rows[0]["time_ns"]) // 1_000_000 if rows else 0
        share = 100 * lost / max(1, len(rows))
        lines += [
            "",
            "--- server.example ping statistics ---",
            f"{len(rows)} packets transmitted, {len(trips)} received, {share:.4g}% packet loss, time {took}ms",
        ]
        if trips:
            low, mean, high, dev = min(trips), np.mean(trips), max(trips), np.std(trips)
            lines.append(f"rtt min/avg/max/mdev = {low:.3f}/{mean:.3f}/{high:.3f}/{dev:.3f} ms")
    return ("\n".join(lines) + "\n").encode()


def _target(it: Situation, recording: Recording) -> str:
    return addresses(recording)[it.experiment["probes"][0]["target"]]


def _idle(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    rows = _pings(recording, 0, IDLE_S - 0.3)
    return {"idle.txt": _ping_text(rows, _target(it, recording), dice.random() < 0.5, how != "cut")}


def _loaded(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    begin = IDLE_S + (2.0 if how == "late" else 0.0)
    rows = _pings(recording, begin, IDLE_S + _seconds(it) - 0.05)
    if dice.random() < 0.5:
        rows = rows[::2]
    if how == "cut":
        rows = rows[: max(12, len(rows) // 2)]
    return {"loaded.txt": _ping_text(rows, _target(it, recording), dice.random() < 0.7, how != "cut")}


def _another(dice: random.Random) -> bytes:
    """Return pings of a host that has nothing to do with the path."""
    base = dice.uniform(1, 250)
    rows = [
        {"time_ns": at * 1_000_000_000, "rtt_ns": round((base + dice.expovariate(1.0)) * 1e6), "lost": False}
        for at in range(dice.randint(10, 30))
    ]
    return _ping_text(rows, "192.0.2.77", False, True).replace(b"server.example", b"elsewhere.example")


def _ss(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    """Return polls of `ss -tin`; the limits' times are those of the samples, an interval each."""
    known = addresses(recording)
    every = dice.choice((2, 5, 10))
    polls: dict[int, list[str]] = {}
    for row in _measured(it, recording):
        rows = of_flow(recording, "samples", row["flow"])
        busy = rwnd = sndbuf = 0
        before = row["start_ns"]
        for number, sample in enumerate(rows):
            spent = (sample["time_ns"] - before) // 1_000_000
            before = sample["time_ns"]
            busy += spent * (sample["limit"] != "app")
            rwnd += spent * (sample["limit"] == "rwnd")
            sndbuf += spent * (sample["limit"] == "sndbuf")
            if number % every or sample["srtt_ns"] is None:
                continue
            polls.setdefault(sample["time_ns"], []).append(_socket(row, sample, known, busy, rwnd, sndbuf))
    times = sorted(polls)
    if how == "late":
        times = [at for at in times if at > (IDLE_S + 2) * 1e9] or times
    if how == "cut":
        times = times[: max(4, len(times) // 2)]
    lines = []
    for at in times:
        lines.append(f"{EPOCH_S + at / 1e9:.9f}")
        lines.append("State Recv-Q Send-Q Local Address:Port Peer Address:PortProcess")
        lines += polls[at]
    return {"ss.txt": ("\n".join(lines) + "\n").encode()}


def _socket(row: Json, sample: Json, known: Mapping[str, str], busy: int, rwnd: int, sndbuf: int) -> str:
    local = f"{known[row['sender']]}:{30_001 + row['flow']}"
    remote = f"{known[row['receiver']]}:{5_001 + row['flow']}"
    waiting = max(0, sample["bytes_written"] - sample["bytes_acked"])
    trip = sample["srtt_ns"] / 1e6
    words = [
        f"{row['cc']} wscale:11,11 rto:{max(204, round(trip * 1.2 + 200))} rtt:{trip:.3f}/{trip / 20:.3f} ato:40",
        f"mss:{MSS} pmtu:1500 rcvmss:536 advmss:{MSS} cwnd:{max(1, sample['cwnd_bytes'] // MSS)}",
    ]
    if sample["ssthresh_bytes"] is not None:
        words.append(f"ssthresh:{sample['ssthresh_bytes'] // MSS}")
    words.append(
        f"bytes_sent:{sample['bytes_acked'] + sample['bytes_in_flight'] + sample['retransmits'] * MSS}"
    )
    if sample["retransmits"]:
        words.append(f"bytes_retrans:{sample['retransmits'] * MSS}")
    words.append(f"bytes_acked:{sample['bytes_acked']}")
    words.append(f"send {round(sample['cwnd_bytes'] * 8e3 / trip) if trip else 0}bps lastrcv:9000")
    if sample["pacing_bps"] is not None:
        words.append(f"pacing_rate {sample['pacing_bps']}bps")
    if sample["delivery_bps"] is not None:
        words.append(
            f"delivery_rate {sample['delivery_bps']}bps delivered:{sample['bytes_acked'] // MSS + 1}"
        )
    if sample["limit"] == "app":
        words.append("app_limited")
    words.append(f"busy:{busy}ms")
    words += [
        f"{name}:{spent}ms({100 * spent / max(1, busy):.1f}%)"
        for name, spent in (("rwnd_limited", rwnd), ("sndbuf_limited", sndbuf))
        if spent
    ]
    if sample["bytes_in_flight"]:
        words.append(f"unacked:{round(sample['bytes_in_flight'] / MSS)}")
    if sample["retransmits"]:
        words.append(f"retrans:0/{sample['retransmits']}")
    least = sample["min_rtt_ns"] if sample["min_rtt_ns"] is not None else sample["srtt_ns"]
    words.append(f"rcv_space:14480 rcv_ssthresh:64088 minrtt:{least / 1e6:.3f} snd_wnd:4194304")
    return f"ESTAB 0 {waiting} {local} {remote}\n\t {' '.join(words)}"


def _flent(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    if it.cause == "marked_class":
        return {"rrul.flent.gz": _gzip(_rrul(recording))}
    (content,) = flent.write(recording, "x").values()
    document = json.loads(gzip.decompress(content))
    known = addresses(recording)
    names = document["metadata"]
    flow = _measured(it, recording)[0]
    names["HOST"], names["LOCAL_HOST"] = known[flow["receiver"]], known[flow["sender"]]
    names["HOSTS"] = [names["HOST"]]
    if how == "cut":
        _trim(document, 0, EPOCH_S + IDLE_S + _seconds(it) / 2)
    if how == "late":
        _trim(document, EPOCH_S + IDLE_S + 2, 1e12)
    return {"run.flent.gz": _gzip(document)}


def _trim(document: Json, begin: float, end: float) -> None:
    for name, rows in document["raw_values"].items():
        document["raw_values"][name] = [row for row in rows if begin <= row["t"] <= end]


def _gzip(document: Json) -> bytes:
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def _rrul(recording: Recording) -> Json:
    """Return flent's rrul of a line with classes, whose background class is the second link's."""
    rows = [row for row in recording["probes"].to_pylist() if not row["lost"]]
    plain = [row for row in rows if row["probe"] == "ping"]
    background = [row for row in rows if row["probe"] == "ping BK"]
    series = {
        "Ping (ms) ICMP": (plain[::3], "PingRunner"),
        "Ping (ms) UDP BE": (plain[1::3], "IrttRunner"),
        "Ping (ms) UDP EF": (plain[2::3], "IrttRunner"),
        "Ping (ms) UDP BK": (background, "IrttRunner"),
    }
    raw: Json = {}
    meta: Json = {}
    for name, (pings, runner) in series.items():
        raw[name] = [
            {"seq": at, "t": EPOCH_S + (row["time_ns"] + row["rtt_ns"]) / 1e9, "val": row["rtt_ns"] / 1e6}
            for at, row in enumerate(pings)
        ]
        meta[name] = {"UNITS": "ms", "RUNNER": runner}
    for name, flow in (("TCP upload BE", 0), ("TCP upload BK", 1)):
        raw[name] = [
            {"t": EPOCH_S + row["time_ns"] / 1e9, "dur": 0.1, "val": row["new_bytes"] * 8 / 0.1 / 1e6}
            for row in of_flow(recording, "received", flow)
        ]
        meta[name] = {"UNITS": "Mbits/s", "RUNNER": "NetperfDemoRunner", "CONG_CONTROL": "cubic"}
    ends = [at / 5 for at in range(1, 50)]
    return {
        "version": 4,
        "metadata": {
            "NAME": "rrul",
            "TITLE": "rrul",
            "T0": "2001-09-09T01:46:40.000000Z",
            "HOST": "10.0.0.3",
            "LOCAL_HOST": "10.0.0.1",
            "SERIES_META": meta,
        },
        "x_values": ends,
        "results": {name: [None] * len(ends) for name in raw},
        "raw_values": raw,
    }


_PRINTED = {
    "fq_codel": "limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64",
    "codel": "limit 1000p target 5ms interval 100ms",
    "pie": "limit 1000p target 15ms tupdate 15ms alpha 2 beta 20",
    "fq_pie": "limit 10240p flows 1024 target 15ms tupdate 15ms alpha 2 beta 20 quantum 1514b memory_limit 32Mb",
    "cake": "{bandwidth} {class} triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0",
}
"""How `tc qdisc show` prints the settings, defaults included."""


def _settings(router: Router) -> tuple[str, str]:
    kind, *words = router.discipline.split()
    if kind == "pfifo":
        return kind, f"limit {words[-1]}p"
    if kind == "bfifo":
        return kind, " ".join(words)
    text = _PRINTED[kind]
    if kind == "codel" and "ecn" in words:
        text += " ecn"
    bandwidth = f"bandwidth {router.shaped_bps}bit" if router.shaped_bps else "bandwidth unlimited"
    for at, word in enumerate(words):
        if word == "bandwidth":
            bandwidth = f"bandwidth {words[at + 1]}"
    classes = "besteffort" if "besteffort" in words else "diffserv3"
    return kind, text.format(**{"bandwidth": bandwidth, "class": classes})


def _listing(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    """Return `tc -s qdisc show` and `tc -s class show` of the router, in one file or two."""
    router = it.router
    kind, settings = _settings(router)
    rows = [row for row in recording["queues"].to_pylist() if row["link"] == router.link]
    last = (
        rows[-1]
        if rows
        else {"sent_bytes": 0, "dropped": 0, "marked": 0, "backlog_bytes": 0, "backlog_packets": 0}
    )
    packets = (rows[-1]["enqueued"] - rows[-1]["dropped"] - rows[-1]["backlog_packets"]) if rows else 0
    counts = (
        f" Sent {last['sent_bytes']} bytes {max(0, packets)} pkt (dropped {last['dropped']}, overlimits {{over}} requeues 0)\n"
        f" backlog {last['backlog_bytes']}b {last['backlog_packets']}p requeues 0\n"
    )
    plain = counts.format(over=0)
    over = counts.format(over=max(0, packets) // 2)
    extra = ""
    if kind in ("fq_codel", "codel"):
        extra = f"  maxpacket 1514 drop_overlimit 0 new_flow_count 20 ecn_mark {last['marked']}\n"
    marks = (
        f"  pkts_in {packets} overlimit 0 overmemory 0 dropped {last['dropped']} ecn_mark {last['marked']}\n"
    )
    extra = marks if kind in ("pie", "fq_pie") else extra
    dev = router.device
    lo = "qdisc noqueue 0: dev lo root refcnt 2 \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n"
    lan = (
        "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms "
        "memory_limit 32Mb ecn drop_batch 64 \n Sent 81234 bytes 812 pkt (dropped 0, overlimits 0 requeues 0) \n"
        " backlog 0b 0p requeues 0\n  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0\n"
        "  new_flows_len 0 old_flows_len 0\n"
    )
    begin = lo + (lan if dice.random() < 0.4 else "")
    if router.shaped_bps is None or kind == "cake":
        handle = "8001:" if kind == "cake" else "0:" if kind in ("fq_codel",) else "8002:"
        own = f"qdisc {kind} {handle} dev {dev} root refcnt 2 {settings} \n{plain}{extra}"
        return {"listing.txt": (begin + own).encode()}
    rate = _rate(router.shaped_bps)
    qdiscs = (
        f"qdisc htb 1: dev {dev} root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000\n{over}"
        f"qdisc {kind} 110: dev {dev} parent 1:10 {settings} \n{plain}{extra}"
    )
    classes = (
        f"class htb 1:10 root leaf 110: prio 0 rate {rate} ceil {rate} burst 1600b cburst 1600b \n{over}"
        " lended: 100 borrowed: 0 giants: 0\n tokens: -1000 ctokens: -1000\n\n"
    )
    if dice.random() < 0.4:
        return {"qdisc.txt": (begin + qdiscs).encode(), "class.txt": classes.encode()}
    return {"listing.txt": (begin + qdiscs + classes).encode()}


def _rate(bps: int) -> str:
    """Return a rate as tc prints it: whole units, or in bits."""
    for unit, size in (("Gbit", 10**9), ("Mbit", 10**6), ("Kbit", 10**3)):
        if bps % size == 0:
            return f"{bps // size}{unit}"
    return f"{bps}bit"


def _script(it: Situation, recording: Recording, _: Path, how: str, dice: random.Random) -> dict[str, bytes]:
    router = it.router
    kind, *rest = router.discipline.split()
    words = " ".join([kind, *rest])
    dev = router.device
    if kind == "police":
        text = (
            f"tc qdisc add dev {dev} handle ffff: ingress\n"
            f"tc filter add dev {dev} parent ffff: u32 match u32 0 0 {words} drop\n"
        )
    elif router.shaped_bps is None:
        text = f"tc qdisc replace dev {dev} root {words}\n"
    elif kind == "cake":
        text = f"tc qdisc replace dev {dev} root {words} bandwidth {router.shaped_bps}bit\n"
    elif kind == "bfifo" and dice.random() < 0.4:
        limit = rest[-1]
        text = f"tc qdisc add dev {dev} root tbf rate {router.shaped_bps}bit burst 4kb limit {limit}\n"
    else:
        text = (
            f"tc qdisc add dev {dev} root handle 1: htb default 10\n"
            f"tc class add dev {dev} parent 1: classid 1:10 htb rate {router.shaped_bps}bit\n"
            f"tc qdisc add dev {dev} parent 1:10 {words}\n"
        )
    return {"router.sh": ("#!/bin/sh\n" + text).encode()}


def _capture(
    it: Situation, recording: Recording, captures: Path, how: str, point: str, name: str
) -> dict[str, bytes]:
    content = (captures / f"{point}.pcapng").read_bytes()
    if it.cause == "receiver_closed":
        sender = bytes(map(int, addresses(recording)["s1"].split(".")))
        content, _ = pcapng.stopped_reader(content, sender, round(it.rtt_ms * 1e6), point == "s1")
    if how == "late":
        content = pcapng.late(content, 3.0)
    if how == "cut":
        content = pcapng.cut(content, 0.6)
    return {name: content}


_RENDER: Mapping[str, Callable[..., dict[str, bytes]]] = {
    IPERF3: _iperf3,
    NO_RTT: _no_rtt,
    REVERSE: _reverse,
    IDLE: _idle,
    LOADED: _loaded,
    SS: _ss,
    FLENT: _flent,
    LISTING: _listing,
    SCRIPT: _script,
    SENDER: lambda it, recording, captures, how, dice: _capture(
        it, recording, captures, how, "s1", "sender.pcapng"
    ),
    RECEIVER: lambda it, recording, captures, how, dice: _capture(
        it, recording, captures, how, "d", "receiver.pcapng"
    ),
    ROUTER: lambda it, recording, captures, how, dice: _capture(
        it, recording, captures, how, it.router.link, "router.pcapng"
    ),
}
