"""The experiment: a path, traffic, what varies, how often, and the claims it is graded by.

The classes are the TOML format (docs/reference/experiment.md); their fields are generated (`parts`).
Whatever a file, a command line or a program says goes through the core, which checks it and answers in the
same words to all of them. Here stands what the core cannot do: read files that an experiment names, and ask
engines what they have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any, Self, TypeAlias

from dragstrip import _core, engines
from dragstrip.display.notebook import html_of
from dragstrip.errors import BadInputError, Raw, note
from dragstrip.experiment import files, permissions, stacks
from dragstrip.experiment.part import Part, part
from dragstrip.experiment.parts import (
    Ablation,
    Alternative,
    Change,
    Claim,
    ExperimentFields,
    Flow,
    FlowTable,
    HostSettings,
    Link,
    Node,
    Path,
    Probe,
)
from dragstrip.io import toml
from dragstrip.io.untrusted import parsed_toml, printable

Selector: TypeAlias = dict[str, Any]
"""Selection of runs and flows: key → value, or a list of values."""


REPR_MAX = 280
"""Characters of an experiment's settings in its `repr`, at most."""


@part
class Experiment(ExperimentFields):
    """A checked experiment: `Experiment(duration="10s", path=Path(...), flows=[Flow(cc="cubic")])`.

    Raises `BadInputError` for the first field that is wrong.
    """

    def __post_init__(self) -> None:
        """Fields as the core has checked them."""
        checked = type(self).build(self.content())
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, getattr(checked, name))

    @property
    def engines(self) -> tuple[str, ...]:
        """The names of the engines that run it."""
        return engines.parse(self.engine)

    def options_of(self, engine: str) -> dict[str, Any]:
        """The options of this engine, by name."""
        return engines.options_of(engine, {**self.engine_options, "load": self.load})

    @classmethod
    def read(
        cls,
        file: FilePath | str,
        bound: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        *,
        engine: str | None = None,
        load: Sequence[str] | None = None,
    ) -> Experiment:
        """Read the experiment in a TOML file.

        As on the command line, a file decides neither on which engine it runs nor what is loaded into a
        running kernel: it runs on the simulator unless `engine` names another engine, such as `vm`, and
        `load` names the files that engine may load. `bound` replaces that rule: it returns the content
        without what the file may not decide. Raises `BadInputError`, which names file, line and field.
        """
        file = FilePath(file)
        content = parsed_toml(file)
        content = permissions.bound(content, str(file), engine, load) if bound is None else bound(content)
        content.setdefault("name", printable(f"{file.resolve().parent.name}/{file.stem}"))
        _locate_option_files(content, file.parent)
        if engine is not None:
            content["engine"] = engine
        if load is not None:
            content["load"] = list(load)
        try:
            return cls.build(content, str(file))
        except BadInputError as error:
            raise toml.pointed(error) from None

    @classmethod
    def build(cls, content: Mapping[str, Any], source: str = "") -> Self:
        """The experiment that content describes. Raises `BadInputError` for the first field that is wrong.

        Files that it names are looked for from the folder of `source`.
        """
        try:
            algorithm_names = algorithms(content)
            located = files.located(content, FilePath(source).parent)
            try:
                checked = _core.checked(located, algorithm_names)
            except _core.InputError as error:
                raise _advised(refused(error), algorithm_names, content) from None
        except BadInputError as error:
            raise error.at(source) from None
        for text in _byte_rates(checked):
            _note_byte_rate(text)
        return cls.of(checked)

    def changed(self, **fields: Any) -> Self:
        """The experiment with other values in these fields, checked again. Raises `BadInputError`."""
        return replace(self, **fields)

    def settings(self) -> dict[str, str]:
        """Return what is set, as text by dotted field; defaults are left out."""
        return {
            field: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for field, value in _core.flat(self.content()).items()
        }

    def __repr__(self) -> str:
        """Settings that differ from their defaults, in under 300 characters."""
        text = ", ".join(f"{field}={value}" for field, value in self.settings().items())
        return f"<Experiment {text if len(text) <= REPR_MAX else f'{text[:REPR_MAX]} …'}>"

    def _repr_html_(self) -> str:
        return html_of(self)

    def algorithms(self) -> list[str]:
        """The congestion controls that its flows may name: those of the first engine."""
        return engines.named(self.engines[0]).algorithms(self.options_of(self.engines[0]))


def refused(error: _core.InputError, source: str = "") -> BadInputError:
    """Converts the core's error about an input into ours."""
    field, value, expected = error.args
    return BadInputError(field, Raw(value) if value else None, expected, source)


