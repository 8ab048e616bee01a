"""From a capture to a verdict: path, congestion control, fit to the capture, predictions for others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dragstrip import _core
from dragstrip.analysis import captures
from dragstrip.analysis.inference import path as inference
from dragstrip.analysis.whatif import fit as fitting
from dragstrip.analysis.whatif import flow_trace, network, vantage
from dragstrip.analysis.whatif import identify as identifying
from dragstrip.analysis.whatif.bench import BITS_MAX, Bench, FlowRun, bench
from dragstrip.analysis.whatif.fit import NOT_EXPLAINED
from dragstrip.analysis.whatif.hypotheses import hypotheses
from dragstrip.analysis.whatif.identify import Answer
from dragstrip.analysis.whatif.network import CandidatePath, CandidatePaths, Options
from dragstrip.analysis.whatif.verdict import FlowEvidence, Prediction, Verdict
from dragstrip.display import quantity
from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.comparison import COMMAND_LINE, reworded
from dragstrip.experiment.expand import expand
from dragstrip.model.recording import Recording
from dragstrip.model.scenario.paths import IP_BYTES, PAYLOAD_BYTES

OTHERS = ("cubic", "bbr", "reno")
"""Algorithms that are raced if none is named."""
HOSTS = frozenset({"duration", "seed", "sysctl", "ecn"})
"""Options of an inferred path that are its hosts' or the run's."""
ANY_PATH: Options = {"rate": "10mbit", "rtt": "40ms"}
"""A path on which options are checked before the capture is read."""
MOVES_MAX = 0.5
"""The idle round trip is corrected by the first run, by at most this share."""
RECEIVER_SHARE = 0.05
"""Share of the time from which the receiver's window is a part of the path."""
SEGMENTS = 2.0
"""A capture's full segments carry at most so many times more or less than those of the runs."""
MTU_MIN, MTU_MAX = 68, 9000
"""Bytes of IP packets of other full segments with which candidates run (RFC 791's least; jumbo frames)."""
SEEDS = 5
"""Runs with other seeds where something on the path is random."""


def read(file: Path, name: str | None) -> FlowEvidence:
    """Return the flow of a capture whose name contains `name`, or its largest.

    Raises `BadInputError` for a file that is no capture, has no such flow, or does not show its path.
    """
    inspection, recording, rows = captures.whole(file)
    flows = inspection["flows"]
    if not flows:
        raise BadInputError("", None, "a capture with a TCP connection that carries data", str(file))
    if name is None:
        target_flow = max(flows, key=lambda flow: flow["bytes"])
    else:
        fit = [flow for flow in flows if name in flow["label"]]
        if len(fit) != 1:
            some_labels = ", ".join(flow["label"] for flow in flows[:8])
            raise BadInputError(
                "--flow", name, f"part of the name of one flow: {some_labels}", "command line"
            )
        (target_flow,) = fit
    at = flows.index(target_flow)
    path = inference.of_flow(file, inspection, rows, at)
    capture = flow_trace.of_recording(recording, target_flow["flow"])
    other_flows, events = _large_flow_count(flows, target_flow), _events(inspection, recording, target_flow)
    full_bytes = int(rows[at]["full_bytes"])
    return FlowEvidence(file, target_flow, capture, path, full_bytes, other_flows, events, path.place)


def _large_flow_count(flows: Sequence[Mapping[str, Any]], target_flow: Mapping[str, Any]) -> int:
    """Return how many flows carried at least a twentieth of the chosen one's bytes."""
    return sum(1 for flow in flows if flow is not target_flow and flow["bytes"] > target_flow["bytes"] / 20)


def _events(
    inspection: Mapping[str, Any], recording: Recording, flow: Mapping[str, Any]
) -> list[dict[str, Any]]:
    (row,) = (row for row in recording["flows"].to_pylist() if row["flow"] == flow["flow"])
    begin = inspection["origin_ns"] + row["start_ns"]
    return [
        {"at_s": (event["time_ns"] - begin) / 1e9, "verdict": event["one"]}
        for event in inspection.get("events", ())
        if event["flow"] == flow["flow"] and event["one"] is not None
    ]


