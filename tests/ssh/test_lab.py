"""Runs on a lab of namespaces with real sshds, and what hosts look like afterwards."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip.engines.agent import bpf
from dragstrip.engines.netns import host
from dragstrip.model.recording import read
from pcapng_frames import ipv4

from .conftest import Course

RACE = (
    *("compare", "--engine", "ssh", "--lab", "LAB", "--rate", "10mbit", "--rtt", "0ms"),
    *("--queue", "bfifo limit 30kb", "--json"),
)


def test_a_lab_is_looked_at_and_left_as_it_is(course: Course) -> None:
    before = course.lab.listing()
    status, out, err = course.ask("lab", "check", "LAB", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["healthy"]
    told = {(one["host"], one["what"]): one["found"] for one in found["findings"]}
    assert told["right", "rights"] == "CAP_NET_ADMIN and CAP_NET_RAW"
    assert told["center", "forwarding"] == "on"
    assert told["left", "interfaces.eth1"].startswith("10.10.1.1/24 to center")
    assert abs(found["hosts"]["left"]["clock"]["offset_ns"]) < 1e9
    assert found["hosts"]["left"]["facts"]["discipline"]["error_max_ns"] >= 0
    said = told["left", "clock discipline"]
    assert said.startswith(("synchronised, error estimated at", "none:")), said
    assert course.lab.listing() == before


def test_what_the_lab_cannot_run_is_said_in_one_line(course: Course, tmp_path: Path) -> None:
    file = tmp_path / "direct.toml"
    ends = "".join(f'[[nodes]]\nname = "{name}"\nkind = "host"\n' for name in ("right", "left"))
    link = '[[links]]\nfrom = "right"\nto = "left"\nrate = "10mbit"\n'
    flow = '[[flows]]\nsender = "right"\nreceiver = "left"\ncc = "reno"\n'
    file.write_text(f'title = "No router"\nduration = "1s"\n{ends}{link}{flow}')
    status, out, _ = course.ask("lab", "check", "LAB", str(file))
    assert status == 2
    assert 'link right-left: expected a cable: host right has no interface with to = "left"' in out
    assert ": :" not in out


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        ("fq_codel", ("--queue", "fq_codel"), "host center: link r-d: queue: got fq_codel"),
        ("netem", ("--queue", "pfifo", "--jitter", "1ms"), "sch_netem"),
    ],
)
def test_what_hosts_lack_is_said_before_the_first_run(
    course: Course, tmp_path: Path, kind: str, words: tuple[str, ...], said: str
) -> None:
    if kind not in host.about()["lacks"]:
        pytest.skip("this kernel has it")
    out = tmp_path / "out"
    race = [word for word in RACE if word not in ("--queue", "bfifo limit 30kb", "--json")]
    status, printed, err = course.ask(*race, *words, "--repeat", "3", "--out", str(out), "reno", "cubic")
    assert (status, printed) == (2, ""), err
    assert said in err.splitlines()[-1]
    assert "failed" not in err
    assert not out.exists()


def test_an_algorithm_that_a_host_has_not_loaded_is_said_with_its_kernel(
    course: Course, tmp_path: Path
) -> None:
    lacking = [name for name in ("vegas", "westwood", "cdg") if name not in available()]
    if not lacking:
        pytest.skip("this kernel has loaded them all")
    status, printed, err = course.ask(*RACE, "--out", str(tmp_path / "out"), "reno", lacking[0])
    assert (status, printed) == (2, ""), err
    line = err.splitlines()[-1]
    assert f"the kernel of host right ({platform.release()}) has loaded: {' '.join(available())}" in line
    assert f"`modprobe tcp_{lacking[0]}`" in line
    assert not (tmp_path / "out").exists()


def test_traffic_both_ways_has_its_hosts(course: Course, tmp_path: Path) -> None:
    words = (
        *RACE,
        "--both-ways",
        "--receiver-on-line",
        "--duration",
        "1s",
        "--out",
        str(tmp_path / "out"),
        "reno",
    )
    status, out, err = course.ask(*words)
    assert status == 0, err
    assert len(json.loads(out)["runs"][0]["flows"]) == 2


def test_a_race_behind_a_router_and_everything_is_as_it_was(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    status, out, err = course.ask(*RACE, "--duration", "2s", "--out", str(tmp_path / "out"), "cubic")
    assert status == 0, err
    (run,) = json.loads(out)["runs"]
    assert run["engine"] == "ssh"
    goodput_bps = run["flows"][0]["goodput_bps"]
    assert goodput_bps < 10e6 * 1448 / 1514 * 1.01, "what the path carries"
    (file,) = (tmp_path / "out").rglob("provenance.json")
    provenance = json.loads(file.read_text())
    verified = provenance["verified"]
    assert goodput_bps > (5e6 if verified["limits"] == [] else 0), "unless the machine was busy"
    assert any(
        "center: eth2: htb rate 10mbit" in line and "bfifo limit 30kb" in line for line in verified["path"]
    )
    assert provenance["lab"]["nodes"] == {"s1": "right", "r": "center", "d": "left"}
    assert set(verified["hosts"]) == {"right", "center", "left"}
    assert verified["hosts"]["center"]["changes"] >= 3
    assert 0 < verified["start_error_ns"] < 50_000_000
    assert set(verified["hosts"]["left"]["clock_discipline"]) == {"synchronised", "error_ns", "error_max_ns"}
    assert (tmp_path / "out" / "report.html").exists()
    assert course.lab.listing() == before
    assert "no" in course.ask("lab", "show", "LAB")[1]
    assert "nothing to undo" in course.ask("lab", "clean", "LAB")[1]


def test_packets_are_captured_at_hosts_and_at_a_link(course: Course, tmp_path: Path) -> None:
    """Of the lab's interfaces alone: nothing of the SSH connection (10.99.0.0/16) is in a file."""
    out = tmp_path / "out"
    words = (*RACE, "--duration", "1s", "--capture", "s1", "--capture", "d", "--capture", "r-d")
    status, printed, err = course.ask(*words, "--out", str(out), "cubic")
    assert status == 0, err
    (file,) = out.rglob("provenance.json")
    recorded = read(file.parent)["flows"].to_pylist()[0]
    sent, waiting = recorded["segments_sent"], 30_000 // 1514
    files = {file.stem: file for file in out.rglob("*.pcapng")}
    assert set(files) == {"s1", "d", "r-d"}
    for point, file in files.items():
        status, told, err = course.ask("inspect", str(file), "--json")
        assert status == 0, err
        (flow,) = json.loads(told)["flows"]
        assert flow["label"].startswith("10.10.2.1:"), point
        behind = 0 if point == "s1" else recorded["retransmits"] + waiting  # the queue lost them or has them
        assert sent - behind - 2 <= flow["segments"] <= sent, point
        sources = {frame[26:28] for _, frame in ipv4(file)}
        assert sources, point
        assert bytes([10, 99]) not in sources, point
    assert json.loads(printed)["runs"][0]["flows"][0]["goodput_bps"] > 0


