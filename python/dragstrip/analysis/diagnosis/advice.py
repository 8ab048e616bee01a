"""Changes that may help against a finding, as command lines and as options of the simulator.

Scope: the changes to try for each finding, the path to try them on, and the choice of the worthwhile ones.
Out of scope: running them (`trials`). The core parses each queue from the very tc commands that are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dragstrip import _core
from dragstrip.analysis.diagnosis import commands
from dragstrip.analysis.diagnosis.evidence import FRAME_OVER_PAYLOAD, Evidence
from dragstrip.analysis.diagnosis.finding import AMBIGUOUS, Finding
from dragstrip.analysis.diagnosis.findings import buffer_bytes, direction, meets_flows
from dragstrip.analysis.diagnosis.observations import ObservedQueue, Tree
from dragstrip.analysis.diagnosis.trials import SEED, RunFigures, TrialSetup, duration
from dragstrip.analysis.diagnosis.wording import figure
from dragstrip.experiment.bottleneck import Bottleneck, socket_buffers
from dragstrip.experiment.saved_paths import CARRIERS
from dragstrip.interop import scripts
from dragstrip.model.scenario.paths import FRAME_BYTES

GAIN = 0.2
"""Share by which a delay or a loss must fall to recommend a change."""
GAIN_GOODPUT = 0.1
"""Share by which goodput must rise to recommend a change."""
COST = 0.15
"""Share of the goodput that a change may cost at most; a shaper below the line's rate costs 5 % by itself."""
BELOW_LINE = 0.95
"""Rate of a shaper in front of a line, as a share of the line's, so that the queue is in the shaper."""
BELOW_UP = 0.85
"""The same of a return path, which carries acknowledgements, too, and whose medium takes some of its rate."""
FASTER_LINE = 4
"""Rate of the line behind a shaper or a policer, where it is not known, as a multiple of theirs."""
BURST_MIN_BYTES = 15_000
"""Burst that is taken for a policer whose own is not known, unless the BDP is more."""
MIN_WINDOW_BYTES = 4096
"""Window that is given to a host at least."""
DEVICE = "eth0"
"""The interface in command lines where none is known."""
INSIDE = "eth1"
"""The interface of a router towards its hosts, where none is known."""
SHARED = 2
"""Flows where a fault concerns what flows do to each other, and nobody measured how many there are."""
FLOWS_MAX = 8
"""Flows of a run, at most."""
REPRODUCED = 0.15
"""Difference of the model's goodput and delay from those that were measured, as a share, at most."""
BUFFERS_MAX = 1 << 30
"""Largest socket buffer that is proposed, in bytes: the kernel allows 2 GiB."""


@dataclass(frozen=True)
class Candidate:
    """A change: its command lines, and what it is on the simulator."""

    change: str
    commands: tuple[str, ...]
    where: str
    options: Mapping[str, Any] = field(default_factory=dict)
    algorithm: str = ""

    @property
    def both_directions(self) -> bool:
        """True for a change of the queues in both directions."""
        return {"queue", "up_queue"} <= self.options.keys()


@dataclass(frozen=True)
class Advice:
    """The changes that are tried for a finding, on the path as it was found."""

    finding: Finding
    before: TrialSetup
    assumed: tuple[str, ...]
    after: tuple[tuple[Candidate, TrialSetup], ...]


@dataclass(frozen=True)
class TrialVerdict:
    """A change that was tried: whether it is worth it, and why."""

    candidate: Candidate
    setup: TrialSetup
    measured: RunFigures
    gain: float
    """Share by which the complaint's quantity got better; negative if it got worse."""
    recommended: bool
    reason: str


@dataclass(frozen=True)
class _Path:
    """The measured path, as options of `compare`."""

    options: dict[str, Any]
    assumed: list[str]
    line_bps: float
    algorithm: str


