from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragstrip.errors import BadInputError, Note
from dragstrip.experiment import catalogue
from dragstrip.experiment.expand import complete, expand, path_parts
from dragstrip.experiment.types import Experiment
from dragstrip.studies.execution.runner import plan

GRAPH: dict[str, Any] = {
    "duration": "3s",
    "nodes": [
        {"name": "a", "kind": "host"},
        {"name": "r", "kind": "router"},
        {"name": "b", "kind": "host"},
    ],
    "links": [
        {"from": "a", "to": "r", "rate": "100mbit", "link": "wire", "delay": "1ms"},
        {"from": "r", "to": "b", "rate": "10mbit", "queue": "bfifo limit 100kb"},
    ],
    "flows": [{"cc": "reno", "sender": "a", "receiver": "b"}],
}


def dumbbell(**given: Any) -> dict[str, Any]:
    path = {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb", **given.pop("path", {})}
    return {"duration": "3s", "flows": [{"cc": "reno"}], **given, "path": path}


def refused(content: dict[str, Any]) -> BadInputError:
    with pytest.raises(BadInputError) as caught:
        plan(Experiment.build(content, "x.toml"), "x.toml")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("x.toml: ")
    return caught.value


@pytest.mark.parametrize(
    ("content", "field", "hint"),
    [
        (dumbbell(path={"quue": "bfifo limit 200kb"}), "path.quue", '"queue"'),
        (dumbbell(flow=[]), "flow", '"flows"'),
        (dumbbell(path={"rate": "10"}), "path.rate", "10mbit"),
        (dumbbell(path={"rate": 10}), "path.rate", "10mbit"),
        (dumbbell(path={"rate": "0mbit"}), "path.rate", "above zero"),
        (dumbbell(path={"rate": "-1mbit"}), "path.rate", "rate"),
        (dumbbell(path={"rate": "1e30bit"}), "path.rate", "rate"),
        (dumbbell(path={"rate": "1" + 30 * "0" + "bit"}), "path.rate", "rate"),
        (dumbbell(path={"rtt": "40"}), "path.rtt", "40ms"),
        (dumbbell(path={"loss": "1"}), "path.loss", "%"),
        (dumbbell(path={"loss": "101%"}), "path.loss", "100"),
        (dumbbell(path={"queue": "bfifo limt 3"}), "path.queue", '"limit"'),
        (dumbbell(path={"queue": "bfiffo"}), "path.queue", '"bfifo"'),
        (dumbbell(path={"queue": "bfifo limit 1000"}), "path.queue", "1514"),
        (dumbbell(path={"link": "string"}), "path.link", "htb"),
        (dumbbell(path={"rtt": "40ms", "delay": "1ms"}), "path", "either"),
        (dumbbell(path={"senders": 0}), "path.senders", "from 1 to 100000"),
        (dumbbell(path={"senders": [{"rate": "x"}]}), "path.senders[0].rate", "unit"),
        (dumbbell(flows=[]), "flows", "at least one"),
        (dumbbell(flows=[{"cc": "rneo"}]), "flows[0].cc", '"reno"'),
        (dumbbell(flows=[{}]), "flows[0]", "cc"),
        (dumbbell(flows=[{"cc": "reno", "sender": "s9"}]), "flows[0].sender", "host"),
        (dumbbell(flows=[{"cc": "reno", "bytes": "4"}]), "flows[0].bytes", "unit"),
        (dumbbell(flows=[{"cc": "reno", "application": {"kind": "bulky"}}]), "flows[0].application.kind", "bulk"),
        (dumbbell(duration="0s"), "duration", "above zero"),
        (dumbbell(duration="400000s"), "duration", "17000s"),
        (dumbbell(hosts={"*": {"sysctl": {"net.ipv4.tcp_sak": 1}}}), "hosts.s1.sysctl", "tcp_sack"),
        (dumbbell(hosts={"s": {"gso": "auto"}}), "hosts", "a pattern: s1, "),
        (dumbbell(vary={"path.rte": ["1mbit"]}), "path.rte", '"rate"'),
        (dumbbell(vary={"path.rate": ["1mbit", "1"]}), "path.rate", "vary"),
        (dumbbell(vary={"path.rate": []}), "vary.path.rate", "list"),
        (dumbbell(vary={"flows.3.cc": ["reno"]}), "vary.flows.3.cc", "index"),
        (dumbbell(claims=[{"id": "a", "source": "s", "metric": "jain", "value": 1}]), "claims[0].tolerance", "is missing"),
        (dumbbell(claims=[{"id": "a", "source": "s", "metric": "jain"}]), "claims[0]", "one of value"),
        ({**dumbbell(), "nodes": GRAPH["nodes"]}, "path", "either"),
        ({"duration": "3s", "flows": [{"cc": "reno"}]}, "path", "either"),
        ({**GRAPH, "links": GRAPH["links"][:1]}, "flows[0]", ""),  # broken: nothing leads to b
        ({**GRAPH, "links": [*GRAPH["links"], {"from": "r", "to": "nowhere"}]}, "links[2].to", "the name of a node"),
        (
            {
                **GRAPH,
                "nodes": [*GRAPH["nodes"], {"name": "q", "kind": "router"}],
                "links": [*GRAPH["links"], {"from": "r", "to": "q"}],
                "routes": [
                    {"node": "r", "destination": "b", "link": "r-q"},
                    {"node": "q", "destination": "b", "link": "q-r"},
                ],
            },
            "flows[0]",
            "lead back",
        ),  # cyclic
    ],
)  # fmt: skip
def test_bad_input_is_one_line_that_names_field_and_remedy(
    content: dict[str, Any], field: str, hint: str
) -> None:
    error = refused(content)
    assert error.field.startswith(field)
    assert hint in error.expected


def test_a_run_that_needs_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragstrip.model.scenario import memory

    monkeypatch.setattr(memory, "memory_bytes", lambda: 1 << 30)
    error = refused(dumbbell(duration="16000s", path={"rate": "10gbit"}))
    assert error.field == "duration"
    assert "GiB" in error.expected


@pytest.mark.parametrize(
    ("record", "seconds", "table", "advice"),
    [
        ({}, "173", "rtts", "record.rtts = false (`--no-rtts`) makes it smaller"),
        (
            {"every_ack": True, "rtts": False},
            "74.3",
            "samples",
            "; record.every_ack = false makes it smaller",
        ),
    ],
)
def test_a_run_that_no_report_could_read_is_refused_before_it_begins(
    monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], seconds: str, table: str, advice: str
) -> None:
    from dragstrip.model.scenario import memory

    def fast(duration: str, **record: Any) -> dict[str, Any]:
        return dumbbell(duration=duration, path={"rate": "10gbit"}, record=record)

    monkeypatch.setattr(memory, "memory_bytes", lambda: 1 << 50)
    error = refused(fast("300s", **record))
    assert error.field == "duration"
    assert f"at most about {seconds}s: its table `{table}`" in error.expected
    assert error.expected.endswith(advice)
    refused(fast(f"{float(seconds) + 1}s", **record))
    expand(Experiment.build(fast(f"{seconds}s", **record)))
    expand(Experiment.build(fast("300s", rtts=False)))


