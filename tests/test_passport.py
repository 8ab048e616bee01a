"""`dragstrip passport`: rows replay, verdicts follow their rules, comparisons, files, refusals, interruption."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markupsafe import escape
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.engines import registry
from dragstrip.engines.contract import Refusal
from dragstrip.engines.sim.engine import Simulator
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.model.scenario.paths import PAYLOAD_BYTES
from dragstrip.studies.passport import against, console, junit, laws, page, runs, suite, summary
from dragstrip.studies.passport.chapters import bbr, users
from dragstrip.studies.passport.figures import GOODPUT, IMBALANCE, RESENT, mos
from dragstrip.studies.passport.rows import PLACE, On, PassportRow, RowRule, Scenario, Subject
from dragstrip.studies.passport.rows import PassportPath as Line
from dragstrip.studies.passport.store import RunStore, StoredRun
from dragstrip.studies.passport.verdicts import Value, difference, judge, value, worst
from dragstrip.studies.passport.wording import unit
from tools import passports

ONLY = "theory,rtt"


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cache of these tests, so that what they keep is nobody else's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGSTRIP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, [*words])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick passport of two chapters of vegas."""
    folder = tmp_path_factory.mktemp("passport") / "vegas"
    ended = invoke("passport", "vegas", "--quick", "--only", ONLY, "--out", str(folder))
    assert ended.exit_code in (0, 3), ended.output
    return folder


def document(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "passport.json").read_text())
    return found


# --- the suite ----------------------------------------------------------------------------------


def test_the_suite_has_many_rows_with_ids_of_their_own_and_sources() -> None:
    rows = suite.rows("bbr", suite.NAMES, quick=False)
    assert len(rows) > 200
    assert len({row.id for row in rows}) == len(rows)
    assert sum(row.rule.kind != "R" for row in rows) > 200
    assert {row.chapter for row in rows} == set(suite.NAMES)
    assert all(row.rule.source and row.id.startswith(f"{row.chapter}-") for row in rows)
    for row in rows:
        bounds = row.rule.least is not None or row.rule.most is not None
        assert bounds == (row.rule.kind in "PT"), row.id
    quick = suite.rows("bbr", suite.NAMES, quick=True)
    assert {row.id for row in quick} < {row.id for row in rows}
    assert {row.chapter for row in quick} == set(suite.NAMES)


@pytest.mark.parametrize("algorithm", ["bbr", "cubic", "reno", "vegas"])
def test_every_scenario_can_be_planned(algorithm: str) -> None:
    for row in suite.rows(algorithm, suite.NAMES, quick=False):
        planned = runs.planned(row.scenario, Subject(algorithm))
        assert planned.runs, f"{row.id}: {planned.failure}"
        # The last of several runs that give one figure has most flows of the algorithm.
        own = [
            flow for flow in planned.runs[-1].scenario["flows"] if flow["transport"].get("cc") == algorithm
        ]
        count = row.scenario.subjects
        assert len(own) >= (1 if count is None else count), row.id


def test_a_chapter_that_is_none_is_refused_with_the_nearest() -> None:
    ended = invoke("passport", "reno", "--only", "alnoe")
    assert ended.exit_code != 0
    assert "alone" in str(ended.exception)


def test_a_web_search_row_has_the_flows_of_a_comparison_with_that_load() -> None:
    """The suite has no Poisson process of its own; flows of one seed are the same for every algorithm."""
    rows = [row for row in users.rows() if row.id.startswith("users-web-search")]
    assert len(rows) == 6
    for row in rows:
        planned = {name: runs.planned(row.scenario, Subject(name)).runs for name in ("cubic", "bbr")}
        assert [len(seeds) for seeds in planned.values()] == [6, 6]
        load = row.id.split("-")[3]
        flows = f"poisson load={load}%"
        options = {"rate": "100mbit", "rtt": "20ms", "queue": "1bdp", "duration": "60s", "repeat": 6}
        for at, run in enumerate(expand(compare(["cubic"], workload=flows, **options))):
            arrivals = [(flow["start_ns"], flow["application"]) for flow in run.scenario["flows"]]
            for seeds in planned.values():
                assert arrivals == [
                    (flow["start_ns"], flow["application"]) for flow in seeds[at].scenario["flows"]
                ]


TESTED_BY: dict[str, Callable[[Mapping[str, Any]], bool] | None] = {
    "multipath (RFC 9743 7.10)": None,
    "network transport circuit breakers (RFC 9743 7.2, RFC 8084)": None,
    "receivers that lie: ACK division, optimistic ACKs (RFC 9743 7.6)": None,
    "host CPU, pacing and offload of real network cards": None,
    "real radio: fading, handover, recorded cellular traces": lambda run: "trace" in kinds(run["media"]),
    "marks lost where a tunnel ends (RFC 6040)": lambda run: "tunnel" in kinds(run["media"]),
    "loads of data mining, Hadoop and caches": None,
    "ACKs aggregated by a number or a time, and one flow's jitter (Arun et al.)": None,
    "cases of draft-ietf-ccwg-bbr without a row": None,
    "one connection that is limited first and then sends in bulk; a receiver's window that opens": None,
    "self-inflicted delay (Sprout, NSDI 2013)": None,
    "responsiveness by draft-ietf-ippm-responsiveness, with its confidence": None,
    "conformance with a reference implementation": None,
    "a real kernel": None,
    "cases that nobody has thought of": None,
}
"""Per entry of `suite.UNTESTED`, the property of a scenario that would make it untrue; None: no scenario can."""

MODELS = {
    "video": ("video",),
    "constant_rate": ("constant rate", "calls"),
    "rtp": ("live video", "rtp flows", "media flow"),
    "request_response": ("request",),
    "on_off": ("on and off", "on-off"),
    "wifi_n": ("wi-fi", "802.11"),
    "homeplug_av": ("homeplug", "powerline"),
    "adsl": ("adsl",),
    "tunnel": ("tunnel",),
    "trace": ("trace",),
}
"""Words for the applications and media that rows may have."""


def kinds(media: Mapping[str, Any]) -> set[str]:
    return {medium["kind"] for medium in media.values()}


