"""An experiment for engines whose hosts run a kernel of their own: older stacks of its family give way to it.

Wherever a profile is named (hosts, what varies, alternatives, ablations, the selectors of claims and tables)
the kernel's own takes the place of the older one: the same claims are graded on the kernel that ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

PROFILE = re.compile(r"hosts\.(.+)\.profile")
ONE_STACK = "compares two stacks, and the engine's kernel has one"


@dataclass
class Replacing:
    """One kernel's stack in the place of the older ones of its family."""

    kernel_stack: str
    replaced: set[str] = field(default_factory=set)
    """Profiles that gave way."""

    def everywhere(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The experiment (as a file would have it) with the kernel's stack; the original is left alone."""
        result = dict(content)
        if "hosts" in content:
            result["hosts"] = {name: self._host(host) for name, host in content["hosts"].items()}
        if "vary" in content:
            result["vary"] = self._varied(content["vary"])
        if "alternatives" in content:
            result["alternatives"] = [
                {**alternative, "set": self._selected(alternative["set"])}
                for alternative in content["alternatives"]
            ]
        if "flow_tables" in content:
            result["flow_tables"] = [self._table(table) for table in content["flow_tables"]]
        if "claims" in content:
            result["claims"] = [self._claim(claim) for claim in content["claims"]]
        if "ablations" in content:
            result["ablations"] = list(self._ablations(content["ablations"]))
        return result

    def _profile(self, profile: Any) -> Any:
        family = self.kernel_stack.partition("-")[0]
        if (
            not isinstance(profile, str)
            or profile == self.kernel_stack
            or profile.partition("-")[0] != family
        ):
            return profile
        self.replaced.add(profile)
        return self.kernel_stack

    def _host(self, host: Mapping[str, Any]) -> dict[str, Any]:
        return {**host, "profile": self._profile(host["profile"])} if "profile" in host else dict(host)

    def _profiles(self, values: Any) -> Any:
        if isinstance(values, list):
            return list(dict.fromkeys(self._profile(value) for value in values))
        return self._profile(values)

    def _selected(self, selector: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: self._profiles(value) if PROFILE.fullmatch(key) else value for key, value in selector.items()
        }

    _varied = _selected

    def _table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        return {**table, "where": self._selected(table["where"])} if "where" in table else dict(table)

    def _claim(self, claim: Mapping[str, Any]) -> dict[str, Any]:
        result = self._table(claim)
        if claim.get("over") is None:
            return result
        result["over"] = self._selected(claim["over"])
        if result["over"] == result.get("where", {}) and claim["over"] != claim.get("where", {}):
            result["not_testable"] = ONE_STACK
        return result

    def _ablations(self, ablations: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Without those that would only show the kernel's stack once more."""
        for ablation in ablations:
            vary = self._varied(ablation.get("vary", {}))
            again = all(
                PROFILE.fullmatch(key) and value == [self.kernel_stack] for key, value in vary.items()
            )
            if not vary or not again or not self.replaced:
                yield {**ablation, **({"vary": vary} if vary else {})}
