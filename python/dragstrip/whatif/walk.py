"""From a capture to a verdict: path, congestion control, how well both explain it, what others would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip import _core
from dragstrip.errors import BadInputError, nearest
from dragstrip.experiment.comparison import COMMAND_LINE, command, reworded
from dragstrip.experiment.expand import expand
from dragstrip.formats import captures
from dragstrip.inference import path as inference
from dragstrip.inference.path import PathEstimate
from dragstrip.recording import Recording
from dragstrip.scenario.paths import PAYLOAD_BYTES
from dragstrip.whatif import fit as fitting
from dragstrip.whatif import identify as identifying
from dragstrip.whatif import network, seen, wording
from dragstrip.whatif.bench import BITS_MAX, Bench, Run, bench
from dragstrip.whatif.fit import NOT_EXPLAINED, Fit
from dragstrip.whatif.identify import Answer
from dragstrip.whatif.network import Known, Network, Options
from dragstrip.whatif.seen import Seen

VERSION = 1
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


@dataclass(frozen=True)
class Flow:
    """A flow of a capture with everything that the capture shows of it."""

    file: Path
    said: Mapping[str, Any]
    """As `inspect` says it."""
    capture: Seen
    path: PathEstimate
    full_bytes: int
    """Data of a full segment."""
    others: int
    """Flows beside it."""
    events: Sequence[Mapping[str, Any]]
    """Retransmissions with their verdicts; times in seconds from the beginning."""


@dataclass(frozen=True)
class Prediction:
    """What an algorithm does on the path: on the path as it was taken, and on those that it may be."""

    algorithm: str
    runs: tuple[Seen, ...]
    """The first is that on the path as it was taken."""

    def of(self, figure: str) -> tuple[float, float, float] | None:
        """Return a figure on the path as it was taken, its least and its greatest; None if it is unknown."""
        values = [value for run in self.runs if (value := figures(run)[figure]) is not None]
        first = figures(self.runs[0])[figure]
        return None if first is None else (first, min(values), max(values))


@dataclass(frozen=True)
class Verdict:
    """Everything that `whatif` found."""

    flow: Flow
    known: Known
    algorithm: str
    answer: Answer | None
    """None where the algorithm was given."""
    capture: Seen
    """What of the capture is explained: all of it, or the beginning of a long one."""
    run: Seen
    fit: Fit
    reasons: tuple[str, ...]
    options: Options
    """The path as options of `compare`."""
    changed: Options
    """What was asked to be otherwise."""
    predictions: tuple[Prediction, ...]
    refused: bool
    """The path does not explain the capture, so that nothing was raced on it."""


def figures(run: Seen) -> dict[str, float | None]:
    """Return what is compared of a run."""
    trips = run.rtt_quantiles_ms or (None, None, None)
    segments = run.delivered_bytes / PAYLOAD_BYTES + run.retransmitted
    return {
        "goodput_bps": run.goodput_bps,
        "rtt_ms_p5": trips[0],
        "rtt_ms_p50": trips[1],
        "rtt_ms_p95": trips[2],
        "retransmitted_share": run.retransmitted / segments if segments else 0.0,
    }


def wide(found: tuple[float, float, float]) -> bool:
    """Return whether a figure's range says more than the figure."""
    value, low, high = found
    return high - low > wording.WIDE * abs(value)


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
        return None, Answer(identifying.IMPOSSIBLE, (), 0.0, f"it takes {error.said}")
    known = calibrated(flow, known, "cubic", bench)
    return known, identifying.identify(flow.capture, known, said, bench)


def check_algorithm(option: str, word: str) -> None:
    """Raise `BadInputError` for what is no congestion control of the simulator, or has wrong options."""
    name = word.partition(":")[0]
    known = _core.algorithms()
    if any(mark in word for mark in "*@+"):
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
            known = calibrated(flow, known, "cubic", made)
            answer = identifying.identify(flow.capture, known, dict(flow.said), made)
            algorithm = answer.name
            if algorithm is None:
                raise BadInputError("--cc", None, _needed(answer), "command line")
        else:
            known = calibrated(flow, known, algorithm, made)
        duration = max(1.0, min(flow.capture.duration_s, BITS_MAX / known.middle.rate_bps))
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
    return f"is needed, the capture does not show which it was ({answer.kind}{among}; {answer.reason})"


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


# --- the document -----------------------------------------------------------------------------------


def estimates(path: PathEstimate) -> dict[str, Any]:
    """Return an inferred path as JSON, without file and addresses."""
    content = asdict(path)
    for field in ("file", "flow", "rate_over_time"):
        del content[field]
    return content


def document(verdict: Verdict, addresses: bool) -> dict[str, Any]:
    """Return everything as JSON; without `addresses`, the flow is only numbered."""
    flow = verdict.flow
    return {
        "version": VERSION,
        "capture": {**subject(flow, addresses), "other_flows": flow.others, **figures(verdict.capture)},
        "path": estimates(flow.path),
        "assumed": list(verdict.known.assumed),
        "algorithm": verdict.algorithm,
        "identified": None if verdict.answer is None else verdict.answer.document(),
        "explains": {
            **verdict.fit.document(),
            "run": figures(verdict.run),
            "contradictions": list(verdict.reasons),
        },
        "experiment": command([verdict.algorithm], verdict.options),
        "changes": verdict.changed,
        "raced": not verdict.refused,
        "what_if": [
            {
                "algorithm": one.algorithm,
                "runs": len(one.runs),
                **{figure: _interval(one.of(figure)) for figure in figures(one.runs[0])},
            }
            for one in verdict.predictions
        ],
        "sentence": wording.verdict_sentence(verdict),
    }


def subject(flow: Flow, addresses: bool) -> dict[str, Any]:
    """Return what a verdict is about, as JSON."""
    return {
        "file": str(flow.file) if addresses else flow.file.name,
        "flow": flow_name(flow, addresses),
        "place": flow.said["place"],
        "duration_s": flow.capture.duration_s,
    }


def _interval(found: tuple[float, float, float] | None) -> dict[str, float] | None:
    return None if found is None else dict(zip(("value", "low", "high"), found, strict=True))


def flow_name(flow: Flow, addresses: bool) -> str:
    """Return a flow's name: its ends, or only its number."""
    return str(flow.said["label"]) if addresses else f"flow {flow.said['flow']}"
