"""The arithmetic of the comparison, on recordings made by hand and on a stored one."""

from __future__ import annotations

import copy
import json
import lzma
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip import cli
from dragstrip.errors import BadInputError
from dragstrip.model.scenario import algorithms, disciplines
from dragstrip.studies.validation import bands, console, document, translate
from dragstrip.studies.validation.conditions import Conditions, conditions
from dragstrip.studies.validation.epochs import epochs, period_s, window_error
from dragstrip.studies.validation.explain import events, explain
from dragstrip.studies.validation.figures import FigurePair, figures, kolmogorov_smirnov, wasserstein
from dragstrip.studies.validation.grid import Grid
from dragstrip.studies.validation.kernel import KernelRun, grouped, load, load_all, packed
from dragstrip.studies.validation.targets import BY_KEY, standing
from dragstrip.studies.validation.traces import FlowSeries, TimeLine, changes, falls, of_kernel
from dragstrip.studies.validation.validate import Agreement, Case, measure, validate

RECORDINGS = Path(__file__).parents[2] / "validation" / "linux-6.1" / "recordings"
CASE = "b-10m-160ms-0.5bdp-cubic"


@pytest.fixture(scope="module")
def stored() -> KernelRun:
    return load(RECORDINGS / f"{CASE}.json.xz")


@pytest.fixture(scope="module")
def case(stored: KernelRun) -> Case:
    return measure(CASE, [stored])


def changed(run: KernelRun, **fields: Any) -> KernelRun:
    content = copy.deepcopy(run.content)
    content["scenario"].update(fields)
    return KernelRun(run.name, content)


def of(run: KernelRun) -> Conditions:
    return conditions(translate.scenario(run))


def flow(cwnd: list[float], ssthresh: list[float], retransmits: list[float] | None = None) -> FlowSeries:
    n = len(cwnd)
    return FlowSeries(
        cc="reno",
        t_s=np.arange(n) / 10,
        cwnd=np.array(cwnd, dtype=np.float64),
        ssthresh=np.array(ssthresh, dtype=np.float64),
        srtt_ms=np.full(n, 40.0),
        flight=np.array(cwnd, dtype=np.float64),
        retransmits=np.array(retransmits or [0.0] * n),
        goodput_bps=1e6,
        retransmits_total=0,
    )


def trace(
    goodput_bps: float,
    rtts_ms: list[float],
    recoveries: int = 0,
    retransmits: int = 0,
    decided: tuple[int, int | None] = (0, None),
) -> TimeLine:
    one = flow([10.0] * len(rtts_ms), [np.nan] * len(rtts_ms))
    values = {**vars(one), "srtt_ms": np.array(rtts_ms), "goodput_bps": goodput_bps}
    made = FlowSeries(**{**values, "retransmits_total": retransmits})
    return TimeLine([made], recoveries, np.array(rtts_ms), np.zeros(1), np.zeros(1), *decided)


def test_kolmogorov_smirnov_is_the_greatest_gap() -> None:
    a = np.array([1.0, 2.0, 3.0, 4.0])
    assert kolmogorov_smirnov(a, a) == 0.0
    assert kolmogorov_smirnov(a, a + 10) == 1.0
    # Three of four lie at or below 3 in one, two in the other.
    assert kolmogorov_smirnov(a, np.array([1.0, 2.0, 3.5, 4.0])) == 0.25


def test_errors_and_limits(stored: KernelRun) -> None:
    kernel, ours = trace(10e6, [40.0, 50.0, 60.0], 20, 100), trace(9.8e6, [40.0, 51.0, 60.0], 22, 111)
    found = {figure.quantity: figure for figure in figures(of(stored), [kernel], [ours])}
    assert found["goodput"].error == pytest.approx(2.0)
    assert found["goodput"].reached
    assert found["rtt"].error == pytest.approx(2.0)
    # 1514 bytes take 1.2112 ms at 10 Mbit/s, 2.4 % of 50 ms: 3 % is more.
    assert found["rtt"].limit == 3.0
    assert found["rtt_ks"].error == pytest.approx(1 / 3)
    assert found["reductions"].limit == pytest.approx(2.0)
    assert found["reductions"].reached
    assert not found["retransmits"].reached  # 11 of 100, ten are allowed
    assert "share" not in found


