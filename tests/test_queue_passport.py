"""The passport of a queue discipline: its rows replay, stand beside drop-tail, and say what is wrong with input."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.interop import scripts
from dragstrip.studies.passport import runs
from dragstrip.studies.passport.queues import suite, words
from dragstrip.studies.passport.queues.command import read_request
from dragstrip.studies.passport.queues.scenario import QueueSubject
from tools import queues

ROOT = Path(__file__).parents[1]
ONLY = "apps,sensitivity"


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A cache of these tests, so that what they keep is nobody else's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGSTRIP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick passport of two chapters of fq_codel."""
    folder = tmp_path_factory.mktemp("queue") / "fq_codel"
    dragstrip.passport(queue="fq_codel", quick=True, only=ONLY, out=folder)
    return folder


def command(*options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", "passport", *options], capture_output=True, text=True, check=False
    )
    assert ended.returncode == status, ended.stderr
    return ended


@pytest.mark.parametrize("queue", words.ALONE)
def test_every_row_of_every_discipline_can_be_planned(queue: str) -> None:
    rows = suite.rows(queue, suite.NAMES, quick=False)
    assert len({row.id for row in rows}) == len(rows) > 80
    for row in rows:
        plan = runs.planned(row.scenario, QueueSubject(queue))
        assert plan.runs, f"{row.id}: {plan.failure}"
        assert row.rule.source.startswith("RFC 7928 ")
        assert (row.rule.kind == "R") == (row.rule.text == "reported")
    assert {row.chapter for row in rows} >= set(suite.NAMES) - {"sensitivity"}


def test_the_discipline_is_at_the_bottleneck_and_scaled_in_its_rows_alone() -> None:
    row = next(
        row for row in suite.rows("codel", ["sensitivity"], False) if row.id.startswith("sensitivity-4")
    )

    def queue(words: str) -> dict[str, Any]:
        run = runs.planned(row.scenario, QueueSubject(words)).runs[0]
        qdisc = next(link["qdisc"] for link in run.scenario["links"] if link["name"] == "r-d")
        return dict(qdisc["leaf"])

    assert queue("codel")["target_ns"] == 20_000_000
    assert queue("codel target 2ms")["target_ns"] == 8_000_000
    assert queue("pfifo limit 1000")["limit_packets"] == 1000
    assert words.scaled("cake", 0.5) == "cake rtt 50000000ns"
    assert words.main_parameter("red limit 400kb avpkt 1000") is None


def first_run(row_id: str, queue: str) -> dict[str, Any]:
    row = next(row for row in suite.rows(queue, ["topology"], False) if row.id == row_id)
    return dict(runs.planned(row.scenario, QueueSubject(queue)).runs[0].scenario)


def test_half_of_the_flows_have_small_packets() -> None:
    hosts = {
        node["name"]: node
        for node in first_run("topology-sizes-ratio", "codel")["nodes"]
        if "mtu_bytes" in node
    }
    sizes = {name: host["mtu_bytes"] for name, host in hosts.items() if name.startswith("s")}
    assert sizes == {**{f"s{n}": 1500 for n in (1, 2, 3)}, **{f"s{n}": 500 for n in (4, 5, 6)}}


def test_both_directions_and_both_links_in_series_have_the_discipline() -> None:
    def kinds(row_id: str, queue: str) -> dict[str, Any]:
        links = first_run(row_id, queue)["links"]
        return {link["name"]: _leaf(link["qdisc"]) for link in links if _leaf(link["qdisc"])}

    ways = kinds("topology-both-ways-dropped", "codel")
    assert sorted(qdisc["kind"] for qdisc in ways.values()) == ["codel", "codel"]
    series = kinds("topology-series-dropped", "codel")
    assert {name: qdisc["kind"] for name, qdisc in series.items()} == {"l-m": "codel", "m-r": "codel"}
    behind = kinds("topology-series-behind-dropped", "codel")
    assert {name: qdisc["kind"] for name, qdisc in behind.items()} == {"l-m": "pfifo", "m-r": "codel"}
    tail = kinds("topology-series-dropped", "bfifo limit 1bdp")
    assert {qdisc["limit_bytes"] for qdisc in tail.values()} == {125_000}


def _leaf(qdisc: dict[str, Any]) -> dict[str, Any] | None:
    """The discipline below a shaper; None where there is no shaper."""
    leaf = qdisc.get("leaf")
    return None if leaf is None else dict(leaf)


SCRIPT = """\
#!/bin/sh
RATE=19
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate ${RATE}mbit
tc qdisc add dev eth0 parent 1:10 codel target 7ms
"""


def test_a_script_stands_for_its_one_discipline(tmp_path: Path) -> None:
    script = tmp_path / "router.sh"
    script.write_text(SCRIPT)
    made = json.loads(
        command(
            "--queue", str(script), "--quick", "--only", "rtt", "--json", "--out", str(tmp_path / "out")
        ).stdout
    )
    assert made["algorithm"].startswith("codel limit 1000 target 7ms")
    assert scripts.discipline("codel target 7ms") == "codel target 7ms"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (SCRIPT + "tc qdisc add dev eth1 root cake\n", ("one discipline", '--queue "codel', '--queue "cake')),
        ("tc qdisc del dev eth0 root\n", ("one discipline",)),
        ("tc qdisc add dev eth0 root fq_codel quantum $Q\n", ("line 1", "$Q", "tc-import")),
    ],
    ids=("several", "none", "a value that it lacks"),
)
def test_a_script_without_one_discipline_is_refused(
    text: str, parts: tuple[str, ...], tmp_path: Path
) -> None:
    script = tmp_path / "router.sh"
    script.write_text(text)
    error = command("--queue", str(script), "--out", str(tmp_path / "out"), status=2).stderr
    assert all(part in error for part in ("router.sh", *parts))
    assert not (tmp_path / "out").exists()


