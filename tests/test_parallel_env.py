"""Several agents on one path: PettingZoo's own tests, arrivals and departures, fairness, bad input."""

from __future__ import annotations

import doctest
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragstrip import BadInputError
from dragstrip.gym import CongestionControl, parallel_env

pytest.importorskip("pettingzoo", reason="the package pettingzoo is absent")
from pettingzoo.test import parallel_api_test, parallel_seed_test

HEADERS = 1448 / 1514
"""Payload of a full frame by its bytes on the wire."""


def steps(env: Any, action: Any, seed: int = 1) -> list[tuple[Any, ...]]:
    """The answers of an episode in which all agents do the same."""
    answers = [(*env.reset(seed=seed), list(env.agents))]
    while env.agents:
        answers.append((*env.step(dict.fromkeys(env.agents, action)), list(env.agents)))
    return answers


def seeded(env: Any, seed: int) -> Any:
    """The environment with spaces of actions whose samples are always the same."""
    for number, name in enumerate(env.possible_agents):
        env.action_space(name).seed(10 * seed + number)
    return env


@pytest.mark.parametrize("action", ["rate_factor", "window_factor", "window_menu"])
def test_pettingzoos_own_test_passes_without_a_warning(action: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        words: dict[str, Any] = {
            "agents": ["", "+1s", "@80ms+500ms"],
            "action": action,
            "rate": ("2mbit", "20mbit"),
            "duration": "3s",
            "stop": ["2s", None, None],
            "rivals": ["cubic"],
        }
        # It samples from the spaces and seeds none of them.
        parallel_api_test(seeded(parallel_env(**words), 0), num_cycles=100)
        parallel_seed_test(lambda: parallel_env(**words), num_cycles=20)


def test_agents_arrive_and_leave_and_never_return() -> None:
    env = parallel_env(
        agents=["", "+1s", "+1500ms"],
        tick="100ms",
        action="window",
        duration="4s",
        stop=[None, "2s", None],
        size=[None, None, 100_000],
    )
    present = [answer[-1] for answer in steps(env, 10.0)]
    assert env.possible_agents == ["agent_0", "agent_1", "agent_2"]
    spans = {}
    for name in env.possible_agents:
        here = [number for number, agents in enumerate(present) if name in agents]
        assert here == list(range(here[0], here[-1] + 1)), "no agent returns"
        spans[name] = (here[0], here[-1])
    assert spans["agent_0"][0] == 0
    first_s = 0.2  # the handshake and the first ACK take two round trips: present at the second tick
    assert spans["agent_1"][0] == pytest.approx((1.1 - first_s) / 0.1 + 1, abs=1)
    assert spans["agent_1"][1] == pytest.approx((2.0 - first_s) / 0.1, abs=1)
    assert spans["agent_2"][1] < len(present) - 5


@pytest.mark.parametrize("seed", [10, 11, 36])
def test_an_agent_that_ends_before_the_others_come_does_not_end_the_episode(seed: int) -> None:
    # The first agent's queue drops the SYNs of the others, which come after it has stopped.
    env = parallel_env(
        agents=["", "+1s", "@80ms+500ms"],
        action="window_factor",
        rate=("2mbit", "20mbit"),
        duration="6s",
        stop=["2s", None, None],
        rivals=["cubic"],
    )
    seeded(env, seed)
    env.reset(seed=0)
    arrivals_after_its_end = []
    for _ in range(2):
        env.reset()
        arrived, ended = set(env.agents), set()
        while env.agents:
            before = set(arrived)
            actions = {name: env.action_space(name).sample() for name in env.agents}
            _, _, terminated, truncated, _ = env.step(actions)
            ended |= {name for name in terminated if terminated[name] or truncated[name]}
            arrived |= set(env.agents)
            if before == ended == {"agent_0"}:
                arrivals_after_its_end.append(arrived - before)
        assert ended == arrived == set(env.possible_agents)
    assert any(arrivals_after_its_end), "the case of the test"


def test_the_last_step_says_why_it_is_the_last() -> None:
    env = parallel_env(agents=2, action="window", tick="100ms", duration="3s", size=[200_000, None])
    answers = steps(env, 20.0)
    ends = {}
    for _, rewards, terminated, truncated, infos, _ in answers[1:]:
        assert rewards.keys() == terminated.keys() == truncated.keys() == infos.keys()
        for name in terminated:
            if terminated[name] or truncated[name]:
                ends[name] = (terminated[name], truncated[name], infos[name])
    assert ends["agent_0"][:2] == (True, False)
    assert 0 < ends["agent_0"][2]["interval_s"] < 0.1
    assert ends["agent_1"][:2] == (False, True)
    assert ends["agent_1"][2]["time_s"] == 3.0


def test_all_steps_end_at_the_ticks_of_one_clock() -> None:
    env = parallel_env(agents=["", "@100ms+300ms"], tick="50ms", action="window", duration="2s")
    for *_, infos, agents in steps(env, 8.0)[1:]:
        for name in agents:
            assert infos[name]["time_s"] * 1e3 % 50 == pytest.approx(0, abs=1e-6)


def test_one_agent_alone_is_the_environment_of_one() -> None:
    """From the second tick on both step at the same times, if the episode of one begins at a tick."""
    many = parallel_env(agents=1, tick="100ms", action="rate", duration="5s", queue="bfifo limit 100kb")
    one = CongestionControl(step="100ms", action="rate", duration="5s", queue="bfifo limit 100kb")
    one.reset(seed=1)
    alone = [one.step([6e6])[4]["throughput_mbps"] for _ in range(40)]
    beside = [answer[4]["agent_0"]["throughput_mbps"] for answer in steps(many, 6e6)[1:]]
    assert np.mean(beside[10:40]) == pytest.approx(np.mean(alone[10:]), rel=0.01)
    assert np.mean(beside[10:40]) == pytest.approx(6, rel=0.03)


def test_two_equal_agents_share_the_link_and_an_arrival_takes_its_part() -> None:
    env = parallel_env(
        agents=["", "+5s"], action="window", tick="100ms", duration="15s", queue="pfifo limit 200"
    )
    answers = steps(env, 60.0)
    late = [answer[4] for answer in answers[1:] if answer[4]["agent_0"]["time_s"] > 8]
    shares = [np.mean([infos[name]["throughput_mbps"] for infos in late]) for name in env.possible_agents]
    assert shares[0] == pytest.approx(shares[1], rel=0.05)
    assert sum(shares) == pytest.approx(10 * HEADERS, rel=0.03)
    early = [answer[4]["agent_0"]["throughput_mbps"] for answer in answers[10:40]]
    assert np.mean(early) == pytest.approx(10 * HEADERS, rel=0.03)


def test_seed_and_actions_give_the_bytes() -> None:
    hashes = []
    for seed in (1, 1, 2):
        env = parallel_env(agents=["", "+500ms"], rate=("2mbit", "20mbit"), duration="2s", rivals=["bbr"])
        steps(env, 0.5, seed)
        hashes.append(env.sha256())
    assert hashes[0] == hashes[1] != hashes[2]


def test_figures_and_draws_are_in_the_infos() -> None:
    env = parallel_env(rate=("2mbit", "20mbit"), duration="1s", reward=lambda step: step["drawn"]["rate"])
    _, infos = env.reset(seed=3)
    rate = infos["agent_0"]["drawn"]["rate"]
    _, rewards, *_ = env.step(dict.fromkeys(env.agents, 0.0))
    assert rewards == {"agent_0": rate, "agent_1": rate}
    assert env.state().shape == (60,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"agents": 0}, "agents: got 0, expected a number from 1 to 1000"),
        ({"agents": "two"}, "agents: got 'two', expected a number from 1 to 1000"),
        ({"agents": ["*3"]}, "agents[0]: got '*3', expected '', a round-trip time"),
        ({"agents": ["+soon"]}, 'got "agent+soon"'),
        ({"tick": "0ms"}, "tick: got '0ms', expected a time above 0"),
        ({"tick": "1rtt"}, "tick: got '1rtt', expected a time above 0"),
        (
            {"agents": ["+2s"], "stop": ["1s"]},
            "stop: got '1s', expected a time after the agent's start",
        ),
        ({"agents": True}, "agents: got True, expected a number from 1 to 1000"),
        ({"size": ["x", None]}, "size: got 'x', expected a number of bytes"),
        ({"size": [1]}, "size: got [1], expected a list of 2, one for each agent"),
        ({"size": [0, None]}, "size: got 0, expected a number of bytes, at least 1"),
        ({"stop": ["x", None]}, "stop: got 'x', expected a time above 0"),
        ({"engine": "vm"}, "engine: got 'vm', expected nothing"),
        ({"seed": 3}, "seed: got 3, expected nothing"),
        ({"programs": {"agent": "on ack {}"}}, "programs: got 'agent', expected another name"),
        ({"rivals": ["agent"]}, "rivals[0]: got 'agent', expected another algorithm"),
        ({"rivals": "cubic"}, "rivals: got 'cubic', expected a list of algorithms"),
        ({"agent": {"model": {"log": [1]}}}, "agent: got 'model', expected no model"),
        ({"action": "speed"}, "action: got 'speed', expected one of rate_factor"),
        ({"duration": "12000s"}, "duration: got '12000s', expected at most 10000 s"),
    ],
)
def test_what_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError) as error:
        parallel_env(**words)
    assert message in str(error.value)


