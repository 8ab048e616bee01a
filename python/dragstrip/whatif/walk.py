"""From a capture to a verdict: path, congestion control, how well both explain it, what others would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip import _core
from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.comparison import COMMAND_LINE, reworded
from dragstrip.experiment.expand import expand
from dragstrip.formats import captures
from dragstrip.inference import path as inference
from dragstrip.recording import Recording
from dragstrip.results.standings import quantity
from dragstrip.scenario.paths import PAYLOAD_BYTES
from dragstrip.whatif import fit as fitting
from dragstrip.whatif import identify as identifying
from dragstrip.whatif import network, seen
from dragstrip.whatif.bench import BITS_MAX, Bench, Run, bench
from dragstrip.whatif.fit import NOT_EXPLAINED
from dragstrip.whatif.hypotheses import hypotheses
from dragstrip.whatif.identify import Answer
from dragstrip.whatif.network import Known, Network, Options
from dragstrip.whatif.verdict import Flow, Prediction, Verdict

OTHERS = ("cubic", "bbr", "reno")
"""What is raced if no algorithm is named."""
ANY_PATH: Options = {"rate": "10mbit", "rtt": "40ms"}
"""A path on which options are checked before the capture is read."""
MOVES_MAX = 0.5
"""The idle round trip is corrected by the first run, by at most this share."""
RECEIVER_SHARE = 0.05
"""Share of the time from which the receiver's window is a part of the path."""
SEGMENTS = 2.0
"""A capture's full segments carry at most so many times more or less than those of the runs."""
SEEDS = 5
"""Runs with other seeds where something on the path is random."""


def read(file: Path, name: str | None) -> Flow:
    """Return the flow of a capture whose name contains `name`, or its largest.

    Raises `BadInputError` for a file that is no capture, has no such flow, or does not show its path.
    """
    said, recording, rows = captures.whole(file)
    flows = said["flows"]
    if not flows:
        raise BadInputError("", None, "a capture with a TCP connection that carries data", str(file))
    if name is None:
        chosen = max(flows, key=lambda flow: flow["bytes"])
    else:
        fit = [flow for flow in flows if name in flow["label"]]
        if len(fit) != 1:
            some = ", ".join(flow["label"] for flow in flows[:8])
            raise BadInputError("--flow", name, f"part of the name of one flow: {some}", "command line")
        (chosen,) = fit
    at = flows.index(chosen)
    path = inference.of_flow(file, said, rows, at)
    capture = seen.of_recording(recording, chosen["flow"])
    beside, events = _beside(flows, chosen), _events(said, recording, chosen)
    return Flow(file, chosen, capture, path, int(rows[at]["full_bytes"]), beside, events)


def _beside(flows: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any]) -> int:
    """Return how many flows carried at least a twentieth of the chosen one's bytes."""
    return sum(1 for flow in flows if flow is not chosen and flow["bytes"] > chosen["bytes"] / 20)


def _events(said: Mapping[str, Any], recording: Recording, flow: Mapping[str, Any]) -> list[dict[str, Any]]:
    (row,) = (row for row in recording["flows"].to_pylist() if row["flow"] == flow["flow"])
    begin = said["origin_ns"] + row["start_ns"]
    return [
        {"at_s": (event["time_ns"] - begin) / 1e9, "verdict": event["one"]}
        for event in said.get("events", ())
        if event["flow"] == flow["flow"] and event["one"] is not None
    ]


def queue_bytes(flow: Flow) -> float:
    """Return the longest queue that the round trips show, in bytes at the IP layer."""
    rate, base = flow.path.rate_bps, flow.path.base_rtt_ms
    bps = rate.value or rate.low
    if bps is None or base.value is None or not len(flow.capture.rtt_ms):
        return 0.0
    longest = float(np.percentile(flow.capture.rtt_ms, 99.9))
    return max(0.0, (longest - base.value) / 1e3 * bps / 8)


