"""What goes wrong with hosts, and what the user sees; whatever it is, every host is as it was a moment later.

Minutes long, since each fault begins a run: `make test-faults` runs them.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import Course
from .namespaces import Space

pytestmark = pytest.mark.skipif(
    os.environ.get("DRAGSTRIP_FAULTS") != "full", reason="four minutes: make test-faults"
)

RUN = (
    *("compare", "--engine", "ssh", "--lab", "LAB", "--rate", "10mbit", "--rtt", "0ms"),
    *("--queue", "bfifo limit 30kb", "--no-report", "--duration", "20s", "cubic"),
)
UNDONE_WITHIN_S = 60
"""`revert_after` of the lab's file is 6 s; the machine may be busy."""


def await_traffic(course: Course, process: subprocess.Popen[str]) -> None:
    """Waits until the queue is in place and packets pass it."""
    until = time.monotonic() + 60
    while True:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        queues = course.lab.hosts["center"].run("tc", "-s", "qdisc", "show", "dev", "eth2")
        if "htb" in queues and "Sent 0 bytes" not in queues and "bytes 0 pkt" not in queues:
            sent = int(queues.split("Sent ")[1].split()[0])
            if sent > 100_000:
                return
        time.sleep(0.1)


def expect_undone(course: Course, before: dict[str, dict[str, str]]) -> None:
    until = time.monotonic() + UNDONE_WITHIN_S
    while (after := course.lab.listing()) != before and time.monotonic() < until:
        time.sleep(0.2)
    for host, found in before.items():
        assert after[host] == found, host


def await_queues(course: Course, before: dict[str, dict[str, str]]) -> None:
    """Waits until the router's queues are as they were."""
    until = time.monotonic() + UNDONE_WITHIN_S
    while (found := course.lab.hosts["center"].listing()["queues"]) != before["center"]["queues"]:
        assert time.monotonic() < until, found
        time.sleep(0.2)


def kill_on(host: str, *which: int) -> Callable[[Course, subprocess.Popen[str]], None]:
    """Kills the agent (0), its guardian (1) or both on a host."""

    def kill(course: Course, _process: subprocess.Popen[str]) -> None:
        space = course.lab.hosts[host]
        pids = space.agents()
        assert len(pids) == 2, pids
        space.run("sh", "-c", "kill -9 " + " ".join(str(pids[one]) for one in which))

    return kill


def kill_client(_course: Course, process: subprocess.Popen[str]) -> None:
    process.kill()


def interrupt(_course: Course, process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)


def cut(course: Course, _process: subprocess.Popen[str]) -> None:
    course.lab.control.run("ip", "link", "set", "c2", "down")


@pytest.fixture
def mended(course: Course) -> Iterator[None]:
    yield
    course.lab.control.run("ip", "link", "set", "c2", "up")


