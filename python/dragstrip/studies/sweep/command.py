"""The work of `dragstrip sweep`, without the parsing of its options."""

from __future__ import annotations

import contextlib
import json
import random
import time
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.display.progress_cell import in_notebook
from dragstrip.engines import named
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.files import DamagedError, expect_empty_folder
from dragstrip.io.untrusted import whole_number
from dragstrip.runs.child import without_pandas
from dragstrip.runs.local import Local, Place
from dragstrip.runs.parallel import cores
from dragstrip.runs.process import Limits
from dragstrip.studies.sweep import plan
from dragstrip.studies.sweep.build import run_key
from dragstrip.studies.sweep.build import version as build_version
from dragstrip.studies.sweep.claim import STORE, read_description
from dragstrip.studies.sweep.grading import expect_measurable, summary_lines
from dragstrip.studies.sweep.options import Options as Options
from dragstrip.studies.sweep.plan import Index, Sweep
from dragstrip.studies.sweep.progress import ProgressBar, ProgressLine, SweepProgress, clock

ROW_BYTES = 420
"""Bytes on disk per run, in store and dataset together, as measured in docs/how-to/sweeps.md."""
MEMORY_MIN = 512 << 20
SHARDS_MAX = 1_000_000
TRIALS = 5
TRIAL_S = 3.0
TRIAL_RUN_S = 1.0


def parse_shard(text: str | None) -> tuple[int, int]:
    """Parse a shard such as `3/10` to (3, 10); raises `BadInputError`."""
    if text is None:
        return (1, 1)
    part, slash, parts = text.partition("/")
    numbers = whole_number(part, SHARDS_MAX), whole_number(parts, SHARDS_MAX)
    if slash and numbers[0] is not None and numbers[1] is not None and 1 <= numbers[0] <= numbers[1]:
        return numbers[0], numbers[1]
    raise BadInputError("--shard", text, "k/N with k from 1 to N, such as 3/10", "command line")


def limits(time: str, memory: str) -> Limits:
    """Parse the limits of a run from their texts; raises `BadInputError`."""
    read: dict[str, int] = {}
    for option, text, parse in (
        ("--time-limit", time, _core.parse_time),
        ("--memory-limit", memory, _core.parse_size),
    ):
        try:
            read[option] = parse(text)
        except _core.InputError as error:
            raise BadInputError(option, text, error.args[2], "command line") from None
    if read["--time-limit"] == 0:
        raise BadInputError("--time-limit", time, "a time above zero", "command line")
    if read["--memory-limit"] < MEMORY_MIN:
        raise BadInputError(
            "--memory-limit", memory, "at least 512mb: a worker's libraries alone take that", "command line"
        )
    return Limits(read["--time-limit"] / 1e9, read["--memory-limit"])


def describe(name: str, **options: Any) -> Sweep:
    """Return the sweep that the command line describes; raises `BadInputError`.

    `name` is an experiment of the catalogue or a file, `options` are those of `plan.describe`.
    """
    from dragstrip.experiment import catalogue

    experiment, source = catalogue.load(name, options.get("engine"))
    sweep = plan.describe(experiment, source, **options)
    expect_measurable(experiment, sweep, source)
    return sweep


def checked(capture: CaptureRequest | None, sweep: Sweep, keep_recordings: bool) -> CaptureRequest | None:
    """Return the requested capture; raises `BadInputError` if the first run cannot have it."""
    if capture is not None:
        if not keep_recordings:
            expected = "needs --keep-recordings: a run's packets are written beside its recording"
            raise BadInputError("--capture", None, expected, "command line")
        capture.check_engine(named(sweep.engine))
        capture.of(json.loads(sweep.run(0).text))
    return capture


def run(sweep: Sweep, out: Path, options: Options, quiet: bool) -> dict[str, Any]:
    """Make a sweep, and show its progress unless quiet."""
    without_pandas()
    if quiet:
        return execute(sweep, out, options, SweepProgress())
    shown = ProgressBar() if in_notebook() else ProgressLine()
    try:
        return execute(sweep, out, options, shown)
    finally:
        shown.clear()


def execute(sweep: Sweep, out: Path, options: Options, progress: SweepProgress) -> dict[str, Any]:
    """Make the missing runs, write dataset and report, and return the summary document."""
    engine = named(sweep.engine)
    if engine.real_time:
        engine.prepare(sweep.options, progress.note)
        engine.expect([sweep.scenario(point).document() for point in range(sweep.points)], sweep.options)
    with contextlib.closing(_place(options, sweep)) as place:
        # Its processes load their libraries while this one loads its own.
        from dragstrip.studies.sweep.make import make

        return make(sweep, Index(sweep), out, options, progress, place)


