"""Policies in the real kernel: the same action gives the same rate or window, and the figures are near the simulator's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dragstrip
from dragstrip.authoring.policies import bpf_source
from dragstrip.engines.agent import bpf
from tests.test_policy_bpf import POLICIES, PROGRAMS, network, policy

PATH: dict[str, Any] = {"rate": "10mbit", "rtt": "40ms", "queue": "pfifo limit 100", "duration": "6s"}


@pytest.fixture
def _clang() -> None:
    if reason := bpf.missing():
        pytest.skip(reason)


compiles = pytest.mark.usefixtures("_clang")
on_kernel = pytest.mark.usefixtures("_clang", "linux")


def in_kernel(folder: Path, text: str, **path: Any) -> Any:
    file = folder / "mine.bpf.c"
    file.write_text(bpf_source(text, "mine").text)
    return dragstrip.race("mine", engine="vm", load=[str(file)], **PATH | path)["mine"]


def in_simulator(text: str, **path: Any) -> Any:
    return dragstrip.race(dragstrip.program("mine", text), **PATH | path)["mine"]


def constant(action: str, value: float, **fields: Any) -> str:
    """A policy whose action is always the same."""
    return json.dumps(policy({"tree": [{"action": value}]}, action=action, **fields))


@compiles
@pytest.mark.parametrize("action", ["rate_factor", "rate", "window_factor", "window", "window_menu"])
def test_every_action_compiles(tmp_path: Path, action: str) -> None:
    described = network("tanh", 5 if action == "window_menu" else 1, action=action, step={"ms": 20})
    file = tmp_path / "mine.bpf.c"
    file.write_text(bpf_source(json.dumps(described), "mine").text)
    assert bpf.compiled(str(file)).name == "mine"


@compiles
def test_every_figure_compiles(tmp_path: Path) -> None:
    from dragstrip import _core
    from dragstrip.authoring.policies.source import WITHOUT

    names = [name for name, _, _, _ in _core.FIGURES if name not in WITHOUT]
    weights = [[1e-9] * len(names)]
    described = policy({"linear": {"weights": weights, "bias": [0.0]}}, observe=names)
    file = tmp_path / "mine.bpf.c"
    file.write_text(bpf_source(json.dumps(described), "mine").text)
    assert bpf.compiled(str(file)).name == "mine"


@on_kernel
@pytest.mark.parametrize(("action", "value"), [("rate", 4e6), ("rate", 12e6), ("window", 20), ("window", 60)])
def test_a_constant_action_gives_the_simulators_goodput_and_delay(
    tmp_path: Path, action: str, value: float
) -> None:
    text = constant(action, value)
    kernel, simulator = in_kernel(tmp_path, text), in_simulator(text)
    assert kernel.goodput_bps == pytest.approx(simulator.goodput_bps, rel=0.03)
    assert kernel.rtt_ms_p50 == pytest.approx(simulator.rtt_ms_p50, rel=0.03)


@on_kernel
@pytest.mark.parametrize("name", ["my-delay", "tree", "tanh", "menu"])
def test_a_policy_is_near_the_simulators(tmp_path: Path, name: str) -> None:
    text = (PROGRAMS / "my-delay.json").read_text() if name == "my-delay" else json.dumps(POLICIES[name])
    kernel, simulator = in_kernel(tmp_path, text), in_simulator(text)
    assert kernel.goodput_bps == pytest.approx(simulator.goodput_bps, rel=0.1)
    assert kernel.rtt_ms_p50 == pytest.approx(simulator.rtt_ms_p50, rel=0.1)


@on_kernel
def test_another_policy_shows(tmp_path: Path) -> None:
    """The agreement above is that of the policy, not that of any sender that fills a line."""
    slow = in_kernel(tmp_path, constant("rate", 4e6))
    assert slow.goodput_bps < 0.5 * in_simulator(constant("rate", 12e6)).goodput_bps


@on_kernel
def test_the_same_twice(tmp_path: Path) -> None:
    text = json.dumps(POLICIES["tanh"])
    first, second = (in_kernel(tmp_path, text, duration="2s") for _ in range(2))
    assert (first.goodput_bps, first.rtt_ms_p50, first.retransmits) == (
        second.goodput_bps,
        second.rtt_ms_p50,
        second.retransmits,
    )
