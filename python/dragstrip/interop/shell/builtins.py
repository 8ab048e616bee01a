"""Commands of the shell itself, and of programs that answer the same on every router.

Belongs here: a function per command, which gets the shell and the command's fields. Does not belong here:
programs that only turn text into text (`programs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragstrip.interop.shell import programs
from dragstrip.interop.shell.syntax import Parser, ShellSyntaxError
from dragstrip.interop.shell.values import GAPS, UNKNOWN, Expanded, LeavingError, Position, RefusalError
from dragstrip.interop.shell.ways import CallFrame

if TYPE_CHECKING:
    from dragstrip.interop.shell.interpreter import Interpreter

SHELLS = frozenset(("sh", "bash", "ash", "dash"))


def describe(shell: Interpreter, fields: list[Expanded]) -> None:
    """Print what a name stands for: `type`."""
    name = shell.settled(fields[-1].text)
    if name in shell.state.functions:
        shell.write(f"{name} is a function\n")
    elif name in BUILTINS:
        shell.write(f"{name} is a shell builtin\n")
    else:
        shell.find_program(fields[1:])


def source(shell: Interpreter, fields: list[Expanded]) -> None:
    """Run the commands of a file: `.` and `source`."""
    path = shell.settled(fields[1].text) if len(fields) > 1 else ""
    if path in shell.state.files:
        source, text = shell.source, shell.state.files[path]
        parser = Parser(text, shell.position.line, True)
    elif path and not GAPS.search(path.rpartition("/")[2]) and (read := shell.files(shell.shown(path))):
        source, text = read
        parser = Parser(text)
    else:
        shown = shell.shown(path)
        shell.unread.append((shell.line_of(fields[0].position), shown))
        shell.queried.append((shell.line_of(fields[0].position), f". {shown}"))
        shell.end(0)
        return
    _run_text(shell, parser, source, fields[2:])


def _run_text(shell: Interpreter, parser: Parser, source: str | None, arguments: list[Expanded]) -> None:
    shell.enter()
    outer_source, outer_arguments = shell.source, shell.state.arguments
    shell.source = source
    if arguments:
        shell.state.arguments = arguments
    shell.frames.append(CallFrame(("return",)))
    try:
        try:
            shell.run_lines(parser)
        except LeavingError as leaving:
            if leaving.kind != "return":
                raise
        except ShellSyntaxError as error:
            raise RefusalError(Position(source, error.line), error.text, error.expected) from None
        shell.settle(shell.frames[-1])
    finally:
        shell.frames.pop()
        shell.source = outer_source
        if arguments:
            shell.state.arguments = outer_arguments
        shell.calls -= 1


def evaluate(shell: Interpreter, fields: list[Expanded]) -> None:
    """Run words as a script: `eval`."""
    text = " ".join(shell.settled(field.text) for field in fields[1:])
    shell.charge(1 + len(text) // 100)
    if not text.strip():
        return
    gap = shell.gap_of(text)
    if gap and not GAPS.sub("", text).strip():
        shell.emit(tuple(Expanded(shell.shown(field.text), field.position) for field in fields), False)
        shell.end(None, gap)
        return
    shell.enter()
    outer = shell.source
    try:
        shell.run_lines(Parser(text, shell.position.line, True))
    except ShellSyntaxError as error:
        raise RefusalError(shell.position, shell.shown(error.text), error.expected) from None
    finally:
        shell.source = outer
        shell.calls -= 1


def _inner_shell(shell: Interpreter, fields: list[Expanded]) -> None:
    """`sh -c TEXT`, with its arguments; a file that it would run is not known."""
    at = next((at for at, field in enumerate(fields) if re.fullmatch(r"-\w*c", field.text)), 0)
    if not at or at + 1 >= len(fields):
        shell.external(fields)
        return

    def run() -> None:
        shell.state.arguments = fields[at + 3 :]
        evaluate(shell, [fields[at], fields[at + 1]])

    shell.enter()
    try:
        shell.subshell(run)
    finally:
        shell.calls -= 1


def read(shell: Interpreter, fields: list[Expanded]) -> None:
    """Set variables to the fields of a line."""
    names, raw, array, at = [], False, False, 1
    while at < len(fields):
        word = shell.settled(fields[at].text)
        if word.startswith("-"):
            raw = raw or "r" in word
            array = array or "a" in word
            at += 1 + (word[-1] in "pdntuN")
            continue
        names.append(word)
        at += 1
    names = names or ["REPLY"]
    text = shell.state.input
    if text == "":
        for name in names:
            shell.assign(name, "")
        shell.end(1)
        return
    if text is None:
        text = shell.gap(UNKNOWN, "what is typed", "")
    line, newline, rest = text.partition("\n")
    shell.state.input = rest
    if shell.state.input_line is not None:
        shell.state.input_line += 1
    if not raw:
        line = line.replace("\\", "")
    if gap := shell.gap_of(line):
        for name in names:
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                shell.set_variable(name, shell.gap(UNKNOWN, gap.text, name), False)
        shell.end(None, gap)
        return
    if array:
        shell.assign(names[-1], {str(index): piece for index, piece in enumerate(shell.split(line)) if piece})
    else:
        for name, value in zip(names, _shares(line, len(names), shell.separators()), strict=True):
            if re.fullmatch(r"[A-Za-z_]\w*", name):
                shell.assign(name, value)
    shell.end(0 if newline or line else 1)


def _shares(line: str, count: int, separators: tuple[str, str]) -> list[str]:
    """Return the fields of a line for so many variables; the last one gets all that is left."""
    blanks, others = separators
    rest = line.lstrip(blanks)
    shares: list[str] = []
    while len(shares) < count - 1:
        end = next((at for at, character in enumerate(rest) if character in blanks + others), len(rest))
        shares.append(rest[:end])
        rest = rest[end:].lstrip(blanks)
        if rest[:1] and rest[0] in others:
            rest = rest[1:].lstrip(blanks)
    last = rest.rstrip(blanks)
    if last[-1:] and last[-1] in others and not any(character in others for character in last[:-1]):
        last = last[:-1].rstrip(blanks)
    return [*shares, last]


def getopts(shell: Interpreter, fields: list[Expanded]) -> None:
    """Take the next option of the arguments."""
    shell.read_names.add("1")
    if len(fields) < 3:
        shell.end(2)
        return
    letters, name = shell.settled(fields[1].text), shell.settled(fields[2].text)
    arguments = [word.text for word in (fields[3:] or shell.state.arguments)]
    place = int(shell.scalar("OPTIND") or "1") if (shell.scalar("OPTIND") or "1").isdigit() else 1
    word = arguments[place - 1] if 0 < place <= len(arguments) else ""
    within = shell.state.last_option or 1
    if len(word) < 2 or word[0] != "-" or word == "--":
        shell.assign("OPTIND", str(place + (word == "--")))
        shell.assign(name, "?")
        shell.end(1)
        return
    letter = word[within]
    takes = letters.find(letter) >= 0 and letters[letters.find(letter) + 1 : letters.find(letter) + 2] == ":"
    option = letter if letter in letters.replace(":", "") else "?"
    value = ""
    if takes:
        value = word[within + 1 :]
        place += 1
        if not value:
            value = arguments[place - 1] if place <= len(arguments) else ""
            option = option if place <= len(arguments) else "?"
            place += 1
        within = 0
    elif within + 1 < len(word):
        within += 1
    else:
        within, place = 0, place + 1
    shell.state.last_option = within
    shell.assign("OPTIND", str(place))
    shell.assign(name, option)
    shell.assign("OPTARG", value)
    shell.end(0)


def echo(shell: Interpreter, fields: list[Expanded]) -> None:
    """Print words."""
    words = [shell.settled(field.text) for field in fields[1:]]
    newline, escapes = "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        option = words.pop(0)
        newline = "" if "n" in option else newline
        escapes = escapes or "e" in option
    text = " ".join(words)
    if escapes:
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    shell.write(text + newline)


def printf(shell: Interpreter, fields: list[Expanded]) -> None:
    """Print words in a format."""
    words = [shell.settled(field.text) for field in fields[1:]]
    target = ""
    if words[:1] == ["-v"] and len(words) > 2:
        target, words = words[1], words[2:]
    text = programs.printf(words)
    if text is None:
        gap = shell.gap_of("".join(words))
        text = shell.gap(UNKNOWN, gap.text if gap else f"$({' '.join(words)})", gap.key if gap else "")
    if target:
        shell.assign(target, text)
    else:
        shell.write(text)


def cat(shell: Interpreter, fields: list[Expanded]) -> None:
    """Print files that the script has written, or what it reads."""
    paths = [shell.settled(field.text) for field in fields[1:]]
    if any(path.startswith("-") and len(path) > 1 for path in paths):
        shell.external(fields)
        return
    if not paths or paths == ["-"]:
        if shell.state.input is not None:
            shell.write(shell.state.input)
            shell.state.input = ""
        return
    if all(path in shell.state.files for path in paths):
        for path in paths:
            shell.write(shell.state.files[path])
        return
    shell.external(fields)


def set_options(shell: Interpreter, fields: list[Expanded]) -> None:
    """Set the arguments and the options of the shell: `set`."""
    words = fields[1:]
    while words and words[0].text[:1] in ("-", "+") and words[0].text not in ("--", "-"):
        option = words[0].text
        if re.fullmatch(r"[-+][a-zA-Z]+", option) and "e" in option:
            shell.state.stops_at_errors = option[0] == "-"
        words = words[2:] if option.endswith("o") else words[1:]
    if words and words[0].text == "--":
        shell.state.arguments = words[1:]
    elif words:
        shell.state.arguments = words


def leave(shell: Interpreter, fields: list[Expanded]) -> None:
    """Leave a loop, a function or the shell: `break`, `continue`, `return`, `exit`."""
    kind = fields[0].text
    value = shell.settled(fields[1].text) if len(fields) > 1 else ""
    if kind in ("break", "continue"):
        raise LeavingError(kind, max(int(value), 1) if re.fullmatch(r"\d{1,3}", value) else 1)
    if gap := shell.gap_of(value):
        shell.end(None, gap)
    elif re.fullmatch(r"\d{1,9}", value):
        shell.end(int(value) % 256)
    raise LeavingError(kind)


def shift(shell: Interpreter, fields: list[Expanded]) -> None:
    """Take the first arguments away."""
    value = shell.settled(fields[1].text) if len(fields) > 1 else "1"
    count = int(value) if re.fullmatch(r"\d{1,4}", value) else 1
    if count > len(shell.state.arguments):
        shell.end(1)
        return
    shell.state.arguments = shell.state.arguments[count:]


def unset(shell: Interpreter, fields: list[Expanded]) -> None:
    """Take variables away."""
    for field in fields[1:]:
        shell.state.variables.pop(shell.settled(field.text), None)


def let(shell: Interpreter, fields: list[Expanded]) -> None:
    """Compute expressions."""
    value = "0"
    for field in fields[1:]:
        value = shell.computed(shell.settled(field.text))
    gap = shell.gap_of(value)
    shell.end(None if gap else int(value == "0"), gap)


def bracket(shell: Interpreter, fields: list[Expanded]) -> None:
    """Answer `test` and `[`."""
    words = [field.text for field in fields[1:]]
    if fields[0].text == "[":
        if not words or words[-1] != "]":
            shell.end(2)
            return
        words = words[:-1]
    shown = " ".join(_shown_word(shell.shown(shell.settled(word))) for word in words)
    shell.test(words, f"[ {shown} ]", False)


def identity(shell: Interpreter, fields: list[Expanded]) -> None:
    """Print who runs the script: root, as a router's scripts expect."""
    if [field.text for field in fields[1:]] in (["-u"], ["-g"]):
        shell.write("0\n")
    elif [field.text for field in fields] in (["whoami"], ["id", "-un"]):
        shell.write("root\n")
    else:
        shell.external(fields)