def test_a_wrong_step_is_refused_and_changes_nothing() -> None:
    env = parallel_env(duration="1s")
    with pytest.raises(BadInputError, match=r"^step: no episode has begun: `reset` begins the first$"):
        env.step({})
    env.reset(seed=1)
    before = env.sha256()
    for actions, message in (
        ({"agent_0": 0.0}, "actions: agent_1 is missing"),
        ({"agent_0": 0.0, "agent_1": 2.0}, "action: got 2, expected a number from -1 to 1"),
        ({"agent_0": float("nan"), "agent_1": 0.0}, "expected a number from -1 to 1"),
        ({"agent_0": [0.0, 1.0], "agent_1": 0.0}, "action: got 2 numbers of agent_0, expected 1 action"),
        ({"agent_0": [], "agent_1": 0.0}, "action: got 0 numbers of agent_0, expected 1 action"),
        ({"agent_0": "x", "agent_1": 0.0}, "action: got 'x', expected a number"),
        ([0.0, 0.0], "actions: got .*expected an action of each agent by its name"),
    ):
        with pytest.raises(BadInputError, match=message):
            env.step(actions)
    assert env.sha256() == before
    with pytest.raises(BadInputError, match="agent_0 to agent_1"):
        env.action_space("agent_2")
    env.close()
    with pytest.raises(BadInputError, match="closed environment"):
        env.reset()


@pytest.mark.parametrize("seed", [-1, "x", 1.5, 2**64])
def test_a_seed_is_checked(seed: Any) -> None:
    with pytest.raises(BadInputError, match=r"^seed: got .*expected a whole number from 0"):
        parallel_env(duration="1s").reset(seed=seed)


def test_the_examples_of_the_page_print_what_it_says() -> None:
    page = Path(__file__).parents[1] / "docs" / "how-to" / "learning-together.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert (failed, tried > 3) == (0, True)
