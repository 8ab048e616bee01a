"""Random experiments: every queue discipline, algorithm, impairment and kind of change, on small and short paths.

Each is refused as bad input or runs to its end: with the same recording and the same captures the second time, with no
flow faster than the path, and with its packets conserved by the captures: what the hosts sent to the bottleneck left
it, was dropped there or still waits, as the recording says too; nothing arrives that has not passed it, and nothing that
was dropped arrives.
"""

from __future__ import annotations

import json
import random
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from common import main
from disciplines import valid

from dragstrip import _core
from dragstrip.analysis import captures
from dragstrip.engines.sim.engine import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording

Content = dict[str, Any]
BUCKET = 1600
BEGIN_NS = 10**18
"""When a run begins by its captures' clock."""
RATES = ("64kbit", "300kbit", "1mbit", "2mbit", "5mbit")
MEDIA_BPS = {
    "adsl": 8e6,
    "adsl2": 12e6,
    "modem": 33_600,
    "wifi-g": 54e6,
    "wifi-n": 130e6,
    "homeplug-av": 100e6,
    "ethernet-hub": 100e6,
}
"""What each carries at most, headers included."""
NETEMS = (
    *(
        "loss 2%",
        "loss 1% 25%",
        "loss gemodel 1% 10%",
        "loss every 20",
        "delay 10ms 5ms",
        "duplicate 3%",
        "corrupt 1%",
    ),
    *(
        "delay 10ms reorder 25% 50%",
        "delay 10ms 3ms distribution normal",
        "delay 5ms 5ms distribution pareto loss 1%",
    ),
    *(
        "rate 800kbit",
        "limit 5",
        "limit 3 delay 30ms",
        "delay 20ms duplicate 1% reorder 5% gap 3",
        "loss 5% ecn",
    ),
)
PROFILES = {
    "linux-5.15-l4s": ("prague", "bbr2", "cubic"),
    "linux-4.15": ("reno", "cubic", "vegas", "bbr"),
    "linux-2.2": ("reno", "vegas"),
    "linux-2.6.27": ("reno", "cubic", "exp"),
    "linux-2.6.38": ("reno", "cubic", "vegas"),
    "freebsd-9": ("newreno-freebsd", "cubic-freebsd", "vegas-freebsd", "cdg-freebsd"),
}
SYSCTLS: Content = {
    "net.ipv4.tcp_ecn": (0, 1),
    "net.ipv4.tcp_sack": (0,),
    "net.ipv4.tcp_timestamps": (0,),
    "net.ipv4.tcp_window_scaling": (0,),
    "net.ipv4.tcp_rmem": ("4096 20000 60000",),
    "net.ipv4.tcp_wmem": ("4096 16384 30000",),
    "net.ipv4.tcp_recovery": (0,),
    "net.ipv4.tcp_slow_start_after_idle": (0,),
}


@cache
def algorithms() -> dict[str, list[str]]:
    """Each algorithm with the parameters that are whole numbers or switches."""
    return {row["name"]: [it["name"] for it in row["parameters"]] for row in _core.algorithm_table()}


def experiment(dice: random.Random) -> Content:
    """An experiment's content; most are right."""
    profile = dice.choice(list(PROFILES)) if dice.random() < 0.15 else None
    duration_ms = dice.choice([200, 500, 1000, 2000])
    content: Content = {
        "duration": f"{duration_ms}ms",
        "seed": dice.randint(1, 2**53 - 1),
        "path": path(dice),
        "flows": [flow(dice, profile, duration_ms) for _ in range(dice.choice([1, 1, 2, 3]))],
        "record": {
            "captures": True,
            "interval": dice.choice(["100ms", "10ms", "37ms"]),
            "every_ack": dice.random() < 0.2,
            "cc_state": dice.random() < 0.2,
        },
        "hosts": {"*": host(dice, profile)},
        "cold_arp": dice.random() < 0.1,
    }
    if dice.random() < 0.5:
        content["probes"] = [{"from": "s1", "target": "d", "interval": dice.choice(["50ms", "200ms"])}]
        if dice.random() < 0.3:
            content["probes"].append({"from": "d", "target": "s1", "size": "1400b"})
    if dice.random() < 0.4:
        content["changes"] = [change(dice, duration_ms) for _ in range(dice.choice([1, 1, 2, 4]))]
    return content


