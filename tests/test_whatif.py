"""`dragstrip whatif`: paths become experiments, runs explain captures or do not, and others are predicted."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dragstrip.analysis.inference.path import Estimate, PathEstimate
from dragstrip.analysis.whatif import fit as fitting
from dragstrip.analysis.whatif import flow_trace, network, page, saved_path, walk
from dragstrip.analysis.whatif import identify as identifying
from dragstrip.analysis.whatif.draws import draws
from dragstrip.analysis.whatif.fit import EXPLAINED, NOT_EXPLAINED, ROUGHLY
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.hypotheses import hypotheses
from dragstrip.analysis.whatif.identify import NONE, Answer
from dragstrip.analysis.whatif.verdict import figures
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment import saved_paths
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.saved_paths import Knowledge
from dragstrip.model.recording import read
from dragstrip.report.figure import TimeLines
from dragstrip.studies.execution.runner import captured, execute, plan

PATH = {"rate": "6mbit", "rtt": "40ms", "queue": "bfifo limit 45kb", "duration": "12s"}
NOT_TOLD = Estimate(None, None, None, "not told")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CUBIC's and BBR's runs on one path, each with a capture at its sender and at its receiver."""
    folder = tmp_path_factory.mktemp("whatif") / "race"
    planned = captured(plan(compare(["cubic", "bbr"], **PATH)), CaptureRequest(points=("s1", "d")))  # type: ignore[arg-type]
    execute(planned, folder, report=False)
    return folder


def capture(made: Path, run: str, place: str = "s1") -> Path:
    return made / "runs" / run / "captures" / f"{place}.pcapng"


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def said(*words: str | Path) -> dict[str, Any]:
    ended = run("whatif", *words, "--json")
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def test_a_capture_of_cubic_predicts_bbr(made: Path, tmp_path: Path) -> None:
    document = said(
        capture(made, "000-cubic"), "bbr", "--sender-algorithm", "cubic", "--out", tmp_path / "out"
    )
    assert document["explains"]["grade"] == EXPLAINED
    own, other = document["what_if"]
    truth = figures(flow_trace.of_recording(read(made / "runs" / "001-bbr")))
    for figure, most in (("goodput_bps", 0.05), ("rtt_ms_p50", 0.10)):
        assert other[figure]["value"] == pytest.approx(truth[figure], rel=most)
        assert other[figure]["low"] <= other[figure]["value"] <= other[figure]["high"]
    assert own["rtt_ms_p50"]["value"] > 1.2 * other["rtt_ms_p50"]["value"], "the buffer is CUBIC's"

    page = (tmp_path / "out" / "whatif.html").read_text()
    assert document["sentence"].partition(" moved")[0] == "cubic"
    for text in (page, json.dumps(document), (tmp_path / "out" / "path.toml").read_text()):
        assert "10.0.0." not in text, "addresses only if asked for"
        assert str(made) not in text
    ended = run("run", tmp_path / "out" / "path.toml", "--out", tmp_path / "again", "--json")
    assert ended.exit_code == 0, ended.output
    again = {line["flows"][0]["cc"]: line["flows"][0] for line in json.loads(ended.stdout)["runs"]}
    assert again["bbr"]["rtt_ms"]["p50"] == pytest.approx(other["rtt_ms_p50"]["value"], rel=0.01)


def test_the_written_path_opens_in_the_page(made: Path, tmp_path: Path) -> None:
    """By the command that `whatif` prints."""
    ended = run(
        "whatif", capture(made, "000-cubic"), "bbr", "--sender-algorithm", "cubic", "--out", tmp_path / "out"
    )
    assert ended.exit_code == 0, ended.output
    (line,) = (line for line in ended.stdout.splitlines() if "dragstrip play" in line)
    words = shlex.split(line.partition("dragstrip ")[2])
    opened = run(*words, "--no-open", "--out", tmp_path / "play.html")
    assert opened.exit_code == 0, opened.output
    page = (tmp_path / "play.html").read_text()
    assert "The path of s1.pcapng" in page


