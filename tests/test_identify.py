"""`dragstrip identify`: a capture's congestion control is named, or it is said why it cannot be."""

from __future__ import annotations

import json
import struct
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.engines.capture import Asked
from dragstrip.errors import BadInputError
from dragstrip.execution.runner import captured, execute, plan
from dragstrip.experiment.comparison import compare
from dragstrip.whatif import closer, identify
from dragstrip.whatif.identify import GIVEN, IMPOSSIBLE, NONE, UNCERTAIN
from dragstrip.whatif.shapes import FLOORS, MEASURES, warped

ALGORITHMS = ("cubic", "bbr", "vegas")
PATH = {"rate": "5mbit", "rtt": "60ms", "queue": "bfifo limit 60kb", "duration": "15s"}


def raced(folder: Path, algorithms: tuple[str, ...], **options: Any) -> Path:
    planned = captured(plan(compare(algorithms, **{**PATH, **options})), Asked(points=("s1", "d")))
    execute(planned, folder, report=False)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return raced(tmp_path_factory.mktemp("identify") / "race", ALGORITHMS)


def answer(file: Path, *words: str) -> dict[str, Any]:
    ended = CliRunner().invoke(app, ["identify", str(file), "--json", *words])
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def sender(folder: Path, place: str = "s1") -> Path:
    (file,) = sorted(folder.glob(f"runs/000-*/captures/{place}.pcapng"))
    return file


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_capture_is_named(made: Path, algorithm: str) -> None:
    (file,) = made.glob(f"runs/*-{algorithm}/captures/s1.pcapng")
    document = answer(file)
    assert document["kind"] == GIVEN, document["reason"]
    assert document["answer"] == algorithm
    assert document["candidates"][0]["name"] == algorithm
    assert document["flow"] == "flow 0", "no addresses unless asked for"


def test_at_the_receiver_it_cannot_be_told(made: Path) -> None:
    document = answer(sender(made, "d"))
    assert document["kind"] == IMPOSSIBLE
    assert document["answer"] is None
    assert "at the receiver" in document["reason"]


def test_too_short(tmp_path: Path) -> None:
    document = answer(sender(raced(tmp_path / "short", ("reno",), duration="3s")))
    assert (document["kind"], document["answer"]) == (IMPOSSIBLE, None)
    assert "too short" in document["reason"]


def test_a_receiver_that_limits(tmp_path: Path) -> None:
    small = {"net.ipv4.tcp_rmem": "4096 32768 32768"}
    document = answer(sender(raced(tmp_path / "small", ("reno",), sysctl=small)))
    assert document["kind"] == IMPOSSIBLE
    assert "receiver" in document["reason"]


def test_several_flows_are_chosen_among(tmp_path: Path) -> None:
    file = sender(raced(tmp_path / "two", ("cubic",), flows=2, duration="3s"), "d")
    assert [answer(file, "--flow", port)["flow"] for port in ("30001", "30002")] == ["flow 0", "flow 1"]
    ended = CliRunner().invoke(app, ["identify", str(file), "--flow", "10.0.0"])
    assert isinstance(ended.exception, BadInputError)
    assert "--flow: got '10.0.0', expected part of the name of one flow" in str(ended.exception)


# --- captures that lack something -------------------------------------------------------------------


def cut(file: Path, made: Path, keep: Any) -> Path:
    """Copy the packets of a pcapng file for which `keep(number, source port)` holds; one file, little-endian."""
    content, place, number = file.read_bytes(), 0, 0
    parts = []
    while place < len(content):
        kind, length = struct.unpack_from("<II", content, place)
        block = content[place : place + length]
        place += length
        if kind == 6:
            ip = 28 + 14
            (port,) = struct.unpack_from(">H", block, ip + 20)
            is_tcp = block[ip + 9] == 6
            number += 1
            if not is_tcp or not keep(number, port):
                continue
        if kind == 5:
            continue
        parts.append(block)
    made.write_bytes(b"".join(parts))
    return made


def test_without_the_handshake(made: Path, tmp_path: Path) -> None:
    (file,) = made.glob("runs/*-cubic/captures/s1.pcapng")
    document = answer(cut(file, tmp_path / "late.pcapng", lambda number, _: number > 8))
    assert (document["kind"], document["answer"]) == (GIVEN, "cubic")


