"""Environments for Gymnasium: its checker, closed forms, batches beside single environments, bad input."""

from __future__ import annotations

import copy
import doctest
import json
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import dragstrip
from dragstrip import BadInputError, _core
from dragstrip.gym import OBSERVATIONS, REWARDS, Between, CongestionControl, CongestionControlVector, sage
from dragstrip.gym.figures import NAMES

HEADERS = 1448 / 1514
"""Payload of a full frame by its bytes on the wire."""
KINDS = ("rate_factor", "window_factor", "window_menu")


def make(**words: Any) -> CongestionControl:
    env = gymnasium.make("dragstrip.gym:CongestionControl-v0", **words).unwrapped
    assert isinstance(env, CongestionControl)
    return env


def episode(env: CongestionControl, action: Any, seed: int = 1) -> list[dict[str, Any]]:
    """The infos of an episode with one action throughout."""
    infos = [env.reset(seed=seed)[1]]
    over = False
    while not over:
        *_, terminated, truncated, info = env.step(action)
        infos.append(info)
        over = terminated or truncated
    return infos


def mean_mbps(infos: list[dict[str, Any]], after_s: float) -> float:
    late = [info for info in infos if info["time_s"] > after_s]
    return sum(info["throughput_mbps"] * info["interval_s"] for info in late) / sum(
        info["interval_s"] for info in late
    )