def test_a_narrow_distribution_counts_by_its_shift(stored: KernelRun) -> None:
    def distances(kernel_ms: list[float], ours_ms: list[float]) -> list[FigurePair]:
        found = figures(of(stored), [trace(1e6, kernel_ms)], [trace(1e6, ours_ms)])
        return [figure for figure in found if figure.quantity.endswith("_ks")]

    near = distances([40.0, 40.0, 40.05], [40.3] * 3)
    assert [(figure.error, figure.reached) for figure in near] == [(1.0, True)] * 2
    far = distances([40.0, 40.0, 40.05], [40.5] * 3)
    assert not any(figure.reached for figure in far), "1.2 % are more than one"
    assert far[0].severity == pytest.approx((0.5 - 0.05 / 3) / 40 * 100)
    wide = distances([40.0, 40.0, 40.1], [40.3] * 3)
    assert not any(figure.reached for figure in wide), "0.1 ms is no narrow one"


def test_one_packet_time_is_allowed_where_it_is_more(stored: KernelRun) -> None:
    slow = changed(stored, bottleneck={**stored.scenario["bottleneck"], "rate_kbit": 1000})
    found = figures(of(slow), [trace(1e6, [40.0])], [trace(1e6, [45.0])])
    rtt = next(figure for figure in found if figure.quantity == "rtt")
    assert rtt.limit == pytest.approx(12.112 / 40 * 100)


def test_seeds_are_averaged_and_random_loss_has_other_limits(stored: KernelRun) -> None:
    lossy = changed(stored, fwd_netem="loss random 1% limit 100000")
    assert of(lossy).stochastic
    assert not of(stored).stochastic
    assert of(changed(stored, fwd_netem="delay 10ms 5ms")).stochastic
    assert not of(changed(stored, fwd_netem="delay 10ms limit 100000")).stochastic
    found = figures(of(lossy), [trace(9e6, [40.0]), trace(11e6, [40.0])], [trace(10.4e6, [40.0])])
    goodput = next(figure for figure in found if figure.quantity == "goodput")
    assert (goodput.kernel, goodput.limit) == (10e6, 5.0)
    assert goodput.error == pytest.approx(4.0)


def test_what_a_discipline_decides_is_counted_behind_one(stored: KernelRun) -> None:
    def behind(
        leaf: str, kernel: tuple[int, int | None], ours: tuple[int, int | None]
    ) -> dict[str, FigurePair]:
        run = changed(stored, bottleneck={**stored.scenario["bottleneck"], "qdisc": leaf})
        sides = ([trace(1e6, [40.0], decided=decided)] for decided in (kernel, ours))
        return {figure.quantity: figure for figure in figures(of(run), *sides)}

    assert not {"drops", "marks"} & set(behind("bfifo limit 30000", (9, None), (9, 0)))
    marking = behind("codel limit 1000 ecn", (100, 50), (110, 56))
    assert (marking["drops"].error, marking["drops"].limit, marking["drops"].reached) == (10, 10, True)
    assert (marking["marks"].error, marking["marks"].limit, marking["marks"].reached) == (6, 5, False)
    assert behind("codel limit 1000", (10, 0), (13, 0))["drops"].limit == 3
    assert "marks" not in behind("codel limit 1000", (10, 0), (13, 0)), "nobody marked"
    assert "marks" not in behind("codel limit 1000", (10, None), (13, 7)), "the recording does not tell"


def test_disciplines_that_draw_are_run_with_several_seeds(stored: KernelRun) -> None:
    def behind(leaf: str) -> Conditions:
        return of(changed(stored, bottleneck={**stored.scenario["bottleneck"], "qdisc": leaf}))

    for leaf in ("red limit 200000 avpkt 1000", "choke limit 132 bandwidth 1mbit", "sfb", "pie", "fq_pie"):
        assert (behind(leaf).random, behind(leaf).stochastic) == (True, False), leaf
    for leaf in ("cake", "fq", "sfq", "fq_codel", "bfifo limit 30000"):
        assert not behind(leaf).random, leaf
    assert (behind("fq_pie").discipline, behind("fq_pie").managed) == ("fq_pie", True)
    assert not behind("pfifo limit 10").managed


def test_a_reduction_is_a_threshold_well_below_the_window() -> None:
    reno = flow([10, 20, 40, 20, 21, 22, 11], [np.nan, np.nan, 40, 20, 20, 20, 11])
    assert [change.reduction for change in changes(reno)] == [False, True, True]
    assert falls(reno) == [3, 6]
    assert falls(flow([10, 40, 30, 20, 20, 21, 20, 22, 19], [np.nan] * 9)) == [2, 8], "each fall once"


def saw(*teeth: int) -> FlowSeries:
    """A window that grows from 10 to 20 in so many samples, again and again."""
    cwnd = [float(w) for samples in teeth for w in np.linspace(10, 20, samples)]
    return flow(cwnd, [np.nan] * len(cwnd))