def path(dice: random.Random) -> Content:
    """The dumbbell."""
    made: Content = {"rate": dice.choice(RATES), "rtt": dice.choice(["0ms", "1ms", "20ms", "80ms"])}
    if dice.random() < 0.12:
        del made["rate"]
        made["medium"] = dice.choice(list(MEDIA_BPS))
    elif dice.random() < 0.3:
        made["link"] = "wire"
    made["queue"] = dice.choice(["1bdp", "100ms"]) if dice.random() < 0.1 else valid(dice)
    if dice.random() < 0.4:
        made["netem"] = dice.choice(NETEMS)
    elif dice.random() < 0.2:
        made |= {"loss": "1%", "jitter": "3ms"}
    if dice.random() < 0.1:
        made["ahead_netem"] = dice.choice(NETEMS)
    if dice.random() < 0.2:
        made["up_netem"] = dice.choice(NETEMS)
    if dice.random() < 0.3 and "rate" in made:
        made |= {"up_rate": dice.choice(RATES), "up_queue": valid(dice)}
    if dice.random() < 0.1 and "medium" not in made:
        made |= {"overhead": "18b", "atm": dice.random() < 0.5 and "link" not in made}
    return made


def host(dice: random.Random, profile: str | None) -> Content:
    """Settings of all hosts."""
    made: Content = {} if profile is None else {"profile": profile}
    if profile is None and dice.random() < 0.5:
        chosen = dice.sample(list(SYSCTLS), dice.choice([1, 1, 2]))
        made["sysctl"] = {name: dice.choice(SYSCTLS[name]) for name in chosen}
    if dice.random() < 0.2:
        made["gso"] = dice.choice(["off", "whole"])
    if dice.random() < 0.15:
        made["mtu"] = dice.choice(["576b", "1280b", "9000b"])
    if dice.random() < 0.1:
        made["cpu"] = {"receive": "50us", "send": "20us"}
    return made


def flow(dice: random.Random, profile: str | None, duration_ms: int) -> Content:
    """A flow of any algorithm, or datagrams."""
    if dice.random() < 0.1:
        rate = dice.choice(["100kbit", "3mbit"])
        return {
            "application": {"kind": "constant_rate", "rate": rate, "datagram": dice.choice(["100b", "1470b"])}
        }
    made: Content = {"cc": dice.choice(PROFILES[profile] if profile else list(algorithms()))}
    if dice.random() < 0.2 and (options := algorithms()[made["cc"]]):
        made["cc_options"] = {dice.choice(options): dice.choice([0, 1, 2, 3, 16, 100, 600])}
    match dice.randrange(8):
        case 0:
            made["application"] = {"kind": "on_off", "on": "50ms", "off": dice.choice(["30ms", "400ms"])}
        case 1:
            made["application"] = {
                "kind": "request_response",
                "request": "100b",
                "response": "30kb",
                "think": "10ms",
            }
        case 2:
            made["bytes"] = dice.choice(["1b", "1448b", "20kb"])
        case _:
            pass
    if dice.random() < 0.2:
        made["count"] = dice.choice([2, 3])
        made["stagger"] = "20ms"
    if dice.random() < 0.2:
        made["start"] = f"{dice.randrange(duration_ms)}ms"
    elif dice.random() < 0.1:
        made["stop"] = f"{dice.randrange(1, duration_ms)}ms"
    if dice.random() < 0.15:
        made["reverse"] = True
    if dice.random() < 0.1:
        made["rtt"] = "60ms"
    if dice.random() < 0.1:
        made[dice.choice(["send_buffer", "receive_buffer"])] = dice.choice(["4kb", "30kb", "1mb"])
    return made


def change(dice: random.Random, duration_ms: int) -> Content:
    """A change of the bottleneck, or of the way back."""
    made: Content = {"at": f"{dice.randrange(duration_ms)}ms"}
    settings: dict[str, tuple[Any, ...]] = {
        "rate": RATES,
        "delay": ("0ms", "5ms", "100ms"),
        "rtt": ("10ms", "150ms"),
        "loss": ("0%", "5%", "100%"),
        "limit": (1, 5, 1000, "3kb", "60kb"),
        "state": ("up", "down"),
    }
    for name in dice.sample(list(settings), dice.choice([1, 1, 2])):
        made[name] = dice.choice(settings[name])
    if dice.random() < 0.1 and "rtt" not in made:
        made["link"] = "d-r"
    return made


