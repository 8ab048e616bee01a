"""A fixed sample of situations: what is called certain is right, and the situations are what they claim to be."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from . import files, pcapng, score, situations, truth

SEEDS = range(60)
NAMED = 0.75


@pytest.fixture(scope="module")
def results() -> list[score.Result]:
    return score.diagnosed(SEEDS, workers=1)


def test_what_is_certain_is_right(results: list[score.Result]) -> None:
    wrong = [
        (it.seed, it.cause, it.files, claim.causes)
        for it in results
        for claim in it.claims
        if claim.tally in ("certain", "nothing") and not claim.right
    ]
    assert not wrong
    assert not [it.fault for it in results if it.fault]


def test_causes_are_named_where_files_show_them(results: list[score.Result]) -> None:
    figures = score.figures_of(results)
    assert figures.all["named"] >= 60
    assert (figures.share("named") or 0) >= NAMED


def test_every_cause_and_half_of_the_situations_is_in_the_sample(results: list[score.Result]) -> None:
    assert {it.cause for it in results} == set(situations.CAUSES)
    held = {seed for seed in range(1000) if situations.is_held_back(seed)}
    assert 440 < len(held) < 560
    assert not any(
        str(it.seed) == line.split()[1] for it in results if it.held_back for line in score.details([it])
    )


def test_a_situation_is_the_same_twice() -> None:
    (one, other) = (score.results_of(7) for _ in range(2))
    assert one == other
    assert one


def test_a_construction_without_effect_does_not_count() -> None:
    found = score.drawn(0)
    assert found is not None
    it, true = found
    assert it.cause == "bufferbloat"
    assert true.holds
    short = {**it.experiment["path"], "queue": "bfifo limit 6000b"}
    weak = situations.Situation(**{**vars(it), "experiment": {**it.experiment, "path": short}})
    assert not truth.truth_of(weak, situations.recording_of(weak)).holds


def test_a_reader_that_stops_closes_its_window(tmp_path: Path) -> None:
    found = score.drawn(situations.CAUSES.index("receiver_closed"))
    assert found is not None
    it, true = found
    recording = situations.recording_of(it, tmp_path, ("s1",))
    plain = (tmp_path / "s1.pcapng").read_bytes()
    made, closed_s = pcapng.stopped_reader(
        plain, bytes((10, 0, 0, 1)), round(it.rtt_ms * 1e6), at_sender=True
    )
    windows = [pcapng._Segment(part.frame) for part in pcapng.blocks(made) if pcapng._is_tcp(part.frame)]
    zero = [segment for segment in windows if segment.window == 0 and segment.flags & pcapng.ACK]
    assert closed_s > 1
    assert len(zero) >= 2
    assert all(segment.source == bytes((10, 0, 0, 3)) for segment in zero)
    dice = random.Random(1)  # noqa: S311 - no secret
    given = files.rendered(it, true, recording, tmp_path, tmp_path, (files.SENDER,), "whole", dice)
    assert given.shows


def test_blocks_are_written_as_they_were_read(tmp_path: Path) -> None:
    it = situations.situation(0)
    situations.recording_of(it, tmp_path, ("s1",))
    content = (tmp_path / "s1.pcapng").read_bytes()
    packets = [part for part in pcapng.blocks(content) if part.kind == pcapng.PACKET]
    again = [
        part for part in pcapng.blocks(pcapng.joined(pcapng.blocks(content))) if part.kind == pcapng.PACKET
    ]
    assert [(it.time_ns, it.frame) for it in packets] == [(it.time_ns, it.frame) for it in again]
    fewer = [part for part in pcapng.blocks(pcapng.late(content, 3.0)) if part.kind == pcapng.PACKET]
    assert 0 < len(fewer) < len(packets)
