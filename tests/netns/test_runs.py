"""Runs on this machine's kernel. They take their time: the engine is in real time."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragstrip import cli
from dragstrip.engines.agent import answers
from dragstrip.engines.agent.client import AgentClient
from dragstrip.engines.netns import ENGINE
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment
from dragstrip.model.recording import Recording
from dragstrip.runs import progress

PATH = {"rate": "10mbit", "rtt": "0ms", "queue": "bfifo limit 30kb"}
WORDS = [
    "--rate",
    "10mbit",
    "--rtt",
    "0ms",
    "--queue",
    "bfifo limit 30kb",
    "--duration",
    "1s",
    "--engine",
    "netns",
]
TRIES = 3
"""For figures: the machine may be busy once."""


def main(words: list[str]) -> int:
    """The exit status of a command line."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["dragstrip", *words])
        patch.setenv("COLUMNS", "200")
        cli.main()
    return int(ended.value.code or 0)


def race(*algorithms: str, duration: str = "2s", **options: Any) -> dict[str, Any]:
    made: dict[str, Any] = expand(compare(algorithms, duration=duration, **{**PATH, **options}))[0].scenario
    return made


def run(scenario: dict[str, Any]) -> Recording:
    """A run whose path the machine did not limit, if it will let one be."""
    for _ in range(TRIES):
        recording = ENGINE.run(scenario, {})
        limits = recording.provenance["verified"]["limits"]
        if not any("served" in limit or "before the traffic" in limit for limit in limits):
            break
    return recording


def received(recording: Recording) -> dict[str, int]:
    rows = recording.tables["flows"].to_pylist()
    return {row["label"]: row["bytes_received"] for row in rows}


def test_a_race_fills_the_link_that_was_verified(machine: dict[str, Any]) -> None:
    recording = run(race("reno", "cubic", duration="3s", together=True))
    verified = recording.provenance["verified"]
    assert any("htb rate 10mbit" in line and "bfifo limit 30kb" in line for line in verified["path"])
    assert max(verified["idle_rtt_ns"].values()) < 50_000_000
    measured = {(check["path"], check["what"]): check for check in verified["checks"]}
    assert measured["s1 to d", "MTU"]["measured"] == 1500
    assert {check["measured"] for (_, what), check in measured.items() if what == "lost"} == {0}
    if not any("before the traffic" in limit for limit in verified["limits"]):
        assert measured["s1 to d", "rate"]["measured"] == pytest.approx(10e6, rel=0.02)
        assert measured["s1 to d", "buffer"]["measured"] == pytest.approx(30 * 1024, rel=0.12)
    got = received(recording)
    assert set(got) == {"reno", "cubic"}
    assert min(got.values()) > 0
    assert sum(got.values()) < 10e6 / 8 * 3, "more than the link carries"
    if not any("served" in limit for limit in verified["limits"]):
        assert verified["service"]["r-d"] == pytest.approx(1, abs=0.02)
        assert sum(got.values()) > 0.8 * 10e6 / 8 * 3
    assert {table for table, rows in recording.tables.items() if len(rows)} >= {
        "flows",
        "samples",
        "queues",
        "probes",
    }


def test_links_change_during_the_run(machine: dict[str, Any]) -> None:
    changes = ["2s rate=2mbit limit=60kb", "4s state=down", "4500ms state=up"]
    recording = run(race("reno", duration="6s", change=changes))
    verified = recording.provenance["verified"]
    queues = recording["queues"].to_pylist()
    sent = {row["time_ns"] / 1e9: row["sent_bytes"] for row in queues if row["link"] == "r-d"}
    if not any("served" in limit for limit in verified["limits"]):
        assert verified["service"]["r-d"] == pytest.approx(1, abs=0.02)
        assert (sent[2] - sent[1]) * 8 == pytest.approx(10e6, rel=0.05)
        assert (sent[4] - sent[3]) * 8 == pytest.approx(2e6, rel=0.05)
    assert sent[4.5] == sent[4.2]
    assert sent[6] > sent[4.5]
    (flow,) = recording["flows"].to_pylist()
    assert flow["retransmits"] > 0