def mktemp(shell: Interpreter, fields: list[Expanded]) -> None:
    """Make a file within the interpreter."""
    path = f"/tmp/script.{len(shell.state.files) + 1}"  # noqa: S108 - a name within the interpreter
    shell.state.files[path] = ""
    shell.write(f"{path}\n")


def nothing(shell: Interpreter, fields: list[Expanded]) -> None:
    """A command that changes nothing here."""


def fail(shell: Interpreter, fields: list[Expanded]) -> None:
    """Fail."""
    shell.end(1)


def _shown_word(text: str) -> str:
    return text if text and not re.search(r"\s", text) else f'"{text}"'


BUILTINS: dict[str, Callable[[Interpreter, list[Expanded]], None]] = {
    **dict.fromkeys(
        (
            ":",
            "true",
            "trap",
            "wait",
            "umask",
            "alias",
            "shopt",
            "hash",
            "ulimit",
            "cd",
            "exec",
            "sleep",
            "unalias",
            "clear",
        ),
        nothing,
    ),
    "false": fail,
    ".": source,
    "source": source,
    "eval": evaluate,
    "read": read,
    "getopts": getopts,
    "echo": echo,
    "printf": printf,
    "cat": cat,
    "set": set_options,
    "exit": leave,
    "return": leave,
    "break": leave,
    "continue": leave,
    "shift": shift,
    "unset": unset,
    "let": let,
    "[": bracket,
    "test": bracket,
    "id": identity,
    "whoami": identity,
    "mktemp": mktemp,
    "pwd": lambda shell, fields: shell.write(".\n"),
    **dict.fromkeys(SHELLS, _inner_shell),
    "which": lambda shell, fields: shell.find_program(fields[1:]),
    "type": describe,
}
"""Commands of the shell itself, and programs that answer the same on every router."""
