"""What a flow's algorithm did in each of its states, of a recording with every ACK and its variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from dragstrip.recording import Recording
from dragstrip.recording.columns import Floats

OF_SAMPLES = ("cwnd_bytes", "bytes_in_flight", "srtt_ns", "pacing_bps", "bytes_acked", "retransmits")
"""Columns of `samples` that are told beside the algorithm's own variables."""


def recorded(recording: Recording) -> bool:
    """Whether a recording has what phases are read from: every ACK, with the algorithm's variables."""
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
    told = {name: _floats(variables, name) for name in ("time_ns", "flow", "value")}
    names, variable_names = _words(variables, "name")
    made = []
    for flow in range(recording.tables["flows"].num_rows):
        mine = columns["flow"] == flow
        times = columns["time_ns"][mine]
        series = {name: (times, columns[name][mine]) for name in OF_SAMPLES}
        own = told["flow"] == flow
        for number, name in enumerate(variable_names):
            chosen = own & (names == number)
            series[name] = told["time_ns"][chosen], told["value"][chosen]
        stays = _stays(states[mine], times, series)
        made.append([{"state": state_names[number], **stay} for number, stay in stays])
    return made


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
        found = {}
        for name, (_, values, lows, highs) in spans.items():
            within = values[lows[number] : highs[number]]
            within = within[~np.isnan(within)]
            if len(within):
                found[name] = (within[0], within[-1], within.min(), within.max())
        for at, which in enumerate(("first", "last", "least", "most")):
            stay[which] = {name: float(four[at]) for name, four in found.items()}
        stays.append((int(states[begin]), stay))
    return stays