def contradictions(
    entries: Sequence[suite.Untested], scenarios: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The entries that a row contradicts, each with the row's id."""
    pairs = []
    for row, scenario in scenarios.items():
        used = kinds(scenario["media"]) | {flow["application"]["kind"] for flow in scenario["flows"]}
        words = [word for kind in used for word in MODELS.get(kind, ())]
        for entry in entries:
            is_tested = TESTED_BY.get(entry.topic)
            named = any(word in entry.topic.lower() for word in words)
            if named or (is_tested is not None and is_tested(scenario)):
                pairs.append(f"{row}: {entry.topic}")
    return pairs


def test_no_row_tests_what_the_passport_calls_untested() -> None:
    assert TESTED_BY.keys() == {entry.topic for entry in suite.UNTESTED}
    scenarios = {
        row.id: planned.runs[0].scenario
        for row in suite.rows("bbr", suite.NAMES, quick=False)
        if (planned := runs.planned(row.scenario, Subject("bbr"))).runs
    }
    assert contradictions(suite.UNTESTED, scenarios) == []
    video = suite.Untested("adaptive video", "no video player is modelled")
    assert {line.split(":")[0] for line in contradictions([video], scenarios)} == {
        row for row in scenarios if row.startswith("users-video")
    }
    tunnelled = {"row": {"media": {"t": {"kind": "tunnel"}}, "flows": []}}
    assert contradictions(suite.UNTESTED, tunnelled) == ["row: marks lost where a tunnel ends (RFC 6040)"]


# --- replay -------------------------------------------------------------------------------------


def sample() -> list[PassportRow]:
    """A cheap row of each chapter, comparisons and experiments alike."""
    wanted = (
        "alone-1.5-40-1bdp-resent",
        "many-newcomer-8bdp-least-share",
        "beside-1-and-4-cubic-neighbour",
        "rtt-20-40-1bdp-ratio",
        "loss-slow-10-goodput",
        "loss-acks-50-goodput",
        "many-parking-lot-long-share",
        "aqm-codel-10-80-4-ping-p95",
        "changes-drop-and-back-completion",
        "users-short-cubic-1bdp-neighbour-completion",
        "starvation-shrew-500-goodput",
    )
    rows = {row.id: row for row in suite.rows("vegas", suite.NAMES, quick=False)}
    return [rows[name] for name in wanted]


@pytest.mark.parametrize("row", sample(), ids=lambda row: row.id)
def test_the_replay_command_gives_the_figure_of_the_row(row: PassportRow, tmp_path: Path) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make, write

    asked = PassportRequest(Subject("vegas"), suite.NAMES, False, (row,))
    found = make(asked, None, quiet=True)
    write(found, asked, tmp_path)
    (told,) = found["rows"]
    assert told["value"] is not None, told
    words = shlex.split(told["replay"])[1:]
    if words[0] == "run":
        words[1] = str(tmp_path / words[1])
    ended = invoke(*words, "--json", "--no-report", "--out", str(tmp_path / "again"))
    assert ended.exit_code == 0, ended.output
    again = json.loads(ended.stdout)
    values = [row.figure.of(run, row.scenario) for run in again["runs"]]
    assert values == told["values"]


# --- verdicts -----------------------------------------------------------------------------------


def verdict(rule: RowRule, figure: Any, own: float, cubic: float, reno: float) -> str:
    row = PassportRow("x-1", "alone", "x", Line(10, 40).scenario(), figure, rule)
    return judge(row, of(own), {"cubic": of(cubic), "reno": of(reno)}).verdict


def of(*figures: float) -> Value:
    return Value(statistics.median(figures), figures)


LIMIT = RowRule("P", "a document", most=0.1)
AMONG = RowRule("K", "a comparison")


@pytest.mark.parametrize(
    ("rule", "figure", "own", "cubic", "reno", "expected"),
    [
        (LIMIT, RESENT, 0.1, 0.0, 0.0, "held"),
        (LIMIT, RESENT, 0.11, 0.0, 0.0, "missed"),
        (LIMIT, RESENT, 0.11, 0.2, 0.0, "missed, as by CUBIC"),
        (LIMIT, RESENT, 0.11, 0.0, 0.2, "missed"),
        (AMONG, GOODPUT, 4.96, 5.0, 9.0, "same"),
        (AMONG, GOODPUT, 4.94, 5.0, 9.0, "worse"),
        (AMONG, GOODPUT, 9.05, 5.0, 9.0, "same"),
        (AMONG, GOODPUT, 9.10, 5.0, 9.0, "better"),
        (AMONG, RESENT, 0.0009, 0.0, 0.0, "same"),
        (AMONG, RESENT, 0.0011, 0.0, 0.0, "worse"),
        (AMONG, RESENT, 0.010, 0.03, 0.02, "better"),
        (RowRule("R", "nobody"), RESENT, 1.0, 0.0, 0.0, "reported"),
    ],
)
def test_a_verdict_follows_from_the_figures(
    rule: RowRule, figure: Any, own: float, cubic: float, reno: float, expected: str
) -> None:
    assert verdict(rule, figure, own, cubic, reno) == expected


def test_without_a_baseline_nothing_is_worse_and_without_a_figure_the_row_failed() -> None:
    row = PassportRow("x-1", "alone", "x", Line(10, 40).scenario(), GOODPUT, AMONG)
    none = Value(None, failure="stalled")
    assert judge(row, of(1.0), {"cubic": none, "reno": none}).verdict == "same"
    assert judge(row, none, {"cubic": of(1.0), "reno": of(1.0)}).verdict == "failed"


SEEDS = (5.0, 9.0, 7.0, 3.0, 8.0, 6.0)
"""Figures whose seeds matter more than what is compared."""


@pytest.mark.parametrize(
    ("own", "cubic", "expected"),
    [
        ([seed * 1.2 for seed in SEEDS], SEEDS, "better"),  # in every pair, though the ranges overlap
        ([seed * 0.8 for seed in SEEDS], SEEDS, "worse"),
        ([seed * 1.009 for seed in SEEDS], SEEDS, "same"),  # within the margin
        ([*(seed * 1.2 for seed in SEEDS[:3]), *(seed * 0.8 for seed in SEEDS[3:])], SEEDS, "same"),
        (SEEDS, SEEDS[::-1], "same"),
        (SEEDS, (2.0,), "better"),  # a baseline in which nothing was random
        (SEEDS, (6.0,), "same"),
        ((9.5,), SEEDS, "better"),
    ],
)
def test_several_seeds_are_compared_in_pairs(own: Any, cubic: Any, expected: str) -> None:
    row = PassportRow("x-1", "alone", "x", Line(10, 40).scenario(), GOODPUT, AMONG)
    judged = judge(row, of(*own), {"cubic": of(*cubic), "reno": of(*cubic)})
    assert judged.verdict == expected
    assert (judged.badness > 0) == (expected == "worse")
    again = judge(row, of(*own), {"cubic": of(*cubic), "reno": of(*cubic)})
    assert judged.differences == again.differences


def test_without_chance_a_difference_is_exact_and_with_it_drawn_by_the_name_of_the_row() -> None:
    assert difference(of(3.0), of(1.0), "a") == (2.0, 2.0)
    spread = of(*(seed**2 + 0.1 * at for at, seed in enumerate(SEEDS)))
    drawn = {difference(spread, of(*SEEDS), name) for name in "abcdefghijklmnop"}
    assert len(drawn) > 1
    assert all(low <= high for low, high in drawn)


def test_the_worst_are_failures_then_limits_then_the_rest_and_each_scenario_once() -> None:
    def entry(key: str, rule: RowRule, own: float | None) -> Any:
        row = PassportRow(key, "alone", key.partition(" ")[0], Line(10, 40).scenario(), RESENT, rule)
        mine = Value(None) if own is None else of(own)
        return judge(row, mine, {"cubic": of(0.0), "reno": of(0.0)})

    rows = [
        entry("compared", AMONG, 0.9),
        entry("held", LIMIT, 0.05),
        entry("limit", LIMIT, 0.2),
        entry("failed", AMONG, None),
        entry("compared again", AMONG, 0.8),
        entry("target", RowRule("T", "somebody", most=0.1), 0.3),
    ]
    assert [one.row.id for one in worst(rows, 5)] == ["failed", "limit", "compared", "target"]
    assert [one.row.id for one in worst(rows, 2)] == ["failed", "limit"]


# --- theory -------------------------------------------------------------------------------------


def test_laws_have_their_published_values() -> None:
    # RFC 9438, section 5.1, table 2 (RTT 0.1 s, in packets): the window at a loss of 10^-5 is 1054.
    packets = laws.cubic_mbit(1e-5, 100) * 0.1 * 1e6 / 8 / PAYLOAD_BYTES
    assert packets == pytest.approx(1054, rel=0.01)
    # Mathis: 1.22 / sqrt(p) packets per round trip.
    packets = laws.mathis_mbit(0.01, 50) * 0.05 * 1e6 / 8 / PAYLOAD_BYTES
    assert packets == pytest.approx(12.2, rel=0.01)
    assert laws.pftk_mbit(0.1, 50) < laws.mathis_mbit(0.1, 50)
    # Reno without a buffer uses three quarters, with a whole BDP all of the link.
    assert laws.sawtooth(0.5, 0) == pytest.approx(0.75)
    assert laws.sawtooth(0.5, 1) == 1
    # Ware et al.: 10 Mbit/s, 40 ms, one BBR flow, 8 BDP.
    assert laws.ware_share(8, 1, 8 * 33.0, 10, 40) == pytest.approx(0.55, abs=0.01)
    # DCTCP: K + N at most, and half a swing below it on average.
    assert laws.dctcp_queue_packets(100, 10, 20, 1) == pytest.approx(21 - math.sqrt(2 * 102.6) / 4, abs=0.01)
    assert laws.long_share(3, 1) == 0.25
    assert laws.long_share(3, 2) == pytest.approx(0.366, abs=0.001)
    assert mos(0, 0) == pytest.approx(4.41, abs=0.01)
    assert mos(400, 0) < mos(150, 0)
    assert mos(100, 20) < 2


def test_reno_is_within_a_fifth_of_its_laws_where_they_hold(tmp_path: Path) -> None:
    ended = invoke("passport", "reno", "--only", "theory", "--out", str(tmp_path / "p"), "--json")
    assert ended.exit_code == 0, ended.output
    rows = json.loads(ended.stdout)["rows"]
    assert {row["theory"]["law"] for row in rows} == {"Mathis", "PFTK", "sawtooth", "overshoot"}
    assert [row["id"] for row in rows if abs(row["theory"]["deviation"]) > 0.2] == []


# --- files --------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects the addresses that a page would load, and its open elements at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.loads += [f"{tag} {value}" for name, value in attrs if name in ("src", "srcset")]
        self.loads += [f"link {value}" for name, value in attrs if tag == "link"]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_passport_is_three_files_that_say_the_same(made: Path) -> None:
    found = document(made)
    text = (made / "passport.html").read_text()
    tags = Tags()
    tags.feed(text)
    assert not tags.loads
    assert not tags.open
    assert "<script" not in text
    assert "prefers-color-scheme:dark" in text
    assert "width=device-width" in text
    assert all(row["id"] in text for row in found["rows"])
    assert all(str(escape(entry["what"])) in text for entry in found["not_tested"])
    markdown = (made / "passport.md").read_text()
    assert all(found["sentences"][name].partition(":")[0] in markdown for name in ("good", "fails", "harms"))
    assert markdown == summary.markdown(found)
    assert {path.name for path in made.iterdir()} == {"passport.json", "passport.html", "passport.md"}


def test_what_is_left_out_is_said(made: Path) -> None:
    said = {entry["what"]: entry["why"] for entry in document(made)["not_tested"]}
    assert said["chapter alone"] == "--only leaves it out"
    assert any(why == "--quick leaves them out" for why in said.values())
    assert any("Mathis" in what for what in said)  # no law of vegas


def test_the_same_input_gives_the_same_bytes_with_any_number_of_workers(made: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "empty"))
        words = ("passport", "vegas", "--quick", "--only", ONLY, "--workers", "1", "--out")
        assert invoke(*words, str(tmp_path / "p")).exit_code in (0, 3)
    for name in ("passport.json", "passport.html", "passport.md"):
        assert (tmp_path / "p" / name).read_bytes() == (made / name).read_bytes(), name


