"""Algorithms as texts (docs/how-to/program.md): files of an experiment or of the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, expect_text, nearest, value_text
from dragstrip.experiment import onnx_policy
from dragstrip.io import untrusted

FILE_ENDINGS = (".cc", ".json", ".onnx")
"""Endings of an algorithm's file: a program, a policy as JSON, a policy as ONNX."""
OUTSIDE = "outside"
"""A policy's model where it has none: its actions come from an environment (`dragstrip.gym`)."""
MODEL_MISSING = "needs a `model`: without one nobody acts outside dragstrip.gym (docs/how-to/learning.md)"
"""Words about a policy whose actions come from outside."""
MARKED_MAX = 200
"""Characters of a line that an error shows, at most: a policy may have all of its weights in one."""


class ProgramError(BadInputError):
    """A fault in an algorithm as a text; its text shows the line and marks the place in it."""

    def __init__(self, name: str, text: str, at: str, value: str, expected: str) -> None:
        super().__init__("", Raw(value) if value else None, expected, f"{name}:{at}")
        self.name: str = name
        self.text: str = text
        self.place: str = at

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.text, self.place, self.value, self.expected)

    def __str__(self) -> str:
        line, _, column = self.place.partition(":")
        lines = self.text.splitlines()
        if not line.isdigit() or not 1 <= int(line) <= len(lines):
            return super().__str__()
        marked = lines[int(line) - 1].encode(errors="backslashreplace").decode()
        if len(marked) > MARKED_MAX:
            return super().__str__()
        before = marked[: int(column or 1) - 1]
        indent = "".join(letter if letter == "\t" else " " for letter in before)
        return f"{super().__str__()}\n    {marked}\n    {indent}^"


@dataclass(frozen=True)
class Program:
    """An algorithm as a text (docs/how-to/program.md), for `dragstrip.race` and `dragstrip.compare`."""

    name: str
    text: str

    def __str__(self) -> str:
        return self.name


ProgramSource: TypeAlias = Program | str | Path
"""A `program`, or its file; as a text it needs a name beside it."""
Programs: TypeAlias = ProgramSource | Sequence[ProgramSource] | Mapping[str, ProgramSource]
"""Values that the argument `programs` takes."""


def program(name: str, text: str | Path) -> Program:
    """Return an algorithm of one's own: `race(program("mine", text), "cubic")`.

    `text` is the algorithm, or a `Path` of its file. Raises `ProgramError`, which marks the place, for a
    fault in it.
    """
    content = _read(text) if isinstance(text, Path) else text
    if fault := _fault(content):
        raise ProgramError(name, content, *fault)
    _expect_model(content, name)
    return Program(name, content)


def _fault(text: str) -> tuple[str, str, str] | None:
    """Return where a text has its first fault (`line:column`), its words and what would be right, or None."""
    try:
        text.encode()
        _core.check_program(text)
    except UnicodeEncodeError as error:
        before = text[: error.start].split("\n")
        at = f"{len(before)}:{len(before[-1]) + 1}"
        return at, value_text(text[error.start]), "text in UTF-8, which has no half of a surrogate pair"
    except _core.InputError as error:
        at, value, expected = error.args
        return at, value, expected
    return None


def separated(algorithms: Sequence[str | Program]) -> tuple[list[str], dict[str, str]]:
    """Return the algorithms' names, and the texts of those that are programs, by name.

    Raises `BadInputError` for two programs of one name.
    """
    programs: dict[str, str] = {}
    words = list(algorithms)
    for entry in words:
        if isinstance(entry, Program):
            programs = joined(programs, {_own_name(entry.name): entry.text}, "algorithms")
    return [str(entry) for entry in words], programs


def _own_name(word: str) -> str:
    """Return the algorithm of a flow's word: `mine` of `mine*2@80ms`; another word is refused elsewhere."""
    try:
        return _core.flow_word(word).own_name
    except _core.InputError:
        return word


def by_name(programs: Programs | None) -> dict[str, str]:
    """Name → text of the argument `programs`.

    It is a `program`, a file (FILE.cc, FILE.json, FILE.onnx), a list of these, or a dict of these and of
    texts by name. A file has its own name, without the ending. Raises `BadInputError`.
    """
    if programs is None:
        return {}
    texts: dict[str, str] = {}
    if isinstance(programs, Mapping):
        for name, source in programs.items():
            if not isinstance(name, str):
                raise BadInputError("programs", name, "the name of an algorithm, as text")
            texts[name] = _content(source, f"programs[{name!r}]")
        return texts
    sources = [programs] if isinstance(programs, ProgramSource) else programs
    if not isinstance(sources, list | tuple):
        raise BadInputError(
            "programs", sources, "a program, a file, a list of them, or a dict of them by name"
        )
    for source in sources:
        if isinstance(source, str) and is_text(source):
            expected = 'a program or a file, or {"NAME": text}: a text alone has no name'
            raise BadInputError("programs", source, expected)
        text = _content(source, "programs")
        name = _own_name(source.name) if isinstance(source, Program) else Path(source).stem
        texts = joined(texts, {name: text}, "programs")
    return texts


def joined(programs: Mapping[str, str], more: Mapping[str, str], field: str) -> dict[str, str]:
    """Return both tables as one; raises `BadInputError` about `field` for a name with two texts."""
    for name, text in more.items():
        if programs.get(name, text) != text:
            raise BadInputError(field, name, "another name: two programs have this one")
    return {**programs, **more}


