"""`identify`'s judgement on the bytes in flight of Nebby's sensitivity runs (Mishra et al., SIGCOMM 2024).

    python bench/nebby_series.py FOLDER --write-docs docs/reference/whatif.md

FOLDER has `in-flight.csv`: a row each half second with algorithm, post_delay_ms, rate_kbit, time_s, in_flight
and in_flight_max (bytes), acked (bytes) and retransmitted (segments) since the row before. The path of each
run is published, so that nothing is inferred: every candidate runs on it, with segments of its MTU of 100
bytes, over mahimahi's opportunities of 1,500 bytes in both directions.

What the publication leaves open is drawn, each draw the same for all candidates: when the first packet leaves
after an opportunity, the time that shells take, the rest of the round trip, and how many arrivals the
receiver's network card merges. Which kernels sent and received, that SACK
was on, and over how long the receiver's card merges were inferred from these same runs (`KERNELS`, `Draw`);
no candidate's row was, and no limit.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, TypeAlias

import marked
import numpy as np
import numpy.typing as npt

from dragstrip import _core
from dragstrip.analysis import captures
from dragstrip.analysis.whatif import identify
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.shapes import MEASURES, Shape, distances

Matrix: TypeAlias = npt.NDArray[np.float64]
Key: TypeAlias = tuple[int, int]
"""A path: post-delay in ms, rate in kbit/s."""

CANDIDATES = (
    *("bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois"),
    *("lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah"),
)
"""Linux's, as the runs have them."""
RENO = frozenset(("reno", "lp", "dctcp"))
"""The same here: `dctcp` without ECN, `lp` in seven of eight connections."""
MTU, PAYLOAD, TUN, ETHERNET = 100, 48, 4, 14
"""Bytes: of a packet, of its data, and what mahimahi and queues here count beside a packet."""
PRE_DELAY_MS = 5
OPPORTUNITY_BITS = 12_000
STEP_S, DURATION_S = 0.5, 29.0
DRAWS, SPREAD_DRAWS = 12, 6
ACK_BYTES = 52
WIRE_BPS = 91_200_000
"""A frame of 114 bytes each 10 µs: what a shell takes for a packet."""
RIGHT = 0.97
"""The target: share of answers that are right; 85 % of the runs should get one."""
MARKS = ("<!-- from bench/nebby_series.py -->", "<!-- end of bench/nebby_series.py -->")
HEADS = ("right", "wrong", identify.UNCERTAIN, identify.NONE)


@dataclass(frozen=True)
class Draw:
    """Settings of a run that are not published."""

    late_us: int
    """From the arrival that the application answers to its first packet."""
    shells_us: int
    """Time that shells take beside their delay, one way."""
    rest_us: int
    """Round trip beyond mahimahi."""
    interrupts_us: int
    """Time over which the receiver's card merges arrivals."""
    seed: int


def drawn(path: Key, number: int) -> Draw:
    """Return the draw of this number on a path."""
    dice = random.Random(f"{path} {number}")  # noqa: S311 - no secret
    return Draw(
        round(dice.uniform(200, 3000)),
        round(dice.uniform(0, 1200)),
        round(dice.uniform(500, 15_000)),
        round(dice.uniform(30, 110)),
        number + 1,
    )


def scenario(algorithm: str, path: Key, draw: Draw) -> dict[str, Any]:
    """Return a run on the published path: delays, mahimahi's links both ways, and its buffer in bytes."""
    delay_ms, kbit = path
    ways = {way: _opportunities(kbit, draw, way) for way in ("up", "down")}
    buffer = (PRE_DELAY_MS + delay_ms) * kbit // 4
    inner_ns = delay_ms * 1_000_000 + draw.shells_us * 1000
    outer_ns = PRE_DELAY_MS * 1_000_000 + draw.rest_us * 500
    start_ns = 1_000_000_000 + inner_ns + draw.late_us * 1000
    plain: dict[str, Any] = {"kind": "noqueue"}

    def link(ends: str, delay_ns: int = 0, **more: Any) -> dict[str, Any]:
        begin, end = ends
        return {"name": ends, "from": begin, "to": end, "qdisc": plain, "delay_ns": delay_ns, **more}

    def queue(ip_bytes: int) -> dict[str, Any]:
        # As many packets as mahimahi's limit holds.
        packets = buffer // (ip_bytes + TUN)
        return {"kind": "bfifo", "limit_bytes": max(1, packets) * (ip_bytes + ETHERNET)}

    card = {"interrupts": {"gap_ns": draw.interrupts_us * 1000, "gro": True}}
    metrics = {"net.ipv4.tcp_no_metrics_save": "1"}
    return {
        "name": "",
        "seed": draw.seed,
        "duration_ns": start_ns + round((DURATION_S + 1) * 1e9),
        "nodes": [
            {"kind": "host", "name": "s", "mtu_bytes": MTU, "gso": "auto", "sysctl": metrics, **KERNELS[0]},
            {"kind": "router", "name": "i"},
            {"kind": "router", "name": "o"},
            {"kind": "host", "name": "d", **KERNELS[1], **card},
        ],
        "links": [
            link("si", inner_ns),
            link("io", medium="up", qdisc=queue(MTU)),
            link("od", outer_ns, rate_bps=WIRE_BPS, qdisc={"kind": "pfifo", "limit_packets": 1000}),
            link("do", outer_ns),
            link("oi", medium="down", qdisc=queue(ACK_BYTES)),
            link("is", inner_ns),
        ],
        "media": {way: {"kind": "trace", "opportunities_ms": times} for way, times in ways.items()},
        "flows": [
            {
                "label": algorithm,
                "sender": "s",
                "receiver": "d",
                "transport": {"protocol": "tcp", "cc": algorithm},
                "application": {"kind": "bulk"},
                "start_ns": start_ns,
            }
        ],
    }


