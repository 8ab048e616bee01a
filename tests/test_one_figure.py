"""One name has one number: figures of passport, attack, diagnose and lessons beside the measures of the same run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dragstrip import _core
from dragstrip.analysis.diagnosis.sources import observed
from dragstrip.cli import app
from dragstrip.engines.sim import simulate
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES, packets
from dragstrip.playground import lessons
from dragstrip.results.measures import FlowMeasures, Measured, Window, summarise
from dragstrip.studies.attack.goals import GOALS, STALL, Trial
from dragstrip.studies.passport import figures, runs, suite
from dragstrip.studies.passport.rows import PassportRow, RowFigure, Scenario, Subject

Flows = Sequence[FlowMeasures]


class Sides:
    """The measures of a row's run, of the algorithm's flows and of those beside it."""

    def __init__(self, run: Measured, scenario: Scenario) -> None:
        self.run = run
        count = len(run.flows) if scenario.subjects is None else scenario.subjects
        self.subjects = run.flows[:count]
        self.neighbours = [flow for flow in run.flows[count:] if flow.cc != "udp"]
        self.options = scenario.options

    @property
    def rate(self) -> float:
        return _core.parse_rate(str(self.options["rate"]))

    @property
    def rtt_ms(self) -> float:
        return _core.parse_time(str(self.options["rtt"])) / 1e6

    def values(self, name: str, flows: Flows) -> list[float]:
        """The measure of each flow that has it."""
        values = [self.run.figure(name, flow) for flow in flows]
        return [value for value in values if value is not None]

    def total(self, name: str, flows: Flows) -> float:
        return math.fsum(self.values(name, flows))

    def mean(self, name: str, flows: Flows) -> float:
        return float(np.mean(self.values(name, flows)))

    def queue(self) -> float:
        """The median backlog of the bottleneck in bytes."""
        value = self.run.figure("backlog_bytes_p50", self.run.queued_links()[0])
        assert value is not None
        return value

    def ping(self, name: str) -> float:
        value = self.run.figure(name, self.run.recording.scenario["probes"][0]["label"])
        assert value is not None
        return value

    def sides(self) -> list[float]:
        """The mean goodput of both sides, or the goodput of each flow where there is one side."""
        if not self.neighbours:
            return self.values("goodput_bps", self.subjects)
        return [self.mean("goodput_bps", side) for side in (self.subjects, self.neighbours)]


def resent(sides: Sides, flows: Flows) -> float:
    return sides.total("retransmits", flows) / sides.total("segments_sent", flows)


def wasted(flows: Flows) -> float:
    sent = sum(flow.segments_sent for flow in flows) * PAYLOAD_BYTES
    return 1 - sum(flow.bytes_received for flow in flows) / sent


def least_share(it: Sides) -> float:
    shares = it.values("share", [flow for flow in it.run.flows if flow.cc != "udp"])
    return min(shares) * len(shares)


def call(it: Sides) -> float:
    lost = it.ping("probe_lost") / (it.run.recording.scenario["duration_ns"] / 1e9 / figures.PING_INTERVAL_S)
    delay_ms = it.ping("probe_ms_p95") / 2 + figures.FRAMING_MS + figures.JITTER_BUFFER_MS
    return figures.mos(delay_ms, 100 * min(1.0, lost))


def long_share(it: Sides) -> float:
    long = it.total("goodput_bps", it.subjects)
    return long / (long + it.mean("goodput_bps", it.neighbours))


def own_share(it: Sides) -> float:
    own = it.total("goodput_bps", it.subjects)
    return own / (own + it.total("goodput_bps", it.neighbours))


FROM_MEASURES: dict[str, Callable[[Sides], float | None]] = {
    "goodput": lambda it: it.total("goodput_bps", it.subjects) / 1e6,
    "utilisation": lambda it: it.total("goodput_bps", it.subjects) / it.rate,
    "neighbour": lambda it: it.total("goodput_bps", it.neighbours) / 1e6,
    "resent": lambda it: resent(it, it.subjects),
    "wasted": lambda it: wasted(it.subjects),
    "neighbour resent": lambda it: resent(it, it.neighbours),
    "rtt ratio": lambda it: it.rtt_ms / it.values("rtt_ms_p50", it.subjects[:1])[0],
    "queue": lambda it: it.queue() / (it.rate / 8 * it.rtt_ms / 1e3),
    "queued": lambda it: it.queue() / FRAME_BYTES,
    "ping p95": lambda it: it.ping("probe_ms_p95"),
    "responsiveness": lambda it: 60000 / it.ping("probe_ms_p50"),
    "jain": lambda it: it.run.figure("jain"),
    "least share": least_share,
    "ratio": lambda it: max(it.sides()) / min(it.sides()),
    "share": own_share,
    "completion": lambda it: max(it.values("completion_s", it.subjects)),
    "mean completion": lambda it: it.mean("completion_s", it.subjects),
    "neighbour completion": lambda it: it.mean("completion_s", it.neighbours),
    "timeouts": lambda it: it.total("timeouts", it.subjects),
    "call": call,
    "retransmits": lambda it: it.total("retransmits", it.subjects),
    "long share": long_share,
    "slowdown p50": lambda it: float(np.percentile(it.values("slowdown", it.subjects), 50)),
    "slowdown p99": lambda it: float(np.percentile(it.values("slowdown", it.subjects), 99)),
    "bit rate": lambda it: it.mean("video_bps", it.run.flows) / 1e6,
    "stalled": lambda it: it.mean("video_stall_s", it.run.flows),
    "start-up": lambda it: it.mean("video_startup_s", it.run.flows),
    "rate": lambda it: it.mean("rtp_bps", it.run.flows) / 1e6,
    "frame p95": lambda it: it.mean("rtp_frame_ms_p95", it.run.flows),
    "late": lambda it: it.mean("rtp_late_200ms", it.run.flows),
    "breaker": lambda it: float(
        sum(it.run.figure("rtp_breaker_s", flow) is not None for flow in it.run.flows)
    ),
    "recovery": lambda it: it.run.figure("path_recovery_s"),
}
"""Each figure of a passport, by name, from the registry's measures alone."""