def test_the_terminal_has_80_columns_and_all_that_matters(made: Path) -> None:
    found = document(made)
    text = console.text(found)
    assert max(map(len, text.splitlines())) <= 80
    assert all(chapter["title"] in text for chapter in found["chapters"])
    flat = " ".join(text.replace("\\\n", " ").split())
    for name in found["worst"]:
        row = next(row for row in found["rows"] if row["id"] == name)
        assert " ".join(row["replay"].split()) in flat


def test_the_terminals_replay_of_an_experiment_works_where_the_command_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("passport", "bbr", "--quick", "--only", "mixed", "--out", "two words")
    flat = " ".join(result.stdout.replace("\\\n", " ").split())
    replay = "dragstrip run 'two words/experiments/mixed-1bdp-spillover-50.toml'"
    assert replay in flat
    assert Path(shlex.split(replay)[2]).is_file()
    # The files can be moved: their commands are for the passport's folder.
    (worst,) = document(tmp_path / "two words")["worst"]
    row = next(row for row in document(tmp_path / "two words")["rows"] if row["id"] == worst)
    assert row["replay"] == "dragstrip run experiments/mixed-1bdp-spillover-50.toml"


def test_hostile_words_stay_text() -> None:
    row = {
        "id": "alone-1",
        "chapter": "alone",
        "title": "<script>alert(1)</script> ]]> \x1b[31m",
        "measure": "goodput",
        "unit": "Mbit/s",
        "formula": "",
        "kind": "P",
        "rule": "at least 1",
        "source": "a & b",
        "verdict": "missed",
        "value": 0.5,
        "values": [0.5],
        "recordings": [],
        "baselines": {},
        "theory": None,
        "replay": "dragstrip compare '<b>'",
    }
    found = {
        "algorithm": '<img src=x onerror="1">',
        "version": "0",
        "suite": 1,
        "engine": "vm",
        "kernel": "6.1 <b>",
        "beside": {
            "engine": "<u>",
            "kernel": None,
            "rows": 1,
            "same": 0,
            "different": [{**row, "other_verdict": "held", "other_value": 2.0}],
            "not_run": [{"id": "alone-1", "title": "<h9>", "why": "<h9> | *"}],
        },
        "not_run": [{"id": "alone-2", "title": "<h9>", "why": "<h9> \x1b[31m"}],
        "quick": False,
        "sentences": {"good": "<i>"},
        "chapters": [{"name": "alone", "title": "alone", "rows": 1, "verdicts": {"missed": 1}}],
        "worst": ["alone-1"],
        "harm": [],
        "rows": [row],
        "not_tested": [],
    }
    text = page.page(found)
    assert "<script" not in text
    assert "<img" not in text
    assert not any(tag in text for tag in ("<i>", "<b>", "<u>", "<h9>"))
    assert "\x1b" not in console.text(found)
    root = ET.fromstring(junit.xml(found, {"alone-1": "missed <&>"}))  # noqa: S314
    assert root.get("failures") == "1"
    assert re.search(r"(?<!\\)<script", summary.markdown(found)) is None


