"""Chapters limited, exits and mixed: their figures tell right from wrong, and add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.sim import simulate
from dragstrip.results.measures import summarise
from dragstrip.studies.passport import runs
from dragstrip.studies.passport.chapters import exits, limited, mixed
from dragstrip.studies.passport.figures import WASTED
from dragstrip.studies.passport.rows import PassportPath, PassportRow, Subject
from dragstrip.studies.passport.sentences import sentences
from dragstrip.studies.passport.store import StoredRun
from dragstrip.studies.passport.verdicts import RowVerdict, Value, holds, value

RENO = "on loss { ssthresh = max(cwnd / 2, 2) }\non ack { "
USED = RENO + "if limited { cwnd = cwnd + acked } }"
UNUSED = RENO + "cwnd = cwnd + acked }"

ROOT = Path(__file__).parents[1]


def figure(row: PassportRow, word: str, text: str = "") -> float:
    programs = ((word, text),) if text else ()
    plan = runs.planned(row.scenario, Subject(word, programs))
    assert plan.runs, plan.failure
    results = [StoredRun(dict(summarise(simulate(run.scenario))), str(run.number)) for run in plan.runs]
    measured = value(row, results)
    assert measured.median is not None, measured.failure
    return measured.median


def row_of(rows: Any, name: str) -> PassportRow:
    return next(row for row in rows if row.id == name)


def test_a_window_that_grows_without_use_misses_the_draft_limit() -> None:
    row = row_of(limited.rows(), "limited-requests-window")
    right, wrong = figure(row, "used", USED), figure(row, "unused", UNUSED)
    assert holds(row.rule, right)
    assert not holds(row.rule, wrong)
    assert right == pytest.approx(figure(row, "reno"), rel=0.05)
    assert wrong > 10


def test_a_window_grows_after_a_loss_as_far_as_it_is_used() -> None:
    row = row_of(limited.rows(), "limited-after-loss-last-window")
    assert 1.0 < figure(row, "reno") <= 1.1
    # BBR's window is twice the path's product, whatever is sent.
    assert figure(row, "bbr") > 1.1


def test_reno_restarts_from_its_initial_window_and_a_program_may_not() -> None:
    row = row_of(limited.rows(), "limited-idle-1-restart")
    assert figure(row, "reno") == pytest.approx(11, abs=1)  # 10 packets, and one for the first ACK


def test_hystart_leaves_earlier_and_loses_less_than_reno() -> None:
    rows = list(exits.rows())
    for name in ("window", "time", "lost"):
        row = row_of(rows, f"exits-50-80-4bdp-{name}")
        assert figure(row, "cubic") < figure(row, "reno")
    row = row_of(rows, "exits-50-80-4bdp-window")
    # Without HyStart the window is doubled once more than path and buffer hold, 5 BDP.
    assert figure(row, "reno") == pytest.approx(10, rel=0.03)
    assert figure(row, "cubic") < 2
    assert len({row.id for row in rows}) == len(rows) == 4 * 27 + 2 + 3


def test_a_flow_that_never_leaves_slow_start_has_its_last_window() -> None:
    assert figure(row_of(exits.rows(), "exits-200-600-4bdp-time"), "reno") == pytest.approx(40, rel=0.01)


def curve(own: list[float], other: list[float]) -> mixed.DeploymentCurve:
    return mixed.DeploymentCurve(tuple(own), tuple(other))


def test_the_figures_of_a_mixed_deployment() -> None:
    """A zero-sum link of 10 on which one of the kind takes twice a CUBIC's: an A/B test sees a gain of none."""
    own = [0.0] + [10 * 2 / (2 * k + 10 - k) for k in range(1, 11)]
    other = [10 / (2 * k + 10 - k) for k in range(10)] + [0.0]
    greedy = curve(own, other)
    assert greedy.effect == 0
    assert greedy.test(1) == pytest.approx(10 / 11)
    assert greedy.spillover(5) == pytest.approx(-1 / 3)
    assert greedy.equilibrium() == 1.0
    shy = curve([0.0, *other[9::-1]], [*own[10:0:-1], 0.0])
    assert shy.equilibrium() == 0.0
    alike = curve([0.0] + [1.0] * 10, [1.0] * 10 + [0.0])
    assert (alike.effect, alike.test(5), alike.equilibrium()) == (0, 0, 0.5)


