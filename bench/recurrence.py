"""Search bulk runs over drop-tail for states that recur (docs/decisions/0025-no-interval-is-repeated.md).

    python bench/recurrence.py sawteeth --scenarios 90 --seconds 300 --seed 1 --flows 1,2,10
    python bench/recurrence.py windows --scenarios 270 --seconds 400 --seed 7 --flows 1,1,2

`sawteeth` cuts a run with a row per ACK at each loss of the first flow (BBR: at each ProbeRTT) and compares
the pieces: time since the cut, bytes acknowledged, windows, RTTs, rates and state of every flow. A state that
recurs exactly gives pieces that recur in a row up to the end of the run.

`windows` takes a run in blocks of 10 s. The earliest time at which the figures of four windows in a row agree
within a part of the bounds ends the simulation in thought: the four windows are repeated up to the end, and
the figures are compared with those of the whole run.

Each scenario draws rate, round trip and buffer unless `--path` gives them, and prints a line of JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dragstrip.engines.sim import simulate
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import numbers, texts

BOUNDS = {"goodput": 0.002, "share": 0.005, "rtt": 0.01}
"""Largest error of the goodput (relative), of a flow's share (absolute) and of an RTT quantile (relative)."""
PARTS = (1.0, 0.5, 0.25)
"""Parts of the bounds within which windows must agree."""
BLOCK_S = 10
WINDOWS = 4
QUANTILES = (0.05, 0.5, 0.95, 0.99)
STATE = ("cwnd_bytes", "ssthresh_bytes", "bytes_in_flight", "srtt_ns", "rtt_ns", "min_rtt_ns", "pacing_bps")
"""Columns of `samples` that a state recurs in."""


@dataclass(frozen=True)
class Bulk:
    """Bulk flows of one algorithm that start together at one drop-tail queue."""

    cc: str
    flows: int
    rate_mbps: int
    rtt_ms: int
    buffer_bdp: float

    def run(self, seconds: int, every_ack: bool) -> Recording:
        """The recording of so many simulated seconds."""
        options = {"rate": f"{self.rate_mbps}mbit", "rtt": f"{self.rtt_ms}ms", "duration": f"{seconds}s"}
        words = [f"{self.cc}*{self.flows}"]
        described = compare(words, queue=f"{self.buffer_bdp}bdp", together=True, **options)  # type: ignore[arg-type]
        scenario = expand(described)[0].scenario
        scenario["record"]["every_ack"] = every_ack
        return simulate(scenario)


