"""`dragstrip inspect` against what the engines know, as tables in docs/how-to/captures.md.

    python bench/captures.py --write-docs docs/how-to/captures.md

The truth is the engine's own recording (RTT samples, what limited the sender) and, for what was lost, the
captures of both ends matched by IPv4's identification, by a reader of this file's own.
"""

from __future__ import annotations

import argparse
import shlex
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import marked
import numpy as np

from dragstrip.analysis import captures
from dragstrip.model.recording import Recording, read

GRID = {
    "tail drop": "--rate 10mbit --rtt 40ms --queue 'bfifo limit 50kb' cubic bbr reno",
    "1 % loss": "--rate 10mbit --rtt 40ms --queue 'bfifo limit 50kb' --loss 1% cubic bbr",
    "3 % loss": "--rate 10mbit --rtt 100ms --queue 'bfifo limit 100kb' --loss 3% cubic reno",
    "jitter 2 ms": "--rate 10mbit --rtt 40ms --queue 'bfifo limit 50kb' --jitter 2ms cubic bbr",
    "jitter, loss": "--rate 10mbit --rtt 40ms --queue 'bfifo limit 50kb' --jitter 5ms --loss 1% cubic",
    "reordering": "--rate 20mbit --rtt 60ms --queue 'bfifo limit 150kb' --jitter 20ms cubic bbr",
    "ECN": "--rate 10mbit --rtt 40ms --queue fq_codel --ecn cubic reno",
    "no GSO": "--rate 20mbit --rtt 20ms --queue 'bfifo limit 50kb' --gso off cubic bbr",
    "GSO whole": "--rate 50mbit --rtt 20ms --queue 'bfifo limit 250kb' --gso whole cubic",
    "5 flows": "--rate 20mbit --rtt 40ms --queue 'bfifo limit 100kb' --flows 5 cubic",
    "20 flows": "--rate 50mbit --rtt 40ms --queue 'bfifo limit 250kb' --flows 20 cubic",
    "1 Mbit/s": "--rate 1mbit --rtt 100ms --queue 'bfifo limit 30kb' cubic bbr",
    "web": "--rate 10mbit --rtt 40ms --queue 'bfifo limit 50kb' --workload web cubic",
    "delayed ACKs": f"{Path(__file__).with_name('delayed-acks.toml')} cubic bbr",
}
"""Options of `dragstrip compare`; or an experiment, and its algorithms."""
KERNELS = {
    **{name: options for name, options in GRID.items() if name not in ("GSO whole", "delayed ACKs")},
    "20 flows": f"{GRID['20 flows']} --capture d s1 s2 s3 s4 s5",
    "delayed ACKs": "--rate 1mbit --rtt 40ms --queue 'bfifo limit 30kb' --flows 4 cubic bbr",
}
"""Offloads are off there, and its receiver is Linux: of four flows on 1 Mbit/s each segment comes alone. Of
twenty flows five are looked at: the room for captures is shared by their files."""
GRIDS = {"sim": GRID, "vm": KERNELS}
MARKS = ("<!-- from bench/captures.py -->", "<!-- end -->")
LAST_NS = 1_000_000_000
"""At a run's end what was sent may still be under way: retransmissions so late are not judged."""


@dataclass
class Segment:
    """A data segment of a capture."""

    at: int
    flow: tuple[bytes, bytes]
    ip_id: int
    start: int
    end: int
    stamp: int | None
    accepted: bool = True
    """By PAWS (RFC 7323, section 5): its stamp is not older than what the receiver has."""


def segments(path: Path) -> Iterator[Segment]:
    """The TCP data of a pcapng file of ours: little-endian, Ethernet, IPv4, nanoseconds."""
    echoes: dict[tuple[bytes, bytes], set[int]] = defaultdict(set)
    found = []
    content = path.read_bytes()
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        if kind == 6:
            _, high, low, captured, _ = struct.unpack_from("<IIIII", content, at + 8)
            frame = content[at + 28 : at + 28 + captured]
            if (
                frame[12:14] == b"\x08\x00"
                and frame[23] == 6
                and b"drop" not in content[at + 28 + captured : at + length]
            ):
                total, ip_id = struct.unpack_from(">HH", frame, 16)
                seq = struct.unpack_from(">I", frame, 38)[0]
                data = total - 20 - (frame[46] >> 4) * 4
                ends = (frame[26:30] + frame[34:36], frame[30:34] + frame[36:38])
                stamped = frame[54:58] == b"\x01\x01\x08\x0a"
                value, echo = struct.unpack_from(">II", frame, 58) if stamped else (None, 0)
                if data > 0:
                    found.append(Segment(high << 32 | low, ends, ip_id, seq, seq + data, value))
                if stamped:
                    echoes[ends[::-1]].add(echo)
        elif kind == 5 and dropped(content[at + 20 : at + length - 4]):
            raise SystemExit(f"{path} lacks packets: what is true cannot be told from it")
        at += length
    recent: dict[tuple[bytes, bytes], Recent] = defaultdict(Recent)
    for segment in found:
        segment.accepted = recent[segment.flow].accepts(segment, echoes[segment.flow])
    return iter(found)