# --- comparison ---------------------------------------------------------------------------------


def test_a_passport_against_itself_has_nothing_but_unchanged_rows(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "p" / "rows.xml"
    ended = invoke(
        *("passport", "vegas", "--quick", "--only", ONLY, "--out", str(tmp_path / "p")),
        *("--against", str(made / "passport.json"), "--junit", str(file)),
    )
    assert ended.exit_code == 0, ended.output
    found = document(tmp_path / "p")
    assert found["against"]["changed"] == []
    assert found["against"]["unchanged"] == len(found["rows"]) > 0
    root = ET.fromstring(file.read_text())  # noqa: S314
    assert root.get("failures") == "0"
    assert len(root.findall(".//testcase")) == len(found["rows"])


def test_an_algorithm_that_got_worse_ends_with_3_and_names_its_rows(made: Path, tmp_path: Path) -> None:
    file = tmp_path / "rows.xml"
    ended = invoke(
        *("passport", "fixed:window=3", "--quick", "--only", ONLY, "--out", str(tmp_path / "p")),
        *("--against", str(made / "passport.json"), "--junit", str(file)),
    )
    found = document(tmp_path / "p")
    worse = [row["id"] for row in found["against"]["changed"] if row["how"] == "worse"]
    assert (ended.exit_code == 3) == bool(worse)
    assert worse
    assert all(f"- {name}:" in " ".join(ended.output.split()) for name in worse)
    failed = ET.fromstring(file.read_text()).findall(".//testcase[failure]")  # noqa: S314
    assert sorted(case.get("name") or "" for case in failed) == sorted(worse)


def one(**changed: Any) -> dict[str, Any]:
    row = {"id": "a", "kind": "K", "verdict": "same", "value": 10.0, "values": [10.0], "recordings": ["x"]}
    return {**row, "more_is_better": True, "floor": 0.0, **changed}


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (one(recordings=["y"], values=[9.0]), one(), "worse"),
        (one(recordings=["y"], values=[9.8]), one(), "same"),
        (one(recordings=["y"], values=[11.0]), one(), "better"),
        (one(recordings=["y"], values=[9.0], more_is_better=False), one(), "better"),
        (one(recordings=["y"], values=[9.0, 10.1, 9.1]), one(values=[10.0, 10.2, 10.0]), "same"),
        (one(recordings=["y"], values=[9.0], floor=2.0), one(), "same"),
        (one(recordings=["y"], values=[9.0], kind="R"), one(), "same"),
        (one(recordings=["y"], verdict="missed", kind="P"), one(verdict="held", kind="P"), "worse"),
        (one(recordings=["y"], verdict="held", kind="P"), one(verdict="missed", kind="P"), "better"),
        (one(recordings=[], values=[], value=None, verdict="failed"), one(), "worse"),
        (one(recordings=["y"]), one(recordings=[], values=[], value=None, verdict="failed"), "better"),
    ],
)
def test_a_changed_row_is_judged_by_what_changed(now: Any, before: Any, expected: str) -> None:
    found = against.compare({"rows": [now]}, {"rows": [before], "algorithm": "a"}, "old.json")
    assert [row["how"] for row in found["changed"]] == [expected]


def test_what_got_worse_by_most_comes_first() -> None:
    earlier = [one(id=name, values=[10.0], value=10.0) for name in ("a", "b", "c", "d")]
    later = [
        one(id=name, recordings=["y"], values=[value], value=value)
        for name, value in (("a", 12.0), ("b", 9.0), ("c", 5.0), ("d", 20.0))
    ]
    changes = against.compare({"rows": later}, {"rows": earlier, "algorithm": "a"}, "old.json")["changed"]
    assert [(row["id"], row["how"]) for row in changes] == [
        ("c", "worse"),
        ("b", "worse"),
        ("d", "better"),
        ("a", "better"),
    ]


def test_a_ratio_names_the_side_that_has_less() -> None:
    scenario = Scenario(("{a}", "reno"), {}, subjects=1)
    flows = [{"cc": cc, "label": cc, "goodput_bps": rate} for cc, rate in (("bbr", 2e6), ("reno", 6e6))]
    rows = suite.rows("bbr", suite.NAMES, True)
    row = replace(next(row for row in rows if row.figure is IMBALANCE), scenario=scenario)
    figure = value(row, [StoredRun({"flows": flows}, "x")])
    assert (figure.median, figure.smaller) == (3.0, "bbr")
    assert unit({"value": 3.0, "unit": "to 1", "smaller": "bbr"}) == "3 to 1 (bbr has less)"


def test_equal_recordings_are_unchanged_whatever_the_verdict_says() -> None:
    found = against.compare(
        {"rows": [one(verdict="worse", values=[1.0])]}, {"rows": [one()], "algorithm": "a"}, "old"
    )
    assert found["unchanged"] == 1
    assert not found["changed"]


# --- engines ------------------------------------------------------------------------------------


