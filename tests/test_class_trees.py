"""Class trees on a path: the page's example, shares of classes, what is refused, and scripts with classes and filters."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragstrip import cli
from dragstrip.engines.agent.kernels import without_a_kernel
from tools.tree_agreement import trees

PAGE = (Path(__file__).parents[1] / "docs" / "how-to" / "class-trees.md").read_text()
(EXAMPLE,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HEADERS = 1448 / 1514


def dragstrip(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def goodputs(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[float]:
    """Mbit/s of each flow."""
    monkeypatch.chdir(folder)
    Path("mine.toml").write_text(text)
    status, _, err = dragstrip(["run", "mine.toml", "--out", "out", "--json"], monkeypatch, capsys)
    assert status == 0, err
    document: dict[str, Any] = json.loads(Path("out/result.json").read_text())
    (run,) = document["runs"]
    return [flow["goodput_bps"] / 1e6 for flow in run["flows"]]


def test_the_pages_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    voice, other, background = goodputs(EXAMPLE, tmp_path, monkeypatch, capsys)
    assert [voice, other] == pytest.approx([3.333 * HEADERS, 5.0 * HEADERS], rel=0.04)
    # Its own rate, and what the others leave while their windows are small.
    assert 1.667 * HEADERS * 0.99 < background < 1.667 * HEADERS * 1.15
    assert voice + other + background == pytest.approx(10 * HEADERS, rel=0.01)


def test_a_mistake_names_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(EXAMPLE.replace("ceil 3333kbit", "ceil 3333kb1t"))
    status, _, err = dragstrip(["run", "mine.toml", "--out", "out"], monkeypatch, capsys)
    assert status == 2
    for part in ("path.queue", "3333kb1t", "classid 1:11"):
        assert part in err
    assert not Path("out").exists()


def test_a_dscp_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["compare", "--rate", "10mbit", "--rtt", "40ms", "cubic:dscp=AF99"]
    status, _, err = dragstrip(words, monkeypatch, capsys)
    assert status == 2
    assert "DSCP" in err


SCRIPT = """
DEV=eth0
UP=8000
tc qdisc del dev $DEV root 2>/dev/null
tc qdisc add dev $DEV root handle 1: htb default 12
tc class add dev $DEV parent 1: classid 1:1 htb rate ${UP}kbit
tc class add dev $DEV parent 1:1 classid 1:11 htb rate 2000kbit ceil ${UP}kbit prio 1
tc class add dev $DEV parent 1:1 classid 1:12 htb rate 6000kbit ceil ${UP}kbit prio 2
tc qdisc add dev $DEV parent 1:11 handle 110: fq_codel
tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:11
tc filter add dev $DEV parent 1: protocol ipv6 prio 2 u32 match ip6 priority 0xb8 0xfc flowid 1:11
"""


def test_a_script_with_filters_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("router.sh").write_text(SCRIPT)
    status, out, err = dragstrip(["tc-import", "router.sh"], monkeypatch, capsys)
    assert status == 0, err
    assert "IPv4" in out
    path = out[out.index("[path]") :]
    queue = tomllib.loads(path)["path"]["queue"]
    assert queue.count("\ntc ") == 6
    flows = '\n[[flows]]\ncc = "cubic:dscp=EF"\n\n[[flows]]\ncc = "cubic"\n'
    text = f'duration = "20s"\n{path}\nrate = "100mbit"\nrtt = "40ms"\n{flows}'
    shares = goodputs(text, tmp_path, monkeypatch, capsys)
    assert shares == pytest.approx([2.0 * HEADERS, 6.0 * HEADERS], rel=0.05)


def test_marks_need_a_firewall_in_front_of_the_tree() -> None:
    (tree,) = trees("simple-qos-up")
    assert not without_a_kernel(tree.scenario, ("cubic",), "linux-6")
    in_a_lab = without_a_kernel(tree.scenario, ("cubic",), "linux-6", firewall=False)
    assert [refusal.value for refusal in in_a_lab] == ["a filter by mark", "1", "2", "3"]
    police = {"kind": "police", "rate_bps": 5_000_000, "burst_bytes": 20_000, "mtu_bytes": 2047}
    links = [
        {**link, "qdisc": {**police, "leaf": link["qdisc"]}} if link["qdisc"]["kind"] == "tc" else link
        for link in tree.scenario["links"]
    ]
    (refusal,) = without_a_kernel({**tree.scenario, "links": links}, ("cubic",), "linux-6")
    assert refusal.value == "filters by mark behind a policer"
    assert "r-d" in refusal.field
