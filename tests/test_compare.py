"""What `dragstrip compare` means, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment

PATH = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", "duration": "30s"}


def scenarios(*algorithms: str, **given: Any) -> list[dict[str, Any]]:
    return [run.scenario for run in expand(compare(algorithms, **{**PATH, **given}))]


def links(scenario: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {link["name"]: link for link in scenario["links"]}


def test_each_algorithm_runs_alone_on_the_same_path() -> None:
    reno, cubic = scenarios("reno", "cubic")
    assert [flow["transport"]["cc"] for flow in reno["flows"]] == ["reno"]
    assert [flow["transport"]["cc"] for flow in cubic["flows"]] == ["cubic"]
    assert reno["links"] == cubic["links"]
    assert reno["seed"] == cubic["seed"] == 1
    assert reno["duration_ns"] == 30_000_000_000


def test_the_bottleneck_is_an_htb_class_with_the_kernels_burst() -> None:
    path = links(scenarios("reno")[0])
    assert set(path) == {"s1-r", "r-s1", "r-d", "d-r"}
    down = path["r-d"]
    assert (down["rate_bps"], down["delay_ns"], down["netem"]) == (None, 0, None)
    qdisc = down["qdisc"]
    assert (qdisc["kind"], qdisc["rate_bps"], qdisc["ceil_bps"] or 10_000_000) == (
        "htb",
        10_000_000,
        10_000_000,
    )
    assert qdisc["burst_bytes"] == qdisc["cburst_bytes"] == 1600
    assert qdisc["leaf"] == {"kind": "bfifo", "limit_bytes": 204_800}


def test_the_whole_delay_is_on_the_way_back_and_access_is_a_plain_veth() -> None:
    path = links(scenarios("reno")[0])
    assert path["d-r"]["delay_ns"] == 40_000_000
    for name in ("s1-r", "r-s1"):
        link = path[name]
        assert (link["rate_bps"], link["delay_ns"], link["qdisc"]["kind"]) == (None, 0, "noqueue")
    assert path["d-r"]["rate_bps"] is None
    assert path["d-r"]["qdisc"]["kind"] == "noqueue"


def test_the_receiver_pings_the_first_sender_five_times_a_second() -> None:
    (probe,) = scenarios("reno", flows=3)[0]["probes"]
    assert (probe["from"], probe["target"], probe["interval_ns"]) == ("d", "s1", 200_000_000)
    assert (probe["size_bytes"], probe["start_ns"]) == (64, 0)


def test_link_wire_stores_and_forwards() -> None:
    down = links(scenarios("reno", link="wire")[0])["r-d"]
    assert down["rate_bps"] == 10_000_000
    assert down["qdisc"] == {"kind": "bfifo", "limit_bytes": 204_800}


def test_loss_and_jitter_come_behind_the_bottleneck() -> None:
    down = links(scenarios("reno", loss="1%", jitter="5ms")[0])["r-d"]
    netem = down["netem"]
    assert (netem["delay_ns"], netem["jitter_ns"]) == (5_000_000, 5_000_000)
    assert netem["loss"]["model"] == "random"
    assert netem["loss"]["probability"] == pytest.approx(0.01)
    assert netem["limit_packets"] >= 100_000
    assert netem["distribution"] == "uniform"
    assert down["qdisc"]["kind"] == "htb"


def test_the_way_back_has_a_rate_and_a_queue() -> None:
    up = links(scenarios("reno", up_rate="1mbit", up_queue="pfifo limit 50")[0])["d-r"]
    assert up["qdisc"]["rate_bps"] == 1_000_000
    assert up["qdisc"]["leaf"] == {"kind": "pfifo", "limit_packets": 50}
    assert up["delay_ns"] == 40_000_000


def test_races_that_differ_have_other_titles() -> None:
    given: list[dict[str, Any]] = [
        {},
        {"loss": "1%"},
        {"together": True},
        {"loss": "1%", "together": True},
        {"jitter": "5ms"},
        {"rtt": "50ms"},
    ]
    titles = [compare(("reno", "cubic"), **{**PATH, **options}).title for options in given]
    assert len(set(titles)) == len(titles), titles


def test_flows_repeat_together() -> None:
    runs = scenarios("reno", "cubic", flows=2, repeat=3, seed=5)
    assert [run["seed"] for run in runs] == [5, 5, 6, 6, 7, 7]
    assert [flow["label"] for flow in runs[0]["flows"]] == ["reno-1", "reno-2"]
    assert [flow["sender"] for flow in runs[0]["flows"]] == ["s1", "s2"]
    (mixed,) = scenarios("reno", "cubic", flows=2, together=True)
    assert [flow["label"] for flow in mixed["flows"]] == ["reno-1", "reno-2", "cubic-1", "cubic-2"]
    assert [flow["sender"] for flow in mixed["flows"]] == ["s1", "s2", "s3", "s4"]


def test_ecn_and_sysctls_go_to_every_host() -> None:
    hosts = [
        node
        for node in scenarios("reno", ecn=True, sysctl={"net.ipv4.tcp_sack": "0"}, gso="auto")[0]["nodes"]
        if node["kind"] == "host"
    ]
    assert [host["name"] for host in hosts] == ["s1", "d"]
    for host in hosts:
        assert host["sysctl"] == {"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_ecn": "1"}
        assert host["gso"] == "auto"


def test_ecn_does_not_change_the_queues_words() -> None:
    queue = "codel limit 100 target 10ms"
    plain, negotiated = (scenarios("reno", queue=queue, ecn=ecn)[0] for ecn in (False, True))
    assert plain["links"] == negotiated["links"]
    assert links(plain)["r-d"]["qdisc"]["leaf"]["ecn"] is False


def queue_of(scenario: dict[str, Any], name: str = "r-d") -> Any:
    qdisc = links(scenario)[name]["qdisc"]
    return qdisc.get("leaf", qdisc)


@pytest.mark.parametrize(
    ("queue", "bytes_or_packets"),
    [
        ("1bdp", 50_000),
        ("0.5bdp", 25_000),
        ("300ms", 375_000),
        ("bfifo limit 2bdp", 100_000),
        ("pfifo limit 1bdp", 34),
    ],
)
def test_a_queue_is_counted_in_what_the_path_holds(queue: str, bytes_or_packets: int) -> None:
    leaf = queue_of(scenarios("reno", queue=queue)[0])
    assert bytes_or_packets in leaf.values()


def test_a_queue_in_bdp_follows_what_varies() -> None:
    content = {
        **compare(["reno"], **{**PATH, "queue": "1bdp"}).content(),
        "vary": {"path.rate": ["1mbit", "8mbit"]},
    }
    runs = expand(Experiment.build(content))
    assert [queue_of(run.scenario)["limit_bytes"] for run in runs] == [5000, 40_000]


def test_an_algorithm_has_options_count_and_rtt_of_its_own() -> None:
    (run,) = scenarios("cubic:beta=0.8,hystart=0", "bbr*2@100ms", "reno@20ms", together=True)
    cubic, *bbrs, reno = run["flows"]
    assert cubic["transport"] == {
        "protocol": "tcp",
        "cc": "cubic",
        "cc_options": {"beta": 819.0, "hystart": 0.0},
        "socket": {"send_bytes": None, "receive_bytes": None},
    }
    assert [flow["label"] for flow in (cubic, *bbrs, reno)] == [
        "cubic:beta=0.8,hystart=0",
        "bbr@100ms-1",
        "bbr@100ms-2",
        "reno@20ms",
    ]
    core = _core.Scenario(run)
    facts = core.path_facts([(f"s{at}", "d") for at in (1, 2, 3, 4)])
    rtts = [fact["idle_rtt_ns"] for fact in facts]
    assert rtts == [40_000_000, 100_000_000, 100_000_000, 20_000_000]
    assert core.flow_facts(98) == facts
    assert _core.Scenario(core.to_json()).document() == core.document() == run


def test_each_word_is_a_run_of_its_own() -> None:
    first, second = scenarios("cubic", "bbr*3@20ms", flows=2)
    assert [len(run["flows"]) for run in (first, second)] == [2, 6]
    assert links(first)["d-r"]["delay_ns"] == 40_000_000
    assert links(second)["d-r"]["delay_ns"] == 20_000_000


def test_media_and_traces_carry_the_bottleneck(tmp_path: Path) -> None:
    line = {**PATH, "rate": None, "medium": "adsl2"}
    (adsl,) = (run.scenario for run in expand(compare(["reno"], **{**line, "queue": "100ms"})))
    assert [links(adsl)[name]["medium"] for name in ("r-d", "d-r")] == ["adsl2", "adsl2-up"]
    assert queue_of(adsl)["limit_bytes"] == 150_000
    file = tmp_path / "a.trace"
    file.write_text("1\n2\n10\n")
    recorded = {**PATH, "rate": None, "trace": str(file), "queue": "1bdp"}
    (traced,) = (run.scenario for run in expand(compare(["reno"], **recorded)))
    assert traced["media"]["recorded"]["opportunities_ms"] == [1, 2, 10]
    assert queue_of(traced)["limit_bytes"] == 3600 * 40 // 8
    with pytest.raises(BadInputError, match="trace"):
        compare(["reno"], **{**recorded, "trace": str(tmp_path / "none")})
    with pytest.raises(BadInputError, match=r'path.queue: got "1bdp".*no rate'):
        expand(compare(["reno"], **{**line, "medium": "wifi-n", "queue": "1bdp"}))


def test_flows_go_both_ways_and_start_one_after_the_other() -> None:
    (run,) = scenarios("reno", "cubic", both_ways=True, stagger="5s", together=True)
    ends = [(flow["label"], flow["sender"], flow["receiver"], flow["start_ns"]) for flow in run["flows"]]
    assert ends == [
        ("reno", "s1", "d", 0),
        ("reno-reverse", "d", "s1", 0),
        ("cubic", "s2", "d", 5_000_000_000),
        ("cubic-reverse", "d", "s2", 5_000_000_000),
    ]


@pytest.mark.parametrize("name", [path["name"] for path in _core.names()["paths"]])
def test_every_named_path_runs_with_no_other_option(name: str) -> None:
    for workload in ("bulk", "rrul", "web"):
        assert len(expand(compare(["cubic", "bbr"], path=name, workload=workload, duration="1s"))) == 2


def test_paths_vary_by_name() -> None:
    content = {
        "duration": "1s",
        "path": "LTE",
        "flows": [{"cc": "cubic"}],
        "vary": {"path": ["LTE", "home DSL"], "path.up_queue": ["fq_codel"]},
    }
    lte, dsl = (run.scenario for run in expand(Experiment.build(content)))
    assert queue_of(lte)["limit_bytes"] == 30_000_000 // 8 // 2
    assert links(dsl)["r-d"]["medium"] == "dsl-down"
    assert {queue_of(run, "d-r")["kind"] for run in (lte, dsl)} == {"fq_codel"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"path": "hom DSL"}, 'path: got "hom DSL"'),
        ({"rate": "1mbit", "queue": "1bdp"}, "rtt: is missing"),
        ({"rtt": "1ms", "queue": "1bdp"}, "rate: is missing"),
        ({"path": "LTE", "workload": "rul"}, 'workload: got "rul"'),
        ({"path": "LTE", "medium": "wlan"}, 'medium: got "wlan"'),
        ({"path": "LTE", "stagger": "5"}, 'stagger: got "5"'),
        ({"path": "LTE", "queue": "1bdq"}, 'queue: got "1bdq", expected a size such as 1bdp'),
        ({"path": "LTE", "medium": "adsl", "trace": "x"}, "a medium or a trace"),
    ],
)
def test_what_cannot_be_read_names_its_option(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInputError) as refused:
        expand(compare(["cubic"], duration="1s", **given))
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "word", ["cubic:", "cubic:beta", "cubic:beta=x", "cubic*0", "cubic@20", "cubic*1*2", "cubik*2"]
)
def test_an_algorithm_that_cannot_be_read_is_refused(word: str) -> None:
    with pytest.raises(BadInputError, match="algorithms: got"):
        scenarios(word)


def test_the_core_accepts_every_comparison() -> None:
    for scenario in scenarios(*_core.ALGORITHMS, loss="0.1%", up_rate="1mbit", link="wire"):
        assert _core.problems_of(scenario) == []


def test_the_bottleneck_changes_during_the_run(tmp_path: Path) -> None:
    race = compare(
        ["cubic"], rate="10mbit", rtt="40ms", queue="pfifo limit 100", duration="3s",
        change=["1s rate=2mbit rtt=60ms", "2s state=down limit=50"],
    )  # fmt: skip
    scenario = expand(race)[0].scenario
    assert scenario["changes"] == [
        {"at_ns": 10**9, "link": "r-d", "rate_bps": 2_000_000},
        {"at_ns": 10**9, "link": "d-r", "delay_ns": 60_000_000},
        {"at_ns": 2 * 10**9, "link": "r-d", "limit_packets": 50, "up": False},
    ]
    # As the saved experiment says it.
    assert expand(Experiment.build(race.content()))[0].scenario == scenario
    # And as a trace of values says it, whose last line lies behind the end.
    (tmp_path / "values.csv").write_text("at,rate,state\n0.5s,2mbit,\n1s,,down\n5s,,up\n")
    content = {**race.content(), "changes": [{"file": str(tmp_path / "values.csv"), "at": "500ms"}]}
    assert expand(Experiment.build(content))[0].scenario["changes"] == [
        {"at_ns": 10**9, "link": "r-d", "rate_bps": 2_000_000},
        {"at_ns": 1_500_000_000, "link": "r-d", "up": False},
    ]
    content["changes"][0]["rate"] = "1mbit"
    with pytest.raises(BadInputError, match="either a file or settings"):
        Experiment.build(content)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rate,loss\n", "a first line that names columns"),
        ("at,rate,speed\n", "one of at, rate"),
        ("at,rate\n1s\n", "line 2: 1 cells"),
        ("at,rate\n,1mbit\n", "line 2: no time"),
    ],
)
def test_a_trace_of_values_that_cannot_be_read_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "values.csv").write_text(text)
    race = compare(["cubic"], rate="10mbit", rtt="40ms", queue="pfifo limit 100", duration="3s")
    content = {**race.content(), "changes": [{"file": str(tmp_path / "values.csv")}]}
    with pytest.raises(BadInputError, match=told):
        Experiment.build(content)


def test_an_application_waits_while_too_much_is_unsent() -> None:
    """TCP_NOTSENT_LOWAT, which iperf 2 sets by --tcp-write-prefetch; `--sysctl` goes before the option."""
    (scenario,) = scenarios("cubic", notsent_lowat="131072")
    assert scenario["nodes"][0]["sysctl"] == {"net.ipv4.tcp_notsent_lowat": "131072"}
    (scenario,) = scenarios("cubic", notsent_lowat="1", sysctl={"net.ipv4.tcp_notsent_lowat": "9000"})
    assert scenario["nodes"][0]["sysctl"] == {"net.ipv4.tcp_notsent_lowat": "9000"}
    with pytest.raises(BadInputError, match=r"tcp_notsent_lowat.*got .128kb"):
        scenarios("cubic", notsent_lowat="128kb")


def test_a_queue_that_is_not_named_is_the_default_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dragstrip import cli

    monkeypatch.chdir(tmp_path)
    for words, heading in (
        ("--rate 10mbit --rtt 40ms", "compare, queue 1bdp (the default)"),
        ("--medium adsl2 --rtt 40ms", "compare, queue pfifo (the default)"),
        ("--rate 10mbit --rtt 40ms --queue 1bdp", "compare"),
    ):
        line = f"dragstrip compare {words} --duration 1s --no-report reno"
        monkeypatch.setattr("sys.argv", line.split())
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert ended.value.code == 0
        assert capsys.readouterr().out.splitlines()[0].strip() == heading
    scenario = expand(compare(["reno"], rate="10mbit", rtt="40ms", duration="1s"))[0].scenario
    queues = [link["qdisc"].get("leaf") for link in scenario["links"]]
    assert {"kind": "bfifo", "limit_bytes": 50_000} in queues