def test_progress_tells_what_has_arrived(machine: dict[str, Any]) -> None:
    heard: list[tuple[int, int]] = []
    recording = ENGINE.run(race("reno"), {}, lambda now_ns, arrived=0: heard.append((now_ns, arrived)))
    rows = recording.tables["received"].to_pylist()
    assert heard == sorted(heard)
    told = dict(heard)  # of each time the last word: a host after the other is looked at
    assert len(told) >= 19  # every 100 ms
    for time_ns, size in told.items():
        assert size == sum(row["wire_bytes"] for row in rows if row["time_ns"] <= time_ns)


def test_the_throughput_is_that_of_the_last_second() -> None:
    speed = progress.Speed()
    for tenths, size in ((1, 125_000), (10, 1_250_000), (15, 1_250_000), (20, 1_500_000)):
        speed.arrived(0, tenths * 100_000_000, size)
    assert speed.words() == ", throughput 2 Mbit/s"
    speed.arrived(1, 100_000_000, 125_000)
    assert speed.words() == ""
    speed.arrived(1, 2_000_000_000, 0)  # an engine that does not count
    assert speed.words() == ""


def test_the_terminal_shows_the_throughput_while_a_run_lasts(machine: dict[str, Any], tmp_path: Path) -> None:
    # Messages come after 2, 6 and 14 s, and a slow machine may take ten of them to measure the path before.
    long = ["12s" if word == "1s" else word for word in WORDS]
    words = ["compare", "reno", *long, "--no-report", "--out", str(tmp_path / "out")]
    ended = subprocess.run(
        [sys.executable, "-m", "dragstrip", *words], capture_output=True, text=True, check=True
    )
    assert re.search(r"\d of 12 seconds, throughput \d+\.\d+ Mbit/s", ended.stderr), ended.stderr


MIXED = """
title = "Senders of three kinds"
duration = "2s"
[path]
rate = "10mbit"
rtt = "0ms"
queue = "bfifo limit 30kb"
[[flows]]
label = "bulk"
cc = "reno"
[[flows]]
label = "other"
cc = "cubic"
start = "500ms"
[[flows]]
label = "noise"
application = { kind = "constant_rate", rate = "1mbit", datagram = "1000b" }
[[flows]]
label = "questions"
cc = "cubic"
application = { kind = "request_response", request = "100b", response = "10kb", think = "100ms" }
"""


def test_two_senders_datagrams_and_questions(machine: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    (planned,) = expand(Experiment.read(file))
    got = received(run(planned.scenario))
    assert set(got) == {"bulk", "other", "noise", "questions"}
    assert min(got.values()) > 0
    # A datagram of 1000 bytes each 8 ms for 2 s: 250, the last one on its way.
    assert got["noise"] <= 250_000


def settings() -> dict[str, str]:
    """The machine's own, which a run must leave alone."""
    found = {}
    for file in [*Path("/proc/sys/net/ipv4").iterdir(), *Path("/proc/sys/net/core").iterdir()]:
        try:
            found[str(file)] = file.read_text()
        except OSError:
            continue
    found["links"] = " ".join(sorted(link.name for link in Path("/sys/class/net").iterdir()))
    if (modules := Path("/proc/modules")).exists():
        found["modules"] = " ".join(sorted(line.split()[0] for line in modules.read_text().splitlines()))
    return found


def test_the_machine_is_as_it_was(machine: dict[str, Any]) -> None:
    before = settings()
    scenario = race("cubic", duration="1s", sysctl={"net.ipv4.tcp_sack": "0"})
    assert received(ENGINE.run(scenario, {}))["cubic"] > 0
    assert settings() == before


def test_a_setting_of_the_whole_machine_is_refused(machine: dict[str, Any]) -> None:
    scenario = race("cubic", duration="1s", sysctl={"net.core.rmem_max": "100000"})
    before = settings()
    with pytest.raises(BadInputError, match=r"net.core.rmem_max.*the whole machine's"):
        ENGINE.run(scenario, {})
    assert settings() == before


def test_what_this_kernel_has_not_is_refused_by_name(
    machine: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "netem" not in machine["lacks"]:
        pytest.skip("this kernel has netem")
    words = ["compare", "cubic", *WORDS, "--out", str(tmp_path / "out")]
    words[words.index("0ms")] = "20ms"
    assert main(words) == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "delay" in said
    assert "netem" in said
    assert "engine vm" in said
    assert not list(tmp_path.iterdir())


def test_an_algorithm_that_is_not_loaded_is_refused_with_those_that_are(
    machine: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = [name for name in ("vegas", "cdg", "westwood") if name not in machine["algorithms"]]
    if not missing:
        pytest.skip("this kernel has loaded them all")
    assert main(["compare", missing[0], *WORDS]) == 2
    said = capsys.readouterr().err
    assert f'got "{missing[0]}", expected one of {", ".join(machine["algorithms"])}, which' in said
    assert f"this kernel ({platform.release()}) has loaded" in said
    assert f"`modprobe tcp_{missing[0]}`" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--check"], "in real time no two runs are the same"),
        (["--engine-option", "strict=maybe"], "yes or no"),
        (["--engine-option", "kernel=6.1"], "engine vm"),
    ],
)
def test_what_makes_no_sense_here_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "cubic", *WORDS, *words]) == 2
    assert said in capsys.readouterr().err


