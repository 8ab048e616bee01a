"""Findings from the evidence, each with the causes that fit, its certainty, and a measurement to confirm it.

Scope: delay, queues, ECN, healthy paths and unknowns; `losses` and `limits` have the rest. Out of scope:
changes (`advice`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from dragstrip.analysis.diagnosis.courses import (
    bypassed_shaper,
    delay_in_a_part,
    lost_datagrams,
    lost_pings,
    outages,
    path_changes,
)
from dragstrip.analysis.diagnosis.delays import Delay, gap_s, of_flow
from dragstrip.analysis.diagnosis.evidence import (
    BLOAT_MS,
    FRAME_OVER_PAYLOAD,
    Evidence,
    concurrent,
    is_bypassed,
    unshared,
)
from dragstrip.analysis.diagnosis.finding import (
    AMBIGUOUS,
    CAPTURE,
    IDLE_PING,
    LISTING,
    LOADED_PING,
    THROUGHPUT,
    Finding,
    facts_at,
)
from dragstrip.analysis.diagnosis.limits import FILLED, limits
from dragstrip.analysis.diagnosis.loss_causes import LOSS_SHARE, LOSSES_MIN
from dragstrip.analysis.diagnosis.losses import losses
from dragstrip.analysis.diagnosis.observations import (
    BEST_EFFORT,
    BUSY_BYTES,
    COMMAND_LINE,
    SIMULATION,
    Fact,
    ObservedFlow,
)
from dragstrip.analysis.diagnosis.wording import figure

Figures: TypeAlias = dict[str, float | str]
"""Figures of a finding, by the placeholder in its sentence."""

HALF_FULL = 0.5
"""The share of a simulated path's rate below which nothing is said about its queue."""
FIFO_MS = 30.0
"""Delay of a full FIFO from which on it is worth a finding."""
ALIKE_MS, ALIKE = 15.0, 0.3
"""Queueing delay, or its share of the idle RTT if that is more, up to which idle and loaded RTT are alike:
the target of PIE (RFC 8033)."""
WHERE_ELSE = ("other_bottleneck", "bufferbloat_up", "ack_path")
"""Places of a queue that an AQM does not hold: at another link, or in the other direction."""
MOST = 0.6
"""Share of the queueing delay (95 %) from which on it is that of one direction."""
SLOW_SHAPER = 0.75
"""A shaper's rate over the line's below which the shaper is what makes the path slow."""


def findings(evidence: Evidence) -> list[Finding]:
    """Return what is wrong, most disturbing first, then what cannot be known."""
    path_findings = [finding for rule in RULES for finding in rule(evidence)]
    healthy = ("aqm", "marked_class") if not evidence.simulated else ("aqm", "marked_class", "no_ecn", "fifo")
    if not any(finding.name not in healthy for finding in path_findings):
        path_findings = [*path_findings, *_nothing(evidence)]
    if evidence.simulated:
        path_findings = [_as_likely(finding, evidence.queue is None) for finding in path_findings]
    order: dict[str, int] = {"certain": 0, "likely": 0, "cannot know": 1}
    return sorted([*path_findings, *_unknown(evidence)], key=lambda finding: order[finding.certainty])


def _as_likely(finding: Finding, assumed: bool) -> Finding:
    """Return a finding of a run on the simulator: what the path is said to be, not what was measured.

    Of a path without a queue, for which one was `assumed`, it says nothing about delays and losses.
    """
    if all(fact.basis == "exact" for fact in finding.evidence):
        return finding
    if assumed and finding.name not in ("receive_window", "send_buffer", "no_ecn"):
        template = f"{finding.template} (if the queue is a FIFO, the default of compare, which was assumed)"
        return replace(finding, template=template, certainty="cannot know", measure=LISTING)
    if finding.certainty != "certain":
        return finding
    return replace(finding, certainty="likely")


def direction(evidence: Evidence) -> str:
    """Return where captures at two points show the queue of the longest delay: there, back or nothing.

    What neither way between the captures explains waited behind the second, at the receiver's own interface:
    that is the way of the acknowledgements.
    """
    flow = evidence.delay.flow if evidence.delay is not None else None
    if flow is None or flow.capture_pair is None or evidence.delay is None:
        return ""
    forward_ms, backward_ms = flow.capture_pair.there_p95_ms or 0.0, flow.capture_pair.back_p95_ms or 0.0
    high = evidence.delay.high_ms
    if forward_ms >= MOST * high:
        return "there"
    return "back" if forward_ms <= (1 - MOST) * high or backward_ms >= MOST * high else ""


