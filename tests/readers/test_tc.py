"""What `tc -s qdisc show` prints, read by `inspect`, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.interop import readers

TEXT = """qdisc noqueue 0: dev lo root refcnt 2
qdisc mq 0: dev eth1 root
 Sent 18446744073709551615 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc fq_codel 8001: dev eth0 parent 1:1 limit 10240p flows 1024 quantum 1514 target 5ms ecn drop_batch 64
 Sent 2143 bytes 21 pkt (dropped 3, overlimits 4 requeues 5)
 rate 0bit 0pps backlog 94Kb 65p requeues 0
  maxpacket 1514 drop_overlimit 1 new_flow_count 7 ecn_mark 9
  new_flows_len 0 old_flows_len 2
qdisc cake 8021: dev ifb0 root refcnt 2 bandwidth 100Mbit diffserv3 rtt 100ms raw overhead 0
 Sent 1000 bytes 10 pkt (dropped 1, overlimits 2 requeues 0)
 backlog 0b 0p requeues 0
 memory used: 12345b of 5000000b
 capacity estimate: 100Mbit

                   Bulk  Best Effort        Voice
  thresh       6250Kbit      100Mbit       25Mbit
  pk_delay          0us         12us          0us
  pkts                0           10            0
  drops               0            1            0
  marks               0            3            1
class htb 1:10 parent 1:1 leaf 10: prio 0 rate 1Mbit ceil 1Mbit burst 1600b cburst 1600b
 Sent 7 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
 lended: 1 borrowed: 0 giants: 0
qdisc red 3: dev eth2 root refcnt 2 limit 60Kb min 15Kb max 45Kb ecn
 Sent 10 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
  marked 12 early 3 pdrop 4 other 0
qdisc fq 4: dev eth3 root refcnt 2 limit 10000p
 Sent 10 bytes 1 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 1b 1p requeues 0
  1 flows (2 inactive, 3 throttled), next packet delay 0 ns
  4 gc, 5 highprio
"""
DOCUMENT = [
    {"kind": "noqueue", "handle": "0:", "dev": "lo", "root": True, "refcnt": 2, "options": {}},
    {
        **{"kind": "fq_codel", "handle": "8001:", "dev": "eth0", "root": True, "refcnt": 2},
        "options": {"limit": 10240, "target": 4999, "ecn": True, "ce_threshold": False},
        **{"bytes": 2143, "packets": 21, "drops": 3, "overlimits": 4, "requeues": 5},
        **{"backlog": 96256, "qlen": 65, "maxpacket": 1514, "ecn_mark": 9},
    },
    {
        **{"kind": "cake", "handle": "8021:", "dev": "ifb0", "parent": "1:", "bytes": 1, "packets": 1},
        "tins": [
            {"sent_packets": 1, "drops": 2, "ecn_mark": 3},
            {"sent_packets": 0, "drops": 0, "ecn_mark": 1},
        ],
    },
]


def disciplines(tmp_path: Path, content: str) -> dict[str, dict[str, Any]]:
    """What `inspect --json` says, by kind."""
    file = tmp_path / "shown.txt"
    file.write_text(content)
    ended = CliRunner().invoke(app, ["inspect", str(file), "--json"])
    assert ended.exit_code == 0, ended.output
    said = json.loads(ended.stdout)
    assert said["files"] == [{"path": str(file), "format": "tc"}]
    return {it["kind"]: it for it in said["disciplines"]}


def test_settings_and_counts(tmp_path: Path) -> None:
    found = disciplines(tmp_path, TEXT)
    codel = found["fq_codel"]
    assert (codel["device"], codel["parent"], codel["handle"]) == ("eth0", "1:1", "8001:")
    assert codel["words"] == "limit 10240p flows 1024 quantum 1514 target 5ms ecn drop_batch 64"
    assert (codel["sent_bytes"], codel["sent_packets"], codel["dropped"]) == (2143, 21, 3)
    assert (codel["overlimits"], codel["requeues"], codel["marked"]) == (4, 5, 9)
    assert (codel["backlog_bytes"], codel["backlog_packets"]) == (94 << 10, 65)
    assert codel["statistics"]["old_flows_len"] == 2
    assert found["noqueue"]["sent_bytes"] is None
    assert found["mq"]["sent_bytes"] is None  # beyond what a recording holds
    assert found["red"]["marked"] == 12
    assert (found["fq"]["statistics"]["throttled"], found["fq"]["statistics"]["gc"]) == (3, 4)
    assert (found["htb"]["what"], found["htb"]["words"][:12]) == ("class", "leaf 10: pri")


def test_cake_s_tins(tmp_path: Path) -> None:
    cake = disciplines(tmp_path, TEXT)["cake"]
    assert [tin["name"] for tin in cake["tins"]] == ["Bulk", "Best Effort", "Voice"]
    assert cake["tins"][1] == {
        **{"name": "Best Effort", "thresh": "100Mbit", "pk_delay": "12us", "pkts": 10, "drops": 1, "marks": 3}
    }
    assert cake["marked"] == 4
    assert cake["statistics"]["memory used"] == "12345b of 5000000b"


def test_json(tmp_path: Path) -> None:
    found = disciplines(tmp_path, json.dumps(DOCUMENT))
    codel = found["fq_codel"]
    assert codel["words"] == "limit 10240 target 4999 ecn"
    assert [codel[name] for name in ("sent_bytes", "dropped", "backlog_packets", "marked")] == [
        2143,
        3,
        65,
        9,
    ]
    assert (found["cake"]["marked"], found["cake"]["parent"]) == (4, "1:")


def test_a_listing_is_a_recording_of_queues(tmp_path: Path) -> None:
    file = tmp_path / "shown.txt"
    file.write_text(TEXT)
    rows = {row["link"]: row for row in readers.read(file)["queues"].to_pylist()}
    assert rows["eth0 fq_codel 8001:"]["dropped"] == 3
    assert "htb" not in " ".join(rows)


@pytest.mark.parametrize("content", [TEXT, json.dumps(DOCUMENT)])
def test_people_see_them(tmp_path: Path, content: str) -> None:
    file = tmp_path / "shown.txt"
    file.write_text(content)
    shown = CliRunner().invoke(app, ["inspect", str(file)]).stdout
    assert "shown.txt lo root: noqueue 0:\n" in shown
    assert (
        "2,143 bytes in 21 packets sent, 3 dropped, 4 overlimits, 5 requeues, 9 marked; backlog 96,256"
        in shown
    )


def test_a_listing_without_counts_says_how_to_get_them(tmp_path: Path) -> None:
    file = tmp_path / "shown.txt"
    file.write_text(TEXT.splitlines()[0])
    assert readers.read(file).provenance["notes"] == ["there are no counts: tc -s qdisc show prints them"]
