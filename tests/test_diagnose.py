"""`dragstrip diagnose`: each rule has a case that has the fault and one that has not; figures, refusals, replays."""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.analysis.diagnosis import console, evidence, findings, limits, loss_causes, sources, walk
from dragstrip.analysis.diagnosis.finding import AMBIGUOUS
from dragstrip.analysis.diagnosis.wording import figure
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

CAPTURES = {
    "bloat": {"rate": "8mbit", "rtt": "30ms", "queue": "pfifo limit 100"},
    "managed": {"rate": "8mbit", "rtt": "30ms", "queue": "fq_codel"},
    "policed": {"rate": "50mbit", "rtt": "100ms", "queue": "police rate 5mbit burst 60kb"},
    "lossy": {"rate": "50mbit", "rtt": "60ms", "queue": "1bdp", "loss": "0.5%"},
    "rwnd": {"rate": "50mbit", "rtt": "60ms", "sysctl": {"net.ipv4.tcp_rmem": "4096 131072 131072"}},
    "sndbuf": {"rate": "50mbit", "rtt": "100ms", "sysctl": {"net.ipv4.tcp_wmem": "4096 65536 65536"}},
}
"""Paths whose senders' captures are diagnosed."""
TBF = "tc qdisc add dev eth0 root tbf rate 10mbit burst 32kbit latency 400ms\n"
SQM = """tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit
tc qdisc add dev eth0 parent 1:10 fq_codel
"""
POLICE = """tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: u32 match u32 0 0 police rate 20mbit burst 100k drop
"""
FQ_CODEL = """qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms ecn
 Sent 900000 bytes 600 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 20
"""
CAKE = """qdisc cake 8021: dev eth0 root refcnt 2 bandwidth 20Mbit diffserv3 triple-isolate nonat nowash rtt 100ms
 Sent 123456789 bytes 100000 pkt (dropped 3, overlimits 200 requeues 0)
 backlog 0b 0p requeues 0
"""
PFIFO_FAST = """qdisc pfifo_fast 0: dev eth2 root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
 Sent 1000 bytes 10 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""
HTB = """qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
 Sent 123456789 bytes 100000 pkt (dropped 300, overlimits 200 requeues 0)
 backlog 0b 0p requeues 0