def _is_forward(evidence: Evidence) -> bool:
    """Return whether the queue is known to be in the data's direction."""
    delay = evidence.delay
    if evidence.simulated or direction(evidence) == "there":
        return True
    path = delay.flow.path if delay is not None and delay.flow is not None else None
    return path is not None and path.queue in ("tail drop", "shaper")


def _opposite(evidence: Evidence) -> ObservedFlow | None:
    """Returns a captured flow that runs against the flow with the longest delay, or None."""
    delayed = evidence.delay.flow if evidence.delay is not None else None
    if delayed is None or delayed.path is None:
        return None
    opposite = (
        flow
        for flow in evidence.observed.flows
        if flow.bytes >= BUSY_BYTES and flow.source == delayed.source and flow.opposes(delayed)
    )
    return max(opposite, key=lambda flow: flow.bytes, default=None)


def buffer_bytes(evidence: Evidence) -> float | None:
    """Return the buffer that a capture shows, or what queued at the 95th percentile of the RTT, if known."""
    busiest = evidence.busiest
    path = busiest.path if busiest is not None and (busiest.drained or evidence.idle_is_bound) else None
    if path is not None and path.buffer_bytes.value is not None:
        return path.buffer_bytes.value
    if evidence.delay is None or evidence.line_bps is None:
        return None
    return evidence.delay.high_ms / 1e3 * evidence.line_bps / 8


def meets_flows(evidence: Evidence) -> bool:
    """Return whether the longest delay may be that of the flows, whose goodput then says what its queue has.

    It is not if pings wait while a busy flow does not, at the same time or at one that is not known.
    """
    delay = evidence.delay
    if delay is None or delay.certain:
        return delay is None or unshared(delay, evidence.delays) is None
    return not any(series.certain and series.traffic_class in BEST_EFFORT for series in evidence.delays)


def bufferbloat(evidence: Evidence) -> Iterator[Finding]:
    """The RTT under load is far above the idle RTT of the same hosts and class."""
    delay = evidence.delay
    if delay is None or not evidence.bloated:
        return
    facts = [delay.idle, delay.p50, *([] if delay.summed_up else [delay.p95])]
    if not delay.certain and not delay.quiet:
        yield _varying_delay(delay, facts)
        return
    template, figures = _delay_words(delay, evidence.idle_is_bound)
    shared = meets_flows(evidence)
    name = "ack_path" if (way := direction(evidence)) == "back" else "bufferbloat"
    template += f". It was measured {delay.phase}" if delay.phase else ""
    if shared and not delay.phase and way != "back":  # else the rate may be that of the other direction
        template += _buffer_words(evidence, delay, figures, facts)
    if way:
        facts += [fact for fact in evidence.facts if fact.name in ("queueing_there_ms", "queueing_back_ms")]
        where = "in the data's direction" if way == "there" else "on the way back, of the acknowledgements"
        template += f". The captures at two points show the queue {where}"
    causes: tuple[str, ...] = (name,)
    if name == "ack_path":
        causes = ("ack_path", "bufferbloat_up")
    elif not _is_forward(evidence):
        causes = ("bufferbloat", "bufferbloat_up", "ack_path")
        template += ". In which direction the queue is, one point of measurement does not show"
    elif not way and (opposite := _opposite(evidence)) is not None and delay.flow is not None:
        causes = ("bufferbloat", "bufferbloat_up")
        figures |= {"delayed_flow": delay.flow.label, "opposite_flow": opposite.label}
        template += ". The queue is in the direction of {delayed_flow}, on the way back of {opposite_flow}"
    sure = delay.certain and not evidence.idle_is_bound and name != "ack_path" and not delay.foreign
    yield Finding(
        name,
        template,
        "certain" if sure and shared else "likely",
        figures,
        tuple(facts),
        "delay",
        IDLE_PING if evidence.idle_is_bound else "" if delay.certain else LOADED_PING,
        causes=causes,
    )


