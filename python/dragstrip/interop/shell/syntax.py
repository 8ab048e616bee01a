"""Shell scripts as a tree: the grammar of POSIX (Shell Command Language, 2.10), with what bash and ash add.

Belongs here: from text to commands, words and expansions, each with its line. Does not belong here: the value
of anything, which `expansion` and `interpreter` find out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

NESTING_MAX = 40
"""Commands and expansions within each other, at most."""


class ShellSyntaxError(Exception):
    """A place that is no shell grammar: its line, the text and what would be right."""

    def __init__(self, line: int, text: str, expected: str) -> None:
        super().__init__(line, text, expected)
        self.line, self.text, self.expected = line, text, expected


@dataclass(frozen=True, slots=True)
class Text:
    """Plain characters of a word; quoted ones are not split and match only themselves."""

    text: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$NAME`, or `${NAME...}` with what is done to the value."""

    name: str
    quoted: bool
    text: str
    index: str | None = None
    operator: str = ""
    operand: ShellWord | None = None
    length: bool = False
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(...)`: the output of commands."""

    body: CommandList
    quoted: bool
    text: str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((...))`: a number."""

    expression: ShellWord
    quoted: bool
    text: str


WordPart: TypeAlias = Text | Parameter | Substitution | Arithmetic


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word before its expansion."""

    parts: tuple[WordPart, ...]
    line: int
    text: str
    """As it is written."""

    @property
    def plain(self) -> str | None:
        """The text of a word without quotes and expansions."""
        if all(isinstance(part, Text) and not part.quoted for part in self.parts):
            return "".join(part.text for part in self.parts if isinstance(part, Text))
        return None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=VALUE`, `NAME+=VALUE`, `NAME[INDEX]=VALUE`, `NAME=(VALUES)`."""

    name: str
    index: str | None
    adds: bool
    value: ShellWord | tuple[ShellWord, ...]


@dataclass(slots=True)
class Redirection:
    """Source or destination of a descriptor; the target of `<<` is the text of the here-document."""

    descriptor: str
    operator: str
    target: ShellWord


@dataclass(slots=True)
class ShellCommand:
    """A command that is not yet told apart."""

    line: int
    redirections: list[Redirection] = field(default_factory=list)


@dataclass(slots=True)
class SimpleCommand(ShellCommand):
    """Words, with assignments in front of them."""

    assignments: list[Assignment] = field(default_factory=list)
    words: list[ShellWord] = field(default_factory=list)


@dataclass(slots=True)
class Conditional(ShellCommand):
    """`if`, with its `elif`s."""

    cases: list[tuple[CommandList, CommandList]] = field(default_factory=list)
    otherwise: CommandList | None = None


@dataclass(slots=True)
class Loop(ShellCommand):
    """`while` and `until`."""

    condition: CommandList | None = None
    body: CommandList | None = None
    until: bool = False


@dataclass(slots=True)
class ForEach(ShellCommand):
    """`for NAME in WORDS`; no words: the arguments."""

    name: str = ""
    words: list[ShellWord] | None = None
    body: CommandList | None = None


@dataclass(slots=True)
class Counting(ShellCommand):
    """`for ((FIRST; WHILE; NEXT))`."""

    first: ShellWord | None = None
    condition: ShellWord | None = None
    following: ShellWord | None = None
    body: CommandList | None = None


@dataclass(slots=True)
class Choice(ShellCommand):
    """`case`."""

    subject: ShellWord | None = None
    cases: list[tuple[list[ShellWord], CommandList]] = field(default_factory=list)


@dataclass(slots=True)
class Definition(ShellCommand):
    """A function."""

    name: str = ""
    body: AnyCommand | None = None


@dataclass(slots=True)
class Braces(ShellCommand):
    """`{ ...; }`, or `( ... )` in a shell of its own."""

    body: CommandList | None = None
    subshell: bool = False


@dataclass(slots=True)
class ExtendedTest(ShellCommand):
    """`[[ ... ]]`."""

    words: list[ShellWord] = field(default_factory=list)


@dataclass(slots=True)
class Computation(ShellCommand):
    """`(( ... ))`."""

    expression: ShellWord | None = None


AnyCommand: TypeAlias = (
    SimpleCommand
    | Conditional
    | Loop
    | ForEach
    | Counting
    | Choice
    | Definition
    | Braces
    | ExtendedTest
    | Computation
)


@dataclass(frozen=True, slots=True)
class PipedCommands:
    """Commands that read each other's output."""

    commands: tuple[AnyCommand, ...]
    negated: bool
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class AndOr:
    """`A && B || C`."""

    first: PipedCommands
    rest: tuple[tuple[str, PipedCommands], ...]


@dataclass(frozen=True, slots=True)
class CommandList:
    """Commands one after the other."""

    items: tuple[AndOr, ...]
    line: int
    text: str


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[([^\]\n]{0,200})\])?(\+?)=")
_REDIRECTION = re.compile(r"(\d{0,2})(<<<|<<-|<<|<&|<>|<|>>|>\||>&|>|&>>|&>)|&>>|&>")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_RESERVED = frozenset(
    [
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "do",
        "done",
        "case",
        "esac",
        "while",
        "until",
        "for",
        "in",
        "{",
        "}",
        "!",
        "function",
        "select",
        "[[",
        "time",
    ]
)
_BLANK = " \t"
_METACHARACTERS = frozenset(" \t\n;|&<>()")
_OPERATORS = (
    ":-",
    ":=",
    ":+",
    ":?",
    "-",
    "=",
    "+",
    "?",
    "##",
    "#",
    "%%",
    "%",
    "//",
    "/",
    ":",
    "^^",
    "^",
    ",,",
    ",",
)


class Parser:
    """A reader of a script's text, one line's commands after the other."""

    def __init__(self, text: str, first_line: int = 1, same_line: bool = False, nesting: int = 0) -> None:
        self.text = text
        self.at = 0
        self._first_line = first_line
        self._same_line = same_line
        self._nesting = nesting
        self._counted = (0, first_line)
        self._documents: list[tuple[Redirection, str, bool, bool]] = []

    @property
    def line(self) -> int:
        """The line in hand."""
        if self._same_line:
            return self._first_line
        at, line = self._counted
        line += self.text.count("\n", at, self.at) if self.at >= at else -self.text.count("\n", self.at, at)
        self._counted = (self.at, line)
        return line

    def _error(self, expected: str, text: str | None = None) -> ShellSyntaxError:
        rest = self.text[self.at : self.at + 40].split("\n", 1)[0] if text is None else text
        return ShellSyntaxError(self.line, rest or "the end of the script", expected)

    # Lines and blanks

    def _skip_blanks(self) -> None:
        text = self.text
        while self.at < len(text):
            if text[self.at] in _BLANK or text[self.at] == "\r":
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text.startswith("\\\r\n", self.at):
                self.at += 3
            elif text[self.at] == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return

    def _end_line(self) -> None:
        self.at += 1
        documents, self._documents = self._documents, []
        for redirection, delimiter, strips, expands in documents:
            redirection.target = self._document(delimiter, strips, expands)

    def _document(self, delimiter: str, strips: bool, expands: bool) -> ShellWord:
        lines, start = [], self.line
        parts: list[WordPart] = []
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            line = line.lstrip("\t") if strips else line
            if line.rstrip("\r") == delimiter:
                break
            lines.append(line + "\n")
        content = "".join(lines)
        if not expands:
            parts.append(Text(content, True))
        elif content:
            inner = Parser(content, start, self._same_line, self._nesting + 1)
            inner._quoted_parts(parts, None)
        return ShellWord(tuple(parts), start, content)

    def _skip_lines(self) -> None:
        while True:
            self._skip_blanks()
            if self.text.startswith("\n", self.at):
                self._end_line()
            else:
                return

    def _operator(self, *operators: str) -> str:
        """Read one of these operators, the longest first."""
        self._skip_blanks()
        for operator in operators:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return operator
        return ""

    def _peek_word(self) -> str:
        """Return the plain word in hand, which may be a reserved one."""
        self._skip_blanks()
        end = self.at
        while (
            end < len(self.text)
            and self.text[end] not in _METACHARACTERS
            and self.text[end] not in "\"'$`\\\r"
        ):
            end += 1
            if end - self.at > 200:
                return ""
        return self.text[self.at : end]

    def _takes(self, word: str) -> bool:
        if self._peek_word() == word:
            self.at += len(word)
            return True
        return False

    def _expect(self, word: str, of: str, line: int) -> None:
        self._skip_lines()
        if not self._takes(word):
            raise self._error(f"{word!r}, which ends the {of!r} of line {line}")

    # Commands

    def statement(self) -> CommandList | None:
        """Return the commands up to the end of a line, or None at the end of the script."""
        self._skip_lines()
        if self.at >= len(self.text):
            return None
        start, line = self.at, self.line
        items = []
        while True:
            items.append(self._and_or())
            self._skip_blanks()
            if self.text.startswith("\n", self.at):
                self._end_line()
                break
            if self.at >= len(self.text):
                break
            if self.text.startswith(";;", self.at) or not self._operator(";", "&"):
                raise self._error("the end of the command")
            self._skip_blanks()
            if self.at >= len(self.text):
                break
            if self.text.startswith("\n", self.at):
                self._end_line()
                break
        return CommandList(tuple(items), line, self.text[start : self.at].strip())

    def _sequence(self, *ends: str) -> CommandList:
        """Read commands up to a reserved word, a `)` or a `;;`, which stays."""
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise self._error(f"at most {NESTING_MAX} commands within each other", "more")
        start, line = self.at, self.line
        items: list[AndOr] = []
        while True:
            self._skip_lines()
            if self.at >= len(self.text) or self._peek_word() in ends:
                break
            if self.text[self.at] == ")" or self.text.startswith(";;", self.at):
                break
            items.append(self._and_or())
            self._skip_blanks()
            if self.text.startswith(";;", self.at) or self.text.startswith("\n", self.at):
                continue
            if not self._operator(";", "&"):
                break
        self._nesting -= 1
        return CommandList(tuple(items), line, self.text[start : self.at].strip())

    def _and_or(self) -> AndOr:
        first, rest = self._pipeline(), []
        while operator := self._operator("&&", "||"):
            self._skip_lines()
            rest.append((operator, self._pipeline()))
        return AndOr(first, tuple(rest))

    def _pipeline(self) -> PipedCommands:
        self._skip_blanks()
        start, line, negated = self.at, self.line, False
        while True:
            if self._takes("!"):
                negated = not negated
            elif not self._takes("time"):
                break
        commands = [self._command()]
        while True:
            self._skip_blanks()
            if self.text.startswith("||", self.at) or not self._operator("|&", "|"):
                break
            self._skip_lines()
            commands.append(self._command())
        return PipedCommands(tuple(commands), negated, line, self.text[start : self.at].strip())

    def _command(self) -> AnyCommand:
        self._nesting += 1
        if self._nesting > NESTING_MAX:
            raise self._error(f"at most {NESTING_MAX} commands within each other", "more")
        command = self._any_command()
        self._nesting -= 1
        if not isinstance(command, SimpleCommand | Definition):
            while redirection := self._redirection():
                command.redirections.append(redirection)
        return command

    def _any_command(self) -> AnyCommand:
        word, line = self._peek_word(), self.line
        if self.text.startswith("((", self.at) and (computation := self._computation(line)):
            return computation
        if self.text.startswith("(", self.at):
            self.at += 1
            body = self._sequence()
            self._close(")", "(", line)
            return Braces(line, body=body, subshell=True)
        if word == "{":
            self.at += 1
            body = self._sequence("}")
            self._expect("}", "{", line)
            return Braces(line, body=body)
        if word == "if":
            return self._conditional(line)
        if word in ("while", "until"):
            self.at += len(word)
            condition = self._sequence("do")
            body = self._body(word, line)
            return Loop(line, condition=condition, body=body, until=word == "until")
        if word in ("for", "select"):
            return self._for(word, line)
        if word == "case":
            return self._case(line)
        if word == "[[":
            return self._extended_test(line)
        if word == "function":
            self.at += len(word)
            self._skip_blanks()
            name = self._peek_word()
            self.at += len(name)
            if self._operator("("):
                self._close(")", "(", line)
            return self._definition(name, line)
        if word in _RESERVED and word != "in":
            raise self._error("a command")
        behind = self.at + len(word)
        if word and re.match(r"[ \t]*\([ \t]*\)", self.text[behind : behind + 40]):
            self.at = self.text.index(")", behind) + 1
            return self._definition(word, line)
        return self._simple(line)

    def _definition(self, name: str, line: int) -> Definition:
        if not re.fullmatch(r"[A-Za-z0-9_.:+-]+", name):
            raise self._error("the name of a function", name)
        self._skip_lines()
        return Definition(line, name=name, body=self._command())

    def _close(self, bracket: str, of: str, line: int) -> None:
        self._skip_lines()
        if not self._operator(bracket):
            raise self._error(f"{bracket!r}, which ends the {of!r} of line {line}")

    def _body(self, of: str, line: int) -> CommandList:
        self._expect("do", of, line)
        body = self._sequence("done")
        self._expect("done", of, line)
        return body

    def _conditional(self, line: int) -> Conditional:
        command = Conditional(line)
        self.at += 2
        while True:
            condition = self._sequence("then")
            self._expect("then", "if", line)
            command.cases.append((condition, self._sequence("elif", "else", "fi")))
            if not self._takes("elif"):
                break
        if self._takes("else"):
            command.otherwise = self._sequence("fi")
        self._expect("fi", "if", line)
        return command

    def _for(self, word: str, line: int) -> ForEach | Counting:
        self.at += len(word)
        self._skip_blanks()
        if self.text.startswith("((", self.at):
            end = self._matching(self.at, "((", "))")
            parts = self.text[self.at + 2 : end - 2].split(";")
            if len(parts) != 3:
                raise self._error("for ((FIRST; WHILE; NEXT))")
            self.at = end
            first, condition, following = (self._inner_word(part, line) for part in parts)
            self._operator(";")
            return Counting(
                line, first=first, condition=condition, following=following, body=self._for_body(word, line)
            )
        match = _NAME.match(self.text, self.at)
        if not match:
            raise self._error('a variable\'s name after "for"')
        self.at = match.end()
        self._skip_lines()
        words = None
        if self._takes("in"):
            words = []
            while (item := self._word()) is not None:
                words.append(item)
        self._operator(";")
        return ForEach(line, name=match[0], words=words, body=self._for_body(word, line))

    def _for_body(self, word: str, line: int) -> CommandList:
        self._skip_lines()
        if self._takes("{"):
            body = self._sequence("}")
            self._expect("}", word, line)
            return body
        return self._body(word, line)

    def _case(self, line: int) -> Choice:
        self.at += 4
        command = Choice(line, subject=self._word())
        if command.subject is None:
            raise self._error('a word after "case"')
        self._expect("in", "case", line)
        while True:
            self._skip_lines()
            if self._takes("esac"):
                return command
            self._operator("(")
            patterns = []
            while True:
                pattern = self._word()
                if pattern is None:
                    raise self._error('a pattern and ")", or "esac"')
                patterns.append(pattern)
                if not self._operator("|"):
                    break
            self._close(")", "case", line)
            command.cases.append((patterns, self._sequence("esac")))
            self._operator(";;&", ";&", ";;")

    def _extended_test(self, line: int) -> ExtendedTest:
        self.at += 2
        command, regular = ExtendedTest(line), False
        while True:
            self._skip_lines()
            if self._takes("]]"):
                return command
            if not regular and (operator := self._operator("&&", "||", "(", ")", "<", ">")):
                command.words.append(ShellWord((Text(operator, False),), self.line, operator))
                continue
            word = self._word("" if not regular else "()|<>;")
            if word is None:
                raise self._error(f'"]]", which ends the "[[" of line {line}')
            regular = word.text == "=~"
            command.words.append(word)

    def _computation(self, line: int) -> Computation | None:
        try:
            end = self._matching(self.at, "((", "))")
        except ShellSyntaxError:
            return None
        expression = self._inner_word(self.text[self.at + 2 : end - 2], line)
        self.at = end
        return Computation(line, expression=expression)

    def _simple(self, line: int) -> SimpleCommand:
        command = SimpleCommand(line)
        while True:
            if redirection := self._redirection():
                command.redirections.append(redirection)
                continue
            self._skip_blanks()
            match = _ASSIGNED.match(self.text, self.at)
            declares = command.words and command.words[0].plain in (
                "local",
                "export",
                "declare",
                "readonly",
                "typeset",
            )
            if match and (not command.words or (declares and self.text.startswith("(", match.end()))):
                self.at = match.end()
                command.assignments.append(Assignment(match[1], match[2], bool(match[3]), self._value()))
                continue
            word = self._word()
            if word is None:
                break
            command.words.append(word)
        if not (command.words or command.assignments or command.redirections):
            raise self._error("a command")
        return command

    def _value(self) -> ShellWord | tuple[ShellWord, ...]:
        if not self.text.startswith("(", self.at):
            line = self.line
            if (
                self.at < len(self.text)
                and self.text[self.at] not in _METACHARACTERS
                and self.text[self.at] != "\r"
            ):
                word = self._word()
                if word is not None:
                    return word
            return ShellWord((), line, "")
        line = self.line
        self.at += 1
        words: list[ShellWord] = []
        while True:
            self._skip_lines()
            if self._operator(")"):
                return tuple(words)
            word = self._word()
            if word is None:
                raise self._error(f'")", which ends the list of line {line}')
            words.append(word)

    def _redirection(self) -> Redirection | None:
        self._skip_blanks()
        match = _REDIRECTION.match(self.text, self.at)
        if not match:
            return None
        operator = match[2] or match[0]
        if match[2] in ("<", ">") and self.text.startswith("(", match.end()):
            return None  # `<(...)` is a word
        self.at = match.end()
        self._skip_blanks()
        if operator in ("<<", "<<-"):
            word = self._word()
            if word is None:
                raise self._error("the word that ends the here-document")
            delimiter = re.sub(r"[\"'\\]", "", word.text)
            redirection = Redirection(match[1] or "", "<<", ShellWord((), word.line, ""))
            self._documents.append((redirection, delimiter, operator == "<<-", delimiter == word.text))
            return redirection
        word = self._word()
        if word is None:
            raise self._error(f"a file after {operator!r}")
        return Redirection(match[1] or "", operator, word)

    # Expanded

    def _inner_word(self, text: str, line: int) -> ShellWord:
        """Return a text in which only `$` and backquotes mean something: arithmetic, `${...}`."""
        parts: list[WordPart] = []
        Parser(text, line, True, self._nesting + 1)._quoted_parts(parts, None)
        return ShellWord(tuple(parts), line, text)

    def _word(self, literal: str = "") -> ShellWord | None:
        """Read a word; None if an operator or the end of the line stands there."""
        self._skip_blanks()
        start, line = self.at, self.line
        parts: list[WordPart] = []
        text, plain = self.text, ""
        while self.at < len(text):
            character = text[self.at]
            if character in "<>" and text.startswith("(", self.at + 1) and not plain and not parts:
                parts.append(self._substitution(True))
                continue
            if (character in _METACHARACTERS and character not in literal) or character == "\r":
                if character == "\r" and not text.startswith("\n", self.at + 1):
                    plain += character
                    self.at += 1
                    continue
                if character == "(" and plain.endswith(("@", "?", "+", "*", "!")):
                    raise self._error("no extended pattern")
                break
            if character in "'\"$`\\":
                if plain:
                    parts.append(Text(plain, False))
                    plain = ""
                self._special(character, parts)
                continue
            plain += character
            self.at += 1
        if plain:
            parts.append(Text(plain, False))
        if self.at == start:
            return None
        return ShellWord(tuple(parts), line, text[start : self.at])

    def _special(self, character: str, parts: list[WordPart]) -> None:
        text = self.text
        if character == "\\":
            if text.startswith("\\\n", self.at):
                self.at += 2
            elif text.startswith("\\\r\n", self.at):
                self.at += 3
            else:
                parts.append(Text(text[self.at + 1 : self.at + 2], True))
                self.at += 2
        elif character == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                raise self._error("the quote's end", "'")
            parts.append(Text(text[self.at + 1 : end], True))
            self.at = end + 1
        elif character == '"':
            begin = self._error("the quote's end", '"')
            self.at += 1
            parts.append(Text("", True))
            self._quoted_parts(parts, '"')
            if not text.startswith('"', self.at):
                raise begin
            self.at += 1
        elif text.startswith("$'", self.at):
            end = self.at + 2
            while end < len(text) and text[end] != "'":
                end += 2 if text[end] == "\\" else 1
            escapes = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
            inside = text[self.at + 2 : end]
            parts.append(Text(re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[0]), inside), True))
            self.at = end + 1
        elif text.startswith('$"', self.at):
            self.at += 1
        else:
            parts.append(self._expansion(False) or Text("$", True))

    def _quoted_parts(self, parts: list[WordPart], end: str | None) -> None:
        """Read text within double quotes, of a here-document or of arithmetic, up to `end`."""
        if self._nesting > NESTING_MAX:
            raise self._error(f"at most {NESTING_MAX} expansions within each other", "more")
        text, plain = self.text, []
        while self.at < len(text) and text[self.at] != end:
            character = text[self.at]
            if character == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following == "\n":
                    pass
                elif following in ("$", "`", "\\") or (following == '"' and end == '"'):
                    plain.append(following)
                else:
                    plain.append(character + following)
                self.at += 2
                continue
            if character in "$`":
                expansion = self._expansion(True)
                if expansion is not None:
                    if plain:
                        parts.append(Text("".join(plain), True))
                        plain = []
                    parts.append(expansion)
                    continue
                plain.append("$")
                continue
            plain.append(character)
            self.at += 1
        if plain:
            parts.append(Text("".join(plain), True))

    def _expansion(self, quoted: bool) -> WordPart | None:
        """Read what a `$` or a backquote begins; None for a `$` that is one."""
        text, start, line = self.text, self.at, self.line
        if text[start] == "`":
            end = start + 1
            while end < len(text) and text[end] != "`":
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise self._error("the other backquote", "`")
            inside = re.sub(r"\\([$`\\])", r"\1", text[start + 1 : end])
            self.at = end + 1
            return Substitution(self._script(inside, line), quoted, f"$({inside.strip()})")
        if text.startswith("$((", start):
            try:
                end = self._matching(start + 1, "((", "))")
            except ShellSyntaxError:
                end = 0
            if end:
                self.at = end
                inside = text[start + 3 : end - 2]
                return Arithmetic(self._inner_word(inside, line), quoted, text[start:end])
        if text.startswith("$[", start):
            end = self._matching(start + 1, "[", "]")
            self.at = end
            return Arithmetic(self._inner_word(text[start + 2 : end - 1], line), quoted, text[start:end])
        if text.startswith("$(", start):
            return self._substitution(quoted)
        if text.startswith("${", start):
            end = self._matching(start + 1, "{", "}")
            self.at = end
            return self._braced(text[start + 2 : end - 1], quoted, text[start:end], line)
        match = _PARAMETER.match(text, start + 1)
        self.at += 1
        if not match:
            return None
        name = match[0][0] if match[0].isdigit() else match[0]
        self.at += len(name)
        return Parameter(name, quoted, f"${name}")

    def _substitution(self, quoted: bool) -> Substitution:
        """Read `$(...)`, or `<(...)`, whose commands end where the grammar ends them."""
        start, line = self.at, self.line
        documents, self._documents = self._documents, []
        self.at += 2
        body = self._sequence()
        self._close(")", "$(", line)
        self._documents = documents
        return Substitution(body, quoted, self.text[start : self.at])

    def _braced(self, inside: str, quoted: bool, text: str, line: int) -> Parameter:
        length = inside.startswith("#") and len(inside) > 1 and inside[1] not in ":-=+?}%/"
        indirect = inside.startswith("!") and len(inside) > 1
        rest = inside[1:] if length or indirect else inside
        match = _PARAMETER.match(rest)
        if not match:
            raise ShellSyntaxError(line, text, "a variable in the braces")
        rest, index = rest[match.end() :], None
        if rest.startswith("["):
            index, bracket, rest = rest[1:].partition("]")
            if not bracket:
                raise ShellSyntaxError(line, text, '"]" behind the index')
        operator = next((sign for sign in _OPERATORS if rest.startswith(sign)), "")
        if rest and not operator:
            raise ShellSyntaxError(line, text, "a form of ${NAME} that is known here, such as ${NAME:-VALUE}")
        operand = None
        if operator:
            inner = Parser(rest[len(operator) :], line, True, self._nesting + 1)
            operand = inner._operand(quoted and operator not in ("#", "##", "%", "%%", "/", "//"))
        return Parameter(match[0], quoted, text, index, operator, operand, length, indirect)

    def _operand(self, quoted: bool) -> ShellWord:
        """Return the whole text as a word, blanks and all."""
        parts: list[WordPart] = []
        if self._nesting > NESTING_MAX:
            raise self._error(f"at most {NESTING_MAX} expansions within each other", "more")
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "$" and self.text.startswith(("$'", '$"'), self.at):
                parts.append(Text(character, quoted))
                self.at += 1
            elif quoted and character == "'":
                parts.append(Text(character, True))
                self.at += 1
            elif quoted and character in "$`":
                parts.append(self._expansion(True) or Text("$", True))
            elif character in "'\"$`\\":
                self._special(character, parts)
            else:
                end = self.at
                while end < len(self.text) and self.text[end] not in "'\"$`\\":
                    end += 1
                parts.append(Text(self.text[self.at : end], quoted))
                self.at = end
        return ShellWord(tuple(parts), self.line, self.text)

    def _script(self, text: str, line: int) -> CommandList:
        """Return the commands within `$(...)`."""
        if self._nesting >= NESTING_MAX:
            raise self._error(f"at most {NESTING_MAX} expansions within each other", "more")
        inner = Parser(text, line, self._same_line, self._nesting + 1)
        body = inner._sequence()
        inner._skip_lines()
        if inner.at < len(text):
            raise inner._error("the end of the command")
        return body

    def _matching(self, start: int, opening: str, closing: str) -> int:
        """Return the place behind the bracket that closes the one at `start`; quotes are skipped."""
        text, at = self.text, start + len(opening)
        bracket, end = opening[-1], closing[-1]
        depth = len(opening)
        while at < len(text):
            character = text[at]
            if character == "\\":
                at += 2
                continue
            if character == "'" and bracket != "[" and closing != "))":
                quoted_end = text.find("'", at + 1)
                if quoted_end < 0:
                    break
                at = quoted_end
            elif character == '"' and closing != "))":
                at += 1
                while at < len(text) and text[at] != '"':
                    at += 2 if text[at] == "\\" else 1
            elif character == "#" and end == ")" and text[at - 1] in " \t\n;" and closing != "))":
                line_end = text.find("\n", at)
                at = len(text) if line_end < 0 else line_end
                continue
            elif character == bracket:
                depth += 1
            elif character == end:
                depth -= 1
                if depth == 1 and closing == "))" and not text.startswith(")", at + 1):
                    break
                if depth == 0:
                    return at + 1
            at += 1
        line = self.line
        raise ShellSyntaxError(
            line, text[start : start + 40].split("\n", 1)[0], f"{closing!r}, which ends {opening!r}"
        )
