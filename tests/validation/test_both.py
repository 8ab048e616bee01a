"""Both engines' runs side by side; the simulator stands in for the kernel, so that no emulator is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragstrip import engines
from dragstrip.engines.sim import simulate
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import write
from dragstrip.results.measures import summarise
from dragstrip.runs import Outcome, Task
from dragstrip.studies.execution import runner
from dragstrip.studies.execution import side_by_side as side
from dragstrip.studies.execution.runner import execute, plan
from dragstrip.studies.validation import both, real_time

IDLE_NS = 20_000_000
LIMITS = ["the processors were idle for 5 % of the time only"]


def race(engine: str = "sim,vm", **options: Any) -> Experiment:
    given = {"rate": "10mbit", "rtt": "20ms", "queue": "bfifo limit 30kb", "duration": "4s", **options}
    return compare(["reno", "cubic"], engine=engine, **given)


@pytest.fixture(autouse=True)
def _a_kernel_that_is_a_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path is 30 µs longer, as if its hosts took that time; it refuses what is called `refused`."""

    def run_all(tasks: list[Task], *_: Any) -> list[Outcome]:
        outcomes = []
        for task in tasks:
            assert task.recalled
            told = json.loads(json.dumps(task.scenario))
            if task.engine == "vm":
                if told["flows"][0]["transport"]["cc"] == "exp":
                    outcomes.append(Outcome(None, "no congestion control exp"))
                    continue
                next(link for link in told["links"] if link["name"] == "d-r")["delay_ns"] += 30_000
            made = simulate(told)
            recording = type(made)(task.scenario, made.tables, dict(made.provenance, engine=task.engine))
            if task.engine == "netns":
                about = {"limits": LIMITS, "cpu_idle_share": 0.5, "idle_rtt_ns": {"s1 to d": IDLE_NS}}
                recording.provenance.update(verified=about, kernel={"release": "6.18", "package": ""})
            if task.engine == "vm":
                reductions = sum(made["flows"]["reductions"].to_pylist())
                about = {
                    "netstat": {"s1": {"TCPSackRecovery": reductions}},
                    "idle_rtt_ns": {"s1 to d": IDLE_NS + 30_000},
                }
                recording.provenance.update(verified=about, kernel={"release": "6.1", "package": ""})
            write(recording, task.folder)
            outcomes.append(Outcome(summarise(recording)))
        return outcomes

    monkeypatch.setattr(runner, "run_all", run_all)
    monkeypatch.setattr(runner, "prepare", lambda *_: None)
    assert engines.named("sim").name == "sim"


def test_the_kernel_runs_once_more_with_another_seed() -> None:
    runs = expand(race(repeat=2))
    told = [(run.engine, run.scenario["seed"], run.scenario["flows"][0]["transport"]["cc"]) for run in runs]
    sims = [("sim", seed, cc) for seed in (1, 2) for cc in ("reno", "cubic")]
    assert told == [*sims, *(("vm", seed, cc) for seed in (1, 2, 3) for cc in ("reno", "cubic"))]
    assert len({run.slug for run in runs}) == len(runs)
    assert {run.engine for run in expand(race("vm"))} == {"vm"}


def test_a_result_of_both_holds_their_agreement_and_the_report_their_traces(tmp_path: Path) -> None:
    document = execute(plan(race()), tmp_path / "out")
    assert [(run["engine"], run["seed"]) for run in document["runs"]] == [("sim", 1)] * 2 + [
        ("vm", 1),
        ("vm", 1),
        ("vm", 2),
        ("vm", 2),
    ]
    cases = {case["name"]: case for case in document["agreement"]["cases"]}
    assert set(cases) == {"reno", "cubic"}
    figures = cases["reno"]["figures"]
    assert set(figures) >= {"goodput", "rtt", "rtt_ks", "rtt_w1", "reductions", "retransmits", "window"}
    assert figures["goodput"]["floor"] == 0.0, "nothing here depends on the seed"
    assert figures["rtt_w1"]["error"] > 0.0, "the path is 30 µs longer"
    times = cases["reno"]["first_seed"]["kernel"][0]["reductions_s"]
    assert len(times) > 0
    assert times == sorted(times)
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'id="case-reno"' in page
    for engine in ("sim", "vm"):
        assert f'<h2 class="setup">10 Mbit/s, 20 ms, bfifo 30 KiB · {engine}</h2>' in page, (
            "engines do not compete"
        )


def test_the_hosts_work_is_taken_into_the_path(tmp_path: Path) -> None:
    document = execute(plan(race()), tmp_path / "out", report=False)
    for case in both.with_hosts(document, tmp_path / "out").cases:
        assert [figure.error for figure in case.figures if figure.quantity != "period"] == [0.0] * (
            len(case.figures) - any(figure.quantity == "period" for figure in case.figures)
        )