def test_one_direction_alone(made: Path, tmp_path: Path) -> None:
    (file,) = made.glob("runs/*-cubic/captures/s1.pcapng")
    document = answer(cut(file, tmp_path / "one.pcapng", lambda _, port: port == 30001))
    assert (document["kind"], document["answer"]) == (IMPOSSIBLE, None)
    assert document["reason"]


def test_ten_packets(made: Path, tmp_path: Path) -> None:
    (file,) = made.glob("runs/*-cubic/captures/s1.pcapng")
    document = answer(cut(file, tmp_path / "ten.pcapng", lambda number, _: number <= 10))
    assert (document["kind"], document["answer"]) == (IMPOSSIBLE, None)


def test_no_data(made: Path, tmp_path: Path) -> None:
    (file,) = made.glob("runs/*-cubic/captures/s1.pcapng")
    empty = cut(file, tmp_path / "none.pcapng", lambda _number, _port: False)
    ended = CliRunner().invoke(app, ["identify", str(empty)])
    assert isinstance(ended.exception, BadInputError)
    assert "a capture with a TCP connection that carries data" in str(ended.exception)


# --- the judgement ----------------------------------------------------------------------------------

FLOOR = np.array([FLOORS[name] for name in MEASURES])


def judged(*near: float, same: tuple[int, ...] = ()) -> identify.Answer:
    """Judge candidates `a`, `b`, ... that are so many units of noise away."""
    names = [chr(97 + at) for at in range(len(near))]
    draws = [[(apart + 0.01 * draw) * FLOOR for draw in range(3)] for apart in near]
    for at in same:
        draws[at] = draws[0]
    own = np.array([[FLOOR] * 3 for _ in near])
    return identify.judged(names, np.array(draws), own)


def test_an_answer_needs_a_margin() -> None:
    assert judged(0.5, 2.0).name == "a"
    assert judged(0.5, 2.0).confidence > judged(0.5, 1.0).confidence
    close = judged(0.5, 0.6, 2.0)
    assert (close.kind, close.name, close.names) == (UNCERTAIN, None, ("a", "b"))


def test_nothing_near_is_unknown() -> None:
    assert judged(5.0, 9.0).kind == NONE
    assert judged(5.0, 9.0).name is None


def test_the_same_run_is_named_beside() -> None:
    both = judged(0.5, 0.5, 2.0, same=(1,))
    assert (both.kind, both.names, both.alike) == (GIVEN, ("a", "b"), ("b",))


def test_one_run_has_to_fit_in_everything() -> None:
    """Candidate `b` is near in each measure, but never in all at once: on few runs it looks as good as `a`."""
    count = len(MEASURES)
    runs = 6
    a = np.full((runs, count), 2.0)
    a[:2] = 0.5
    b = np.full((runs, count), 2.0)
    for run in range(runs):
        b[run, run % 3 :: 3] = 0.5
    pairs = np.ones((2, runs * (runs - 1) // 2, count))
    near = np.array([a, b]) * FLOOR
    apart = identify.judged(["a", "b"], near, pairs * FLOOR).scores
    assert apart[0][1] == apart[1][1], "by each measure alone"
    found = identify.judged(["a", "b"], near, pairs * FLOOR, closer.scored)
    assert found.name == "a"


def test_noise_is_how_near_a_candidates_own_runs_come() -> None:
    """Runs in two clusters: to be as far away as one cluster is from the other is far."""
    count = len(MEASURES)
    cluster = np.array([0, 0, 0, 1, 1, 1])
    pairs = [4.0 if cluster[one] != cluster[other] else 1.0 for one, other in combinations(range(6), 2)]
    own = np.array([np.outer(pairs, FLOOR)])
    inside = np.array([np.outer(np.where(cluster == 0, 1.0, 4.0), FLOOR)])
    outside = np.array([np.full((6, count), 4.0) * FLOOR])
    assert closer.scored(inside, own)[1][0] == pytest.approx(1.0)
    assert closer.scored(outside, own)[1][0] == pytest.approx(4.0)


def test_a_course_that_runs_ahead_is_near() -> None:
    at = np.linspace(0, 12, 240)
    wave, later, other = np.sin(at), np.sin(at - 0.4), np.sin(1.7 * at)
    same, ahead, far = warped(np.array([wave] * 3), np.array([wave, later, other]))
    assert same == 0
    assert ahead < 0.25 * float(np.abs(wave - later).mean())
    assert far > 3 * ahead