@pytest.mark.parametrize("action", KINDS)
def test_gymnasium_s_checker_passes_without_a_warning(action: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make(action=action, rate=("1mbit", "20mbit"), rtt=("10ms", "80ms"), duration="2s")
        check_env(env)


def test_the_same_seed_gives_the_same_episodes_and_another_seed_others() -> None:
    env = make(rate=("1mbit", "20mbit"), duration="2s")
    first = [env.reset(seed=5)[1]["drawn"], env.reset()[1]["drawn"], env.reset()[1]["drawn"]]
    again = [env.reset(seed=5)[1]["drawn"], env.reset()[1]["drawn"], env.reset()[1]["drawn"]]
    assert first == again
    assert len({tuple(drawn.values()) for drawn in first}) == 3
    assert env.reset(seed=6)[1]["drawn"] != first[0]


@pytest.mark.parametrize(("sent", "capacity"), [(2e6, 10), (6e6, 10), (30e6, 10), (5e6, 3)])
def test_a_rate_gets_the_smaller_of_itself_and_the_capacity(sent: float, capacity: int) -> None:
    env = make(action="rate", step="100ms", rate=f"{capacity}mbit", duration="8s", queue="bfifo limit 100kb")
    got = mean_mbps(episode(env, sent), 3)
    assert got == pytest.approx(min(sent / 1e6, capacity * HEADERS), rel=0.03)


@pytest.mark.parametrize("window", [2, 6, 20, 60, 200])
def test_a_window_gets_the_smaller_of_its_share_of_a_round_trip_and_the_capacity(window: int) -> None:
    env = make(action="window", step="100ms", duration="8s", queue="bfifo limit 900kb", rtt="50ms")
    got = mean_mbps(episode(env, window), 3)
    # Every second packet is acknowledged; two leave together, and the second waits for the first.
    expected = window * 1448 * 8e-6 / (0.05 + 2 * 1514 * 8 / 10e6)
    assert got == pytest.approx(min(expected, 10 * HEADERS), rel=0.05)


def test_a_rate_above_the_capacity_fills_the_queue_and_then_loses_the_rest() -> None:
    env = make(action="rate", step="100ms", rate="10mbit", duration="8s", queue="bfifo limit 500kb")
    infos = episode(env, 12e6)
    growing = [info["latency_gradient"] for info in infos if 0.5 < info["time_s"] < 1.5]
    # The queue grows by what exceeds the capacity; a sample is a round trip old, which is itself longer then.
    excess = (12e6 / HEADERS - 10e6) / 10e6
    assert np.median(growing) == pytest.approx(excess / (1 + excess), abs=0.06)
    lost = [info["loss_ratio"] for info in infos if info["time_s"] > 5]
    assert np.mean(lost) == pytest.approx(1 - 10e6 / (12e6 / HEADERS), abs=0.06)


def test_a_step_without_a_sample_keeps_the_last_latency() -> None:
    infos = episode(make(action="window", step="5ms", rtt="100ms", duration="2s"), 2)
    empty = [info for info in infos if info["rtt_samples"] == 0]
    assert empty
    assert all(info["rtt_ms"] > 99 for info in empty)
    assert all(np.isfinite(list(info.values())).all() for info in infos)


def test_a_transfer_that_is_complete_terminates_and_time_truncates() -> None:
    env = make(action="window", step="10ms", size=500_000, duration="10s")
    env.reset(seed=1)
    over = False
    while not over:
        *_, terminated, truncated, info = env.step(40)
        over = terminated or truncated
    assert (terminated, truncated) == (True, False)
    assert info["time_s"] < 5
    assert 0 < info["interval_s"] < 0.01
    env = make(action="window", step="300ms", duration="1s")
    env.reset(seed=1)
    states = [env.step(10)[2:4] for _ in range(3)]
    assert states == [(False, False)] * 2 + [(False, True)]


@pytest.mark.parametrize("step", ["10ms", "0.5rtt", "2rtt", "ack"])
def test_steps_have_their_length(step: str) -> None:
    infos = episode(make(action="window_factor", step=step, duration="1s"), 0.0)[2:-1]
    lengths = [info["interval_s"] for info in infos]
    if step == "10ms":
        assert lengths == pytest.approx([0.01] * len(lengths))
    elif step == "ack":
        assert {info["rtt_samples"] for info in infos} == {1}
    else:
        before = [info["rtt_ms"] for info in infos[:-1]]
        expected = np.array(before) / 1e3 * float(step.removesuffix("rtt"))
        assert lengths[1:] == pytest.approx(expected, rel=1e-6)


def test_a_thousand_episodes_of_random_actions_carry_no_more_than_the_path() -> None:
    """No figure exceeds what the path carries, and nothing arrives that was not sent."""
    words = {"rate": ("1mbit", "8mbit"), "rtt": ("5ms", "60ms"), "queue": "bfifo limit 30kb", "loss": "1%"}
    episodes = 0
    random = np.random.default_rng(7)
    for action in KINDS:
        batch = CongestionControlVector(
            64, action=action, step="20ms", duration="600ms", agent={"delta": 0.5}, **words
        )
        batch.reset(seed=11)
        delivered, sent = np.zeros(64), np.zeros(64)
        for _ in range(200):
            actions = random.uniform(-1, 1, (64, 1))
            if action == "window_menu":
                actions = random.integers(0, 5, 64)
            drawn = [batch._settings.template.drawn(batch._open.fractions(n)) for n in range(64)]
            capacity = np.array([entry["rate"] for entry in drawn])
            observations, rewards, _, truncated, info = batch.step(actions)
            step = dict(zip(NAMES, info["figures"].T, strict=True))
            packets = capacity * step["interval_s"] / (1514 * 8)
            began = rewards == 0
            # At the ends of the interval parts of packets, and an ACK of several.
            assert ((step["delivered_packets"] <= packets + 4) | began).all()
            most = dragstrip.gym.aurora(
                step | {"throughput_mbps": (packets + 4) * 1448 * 8e-6 / np.maximum(step["interval_s"], 1e-9)}
            )
            assert ((rewards <= most) | began).all()
            assert batch.observation_space.contains(observations)
            assert np.isfinite(rewards).all()
            delivered += step["delivered_packets"]
            sent += step["sent_packets"]
            episodes += int(truncated.sum())
        assert (delivered <= sent + 200).all()
    assert episodes > 1000


@pytest.mark.parametrize(
    ("action", "bad"),
    [
        ("rate_factor", np.nan),
        ("rate_factor", np.inf),
        ("window_factor", 1.5),
        ("window_menu", 7),
        ("window_menu", 0.5),
        ("window", 0),
    ],
)
def test_a_bad_action_is_refused_and_changes_nothing(action: str, bad: float) -> None:
    env = make(action=action, duration="1s", step="20ms")
    good = {"window": 10}.get(action, 0)
    env.reset(seed=1)
    with pytest.raises(BadInputError, match=r"^action: got .*expected a (whole )?number from"):
        env.step(bad)
    after_refusal = env.step(good)[0]
    env.reset(seed=1)
    assert (after_refusal == env.step(good)[0]).all()


def test_a_step_outside_an_episode_is_refused() -> None:
    env = make(duration="1s", step="600ms")
    words = "^step: no episode has begun: `reset` begins the first$"
    with pytest.raises(BadInputError, match=words):
        env.step([0.0])
    with pytest.raises(BadInputError, match=words):
        CongestionControlVector(2).step([0, 0])
    env.reset(seed=1)
    while not env.step([0.0])[3]:
        pass
    with pytest.raises(BadInputError, match=r"^step: got .*expected a reset"):
        env.step([0.0])
    env.reset()
    env.close()
    env.close()
    with pytest.raises(BadInputError, match="closed environment"):
        env.step([0.0])
    with pytest.raises(BadInputError, match="closed environment"):
        env.reset()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"action": "jump"}, "action: got 'jump', expected one of"),
        ({"step": "soon"}, "step: got 'soon', expected a time"),
        ({"step": "xrtt"}, "step: got 'xrtt', expected a time"),
        ({"observe": ["rtt"]}, "observe: got 'rtt', expected"),
        ({"observe": []}, "observe: got 'nothing'"),
        ({"reward": "arora"}, "reward: got 'arora', expected .*did you mean"),
        ({"rate": ("1mbit", "fast")}, "rate: got .fast."),
        ({"queue": ("bfifo limit 30kb", "fq_codel")}, "queue: got .*expected two words that differ in"),
        ({"rate": ("1mbit", "1mbit")}, "rate: got '1mbit to 1mbit'"),
        ({"history": 0}, "agent: got history: 0"),
        ({"agent": {"inner": "qubic"}}, "agent: got inner"),
        ({"action": "window_factor", "agent": {"inner": "qubic"}}, "agent: got inner.*cubic"),
        ({"size": 0}, "size: got 0"),
        ({"render_mode": "human"}, "render_mode: got 'human'"),
        ({"rivals": ["nothing"]}, "nothing"),
        ({"rivals": "cubic"}, r"^rivals: got 'cubic', expected a list of algorithms"),
        ({"rivals": None}, r"^rivals: got None, expected a list of algorithms"),
        ({"rivals": [5]}, r"^rivals\[0\]: got 5, expected an algorithm"),
        ({"rivals": ["cubic", "agent*2"]}, r"^rivals\[1\]: got 'agent\*2', expected another algorithm"),
        ({"agent": {"step": "ack"}}, "^agent: got 'step', expected a keyword of the environment"),
        ({"agent": {"action": "rate"}}, "^agent: got 'action', expected a keyword of the environment"),
        ({"agent": {"observe": ["rtt_ms"]}}, "^agent: got 'observe', expected a keyword"),
        ({"agent": {"history": None}}, "^agent: got 'history', expected a keyword"),
        ({"agent": {"model": {"log": [1]}}}, "^agent: got 'model', expected no model"),
        ({"agent": 5}, "^agent: got 5, expected fields of a policy"),
        ({"agent": {"delta": {1}}}, r"^agent: got \{'delta': \{1\}, .*expected fields of JSON"),
        ({"engine": "vm"}, "^engine: got 'vm', expected nothing"),
        ({"seed": 3}, "^seed: got 3, expected nothing"),
        ({"programs": 5}, "^programs: got 5, expected a program, a file, a list of them"),
        ({"programs": {"agent": "on ack {}"}}, "^programs: got 'agent', expected another name"),
        ({"observe": None}, "^observe: got None, expected aurora or orca"),
        ({"observe": 5}, "^observe: got 5, expected aurora or orca"),
        ({"observe": [[]]}, r"^observe: got \[\], expected aurora or orca"),
        ({"reward": ["a"]}, r"^reward: got \['a'\], expected a function"),
        ({"reward": None}, "^reward: got None, expected a function"),
        ({"size": "x"}, "^size: got 'x', expected a number of bytes"),
    ],
)
def test_a_wrong_word_is_one_clear_error(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        CongestionControl(**words)


def test_a_history_may_be_a_number_of_numpy() -> None:
    assert make(history=np.int64(3)).observation_space == make(history=3).observation_space


@pytest.mark.parametrize("action", ["x", {}, [[1], [1, 2]]])
def test_an_action_that_is_no_number_is_refused(action: Any) -> None:
    env, batch = make(duration="1s"), CongestionControlVector(2, duration="1s")
    for learner in (env, batch):
        learner.reset(seed=1)
        with pytest.raises(BadInputError, match=r"^action: got .*expected a number, or an array"):
            learner.step(action)


@pytest.mark.parametrize("seed", [["a", "b"], "ab", -1, 1.5, [1, -1], 2**64 - 1])
def test_a_seed_of_a_batch_is_checked(seed: Any) -> None:
    with pytest.raises(BadInputError, match=r"^seed: got .*expected a whole number from 0"):
        CongestionControlVector(2, duration="1s").reset(seed=seed)


@pytest.mark.parametrize("seed", [-1, "x", 1.5, 2**64])
def test_a_seed_is_checked(seed: Any) -> None:
    with pytest.raises(BadInputError, match=r"^seed: got .*expected a whole number from 0"):
        make(duration="1s").reset(seed=seed)


@pytest.mark.parametrize(
    "other",
    [
        {"rtt": "80ms"},
        {"history": 3},
        {"action": "window"},
        {"rate": ("1mbit", "10mbit")},
        {"rivals": ["bbr"]},
    ],
)
def test_a_snapshot_of_other_settings_is_refused_and_changes_nothing(other: dict[str, Any]) -> None:
    env, stranger = make(duration="2s"), make(duration="2s", **other)
    for learner in (env, stranger):
        learner.reset(seed=1)
        learner.step([1])
    before = env._open.sha256(0)
    with pytest.raises(BadInputError, match=r"^snapshot: is of an environment with other settings"):
        env.restore(stranger.snapshot())
    assert env._open.sha256(0) == before
    twin = make(duration="2s")
    assert twin.restore(env.snapshot())[1]["time_s"] > 0
    assert twin._open.sha256(0) == before


def test_ranges_are_drawn_between_their_ends() -> None:
    env = make(
        rate=Between("1mbit", "100mbit", log=True),
        queue=("bfifo limit 10kb", "bfifo limit 90kb"),
        duration="1s",
    )
    drawn = [env.reset(seed=seed)[1]["drawn"] for seed in range(40)]
    rates = np.array([entry["rate"] for entry in drawn])
    assert rates.min() >= 1e6
    assert rates.max() <= 1e8
    assert 0.25 < (rates < 1e7).mean() < 0.75, "uniform in the logarithm"
    queues = np.array([entry["queue"] for entry in drawn])
    assert 10 * 1024 <= queues.min() < queues.max() <= 90 * 1024


VECTOR: dict[str, Any] = {"rate": ("1mbit", "20mbit"), "duration": "700ms", "step": "40ms", "history": 3}


def rollout(batch: CongestionControlVector, steps: int) -> list[Any]:
    random = np.random.default_rng(3)
    rows: list[Any] = [batch.reset(seed=40)[0]]
    for _ in range(steps):
        observations, rewards, terminated, truncated, info = batch.step(random.uniform(-1, 1, (6, 1)))
        rows.append((observations, rewards, terminated, truncated, info["figures"]))
    return rows


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_a_batch_is_the_same_for_any_number_of_threads(mode: AutoresetMode) -> None:
    runs = [
        rollout(CongestionControlVector(6, threads=n, autoreset_mode=mode, **VECTOR), 60) for n in (1, 2, 5)
    ]
    for other in runs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(np.atleast_1d(runs[0][0]), other[0], strict=True))
        for left, right in zip(runs[0][1:], other[1:], strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_a_batch_is_single_environments_side_by_side() -> None:
    batch = CongestionControlVector(6, **VECTOR)
    rows = rollout(batch, 15)
    random = np.random.default_rng(3)
    singles = [make(**VECTOR) for _ in range(6)]
    firsts = [env.reset(seed=40 + number)[0] for number, env in enumerate(singles)]
    assert np.array_equal(rows[0], firsts)
    for observations, rewards, *_ in rows[1:15]:
        actions = random.uniform(-1, 1, (6, 1))
        results = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        assert np.array_equal(observations, [result[0] for result in results])
        assert np.allclose(rewards, [result[1] for result in results])


def test_the_three_modes_of_autoreset() -> None:
    steps = {}
    for mode in AutoresetMode:
        batch = CongestionControlVector(2, autoreset_mode=mode, duration="300ms", step="100ms", history=1)
        batch.reset(seed=1)
        steps[mode] = []
        for _ in range(5):
            if mode == AutoresetMode.DISABLED and steps[mode] and steps[mode][-1][3].all():
                break
            steps[mode].append(batch.step(np.zeros((2, 1))))
    ends = {mode: [bool(step[3].any()) for step in rows] for mode, rows in steps.items()}
    assert ends[AutoresetMode.DISABLED] == [False, True]
    assert ends[AutoresetMode.NEXT_STEP] == [False, True, False, False, True]
    assert ends[AutoresetMode.SAME_STEP] == [False, True, False, True, False]
    again = steps[AutoresetMode.NEXT_STEP][2]
    assert (again[1] == 0).all(), "an action that begins an episode has no reward"
    final = steps[AutoresetMode.SAME_STEP][1][4]
    assert np.array_equal(final["final_obs"][0], steps[AutoresetMode.DISABLED][1][0][0])
    assert not np.array_equal(final["final_obs"][0], steps[AutoresetMode.SAME_STEP][1][0][0])
    assert (final["_final_obs"]).all()


def test_disabled_autoreset_refuses_a_step_and_resets_by_mask() -> None:
    batch = CongestionControlVector(
        2, autoreset_mode=AutoresetMode.DISABLED, duration="300ms", step="100ms", history=1
    )
    batch.reset(seed=1)
    while not batch.step(np.zeros((2, 1)))[3].any():
        pass
    with pytest.raises(BadInputError, match="expected a reset"):
        batch.step(np.zeros((2, 1)))
    batch.reset(options={"reset_mask": np.array([True, True])})
    batch.step(np.zeros((2, 1)))
    with pytest.raises(BadInputError, match="reset_mask"):
        batch.reset(options={"reset_mask": [1, 0, 1]})
    with pytest.raises(BadInputError, match=r"action: got '?1'?, expected 2 actions"):
        batch.step(np.zeros((1, 1)))
    batch.close()
    with pytest.raises(BadInputError, match="closed environment"):
        batch.step(np.zeros((2, 1)))


def test_gymnasium_makes_the_batch() -> None:
    import dragstrip.gym  # noqa: F401 - registers

    batch = gymnasium.make_vec("CongestionControl-v0", num_envs=3, duration="300ms")
    assert isinstance(batch, CongestionControlVector)
    observations, _ = batch.reset(seed=1)
    assert batch.observation_space.contains(observations)


def test_results_of_two_steps_share_no_memory() -> None:
    env = make(duration="1s")
    first, info = env.reset(seed=1)
    before, known = first.copy(), copy.deepcopy(info)
    env.step(env.action_space.sample())
    assert np.array_equal(first, before)
    assert info == known


def test_a_replay_is_the_episode(tmp_path: Path) -> None:
    env = make(action="rate_factor", step="1rtt", duration="2s", rate=("1mbit", "9mbit"), rivals=["cubic"])
    env.reset(seed=2)
    actions = np.linspace(-1, 1, 9)
    over = False
    for number in range(1000):
        *_, terminated, truncated, _ = env.step(actions[number % 9 : number % 9 + 1])
        over = terminated or truncated
        if over:
            break
    assert over
    scenario = env._open.scenario(0)
    policy = {**env._settings.template.policy, "model": {"log": env._open.actions(0)}}
    scenario["programs"]["agent"] = json.dumps(policy)
    assert _core.Scenario(scenario).run()["sha256"] == env._open.sha256(0)
    result = env.replay()
    assert [flow.label for flow in result.flows] == ["agent", "cubic"]
    assert result.flows[0].goodput_bps > 0
    result.write(tmp_path / "out")
    written = json.loads((tmp_path / "out/experiment.json").read_text())
    assert json.loads(written["programs"]["agent"])["model"] == policy["model"]


def test_a_restored_episode_goes_on_with_the_same_bytes() -> None:
    env = make(action="window_factor", step="20ms", duration="3s", agent={"inner": "cubic"}, rivals=["bbr"])
    env.reset(seed=4)
    for number in range(40):
        env.step([0.1 if number % 2 else -0.1])
    kept = env.snapshot()
    hashes = []
    for _ in range(3):
        observation, info = env.restore(kept)
        first = env.step([0.3])
        over = first[2] or first[3]
        while not over:
            *_, terminated, truncated, _ = env.step([0.0])
            over = terminated or truncated
        hashes.append((env._open.sha256(0), info["time_s"], observation.tolist()))
    env.restore(kept)
    env.step([-0.3])
    while not env.step([0.0])[3]:
        pass
    assert hashes[0] == hashes[1] == hashes[2]
    assert env._open.sha256(0) != hashes[0][0]
    with pytest.raises(BadInputError, match=r"^snapshot: what"):
        env.restore(None)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match=r"^snapshot: an episode after its reset"):
        make().snapshot()


