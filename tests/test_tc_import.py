"""`dragstrip tc-import`: the page's example gives the page's output, and what is printed is taken by `compare`."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from dragstrip import cli, run
from dragstrip.experiment import types

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "compare.md").read_text()
SECTION = PAGE.split("## From a router's tc commands\n", 1)[1].split("\n## ", 1)[0]
SCRIPT, COMMAND, OUTPUT = re.findall(r"^```\w*\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)[:3]


def dragstrip(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, ""), words
    return out


def test_the_pages_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("router.sh").write_text(SCRIPT)
    words = shlex.split(COMMAND)[1:]
    assert words == ["tc-import", "router.sh"]
    assert dragstrip(words, monkeypatch, capsys) == OUTPUT
    told = json.loads(dragstrip([*words, "--json"], monkeypatch, capsys))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCRIPT.encode())))
    piped = json.loads(dragstrip(["tc-import", "-", "--json"], monkeypatch, capsys))
    assert piped == {**told, "file": "standard input"}
    assert [(queue["device"], queue["direction"]) for queue in told["queues"]] == [
        ("eth0", "out"),
        ("eth0", "in"),
    ]


def test_what_is_printed_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = [line.strip() for line in OUTPUT.splitlines() if line.startswith("  --")]
    assert len(printed) == 2
    for options in printed:
        rate = [] if "--rate" in options else ["--rate", "1gbit"]
        words = ["compare", *rate, "--rtt", "40ms", *shlex.split(options), "cubic", "--show"]
        shown = tomllib.loads(dragstrip(words, monkeypatch, capsys))
        assert shown["path"]["queue"] == shlex.split(options)[-1]
    fields = tomllib.loads(OUTPUT[OUTPUT.index("[path]") :])["path"]
    flows = [{"cc": "cubic"}]
    path = {"rate": "1gbit", "rtt": "40ms", **fields}
    assert types.Experiment.build({"duration": "1s", "path": path, "flows": flows})


def test_what_stands_in_front_of_a_queue_is_the_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.sh").write_text(
        '#!/bin/sh\nset -e\necho "$(date)"\n'
        "ip netns exec r1 tc qdisc add dev r1-eth0 root handle 1: netem delay 20ms loss 0.1%\n"
        "ip netns exec r1 tc qdisc add dev r1-eth0 parent 1:1 handle 10: tbf rate 5mbit burst 8kb latency 50ms\n"
    )
    printed = dragstrip(["tc-import", "lab.sh"], monkeypatch, capsys)
    options = next(line for line in printed.splitlines() if line.startswith("  --"))
    words = ["compare", "--rate", "1gbit", *shlex.split(options), "--duration", "1s", "cubic", "--show"]
    shown = tomllib.loads(dragstrip(words, monkeypatch, capsys))
    assert (shown["path"]["rtt"], shown["path"]["loss"]) == ("20ms", "0.1%")
    told = json.loads(dragstrip(["tc-import", "lab.sh", "--json"], monkeypatch, capsys))
    assert [skipped["line"] for skipped in told["skipped"]] == [3]
    assert [queue["device"] for queue in told["queues"]] == ["r1-eth0"]


def test_a_netem_s_limit_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """144 Mbit/s times 300 ms are 3,600 packets, and netem holds 1,000 (`limit` in tc-netem(8))."""
    monkeypatch.chdir(tmp_path)
    Path("router.sh").write_text(
        "tc qdisc add dev eth0 root handle 1: netem delay 300ms\n"
        "tc qdisc add dev eth0 parent 1: handle 10: tbf rate 144mbit burst 128kb limit 10mb\n"
    )
    printed = dragstrip(["tc-import", "router.sh"], monkeypatch, capsys)
    options = next(line for line in printed.splitlines() if line.startswith("  --"))
    words = ["compare", "--rate", "1gbit", *shlex.split(options), "--duration", "1s", "cubic", "--show"]
    shown = tomllib.loads(dragstrip(words, monkeypatch, capsys))
    assert shown["path"]["rtt"] == "0ms"
    assert {"limit 1000", "delay 300ms"} <= set(re.findall(r"(?:limit|delay) \w+", shown["path"]["netem"]))


CBQ = """#!/bin/sh
UP=$(($1 * 9 / 10))
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: cbq avpkt 1000 bandwidth 10mbit
tc class add dev eth0 parent 1: classid 1:1 cbq rate ${UP}kbit allot 1500 prio 5 bounded isolated
tc class add dev eth0 parent 1:1 classid 1:10 cbq rate ${UP}kbit allot 1600 prio 1 avpkt 1000
tc class add dev eth0 parent 1:1 classid 1:20 cbq rate $((UP / 2))kbit allot 1600 prio 2 avpkt 1000
tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10
tc filter add dev eth0 parent 1:0 protocol ip prio 10 u32 match ip tos 0x10 0xff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 18 u32 match ip dst 0.0.0.0/0 flowid 1:20
"""
TABLES = """#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
for host in 7 8; do
    tc class add dev eth0 parent 1:1 classid 1:1$host htb rate ${host}00kbit ceil 10mbit