def test_windows_are_held_against_each_other_epoch_by_epoch() -> None:
    def one(own: FlowSeries) -> TimeLine:
        return TimeLine([own], None, *([np.zeros(1)] * 3), 0, None)

    kernel, slower = one(saw(11, 11, 11, 11)), one(saw(22, 22, 22))
    assert [epoch[-1] for epoch in epochs(kernel.flows[0])] == [20.0] * 4
    # Twice as long, the same shape: the windows agree, the period does not.
    assert window_error(kernel, slower) == pytest.approx(0, abs=1e-9)
    assert (period_s([kernel]), period_s([slower])) == (pytest.approx(1.1), None)
    higher = one(flow(list(saw(11, 11, 11, 11).cwnd * 1.1), [np.nan] * 44))
    # 10 % of a window of 15 on the mean, a little more by the root mean square.
    assert window_error(kernel, higher) == pytest.approx(
        10 * np.sqrt(np.mean(np.linspace(10, 20, 20) ** 2)) / 15
    )


def test_wasserstein_is_the_shift() -> None:
    a = np.array([1.0, 2.0, 3.0, 7.0])
    assert wasserstein(a, a) == 0.0
    assert wasserstein(a, a + 0.5) == pytest.approx(0.5)
    # A quarter of the samples, moved by 8.
    assert wasserstein(a, np.array([1.0, 2.0, 3.0, 15.0])) == pytest.approx(2.0)
    assert wasserstein(np.array([0.0, 4.0]), np.array([2.0])) == pytest.approx(2.0)


def test_standings_ask_for_the_share_and_the_median() -> None:
    near, far = FigurePair("goodput", 1, 1, 0.5, 3.0), FigurePair("goodput", 1, 1, 4.0, 3.0)
    quantity = BY_KEY["goodput"]
    enough = standing(quantity, "all", False, [near] * 19 + [far])
    assert enough is not None
    assert enough.reached
    short = standing(quantity, "all", False, [near] * 18 + [far] * 2)
    assert short is not None
    assert not short.reached
    wide = standing(quantity, "all", False, [FigurePair("goodput", 1, 1, 2.0, 3.0)] * 20)
    assert wide is not None
    assert not wide.reached, "half of the cases must lie within 1 %"


def test_the_path_is_the_kernels(stored: KernelRun) -> None:
    made = translate.scenario(stored)
    links = {link["name"]: link for link in made["links"]}
    assert links["r-d"]["qdisc"]["rate_bps"] == 10_000_000
    assert links["r-d"]["qdisc"]["leaf"] == {"kind": "bfifo", "limit_bytes": 100_000}
    # 160 ms, and what its fastest ping shows; its first ping left 6 ms late.
    assert links["d-r"]["delay_ns"] == round(min(stored.content["ping_series"]["rtt_ms"]) * 1e6)
    assert 6_000_000 < made["flows"][0]["start_ns"] < 6_100_000
    assert made["cold_arp"]
    plain = translate.scenario(stored, nominal=True)
    assert {link["name"]: link["delay_ns"] for link in plain["links"]}["d-r"] == 160_000_000
    assert plain["flows"][0]["start_ns"] == 0


def test_a_recording_that_tells_of_its_machine_is_believed(stored: KernelRun) -> None:
    told = KernelRun(stored.name, {**stored.content, "run": {"late_ms": 0.0, "idle_ms": 0.022}})
    made = translate.scenario(told)
    assert {link["name"]: link["delay_ns"] for link in made["links"]}["d-r"] == 160_022_000
    assert made["flows"][0]["start_ns"] == 0


def test_competing_flows_are_a_group_of_their_own() -> None:
    found = validate(load_all(RECORDINGS, "b-2m-40ms-4bdp-c*+*"))
    assert found.algorithms == ["competing"]
    assert {c.algorithm for c in found.cases} == {"cdg+cubic", "cubic+reno", "cubic+bbr"}
    shares = next(row for row in found.standings(False) if row.quantity.key == "share")
    assert (shares.group, shares.cases) == ("all", 3)


def test_a_case_that_the_machine_limits_counts_apart(stored: KernelRun) -> None:
    content = {**stored.content, "run": {**stored.content["run"], "cpu_idle_share": 0.29}}
    busy, idle = (
        KernelRun("b-busy", content),
        KernelRun("b-idle", {**content, "run": {"cpu_idle_share": 0.3}}),
    )
    found = validate([busy, idle, stored])
    assert [case.name for case in found.limited] == ["b-busy"]
    assert {row.cases for row in found.standings(False)} == {2}
    text = "\n".join(document.standings(found, found))
    assert "| goodput | median ≤ 1 %, 95 % of cases ≤ 3 % | 2 of 2 |" in text
    assert "| 4 of 4 |" in text, "the whole, with the same once more as the part that is held out"


