"""Random programs of the small language: generated from its grammar, and the examples with words exchanged.

Each is refused with line and column, or compiles; what compiles runs to the end, twice with the same bytes, or is
ended by its own arithmetic, which is told with the program, line and column. All of these are status 0 or 2 on the
command line too. A program that follows the grammar and the words' table is refused only for its size.
"""

from __future__ import annotations

import random
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from common import ROOT, check_answer, in_process, main

from dragstrip import _core
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand

PAGE = (ROOT / "docs/how-to/program.md").read_text()
PLACE = re.compile(r"(\d+):(\d+)")
NAME = "mine"
PATH = "--rate 3mbit --rtt 20ms --queue 'bfifo limit 20kb' --loss 3% --duration 1s"
"""A lossy path, as `race` has it."""
FOR_SIZE = ("at most", "operations", "registers", "numbers of a program")
ODD = (
    "é",
    "\0",
    "\t\t",
    "1e999",
    "1e-999",
    "0x1",
    "9" * 400,
    "..",
    "1.2.3",
    "-",
    "on on",
    "}",
    "{",
    "=",
    "#",
    "1ms2",
    '"',
)
FUNCTIONS = {2: ("min", "max", "pow"), 1: ("sqrt", "cbrt", "exp", "log", "abs", "floor", "ceil")}
KEYWORDS = ("if", "else", "let", "on", "state", "and", "not")
HOOKS = ("start", "round", "timeout", "idle")
NO_WINDOW = ("loss", "timeout")
"""Hooks in which the window is not the program's."""


@cache
def words() -> dict[str, dict[str, bool]]:
    """The page's table: each word with whether it is a condition, can be set, needs `on control`."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([\w/]*) *\|", PAGE.split("### Words\n", 1)[1].split("\nYou can", 1)[0], re.M
    )
    names = [name for name, _ in rows]
    return {
        name: {
            "truth": not unit,
            "set": names.index(name) < 4,
            "control": name == "pacing" or names.index(name) >= len(names) - 3,
        }
        for name, unit in rows
    }


class Writer:
    """Writes a program that the grammar allows."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.control = dice.random() < 0.4
        self.hook = ""
        self.states = [f"s{number}" for number in range(dice.randrange(4))]
        self.params = [f"p{number}" for number in range(dice.randrange(3))]
        self.lets: list[str] = []
        self.made = 0

    def text(self) -> str:
        """The whole program."""
        parts = [f"state {name} = {self.number()}" for name in self.states]
        parts += [f"param {name} = {self.number()}" for name in self.params]
        hooks = ["control"] if self.control else ["ack", "loss"]
        if self.control and self.dice.random() < 0.5:
            hooks.append("loss")
        hooks += self.dice.sample(HOOKS, self.dice.randrange(len(HOOKS)))
        self.dice.shuffle(hooks)
        for hook in hooks:
            self.hook = hook
            body = self.block(0)
            if hook == "loss":
                body += f" ssthresh = {self.sum(0)}"
            parts.append(f"on {hook} {{ {body} }}")
        comment = "  # a comment\n" if self.dice.random() < 0.1 else "\n"
        return comment.join(parts)

    def number(self) -> str:
        """A number, often with a unit."""
        kinds = [
            "0",
            "1",
            "2",
            "0.5",
            "1e-3",
            "200ms",
            "50us",
            "2s",
            f"{self.dice.uniform(0, 100):.6g}",
            "1e300",
            "-1",
        ]
        return self.dice.choice(kinds)

    def block(self, depth: int) -> str:
        """Some statements; their variables end with them."""
        known = len(self.lets)
        made = " ".join(self.statement(depth) for _ in range(self.dice.randint(0 if depth else 1, 4)))
        del self.lets[known:]
        return made

    def statement(self, depth: int) -> str:
        """One of them."""
        draw = self.dice.random()
        if draw < 0.2:
            value = self.sum(0)
            self.made += 1
            self.lets.append(f"v{self.made}")
            return f"let {self.lets[-1]} = {value}"
        if draw < 0.4 and depth < 4:
            made = f"if {self.either(0)} {{ {self.block(depth + 1)} }}"
            while self.dice.random() < 0.3:
                made += f" else if {self.either(0)} {{ {self.block(depth + 1)} }}"
            return made + (f" else {{ {self.block(depth + 1)} }}" if self.dice.random() < 0.5 else "")
        value = self.sum(0) if self.dice.random() < 0.1 else f"max(min({self.sum(0)}, 1000), 0)"
        return f"{self.dice.choice(self.targets())} = {value}"

    def targets(self) -> list[str]:
        """What can be assigned here."""
        own = [
            name for name, word in words().items() if word["set"] and (self.control or not word["control"])
        ]
        if self.hook in NO_WINDOW:
            own.remove("cwnd")
        return [*own, *self.states, *self.lets]

    def either(self, depth: int) -> str:
        """A condition."""
        draw = self.dice.random()
        truths = [
            name for name, word in words().items() if word["truth"] and (self.control or not word["control"])
        ]
        if depth > 2 or draw < 0.4:
            return f"{self.sum(depth + 1)} {self.dice.choice(['<', '<=', '>', '>=', '==', '!='])} {self.sum(depth + 1)}"
        if draw < 0.6:
            return self.dice.choice(truths)
        if draw < 0.7:
            return f"not {self.either(depth + 1)}" if draw < 0.65 else f"not ({self.either(depth + 1)})"
        return f"({self.either(depth + 1)}) {self.dice.choice(['and', 'or'])} ({self.either(depth + 1)})"

    def sum(self, depth: int) -> str:
        """A number's expression."""
        draw = self.dice.random()
        if depth > 3 or draw < 0.2:
            return self.number()
        if draw < 0.5:
            numbers = [name for name, word in words().items() if not word["truth"]]
            numbers = [name for name in numbers if self.control or not words()[name]["control"]]
            return self.dice.choice([*numbers, *self.states, *self.params, *self.lets])
        if draw < 0.6:
            return f"-({self.sum(depth + 1)})" if draw < 0.55 else f"-{self.sum(depth + 1)}"
        if draw < 0.75:
            many = self.dice.choice([1, 2, 2])
            given = [self.sum(depth + 1) for _ in range(many)]
            name = self.dice.choice(FUNCTIONS[many])
            if self.dice.random() < 0.9:  # so that not nearly all end by their arithmetic
                given = [f"min(abs({value}), 9) + 1" for value in given]
            return f"{name}({', '.join(given)})"
        right = self.sum(depth + 1) if self.dice.random() < 0.1 else f"abs({self.sum(depth + 1)}) + 0.01"
        return f"({self.sum(depth + 1)}) {self.dice.choice('+-*/')} ({right})"


