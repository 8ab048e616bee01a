"""The guest in which tests of hosts run: it boots, does what it is told, and leaves nothing behind."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragstrip.engines.kernels import kernel
from dragstrip.engines.kernels.kernel import Kernel
from dragstrip.engines.vm import guest
from dragstrip.engines.vm.guest import Guest
from dragstrip.errors import BadInputError, DragstripError

LIMIT_S = 300.0
"""For a guest that boots in seconds, on a machine that may be busy."""


@pytest.fixture(scope="session")
def stock() -> Kernel:
    """A kernel for guests. `make test` fetches one beforehand."""
    try:
        guest.prepare()
        if not kernel.kernels():
            kernel.fetch()
        found = kernel.find_kernel()
        _ = found.guest_modules
    except DragstripError as error:
        pytest.skip(str(error))
    return found


def ran(stock: Kernel, *command: str, **more: object) -> tuple[int, str, str]:
    out, err = io.BytesIO(), io.BytesIO()
    status = Guest(stock, limit_s=LIMIT_S, **more).run(command, out, err)  # type: ignore[arg-type]
    return status, out.getvalue().decode(), err.getvalue().decode()


def emulators() -> set[str]:
    """Processes of ours that emulate a machine."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"dragstrip-guest" in words:
            found.add(place.parent.name)
    return found


def test_a_command_runs_on_the_guest_s_kernel_and_its_changes_go_with_it(
    stock: Kernel, tmp_path: Path
) -> None:
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    own.mkdir()
    script = (
        f'uname -r; pwd; echo "$WORD"; touch {shared}/kept {own}/gone /gone && echo written; '
        "readlink /proc/self/root; head -c 100 /dev/zero >&2; exit 7"
    )
    before = emulators()
    done = subprocess.run(
        [sys.executable, "-m", "dragstrip", "kernel", "run", "--share", shared, "--", "sh", "-c", script],
        env={**os.environ, "WORD": "two words\n$HOME"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [stock.name, str(Path.cwd()), "two words", "$HOME", "written", "/"]
    assert done.stderr == "\0" * 100
    assert [file.name for file in shared.iterdir()] == ["kept"]
    assert list(own.iterdir()) == []
    assert not Path("/gone").exists()
    assert emulators() == before


def test_a_guest_that_takes_too_long_is_ended(stock: Kernel) -> None:
    before = emulators()
    with pytest.raises(DragstripError, match="the guest was ended: it took longer than 3 s"):
        Guest(stock, limit_s=3).run(["sleep", "600"])
    assert emulators() == before


def test_a_guest_that_dies_says_what_it_said_last(
    stock: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGSTRIP_AGENT", str(guest.binaries.program()))
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    with pytest.raises(DragstripError, match=r"the guest ended before the command did: .*panic"):
        Guest(stock, limit_s=LIMIT_S).run(["sh", "-c", "echo c >/proc/sysrq-trigger; sleep 60"])
    assert "sysrq" in (tmp_path / "cache" / "guest-console").read_text(errors="replace")


def test_a_folder_that_is_none_is_refused(stock: Kernel, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"--share: got .*nowhere', expected a folder that exists"):
        Guest(stock, [tmp_path / "nowhere"]).run(["true"])


def test_a_kernel_of_an_earlier_version_is_named(tmp_path: Path) -> None:
    (tmp_path / "modules").mkdir()
    with pytest.raises(DragstripError, match=r"kernel 6\.1-a: .* `dragstrip kernel fetch`"):
        _ = Kernel("6.1-a", tmp_path, "").guest_modules


def test_a_path_with_delay_and_an_aqm_runs_there(stock: Kernel, tmp_path: Path) -> None:
    """A sample of what `make test-hosts` runs: whatever this machine's kernel lacks, the guest's has it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    path = ("--rate", "2mbit", "--rtt", "60ms", "--queue", "fq_codel", "--loss", "0.5%", "--duration", "2s")
    words = ("dragstrip", "compare", "--engine", "netns", *path, "--no-report", "--out", str(shared / "out"))
    status, out, err = ran(stock, *words, "vegas", shares=[shared])
    assert status == 0, out + err
    (file,) = shared.rglob("provenance.json")
    verified = json.loads(file.read_text())["verified"]
    assert json.loads(file.read_text())["kernel"]["release"] == stock.name
    assert any("fq_codel" in line for line in verified["path"])
    assert any("netem" in line and "loss" in line for line in verified["path"]), verified["path"]
    (idle_ns,) = verified["idle_rtt_ns"].values()
    assert idle_ns >= 60_000_000
    (line,) = json.loads((shared / "out" / "result.json").read_text())["runs"]
    assert 0 < line["flows"][0]["goodput_bps"] < 2e6
