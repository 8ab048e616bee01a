"""Scenarios of a queue discipline: fixed flows, with the discipline at the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dragstrip.experiment.bottleneck import Bottleneck
from dragstrip.experiment.types import Experiment
from dragstrip.studies.passport.queues.words import kind, main_parameter, scaled, sized
from dragstrip.studies.passport.rows import Scenario, Subject

PLACE = "{queue}"
"""Placeholder for the discipline in a scenario's fields."""


@dataclass(frozen=True)
class QueueSubject(Subject):
    """A queue discipline that a passport is made of: `word` has its words as tc takes them."""

    @property
    def name(self) -> str:
        """The discipline without its parameters."""
        return kind(self.word)


@dataclass(frozen=True)
class QueueScenario(Scenario):
    """A scenario whose queue is the subject."""

    factor: float = 1.0
    """Factor of the discipline's main parameter; the drop-tail queues stay as they are."""
    capacity_bps: float = 0.0
    """Mean rate of the bottleneck over the run."""
    bdp_bytes: float = 0.0
    """The bandwidth-delay product, for links that have no path to count it by."""

    def experiment(self, subject: Subject, repeats: int | None = None) -> Experiment:
        """The scenario with this discipline; raises `BadInputError` for what `compare` would refuse."""
        return self._queued(subject).experiment(Subject("reno", on=subject.on), repeats)

    def command(self, subject: Subject, repeats: int | None = None) -> str:
        """The command line that replays a scenario which is a comparison."""
        return self._queued(subject).command(Subject("reno", on=subject.on), repeats)

    def _queued(self, subject: Subject) -> Scenario:
        words = subject.word
        if self.factor != 1.0 and main_parameter(words) is not None:
            words = scaled(words, self.factor)
        options = {**self.options, "queue": words}
        if options.get("up_queue") == PLACE:
            options["up_queue"] = words
        fields = _filled(self.fields, sized(words, self.bdp_bytes))
        return Scenario(self.flows, options, self.subjects, self.repeats, fields)


def _filled(fields: Any, words: str) -> Any:
    """Return fields of an experiment with these words in the discipline's place."""
    match fields:
        case Mapping():
            return {name: _filled(value, words) for name, value in fields.items()}
        case list():
            return [_filled(value, words) for value in fields]
        case _:
            return words if fields == PLACE else fields


@dataclass(frozen=True)
class QueuePath:
    """A bottleneck under test."""

    mbit: float
    rtt_ms: float
    duration_s: float = 60.0

    @property
    def name(self) -> str:
        """The path in words, such as `10 Mbit/s, 100 ms`."""
        return f"{self.mbit:g} Mbit/s, {self.rtt_ms:g} ms"

    def scenario(
        self,
        *flows: str | Mapping[str, Any],
        subjects: int | None = None,
        capacity_mbit: float | None = None,
        factor: float = 1.0,
        fields: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> QueueScenario:
        """A scenario of this path with these flows; `capacity_mbit` is its mean rate where that changes."""
        path = Bottleneck(
            rate=f"{self.mbit:g}mbit",
            rtt=f"{self.rtt_ms:g}ms",
            duration=f"{self.duration_s:g}s",
            more=options,
        )
        return QueueScenario(
            flows,
            path.options(),
            subjects,
            fields=fields or {},
            factor=factor,
            capacity_bps=1e6 * (self.mbit if capacity_mbit is None else capacity_mbit),
            bdp_bytes=self.mbit * self.rtt_ms * 125,
        )

    def lasting(self, duration_s: float) -> QueuePath:
        """The path with another duration of its runs."""
        return replace(self, duration_s=duration_s)