class Another(Simulator):
    """The simulator, as an engine that does not know BBR, refuses lossy paths, and says what runs cost."""

    name = "another"
    seconds = 10.0
    made = ""

    def algorithms(self, options: Any) -> list[str]:
        return [name for name in super().algorithms(options) if name != "bbr"]

    def refusals(self, scenario: Any, options: Any) -> list[Refusal]:
        if any((link.get("netem") or {}).get("loss") for link in scenario["links"]):
            return [Refusal("link r-d: loss", "random", "none on this engine")]
        if any(flow["transport"]["cc"] == "bbr" for flow in scenario["flows"]):
            return [Refusal("flow bbr: cc", "bbr", "another")]
        return []

    def build(self, options: Any) -> str:
        return f"another engine {self.made}"

    def kernel(self, options: Any) -> str | None:
        return "9.9"

    def cost_s(self, scenario: Any) -> float:
        return self.seconds * scenario["duration_ns"] / 1e9


ENGINE = Another()


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine beside the others, whose runs are made in this process."""
    from dragstrip.engines.registry import named
    from dragstrip.results.measures import summarise
    from dragstrip.runs import Outcome

    def here(tasks: Any, workers: Any, watcher: Any, limits: Any) -> None:
        for at, task in enumerate(tasks):
            recording = named(task.engine).run(task.scenario, task.options)
            sha256 = recording.provenance["recording_sha256"]
            watcher.finished(at, Outcome(summarise(recording), sha256=sha256))

    monkeypatch.setattr(Another, "made", str(tmp_path))  # nothing that is kept is of another test
    monkeypatch.setitem(registry.HOMES, "another", __name__)
    monkeypatch.setattr(runs, "run_all", here)


def brief(key: str, seconds: float, **options: Any) -> PassportRow:
    line = Line(2, 20, duration_s=seconds).with_(**options)
    return PassportRow(f"alone-{key}", "alone", key, line.scenario(), GOODPUT, AMONG)


@pytest.mark.usefixtures("another")
def test_an_engine_runs_the_rows_that_it_can_and_says_why_it_leaves_others(tmp_path: Path) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make, write

    dear, longest = brief("dear", 5), brief("longest", 20)
    rows = (brief("good", 1), brief("lossy", 1, loss="1%"), longest, dear, brief("again", 1, loss="2%"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "COST_MAX_S", 100.0)  # two algorithms with a run of 10 s each, no more of 50 s
        found = make(
            PassportRequest(Subject("reno", on=On("another")), ("alone",), False, rows), None, quiet=True
        )
    assert (found["engine"], found["kernel"]) == ("another", "9.9")
    assert [row["id"] for row in found["rows"]] == ["alone-good"]
    assert "--engine another" in found["rows"][0]["replay"]
    left = {row["id"]: row["why"] for row in found["not_run"]}
    assert (
        left["alone-lossy"]
        == left["alone-again"]
        == "link r-d: loss: got random, expected none on this engine"
    )
    assert left["alone-longest"] == "one of its runs takes more than 60 s of a core there"
    assert left["alone-dear"] == "cheaper rows fill the 100 s of a core that a passport takes there"
    assert "a real kernel" in {entry.topic for entry in suite.UNTESTED}
    assert "a real kernel" not in {entry["what"] for entry in found["not_tested"]}
    asked = PassportRequest(Subject("reno", on=On("another")), ("alone",), False, rows)
    write(found, asked, tmp_path)
    for text in (console.text(found), summary.markdown(found), page.page(found)):
        flat = " ".join(text.replace("\\", "").split())
        assert "ot run on engine another (Linux 9.9)" in flat
        assert all(why in flat for why in left.values())


@pytest.mark.usefixtures("another")
def test_rows_that_read_phases_are_left_out_where_a_kernel_tells_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make

    figure = replace(GOODPUT, of_phases=True)
    rows = (brief("a", 1), replace(brief("b", 1), figure=figure))
    for model, told in ((False, ["alone-a"]), (True, ["alone-a", "alone-b"])):
        monkeypatch.setattr(Another, "model", model)
        found = make(
            PassportRequest(Subject("reno", on=On("another")), ("alone",), False, rows), None, quiet=True
        )
        assert [row["id"] for row in found["rows"]] == told
        assert [row["why"] for row in found["not_run"]] == [
            "a kernel does not tell the phases of an algorithm"
        ] * (not model)
    read = [row for row in suite.rows("bbr", ["bbr"], quick=False) if "phases" in row.figure.formula]
    assert read
    assert all(row.figure.of_phases for row in read)


@pytest.mark.usefixtures("another")
def test_two_engines_stand_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make

    rows = (brief("even", 1), replace(brief("limit", 1), rule=RowRule("P", "a document", least=1.5)))
    real = Another.run

    def slower(self: Any, scenario: Any, options: Any, progress: Any = None) -> Any:
        scenario = json.loads(json.dumps(scenario))
        for link in scenario["links"]:
            for place in (link, link["qdisc"]):
                if place.get("rate_bps"):
                    place["rate_bps"] //= 2
        return real(self, scenario, options, progress)

    monkeypatch.setattr(Another, "run", slower)
    subject = Subject("reno", on=On("another"))
    asked = PassportRequest(subject, ("alone",), False, rows, second_engine=On())
    found = make(asked, None, quiet=True)
    beside = found["beside"]
    assert (beside["engine"], beside["kernel"], beside["rows"], beside["same"]) == ("sim", None, 2, 1)
    (apart,) = beside["different"]
    assert (apart["id"], apart["verdict"], apart["other_verdict"]) == (
        "alone-limit",
        "missed, as by CUBIC",
        "held",
    )
    assert apart["value"] < 1.0 < 1.5 < apart["other_value"]
    assert "1 of 2 rows have the same verdict (50 %)" in " ".join(console.text(found).split())
    # The other way round, the second engine leaves rows out.
    swapped = PassportRequest(
        Subject("reno"), ("alone",), False, (*rows, brief("lossy", 1, loss="1%")), second_engine=subject.on
    )
    found = make(swapped, None, quiet=True)
    assert [row["id"] for row in found["beside"]["not_run"]] == ["alone-lossy"]
    assert found["beside"]["rows"] == 2
    assert found["not_run"] == []


@pytest.mark.usefixtures("another")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("bbr", "--engine", "another"), "bbr"),
        (("bbr", "--beside", "another"), "bbr"),
        (("reno", "--engine", "sim,vm"), "--engine: got 'sim,vm'"),
        (("reno", "--engine", "nope"), "--engine: got 'nope'"),
        (("reno", "--beside", "nope"), "--beside: got 'nope'"),
        (("reno", "--beside", "sim"), "--beside: got 'sim', expected another engine"),
        (("reno", "--load", "x.bpf.c"), "--load: got"),
        (("reno", "--engine-option", "kernel=1"), "--engine-option kernel"),
    ],
)
def test_an_engine_that_cannot_be_is_refused_before_anything_runs(
    words: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs, "run_all", None)
    ended = invoke("passport", *words)
    assert expected in str(ended.exception), ended.exception
    assert list(tmp_path.iterdir()) == []


def test_of_an_algorithm_whose_runs_stall_no_more_than_a_few_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dragstrip.runs import Outcome
    from dragstrip.studies.passport.command import PassportRequest, make

    started = []

    def stall(tasks: Any, workers: Any, watcher: Any, limits: Any) -> None:
        for at, task in enumerate(tasks):
            cc = task.scenario["flows"][0]["transport"]["cc"]
            started.append(cc)
            stalls = cc == "vegas"
            said = f"it took longer than {limits.time_s:g} s"
            made = Outcome(None, said) if stalls else Outcome(SUMMARY, sha256="0" * 64)
            watcher.finished(at, made)

    SUMMARY = {"flows": [{"goodput_bps": 1e6, "cc": "x"}], "probes": [], "queues": []}  # noqa: N806
    monkeypatch.setattr(runs, "run_all", stall)
    monkeypatch.setattr(RunStore, "keep", lambda *_: None)
    rows = tuple(brief(f"{at}", 1 + at) for at in range(6))
    found = make(PassportRequest(Subject("vegas"), ("alone",), False, rows), None, quiet=True)
    assert started.count("vegas") == runs.STALLED_MAX
    said = [row["failure"] for row in found["rows"]]
    assert said.count("it took longer than 60 s") == 3
    assert said.count("not started: 3 runs of vegas took longer than 60 s") == 3
    assert all(row["baselines"]["cubic"]["value"] is not None for row in found["rows"])


# --- limits, failures, interruption -------------------------------------------------------------


def test_a_limit_that_is_missed_ends_with_3_and_fails_its_test(tmp_path: Path) -> None:
    """BBR does not back off where CoDel marks, as CUBIC and Reno do."""
    from dragstrip.studies.passport.command import PassportRequest, fails, make

    (row,) = (row for row in suite.rows("bbr", ["aqm"], quick=True) if row.id == "aqm-codel-ecn-beside-ratio")
    row = replace(row, scenario=replace(row.scenario, options={**row.scenario.options, "duration": "10s"}))
    found = make(PassportRequest(Subject("bbr"), ("aqm",), False, (row,)), None, quiet=True)
    assert found["rows"][0]["verdict"] == "missed"
    assert list(fails(found)) == [row.id]


def test_a_row_that_is_refused_fails_alone() -> None:
    good = PassportRow("alone-a", "alone", "good", Line(2, 20, duration_s=1).scenario(), GOODPUT, AMONG)
    refused = Line(2, 20, duration_s=1).with_(queue="no-such-queue").scenario()
    bad = PassportRow("alone-b", "alone", "bad", refused, GOODPUT, RowRule("P", "a document", least=1.0))
    from dragstrip.studies.passport.command import PassportRequest, fails, make

    found = make(PassportRequest(Subject("reno"), ("alone",), False, (good, bad)), None, quiet=True)
    by_id = {row["id"]: row for row in found["rows"]}
    assert by_id["alone-a"]["verdict"] == "same"
    assert by_id["alone-b"]["verdict"] == "failed"
    assert "no-such-queue" in by_id["alone-b"]["failure"]
    assert found["worst"] == ["alone-b"]
    assert list(fails(found)) == ["alone-b"]


def test_a_run_that_fails_is_the_failure_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragstrip.runs import Outcome
    from dragstrip.studies.passport.command import PassportRequest, make

    def one_stalls(tasks: Any, workers: Any, watcher: Any, limits: Any) -> None:
        assert limits.time_s == runs.TIME_LIMIT_S
        for at, task in enumerate(tasks):
            stalls = task.scenario["flows"][0]["transport"]["cc"] == "vegas"
            made = Outcome(None, "it took longer than 60 s") if stalls else Outcome(SUMMARY, sha256="0" * 64)
            watcher.finished(at, made)

    SUMMARY = {"flows": [{"goodput_bps": 1e6, "cc": "x"}], "probes": [], "queues": []}  # noqa: N806
    monkeypatch.setattr(runs, "run_all", one_stalls)
    monkeypatch.setattr(RunStore, "keep", lambda *_: None)
    line = Line(3, 20, duration_s=1)
    row = PassportRow("alone-a", "alone", "a", line.scenario(), GOODPUT, AMONG)
    found = make(PassportRequest(Subject("vegas"), ("alone",), False, (row,)), None, quiet=True)
    assert found["rows"][0]["failure"] == "it took longer than 60 s"
    assert found["rows"][0]["baselines"]["cubic"]["value"] == 1.0


def test_the_store_gives_back_what_was_kept_and_nothing_damaged(tmp_path: Path) -> None:
    row = PassportRow("alone-a", "alone", "a", Line(2, 20, duration_s=1).scenario(), GOODPUT, AMONG)
    store = RunStore("a build of these tests")
    first = runs.make([row], [Subject("reno")], None, True, store).of(row, Subject("reno"))
    kept = [file for file in store.folder.rglob("*.json") if first[0].sha256 in file.read_text()]
    assert kept
    (planned,) = runs.planned(row.scenario, Subject("reno")).runs
    assert store.find(runs._key(planned)) == first[0]
    for file in kept:
        file.write_text(file.read_text().replace('"goodput_bps": 1', '"goodput_bps": 9'))
    assert store.find(runs._key(planned)) is None
    assert RunStore("another build").find(runs._key(planned)) is None


def test_two_entries_of_the_store_that_are_exchanged_are_none() -> None:
    """Each was whole, so that the other run's figures were believed."""
    store = RunStore("a build whose entries are exchanged")
    keys = ["one", "other"]
    row = PassportRow("alone-a", "alone", "a", Line(2, 20, duration_s=1).scenario(), GOODPUT, AMONG)
    (shown,) = runs.make([row], [Subject("reno")], None, True, store).of(row, Subject("reno"))[:1]
    for key, digest in zip(keys, ("1" * 64, "2" * 64), strict=True):
        store.keep(key, StoredRun(shown.summary, digest))
    files = [store._file(key) for key in keys]
    texts = [file.read_text() for file in files]
    assert store.find("one") == StoredRun(shown.summary, "1" * 64)
    for file, text in zip(files, reversed(texts), strict=True):
        file.write_text(text)
    assert [store.find(key) for key in keys] == [None, None]