def _advised(
    error: BadInputError, algorithm_names: Sequence[str], content: Mapping[str, Any]
) -> BadInputError:
    """The same with the engine's advice, where it is about an algorithm that only this engine has not."""
    name = str(error.value).strip('"')
    if name in algorithm_names or name not in (*_core.ALGORITHMS, *_core.QUIC):
        return error
    engine = engines.named(engines.parse(content.get("engine") or engines.DEFAULT)[0])
    if absent := engine.absence(name):
        return BadInputError(error.field, Raw(str(error.value)), absent, error.source)
    if name in _core.QUIC:
        advice = "; the QUIC stacks run in the engine sim"
        return BadInputError(error.field, Raw(str(error.value)), error.expected + advice, error.source)
    return BadInputError(
        error.field, Raw(str(error.value)), error.expected + engine.lacking(name), error.source
    )


def algorithms(content: Mapping[str, Any]) -> list[str]:
    """The congestion controls of the first engine that content names.

    Raises `BadInputError` for what is wrong with engines and their options.
    """
    engine, options, load = (content.get(key) for key in ("engine", "engine_options", "load"))
    if not (isinstance(engine or "", str) and isinstance(options or {}, dict)):
        return []  # the core tells
    names = engines.parse(engine or engines.DEFAULT)
    try:
        engines.check_options(names, options or {})
    except BadInputError as error:
        field = f"engine_options.{error.field}"
        raise BadInputError(field, Raw(error.value), error.expected) from None
    engines.check_options(names, {"load": load})
    return engines.named(names[0]).algorithms(
        engines.options_of(names[0], {**(options or {}), "load": load or []})
    )


def _byte_rates(content: object) -> Iterator[str]:
    """The rates that are written in bytes per second."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key in ("rate", "up_rate", "phy", "dte") and str(value).lower().endswith("bps"):
                yield str(value)
            else:
                yield from _byte_rates(value)
    elif isinstance(content, list):
        for entry in content:
            yield from _byte_rates(entry)


def _note_byte_rate(text: str) -> None:
    mbps = _core.parse_rate(text) / 1e6
    bit_unit = f"{text[:-3].lower()}bit for bits"
    note(f"{text} is {mbps:g} Mbit/s: tc reads bps as bytes per second; {bit_unit}")


def _locate_option_files(content: dict[str, Any], folder: FilePath) -> None:
    """Engine options that are files are meant from the experiment's folder."""
    engine_options = content.get("engine_options", {})
    for table in (content, engine_options if isinstance(engine_options, dict) else {}):
        for key in engines.file_options() & table.keys():
            value = table[key]
            if isinstance(value, list):
                table[key] = [str(folder / str(part)) for part in value]
            elif isinstance(value, str):
                table[key] = str(folder / value)


def _without_duration(alternative: dict[str, Any]) -> dict[str, Any]:
    settings = {path: value for path, value in alternative["set"].items() if path != "duration"}
    return {**alternative, "set": settings}


def rebuilt(content: dict[str, Any], changed: Mapping[str, Any]) -> tuple[Experiment, list[str]]:
    """An experiment with what the command line says instead, and the older stacks that gave way.

    A duration is that of each run, also where alternatives set one. Where the command line chooses an engine
    whose hosts run a kernel of their own, that stack takes the place of older ones of its family, also where
    they vary: claims are graded on it, and the description says so.
    Raises `BadInputError`.
    """
    replaced: set[str] = set()
    if "duration" in changed and "alternatives" in content:
        content = {
            **content,
            "alternatives": [_without_duration(alternative) for alternative in content["alternatives"]],
        }
    try:
        engine_names = engines.parse(changed["engine"]) if "engine" in changed else ()
    except BadInputError as error:
        raise error.at("command line") from None
    for name in engine_names:
        if (kernel_stack := engines.named(name).own_stack) is not None:
            replacing = stacks.Replacing(kernel_stack)
            content = replacing.everywhere(content)
            replaced |= replacing.replaced
    if replaced:
        older = ", ".join(sorted(replaced))
        stack_note = f"Here hosts run the stack of the engine's own kernel, in place of {older}."
        content = {**content, "description": f"{content.get('description', '')}\n\n{stack_note}".strip()}
    try:
        return Experiment.build({**content, **changed}, "command line"), sorted(replaced)
    except BadInputError as error:
        field, dot, inner = error.field.partition(".")
        if field not in changed:
            raise
        option = "--engine-option " if field == "engine_options" and dot else f"--{field}{dot}"
        raise BadInputError(f"{option}{inner}", Raw(error.value), error.expected, error.source) from None


__all__ = [
    "Ablation",
    "Alternative",
    "Change",
    "Claim",
    "Experiment",
    "Flow",
    "FlowTable",
    "HostSettings",
    "Link",
    "Node",
    "Part",
    "Path",
    "Probe",
    "Selector",
    "algorithms",
    "rebuilt",
    "refused",
]
