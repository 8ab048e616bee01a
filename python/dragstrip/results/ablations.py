"""Ablations: an experiment's claims measured again with another setting.

Each setting makes an experiment of its own, with the claims that the ablation names and only the runs they
need. The setting takes precedence over what the experiment, its alternatives and its `vary` set.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.experiment.expand import PlannedRun, expand, varied
from dragstrip.experiment.types import Claim, Experiment, Selector
from dragstrip.results.claims import check, concerns


@dataclass(frozen=True)
class AblationRuns:
    """An ablation at one of its settings, with the claims it concerns and the runs they need."""

    about: str
    setting: dict[str, Any]
    """The values by dotted path; the key `metric` selects another measure."""
    claims: list[Claim]
    runs: list[PlannedRun]


def ablated(experiment: Experiment, source: str = "") -> Iterator[AblationRuns]:
    """Yield every ablation at every setting.

    Raises `BadInputError` for a claim that does not exist and for values that cannot be run.
    """
    claims_by_id = {claim.id: claim for claim in experiment.claims}
    base_vary = varied(experiment.vary, "vary", source)
    for at, ablation in enumerate(experiment.ablations):
        where = f"ablations[{at}]"
        chosen_claims = list(_matching(ablation.claims, claims_by_id, f"{where}.claims", source))
        values = varied(ablation.vary, f"{where}.vary", source)
        if not values and ablation.metric is None:
            raise BadInputError(where, None, "is empty: vary a field, or name another metric", source)
        for combination in itertools.product(*values.values()):
            setting = dict(zip(values, combination, strict=True))
            claims = [_moved(claim, setting, ablation.metric) for claim in chosen_claims]
            one_each = {path: [value] for path, value in setting.items()}
            try:
                changed = experiment.changed(vary={**base_vary, **one_each}, claims=claims, flow_tables=[])
                runs = expand(changed, source, _concerning(claims))
                check(changed, runs, source)
            except BadInputError as error:
                field = f"{where}: {error.field}"
                raise BadInputError(field, Raw(error.value), error.expected, source) from None
            metric_setting = {} if ablation.metric is None else {"metric": ablation.metric}
            yield AblationRuns(ablation.about, {**setting, **metric_setting}, claims, runs)


def _matching(
    patterns: list[str], claims_by_id: Mapping[str, Claim], field: str, source: str
) -> Iterator[Claim]:
    """Yield, once each, the claims whose ids match a pattern, in which `*` matches anything."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in claims_by_id):
            raise BadInputError(field, pattern, f"the id of a claim{nearest(pattern, claims_by_id)}", source)
    for name, claim in claims_by_id.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            yield claim


def _concerning(claims: list[Claim]) -> Callable[[PlannedRun], bool]:
    """Return a predicate for the runs that the claims need; the setting may be invalid for other runs."""
    return lambda run: any(concerns(claim, run) for claim in claims)


def _moved(claim: Claim, setting: dict[str, Any], metric: str | None) -> Claim:
    """Return the claim with its selectors changed to this setting's values."""

    def moved(selector: Selector) -> Selector:
        return {key: setting.get(key, value) for key, value in selector.items()}

    over = None if claim.over is None else moved(claim.over)
    return replace(claim, where=moved(claim.where), over=over, metric=metric or claim.metric)
