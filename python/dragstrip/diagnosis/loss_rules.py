"""Rules about losses: a policer, or loss that no queue explains."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dragstrip.diagnosis.evidence import SIMULATION, Evidence, Fact, Flow, Inferred
from dragstrip.diagnosis.finding import AMBIGUOUS, NOISY, POLICED, Finding, facts_of

LOSS_SHARE = 0.001
"""Share of segments sent again from which on losses are worth a finding: at 0.1 % a Reno-like flow of 40 ms
has some 11 Mbit/s (Mathis et al., 1997)."""
LOSSES_MIN = 5
"""Lost segments below which nothing is said about where they were lost."""
QUEUE_MS = 10.0
"""Queueing delay before losses below which no queue can have been full, unless it was very short."""
QUEUE_OF_RTT = 0.1
"""The same as a share of the idle RTT; the larger of both counts."""
BURSTY = 4.0
"""Variance over mean of the losses in 100 ms from which on they come in bursts; 1 if independent."""
BURSTY_LOSSES_MIN = 15
"""Lost segments from which on that ratio says something."""
UNEXPLAINED = 2.0
"""Retransmissions over drops of the queue from which on the drops do not explain them."""
OF_LOSSES = frozenset(
    {"retransmitted_share", "rtt_before_loss_ms", "burstiness", "idle_rtt_ms", "rtt_p95_ms", "lost_between"}
)
"""Facts behind a finding about losses."""
OF_PATHS = frozenset({"capture_queue", "policer_bps", "burst_bytes", "random_loss_share"})
"""Those of an inferred path."""


def losses(evidence: Evidence) -> Iterator[Finding]:
    """Segments are lost where no queue is: a policer, or the path itself."""
    for queue in evidence.seen.queues:
        if queue.polices:
            yield Finding(
                "policer",
                "A policer of {rate_bps} drops what exceeds its rate instead of letting it wait",
                "certain",
                {"rate_bps": queue.shaped_bps or 0.0},
                tuple(facts_of(evidence, queue, "queue", "rate_bps")),
                "loss",
                queue=queue,
            )
            return
    if evidence.simulated:
        yield from _simulated_losses(evidence)
        return
    told = [flow for flow in evidence.seen.flows if flow.inferred and flow.inferred.explains_losses]
    if told:
        yield from _inferred_losses(evidence, max(told, key=lambda flow: flow.retransmitted or 0))
        return
    suspects = [flow for flow in evidence.seen.flows if _is_lossy(flow)]
    flow = max(suspects, key=lambda flow: flow.retransmitted or 0, default=None)
    if flow is None:
        return
    delay = _delay_before_losses(evidence, flow)
    if delay is None or delay >= max(QUEUE_MS, QUEUE_OF_RTT * (flow.rtt_min_ms or 0.0)):
        return
    drops = sum(queue.dropped or 0 for queue in evidence.seen.queues)
    counted = any(queue.dropped is not None for queue in evidence.seen.queues)
    if counted and (flow.retransmitted or 0) < UNEXPLAINED * drops:
        return
    seen, figures = _lost(flow)
    figures["rtt_before_loss_ms"] = delay
    known = _known(evidence, flow, OF_LOSSES)
    if counted:
        known += tuple(fact for fact in evidence.facts if fact.name == "dropped")
    policed = (
        flow.losses is not None
        and flow.losses.count >= BURSTY_LOSSES_MIN
        and flow.losses.burstiness >= BURSTY
    )
    if policed and flow.losses is not None:
        figures |= {"burstiness": flow.losses.burstiness, "goodput_bps": flow.goodput_bps}
        yield Finding(
            "policer",
            "A policer, or a very short buffer: {lost} segments ({retransmitted_share}) were sent again, "
            "lost in bursts (variance over mean {burstiness}) while the queue added only "
            "{rtt_before_loss_ms}; {goodput_bps} pass" + seen,
            "likely",
            figures,
            known,
            "loss",
            POLICED,
            causes=("policer", "slow_start_overshoot"),
        )
        return
    yield Finding(
        AMBIGUOUS,
        "Loss that no queue explains: {lost} segments ({retransmitted_share}) were sent again while the "
        "queue added only {rtt_before_loss_ms}; a noisy link or a policer with a short burst loses like this"
        + seen,
        "likely",
        figures,
        known,
        "goodput",
        NOISY,
        causes=("random_loss", "aqm", "policer", "slow_start_overshoot"),
    )


def _inferred_losses(evidence: Evidence, flow: Flow) -> Iterator[Finding]:
    """Losses of a flow whose capture shows a policer's bucket, or which losses no queue explains."""
    path = flow.inferred
    if path is None:
        return
    seen, lost = _lost(flow)
    known = _known(evidence, flow, OF_LOSSES | OF_PATHS)
    if path.polices:
        rate, figures = _rate_of_policer(path, flow)
        burst = ""
        if path.burst_bytes is not None:
            burst, figures["burst_bytes"] = " after a burst of {burst_bytes}", path.burst_bytes
        yield Finding(
            "policer",
            f"A policer drops what exceeds {rate}{burst} instead of letting it wait: {{lost}} segments "
            f"({{retransmitted_share}}) were sent again, lost as its token bucket emptied{seen}",
            "certain",
            figures | lost,
            known,
            "loss",
            "" if path.policer_bps is not None else POLICED,
        )
        return
    if (path.random_loss_share or 0.0) < LOSS_SHARE:
        return
    yield Finding(
        "random_loss",
        "Loss that no queue explains: {random_loss_share} of the segments are lost however short the queue "
        "is; {lost} ({retransmitted_share}) were sent again" + seen,
        "certain",
        {"random_loss_share": path.random_loss_share or 0.0, **lost},
        known,
        "goodput",
        NOISY,
    )