def dropped(options: bytes) -> int:
    """Packets that the capture has lost, from a statistics block (isb_osdrop)."""
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 7:
            return int(struct.unpack_from("<Q", options, at + 4)[0])
        at += 4 + length + -length % 4
    return 0


@dataclass
class Recent:
    """What a receiver compares the stamps of data with (TS.Recent; RFC 7323, sections 4.3 and 5).

    It moves with data that begin no later than the last acknowledgement and end no earlier, and is then
    echoed: what is never echoed it never was. When an ACK passes a capture does not matter, since a delay may
    stand between the receiver and its tap.
    """

    stamp: int | None = None
    edge: int | None = None
    beyond: list[tuple[int, int]] = field(default_factory=list)

    def accepts(self, segment: Segment, echoed: set[int]) -> bool:
        """Linux allows a tick (TCP_PAWS_WINDOW)."""
        if segment.stamp is not None and self.stamp is not None and segment.stamp < self.stamp - 1:
            return False
        if self.edge is None:
            self.edge = segment.start
        if segment.start <= self.edge <= segment.end and segment.stamp in echoed:
            self.stamp = max(self.stamp or 0, segment.stamp or 0)
        self.beyond.append((segment.start, segment.end))
        self.beyond.sort()
        while self.beyond and self.beyond[0][0] <= self.edge:
            self.edge = max(self.edge, self.beyond.pop(0)[1])
        return True


@dataclass
class Truth:
    """Of a flow: distinct bytes at either end, and its retransmissions."""

    sent: int = 0
    received: int = 0
    needed: int = 0
    spurious: int = 0
    unjudged: int = 0
    last_ns: int = 0
    events: dict[tuple[int, int], str] = field(default_factory=dict)
    """By time and sequence number, what each retransmission that is judged was."""


