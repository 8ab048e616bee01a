"""Hosts whose user is not root: the agent has capabilities, or is run by sudo, as docs/how-to/lab.md says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip.engines.agent import binaries
from dragstrip.errors import DragstripError

from .conftest import Course
from .namespaces import CABLES, ROLES, Administrator, missing, routed

RACE = (
    *("compare", "--engine", "ssh", "--lab", "LAB", "--rate", "10mbit", "--rtt", "0ms"),
    *("--queue", "bfifo limit 30kb", "--json", "--no-report"),
)
NEEDED = {"capabilities": ("setcap", "libcap2-bin"), "sudo": ("sudo", "sudo")}


@pytest.fixture(params=sorted(NEEDED), scope="module")
def without_root(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Course]:
    if why := missing():
        pytest.skip(why)
    program, package = NEEDED[request.param]
    if shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        pytest.skip(f"needs {program}: apt-get install {package}")
    try:
        agent = binaries.program()
    except DragstripError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("lab")
    administrator = Administrator(request.param, agent)
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as runtime,
        routed(folder, ROLES, CABLES, administrator) as (made, file),
    ):
        course = Course(made, file, folder, Path(runtime))
        yield course
        made.ask_masters_to_end(course.runtime)


def test_a_run_needs_no_root_and_leaves_nothing(without_root: Course, tmp_path: Path) -> None:
    course = without_root
    assert course.lab.hosts["left"].run("id", "-un", "lab").strip() == "lab"
    status, told, err = course.ask("lab", "check", "LAB", "--json")
    assert status == 0, err
    found = json.loads(told)
    said = {(one["host"], one["what"]): one["found"] for one in found["findings"]}
    assert said["center", "rights"] == "CAP_NET_ADMIN and CAP_NET_RAW"
    before = course.lab.listing()
    out = tmp_path / "out"
    status, printed, err = course.ask(*RACE, "--duration", "2s", "--capture", "d", "--out", str(out), "cubic")
    assert status == 0, err
    assert json.loads(printed)["runs"][0]["flows"][0]["goodput_bps"] > 1e6
    assert course.lab.listing() == before
    assert [host for host in course.lab.hosts.values() if host.agents()] == []


def test_a_client_that_is_killed_leaves_nothing(without_root: Course, tmp_path: Path) -> None:
    from .test_faults import RUN, await_queues, await_traffic

    course = without_root
    before = course.lab.listing()
    process = course.start(*RUN, "--out", str(tmp_path / "out"))
    await_traffic(course, process)
    process.kill()
    process.wait()
    await_queues(course, before)
    assert "nothing to undo" in course.ask("lab", "clean", "LAB")[1]
    assert course.lab.listing() == before


def test_an_agent_that_is_missing_is_named(without_root: Course) -> None:
    course = without_root
    there = "/usr/local/lib/dragstrip/agent"
    center = course.lab.hosts["center"]
    center.run("mv", there, f"{there}.old")
    try:
        status, told, _ = course.ask("lab", "check", "LAB")
    finally:
        center.run("mv", f"{there}.old", there)
    assert status == 1
    assert f"{there} is missing, or not this user's to run" in told


def test_the_user_cannot_do_it_without_the_agent(without_root: Course) -> None:
    """What the administrator gave is the agent's alone."""
    command = [*without_root.lab.ssh.split(), "10.99.2.2", "ip link set eth1 down"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode != 0
    assert "not permitted" in told.stderr