def test_render_shows_the_race() -> None:
    env = make(duration="1s", render_mode="svg")
    env.reset(seed=1)
    env.step([1.0])
    assert env.render().startswith("<svg")
    env = make(duration="1s", render_mode="ansi")
    with pytest.raises(BadInputError, match="first reset"):
        env.render()
    env.reset(seed=1)
    assert "agent" in env.render()


def test_published_rewards_by_hand() -> None:
    step = dict.fromkeys(NAMES, 0.0) | {
        "throughput_mbps": 12.0,
        "rtt_ms": 50.0,
        "rtt_max_ms": 80.0,
        "loss_ratio": 0.01,
        "throughput_ratio": 0.9,
        "lost_ratio": 0.1,
        "delay_metric": 0.5,
    }
    assert REWARDS["aurora"](step) == pytest.approx(0.001 * (10 * 1000 - 1000 * 0.05 - 2000 * 0.01))
    assert REWARDS["orca"](step) == pytest.approx(0.4)
    assert REWARDS["mvfst_rl"](step) == pytest.approx(0.1 * 1.5 - 0.01 * 80)
    assert set(OBSERVATIONS["aurora"]) < set(NAMES)


def test_sages_reward_by_hand() -> None:
    step = {"throughput_mbps": 8.0, "lost_mbps": 1.0, "rtt_ratio": 0.5}
    assert sage(10)(step) == pytest.approx(25 * 0.6**2 * 0.5)
    assert sage(10)({**step, "rtt_ratio": 0.8}) == pytest.approx(25 * 0.6**2)
    assert sage(10)({**step, "throughput_mbps": 1.0}) == pytest.approx(-25 * 0.1**2 * 0.5)
    assert sage(10)({**step, "throughput_mbps": 11.0}) == pytest.approx(25 * 0.7**2 * 0.5)
    assert sage(lambda figures: 2 * figures["throughput_mbps"])(step) == pytest.approx(25 * 0.375**2 * 0.5)
    assert sage(10, flows=2)({**step, "throughput_mbps": 4.75}) == pytest.approx(25)
    assert sage(10, flows=2)(step) == pytest.approx(25 * np.exp(-8 * (8 / 4.75 - 1) ** 2))
    assert sage(10, flows=4)(step) == pytest.approx(25 * np.exp(-8))
    batch = CongestionControlVector(3, duration="2s", step="100ms", reward=sage(10))
    batch.reset(seed=1)
    assert batch.step(np.zeros((3, 1)))[1].shape == (3,)
    for wrong in ({"capacity_mbps": 0}, {"capacity_mbps": 10, "flows": 0}):
        with pytest.raises(BadInputError, match=r"(capacity_mbps|flows): got 0, expected "):
            sage(**wrong)


def test_the_core_refuses_arrays_of_another_size() -> None:
    template = make()._settings.template
    episodes = template.batch(2, 1, "disabled")
    with pytest.raises(_core.InputError):
        episodes.reset([True, True], [1, 2], np.empty(3, np.float32), np.empty((2, len(NAMES))))


def test_the_examples_of_the_page_print_what_it_says() -> None:
    page = Path(__file__).parents[1] / "docs" / "how-to" / "learning.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 25
    assert result.failed == 0
