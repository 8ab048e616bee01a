"""Runs without the cause that explains a run: the flow that takes more is left out, or the buffer is one BDP.

Each is an experiment of its own, written beside the result, so that `dragstrip run` repeats it. It is run on
the simulator with the seed of the run that it explains, and no recording of it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip.engines import DEFAULT
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.types import Experiment
from dragstrip.io import toml
from dragstrip.io.files import make_folder, scratch, write_text
from dragstrip.pool import Limits, Task, run_all
from dragstrip.results.standings import quantity
from dragstrip.results.standings.path import qdisc
from dragstrip.scenario.paths import FRAME_BYTES, PathFacts, path_of

FOLDER = "counterfactuals"
"""Folder of the experiments, in the output folder."""
SEGMENTS_MAX = 250_000
"""Segments that the explained run sent, at most: the simulator takes 0.1 s for as many."""
RUNS_MAX = 4
"""Counterfactual runs of an experiment, at most."""
ENTRIES_MAX = 16
"""Entries of `flows` among which one is left out, at most: each is expanded once."""
SMALLER, SHORTER = 1.25, 0.9
"""A buffer of so many BDPs or fewer is no cause, nor is one whose change leaves more of the RTT."""

Json: TypeAlias = Mapping[str, Any]
Told: TypeAlias = Callable[[Json], tuple[str, dict[str, float]] | None]
"""From the summary of the counterfactual run to its sentence and figures, or None if it shows nothing."""


@dataclass(frozen=True)
class _Trial:
    """A run without the cause, and the finding that it belongs to."""

    finding: dict[str, Any]
    experiment: Experiment
    run: PlannedRun
    told: Told


def add(
    document: dict[str, Any],
    experiment: Experiment,
    runs: Sequence[PlannedRun],
    out: Path,
    workers: int | None,
    limits: Limits,
) -> list[str]:
    """Add to the first explanation of each run what happens without its cause; return the files written.

    Only runs of the simulator that cost little are made again, at most `RUNS_MAX` of them.
    """
    known = {f"runs/{run.slug}": run for run in runs}
    explained = ((line, known[line["recording"]]) for line in document["runs"] if line["why"])
    trials = [
        trial
        for line, run in explained
        if run.engine == DEFAULT and run.repeat == 0 and _segments(line) <= SEGMENTS_MAX
        for trial in _trials(experiment, line, run)
    ][:RUNS_MAX]
    if not trials:
        return []
    with scratch("counterfactual") as folder:
        tasks = [
            Task(trial.run.scenario, folder / str(at), {}, DEFAULT, trial.experiment.options_of(DEFAULT))
            for at, trial in enumerate(trials)
        ]
        outcomes = run_all(tasks, workers, limits=limits)
    files = []
    for at, (trial, outcome) in enumerate(zip(trials, outcomes, strict=True)):
        told = None if outcome.summary is None else trial.told(outcome.summary)
        if told is None:
            continue
        name = f"{FOLDER}/{at:02d}.toml"
        make_folder(out / FOLDER)
        write_text(out / name, toml.written(trial.experiment.content()))
        files.append(name)
        sentence, figures = told
        trial.finding["without"] = {"sentence": sentence, "figures": figures, "experiment": name}
    return files


def _segments(line: Json) -> int:
    return sum(flow["segments_sent"] or 0 for flow in line["flows"])


def _trials(experiment: Experiment, line: Json, run: PlannedRun) -> Iterator[_Trial]:
    """Yield the counterfactual of a run's first explanation, if there is one and it can be run."""
    if experiment.alternatives:
        return
    finding = line["why"][0]
    how = {"unfair_share": _without_a_flow, "standing_queue": _with_one_bdp}.get(finding["rule"])
    alone = {name: [value] for name, value in run.settings.items()}
    try:
        bare = experiment.changed(
            claims=[], ablations=[], flow_tables=[], repeat=1, seed=run.scenario["seed"], vary=alone
        )
        made = how(bare, finding, run, line) if how else None
        if made is not None:
            changed, told = made
            yield _Trial(finding, changed, expand(changed)[0], told)
    except BadInputError:
        return  # what is left is no experiment, such as a workload without the flow that it loads


