from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragstrip.display import quantity
from dragstrip.display.colours import assign
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.scenario.paths import path_of, scenario_facts, with_facts
from dragstrip.report import picture
from dragstrip.report.cautions import cautions
from dragstrip.report.collect import _largest
from dragstrip.report.load import load
from dragstrip.report.write import prefixes
from dragstrip.results.comparison import path as paths
from dragstrip.results.comparison.setups import Contender, Run, Setup, algorithms_of, sampled_flows, setups_of
from dragstrip.results.comparison.stats import Ranking, Row, Statistic, order_of, rows_of
from dragstrip.results.comparison.verdict import headline, verdicts
from dragstrip.studies.execution.runner import execute, plan

from . import synthetic

FolderOf = Callable[[str], Path]


def setups(folder: Path) -> list[Setup]:
    runs = load(folder).runs
    return setups_of(runs, assign(algorithms_of(runs)))


def test_algorithms_alone_are_contenders_of_one_setup(folder_of: FolderOf) -> None:
    (setup,) = setups(folder_of("five"))
    assert [c.title for c in setup.contenders] == ["reno", "cubic", "vegas", "cdg", "bbr"]
    assert (setup.together, setup.shared, setup.repeats) == (False, False, 1)
    assert setup.title == "10 Mbit/s, 40 ms, bfifo 200 KiB"
    assert setup.queue_link(setup.contenders[0]) == "r-d"


def test_repeats_are_bouts_and_the_row_is_their_median(folder_of: FolderOf) -> None:
    (setup,) = setups(folder_of("repeats"))
    assert [len(c.bouts) for c in setup.contenders] == [3, 3]
    reno = rows_of(setup)[0]
    runs = [run for run in load(folder_of("repeats")).runs if run.name.startswith("reno")]
    measured = sorted(run.summary["flows"][0]["rtt_ms"]["p50"] for run in runs)
    assert reno.rtt_p50_ms is not None
    figure = reno.rtt_p50_ms
    assert [figure.least, figure.middle, figure.greatest] == measured


def test_alike_flows_of_one_algorithm_are_one_contender(folder_of: FolderOf) -> None:
    (setup,) = setups(folder_of("crowd"))
    (reno,) = setup.contenders
    assert len(reno.bouts[0].results) == 30
    assert (setup.together, setup.shared) == (False, True)
    (row,) = rows_of(setup)
    total = sum(flow["goodput_bps"] for flow in load(folder_of("crowd")).runs[0].summary["flows"])
    assert row.goodput_bps is not None
    assert row.goodput_bps.middle == pytest.approx(total)


def test_a_label_that_names_the_algorithm_says_it_once(tmp_path: Path) -> None:
    labels = ["cubic", "cubic-reverse", "cubic-home", "cubic@80ms", "cubic*4"]
    flows = [synthetic.FlowPlan("cubic", label, f"s{place}") for place, label in enumerate(labels, 1)]
    synthetic.write(synthetic.Plan([synthetic.RunPlan("both", flows)], duration_s=2.0), tmp_path)
    (setup,) = setups(tmp_path)
    assert [c.title for c in setup.contenders] == [*labels[:2], "cubic-home · cubic", *labels[3:]]


def test_nobody_is_ahead_of_flows_in_the_other_direction(tmp_path: Path) -> None:
    both = compare(["cubic"], rate="10mbit", rtt="40ms", queue="1bdp", duration="3s", both_ways=True)
    execute(plan(both), tmp_path / "out")
    (setup,) = setups(tmp_path / "out")
    rows = rows_of(setup)
    assert [row.contender.title for row in rows] == ["cubic", "cubic-reverse"]
    assert verdicts(setup, rows) == []
    page = (tmp_path / "out/report.html").read_text()
    assert "Who wins" not in page
    assert "Shares of all bytes" not in page  # each has all of its own direction