def proposed(
    evidence: Evidence, findings: Sequence[Finding], race: Mapping[str, Any], algorithm: str | None
) -> tuple[list[Advice], list[str]]:
    """Return what is to be tried for each finding, and why nothing can be tried for others."""
    proposals: list[Advice] = []
    refused: list[str] = []
    covered_findings: set[str] = set()
    for finding in findings:
        if not finding.complaint or finding.complaint + finding.name in covered_findings:
            continue
        if finding.complaint == "delay" and "delay" in covered_findings and finding.name != "bufferbloat_up":
            continue
        phase = evidence.delay.phase if evidence.delay is not None and finding.complaint == "delay" else ""
        if phase:
            refused.append(f"{finding.name}: measured {phase}: no rate is known of that direction alone")
            continue
        if finding.name == "bufferbloat" and not meets_flows(evidence):
            refused.append(f"{finding.name}: the flows of the files did not meet it: its rate is not known")
            continue
        path = _measured_path(evidence, finding, findings, race, algorithm)
        if isinstance(path, str):
            refused.append(f"{finding.name}: {path}")
            continue
        covered_findings |= {finding.complaint + finding.name, finding.complaint}
        shared = finding.complaint == "delay" or finding.name == "no_ecn"
        flows = _count(evidence) or (SHARED if shared else 1)
        before = TrialSetup.of(path.options, path.algorithm, flows)
        after = [
            (
                candidate,
                TrialSetup.of(
                    _changed(path.options, candidate.options), candidate.algorithm or path.algorithm, flows
                ),
            )
            for candidate in _candidates(evidence, finding, findings, path)
            if candidate.algorithm != path.algorithm
        ]
        if after:
            proposals.append(Advice(finding, before, tuple(path.assumed), tuple(after)))
    return proposals, refused


def _count(evidence: Evidence) -> int:
    """Return how many flows loaded the path while it was measured; 0 if nobody measured."""
    busiest = evidence.busiest
    if evidence.simulated or busiest is None:
        return 0
    concurrent_flows = [
        flow
        for flow in evidence.observed.flows
        if flow.busy and (flow.source, flow.sender) == (busiest.source, busiest.sender)
    ]
    return min(FLOWS_MAX, len(concurrent_flows))


def _measured_s(evidence: Evidence) -> float | None:
    """Return how long the largest flow was measured, of which slow start is a share."""
    busiest = evidence.busiest
    return None if evidence.simulated or busiest is None else busiest.duration_s


def unlike(evidence: Evidence, finding: Finding, before: RunFigures) -> str | None:
    """Return how the model of the path differs from what was measured, or None if it reproduces that."""
    if evidence.simulated:
        return None
    pairs: list[tuple[str, str, float | None, float | None]] = []
    if evidence.floor is not None:
        pairs.append(("goodput", "goodput_bps", before.goodput_bps, float(evidence.floor.value)))
    if evidence.delay is not None:
        middle = float(evidence.delay.p50.value)
        pairs.append(("median RTT under load", "ping_ms", before.ping_p50_ms, middle))
    for quantity, name, model, measured in pairs:
        if model is not None and measured and abs(model / measured - 1) > REPRODUCED:
            return (
                f"{finding.name}: the model of the path has a {quantity} of {figure(name, model)}, and "
                f"{figure(name, measured)} were measured: something else is at work, so that no change can "
                "be judged"
            )
    return None


