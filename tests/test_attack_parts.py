"""Elements, scenes and scores of attacks one by one: ranges, admissibility, capacity, references."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from dragstrip.studies.attack import elements, goals, search
from dragstrip.studies.attack.elements import KINDS, Element, Gene
from dragstrip.studies.attack.goals import HARM, STALL, STARVATION, UTILISATION, Score, Trial
from dragstrip.studies.attack.scene import AttackPath, Scene

BY_NAME = {kind.name: kind for kind in KINDS}
GENES = {(kind.name, gene.name): gene for kind in KINDS for gene in kind.genes}


def element(name: str, *numbers: int) -> Element:
    return Element(BY_NAME[name], numbers)


def scene(*senders: str, duration_ms: int = 10_000, **path: Any) -> Scene:
    return Scene(AttackPath("10mbit", "40ms", "1bdp", "10s", **path), senders or ("reno",), duration_ms, 1)


# --- genes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("gene", GENES.values(), ids=[".".join(name) for name in GENES])
def test_a_number_stays_in_its_range_and_short(gene: Gene) -> None:
    rng = random.Random(gene.name)  # noqa: S311
    drawn = [gene.draw(rng) for _ in range(200)]
    drawn += [gene.changed(value, rng) for value in (gene.low, gene.high) for _ in range(50)]
    assert all(gene.low <= value <= gene.high for value in drawn)
    if gene.log:
        assert [gene.tidy(value) for value in drawn] == drawn
        short = [value for value in drawn if value not in (gene.low, gene.high)]
        assert all(len(str(value).rstrip("0")) <= 2 for value in short)
    assert len(set(drawn)) > min(2, gene.high - gene.low)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.2, 1),
        (1.4, 1),
        (99.4, 99),
        (99.6, 100),
        (104, 100),
        (106, 110),
        (994, 990),
        (2501, 2500),
        (9e9, 2500),
    ],
)
def test_numbers_are_rounded_to_two_digits(value: float, expected: int) -> None:
    assert Gene("x", 1, 2500).tidy(value) == expected


def test_a_logarithmic_gene_is_drawn_evenly_by_decade() -> None:
    rng = random.Random(5)  # noqa: S311
    decades = Counter(len(str(Gene("x", 1, 9999).draw(rng))) for _ in range(4000))
    assert all(850 < decades[digits] < 1150 for digits in (1, 2, 3, 4))


# --- elements ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attack", "cross", "loss"),
    [
        ((), 0.0, 0.0),
        ((("pulses", 500, 50, 250, 0),), 25.0, 0.0),
        ((("pulses", 500, 50, 200, 0), ("pulses", 1000, 50, 100, 0)), 25.0, 0.0),
        ((("steady", 25),), 25.0, 0.0),
        ((("steady", 5), ("pulses", 500, 50, 200, 0)), 25.0, 0.0),
        ((("loss_episodes", 1000, 100, 50),), 0.0, 5.0),
        ((("loss_episodes", 200, 400, 5),), 0.0, 5.0),  # an episode longer than its period is no more
    ],
)
def test_the_largest_attack_is_admissible_and_the_next_is_not(
    attack: tuple[tuple[Any, ...], ...], cross: float, loss: float
) -> None:
    whole = tuple(element(*numbers) for numbers in attack)
    assert elements.cross_pct(whole) == pytest.approx(cross)
    assert elements.loss_pct(whole) == pytest.approx(loss)
    assert elements.admissible(whole)
    if cross:
        assert not elements.admissible((*whole, element("pulses", 3000, 10, 20, 0)))
    if loss:
        values = whole[0].values
        (more,) = (element("loss_episodes", *values.values()),)
        more = replace(more, numbers=(*more.numbers[:2], more.numbers[2] + 1))
        assert not elements.admissible((more,))


def test_five_elements_are_the_most_and_only_pulses_repeat() -> None:
    pulses = [element("pulses", 3000, 10, 20, phase) for phase in range(6)]
    assert elements.admissible(tuple(pulses[:5]))
    assert not elements.admissible(tuple(pulses))
    for kind in KINDS:
        twice = tuple(Element(kind, tuple(gene.low for gene in kind.genes)) for _ in range(2))
        assert elements.admissible(twice) == (kind.name == "pulses")


@pytest.mark.parametrize("two_flows", [False, True])
@pytest.mark.parametrize("fixed_rtt", [False, True])
def test_kinds_fit_the_scene(two_flows: bool, fixed_rtt: bool) -> None:
    names = {kind.name for kind in elements.kinds(elements.VECTORS, two_flows, fixed_rtt)}
    without = {"late", "other_rtt"} if not two_flows else {"other_rtt"} if fixed_rtt else set()
    assert names == BY_NAME.keys() - without
    assert [kind.vector for kind in elements.kinds(["loss"], two_flows)] == ["loss"] * sum(
        kind.vector == "loss" for kind in KINDS
    )


@pytest.mark.parametrize(
    ("name", "numbers", "changes"),
    [
        ("outages", (4000, 500), [(4000, "down"), (4500, "up"), (8000, "down"), (8500, "up")]),
        ("outages", (9900, 500), [(9900, "down")]),  # its end lies behind the run's
        ("outages", (10_000, 20), []),
        ("rate_steps", (5000, 25, 10), [(5000, "2500000bit"), (5500, "10000000bit")]),
        ("delay_steps", (5000, 30, 90), [(5000, "30ms"), (9500, "0ms")]),
        (
            "loss_episodes",
            (5000, 5000, 2),
            [(5000, "2%"), (9999, "0%")],
        ),  # a millisecond less than the period
    ],
)
def test_cycles_begin_after_the_first_period_and_end_with_the_run(
    name: str, numbers: tuple[int, ...], changes: list[tuple[int, str]]
) -> None:
    acted = scene()
    element(name, *numbers).apply(acted)
    entries = acted.content().get("changes", [])
    field = {"outages": "state", "rate_steps": "rate", "delay_steps": "delay", "loss_episodes": "loss"}[name]
    assert [(int(entry["at"].removesuffix("ms")), entry[field]) for entry in entries] == changes


def test_a_change_at_the_end_of_the_run_is_left_out() -> None:
    acted = scene()
    acted.change(9_999, up=False)
    acted.change(10_000, up=True)
    assert [entry["at"] for entry in acted.content()["changes"]] == ["9999ms"]


def test_pulses_end_with_the_run_and_start_at_their_phase() -> None:
    acted = scene(duration_ms=1000)
    element("pulses", 400, 300, 50, 25).apply(acted)
    flows = acted.content()["flows"][1:]
    assert [(flow["start"], flow["stop"]) for flow in flows] == [
        ("100ms", "400ms"),
        ("500ms", "800ms"),
        ("900ms", "1000ms"),
    ]
    assert {flow["application"]["rate"] for flow in flows} == {"5000kbit"}


# --- scenes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "after_ms", "share"),
    [
        ([], 0, 1.0),
        ([(5000, 50)], 0, 0.75),
        ([(5000, 50)], 5000, 0.5),
        ([(5000, 50)], 7500, 0.5),
        ([(2000, 50), (4000, 100)], 0, 0.9),
        ([(4000, 100), (2000, 50)], 3000, 6.5 / 7),  # in the order of time, however they were added
        ([(10_000, 10)], 0, 1.0),  # not in the run any more
    ],
)
def test_the_capacity_is_the_mean_rate_after_the_beginning(
    steps: list[tuple[int, int]], after_ms: int, share: float
) -> None:
    acted = scene()
    for at_ms, rate_pct in steps:
        acted.change(at_ms, rate_pct=rate_pct)
    assert acted.capacity_bps(after_ms) == pytest.approx(10e6 * share)


@pytest.mark.parametrize(
    ("whom", "hit"),
    [(0, {"s1", "s2"}), (1, {"s1"}), (2, {"s2"})],
)
def test_an_impairment_hits_the_flows_it_names(whom: int, hit: set[str]) -> None:
    acted = scene("reno", "cubic")
    acted.lose_data(whom, 0.5)
    acted.impair_acks(whom, "delay 5ms 5ms")
    links = acted.content()["links"]
    assert {link["from"] for link in links if link.get("netem") == "loss 0.5%"} == hit
    assert {link["to"] for link in links if link.get("netem") == "delay 5ms 5ms"} == hit


def test_of_several_delays_the_last_counts_and_losses_add_up() -> None:
    acted = scene()
    for words in ("delay 1ms 1ms", "loss 2%", "delay 5ms reorder 3%", "loss 1%"):
        acted.impair_acks(0, words)
    (netem,) = [link["netem"] for link in acted.content()["links"] if "netem" in link]
    assert netem == "delay 5ms reorder 3% loss 2% loss 1%"


@pytest.mark.parametrize(("by_ms", "start"), [(100, 100), (2500, 2500), (2501, 2500), (5000, 2500)])
def test_the_victim_starts_in_the_first_quarter(by_ms: int, start: int) -> None:
    acted = scene("reno", "reno")
    acted.late(by_ms)
    assert acted.late_ms == start
    assert acted.content()["flows"][0]["start"] == f"{start}ms"


def test_the_other_flows_round_trip_is_the_attacks_else_the_callers_else_the_victims() -> None:
    fixed = scene("reno", "reno", other_rtt="80ms")
    assert [fixed.rtt_ms(at) for at in (0, 1)] == [40, 80]
    fixed.second_rtt(25)
    assert [fixed.rtt_ms(at) for at in (0, 1)] == [40, 10]
    assert scene("reno", "reno").rtt_ms(1) == 40


# --- scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "reference", "value"),
    [(5, 10, 0.5), (12, 10, 1.0), (0, 10, 0.0), (0, 0, 1.0), (0, 0.01, 1.0), (0, 0.011, 0.0)],
)
def test_a_value_is_a_share_of_the_reference(figure: float, reference: float, value: float) -> None:
    assert goals._ratio(figure, reference) == value


@pytest.mark.parametrize("goal", goals.GOALS)
def test_twice_the_duration_leaves_out_twice_the_beginning(goal: goals.Goal) -> None:
    trial = Trial(goal, "reno", goal.path, 1)
    doubled = trial.doubled()
    assert doubled.path.duration_ms == 2 * trial.path.duration_ms
    assert doubled.after_ms == 2 * trial.after_ms == round(trial.path.duration_ms * 2 * goal.after_share)
    assert doubled.senders == trial.senders


def test_the_victims_beginning_is_that_of_the_run_less_its_late_start() -> None:
    trial = Trial(STARVATION, "reno", STARVATION.path, 1)  # 10 of 20 s do not count
    assert trial.claim_after_ms(()) == 10_000
    assert trial.claim_after_ms((element("late", 5000),)) == 5_000


@pytest.mark.parametrize(
    ("goal", "senders"),
    [(UTILISATION, ("bbr",)), (STALL, ("bbr",)), (STARVATION, ("bbr", "bbr")), (HARM, ("cubic", "bbr"))],
)
def test_the_victim_is_first(goal: goals.Goal, senders: tuple[str, ...]) -> None:
    assert Trial(goal, "bbr", goal.path, 1).senders == senders


def test_reference_windows_are_shares_of_each_flows_own_bdp() -> None:
    trial = Trial(STARVATION, "bbr", replace(STARVATION.path, other_rtt="80ms"), 1)
    windows = [
        [int(sender.removeprefix("fixed:window=")) for sender in senders]
        for senders in trial._references(trial.scene(()))
    ]
    assert len(windows) == len(goals.WINDOWS)
    for (first, second), times in zip(windows, goals.WINDOWS, strict=True):
        assert first == round(times * trial.path.bdp_packets / 2)
        assert abs(second - 2 * first) <= 1
    harm = Trial(HARM, "bbr", HARM.path, 1)
    assert list(harm._references(harm.scene(()))) == [("cubic", "cubic")]


# --- the search -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evaluations", "scored", "room"), [(100, 0, 20), (100, 80, 20), (100, 81, 19), (100, 100, 0), (5, 9, 0)]
)
def test_a_budget_ends_on_its_number(evaluations: int, scored: int, room: int) -> None:
    assert search.Budget(evaluations=evaluations).room(scored) == room


def test_a_budget_of_time_ends_with_it() -> None:
    assert search.Budget(seconds=3600).room(10**6) == search.DRAWN
    assert search.Budget(seconds=0).room(0) == 0
    assert search.Budget(evaluations=5, seconds=0).late()


def test_the_value_of_a_find_is_the_weaker_run() -> None:
    def score(value: float) -> Score:
        return Score(value, 1.0, 1.0, 1.0, None)

    for first, second in itertools.permutations((0.2, 0.6)):
        assert search.ConfirmedAttack((), score(first), score(second)).value == 0.6


def test_drawn_attacks_are_new_admissible_and_follow_from_the_seed() -> None:
    pool = elements.kinds(("cross", "acks"), two_flows=False)

    def drawn(seed: int) -> list[elements.Attack]:
        rng, before = random.Random(seed), set[elements.Attack]()  # noqa: S311
        parents = [(element("steady", 10),), (element("pulses", 500, 50, 100, 0), element("ack_loss", 5, 0))]
        for _ in range(200):
            attack = search._draw_attack(parents, pool, rng, before)
            assert attack is not None
            assert attack not in before
            assert elements.admissible(attack)
            before.add(attack)
        return sorted(before, key=repr)

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_a_pool_that_is_used_up_gives_no_further_attack() -> None:
    kind = replace(BY_NAME["steady"], genes=(Gene("rate_pct", 3, 4),))
    pool, rng = [kind], random.Random(1)  # noqa: S311
    before: set[elements.Attack] = set()
    while (attack := search._draw_attack([], pool, rng, before)) is not None:
        before.add(attack)
    assert {attack[0].numbers for attack in before} == {(3,), (4,)}
