"""An episode again, as an ordinary run with its recording and report."""

from __future__ import annotations

import json
from dataclasses import replace

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.gym.template import AGENT, Template
from dragstrip.interop.result import Result
from dragstrip.studies.execution.memory import execute_in_memory
from dragstrip.studies.execution.runner import Plan


def replay(template: Template, episodes: _core.Episodes, number: int) -> Result:
    """The result of an environment's episode so far: its scenario, with the actions as a policy.

    Raises `BadInputError` before the first reset.
    """
    scenario = episodes.scenario(number)
    if scenario is None:
        raise BadInputError("replay", "before the first reset", "an episode")
    policy = {**template.policy, "model": {"log": episodes.actions(number)}}
    text = scenario["programs"][AGENT] = json.dumps(policy)
    scenario["record"] = template.run.scenario["record"]
    run = replace(template.run, scenario=scenario, parsed=None)
    programs = {**template.experiment.programs, AGENT: text}
    experiment = replace(template.experiment, programs=programs)
    execution = execute_in_memory(Plan(experiment, [run], ""), command="dragstrip.gym")
    return Result.from_execution(execution, experiment, [run])
