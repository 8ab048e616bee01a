"""What evidence means: rules with thresholds, each of which says how sure it is and what would tell.

Belongs here: a function per rule, from evidence to findings. Does not belong here: what to change, which
`advice` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from dragstrip.diagnosis.evidence import (
    BLOAT_MS,
    COMMAND_LINE,
    FRAME_OVER_PAYLOAD,
    SIMULATION,
    Evidence,
    Flow,
)
from dragstrip.diagnosis.finding import (
    CAPTURE,
    IDLE_PING,
    LISTING,
    LOADED_PING,
    SS,
    THROUGHPUT,
    Certainty,
    Finding,
    facts_of,
)
from dragstrip.diagnosis.loss_rules import losses

WINDOW_SHARE = 0.3
"""Share of the time limited by a window, or by the application, from which on it is a finding."""
FILLED = 0.9
"""Share of the rate that frames take from which on the path is full."""
HALF_FULL = 0.5
"""The same share of a simulated path below which nothing is said about its queue."""
FIFO_MS = 30.0
"""Delay of a full FIFO from which on it is worth a finding."""


def found(evidence: Evidence) -> list[Finding]:
    """Return what is wrong, most disturbing first, then what cannot be known."""
    made = [finding for rule in RULES for finding in rule(evidence)]
    if not any(finding.complaint for finding in made):
        made = [*made, *_nothing(evidence)]
    if evidence.simulated:
        made = [_as_likely(finding, evidence.queue is None) for finding in made]
    order: dict[str, int] = {"certain": 0, "likely": 0, "cannot know": 1}
    return sorted([*made, *_unknown(evidence)], key=lambda finding: order[finding.certainty])


def _as_likely(finding: Finding, assumed: bool) -> Finding:
    """Return a finding of a run on the simulator: what the path is said to be, not what was measured.

    Of a path without a queue, for which one was `assumed`, it says nothing about delays and losses.
    """
    if all(fact.basis == "exact" for fact in finding.evidence):
        return finding
    if assumed and finding.name not in ("receive_window", "send_buffer"):
        template = f"{finding.template} (if the queue is a FIFO, the default of compare, which was assumed)"
        return replace(finding, template=template, certainty="cannot know", measure=LISTING)
    if finding.certainty != "certain":
        return finding
    return replace(finding, certainty="likely")


def direction(evidence: Evidence) -> str:
    """Return where captures at two points show the queue of the largest flow: there, back or nothing."""
    flows = [flow for flow in evidence.seen.flows if flow.between is not None]
    flow = max(flows, key=lambda flow: flow.bytes, default=None)
    return flow.between.direction if flow is not None and flow.between is not None else ""


def buffer_bytes(evidence: Evidence) -> float | None:
    """Return the buffer that a capture shows, or what queued at the 95th percentile of the RTT, if known."""
    busiest = evidence.busiest
    if busiest is not None and busiest.inferred is not None and busiest.inferred.buffer_bytes is not None:
        return busiest.inferred.buffer_bytes
    if evidence.idle is None or evidence.loaded is None or evidence.line_bps is None:
        return None
    return (float(evidence.loaded.p95.value) - float(evidence.idle.value)) / 1e3 * evidence.line_bps / 8


def _is_bloated(evidence: Evidence) -> bool:
    return evidence.excess_ms is not None and evidence.excess_ms >= BLOAT_MS


def bufferbloat(evidence: Evidence) -> Iterator[Finding]:
    """The RTT under load is far above the idle RTT."""
    excess, idle, loaded = evidence.excess_ms, evidence.idle, evidence.loaded
    if excess is None or idle is None or loaded is None or not _is_bloated(evidence):
        return
    figures: dict[str, float | str] = {
        "idle_rtt_ms": float(idle.value),
        "rtt_p50_ms": float(loaded.p50.value),
        "rtt_p95_ms": float(loaded.p95.value),
        "excess_p50_ms": excess,
    }
    template = (
        "Bufferbloat: under load the RTT is {rtt_p50_ms} (median) and {rtt_p95_ms} (95 %) instead of "
        "{idle_rtt_ms} idle; the queue adds {excess_p50_ms}"
    )
    if not loaded.certain:
        template = (
            "Bufferbloat: the RTT is {rtt_p50_ms} (median) and {rtt_p95_ms} (95 %) instead of "
            "{idle_rtt_ms} at best, {excess_p50_ms} more; the file does not say whether flows were busy"
        )
    used = [idle, loaded.p50, loaded.p95]
    size, line = buffer_bytes(evidence), evidence.line_bps
    if size is not None and line is not None:
        figures |= {"buffer_bytes": size, "rate_bps": line}
        if evidence.rate is not None and not evidence.slower_line:
            used.append(evidence.rate)
            template += ". At {rate_bps} that is a buffer of about {buffer_bytes}"
        elif evidence.floor is not None:
            used.append(evidence.floor)
            template += ". At {rate_bps} or more that is a buffer of {buffer_bytes} or more"
    way = direction(evidence)
    if way:
        used += [fact for fact in evidence.facts if fact.name in ("queueing_there_ms", "queueing_back_ms")]
        where = "in the data's direction" if way == "there" else "on the way back, of the acknowledgements"
        template += f". The captures at two points show the queue {where}"
    certainty: Certainty = "certain" if loaded.certain else "likely"
    yield Finding(
        "bufferbloat",
        template,
        certainty,
        figures,
        tuple(used),
        "delay",
        "" if loaded.certain else LOADED_PING,
    )


def bufferbloat_up(evidence: Evidence) -> Iterator[Finding]:
    """The RTT is far above the idle RTT while the return path is loaded."""
    facts = {fact.name: fact for fact in evidence.facts if fact.name.startswith("up_")}
    middle, high, rate = (facts.get(name) for name in ("up_rtt_p50_ms", "up_rtt_p95_ms", "up_rate_bps"))
    idle, upward, loaded = evidence.idle, evidence.upward, evidence.loaded
    if middle is None or high is None or rate is None or idle is None or upward is None:
        return
    both = bool(upward.get("both_ways"))
    before = float(loaded.p50.value) if both and loaded is not None else float(idle.value)
    if float(middle.value) - before < BLOAT_MS:
        return
    how = "with data both ways" if both else "under uploads"
    yield Finding(
        "bufferbloat_up",
        f"Bufferbloat on the return path: {how} the RTT is {{up_rtt_p50_ms}} (median) and {{up_rtt_p95_ms}} "
        "(95 %) instead of {idle_rtt_ms} idle; it has {up_rate_bps}",
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
    shaped = next(
        fact
        for fact in evidence.facts
        if fact.name == "rate_bps" and (fact.source, fact.place) == (queue.source, queue.place)
    )
    given = [
        f for f in evidence.facts if f.name == "rate_bps" and f.source == COMMAND_LINE and f is not shaped
    ]
    if given and queue.shaped_bps > float(given[0].value):
        yield Finding(
            "shaper_above_line",
            "The shaper's rate of {shaper_bps} is above the line's {line_bps}: the queue builds up in front "
            "of the line, where the discipline does not manage it",
            "certain",
            {"shaper_bps": queue.shaped_bps, "line_bps": float(given[0].value)},
            (shaped, given[0]),
            "delay",
        )
        return
    excess = evidence.excess_ms
    if evidence.floor is None or excess is None or not evidence.slower_line:
        return
    yield Finding(
        "shaper_above_line",
        "The shaper is set to {shaper_bps}, but only {goodput_bps} arrive, and {excess_p50_ms} of "
        "queueing delay are measured: the line is slower than the shaper, and the queue builds up in front "
        "of the line",
        "likely",
        {
            "shaper_bps": queue.shaped_bps,
            "goodput_bps": float(evidence.floor.value),
            "excess_p50_ms": excess,
        },
        (shaped, evidence.floor),
        "delay",
        THROUGHPUT,
    )


def unshaped_aqm(evidence: Evidence) -> Iterator[Finding]:
    """An AQM without a shaper is there, and the delay arises elsewhere."""
    queue, excess = evidence.queue, evidence.excess_ms
    if queue is None or excess is None or queue.source in (COMMAND_LINE, SIMULATION):
        return
    if not _is_bloated(evidence) or not queue.is_aqm or queue.shaped_bps is not None:
        return
    of_queue = tuple(facts_of(evidence, queue, "queue", "dropped", "marked"))
    yield Finding(
        "other_bottleneck",
        "{kind} on {device} does not hold the queue: {excess_p50_ms} of queueing delay are measured, and "
        "without a shaper it manages the queue only if its own interface is the bottleneck",
        "likely",
        {"kind": queue.kind, "device": queue.device or "the interface", "excess_p50_ms": excess},
        of_queue,
        "delay",
        LISTING,
    )


def fifo(evidence: Evidence) -> Iterator[Finding]:
    """The queue is a plain FIFO."""
    queue = evidence.queue
    if queue is None or not queue.is_fifo or queue.polices:
        return
    if evidence.simulated and not _is_bloated(evidence):
        return
    held = tuple(facts_of(evidence, queue, "queue", "rate_bps"))
    delay = evidence.full_ms
    if delay is not None and delay < FIFO_MS:
        return
    figures: dict[str, float | str] = {"queue": queue.words}
    template = "The queue is a plain FIFO ({queue}): every flow waits behind all others, until it is full"
    if delay is not None:
        figures["full_ms"] = delay
        template += ", and then for {full_ms}"
    yield Finding("fifo", template, "certain", figures, held, "delay")


def windows(evidence: Evidence) -> Iterator[Finding]:
    """A window of one of the hosts, not the path, limits a flow."""
    flow = max(evidence.seen.flows, key=lambda flow: flow.bytes, default=None)
    if flow is None or flow.limited is None or _is_full(evidence, flow):
        return
    known = tuple(
        fact
        for fact in evidence.facts
        if (fact.source, fact.place) == (flow.source, flow.label) and fact.name in OF_WINDOWS
    )
    receiver = flow.limited.get("receiver", 0.0)
    trip = flow.rtt_p50_ms or flow.rtt_min_ms
    if receiver >= WINDOW_SHARE and trip is not None:
        window = flow.goodput_bps / 8 * trip / 1e3
        figures: dict[str, float | str] = {
            "receiver_share": receiver,
            "goodput_bps": flow.goodput_bps,
            "rtt_p50_ms": trip,
            "window_bytes": window,
        }
        template = (
            "The receive window limits the flow for {receiver_share} of its time: {goodput_bps} at an RTT of "
            "{rtt_p50_ms} are {window_bytes} in flight"
        )
        template, figures = _needed(evidence, template, figures)
        yield Finding("receive_window", template, "certain", figures, known, "goodput")
    buffered = flow.limited.get("send_buffer", 0.0)
    if buffered >= WINDOW_SHARE:
        figures = {"send_buffer_share": buffered, "goodput_bps": flow.goodput_bps}
        template = "The send buffer limits the flow to {goodput_bps} for {send_buffer_share} of its time"
        template, figures = _needed(evidence, template, figures)
        yield Finding("send_buffer", template, "certain", figures, known, "goodput")
        return
    waiting = flow.limited.get("application", 0.0)
    if waiting < WINDOW_SHARE:
        return
    figures = {"application_share": waiting}
    if flow.steady_bytes is not None:
        figures["window_bytes"] = flow.steady_bytes
        template = (
            "The send buffer limits the flow: for {application_share} of its time it sends no more than "
            "{window_bytes} per round trip, always the same"
        )
        template, figures = _needed(evidence, template, figures)
        yield Finding("send_buffer", template, "likely", figures, known, "goodput", SS)
        return
    yield Finding(
        "sending_host",
        "Why the sending host limits the flow for {application_share} of its time: its application or its "
        "send buffer",
        "cannot know",
        {"application_share": waiting},
        known,
        "",
        SS,
    )


def _is_full(evidence: Evidence, flow: Flow) -> bool:
    """Whether a flow and those beside it fill the path, so that no window is too small."""
    if evidence.rate is None:
        return False
    together = sum(it.goodput_bps for it in evidence.seen.flows if it.source == flow.source)
    return together * FRAME_OVER_PAYLOAD >= FILLED * float(evidence.rate.value)


OF_WINDOWS = frozenset(
    {"receiver_share", "application_share", "send_buffer_share", "goodput_bps", "idle_rtt_ms", "rate_bps"}
)
"""Facts behind a finding about windows."""


def _needed(
    evidence: Evidence, template: str, figures: dict[str, float | str]
) -> tuple[str, dict[str, float | str]]:
    bdp = evidence.bdp_bytes
    if bdp is None or evidence.rate is None:
        return template + "; how much the path would take needs its rate", figures
    return template + "; the path takes {bdp_bytes} (its BDP)", {**figures, "bdp_bytes": bdp}


def ecn(evidence: Evidence) -> Iterator[Finding]:
    """The queue marks, but flows have not negotiated ECN."""
    marking = [queue for queue in evidence.seen.queues if queue.marks]
    flow = evidence.busiest
    if not marking or flow is None or flow.ecn is not False:
        return
    queue = marking[0]
    known = [*facts_of(evidence, queue, "queue", "marked")]
    known += [fact for fact in evidence.facts if fact.name == "ecn" and fact.source == flow.source][:1]
    yield Finding(
        "no_ecn",
        "{kind} marks packets of flows with ECN, but the flow has not negotiated it: it loses segments "
        "instead",
        "certain",
        {"kind": queue.kind},
        tuple(known),
        "loss",
        queue=queue,
    )


def _nothing(evidence: Evidence) -> Iterator[Finding]:
    excess, flow, idle, loaded = evidence.excess_ms, evidence.busiest, evidence.idle, evidence.loaded
    if excess is None or idle is None or loaded is None or not loaded.certain:
        return
    if evidence.simulated and evidence.queue is None:
        return  # a queue was assumed
    figures: dict[str, float | str] = {"excess_p50_ms": max(0.0, excess), "idle_rtt_ms": float(idle.value)}
    if evidence.simulated and (rate := evidence.rate) is not None and flow is not None:
        together = sum(it.goodput_bps for it in evidence.seen.flows)
        if together * FRAME_OVER_PAYLOAD < HALF_FULL * float(rate.value):
            yield Finding(
                "not_filled",
                "What happens when the path is full: in the simulated time its flows reached "
                "{goodput_bps} of {rate_bps}",
                "cannot know",
                {"goodput_bps": together, "rate_bps": float(rate.value)},
                (rate,),
                measure=THROUGHPUT,
            )
            return
    where = "a simulation of the path" if evidence.simulated else "what was measured"
    template = f"Nothing is wrong in {where}: the queue adds {{excess_p50_ms}} to an RTT of {{idle_rtt_ms}}"
    used = [idle, loaded.p50]
    if flow is not None and flow.retransmitted_share is not None:
        figures["retransmitted_share"] = flow.retransmitted_share
        template += ", and {retransmitted_share} of the segments are sent again"
        used += [
            fact
            for fact in evidence.facts
            if fact.name == "retransmitted_share" and (fact.source, fact.place) == (flow.source, flow.label)
        ]
    # The least RTT of the very flow that loads the path may hide a queue that was never empty.
    apart = idle.basis == "exact" or (idle.source, idle.place) != (loaded.p50.source, loaded.p50.place)
    yield Finding("nothing", template, "certain" if apart else "likely", figures, tuple(used))


def _unknown(evidence: Evidence) -> Iterator[Finding]:
    """What the evidence cannot show, with the measurement that would."""
    if evidence.simulated:
        yield _missing(
            "measured",
            "Nothing was measured: a simulation of the path as described stands for it",
            LOADED_PING,
        )
        return
    if evidence.idle is None:
        yield _missing("idle_rtt", "The RTT of the idle path: no file has one", IDLE_PING)
    if evidence.loaded is None:
        yield _missing("rtt_under_load", "The RTT under load: no file has one of a busy path", LOADED_PING)
    elif not evidence.loaded.certain and not _is_bloated(evidence):
        yield _missing("rtt_under_load", "Whether flows were busy while the pings ran", LOADED_PING)
    if evidence.rate is None:
        told = (
            "The bottleneck's rate: no file and no option has one"
            if evidence.floor is None
            else "The bottleneck's rate: the goodput is only the least that it can be (--rate gives it)"
        )
        yield _missing("rate", told, THROUGHPUT if evidence.floor is None else LISTING)
    if evidence.queue is None and not any(fact.name == "capture_queue" for fact in evidence.facts):
        yield _missing("queue", "The queue discipline at the bottleneck", LISTING)
    elif evidence.queue is not None and evidence.queue.queue is None:
        figures: dict[str, float | str] = {"queue": evidence.queue.words, "device": evidence.queue.device}
        yield Finding(
            "queue_settings",
            "How {queue} on {device} behaves: the simulator cannot be given these settings",
            "cannot know",
            figures,
        )
    elif evidence.queue is not None and evidence.queue.kind == "htb" and evidence.queue.shaped_bps is None:
        yield _missing("rate", "The rates of htb's classes: a listing of disciplines has none", LISTING)
    if not any(flow.retransmitted is not None for flow in evidence.seen.flows):
        yield _missing("loss", "Losses: no file counts retransmissions", CAPTURE)


def _missing(name: str, sentence: str, measure: str) -> Finding:
    return Finding(name, sentence, "cannot know", {}, (), "", measure)


RULES: tuple[Callable[[Evidence], Iterator[Finding]], ...] = (
    bufferbloat,
    bufferbloat_up,
    wrong_rate,
    unshaped_aqm,
    losses,
    windows,
    ecn,
    fifo,
)