def test_flows_that_start_at_different_times_keep_their_labels(tmp_path: Path) -> None:
    flows = [synthetic.FlowPlan("reno", f"reno-{i}", f"s{i}", 0.5, start_s=i) for i in (1, 2)]
    synthetic.write(synthetic.Plan([synthetic.RunPlan("reno", flows)], duration_s=5.0), tmp_path)
    (setup,) = setups(tmp_path)
    assert [c.title for c in setup.contenders] == ["reno-1", "reno-2"]
    assert len({c.colour for c in setup.contenders}) == 1
    assert len({c.dash for c in setup.contenders}) == 2


def test_the_same_flows_with_other_algorithms_are_no_repeats(tmp_path: Path) -> None:
    """Two labelled flows, the second late; the algorithm of both varies."""
    runs = []
    for cc in ("reno", "bbr"):
        flows = [
            synthetic.FlowPlan(cc, "first", "s1", 0.7),
            synthetic.FlowPlan(cc, "second", "s2", 0.3, start_s=2.0),
        ]
        runs.append(synthetic.RunPlan(cc, flows))
    synthetic.write(synthetic.Plan(runs, duration_s=5.0), tmp_path)
    reno, bbr = setups(tmp_path)
    assert (reno.title, bbr.title) == (
        "reno: 10 Mbit/s, 40 ms, bfifo 200 KiB, 2 flows, together",
        "bbr: 10 Mbit/s, 40 ms, bfifo 200 KiB, 2 flows, together",
    )
    assert [c.title for c in reno.contenders] == ["first · reno", "second · reno"]
    assert [c.title for c in bbr.contenders] == ["first · bbr", "second · bbr"]
    assert (reno.repeats, bbr.repeats) == (1, 1)


def test_flows_in_opposite_directions_are_two_contenders(tmp_path: Path) -> None:
    described = compare(["cubic"], rate="5mbit", rtt="20ms", queue="bfifo limit 50kb", duration="2s", flows=2)
    content = described.content() | {"vary": {}}
    content["path"]["up_rate"] = "5mbit"
    content["flows"] = [{"cc": "cubic"}, {"cc": "cubic", "sender": "d", "receiver": "s1"}]
    execute(plan(Experiment.build(content)), tmp_path / "out", report=False)
    (setup,) = setups(tmp_path / "out")
    assert [c.title for c in setup.contenders] == ["cubic-1", "cubic-2"]
    for row in rows_of(setup):
        assert row.share is not None
        assert (row.share.middle, row.jain) == (1.0, None)
    text = headline(setup, rows_of(setup)).striptags()
    for row in rows_of(setup):
        assert row.goodput_bps is not None
        goodput = quantity.rate(row.goodput_bps.middle)
        assert row.rtt_p50_ms is not None
        rtt = quantity.milliseconds(row.rtt_p50_ms.middle)
        assert f"{row.contender.title} carries {goodput} in its direction at a median RTT of {rtt}" in text


