"""`dragstrip identify`: a capture's congestion control is named, or it is said why it cannot be."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import blind_captures
from dragstrip.analysis.whatif import identify, network, walk
from dragstrip.analysis.whatif.identify import GIVEN, IMPOSSIBLE, NONE, UNCERTAIN
from dragstrip.analysis.whatif.shapes import FLOORS, MEASURES, warped
from dragstrip.cli import app
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

ALGORITHMS = ("cubic", "bbr", "vegas")
PATH = {"rate": "5mbit", "rtt": "60ms", "queue": "bfifo limit 60kb", "duration": "15s"}


def raced(folder: Path, algorithms: tuple[str, ...], **options: Any) -> Path:
    planned = captured(
        plan(compare(algorithms, **{**PATH, **options})), CaptureRequest(points=("s1", "d", "r-d"))
    )
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


@pytest.mark.parametrize("place", ["d", "r-d"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_capture_from_elsewhere_is_named(made: Path, algorithm: str, place: str) -> None:
    (file,) = made.glob(f"runs/*-{algorithm}/captures/{place}.pcapng")
    document = answer(file)
    assert document["answer"] in (algorithm, None), document["reason"]
    assert algorithm in document["among"]


@pytest.mark.parametrize(
    ("point", "place", "words"),
    [
        ("s1", "sender", "at the sender"),
        ("d", "receiver", "at the receiver; what the sender saw is inferred"),
        ("r-d", "queue", "behind the bottleneck's queue; what the sender saw is inferred"),
    ],
)
def test_the_place_of_a_capture_is_where_it_was_taken(made: Path, point: str, place: str, words: str) -> None:
    file = sender(made, point)
    document = answer(file)
    assert (document["place"], document["sender_inferred"]) == (place, point != "s1")
    (path,) = json.loads(CliRunner().invoke(app, ["inspect", str(file), "--infer", "--json"]).stdout)["paths"]
    assert path["place"] == place
    text = " ".join(CliRunner().invoke(app, ["identify", str(file)]).stdout.split())
    assert f" s, {words} candidate " in text


def test_the_path_from_elsewhere_is_that_from_the_sender(made: Path) -> None:
    (at_sender,) = made.glob("runs/*-cubic/captures/s1.pcapng")
    (at_receiver,) = made.glob("runs/*-cubic/captures/d.pcapng")
    whole = walk.read(at_sender, None)
    moved = walk.at_sender(walk.read(at_receiver, None))
    assert moved is not None
    assert moved.path.base_rtt_ms.value == pytest.approx(whole.path.base_rtt_ms.value, rel=0.02)
    assert moved.path.rate_bps.value == pytest.approx(whole.path.rate_bps.value, rel=0.02)
    assert moved.path.buffer_bytes.value == pytest.approx(whole.path.buffer_bytes.value, rel=0.05)
    assert moved.capture.retransmitted == whole.capture.retransmitted
    assert walk.at_sender(whole) is None


@pytest.mark.parametrize("point", ["s1", "d"])
def test_candidates_have_the_segments_of_the_capture(tmp_path: Path, point: str) -> None:
    options = {"rate": "1mbit", "rtt": "60ms", "queue": "bfifo limit 9kb", "duration": "20s"}
    planned = plan(network.experiment(options, ["cubic"], mtu_bytes=100))
    execute(captured(planned, CaptureRequest(points=("s1", "d"))), tmp_path / "short", report=False)
    document = answer(sender(tmp_path / "short", point))
    assert (document["kind"], document["answer"]) == (GIVEN, "cubic"), document["reason"]


def test_at_the_receiver_without_time_stamps_it_cannot_be_told(tmp_path: Path) -> None:
    file = sender(raced(tmp_path / "bare", ("cubic",), sysctl={"net.ipv4.tcp_timestamps": "0"}), "d")
    document = answer(file)
    assert (document["kind"], document["answer"]) == (IMPOSSIBLE, None)
    assert (document["place"], document["sender_inferred"]) == ("receiver", False)
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


def judged(
    *near: float, same: tuple[int, ...] = (), rate_open: bool = False, noise: tuple[float, ...] = ()
) -> identify.Answer:
    """Judge candidates `a`, `b`, ... that are so many units of noise away; `noise` is in units of the least."""
    names = [chr(97 + at) for at in range(len(near))]
    draws = [[(apart + 0.01 * draw) * FLOOR for draw in range(3)] for apart in near]
    for at in same:
        draws[at] = draws[0]
    own = np.array([[FLOOR * factor] * 3 for factor in noise or [1.0] * len(near)])
    return identify.judged(names, [(np.array(draws), own)], rate_open)


def test_an_answer_needs_a_lead() -> None:
    assert judged(0.5, 2.0).name == "a"
    assert judged(0.5, 2.0).confidence > judged(0.5, 1.0).confidence
    close = judged(1.3, 1.35, 2.0)
    assert (close.kind, close.name, close.names) == (UNCERTAIN, None, ("a", "b"))


def test_confidence_falls_with_distance_and_where_the_rate_is_open() -> None:
    assert judged(0.5, 1.5).confidence > judged(1.5, 2.5).confidence
    assert judged(0.5, 1.5).confidence > judged(0.5, 1.5, rate_open=True).confidence
    assert judged(0.5, 9.0).confidence < 1


def test_what_varies_much_is_near_to_anything() -> None:
    assert identify.confidence(1.0, 0.6, 2.2, False) < 0.9 < identify.confidence(1.0, 0.6, 0.2, False)


def test_nothing_near_is_unknown() -> None:
    for answer in (judged(5.0, 9.0), judged(2.5, 2.6)):
        assert (answer.kind, answer.name) == (NONE, None)
        assert "no candidate's runs are near enough" in answer.reason


def test_the_same_run_is_named_beside() -> None:
    both = judged(0.5, 0.5, 2.0, same=(1,))
    assert (both.kind, both.names, both.alike) == (GIVEN, ("a", "b"), ("b",))


def test_a_candidate_counts_on_the_path_that_suits_it() -> None:
    """On the first path `b` is nearer, on the second `a` is nearer still."""
    own = np.array([[FLOOR] * 3] * 2)

    def near(*aparts: float) -> Any:
        return np.array([[apart * FLOOR] * 3 for apart in aparts])

    answer = identify.judged(["a", "b"], [(near(5.0, 2.0), own), (near(0.5, 5.0), own)], rate_open=False)
    assert (answer.name, answer.path) == ("a", 1)


def test_the_reason_tells_the_two_nearest_apart() -> None:
    reason = judged(0.302, 0.701).reason
    assert (
        reason == "a's runs are at 0.31 of their own spread from the capture, those of the next, b, at 0.71"
    )
    assert judged(0.25, 1.5, noise=(1.0, 3.0)).reason.endswith("the next, b, at 0.50 of a wider spread")


def test_a_course_that_runs_ahead_is_near() -> None:
    at = np.linspace(0, 12, 240)
    wave, later, other = np.sin(at), np.sin(at - 0.4), np.sin(1.7 * at)
    same, ahead, far = warped(np.array([wave] * 3), np.array([wave, later, other]))
    assert same == 0
    assert ahead < 0.25 * float(np.abs(wave - later).mean())
    assert far > 3 * ahead


# --- blind captures ---------------------------------------------------------------------------------

SAMPLE = (48, 116, 58)
"""Situations of the development half: jitter, CoDel, random loss beside a full buffer."""


def test_halves_are_by_hash_and_disjoint() -> None:
    halves = [
        {situation.number for situation in blind_captures.situations(half, 90)}
        for half in blind_captures.HALVES
    ]
    assert not halves[0] & halves[1]
    assert all(len(half) == 90 for half in halves)


@pytest.mark.parametrize("number", SAMPLE)
def test_a_blind_sample_is_named(tmp_path: Path, number: int) -> None:
    (situation,) = (one for one in blind_captures.situations("development", 95) if one.number == number)
    trial = blind_captures.tried(situation, tmp_path)
    assert trial.result == "right", trial.answer
    assert blind_captures.held("base_rtt_ms", blind_captures.recorded(trial)) == "held"


def test_beside_a_flow_that_the_capture_lacks_it_is_unknown(tmp_path: Path) -> None:
    (situation,) = (one for one in blind_captures.situations("development", 95) if one.number == 36)
    assert situation.beside
    trial = blind_captures.tried(situation, tmp_path)
    assert trial.answer.kind in (NONE, UNCERTAIN)
