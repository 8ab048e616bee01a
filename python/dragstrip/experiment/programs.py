"""Algorithms as texts (docs/how-to/program.md): files of an experiment or of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.io import untrusted


def of_files(files: Sequence[str]) -> dict[str, str]:
    """Name → text of files that the command line names; the name is the file's, without its ending.

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
        programs[name] = _read(Path(file))
        try:
            _core.check_program(programs[name])
        except _core.InputError as error:
            at, value, expected = error.args
            raise BadInputError("", Raw(value), expected, f"{file}:{at}") from None
    return programs


def of_table(table: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Name → text of an experiment's `[programs]`: each is a text, or a file seen from its folder.

    Raises `BadInputError` that names file, line and column.
    """
    programs = {}
    for name, program in table.items():
        text = program
        if not _is_text(program):
            try:
                text = _read(folder / program)
            except BadInputError as error:
                raise BadInputError(f"programs.{name}", program, f"a program's file: {error}") from None
        try:
            _core.check_program(text)
        except _core.InputError as error:
            at, value, expected = error.args
            where = at if _is_text(program) else f"{program}:{at}"
            raise BadInputError(f"programs.{name}", Raw(f"{value} at {where}"), expected) from None
        programs[name] = text
    return programs


def refuse_unnamed(programs: Mapping[str, str], algorithms: Sequence[str]) -> None:
    """Raises `BadInputError` for a program that none of these words of a command line names."""
    if not programs:
        return
    flow_words = []
    for word in algorithms:
        try:
            flow_words.append(_core.flow_word(word).name)
        except _core.InputError:
            return  # it is told elsewhere
    for name in programs:
        if name.replace("-", "_") not in [flow_word.replace("-", "_") for flow_word in flow_words]:
            expected = f"an ALGORITHM {name} beside it{nearest(name, flow_words)}"
            raise BadInputError("--program", Raw(f"{name}, which nothing names"), expected, "command line")


def _expect_rust_files(file: str) -> None:
    """Raise `BadInputError` unless the core has algorithms of Rust files (`authoring.rust_files`)."""
    from dragstrip.model.recording.core_build import (
        algorithm_files,  # Arrow: not where there are no Rust files
    )

    if not algorithm_files():
        expected = "an algorithm as a text: one in Rust is for compare, run, passport and attack"
        raise BadInputError("--program", file, expected, "command line")


def _is_text(program: str) -> bool:
    """A file's name has neither braces nor lines."""
    return "{" in program or "\n" in program


def _read(file: Path) -> str:
    return untrusted.text(file, _core.PROGRAM_MAX, "a program")
