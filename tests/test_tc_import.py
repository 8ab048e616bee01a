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

from dragstrip import cli
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
