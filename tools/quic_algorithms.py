"""The page of one algorithm in several transports, docs/reference/quic-algorithms.md.

`python -m tools.quic_algorithms docs/reference/quic-algorithms.md` runs CUBIC, NewReno and BBR as Linux has them, as the QUIC
stacks have them, and Linux's within a QUIC stack, alone and beside Linux's CUBIC and BBR, and writes how far apart they are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import dragstrip
from dragstrip.io.files import write_text

FAMILIES = {
    "CUBIC": (
        "cubic",
        "cubic:hystart=0",
        "cubic-rfc9438",
        "noq/dragstrip-cubic",
        "noq/cubic",
        "quinn/cubic",
        "s2n-quic/cubic",
        "ngtcp2/cubic",
    ),
    "NewReno": ("reno", "noq/dragstrip-reno", "noq/newreno", "quinn/newreno", "ngtcp2/reno"),
    "BBR": (
        "bbr",
        "noq/dragstrip-bbr",
        "quinn/bbr",
        "ngtcp2/bbr",
        "bbr3",
        "noq/dragstrip-bbr3",
        "ngtcp2/bbr2",
        "s2n-quic/bbr",
    ),
}
"""Words by algorithm; the first is the reference."""

PATH: Mapping[str, Any] = {"rate": "10mbit", "rtt": "40ms"}
SITUATIONS: Mapping[str, Mapping[str, Any]] = {
    "1 BDP": {"queue": "bfifo limit 50kb"},
    "¼ BDP": {"queue": "bfifo limit 12500"},
    "8 BDP": {"queue": "bfifo limit 400kb"},
    "loss 1 %": {"queue": "bfifo limit 50kb", "loss": "1%"},
    "fq_codel": {"queue": "fq_codel"},
}
NEIGHBOURS = ("cubic", "bbr")
SECONDS = 30
SEEDS = 5
WINDOW_NS = 400_000_000
"""Time that a point of an envelope covers: ten round trips."""
SETTLED_NS = 5_000_000_000
"""Time of a run from which points count."""
RATE_TOLERANCE = 0.1
"""Mbit/s by which a point may miss an envelope: headers are 0.8 % apart."""
RTT_TOLERANCE = 1.0
"""The same in ms: the time of a frame on the path is 1.2 ms."""
OUTLIERS = 0.05
"""Share of an envelope's points that is left out, the farthest from the middle."""


@dataclass(frozen=True)
class Outcome:
    """Figures of one algorithm in one situation, medians over the seeds."""

    goodput_mbps: float
    rtt_ms: float
    lost: float
    """Segments sent again, or packets declared lost."""
    points: list[tuple[float, float]]
    """Throughput in Mbit/s and mean RTT in ms of each window of round trips, of all seeds."""


def of_result(result: dragstrip.Result) -> Outcome:
    """Return the figures of a race of one flow over several seeds."""
    flows = [run.flows[0] for run in result]
    return Outcome(
        median((flow.goodput_bps or 0.0) / 1e6 for flow in flows),
        median(flow.rtt_ms.p50 or 0.0 for flow in flows if flow.rtt_ms is not None),
        median(flow.retransmits or 0 for flow in flows),
        list(envelope_points(result.table("samples"))),
    )


def envelope_points(samples: pa.Table) -> Iterator[tuple[float, float]]:
    """Yield throughput in Mbit/s and mean RTT in ms of each window of every run, after its first five seconds."""
    is_settled = pc.greater_equal(samples["time_ns"], pa.scalar(SETTLED_NS))
    known = samples.filter(pc.and_(pc.is_valid(samples["srtt_ns"]), is_settled))
    names = ("run", "time_ns", "bytes_acked", "srtt_ns")
    window: list[tuple[int, int, int]] = []
    run = None
    for row_run, time_ns, acked, srtt_ns in zip(*(known[name].to_pylist() for name in names), strict=True):
        if row_run != run:
            run, window = row_run, []
        window.append((time_ns, acked, srtt_ns))
        span_ns = time_ns - window[0][0]
        if span_ns >= WINDOW_NS:
            yield (acked - window[0][1]) * 8e3 / span_ns, fmean(srtt_ns for _, _, srtt_ns in window) / 1e6
            window = [window[-1]]


