"""Rows of a passport: a scenario, a figure of its runs, and a rule with its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from dragstrip import _core, engines
from dragstrip.experiment.bottleneck import Bottleneck
from dragstrip.experiment.comparison import COMMAND_LINE, command, compare
from dragstrip.experiment.types import Experiment

PLACE = "{a}"
"""Placeholder for the algorithm in a scenario's flows."""
BASELINES = ("cubic", "reno")
"""The deployed algorithms that every row is also run with: RFC 9743 asks for no more harm than they do."""
SEEDS = 6
"""Runs of a scenario where something is random, the algorithm included: the fewest whose bootstrap interval
is more than their range (`dragstrip.results.intervals`)."""

Summary: TypeAlias = Mapping[str, Any]
"""A run's entry of the result document (docs/reference/result-json.md)."""
Options: TypeAlias = Mapping[str, Any]
"""Options of `compare`, by name."""
Kind: TypeAlias = Literal["P", "T", "K", "R"]


@dataclass(frozen=True)
class On:
    """The engine that runs rows, and its options."""

    engine: str = engines.DEFAULT
    options: Options = field(default_factory=dict)
    """As `--engine-option` takes them."""
    load: tuple[str, ...] = ()
    """C files with congestion controls for the kernel."""

    @property
    def all_options(self) -> Options:
        """The engine's options, `load` with them."""
        return engines.options_of(self.engine, {**self.options, "load": list(self.load)})

    @property
    def build(self) -> str:
        """Settings beside the scenario that decide the figures."""
        return engines.named(self.engine).build(self.all_options)

    @property
    def kernel(self) -> str | None:
        """The release of the kernel, on an engine with one."""
        return engines.named(self.engine).kernel(self.all_options)

    @property
    def words(self) -> list[str]:
        """The options of `dragstrip compare` that choose it; none for the default."""
        if self.engine == engines.DEFAULT:
            return []
        pairs = [
            f"{name}={text}"
            for name, value in self.options.items()
            for text in (value if isinstance(value, list | tuple) else [value])
        ]
        options = [word for pair in pairs for word in ("--engine-option", pair)]
        return ["--engine", self.engine, *options, *(word for file in self.load for word in ("--load", file))]

    @property
    def race(self) -> dict[str, Any]:
        """The keywords of `compare` that choose it."""
        return {"engine": self.engine, "engine_options": self.options, "load": self.load}


SIMULATOR = On()


@dataclass(frozen=True)
class Subject:
    """An algorithm that a passport is made of."""

    word: str
    """The algorithm with its options, as `compare` takes it."""
    programs: tuple[tuple[str, str], ...] = ()
    """Algorithms as texts, by name."""
    files: tuple[str, ...] = ()
    """The files of the texts, as the command line named them."""
    on: On = SIMULATOR
    """Engine and options that run it."""

    @property
    def name(self) -> str:
        """The algorithm without its options."""
        return _core.flow_word(self.word).name


@dataclass(frozen=True)
class Scenario:
    """A path, its flows, and how often they run; `{a}` stands for the algorithm."""

    flows: tuple[str | Mapping[str, Any], ...]
    """Words as `compare` takes them; with a table in the form of an experiment's `[[flows]]`, the scenario is
    an experiment."""
    options: Options
    subjects: int | None = None
    """Number of flows, from the first, that are the algorithm's; None: all."""
    repeats: int = SEEDS
    """Runs with different seeds, where something is random; what draws nothing runs once."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of an experiment that `compare` has no option for; those of `path` join it, None removes one."""
    runs_per_figure: int = 1
    """Number of successive runs that together give one figure, as `runs` of one summary."""

    @property
    def is_comparison(self) -> bool:
        """True when one `dragstrip compare` line says all of it."""
        return not self.fields and all(isinstance(flow, str) for flow in self.flows)

    def experiment(self, subject: Subject, repeats: int | None = None) -> Experiment:
        """The scenario with this algorithm; raises `BadInputError` for what `compare` would refuse."""
        programs = dict(subject.programs)
        race = dict(self._race(repeats))
        words = [_filled(flow, subject.word) for flow in self.flows if isinstance(flow, str)]
        if programs and any(PLACE in str(flow) for flow in self.flows):
            race["programs"] = programs
        if self.is_comparison:
            return compare(words, source=COMMAND_LINE, **subject.on.race, **race)
        content = compare([subject.word], source=COMMAND_LINE, **subject.on.race, **race).content()
        content.pop("vary", None)  # its one algorithm
        more = dict(self.fields)
        if isinstance(path := more.get("path"), Mapping):
            more["path"] = {**content["path"], **path}
        content.update(more, flows=[_table(flow, subject.word) for flow in self.flows])
        return Experiment.build({name: value for name, value in content.items() if value is not None})

    def command(self, subject: Subject, repeats: int | None = None) -> str:
        """The command line that replays a scenario which is a comparison."""
        race = dict(self._race(repeats))
        if subject.files and any(PLACE in str(flow) for flow in self.flows):
            race["programs"] = list(subject.files)
        return command([_filled(str(flow), subject.word) for flow in self.flows], race, subject.on.words)

    def _race(self, repeats: int | None) -> dict[str, Any]:
        count = self.repeats if repeats is None else repeats
        together = {"together": True} if len(self.flows) > 1 and self.is_comparison else {}
        return {**self.options, **together, **({"repeat": str(count)} if count > 1 else {})}


