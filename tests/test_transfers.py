"""Flows that arrive: in an experiment, in `compare`, in measures, tables and the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dragstrip import _core
from dragstrip.display import quantity
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.report.transfers import words
from dragstrip.results.claims import Finished, check, grade
from dragstrip.results.comparison.transfers import Class, Transfer
from dragstrip.results.measures import Measured, summarise
from dragstrip.studies.execution.runner import plan

S = 1_000_000_000
PATH = {"rate": "20mbit", "rtt": "40ms"}


def experiment(source: str = "x.toml", **flow: Any) -> Experiment:
    """A source of flows for twelve seconds."""
    entry = {"cc": "cubic", **flow}
    return Experiment.build({"duration": "12s", "path": PATH, "flows": [entry]}, source)


def test_a_transfer_alone_takes_what_its_path_needs() -> None:
    """A round trip for the handshake, half of it and the bytes: 10 kB are one window."""
    listed = {"kind": "listed", "times": ["1s", "4s"]}
    recording = simulate(expand(experiment(bytes="10000b", arrivals=listed))[0].scenario)
    for flow in summarise(recording)["flows"]:
        told = flow["transfer"]
        assert (told["bytes"], told["finished"]) == (10_000, True)
        alone_s = 0.040 + 10_000 * 8 / 20e6
        assert told["slowdown"] == pytest.approx(told["completion_s"] / alone_s)
        # Seven frames; htb lets the first go at once.
        assert 0.95 < told["slowdown"] < 1.1
    measured = Measured(recording)
    assert (
        measured.figure("slowdown", measured.flows[0])
        == summarise(recording)["flows"][0]["transfer"]["slowdown"]
    )


def short_flows(**more: Any) -> dict[str, Any]:
    """A claim on the completion times of short flows, without a published figure."""
    where = {"size_up_to": "100kb", **more.pop("where", {})}
    return {
        "id": "short",
        "source": "ours",
        "metric": "fct_s_p99",
        "where": where,
        "unit": "ms",
        "asked": "how long?",
        **more,
    }


MIXED = {"sizes": "web-search", "arrivals": {"kind": "poisson", "every": "60ms"}}


def with_claims(*claims: dict[str, Any], **more: Any) -> Experiment:
    content = {"duration": "12s", "path": PATH, "flows": [{"cc": "cubic", **MIXED}], **more}
    return Experiment.build({**content, "claims": list(claims)})


def test_a_claim_on_flows_of_a_size_takes_its_statistic_over_all_of_them() -> None:
    claims = (
        short_flows(),
        short_flows(id="slowdown", metric="fct_slowdown_p50", unit="1"),
        short_flows(
            id="unfinished",
            metric="fct_unfinished",
            unit="1",
            where={"size_up_to": "1gb", "size_above": "100kb"},
        ),
        short_flows(
            id="fastest", metric="goodput_bps", unit="bit/s", across="max", where={"size_above": "20kb"}
        ),
    )
    asked = with_claims(*claims)
    (run,) = expand(asked)
    recording = simulate(run.scenario)
    check(asked, [run])
    figures = [grade(claim, [Finished(run, Measured(recording))])["measured"] for claim in asked.claims]
    flows = summarise(recording)["flows"]
    short = [flow["transfer"] for flow in flows if flow["transfer"]["bytes"] <= 102_400]
    middle = [flow for flow in flows if 20_480 < flow["transfer"]["bytes"] <= 102_400]
    long = [flow["transfer"] for flow in flows if flow["transfer"]["bytes"] > 102_400]
    assert len(short) > 20
    assert len(long) > 20
    assert figures == [
        pytest.approx(1e3 * np.percentile([transfer["completion_s"] for transfer in short], 99)),
        pytest.approx(np.percentile([transfer["slowdown"] for transfer in short], 50)),
        sum(not transfer["finished"] for transfer in long),
        pytest.approx(max(flow["goodput_bps"] for flow in middle)),
    ]
    assert figures[2] > 0


def test_a_sweep_and_a_report_have_the_figure_of_a_claim_on_short_flows(tmp_path: Path) -> None:
    """The same 99th percentile in the result of run, on its page, and from the rows of a sweep."""
    from dragstrip.cli import app
    from dragstrip.io.toml import toml_text

    file = tmp_path / "short.toml"
    file.write_text(toml_text(with_claims(short_flows()).content()))
    runner = CliRunner()
    ended = runner.invoke(app, ["run", str(file), "--out", str(tmp_path / "run")])
    assert ended.exit_code == 0, ended.output
    (claim,) = json.loads((tmp_path / "run" / "result.json").read_text())["claims"]
    ended = runner.invoke(
        app, ["sweep", str(file), "--vary", "flow.cc=cubic", "--out", str(tmp_path / "sweep")]
    )
    assert ended.exit_code == 0, ended.output
    rows = pq.read_table(tmp_path / "sweep" / "dataset" / "sweep.parquet").to_pylist()
    short = [row["fct_s"] for row in rows if row["size_bytes"] <= 102_400]
    assert claim["measured"] == pytest.approx(1e3 * float(np.percentile(short, 99)))
    assert "fct_s_p99" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize(
    ("where", "field", "expected"),
    [
        (
            {"size_up_to": "many"},
            "claims[0] (short).where.size_up_to",
            "a size such as 10000b (10 kB) or 10kb (10,240 bytes)",
        ),
        (
            {"size_up_to": 5},
            "claims[0] (short).where.size_up_to",
            "a size such as 10000b (10 kB) or 10kb (10,240 bytes)",
        ),
        (
            {"size_up_to": ["1kb", "2kb"]},
            "claims[0] (short).where.size_up_to",
            "a size such as 10000b (10 kB) or 10kb (10,240 bytes)",
        ),
        ({"size_up_to": "1b"}, "claims[0] (short).where", "some flow lies: flows carry "),
        ({"size_above": "1gb"}, "claims[0] (short).where", "some flow lies: flows carry "),
        ({"size_below": "1gb"}, "claims[0] (short).where.size_below", "size_up_to, size_above"),
    ],
)
def test_bounds_of_size_that_select_nothing_are_refused(where: Any, field: str, expected: str) -> None:
    asked = with_claims(short_flows(where=where))
    with pytest.raises(BadInputError) as caught:
        check(asked, expand(asked))
    assert caught.value.field == field
    assert expected in str(caught.value)


def test_bounds_of_size_are_refused_where_no_flow_has_one() -> None:
    asked = with_claims(short_flows(), flows=[{"cc": "reno"}])
    with pytest.raises(BadInputError, match="no flow has a size"):
        check(asked, expand(asked))


def test_a_flow_without_a_size_is_no_transfer() -> None:
    recording = simulate(expand(compare(["cubic"], rate="5mbit", rtt="40ms", duration="2s"))[0].scenario)
    assert "transfer" not in summarise(recording)["flows"][0]
    assert "source" not in recording.scenario["flows"][0]


def test_every_algorithm_has_the_same_flows_and_every_repeat_others() -> None:
    race = compare(
        ["cubic", "bbr"],
        rate="20mbit",
        rtt="40ms",
        duration="12s",
        workload="poisson load=40%",
        repeat=2,
        flows=3,
    )
    runs = expand(race)

    def drawn(place: int) -> list[tuple[int, int]]:
        flows = runs[place].scenario["flows"]
        return [(flow["start_ns"], flow["application"]["bytes"]) for flow in flows]

    assert drawn(0) == drawn(1)
    assert drawn(2) == drawn(3) != drawn(0)
    assert len({flow["sender"] for flow in runs[0].scenario["flows"]}) == 3
    assert all(start < 8 * S for start, _ in drawn(0))


def test_a_file_of_sizes_lies_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "sizes.txt").write_text("# two sizes\n1000 1 0.5\n1000 1 0.5\n3000 2 1\n")
    given = {"sizes": "sizes.txt", "arrivals": {"kind": "poisson", "every": "10ms"}}
    made = experiment(str(tmp_path / "x.toml"), **given)
    (run,) = expand(made, str(tmp_path / "x.toml"))
    sizes = [flow["application"]["bytes"] for flow in run.scenario["flows"]]
    assert len(sizes) > 600
    # Half of them carry 1000 bytes; of 800 draws the share has a deviation of 1.8 %.
    assert sizes.count(1000) / len(sizes) == pytest.approx(0.5, abs=0.06)
    assert max(sizes) <= 3000


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1000 0\nmany 1\n", 'sizes.txt, line 2: "many 1"'),
        ("1000 0\n2000 0.5\n", "sizes.txt, the last share is 0.5"),
        (None, "sizes.txt"),
    ],
)
def test_a_file_that_is_no_distribution_is_named(tmp_path: Path, text: str | None, told: str) -> None:
    if text is not None:
        (tmp_path / "sizes.txt").write_text(text)
    with pytest.raises(BadInputError) as caught:
        given = {"sizes": "sizes.txt", "arrivals": {"kind": "poisson", "every": "10ms"}}
        plan(experiment(str(tmp_path / "x.toml"), **given), str(tmp_path / "x.toml"))
    assert caught.value.field == "flows[0].sizes"
    assert told in str(caught.value)


def test_an_option_of_the_workload_that_is_wrong_is_told_as_the_workload() -> None:
    with pytest.raises(BadInputError) as caught:
        plan(compare(["cubic"], rate="5mbit", rtt="40ms", workload="poisson load=0%"), "")
    assert caught.value.field == "flows[0].arrivals.load"
    assert _core.race_option(caught.value.field) == ("workload", "--workload")


def test_tables_and_figure_have_transfers_by_size(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--rate", "20mbit", "--rtt", "40ms", "--duration", "12s", "--repeat", "2", "--out", str(out)]
    workload = ["--workload", "poisson load=50%", "cubic", "bbr"]
    command = [sys.executable, "-m", "dragstrip", "compare", "--verbose", *words, *workload]
    told = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "160"}
    )
    for text in ("transfers", "slowdown p99", "10 to 100 kB"):
        assert text in told.stdout
    document = json.loads((out / "result.json").read_text())
    assert len(document["runs"]) == 4
    assert "Slowdown by size" in (out / "report.html").read_text()


def test_a_percentile_beyond_an_unfinished_transfer_is_a_least() -> None:
    done = [Transfer(1000, float(seconds), 1.0, True) for seconds in range(1, 10)]
    one = Class("all", [*done, Transfer(1000, 5.5, 2.0, False)])
    assert one.unfinished == 1
    assert [one.is_least(percentile) for percentile in (10, 50, 99)] == [False, False, True]
    assert words(one)[3] == f"≥ {quantity.milliseconds(8910)}"
    assert words(Class("all", done))[3] == quantity.milliseconds(8920)


def test_another_seed_may_give_other_figures_of_flows_that_arrive() -> None:
    asked = compare(["cubic"], rate="20mbit", rtt="40ms", workload="poisson load=50%", duration="12s")
    (run,) = plan(asked, "").runs
    assert run.core.draws
    (run,) = plan(compare(["cubic"], rate="20mbit", rtt="40ms", duration="12s"), "").runs
    assert not run.core.draws
