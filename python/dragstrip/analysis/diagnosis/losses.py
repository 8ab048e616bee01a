"""Findings about losses: the cause that fits, or the several among which the files cannot decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragstrip.analysis.diagnosis.evidence import Evidence
from dragstrip.analysis.diagnosis.finding import (
    AMBIGUOUS,
    CAPTURE,
    LISTING,
    NOISY,
    POLICED,
    Certainty,
    Finding,
    facts_at,
)
from dragstrip.analysis.diagnosis.loss_causes import (
    AQM_MIN_MS,
    LOSS_SHARE,
    LOSSES_MIN,
    Fit,
    Losses,
    fits,
    losses_of,
)
from dragstrip.analysis.diagnosis.loss_causes import CAUSES as CAUSES_OF_LOSSES
from dragstrip.analysis.diagnosis.observations import SIMULATION, Fact, ObservedFlow
from dragstrip.analysis.inference.path import PathEstimate

BARELY_MS = 2.5
"""Queueing delay (95 %) up to which a policer alone explains losses; above CoDel's target an AQM may, too."""
ALONE = 0.95
"""Share of the losses in the first burst from which on slow start alone explains them."""
UNEXPLAINED = 2.0
"""Retransmissions over drops of the queue from which on the drops do not explain them."""
OF_LOSSES = frozenset(
    {
        "retransmitted_share",
        "rtt_before_loss_ms",
        "idle_rtt_ms",
        "rtt_p95_ms",
        "lost_between",
        "capture_queue",
        "policer_bps",
        "burst_bytes",
        "random_loss_share",
    }
)
"""Facts behind a finding about losses."""
WORDS = {
    "policer": "a policer",
    "slow_start_overshoot": "slow start's overshoot into a short buffer",
    "random_loss": "random loss",
    "aqm": "an active queue management",
    "full_buffer": "a full buffer",
    "bufferbloat": "a full, long buffer",
}
"""Causes in the words of a sentence."""


def losses(evidence: Evidence) -> Iterator[Finding]:
    """Yield why segments were lost, for the flow of each pair of hosts that lost most."""
    for queue in evidence.observed.queues:
        if queue.polices:
            yield Finding(
                "policer",
                "A policer of {rate_bps} drops what exceeds its rate instead of letting it wait",
                "certain",
                {"rate_bps": queue.shaped_bps or 0.0},
                facts_at(evidence, (queue.source, queue.place), ("queue", "rate_bps")),
                "loss",
                queue=queue,
            )
            return
    if evidence.simulated:
        yield from _simulated(evidence)
        return
    lossy = [
        flow_losses
        for flow in evidence.observed.flows
        if (flow_losses := losses_of(evidence, flow)) is not None
    ]
    lossy.sort(
        key=lambda flow_losses: (
            -(flow_losses.flow.retransmitted or 0),
            flow_losses.flow.source,
            flow_losses.flow.label,
        )
    )
    reported_causes: set[tuple[str, ...]] = set()
    for flow_losses in lossy:
        for finding in _of_flow(evidence, flow_losses):
            if finding.causes not in reported_causes:
                reported_causes.add(finding.causes)
                yield finding


def _of_flow(evidence: Evidence, flow_losses: Losses) -> Iterator[Finding]:
    fitting = fits(flow_losses)
    fit = tuple(name for name in CAUSES_OF_LOSSES if fitting[name] != "excluded")
    displayed = [name for name in CAUSES_OF_LOSSES if fitting[name] == "shown" and name != "full_buffer"]
    if fitting["full_buffer"] == "shown" and not displayed:
        if fitting["slow_start_overshoot"] == "possible" and flow_losses.course is not None:
            yield _overshoot(evidence, flow_losses, fitting)
        elif flow_losses.exact and not evidence.bloated and evidence.queue is None:
            yield _short_buffer(evidence, flow_losses)
        return  # a full buffer explains them, and `bufferbloat` or `fifo` has its delay
    managed = any(queue.is_aqm for queue in evidence.observed.queues)
    delayed = flow_losses.high_ms is not None and flow_losses.high_ms > AQM_MIN_MS
    if "policer" in displayed and _is_counted(flow_losses):
        yield _aqm(evidence, flow_losses)
    elif "policer" in displayed and (managed or delayed):
        yield _ambiguous(evidence, flow_losses, ("policer", "aqm"))
    elif "policer" in displayed:
        yield _policer(evidence, flow_losses)
    elif "slow_start_overshoot" in displayed and flow_losses.course is not None:
        yield _overshoot(evidence, flow_losses, fitting)
    elif "aqm" in displayed and (_is_counted(flow_losses) or fitting["random_loss"] == "excluded"):
        yield _aqm(evidence, flow_losses)
    elif "random_loss" in displayed and not set(fit) - {"random_loss", "slow_start_overshoot"}:
        yield _random(evidence, flow_losses)
    elif flow_losses.queued and not flow_losses.exact and fitting["full_buffer"] == "possible":
        return  # the queue that delays drops, whatever its discipline
    elif fit:
        yield _ambiguous(evidence, flow_losses, fit)