def scenarios(seed: int, count: int, flows: tuple[int, ...], path: str | None) -> Iterator[Bulk]:
    """Scenarios, each algorithm and number of flows in turn, on this path or on drawn ones."""
    random_source = random.Random(seed)
    for number in range(count):
        rate, rtt = random_source.choice([2, 5, 10, 20]), random_source.choice([10, 20, 40, 80])
        buffer = random_source.choice([0.25, 0.5, 1, 2, 4])
        if path is not None:
            rate, rtt, buffer = (json.loads(word) for word in path.split(","))
        algorithm = ("reno", "cubic", "bbr")[number % 3]
        yield Bulk(algorithm, flows[number // 3 % len(flows)], rate, rtt, buffer)


def cuts(bulk: Bulk, recording: Recording) -> Any:
    """Rows of `samples` at which the first flow loses, or enters ProbeRTT."""
    samples = recording["samples"]
    first = np.flatnonzero(np.asarray(samples["flow"]) == 0)
    states = texts(samples, "state")[first]
    inside = np.array(["probe_rtt" in state if bulk.cc == "bbr" else state == "recovery" for state in states])
    return first[1:][inside[1:] & ~inside[:-1]]


def pieces(bulk: Bulk, recording: Recording) -> list[str]:
    """A hash of what happens between each two cuts."""
    samples = recording["samples"]
    times, flows = np.asarray(samples["time_ns"]), np.asarray(samples["flow"])
    acked, gained = numbers(samples, "bytes_acked"), np.zeros(len(times))
    for flow in range(bulk.flows):
        rows = np.flatnonzero(flows == flow)
        gained[rows[1:]] = np.diff(acked[rows])
    _, state = np.unique(texts(samples, "state").astype(str), return_inverse=True)
    columns = [flows, gained, state, *(np.nan_to_num(numbers(samples, name), nan=-1) for name in STATE)]
    at = cuts(bulk, recording)
    return [
        hashlib.sha256(
            b"".join([(times[a:b] - times[a]).tobytes(), *(column[a:b].tobytes() for column in columns)])
        ).hexdigest()
        for a, b in pairwise(at)
    ]


def period(hashes: list[str]) -> tuple[int, int] | None:
    """Number of pieces after which all come again, up to the end of the run, and the first such piece."""
    for length in range(1, len(hashes) // 2 + 1):
        if hashes[-length:] == hashes[-2 * length : -length]:
            first = len(hashes) - length
            while first > 0 and hashes[first - 1] == hashes[first - 1 + length]:
                first -= 1
            return length, first
    return None


def sawteeth(bulk: Bulk, seconds: int) -> dict[str, Any]:
    """Number of pieces, of distinct ones, and the period if there is one."""
    hashes = pieces(bulk, bulk.run(seconds, every_ack=True))
    return {"pieces": len(hashes), "distinct": len(set(hashes)), "period": period(hashes)}


@dataclass(frozen=True)
class Blocks:
    """A run in blocks of time: bytes by block and flow; RTT samples by block and value."""

    received: Any
    rtts: Any
    values: Any

    @classmethod
    def of(cls, recording: Recording, flows: int, count: int) -> Blocks:
        """Return the blocks of a recording."""
        span_ns = BLOCK_S * 10**9
        rows = recording["received"]
        block = np.minimum((np.asarray(rows["time_ns"]) - 1) // span_ns, count - 1)
        received = np.zeros((count, flows))
        np.add.at(received, (block, np.asarray(rows["flow"])), numbers(rows, "new_bytes"))
        values, place = np.unique(np.asarray(recording["rtts"]["rtt_ns"]), return_inverse=True)
        rtts = np.zeros((count, len(values)))
        at = np.minimum(np.asarray(recording["rtts"]["time_ns"]) // span_ns, count - 1)
        np.add.at(rtts, (at, place), 1)
        return cls(received, rtts, values)

    def figures(self, weights: Any) -> tuple[float, Any, Any]:
        """Bytes, shares and RTT quantiles of blocks that count so many times each."""
        received, cumulated = weights @ self.received, np.cumsum(weights @ self.rtts)
        places = np.searchsorted(cumulated, np.array(QUANTILES) * cumulated[-1])
        return received.sum(), received / received.sum(), self.values[places].astype(float)


def windows(bulk: Bulk, seconds: int) -> dict[str, Any]:
    """For each part of the bounds: the part of the run that is simulated, and the errors of repeating."""
    count = seconds // BLOCK_S
    blocks = Blocks.of(bulk.run(seconds, every_ack=False), bulk.flows, count)
    total, shares, quantiles = blocks.figures(np.ones(count))
    outcome = {}
    for part in PARTS:
        for end in range(5, int(count * 0.8) + 1):
            length = (end - end // 5 - 1) // WINDOWS
            begin = end - WINDOWS * length
            if not length or not _agree(blocks, begin, length, count, part):
                continue
            weights = np.zeros(count)
            weights[:end] = 1
            weights[begin:end] += (count - end) / (end - begin)
            repeated = blocks.figures(weights)
            outcome[str(part)] = {
                "simulated": end / count,
                "goodput": abs(repeated[0] / total - 1),
                "share": float(np.abs(repeated[1] - shares).max()),
                "rtt": float(np.abs(repeated[2] / quantiles - 1).max()),
            }
            break
    return outcome


def _agree(blocks: Blocks, begin: int, length: int, count: int, part: float) -> bool:
    """True if the figures of successive windows agree within a part of the bounds."""
    figures = []
    for start in range(begin, begin + WINDOWS * length, length):
        weights = np.zeros(count)
        weights[start : start + length] = 1
        figures.append(blocks.figures(weights))
    totals, shares, quantiles = (np.array(column) for column in zip(*figures, strict=True))
    return bool(
        np.ptp(totals) / totals.mean() <= BOUNDS["goodput"] * part
        and np.ptp(shares, axis=0).max() <= BOUNDS["share"] * part
        and (np.ptp(quantiles, axis=0) / quantiles.mean(axis=0)).max() <= BOUNDS["rtt"] * part
    )


def main() -> None:
    """Prints a line per scenario."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("design", choices=["sawteeth", "windows"])
    parser.add_argument("--scenarios", type=int, default=90)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flows", default="1,2,10", help="numbers of flows, in turn")
    parser.add_argument("--path", help="Mbit/s, ms and BDP of all, such as 10,20,0.5")
    given = parser.parse_args()
    work = {"sawteeth": sawteeth, "windows": windows}[given.design]
    flows = tuple(int(number) for number in given.flows.split(","))
    for bulk in scenarios(given.seed, given.scenarios, flows, given.path):
        print(json.dumps({**vars(bulk), **work(bulk, given.seconds)}), flush=True)


if __name__ == "__main__":
    main()