qdisc pfifo 110: dev eth0 parent 1:10 limit 1000p
 Sent 123456789 bytes 100000 pkt (dropped 300, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
class htb 1:10 root leaf 110: prio 0 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b
 Sent 123456789 bytes 100000 pkt (dropped 300, overlimits 200 requeues 0)
 backlog 0b 0p requeues 0
"""


TWO = {
    "both-lossy": {"rate": "20mbit", "rtt": "60ms", "queue": "1bdp", "loss": "0.5%"},
    "both-bloat": {"rate": "8mbit", "rtt": "30ms", "queue": "pfifo limit 100"},
}
"""Paths that are captured at both ends."""


def ping(milliseconds: list[float], at: float = 0.0) -> str:
    stamp = (lambda n: f"[{at + n / 5:.6f}] ") if at else (lambda _: "")
    lines = [
        f"{stamp(n)}64 bytes from 10.0.0.2: icmp_seq={n} ttl=64 time={value:.1f} ms"
        for n, value in enumerate(milliseconds, 1)
    ]
    count = len(milliseconds)
    tail = f"{count} packets transmitted, {count} received, 0% packet loss, time {200 * count}ms"
    return "\n".join(
        ["PING h (10.0.0.2) 56(84) bytes of data.", *lines, "", "--- h ping statistics ---", tail]
    )


DRAWN = random.Random(1)  # noqa: S311 - not for secrets
IDLE = ping([20 + DRAWN.random() for _ in range(20)])
LOADED = ping([150 + 80 * DRAWN.random() for _ in range(100)])


def iperf3(
    rate_bps: float, rtt_ms: float, least_ms: float, again: int, cc: str = "cubic", swing_ms: float = 0.0
) -> str:
    """A run whose RTT is `rtt_ms`, or a sawtooth that swings below it."""
    trips = [rtt_ms - swing_ms * (1 - at % 10 / 9) for at in range(30)]
    size = round(rate_bps / 8)
    interval = {
        "socket": 5,
        "bytes": size,
        "snd_cwnd": round(rate_bps / 8 * rtt_ms / 1e3),
        "rtt": rtt_ms * 1000,
        "sender": True,
    }
    sender = {"socket": 5, "start": 0, "end": 30, "retransmits": again}
    sender |= {"min_rtt": least_ms * 1000, "mean_rtt": rtt_ms * 1000, "max_rtt": rtt_ms * 1000}
    return json.dumps(
        {
            "start": {
                "connected": [{"socket": 5, "local_host": "10.0.0.1", "remote_host": "10.0.0.2"}],
                "test_start": {"protocol": "TCP"},
            },
            "intervals": [
                {"streams": [{**interval, "start": at, "end": at + 1, "retransmits": 0, "rtt": trip * 1000}]}
                for at, trip in enumerate(trips)
            ],
            "end": {
                "streams": [{"sender": sender, "receiver": {"socket": 5, "end": 30, "bytes": 30 * size}}],
                "sender_tcp_congestion": cc,
            },
        }
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files by name: captures of simulated senders, and texts."""
    folder = tmp_path_factory.mktemp("evidence")
    found = {}
    for name, options in CAPTURES.items():
        planned = plan(compare(["cubic"], duration="8s", **options))  # type: ignore[arg-type]
        out = folder / name
        execute(captured(planned, CaptureRequest(("s1",))), out, report=False)
        found[name] = next(out.rglob("s1.pcapng"))
    for name, options in TWO.items():
        planned = plan(compare(["cubic"], duration="8s", **options))  # type: ignore[arg-type]
        execute(captured(planned, CaptureRequest(("s1", "d"))), folder / name, report=False)
        found |= {f"{name}-{file.stem}": file for file in (folder / name).rglob("*.pcapng")}
    texts = {
        "tbf.sh": TBF,
        "sqm.sh": SQM,
        "police.sh": POLICE,
        "fq_codel.txt": FQ_CODEL,
        "cake.txt": CAKE,
        "pfifo_fast.txt": PFIFO_FAST,
        "htb.txt": HTB,
        "idle.txt": IDLE,
        "loaded.txt": LOADED,
        "near.txt": IDLE.replace("10.0.0.2", "10.0.0.3"),
        "slow.json": iperf3(9e6, 170.0, 21.0, 40),
        "clean.json": iperf3(9e6, 24.0, 21.0, 0),
        "lossy.json": iperf3(9e6, 23.0, 21.0, 400),
    }
    for name, text in texts.items():
        found[name] = folder / name
        found[name].write_text(text)
    return found


def told(words: list[str]) -> dict[str, Any]:
    ended = CliRunner().invoke(app, ["diagnose", *words, "--json"])
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


@pytest.fixture(scope="module")
def diagnosed(files: dict[str, Path]) -> Any:
    known: dict[str, dict[str, Any]] = {}

    def diagnose(line: str) -> dict[str, Any]:
        if line not in known:
            known[line] = told([str(files.get(word, word)) for word in shlex.split(line)])
        return known[line]

    return diagnose


def certainties(document: dict[str, Any]) -> dict[str, str]:
    return {finding["name"]: finding["certainty"] for finding in document["findings"]}


RULES = [
    ("bloat", "bufferbloat", "certain"),
    ("managed --rate 8mbit", "bufferbloat", None),
    ("idle.txt loaded.txt", "bufferbloat", "likely"),
    ("idle.txt slow.json", "bufferbloat", "certain"),
    ("idle.txt clean.json", "bufferbloat", None),
    ("--path 'home DSL'", "bufferbloat", "likely"),
    ("--path cable", "bufferbloat_up", "likely"),
    ("--path 'home DSL'", "bufferbloat_up", "likely"),
    ("--path 'office Wi-Fi'", "bufferbloat_up", None),
    ("--rate 50mbit --rtt 20ms --queue fq_codel --up-rate 5mbit --up-queue fq_codel", "bufferbloat_up", None),
    ("policed", "policer", "certain"),
    ("lossy", "policer", None),
    ("police.sh", "policer", "certain"),
    ("tbf.sh", "policer", None),
    ("lossy --rate 50mbit", "random_loss", "certain"),
    ("lossy.json", "ambiguous", "likely"),
    ("bloat", "random_loss", None),
    ("clean.json", "random_loss", None),
    ("--path Starlink", "random_loss", "likely"),
    ("--path 'home DSL'", "random_loss", None),
    ("rwnd --rate 50mbit", "receive_window", "certain"),
    ("bloat", "receive_window", None),
    ("sndbuf --rate 50mbit", "ambiguous", "likely"),
    ("bloat", "send_buffer", None),
    ("--path 5G", "send_buffer", None),
    ("--path transatlantic", "send_buffer", "likely"),
    ("fq_codel.txt bloat", "no_ecn", "certain"),
    ("tbf.sh bloat", "no_ecn", None),
    ("slow.json cake.txt", "shaper_above_line", "likely"),
    ("sqm.sh --rate 7mbit --rtt 20ms", "shaper_above_line", "certain"),
    ("sqm.sh --rate 9mbit --rtt 20ms", "shaper_above_line", None),
    ("fq_codel.txt slow.json", "other_bottleneck", "likely"),
    ("cake.txt clean.json", "other_bottleneck", None),
    ("tbf.sh", "fifo", "certain"),
    ("htb.txt", "fifo", "certain"),
    ("pfifo_fast.txt", "fifo", "certain"),
    ("sqm.sh", "fifo", None),
    ("cake.txt", "fifo", None),
    ("managed --rate 8mbit", "ambiguous", "likely"),
    ("managed --rate 8mbit", "random_loss", None),
    ("idle.txt clean.json --rate 9.5mbit", "nothing", "certain"),
    ("idle.txt clean.json --rate 20mbit", "nothing", None),
    ("idle.txt clean.json", "nothing", None),
    ("clean.json --rate 9.5mbit", "nothing", None),
    ("idle.txt slow.json", "nothing", None),
    ("idle.txt", "nothing", None),
]
"""What is given, a rule, and how sure it is, or None if it does not apply."""


@pytest.mark.parametrize(("line", "name", "certainty"), RULES)
def test_a_rule(diagnosed: Any, line: str, name: str, certainty: str | None) -> None:
    assert certainties(diagnosed(line)).get(name) == certainty


def everything(diagnosed: Any) -> Iterator[dict[str, Any]]:
    for line in dict.fromkeys(line for line, _, _ in RULES):
        yield diagnosed(line)


def test_each_figure_of_a_sentence_stands_in_the_document(diagnosed: Any) -> None:
    names = set()
    for document in everything(diagnosed):
        for finding in document["findings"] + document["unknown"]:
            rest = finding["sentence"]
            names.add(finding["name"])
            for name, value in sorted(finding["figures"].items(), key=lambda it: -len(figure(it[0], it[1]))):
                assert figure(name, value) in finding["sentence"], finding
                rest = rest.replace(figure(name, value), "")
            assert not re.search(r"\d", rest.replace("95 %", "")), finding
    assert {name for _, name, certainty in RULES if certainty} <= names


def test_a_certain_finding_has_a_measurement_or_a_setting_behind_it(diagnosed: Any) -> None:
    for document in everything(diagnosed):
        for finding in document["findings"]:
            assert finding["evidence"], finding
            if finding["certainty"] == "certain":
                assert all(fact["basis"] != "simulated" for fact in finding["evidence"]), finding
            for fact in finding["evidence"]:
                assert fact in document["evidence"]


def test_what_is_unknown_has_a_command_that_would_tell(diagnosed: Any) -> None:
    for line, name in (
        ("tbf.sh", "idle_rtt"),
        ("tbf.sh", "rtt_under_load"),
        ("idle.txt", "rtt_under_load"),
        ("lossy", "rate"),
        ("lossy", "queue"),
        ("loaded.txt", "loss"),
        ("--path 'home DSL'", "measured"),
    ):
        document = diagnosed(line)
        (finding,) = (it for it in document["unknown"] if it["name"] == name)
        assert finding["certainty"] == "cannot know"
        assert re.match(r"(ping|iperf3|tc|tcpdump) ", finding["measure"]), finding


def test_a_rate_and_a_round_trip_alone_say_nothing_about_the_queue(diagnosed: Any) -> None:
    document = diagnosed("--rate 10mbit --rtt 100ms")
    assert document["findings"] == []
    assert "if the queue is what was assumed" in document["verdict"]
    assert diagnosed("--rate 10mbit --rtt 10ms")["findings"] == []


def test_the_best_change_is_of_both_directions_where_both_have_a_fault(diagnosed: Any) -> None:
    document = diagnosed("--path 'home DSL'")
    (advice,) = (it for it in document["advice"] if it["finding"] == "bufferbloat_up")
    (best, *_) = (change for change in advice["changes"] if change["both_directions"])
    assert " up, " in best["change"]
    assert document["verdict"].endswith(f"in both directions: {best['change']} ({best['reason']}).")
    document = diagnosed("--path cable")
    down, up = (advice["changes"][0]["change"] for advice in document["advice"])
    assert document["verdict"].endswith(f" Best change: {down}; on the return path: {up}.")


@pytest.mark.parametrize(
    ("line", "full_ms"), [("--path 'home DSL'", 450_000 * 8 / 10.37e3), ("--path LTE", 500.0)]
)
def test_a_full_queue_lasts_as_long_as_the_line_needs_for_its_bytes(
    diagnosed: Any, line: str, full_ms: float
) -> None:
    (finding,) = (it for it in diagnosed(line)["findings"] if it["name"] == "fifo")
    assert finding["figures"]["full_ms"] == pytest.approx(full_ms, rel=0.01)


def test_a_path_that_is_not_filled_is_not_cleared(diagnosed: Any) -> None:
    large = "4096 4194304 1073741824"
    buffers = f"--sysctl 'net.ipv4.tcp_wmem={large}' --sysctl 'net.ipv4.tcp_rmem={large}'"
    document = diagnosed(f"--rate 10gbit --rtt 200ms --queue 1bdp --sender-algorithm vegas {buffers}")
    assert "nothing" not in certainties(document)
    assert "not_filled" in {finding["name"] for finding in document["unknown"]}


def test_advice_is_what_gains_and_best_first(diagnosed: Any) -> None:
    document = diagnosed("bloat --rate 8mbit")
    (advice,) = document["advice"]
    kept = [change for change in advice["changes"] if change["recommended"]]
    assert {"fq_codel, shaped to 7.6mbit", "cake, shaped to 7.6mbit"} <= {it["change"] for it in kept}
    assert kept == advice["changes"][: len(kept)]
    for change in kept:
        assert change["ping_p95_ms"] < 0.8 * advice["as_found"]["ping_p95_ms"]
        assert change["goodput_bps"] > 0.85 * advice["as_found"]["goodput_bps"]
    assert document["verdict"].endswith(f"Best change: {kept[0]['change']}.")
    (lossy,) = diagnosed("lossy --rate 50mbit")["advice"]
    assert [change["recommended"] for change in lossy["changes"]] == [True, False]
    assert lossy["changes"][1]["reason"].startswith("no gain: ")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("rwnd --rate 50mbit", 'sysctl -w net.ipv4.tcp_rmem="4096 131072 2097152"'),
        ("tbf.sh --rtt 20ms", "tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit"),
        ("slow.json cake.txt", "tc qdisc replace dev eth0 root cake bandwidth 8.94mbit"),
        ("lossy --rate 50mbit", "sysctl -w net.ipv4.tcp_congestion_control=bbr"),
        ("policed", "tc qdisc add dev eth0 parent 1:10 fq_codel"),
        ("--path 'home DSL'", "tc qdisc replace dev eth1 root cake bandwidth 9.84mbit"),
        ("--path cable", "tc qdisc replace dev eth0 root cake bandwidth 9.5mbit"),
    ],
)
def test_the_command_of_a_change(diagnosed: Any, line: str, command: str) -> None:
    changes = [change for advice in diagnosed(line)["advice"] for change in advice["changes"]]
    assert any(command in change["commands"] and change["recommended"] for change in changes), changes


