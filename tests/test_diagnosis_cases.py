"""`diagnose` on files of people, each with what is right about it; orders of files; commands on a router."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip.analysis.diagnosis import loss_causes, observations, sources, walk
from dragstrip.analysis.diagnosis.evidence import gathered
from dragstrip.analysis.diagnosis.finding import CAUSES, Finding
from dragstrip.analysis.diagnosis.observations import COMMAND_LINE, Observations
from dragstrip.analysis.diagnosis.privacy import without_addresses
from readers.test_reports import CLOUDFLARE, OOKLA

CASES = Path(__file__).parent / "diagnosis"


def diagnosed(*names: str, trials: bool = False, **race: Any) -> dict[str, Any]:
    return walk.diagnose([CASES / name for name in names], race, quiet=True, trials=trials)


def causes(document: dict[str, Any]) -> dict[str, list[str]]:
    for finding in document["findings"]:
        assert set(finding["causes"]) <= set(CAUSES)
    return {finding["name"]: finding["causes"] for finding in document["findings"]}


def test_a_burst_at_the_beginning_is_slow_start_s_and_no_noisy_link() -> None:
    document = diagnosed("burst-then-clean/load.json")
    (finding,) = document["findings"]
    assert finding["causes"] == ["slow_start_overshoot"]
    assert finding["certainty"] == "likely"
    assert finding["figures"]["first_share"] == 1.0
    assert 35_000 < finding["figures"]["loss_free"] < 45_000


def test_no_change_is_recommended_whose_run_is_below_what_was_measured() -> None:
    document = diagnosed("burst-then-clean/load.json", trials=True, rate="100mbit")
    assert document["advice"] == []
    assert "Best change" not in document["verdict"]
    bloat = diagnosed("two-iperf3/a.json", trials=True, rate="310mbit")
    for advice in bloat["advice"]:
        for change in advice["changes"]:
            assert not change["recommended"] or change["goodput_bps"] >= 0.85 * 300e6


def test_a_standing_window_is_not_nothing() -> None:
    for race in ({"rate": "1gbit"}, {}):
        document = diagnosed("window-limited/load.json", **race)
        (finding,) = document["findings"]
        assert finding["name"] == "ambiguous"
        assert {"receive_window", "send_buffer"} <= set(finding["causes"])
        assert ("small_queue_limit" in finding["causes"]) == (not race)
        assert 2.9e6 < finding["figures"]["flight_bytes"] < 3.2e6


def test_two_runs_from_two_hosts_have_the_same_verdict_in_either_order() -> None:
    document = diagnosed("two-iperf3/a.json", "two-iperf3/b.json")
    assert document == diagnosed("two-iperf3/b.json", "two-iperf3/a.json")
    assert set(causes(document)) == {"ambiguous"}
    (alone,) = diagnosed("two-iperf3/b.json")["findings"]
    (idle,) = (fact for fact in alone["evidence"] if fact["name"] == "idle_rtt_ms")
    assert idle["value"] == 51.0
    for finding in document["findings"]:
        trips = [fact for fact in finding["evidence"] if "rtt" in fact["name"]]
        assert len({fact["file"] for fact in trips}) == 1, "round trips of two hosts are compared"


def test_a_marked_ping_is_not_the_line() -> None:
    document = diagnosed("flent-marked-ping/rrul.flent.gz")
    (finding,) = document["findings"]
    assert (finding["name"], finding["certainty"]) == ("marked_class", "certain")
    assert finding["figures"]["series"] == "Ping (ms) UDP BK"
    assert finding["figures"]["excess_p50_ms"] < 5


@pytest.mark.parametrize(
    "names",
    [
        ("class-listing/listing.txt",),
        ("class-listing/qdisc.txt", "class-listing/class.txt"),
        ("class-listing/class.txt", "class-listing/qdisc.txt"),
    ],
)
def test_classes_that_borrow_are_limited_by_their_ceiling(names: tuple[str, ...]) -> None:
    document = diagnosed(*names, rtt="20ms")
    facts = {fact["name"]: fact["value"] for fact in document["evidence"]}
    assert facts["rate_bps"] == 4_636_000
    assert facts["dropped"] == 110_000
    assert facts["passed_bps"] == 4_467_000
    assert abs(facts["dropped_share"] - 0.1375) < 0.001
    assert {finding["name"] for finding in document["unknown"]}.isdisjoint({"rate", "queue_settings"})


def test_a_listing_explains_what_was_retransmitted_behind_it() -> None:
    document = diagnosed("class-listing/listing.txt", "class-listing/load.json")
    assert causes(document) == {"aqm": ["aqm"]}
    assert document["contradictions"] == []
    document = diagnosed("class-listing/listing.txt", rtt="20ms", rate="10mbit")
    assert causes(document)["shaper_below_line"] == ["shaper_below_line"]


@pytest.mark.parametrize("queue", ["pfifo limit 1000", "pfifo", "pfifo limit 1001"])
def test_the_default_queue_in_words_is_a_queue(queue: str) -> None:
    document = diagnosed(rate="10mbit", rtt="20ms", queue=queue)
    certainties = {finding["name"]: finding["certainty"] for finding in document["findings"]}
    assert certainties == {"bufferbloat": "likely", "fifo": "certain"}


@pytest.mark.parametrize("name", ["router.sh", "listing.txt", "listing2.txt"])
def test_the_default_queue_in_files_is_a_fifo(name: str) -> None:
    assert "fifo" in causes(diagnosed(f"pfifo-1000/{name}"))


def test_no_order_of_files_changes_anything(tmp_path: Path) -> None:
    names = ["class-listing/qdisc.txt", "class-listing/class.txt", "two-iperf3/a.json", "two-iperf3/b.json"]
    names.append("flent-marked-ping/rrul.flent.gz")
    documents = [diagnosed(*order) for order in permutations(names)]
    assert all(document == documents[0] for document in documents)


def test_the_course_of_losses_is_that_of_its_intervals() -> None:
    drawn = np.random.default_rng(2)
    for _ in range(500):
        counts = drawn.integers(0, 4, drawn.integers(12, 60)) * (drawn.random() < 0.9)
        trip_ms = float(drawn.uniform(5.0, 400.0))
        course = loss_causes.course(flow(counts.astype(np.float64), 1000.0, trip_ms))
        if not counts.sum():
            assert course is None
            continue
        assert course is not None
        assert course.losses == counts.sum()
        assert 0 < course.first_share <= 1
        assert 0 <= course.run_probability <= 1
        assert course.loss_free <= 1000.0 * len(counts)


def flow(losses: Any, segments: float, trip_ms: float) -> observations.ObservedFlow:
    """A flow of iperf3's with an interval a second."""
    count = len(losses)
    empty = np.full(count, np.nan)
    size = np.full(count, segments * observations.PAYLOAD_BYTES)
    series = observations.Series(np.arange(1.0, count + 1), size, losses, empty, empty, empty)
    return observations.ObservedFlow(
        "f",
        "f",
        "a",
        int(size.sum()),
        float(count),
        float(size.sum() * 8 / count),
        retransmitted=int(losses.sum()),
        rtt_min_ms=trip_ms,
        rtt_p50_ms=trip_ms,
        series=series,
    )