def _trip_words(delay: Delay) -> tuple[str, str, Figures]:
    """Return the RTT under load and the queueing delay as placeholders, and the figures for them."""
    center = float(delay.p50.value)
    high = {} if delay.summed_up else {"rtt_p95_ms": float(delay.p95.value)}
    figures: Figures = {"idle_rtt_ms": float(delay.idle.value)}
    if delay.averaged:
        figures |= {**high, "rtt_mean_ms": center, "excess_mean_ms": delay.excess_ms}
        return "{rtt_mean_ms} (mean)", "{excess_mean_ms}", figures
    figures |= {"rtt_p50_ms": center, **high, "excess_p50_ms": delay.excess_ms}
    percentile = " and {rtt_p95_ms} (95 %)" if high else ""
    return "{rtt_p50_ms} (median)" + percentile, "{excess_p50_ms}", figures


def _varying_delay(delay: Delay, facts: Sequence[Fact]) -> Finding:
    """Return the finding of pings of which no part is quiet: a queue, or a link whose own delay varies."""
    center, _, figures = _trip_words(delay)
    quiet = "the file has only a summary" if delay.summed_up else "no part of the pings is quiet"
    return Finding(
        AMBIGUOUS,
        f"The RTT is {center} instead of {{idle_rtt_ms}} at best, and {quiet}: a queue under load, or a "
        "link whose own delay varies (Wi-Fi's power save, mobile, satellite): cannot tell",
        "likely",
        figures,
        tuple(facts),
        "",
        LOADED_PING,
        causes=("bufferbloat", "bufferbloat_up", "ack_path", "link_jitter"),
    )


def _delay_words(delay: Delay, bound: bool) -> tuple[str, Figures]:
    """Return the sentence on the queueing delay and its figures; `bound`: the idle RTT is an upper bound."""
    center, excess, figures = _trip_words(delay)
    if bound:
        return (
            f"Bufferbloat: under load the RTT is {center}, and never less than {{idle_rtt_ms}}; the queue "
            f"adds {excess} or more, for it was never seen empty",
            figures,
        )
    if not delay.certain:
        return (
            f"Bufferbloat: the RTT is {center} instead of {{idle_rtt_ms}} at best, {excess} more; no file "
            "shows whether flows were busy meanwhile",
            figures,
        )
    least = is_least(delay)
    idle = "at most {idle_rtt_ms}" if least else "{idle_rtt_ms}"
    sentence = f"Bufferbloat: under load the RTT is {center} instead of {idle} idle; the queue adds {excess}"
    sentence += " or more: no file has the RTT of the idle path" if least else ""
    sentence += "; the idle RTT is that of a run at another time" if delay.foreign else ""
    return sentence, figures


def _buffer_words(evidence: Evidence, delay: Delay, figures: Figures, facts: list[Fact]) -> str:
    """Return the clause on the buffer's size, and add its figures and facts; empty if it is not known."""
    size, line = buffer_bytes(evidence), evidence.line_bps
    if size is None or line is None:
        return ""
    figures |= {"buffer_bytes": size, "rate_bps": line}
    clause = ""
    if evidence.rate is not None and not evidence.slower_line and not evidence.elsewhere:
        facts.append(evidence.rate)
        least = evidence.idle_is_bound or is_least(delay)
        about = "{buffer_bytes} or more" if least else "about {buffer_bytes}"
        clause = f". At {{rate_bps}} that is a buffer of {about}"
    elif evidence.floor is not None:
        facts.append(evidence.floor)
        clause = ". At {rate_bps} or more that is a buffer of {buffer_bytes} or more"
    if evidence.elsewhere and evidence.rate is not None:
        figures["line_bps"] = float(evidence.rate.value)
        clause += (
            ". The line of {line_bps} carries less than half of its rate: the queue is at another, slower "
            "link, or traffic that no file shows takes the rest"
        )
    return clause


