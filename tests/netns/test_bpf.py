"""Congestion controls of one's own in this machine's kernel, for as long as a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragstrip.engines.agent import bpf
from dragstrip.engines.netns import ENGINE
from dragstrip.engines.netns.engine import AVAILABLE
from dragstrip.errors import BadInputError
from dragstrip.studies.passport import command
from dragstrip.studies.passport.figures import GOODPUT
from dragstrip.studies.passport.rows import On, PassportRow, RowRule, Scenario, Subject

from .test_runs import WORDS, race, received

SOURCE = str(bpf.HOME / "vegas.bpf.c")
GONE_WITHIN_S = 60.0


def available() -> list[str]:
    return AVAILABLE.read_text().split()


@pytest.fixture
def name(machine: dict[str, Any]) -> str:
    """Of an algorithm that this kernel has not, and takes."""
    if reason := bpf.missing():
        pytest.skip(reason)
    if os.geteuid():
        pytest.skip("programs in the kernel need root")
    if machine["rights"] != "own" or tuple(map(int, machine["kernel"].split(".")[:2])) < (6, 4):
        pytest.skip(f"Linux {machine['kernel']} takes no programs out by itself")
    (found,) = bpf.names(SOURCE)
    assert found not in available()
    return found


def loaded(name: str, **options: Any) -> dict[str, Any]:
    scenario = race("reno", duration="1s", **options)
    scenario["flows"][0]["transport"]["cc"] = name
    return scenario


def test_it_runs_and_is_gone_afterwards(name: str) -> None:
    recording = ENGINE.run(loaded(name), {"load": [SOURCE]})
    assert received(recording)["reno"] > 0  # the label's name
    assert set(recording.provenance["loaded"]) == {name}
    (row,) = recording.tables["flows"].to_pylist()
    assert row["cc"] == name
    assert name not in available()


@pytest.mark.parametrize("victim", ["agent", "program"])
def test_killed_it_is_gone_too(name: str, victim: str, tmp_path: Path) -> None:
    words = ["compare", name, *WORDS, "--load", SOURCE, "--no-report", "--out", str(tmp_path / "out")]
    words[words.index("1s")] = "60s"
    process = subprocess.Popen(
        [sys.executable, "-m", "dragstrip", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 60
        while name not in available():
            assert process.poll() is None, "the run has ended"
            assert time.monotonic() < until
            time.sleep(0.01)
        if victim == "program":
            process.kill()
        else:
            _kill_agents(process.pid)
        until = time.monotonic() + GONE_WITHIN_S
        while name in available():
            assert time.monotonic() < until, "it is still in the kernel"
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _kill_agents(group: int) -> None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if os.getpgid(int(process.name)) == group and b"exchange=-" in words:
                os.kill(int(process.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue


def test_what_the_kernel_does_not_take_names_its_source(name: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.bpf.c"
    text = Path(SOURCE).read_text().replace(f'"{name}"', '"wrong_ops"')
    at = text.index('SEC(".struct_ops")')
    wrong.write_text(text[:at] + text[at:].replace(".undo_cwnd", "// .undo_cwnd"))
    with pytest.raises(BadInputError, match=r"wrong\.bpf\.c.*undo_cwnd"):
        ENGINE.run(loaded("wrong_ops"), {"load": [str(wrong)]})
    assert "wrong_ops" not in available()


def test_a_name_that_the_kernel_has_is_refused(name: str, tmp_path: Path) -> None:
    second = tmp_path / "second.bpf.c"
    second.write_text(Path(SOURCE).read_text().replace(f'"{name}"', '"cubic"'))
    with pytest.raises(BadInputError, match="of that name"):
        ENGINE.run(race("cubic", duration="1s"), {"load": [str(second)]})
    assert "cubic" in available()


HOSTILE = {
    "no window": "tp->snd_cwnd = 0;",
    "a window of 2^32 - 1": "tp->snd_cwnd = 0xffffffff;",
}


def hostile(folder: Path, statement: str) -> str:
    """A congestion control that does this on every ACK, and when the connection begins."""
    file = folder / "hostile.bpf.c"
    file.write_text(f"""#include "kernel.h"

SEC("struct_ops/begin")
void BPF_PROG(begin, struct sock *sk)
{{
	struct tcp_sock *tp = tcp_sk(sk);

	{statement}
}}

SEC("struct_ops/acked")
void BPF_PROG(acked, struct sock *sk, __u32 ack, __u32 count)
{{
	struct tcp_sock *tp = tcp_sk(sk);

	{statement}
}}

SEC("struct_ops/lost")
__u32 BPF_PROG(lost, struct sock *sk)
{{
	return 0;
}}

SEC("struct_ops/undo")
__u32 BPF_PROG(undo, struct sock *sk)
{{
	return 0;
}}

SEC(".struct_ops")
struct tcp_congestion_ops operations = {{
	.name = "hostile",
	.init = (void *)begin,
	.ssthresh = (void *)lost,
	.cong_avoid = (void *)acked,
	.undo_cwnd = (void *)undo,
}};

char _license[] SEC("license") = "GPL";
""")
    return str(file)


def passport_of(file: str) -> dict[str, Any]:
    """Of two rows without delay, which every kernel can run."""
    on = On("netns", load=(file,))
    rows = []
    for key, rate in (("slow", "2mbit"), ("fast", "4mbit")):
        path = {"rate": rate, "rtt": "0ms", "queue": "bfifo limit 30kb", "duration": "1s"}
        scenario = Scenario(("{a}",), path, repeats=1)
        rows.append(PassportRow(f"alone-{key}", "alone", key, scenario, GOODPUT, RowRule("K", "a test")))
    asked = command.PassportRequest(Subject("hostile", on=on), ("alone",), False, tuple(rows))
    return command.make(asked, None, quiet=True)


@pytest.mark.parametrize("statement", HOSTILE.values(), ids=HOSTILE)
def test_a_program_that_misbehaves_costs_its_own_rows_of_a_passport(
    name: str, statement: str, tmp_path: Path
) -> None:
    found = passport_of(hostile(tmp_path, statement))
    assert [row["id"] for row in found["rows"]] == ["alone-slow", "alone-fast"]
    for row in found["rows"]:
        assert row["verdict"] in ("failed", "worse", "same")
        assert all(of["value"] > 0.1 for of in row["baselines"].values())
    assert "hostile" not in available()


def test_a_program_that_never_ends_is_refused_by_the_verifier(name: str, tmp_path: Path) -> None:
    endless = hostile(tmp_path, "while (1) tp->snd_ssthresh += 1;")
    with pytest.raises(BadInputError, match=r"hostile\.bpf\.c.*infinite loop"):
        passport_of(endless)
    assert "hostile" not in available()