def test_strict_is_no_recording_from_a_limited_run(
    machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "limits", lambda *_: ["the test says so"])
    assert ENGINE.run(race("cubic", duration="1s"), {}).provenance["verified"]["limits"] == [
        "the test says so"
    ]
    with pytest.raises(DragstripError, match="the machine limited this run: the test says so"):
        ENGINE.run(race("cubic", duration="1s"), {"strict": "yes"})


BEGIN = "import sys, struct, json\nout = sys.stdout.buffer\ndef say(kind, body): out.write(struct.pack('<cQ', kind, len(body)) + body); out.flush()\n"
HELLO = BEGIN + "say(b'h', b'{\"protocol\": 3}')\nsys.stdin.buffer.read(9)\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('dragstrip-agent: rights: no')", "engine netns: rights: no"),
        ("raise SystemExit(3)", "the agent ended"),
        (BEGIN + "say(b'h', b'{\"protocol\": 9}')", "protocol 9, not 3"),
        (BEGIN + "say(b'x', b'')", "began with"),
        (HELLO, "the agent ended"),
        (
            HELLO + "out.write(struct.pack('<cQ', b'a', 1 << 40)); out.flush(); sys.stdin.read()",
            "1099511627776 bytes",
        ),
        (HELLO + "say(b'f', b'it broke\\x1b[2J')", "it broke"),
        (HELLO + "say(b'r', b'link x: queue\\ncodel\\none that it has')", "link x: queue"),
        (HELLO + "say(b'r', b'two\\nlines')", "answer is invalid"),
        (HELLO + "say(b'a', b'no json')", "answer is invalid"),
        (HELLO + "say(b'a', b'{}\\n')", "answer is invalid"),
        (HELLO + "say(b'p', b'short')", "answer is invalid"),
        (HELLO + "say(b'z', b'')", "answer is invalid"),
    ],
)
def test_an_agent_that_answers_badly_is_one_error(
    script: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("DRAGSTRIP_AGENT", str(program))
    with pytest.raises(DragstripError) as caught:
        ENGINE.run(race("cubic", duration="1s"), {})
    assert said in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_an_agent_may_be_silent_for_as_long_as_its_errand_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent"
    program.write_text(f"#!{sys.executable}\n{HELLO}\nimport time; time.sleep(3); say(b'f', b'well')\n")
    program.chmod(0o755)
    monkeypatch.setenv("DRAGSTRIP_AGENT", str(program))
    for silence_s, said in ((1, "silent for 1 s"), (30, "well")):
        with pytest.raises(DragstripError, match=said):
            AgentClient("ssh", "conduct", silence_s=silence_s).ask({})


def test_a_limited_run_says_so_in_terminal_and_report(machine: dict[str, Any], tmp_path: Path) -> None:
    code = (
        "import sys; from dragstrip.engines.netns import ENGINE;"
        "from dragstrip.engines.agent import answers; from dragstrip.cli import main;"
        "answers.limits = lambda *_: ['as the test wants it'];"
        "ENGINE.__class__.in_process = True;"  # so that the stand-in holds for the run too
        "main()"
    )
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-c", code, "compare", "cubic", *WORDS, "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "the machine limited this run: as the test wants it" in ended.stderr
    page = (out / "report.html").read_text()
    assert "as the test wants it" in page
    assert "measured before the traffic" in page
    document = json.loads((out / "result.json").read_text())
    assert document["runs"][0]["engine"] == "netns"