def marked_class(evidence: Evidence) -> Iterator[Finding]:
    """Only packets of a marked class wait long, and best effort does not."""
    late = [
        series
        for series in evidence.delays
        if series.certain and series.traffic_class not in BEST_EFFORT and series.excess_ms >= BLOAT_MS
    ]
    plain = [series for series in evidence.delays if series.certain and series.traffic_class in BEST_EFFORT]
    if not late or not plain or plain[0].excess_ms >= BLOAT_MS:
        return
    delay, best_effort = late[0], plain[0]
    yield Finding(
        "marked_class",
        "Only the class {class} waits: {series} has an RTT of {rtt_p50_ms} (median) instead of "
        "{idle_rtt_ms}, while best effort waits {excess_p50_ms}; a class of its own is queued apart",
        "certain",
        {
            "class": delay.traffic_class,
            "series": delay.p50.place,
            "rtt_p50_ms": float(delay.p50.value),
            "idle_rtt_ms": float(delay.idle.value),
            "excess_p50_ms": best_effort.excess_ms,
        },
        (delay.idle, delay.p50, best_effort.idle, best_effort.p50),
    )


def bufferbloat_up(evidence: Evidence) -> Iterator[Finding]:
    """The RTT is far above the idle RTT while the return path is loaded."""
    facts = {fact.name: fact for fact in evidence.facts if fact.name.startswith("up_")}
    middle, high, rate = (facts.get(name) for name in ("up_rtt_p50_ms", "up_rtt_p95_ms", "up_rate_bps"))
    idle = evidence.idle
    if middle is None or high is None or rate is None or idle is None:
        return
    if float(middle.value) - float(idle.value) < BLOAT_MS:
        return
    yield Finding(
        "bufferbloat_up",
        "Bufferbloat on the return path: under uploads the RTT is {up_rtt_p50_ms} (median) and "
        "{up_rtt_p95_ms} (95 %) instead of {idle_rtt_ms} idle; it has {up_rate_bps}",
        "likely",
        {**{name: float(fact.value) for name, fact in facts.items()}, "idle_rtt_ms": float(idle.value)},
        (idle, middle, high, rate),
        "delay",
        "iperf3 -c HOST --bidir -t 30 -J > load.json & ping -D -i 0.2 -c 140 HOST > loaded.txt",
    )


def wrong_rate(evidence: Evidence) -> Iterator[Finding]:
    """A shaper's rate is above that of the line, so that the queue is in front of the line."""
    queue = evidence.queue
    if queue is None or queue.shaped_bps is None:
        return
    shaped, *_ = facts_at(evidence, (queue.source, queue.place), ("rate_bps",))
    line_rates = [
        f for f in evidence.facts if f.name == "rate_bps" and f.source == COMMAND_LINE and f is not shaped
    ]
    if line_rates and queue.shaped_bps > float(line_rates[0].value):
        yield Finding(
            "shaper_above_line",
            "The shaper's rate of {shaper_bps} is above the line's {line_bps}: the queue builds up in front "
            "of the line, where the discipline does not manage it",
            "certain",
            {"shaper_bps": queue.shaped_bps, "line_bps": float(line_rates[0].value)},
            (shaped, line_rates[0]),
            "delay",
        )
        return
    if is_bypassed(queue, evidence.floor):
        return
    if line_rates and queue.shaped_bps < SLOW_SHAPER * float(line_rates[0].value) and not queue.polices:
        reached = evidence.floor is not None and (
            float(evidence.floor.value) * FRAME_OVER_PAYLOAD >= FILLED * queue.shaped_bps
        )
        yield Finding(
            "shaper_below_line",
            "The shaper's rate of {shaper_bps} is far below the line's {line_bps}"
            + (", and what arrives is all that it lets pass" if reached else ""),
            "certain" if reached else "likely",
            {"shaper_bps": queue.shaped_bps, "line_bps": float(line_rates[0].value)},
            (shaped, line_rates[0], *([evidence.floor] if reached and evidence.floor is not None else [])),
        )
    excess = evidence.excess_ms
    if evidence.floor is None or excess is None or not evidence.slower_line:
        return
    template = (
        "The shaper is set to {shaper_bps}, but only {goodput_bps} arrive, and {excess_p50_ms} of "
        "queueing delay are measured: the line is slower than the shaper, and the queue builds up in front "
        "of the line"
    )
    causes: tuple[str, ...] = ("shaper_above_line",)
    if not _is_forward(evidence):
        template += ", or the queue is on the way back, which delays acknowledgements"
        causes = ("shaper_above_line", "bufferbloat_up", "ack_path")
    yield Finding(
        "shaper_above_line",
        template,
        "likely",
        {
            "shaper_bps": queue.shaped_bps,
            "goodput_bps": float(evidence.floor.value),
            "excess_p50_ms": excess,
        },
        (shaped, evidence.floor),
        "delay",
        THROUGHPUT,
        causes=causes,
    )