def _content(source: object, field: str) -> str:
    """Return the text of a program, of its file, or the text itself; raises `BadInputError`."""
    if isinstance(source, Program):
        return source.text
    if isinstance(source, str) and is_text(source):
        return expect_text(field, source, "")  # other faults are found where it is used
    if not isinstance(source, str | Path):
        raise BadInputError(field, source, "a program, a file or, by name, a text")
    try:
        return _of_file(str(source))
    except BadInputError as error:
        raise BadInputError(field, str(source), f"a program's file: {error}") from None


def of_files(files: Sequence[str]) -> dict[str, str]:
    """Name → text of files that the command line names; the name is the file's, without its ending.

    A policy as ONNX becomes a text.

    Rust files are left out: their algorithms are in the core.

    Raises `BadInputError` that names file, line and column.
    """
    programs: dict[str, str] = {}
    for file in files:
        if file.endswith(".rs"):
            _expect_rust_files(file)
            continue
        name = Path(file).stem
        if name in programs:
            expected = f"another name: a second program is called {name} here"
            raise BadInputError("--program", file, expected, "command line")
        programs[name] = _of_file(file)
    return programs


def _of_file(file: str) -> str:
    """Return the text of a program's file; raises `BadInputError` that names file, line and column."""
    text = _read(Path(file))
    if fault := _fault(text):
        at, value, expected = fault
        raise BadInputError("", Raw(value), expected, _place(file, at))
    _expect_model(text, file)
    return text


def of_table(table: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Name → text of an experiment's `[programs]`: each is a text, or a file seen from its folder.

    Raises `BadInputError` that names file, line and column.
    """
    programs = {}
    for name, program in table.items():
        text = program
        if not is_text(program):
            try:
                text = _read(folder / program)
            except BadInputError as error:
                raise BadInputError(f"programs.{name}", program, f"a program's file: {error}") from None
        if fault := _fault(text):
            at, value, expected = fault
            where = at if is_text(program) else _place(program, at)
            raise BadInputError(f"programs.{name}", Raw(f"{value} at {where}"), expected)
        programs[name] = text
    expect_models(programs)
    return programs


def refuse_unnamed(programs: Mapping[str, str], algorithms: Sequence[str], source: str = "") -> None:
    """Raises `BadInputError` for a program that none of these algorithms names; `source` as in `compare`."""
    if not programs:
        return
    flow_words = []
    for word in algorithms:
        try:
            flow_words.append(_core.flow_word(word).own_name)
        except _core.InputError:
            return  # it is told elsewhere
    for name in programs:
        if name.replace("-", "_") not in [flow_word.replace("-", "_") for flow_word in flow_words]:
            word, field = ("an ALGORITHM", "--program") if source else ("an algorithm", "programs")
            expected = f"{word} {name} beside it{nearest(name, flow_words)}"
            raise BadInputError(field, Raw(f"{name}, which nothing names"), expected, source)


def in_file(error: BadInputError, files: Mapping[str, str]) -> BadInputError:
    """Return an error in a line of a program with the file that has it; any other unchanged.

    `files` are the programs' files, by the names of the programs.
    """
    place = re.fullmatch(r"programs\.(.+?):(\d+:\d+)", error.field)
    if place is None or place[1] not in files:
        return error
    return BadInputError("", None, error.expected, f"{files[place[1]]}:{place[2]}")


def refuse_files(algorithms: Sequence[str]) -> None:
    """Raise `BadInputError` for a word of a command line that is a program's file instead of its name."""
    for word in algorithms:
        name = _own_name(word)
        if name.endswith((*FILE_ENDINGS, ".rs")) and Path(name).is_file():
            expected = f"is a file: name it with --program {name}, and its algorithm {Path(name).stem}"
            raise BadInputError("algorithms", None, f"{name} {expected}")


def _expect_rust_files(file: str) -> None:
    """Raise `BadInputError` unless the core has algorithms of Rust files (`authoring.rust_files`)."""
    from dragstrip.model.recording.core_build import (
        algorithm_files,  # Arrow: not where there are no Rust files
    )

    if not algorithm_files():
        expected = "an algorithm as a text: one in Rust is for compare, run, passport, evidence and attack"
        raise BadInputError("--program", file, expected, "command line")


def expect_models(programs: Mapping[str, str]) -> None:
    """Raises `BadInputError` for a policy without a model among these texts by name."""
    for name, text in programs.items():
        if _lacks_model(text):
            raise BadInputError(f"programs.{name}", None, f"policy {name} {MODEL_MISSING}")


def _lacks_model(text: str) -> bool:
    """Return True for a policy without a model; a text with a fault is refused elsewhere, with its place."""
    try:
        policy = json.loads(text) if text.lstrip().startswith("{") else None
    except ValueError:
        return False
    return isinstance(policy, dict) and policy.get("model", OUTSIDE) == OUTSIDE


def _expect_model(text: str, source: str) -> None:
    """Raise `BadInputError` for a policy without a model."""
    if _lacks_model(text):
        raise BadInputError("", None, MODEL_MISSING, source)


def is_text(program: str) -> bool:
    """Returns True for a program's text, False for a file's name, which has neither braces nor lines."""
    return "{" in program or "\n" in program


def _place(file: str, at: str) -> str:
    """Return where a fault is: ONNX has no lines."""
    return file if file.endswith(onnx_policy.ENDING) else f"{file}:{at}"


def _read(file: Path) -> str:
    if file.suffix == onnx_policy.ENDING:
        return onnx_policy.text_of(file)
    return untrusted.text(file, _core.PROGRAM_MAX, "a program")