def test_interrupted_it_writes_nothing_and_keeps_what_was_done(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "dragstrip", "passport", "cdg", "--only", "beside", "--out", "p"]
    environment = {**os.environ, "DRAGSTRIP_CACHE": str(tmp_path / "cache")}
    process = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 60
    while not list((tmp_path / "cache").rglob("*.json")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "error: interrupted"
    assert [entry.name for entry in tmp_path.iterdir()] == ["cache"]
    assert list((tmp_path / "cache").rglob("*.json"))


@pytest.mark.usefixtures("another")
def test_the_next_call_makes_only_the_runs_that_an_interrupted_one_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, made = runs.run_all, []

    def interrupted(tasks: Any, *rest: Any) -> None:
        here(tasks[:2], *rest)
        raise KeyboardInterrupt

    def counted(tasks: Any, *rest: Any) -> None:
        made.append(len(tasks))
        here(tasks, *rest)

    rows = [brief("a", 1), brief("b", 2), brief("c", 3)]
    given: Any = (rows, [Subject("reno", on=On("another"))], None, True, RunStore("of an interrupted one"))
    monkeypatch.setattr(runs, "run_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        runs.make(*given, on=On("another"))
    monkeypatch.setattr(runs, "run_all", counted)
    again = runs.make(*given, on=On("another"))
    assert made == [3 - 2]  # three rows, one run of each there, as nothing in them is random
    assert all(again.of(row, given[1][0])[0].sha256 for row in rows)


# --- input --------------------------------------------------------------------------------------

PROGRAM = "on ack { cwnd = cwnd + acked / cwnd } on loss { ssthresh = max(cwnd / 2, 2) }"


def test_an_algorithm_as_a_text_has_a_passport_whose_replay_names_its_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.cc"
    file.write_text(PROGRAM)
    words = ("passport", "mine", "--program", str(file), "--quick", "--only", "rtt", "--json")
    ended = invoke(*words, "--out", str(tmp_path / "p"))
    assert ended.exit_code in (0, 3), ended.output
    found = json.loads(ended.stdout)
    assert found["algorithm"] == "mine"
    assert all(row["value"] is not None for row in found["rows"])
    assert all(f"--program {file}" in row["replay"] for row in found["rows"])


def test_every_row_can_be_described_for_an_algorithm_as_a_text() -> None:
    """Rows whose flows change from run to run too: the text is in their experiment."""
    from dragstrip.studies.passport.rows import Subject

    subject = Subject("mine", (("mine", PROGRAM),), ("mine.cc",))
    for row in suite.rows("mine", suite.NAMES, quick=False):
        assert row.scenario.experiment(subject).content()["programs"], row.id


def test_a_rust_file_is_copied_beside_the_experiments_and_its_place_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make, write

    line = Line(2, 20, duration_s=1)
    compared = PassportRow("alone-a", "alone", "a", line.scenario(), GOODPUT, AMONG)
    described = replace(line.scenario(), fields={"record": {"rtts": False}})
    rows = (compared, PassportRow("alone-b", "alone", "b", described, GOODPUT, AMONG))
    texts = {}
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        Path("my_cc.rs").write_text("// an algorithm\n")
        asked = PassportRequest(Subject("reno", files=("my_cc.rs",)), ("alone",), False, rows)
        found = make(asked, None, quiet=True)
        write(found, asked, Path("p"))
        texts[place] = {str(it.relative_to("p")): it.read_text() for it in Path("p").rglob("*.*")}
    assert texts["here"] == texts["there"]
    assert not [name for name, text in texts["here"].items() if str(tmp_path) in text]
    one, other = (shlex.split(row["replay"]) for row in found["rows"])
    assert one[one.index("--program") + 1] == "my_cc.rs"
    assert other == ["dragstrip", "run", "experiments/alone-b.toml", "--program", "experiments/my_cc.rs"]
    assert texts["here"]["experiments/my_cc.rs"] == Path("my_cc.rs").read_text()
    assert Path("p", other[2]).is_file()


HOSTILE = {
    "divides": "on ack { cwnd = cwnd / (acked - acked) } on loss { ssthresh = 2 }",
    "nothing": "on ack { cwnd = 0 } on loss { ssthresh = 0 }",
    "endless": "on ack { cwnd = 4294967296 } on loss { ssthresh = 4294967296 }",
    "negative": "on ack { cwnd = -1 } on loss { ssthresh = -5 }",
    "idle": "on ack { cwnd = cwnd } on loss { ssthresh = ssthresh }",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_that_misbehaves_costs_its_own_rows_alone(name: str, tmp_path: Path) -> None:
    from dragstrip.studies.passport.command import PassportRequest, make, write

    rows = (brief("one", 1), brief("two", 2))
    asked = PassportRequest(Subject(name, ((name, HOSTILE[name]),), (f"{name}.cc",)), ("alone",), False, rows)
    found = make(asked, None, quiet=True)
    write(found, asked, tmp_path)
    for row in found["rows"]:
        assert (row["value"] is None) == (row["verdict"] == "failed") == bool(row.get("failure")), row
        assert f"--program {name}.cc" in row["replay"]
        assert row["baselines"]["cubic"]["value"] > 1
    assert {row["verdict"] for row in found["rows"]} <= {"failed", "worse", "same", "better"}
    if name == "divides":
        assert all(row["failure"].startswith("divides.cc:1:22: gives infinity at ") for row in found["rows"])


def test_options_of_an_algorithm_change_its_figures(made: Path, tmp_path: Path) -> None:
    words = ("passport", "vegas:alpha=8,beta=16", "--quick", "--only", "rtt", "--out", str(tmp_path / "p"))
    assert invoke(*words).exit_code in (0, 3)
    values = [
        [row["value"] for row in document(at)["rows"] if row["chapter"] == "rtt"]
        for at in (made, tmp_path / "p")
    ]
    assert values[0] != values[1]
    assert not any(math.isnan(value) for value in values[1])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("passport", "bbr*4"), 'ALGORITHM: got "bbr\\*4"|ALGORITHM: got \'bbr'),
        (("passport", "bbr+2s"), "ALGORITHM"),
        (("passport", "nope"), 'ALGORITHM: got "nope", expected one of reno, cubic'),
        (("passport", "reno", "--only", ""), "--only"),
        (("passport", "reno", "--against", "none.json"), "none.json"),
        (("passport", "reno", "--junit", "none/rows.xml"), "--junit"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(
    words: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = invoke(*words)
    assert re.search(expected, str(ended.exception)), ended.exception
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"suite": 99}, "suite"),
        ({"passport": 99}, "passport"),
        ({"rows": [{"id": 1}]}, "rows"),
        ({"rows": "none"}, "rows"),
    ],
)
def test_a_file_that_is_no_passport_of_this_suite_is_refused(
    made: Path, tmp_path: Path, changes: dict[str, Any], field: str
) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps({**document(made), **changes}))
    ended = invoke("passport", "vegas", "--against", str(file))
    assert f"{file}: {field}" in str(ended.exception)