@pytest.mark.parametrize("share", [0.002, 0.01, 0.03])
def test_independent_losses_are_taken_for_independent(share: float) -> None:
    drawn = np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        course = loss_causes.course(flow(drawn.binomial(2000, share, 30).astype(float), 2000.0, 30.0))
        assert course is not None
        refused += not course.independent
    assert refused <= 3


def test_a_burst_and_then_nothing_is_not_independent() -> None:
    course = loss_causes.course(flow(np.array([300.0, 40.0] + [0.0] * 20), 2000.0, 30.0))
    assert course is not None
    assert course.early
    assert not course.independent


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fq_codel", True),
        ("fq_codel noecn", False),
        ("codel", False),
        ("codel ecn", True),
        ("cake bandwidth 3mbit", True),
        ("dualpi2", True),
        ("htb rate 8mbit leaf fq_codel", True),
        ("pfifo limit 100", False),
    ],
)
def test_a_discipline_marks_as_the_simulator_s_does(words: str, expected: bool) -> None:
    kind = words.split()[-1] if "leaf" in words else words.split()[0]
    queue = observations.ObservedQueue(COMMAND_LINE, "", "", words, words, kind)
    assert queue.marks is expected


BORROWING = """tc qdisc add dev eth1 root handle 1: htb default 12
tc class add dev eth1 parent 1: classid 1:1 htb rate 4700kbit ceil 4700kbit
tc class add dev eth1 parent 1:1 classid 1:12 htb rate 783kbit ceil 4636kbit prio 2
tc qdisc add dev eth1 parent 1:12 pfifo limit 600
"""
TBF = "tc qdisc add dev eth1 root handle 1: tbf rate 10mbit burst 32kbit latency 400ms\n"
NAMESPACE = "ip link add eth1 type veth peer name eth2 && ip link set eth1 up && ip link set eth2 up"