def test_the_duration_that_a_refusal_offers_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several limits the strictest decides, and no offer is rounded up."""
    from dragstrip.model.scenario import memory

    for gib in (1, 3, 7, 20, 500, 100_000):
        monkeypatch.setattr(memory, "memory_bytes", lambda gib=gib: gib << 30)
        for rate in ("3gbit", "10gbit", "97gbit", "800gbit"):
            error = refused(dumbbell(duration="16999s", path={"rate": rate}))
            offer = error.expected.split("about ")[1].split(":")[0]
            assert "e+" not in error.expected
            expand(Experiment.build(dumbbell(duration=offer, path={"rate": rate})))


def test_files_that_are_no_experiments(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("duration = ")
    with pytest.raises(BadInputError, match=r"broken\.toml: is not TOML"):
        Experiment.read(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInputError, match="cannot be read"):
        Experiment.read(broken)


def test_a_dumped_experiment_reads_back_the_same() -> None:
    for file in catalogue.files().values():
        experiment = Experiment.read(file)
        dumped = experiment.content()
        assert Experiment.build(dumped) == experiment


def test_repeats_are_interleaved_and_share_seeds() -> None:
    content = dumbbell(repeat=2, seed=7, vary={"path.rtt": ["10ms", "20ms"]})
    runs = expand(Experiment.build(content))
    assert [(run.name, run.scenario["seed"], run.repeat) for run in runs] == [
        ("10ms #1", 7, 0),
        ("20ms #1", 7, 0),
        ("10ms #2", 8, 1),
        ("20ms #2", 8, 1),
    ]
    assert [run.slug for run in runs][:2] == ["000-10ms-1", "001-20ms-1"]


def test_alternatives_multiply_with_vary_and_reach_quoted_keys() -> None:
    content = dumbbell(
        alternatives=[
            {"name": "plain", "set": {}},
            {
                "name": "codel+ecn",
                "set": {
                    "path.queue": "codel limit 100 target 10ms ecn",
                    'hosts."*".sysctl."net.ipv4.tcp_ecn"': 1,
                },
            },
        ],
        vary={"flows": {"cc": ["reno", "fixed"]}},
    )
    runs = expand(Experiment.build(content))
    assert [run.name for run in runs] == ["plain reno", "plain fixed", "codel+ecn reno", "codel+ecn fixed"]
    last = runs[-1].scenario
    bottleneck = next(link for link in last["links"] if link["name"] == "r-d")
    assert bottleneck["qdisc"]["leaf"]["kind"] == "codel"
    assert last["nodes"][0]["sysctl"] == {"net.ipv4.tcp_ecn": "1"}
    assert runs[-1].settings == {"alternative": "codel+ecn", "flows.cc": "fixed"}


def test_senders_with_links_of_their_own() -> None:
    content = dumbbell(
        path={"senders": [{"rate": "100mbit", "delay": "5ms"}, {}], "receivers": 2},
        flows=[{"cc": "reno", "count": 3}],
    )
    scenario = expand(Experiment.build(content))[0].scenario
    links = {link["name"]: link for link in scenario["links"]}
    assert links["s1-r"]["rate_bps"] == 100_000_000
    assert links["r-s1"]["delay_ns"] == 5_000_000
    assert links["s2-r"]["rate_bps"] is None
    assert links["r-w"]["qdisc"]["rate_bps"] == 10_000_000
    ends = [(flow["sender"], flow["receiver"]) for flow in scenario["flows"]]
    assert ends == [("s1", "d1"), ("s2", "d2"), ("s1", "d1")]


def test_a_graph_names_and_mirrors_its_links() -> None:
    scenario = expand(Experiment.build(GRAPH))[0].scenario
    assert [link["name"] for link in scenario["links"]] == ["a-r", "r-a", "r-b", "b-r"]
    assert scenario["links"][0]["rate_bps"] == 100_000_000
    assert scenario["links"][2]["qdisc"]["kind"] == "htb"


def test_path_parts() -> None:
    assert path_parts('hosts.*.sysctl."net.ipv4.tcp_ecn"') == ["hosts", "*", "sysctl", "net.ipv4.tcp_ecn"]
    assert path_parts("flows.0.cc") == ["flows", "0", "cc"]


HOME = {"home": {"kind": "wifi_g", "rate": "54mbit"}}


def test_a_shared_medium_carries_both_ways_and_adsl_one() -> None:
    def media_of(path: dict[str, Any], media: dict[str, Any]) -> list[str | None]:
        content = {"duration": "3s", "flows": [{"cc": "reno"}], "path": path, "media": media}
        scenario = expand(Experiment.build(content))[0].scenario
        assert set(scenario["media"]) == set(media)
        return [link["medium"] for link in scenario["links"] if link["name"] in ("r-d", "d-r")]

    assert media_of({"medium": "home", "rtt": "2ms"}, HOME) == ["home", "home"]
    line = {"down": {"kind": "adsl", "rate": "1536kbit"}, "up": {"kind": "adsl", "rate": "256kbit"}}
    assert media_of({"medium": "down", "up_medium": "up", "rtt": "2ms"}, line) == ["down", "up"]


TRACE: dict[str, Any] = {"cell": {"kind": "trace", "file": "cell.trace"}}


def traced(folder: Path, text: str | None) -> tuple[dict[str, Any], str]:
    """An experiment over a trace, and the file that it is said to be in."""
    if text is not None:
        (folder / "cell.trace").write_text(text)
    path = {"medium": "cell", "rtt": "20ms"}
    return {"duration": "3s", "flows": [{"cc": "reno"}], "path": path, "media": TRACE}, str(folder / "x.toml")


def test_a_trace_lies_beside_its_experiment_and_its_times_in_the_scenario(tmp_path: Path) -> None:
    content, source = traced(tmp_path, "1\n1\n7\n")
    (tmp_path / "other.trace").write_text("3\n")
    content["vary"] = {"media.cell.file": ["cell.trace", "other.trace"]}
    scenarios = [run.scenario for run in expand(Experiment.build(content, source), source)]
    times = [scenario["media"]["cell"]["opportunities_ms"] for scenario in scenarios]
    assert times == [[1, 1, 7], [3]]
    links = {link["name"]: link["medium"] for link in scenarios[0]["links"]}
    assert (links["r-d"], links["d-r"]) == ("cell", None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "a trace file that can be read"),
        ("", "at least one line"),
        ("1\n5\n4\n", "cell.trace, line 3: 4, expected at least 5"),
        ("0\n0\n", "cell.trace, line 2: 0, expected a last time above 0"),
        ("1\n2.5\n", "cell.trace, line 2: '2.5', expected a whole number of milliseconds"),
        ("1\n-2\n", "cell.trace, line 2: '-2', expected a whole number"),
        ("99999999999999999999\n", "line 1: '99999999999999999999', expected a whole number"),
        ("99999999999\n", "at most 17000000"),
    ],
)
def test_a_trace_that_cannot_be_is_refused_with_its_line(tmp_path: Path, text: str | None, told: str) -> None:
    content, source = traced(tmp_path, text)
    with pytest.raises(BadInputError) as caught:
        plan(Experiment.build(content, source), source)
    assert caught.value.field.startswith("media.cell.file")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_modems_and_hubs_are_refused_in_the_words_of_the_file() -> None:
    for field, medium in (
        ("rate", {"kind": "modem", "rate": "56kbit"}),
        ("block", {"kind": "modem", "rate": "28800bit", "block": "4b"}),
        ("dte", {"kind": "modem", "rate": "28800bit", "dte": "1mbit"}),
        ("compression_ratio", {"kind": "modem", "rate": "28800bit", "compression_ratio": 3}),
        ("protocol", {"kind": "modem", "rate": "28800bit", "protocol": "mnp6"}),
        ("background_load", {"kind": "ethernet_hub", "background_stations": 3, "background_load": 11}),
        ("background_stations", {"kind": "ethernet_hub", "background_stations": 3}),
        ("full_duplex", {"kind": "ethernet_hub", "full_duplex": "s1"}),
    ):
        path = {"medium": "line", "rtt": "2ms"}
        content = {"duration": "3s", "flows": [{"cc": "reno"}], "path": path, "media": {"line": medium}}
        assert refused(content).field == f"media.line.{field}"


def test_media_are_refused_in_the_words_of_the_file() -> None:
    path = {"medium": "home", "rtt": "2ms"}
    content = {"duration": "3s", "flows": [{"cc": "reno"}], "path": path}
    assert (
        refused({**content, "media": {"home": {"kind": "wifi_g", "rate": "11mbit"}}}).field
        == "media.home.rate"
    )
    assert refused({**content, "media": {"hone": HOME["home"]}}).field == "path.medium"
    assert refused({**content, "media": {"home": {"kind": "wifi_x"}}}).field == "media.home.kind"
    both = {**path, "rate": "1mbit"}
    assert refused({**content, "path": both, "media": HOME}).field == "path.medium"


def tunnel(**changes: Any) -> dict[str, Any]:
    """a and b talk through a tunnel between r and h, which v and w carry."""
    content: dict[str, Any] = {
        "duration": "3s",
        "nodes": [
            *({"name": name, "kind": "host"} for name in "abvw"),
            *({"name": name, "kind": "router"} for name in "rh"),
        ],
        "links": [
            {"from": "a", "to": "r"},
            {"from": "r", "to": "h", "medium": "tun", "queue": "pfifo limit 50"},
            {"from": "h", "to": "b"},
            {"from": "v", "to": "w", "rate": "1mbit", "delay": "20ms"},
        ],
        "media": {"tun": {"kind": "tunnel", "flow": "outer", "near": "r"}},
        "flows": [
            {"cc": "cubic", "sender": "a", "receiver": "b"},
            {
                "cc": "reno",
                "sender": "v",
                "receiver": "w",
                "label": "outer",
                "application": {"kind": "tunnel"},
            },
        ],
    }
    return {**content, **changes}


def test_a_tunnel_is_a_flow_that_carries_both_ways() -> None:
    scenario = expand(Experiment.build(tunnel()))[0].scenario
    assert scenario["flows"][1]["application"] == {"kind": "tunnel", "header_bytes": 2}
    assert [link["name"] for link in scenario["links"] if link["medium"] == "tun"] == ["r-h", "h-r"]


def test_a_tunnel_through_itself_is_refused() -> None:
    through = tunnel()
    through["flows"][1] |= {"sender": "a", "receiver": "b"}
    error = refused(through)
    assert error.field == "media.tun.flow"
    assert "itself (link r-h)" in error.expected
    assert (
        refused(tunnel(media={"tun": {"kind": "tunnel", "flow": "inner", "near": "r"}})).field
        == "media.tun.flow"
    )
    assert (
        refused(tunnel(media={"tun": {"kind": "tunnel", "flow": "outer", "near": "a"}})).field
        == "media.tun.near"
    )


def test_an_old_stack_ticks_as_its_distribution_did_unless_told_otherwise() -> None:
    def ticks(**settings: Any) -> set[int]:
        content = {"path": {"rate": "10mbit", "rtt": "20ms", "queue": "bfifo limit 30kb"}, "duration": "2s"}
        made = expand(Experiment.build({**content, "flows": [{"cc": "fixed"}], "hosts": {"*": settings}}))
        return {node["tick_hz"] for node in complete(made[0].scenario)["nodes"] if node["kind"] == "host"}

    assert ticks() == {250}
    assert ticks(profile="linux-6") == {250}
    assert ticks(profile="linux-2.6.27") == {1000}
    assert ticks(profile="linux-2.6.27", tick_hz=100) == {100}
    assert ticks(profile="linux-2.2") == {100}
    assert ticks(profile="freebsd-9") == {1000}
    assert ticks(profile="freebsd-9", tick_hz=100) == {100}


def test_a_file_does_not_choose_its_engine_in_python_either(tmp_path: Path) -> None:
    """`dragstrip run FILE` ran it on the simulator, `dragstrip.run(Experiment.read(FILE))` on the file's engine."""
    file = tmp_path / "foreign.toml"
    text = 'engine = "netns"\nload = ["mine.bpf.c"]\nduration = "1s"\n'
    text += 'path = {rate = "1mbit"}\nflows = [{cc = "reno"}]\n'
    file.write_text(text)
    with pytest.warns(Note, match=r"asks for engine netns; it runs on the simulator without"):
        experiment = Experiment.read(file)
    assert (experiment.engines, experiment.load) == (("sim",), [])
    with pytest.raises(BadInputError, match=r"load: got .*, expected --load FILE"):
        Experiment.read(file, engine="netns")
    file.write_text(text.replace('load = ["mine.bpf.c"]\n', ""))
    assert Experiment.read(file, engine="netns").engines == ("netns",)
