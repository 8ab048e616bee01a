"""Sweeps on a real Dask scheduler with worker processes on loopback, started here."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from dragstrip.runs.process import Limits
from dragstrip.runs.work import Order
from dragstrip.studies.sweep import command
from dragstrip.studies.sweep.cluster import Cluster as Place
from dragstrip.studies.sweep.cluster import _census
from dragstrip.studies.sweep.options import Options
from dragstrip.studies.sweep.progress import SweepProgress

from .conftest import Command, environment, plan
from .conftest import command as words_of
from .faults import FULL, all_gone, children, digest, kill, once_each

pytest.importorskip("distributed")

HERE = Path(__file__).parent
AXES = ["path.rate=1mbit,2mbit", "path.rtt=10ms,40ms", "flow.cc=reno,cubic,vegas"]
WORDS = [word for axis in AXES for word in ("--vary", axis)]

Cluster = Callable[..., str]


def _clusters(tmp_path: Path) -> Iterator[Cluster]:
    """Starts a scheduler and workers with these options; gives the address for `--on`."""
    started: list[subprocess.Popen[Any]] = []

    def start(module: str, *words: str, **more: str) -> subprocess.Popen[Any]:
        with (tmp_path / "dask.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli." + module, *words],
                cwd=tmp_path,
                stdout=log,
                stderr=log,
                env=environment(**more),
            )
        started.append(process)
        return process

    def begin(*workers: list[str], tls: Mapping[str, str] = MappingProxyType({}), **more: str) -> str:
        scheme = "tls" if tls else "tcp"
        more |= tls
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        where = f"127.0.0.1:{port}"
        here = f"{scheme}://127.0.0.1" if tls else "127.0.0.1"
        start("dask_scheduler", "--host", here, "--port", str(port), "--no-dashboard", **tls)
        for options in workers:
            fixed = [
                "--host",
                here,
                "--nthreads",
                "1",
                "--no-dashboard",
                "--local-directory",
                str(tmp_path),
            ]
            start("dask_worker", f"{scheme}://{where}", *fixed, *options, **more)
        _wait_for(f"{scheme}://{where}", len(workers), tls)
        begin.started = started  # type: ignore[attr-defined]
        return f"dask+tls://{where}" if tls else f"dask://{where}"

    yield begin
    for process in reversed(started):
        below = children(process.pid)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for child in below:
            kill(child)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """For clusters with workers of a special kind."""
    yield from _clusters(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[int]]]:
    """Two workers under their nannies: the address, and the nannies' processes."""
    for begin in _clusters(tmp_path_factory.mktemp("cluster")):
        address = begin([], [])
        yield address, [process.pid for process in begin.started[1:]]  # type: ignore[attr-defined]


def _wait_for(where: str, workers: int, tls: Mapping[str, str]) -> None:
    from distributed import Client, Security

    name = "DASK_DISTRIBUTED__COMM__TLS__"
    files = ("CLIENT__CERT", "CLIENT__KEY")
    words = {"tls_ca_file": tls.get(f"{name}CA_FILE")}
    words |= {f"tls_{word.lower().replace('__', '_')}": tls.get(name + word) for word in files}
    security = Security(**words, require_encryption=True) if tls else None

    until = time.monotonic() + 60
    while True:
        try:
            with Client(where, timeout=5, set_as_default=False, security=security) as client:
                client.wait_for_workers(workers, timeout=60)
                return
        except OSError:
            if time.monotonic() > until:
                raise


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """The digest of the same sweep made on this machine's own processes."""

    def made(repeat: int) -> str:
        folder = tmp_path_factory.mktemp("here")
        command.execute(plan(*AXES, repeat=repeat), folder, Options(report=False), SweepProgress())
        return digest(folder)

    return made