def _lost(flow: Flow) -> tuple[str, dict[str, float | str]]:
    """Return what a sentence on losses ends with, and its figures; captures at two points add theirs."""
    figures: dict[str, float | str] = {
        "lost": flow.retransmitted or 0,
        "retransmitted_share": flow.retransmitted_share or 0.0,
    }
    if flow.between is None or not flow.between.lost:
        return "", figures
    told = "; {lost_between} packets were lost between the captures"
    return told, {**figures, "lost_between": flow.between.lost}


def _known(evidence: Evidence, flow: Flow, names: Collection[str]) -> tuple[Fact, ...]:
    """Return the facts of these names about a flow."""
    place = (flow.source, flow.label)
    return tuple(f for f in evidence.facts if (f.source, f.place) == place and f.name in names)


def _rate_of_policer(path: Inferred, flow: Flow) -> tuple[str, dict[str, float | str]]:
    """Return the words and figures of what is known of a policer's rate."""
    if path.policer_bps is not None:
        return "{policer_bps}", {"policer_bps": path.policer_bps}
    if path.policer_range_bps is not None:
        low, high = path.policer_range_bps
        return "a rate of {low_bps} to {high_bps}", {"low_bps": low, "high_bps": high}
    return "its rate, which lets {goodput_bps} pass,", {"goodput_bps": flow.goodput_bps}


def _simulated_losses(evidence: Evidence) -> Iterator[Finding]:
    """Losses of a run on the simulator, whose queue counts what it drops."""
    flows = [flow for flow in evidence.seen.flows if flow.source == SIMULATION]
    lost = sum(flow.retransmitted or 0 for flow in flows)
    sent = sum(flow.segments or 0 for flow in flows)
    dropped = [fact for fact in evidence.facts if fact.name == "dropped" and fact.basis == "simulated"]
    drops = sum(float(fact.value) for fact in dropped)
    if lost < max(LOSSES_MIN, UNEXPLAINED * drops) or lost < LOSS_SHARE * sent:
        return
    yield Finding(
        "random_loss",
        "Loss that no queue explains: {lost} segments ({retransmitted_share}) were sent again, and the queue "
        "dropped {dropped}",
        "likely",
        {"lost": lost, "retransmitted_share": lost / sent, "dropped": drops},
        (*dropped, *(fact for fact in evidence.facts if fact.name == "retransmitted_share")),
        "goodput",
    )


def _is_lossy(flow: Flow) -> bool:
    share = flow.retransmitted_share
    return (flow.retransmitted or 0) >= LOSSES_MIN and share is not None and share >= LOSS_SHARE


def _delay_before_losses(evidence: Evidence, flow: Flow) -> float | None:
    if flow.losses is not None and flow.losses.delay_ms is not None:
        return flow.losses.delay_ms
    idle = evidence.idle
    if flow.rtt_p95_ms is None or idle is None:
        return None
    if flow.smoothed and idle.source == flow.source:
        return None  # smoothed values alone do not show how short an empty queue makes the RTT
    return max(0.0, flow.rtt_p95_ms - float(idle.value))