def _place(options: Options, sweep: Sweep) -> Place:
    real_time = named(sweep.engine).real_time  # two runs at once would share the processors
    if options.on is None:
        workers = 1 if real_time else min(options.workers or cores(), sweep.points * sweep.repeat)
        return Local(workers, options.limits)
    if real_time or sweep.options:
        restriction = f"engine {sweep.engine}" if real_time else ", ".join(sweep.options)
        expected = f"none: {restriction} is for this machine alone"
        raise BadInputError("--on", options.on, expected, "command line")
    from dragstrip.studies.sweep.cluster import Cluster

    return Cluster(options.on, options.limits, sweep.engine)


def summary(document: dict[str, Any], out: Path) -> str:
    """Return the summary document as text for people."""
    lines = [
        f"{document['runs']:,} runs: {document['reused']:,} reused, {document['made']:,} made in "
        f"{clock(document['wall_s'])}, {document['failed']:,} of them failed or reached a limit"
    ]
    if document["interrupted"]:
        lines.append(f"Interrupted; no finished run is lost. To resume: {document['resume']}")
    if document["failed"]:
        lines.append(
            "Which, and why: columns status and reason of the dataset; a crash's last output: column "
            f"output of {out / STORE}/*.parquet; --retry-failed runs them again"
        )
    if document["ranking"]:
        lines += ["", ranking_table(document["ranking"]), ""]
    if document["claims"]:
        lines += [*summary_lines(document["claims"]), ""]
    if document["dataset"]:
        lines.append(f"Dataset: {document['dataset']}")
    if document["report"]:
        lines.append(f"Report: {document['report']}")
    return "\n".join(lines)


