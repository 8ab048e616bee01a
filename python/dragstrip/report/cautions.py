"""Cautions: what a reader must know before attributing a figure to congestion control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dragstrip.display import quantity
from dragstrip.engines.agent.flow_programs import outcomes
from dragstrip.model.recording import core_build
from dragstrip.report.load import RecordedRun, flows_of, recording_of
from dragstrip.results.comparison.setups import FLOWS_DRAWN_MAX, Contender, Setup, sampled_flows
from dragstrip.results.comparison.stats import Row
from dragstrip.results.comparison.verdict import reach
from dragstrip.results.intervals import REPEATS_MIN

# A sender that something else than its window held back for longer says little about its algorithm.
LIMITED_SHARE_MAX = 0.2


def cautions(setup: Setup, rows: list[Row]) -> list[Markup]:
    """Return warnings about figures that congestion control does not explain.

    They concern senders limited by something other than their window, flows without data, and too few runs.
    """
    return [*_on_runs(setup), *_on_limits(setup), *_on_flows(setup, rows)]


def _on_runs(setup: Setup) -> Iterator[Markup]:
    """Yield warnings about too few runs, and about what disturbed a run: machine, medium or program."""
    if reach(setup):
        yield Markup(
            "{}, and something here draws random numbers: another seed may give another order. From {} "
            "repeats on, differences are judged (<code>--repeat</code>)."
        ).format("One run" if setup.repeats == 1 else f"{setup.repeats} runs", REPEATS_MIN)
    limited = {limit: None for contender in setup.contenders for limit in _machine_limits(contender)}
    if limited:
        yield Markup("The machine limited a run, not the path: {}.").format("; ".join(limited))
    real = {note: None for contender in setup.contenders for note in _real_links(contender)}
    if real:
        yield Markup(
            "A real medium: {}. What is said here about its rate, delay or queue is the scenario's."
        ).format("; ".join(real))
    for line in {line: None for contender in setup.contenders for line in _failed_programs(contender)}:
        yield Markup("A program failed, so that its figures are not those of its work: {}.").format(line)


def _on_limits(setup: Setup) -> Iterator[Markup]:
    """Yield a warning for each limit other than the window that held senders back."""
    held_back = [(contender.title, limits_of(contender)) for contender in setup.contenders]
    for reason, name in (
        ("rwnd", "the receive window"),
        ("small_queue", "TCP small queues"),
        ("sndbuf", "the send buffer"),
        ("app", "the application"),
    ):
        shares = {title: limits.get(reason, 0.0) for title, limits in held_back}
        shares = {title: share for title, share in shares.items() if share > LIMITED_SHARE_MAX}
        if shares:
            least, most = min(shares.values()), max(shares.values())
            span = f"{least * 100:.0f}"
            if round(most, 2) > round(least, 2):
                span += f" to {most * 100:.0f}"
            yield Markup(
                "{} {} held back by {} for {} % of the time: that is not congestion control."
            ).format(_bold(list(shares)), "was" if len(shares) == 1 else "were", name, span)


def _on_flows(setup: Setup, rows: list[Row]) -> Iterator[Markup]:
    """Yield warnings about flows without data, RTTs of intervals, and flows that are pooled or not drawn."""
    silent = [
        c.title
        for c in setup.contenders
        if not any(row.get("goodput_bps") for b in c.bouts for row in b.results)
    ]
    if silent:
        yield Markup("Nothing of {} arrived.").format(_bold(silent))
    if (interval_ns := rtt_interval_ns(setup, rows)) is not None:
        yield Markup(
            "RTTs are of one sample each {} (<code>--no-rtts</code>): what lasts less is not in their "
            "curves and percentiles."
        ).format(quantity.duration_ns(interval_ns))
    crowd = max((row.flows for row in rows), default=0)
    if crowd > FLOWS_DRAWN_MAX:
        yield Markup("Curves and distributions are those of {} of its {} flows, evenly spaced.").format(
            len(sampled_flows(range(crowd))), crowd
        )
    for contender in setup.contenders:
        if contender.unlike:
            yield Markup(
                "The flows of {} differ in start, application or path, and are too many for a row each."
            ).format(_bold([contender.title]))


def rtt_interval_ns(setup: Setup, rows: Sequence[Row]) -> int | None:
    """Return the time between RTT samples in ns, or None without RTTs and where every sample is recorded."""
    record = setup.scenario.get("record") or {}
    if record.get("rtts", True) or all(row.rtt_p50_ms is None for row in rows):
        return None
    return int(record["interval_ns"])


def of_builds(runs: Sequence[RecordedRun]) -> list[Markup]:
    """Return warnings about runs of a core that is no release build or does not match its sources."""
    builds = [run.recording.provenance.get("build") for run in runs]
    build_facts = [build if isinstance(build, Mapping) else {} for build in builds]
    notes = []
    for count, words in (
        (
            sum(build.get("profile") == core_build.QUICK for build in build_facts),
            Markup("{} made by a quick build (<code>make quick</code>): the same figures, but slower."),
        ),
        (
            sum(build.get("sources_changed_since") is True for build in build_facts),
            Markup(
                "{} made by a core older than its sources, which had changed since it was built: "
                "<code>make python</code> builds it anew."
            ),
        ),
    ):
        if count:
            subject = "All runs were" if count == len(runs) else f"{count} of {len(runs)} runs were"
            notes.append(words.format("The run was" if len(runs) == 1 else subject))
    return notes


def _machine_limits(contender: Contender) -> list[str]:
    """Return how the machine limited a contender's runs, on an engine in real time."""
    return [limit for verified in _verified(contender) for limit in verified.get("limits", ())]


def _real_links(contender: Contender) -> list[str]:
    """Return a sentence on each link that was a lab's real medium."""
    media = (verified.get("real_links", {}) for verified in _verified(contender))
    return [about["words"] for links in media for about in links.values()]


def _failed_programs(contender: Contender) -> list[str]:
    """Return a line on each program of a contender's runs that did not end by itself with status 0."""
    return [line for verified in _verified(contender) for line in outcomes(verified)]


def _verified(contender: Contender) -> list[Mapping[str, Any]]:
    """Return what was verified of a contender's runs, on an engine with a kernel."""
    return [recording_of(bout.run).provenance.get("verified", {}) for bout in contender.bouts]


def limits_of(contender: Contender) -> dict[str, float]:
    """Return what kept the sender from sending more, as shares of its samples, the most frequent first.

    A flow without any data that arrived is left out, since it has no connection to limit.
    """
    totals: dict[str, int] = {}
    for bout in contender.bouts if contender.is_tcp else []:
        carried = {row.get("flow") for row in bout.results if row.get("goodput_bps")}
        for flow in sampled_flows([flow for flow in flows_of(bout) if flow.flow in carried]):
            for reason, samples in recording_of(bout.run).limits(flow).items():
                totals[reason] = totals.get(reason, 0) + samples
    everything = sum(totals.values())
    return {
        reason: samples / everything
        for reason, samples in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    }


def _bold(titles: list[str]) -> Markup:
    return Markup(quantity.listing([f"<strong>{Markup.escape(title)}</strong>" for title in titles]))  # noqa: S704 - escaped