def unshaped_aqm(evidence: Evidence) -> Iterator[Finding]:
    """An AQM without a shaper is there, and the delay arises elsewhere."""
    queue, excess = evidence.queue, evidence.excess_ms
    if queue is None or excess is None or queue.source in (COMMAND_LINE, SIMULATION):
        return
    if not evidence.bloated or not queue.is_aqm or queue.shaped_bps is not None:
        return
    of_queue = facts_at(evidence, (queue.source, queue.place), ("queue", "dropped", "marked"))
    yield Finding(
        "other_bottleneck",
        "{kind} on {device} does not hold the queue: {excess_p50_ms} of queueing delay are measured, and "
        "without a shaper it manages the queue only if its own interface is the bottleneck",
        "likely",
        {"kind": queue.kind, "device": queue.device or "the interface", "excess_p50_ms": excess},
        of_queue,
        "delay",
        LISTING,
        causes=("other_bottleneck",) if _is_forward(evidence) else WHERE_ELSE,
    )


def fifo(evidence: Evidence) -> Iterator[Finding]:
    """The queue is a plain FIFO."""
    queue = evidence.queue
    if queue is None or not queue.is_fifo or queue.polices:
        return
    if evidence.simulated and not evidence.bloated:
        return
    facts = facts_at(evidence, (queue.source, queue.place), ("queue", "rate_bps"))
    delay = evidence.full_ms
    if delay is not None and delay < FIFO_MS:
        return
    figures: dict[str, float | str] = {"queue": queue.words}
    template = "The queue is a plain FIFO ({queue}): every flow waits behind all others, until it is full"
    if delay is not None:
        figures["full_ms"] = delay
        template += ", and then for {full_ms}"
    yield Finding("fifo", template, "certain", figures, facts, "delay")


def ecn(evidence: Evidence) -> Iterator[Finding]:
    """A queue on the flow's path marks, but the flow has not negotiated ECN.

    A listing has the queues of every interface: one that dropped nothing counts only if it is the one that
    matters.
    """
    marking = [
        queue
        for queue in evidence.observed.queues
        if queue.marks and (queue is evidence.queue or queue.dropped)
    ]
    flow = evidence.busiest
    if not marking or flow is None or flow.ecn is not False:
        return
    queue = marking[0]
    facts = [*facts_at(evidence, (queue.source, queue.place), ("queue", "marked"))]
    facts += [fact for fact in evidence.facts if fact.name == "ecn" and fact.source == flow.source][:1]
    yield Finding(
        "no_ecn",
        "{kind} marks packets of flows with ECN, but the flow has not negotiated it: it loses segments "
        "instead",
        "certain",
        {"kind": queue.kind},
        tuple(facts),
        "loss",
        queue=queue,
    )


def unanswered(evidence: Evidence) -> Iterator[Finding]:
    """Connections whose SYNs nobody answered."""
    rows = evidence.observed.unanswered
    if not rows:
        return
    syns = sum(row.syns for row in rows)
    yield Finding(
        "no_answer",
        "No answer: {unanswered} connections were opened with {syns} SYNs, {retransmitted} of them "
        "retransmitted, and nobody answered {server}",
        "certain",
        {
            "unanswered": len(rows),
            "syns": syns,
            "retransmitted": sum(row.retransmitted for row in rows),
            "server": "at " + ", ".join(sorted({row.server for row in rows})[:3]),
        },
        tuple(fact for fact in evidence.facts if fact.name == "syns"),
        measure="ping -c 5 HOST; nc -vz HOST PORT    # does the host answer, does the port?",
    )


def is_alike(delay: Delay) -> bool:
    """Return whether idle and loaded round trips are alike."""
    return delay.excess_ms <= max(ALIKE_MS, ALIKE * float(delay.idle.value))