def test_engines_are_not_contenders(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno", "cubic"], duration_s=2.0), tmp_path)
    result = json.loads((tmp_path / "result.json").read_text())
    result["runs"][1]["engine"] = "vm"
    (tmp_path / "result.json").write_text(json.dumps(result))
    sim, vm = setups(tmp_path)
    assert [c.title for c in (*sim.contenders, *vm.contenders)] == ["reno", "cubic"]
    assert (sim.title.endswith(" · sim"), vm.title.endswith(" · vm")) == (True, True)


def test_flows_over_different_times_have_no_sum_of_goodputs(tmp_path: Path) -> None:
    """Twelve flows, too many for a row each: one after the other they are one link's worth, not twelve."""
    flows = [
        synthetic.FlowPlan("reno", f"reno-{i}", f"s{i}", 1.0, start_s=float(i), stop_s=float(i + 1))
        for i in range(12)
    ]
    synthetic.write(synthetic.Plan([synthetic.RunPlan("reno", flows)], duration_s=12.0), tmp_path)
    (setup,) = setups(tmp_path)
    (row,) = rows_of(setup)
    sizes = [flow["bytes_received"] for flow in setup.runs[0].flows]
    assert row.goodput_bps is not None
    assert row.goodput_bps.middle == pytest.approx(sum(sizes) * 8 / 12.0)
    assert setup.contenders[0].unlike
    assert any("too many for a row each" in note for note in cautions(setup, [row]))


def test_a_winner_is_called_where_repeats_bear_it_out() -> None:
    """Paired: b is ahead by 2 to 4 % with every seed although the ranges overlap; c is ahead with most of them."""
    runs = [RecordedOnly({"engine": "vm", "seed": seed}) for seed in range(6)]
    base = (100.0, 110.0, 120.0, 130.0, 140.0, 150.0)
    ahead = tuple(
        value * factor for value, factor in zip(base, (1.02, 1.03, 1.04, 1.02, 1.03, 1.04), strict=True)
    )
    mixed = tuple(
        value * factor for value, factor in zip(base, (1.05, 0.95, 1.04, 0.96, 1.03, 0.97), strict=True)
    )

    def order(values: tuple[float, ...], count: int) -> Ranking | None:
        figures = [
            Statistic(1.0 * np.median(v[:count]), min(v[:count]), max(v[:count]), tuple(enumerate(v[:count])))
            for v in (base, values)
        ]
        return order_of(Setup("", "", list(runs), []), figures, most=True)

    assert order(ahead, 6) == Ranking(best=[1], worst=[0], judged=True)
    assert order(mixed, 6) == Ranking(best=[0, 1], worst=[], judged=True)
    assert order(ahead, 2) == Ranking(best=[1], worst=[0], judged=False)


class RecordedOnly(Run):
    """A run of which nothing but its row is known."""


def test_another_queue_is_another_setup(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno", "cubic"], duration_s=2.0), tmp_path)
    for cc, folder in (("reno", "000-reno"), ("cubic", "001-cubic")):
        file = tmp_path / "runs" / folder / "scenario.json"
        text = file.read_text()
        if cc == "cubic":
            text = text.replace('"limit_bytes": 204800', '"limit_bytes": 102400')
        file.write_text(text)
    assert [s.title for s in setups(tmp_path)] == [
        "10 Mbit/s, 40 ms, bfifo 200 KiB",
        "10 Mbit/s, 40 ms, bfifo 100 KiB",
    ]


def test_who_wins(folder_of: FolderOf) -> None:
    (setup,) = setups(folder_of("five"))
    rows = rows_of(setup)
    by_what = {verdict.quantity_name: verdict for verdict in verdicts(setup, rows)}
    assert by_what["Lowest median RTT"].best == ["vegas"]
    assert by_what["Lowest median RTT"].worst == ["cubic"]
    assert by_what["Highest goodput"].worst == ["vegas"]
    assert "<strong>vegas</strong> keeps the delay lowest" in headline(setup, rows)


def test_who_shares_a_queue_does_not_win_on_delay(folder_of: FolderOf) -> None:
    (setup,) = setups(folder_of("together"))
    rows = rows_of(setup)
    assert setup.together
    assert [v.quantity_name for v in verdicts(setup, rows)] == [
        "Highest goodput",
        "Lowest retransmission rate",
    ]
    text = headline(setup, rows)
    assert "<strong>bbr</strong> got 66" in text
    assert "Jain’s index is 0.52 over 4 flows" in text


def test_equal_figures_have_no_winner(tmp_path: Path) -> None:
    plan = synthetic.compare(["udp", "udp"], duration_s=2.0)
    runs = [synthetic.RunPlan(n, [synthetic.FlowPlan(n, n)]) for n in ("alike1", "alike2")]
    synthetic.write(synthetic.Plan(runs, duration_s=plan.duration_s), tmp_path)
    (setup,) = setups(tmp_path)
    most = next(v for v in verdicts(setup, rows_of(setup)) if v.quantity_name == "Highest goodput")
    assert (most.best, most.worst) == (["alike1", "alike2"], [])


def test_a_window_limit_is_told(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno"], duration_s=2.0, limited_by="rwnd"), tmp_path)
    (setup,) = setups(tmp_path)
    (note,) = cautions(setup, rows_of(setup))
    assert "held back by the receive window for 100 % of the time" in note


def whole(part: dict[str, Any], hosts: Iterable[str], routers: Iterable[str]) -> dict[str, Any]:
    """A scenario of these nodes and links."""
    nodes = [{"kind": "host", "name": name} for name in hosts]
    nodes += [{"kind": "router", "name": name} for name in routers]
    return {"name": "part", "duration_ns": 1_000_000_000, "nodes": nodes, "flows": [], **part}


def test_hosts_do_not_forward_packets_in_the_report_either() -> None:
    """s - r1 - {h, r2} - d: over the host h the round trip would be 6 ms."""
    ways = {"s-r1": 1, "r1-h": 1, "h-d": 1, "r1-r2": 50, "r2-d": 1}
    links = [
        {"name": f"{a}-{b}", "from": a, "to": b, "delay_ns": ms * 1_000_000}
        for ends, ms in ways.items()
        for a, b in (ends.split("-"), reversed(ends.split("-")))
    ]
    scenario = {"name": "six", "duration_ns": 1_000_000_000, "links": links, "flows": []}
    scenario["nodes"] = [{"kind": "host", "name": name} for name in ("s", "h", "d")]
    scenario["nodes"] += [{"kind": "router", "name": name} for name in ("r1", "r2")]  # type: ignore[operator]
    way = path_of(scenario, "s", "d")
    assert [link["name"] for link in way.forward] == ["s-r1", "r1-r2", "r2-d"]
    assert way.rtt_ns == 104_000_000


@pytest.mark.parametrize("workload", ["web", "video"])
def test_the_way_of_a_flow_that_asks_is_that_of_its_answers(workload: str) -> None:
    """The host behind the bottleneck asks: the queue is ahead of the answers, not of the requests."""
    for run in expand(compare(["cubic"], workload=workload, rate="10mbit", rtt="40ms", duration="5s")):
        (flow,) = run.scenario["flows"]
        (way,) = scenario_facts(run.scenario).ways
        assert (way.forward[0]["from"], way.forward[-1]["to"]) == (flow["receiver"], flow["sender"])
        assert way.rate_bps == 10_000_000
        assert way.bottleneck is not None
        assert way.bottleneck["to"] == flow["sender"]


def test_the_way_follows_static_routes() -> None:
    def link(name: str, start: str, end: str) -> dict[str, object]:
        return {"name": name, "from": start, "to": end, "delay_ns": 1_000_000}

    links = [link("direct", "a", "b"), link("up", "a", "r"), link("down", "r", "b"), link("back", "b", "a")]
    scenario = whole({"links": links, "routes": []}, hosts="ab", routers="r")
    assert [hop["name"] for hop in path_of(scenario, "a", "b").forward] == ["direct"]
    scenario["routes"] = [{"node": "a", "destination": "b", "link": "up"}]
    way = path_of(scenario, "a", "b")
    assert [hop["name"] for hop in way.forward] == ["up", "down"]
    assert way.rtt_ns == 3_000_000


def test_queues_in_words() -> None:
    codel = {"kind": "codel", "limit_packets": 100, "target_ns": 10_000_000, "interval_ns": 1, "ecn": True}
    assert paths.queue_text(codel) == "codel 100 packets, target 10 ms, ecn"
    assert paths.queue_text({"kind": "htb", "rate_bps": 1, "leaf": codel}).startswith("codel")
    assert paths.queue_text({"kind": "noqueue"}) == ""
    police = {"kind": "police", "rate_bps": 10_000_000, "burst_bytes": 102_400, "leaf": codel}
    text = paths.queue_text({"kind": "htb", "rate_bps": 1, "leaf": police})
    assert text == "police 10 Mbit/s, 100 KiB, then codel 100 packets, target 10 ms, ecn"
    lossy = {"netem": {"jitter_ns": 5_000_000, "loss": {"model": "random", "probability": 0.01}}}
    assert paths.impairments(lossy) == ["jitter 5 ms", "loss 1 %"]


def test_samples_after_a_flows_end_limit_nothing(tmp_path: Path) -> None:
    flows = [synthetic.FlowPlan("reno", "reno", stop_s=1.0)]
    plan = synthetic.Plan([synthetic.RunPlan("reno", flows)], duration_s=4.0, limited_by="app")
    synthetic.write(plan, tmp_path)
    (setup,) = setups(tmp_path)
    flow = setup.runs[0].recording.flows[0]
    assert setup.runs[0].recording.limits(flow) == {"app": 9}
    assert setup.end_s == 1.0


def test_a_winner_is_not_also_the_worst() -> None:
    """Ties chain: b ties with a and with c, which do not tie with each other."""
    contenders = [Contender(name, name, name, "#000") for name in "abc"]
    rows = [row_of(c, Statistic(v, v, v)) for c, v in zip(contenders, (100.0, 99.2, 98.5), strict=True)]
    setup = Setup("", "", [], contenders)
    (most,) = (v for v in verdicts(setup, rows) if v.quantity_name == "Highest goodput")
    assert (most.best, most.worst) == (["a", "b"], ["c"])


def row_of(contender: Contender, goodput: Statistic) -> Row:
    nothing = {field.name: None for field in fields(Row)}
    return Row(**{**nothing, "contender": contender, "flows": 1, "goodput_bps": goodput, "competitors": ()})  # type: ignore[arg-type]


def test_an_alternative_names_its_setup(tmp_path: Path) -> None:
    synthetic.write(synthetic.compare(["reno"], duration_s=1.0), tmp_path)
    file = tmp_path / "runs" / "000-reno" / "provenance.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"settings": {"alternative": "with ECN"}}))
    assert setups(tmp_path)[0].title == "with ECN: 10 Mbit/s, 40 ms, bfifo 200 KiB"


def test_a_medium_is_named_and_is_the_bottleneck() -> None:
    media = {
        "media": {
            "line": {"kind": "adsl", "rate_bps": 1_536_000},
            "air": {"kind": "wifi_n", "mcs": 15, "width_mhz": 20},
        },
        "links": [
            {"name": "wire", "from": "s", "to": "r", "medium": None},
            {"name": "down", "from": "r", "to": "d", "medium": "line"},
            {"name": "up", "from": "d", "to": "s", "medium": "air"},
        ],
    }
    scenario = with_facts(whole(media, hosts="sd", routers="r"))
    way = path_of(scenario, "s", "d")
    assert way.bottleneck is not None
    assert way.bottleneck["name"] == "down"
    assert paths.link_words(way.bottleneck) == ["ADSL 1.54 Mbit/s"]
    assert [paths.rate_text(link) for link in way.back] == ["802.11n MCS 15, 20 MHz"]
    assert paths.rate_text(way.forward[0]) == ""
    assert paths.summary(way).startswith("ADSL 1.54 Mbit/s")


def test_a_crowd_is_drawn_from_some_of_its_flows() -> None:
    assert list(sampled_flows(range(1000))) == list(range(1000))
    some = sampled_flows(range(100_000))
    assert (len(some), some[:3]) == (1000, range(0, 300, 100))


def test_the_largest_shares_are_kept_and_the_others_are_one() -> None:
    bps = {f"f{number}": np.array([float(number), 1.0]) for number in range(50)}
    kept, total = _largest(bps, {title: float(values[0]) for title, values in bps.items()})
    assert list(kept) == list(total) == [*(f"f{number}" for number in range(10, 50)), "10 others"]
    assert total["10 others"] == 45.0
    assert kept["10 others"].tolist() == [45.0, 10.0]


def test_many_unlike_senders_are_one_box() -> None:
    """A hundred access links, each with a delay of its own."""
    links = [
        {"name": f"{a}-{b}", "from": a, "to": b, "delay_ns": number * 1000}
        for number in range(1, 101)
        for a, b in ((f"s{number}", "r"), ("r", f"s{number}"))
    ]
    links += [{"name": "r-d", "from": "r", "to": "d"}, {"name": "d-r", "from": "d", "to": "r"}]
    senders = [f"s{number}" for number in range(1, 101)]
    part = {"links": links, "flows": [flow_of(sender) for sender in senders]}
    scenario = with_facts(whole(part, hosts=[*senders, "d"], routers="r"))
    svg, _ = picture.draw([scenario], {})
    assert len(svg) < 10_000


def flow_of(sender: str) -> dict[str, Any]:
    return {
        "label": sender,
        "sender": sender,
        "receiver": "d",
        "transport": {"protocol": "tcp", "cc": "reno"},
        "application": {"kind": "bulk"},
    }


def test_setups_that_differ_in_their_hosts_name_the_stacks(tmp_path: Path) -> None:
    content = compare(["reno"], rate="10mbit", rtt="40ms", queue="bfifo limit 100kb", duration="2s").content()
    content["hosts"] = {"*": {"profile": "linux-6"}}
    content["alternatives"] = [
        {"name": "one", "set": {"flows.cc": "reno"}},
        {"name": "two", "set": {"flows.cc": "cubic"}},
        {"name": "three", "set": {"flows.cc": "newreno-freebsd", 'hosts."*".profile': "freebsd-9"}},
        {"name": "four", "set": {"flows.cc": "cubic-freebsd", 'hosts."*".profile': "freebsd-9"}},
    ]
    content.pop("vary", None)
    execute(plan(Experiment.build(content)), tmp_path / "out", report=False)
    titles = [setup.title for setup in setups(tmp_path / "out")]
    assert titles == [
        "linux-6: 10 Mbit/s, 40 ms, bfifo 100 KiB",
        "freebsd-9: 10 Mbit/s, 40 ms, bfifo 100 KiB",
    ]


def test_a_title_names_every_bottleneck_and_round_trip_and_a_headline_its_time(tmp_path: Path) -> None:
    described = compare(
        ["cubic", "cubic@160ms+6s"],
        rate="10mbit",
        rtt="40ms",
        queue="bfifo limit 50kb",
        up_rate="1mbit",
        up_queue="pfifo limit 50",
        duration="18s",
        together=True,
    )
    execute(plan(described), tmp_path / "out")
    (setup,) = setups(tmp_path / "out")
    assert setup.title == (
        "10 Mbit/s, 40 ms and 160 ms, bfifo 50 KiB, d → r 1 Mbit/s pfifo 50 packets, 2 flows, together"
    )
    rows = rows_of(setup)
    shares = [row.share.middle for row in rows if row.share is not None]
    told = (
        f"from 6 s to 18 s, while all of them lived, <strong>cubic</strong> got {quantity.percent(shares[0])}"
    )
    assert told in str(headline(setup, rows))
    why = setup.runs[0].summary["why"][0]
    assert why["rule"] == "unfair_share"
    assert why["figures"]["ratio"] == pytest.approx(shares[0] / shares[1], rel=1e-9)


def test_figures_are_named_by_what_sets_their_set_up_apart() -> None:
    def named(*short: str) -> list[Any]:
        return [SimpleNamespace(short=text, title=text) for text in short]

    assert prefixes(named("bfifo 25 kB")) == [""]
    assert prefixes(named("bfifo 25 kB", "fq_codel, 1.5 Mbit/s")) == ["bfifo-25-kb-", "fq-codel-1.5-mbit-s-"]
    assert prefixes(named("a b", "a/b", "..")) == ["setup1-a-b-", "setup2-a-b-", "setup3-"]