def queue_bytes(flow: FlowEvidence) -> float:
    """Return the longest queue that the round trips show, in bytes at the IP layer."""
    rate, base = flow.path.rate_bps, flow.path.base_rtt_ms
    bps = rate.value or rate.low
    if bps is None or base.value is None or not len(flow.capture.rtt_ms):
        return 0.0
    longest = float(np.percentile(flow.capture.rtt_ms, 99.9))
    return max(0.0, (longest - base.value) / 1e3 * bps / 8)


def on_path(flow: FlowEvidence, has_own_size: bool = False) -> CandidatePaths:
    """Return the path to run on; raises `BadInputError` where it is not known well enough.

    With `has_own_size` its hosts send segments of the capture's size, if that is far from the usual one.
    """
    if flow.path.place in ("receiver", "queue"):
        where = identifying.PLACES[flow.path.place]
        expected = f"a capture at the sender: one {where} shows neither its round trips nor the buffer"
        raise BadInputError(flow.path.flow, None, expected, str(flow.file))
    ip_bytes = IP_BYTES
    if not PAYLOAD_BYTES / SEGMENTS <= flow.full_bytes <= PAYLOAD_BYTES * SEGMENTS:
        ip_bytes = flow.full_bytes + network.HEADER_BYTES
    if ip_bytes != IP_BYTES and not (has_own_size and MTU_MIN <= ip_bytes <= MTU_MAX):
        expected = f"a capture of segments with about {PAYLOAD_BYTES} bytes of data, as runs have; these have"
        raise BadInputError(flow.path.flow, None, f"{expected} {flow.full_bytes}", str(flow.file))
    limits = flow.inspect_row["limited_s"]
    limited = limits["receiver"] > RECEIVER_SHARE * sum(limits.values())
    has_losses = flow.capture.retransmitted > 0
    return network.from_estimate(
        flow.path, bool(flow.inspect_row["ecn"]), limited, queue_bytes(flow), has_losses, ip_bytes
    )


def calibrated(
    flow: FlowEvidence, base_network: CandidatePaths, algorithm: str, bench: Bench
) -> CandidatePaths:
    """Return the path with the idle round trip at which a run's least RTT is the capture's."""
    if not len(flow.capture.rtt_ms):
        return base_network
    duration = min(flow.capture.duration_s, BITS_MAX / base_network.middle.rate_bps)
    middle = base_network.middle
    (run,) = bench.flow_traces([FlowRun(algorithm, middle.options(duration), middle.ip_bytes)])
    if not len(run.rtt_ms):
        return base_network
    run_ms, capture_ms = (float(trace.rtt_ms.min()) for trace in (run, flow.capture))
    moved = capture_ms - run_ms
    return (
        base_network.moved(moved) if abs(moved) <= MOVES_MAX * base_network.middle.idle_ms else base_network
    )


def identify(file: Path, name: str | None, quiet: bool) -> tuple[FlowEvidence, CandidatePaths | None, Answer]:
    """Return which congestion control a flow of a capture shows.

    A flow that was captured elsewhere than at its sender is looked at as the sender would have seen it.
    """
    flow = read(file, name)
    flow = at_sender(flow) or flow
    with bench("running candidates", quiet) as workers:
        base_network, answer = _identified(flow, workers)
    return flow, base_network, answer


def at_sender(flow: FlowEvidence) -> FlowEvidence | None:
    """Return what the sender would have captured; None for a sender's capture and where that is open."""
    if flow.path.place == "sender" and _has_waited(flow):
        return None
    ports = tuple(int(port) for port in re.findall(r":(\d+)(?=\s|$)", flow.inspect_row["label"]))
    if len(ports) != 2:
        return None
    content = vantage.at_sender(flow.file, (ports[0], ports[1]), flow.inspect_row["bytes"])
    if content is None:
        return None
    with TemporaryDirectory() as folder:
        file = Path(folder) / "sender.pcap"
        file.write_bytes(content)
        moved = read(file, None)
    if moved.path.place != "sender" or (flow.path.place == "sender" and not _has_waited(moved)):
        return None
    identity = {name: flow.inspect_row[name] for name in ("flow", "label")}
    path = replace(moved.path, file=str(flow.file), flow=flow.path.flow)
    row = {**moved.inspect_row, **identity}
    return replace(
        moved,
        file=flow.file,
        inspect_row=row,
        path=path,
        other_flows=flow.other_flows,
        place="sender or queue" if flow.path.place == "sender" else flow.path.place,
        is_moved=True,
    )