def test_only_time_that_hosts_can_take_is_taken() -> None:
    told = expand(race("sim"))[0].scenario
    delay = {link["name"]: link["delay_ns"] for link in told["links"]}["d-r"]

    def longer(idle_ns: int) -> int:
        links = both.lengthened(told, {"s1 to d": idle_ns})["links"]
        return {link["name"]: link["delay_ns"] for link in links}["d-r"] - delay

    assert longer(IDLE_NS + 30_000) == 30_000
    assert longer(IDLE_NS - 1) == 0
    assert longer(IDLE_NS + 5_000_000) == 0, "these pings waited for something"


def test_on_a_wire_pings_take_their_own_time() -> None:
    told = expand(race("sim", link="wire"))[0].scenario
    # 98 bytes at 10 Mbit/s: 78.4 µs.
    longer = both.lengthened(told, {"s1 to d": IDLE_NS + 78_400 + 25_000})
    assert {link["name"]: link["delay_ns"] for link in longer["links"]}["d-r"] == IDLE_NS + 25_000


def test_what_the_kernel_refuses_is_left_out_with_the_reason(tmp_path: Path) -> None:
    described = compare(
        ["reno", "exp"], rate="10mbit", rtt="20ms", queue="bfifo limit 30kb", duration="2s", engine="sim,vm"
    )
    document = execute(plan(described), tmp_path / "out", report=False)
    found = both.of_result(document, tmp_path / "out")
    assert [case.name for case in found.cases] == ["reno"]
    assert found.failed == {"exp": "no congestion control exp"}


def test_claims_are_graded_on_the_first_engine(tmp_path: Path) -> None:
    claim = {"id": "c", "source": "s", "metric": "goodput_bps", "range": [0, 1e9], "unit": "bit/s"}
    content = race().content()
    document = execute(plan(Experiment.build({**content, "claims": [claim]})), tmp_path / "out", report=False)
    sims = sorted(r["flows"][0]["goodput_bps"] for r in document["runs"] if r["engine"] == "sim")
    assert document["claims"][0]["measured"] == pytest.approx(sum(sims) / 2)


def chosen(*experiments: str, **changed: Any) -> side.Selection:
    given: dict[str, Any] = {"only": None, "settings": [], "repeat": None, "duration": None, "load": []}
    given |= changed
    return side.Selection(list(experiments), **given)


def test_a_shelf_is_all_of_its_experiments_and_settings_reach_them() -> None:
    plans = side.plans(chosen("bu-cs655-2022", settings=["hosts.*.tick_hz=100"], duration="90s"))
    assert {one.experiment.name.split("/")[0] for one in plans} == {"bu-cs655-2022"}
    assert len(plans) > 3
    for one in plans:
        assert one.experiment.engine == "sim,vm"
        assert not one.experiment.claims
        hosts = [node for node in one.runs[0].scenario["nodes"] if node["kind"] == "host"]
        assert {host["tick_hz"] for host in hosts} == {100}


def test_dice_take_ten_seeds_and_a_shorter_run_is_shorter_everywhere() -> None:
    (lossy,) = side.plans(chosen("geni-tcp/step8", only="no SACK linux-6", duration="5s"))
    assert [(run.engine, run.scenario["seed"]) for run in lossy.runs] == [
        (engine, seed) for engine in ("sim", "vm") for seed in range(1, 11)
    ]
    (fixed,) = side.plans(chosen("geni-tcp/step2", only="cubic linux-6", duration="5s"))
    assert {run.scenario["duration_ns"] for run in fixed.runs} == {5_000_000_000}
    assert {(run.engine, run.repeat) for run in fixed.runs} == {("sim", 0), ("vm", 0), ("vm", 1)}
    (more,) = side.plans(chosen("geni-tcp/step2", only="cubic linux-6", repeat=2))
    assert {(run.engine, run.repeat) for run in more.runs} == {
        ("sim", 0),
        ("sim", 1),
        *(("vm", n) for n in range(3)),
    }


def test_an_older_linux_runs_as_the_kernels_own_on_both_engines_also_where_it_varies() -> None:
    def profiles(name: str) -> set[str]:
        runs = [run for one in side.plans(chosen(name)) for run in one.runs]
        return {node["profile"] for run in runs for node in run.scenario["nodes"] if node["kind"] == "host"}

    assert profiles("bu-cs655-2022/to-router") == {"linux-6"}
    assert profiles("geni-tcp/step1") == {"linux-6"}