def ranking_table(ranked: dict[str, Any]) -> str:
    """Return as plain text who is best on how many paths, and how far from the best on the others."""
    from rich.table import Table

    from dragstrip.display.quantity import plural
    from dragstrip.display.terminal import as_text, hanging
    from dragstrip.results.intervals import REPEATS_MIN
    from dragstrip.studies.sweep.drawing import WORDS

    names = [name for name in WORDS if name in ranked]
    decided = ranked["repeats"] >= REPEATS_MIN
    rows: dict[str, list[str]] = {line["contender"]: [] for line in ranked[names[0]]}
    for name in names:
        for line in ranked[name]:
            share = line.get("of_best", line.get("median"))
            figure = "–" if share is None else f"{share * 100:.1f} %"
            if decided:
                figure = f"{line['sole_best']} / {line['best_or_tied']}  {figure:>7}"
            rows[line["contender"]].append(figure)
    table = Table("", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for name in names:
        table.add_column(WORDS[name], justify="right")
    for contender, row in rows.items():
        table.add_row(contender, *row)
    paths = plural(ranked["paths"], "path")
    figure = "its median figure in % of the best" + (" (harm: its median)" if "harm" in names else "")
    heading = f"Per algorithm, over {paths}: {figure}."
    if decided:
        heading = f"Per algorithm, of {paths}: won alone / won or tied, and {figure}."
    lines = [hanging(heading, 0), as_text(table)]
    if not decided:
        seeds = plural(ranked["repeats"], "seed")
        lines.append(
            f"With {seeds} no algorithm is called better than another: --repeat {REPEATS_MIN} would tell."
        )
    return "\n".join(lines)


def describe_forecast(forecast: dict[str, Any]) -> str:
    """Return the forecast of `dry_run` as text for people."""
    lines = []
    for path, values in forecast["axes"].items():
        more = " ..." if len(values) > 12 else ""
        lines.append(f"{path}: {len(values)} values: {', '.join(map(str, values[:12]))}{more}")
    lines.append(
        f"{forecast['runs']:,} runs, {forecast['done']:,} of them not needed: "
        "made before, or identical to another"
    )
    if forecast["wall_s"] is not None:
        lines.append(
            f"about {clock(forecast['wall_s'])} on {forecast['workers']} processes "
            f"({forecast['cpu_s']:.3g} s of processor time), estimated from a few light runs"
        )
    lines.append(f"about {forecast['disk_bytes'] / 1e6:.3g} MB of disk, full recordings not counted")
    return "\n".join(lines)


# --- before: what it would take ---------------------------------------------------------------


def dry_run(sweep: Sweep, out: Path, options: Options) -> dict[str, Any]:
    """Estimate the number of runs, the time and the disk space, from a few runs made now."""
    from dragstrip.studies.sweep.coordinate import missing
    from dragstrip.studies.sweep.store import Store

    index = Index(sweep)
    store = Store(out / STORE)
    numbers, mine = missing(index, store.keys(), options.shard)
    engine = named(sweep.engine)
    cpu_s = None if engine.slow or engine.real_time else _forecast(sweep, index, numbers)
    workers = 1 if engine.real_time else options.workers or cores()
    disk = len(numbers) * ROW_BYTES
    return {
        "runs": mine,
        "done": mine - len(numbers),
        "to_make": len(numbers),
        "combinations": sweep.points,
        "axes": {path: _as_written(sweep, path) for path in sweep.columns()},
        "cpu_s": cpu_s,
        "wall_s": None if cpu_s is None or options.on else cpu_s / workers,
        "workers": None if options.on else workers,
        "disk_bytes": disk,
    }


def _as_written(sweep: Sweep, path: str) -> list[Any]:
    for axis in sweep.axes:
        if axis.path == path:
            return [level.label for level in axis.levels]
    return [level.assignments[path] for axis in sweep.axes if axis.path == "sample" for level in axis.levels]


def _forecast(sweep: Sweep, index: Index, numbers: list[int]) -> float:
    """Return the processor time in seconds, from the cost per packet at the start of a few light runs."""
    if not numbers:
        return 0.0
    weights = sorted((index.weights[number], number) for number in numbers)
    lightest = [number for _, number in weights[: max(1, len(weights) // 2)]]
    picked = random.Random("dragstrip forecast").sample(lightest, min(TRIALS, len(lightest)))  # noqa: S311
    costs: list[tuple[float, float]] = []
    began = time.monotonic()
    _trial(sweep, picked[0])  # imports and caches
    for number in picked:
        costs.append(_trial(sweep, number))
        if time.monotonic() - began > TRIAL_S:
            break
    per_packet = sum(cost for _, cost in costs) / sum(weight for weight, _ in costs)
    return per_packet * sum(weight for weight, _ in weights)


def _trial(sweep: Sweep, number: int) -> tuple[float, float]:
    """Make a run for a second at most; return the packets of that part, and its processor time in seconds."""
    from dragstrip.runs.work import Order, perform

    run = sweep.run(number)
    duration_ns = json.loads(run.text)["duration_ns"]
    reached_ns = 0
    began, cpu_s = time.monotonic(), time.process_time()

    def goes_on(now_ns: int, _arrived_bytes: int = 0, /) -> bool:
        nonlocal reached_ns
        reached_ns = now_ns
        return time.monotonic() - began < TRIAL_RUN_S

    perform(Order(0, run.text, sweep.engine), goes_on)
    ended_early = time.monotonic() - began >= TRIAL_RUN_S
    share = reached_ns / duration_ns if ended_early and reached_ns else 1.0
    return run.weight * share, time.process_time() - cpu_s


# --- after: one run again ---------------------------------------------------------------------


def find(folder: Path, key: str) -> tuple[str, str, str]:
    """Return scenario, version and engine of the run whose key begins with `key`.

    Raises `BadInputError` if there is no such run or more than one, and `DamagedError` for a damaged store.
    """
    from dragstrip.io.files import warn
    from dragstrip.studies.sweep.store import Store

    matching_runs = {}
    columns = ["key", "scenario", "version", "engine", "claims"]
    for table in Store(folder / STORE).tables(columns, warn):
        rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
        for stored_key, text, version, engine, claims in rows:
            if text and stored_key.startswith(key):
                matching_runs[stored_key] = (text, version, engine, claims or "")
    if len(matching_runs) != 1:
        expected = (
            "the key of a run in this folder"
            if not matching_runs
            else "more characters: several keys begin like this"
        )
        raise BadInputError("--replay", key, expected, str(folder))
    ((stored_key, (text, version, engine, claims)),) = matching_runs.items()
    if run_key(text, engine, version, claims).hex() != stored_key:
        reason = f"the key {stored_key} is not that of the scenario beside it; nothing is run"
        raise DamagedError(folder / STORE, reason)
    return text, version, engine


def replay(folder: Path | None, key: str, out: Path | None) -> Path:
    """Make one run again with its full recording in `out` (default: a folder named after the key).

    Raises `BadInputError`, and `DragstripError` if the run is of another version.
    """
    from dragstrip.model.recording import write

    if folder is None:
        raise BadInputError("--from", None, "is missing: the folder of the sweep", "command line")
    out = out or Path(key[:8])

    text, version, engine = find(folder, key)
    options = read_description(folder).options
    present = build_version(engine, options)
    if version != present:
        raise DragstripError(f"that run is of version {version}, this is {present}")
    expect_empty_folder("--out", out)
    recording = named(engine).run(json.loads(text), options)
    recording.provenance["replay_of"] = key
    if out.exists():
        out.rmdir()
    write(recording, out)
    return out