def test_the_chart_has_every_algorithm_and_no_rate_above_the_line(made: Path) -> None:
    verdict = walk.whatif(
        capture(made, "000-cubic"),
        ["bbr", "reno"],
        sender_algorithm="cubic",
        name=None,
        changes={},
        anyway=False,
        quiet=True,
    )
    content = page.over_time(verdict).content
    assert isinstance(content, TimeLines)
    panels = content.panels
    for panel in panels:
        labels = {stroke.label for stroke in panel.strokes}
        if "segments" not in panel.y.title:
            assert {"capture", "run", "bbr", "reno"} <= labels, panel.y.title
    (rate,) = (panel for panel in panels if "Goodput" in panel.y.title)
    fastest = max(float(curve.y.max()) for stroke in rate.strokes if stroke.label for curve in stroke.curves)
    assert fastest <= 6.0 * 1448 / 1514 * 1.01, "a line of 6 Mbit/s"


def test_a_repaired_loss_delivers_no_faster_than_the_line() -> None:
    """Two seconds of data acknowledged at once, behind a hole."""
    late = flow(8e6, 50.0)
    hole = (late.at_s >= 10) & (late.at_s < 12)
    late = replace(
        late, acked_bytes=np.where(hole, late.acked_bytes[~hole & (late.at_s < 10)][-1], late.acked_bytes)
    )
    assert page._per_bin(late, 20.0, None).y.max() > 15e6
    assert page._per_bin(late, 20.0, 8.1e6).y.max() <= 8.1e6 * 1.001


def test_an_unnamed_capture_says_what_would_help(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = Answer(NONE, (), 0.2, "no candidate's runs are near enough")
    monkeypatch.setattr(identifying, "identify", lambda *_: unknown)
    ended = run("whatif", capture(made, "000-cubic"), "bbr")
    assert isinstance(ended.exception, BadInputError)
    assert "--sender-algorithm cubic" in str(ended.exception)


@pytest.mark.parametrize(("own", "queue"), [("bbr", "codel"), ("reno", "pie")])
def test_behind_an_aqm_the_ranges_hold_what_others_do(tmp_path: Path, own: str, queue: str) -> None:
    """Drops that may be random: 1.97 Mbit/s were predicted where 6.67 were true."""
    described = compare([own, "cubic"], rate="8mbit", rtt="40ms", queue=queue, duration="15s")
    execute(captured(plan(described), CaptureRequest(points=("s1",))), tmp_path / "race", report=False)
    document = said(capture(tmp_path / "race", f"000-{own}"), "cubic", "--sender-algorithm", own)
    _, other = document["what_if"]
    truth = figures(flow_trace.of_recording(read(tmp_path / "race" / "runs" / "001-cubic")))
    for figure in ("goodput_bps", "rtt_ms_p50"):
        value = truth[figure]
        assert value is not None
        assert 0.99 * other[figure]["low"] <= value <= 1.01 * other[figure]["high"], figure
        assert other[figure]["value"] == pytest.approx(value, rel=0.05)
    assert document["path"]["random_loss"]["value"] is None
    assert document["assumed"][-1].startswith(f"the queue: {queue} explains the losses best")


def test_the_path_changes_for_the_race_alone(made: Path) -> None:
    document = said(
        capture(made, "000-cubic"), "bbr", "--sender-algorithm", "cubic", "--queue", "fq_codel", "--addresses"
    )
    assert document["changes"] == {"queue": "fq_codel"}
    assert document["explains"]["grade"] == EXPLAINED
    own, _ = document["what_if"]
    assert own["rtt_ms_p50"]["value"] < 0.8 * document["capture"]["rtt_ms_p50"]
    assert "10.0.0.1" in document["capture"]["flow"]


def test_a_wrong_algorithm_is_refused_unless_anyway(made: Path) -> None:
    file = capture(made, "000-cubic")
    document = said(file, "bbr", "--sender-algorithm", "vegas")
    assert document["explains"]["grade"] == NOT_EXPLAINED
    assert not document["raced"]
    assert not document["what_if"]
    assert "cannot be said" in document["sentence"]
    assert said(file, "bbr", "--sender-algorithm", "vegas", "--anyway")["what_if"]
    shown = run("whatif", file, "bbr", "--sender-algorithm", "vegas")
    assert "--anyway" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_text_within_80_columns(made: Path) -> None:
    shown = run("whatif", capture(made, "001-bbr"), "cubic", "--sender-algorithm", "bbr")
    assert shown.exit_code == 0, shown.output
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "10.0.0." not in shown.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--flow", "nobody"], "--flow: got 'nobody', expected part of the name of one flow"),
        (["bbrr"], "ALGORITHM: got 'bbrr', expected one of"),
        (["--sender-algorithm", "cubik"], 'did you mean "cubic"?'),
        (["--queue", "droptail"], "--queue"),
        (["--rate", "ten"], "--rate"),
    ],
)
def test_wrong_words(made: Path, tmp_path: Path, words: list[str], message: str) -> None:
    ended = run("whatif", capture(made, "000-cubic"), *words, "--out", tmp_path / "out")
    assert isinstance(ended.exception, BadInputError), ended.output
    assert message in str(ended.exception)
    assert not (tmp_path / "out").exists()