def mutated(text: str, dice: random.Random) -> str:
    """The same with some tokens exchanged, removed, doubled, or replaced by something odd."""
    tokens = re.findall(r"\s+|\w+|[^\w\s]", text)
    vocabulary = [*words(), *FUNCTIONS[1], *FUNCTIONS[2], *"+-*/(){}<>=,", *KEYWORDS]
    for _ in range(dice.randint(1, 5)):
        place = dice.randrange(len(tokens))
        match dice.randrange(6):
            case 0:
                tokens[place] = ""
            case 1:
                tokens.insert(place, tokens[place])
            case 2:
                tokens[place] = dice.choice(ODD)
            case 3:
                tokens[place] = dice.choice(tokens)
            case 4:
                tokens = tokens[:place] if dice.random() < 0.2 else tokens
            case _:
                tokens[place] = f" {dice.choice(vocabulary)} "
        tokens = tokens or [" "]
    return "".join(tokens)


def large(dice: random.Random) -> str:
    """At the language's limits of size, on either side."""
    many = dice.choice([20, 31, 32, 33, 60, 200, 255, 256, 257, 400])
    rest = "on loss { ssthresh = 2 }"
    return dice.choice(
        [
            f"on ack {{ cwnd = {'(' * many}1{')' * many} }} {rest}",
            f"on ack {{ {'if limited { ' * many}{'} ' * many} }} {rest}",
            f"on ack {{ cwnd = {' + '.join(['acked'] * many)} }} {rest}",
            f"on ack {{ cwnd = {' + '.join(map(str, range(many)))} }} {rest}",
            "".join(f"state s{number} = {number}\n" for number in range(many)) + f"on ack {{ }} {rest}",
            f"on ack {{ cwnd = {'-' * many}1 }} {rest}",
            f"on ack {{ if {'not ' * many}limited {{ cwnd = 5 }} }} {rest}",
            f"on ack {{ }} {rest} #{'x' * (_core.PROGRAM_MAX - 40 + dice.randrange(60))}",
            f"on ack {{ {''.join(f'let v{number} = {number} ' for number in range(many))} }} {rest}",
        ]
    )