def _changed(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged_options = {**options, **changes}
    if "sysctl" in options and "sysctl" in changes:
        merged_options["sysctl"] = {**options["sysctl"], **changes["sysctl"]}
    return merged_options


def rate_words(bps: float) -> str:
    """Return a rate with three digits, as tc and `compare` take it."""
    for size, unit in ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")):
        if bps >= size:
            return f"{float(f'{bps / size:.3g}'):g}{unit}"
    return f"{max(1, round(bps))}bit"


def rtt_words(rtt_ms: float) -> str:
    """Return a round-trip time with three digits, as `compare` takes it."""
    return f"{float(f'{rtt_ms:.3g}'):g}ms"


def _measured_path(
    evidence: Evidence,
    finding: Finding,
    findings: Sequence[Finding],
    race: Mapping[str, Any],
    algorithm: str | None,
) -> _Path | str:
    """Return the path as it was measured, or why it cannot be simulated."""
    line, idle, assumed = evidence.line_bps, evidence.idle, list[str]()
    refusal = _refusal(evidence, finding, race)
    if refusal or not line:
        return refusal
    if finding.name == "bufferbloat_up" and evidence.upward is not None:
        line = float(finding.figures["up_rate_bps"])
        race = dict(evidence.upward)
        if evidence.medium:
            del race["workload"]
            race["both_ways"] = True
            assumed.append("data go both ways: both directions of a medium are tried together")
    path = Bottleneck(more=race)
    in_front = {result.name for result in findings} & {"shaper_above_line", "other_bottleneck"}
    queue = finding.queue or (None if in_front else evidence.queue)
    if not any(name in race for name in CARRIERS):
        if finding.name == "policer" and finding.queue is None:
            line = _policed(finding)
        path = replace(path, rate=_line_rate(evidence, finding, queue, line, assumed))
    if "path" not in race and "rtt" not in race and idle is not None:
        path = replace(path, rtt=rtt_words(float(idle.value)))
    if "queue" not in race and ("path" not in race or in_front):
        if evidence.simulated and queue is None:
            assumed.append("the queue is a FIFO, the default of compare")
        else:
            path = replace(path, queue=_queue_words(evidence, finding, line, bool(in_front), assumed))
    if finding.name == "bufferbloat" and direction(evidence) == "back":
        assumed.append("the queue is in the data's direction, although captures show it on the way back")
    if not evidence.simulated:
        path = _with_fault(finding, path, assumed)
    sender_algorithm = algorithm or _sender_algorithm(evidence, assumed)
    trip = float(idle.value) if idle is not None else 40.0
    path = replace(path, duration=duration(line, trip, _measured_s(evidence)), seed=SEED)
    return _Path(path.options(), assumed, line, sender_algorithm)


def _refusal(evidence: Evidence, finding: Finding, race: Mapping[str, Any]) -> str:
    """Return why a path cannot be simulated; empty if it can."""
    has_rtt = "path" in race or "rtt" in race
    if not evidence.line_bps:
        return "no run without a rate (--rate)"
    if evidence.idle is None and not has_rtt:
        return "no run without an idle RTT (--rtt)"
    if evidence.idle_is_bound and not has_rtt:
        return "no run without an idle RTT (--rtt): the capture's queue was never seen empty"
    if finding.complaint == "goodput" and evidence.rate is None and not evidence.simulated:
        return "no run without the rate of the path (--rate): the goodput does not show what is left of it"
    return ""


def _line_rate(
    evidence: Evidence, finding: Finding, queue: ObservedQueue | None, line_bps: float, assumed: list[str]
) -> str:
    """Return the rate of the line; of one behind a shaper or a policer, which no file shows, a multiple."""
    is_policer = finding.name == "policer"
    if is_policer and finding.queue is None and "low_bps" in finding.figures:
        assumed.append(f"the policer has {rate_words(line_bps)}, the middle of what its losses allow")
    shaped = queue.shaped_bps if queue is not None and queue.queue is not None else None
    if shaped is not None or is_policer:
        limiter = "policer" if is_policer else "shaper"
        assumed.append(f"the line is {FASTER_LINE} times as fast as the {limiter}")
        return rate_words((shaped or line_bps) * FASTER_LINE)
    rate = rate_words(line_bps)
    if evidence.shown_bps is None and (evidence.rate is None or evidence.slower_line):
        assumed.append(f"the line has {rate}, the least that carries the goodput")
    return rate


def _sender_algorithm(evidence: Evidence, assumed: list[str]) -> str:
    """Return the congestion control that the files name, if it is modelled, else CUBIC."""
    measured = next((str(fact.value) for fact in evidence.facts if fact.name == "algorithm"), None)
    if measured is None:
        assumed.append("the senders run cubic, Linux's default")
        return "cubic"
    if measured not in _core.ALGORITHMS:
        assumed.append(f"the senders run cubic: {measured} is not modelled")
        return "cubic"
    return measured


def _policed(finding: Finding) -> float:
    """Return the rate of a policer: of tc, of a capture, or what it must be for the goodput that was seen."""
    figures = finding.figures
    for name in ("rate_bps", "policer_bps"):
        if name in figures:
            return float(figures[name])
    if "low_bps" in figures:
        return (float(figures["low_bps"]) + float(figures["high_bps"])) / 2
    return float(figures["goodput_bps"]) * FRAME_OVER_PAYLOAD


def _queue_words(
    evidence: Evidence, finding: Finding, line: float, in_front: bool, assumed: list[str]
) -> str:
    queue, size = finding.queue or evidence.queue, buffer_bytes(evidence)
    if finding.name == "policer" and finding.queue is None:
        burst = round(float(finding.figures.get("burst_bytes", 0.0)))
        if not burst:
            burst = max(BURST_MIN_BYTES, round(evidence.bdp_bytes or 0))
            assumed.append(f"the policer's burst is {burst} bytes")
        return f"police rate {rate_words(line)} burst {burst}b"
    if queue is not None and queue.queue is not None and not in_front:
        return queue.queue
    if finding.complaint == "delay" and not evidence.simulated and size is not None and size > 0:
        if "buffer_bytes" not in {fact.name for fact in evidence.facts}:
            assumed.append("the queue is a FIFO of the size that the delay shows")
        return f"bfifo limit {round(size)}b"
    assumed.append("the queue is a FIFO of one BDP")
    return "1bdp"


def _with_fault(finding: Finding, path: Bottleneck, assumed: list[str]) -> Bottleneck:
    """Return the path with what a finding says about the hosts or the path."""
    figures, race = finding.figures, path.more
    if finding.name == "random_loss" and "loss" not in race and "path" not in race:
        share = figures.get("random_loss_share", figures["retransmitted_share"])
        path = replace(path, loss=f"{float(share) * 100:.3g}%")
        assumed.append(f"segments are lost at random, {path.loss} of them")
    window = figures.get("window_bytes")
    names = {"receive_window": "net.ipv4.tcp_rmem", "send_buffer": "net.ipv4.tcp_wmem"}
    limiting = _window_of(finding)
    if limiting in names and isinstance(window, float):
        name, size = names[limiting], 2 * max(MIN_WINDOW_BYTES, round(window))
        sysctl = {name: socket_buffers(size), **dict(race.get("sysctl") or {})}
        path = path.with_options({"sysctl": sysctl})
        assumed.append(f"{name} ends at {size} bytes, twice the window that was seen")
    return path


def _candidates(
    evidence: Evidence, finding: Finding, findings: Sequence[Finding], path: _Path
) -> list[Candidate]:
    if finding.name == "bufferbloat_up":
        return _against_delay_up(evidence, path)
    if finding.complaint == "delay":
        return _against_delay(evidence, findings, path)
    if finding.name == "policer":
        rate = _policed(finding)
        return [
            _shaped("fq_codel", rate * BELOW_LINE, DEVICE, "on the sending side of the policer"),
            _algorithm("bbr"),
        ]
    if finding.name == "random_loss":
        return [
            _algorithm("bbr"),
            _shaped("fq_codel", path.line_bps * BELOW_LINE, DEVICE, "at the bottleneck"),
        ]
    if _window_of(finding):
        return _windows(evidence, finding)
    if finding.name == "no_ecn":
        return [
            Candidate(
                "ECN",
                ("sysctl -w net.ipv4.tcp_ecn=1",),
                "on both hosts (tcp_ecn=1 asks for it, the default 2 accepts it)",
                {"ecn": True},
            )
        ]
    return []


def _against_delay(evidence: Evidence, findings: Sequence[Finding], path: _Path) -> list[Candidate]:
    queue = evidence.queue
    in_front = {result.name for result in findings} & {"shaper_above_line", "other_bottleneck"}
    replaces_shaper = queue is not None and queue.shaped_bps is not None and not in_front
    device = (queue.device if queue is not None else "") or DEVICE
    if queue is not None and queue.shaped_bps is not None and replaces_shaper:
        rate, where = queue.shaped_bps, f"in place of the queue of {device}"
    else:
        rate = path.line_bps * BELOW_LINE
        where = "where traffic enters the bottleneck, at 95 % of its rate"
    tree = queue.tree if queue is not None else None
    candidates = [_shaped("fq_codel", rate, device, where, tree), _cake(rate, device, where)]
    if not replaces_shaper and not in_front:
        candidates.append(
            Candidate(
                "fq_codel, without a shaper",
                (f"tc qdisc replace dev {device} root fq_codel",),
                f"only where {device} itself sends into the bottleneck, at the rate of its line",
                {"queue": "fq_codel"},
            )
        )
    if evidence.bdp_bytes is not None:
        size = max(2 * FRAME_BYTES, round(evidence.bdp_bytes))
        candidates.append(_shaped(f"bfifo limit {size}b", rate, device, f"{where}; one BDP", tree))
    candidates.append(_algorithm("bbr"))
    return candidates


def _against_delay_up(evidence: Evidence, path: _Path) -> list[Candidate]:
    """Return shapers for the return path, and where data go both ways for both directions of a router."""
    if "both_ways" not in path.options:
        rate, where = path.line_bps * BELOW_LINE, f"on the router, whose {DEVICE} sends into the return path"
        shapers = (_shaped("fq_codel", rate, DEVICE, where), _cake(rate, DEVICE, where))
        shapers_up = [replace(shaper, options={"up_queue": shaper.options["queue"]}) for shaper in shapers]
        return [*shapers_up, _algorithm("bbr")]
    up, down = path.line_bps * BELOW_UP, (evidence.line_bps or path.line_bps) * BELOW_LINE
    where = f"on the router in front of the line: {DEVICE} sends into it, {INSIDE} to the hosts"
    candidates = []
    for up_shaper, down_shaper in (
        (_shaped("fq_codel", up, DEVICE, ""), _shaped("fq_codel", down, INSIDE, "")),
        (_cake(up, DEVICE, ""), _cake(down, INSIDE, "")),
    ):
        kind = up_shaper.change.partition(",")[0]
        options = {"up_queue": up_shaper.options["queue"], "queue": down_shaper.options["queue"]}
        change = f"{kind}, shaped to {rate_words(up)} up, {rate_words(down)} down"
        candidates.append(Candidate(change, up_shaper.commands + down_shaper.commands, where, options))
    alone = _shaped("fq_codel", up, DEVICE, "")
    candidates.append(
        Candidate(
            f"{alone.change}, up alone",
            alone.commands,
            f"on the router in front of the line, into which {DEVICE} sends",
            {"up_queue": alone.options["queue"]},
        )
    )
    return [*candidates, _algorithm("bbr")]


def _shaped(leaf: str, rate_bps: float, device: str, where: str, tree: Tree | None = None) -> Candidate:
    rate = rate_words(rate_bps)
    model = _imported(commands.shaped(device, None, leaf, rate, rate_bps))
    lines = commands.shaped(device, tree, leaf, rate, rate_bps)
    return Candidate(f"{leaf}, shaped to {rate}", lines, where, {"queue": model})


def _cake(rate_bps: float, device: str, where: str) -> Candidate:
    rate = rate_words(rate_bps)
    lines = commands.root(device, f"cake bandwidth {rate}")
    return Candidate(f"cake, shaped to {rate}", lines, where, {"queue": _imported(lines)})


def _imported(lines: Sequence[str]) -> str:
    """Return the queue that these lines make, in words that the simulator takes: the fewest that do."""
    whole = str(scripts.imported("\n".join(lines), "advice")["queues"][0]["queue"])
    for short in ("htb rate {rate} leaf {leaf}", "cake bandwidth {rate}"):
        words = lines[-1].partition(" 1:10 ")[2] or lines[-1].partition(" root ")[2]
        rate = (lines[1] if len(lines) > 1 else words).rpartition(" ")[2]
        short_words = short.format(rate=rate, leaf=words)
        if _core.parse_qdisc(short_words) == _core.parse_qdisc(whole):
            return short_words
    return whole


def _algorithm(name: str) -> Candidate:
    return Candidate(
        f"{name} at the senders",
        ("sysctl -w net.core.default_qdisc=fq", f"sysctl -w net.ipv4.tcp_congestion_control={name}"),
        "on the sending hosts",
        algorithm=name,
    )


def _windows(evidence: Evidence, finding: Finding) -> list[Candidate]:
    """Return the sysctl that gives room for the BDP.

    `tcp_rmem` is four times the BDP, since half of it is announced and the window needs room to grow, and
    `tcp_wmem` three times, since memory includes overhead (docs/how-to/report.md).
    """
    bdp = evidence.bdp_bytes
    if bdp is None:
        return []
    receive = _window("net.ipv4.tcp_rmem", 131072, 4 * bdp, "receiving", "SO_RCVBUF")
    send = _window("net.ipv4.tcp_wmem", 16384, 3 * bdp, "sending", "SO_SNDBUF")
    both_windows = Candidate(
        f"{send.change}, {receive.change}",
        send.commands + receive.commands,
        "tcp_wmem on the sending, tcp_rmem on the receiving host; applications must set neither "
        "SO_SNDBUF nor SO_RCVBUF",
        {"sysctl": {**send.options["sysctl"], **receive.options["sysctl"]}},
    )
    return [receive if _window_of(finding) == "receive_window" else send, both_windows]


def _window_of(finding: Finding) -> str:
    """Return the window that a finding is about, or that it names among others; empty for none."""
    if finding.name in ("receive_window", "send_buffer"):
        return finding.name
    return "send_buffer" if finding.name == AMBIGUOUS and "send_buffer" in finding.causes else ""


def _window(name: str, middle: int, needed: float, side: str, option: str) -> Candidate:
    size = min(BUFFERS_MAX, 1 << max(16, (round(needed) - 1).bit_length()))
    value = socket_buffers(size, min(middle, size))
    return Candidate(
        f"{name.rpartition('.')[2]} up to {figure('size_bytes', size)}",
        (f'sysctl -w {name}="{value}"',),
        f"on the {side} host; an application that sets {option} must not",
        {"sysctl": {name: value}},
    )


def judged(
    evidence: Evidence, advice: Advice, before: RunFigures, after: Sequence[RunFigures]
) -> list[TrialVerdict]:
    """Return the changes that were tried, those that are recommended first, each sort best first.

    None is recommended whose run is worse than what was measured.
    """
    trials = []
    for (candidate, setup), measured in zip(advice.after, after, strict=True):
        complaint = advice.finding.complaint or "goodput"
        gain = _gain(complaint, before, measured)
        cost = 1 - measured.goodput_bps / before.goodput_bps if before.goodput_bps else 0.0
        reason = _change(complaint, before, measured)
        worth = gain >= (GAIN_GOODPUT if complaint == "goodput" else GAIN)
        if not worth:
            reason = f"no gain: {reason}"
        elif cost > COST:
            worth = False
            reason = f"{reason}, but it costs {figure('cost_share', cost)} of the goodput"
        elif worse := _worse(evidence, complaint, measured):
            worth = False
            reason = f"{reason}, but {worse}"
        trials.append(TrialVerdict(candidate, setup, measured, gain, worth, reason))
    return sorted(trials, key=lambda trial: (not trial.recommended, -round(trial.gain, 1)))


def _worse(evidence: Evidence, complaint: str, after: RunFigures) -> str:
    """Return in which figure a run is worse than what was measured; empty for none."""
    if evidence.simulated:
        return ""
    floor, delay = evidence.floor, evidence.delay
    allowed = 1.0 if complaint == "goodput" else 1 - COST
    if floor is not None and after.goodput_bps < allowed * float(floor.value):
        return f"{figure('goodput_bps', floor.value)} were measured"
    high = float(delay.p95.value) if delay is not None else None
    if complaint == "delay" and high is not None and (after.ping_p95_ms or 0.0) > high:
        return f"an RTT of {figure('ping_ms', high)} was measured"
    return ""


def _gain(complaint: str, before: RunFigures, after: RunFigures) -> float:
    """Return the share by which the quantity that is complained of got better."""
    baseline, changed = _quantity(complaint, before), _quantity(complaint, after)
    if not baseline:
        return 0.0
    return changed / baseline - 1 if complaint == "goodput" else 1 - changed / baseline


def _quantity(complaint: str, measured: RunFigures) -> float:
    if complaint == "goodput":
        return measured.goodput_bps
    return (measured.ping_p95_ms or 0.0) if complaint == "delay" else measured.retransmitted_share


def _change(complaint: str, before: RunFigures, after: RunFigures) -> str:
    """Return what happens to the quantity that is complained of, in words."""
    quantity, name = {
        "delay": ("the pings' 95th percentile", "ping_ms"),
        "goodput": ("goodput", "goodput_bps"),
        "loss": ("the share retransmitted", "sent_share"),
    }[complaint]
    before_text, after_text = (figure(name, _quantity(complaint, run)) for run in (before, after))
    if before_text == after_text:
        return f"{quantity} stays at {before_text}"
    rises = _quantity(complaint, after) > _quantity(complaint, before)
    return f"{quantity} {'rises' if rises else 'falls'} from {before_text} to {after_text}"
