"""`dragstrip attack`: known attacks are found again, trivial ones do not count, finds replay and are checked."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragstrip.cli import app
from dragstrip.engines import named
from dragstrip.errors import Note
from dragstrip.studies.attack import console, elements, goals, kept, search
from dragstrip.studies.attack.elements import KINDS, Element
from dragstrip.studies.attack.finds import Find
from dragstrip.studies.attack.goals import HARM, STALL, STARVATION, UTILISATION, Score, Trial

BY_NAME = {kind.name: kind for kind in KINDS}


def element(name: str, *numbers: int) -> Element:
    return Element(BY_NAME[name], numbers)


def trial(goal: goals.Goal, algorithm: str, **path: str) -> Trial:
    return Trial(goal, algorithm, replace(goal.path, **path), 1)


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def attacked(folder: Path, *words: str) -> dict[str, Any]:
    ended = run("attack", *words, "--out", folder, "--json")
    assert ended.exit_code == 0, ended.output
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


@pytest.fixture(scope="module")
def finds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("attack") / "finds"
    words = "cubic --goal utilisation --goal stall --with cross --with acks --with changes --duration 6s --evaluations 240"
    return folder, attacked(folder, *words.split())


# --- the search -------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["reno", "cubic"])
def test_low_rate_pulses_are_found_from_scratch(algorithm: str, tmp_path: Path) -> None:
    words = f"{algorithm} --goal utilisation --with cross --evaluations 300"
    (find,) = attacked(tmp_path / "finds", *words.split())["finds"]
    assert find["value"] < 0.3
    assert find["figure"] < 0.3 * find["reference"]
    pulses = [it for it in find["elements"] if it["kind"] == "pulses"]
    assert pulses
    assert sum(it["rate_pct"] * it["length_ms"] / it["period_ms"] for it in pulses) <= elements.CROSS_MAX_PCT


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    words = (
        "vegas --goal starvation --with acks --with rtt --rate 6mbit --duration 4s --evaluations 90 --seed 7"
    )
    for workers in "13":
        attacked(tmp_path / workers, *words.split(), "--workers", workers)
    one, three = ({f.name: f.read_bytes() for f in (tmp_path / it).iterdir()} for it in "13")
    assert len(one) > 2
    assert one == three


def test_another_seed_searches_elsewhere(tmp_path: Path) -> None:
    words = [
        "reno",
        "--goal",
        "utilisation",
        "--with",
        "cross",
        "--duration",
        "4s",
        "--evaluations",
        "40",
        "--seed",
    ]
    assert attacked(tmp_path / "1", *words, "1")["finds"] != attacked(tmp_path / "2", *words, "2")["finds"]


def test_with_limits_what_is_mixed_too(finds: tuple[Path, dict[str, Any]]) -> None:
    vectors = {BY_NAME[it["kind"]].vector for find in finds[1]["finds"] for it in find["elements"]}
    assert vectors <= {"cross", "acks", "changes"}


def test_names_are_those_of_vectors(finds: tuple[Path, dict[str, Any]]) -> None:
    names = [find["name"] for find in finds[1]["finds"]]
    assert len(set(names)) == len(names)
    for find in finds[1]["finds"]:
        vectors = {BY_NAME[it["kind"]].vector for it in find["elements"]}
        assert find["name"] == f"{find['goal']}-{find['vector']}"
        assert find["vector"] == ("mixed" if len(vectors) > 1 else min(vectors))


def test_the_number_of_evaluations_is_kept(finds: tuple[Path, dict[str, Any]]) -> None:
    assert finds[1]["evaluations"] == 240


def test_what_an_attack_does_not_need_is_dropped() -> None:
    shrew, idle = element("pulses", 500, 60, 250, 10), element("ack_loss", 1, 0)
    it = trial(UTILISATION, "reno")
    bench = search.AttackScorer(1)
    (found,) = search.confirmed(it, bench.scores(it, [(idle, shrew)]), bench)
    least = search.minimised(it, found, bench)
    assert least.attack == (shrew,)
    assert least.value <= found.value * search.HOLDS


def test_what_happens_without_an_attack_is_no_attack() -> None:
    """BBR takes most of a CUBIC neighbour's share whatever the conditions, so little loss is not the cause."""
    it = trial(HARM, "bbr", duration="10s")
    loss = (element("ack_loss", 1, 0),)
    bench = search.AttackScorer(1)
    (found,) = search.confirmed(it, bench.scores(it, [loss]), bench)
    least = search.minimised(it, found, bench)
    assert found.value < 0.5
    assert least.attack == ()


