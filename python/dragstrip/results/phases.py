"""Stays of a flow's algorithm in its states, from a recording with every ACK and its variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragstrip.model.recording import Recording
from dragstrip.model.recording.columns import Floats

OF_SAMPLES = ("cwnd_bytes", "bytes_in_flight", "srtt_ns", "pacing_bps", "bytes_acked", "retransmits")
"""Columns of `samples` reported with the algorithm's own variables."""


def recorded(recording: Recording) -> bool:
    """Return True when a recording has every ACK and the algorithm's variables, which phases need."""
    record = recording.scenario.get("record") or {}
    return bool(record.get("every_ack")) and bool(record.get("cc_state"))


def phases(recording: Recording) -> list[list[dict[str, Any]]]:
    """Return, for each flow, its stays in a state of TCP or a phase of its algorithm, in order of time.

    A stay has its `state`, `from_s` and `until_s`, and the `first`, `last`, `least` and `most` of each
    variable while it lasted, in the units of the recording (docs/reference/recording.md).
    """
    samples, variables = recording.tables["samples"], recording.tables["cc_state"]
    columns = {name: _floats(samples, name) for name in ("time_ns", "flow", *OF_SAMPLES)}
    states, state_names = _words(samples, "state")
    variable_columns = {name: _floats(variables, name) for name in ("time_ns", "flow", "value")}
    names, variable_names = _words(variables, "name")
    stays_by_flow = []
    for flow in range(recording.tables["flows"].num_rows):
        mine = columns["flow"] == flow
        times = columns["time_ns"][mine]
        series = {name: (times, columns[name][mine]) for name in OF_SAMPLES}
        of_flow = variable_columns["flow"] == flow
        for number, name in enumerate(variable_names):
            mask = of_flow & (names == number)
            series[name] = variable_columns["time_ns"][mask], variable_columns["value"][mask]
        stays = _stays(states[mine], times, series)
        stays_by_flow.append([{"state": state_names[number], **stay} for number, stay in stays])
    return stays_by_flow


def _floats(table: Any, name: str) -> Floats:
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def _words(table: Any, name: str) -> tuple[Any, list[str]]:
    """A column of words as numbers, and the word of each number."""
    coded = table[name].combine_chunks().dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False), coded.dictionary.to_pylist()


def _stays(
    states: Any, times: Floats, series: dict[str, tuple[Floats, Floats]]
) -> list[tuple[int, dict[str, Any]]]:
    if not len(times):
        return []
    begins = np.flatnonzero(np.concatenate(([True], states[1:] != states[:-1])))
    starts = times[begins]
    ends = np.append(starts[1:], times[-1])
    spans = {
        name: (at, values, np.searchsorted(at, starts), np.append(np.searchsorted(at, starts[1:]), len(at)))
        for name, (at, values) in series.items()
    }
    stays: list[tuple[int, dict[str, Any]]] = []
    for number, begin in enumerate(begins):
        stay: dict[str, Any] = {
            "from_s": starts[number] / 1e9,
            "until_s": ends[number] / 1e9,
        }
        extremes = {}
        for name, (_, values, lows, highs) in spans.items():
            stay_values = values[lows[number] : highs[number]]
            stay_values = stay_values[~np.isnan(stay_values)]
            if len(stay_values):
                extremes[name] = (stay_values[0], stay_values[-1], stay_values.min(), stay_values.max())
        for at, statistic in enumerate(("first", "last", "least", "most")):
            stay[statistic] = {name: float(four[at]) for name, four in extremes.items()}
        stays.append((int(states[begin]), stay))
    return stays
