"""An option means one thing on every command: it takes the same kind of value wherever it has the same name."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import typer.main

from dragstrip.cli import app
from tools import reference

EXCEPTIONS = {
    ("--out", "play"): "writes a single page, where others write a folder",
    ("--out", "policy-bpf"): "writes a single C file",
    ("--program", "run"): "FILE.rs: an experiment itself names texts",
    ("--program", "passport"): "FILE: a text or Rust, where the others take texts alone",
    ("--program", "attack"): "FILE: a text or Rust, where the others take texts alone",
    ("--program", "evidence"): "FILE: a text or Rust, where the others take texts alone",
    **dict.fromkeys(
        (("--policy", "passport"), ("--policy", "attack"), ("--policy", "evidence")),
        "another word for --program",
    ),
    ("--set", "tc-import"): "NAME=VALUE: a variable of a script, which is no field of an experiment",
    **dict.fromkeys(
        (
            ("--repeat", "compare"),
            ("--repeat", "play"),
            ("--seed", "compare"),
            ("--seed", "play"),
            ("--seed", "whatif"),
            ("--seed", "shell"),
        ),
        "text that the core parses, as all options of a race",
    ),
    ("--only", "passport"): "CHAPTERS: its rows are selected by chapter, cases of `validate` by text",
}
"""(option, command) → the reason why it takes another kind of value than most commands."""
MEANINGS = {
    "--algorithms": "flag",
    "--against-engine": "ENGINES",
    "--against-kernel": "NAMES",
    "--against": "PASSPORT.json",
    "--check": "flag",
    "--competitor": "ALGORITHM",
    "--infer": "flag",
    "--path": "NAME",
    "--rerun": "FOLDER",
    "--segments": "flag",
    "--sender-algorithm": "NAME",
    "--trace": "FILE",
}
"""Options whose meanings are easily confused: option → what it takes on every command."""


def kind(option: Any) -> tuple[str, bool, str]:
    """Return what an option takes: a flag or its metavar, whether it is repeatable, and its Python type."""
    annotation = option.type_descriptor.annotation
    return ("flag" if option.is_flag else option.metavar, option.multiple, str(annotation))


def options() -> dict[str, dict[str, Any]]:
    """Return every option by name, and by the command that has it."""
    by_name: dict[str, dict[str, Any]] = defaultdict(dict)
    for words, command in reference.commands(typer.main.get_command(app), []):
        for parameter in command.params:
            if parameter.param_type_name == "option":
                for name in [*parameter.opts, *parameter.secondary_opts]:
                    by_name[name][" ".join(words)] = parameter
    return by_name


OPTIONS = options()


def test_the_options_are_those_of_the_program() -> None:
    assert len(OPTIONS) > 80
    assert {"compare", "run", "sweep", "passport", "attack"} <= OPTIONS["--workers"].keys()


@pytest.mark.parametrize("name", [name for name, commands in OPTIONS.items() if len(commands) > 1])
def test_an_option_takes_the_same_on_every_command(name: str) -> None:
    kinds = {
        command: kind(option)
        for command, option in OPTIONS[name].items()
        if (name, command) not in EXCEPTIONS
    }
    assert len(set(kinds.values())) <= 1, kinds


@pytest.mark.parametrize(("name", "command"), EXCEPTIONS)
def test_an_exception_is_one(name: str, command: str) -> None:
    others = {kind(option) for other, option in OPTIONS[name].items() if (name, other) not in EXCEPTIONS}
    assert kind(OPTIONS[name][command]) not in others, "no exception is needed any more"


@pytest.mark.parametrize(("name", "taken"), MEANINGS.items())
def test_an_option_that_was_ambiguous_has_one_meaning(name: str, taken: str) -> None:
    assert {kind(option)[0] for option in OPTIONS[name].values()} == {taken}