def test_a_mixed_row_has_every_number_of_senders_once_for_each_set_of_starts() -> None:
    row = row_of(mixed.rows(), "mixed-1bdp-bias-10")
    plan = runs.planned(row.scenario, Subject("vegas"))
    assert len(plan.runs) == 6 * 11
    counts = [sum(flow["transport"]["cc"] == "vegas" for flow in run.scenario["flows"]) for run in plan.runs]
    assert counts == list(range(11)) * 6
    starts = [tuple(flow["start_ns"] for flow in run.scenario["flows"]) for run in plan.runs]
    assert len(set(starts)) == 6
    assert all(len(set(starts[at : at + 11])) == 1 for at in range(0, 66, 11))


def test_a_spillover_is_told_in_a_sentence() -> None:
    row = row_of(mixed.rows(), "mixed-1bdp-spillover-50")
    baselines = {"cubic": Value(0.046), "reno": Value(-0.082)}
    for loss, change in ((-0.29, "lose 29.0 %"), (0.02, "gain 2 %")):
        entry = RowVerdict(row, Value(loss), baselines, "worse", 1.0)
        assert sentences(Subject("my-exp"), [entry])["fails"] == (
            "Fails: 1 row worse than both baselines; worst of all 20 Mbit/s, 40 ms, 1 BDP: when 5 of 10 CUBIC "
            f"senders switch to my-exp, the other 5 {change} of their goodput (to CUBIC: +4.60 %, to Reno: "
            "-8.20 %)."
        )


def test_a_mixed_row_takes_an_algorithm_as_a_text() -> None:
    """The senders' flows stand in alternatives, which are written when the program is known."""
    row = row_of(mixed.rows(), "mixed-1bdp-bias-10")
    text = (ROOT / "programs/my-delay.json").read_text()
    plan = runs.planned(row.scenario, Subject("mine", (("mine", text),)))
    used = [run.scenario.get("programs") for run in plan.runs]
    assert used == ([None] + [{"mine": text}] * 10) * 6


def test_vegas_yields_to_cubic_in_a_mix() -> None:
    rows = list(mixed.rows())
    assert figure(row_of(rows, "mixed-5bdp-bias-50"), "vegas") < -0.3
    assert figure(row_of(rows, "mixed-5bdp-spillover-50"), "vegas") > 0.3


def test_wasted_bytes_are_those_that_no_receiver_used() -> None:
    path = PassportPath(20, 40, 1, 20)
    clean = summarise(simulate(runs.planned(path.scenario(), Subject("vegas")).runs[0].scenario))
    lossy = path.with_(loss="2%").scenario()
    lost = summarise(simulate(runs.planned(lossy, Subject("vegas")).runs[0].scenario))
    assert WASTED.of(clean, path.scenario()) == pytest.approx(0, abs=0.015)
    assert WASTED.of(lost, lossy) == pytest.approx(0.02, abs=0.01)


@pytest.mark.parametrize("word", ["fixed", "ledbat", "westwood", "bbr3"])
def test_windows_are_read_of_algorithms_with_other_phases_or_none(word: str) -> None:
    """One has no slow start, another leaves one that no sample shows."""
    rows = [
        row_of(limited.rows(), "limited-idle-0.5-restart"),
        row_of(limited.rows(), "limited-requests-window"),
    ]
    rows += [row_of(exits.rows(), f"exits-10-20-1bdp-{name}") for name in ("window", "time")]
    for row in rows:
        assert 0 < figure(row, word) <= 150, row.id