done
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 10mbit
tc filter add dev eth0 parent 1:0 prio 5 protocol ip u32
tc filter add dev eth0 parent 1:0 prio 5 handle 2: protocol ip u32 divisor 256
for host in 7 8; do
    tc filter add dev eth0 protocol ip parent 1:0 prio 5 u32 ht 2:$(printf %x $host): match ip dst 10.0.0.$host flowid 1:1$host
done
tc filter add dev eth0 protocol ip parent 1:0 prio 5 u32 ht 800:: match ip dst 10.0.0.0/24 \\
    hashkey mask 0x000000ff at 16 link 2:
"""
BASIC = """tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
tc class add dev eth0 parent 1: classid 1:30 htb rate 2mbit
tc filter add dev eth0 parent 1: basic match 'meta(priority eq 6)' or 'cmp(u16 at 2 layer 1 lt 100)' classid 1:10
"""


@pytest.mark.parametrize(
    ("script", "words", "parts"),
    [
        (CBQ, ["10000"], ["htb rate 9mbit ceil 9mbit", "prio 1", "htb rate 4.5mbit ceil 9mbit", "sfq"]),
        (TABLES, [], ["match ip dst 10.0.0.0/24 match u32 0x00000007 0x000000ff at 16", "classid 1:17"]),
        (BASIC, [], ["basic match 'meta(priority eq 6) or cmp(u16 at 2 layer 1 mask 0xffff lt 0x64)'"]),
        (
            "tc qdisc add dev eth0 root nfq_codel quantum 500\n",
            [],
            ["fq_codel limit 1024 flows 1024 quantum 500"],
        ),
    ],
)
def test_scripts_of_other_kinds_are_trees_that_run(
    script: str,
    words: list[str],
    parts: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """cbq, tables of u32, basic and nfq_codel: the printed path is read and raced on."""
    monkeypatch.chdir(tmp_path)
    Path("router.sh").write_text(script)
    document = json.loads(dragstrip(["tc-import", "router.sh", "--json", *words], monkeypatch, capsys))
    (queue,) = document["queues"]
    for part in parts:
        assert part in queue["queue"]
    (path,) = document["paths"]
    fields = {"rate": "20mbit", "rtt": "20ms"} | path["path"]
    flows = [{"cc": "cubic", "dscp": "AF42"}, {"cc": "cubic"}]
    experiment = types.Experiment.build({"duration": "2s", "path": fields, "flows": flows})
    result = run(experiment)
    assert all(flow.goodput_bps and flow.goodput_bps > 0 for flow in result.flows)


def test_a_cbq_says_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("router.sh").write_text(CBQ)
    printed = dragstrip(["tc-import", "router.sh", "10000"], monkeypatch, capsys)
    assert "cbq (line 4) is read as htb" in " ".join(printed.split())


@pytest.mark.parametrize(
    "text",
    [
        'name = "x"\n[path]\nrate = "1mbit"\n',
        '[path]\nrate = "1mbit"\n',
        'title = "x"\nsource = "a report"\n[[links]]\n',
        "rate: 1mbit\n",
    ],
)
def test_a_file_that_is_no_script_has_one_clear_line(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "path.toml").write_text(text)
    monkeypatch.setattr(sys, "argv", ["dragstrip", "tc-import", str(tmp_path / "path.toml")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert "script of tc commands: " in told
    assert "--set" not in told
    assert told.count("\n") == 1