def _nothing(evidence: Evidence) -> Iterator[Finding]:
    """Yield that nothing is wrong, if that is shown: rate, idle and loaded RTT known, losses few."""
    if evidence.simulated:
        yield from _nothing_simulated(evidence)
        return
    delay, rate, flow = evidence.delay, evidence.rate, evidence.busiest
    if delay is None or not delay.certain or not delay.apart or not is_alike(delay):
        return
    if rate is None or flow is None or evidence.floor is None or evidence.slower_line:
        return
    filled = float(evidence.floor.value) * FRAME_OVER_PAYLOAD / float(rate.value)
    share = flow.retransmitted_share
    if filled < FILLED or share is None or share >= LOSS_SHARE:
        return
    doubts = list(_doubts(evidence, delay))
    if doubts or evidence.conflicts:
        for doubt in doubts:
            yield _missing("nothing_wrong", f"Whether all is well: {doubt}", LOADED_PING)
        return
    facts = [delay.idle, delay.p50, rate, evidence.floor]
    facts += facts_at(evidence, (flow.source, flow.label), ("retransmitted_share",))
    yield Finding(
        "nothing",
        "Nothing is wrong in what was measured: {goodput_bps} arrive of a rate of {rate_bps}, the queue adds "
        "{excess_p50_ms} to an RTT of {idle_rtt_ms}, and {retransmitted_share} of the segments are "
        "retransmitted",
        "certain" if rate.basis == "exact" else "likely",
        {
            "goodput_bps": float(evidence.floor.value),
            "rate_bps": float(rate.value),
            "excess_p50_ms": max(0.0, delay.excess_ms),
            "idle_rtt_ms": float(delay.idle.value),
            "retransmitted_share": share,
        },
        tuple(facts),
    )


def _doubts(evidence: Evidence, delay: Delay) -> Iterator[str]:
    """Yield what speaks against a path on which nothing is wrong, and is no finding of its own."""
    if delay.flow is not None and not any(delay.flow is flow for flow in evidence.loading):
        yield "delay and goodput are of different directions or times"
    for series in evidence.delays:
        if series.traffic_class in BEST_EFFORT and not series.summed_up and _is_late(series):
            value = figure("rtt_p95_ms", float(series.p95.value))
            least = figure("idle_rtt_ms", float(series.idle.value))
            yield f"{series.p95.source} has an RTT of {value} (95 %), {least} idle"
    for probe in evidence.observed.probes:
        if probe.loaded is not False or probe.rtt_p50_ms is None or not probe.hosts & delay.hosts:
            continue
        if probe.traffic_class in BEST_EFFORT and probe.rtt_p50_ms - float(delay.idle.value) >= BLOAT_MS:
            value = figure("rtt_p50_ms", probe.rtt_p50_ms)
            yield f"{probe.source} has an RTT of {value} (median) while no flow of the files was busy"
    yield from _unfilled(evidence)
    for flow in evidence.observed.flows:
        share = flow.retransmitted_share
        if share is not None and share >= LOSS_SHARE and (flow.retransmitted or 0) >= LOSSES_MIN:
            yield f"{flow.source} has {figure('retransmitted_share', share)} retransmitted"


def _unfilled(evidence: Evidence) -> Iterator[str]:
    """Yield busy flows of the other direction, or of another time, that do not fill the known rate."""
    main = evidence.loading[0]
    for group in concurrent(evidence.observed.flows):
        first = group[0]
        if not any(flow.busy for flow in group) or any(flow is main for flow in group):
            continue
        reverse = bool(first.sender) and first.sender != main.sender and first.sender in main.hosts
        later = first.hosts == main.hosts and gap_s(first.clock_s, main.clock_s) > 0
        goodput = sum(flow.bytes for flow in group) * 8 / max(flow.duration_s for flow in group)
        filled = evidence.rate is not None and (
            goodput * FRAME_OVER_PAYLOAD >= FILLED * float(evidence.rate.value)
        )
        if (reverse or later) and not filled:
            where = "in the other direction" if reverse else "at another time"
            yield f"{first.source} has {figure('goodput_bps', goodput)} {where}, whose rate is not known"


def _is_late(delay: Delay) -> bool:
    """Return whether the 95th percentile of a delay is no longer alike the idle RTT."""
    return not is_alike(delay) or delay.high_ms > max(BLOAT_MS, ALIKE * float(delay.idle.value))