def test_passports_stand_side_by_side(made: Path, tmp_path: Path) -> None:
    passports.main(str(made.parent), str(tmp_path / "page.md"))
    page = (tmp_path / "page.md").read_text()
    found = document(made)
    for kind, name in passports.KINDS.items():
        assert name in page
        (row,) = [line for line in page.splitlines() if line.startswith("| [`vegas`]")]
        rows = [it for it in found["rows"] if it["kind"] == kind]
        cell = [it.strip() for it in row.split("|")][2 + list(passports.KINDS).index(kind)]
        assert sum(int(it) for it in cell.split(" (")[0].split(" / ")) == len(rows)
    with pytest.raises(ValueError, match="expected one"):
        passports.page([found, {**found, "build": "another"}])


def test_the_page_of_rows_is_the_suite() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / passports.ROWS).read_text()
    assert page == passports.rows_page(), "`make passports` writes it"
    ids = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert ids == [row.id for chapter in suite.CHAPTERS for row in chapter.rows()]


# --- the cases of BBR ---------------------------------------------------------------------------


def test_the_cases_of_bbr_are_about_those_who_claim_to_be_one() -> None:
    cases = {
        name: suite.rows(name, [bbr.NAME], quick=False) for name in ("bbr", "bbr3", "bbr3-mine", "cubic")
    }
    assert cases["cubic"] == []
    assert {row.id for row in cases["bbr"]} < {row.id for row in cases["bbr3"]}
    assert [row.id for row in cases["bbr3"]] == [row.id for row in cases["bbr3-mine"]]
    ended = invoke("passport", "reno", "--quick", "--only", "bbr,rtt", "--json")
    told = json.loads(ended.stdout)
    assert [chapter["name"] for chapter in told["chapters"]] == ["rtt"]
    said = {entry["what"]: entry["why"] for entry in told["not_tested"]}
    assert said["chapter bbr"] == "not applicable: no row is about reno"