def _opportunities(kbit: int, draw: Draw, way: str) -> list[int]:
    """Return the times of a link's opportunities in ms, in half of the draws each up to a tick late."""
    dice = random.Random(f"{draw} {way}")  # noqa: S311 - no secret
    count = kbit * 1000 // OPPORTUNITY_BITS
    seconds = range(round(DURATION_S) + 4)
    return [
        1000 * second + round(1000 * number / count) + dice.randrange(1 + draw.seed % 2)
        for second in seconds
        for number in range(1, count + 1)
    ]


KERNELS: tuple[dict[str, Any], dict[str, Any]] = ({"profile": "linux-4.15"}, {"profile": "linux-6"})
"""Sender's and receiver's. The sender counts ACKs as BIC, Scalable, Veno and YeAH did until Linux 5.7, and
repairs dozens of losses in a round trip, as with SACK alone; the receiver offers 64 KB at once."""


@dataclass(frozen=True)
class Series:
    """A run every half second, as it is published."""

    flight_max: Matrix
    acked: Matrix
    retransmitted: Matrix

    def trace(self) -> FlowTrace:
        """Return the run as a flow; what was acknowledged within a second stands where round trips would."""
        count = min(len(self.acked), int(DURATION_S / STEP_S))
        at = STEP_S * np.arange(1, count + 1)
        acked, again = np.cumsum(self.acked[:count]), np.cumsum(self.retransmitted[:count])
        second = np.convolve(self.acked[:count], np.ones(2), "same") + PAYLOAD
        flight, duration = self.flight_max[:count], count * STEP_S
        return FlowTrace(duration, at, second, at, flight, acked, again, float(acked[-1]), int(again[-1]))


def published(folder: Path) -> dict[tuple[str, Key], Series]:
    """Return the series of each run, by algorithm and path."""
    rows: dict[tuple[str, Key], list[list[float]]] = defaultdict(list)
    with (folder / "in-flight.csv").open() as file:
        for row in csv.DictReader(file):
            key = row["algorithm"], (int(row["post_delay_ms"]), int(row["rate_kbit"]))
            rows[key].append([float(row[name]) for name in ("in_flight_max", "acked", "retransmitted")])
    return {key: Series(*np.array(values).T) for key, values in rows.items()}


def simulated(job: tuple[str, Key, int]) -> Series:
    """Return a candidate's run as the publication has its runs."""
    algorithm, path, number = job
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "s.pcapng"
        _core.Scenario(scenario(algorithm, path, drawn(path, number))).run(
            None, ([("s", str(file))], (96, 96), ""), 1
        )
        _, flows = captures.segments(file, quiet=True)
    rows = max(flows, key=lambda flow: len(flow["time_ns"]))
    column = {name: np.frombuffer(rows[name], "<i8") for name in ("time_ns", "kind", "position", "bytes")}
    return _series(column)


def _series(column: Mapping[str, npt.NDArray[np.int64]]) -> Series:
    time = (column["time_ns"] - column["time_ns"][0]) / 1e9
    is_ack, is_data = column["kind"] == 3, column["kind"] < 2
    first = column["position"][is_data][0]
    sent = np.maximum.accumulate(np.where(is_data, column["position"] + column["bytes"], first))
    acked = np.maximum.accumulate(np.where(is_ack, column["position"], first).clip(first))
    again = np.cumsum(column["kind"] == 1)
    flight = sent - acked
    steps = np.arange(0, int(DURATION_S / STEP_S) + 1) * STEP_S
    ends = np.searchsorted(time, steps, "right") - 1
    ends[0] = 0
    most = [flight[begin : end + 1].max() for begin, end in pairwise(ends)]
    passed = acked[ends] - first
    passed[0] = 0
    return Series(np.array(most, float), np.diff(passed).astype(float), np.diff(again[ends]).astype(float))