def test_a_goodput_is_not_promised_without_the_rate(diagnosed: Any) -> None:
    document = diagnosed("lossy")
    assert document["advice"] == []
    assert document["not_tried"][0].startswith("random_loss: no run without the rate")


def test_a_capture_that_shows_the_rate_needs_none_on_the_command_line(diagnosed: Any) -> None:
    (advice,) = diagnosed("rwnd")["advice"]
    assert "--rate 50mbit --rtt 60ms" in advice["as_found"]["compare"]
    assert advice["changes"][0]["goodput_bps"] > 40e6
    (said,) = diagnosed("rwnd --rate 20mbit")["contradictions"][:1]
    assert "shows a bottleneck of 50.0 Mbit/s, not of 20 Mbit/s" in said


def test_a_policer_has_the_rate_and_the_burst_of_its_losses(diagnosed: Any) -> None:
    document = diagnosed("policed")
    (finding,) = (finding for finding in document["findings"] if finding["name"] == "policer")
    assert abs(finding["figures"]["policer_bps"] / 5e6 - 1) < 0.05
    assert abs(finding["figures"]["burst_bytes"] / 60e3 - 1) < 0.1
    (advice,) = document["advice"]
    assert " --queue 'police rate 5mbit burst " in advice["as_found"]["compare"]