def test_a_capture_at_the_receiver_is_refused_with_the_reason(made: Path) -> None:
    ended = run("whatif", capture(made, "000-cubic", "d"), "bbr", "--sender-algorithm", "cubic")
    assert isinstance(ended.exception, BadInputError)
    assert "a capture at the sender: one at the receiver shows neither" in str(ended.exception)


# --- paths ------------------------------------------------------------------------------------------


def estimate(value: float, share: float = 0.0) -> Estimate:
    return Estimate(value, value * (1 - share), value * (1 + share))


def path(**fields: Any) -> PathEstimate:
    base = PathEstimate(
        file="x.pcap",
        flow="a",
        place="sender",
        base_rtt_ms=estimate(40.0),
        rate_bps=estimate(9.9e6, 0.01),
        rate_over_time=(),
        buffer_bytes=estimate(60e3, 0.05),
        buffer_ms=estimate(48.0, 0.05),
        queue="tail drop",
        queue_reason="",
        policer_rate_bps=NOT_TOLD,
        policer_burst_bytes=NOT_TOLD,
        shaper_burst_bytes=NOT_TOLD,
        random_loss=Estimate(0.0, 0.0, 1e-4),
        jitter_ms=estimate(0.0),
        ack_aggregation_ms=estimate(0.0),
        receiver_window_bytes=estimate(1e6),
        notes=(),
    )
    return replace(base, **fields)


def test_a_path_as_options_counts_frames() -> None:
    known = network.from_estimate(path(), ecn=False, receiver_limited=False, longest_queue_bytes=0.0)
    options = known.middle.options(10.0)
    assert options["rate"] == f"{round(9.9e6 * 1514 / 1500)}bit"
    assert options["queue"] == f"bfifo limit {round(60e3 * 1514 / 1500)}"
    assert options["rtt"] == "40000us"
    assert sorted(known.alternatives) == ["buffer high", "buffer low", "rate high", "rate low"]
    assert "sysctl" not in options
    limited = network.from_estimate(path(), ecn=True, receiver_limited=True, longest_queue_bytes=0.0)
    assert limited.middle.options(10.0)["sysctl"] == {"net.ipv4.tcp_rmem": "4096 2000000 2000000"}
    assert limited.middle.options(10.0)["ecn"]


def test_a_buffer_that_never_filled_is_tried_from_what_was_used() -> None:
    unfilled = path(queue="cannot tell", buffer_bytes=NOT_TOLD, buffer_ms=NOT_TOLD)
    known = network.from_estimate(unfilled, ecn=False, receiver_limited=False, longest_queue_bytes=20e3)
    assert known.middle.buffer_bytes == pytest.approx(10 * known.middle.bdp_bytes), "nothing was lost"
    assert known.alternatives["buffer low"].buffer_bytes == 20e3
    assert any("buffer" in said for said in known.assumed)


def test_a_buffer_known_to_a_packet_or_so_is_taken_from_its_interval() -> None:
    """Three packets below a bandwidth-delay product, which was taken before."""
    small = path(buffer_bytes=Estimate(None, 7724.0, 10724.0, "about 6 packets"), queue="tail drop")
    known = network.from_estimate(small, ecn=False, receiver_limited=False, longest_queue_bytes=8932.0)
    assert known.middle.buffer_bytes == (8932 + 10724) / 2
    assert known.alternatives["buffer high"].buffer_bytes == 10724
    for one in draws(known, 16):
        assert 8932 <= one.buffer_bytes <= 10724 + 1