def base_ms(path: Key) -> float:
    """Return the round trip of what acknowledgements clock: delays rounded up to opportunities, both ways."""
    interval = 1000 / (path[1] * 1000 // OPPORTUNITY_BITS)
    return interval * (np.ceil(2 * path[0] / interval) + np.ceil(2 * PRE_DELAY_MS / interval))


class PathRuns:
    """The candidates' runs on a path, and how far those of each are from each other."""

    def __init__(self, path: Key, runs: Mapping[str, Sequence[Series]]) -> None:
        self.idle_ms = base_ms(path)
        self.shapes = {name: [self.shape(run) for run in runs[name]] for name in CANDIDATES}
        pairs = [pair for name in CANDIDATES for pair in combinations(self.shapes[name][:SPREAD_DRAWS], 2)]
        self.spread = distances(pairs).reshape(len(CANDIDATES), -1, len(MEASURES))

    def shape(self, run: Series) -> Shape:
        """Return what is compared of a run."""
        return Shape(run.trace(), self.idle_ms, PAYLOAD)

    def measured(self, run: Series) -> tuple[Matrix, Matrix]:
        """Return what `identify.measured` does, of candidates that have been run already."""
        mine = self.shape(run)
        near = distances([(mine, shape) for name in CANDIDATES for shape in self.shapes[name]])
        return near.reshape(len(CANDIDATES), -1, len(MEASURES)), self.spread


def is_same(truth: str, names: Sequence[str]) -> bool:
    """Return whether an answer is right; Reno has three names here."""
    return truth in names or (truth in RENO and bool(RENO.intersection(names)))


@dataclass(frozen=True)
class Judged:
    """A published run with the answer that its series gets."""

    truth: str
    path: Key
    answer: identify.Answer

    @property
    def nearest_is_true(self) -> bool:
        """True when the candidate that comes nearest is the run's own."""
        return is_same(self.truth, [self.answer.scores[0][0]])

    def result(self) -> str:
        """Return `right`, `wrong`, or the kind of an answer without a name."""
        if self.answer.kind != identify.GIVEN:
            return self.answer.kind
        return "right" if is_same(self.truth, self.answer.names) else "wrong"


def judged(folder: Path, workers: int) -> list[Judged]:
    """Return the answers to all published runs."""
    runs = published(folder)
    results = []
    with ProcessPoolExecutor(workers) as pool:
        for path in sorted({path for _, path in runs}):
            jobs = [(name, path, number) for name in CANDIDATES for number in range(DRAWS)]
            series = list(pool.map(simulated, jobs, chunksize=DRAWS))
            by_name = {name: series[at * DRAWS : (at + 1) * DRAWS] for at, name in enumerate(CANDIDATES)}
            path_runs = PathRuns(path, by_name)
            for (truth, where), run in sorted(runs.items()):
                if where == path:
                    answer = identify.judged(CANDIDATES, [path_runs.measured(run)], rate_open=False)
                    results.append(Judged(truth, path, answer))
            sys.stderr.write(f"{path[0]} ms, {path[1]} kbit/s: done\n")
    return results


def held_out(results: Sequence[Judged]) -> tuple[int, int]:
    """Return how many runs get a name, and the right one, at a least confidence from other paths.

    It is the lowest from which on the names of all their runs were right as often as `RIGHT` asks.
    """
    named = right = 0
    for path in {result.path for result in results}:
        others = sorted(
            (result for result in results if result.path != path), key=lambda each: -each.answer.confidence
        )
        hits = np.cumsum([other.nearest_is_true for other in others]) / np.arange(1, len(others) + 1)
        enough = np.flatnonzero(hits >= RIGHT)
        least = others[int(enough[-1])].answer.confidence if len(enough) else 1.0
        mine = [result for result in results if result.path == path and result.answer.confidence >= least]
        named += len(mine)
        right += sum(result.nearest_is_true for result in mine)
    return named, right


def page(results: Sequence[Judged]) -> Iterator[str]:
    """Yield the lines of the figures for docs/reference/whatif.md."""
    yield f"| kbit/s | runs | {' | '.join(HEADS)} | nearest is right |"
    yield f"|{'---|' * (3 + len(HEADS))}"
    rates = sorted({result.path[1] for result in results})
    for title, chosen in (
        *((str(kbit), [result for result in results if result.path[1] == kbit]) for kbit in rates),
        ("**all**", list(results)),
    ):
        counts = Counter(result.result() for result in chosen)
        near = sum(result.nearest_is_true for result in chosen)
        cells = " | ".join(str(counts[head]) for head in HEADS)
        yield f"| {title} | {len(chosen)} | {cells} | {near} ({100 * near / len(chosen):.0f} %) |"
    counts = Counter(result.result() for result in results)
    answers = counts["right"] + counts["wrong"]
    named, right = held_out(results)
    yield ""
    yield (
        f"At `identify`'s own confidence {_share(answers, len(results))} of the runs get a name, "
        f"right in {_share(counts['right'], answers)}. With the least that the runs of all other paths give "
        f"(97 % right there) {_share(named, len(results))} get one, right in {_share(right, named)}."
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(1, whole):.0f} %"


def main() -> None:
    """Judge all published runs, and print the figures or write them between the marks of a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    options = parser.parse_args()
    text = "\n".join(page(judged(options.folder, options.workers)))
    if options.write_docs is None:
        sys.stdout.write(f"{text}\n")
        return
    marked.write(options.write_docs, MARKS, text)


if __name__ == "__main__":
    main()