def test_a_printed_comparison_gives_the_same_figures(diagnosed: Any, tmp_path: Path) -> None:
    (advice,) = diagnosed("bloat --rate 8mbit")["advice"]
    for row in (advice["as_found"], advice["changes"][0]):
        words = shlex.split(row["compare"])[1:]
        ended = CliRunner().invoke(
            app, [*words, "--json", "--no-report", "--out", str(tmp_path / row["run"])]
        )
        (run,) = json.loads(ended.stdout)["runs"]
        assert sum(flow["goodput_bps"] for flow in run["flows"]) == row["goodput_bps"]
        assert run["probes"][0]["rtt_ms"]["p95"] == row["ping_p95_ms"]


def test_contradictions_are_told(diagnosed: Any) -> None:
    (said,) = diagnosed("tbf.sh sqm.sh")["contradictions"]
    assert "10 Mbit/s" in said
    assert "8 Mbit/s" in said
    (said,) = diagnosed("sqm.sh clean.json")["contradictions"]
    assert "it took another way" in said
    assert diagnosed("idle.txt policed")["contradictions"] == [], "two hosts are not compared"
    (said,) = diagnosed("near.txt policed")["contradictions"]
    assert "another path, or a queue that was never empty" in said
    assert diagnosed("tbf.sh idle.txt")["contradictions"] == []