def trimmed(points: Sequence[tuple[float, float]], scale: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the points without the farthest from the medians, in units of `scale`."""
    middle = median(x for x, _ in points), median(y for _, y in points)

    def distance(point: tuple[float, float]) -> float:
        return sum(((a - m) / s) ** 2 for a, m, s in zip(point, middle, scale, strict=True))

    kept = len(points) - int(OUTLIERS * len(points))
    return sorted(points, key=distance)[:kept]


def conformance(points: Sequence[tuple[float, float]], reference: Sequence[tuple[float, float]]) -> float:
    """Return the share of both sets' points that lie in both convex hulls.

    Source: QUICbench (Mishra, Lai, Leong, IMC 2022), the overlap of performance envelopes, without its clusters.
    """
    both = [*points, *reference]
    scale = tuple(max(max(values) - min(values), 1e-9) for values in zip(*both, strict=True))
    ours, theirs = (hull(trimmed(kind, (scale[0], scale[1]))) for kind in (points, reference))
    return sum(near(ours, point) and near(theirs, point) for point in both) / len(both)


def hull(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of the convex hull, anticlockwise."""
    ordered = sorted(set(points))

    def chain(sequence: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        corners: list[tuple[float, float]] = []
        for point in sequence:
            while len(corners) > 1 and turn(corners[-2], corners[-1], point) <= 0:
                corners.pop()
            corners.append(point)
        return corners[:-1]

    return [*chain(ordered), *chain(ordered[::-1])]


def turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    """Return above 0 if `c` lies to the left of the line from `a` to `b`."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def near(corners: Sequence[tuple[float, float]], point: tuple[float, float]) -> bool:
    """Return True if a point lies in a convex hull or no farther from it than figures of two transports may differ."""
    shifts = (
        (x, y) for x in (0.0, -RATE_TOLERANCE, RATE_TOLERANCE) for y in (0.0, -RTT_TOLERANCE, RTT_TOLERANCE)
    )
    return any(inside(corners, (point[0] + x, point[1] + y)) for x, y in shifts)


def inside(corners: Sequence[tuple[float, float]], point: tuple[float, float]) -> bool:
    """Return True if a point lies in a convex hull or on its edge."""
    edges = zip(corners, [*corners[1:], *corners[:1]], strict=True)
    return all(turn(a, b, point) >= -1e-9 for a, b in edges)


def race(*words: str, situation: Mapping[str, Any]) -> dragstrip.Result:
    """Run algorithms on the path, in one queue, once for each seed."""
    return dragstrip.race(
        *words, together=len(words) > 1, duration=f"{SECONDS}s", repeat=SEEDS,
        **PATH, **situation,
    )  # fmt: skip


def share(word: str, neighbour: str, situation: Mapping[str, Any]) -> float:
    """Return the share of an algorithm's flow beside one of `neighbour`, median over the seeds."""
    shares = []
    for run in race(word, neighbour, situation=situation):
        own, other = (flow.goodput_bps or 0.0 for flow in run.flows)
        shares.append(own / (own + other))
    return median(shares)


def family_table(words: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of one algorithm's forms alone."""
    yield "| | " + " | ".join(SITUATIONS) + " |"
    yield "|---|" + "---|" * len(SITUATIONS)
    outcomes = {
        (word, name): of_result(race(word, situation=situation))
        for word in words
        for name, situation in SITUATIONS.items()
    }
    for word in words:
        cells = []
        for name in SITUATIONS:
            outcome, reference = outcomes[word, name], outcomes[words[0], name]
            cell = f"{outcome.goodput_mbps:.2f} · {outcome.rtt_ms:.0f} · {outcome.lost:.0f}"
            if word != words[0]:
                cell += f" · {conformance(outcome.points, reference.points):.2f}"
            cells.append(cell)
        yield f"| `{word}` | " + " | ".join(cells) + " |"


def neighbour_table(words: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table of shares beside Linux's algorithms."""
    columns = [(neighbour, name) for neighbour in NEIGHBOURS for name in ("1 BDP", "8 BDP")]
    yield "| | " + " | ".join(f"beside `{neighbour}`, {name}" for neighbour, name in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for word in words:
        shares = [100 * share(word, neighbour, SITUATIONS[name]) for neighbour, name in columns]
        yield f"| `{word}` | " + " | ".join(f"{percent:.0f} %" for percent in shares) + " |"


INTRODUCTION = f"""<!-- Written by `make quic-algorithms`: do not edit. -->
# One algorithm, several transports

CUBIC, NewReno and BBR as Linux has them, as the QUIC stacks [ngtcp2, noq, quinn and s2n-quic](../how-to/quic.md) have them, and Dragstrip's model of
Linux's within noq (`noq/dragstrip-cubic`). 10 Mbit/s, 40 ms, {SECONDS} s, medians of {SEEDS} seeds; written by `make quic-algorithms`.

A cell: goodput in Mbit/s · median RTT in ms · packets lost · conformance. The conformance is the share of both algorithms' points
(throughput and RTT over ten round trips each) that lie in the hulls of both or no more than {RATE_TOLERANCE:g} Mbit/s and {RTT_TOLERANCE:g} ms beside them, 5 % of the farthest left
out, after Mishra, Lai and Leong (QUICbench, IMC 2022); the other is the first row of the table. 1 is the same behaviour, 0 none in common.
"""

CAUSES = """
## Why they differ
- **Headers.** A full datagram carries 1,436 bytes of data in a frame of 1,514, a segment of TCP 1,448: 0.8 % of goodput, in every
  cell.
- **HyStart.** Linux's CUBIC ends slow start when delays grow, and so do ngtcp2's and s2n-quic's (HyStart++); noq's and quinn's have no such rule and
  overshoot once, which costs as many packets as the buffer holds. `cubic:hystart=0` is their equal in TCP.
- **ngtcp2's windows** of CUBIC and NewReno grow to 2.89 times the connection's best delivery rate times its least RTT and no
  further, 163 kB here: in a buffer of 8 bandwidth-delay products they lose nothing, and beside others they get less.
- **Pacing.** noq, quinn and s2n-quic send at 1.25 windows a round trip unless the algorithm has a rate, and ngtcp2 paces, too; Linux
  paces neither CUBIC nor NewReno by itself. In a buffer of a quarter of a bandwidth-delay product paced TCP (`--hosts paced`) loses 79 segments with CUBIC and 84 with
  NewReno where unpaced TCP loses 55 and 70, and has the same goodput: part of the losses of the QUIC stacks is this.
- **Bursts of s2n-quic.** Its pacer releases ten packets at a time (`MAX_BURST_PACKETS`), and its receiver acknowledges every tenth
  (`packet_tolerance` of its ACK manager). A buffer of a quarter of a bandwidth-delay product holds eight frames, so that every
  burst loses some: `s2n-quic/cubic` has less than a third of the path there.
- **Reductions.** A QUIC window falls at once (RFC 9002), TCP's over a round trip (PRR). A recovery of TCP lasts until its holes are
  filled, one of QUIC until a packet arrives that was sent after the last loss: BBR's window is restored sooner, and in its startup
  it loses more.
- **BBR of quinn** is a window: its pacer reads no rate. It is BBR's first version.
- **BBR of ngtcp2** holds what its window permits. It paces at its estimate of the path's rate (9.716 of 9.722 Mbit/s of payload), Linux's
  1 % below it (`bbr_rate_bytes_per_sec`), and the window is 141 kB, two bandwidth-delay products and thirty packets. A buffer that
  is smaller overflows all the time.
- **BBR of s2n-quic** estimates 11.55 Mbit/s where the path carries 9.72 of payload, and paces at that (`samples.pacing_bps`): in a deep
  buffer it holds what its window of 135 kB permits. Why its estimate is above the path's rate is not separated.
- **Beside others in a deep buffer** who overshoots in slow start holds the buffer while the other recovers: the CUBICs without HyStart
  have 70 to 76 %, those with it about half or less.
- **Not separated**: why QUIC's flows have a third in place of half beside Linux's CUBIC in a buffer of one bandwidth-delay product.
"""


def page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield INTRODUCTION
    for family, words in FAMILIES.items():
        yield f"## {family}"
        yield from family_table(words)
        yield ""
    yield "## Beside Linux's, in one queue"
    yield "The share of the row's flow; half is fair."
    yield ""
    yield from neighbour_table([word for words in FAMILIES.values() for word in words])
    yield CAUSES.rstrip()


def main() -> None:
    """Write the page."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m tools.quic_algorithms PAGE")
    write_text(Path(sys.argv[1]), "\n".join(page()) + "\n")


if __name__ == "__main__":
    main()