def test_the_page_names_what_is_not_recorded_and_shows_no_case_of_the_third(
    case: Case, tmp_path: Path
) -> None:
    held, slow = replace(case, name="w-held-out"), replace(case, name="b-slow", idle_share=0.1)
    nothing = Agreement([], {})
    described = Grid(title="t", kernel="Linux", recordings="r")
    missing = {"w-later": (1, 3)}
    page = document.Page(Agreement([case, slow], {}), Agreement([held], {}), nothing, described, missing, [])
    document.write(page, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "- w-later: 1 of 3" in text
    assert "| b-slow | 0.10 |" in text
    assert "w-held-out" not in text
    assert "and 1 more (1 recordings) that are held out" in text


def test_the_held_out_third_is_compared_only_when_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("w-1m-20ms-4bdp-reno", "w-1m-20ms-4bdp-bbr"):  # of which the first is held out
        shutil.copy(RECORDINGS / f"{CASE}.json.xz", tmp_path / f"{name}.json.xz")
    asked = f"validate --recordings {tmp_path} --json"
    for option, shown in (("", "bbr"), (" --held-out", "reno")):
        status, out, err = run(asked + option, capsys, monkeypatch)
        assert status == 0, err
        told = json.loads(out)
        assert [line["name"] for line in told["cases"]] == [f"w-1m-20ms-4bdp-{shown}"]
        assert told["held_out"] == bool(option)
    for line in (f"{asked} --only reno", f"validate explain reno --recordings {tmp_path}"):
        status, out, err = run(line, capsys, monkeypatch)
        assert (status, out) == (2, "")
        assert "--held-out" in err


def test_overhead_and_a_second_host_reach_the_path(stored: KernelRun) -> None:
    bottleneck = {**stored.scenario["bottleneck"], "overhead": "40 linklayer atm"}
    made = translate.scenario(changed(stored, bottleneck=bottleneck, fwd_netem="delay 10ms 2ms loss 1%"))
    link = next(link for link in made["links"] if link["name"] == "r-d")
    assert (link["qdisc"]["overhead_bytes"], link["qdisc"]["linklayer_atm"]) == (40, True)
    assert (link["netem"]["delay_ns"], link["netem"]["jitter_ns"]) == (10_000_000, 2_000_000)


def test_an_unknown_field_is_refused_and_told(stored: KernelRun) -> None:
    strange = changed(stored, middlebox="yes")
    with pytest.raises(BadInputError, match=r"scenario\.middlebox"):
        translate.scenario(strange)
    assert validate([strange]).failed.keys() == {CASE}


def test_packing_keeps_what_is_compared(stored: KernelRun, tmp_path: Path) -> None:
    file = tmp_path / f"{CASE}.json.xz"
    file.write_bytes(packed(stored))
    again = load(file)
    assert again.content == json.loads(lzma.decompress(packed(again)))
    assert of_kernel(again).goodput_bps == of_kernel(stored).goodput_bps
    plain = tmp_path / f"{CASE}-seed7.json"
    plain.write_text(json.dumps(stored.content), encoding="utf-8")
    assert {name: len(runs) for name, runs in grouped(load_all(tmp_path)).items()} == {CASE: 2}


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"scenario": {}}'])
def test_a_damaged_recording_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"x\.json"):
        load(file)


def test_events_of_a_flow_in_words() -> None:
    told = flow([10, 40, 40, 20, 20, 20], [np.nan, 40, 40, 20, 20, 20], [0, 0, 2, 3, 3, 4])
    assert [event.words for event in events(told)] == [
        "leaves slow start at a window of 40",
        "retransmits 3 segments",
        "reduces ssthresh to 20 (window 40)",
        "retransmits 1 segment",
    ]


def test_the_parting_is_the_first_difference(case: Case) -> None:
    kernel = case.kernel[0]
    assert explain(replace(case, kernel=[kernel], simulator=[kernel])) is None
    own = kernel.flows[0]
    at = next(change for change in changes(own) if change.reduction and change.t_s > 5)
    late = own.ssthresh.copy()
    late[at.index :] = np.where(late[at.index :] == at.ssthresh, at.ssthresh * 1.2, late[at.index :])
    other = TimeLine([FlowSeries(**{**vars(own), "ssthresh": late})], None, *([np.zeros(1)] * 3), 0, None)
    parting = explain(replace(case, kernel=[kernel], simulator=[other]))
    assert parting is not None
    assert parting.t_s == pytest.approx(at.t_s)
    assert f"ssthresh to {at.ssthresh:.0f}" in parting.words
    assert any(line[0] == f"{at.t_s:.1f}" for line in parting.table)