def test_what_does_not_last_is_no_find() -> None:
    """A flow that starts late has caught up in twice the time."""
    it = trial(STARVATION, "reno", rate="6mbit", duration="4s")
    late = (element("late", 900),)
    bench = search.AttackScorer(1)
    ((_, score),) = scored = bench.scores(it, [late])
    (found,) = search.confirmed(it, scored, bench)
    assert score.value < found.doubled.value == found.value
    assert search.confirmed(it, scored, bench, below=found.doubled.value) == []


# --- what counts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("steady", (99,)),  # cross traffic takes the link
        ("steady", (60,)),
        ("random_loss", (9999, 0)),  # everything is lost
        ("outages", (1000, 990)),  # the link is down
        ("rate_steps", (1000, 1, 90)),  # there is no rate
    ],
)
def test_a_trivial_cause_does_not_count(kind: str, numbers: tuple[int, ...]) -> None:
    score = trial(UTILISATION, "cubic").score((element(kind, *numbers),))
    assert score.value > UTILISATION.find_max


def test_without_an_attack_cubic_fills_the_link() -> None:
    score = trial(UTILISATION, "cubic").score(())
    assert score.value > 0.98
    assert score.figure == pytest.approx(score.available, rel=0.01)


def test_what_cross_traffic_takes_is_not_the_victims_fault() -> None:
    score = trial(UTILISATION, "cubic").score((element("steady", 20),))
    assert score.available == pytest.approx(12 * 0.8 * 1448 / 1514, rel=0.02)


def test_the_rate_that_steps_leave_is_the_reference() -> None:
    it = trial(UTILISATION, "cubic")
    scene = it.scene((element("rate_steps", 1000, 50, 40),))
    assert scene.capacity_bps(1000) == pytest.approx(12e6 * (1 - 0.5 * 0.4))
    assert scene.capacity_bps(0) == pytest.approx(12e6 * (0.1 + 0.9 * (1 - 0.5 * 0.4)))


def test_known_starvations_score_low() -> None:
    held = trial(STARVATION, "vegas").score((element("aggregation", 60, 2),))
    assert held.value < 0.3
    two = trial(STARVATION, "bbr", rate="120mbit").score((element("other_rtt", 200),))
    assert two.figure < 20  # Mbit/s, beside:
    assert (two.other_flow or 0) > 90


def test_held_acks_of_two_bbrs_at_40_and_80_ms_are_found_from_scratch(tmp_path: Path) -> None:
    """Arun et al. (SIGCOMM 2022) report 8.3 and 107 Mbit/s on 120 Mbit/s."""
    words = (
        "bbr --goal starvation --with acks --rate 120mbit --other-rtt 80ms --duration 60s --evaluations 20"
    )
    document = attacked(tmp_path / "finds", *words.split())
    (none, held) = sorted(document["finds"], key=lambda find: -find["value"])
    assert none["elements"] == []
    assert [it["kind"] for it in held["elements"]] == ["aggregation"]
    assert held["figure"] < 9.5 < 11 < none["figure"]  # Mbit/s
    assert held["other_mbps"] > 100
    (goal,) = document["goals"]
    assert goal["other_rtt"] == "80ms"
    assert "40ms beside 80ms" in console.text(document, "f")
    assert "80000us" in (tmp_path / "finds" / "starvation-acks.toml").read_text()


def test_a_round_trip_that_is_given_is_not_searched(tmp_path: Path) -> None:
    words = "reno --goal starvation --with rtt --rate 6mbit --duration 4s --other-rtt 10ms --evaluations 40"
    document = attacked(tmp_path / "finds", *words.split())
    assert {it["kind"] for find in document["finds"] for it in find["elements"]} <= {"late"}
    given = trial(STARVATION, "reno", other_rtt="10ms")
    assert [given.scene(()).rtt_ms(at) for at in (0, 1)] == [40, 10]
    assert [trial(STARVATION, "reno").scene(()).rtt_ms(at) for at in (0, 1)] == [40, 40]
    assert trial(STARVATION, "reno").scene((element("other_rtt", 200),)).rtt_ms(1) == 80