def test_a_cluster_gives_the_same_bytes(
    plain: tuple[str, list[int]], sweep: Command, tmp_path: Path, here: Callable[[int], str]
) -> None:
    address, _ = plain
    document = json.loads(
        sweep(*WORDS, "--repeat", "3", "--on", address, "--out", "out", "--json", "--no-report").stdout
    )
    assert (document["made"], document["failed"]) == (36, 0)
    assert digest(tmp_path / "out") == here(3)
    hosts = pq.read_table(tmp_path / "out" / "store")["host"].to_pylist()
    assert set(hosts) == {socket.gethostname()}
    # And the same sweep goes on where it was, on this machine.
    again = json.loads(sweep(*WORDS, "--repeat", "4", "--out", "out", "--json", "--no-report").stdout)
    assert (again["reused"], again["made"]) == (36, 12)


def test_a_worker_of_another_version_is_refused(cluster: Cluster, sweep: Command, tmp_path: Path) -> None:
    preload = tmp_path / "older.py"
    preload.write_text("from dragstrip import _core\n_core.__version__ = '0.0.9'\n")
    address = cluster(["--no-nanny", "--preload", str(preload)])
    said = sweep(*WORDS, "--on", address, "--out", "out", status=1).stderr
    assert "has dragstrip 0.0.9+" in said
    assert "127.0.0.1" in said
    assert "install the same version" in said
    assert not list((tmp_path / "out" / "store").glob("*.parquet"))


def test_a_worker_without_dragstrip_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dragstrip.studies.sweep.build", None)
    assert _census("sim")().startswith("none (")


def test_no_scheduler_is_told(sweep: Command) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"dask://127.0.0.1:{free.getsockname()[1]}"
        said = sweep(*WORDS, "--on", address, "--out", "out", status=1).stderr
    assert f"error: --on {address}: no Dask scheduler answers there" in said
    assert "dask://HOST:PORT" in sweep(*WORDS, "--on", "spark://a:1", "--out", "out", status=2).stderr