def _is_counted(flow_losses: Losses) -> bool:
    """Return whether acknowledgements report marks, or a listing counts drops."""
    marks = flow_losses.flow.path is not None and flow_losses.flow.path.marks
    return marks or any(queue.is_aqm and queue.dropped for queue in flow_losses.queues)


def _policer(evidence: Evidence, flow_losses: Losses) -> Finding:
    path = flow_losses.flow.path
    assert path is not None
    tail, loss_figures = _loss_figures(flow_losses.flow)
    rate, figures = _rate_of_policer(path, flow_losses.flow)
    burst = ""
    if path.policer_burst_bytes.value is not None:
        burst = " after a burst of {burst_bytes}"
        figures["burst_bytes"] = path.policer_burst_bytes.value
    return Finding(
        "policer",
        f"A policer drops what exceeds {rate}{burst} instead of letting it wait: {{lost}} segments "
        f"({{retransmitted_share}}) were retransmitted, lost as its token bucket emptied{tail}",
        "certain" if flow_losses.high_ms is None or flow_losses.high_ms <= BARELY_MS else "likely",
        figures | loss_figures,
        _loss_facts(evidence, flow_losses.flow),
        "loss",
        "" if path.policer_rate_bps.value is not None else POLICED,
        causes=("policer",),
    )


def _overshoot(evidence: Evidence, flow_losses: Losses, fitting: Mapping[str, Fit]) -> Finding:
    assert flow_losses.course is not None
    tail, figures = _loss_figures(flow_losses.flow)
    figures |= {
        "first_share": flow_losses.course.first_share,
        "loss_free": round(flow_losses.course.loss_free),
    }
    causes = ["slow_start_overshoot"]
    several = flow_losses.course.first_share < ALONE and fitting["full_buffer"] != "shown"
    fifo_like = flow_losses.flow.path is not None and flow_losses.flow.path.queue in (
        "tail drop",
        "shaper",
    )
    if fitting["aqm"] == "shown" or (
        fitting["aqm"] == "possible" and (several or (flow_losses.exact and not fifo_like))
    ):
        causes.append("aqm")
    if flow_losses.delay_ms is None and flow_losses.flow.rtt_p50_ms is None:
        causes += ["bufferbloat"] if "aqm" in causes else ["aqm", "bufferbloat"]
    empty = flow_losses.exact and (flow_losses.delay_ms or 0.0) < AQM_MIN_MS
    if fitting["policer"] == "possible" and (several or empty or len(causes) > 1):
        causes.append("policer")
    if len(causes) > 1:
        return _ambiguous(evidence, flow_losses, tuple(causes))
    return Finding(
        "slow_start_overshoot",
        "Slow start overshoots into a short buffer: {lost} segments ({retransmitted_share}) were "
        "retransmitted, {first_share} of them in one burst at the beginning; then {loss_free} segments "
        "passed in a row" + tail,
        "likely",
        figures,
        _loss_facts(evidence, flow_losses.flow),
        measure="" if flow_losses.exact else CAPTURE,
        causes=tuple(causes),
    )


def _short_buffer(evidence: Evidence, flow_losses: Losses) -> Finding:
    """Returns the finding of a FIFO whose losses found it full, and whose delay is no bufferbloat."""
    tail, figures = _loss_figures(flow_losses.flow)
    return Finding(
        "fifo",
        "A short FIFO overflows: {lost} segments ({retransmitted_share}) were retransmitted, lost while the "
        "queue added {rtt_before_loss_ms}, as much as it ever holds" + tail,
        "likely",
        figures | {"rtt_before_loss_ms": flow_losses.delay_ms or 0.0},
        _loss_facts(evidence, flow_losses.flow),
        measure=LISTING,
        causes=("fifo",),
    )


def _aqm(evidence: Evidence, flow_losses: Losses) -> Finding:
    tail, figures = _loss_figures(flow_losses.flow)
    facts = list(_loss_facts(evidence, flow_losses.flow))
    path = flow_losses.flow.path
    queues = [queue for queue in flow_losses.queues if queue.is_aqm and queue.dropped]
    certainty: Certainty = "likely"
    why = ""
    if path is not None and path.marks:
        certainty, why = "certain", ": acknowledgements report its marks"
    elif queues:
        queue = max(queues, key=lambda queue: queue.dropped or 0)
        figures |= {"kind": queue.kind, "dropped": queue.dropped or 0}
        why = ": {kind} dropped {dropped} packets"
        if queue.dropped_share is not None:
            figures["dropped_share"] = queue.dropped_share
            why += " ({dropped_share} of those that arrived)"
        facts += facts_at(evidence, (queue.source, queue.place), ("queue", "dropped", "dropped_share"))
    return Finding(
        "aqm",
        "An active queue management explains the losses{why}; {lost} segments ({retransmitted_share}) were "
        "retransmitted".replace("{why}", why)
        + tail,
        certainty,
        figures,
        tuple(facts),
        causes=("aqm",),
    )