def is_least(delay: Delay) -> bool:
    """Return whether a flow's own shortest smoothed RTT stands for the idle one: the delay is at least so."""
    flow = delay.flow
    return flow is not None and flow.smoothed and not delay.apart and delay.idle.source == flow.source


def _nothing_simulated(evidence: Evidence) -> Iterator[Finding]:
    delay, rate, flow = evidence.delay, evidence.rate, evidence.busiest
    if delay is None or evidence.queue is None or rate is None or flow is None:
        return  # a queue was assumed
    together = sum(simulated_flow.goodput_bps for simulated_flow in evidence.observed.flows)
    if together * FRAME_OVER_PAYLOAD < HALF_FULL * float(rate.value):
        yield Finding(
            "not_filled",
            "What happens when the path is full: in the simulated time its flows reached {goodput_bps} of "
            "{rate_bps}",
            "cannot know",
            {"goodput_bps": together, "rate_bps": float(rate.value)},
            (rate,),
            measure=THROUGHPUT,
        )
        return
    yield Finding(
        "nothing",
        "Nothing is wrong in a simulation of the path: the queue adds {excess_p50_ms} to an RTT of "
        "{idle_rtt_ms}",
        "certain",
        {"excess_p50_ms": max(0.0, delay.excess_ms), "idle_rtt_ms": float(delay.idle.value)},
        (delay.idle, delay.p50),
    )


def _unknown(evidence: Evidence) -> Iterator[Finding]:
    """Yields the gaps in the evidence, each with the measurement that would close it."""
    if evidence.simulated:
        yield _missing(
            "measured",
            "Nothing was measured: a simulation of the path as described stands for it",
            LOADED_PING,
        )
        return
    if evidence.idle is None:
        yield _missing("idle_rtt", "The RTT of the idle path: no file has one", IDLE_PING)
    if evidence.delay is None and any(of_flow(flow) for flow in evidence.observed.flows):
        pass  # a contradiction says why the RTT of a flow is no delay
    elif evidence.delay is None:
        yield _missing("rtt_under_load", "The RTT under load: no file has one of a busy path", LOADED_PING)
    elif not evidence.delay.certain and not evidence.bloated:
        yield _missing("rtt_under_load", "Whether flows were busy while the pings ran", LOADED_PING)
    if evidence.rate is None:
        sentence = (
            "The bottleneck's rate: no file and no option has one"
            if evidence.floor is None
            else "The bottleneck's rate: the goodput is only the least that it can be (--rate gives it)"
        )
        yield _missing("rate", sentence, THROUGHPUT if evidence.floor is None else LISTING)
    if evidence.queue is None and not any(fact.name == "capture_queue" for fact in evidence.facts):
        yield _missing("queue", "The queue discipline at the bottleneck", LISTING)
    elif evidence.queue is not None and evidence.queue.queue is None:
        device = evidence.queue.device or "the interface"
        figures: dict[str, float | str] = {"queue": evidence.queue.words, "device": device}
        why = ""
        if evidence.queue.refused:
            figures["refused"], why = evidence.queue.refused, " ({refused})"
        yield Finding(
            "queue_settings",
            f"How {{queue}} on {{device}} behaves: the simulator cannot be given these settings{why}",
            "cannot know",
            figures,
        )
    elif evidence.queue is not None and evidence.queue.kind == "htb" and evidence.queue.shaped_bps is None:
        yield _missing("rate", "The rates of htb's classes: a listing of disciplines has none", LISTING)
    if not any(flow.retransmitted is not None for flow in evidence.observed.flows):
        yield _missing("loss", "Losses: no file counts retransmissions", CAPTURE)


def _missing(name: str, sentence: str, measure: str) -> Finding:
    return Finding(name, sentence, "cannot know", {}, (), "", measure)


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    unanswered,
    outages,
    bufferbloat,
    delay_in_a_part,
    path_changes,
    bypassed_shaper,
    bufferbloat_up,
    wrong_rate,
    unshaped_aqm,
    losses,
    lost_pings,
    lost_datagrams,
    limits,
    marked_class,
    ecn,
    fifo,
)