@pytest.mark.parametrize(
    ("now", "later", "starved"), [(0.05, 0.04, True), (0.05, 0.3, False), (0.2, 0.05, False)]
)
def test_starved_means_still_so_in_twice_the_time(now: float, later: float, starved: bool) -> None:
    scores = [Score(value, 0.0, 1.0, 1.0, 1.0) for value in (now, later)]
    assert Find("starvation-cross", "cross", (), *scores).starved is starved


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_element_can_be_simulated_and_told(kind: elements.Kind) -> None:
    rng = random.Random(kind.name)  # noqa: S311
    it = trial(STARVATION if kind.two_flows else STALL, "cubic", rate="1mbit", duration="2s")
    told = set()
    for _ in range(6):
        drawn = elements.changed(elements.draw_element([kind], rng), rng)
        for gene, number in zip(kind.genes, drawn.numbers, strict=True):
            assert gene.low <= number <= gene.high
        assert 0 <= it.score((drawn,)).value <= 1
        told.add(drawn.words(True))
    assert len(told) > 1


def test_attacks_stay_small() -> None:
    shrew = element("pulses", 500, 60, 200, 10)
    assert elements.admissible((shrew,))
    assert not elements.admissible((shrew, element("steady", 25)))
    assert not elements.admissible((element("loss_episodes", 200, 100, 50),))
    assert not elements.admissible((element("ack_loss", 3, 0), element("ack_loss", 4, 0)))


# --- what is written --------------------------------------------------------------------------