def test_a_case_reads_the_phases_of_the_run(tmp_path: Path) -> None:
    """Of version 3: the drain gain is Google's, not the draft's; a change falls on the entry of a phase."""
    from dragstrip.studies.passport.command import PassportRequest, make, write

    wanted = {"bbr-1-bandwidth-away": "held", "bbr-3-drain-gain": "missed", "bbr-4-drain-rounds": "held"}
    rows = tuple(row for row in suite.rows("bbr3", [bbr.NAME], quick=False) if row.id in wanted)
    asked = PassportRequest(Subject("bbr3"), (bbr.NAME,), False, rows)
    found = make(asked, None, quiet=True)
    assert {row["id"]: row["verdict"] for row in found["rows"]} == wanted
    assert found["rows"][1]["value"] == pytest.approx(1000 / 2885, abs=1 / 256)
    write(found, asked, tmp_path)
    told = found["rows"][2]
    ended = invoke(
        *("run", str(tmp_path / told["replay"].split()[-1]), "--json", "--no-report"),
        *("--out", str(tmp_path / "again")),
    )
    (run,) = json.loads(ended.stdout)["runs"]
    assert [rows[2].figure.of(run, rows[2].scenario)] == told["values"]
    drain = next(stay for stay in run["flows"][0]["phases"] if stay["state"] == "drain")
    (change,) = json.loads((tmp_path / "again" / "experiment.json").read_text())["changes"]
    assert round(drain["from_s"] * 1e9) == int(change["at"].removesuffix("ns"))


def test_phases_follow_the_states_of_the_samples(tmp_path: Path) -> None:
    scenario = bbr._scenario(Line(20, 30, duration_s=3))
    (run,) = runs.planned(scenario, Subject("bbr")).runs
    from dragstrip import engines
    from dragstrip.results.measures import summarise

    recording = engines.named("sim").run(run.scenario, {}, None)
    stays = summarise(recording)["flows"][0]["phases"]
    samples = recording.tables["samples"].to_pydict()
    turns = [
        (at, now)
        for at, now, before in zip(
            samples["time_ns"], samples["state"], [None, *samples["state"]], strict=False
        )
        if now != before
    ]
    assert [(stay["from_s"], stay["state"]) for stay in stays] == [(at / 1e9, state) for at, state in turns]
    for stay in stays:
        inside = [
            flight
            for at, flight in zip(samples["time_ns"], samples["bytes_in_flight"], strict=True)
            if round(stay["from_s"] * 1e9) <= at < round(stay["until_s"] * 1e9)
        ]
        inside += [samples["bytes_in_flight"][-1]] if stay is stays[-1] else []
        found = [stay[name]["bytes_in_flight"] for name in ("first", "last", "least", "most")]
        assert found == [inside[0], inside[-1], min(inside), max(inside)]
        assert stay["least"]["pacing_gain"] <= stay["last"]["pacing_gain"] <= stay["most"]["pacing_gain"]


def test_an_engine_is_asked_once_for_each_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one scenario, and an algorithm that is a baseline itself, share their runs."""
    made: list[int] = []
    real = runs.run_all
    monkeypatch.setattr(
        runs, "run_all", lambda tasks, *rest: (made.append(len(tasks)), real(tasks, *rest))[1]
    )
    scenario = Line(2, 30, duration_s=1).scenario()
    rows = [PassportRow(f"alone-{name}", "alone", "a", scenario, GOODPUT, AMONG) for name in "ab"]
    shown = runs.make(rows, [Subject("cubic"), Subject("reno")], None, True, RunStore("asked once"))
    assert made == [2]
    first: list[StoredRun] = shown.of(rows[0], Subject("cubic"))
    assert first == shown.of(rows[1], Subject("cubic"))
    assert PLACE not in json.dumps(first[0].summary)


BEYOND_QUIC = {"users-video-bit-rate", "aqm-codel-ecn-utilisation", "loss-outage-30s-timeouts"}


def test_rows_beyond_a_quic_stack_are_not_run_and_say_why() -> None:
    rows = [row for row in suite.rows("noq/cubic", suite.NAMES, quick=True) if row.id in BEYOND_QUIC]
    made = runs.make(rows, [Subject("noq/cubic")], 1, quiet=True)
    assert made.skip_reasons.keys() == BEYOND_QUIC
    assert "over QUIC" in made.skip_reasons["users-video-bit-rate"]
    assert "flows of QUIC" in made.skip_reasons["aqm-codel-ecn-utilisation"]
    assert made.skip_reasons["loss-outage-30s-timeouts"] == "QUIC stacks do not count timeouts"
    assert not made.results