def test_only_chooses_runs() -> None:
    (one,) = side.plans(chosen("bu-cs655-2022/throughput", only="vegas"))
    assert {run.name.split(" #")[0] for run in one.runs} == {"vegas"}


def test_a_sweep_takes_one_engine() -> None:
    from dragstrip.studies.sweep.plan import describe

    with pytest.raises(BadInputError, match="one engine"):
        describe(race(), "")


def test_the_page_for_docs_says_what_was_left_out(tmp_path: Path) -> None:
    described = compare(
        ["reno", "exp"], rate="10mbit", rtt="20ms", queue="bfifo limit 30kb", duration="2s", engine="sim,vm"
    )
    planned = [plan(described)]
    found = side.run(planned, None, None, "dragstrip validate x", nominal=False, spread=True, quiet=True)
    side.write_docs(found, chosen("x"), planned, "dragstrip validate x", tmp_path / "page.md")
    (agreement,) = found.values()
    assert agreement.failed == {"exp": "no congestion control exp"}
    page = (tmp_path / "page.md").read_text()
    assert "    dragstrip validate x\n" in page
    assert "| exp | no congestion control exp |" in page
    assert "| reno | " in page


REAL_TIME = """
title = "Without delay"
duration = "2s"
[path]
rate = "10mbit"
rtt = "0ms"
queue = "bfifo limit 30kb"
[[flows]]
cc = "reno"
"""


def beside(tmp_path: Path, **changed: Any) -> tuple[dict[str, Any], str]:
    """An engine in real time beside the kernel in virtual time, and beside the simulator: agreements, page."""
    file = tmp_path / "path.toml"
    file.write_text(REAL_TIME)
    what = chosen(str(file), engine="netns", against=("vm", "sim"), **changed)
    planned = side.plans(what)
    (one,) = planned
    assert one.experiment.engine == "vm,netns"
    typed, more = "dragstrip validate x", what.against[1:]
    found = side.run(planned, None, None, typed, nominal=False, spread=False, quiet=True, other_engines=more)
    side.write_docs(found, what, planned, typed, tmp_path / "page.md")
    return found, (tmp_path / "page.md").read_text()


def test_an_engine_in_real_time_stands_beside_several(tmp_path: Path) -> None:
    found, page = beside(tmp_path)
    assert list(found) == ["vm", "sim"]
    for agreement in found.values():
        (case,) = agreement.cases
        assert (case.limits, case.idle_shares, case.release) == (LIMITS, [0.5, 0.5], "Linux 6.18")
    (same,) = found["sim"].cases
    assert same.figure("goodput").error == 0.0, "the simulator stands in for the machine, and runs again"  # type: ignore[union-attr]
    assert "| sim | goodput | 95 % of cases ≤ 2 % | 1 of 1, reached | none |" in page
    assert f"| {LIMITS[0]} | all |" in page
    assert "## Outside\n\nNone." in page
    assert "    dragstrip validate x\n" in page


def test_what_is_too_far_off_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = beside(tmp_path)
    monkeypatch.setattr(real_time, "GOODPUT_PERCENT", -1.0)
    monkeypatch.setattr(real_time, "RTT_PERCENT", -1.0)
    monkeypatch.setattr(real_time, "RTT_MS", -1.0)
    told = list(real_time.summary_lines(found, "netns"))
    assert told[0] == "netns beside vm: goodput 0 of 1, not reached; median RTT 0 of 1, not reached"
    assert sum("outside: " in line for line in told) == 2
    assert sum("flagged: " in line for line in told) == 1
    page = "\n".join(real_time.page(found, "netns", ["x"], "dragstrip validate x"))
    assert page.count("**not reached**") == 4
    assert "| **0.00** |" in page
    assert page.count("flagged: the processors were busy") == 2


def test_strict_reaches_the_engine(tmp_path: Path) -> None:
    file = tmp_path / "path.toml"
    file.write_text(REAL_TIME)
    (strict,) = side.plans(chosen(str(file), engine="netns", strict=True))
    assert strict.experiment.options_of("netns") == {"strict": "yes"}
    with pytest.raises(BadInputError, match="engine netns or ssh with it"):
        side.plans(chosen(str(file), strict=True))


@pytest.mark.parametrize(("engine", "against"), [("netns", "netns"), ("vm", "netns"), ("vm", "simm")])
def test_engines_that_are_no_pair_are_refused(tmp_path: Path, engine: str, against: str) -> None:
    file = tmp_path / "path.toml"
    file.write_text(REAL_TIME)
    with pytest.raises(BadInputError, match="engine"):
        side.plans(chosen(str(file), engine=engine, against=(against,)))