def test_a_buffer_that_dropped_too_little_to_judge_is_what_was_in_use() -> None:
    few = path(queue="cannot tell", buffer_bytes=NOT_TOLD, buffer_ms=NOT_TOLD)
    known = network.from_estimate(
        few, ecn=False, receiver_limited=False, longest_queue_bytes=20e3, has_losses=True
    )
    assert known.middle.buffer_bytes == 20e3
    assert known.alternatives["buffer high"].buffer_bytes == pytest.approx(10 * known.middle.bdp_bytes)


def test_paths_to_try_lie_within_the_intervals_and_apart() -> None:
    known = network.from_estimate(path(), ecn=False, receiver_limited=False, longest_queue_bytes=0.0)
    made = draws(known, 16)
    assert made[0] == known.middle
    assert len({(one.rate_bps, one.rtt_ms, one.buffer_bytes) for one in made}) == 16
    for one in made:
        assert one.rate_bps == pytest.approx(9.9e6, rel=0.0101)
        assert one.rtt_ms == pytest.approx(40, rel=0.0101)
        assert one.buffer_bytes == pytest.approx(60e3, rel=0.0501)


def test_segments_of_another_size_than_the_runs_are_refused(made: Path) -> None:
    flow = replace(walk.read(capture(made, "000-cubic"), None), full_bytes=48)
    with pytest.raises(BadInputError, match="about 1448 bytes of data, as runs have; these have 48"):
        walk.on_path(flow)


LOST = Estimate(None, 0.0, 0.02, "active queue management or random loss")


def test_losses_that_two_causes_explain_leave_paths_of_both() -> None:
    either = path(queue="cannot tell", buffer_bytes=NOT_TOLD, buffer_ms=NOT_TOLD, random_loss=LOST)
    known = network.from_estimate(
        either, ecn=False, receiver_limited=False, longest_queue_bytes=20e3, has_losses=True
    )
    middles = [one.middle for one in hypotheses(known, either, 20e3, True)]
    assert {"codel", "pie", ""} == {one.discipline for one in middles}
    assert all(one.loss == 0 for one in middles if one.discipline)
    assert max(one.loss for one in middles) == pytest.approx(0.015)


def test_a_path_that_is_known_is_taken_alone() -> None:
    known = network.from_estimate(
        path(), ecn=False, receiver_limited=False, longest_queue_bytes=0.0, has_losses=True
    )
    assert hypotheses(known, path(), 0.0, True) == [known]


def test_a_policer_without_a_burst_is_saved_and_refused_until_its_queue_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    policed = path(
        queue="policer",
        rate_bps=NOT_TOLD,
        policer_rate_bps=estimate(2e6, 0.01),
        policer_burst_bytes=Estimate(None, None, None, "too few drops"),
    )
    saved = saved_path.from_estimates([policed], "dragstrip inspect")
    assert saved.options == {"rate": f"{round(20e6 * 1514 / 1500)}bit", "rtt": "40000us"}
    reason = "as x.pcap does not show the burst of its policer of 2018667bit (too few drops)"
    assert saved.known["queue"] == Knowledge(unknown=reason)
    assert saved_paths.read(saved_paths.write(saved, "home.toml")).known == saved.known
    with pytest.raises(BadInputError) as refused:
        saved_paths.expanded({"path": "home.toml"})
    assert str(refused.value) == (
        f"home.toml: path.queue: is not known, {reason}; give --queue, or add it to [path]"
    )
    queue = "police rate 2018667bit burst 30kb"
    assert saved_paths.expanded({"path": "home.toml", "queue": queue}) == {**saved.options, "queue": queue}
    with pytest.raises(BadInputError, match="burst"):
        network.from_estimate(policed, ecn=False, receiver_limited=False, longest_queue_bytes=0.0)