def _random(evidence: Evidence, flow_losses: Losses) -> Finding:
    tail, figures = _loss_figures(flow_losses.flow)
    figures["rtt_before_loss_ms"] = flow_losses.delay_ms or 0.0
    path = flow_losses.flow.path
    if path is not None and path.random_loss_share:
        figures["random_loss_share"] = path.random_loss_share
        tail = "; {random_loss_share} are lost whatever the queue" + tail
    return Finding(
        "random_loss",
        "Random loss: {lost} segments ({retransmitted_share}) were retransmitted, lost one by one at any "
        "time and with any number of bytes in flight, while the queue added {rtt_before_loss_ms}" + tail,
        "likely" if fits(flow_losses)["full_buffer"] == "shown" else "certain",
        figures,
        _loss_facts(evidence, flow_losses.flow),
        "goodput",
        NOISY,
        causes=("random_loss",),
    )


def _ambiguous(evidence: Evidence, flow_losses: Losses, fit: tuple[str, ...]) -> Finding:
    tail, figures = _loss_figures(flow_losses.flow)
    causes_text = [WORDS[name] for name in fit]
    causes = tuple(name for cause in fit for name in _cause_names(flow_losses, cause))
    several = (
        f"{', '.join(causes_text[:-1])} or {causes_text[-1]}" if len(causes_text) > 1 else causes_text[0]
    )
    if flow_losses.delay_ms is not None:
        figures["rtt_before_loss_ms"] = flow_losses.delay_ms
        at = "at them" if flow_losses.exact else "(95 %)"
        tail = f", while the queue added {{rtt_before_loss_ms}} {at}{tail}"
    drops = [queue for queue in flow_losses.queues if not queue.dropped]
    if drops and len(drops) == len(flow_losses.queues):
        causes = (*causes, "other_bottleneck")
    name = AMBIGUOUS if len(causes) > 1 else causes[0]
    text = several[0].upper() + several[1:]
    return Finding(
        name,
        f"{text}{': cannot tell' if len(causes) > 1 else ''}: {{lost}} segments ({{retransmitted_share}}) "
        f"were retransmitted{tail}",
        "likely",
        figures,
        _loss_facts(evidence, flow_losses.flow),
        "goodput" if causes == ("random_loss",) else "",
        LISTING if "aqm" in causes else NOISY,
        causes=causes,
    )


def _cause_names(flow_losses: Losses, cause: str) -> tuple[str, ...]:
    """Return the names that a finding gives a cause: a full buffer is a short one if no long queue stood."""
    if cause != "full_buffer":
        return (cause,)
    return ("fifo", "bufferbloat") if flow_losses.delay_ms is None else ("fifo",)


def _loss_figures(flow: ObservedFlow) -> tuple[str, dict[str, float | str]]:
    """Return what a sentence on losses ends with, and its figures; captures at two points add theirs."""
    figures: dict[str, float | str] = {
        "lost": flow.retransmitted or 0,
        "retransmitted_share": flow.retransmitted_share or 0.0,
    }
    if flow.capture_pair is None or not flow.capture_pair.packets_lost:
        return "", figures
    return "; {lost_between} packets were lost between the captures", {
        **figures,
        "lost_between": flow.capture_pair.packets_lost,
    }


def _loss_facts(evidence: Evidence, flow: ObservedFlow) -> tuple[Fact, ...]:
    return facts_at(evidence, (flow.source, flow.label), OF_LOSSES)


def _rate_of_policer(path: PathEstimate, flow: ObservedFlow) -> tuple[str, dict[str, float | str]]:
    """Return the words and figures of what is known of a policer's rate."""
    if path.policer_rate_bps.value is not None:
        return "{policer_bps}", {"policer_bps": path.policer_rate_bps.value}
    if path.policer_bounds_bps is not None:
        low, high = path.policer_bounds_bps
        return "a rate of {low_bps} to {high_bps}", {"low_bps": low, "high_bps": high}
    return "its rate, which lets {goodput_bps} pass,", {"goodput_bps": flow.goodput_bps}


def _simulated(evidence: Evidence) -> Iterator[Finding]:
    """Yield what a run on the simulator lost, whose queue counts what it drops."""
    flows = [flow for flow in evidence.observed.flows if flow.source == SIMULATION]
    retransmitted = sum(flow.retransmitted or 0 for flow in flows)
    segments = sum(flow.segments or 0 for flow in flows)
    dropped = [fact for fact in evidence.facts if fact.name == "dropped" and fact.basis == "simulated"]
    drops = sum(float(fact.value) for fact in dropped)
    if retransmitted < max(LOSSES_MIN, UNEXPLAINED * drops) or retransmitted < LOSS_SHARE * segments:
        return
    yield Finding(
        "random_loss",
        "Loss that no queue explains: {lost} segments ({retransmitted_share}) were retransmitted, and the "
        "queue dropped {dropped}",
        "likely",
        {"lost": retransmitted, "retransmitted_share": retransmitted / segments, "dropped": drops},
        (*dropped, *(fact for fact in evidence.facts if fact.name == "retransmitted_share")),
        "goodput",
    )
