"""Claims of a sweep: the grades of `run`, one for each combination that a claim does not select."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording
from dragstrip.results.claims import Finished, grade, requested_values, requests
from dragstrip.results.measures import Measured
from dragstrip.runs.answer import checked
from dragstrip.runs.work import OK, Order, perform
from dragstrip.studies.sweep.build import run_key
from dragstrip.studies.sweep.plan import Sweep, describe

PATH: dict[str, Any] = {
    "duration": "2s",
    "repeat": 2,
    "path": {"rate": "10mbit", "rtt": "20ms", "queue": "bfifo limit 30kb"},
    "flows": [
        {"cc": "cubic"},
        {"cc": "cubic", "bytes": "9000b", "arrivals": {"kind": "poisson", "every": "200ms"}},
    ],
}
TAIL: dict[str, Any] = {
    "id": "short-tail",
    "source": "section 4",
    "metric": "fct_s_p99",
    "where": {"size_up_to": "10000b"},
    "range": [0, 100],
    "unit": "ms",
}
ORDER: dict[str, Any] = {
    "id": "ahead",
    "source": "figure 3",
    "metric": "goodput_bps",
    "where": {"flow": 0},
    "order": ["reno", "cubic"],
}
CC_BY_RTT = {"flows.cc": ["reno", "cubic"], "path.rtt": ["20ms", "80ms"]}


def file_with(folder: Path, claims: list[dict[str, Any]], vary: dict[str, Any]) -> Path:
    """Writes the experiment with claims and axes; TOML takes these values as JSON spells them."""
    queue = PATH["path"]["queue"]
    lines = [
        'duration = "2s"',
        "repeat = 2",
        "[path]",
        'rate = "10mbit"',
        'rtt = "20ms"',
        f'queue = "{queue}"',
    ]
    lines += ["[[flows]]", 'cc = "cubic"', "[[flows]]", 'cc = "cubic"', 'bytes = "9000b"']
    lines += ['arrivals = {kind = "poisson", every = "200ms"}', "[vary]"]
    lines += [f"{json.dumps(path)} = {json.dumps(levels)}" for path, levels in vary.items()]
    for claim in claims:
        lines.append("[[claims]]")
        for key, value in claim.items():
            table = isinstance(value, dict)
            inner = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items()) if table else ""
            lines.append(f"{key} = " + (f"{{{inner}}}" if table else json.dumps(value)))
    file = folder / "claims.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def run_sweep(file: Path, *words: str, status: int = 0) -> Any:
    """Runs the command; returns its document, or its error text."""
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "dragstrip",
            "sweep",
            str(file),
            "--out",
            "m",
            "--json",
            "--workers",
            "1",
            *words,
        ],
        cwd=file.parent,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == status, ended.stderr
    return json.loads(ended.stdout) if status == 0 else ended.stderr


def rows(folder: Path) -> list[dict[str, Any]]:
    """The dataset, a row per run."""
    table = pq.read_table(folder / "m" / "dataset" / "sweep.parquet").to_pylist()
    return [row for row in table if row["flow"] == 0]


def planned(claims: list[dict[str, Any]], **fields: Any) -> Sweep:
    """The sweep of the experiment with these claims."""
    return describe(Experiment.build({**PATH, "claims": claims, **fields}), "")


def test_grades_are_those_of_run_for_every_combination(tmp_path: Path) -> None:
    document = run_sweep(file_with(tmp_path, [TAIL, ORDER], CC_BY_RTT))
    tail, order = document["claims"]
    assert [level["settings"] for level in tail["levels"]] == [
        {"flows.cc": cc, "path.rtt": rtt} for cc in ("reno", "cubic") for rtt in ("20ms", "80ms")
    ]
    assert [level["settings"] for level in order["levels"]] == [{"path.rtt": "20ms"}, {"path.rtt": "80ms"}]
    # The same claims, graded as `run` does, on the runs of one combination or of one RTT.
    experiment = Experiment.build({**PATH, "claims": [TAIL, ORDER], "vary": CC_BY_RTT})
    finished = [Finished(run, Measured(_recording(run.text))) for run in expand(experiment)]
    for claim, entry in zip(experiment.claims, (tail, order), strict=True):
        for level in entry["levels"]:
            needed = [item for item in finished if level["settings"].items() <= item.run.settings.items()]
            expected = grade(claim, needed)
            assert (level["measured"], level["grade"]) == (expected["measured"], expected["grade"])
    for row in rows(tmp_path):
        settings = {"flows.cc": row["flows_cc"], "path.rtt": f"{row['path_rtt_ns'] // 10**6}ms"}
        level = next(level for level in tail["levels"] if level["settings"] == settings)
        assert (row["claim_short_tail"], row["claim_short_tail_grade"]) == (level["measured"], level["grade"])
        assert row["claim_ahead"] is None
        assert row["claim_ahead_grade"] is not None
    page = (tmp_path / "m" / "report.html").read_text()
    assert "short-tail: 0 to 100 ms" in page
    assert "reno &lt; cubic" in page


def _recording(text: str) -> Recording:
    from dragstrip.engines.registry import named

    return named("sim").run(json.loads(text), {})


def test_another_figure_reuses_the_runs_and_another_measure_does_not() -> None:
    key = planned([TAIL]).run(0).key
    for graded in ({"range": [0, 1e6]}, {"unit": "s"}, {"id": "tail"}, {"source": "section 5"}):
        assert planned([{**TAIL, **graded}]).run(0).key == key
    for measured in ({"metric": "fct_s_p50"}, {"where": {"size_up_to": "9kb"}}, {"across": "max"}):
        assert planned([{**TAIL, **measured}]).run(0).key != key


def test_rows_that_no_grade_needs_have_none(tmp_path: Path) -> None:
    selected = {**TAIL, "where": {"size_up_to": "10000b", "path.rtt": "80ms"}}
    document = run_sweep(file_with(tmp_path, [selected], {"path.rtt": ["20ms", "80ms"]}))
    (claim,) = document["claims"]
    assert [level["settings"] for level in claim["levels"]] == [{}]
    by_rtt = {row["path_rtt_ns"]: row["claim_short_tail_grade"] for row in rows(tmp_path)}
    assert by_rtt == {20_000_000: None, 80_000_000: claim["levels"][0]["grade"]}


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ({"metric": "goodputs"}, "claims[0] (short-tail).metric"),
        ({"unit": "Mbit/s"}, "claims[0] (short-tail).unit"),
        ({"where": {"cc": "bbr"}}, "claims[0] (short-tail).where.cc"),
        ({"where": {"path.queue": "fq"}}, "claims[0] (short-tail).where.path.queue"),
        ({"where": {"size_up_to": "8999b"}}, "bounds between which some flow lies"),
    ],
)
def test_a_claim_that_nothing_measures_is_refused(tmp_path: Path, claim: dict[str, Any], words: str) -> None:
    file = file_with(tmp_path, [{**TAIL, **claim}], {"path.rtt": ["20ms"]})
    assert words in run_sweep(file, status=2)
    assert not (tmp_path / "m").exists()


def test_ids_with_one_column_are_refused(tmp_path: Path) -> None:
    claims = [{**TAIL, "id": "a.b"}, {**TAIL, "id": "a b"}]
    assert "claims[1].id" in run_sweep(file_with(tmp_path, claims, {"path.rtt": ["20ms"]}), status=2)


def test_the_description_keeps_the_claims() -> None:
    sweep = planned([TAIL, ORDER], vary={"flows.cc": ["reno", "cubic"]})
    again = Sweep.read(json.loads(json.dumps(sweep.document())), "sweep.json")
    assert again.claims == sweep.claims
    assert again.run(0).key == sweep.run(0).key
    assert "claims" not in planned([]).document()


def test_a_run_without_claims_keeps_its_key() -> None:
    run = planned([]).run(0)
    sweep = planned([])
    assert run.key == run_key(run.text, sweep.engine, sweep.version)
    assert planned([TAIL]).run(0).key != run.key


def test_a_bound_of_ten_kilobytes_is_the_class_of_the_report() -> None:
    """`10000b` takes the flows of "up to 10 kB", of which `10kb` takes some more."""
    content = {**PATH, "flows": [{"cc": "cubic", "bytes": size} for size in ("10000b", "10001b", "10kb")]}
    run = expand(Experiment.build(content))[0]
    measured = Measured(_recording(run.text))
    claims = [{**TAIL, "metric": "goodput_bps", "unit": "bit/s", "where": {"size_up_to": size}}
              for size in ("10000b", "10kb")]  # fmt: skip
    asked = requests([Experiment.build({**content, "claims": [claim]}).claims[0] for claim in claims])
    assert [len(values) for (values,) in requested_values(asked, measured, run.scenario)] == [1, 3]


@pytest.mark.parametrize(
    "values", [[], [[[1.0]], [[1.0]]], [[[1.0], [1.0]]], [[["fast"]]], [[1.0]], [[[float("nan")]]]]
)
def test_a_workers_values_are_checked(values: Any) -> None:
    sweep = planned([TAIL])
    order = Order(0, sweep.run(0).text, claims=requests(sweep.claims))
    answer = perform(Order.read(order.line()))
    assert checked(order, answer)["claims"] == answer["claims"]
    assert checked(order, {**answer, "claims": values})["status"] != OK


def test_every_seed_draws_its_own_arrivals_as_in_run() -> None:
    """The scenarios of a sweep's repeats are those of `run`, whose arrivals differ from seed to seed."""
    texts = []
    for run in expand(Experiment.build(PATH)):
        scenario = json.loads(run.text)
        texts.append({**scenario, "name": ""})
    sweep = planned([])
    assert [json.loads(sweep.run(repeat).text) for repeat in range(2)] == texts
    assert texts[0]["flows"] != texts[1]["flows"]