def test_a_grown_error_is_beyond_its_band(case: Case, tmp_path: Path) -> None:
    file = tmp_path / "bands.json"
    bands.write([case], file)
    band = bands.read(file)[case.name]
    assert bands.beyond(case, band) == []
    worse = [FigurePair(f.quantity, f.kernel, f.simulator, f.error + 0.6, f.limit) for f in case.figures[:1]]
    grown = replace(case, figures=worse)
    assert "goodput" in bands.beyond(grown, band)[0]


def test_the_worst_case_is_first() -> None:
    found = validate(load_all(RECORDINGS, "10m-10ms-4bdp"))
    assert [c.severity for c in found.cases] == sorted((c.severity for c in found.cases), reverse=True)
    assert found.algorithms == ["cdg", "cubic", "reno", "vegas", "competing"]
    assert {c.condition for c in found.cases} == {"10m-10ms-4bdp", "10m-10ms-4bdp-cubic+reno"}


def test_workers_do_not_change_a_figure(case: Case) -> None:
    again: Agreement = validate(load_all(RECORDINGS, "10m-160ms-0.5bdp"), workers=2)
    assert next(c for c in again.cases if c.name == CASE).figures == case.figures


def run(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_the_command_writes_page_and_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status, out, err = run(f"validate --only 10m-160ms-0.5bdp --json --out {tmp_path}", capsys, monkeypatch)
    assert status == 0, err
    told = json.loads(out)
    assert {line["name"] for line in told["cases"]} == {
        CASE,
        *(f"b-10m-160ms-0.5bdp-{cc}" for cc in ("bbr", "reno")),
    }
    page = (tmp_path / "agreement.html").read_text(encoding="utf-8")
    assert f'href="#case-{CASE}"' in page
    assert f'id="case-{CASE}"' in page
    # Its own script only, and nothing to fetch: the policy names what may run by hash.
    assert set(re.findall(r"<script[^>]*>", page)) == {
        '<script type="module">',
        '<script type="application/json" class="chart-data">',
    }
    assert "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_the_command_explains_one_case(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    status, out, _ = run(f"validate explain {CASE}", capsys, monkeypatch)
    assert status == 0
    assert CASE in out


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("validate --grid nowhere.toml", "nowhere.toml"),
        ("validate --recordings nowhere", "nowhere"),
        ("validate --only nonesuch", "nonesuch"),
        ("validate explain 10m", "one case"),
        ("validate record nowhere", "CELL"),
        ("validate record nowhere 10m-fast", "b-RATEm-RTTms"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, hint: str
) -> None:
    status, out, err = run(line, capsys, monkeypatch)
    assert (status, out) == (2, "")
    assert hint in err
    assert err.count("\n") == 1


def test_a_narrow_terminal_has_fewer_columns_and_no_cut_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = validate(load_all(RECORDINGS, "b-2m-40ms-1bdp-c*"))

    def told(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        console.show(found)
        return capsys.readouterr().out

    narrow, wide = told(80), told(200)
    assert max(map(len, narrow.splitlines())) <= 80
    for text in (narrow, wide):
        assert "…" not in text.split("no random loss")[0]
    assert "in a wider terminal" in narrow
    assert "in a wider terminal" not in wide
    assert "share" in wide.split("no random loss")[0]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("validate --only b-2m-10ms-4bdp-cubic --out {}", "--out"),
        ("validate --only b-2m-10ms-4bdp-cubic --write-docs {}", "--write-docs"),
        ("validate record {} b-2m-10ms-4bdp-cubic", "FOLDER"),
        ("validate bands {}", "FILE"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_any_work(
    command: str,
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").touch()
    place = str(tmp_path / "file" / "below")
    monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(command.format(shlex.quote(place)))])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert f"{option}: got '{place}', expected a f" in told.err
    assert not told.out


def test_random_algorithms_and_queues_are_those_of_linux() -> None:
    assert algorithms.random_in_linux() == ("bbr", "cdg", "lp", "nv")
    probabilistic = list(filter(disciplines.is_probabilistic, disciplines.rows()))
    assert probabilistic == ["red", "choke", "sfb", "pie", "fq_pie", "dualpi2"]