@cache
def rows() -> list[PassportRow]:
    """All rows of the suite, those with the fewest packets first."""

    def size(row: PassportRow) -> float:
        planned = runs.planned(row.scenario, subject(row)).runs
        return packets(planned[0].scenario) if planned else math.inf

    return sorted((row for chapter in suite.CHAPTERS for row in chapter.rows()), key=size)


def subject(row: PassportRow) -> Subject:
    """An algorithm that the row is about."""
    return Subject(row.only_for[0] if row.only_for else "cubic")


def test_every_figure_of_a_passport_is_of_measures_or_says_why_not() -> None:
    for row in rows():
        assert (row.figure.name in FROM_MEASURES) != bool(row.figure.no_measure), row.id
    defined = [value for value in vars(figures).values() if isinstance(value, RowFigure)]
    assert {figure.name for figure in defined} == FROM_MEASURES.keys()


@pytest.mark.parametrize("name", FROM_MEASURES)
def test_a_figure_of_a_passport_is_that_of_the_measures(name: str) -> None:
    row = next(row for row in rows() if row.figure.name == name)
    recording = simulate(runs.planned(row.scenario, subject(row)).runs[0].scenario)
    expected = FROM_MEASURES[name](Sides(Measured(recording), row.scenario))
    assert expected is not None
    assert row.figure.of(summarise(recording), row.scenario) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("goal", GOALS, ids=lambda goal: goal.name)
def test_the_figure_of_an_attack_is_that_of_its_measure(goal: Any) -> None:
    trial = Trial(goal, "reno", goal.path, 1)
    score = trial.score(())
    (run,) = expand(Experiment.build(trial.scene(()).content()))
    measured = Measured(simulate(run.scenario))
    window = Window(after_ns=round(trial.claim_after_ms(()) * 1e6))
    figure = measured.figure(goal.metric, measured.flows[0], window)
    assert figure is not None
    if goal is STALL:
        # The measure is 0 below a second, where an attack needs a gradient: its figure is the gap itself.
        assert figure == 0
        assert 0 < score.figure < 1
        return
    assert score.figure == pytest.approx(figure / 1e6, rel=1e-12)
    if goal.two_flows:
        other = measured.figure(goal.metric, measured.flows[1], Window(after_ns=trial.after_ms * 1_000_000))
        assert other is not None
        assert score.other_flow == pytest.approx(other / 1e6, rel=1e-12)