def _has_waited(flow: FlowEvidence) -> bool:
    """Return whether round trips grew or segments were lost behind the capture, as at a sender."""
    base, trips = flow.path.base_rtt_ms.value, flow.capture.rtt_quantiles_ms
    if flow.capture.retransmitted or base is None or trips is None:
        return True
    return trips[2] >= base * (1 + identifying.RTT_RISE_MIN)


def _identified(flow: FlowEvidence, bench: Bench) -> tuple[CandidatePaths | None, Answer]:
    inspect_row = dict(flow.inspect_row)
    reason = identifying.impossible(inspect_row, flow.capture, flow.path.base_rtt_ms.value or 0.0)
    if reason:
        return None, Answer(identifying.IMPOSSIBLE, (), 0.0, reason)
    try:
        base_network = on_path(flow, has_own_size=True)
    except BadInputError as error:
        return None, Answer(identifying.IMPOSSIBLE, (), 0.0, f"it takes {error.explanation}")
    paths, answer = _identified_on_paths(flow, base_network, bench)
    return paths[answer.path], answer


def _identified_on_paths(
    flow: FlowEvidence, base_network: CandidatePaths, bench: Bench
) -> tuple[list[CandidatePaths], Answer]:
    """Return the paths that a flow may have been on, and its congestion control."""
    paths = [calibrated(flow, path, "cubic", bench) for path in _open(flow, base_network)]
    rate_open = flow.path.rate_bps.value is None and flow.path.queue != "policer"
    return paths, identifying.identify(flow.capture, paths, rate_open, dict(flow.inspect_row), bench)


def _open(flow: FlowEvidence, base_network: CandidatePaths) -> list[CandidatePaths]:
    return hypotheses(base_network, flow.path, queue_bytes(flow), flow.capture.retransmitted > 0)


def explaining(
    flow: FlowEvidence, paths: Sequence[CandidatePaths], algorithm: str, duration_s: float, bench: Bench
) -> CandidatePaths:
    """Return the path on which a run of the algorithm is nearest to the capture.

    Its `alternatives` have the rest of those that explain the capture at least roughly: a prediction ranges
    over all of them.
    """
    if len(paths) == 1:
        return paths[0]
    capture = flow.capture.first(duration_s)
    runs = bench.flow_traces([FlowRun(algorithm, path.middle.options(duration_s)) for path in paths])
    fits = [fitting.fit(capture, run) for run in runs]
    best = min(range(len(paths)), key=lambda at: fits[at].error)
    rest = [at for at in range(len(paths)) if at != best and fits[at].grade != NOT_EXPLAINED]
    nearest_path = paths[best]
    assumption = f"the queue: {network.words(nearest_path.middle)} explains the losses best"
    if rest:
        also = quantity.listing([network.words(paths[at].middle) for at in rest])
        assumption += f"; {also} cannot be excluded, and the ranges include it"
    alternatives = {**nearest_path.alternatives, **{f"queue {at}": paths[at].middle for at in rest}}
    other_assumptions = (text for text in nearest_path.assumed if not text.startswith(network.QUEUE_WORDS))
    return replace(nearest_path, alternatives=alternatives, assumed=(*other_assumptions, assumption))


def check_algorithm(option: str, word: str) -> None:
    """Raise `BadInputError` for what is no congestion control of the simulator, or has wrong options."""
    algorithms = _core.ALGORITHMS
    try:
        parts = _core.flow_word(word)
    except _core.InputError as error:
        raise BadInputError(option, word, error.args[2], "command line") from None
    name = parts.name
    if not parts.is_algorithm_alone:
        expected = "an algorithm with its options alone: the capture decides on flows, RTT and start"
        raise BadInputError(option, word, expected, "command line")
    if name not in algorithms:
        expected = f"one of {', '.join(algorithms)}{nearest(name, algorithms)}"
        raise BadInputError(option, word, expected, "command line")
    try:
        reworded(lambda: expand(network.experiment(ANY_PATH, [word])), COMMAND_LINE)
    except BadInputError as error:
        raise BadInputError(option, word, error.expected, "command line") from None