def on_path(flow: Flow) -> Known:
    """Return the path to run on; raises `BadInputError` where it is not known well enough."""
    if flow.path.place in ("receiver", "queue"):
        where = "at the receiver" if flow.path.place == "receiver" else "behind the bottleneck's queue"
        expected = f"a capture at the sender: one {where} shows neither its round trips nor the buffer"
        raise BadInputError(flow.path.flow, None, expected, str(flow.file))
    if not PAYLOAD_BYTES / SEGMENTS <= flow.full_bytes <= PAYLOAD_BYTES * SEGMENTS:
        expected = f"a capture of segments with about {PAYLOAD_BYTES} bytes of data, as runs have; these have"
        raise BadInputError(flow.path.flow, None, f"{expected} {flow.full_bytes}", str(flow.file))
    limits = flow.said["limited_s"]
    limited = limits["receiver"] > RECEIVER_SHARE * sum(limits.values())
    lost = flow.capture.retransmitted > 0
    return network.known(flow.path, bool(flow.said["ecn"]), limited, queue_bytes(flow), lost)


def calibrated(flow: Flow, known: Known, algorithm: str, bench: Bench) -> Known:
    """Return the path with the idle round trip at which a run's least RTT is the capture's."""
    if not len(flow.capture.rtt_ms):
        return known
    duration = min(flow.capture.duration_s, BITS_MAX / known.middle.rate_bps)
    (run,) = bench.seen([Run(algorithm, known.middle.options(duration))])
    if not len(run.rtt_ms):
        return known
    own, theirs = (float(one.rtt_ms.min()) for one in (run, flow.capture))
    moved = theirs - own
    return known.moved(moved) if abs(moved) <= MOVES_MAX * known.middle.idle_ms else known


def identify(file: Path, name: str | None, quiet: bool) -> tuple[Flow, Known | None, Answer]:
    """Return which congestion control a flow of a capture shows."""
    flow = read(file, name)
    with bench("running candidates", quiet) as made:
        known, answer = _identified(flow, made)
    return flow, known, answer


def _identified(flow: Flow, bench: Bench) -> tuple[Known | None, Answer]:
    said = dict(flow.said)
    reason = identifying.impossible(said, flow.capture, flow.path.base_rtt_ms.value or 0.0)
    if reason:
        return None, Answer(identifying.IMPOSSIBLE, (), 0.0, reason)
    try:
        known = on_path(flow)
    except BadInputError as error:
        return None, Answer(identifying.IMPOSSIBLE, (), 0.0, f"it takes {error.explanation}")
    paths, answer = _named(flow, known, bench)
    return paths[answer.path], answer


def _named(flow: Flow, known: Known, bench: Bench) -> tuple[list[Known], Answer]:
    """Return the paths that a flow may have been on, and its congestion control."""
    paths = [calibrated(flow, path, "cubic", bench) for path in _open(flow, known)]
    rate_open = flow.path.rate_bps.value is None and flow.path.queue != "policer"
    return paths, identifying.identify(flow.capture, paths, rate_open, dict(flow.said), bench)


def _open(flow: Flow, known: Known) -> list[Known]:
    return hypotheses(known, flow.path, queue_bytes(flow), flow.capture.retransmitted > 0)


def explaining(flow: Flow, paths: Sequence[Known], algorithm: str, duration_s: float, bench: Bench) -> Known:
    """Return the path on which a run of the algorithm is nearest to the capture.

    Its `others` have the rest of those that explain the capture at least roughly: a prediction ranges over
    all of them.
    """
    if len(paths) == 1:
        return paths[0]
    capture = flow.capture.first(duration_s)
    runs = bench.seen([Run(algorithm, path.middle.options(duration_s)) for path in paths])
    fits = [fitting.fit(capture, run) for run in runs]
    best = min(range(len(paths)), key=lambda at: fits[at].error)
    rest = [at for at in range(len(paths)) if at != best and fits[at].grade != NOT_EXPLAINED]
    chosen = paths[best]
    taken = f"the queue: {network.words(chosen.middle)} explains the losses best"
    if rest:
        also = quantity.listing([network.words(paths[at].middle) for at in rest])
        taken += f"; {also} cannot be excluded, and the ranges include it"
    others = {**chosen.others, **{f"queue {at}": paths[at].middle for at in rest}}
    kept = (text for text in chosen.assumed if not text.startswith(network.QUEUE_WORDS))
    return replace(chosen, others=others, assumed=(*kept, taken))