def union(ranges: list[tuple[int, int]]) -> int:
    """Bytes that the ranges cover together."""
    total, end = 0, -1
    for start, stop in sorted(ranges):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def truths(near: Path, far: Path) -> dict[tuple[bytes, bytes], Truth]:
    """What the captures of sender and receiver show, flow by flow."""
    there: dict[tuple[bytes, bytes], list[Segment]] = defaultdict(list)
    arrived: dict[tuple[bytes, bytes], list[Segment]] = defaultdict(list)
    for segment in segments(near):
        there[segment.flow].append(segment)
    for segment in segments(far):
        arrived[segment.flow].append(segment)
    found = {}
    for flow, sent in there.items():
        if flow not in arrived:
            continue
        truth = Truth(
            union([(it.start, it.end) for it in sent]), union([(it.start, it.end) for it in arrived[flow]])
        )
        times: dict[int, list[Segment]] = defaultdict(list)
        for segment in arrived[flow]:
            times[segment.ip_id].append(segment)
        copies: dict[int, list[tuple[Segment, bool]]] = defaultdict(list)
        last = truth.last_ns = sent[-1].at
        for segment in sent:
            step = 1000
            cells = range(segment.start // step, (segment.end - 1) // step + 1)
            earlier = [copy for cell in cells for copy in copies[cell]]
            overlapping = [
                copy for copy in earlier if copy[0].start < segment.end and copy[0].end > segment.start
            ]
            if overlapping:
                came = [(it.start, it.end) for it, there_too in overlapping if there_too]
                clipped = [(max(a, segment.start), min(b, segment.end)) for a, b in came]
                if segment.at > last - LAST_NS:
                    truth.unjudged += 1
                elif union([part for part in clipped if part[0] < part[1]]) == segment.end - segment.start:
                    truth.spurious += 1
                    truth.events[segment.at, segment.start] = "spurious"
                else:
                    truth.needed += 1
                    truth.events[segment.at, segment.start] = "needed"
            # A burst's parts have the identifications that follow its own.
            parts = [
                (it.start, it.end)
                for number in range(-(-(segment.end - segment.start) // 1448))
                for it in times[(segment.ip_id + number) & 0xFFFF]
                if it.accepted
                and 0 < it.at - segment.at < 5_000_000_000
                and it.start >= segment.start
                and it.end <= segment.end
            ]
            whole = union(parts) == segment.end - segment.start
            for cell in cells:
                copies[cell].append((segment, whole))
        found[flow] = truth
    return found


EPOCH_NS = 10**18
"""Second 0 of a run in its captures (docs/how-to/captures.md)."""
TICK_NS = 2_000
"""A sender's RTT is the difference of two clocks that are cut to microseconds: it is off by up to this."""


def ks(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> float:
    """The distance of two distributions (Kolmogorov, Smirnov), either of them moved by a tick at most."""
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])

    def below(of: np.ndarray[Any, Any], moved: int) -> np.ndarray[Any, Any]:
        return np.searchsorted(of, at + moved, side="right") / len(of)

    beyond = [below(it, -TICK_NS) - below(that, TICK_NS) for it, that in ((one, other), (other, one))]
    return max(0.0, float(beyond[0].max()), float(beyond[1].max()))


@dataclass
class Score:
    """Of a row of the grid."""

    flows: int = 0
    bytes_right: int = 0
    ks_most: float = 0.0
    judged: int = 0
    one_right: int = 0
    two_right: int = 0
    moments: int = 0
    limits_right: int = 0
    matrix: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Retransmissions by who says it, what is true, and what is said."""


def right(truth: Truth, said: dict[str, int]) -> int:
    """Retransmissions judged right, by their numbers; what cannot be told counts as wrong beyond 5 %."""
    total = truth.needed + truth.spurious
    spurious_off = abs(said["spurious"] - truth.spurious) - truth.unjudged
    unknown = max(0, said["unknown"] - truth.unjudged - total // 20)
    return max(0, total - max(0, spurious_off) - unknown)


def limits(ours: Recording, number: int, theirs: Recording, flow: int) -> tuple[int, int]:
    """Moments of the simulator's samples at which the same limits the flow, and how many there are."""
    words = {"sndbuf": "app", "pacing": "cwnd"}
    mine = ours["samples"].to_pydict()
    at = np.array([time for time, of in zip(mine["time_ns"], mine["flow"], strict=True) if of == number])
    said = [word for word, of in zip(mine["limit"], mine["flow"], strict=True) if of == number]
    at = at + ours.provenance["origin_ns"] - EPOCH_NS
    samples = theirs["samples"].to_pydict()
    moments = same = 0
    for time, of, word in zip(samples["time_ns"], samples["flow"], samples["limit"], strict=True):
        if of == flow and len(at) and at[0] <= time <= at[-1]:
            moments += 1
            same += said[int(np.searchsorted(at, time, side="right")) - 1] == words.get(word, word)
    return same, moments


def number_of(label: str) -> int:
    """A flow's number: it goes from port 30001 + number (docs/how-to/captures.md)."""
    return max(int(end.rsplit(":", 1)[1]) for end in label.split(" → ")) - 30_001


def label(flow: tuple[bytes, bytes]) -> str:
    """As `inspect` calls the flow between these two ends."""
    ends = [f"{'.'.join(map(str, end[:4]))}:{int.from_bytes(end[4:], 'big')}" for end in flow]
    return " → ".join(ends)


def measure(run: Path) -> Score:
    """One run with its captures at every host."""
    score = Score()
    truth_recording = read(run)
    folder = run / "captures"
    far = folder / "d.pcapng"
    order = [
        number
        for number, protocol in zip(*columns(truth_recording, "flow", "protocol"), strict=True)
        if protocol == "tcp"
    ]
    for near in sorted(folder.glob("s*.pcapng"), key=lambda path: (len(path.name), path.name)):
        true = truths(near, far)
        one, recording = captures.inspect([near], rows=True, quiet=True, labels=True)
        two, _ = captures.inspect([near, far], quiet=True, labels=True)
        assert recording is not None
        by_label = {flow["label"]: flow for flow in two["flows"]}
        for said in one["flows"]:
            truth = next((it for flow, it in true.items() if label(flow) == said["label"]), None)
            if truth is None:
                continue
            number = number_of(said["label"])
            score.flows += 1
            score.bytes_right += said["bytes"] == truth.sent
            both = by_label[said["label"]]["flow"]
            for who, document, flow, word in (
                ("one point", one, said["flow"], "one"),
                ("two points", two, both, "two"),
                ("Wireshark", one, said["flow"], "wireshark"),
                ("tcptrace", one, said["flow"], "tcptrace"),
            ):
                words = {
                    (event["time_ns"], event["seq"]): event[word]
                    for event in document.get("events", [])
                    if event["flow"] == flow
                }
                for at, true_word in truth.events.items():
                    score.matrix[who, true_word, words.get(at) or "new"] += 1
                for at in words.keys() - truth.events.keys():
                    if words[at] and at[0] < truth.last_ns - LAST_NS:
                        score.matrix[who, "new", words[at]] += 1
            judged = truth.needed + truth.spurious
            score.judged += judged
            score.one_right += right(truth, said["retransmissions"])
            score.two_right += right(truth, by_label[said["label"]]["retransmissions"])
            if number in order:
                samples(score, recording, said["flow"], truth_recording, number)
    return score


def columns(recording: Recording, *names: str) -> list[list[Any]]:
    """Of the table of flows."""
    return [recording["flows"].column(name).to_pylist() for name in names]


def samples(score: Score, ours: Recording, number: int, theirs: Recording, flow: int) -> None:
    """RTT samples and limits of one flow."""
    found = []
    for recording, of in ((ours, number), (theirs, flow)):
        table = recording["rtts"].to_pydict()
        found.append(
            np.array([ns for ns, it in zip(table["rtt_ns"], table["flow"], strict=True) if it == of])
        )
    if min(map(len, found)) >= 100:
        score.ks_most = max(score.ks_most, ks(*found))
    same, moments = limits(ours, number, theirs, flow)
    score.limits_right += same
    score.moments += moments


def rows(folder: Path, engine: str) -> Iterator[str]:
    """The tables of an engine, line by line."""
    yield (
        "| runs | flows | bytes exact | RTT, greatest KS distance | retransmissions | right from one point "
        "| from two | limited by, right |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    everything: Counter[tuple[str, str, str]] = Counter()
    for name, options in GRIDS[engine].items():
        out = folder / engine / name.replace(" ", "-").replace("/", "-")
        words = shlex.split(options)
        asked = ["run", words[0]] if words[0].endswith(".toml") else ["compare", "--duration", "10s", *words]
        program = [sys.executable, "-m", "dragstrip", *asked, "--engine", engine]
        program += ["--no-report", "--out", str(out), *(() if "--capture" in words else ("--capture",))]
        subprocess.run(program, check=True, capture_output=True)  # noqa: S603 - our own program
        total = Score()
        for run in sorted((out / "runs").iterdir()):
            score = measure(run)
            for name_of, value in vars(score).items():
                known = getattr(total, name_of)
                setattr(total, name_of, max(known, value) if name_of == "ks_most" else known + value)
        everything += total.matrix
        yield line(name, options, total)
    yield ""
    yield from confusion(everything)


WORDS = {
    "one point": ("needed", "spurious", "unknown", "reordered", "new"),
    "two points": ("needed", "spurious", "unknown", "reordered", "new"),
    "Wireshark": (
        "retransmission",
        "fast_retransmission",
        "spurious_retransmission",
        "out_of_order",
        "new",
    ),
    "tcptrace": ("rexmt", "outoforder", "new"),
}


def confusion(matrix: Counter[tuple[str, str, str]]) -> Iterator[str]:
    """Of each one who judges, what each retransmission of the whole grid was called."""
    yield "| by | called | truly needed | truly spurious | truly new |"
    yield "|---|---|---|---|---|"
    for who, words in WORDS.items():
        for number, word in enumerate(words):
            counts = [matrix[who, true, word] for true in ("needed", "spurious", "new")]
            if any(counts):
                cells = [str(count) for count in counts[:2]] + ["" if word == "new" else str(counts[2])]
                said = word.replace("_", " ")
                yield f"| {who if number == 0 else ''} | {said} | {' | '.join(cells)} |"


def line(name: str, options: str, score: Score) -> str:
    """A row of it."""
    share = lambda part, whole: f"{part / whole:.1%}".replace("%", " %") if whole else "–"  # noqa: E731
    algorithms = ", ".join(word for word in shlex.split(options) if word in ("cubic", "reno", "bbr"))
    cells = [
        f"{name} ({algorithms})",
        str(score.flows),
        f"{score.bytes_right} of {score.flows}",
        f"{score.ks_most:.3f}",
        str(score.judged),
        share(score.one_right, score.judged),
        share(score.two_right, score.judged),
        share(score.limits_right, score.moments),
    ]
    return f"| {' | '.join(cells)} |"


TITLES = {"sim": "In the simulator:", "vm": "On a kernel:"}


def main() -> None:
    """Runs the grids, and prints the tables or writes them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    parser.add_argument("--engine", nargs="+", choices=list(GRIDS), default=list(GRIDS))
    asked = parser.parse_args()
    if asked.write_docs is not None and asked.engine != list(GRIDS):
        parser.error("--write-docs takes the tables of all engines")
    with tempfile.TemporaryDirectory() as folder:
        table = []
        for engine in asked.engine:
            table += [TITLES[engine], ""]
            for row in rows(Path(folder), engine):
                print(row, flush=True)  # noqa: T201
                table.append(row)
            table.append("")
    if asked.write_docs is not None:
        marked.write(asked.write_docs, MARKS, "\n".join(table[:-1]))


if __name__ == "__main__":
    main()