def _without_a_flow(
    bare: Experiment, finding: Json, run: PlannedRun, line: Json
) -> tuple[Experiment, Told] | None:
    """Return the experiment without the entry of `flows` that has the flow which gets more."""
    flows = run.scenario["flows"]
    labels = [flow["label"] for flow in flows]
    most, least = (labels.index(label) for label in finding["flows"][:2])
    if not 2 <= len(bare.flows) <= ENTRIES_MAX or set(bare.hosts) - {"*"}:
        return None
    if _algorithm(flows[most]) == _algorithm(flows[least]):
        return None
    begin = 0
    for at in range(len(bare.flows)):
        rest = bare.changed(flows=[*bare.flows[:at], *bare.flows[at + 1 :]])
        end = begin + len(flows) - len(expand(rest)[0].scenario["flows"])
        if begin <= most < end:
            break
        begin = end
    else:
        return None
    if begin <= least < end:
        return None
    who = labels[most] if end - begin == 1 else f"the {end - begin} flows of {line['flows'][most]['cc']}"
    place = least if least < begin else least - (end - begin)

    def told(summary: Json) -> tuple[str, dict[str, float]] | None:
        goodput = summary["flows"][place]["goodput_bps"]
        before = quantity.rate(line["flows"][least]["goodput_bps"])
        sentence = (
            f"without {who} beside it, {labels[least]} gets {quantity.rate(goodput)} instead of {before}"
        )
        return sentence, {"goodput_bps": goodput}

    return rest.changed(title=f"{bare.title or bare.name}, without {who}"), told


def _algorithm(flow: Json) -> Any:
    transport = flow["transport"]
    return transport.get("cc"), transport.get("cc_options")


def _with_one_bdp(
    bare: Experiment, finding: Json, run: PlannedRun, line: Json
) -> tuple[Experiment, Told] | None:
    """Return the experiment with a buffer of one BDP, if a single flow stands in a larger FIFO."""
    if len(run.scenario["flows"]) != 1 or bare.path is None or isinstance(bare.path, str):
        return None
    setting = {"path.queue": ["1bdp"]} if "path.queue" in bare.vary else {}
    path = bare.path if setting else replace(bare.path, queue="1bdp")
    changed = bare.changed(
        path=path, vary={**bare.vary, **setting}, title=f"{bare.title or bare.name}, buffer of one BDP"
    )
    flow = line["flows"][0]
    before, after = (_buffer_ms(each) for each in (run, expand(changed)[0]))
    if before is None or after is None or before < SMALLER * after:
        return None
    rtt = flow["rtt_ms"]["p50"]

    def told(summary: Json) -> tuple[str, dict[str, float]] | None:
        (other,) = summary["flows"]
        shorter = other["rtt_ms"]["p50"]
        if shorter is None or shorter > SHORTER * rtt:
            return None
        sentence = (
            f"with a buffer of {quantity.milliseconds(after)} (one BDP) instead of "
            f"{quantity.milliseconds(before)}, {flow['label']} gets {quantity.rate(other['goodput_bps'])} "
            f"at a median RTT of {quantity.milliseconds(shorter)}"
        )
        return sentence, {"goodput_bps": other["goodput_bps"], "rtt_ms": shorter, "buffer_ms": after}

    return changed, told


def _buffer_ms(run: PlannedRun) -> float | None:
    """Return how long a full FIFO at the bottleneck takes to leave, or None for another queue."""
    flow = run.scenario["flows"][0]
    facts: PathFacts = path_of(run.scenario, flow["sender"], flow["receiver"])
    if facts.bottleneck is None or facts.rate_bps is None:
        return None
    queue = qdisc(facts.bottleneck)
    queue = queue.get("leaf") or queue
    if queue["kind"] not in ("bfifo", "pfifo"):
        return None
    packets = queue.get("limit_packets")
    size = queue.get("limit_bytes") if packets is None else packets * FRAME_BYTES
    return None if size is None else size * 8e3 / facts.rate_bps