def test_finds_replay_with_the_same_figure(finds: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, document = finds
    assert document["finds"]
    for find in document["finds"]:
        ended = run(
            "run", folder / f"{find['name']}.toml", "--out", tmp_path / find["name"], "--no-report", "--json"
        )
        assert ended.exit_code == 0, ended.output
        (claim,) = json.loads(ended.stdout)["claims"]
        assert claim["measured"] == find["figure"], find["name"]


def test_the_folder_holds_what_the_document_names(finds: tuple[Path, dict[str, Any]]) -> None:
    folder, document = finds
    assert json.loads((folder / "attack.json").read_text()) == document
    page = (folder / "attack.md").read_text()
    for find in document["finds"]:
        assert find["words"] in page
        assert (folder / find["replay"].split()[-1]).is_file()


def test_the_table_fits_a_terminal_and_tells_everything(finds: tuple[Path, dict[str, Any]]) -> None:
    _, document = finds
    said = console.text(document, "f")
    assert max(map(len, said.splitlines())) <= 80
    flat = re.sub(r"\s+", " ", said)
    for find in document["finds"]:
        assert find["words"] in flat
        assert f"dragstrip run f/{find['name']}.toml" in flat


def test_an_algorithm_as_a_text(tmp_path: Path) -> None:
    text = tmp_path / "mine.cc"
    text.write_text("on ack { cwnd = cwnd + acked / cwnd } on loss { ssthresh = max(cwnd / 8, 2) }")
    words = f"mine --program {text} --goal utilisation --with cross --duration 4s --evaluations 40"
    document = attacked(tmp_path / "finds", *words.split())
    assert document["finds"]
    assert run("attack", "--rerun", tmp_path / "finds").exit_code == 0


@pytest.mark.parametrize("calls", [1, 2, 3, 5, 8, 12, 16, 21])
def test_interrupted_it_keeps_the_finds_so_far(
    calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C after so many calls of the bench: in a first generation, in a later one, while minimising."""
    made, real = [0], search.AttackScorer.scores

    def scores(self: search.AttackScorer, *given: Any, **more: Any) -> Any:
        made[0] += 1
        if made[0] == calls:
            raise KeyboardInterrupt
        return real(self, *given, **more)

    monkeypatch.setattr(search.AttackScorer, "scores", scores)
    words = "cubic --goal utilisation --with cross --with acks --duration 4s --evaluations 120 --json"
    ended = run("attack", *words.split(), "--out", tmp_path / "finds")
    assert made[0] == calls or ended.exit_code == 0
    if calls <= 4:  # nothing is confirmed yet
        assert not (tmp_path / "finds").exists()
        assert ended.stdout == ""
        return
    document = json.loads(ended.stdout)
    assert document == json.loads((tmp_path / "finds" / "attack.json").read_text())
    assert document["partial"]
    assert document["finds"]
    assert console.PARTIAL in console.text(document, "f")
    assert console.PARTIAL in (tmp_path / "finds" / "attack.md").read_text()
    assert isinstance(ended.exception, KeyboardInterrupt) or ended.exit_code in (1, 130)
    again = run("attack", "--rerun", tmp_path / "finds", "--json")
    assert [it["verdict"] for it in json.loads(again.stdout)["finds"]] == ["same"] * len(document["finds"])


# --- kept finds -------------------------------------------------------------------------------


def test_kept_finds_are_checked(finds: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    folder, document = finds
    ended = run("attack", "--rerun", folder, "--json")
    assert ended.exit_code == 0
    told = json.loads(ended.stdout)["finds"]
    assert [it["verdict"] for it in told] == ["same"] * len(document["finds"])
    find = next(
        find for find in document["finds"] if find["goal"] == "utilisation" and find["vector"] == "cross"
    )
    text = (folder / f"{find['name']}.toml").read_text()
    for factor, verdict, status in [(1.04, "same", 0), (1.1, "worse", 3), (0.9, "better", 0)]:
        place = tmp_path / verdict
        place.mkdir()
        value = f"value = {find['figure']!r}"
        assert value in text
        (place / "find.toml").write_text(text.replace(value, f"value = {find['figure'] * factor!r}"))
        ended = run("attack", "--rerun", place, "--json")
        assert (ended.exit_code, json.loads(ended.stdout)["finds"][0]["verdict"]) == (status, verdict)


def edited(folder: Path, place: Path, name: str, old: str, new: str) -> Path:
    """A copy of a folder of finds with a file of it changed."""
    shutil.copytree(folder, place)
    text = (place / name).read_text()
    assert old in text
    (place / name).write_text(text.replace(old, new))
    return place


def test_a_claim_that_cannot_fail_is_refused(finds: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """A claim of 0 passed whatever the find did, and nobody looked at `attack.json`."""
    folder, document = finds
    find = next(find for find in document["finds"] if find["unit"] == "Mbit/s")
    name, value = f"{find['name']}.toml", f"value = {find['figure']!r}"
    for number, claim in enumerate((0.0, find["figure"] * 0.9)):
        place = edited(folder, tmp_path / str(number), name, value, f"value = {claim!r}")
        ended = run("attack", "--rerun", place)
        said = f"claims.victim.value: got {claim}, expected {find['figure']:g}, as attack.json has it"
        assert said in str(ended.exception)
    (tmp_path / "0" / "attack.json").unlink()
    ended = run("attack", "--rerun", tmp_path / "0")
    assert "claims.victim.value: got 0.0, expected above 0, for nothing is worse" in str(ended.exception)
    place = edited(folder, tmp_path / "less", name, value, value)
    (place / name).unlink()
    ended = run("attack", "--rerun", place)
    assert f"finds: got {find['name']!r}, expected a file {name} beside it" in str(ended.exception)
    assert kept.verdict("goodput_bps", 0.0, 0.0) == "worst"
    assert kept.verdict("goodput_bps", 0.0, 1.0) == "better"
    assert kept.verdict("stall_s_longest", 0.0, 1.0) == "worse"


def test_a_find_of_somebody_else_runs_on_the_simulator(
    finds: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, document = finds
    name = f"{document['finds'][0]['name']}.toml"
    first = (folder / name).read_text().splitlines()[0]
    foreign = f'engine = "vm"\nload = ["mine.bpf.c"]\n{first}'
    place = edited(folder, tmp_path / "foreign", name, first, foreign)
    monkeypatch.setattr(type(named("vm")), "run", lambda *_: pytest.fail("on the file's engine"))
    with pytest.warns(Note, match="asks for engine vm; it runs on the simulator"):
        ended = run("attack", "--rerun", place, "--json")
    assert ended.exit_code == 0, ended.output
    assert {it["verdict"] for it in json.loads(ended.stdout)["finds"]} == {"same"}


def test_a_longer_stall_is_worse() -> None:
    assert kept.verdict("stall_s_longest", 2.0, 2.2) == "worse"
    assert kept.verdict("stall_s_longest", 2.0, 1.8) == "better"
    assert kept.verdict("goodput_bps", 2.0, 1.8) == "worse"
    assert kept.verdict("goodput_bps", 2.0, None) == "worse"


def test_a_file_that_is_no_find_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        'duration = "1s"\n[path]\nrate = "1mbit"\nrtt = "40ms"\n[[flows]]\ncc = "reno"\n'
    )
    ended = run("attack", "--rerun", tmp_path)
    assert "as `dragstrip attack` writes it" in str(ended.exception)


def test_a_quic_stack_is_attacked_like_any_algorithm(tmp_path: Path) -> None:
    words = ["attack", "noq/cubic", "--goal", "utilisation", "--with", "loss", "--evaluations", "3", "--json"]
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "finds")])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["finds"], "random loss of two per cent leaves CUBIC a sixth of the rate"
    again = CliRunner().invoke(app, ["attack", "--rerun", str(tmp_path / "finds")])
    assert again.exit_code == 0, again.output
    wrong = CliRunner().invoke(
        app, ["attack", "noq/cubik", "--evaluations", "100", "--out", str(tmp_path / "no")]
    )
    assert 'did you mean "noq/cubic"?' in str(wrong.exception)
