"""Runs without the cause of a run: they show what they say, are repeated by their file, and are bounded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import pytest

from dragstrip.experiment.comparison import compare
from dragstrip.experiment.types import Experiment
from dragstrip.io import checksums
from dragstrip.runs import UNLIMITED
from dragstrip.studies.execution import counterfactual
from dragstrip.studies.execution.runner import execute, plan

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "6s"}


def raced(
    out: Path, *algorithms: str, workers: int = 1, report: bool = False, **options: Any
) -> dict[str, Any]:
    described = compare(algorithms, **{**PATH, **options})
    return execute(plan(described), out, workers=workers, report=report, counterfactuals=True)


def first(document: dict[str, Any], run: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = document["runs"][run]["why"][0]
    return found


def test_the_flow_that_gets_less_runs_without_the_one_that_gets_more(tmp_path: Path) -> None:
    finding = first(raced(tmp_path / "both", "cubic", "vegas", together=True))
    assert (finding["rule"], finding["flows"]) == ("unfair_share", ["cubic", "vegas"])
    without = finding["without"]
    # As if nobody had ever added CUBIC to this path.
    alone = raced(tmp_path / "alone", "vegas")["runs"][0]["flows"][0]
    assert without["figures"] == {"goodput_bps": alone["goodput_bps"]}
    assert alone["goodput_bps"] > 2 * finding["figures"]["least_bps"]
    said = f"without cubic beside it, vegas gets {alone['goodput_bps'] / 1e6:.2f} Mbit/s instead of "
    assert without["sentence"].startswith(said)


def test_its_file_repeats_it(tmp_path: Path) -> None:
    out = tmp_path / "both"
    without = first(raced(out, "cubic", "bbr", "reno*2", together=True, queue="pfifo limit 30"))["without"]
    experiment = Experiment.read(out / without["experiment"])
    again = execute(plan(experiment), tmp_path / "again", report=False)["runs"][0]
    assert without["figures"]["goodput_bps"] in [flow["goodput_bps"] for flow in again["flows"]]
    assert len(again["flows"]) in (2, 3)
    assert without["experiment"] in (out / checksums.NAME).read_text()


def test_a_flow_in_a_large_buffer_runs_with_one_of_a_bdp(tmp_path: Path) -> None:
    document = raced(tmp_path / "large", "cubic")
    without = first(document)["without"]
    small = raced(tmp_path / "small", "cubic", queue="1bdp")["runs"][0]["flows"][0]
    assert without["figures"]["goodput_bps"] == small["goodput_bps"]
    assert without["figures"]["rtt_ms"] == small["rtt_ms"]["p50"]
    assert without["figures"]["rtt_ms"] < 0.6 * document["runs"][0]["flows"][0]["rtt_ms"]["p50"]
    assert without["sentence"].startswith(
        "with a buffer of 40 ms (one BDP) instead of 164 ms, the median RTT of"
    )
    assert without["confirms"]


CAUSES: dict[str, tuple[list[str], dict[str, Any], str, str]] = {
    "unequal round trips": (
        ["reno", "reno@200ms"],
        {"together": True, "queue": "1bdp", "duration": "10s"},
        "unfair_share",
        "with the RTT of reno (40 ms), the share of reno@200ms in what both get is ",
    ),
    "a later start": (
        ["reno", "reno+2s"],
        {"together": True, "rate": "50mbit", "rtt": "100ms", "queue": "4bdp", "duration": "10s"},
        "unfair_share",
        "if all start at once, the share of reno+2s in what both get is ",
    ),
    "ECN heard by one": (
        ["cubic", "dctcp"],
        {"together": True, "queue": "red limit 200kb min 20kb max 40kb avpkt 1000 ecn", "duration": "10s"},
        "unfair_share",
        "with ECN for both, the share of cubic in what both get is ",
    ),
    "a small receive window": (
        ["cubic"],
        {"rate": "50mbit", "sysctl": {"net.ipv4.tcp_rmem": "4096 65536 65536"}},
        "receive_window",
        "with socket buffers of up to 16 MiB, cubic gets ",
    ),
    "a small send buffer": (
        ["cubic"],
        {"rate": "50mbit", "sysctl": {"net.ipv4.tcp_wmem": "4096 16384 65536"}},
        "send_buffer",
        "with socket buffers of up to 16 MiB, cubic gets ",
    ),
    "random loss": (["cubic"], {"loss": "1%"}, "random_loss", "without random loss, cubic gets "),
    "a policer": (
        ["cubic"],
        {"rate": "50mbit", "queue": "police rate 10mbit burst 20kb"},
        "idle_link",
        "without the policer (pfifo limit 1000 in its place), cubic gets ",
    ),
    "a small buffer": (
        ["reno"],
        {"queue": "pfifo limit 5"},
        "idle_link",
        "with a buffer of 40 ms (one BDP) instead of 6.06 ms, reno gets ",
    ),
    "ACKs that queue": (
        ["cubic"],
        {"up_rate": "100kbit", "up_queue": "pfifo limit 20", "queue": "1bdp"},
        "standing_queue",
        "with an unlimited return path instead of 100 kbit/s, the median RTT of cubic is ",
    ),
    "an active queue": (
        ["cubic"],
        {"queue": "codel"},
        "aqm",
        "with pfifo limit 1000 instead of codel, the median RTT of cubic is ",
    ),
    "marks for drops": (
        ["cubic"],
        {"queue": "codel ecn", "ecn": True},
        "ecn_marks",
        "without ECN, the number of segments of cubic sent again is ",
    ),
    "slow start's overshoot": (
        ["reno"],
        {"rate": "50mbit", "rtt": "100ms", "queue": "1bdp", "duration": "10s"},
        "slow_start_overshoot",
        "with HyStart++, the number of segments of reno sent again is ",
    ),
    "an application that pauses": (
        ["cubic"],
        {"workload": "web"},
        "application",
        "without pauses of the application, cubic gets ",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_race_without_this_cause_confirms_it(cause: str, tmp_path: Path) -> None:
    algorithms, options, rule, begins = CAUSES[cause]
    document = raced(tmp_path / "out", *algorithms, **options)
    finding = first(document)
    assert finding["rule"] == rule
    assert finding["without"]["sentence"].startswith(begins)
    assert " instead of " in finding["without"]["sentence"].removeprefix(begins)
    assert finding["without"]["confirms"]
    assert moved(document["runs"][0], tmp_path) == EXPECTED[rule, measure_of(finding)]


def measure_of(finding: dict[str, Any]) -> str:
    """The figure that the sentence compares."""
    figures = finding["without"]["figures"]
    return next(name for name in ("rtt_ms", "share", "retransmits", "goodput_bps") if name in figures)


EXPECTED = {
    **{
        (rule, "goodput_bps"): 1
        for rule in (
            "unfair_share",
            "receive_window",
            "send_buffer",
            "random_loss",
            "timeouts",
            "idle_link",
            "application",
        )
    },
    ("unfair_share", "share"): 1,
    ("standing_queue", "rtt_ms"): -1,
    ("aqm", "rtt_ms"): 1,
    ("ecn_marks", "retransmits"): 1,
    ("slow_start_overshoot", "retransmits"): -1,
}
"""Which way a figure goes without the cause, if it is one."""


def figure(run: dict[str, Any], measure: str, who: Sequence[int]) -> float:
    """Of the flows of a run: these are its places, and for a share those of the two that it compares."""
    flows = [run["flows"][at] for at in who]
    if measure == "share":
        return float(flows[1]["share"] / (flows[0]["share"] + flows[1]["share"]))
    if measure == "rtt_ms":
        return float(flows[-1]["rtt_ms"]["p50"])
    if measure == "retransmits":
        return float(sum(flow["retransmits"] for flow in flows))
    return float(flows[-1]["goodput_bps"])


def moved(run: dict[str, Any], folder: Path) -> int:
    """How the figure of a counterfactual differs from that of the explained run: 1 more, -1 less, 0 within a tenth.

    Both are measured from runs made here, the counterfactual's by its file.
    """
    finding = run["why"][0]
    without = finding["without"]
    (again,) = execute(
        plan(Experiment.read(folder / "out" / without["experiment"])), folder / "again", report=False
    )["runs"]
    measure, labels = measure_of(finding), [flow["label"] for flow in run["flows"]]
    named = [at for at, label in enumerate(labels) if f" {label} " in f"{without['sentence']} "]
    who = [labels.index(label) for label in finding["flows"]]
    if finding["rule"] == "unfair_share":
        who = who[:2] if measure == "share" else who[1:2]
    elif measure != "retransmits" or finding["rule"] != "ecn_marks":
        who = named[:1]
    before = figure(run, measure, who)
    now = without["figures"][measure]
    places = [[at] for at in range(len(again["flows"]))] if measure in ("goodput_bps", "rtt_ms") else [who]
    assert now in [figure(again, measure, place) for place in places]
    if abs(now - before) < 0.1 * before:
        return 0
    return 1 if now > before else -1


def test_what_a_run_does_not_confirm_is_said_so(tmp_path: Path) -> None:
    document = raced(tmp_path / "out", "cubic", "dctcp", together=True, queue="codel ecn", duration="10s")
    without = first(document)["without"]
    assert not without["confirms"]
    assert without["sentence"].startswith("with ECN for both, the share of cubic in what both get stays at ")
    assert without["sentence"].endswith(": that only one has ECN does not explain it alone")
    assert moved(document["runs"][0], tmp_path) == 0


def test_where_another_takes_what_one_leaves_that_is_said(tmp_path: Path) -> None:
    document = raced(tmp_path / "out", "cubic", "vegas", "bbr", together=True, queue="1bdp", duration="10s")
    finding = first(document)
    assert finding["flows"] == ["bbr", "vegas"]
    said = ", and cubic still gets more: bbr is not the only cause"
    assert finding["without"]["sentence"].endswith(said)


WORDS = ["cubic", "reno", "vegas", "bbr", "dctcp", "cdg", "reno@120ms", "cubic+2s", "vegas+1s"]
QUEUES = ["1bdp", "4bdp", "0.2bdp", "pfifo limit 100", "codel ecn", "codel", "fq_codel"]


@pytest.mark.parametrize("seed", range(24))
def test_no_sentence_on_a_random_race_claims_the_wrong_direction(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311 - a race, no secret
    algorithms = draw.sample(WORDS, draw.choice([1, 2, 2, 3, 3]))
    options: dict[str, Any] = {
        "rate": draw.choice(["2mbit", "10mbit", "30mbit"]),
        "rtt": draw.choice(["10ms", "40ms", "100ms"]),
        "queue": draw.choice(QUEUES),
        "loss": draw.choice(["0%", "0%", "0%", "0.5%"]),
        "ecn": draw.choice([False, False, True]),
        "duration": "5s",
        "together": True,
    }
    document = raced(tmp_path / "out", *algorithms, **options)
    found = document["runs"][0]["why"]
    if not found or "without" not in found[0]:
        return
    without, expected = found[0]["without"], EXPECTED[found[0]["rule"], measure_of(found[0])]
    way = moved(document["runs"][0], tmp_path)
    assert without["confirms"] == (way == expected)
    assert ("does not explain it" in without["sentence"]) == (way != expected)
    assert ("stays at" in without["sentence"]) == (way == 0)


@pytest.mark.parametrize(
    ("algorithms", "options"),
    [
        (["cubic*2"], {"together": True, "queue": "1bdp"}),  # nothing distinguishes the flows
        (["cubic"], {"queue": "1bdp"}),  # the buffer is no larger
        (["cubic"], {"queue": "sfq"}),
        (["vegas"], {}),
    ],
)
def test_where_there_is_no_such_cause_nothing_is_run(
    algorithms: list[str], options: dict[str, Any], tmp_path: Path
) -> None:
    document = raced(tmp_path / "out", *algorithms, **options)
    assert not [finding for run in document["runs"] for finding in run["why"] if "without" in finding]
    assert not (tmp_path / "out" / counterfactual.FOLDER).exists()


def test_with_a_second_engine_the_simulator_alone_runs_without_the_cause(tmp_path: Path) -> None:
    described = compare(["cubic"], **PATH)
    out, single = tmp_path / "both", plan(described)
    document = execute(single, out, workers=1, report=False)
    both = described.changed(engine="sim,vm", engine_options={"kernel": "none"})
    written = counterfactual.add(document, both, single.runs, out, 1, UNLIMITED)
    without = first(document)["without"]
    assert without == first(raced(tmp_path / "single", "cubic"))["without"]
    assert written == [without["experiment"]]
    assert Experiment.read(out / without["experiment"]).engines == ("sim",)


def test_a_dear_run_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = raced(tmp_path / "cheap", "cubic")["runs"][0]["flows"][0]["segments_sent"]
    monkeypatch.setattr(counterfactual, "SEGMENTS_MAX", sent - 1)
    assert "without" not in first(raced(tmp_path / "dear", "cubic"))
    monkeypatch.setattr(counterfactual, "SEGMENTS_MAX", 2 * sent)
    monkeypatch.setattr(counterfactual, "RUNS_MAX", 1)
    document = raced(tmp_path / "two", "cubic", "reno")
    assert ["without" in first(document, run) for run in (0, 1)] == [True, False]


class Midnight(datetime):
    """A clock that stands still: a report says when its runs were made."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls(2026, 1, 1, tzinfo=tz)


def test_the_bytes_are_the_same_at_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragstrip.engines.sim.engine.datetime", Midnight)
    made = []
    for workers in (1, 3):
        out = tmp_path / str(workers) / "out"
        out.parent.mkdir()
        raced(out, "cubic", "vegas", "reno", workers=workers, report=True)
        made.append({file.name: file.read_bytes() for file in [*out.glob("*.*"), *out.glob("*/*.toml")]})
    assert made[0] == made[1]
    assert {"00.toml", "01.toml", "result.json", "report.html"} <= made[0].keys()
    page = made[0]["report.html"].decode()
    assert "With a buffer of 40 ms (one BDP) instead of 164 ms, the median RTT of cubic is" in page
    assert "(a run of its own: dragstrip run counterfactuals/00.toml, in the output folder)" in page