def test_a_scheduler_that_dies_is_one_line_with_how_to_go_on(
    cluster: Cluster, experiment: Path, tmp_path: Path
) -> None:
    address = cluster(["--no-nanny"])
    words = [str(experiment), *WORDS, "--repeat", "500", "--no-report", "--on", address, "--out", "out"]
    process = subprocess.Popen(
        words_of(*words), cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 120
    while not list((tmp_path / "out" / "store").glob("*.parquet")):
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    cluster.started[0].kill()  # type: ignore[attr-defined]
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "distributed." not in err
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith(f"error: --on {address}: the scheduler ")
    assert f". To resume: dragstrip sweep {experiment} --vary path.rate" in last


def test_what_cannot_be_made_on_a_cluster_is_recorded(
    cluster: Cluster, sweep: Command, tmp_path: Path
) -> None:
    preload = tmp_path / "faulty.py"
    preload.write_text(
        f"import sys\nsys.path.insert(0, {str(HERE)!r})\n"
        "from dragstrip.runs import process\nprocess.MODULE = 'fake_child'\n"
    )
    address = cluster(["--no-nanny", "--preload", str(preload)])
    words = ["--vary", "flow.label=crash,hang,wrong,fine,good", "--repeat", "2", "--time-limit", "2s"]
    document = json.loads(
        sweep(*words, "--on", address, "--out", "out", "--json", "--no-report", status=1).stdout
    )
    assert (document["made"], document["failed"]) == (10, 6)
    rows = {row["run"]: row for row in pq.read_table(tmp_path / "out" / "dataset").to_pylist()}
    assert [rows[run]["status"] for run in range(0, 10, 2)] == ["failed", "time limit", "failed", "ok", "ok"]
    assert rows[0]["reason"] == "its process ended with signal SIGABRT, 3 times"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_sigkill_of_dask_workers(
    plain: tuple[str, list[int]], experiment: Path, tmp_path: Path, here: Callable[[int], str]
) -> None:
    """Both Dask's own worker processes (their nannies start others) and our children below them."""
    repeat, times = (400, 100) if FULL else (40, 4)
    address, nannies = plain
    process = subprocess.Popen(
        words_of(
            str(experiment),
            *WORDS,
            "--repeat",
            str(repeat),
            "--on",
            address,
            "--out",
            "out",
            "--json",
            "--no-report",
        ),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    draws, killed, last = random.Random(8), 0, 0.0  # noqa: S311
    while process.poll() is None:
        time.sleep(draws.uniform(0.4, 1.0))
        if killed >= times or not (tmp_path / "out" / "store").exists():
            continue
        workers = [child for nanny in nannies for child in children(nanny)]
        ours = [child for worker in workers for child in children(worker)]
        # A Dask worker now and then, its child mostly: Dask needs seconds to start another worker.
        if workers and time.monotonic() - last > 5.0:
            victim, last = draws.choice(workers), time.monotonic()
            below = children(victim)
            killed += kill(victim)
            assert all_gone(below)
        elif ours:
            killed += kill(draws.choice(ours))
    document = json.loads(process.communicate()[0])
    assert killed >= min(times, 2)
    assert (document["made"], document["failed"]) == (12 * repeat, 0)
    assert digest(tmp_path / "out") == here(repeat)
    assert once_each(tmp_path / "out") == 12 * repeat


HOSTILE = """
import json, time
from dragstrip.studies.sweep import cluster

real = cluster.real = getattr(cluster, "real", cluster.make)  # Dask loads this file twice

class Unsendable(Exception):
    def __init__(self, one, two):
        super().__init__("x" * 100_000_000 if one == "huge" else one)

def hostile(line, *words):
    label = json.loads(line.partition("\\t")[2])["flows"][0]["label"]
    answer = real(line, *words)
    good = json.loads(answer)
    match label:
        case "garbage": return b"\\xff no answer"
        case "object": return Unsendable("a", "b")
        case "number": return 5
        case "raises": raise Unsendable("cannot be rebuilt where it arrives", "because of this")
        case "huge": raise Unsendable("huge", "")
        case "function": raise ValueError(lambda: 0)
        case "identity":
            mine = {"key": "zz", "engine": "vm", "version": "9", "seed": 5, "scenario": "none"}
            return json.dumps({"status": "failed", "reason": "\\x1b[31mred", **mine, "run": mine, "flows": [mine]}).encode()
        case "other": good["summary"]["flows"][0]["label"] = "somebody else"
        case "text": good["summary"]["flows"][0]["retransmits"] = "many"
        case "large": good["summary"]["flows"][0]["retransmits"] = 10**30
        case "infinite": good["cpu_s"] = float("inf")
        case "surrogate": good["summary"]["queues"][0]["link"] = "\\ud800"
        case "more": good.update(key="zz", status="ok", seed=7, host="h" * 10_000)
        case "silent": time.sleep(20)
    return json.dumps(good).encode()

cluster.make = hostile
"""
SPOILT = ["garbage", "object", "number", "identity", "other", "text", "large", "infinite", "surrogate"]


def _on(address: str, out: Path, labels: list[str], time_s: float = 60.0) -> dict[str, dict[str, Any]]:
    """Rows of the dataset by label, of a sweep made in this process."""
    options = Options(on=address, report=False, limits=Limits(time_s))
    command.execute(plan("flow.label=" + ",".join(labels)), out, options, SweepProgress())
    return {row["flows_label"]: row for row in pq.read_table(out / "dataset").to_pylist()}


def test_a_hostile_worker_spoils_its_own_runs_alone(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preload = tmp_path / "hostile.py"
    preload.write_text(HOSTILE)
    address = cluster(*[["--no-nanny", "--preload", str(preload)]] * 2)
    labels = [
        label for pair in zip(SPOILT, (f"good{n}" for n in range(len(SPOILT))), strict=True) for label in pair
    ]
    rows = _on(address, tmp_path / "out", [*labels, "more"])
    honest = _here(tmp_path / "here", [*labels, "more"])
    assert {label for label, row in rows.items() if row["status"] == "failed"} == set(SPOILT)
    for label, row in rows.items():
        for column in ("key", "seed", "engine", "version"):
            assert row[column] == honest[label][column], label
        if label not in SPOILT:
            assert row == honest[label]
        else:
            assert len(row["reason"]) <= 2100
            assert row["reason"].isprintable()
    assert "flows[0].label: got 'somebody else', expected 'other'" in rows["other"]["reason"]
    # The folder is not spoilt for the next sweep.
    assert _here(tmp_path / "out", [*labels, "more", "next"])["next"]["status"] == "ok"

    # What never arrives, and an error that breaks where it arrives, end by the deadline at the latest.
    monkeypatch.setattr("dragstrip.studies.sweep.cluster.START_S", 1.0)
    monkeypatch.setattr("dragstrip.studies.sweep.cluster.GRACE_S", 2.0)
    never = ["raises", "huge", "function", "silent"]
    rows = _on(address, tmp_path / "silent", ["good", *never], time_s=1.0)
    assert rows["good"]["status"] == "ok"
    assert {rows[label]["status"] for label in never} <= {"failed", "time limit"}
    assert rows["silent"]["reason"] == "no answer came in 4 s, its time limit is 1 s"
    assert all(len(rows[label]["reason"]) <= 2100 for label in never)


def test_a_worker_that_hangs_costs_its_run_s_time_and_90_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which begins again where Dask gives the run of a worker that died to another one."""
    now = 1000.0
    monkeypatch.setattr("dragstrip.studies.sweep.cluster.time.monotonic", lambda: now)
    cancelled = []
    future = SimpleNamespace(key="run", cancel=lambda force: cancelled.append(force))
    holder = {"tcp://one": ("run",)}
    place = Place.__new__(Place)
    place.limits, place.threads, place.since, place.census_at, place.holders = Limits(), 1, {}, 0.0, {}
    place.client = SimpleNamespace(processing=lambda: holder)
    place.flying = {7: (Order(7, "{}"), future)}
    assert place._overdue() == []
    now += 600.0
    assert place._overdue() == []
    holder = {"tcp://two": ("run",)}
    now += 89.0
    assert place._overdue() == []
    now += 689.0
    assert place._overdue() == []
    now += 2.0
    (event,) = place._overdue()
    assert event.answer is not None
    assert event.answer["reason"] == "no answer came in 690 s, its time limit is 600 s"
    assert (cancelled, place.flying) == ([True], {})


def _here(out: Path, labels: list[str]) -> dict[str, dict[str, Any]]:
    command.execute(plan("flow.label=" + ",".join(labels)), out, Options(report=False), SweepProgress())
    return {row["flows_label"]: row for row in pq.read_table(out / "dataset").to_pylist()}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates: apt-get install openssl")
def test_a_cluster_behind_tls(cluster: Cluster, sweep: Command, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    name = "DASK_DISTRIBUTED__COMM__TLS__"
    known = {f"{name}CA_FILE": str(certificate), "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        known |= {f"{name}{role}__CERT": str(certificate), f"{name}{role}__KEY": str(key)}
    address = cluster(["--no-nanny"], tls=known)
    words = ["--vary", "flow.cc=reno,cubic", "--on", address, "--json", "--no-report"]
    made = json.loads(sweep(*words, "--out", "out", env=environment(**known)).stdout)
    assert (made["made"], made["failed"]) == (2, 0)
    said = sweep(*words, "--out", "other", status=1).stderr
    assert "TLS needs the file that DASK_DISTRIBUTED__COMM__TLS__CA_FILE names" in said
    assert len(said.splitlines()) == 1
    lacking = {**known, f"{name}CLIENT__KEY": str(tmp_path / "none")}
    said = sweep(*words, "--out", "other", env=environment(**lacking), status=2).stderr
    assert "none: no such file" in said
    plain = address.replace("dask+tls:", "dask:")
    said = sweep("--vary", "flow.cc=reno,cubic", "--on", plain, "--out", "other", status=1).stderr
    assert "no Dask scheduler answers there" in said
    assert "Traceback" not in said