def _filled(text: str, word: str) -> str:
    return text.replace(PLACE, word)


def _table(flow: str | Mapping[str, Any], word: str) -> dict[str, Any]:
    table = {"cc": flow} if isinstance(flow, str) else dict(flow)
    if "cc" in table:
        table["cc"] = _filled(table["cc"], word)
    return table


@dataclass(frozen=True)
class RowFigure:
    """Figure that a row measures in one run."""

    name: str
    unit: str
    more_is_better: bool | None
    """None: neither is."""
    of: Callable[[Summary, Scenario], float | None]
    """The figure of a run; None where there is nothing to measure."""
    formula: str
    """Derivation from `dragstrip compare --json`."""
    floor: float = 0.0
    """A difference too small to matter, in the figure's unit."""
    smaller: Callable[[Summary, Scenario], str] | None = None
    """The side that has less in a run, for a ratio of two sides."""
    of_phases: bool = False
    """True when it is read from the algorithm's phases, which a kernel does not tell."""
    no_measure: str = ""
    """Reason why measures do not give it; empty: it is computed from measures."""


@dataclass(frozen=True)
class RowRule:
    """Requirement on a row's figure, and its source."""

    kind: Kind
    """P: a document's limit; T: a published target; K: no worse than the worse baseline; R: reported."""
    source: str
    most: float | None = None
    least: float | None = None

    @property
    def text(self) -> str:
        """The rule in words, without the figure's unit."""
        if self.kind == "K":
            return "no worse than CUBIC and Reno"
        if self.kind == "R":
            return "reported"
        bound = [f"at least {self.least:g}"] if self.least is not None else []
        bound += [f"at most {self.most:g}"] if self.most is not None else []
        return ", ".join(bound)


@dataclass(frozen=True)
class Law:
    """A closed form from the literature, for the algorithms and the range in which it holds."""

    name: str
    value: float
    valid: str
    """The range in which it holds, in words."""
    source: str
    holds_for: tuple[str, ...]
    """Names of the algorithms that it describes."""


@dataclass(frozen=True)
class PassportRow:
    """One line of a passport."""

    id: str
    chapter: str
    title: str
    scenario: Scenario
    figure: RowFigure
    rule: RowRule
    quick: bool = False
    """Included in `--quick`."""
    law: Law | None = None
    only_for: tuple[str, ...] = ()
    """Names of the algorithms that the row is about; empty: all."""


@dataclass(frozen=True)
class PassportPath:
    """A bottleneck in numbers; the base of a scenario."""

    mbit: float
    rtt_ms: float
    bdp: float = 1.0
    """The buffer of a drop-tail queue, in bandwidth-delay products of the base round trip."""
    duration_s: float = 20.0
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> Options:
        """The options of `compare` for this path."""
        big = self.mbit * self.rtt_ms * max(1.0, self.bdp) > LARGE_KBIT
        return Bottleneck(
            rate=f"{self.mbit * 1000:g}kbit" if self.mbit < 1 else f"{self.mbit:g}mbit",
            rtt=f"{self.rtt_ms:g}ms",
            queue=f"{self.bdp:g}bdp",
            duration=f"{self.duration_s:g}s",
            sysctl=LARGE_SOCKETS if big else None,
            more=self.more,
        ).options()

    @property
    def name(self) -> str:
        """The path in words, such as `10 Mbit/s, 40 ms, 1 BDP`."""
        rate = f"{self.mbit * 1000:g} kbit/s" if self.mbit < 1 else f"{self.mbit:g} Mbit/s"
        queue = str(self.more["queue"]) if "queue" in self.more else f"{self.bdp:g} BDP"
        return f"{rate}, {self.rtt_ms:g} ms, {queue}"

    def with_(self, **more: Any) -> PassportPath:
        """The path with these options of `compare` too."""
        return replace(self, more={**self.more, **more})

    def scenario(self, *flows: str | Mapping[str, Any], subjects: int | None = None) -> Scenario:
        """A scenario of this path with these flows."""
        return Scenario(flows or (PLACE,), self.options, subjects)


LARGE_KBIT = 16000.0
"""Bandwidth-delay product and buffer, in kbit, above which Linux's default sockets (4 and 6 MB) may limit."""
LARGE_SOCKETS = {
    "net.ipv4.tcp_rmem": "4096 131072 67108864",
    "net.ipv4.tcp_wmem": "4096 16384 67108864",
}
"""Sockets of 64 MB, so that the path limits and not the host."""


def several(word: str, count: int) -> str:
    """So many flows of an algorithm, as `compare` takes them."""
    return word if count == 1 else f"{word}*{count}"


def rated(
    chapter: str,
    key: str,
    title: str,
    scenario: Scenario,
    *judged: tuple[RowFigure, RowRule],
    quick: bool = False,
) -> Sequence[PassportRow]:
    """A row for each figure of one scenario; their ids end with the figure's name."""
    return [
        PassportRow(
            f"{chapter}-{key}-{figure.name.replace(' ', '-')}", chapter, title, scenario, figure, rule, quick
        )
        for figure, rule in judged
    ]
