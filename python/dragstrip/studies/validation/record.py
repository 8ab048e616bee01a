"""Records cells of the grid on the kernel in use: `dragstrip validate record FOLDER CELL`.

A cell's name defines it completely (cells.py). Existing recordings are kept, so that an interrupted session
can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragstrip.engines.contract import Progress
from dragstrip.engines.vm import ENGINE as KERNEL
from dragstrip.experiment.expand import complete
from dragstrip.io.files import make_folder, write_whole
from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import Floats, matching, numbers
from dragstrip.results.measures import Measured
from dragstrip.runs import run_parallel
from dragstrip.studies.validation.cells import cell
from dragstrip.studies.validation.kernel import Json, KernelRun, packed
from dragstrip.studies.validation.translate import scenario

BOTTLENECK = "r-d"
"""The bottleneck's name in the scenario that translate.py makes."""
COUNTERS = ("TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts", "TCPFastRetrans", "TCPLostRetransmit")
"""The kernel's counters that are kept."""


def record(
    names: Sequence[str],
    seeds: int,
    folder: Path,
    workers: int | None = None,
    notify: Callable[[str], object] = lambda _: None,
    kernel: str | None = None,
) -> list[Path]:
    """Run every cell with seeds 1 to `seeds`, write the recordings, and return their files.

    Existing recordings are kept, so that an interrupted session can be resumed and further seeds cost only
    their own runs. `kernel` names another kernel than the one in use.
    """
    options: Json = {} if kernel is None else {"kernel": kernel}
    files = {folder / f"{run.name}.json.xz": run for run in _planned_runs(names, seeds)}
    missing = [file for file in files if not file.exists()]

    def record_file(file: Path, progress: Progress) -> None:
        write_whole(file, lambda draft: draft.write_bytes(packed(recorded(files[file], options, progress))))

    if missing:
        KERNEL.prepare(options)
        make_folder(folder)
        run_parallel(
            record_file, missing, workers, finished=lambda index, _: notify(files[missing[index]].name)
        )
    return list(files)


def _planned_runs(names: Sequence[str], seeds: int) -> Iterator[KernelRun]:
    """Yield recordings still to be made, with a scenario and nothing else."""
    for name in names:
        for seed in range(1, seeds + 1):
            spec = cell(name, seed)
            nothing: Json = {"scenario": spec, "flows": [], "ping_series": {"t_s": [], "rtt_ms": []}}
            yield KernelRun(name if seed == 1 else f"{name}-seed{seed}", nothing)


def recorded(run: KernelRun, options: Json, progress: Progress | None = None) -> KernelRun:
    """Run a scenario on the kernel and return its recording."""
    recording = KERNEL.run(complete(scenario(run, nominal=True)), options, progress)
    return KernelRun(run.name, content(run.scenario, recording))


def content(spec: Json, recording: Recording) -> Json:
    """Return a recording of the vm engine in the exchange format."""
    verified = recording.provenance["verified"]
    rows, measured = recording["flows"].to_pylist(), Measured(recording)
    queue = matching(recording["queues"], "link", BOTTLENECK)
    probes = recording["probes"]
    idle_ms = min(verified["idle_rtt_ns"].values()) / 1e6 - spec["rtt_ms"]
    return {
        "scenario": spec,
        "flows": [
            _flow(recording, row, measured.segment_bytes(flow))
            for row, flow in zip(rows, measured.flows, strict=True)
        ],
        "netstat": {
            host: {name: count for name, count in counters.items() if name in COUNTERS}
            for host, counters in verified["netstat"].items()
        },
        "queue_series": {
            "t_s_step": 0.1,
            "backlog_bytes": _whole(numbers(queue, "backlog_bytes")),
            "drops": _whole(numbers(queue, "dropped")),
            "ecn_marks": _whole(numbers(queue, "marked")),
        },
        "ping_series": {
            "t_s": _rounded(numbers(probes, "time_ns") / 1e9),
            "rtt_ms": _rounded(numbers(probes, "rtt_ns") / 1e6),
        },
        "run": {
            "kernel": recording.provenance["kernel"]["package"] or recording.provenance["kernel"]["release"],
            "emulator": recording.provenance["emulator"],
            "cpu_idle_share": round(verified["cpu_idle_share"], 3),
            "late_ms": 0.0,
            # The hosts' own work cannot be seen where every ping has jitter.
            "idle_ms": 0.0 if "delay" in spec.get("fwd_netem", "") else round(idle_ms, 6),
        },
    }


def _flow(recording: Recording, row: dict[str, Any], segment: int) -> Json:
    samples = recording["samples"]
    mine = numbers(samples, "flow") == row["flow"]

    def of(name: str) -> Floats:
        return np.asarray(numbers(samples, name)[mine])

    ssthresh = of("ssthresh_bytes")
    return {
        "cc": row["cc"],
        "src": row["sender"],
        "start_s": row["start_ns"] / 1e9,
        "stop_s": row["stop_ns"] / 1e9,
        "rx_bytes": row["bytes_received"],
        "retrans": row["retransmits"],
        "snd_mss": segment,
        "series": {
            "t_s": _rounded(of("time_ns") / 1e9),
            "cwnd": _whole(of("cwnd_bytes") / segment),
            "ssthresh": _whole(np.where(np.isfinite(ssthresh), ssthresh / segment, -1)),
            "srtt_ms": _rounded(np.nan_to_num(of("srtt_ns")) / 1e6),
            "unacked": _whole(of("bytes_in_flight") / segment),
            "retrans": _whole(of("retransmits")),
        },
    }


def _whole(values: Floats) -> list[int]:
    return [round(value) for value in values.tolist()]


def _rounded(values: Floats) -> list[float | None]:
    """Round to two decimals, with None for missing values."""
    return [round(value, 2) if np.isfinite(value) else None for value in values.tolist()]
