"""Base of all parts of an experiment: they are made of content, and give content back.

Content is what a TOML file holds: texts, numbers, lists and tables. The generated classes (`parts.py`) say
which of their fields hold further parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, NoReturn, Self, TypeAlias, TypeVar, dataclass_transform

Reader: TypeAlias = Callable[[Any], Any]
"""Turns what a field's content holds into parts."""

Kind = TypeVar("Kind")


def _default(definition: Field[Any]) -> Any:
    """Return the value of a field that is not given, or `MISSING` if it has none."""
    factory = definition.default_factory
    return definition.default if factory is MISSING else factory()


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def part(kind: type[Kind]) -> type[Kind]:
    """Make a class of parts: a frozen dataclass with keywords alone, whose methods are those of `Part`.

    `dataclass(frozen=True)` compiles six methods for each class, which took a tenth of a first race's time.
    """
    return dataclass(init=False, repr=False, eq=False, kw_only=True)(kind)


class _Signature:
    """The parameters of a class of parts, for `help` and completion."""

    def __get__(self, instance: object, kind: type[Part]) -> inspect.Signature:
        parameters: list[inspect.Parameter] = []
        for definition in fields(kind) if is_dataclass(kind) else ():  # `dataclass` itself looks at it
            default = _default(definition)
            if default is MISSING:
                default = inspect.Parameter.empty
            parameters.append(
                inspect.Parameter(
                    definition.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=default,
                    annotation=definition.type,
                )
            )
        return inspect.Signature(parameters)


@part
class Part:
    """A piece of an experiment, which does not change. The core checks it as part of the whole."""

    READERS: ClassVar[Mapping[str, Reader]] = {}
    """Field → reader of the parts in it."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__: ClassVar[_Signature] = _Signature()

    def __init__(self, **values: Any) -> None:
        own = vars(self)
        for definition in fields(self):
            name = definition.name
            value = values.pop(name) if name in values else _default(definition)
            if value is MISSING:
                raise TypeError(f"{type(self).__name__}: missing keyword argument {name!r}")
            own[name] = value
        for name in values:
            raise TypeError(f"{type(self).__name__}: got an unexpected keyword argument {name!r}")
        self.__post_init__()

    def __post_init__(self) -> None:
        """Complete the part; called once it has its fields."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        settings = ", ".join(f"{key.name}={getattr(self, key.name)!r}" for key in fields(self))
        return f"{type(self).__qualname__}({settings})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, definition.name) for definition in fields(self))

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """The part that checked content describes; fields that it lacks have their defaults."""
        part = object.__new__(cls)
        for definition in fields(cls):
            key = definition.metadata.get("key", definition.name)
            if key in content:
                reader = cls.READERS.get(definition.name)
                value = content[key] if reader is None else reader(content[key])
            else:
                value = _default(definition)
            if value is MISSING:
                raise TypeError(f"{cls.__name__}: {key} is missing")
            object.__setattr__(part, definition.name, value)
        return part

    def content(self) -> dict[str, Any]:
        """Returns a file's content: the fields that differ from their defaults, and `kind`."""
        written_fields: dict[str, Any] = {}
        for definition in fields(self):
            value = getattr(self, definition.name)
            if value != _default(definition) or definition.name == "kind":
                written_fields[definition.metadata.get("key", definition.name)] = plain(value)
        return written_fields


def plain(value: Any) -> Any:
    """A value with its parts as content."""
    if isinstance(value, Part):
        return value.content()
    if isinstance(value, Mapping):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


@dataclass(frozen=True)
class One:
    """Reads a table as a part of one class."""

    kind: type[Part]

    def __call__(self, content: Any) -> Any:
        """The part, or content that is no table."""
        return self.kind.of(content) if isinstance(content, Mapping) else content


@dataclass(frozen=True)
class Tagged:
    """Reads a table as a part of the class that its field `kind` names."""

    kinds: Mapping[str, type[Part]]

    def __call__(self, content: Any) -> Any:
        """The part, or content that is no table."""
        return self.kinds[content["kind"]].of(content) if isinstance(content, Mapping) else content


@dataclass(frozen=True)
class Entries:
    """Reads each entry of a list."""

    reader: Reader

    def __call__(self, content: Any) -> Any:
        """The parts, or content that is no list."""
        return [self.reader(entry) for entry in content] if isinstance(content, list) else content


@dataclass(frozen=True)
class Named:
    """Reads each value of a table of names."""

    reader: Reader

    def __call__(self, content: Any) -> Any:
        """The names with their parts."""
        return {name: self.reader(entry) for name, entry in content.items()}