@dataclass(frozen=True)
class Packet:
    """What a capture says of one: its number in all files, when, its ends, whether the queue dropped it here."""

    number: int
    time_ns: int
    source: int
    target: int
    dropped: bool


def packets(file: Path) -> Iterator[Packet]:
    """Those of a pcapng file: enhanced packet blocks with their options, little-endian, Ethernet, IPv4."""
    content = file.read_bytes()
    at = 0
    while at < len(content):
        kind, size = struct.unpack_from("<II", content, at)
        if kind == 6:
            high, low, kept = struct.unpack_from("<III", content, at + 12)
            frame = content[at + 28 : at + 28 + kept]
            options = {}
            place = at + 28 + (kept + 3) // 4 * 4
            while place < at + size - 4:
                code, length = struct.unpack_from("<HH", content, place)
                if code == 0:
                    break
                options[code] = content[place + 4 : place + 4 + length]
                place += 4 + (length + 3) // 4 * 4
            if frame[12:14] == b"\x08\x00":
                number = struct.unpack("<Q", options[5])[0]
                yield Packet(number, (high << 32 | low) - BEGIN_NS, frame[29], frame[33], 1 in options)
        at += size


def seen(folder: Path, point: str) -> list[Packet]:
    """The packets of a host's or a link's file."""
    return list(packets(folder / f"{point}.pcapng"))


def ran(scenario: Content, folder: Path) -> Recording:
    """The run, with captures at all hosts and the bottleneck."""
    folder.mkdir()
    points = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"] + ["r-d"]
    files = [(point, str(folder / f"{point}.pcapng")) for point in points]
    return simulate(scenario, None, (files, (96, 96), "random"))


def check_rates(recording: Recording, scenario: Content, content: Content) -> None:
    """No flow receives more than the path carries in its time, at its fastest."""
    path, rates = content["path"], [0.0]
    rates += [MEDIA_BPS[path["medium"]]] if "medium" in path else [_core.parse_rate(path["rate"])]
    rates += [_core.parse_rate(change["rate"]) for change in content.get("changes", ()) if "rate" in change]
    for row in recording["flows"].to_pylist():
        if (row["sender"] == "d") != answers(scenario["flows"][row["flow"]]):
            continue  # the way back may be unlimited
        seconds = (row["stop_ns"] - row["start_ns"]) / 1e9
        # A shaper lets a burst pass at once: as much as its buckets hold.
        most = max(rates) * seconds / 8 + burst(content)
        assert row["bytes_received"] <= most, f"{row} of at most {most:.0f} bytes: {content}"
        assert row["bytes_acked"] <= row["bytes_received"], f"acknowledged before it came: {row}"
        assert row["retransmits"] <= row["segments_sent"], str(row)


def answers(flow: Content) -> bool:
    """Whether the flow's bytes are those of responses, which its receiver sends."""
    return bool((flow.get("application") or {}).get("kind") == "request_response")


def burst(content: Content) -> int:
    """Bytes that an htb class at Linux's defaults lets pass at once: its bucket, and a packet."""
    if content["path"].get("link") == "wire" or "medium" in content["path"]:
        return 0
    host = content["hosts"]["*"]
    return BUCKET + (65_536 if host.get("gso") == "whole" else _core.parse_size(host.get("mtu", "1500b")))


