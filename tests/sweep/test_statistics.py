from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from dragstrip.results.intervals import interval
from dragstrip.studies.sweep.map import headline, method
from dragstrip.studies.sweep.stats import judge, ranking

from .conftest import plan


def data(figures: dict[tuple[str, int], float], seeds: int, rtt_ms: float = 10.0) -> pa.Table:
    """Rows of a sweep over flow.cc alone: (contender, seed) → goodput."""
    names = list(dict.fromkeys(name for name, _ in figures))
    rows = [
        {
            "run": names.index(name) * seeds + seed,
            "status": "ok",
            "label": name,
            "goodput_bps": value,
            "rtt_ms_p50": rtt_ms,
        }
        for (name, seed), value in figures.items()
    ]
    return pa.Table.from_pylist(rows)


def best(figures: dict[tuple[str, int], float], seeds: int) -> list[bool]:
    found = judge(plan("flow.cc=reno,cubic", repeat=seeds), data(figures, seeds))
    return [bool(flag) for flag in found.judged["goodput"].best[0]]


def test_different_where_every_pair_says_so() -> None:
    # The seeds differ far more than the contenders do; seed by seed reno is always 5 % ahead.
    base = [1e6, 2e6, 3e6, 4e6, 5e6]
    figures = {("reno", seed): value * 1.05 for seed, value in enumerate(base)}
    figures |= {("cubic", seed): value for seed, value in enumerate(base)}
    assert best(figures, 5) == [True, False]


def test_not_different_where_one_pair_says_otherwise() -> None:
    figures = {("reno", seed): value for seed, value in enumerate([1.2e6, 1.2e6, 0.9e6])}
    figures |= {("cubic", seed): 1e6 for seed in range(3)}
    assert best(figures, 3) == [True, True]


def test_a_difference_below_a_tie_is_none() -> None:
    figures = {("reno", seed): 1.005e6 for seed in range(5)} | {("cubic", seed): 1e6 for seed in range(5)}
    assert best(figures, 5) == [True, True]


@pytest.mark.parametrize(("seeds", "expected"), [(1, [True, True]), (2, [True, True]), (3, [True, False])])
def test_nothing_is_different_below_three_seeds(seeds: int, expected: list[bool]) -> None:
    figures = {("reno", seed): 2e6 for seed in range(seeds)} | {("cubic", seed): 1e6 for seed in range(seeds)}
    assert best(figures, seeds) == expected


def test_a_sweep_with_one_seed_names_no_winner() -> None:
    figures = {("bbr", 0): 0.9e6, ("cubic", 0): 1e6}
    findings = judge(plan("flow.cc=bbr,cubic"), data(figures, 1))
    assert headline(findings, "goodput") == (
        "Most goodput: no algorithm is called better with 1 seed; --repeat 3 would tell. "
        "Median figure in % of the best: cubic 100 %, bbr 90 %."
    )
    # With delay alike, the names decide the order alone.
    assert [rank.contender for rank in ranking(findings, "delay")] == ["bbr", "cubic"]


def test_contenders_tied_on_all_paths_are_named_together() -> None:
    figures = {("bbr", seed): 1e6 for seed in range(3)} | {("cubic", seed): 1.001e6 for seed in range(3)}
    findings = judge(plan("flow.cc=bbr,cubic", repeat=3), data(figures, 3))
    assert headline(findings, "goodput") == "Most goodput: cubic, bbr, each among the best on 1 of 1 path."


def test_one_seed_says_nothing_about_the_difference_that_seeds_make() -> None:
    for seeds in (1, 3):
        figures = {(name, seed): 1e6 for name in ("bbr", "cubic") for seed in range(seeds)}
        sweep = plan("flow.cc=bbr,cubic", repeat=seeds)
        words = " ".join(method(sweep, judge(sweep, data(figures, seeds))))
        assert ("Seeds made a difference in 0 % of the rows" in words) == (seeds > 1)


def test_an_interval_is_the_same_every_time_and_narrows() -> None:
    draws = np.random.default_rng(1)
    few, many = draws.normal(10, 1, (1, 8)), draws.normal(10, 1, (1, 200))
    assert [column.tolist() for column in interval(few)] == [column.tolist() for column in interval(few)]
    width = [float(high[0] - low[0]) for _, low, high in (interval(few), interval(many))]
    assert 0 < width[1] < width[0]
    median, low, high = interval(many)
    assert low[0] < median[0] < high[0]


def test_intervals_hold_the_median_about_as_often_as_they_say() -> None:
    draws = np.random.default_rng(2)
    _, low, high = interval(draws.normal(0, 1, (400, 12)))
    held = float(np.mean((low <= 0) & (high >= 0)))
    assert 0.90 <= held <= 0.99


def test_missing_values_are_left_out() -> None:
    values = np.array([[1.0, math.nan, 3.0, 2.0], [math.nan] * 4])
    median, low, high = interval(values)
    assert median[0] == 2.0
    assert (low[0], high[0]) == (1.0, 3.0)
    assert math.isnan(median[1])


def test_harm_is_the_share_of_its_own_goodput_that_the_rival_loses() -> None:
    sweep = plan("flow.cc=reno,cubic", repeat=3, competitor="cubic")
    rows = []
    for run in range(sweep.runs):
        settings = sweep.settings(run // 3)
        common = {"run": run, "status": "ok", "rtt_ms_p50": 20.0}
        if settings["against"] == "alone":
            rows.append({**common, "label": settings["flows.cc"], "goodput_bps": 8e6})
        else:
            theirs = 6e6 if settings["flows.cc"] == "reno" else 4e6
            rows.append({**common, "label": settings["flows.cc"], "goodput_bps": 8e6 - theirs})
            rows.append({**common, "label": "competitor", "goodput_bps": theirs})
    found = judge(sweep, pa.Table.from_pylist(rows))
    assert found.judged["harm"].median.tolist() == [[0.25, 0.5]]
    assert found.judged["harm"].best.tolist() == [[True, False]]
    assert [rank.contender for rank in ranking(found, "harm")] == ["reno", "cubic"]
    # Beside a rival is not alone: those runs do not count as the contender's own figure.
    assert found.judged["goodput"].median.tolist() == [[8e6, 8e6]]


def test_a_run_without_figures_leaves_its_cell_standing() -> None:
    figures = {("reno", seed): 1e6 for seed in range(3)} | {("cubic", seed): 2e6 for seed in range(3)}
    table = data(figures, 3)
    status = pa.array(["failed" if run == 0 else "ok" for run in table["run"].to_pylist()])
    table = table.set_column(table.column_names.index("status"), "status", status)
    found = judge(plan("flow.cc=reno,cubic", repeat=3), table)
    assert found.judged["goodput"].median.tolist() == [[1e6, 2e6]]


def test_the_interval_of_many_paths_takes_little_memory() -> None:
    # A thousand resamples of 20,000 figures at once would be 160 MB, and as much again for the draws.
    figures = np.random.default_rng(3).normal(10, 1, size=(2, 20_000))
    tracemalloc.start()
    try:
        median, low, high = interval(figures)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40e6
    # 1.25 σ/√n is the standard error of a normal median.
    error = 1.25 / math.sqrt(20_000)
    assert all(abs(median - 10) < 5 * error)
    assert all((2 * error < high - low) & (high - low < 6 * error))