def test_a_setting_that_a_kernel_does_not_take_is_refused_and_undone(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    file = tmp_path / "dear.toml"
    hosts = '[hosts.s1]\nsysctl = { "net.ipv4.tcp_reordering" = "100000" }\n'
    path = '[path]\nrate = "10mbit"\nrtt = "0ms"\nqueue = "bfifo limit 30kb"\n'
    file.write_text(f'title = "Dear"\nduration = "1s"\n{path}{hosts}[[flows]]\ncc = "reno"\n')
    words = ("run", str(file), "--engine", "ssh", "--lab", "LAB", "--out", str(tmp_path / "out"))
    status, _, err = course.ask(*words)
    assert status == 2, err
    said = "host right: sysctl net.ipv4.tcp_reordering: got 100000, expected what this kernel takes"
    assert said in " ".join(err.split())
    assert course.lab.listing() == before


def test_a_link_that_is_a_real_medium_stays_as_it_is(course: Course, tmp_path: Path) -> None:
    """A shaper of somebody's own stands where the scenario has a faster link: it is not lost, and it is measured."""
    home = course.changed('to = "left" }', 'to = "left", is = "home" }')
    far = 'address = "10.10.1.1/24", to = "center"'
    home.write_text(home.read_text().replace(far, f'{far}, is = "home"'))
    center = course.lab.hosts["center"]
    own = ("handle", "7:", "tbf", "rate", "4mbit", "burst", "5kb", "limit", "30kb")
    center.run("tc", "qdisc", "add", "dev", "eth2", "root", *own)
    try:
        before = course.lab.listing()
        words = (*RACE, "--duration", "3s", "--out", str(tmp_path / "out"), "cubic")
        assert course.ask(*words)[0] == 2, "somebody's shaper is not lost"
        status, _, err = course.ask(*words, file=home)
        assert status == 0, err
        assert "link r-d is the lab's home, as it is; at most " in err
        assert course.lab.listing() == before
    finally:
        center.run("tc", "qdisc", "del", "dev", "eth2", "root")
    (file,) = (tmp_path / "out").rglob("provenance.json")
    verified = json.loads(file.read_text())["verified"]
    assert not any("eth2" in line and "htb" in line for line in verified["path"])
    assert set(verified["real_links"]) == {"r-d", "d-r"}
    assert 2e6 < verified["real_links"]["r-d"]["peak_bps"] < 4.4e6
    assert "A real medium: link r-d" in (tmp_path / "out" / "report.html").read_text()
    told = course.ask("lab", "check", "LAB", "geni-tcp/step1", file=home)[1]
    assert "the lab's home: its rate, delay and queue stay as they are" in told


SENDS = """
import select, socket, sys
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while not select.select([sys.stdin], [], [], 0.01)[0]:
    line.sendto(bytes(1000), ("10.10.1.2", 9))
"""
"""800 kbit/s until its standard input ends."""


def test_somebody_elses_traffic_on_a_cable_marks_the_run(course: Course, tmp_path: Path) -> None:
    # In its network alone: the interpreter is not among a host's files.
    words = ["nsenter", "-t", str(course.lab.hosts["left"].inner), "-n", sys.executable, "-c", SENDS]
    with subprocess.Popen(words, stdin=subprocess.PIPE):
        status, _, err = course.ask(*RACE, "--duration", "1s", "--out", str(tmp_path / "out"), "cubic")
    assert status == 0, err
    (file,) = (tmp_path / "out").rglob("provenance.json")
    verified = json.loads(file.read_text())["verified"]
    checks = {one["path"]: one for one in verified["checks"] if one["what"] == "foreign traffic"}
    assert set(checks) == {"host center: eth1", "host center: eth2", "host left: eth1", "host right: eth1"}
    busy = {path for path, one in checks.items() if one["measured"] > one["most"]}
    assert busy == {"host center: eth2", "host left: eth1"}, "the other cable is quiet"
    assert any("host left: eth1, before the traffic: foreign traffic" in said for said in verified["limits"])


def test_a_link_changes_its_rate_and_is_down_meanwhile(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    changes = ("--change", "1s rate=2mbit", "--change", "3s state=down", "--change", "3500ms state=up")
    words = (*RACE, "--duration", "4500ms", *changes, "--out", str(tmp_path / "out"), "cubic")
    status, _, err = course.ask(*words)
    assert status == 0, err
    (folder,) = (tmp_path / "out" / "runs").iterdir()
    recording = read(folder)
    sent = {
        row["time_ns"] / 1e9: row["sent_bytes"]
        for row in recording["queues"].to_pylist()
        if row["link"] == "r-d"
    }
    assert 0 < (sent[3.0] - sent[1.0]) * 8 < 2.1e6 * 2, "what 2 Mbit/s carry"
    assert sent[3.5] == sent[3.1], "nothing while it is down"
    assert sent[4.5] > sent[3.5]
    if recording.provenance["verified"]["limits"] == []:
        assert sent[1.0] * 8 > 5e6
        assert (sent[3.0] - sent[2.0]) * 8 == pytest.approx(2e6, rel=0.05)
    assert course.lab.listing() == before


def test_the_exercises_first_step_runs_and_is_graded(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    out = tmp_path / "out"
    words = ("run", "geni-tcp/step1", "--engine", "ssh", "--lab", "LAB", "--duration", "1s", "--json")
    status, printed, err = course.ask(*words, "--out", str(out))
    assert status == 0, err
    assert "the engine's own stack replaces linux-2.6.27" in err
    result = json.loads(printed)
    assert [run["engine"] for run in result["runs"]] == ["ssh", "ssh"]
    graded = {claim["id"]: claim["measured"] for claim in result["claims"]}
    assert set(graded) == {"goodput-cubic", "goodput-reno", "text-same"}
    assert 0 < graded["goodput-reno"] < 94.15 * 1.01, "what Ethernet carries, and a shaper's burst"
    assert "in place of linux-2.6.27." in (out / "report.html").read_text()
    assert course.lab.listing() == before


def test_an_algorithm_of_ones_own_is_in_the_kernels_during_the_run(course: Course, tmp_path: Path) -> None:
    words = [
        *RACE,
        "--duration",
        "1s",
        "--out",
        str(tmp_path / "out"),
        "--load",
        str(bpf.HOME / "vegas.bpf.c"),
    ]
    (name,) = bpf.names(words[-1])
    status, _, err = course.ask(*words, name)
    assert status == 2
    assert "programs = true in [allow]" in err
    assert not (tmp_path / "out").exists()
    if reason := bpf.missing():
        pytest.skip(reason)
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel was built without BTF")
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 4):
        pytest.skip(f"Linux {platform.release()} takes no programs out by itself")
    before = course.lab.listing()
    file = course.folder / "programs.toml"
    file.write_text(f"{course.file.read_text()}\n[allow]\nprograms = true\n")
    status, out, err = course.ask(*words, name, file=file)
    assert status == 0, err
    (run,) = json.loads(out)["runs"]
    assert run["flows"][0]["goodput_bps"] > 0
    (found,) = (tmp_path / "out").rglob("provenance.json")
    provenance = json.loads(found.read_text())
    assert set(provenance["loaded"]) == {name}
    assert f"congestion control {name} in the kernel" in found.read_text()
    assert name not in available()
    assert course.lab.listing() == before
    assert "nothing to undo" in course.ask("lab", "clean", "LAB", file=file)[1]


def available() -> list[str]:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
