"""What a reader must know before believing that a figure is about congestion control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from dragstrip import built
from dragstrip.intervals import REPEATS_MIN
from dragstrip.report.load import RecordedRun, flows_of, recording_of
from dragstrip.standings import quantity
from dragstrip.standings.setups import FLOWS_DRAWN_MAX, Contender, Setup, drawn
from dragstrip.standings.stats import Row
from dragstrip.standings.verdict import reach

# A sender that something else than its window held back for longer says little about its algorithm.
LIMITED_SHARE_MAX = 0.2


def cautions(setup: Setup, rows: list[Row]) -> list[Markup]:
    """Senders that something else than their window held back, flows without data, runs that are too few."""
    notes = []
    if reach(setup):
        notes.append(
            Markup(
                "{}, and something here draws random numbers: another seed may give another order. From {} "
                "repeats on, differences are judged (<code>--repeat</code>)."
            ).format("One run" if setup.repeats == 1 else f"{setup.repeats} runs", REPEATS_MIN)
        )
    limited = {limit: None for contender in setup.contenders for limit in _machine_limits(contender)}
    if limited:
        notes.append(Markup("The machine limited a run, not the path: {}.").format("; ".join(limited)))
    held_back = [(contender.title, limits_of(contender)) for contender in setup.contenders]
    for reason, name in (
        ("rwnd", "the receive window"),
        ("sndbuf", "the send buffer"),
        ("app", "the application"),
    ):
        held = [(title, limits.get(reason, 0.0)) for title, limits in held_back]
        held = [(title, share) for title, share in held if share > LIMITED_SHARE_MAX]
        if held:
            least, most = min(share for _, share in held), max(share for _, share in held)
            span = f"{least * 100:.0f}" + (
                f" to {most * 100:.0f}" if round(most, 2) > round(least, 2) else ""
            )
            notes.append(
                Markup("{} {} held back by {} for {} % of the time: that is not congestion control.").format(
                    _bold([title for title, _ in held]), "was" if len(held) == 1 else "were", name, span
                )
            )
    silent = [
        c.title
        for c in setup.contenders
        if not any(row.get("goodput_bps") for b in c.bouts for row in b.results)
    ]
    if silent:
        notes.append(Markup("Nothing of {} arrived.").format(_bold(silent)))
    crowd = max((row.flows for row in rows), default=0)
    if crowd > FLOWS_DRAWN_MAX:
        notes.append(
            Markup("Curves and distributions are those of {} of its {} flows, evenly spaced.").format(
                len(drawn(range(crowd))), crowd
            )
        )
    for contender in setup.contenders:
        if contender.unlike:
            notes.append(
                Markup(
                    "The flows of {} differ in start, application or path, and are too many for a row each."
                ).format(_bold([contender.title]))
            )
    return notes


def of_builds(runs: Sequence[RecordedRun]) -> list[Markup]:
    """Runs of a core that was not built as a release is, or not of the sources beside it."""
    builds = [run.recording.provenance.get("build") for run in runs]
    known = [build if isinstance(build, Mapping) else {} for build in builds]
    notes = []
    for count, words in (
        (
            sum(build.get("profile") == built.QUICK for build in known),
            Markup("{} made by a quick build (<code>make quick</code>): the same figures, but slower."),
        ),
        (
            sum(build.get("sources_changed_since") is True for build in known),
            Markup(
                "{} made by a core older than its sources, which had changed since it was built: "
                "<code>make python</code> builds it anew."
            ),
        ),
    ):
        if count:
            which = "All runs were" if count == len(runs) else f"{count} of {len(runs)} runs were"
            notes.append(words.format("The run was" if len(runs) == 1 else which))
    return notes


def _machine_limits(contender: Contender) -> list[str]:
    """How the machine limited its runs, on an engine in real time."""
    found = (recording_of(bout.run).provenance.get("verified", {}) for bout in contender.bouts)
    return [limit for verified in found for limit in verified.get("limits", ())]


def limits_of(contender: Contender) -> dict[str, float]:
    """What kept the sender from sending more, as shares of its samples, the commonest first.

    A flow of which nothing arrived has no connection to be limited.
    """
    totals: dict[str, int] = {}
    for bout in contender.bouts if contender.is_tcp else []:
        carried = {row.get("flow") for row in bout.results if row.get("goodput_bps")}
        for flow in drawn([flow for flow in flows_of(bout) if flow.flow in carried]):
            for reason, samples in recording_of(bout.run).limits(flow).items():
                totals[reason] = totals.get(reason, 0) + samples
    everything = sum(totals.values())
    return {
        reason: samples / everything
        for reason, samples in sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    }


def _bold(titles: list[str]) -> Markup:
    return Markup(quantity.listing([f"<strong>{Markup.escape(title)}</strong>" for title in titles]))  # noqa: S704 - escaped
