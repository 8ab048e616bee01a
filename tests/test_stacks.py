"""Experiments whose hosts have an older stack, on engines whose hosts have the one of their own kernel."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragstrip.experiment import catalogue
from dragstrip.experiment.stacks import ONE_STACK, Replacing
from dragstrip.experiment.types import Experiment, rebuilt
from dragstrip.studies.execution.runner import plan

OWN = "linux-6"
DOCUMENTS = [name for name in catalogue.files() if name.startswith(("geni-tcp/", "bu-cs655-2022/"))]


def profiles(experiment: Experiment) -> set[str]:
    """Of all hosts in all runs."""
    runs = plan(experiment).runs
    return {node["profile"] for run in runs for node in run.scenario["nodes"] if node["kind"] == "host"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_can_be_run_and_graded_on_one_stack(name: str) -> None:
    described, source = catalogue.load(name)
    content = described.content()
    before = json.dumps(content, sort_keys=True)
    replacing = Replacing(OWN)
    changed = Experiment.build(replacing.everywhere(content), source)
    assert json.dumps(content, sort_keys=True) == before, "what it was made of is left alone"
    assert replacing.replaced
    assert profiles(changed) == {OWN}
    assert [claim.id for claim in changed.claims] == [claim.id for claim in described.claims]
    assert all(claim.not_testable != ONE_STACK for claim in changed.claims)
    assert len(plan(changed).runs) <= len(plan(described).runs)


def test_the_command_line_says_what_gave_way_and_so_does_the_description() -> None:
    described, _ = catalogue.load("geni-tcp/step1")
    changed, replaced = rebuilt(described.content(), {"engine": "vm"})
    assert replaced == ["linux-2.6.27"]
    assert changed.description.startswith(described.description.strip())
    assert changed.description.endswith("the engine's own kernel, in place of linux-2.6.27.")
    assert changed.ablations == [], "it would show the same once more"
    same, none = rebuilt(described.content(), {"seed": 7})
    assert (same.description, none) == (described.description, [])


def test_another_family_stays_and_a_comparison_of_stacks_is_not_testable() -> None:
    stacks = ["freebsd-9", "linux-2.6.38", "linux-6"]
    key = 'hosts."*".profile'
    content: dict[str, Any] = {
        "vary": {key: stacks, "flows.cc": ["reno"]},
        "alternatives": [{"name": "old", "set": {key: "linux-4.15"}}],
        "claims": [
            {"id": "faster", "where": {key: "linux-6"}, "over": {key: "linux-2.6.38"}},
            {"id": "other", "where": {key: "linux-6"}, "over": {key: "freebsd-9"}},
        ],
        "ablations": [
            {"claims": ["*"], "vary": {key: ["linux-6"]}},
            {"claims": ["*"], "vary": {key: ["linux-6"], "path.rate": ["1mbit"]}},
            {"claims": ["*"], "metric": "share"},
        ],
    }
    replacing = Replacing(OWN)
    found = replacing.everywhere(content)
    assert found["vary"] == {key: ["freebsd-9", "linux-6"], "flows.cc": ["reno"]}
    assert found["alternatives"][0]["set"] == {key: OWN}
    assert found["claims"][0]["not_testable"] == ONE_STACK
    assert "not_testable" not in found["claims"][1]
    assert found["ablations"] == content["ablations"][1:]
    assert replacing.replaced == {"linux-2.6.38", "linux-4.15"}


def test_a_duration_is_that_of_each_run() -> None:
    described, _ = catalogue.load("geni-tcp/step2")
    assert {alternative["set"].get("duration") for alternative in described.content()["alternatives"]} == {
        "60s",
        "1800s",
    }
    changed, _ = rebuilt(described.content(), {"duration": "2s"})
    assert {run.scenario["duration_ns"] for run in plan(changed).runs} == {2_000_000_000}