def check_algorithm(option: str, word: str) -> None:
    """Raise `BadInputError` for what is no congestion control of the simulator, or has wrong options."""
    known = _core.ALGORITHMS
    try:
        parts = _core.flow_word(word)
    except _core.InputError as error:
        raise BadInputError(option, word, error.args[2], "command line") from None
    name = parts.name
    if not parts.is_algorithm_alone:
        expected = "an algorithm with its options alone: the capture decides on flows, RTT and start"
        raise BadInputError(option, word, expected, "command line")
    if name not in known:
        expected = f"one of {', '.join(known)}{nearest(name, known)}"
        raise BadInputError(option, word, expected, "command line")
    try:
        reworded(lambda: expand(network.experiment(ANY_PATH, [word])), COMMAND_LINE)
    except BadInputError as error:
        raise BadInputError(option, word, error.expected, "command line") from None


def whatif(
    file: Path,
    algorithms: Sequence[str],
    *,
    own: str | None,
    name: str | None,
    changes: Options,
    anyway: bool,
    quiet: bool,
) -> Verdict:
    """Return what these algorithms would have done in the place of a capture's own.

    `own` is the capture's algorithm, `changes` are options of `compare` that the path is changed by. Raises
    `BadInputError` if the path or the algorithm is unknown.
    """
    for word in algorithms:
        check_algorithm("ALGORITHM", word)
    if own is not None:
        check_algorithm("--cc", own)
    network.experiment({**ANY_PATH, **changes}, ["reno"])
    flow = read(file, name)
    known = on_path(flow)
    with bench("running the path", quiet) as made:
        answer = None
        algorithm = own
        if algorithm is None:
            paths, answer = _named(flow, known, made)
            algorithm = answer.name
            if algorithm is None:
                raise BadInputError("--cc", None, _needed(answer), "command line")
        else:
            paths = [calibrated(flow, path, algorithm, made) for path in _open(flow, known)]
        duration = max(1.0, min(flow.capture.duration_s, BITS_MAX / known.middle.rate_bps))
        known = explaining(flow, paths, algorithm, duration, made)
        options = known.middle.options(duration)
        (run,) = made.seen([Run(algorithm, options)])
        capture = flow.capture.first(duration)
        found = fitting.fit(capture, run)
        reasons = tuple(fitting.contradictions(capture, run, found, dict(flow.said), flow.others))
        refused = found.grade == NOT_EXPLAINED and not anyway
        wanted = list(dict.fromkeys([algorithm, *(algorithms or OTHERS)]))
        predictions = () if refused else predicted(known, duration, wanted, changes, made)
    return Verdict(
        flow,
        known,
        algorithm,
        answer,
        capture,
        run,
        found,
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
        "--cc cubic, if the sender is a Linux, Windows or Apple host with its default"
    )


def predicted(
    known: Known, duration_s: float, algorithms: Sequence[str], changes: Options, bench: Bench
) -> list[Prediction]:
    """Return what each algorithm does on the path, and on those that it may be."""
    networks = [known.middle, *known.others.values()]
    variants = _variants(networks, duration_s, changes)
    runs = [Run(algorithm, options) for algorithm in algorithms for options in variants]
    found = bench.seen(runs)
    size = len(variants)
    return [
        Prediction(algorithm, tuple(found[at * size : (at + 1) * size]))
        for at, algorithm in enumerate(algorithms)
    ]


def _variants(networks: Sequence[Network], duration_s: float, changes: Options) -> list[Options]:
    """Return the options of all runs of an algorithm, each once."""
    made: list[Options] = []
    for one in networks:
        options = {**one.options(duration_s), **changes}
        if options not in made:
            made.append(options)
    first = made[0]
    if {"loss", "jitter"} & first.keys() and "seed" not in changes:
        made += [{**first, "seed": network.SEED + more} for more in range(1, SEEDS)]
    return made