def whatif(
    file: Path,
    algorithms: Sequence[str],
    *,
    sender_algorithm: str | None,
    name: str | None,
    changes: Options,
    anyway: bool,
    quiet: bool,
) -> Verdict:
    """Return what these algorithms would have done in the place of a capture's own.

    `sender_algorithm` is the capture's, `changes` are options of `compare` that the path is changed by.
    Raises `BadInputError` if the path or the algorithm is unknown.
    """
    for word in algorithms:
        check_algorithm("ALGORITHM", word)
    if sender_algorithm is not None:
        check_algorithm("--sender-algorithm", sender_algorithm)
    network.experiment(raced_options(ANY_PATH, changes), ["reno"])
    flow = read(file, name)
    base_network = on_path(flow)
    with bench("running the path", quiet) as workers:
        answer = None
        algorithm = sender_algorithm
        if algorithm is None:
            paths, answer = _identified_on_paths(flow, base_network, workers)
            algorithm = answer.name
            if algorithm is None:
                raise BadInputError("--sender-algorithm", None, _needed(answer), "command line")
        else:
            paths = [calibrated(flow, path, algorithm, workers) for path in _open(flow, base_network)]
        duration = max(1.0, min(flow.capture.duration_s, BITS_MAX / base_network.middle.rate_bps))
        base_network = explaining(flow, paths, algorithm, duration, workers)
        options = base_network.middle.options(duration)
        (run,) = workers.flow_traces([FlowRun(algorithm, options)])
        capture = flow.capture.first(duration)
        errors = fitting.fit(capture, run)
        reasons = tuple(
            fitting.contradictions(capture, run, errors, dict(flow.inspect_row), flow.other_flows)
        )
        refused = errors.grade == NOT_EXPLAINED and not anyway
        raced = list(dict.fromkeys([algorithm, *(algorithms or OTHERS)]))
        predictions = () if refused else predicted(base_network, duration, raced, changes, workers)
    return Verdict(
        flow,
        base_network,
        algorithm,
        answer,
        capture,
        run,
        errors,
        reasons,
        options,
        changes,
        tuple(predictions),
        refused,
    )


def _needed(answer: Answer) -> str:
    among = f": {', '.join(answer.names)}" if answer.names else ""
    return (
        f"is needed, the capture does not show which it was ({answer.kind}{among}; {answer.reason}): "
        "--sender-algorithm cubic, if the sender is a Linux, Windows or Apple host with its default"
    )


def predicted(
    base_network: CandidatePaths,
    duration_s: float,
    algorithms: Sequence[str],
    changes: Options,
    bench: Bench,
) -> list[Prediction]:
    """Return what each algorithm does on the path, and on those that it may be."""
    networks = [base_network.middle, *base_network.alternatives.values()]
    variants = _variants(networks, duration_s, changes)
    runs = [FlowRun(algorithm, options) for algorithm in algorithms for options in variants]
    traces = bench.flow_traces(runs)
    size = len(variants)
    return [
        Prediction(algorithm, tuple(traces[at * size : (at + 1) * size]))
        for at, algorithm in enumerate(algorithms)
    ]


def raced_options(inferred: Options, changes: Options) -> Options:
    """Return the options of `compare` for the races: of a path by name all but the hosts' are its own."""
    fixed_names = HOSTS if "path" in changes else inferred.keys()
    return {**{name: value for name, value in inferred.items() if name in fixed_names}, **changes}


def _variants(networks: Sequence[CandidatePath], duration_s: float, changes: Options) -> list[Options]:
    """Return the options of all runs of an algorithm, each once."""
    variants: list[Options] = []
    for path in networks:
        options = raced_options(path.options(duration_s), changes)
        if options not in variants:
            variants.append(options)
    first = variants[0]
    if {"loss", "jitter"} & first.keys() and "seed" not in changes:
        variants += [{**first, "seed": network.SEED + more} for more in range(1, SEEDS)]
    return variants