def test_a_script_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file"):
        dragstrip.passport(queue=str(tmp_path / "router.sh"))


def test_rows_with_ecn_are_those_of_disciplines_that_mark() -> None:
    def has_ecn(queue: str) -> bool:
        return any("-ecn-" in row.id for row in suite.rows(queue, ["rtt"], quick=False))

    assert {queue for queue in words.ALONE if has_ecn(queue)} == {"sfb", "dualpi2", "fq_codel", "cake"}
    assert has_ecn("codel ecn")


def test_fq_codel_keeps_short_flows_short_and_its_page_has_no_harm(made: Path) -> None:
    document = json.loads((made / "passport.json").read_text())
    rows = {row["id"]: row for row in document["rows"]}
    short = rows["apps-short-short-p95"]
    assert short["verdict"] == "better"
    assert short["value"] < 0.2 < short["baselines"]["bfifo limit 1bdp"]["value"]
    assert short["baselines"]["bfifo limit 1bdp"]["value"] < short["baselines"]["pfifo limit 1000"]["value"]
    assert short["rule"] == "no worse than both drop-tail queues"
    assert document["of"] == "queue"
    assert document["sentences"]["settings"].startswith("Settings: from half to twice its target")
    page = (made / "passport.html").read_text()
    assert "<h2>Harm</h2>" not in page
    assert "pfifo limit 1000 and bfifo limit 1bdp by more than 1 %" in page
    assert (made / "experiments/apps-all-call.toml").exists()


def test_a_replay_gives_the_figure_again(made: Path, tmp_path: Path) -> None:
    document = json.loads((made / "passport.json").read_text())
    row = next(row for row in document["rows"] if row["id"] == "sensitivity-2-utilisation")
    replay = [sys.executable, "-m", *shlex.split(row["replay"]), "--json", "--out", str(tmp_path / "out")]
    ended = subprocess.run(replay, capture_output=True, text=True, check=True)
    run = json.loads(ended.stdout)["runs"][0]
    arrived = sum(flow["bytes_received"] for flow in run["flows"])
    assert arrived * 8 / run["duration_s"] / 10e6 == pytest.approx(row["values"][0])
    assert "target 10000000ns" in row["replay"]


def test_an_unchanged_discipline_is_unchanged_against_its_passport(made: Path) -> None:
    file = made / "passport.json"
    again = dragstrip.passport(queue="fq_codel", quick=True, only=ONLY, against=file)
    assert again["against"]["unchanged"] == len(again.rows)
    with pytest.raises(BadInputError, match=r"of: got \'queue\', expected algorithm"):
        dragstrip.passport("reno", quick=True, only="theory", against=file)


def test_more_workers_give_the_same_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = []
    for workers in (1, 3):
        monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / str(workers)))
        documents.append(
            dragstrip.passport(queue="pie", quick=True, only="change", workers=workers).to_dict()
        )
    assert documents[0] == documents[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "ALGORITHM: is missing; or --queue QUEUE"),
        (("reno", "--queue", "fq"), "ALGORITHM: is not for --queue"),
        (("--queue", "fq", "--path", "cable"), "--path: is not for --queue"),
        (("--queue", "fq", "--engine", "vm"), "--engine: is not for --queue"),
        (("--queue", "fq_codle"), '--queue: got "fq_codle", expected a queue discipline'),
        (("--queue", "noqueue"), "--queue: got 'noqueue', expected a discipline that holds packets itself"),
        (("--queue", "fq", "--only", "rttt"), "--only: got 'rttt', expected chapters out of transport, rtt"),
    ],
)
def test_wrong_input_is_one_line(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ended = command(*options, "--out", str(tmp_path / "out"), status=2)
    assert message in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_page_of_all_disciplines_has_each_with_its_curve() -> None:
    page = (ROOT / "docs/reference/queues.md").read_text()
    for queue in words.ALONE:
        assert f"| [`{queue}`](#{queue.replace(' ', '-')}) |" in page
        assert f"\n## {queue}\n" in page
    curves = page.count("| 13 flows, main parameter times |")
    assert curves == sum(words.main_parameter(queue) is not None for queue in words.ALONE)
    assert all(head in page for _, head in queues.COLUMNS)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("bfifo limit 1b", "at least 1514b"),
        ("fq_codel quantum 0", "at least 1b"),
        ("100ms", "a discipline that holds packets itself"),
    ],
)
def test_words_that_no_row_can_run_are_refused_before_any_runs(queue: str, expected: str) -> None:
    with pytest.raises(BadInputError, match=expected) as refusal:
        read_request(queue, quick=True, only="rtt")
    assert refusal.value.field == "--queue"


def test_a_file_does_not_stand_for_a_discipline_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fq_codel").write_text("tc qdisc add dev eth0 root codel\n")
    assert scripts.discipline("fq_codel") == "fq_codel"
    assert scripts.discipline("./fq_codel").split()[0] == "codel"


def test_a_chapter_s_name_and_its_counts_are_apart(made: Path) -> None:
    from dragstrip.studies.passport import console

    document = json.loads((made / "passport.json").read_text())
    title = "sizes, directions, queues in series"
    document["chapters"][0]["title"] = title
    lines = console.text(document).splitlines()
    for chapter in document["chapters"]:
        (line,) = [line for line in lines if line.startswith(f"{chapter['title']} ")]
        assert line[len(title)] == " "
        assert line[len(title) + 1].isdigit()