@pytest.mark.parametrize(
    ("fault", "status", "said"),
    [
        (kill_client, -signal.SIGKILL, ""),
        (interrupt, 130, "interrupted"),
        (kill_on("center", 0), 1, "host center: has gone"),
        (kill_on("center", 1), 1, "host center: has gone"),
        (cut, 1, "host center: no answer for 6 s"),
    ],
    ids=["client", "interrupt", "agent", "guardian", "cable"],
)
def test_whatever_ends_a_run_undoes_it(
    course: Course,
    mended: None,
    fault: Callable[[Course, subprocess.Popen[str]], None],
    status: int,
    said: str,
    tmp_path: Path,
) -> None:
    before = course.lab.listing()
    quick = course.changed('revert_after = "30s"', 'revert_after = "6s"')
    process = course.start(*RUN, "--out", str(tmp_path / "out"), file=quick)
    await_traffic(course, process)
    fault(course, process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == status, err
    assert said in err
    await_queues(course, before)
    course.lab.control.run("ip", "link", "set", "c2", "up")  # the cable is mended; it was undone without it
    expect_undone(course, before)


def test_a_run_whose_cable_is_cut_is_none(course: Course, tmp_path: Path) -> None:
    """A cable of the path, not that of the connection: the hosts are reached all the while."""
    before = course.lab.listing()
    left = course.lab.hosts["left"]
    process = course.start(*RUN, "--out", str(tmp_path / "out"))
    await_traffic(course, process)
    with state(left, "ip link set eth1 down", "ip link set eth1 up; ip route add 10.10.2.0/24 via 10.10.1.2"):
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1, err
    assert re.search(
        r"host \w+: eth\d: its cable was cut, or it was set down, in the middle of the run",
        err.splitlines()[-1],
    )
    assert not list(tmp_path.rglob("provenance.json"))
    expect_undone(course, before)


def test_what_two_deaths_leave_is_undone_by_hand(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    process = course.start(*RUN, "--out", str(tmp_path / "out"))
    await_traffic(course, process)
    kill_on("center", 1, 0)(course, process)
    process.communicate(timeout=60)
    left = course.lab.hosts["center"].listing()
    if left["queues"] == before["center"]["queues"]:
        pytest.skip("the agent was faster than the second signal: it has undone everything")
    status, out, _ = course.ask("lab", "show", "LAB")
    assert 'by "course" (' in out
    assert "left changes behind" in out
    status, out, err = course.ask("lab", "clean", "LAB")
    assert status == 0, err
    assert "host center: undone:" in out
    assert "host left: nothing to undo" in out
    expect_undone(course, before)


def test_a_second_run_is_told_who_is_there(course: Course, tmp_path: Path) -> None:
    before = course.lab.listing()
    first = course.start(*RUN, "--out", str(tmp_path / "one"))
    await_traffic(course, first)
    status, _, err = course.ask(*RUN, "--out", str(tmp_path / "two"))
    assert status == 1
    assert 'in use: by "course" (' in err
    assert not (tmp_path / "two").exists() or not list((tmp_path / "two").rglob("provenance.json"))
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    expect_undone(course, before)


@contextmanager
def state(host: Space, make: str, undo: str) -> Iterator[None]:
    """A host in another state."""
    host.run("sh", "-c", make)
    try:
        yield
    finally:
        host.run("sh", "-c", undo)


STATES = [
    ("right", "tc qdisc add dev eth1 root handle 8001: pfifo", "tc qdisc del dev eth1 root", 2,
     "host right: interfaces.eth1: got root qdisc pfifo 8001:, expected the system's default; replace_qdisc = true"),
    ("center", "sysctl -qw net.ipv4.ip_forward=0", "sysctl -qw net.ipv4.ip_forward=1", 1,
     "host center: forwarding: off, expected net.ipv4.ip_forward = 1 on a router"),
    ("right", "ip route del 10.10.1.0/24", "ip route add 10.10.1.0/24 via 10.10.2.2", 1,
     "host right: route to 10.10.1.1: is missing, expected via 10.10.2.2 dev eth1: ip route add 10.10.1.1"),
    ("left", "ip address add 192.168.7.7/24 dev eth1", "ip address del 192.168.7.7/24 dev eth1", 2,
     "host left: interfaces.eth1: got has the address 192.168.7.7, expected addresses within the lab's prefixes"),
    ("left", "ip link set eth1 down", "ip link set eth1 up; ip route add 10.10.2.0/24 via 10.10.1.2", 1,
     "host left: interfaces.eth1: down, expected up: ip link set eth1 up"),
    ("right", "ip route add default via 10.10.2.2", "ip route del default", 2,
     "host right: interfaces.eth1: got carries the default route, expected another interface"),
    ("center", "ip link set eth2 mtu 1400", "ip link set eth2 mtu 1500", 2,
     "host center: eth2: mtu: got 1400, expected 1500, which the scenario has: `ip link set eth2 mtu 1500`, or "
     "hosts.*.mtu in the experiment"),
]  # fmt: skip


@pytest.mark.parametrize(("host", "make", "undo", "status", "said"), STATES, ids=lambda one: str(one)[:24])
def test_a_host_that_will_not_do_is_named_before_anything_is_changed(
    course: Course, host: str, make: str, undo: str, status: int, said: str, tmp_path: Path
) -> None:
    with state(course.lab.hosts[host], make, undo):
        before = course.lab.listing()
        ended, _, err = course.ask(*RUN, "--out", str(tmp_path / "out"))
        assert said in err
        assert ended == status, err
        assert not list(tmp_path.rglob("provenance.json"))
        assert course.lab.listing() == before


def test_the_interface_of_the_connection_is_never_touched(course: Course, tmp_path: Path) -> None:
    """The lab's file calls the management interface a cable of the lab."""
    text = 'management = "mgmt"\ninterfaces = { eth1 = { address = "10.10.1.1/24", to = "center" } }'
    wrong = 'management = "eth9"\ninterfaces = { mgmt = { address = "10.10.1.1/24", to = "center" } }'
    file = course.changed(text, wrong)
    before = course.lab.listing()
    status, _, err = course.ask(*RUN, "--out", str(tmp_path / "out"), file=file)
    assert status == 2, err
    assert "host left: interfaces.mgmt: got carries your SSH connection (" in err
    assert course.lab.listing() == before


@pytest.mark.parametrize(
    ("text", "new", "said"),
    [
        ('ssh = "10.99.3.2"', 'ssh = "10.99.3.77"', "host left: ssh: connect to host 10.99.3.77"),
        (
            'ssh = "10.99.3.2"',
            'ssh = "stranger@10.99.3.2"',
            "host left: stranger@10.99.3.2: Permission denied (publickey).",
        ),
    ],
)
def test_a_host_that_cannot_be_reached_is_named_with_sshs_own_words(
    course: Course, text: str, new: str, said: str
) -> None:
    status, out, _ = course.ask("lab", "check", "LAB", file=course.changed(text, new))
    assert status == 1
    assert said in out
    assert "ok       host right: in use: no\n" in out


def test_another_host_key_is_the_users_to_accept(course: Course) -> None:
    known = course.folder / "known_hosts"
    content = known.read_text()
    lines = content.splitlines(keepends=True)
    keys = [line.split(" ", 1) for line in lines]
    # A connection that is open still would need no key.
    course.lab.ask_masters_to_end(course.runtime)
    try:
        known.write_text(f"{keys[0][0]} {keys[1][1]}" + "".join(lines[1:]))
        status, out, _ = course.ask("lab", "check", "LAB")
    finally:
        known.write_text(content)
    assert status == 1
    assert "host right: Host key verification failed." in out


@pytest.mark.parametrize(
    ("place", "what", "said"),
    [
        (".bashrc", "echo Welcome to the lab; printf '\\033[2J'; seq 1000", ""),
        (".bashrc", "yes", "host right: more than 65536 bytes before the agent spoke"),
    ],
    ids=["banner", "endless"],
)
def test_what_a_login_shell_says_is_skipped_and_not_without_end(
    course: Course, place: str, what: str, said: str
) -> None:
    file = course.folder / "home-right" / place
    file.write_text(what + "\n")
    try:
        status, out, _ = course.ask("lab", "check", "LAB")
    finally:
        file.unlink()
    assert status == (1 if said else 0), out
    assert said in out
    assert "\x1b" not in out


def test_forwarding_that_is_filtered_has_an_error_of_its_own(course: Course, tmp_path: Path) -> None:
    """An interface that forwards nothing stands in for a FORWARD policy of DROP: no netfilter tools are needed."""
    setting = "sysctl -qw net.ipv4.conf.eth1.forwarding="
    with state(course.lab.hosts["center"], setting + "0", setting + "1"):
        before = course.lab.listing()
        status, _, err = course.ask(*RUN, "--out", str(tmp_path / "out"))
        assert status == 1
        assert "host center: forwards nothing from 10.10.2.1 to 10.10.1.1" in err
        assert "FORWARD policy DROP" in err
        assert course.lab.listing() == before


def test_a_full_disk_is_told_and_nothing_is_changed(course: Course, tmp_path: Path) -> None:
    left = course.lab.hosts["left"]
    full = "mkdir -p /run/dragstrip; mount -t tmpfs -o size=4k none /run/dragstrip; head -c 8k /dev/zero >/run/dragstrip/all"
    with state(left, full + "; true", "umount /run/dragstrip"):
        before = course.lab.listing()
        status, _, err = course.ask(*RUN, "--out", str(tmp_path / "out"))
        assert status == 1
        assert "host left: " in err
        assert "No space left on device" in err
        expect_undone(course, before)


def test_an_agent_of_another_version_is_refused_with_the_file_to_install(course: Course) -> None:
    file = course.changed('role = "receiver"', 'role = "receiver"\nrights = "capabilities"')
    left = course.lab.hosts["left"]
    status, out, _ = course.ask("lab", "check", "LAB", file=file)
    assert status == 1
    assert "/usr/local/lib/dragstrip/agent is missing, or not this user's to run" in out
    assert left.listing() == course.lab.listing()["left"]
    assert os.geteuid() == 0