@cache
def race() -> dict[str, Any]:
    """A lossy path of a second, with two flows of the program: some retransmission, often a timeout."""
    programs = {NAME: "on ack { } on loss { ssthresh = 2 }"}
    described = compare(
        [f"{NAME}*2"],
        programs=programs,
        rate="3mbit",
        rtt="20ms",
        queue="bfifo limit 20kb",
        loss="3%",
        duration="1s",
    )
    return expand(described)[0].scenario


def check_place(said: str, text: str, what: object) -> None:
    """A place is one of the text: a line that it has, and a column of it or the one behind it."""
    found = PLACE.search(said)
    assert found, f"no line and column: {what}"
    lines = text.split("\n")
    line, column = int(found[1]), int(found[2])
    assert 1 <= line <= len(lines), f"line {line} of {len(lines)}: {what}"
    assert 1 <= column <= len(lines[line - 1]) + 1, f"column {column} of {lines[line - 1]!r}: {what}"


def refused(text: str) -> tuple[str, ...] | None:
    """What is wrong with the text, if anything is."""
    try:
        _core.check_program(text)
    except _core.InputError as error:
        check_place(error.args[0], text, error.args)
        return error.args
    return None


def ran(text: str, seed: int) -> str:
    """The hash of its run, or the fault of its arithmetic."""
    scenario = {**race(), "programs": {NAME: text}, "seed": seed}
    try:
        return str(_core.Scenario(scenario).run()["sha256"])
    except _core.InputError as error:
        said = error.args
    field, _, message = said
    assert field.startswith(f"programs.{NAME}:"), said
    check_place(field, text, said)
    assert re.search(r"gives \S.* at [\d.]+ s, in ACK \d+ of flow mine", message), said
    return f"{field} {message}"


def trial(number: int, folder: Path) -> str:
    """Number's program."""
    dice = random.Random(number)
    kind = dice.choices(["grammar", "mutated", "large"], [5, 4, 1])[0]
    examples = sorted((ROOT / "programs").glob("*.cc"))
    if kind == "large":
        text = large(dice)
    else:
        text = Writer(dice).text()
        if kind == "mutated":
            text = mutated(dice.choice(examples).read_text() if dice.random() < 0.7 else text, dice)
    wrong = refused(text)
    if wrong is not None:
        by_size = any(word in wrong[2] for word in FOR_SIZE)
        assert kind != "grammar" or by_size, f"the grammar allows it: {wrong}: {text}"
        whole = len(text.encode()) > _core.PROGRAM_MAX  # the file as a whole is refused
        outcome, ending = "refused", f"{NAME}.cc: " if whole else f"{NAME}.cc:{wrong[0]}: "
    else:
        first = ran(text, number)
        assert ran(text, number) == first, f"a second run is another: {text}"
        stopped = first.startswith("programs.")
        place = first.split()[0].replace(f"programs.{NAME}:", f"{NAME}.cc:")
        outcome, ending = ("arithmetic", f"{place}: ") if stopped else ("ran", "")
    if number % 8 == 0:
        on_command_line(folder, text, number, ending)
    return f"{kind} {outcome}"


def on_command_line(folder: Path, text: str, seed: int, ending: str) -> None:
    """`compare` says the same: status 2 with the place, or 0."""
    (folder / f"{NAME}.cc").write_text(text, newline="")
    words = f"compare {PATH} --no-report --out out --seed {seed} --program {NAME}.cc {NAME}*2"
    ended = in_process(folder, *shlex.split(words))
    check_answer(ended, 2 if ending else 0)
    assert ending in ended.error, f"expected {ending}: {ended}"
    assert bool(ending) != (folder / "out").exists(), f"status {ended.status}, and out is there: {ended}"


if __name__ == "__main__":
    main("programs", trial, count=20_000, sample=100, about=__doc__)
