"""Programs of the user's own as flows of a run in virtual time, beside an ordinary flow."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("linux")

PYTHON = next((name for name in ("/usr/bin/python3", sys.executable) if Path(name).exists()), "python3")
EXPERIMENT = f"""
duration = "6s"
engine = "vm"
repeat = 2

[path]
rate = "10mbit"
rtt = "40ms"
queue = "100ms"

[[flows]]
cc = "cubic"
label = "bulk"

[[flows]]
cc = "reno"
label = "mine"
start = "1s"
application = {{ kind = "program", server = "{PYTHON} send.py", client = "{PYTHON} receive.py 500000", files = ["send.py"] }}

[[claims]]
id = "time"
source = "this test"
metric = "completion_s"
where = {{ label = "mine" }}
range = [0.4, 4.9]
unit = "s"
"""
SEND = """
import socket
listener = socket.create_server(("", 5000))
while True:
    connection, _ = listener.accept()
    connection.sendall(bytes(500_000))
    connection.close()
"""
RECEIVE = """
import os, socket, sys
assert socket.gethostbyname("server") == os.environ["DRAGSTRIP_SERVER"]
with socket.create_connection(("server", 5000)) as connection:
    count = 0
    while piece := connection.recv(65536):
        count += len(piece)
print(count)
sys.exit(count != int(sys.argv[1]))
"""


def run(folder: Path, out: str, file: str = "mine.toml", *words: str) -> subprocess.CompletedProcess[str]:
    places = [place for place in os.environ["PATH"].split(os.pathsep) if not place.startswith(sys.prefix)]
    command = [sys.executable, "-m", "dragstrip", "run", file, "--engine", "vm", "--out", out, *words]
    environment = {**os.environ, "PATH": os.pathsep.join(places)}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, cwd=folder, env=environment
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("mine.toml", EXPERIMENT), ("send.py", SEND), ("receive.py", RECEIVE)):
        (tmp_path / name).write_text(text)
    return tmp_path


def provenances(folder: Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("runs/*/provenance.json"))]


def test_a_program_beside_a_bulk_flow_is_the_same_twice_and_can_be_claimed(project: Path) -> None:
    done = run(project, "first")
    assert done.returncode == 0, done.stderr
    assert run(project, "second").returncode == 0
    first, second = provenances(project / "first"), provenances(project / "second")
    assert [about["recording_sha256"] for about in first] == [about["recording_sha256"] for about in second]
    assert [about["verified"] for about in first] == [about["verified"] for about in second]
    assert len({about["recording_sha256"] for about in first}) == len(first) == 2, "the seed is the machine's"
    result = json.loads((project / "first/result.json").read_text())
    assert [claim["grade"] for claim in result["claims"]] == ["reproduced"]
    for about, line in zip(first, result["runs"], strict=True):
        (program,) = about["verified"]["programs"]
        assert (program["flow"], program["status"]) == ("mine", 0)
        assert program["stdout"] == {"bytes": 7, "end": "500000\n"}
        bulk, mine = line["flows"]
        assert 500_000 <= mine["bytes_received"] < 510_000
        assert program["completion_ns"] / 1e9 == pytest.approx(mine["stop_s"] - mine["start_s"], abs=1e-6)
        assert bulk["bytes_received"] > 1_000_000
        assert about["files"]["files"] > 100
    assert "program mine" not in done.stderr


def test_a_program_that_fails_is_in_the_report_and_on_standard_error(project: Path) -> None:
    text = EXPERIMENT.replace("receive.py 500000", "receive.py 7").replace("repeat = 2", "")
    (project / "mine.toml").write_text(text)
    done = run(project, "out")
    assert done.returncode == 0, done.stderr
    sentence = "program mine ended with status 1, its last line: 500000"
    assert sentence in done.stderr
    assert sentence in (project / "out/report.html").read_text()


def test_a_server_that_does_not_listen_is_named(project: Path) -> None:
    text = EXPERIMENT.replace(f"{PYTHON} send.py", "sh -c 'echo no socket; exit 3'").replace("repeat = 2", "")
    (project / "mine.toml").write_text(text)
    done = run(project, "out")
    assert done.returncode != 0
    assert "flow mine: application.server" in done.stderr
    assert "ended with status 3, its last line: no socket" in done.stderr


def test_the_example_of_the_how_to_runs(tmp_path: Path) -> None:
    project = tmp_path / "datagrams"
    shutil.copytree(Path(__file__).parents[2] / "docs/examples/datagrams", project)
    text = (project / "call.toml").read_text()
    (project / "call.toml").write_text(text.replace("watch 10", "watch 1"))
    done = run(project, "out", "call.toml", "--duration", "3s")
    assert done.returncode == 0, done.stderr
    for about in provenances(project / "out"):
        (program,) = about["verified"]["programs"]
        assert program["status"] == 0
        assert "came, " in program["stdout"]["end"]


def test_a_program_s_packets_pass_a_medium(project: Path) -> None:
    text = EXPERIMENT.replace('rate = "10mbit"', 'medium = "adsl2+"').replace("repeat = 2", "repeat = 1")
    (project / "mine.toml").write_text(text.replace('queue = "100ms"\n', ""))
    ended = run(project, "out")
    assert ended.returncode == 0, ended.stderr
    (verified,) = [
        json.loads(file.read_text())["verified"] for file in (project / "out").glob("runs/*/provenance.json")
    ]
    assert verified["programs"][0]["stdout"]["end"] == "500000\n", verified
    assert verified["lines"], verified
