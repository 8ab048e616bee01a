"""What this machine lacks for engine netns is told before anything begins: status 2, one line, nothing created."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = ["--rate", "10mbit", "--rtt", "0ms", "--duration", "1s"]
EXPERIMENT = """
title = "Two queues"
duration = "1s"
engine = "netns"

[path]
rate = "10mbit"
rtt = "0ms"

[[flows]]
cc = "reno"

[vary]
"path.queue" = ["pfifo limit 100", "fq_codel"]
"""
ABOUT = {"kernel": "6.1.0", "tick_hz": 250, "lacks": ["fq_codel"], "algorithms": ["reno"], "rights": "own"}
LACKING = [
    "link r-d: queue",
    "fq_codel",
    "one that this kernel has: it has no sch_fq_codel, the engine vm has",
]


def ended(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "dragstrip", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent on a kernel without fq_codel, which notes what it is asked beside itself."""
    agent = tmp_path / "agent" / "agent"
    agent.parent.mkdir()
    agent.write_text(
        f"""#!{sys.executable}
import json, pathlib, sys
with pathlib.Path(__file__).with_name("asked").open("a") as asked:
    asked.write(sys.argv[1] + "\\n")
if sys.argv[1] == "about":
    print({json.dumps(ABOUT)!r})
else:
    print(json.dumps([{LACKING!r} if "fq_codel" in str(one) else None for one in json.load(sys.stdin)]))
"""
    )
    agent.chmod(0o755)
    monkeypatch.setenv("DRAGSTRIP_AGENT", str(agent))
    return agent


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "--engine", "netns", *PATH, "--queue", "fq_codel", "reno"],
        ["run", "two.toml", "--engine", "netns", "--out", "out"],
        [
            "sweep",
            "alone.toml",
            "--engine",
            "netns",
            "--vary",
            "path.queue=pfifo limit 100,fq_codel",
            "--out",
            "out",
        ],
    ],
    ids=["compare", "run", "sweep"],
)
def test_a_run_that_would_fail_keeps_all_from_beginning(
    words: list[str], pretended: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "two.toml").write_text(EXPERIMENT)
    (here / "alone.toml").write_text(EXPERIMENT.partition("[vary]")[0].replace("rtt", 'queue = "pfifo"\nrtt'))
    before = sorted(here.iterdir())
    told = ended(here, *words)
    said = "error: engine netns: link r-d: queue: got fq_codel, expected one that this kernel has"
    assert (told.returncode, told.stdout) == (2, ""), told.stderr
    assert told.stderr.splitlines()[-1].startswith(said)
    assert "failed" not in told.stderr
    assert sorted(here.iterdir()) == before
    assert set((pretended.parent / "asked").read_text().split()) == {"about", "missing"}, "nothing was run"


def test_a_kernel_s_own_agent_says_what_it_lacks(machine: dict[str, Any], tmp_path: Path) -> None:
    lacking = [kind for kind in ("fq_codel", "cake", "sfq", "netem") if kind in machine["lacks"]]
    if not lacking:
        pytest.skip("this kernel has them all")
    more = ["--queue", lacking[0]] if lacking[0] != "netem" else ["--queue", "pfifo", "--jitter", "1ms"]
    told = ended(tmp_path, "compare", "--engine", "netns", *PATH, *more, "reno")
    assert (told.returncode, told.stdout) == (2, ""), told.stderr
    assert f"sch_{lacking[0]}" in told.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_missing_rights_are_told_as_input_that_cannot_be_right(program: Path, tmp_path: Path) -> None:
    """In a user namespace that allows no other, without a capability."""
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("needs unshare and setpriv (util-linux)")
    script = (
        "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all --inh-caps=-all "
        f'--ambient-caps=-all {sys.executable} -P -m dragstrip "$@"'
    )
    words = ["compare", "--engine", "netns", *PATH, "--queue", "pfifo", "reno"]
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *words]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "unshare" in told.stderr or "setpriv" in told.stderr:
        pytest.skip(told.stderr.strip())
    assert (told.returncode, told.stdout) == (2, ""), told.stderr
    last = told.stderr.splitlines()[-1]
    assert last.startswith("error: engine netns: rights: got 0, expected root, or user namespaces")
    assert "user.max_user_namespaces=0" in last
    assert list(tmp_path.iterdir()) == []
