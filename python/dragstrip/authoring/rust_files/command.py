"""A command line that names Rust files: a core with them is loaded, and their names take their places."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Sequence

from dragstrip.authoring.rust_files import core
from dragstrip.authoring.rust_files.source import RustFile, rust_file
from dragstrip.errors import BadInputError, FaultError
from dragstrip.model.recording import core_build

COMMANDS = ("attack", "compare", "evidence", "passport", "run")
"""Commands that run algorithms in this process or its workers."""
PROGRAM = "--program"
_NOT_INPUT = ("--out", "--junit", "--rerun")
_WORD = re.compile(r"([^:*@+]+\.rs)([:*@+].*)?")


def entered(words: Sequence[str]) -> list[str]:
    """These words of a command line with the names of algorithms in place of their Rust files.

    Each file is named by `--program` behind them. If the loaded core does not have them, the process starts
    again with one that does: this function does not return then. Raises `BadInputError` for a file that is no
    congestion control or does not compile.
    """
    if not words or words[0] not in COMMANDS:
        return list(words)
    files = _files(words)
    if not files:
        return list(words)
    algorithms = [rust_file(file) for file in files]
    _expect_apart(algorithms)
    if core_build.algorithm_files() != {algorithm.name: algorithm.sha256 for algorithm in algorithms}:
        _start_again(algorithms)
    by_file = {algorithm.file: algorithm.name for algorithm in algorithms}
    replaced_words = [
        _algorithm_word(before, word, by_file) for before, word in zip(["", *words], words, strict=False)
    ]
    missing = [file for file in files if file not in _programs(words)]
    return [*replaced_words, *(word for file in missing for word in (PROGRAM, file))]


def _files(words: Sequence[str]) -> list[str]:
    """The Rust files among the words, each once."""
    files = _programs(words)
    for before, word in zip(["", *words], words, strict=False):
        match = _WORD.fullmatch(word)
        if match and not word.startswith("-") and before not in (*_NOT_INPUT, PROGRAM):
            files.append(match[1])
    return list(dict.fromkeys(files))


def _programs(words: Sequence[str]) -> list[str]:
    """The Rust files that `--program` names."""
    files = [word for before, word in itertools.pairwise(words) if before == PROGRAM]
    files += [word.removeprefix(f"{PROGRAM}=") for word in words if word.startswith(f"{PROGRAM}=")]
    return [word for word in files if word.endswith(".rs")]


def _algorithm_word(before: str, word: str, names: dict[str, str]) -> str:
    match = _WORD.fullmatch(word)
    if match is None or before == PROGRAM or match[1] not in names:
        return word
    return names[match[1]] + (match[2] or "")


def _expect_apart(algorithms: Sequence[RustFile]) -> None:
    for number, algorithm in enumerate(algorithms):
        if algorithm.called.module in [earlier.called.module for earlier in algorithms[:number]]:
            expected = "another name: a second file has it here"
            raise BadInputError("ABOUT.name", algorithm.name, expected, algorithm.file)


def _start_again(algorithms: Sequence[RustFile]) -> None:
    """Replace this process by one that loads the core with these algorithms."""
    file = str(core.core(algorithms))
    if os.environ.get(core_build.VARIABLE) == file:
        raise FaultError(f"{file} was not loaded; please report it")
    os.environ[core_build.VARIABLE] = file
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - this very command line