def test_no_advice_where_the_model_does_not_reproduce_what_was_measured(diagnosed: Any) -> None:
    document = diagnosed("tbf.sh bloat")
    assert document["advice"] == []
    (reason,) = document["not_tried"]
    assert re.search(r"the model of the path has a goodput of .* Mbit/s, and .* Mbit/s were measured", reason)
    for line in ("bloat --rate 8mbit", "lossy --rate 50mbit", "rwnd --rate 50mbit", "policed"):
        document = diagnosed(line)
        (advice,) = document["advice"]
        goodput = max(it["value"] for it in document["evidence"] if it["name"] == "goodput_bps")
        assert abs(advice["as_found"]["goodput_bps"] / goodput - 1) <= 0.15
        for change in advice["changes"]:
            least = goodput if advice["complaint"] == "goodput" else 0.85 * goodput
            assert not change["recommended"] or change["goodput_bps"] >= least


def test_the_text_fits_a_terminal_and_tells_everything(diagnosed: Any) -> None:
    for document in everything(diagnosed):
        text = console.text(document)
        free = [
            line for line in text.splitlines() if not re.match(r" {4,}\S|.*(/|-{2}queue|HOST|router)", line)
        ]
        assert max(map(len, free)) <= console.WIDTH
        flat = " ".join(text.split())
        for finding in document["findings"] + document["unknown"]:
            assert " ".join(finding["sentence"].split()) in flat
        for advice in document["advice"]:
            for change in advice["changes"]:
                assert (
                    all(" ".join(command.split()) in flat for command in change["commands"])
                    or not change["recommended"]
                )


