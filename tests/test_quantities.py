"""Quantities from Python: text, numbers with their unit in the name, time spans, NumPy's scalars."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.experiment.expand import expand

TEXT: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "duration": "1s"}


def scenario(**options: Any) -> Any:
    """Return the scenario of a race, without its name."""
    (run,) = expand(dragstrip.compare(["cubic"], **options))
    return {key: value for key, value in run.scenario.items() if key != "name"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rate_bps": 10e6}, {"rate": "10mbit"}),
        ({"rate_bps": 12_345_678}, {"rate": "12345678bit"}),
        ({"rate_bps": np.float64(2.5e9)}, {"rate": "2500mbit"}),
        ({"rtt_ms": 40}, {"rtt": "40ms"}),
        ({"rtt_ms": 40.5}, {"rtt": "40500us"}),
        ({"rtt_s": 0.1}, {"rtt": "100ms"}),
        ({"rtt": timedelta(milliseconds=12)}, {"rtt": "12ms"}),
        ({"duration": timedelta(seconds=2)}, {"duration": "2s"}),
        ({"duration_s": np.int64(3)}, {"duration": "3s"}),
        ({"loss_percent": 0.5}, {"loss": "0.5%"}),
        ({"jitter_ms": 2}, {"jitter": "2ms"}),
        ({"seed": np.int64(7)}, {"seed": 7}),
        ({"flows": np.int32(2)}, {"flows": 2}),
    ],
)
def test_numbers_and_text_say_the_same(given: dict[str, Any], text: dict[str, Any]) -> None:
    plain = {key: value for key, value in TEXT.items() if key not in text}
    assert scenario(**plain, **given) == scenario(**plain, **text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate_bps": 1e6}, r"^rate_bps: got 1000000.0, expected none beside rate='10mbit'"),
        ({"rtt": 40}, r'^rtt: got 40, expected text with a unit, such as "40ms"'),
        ({"jitter_ms": "2"}, r"^jitter_ms: got '2', expected a number, in ms"),
        ({"loss_percent": True}, r"^loss_percent: got True, expected a number"),
        ({"jitter_ms": -1}, r"^jitter_ms: got -1, expected a number from 0, in ms"),
        ({"jitter_ms": float("nan")}, r"^jitter_ms: got nan"),
        ({"jitter_ms": 2, "jitter_us": 3}, r"^jitter_us: got 3, expected none beside jitter='2ms'"),
        ({"rtx": "1ms"}, r'^rtx: is not an option of compare; did you mean "rtt"'),
        ({"rtt_m": 1}, r"^rtt_m: is not an option"),
    ],
)
def test_what_cannot_be_right(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        dragstrip.race("cubic", **{**TEXT, **options})


def goodput(seed: int) -> float:
    """Run one short race, in whatever process or thread calls it."""
    return dragstrip.race("cubic", loss="1%", seed=seed, **TEXT).flows[0].goodput_bps


def test_threads_and_processes_give_the_same_figures() -> None:
    seeds = range(1, 7)
    expected = [goodput(seed) for seed in seeds]
    before = threading.active_count()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(goodput, seeds)) == expected
    assert threading.active_count() == before
    for method in ("spawn", "forkserver"):
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as processes:
            assert list(processes.map(goodput, seeds)) == expected