def check_packets(scenario: Content, recording: Recording, folder: Path) -> None:
    """The bottleneck's packets by the captures, and by the recording's own count."""
    numbers = {node["name"]: place for place, node in enumerate(scenario["nodes"], 1)}
    beyond = numbers["d"]
    at_link = [packet for packet in seen(folder, "r-d") if packet.target == beyond]
    passed = Counter(packet.number for packet in at_link if not packet.dropped)
    dropped = Counter(packet.number for packet in at_link if packet.dropped)
    at_hosts = [
        packet
        for name, number in numbers.items()
        if name.startswith("s")
        for packet in seen(folder, name)
        if packet.source == number and packet.target == beyond
    ]
    sent = Counter(packet.number for packet in at_hosts)
    came = Counter(packet.number for packet in seen(folder, "d") if packet.target == beyond)
    assert not set(passed) & set(dropped), f"passed and dropped: {set(passed) & set(dropped)}"
    links = {link["name"]: link for link in scenario["links"]}
    # Copies have numbers of their own.
    if not copies(links["r-d"]["netem"]):
        strangers = set(came) - set(passed)
        assert not strangers, (
            f"{len(strangers)} packets arrive that have not passed the bottleneck: {strangers}"
        )
        assert max(came.values(), default=1) == 1, f"came twice: {came.most_common(3)}"
    before = [links["r-d"]["qdisc"], *(link["netem"] for name, link in links.items() if name.startswith("s"))]
    if any(map(copies, before)):
        return
    strangers = (set(passed) | set(dropped)) - set(sent)
    assert not strangers, f"nobody sent {strangers}"
    rows = [row for row in recording["queues"].to_pylist() if row["link"] == "r-d"]
    if not rows:
        return
    last = rows[-1]
    said = f"sent {sent.total()}, passed {passed.total()}, dropped {dropped.total()}, recorded {last}"
    # The last sample may be taken before what happens at the same instant.
    late = sum(packet.time_ns >= last["time_ns"] for packet in (*at_link, *at_hosts))
    if links["r-d"]["medium"]:  # counts the packets in the driver too, and what the medium itself gives up
        assert last["dropped"] >= dropped.total() - late, said
        return
    assert 0 <= dropped.total() - last["dropped"] <= late, said
    left = sent.total() - passed.total() - dropped.total() - last["backlog_packets"]
    assert left >= -late, said
    if all(at_once(link) for link in links.values() if link["to"] == "r" and link["from"].startswith("s")):
        assert left <= late, said


def copies(part: Any) -> bool:
    """Whether an impairment, or a discipline inside others, makes copies."""
    return part is not None and bool(part.get("duplicate") or copies(part.get("leaf")))


def at_once(link: Content) -> bool:
    """Whether what enters the link has left it."""
    return not (link.get("delay_ns") or link.get("rate_bps") or link.get("netem") or link.get("medium"))


def check_inspected(recording: Recording, scenario: Content, folder: Path) -> None:
    """`inspect` reads the files, and sees no fewer bytes at either end than were delivered."""
    flows = recording["flows"].to_pylist()
    answered = {number for number, flow in enumerate(scenario["flows"]) if answers(flow)}
    ends = {(row["sender"], row["receiver"]) for row in flows if row["protocol"] == "tcp"}
    for sender, receiver in sorted(ends):
        files = [folder / f"{name}.pcapng" for name in (sender, receiver)]
        said, _ = captures.inspect(files, quiet=True)
        shown = {row["label"].split(" → ")[0].split(":")[1]: row for row in said["flows"]}
        for row in flows:
            of = shown.get(str(30001 + row["flow"]))
            ours = (row["sender"], row["receiver"]) == (sender, receiver)
            if of and ours and row["flow"] not in answered:
                assert of["bytes"] >= row["bytes_received"], f"{of} of {row}"
        for between in said.get("between", ()):
            for way in ("there", "back"):
                counts = between[way]
                assert counts["matched"] + counts["lost"] <= counts["packets"], f"{between}"


def trial(number: int, folder: Path) -> str:
    """Runs the experiment with this number twice."""
    content = experiment(random.Random(number))
    try:
        scenario = expand(Experiment.build({"name": f"random-{number}", **content}))[0].scenario
        first = ran(scenario, folder / "one")
    except BadInputError:
        return "refused"
    second = ran(scenario, folder / "two")
    digests = {it.provenance["recording_sha256"] for it in (first, second)}
    assert len(digests) == 1, f"the second run is another: {content}"
    for file in sorted((folder / "one").iterdir()):
        again = (folder / "two" / file.name).read_bytes()
        assert file.read_bytes() == again, f"{file.name} differs the second time: {content}"
    try:
        check_rates(first, scenario, content)
        check_packets(scenario, first, folder / "one")
        check_inspected(first, scenario, folder / "one")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{json.dumps(content)}") from error
    return "ran"


if __name__ == "__main__":
    main("experiments", trial, count=8_000, sample=40, about=__doc__)