FROM_PATHS: dict[str, Callable[[Measured], float | None]] = {
    "goodput_bps": lambda run: run.figure("goodput_bps_total"),
    "ping_ms": lambda run: run.figure("probe_ms_p50", run.recording.scenario["probes"][0]["label"]),
    "queues.0.dropped": lambda run: run.figure("dropped", run.queued_links()[0]),
    "flows.0.share": lambda run: run.figure("share", run.flows[0]),
    "flows.1.share": lambda run: run.figure("share", run.flows[1]),
    "flows.0.rtt_ms.p5": lambda run: run.figure("rtt_ms_p5", run.flows[0]),
    "flows.1.rtt_ms.p5": lambda run: run.figure("rtt_ms_p5", run.flows[1]),
    "flows.0.rtt_ms.p50": lambda run: run.figure("rtt_ms_p50", run.flows[0]),
    "flows.1.rtt_ms.p50": lambda run: run.figure("rtt_ms_p50", run.flows[1]),
}
"""The measure of each figure that lessons ask for."""


def measures_in(content: Any) -> set[str]:
    """The values of every field `measure`, at any depth."""
    if isinstance(content, list):
        return set().union(*map(measures_in, content))
    if not isinstance(content, dict):
        return set()
    mine = {content["measure"]} if isinstance(content.get("measure"), str) else set()
    return mine.union(*map(measures_in, content.values()))


@pytest.mark.parametrize(
    "lesson",
    [lessons.lesson(number) for number in range(1, lessons.COUNT + 1)],
    ids=lambda lesson: lesson["title"],
)
def test_a_figure_of_a_lesson_is_that_of_its_measure(lesson: Any) -> None:
    recording = simulate(expand(compare(**lesson["start"]))[0].scenario)
    run, summary = Measured(recording), summarise(recording)
    names = measures_in(lesson)
    assert names
    for name in names:
        expected = FROM_PATHS[name](run)
        assert expected is not None
        assert _core.summary_figure(summary, name) == pytest.approx(expected, rel=1e-12), name


def test_the_figures_of_a_diagnosis_are_those_of_the_result(tmp_path: Path) -> None:
    """From the capture of a run at its sender.

    Goodput is a sender's estimate there: bytes acknowledged between the first and the last segment. `retransmitted`
    leaves out what the receiver had already, so that it and `spurious` are the measure together.
    """
    words = ["cubic", "--rate", "10mbit", "--rtt", "40ms", "--queue", "0.3bdp", "--duration", "8s"]
    ended = CliRunner().invoke(
        app, ["compare", *words, "--capture", "s1", "--no-report", "--out", str(tmp_path / "out")]
    )
    assert ended.exit_code == 0, ended.output
    (run,) = json.loads((tmp_path / "out" / "result.json").read_text())["runs"]
    expected = run["flows"][0]
    capture = tmp_path / "out" / "runs" / "000-cubic" / "captures" / "s1.pcapng"
    (flow,) = observed([capture], quiet=True).flows
    assert flow.segments == expected["segments_sent"]
    assert flow.goodput_bps == pytest.approx(expected["goodput_bps"], rel=0.01)
    assert flow.rtt_p50_ms == pytest.approx(expected["rtt_ms"]["p50"], abs=0.002)
    assert flow.rtt_p95_ms == pytest.approx(expected["rtt_ms"]["p95"], abs=0.002)
    ended = CliRunner().invoke(app, ["inspect", str(capture), "--json"])
    (inspected,) = json.loads(ended.stdout)["flows"]
    again = inspected["retransmissions"]
    assert flow.retransmitted == again["needed"] + again["unknown"]
    assert sum(again.values()) == expected["retransmits"] > 0