def test_a_policer_is_in_front_of_a_faster_link() -> None:
    policed = path(
        queue="policer",
        rate_bps=NOT_TOLD,
        policer_rate_bps=estimate(2e6, 0.01),
        policer_burst_bytes=estimate(30e3, 0.1),
    )
    known = network.from_estimate(policed, ecn=False, receiver_limited=False, longest_queue_bytes=0.0)
    assert known.middle.options(1.0)["queue"].startswith("police rate 2018667bit burst")
    assert known.middle.rate_bps == pytest.approx(20e6)
    assert sorted(known.alternatives) == ["burst high", "burst low", "rate high", "rate low"]
    assert network.experiment(known.middle.options(1.0), ["reno"]).path


def test_a_shaper_has_its_bucket_before_a_faster_link() -> None:
    shaped = path(queue="shaper", shaper_burst_bytes=estimate(150e3, 0.03))
    known = network.from_estimate(shaped, ecn=False, receiver_limited=False, longest_queue_bytes=0.0)
    options = known.middle.options(1.0)
    assert options["queue"] == "tbf rate 9992400bit burst 151400 limit 60560"
    assert options["rate"] == "99924000bit"
    assert {"bucket low", "bucket high", "buffer low", "buffer high"} <= set(known.alternatives)
    assert any("behind the shaper" in one for one in known.assumed)
    assert network.experiment(options, ["reno"]).path


def test_a_path_without_a_rate_is_refused_by_its_reason() -> None:
    with pytest.raises(BadInputError, match="shows the path's rate: capacity not reached"):
        network.from_estimate(
            path(rate_bps=Estimate(None, 1e6, None, "capacity not reached")), False, False, 0.0
        )


# --- grades -----------------------------------------------------------------------------------------


def flow(rate_bps: float, rtt_ms: float, seconds: float = 20.0, again: int = 0) -> FlowTrace:
    """A flow that delivers evenly; the RTT has a saw-tooth of 10 %."""
    at = np.arange(0.1, seconds, 0.1)
    trips = rtt_ms * (1 + 0.05 * np.sin(at * 3))
    delivered = rate_bps / 8 * at
    flight = rate_bps / 8 * rtt_ms / 1e3 * np.ones(len(at))
    total = float(rate_bps / 8 * seconds)
    return FlowTrace(seconds, at, trips, at, flight, delivered, np.linspace(0, again, len(at)), total, again)


@pytest.mark.parametrize(
    ("goodput", "rtt", "grade"),
    [
        (1.0, 1.0, EXPLAINED),
        (1.04, 0.92, EXPLAINED),
        (1.07, 1.0, ROUGHLY),
        (1.0, 1.2, ROUGHLY),
        (0.8, 1.0, NOT_EXPLAINED),
        (1.0, 1.3, NOT_EXPLAINED),
    ],
)
def test_grades(goodput: float, rtt: float, grade: str) -> None:
    found = fitting.fit(flow(8e6, 50.0), flow(8e6 * goodput, 50.0 * rtt))
    assert found.grade == grade
    assert found.goodput == pytest.approx(goodput - 1, abs=1e-9)


def test_a_pause_that_goodput_hides_shows_in_the_delivered_bytes() -> None:
    one = flow(8e6, 50.0)
    late = replace(one, acked_bytes=np.where(one.at_s < 10, 0.4, 1.0) * one.acked_bytes)
    found = fitting.fit(one, late)
    assert found.goodput == 0
    assert found.grade == NOT_EXPLAINED
    assert 9 < found.apart_at_s < 10.1


def test_cross_traffic_shows_as_rtt_without_flight() -> None:
    limits = {"cwnd": 20.0, "receiver": 0.0, "application": 0.0, "unknown": 0.0}
    run = flow(8e6, 50.0)
    rising = replace(run, rtt_ms=np.linspace(50, 100, len(run.rtt_ms)))
    said = fitting.contradictions(rising, run, fitting.fit(rising, run), {"limited_s": limits}, 0)
    assert any("the flight stays" in line and "cross traffic" in line for line in said)
    same = fitting.contradictions(run, run, fitting.fit(run, run), {"limited_s": limits}, 0)
    assert same == []
    limits = {**limits, "application": 5.0}
    said = fitting.contradictions(run, run, fitting.fit(run, run), {"limited_s": limits}, 2)
    assert any("nothing to send" in line for line in said)
    assert any("2 other flows" in line for line in said)
