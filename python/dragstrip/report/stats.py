"""The figures of a setup: one row per contender, medians over repeats, and who wins on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragstrip.report.load import median, middle_of, number
from dragstrip.report.setups import Bout, Contender, Setup, drawn

# Two figures within one per cent of each other are called equal.
TIE = 0.01


@dataclass(frozen=True)
class Statistic:
    """A median over repeats with the least and the greatest."""

    middle: float
    least: float
    greatest: float

    @property
    def varies(self) -> bool:
        """Whether the repeats differ by more than a tie."""
        return self.greatest - self.least > TIE * abs(self.middle)


@dataclass(frozen=True)
class Row:
    """A contender's figures; None where there is nothing to measure."""

    contender: Contender
    flows: int
    goodput_bps: Statistic | None
    throughput_p50_bps: Statistic | None
    share: Statistic | None
    rtt_p5_ms: Statistic | None
    rtt_p50_ms: Statistic | None
    rtt_p95_ms: Statistic | None
    retransmits: Statistic | None
    retransmit_rate: Statistic | None
    queue_p50_bytes: Statistic | None
    queue_p95_bytes: Statistic | None
    dropped: Statistic | None
    marked: Statistic | None
    jain: Statistic | None
    limits: dict[str, float]


def rows_of(setup: Setup) -> list[Row]:
    """One row per contender, in their order."""
    return [_row(setup, contender) for contender in setup.contenders]


def _row(setup: Setup, contender: Contender) -> Row:
    def over(measure: Callable[[Bout], float | None]) -> Statistic | None:
        values = [value for value in map(measure, contender.bouts) if value is not None]
        return Statistic(middle_of(values), min(values), max(values)) if values else None

    def queue(name: str, part: str | None = None) -> Statistic | None:
        return over(lambda bout: _queue(setup, bout, name, part))

    return Row(
        contender=contender,
        flows=max(len(bout.flows) for bout in contender.bouts),
        goodput_bps=over(lambda bout: _total(bout, "goodput_bps")),
        throughput_p50_bps=over(
            lambda bout: median(number(r.get("throughput_bps_p50")) for r in bout.results)
        ),
        share=over(lambda bout: _total(bout, "share")),
        rtt_p5_ms=over(lambda bout: _rtt(bout, "p5")),
        rtt_p50_ms=over(lambda bout: _rtt(bout, "p50")),
        rtt_p95_ms=over(lambda bout: _rtt(bout, "p95")),
        retransmits=over(lambda bout: _total(bout, "retransmits")) if contender.is_tcp else None,
        retransmit_rate=over(_retransmit_rate) if contender.is_tcp else None,
        queue_p50_bytes=queue("backlog_bytes", "p50"),
        queue_p95_bytes=queue("backlog_bytes", "p95"),
        dropped=queue("dropped"),
        marked=queue("marked"),
        jain=over(lambda bout: number(bout.run.summary.get("jain"))),
        limits=_limits(contender),
    )


def _total(bout: Bout, name: str) -> float | None:
    """The sum over a contender's flows; nothing when none is known."""
    known = [value for value in (number(row.get(name)) for row in bout.results) if value is not None]
    return sum(known) if known else None


def _rtt(bout: Bout, part: str) -> float | None:
    """The median over a contender's flows of one quantile of their round-trip times."""
    return median(number((row.get("rtt_ms") or {}).get(part)) for row in bout.results)


def _retransmit_rate(bout: Bout) -> float | None:
    sent, again = _total(bout, "segments_sent"), _total(bout, "retransmits")
    return again / sent if sent and again is not None else None


def _queue(setup: Setup, bout: Bout, name: str, part: str | None) -> float | None:
    for queue in bout.run.summary.get("queues") or []:
        if queue.get("link") == setup.queue_link:
            value = queue.get(name)
            return number((value or {}).get(part)) if part else number(value)
    return None


def _limits(contender: Contender) -> dict[str, float]:
    """What kept the sender from sending more, as shares of its samples, the commonest first."""
    totals: dict[str, int] = {}
    for bout in contender.bouts if contender.is_tcp else []:
        for flow in drawn(bout.flows):
            for reason, samples in bout.run.recording.limits(flow).items():
                totals[reason] = totals.get(reason, 0) + samples
    everything = sum(totals.values())
    return {
        reason: samples / everything
        for reason, samples in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    }