def in_a_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script on a router with an interface eth1, in a network namespace of its own."""
    line = f"{NAMESPACE} || exit 9\n{script}"
    words = [shutil.which("unshare") or "unshare", "--net", "sh", "-c", line]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def router() -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "ip", "tc"))):
        pytest.skip("needs root, unshare, ip and tc")
    if in_a_namespace("tc qdisc add dev eth1 root handle 1: htb").returncode:
        pytest.skip("this kernel has no veth or no htb")


def missing(script: str) -> str | None:
    """The discipline that this kernel lacks, of those that the commands need."""
    kinds = {"cake", "fq_codel", "bfifo", "pfifo", "tbf"}
    needed = [kind for kind in sorted(kinds) if f" {kind}" in script]
    words = {"cake": "bandwidth 1mbit", "tbf": "rate 1mbit burst 4kb latency 9ms", "bfifo": "limit 9000"}
    for kind in needed:
        if in_a_namespace(f"tc qdisc add dev eth1 root {kind} {words.get(kind, '')}").returncode:
            return kind
    return None


@pytest.mark.parametrize("form", ["script", "listing"])
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("setup", ["router.sh", "borrowing", "tbf", "shaper above the line"])
def test_the_advice_works_on_the_router_that_it_is_for(
    router: None, tmp_path: Path, setup: str, at: int, form: str
) -> None:
    scripts = {"router.sh": (CASES / "router-advice" / "router.sh").read_text()}
    scripts |= {"borrowing": BORROWING, "tbf": TBF, "shaper above the line": SQM}
    script = scripts[setup]
    if lacks := missing(script):
        pytest.skip(f"this kernel has no {lacks}")
    ran = in_a_namespace(f"{script}\ntc -s qdisc show dev eth1\ntc -s class show dev eth1")
    assert ran.returncode == 0, ran.stderr
    if form == "script" and setup == "borrowing":
        pytest.skip("tc-import refuses classes that borrow")
    file = tmp_path / form
    file.write_text(script if form == "script" else ran.stdout)
    race: dict[str, Any] = {"rtt": "20ms"}
    if setup == "shaper above the line":
        race["rate"] = "7mbit"
    document = walk.diagnose([file], race, quiet=True)
    (advice,) = document["advice"]
    change = [it for it in advice["changes"] if any("tc " in line for line in it["commands"])][at]
    lines = [line.replace("dev eth0", "dev eth1") for line in change["commands"]]
    assert form == "listing" or lines == list(change["commands"]), "the interface is the script's"
    if lacks := missing("\n".join(lines)):
        pytest.skip(f"this kernel has no {lacks}")
    commands = "\n".join(lines)
    ran = in_a_namespace(
        f"{script}\nset -e\n{commands}\ntc -s qdisc show dev eth1\ntc -s class show dev eth1"
    )
    assert ran.returncode == 0, ran.stderr
    kind = change["change"].split()[0].rstrip(",")
    assert f"qdisc {kind} " in ran.stdout
    assert "qdisc pfifo " not in ran.stdout


SQM = """tc qdisc add dev eth1 root handle 1: htb default 10
tc class add dev eth1 parent 1: classid 1:10 htb rate 8mbit ceil 8mbit prio 3
tc qdisc add dev eth1 parent 1:10 pfifo limit 600
"""


def test_a_shaper_above_the_line_gets_a_rate_below_it(tmp_path: Path) -> None:
    file = tmp_path / "router.sh"
    file.write_text(SQM)
    document = walk.diagnose([file], {"rtt": "20ms", "rate": "7mbit"}, quiet=True)
    commands = [change["commands"] for advice in document["advice"] for change in advice["changes"]]
    assert [
        "tc class change dev eth1 parent 1: classid 1:10 htb rate 6.65mbit ceil 6.65mbit prio 3",
        "tc qdisc replace dev eth1 parent 1:10 fq_codel",
    ] in [list(lines) for lines in commands]


def test_a_diagnosis_without_trials_has_the_same_findings() -> None:
    whole = json.dumps(diagnosed("router-advice/router.sh", trials=True, rtt="20ms")["findings"])
    assert whole == json.dumps(diagnosed("router-advice/router.sh", rtt="20ms")["findings"])


@pytest.mark.parametrize(("document", "excess_ms"), [(OOKLA, 83.7), (CLOUDFLARE, 44.0)])
def test_a_speed_test_says_during_which_phase_it_waits(
    document: Any, excess_ms: float, tmp_path: Path
) -> None:
    """Before: no file has one of a busy path."""
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document))
    (finding,) = walk.diagnose([file], {}, quiet=True, trials=False)["findings"]
    assert finding["causes"] == ["bufferbloat", "bufferbloat_up", "ack_path"]
    assert "It was measured during upload" in finding["sentence"]
    assert "buffer of" not in finding["sentence"]
    name = "excess_mean_ms" if document is OOKLA else "excess_p50_ms"
    assert finding["figures"][name] == pytest.approx(excess_ms, abs=0.1)


def test_what_is_written_has_no_addresses_and_folders(tmp_path: Path) -> None:
    file = CASES.parent / "captures" / "cases" / "syn-unanswered.pcap"
    out, whole = tmp_path / "out", tmp_path / "whole"
    document = walk.diagnose([file], {}, quiet=True, trials=False, out=out)
    assert "10.0.0.9" in json.dumps(document)
    written = (out / "diagnosis.json").read_text()
    assert "10.0.0." not in written
    assert str(file.parent) not in written
    assert '"path": "syn-unanswered.pcap"' in written
    assert "host 1" in written
    walk.diagnose([file], {}, quiet=True, trials=False, out=whole, addresses=True)
    assert "10.0.0.9" in (whole / "diagnosis.json").read_text()


def test_hidden_addresses_keep_their_numbers() -> None:
    text = "10.0.0.2:5201 → [2001:db8::1]:80, version 1.2.3, at 12:30:05, 10.0.0.2"
    document = {
        "files": [{"path": "/srv/captures/a.pcap"}],
        "notes": [text, "/srv/captures/a.pcap: gw.example.net"],
    }
    hidden = without_addresses(document, ["gw.example.net"])
    assert hidden["notes"] == [
        "host 1:5201 → [host 2]:80, version 1.2.3, at 12:30:05, host 1",
        "a.pcap: host 3",
    ]


def test_a_policer_that_a_run_does_not_reproduce_is_not_certain() -> None:
    """The model of the path has another goodput than what was measured."""
    finding = Finding("policer", "A policer", "certain", {})
    assert walk._doubted(finding).certainty == "likely"
    assert {"policer"} <= walk.OF_MODELS
    assert "bufferbloat" not in walk.OF_MODELS, "a delay was measured, whatever a model says"


def test_a_long_queue_is_no_overshoot_into_a_short_buffer() -> None:
    """iperf3 behind PIE: one burst of losses at the beginning, while the RTT is 395 ms instead of 40 ms."""
    document = diagnosed("burst-then-clean/load.json")
    assert causes(document) == {"slow_start_overshoot": ["slow_start_overshoot"]}
    (flow,) = sources.observed([CASES / "burst-then-clean/load.json"]).flows
    assert flow.rtt_min_ms is not None
    late = replace(flow, rtt_p95_ms=flow.rtt_min_ms + 355.0)
    evidence = gathered(Observations(flows=[late]))
    losses = loss_causes.losses_of(evidence, late)
    assert losses is not None
    assert loss_causes.overshoot(losses) == "excluded"
    middle = replace(flow, from_start=False)
    losses = loss_causes.losses_of(gathered(Observations(flows=[middle])), middle)
    assert losses is not None
    assert loss_causes.overshoot(losses) == "excluded", "no slow start is in a file that begins behind it"