def test_the_same_bytes_twice(files: dict[str, Path]) -> None:
    words = [str(files["bloat"]), str(files["idle.txt"])]
    ended = [CliRunner().invoke(app, ["diagnose", *words]) for _ in range(2)]
    assert ended[0].stdout == ended[1].stdout
    assert ended[0].exit_code == 0


def test_out_has_the_document_and_a_report_of_each_run(files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "made" / "out"
    words = [str(files["policed"]), "--addresses", "--out", str(out)]
    document = told(words)
    assert json.loads((out / "diagnosis.json").read_text()) == document
    runs = [advice["as_found"]["run"] for advice in document["advice"]]
    runs += [change["run"] for advice in document["advice"] for change in advice["changes"]]
    assert sorted(runs) == sorted(folder.name for folder in (out / "runs").iterdir())
    assert all((out / "runs" / run / "report.html").exists() for run in runs)
    again = CliRunner().invoke(app, ["diagnose", *words])
    assert "a folder that does not exist yet" in str(again.exception)


def test_out_without_runs_has_the_document(files: dict[str, Path], tmp_path: Path) -> None:
    document = told([str(files["idle.txt"]), "--addresses", "--out", str(tmp_path / "out")])
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["diagnosis.json"]
    assert json.loads((tmp_path / "out" / "diagnosis.json").read_text()) == document


def test_pings_within_flent_are_idle_before_and_loaded_during_the_flow(tmp_path: Path) -> None:
    origin = 1_000_000_000.0
    pings = [(at / 5, 20.0 if at < 25 else 120.0) for at in range(100)]
    rates = [(5 + at / 5, 8.0) for at in range(1, 74)]
    document = {
        "version": 4,
        "metadata": {"NAME": "tcp_1up", "T0": "2001-09-09T01:46:40.000000Z", "HOST": "b", "LOCAL_HOST": "a"},
        "x_values": [0.1],
        "results": {"TCP upload": [8.0], "Ping (ms) ICMP": [50.0]},
        "raw_values": {
            "TCP upload": [{"t": origin + at, "dur": 0.2, "val": rate} for at, rate in rates],
            "Ping (ms) ICMP": [
                {"t": origin + at + trip / 1e3, "val": trip, "seq": number}
                for number, (at, trip) in enumerate(pings, 1)
            ],
        },
    }
    file = tmp_path / "tcp_1up.flent"
    file.write_text(json.dumps(document))
    said = told([str(file)])
    (finding,) = (it for it in said["findings"] if it["name"] == "bufferbloat")
    assert finding["certainty"] == "certain"
    assert (finding["figures"]["idle_rtt_ms"], finding["figures"]["rtt_p50_ms"]) == (20.0, 120.0)


def test_captures_at_both_ends_tell_where_packets_were_lost_and_waited(diagnosed: Any) -> None:
    document = diagnosed("both-lossy-s1 both-lossy-d")
    (loss,) = (finding for finding in document["findings"] if "random_loss" in finding["causes"])
    assert loss["figures"]["lost_between"] == loss["figures"]["lost"] > 5
    assert "packets were lost between the captures" in loss["sentence"]
    (bloat,) = diagnosed("both-bloat-s1 both-bloat-d")["findings"]
    assert bloat["causes"] == ["bufferbloat"], "not the other direction"
    assert bloat["sentence"].endswith("The captures at two points show the queue in the data's direction")


def test_listings_of_classes_give_the_rate(diagnosed: Any) -> None:
    facts = {fact["name"]: fact for fact in diagnosed("htb.txt")["evidence"]}
    assert facts["rate_bps"]["value"] == 10_000_000
    assert facts["queue"]["value"] == "htb with pfifo limit 1000p"


POLICING = Path(__file__).parents[2] / "shared" / "captures" / "policing"


@pytest.mark.skipif(not POLICING.is_dir(), reason=f"{POLICING} is not here")
def test_real_captures_of_policers_shapers_and_random_loss() -> None:
    """The make of each is in its name."""
    expected = {
        "policer": {"policer"},
        "loss": {"random_loss"},
        "shaper": {"bufferbloat", "fifo", "application"},
    }
    expected["shaper"] |= {"slow_start_overshoot"}
    named = 0
    files = sorted(POLICING.glob("*.xz"))
    for file in files:
        make = "loss" if "LOSS=0%" not in file.name else "policer" if "PCIR" in file.name else "shaper"
        result = findings.findings(evidence.gathered(sources.observed([file], quiet=True)))
        wrong = [it for it in result if it.certainty != "cannot know"]
        right = [it for it in wrong if set(it.document()["causes"]) & expected[make]]
        assert all(it in right for it in wrong if it.certainty == "certain"), file.name
        named += bool(right)
    assert named == len(files)


def test_the_least_round_trip_of_ss_is_the_kernel_s_own(tmp_path: Path) -> None:
    socket = "ESTAB 0 302 10.0.0.1:52320 10.0.0.2:5998"
    lines = []
    for at in range(20):
        lines += [f"{1795386282 + at}.5", socket]
        words = (
            f"cubic rto:204 rtt:{140 + at % 2}.5/0.1 mss:1448 cwnd:114 bytes_acked:{at * 900_000} minrtt:20.1"
        )
        lines.append(f"\t {words} retrans:0/{at}")
    file = tmp_path / "ss.txt"
    file.write_text("\n".join(lines) + "\n")
    assert certainties(told([str(file)])) == {"bufferbloat": "certain"}
    file.write_text("\n".join(line.replace(" minrtt:20.1", "") for line in lines) + "\n")
    assert "random_loss" not in certainties(told([str(file)])), (
        "smoothed values alone do not show an empty queue"
    )


def test_nothing_is_promised_where_a_file_has_no_goodput_or_more_losses_than_segments(tmp_path: Path) -> None:
    file = tmp_path / "odd.json"
    file.write_text(iperf3(9e6, 23.0, 21.0, 1_000_000))
    assert "random_loss" not in certainties(told([str(file)]))
    file.write_text(iperf3(0.0, 170.0, 21.0, 0))
    document = told([str(file)])
    assert (document["advice"], certainties(document)) == ([], {"outage": "certain"})


def test_the_algorithm_of_a_file_is_what_runs(files: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "reno.json"
    file.write_text(iperf3(9e6, 170.0, 21.0, 40, "reno", 80.0))
    (advice,) = told([str(file)])["advice"]
    assert advice["as_found"]["compare"].endswith(" reno")
    document = told([str(file), "--sender-algorithm", "vegas"])
    assert document["advice"] == [], "vegas does not fill that buffer"


def test_the_thresholds_are_those_that_the_page_names() -> None:
    for value in (
        f"{evidence.BLOAT_MS:g} ms",
        f"{loss_causes.LOSS_SHARE * 100:g} %",
        f"{loss_causes.QUEUE_MS:g} ms",
        f"{limits.WINDOW_SHARE * 100:g} %",
    ):
        assert value in PAGE


PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "diagnose.md").read_text()
BLOCKS = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHOWN = [
    (block, follower)
    for (kind, block), (next_kind, follower) in pairwise(BLOCKS)
    if kind == "sh" and next_kind == "text"
]


@pytest.mark.parametrize("at", range(3))
def test_the_page_shows_what_its_commands_print(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(SHOWN) == 3
    script = next(block for kind, block in BLOCKS if block.startswith("# router.sh\n"))
    Path("router.sh").write_text(script.partition("\n")[2])
    typed, printed = SHOWN[at]
    for line in typed.splitlines():
        ended = CliRunner().invoke(app, shlex.split(line)[1:])
        assert ended.exit_code == 0, ended.output
    assert ended.stdout == printed


def test_each_finding_has_a_row_on_the_page() -> None:
    rules = PAGE.split("\n## Rules\n", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"^\| `(\w+)` \|", rules, re.MULTILINE)) == set(walk.TITLES) | {AMBIGUOUS}
