"""The run of a script in which no program is started and no file is touched.

Commands of other programs are recorded. Where the way depends on what nobody knows (a file, what a program
prints), all ways are followed; they must set up the same queues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from dragstrip.interop.shell import patterns, programs
from dragstrip.interop.shell.builtins import BUILTINS, SHELLS
from dragstrip.interop.shell.conditions import Answer, Condition, MalformedTestError
from dragstrip.interop.shell.recording import FILE_MAX, Recorder, lists
from dragstrip.interop.shell.syntax import (
    AndOr,
    AnyCommand,
    Assignment,
    Braces,
    Choice,
    CommandList,
    Computation,
    Conditional,
    Counting,
    Definition,
    ExtendedTest,
    ForEach,
    Loop,
    Parser,
    PipedCommands,
    Redirection,
    ShellWord,
    SimpleCommand,
    Text,
)
from dragstrip.interop.shell.values import (
    GAPS,
    UNKNOWN,
    Expanded,
    Gap,
    LeavingError,
    LimitError,
    Position,
    RefusalError,
    VariableValue,
)
from dragstrip.interop.shell.ways import CallFrame

CALLS_MAX = 40
"""Functions, substitutions and sourced files within each other, at most."""
_PREFIXES = frozenset(
    ["sudo", "doas", "nohup", "busybox", "env", "nice", "exec", "command", "builtin", "chroot", "time"]
)
_DECLARING = frozenset(["local", "export", "declare", "typeset", "readonly"])
_DISCARDED = frozenset(("/dev/null", "/dev/stderr", "/dev/tty", "/dev/kmsg"))


class Interpreter(Recorder):
    """A shell whose commands are followed and not run."""

    def __init__(
        self,
        given: dict[str, str],
        arguments: Sequence[str],
        files: Callable[[str], tuple[str, str] | None],
    ) -> None:
        super().__init__(files)
        self.given = given
        self.locals: list[dict[str, VariableValue | None]] = []
        self.calls = 0
        start = Position(None, 0)
        self.state.arguments = [Expanded(text, start) for text in arguments]
        names = (name for name in given if re.fullmatch(r"[A-Za-z_]\w*", name))
        self.state.variables.update({name: given[name] for name in names})

    def run(self, text: str) -> None:
        """Follow a script to its end; raises `RefusalError` and `ShellSyntaxError`."""
        with suppress(LeavingError):
            self.run_lines(Parser(text))
        for _, length, gap in self.frames[0].pending:
            if any(command.counts for command in self.emitted[length:]):
                self._assume(gap)

    def run_lines(self, parser: Parser) -> None:
        """Run a parser's commands, line after line."""
        while (sequence := parser.statement()) is not None:
            self.sequence(sequence)

    def sequence(self, sequence: CommandList | None) -> None:
        """Run commands one after the other."""
        for item in sequence.items if sequence else ():
            self._and_or(item)

    def _and_or(self, item: AndOr) -> None:
        if not item.rest:
            self._piped(item.first)
            if self.state.stops_at_errors and self.state.status and not self.tests and not item.first.negated:
                raise LeavingError("exit")
            return
        self.tests += 1
        try:
            self._piped(item.first)
        finally:
            self.tests -= 1
        self._following(item.rest)

    def _following(self, rest: tuple[tuple[str, PipedCommands], ...], at: int = 0) -> None:
        """Run what stands behind `&&` and `||`."""
        if at == len(rest):
            return
        operator, piped = rest[at]
        status = 0 if operator == "&&" else 1

        def run() -> None:
            self.state.status = status
            is_answer = at < len(rest) - 1
            self.tests += is_answer
            try:
                self._piped(piped)
            finally:
                self.tests -= is_answer
            self._following(rest, at + 1)

        def skip() -> None:
            self.state.status = 1 - status
            self._following(rest, at + 1)

        if self.state.status is None:
            run_label, skip_label = ("true", "false") if operator == "&&" else ("false", "true")
            self.branch(self.cause(), [(run_label, run), (skip_label, skip)])
        elif (self.state.status == 0) == (status == 0):
            run()
        else:
            self._following(rest, at + 1)

    def _piped(self, piped: PipedCommands) -> None:
        self.charge()
        if len(piped.commands) == 1:
            self._command(piped.commands[0])
        else:
            self._pipeline(piped)
        if piped.negated and self.state.status is not None:
            self.state.status = int(not self.state.status)
        elif piped.negated:
            self.state.cause = self._cause_of(piped)
        if self.state.status is None and (answer := self.answer_for(piped.text)) is not None:
            self.end(int(answer == "false"))

    def _cause_of(self, piped: PipedCommands) -> Gap:
        text = self.key_of(piped.text)
        return Gap(UNKNOWN, text, Position(self.source, piped.line), text)

    def _pipeline(self, piped: PipedCommands) -> None:
        text: str | None = None
        for at, command in enumerate(piped.commands):
            last = at == len(piped.commands) - 1

            def run(command: AnyCommand = command, first: bool = at == 0, text: str | None = text) -> None:
                if not first:
                    self.state.input, self.state.input_line = text, None
                self._command(command)

            if last:
                self.subshell(run)
            else:
                text = self._captured(run)
        if self.state.status is None:
            self.state.cause = self._cause_of(piped)

    def subshell(self, run: Callable[[], None]) -> None:
        """Run in a shell whose variables end with it; what it prints and does stays."""
        outer = self.state
        self.state = outer.copy()
        self.frames.append(CallFrame(("exit", "return")))
        tests, self.tests = self.tests, self.tests
        try:
            try:
                run()
            except LeavingError as leaving:
                if leaving.kind in ("break", "continue"):
                    pass
            self.settle(self.frames[-1])
            inner = self.state
            outer.output, outer.files = inner.output, inner.files
            outer.status, outer.cause = inner.status, inner.cause
        finally:
            self.frames.pop()
            self.tests = tests
            self.state = outer

    def _captured(self, run: Callable[[], None]) -> str:
        """Return what a subshell prints."""
        self.enter()
        outer = self.state.output
        self.state.output = ""
        self.captures += 1
        try:
            self.subshell(run)
            return self.state.output
        finally:
            self.captures -= 1
            self.calls -= 1
            self.state.output = outer

    def enter(self) -> None:
        """Count a call; raises `LimitError` for one too many."""
        self.calls += 1
        if self.calls > CALLS_MAX:
            self.calls -= 1
            raise LimitError(self.position, "more", f"at most {CALLS_MAX} calls within each other")

    def substituted(self, body: CommandList, text: str) -> str:
        """Return what commands print, without the ends of the last lines."""
        status = self.state.status, self.state.cause
        key = self.key_of(text[2:-1])
        if (given := self.given.get(key)) is not None:
            self.used.add(key)
            return given
        output = self._captured(lambda: self.sequence(body)).rstrip("\n")
        if not body.items:
            self.state.status, self.state.cause = status
        gap = self.gap_of(output)
        if gap and len(output) == 1 and not gap.text.startswith(("$", "[")):
            return self.gap(UNKNOWN, text, gap.key)
        return output

    def _command(self, command: AnyCommand) -> None:
        self.charge()
        self.position = Position(self.source, command.line)
        if self.source is None:
            self.main_line = command.line
        if isinstance(command, SimpleCommand):
            self._simple(command)
            return
        self._redirected(command.redirections, lambda: self._compound(command))

    def _compound(self, command: AnyCommand) -> None:
        match command:
            case Conditional():
                self._conditional(command, 0)
            case Loop():
                self._while(command)
            case ForEach():
                self._for(command)
            case Counting():
                self._counting(command)
            case Choice():
                assert command.subject is not None
                self._case(command, self.settled(self.text(command.subject)), 0)
            case Definition():
                assert command.body is not None
                self.state.functions[command.name] = (command.body, self.source)
                self.end(0)
            case Braces(body=body, subshell=True):
                self.enter()
                try:
                    self.subshell(lambda: self.sequence(body))
                finally:
                    self.calls -= 1
            case Braces(body=body):
                self.sequence(body)
            case ExtendedTest():
                self.test(command.words, "[[ " + " ".join(word.text for word in command.words) + " ]]", True)
            case Computation():
                assert command.expression is not None
                value = self.computed(self.text(command.expression))
                gap = self.gap_of(value)
                self.end(None if gap else int(value == "0"), gap)

    def _condition(self, sequence: CommandList | None) -> None:
        self.tests += 1
        try:
            self.sequence(sequence)
        finally:
            self.tests -= 1

    def _conditional(self, command: Conditional, at: int) -> None:
        if at == len(command.cases):
            if command.otherwise is None:
                self.end(0)
            self.sequence(command.otherwise)
            return
        condition, body = command.cases[at]
        self._condition(condition)
        if self.state.status is None:
            ways = [
                ("true", lambda: self.sequence(body)),
                ("false", lambda: self._conditional(command, at + 1)),
            ]
            self.branch(self.cause(), ways)
        elif self.state.status == 0:
            self.sequence(body)
        else:
            self._conditional(command, at + 1)

    def _case(self, command: Choice, subject: str, at: int) -> None:
        if at == len(command.cases):
            self.end(0)
            return
        words, body = command.cases[at]
        known: Answer = False
        for word in words:
            pattern = self.settled(self.pattern(word))
            self.charge(patterns.cost(pattern, subject))
            if GAPS.search(subject + pattern):
                known = True if pattern == "*" else None if known is False else known
            elif patterns.matches(pattern, subject):
                known = True
        if known:
            if not body.items:
                self.end(0)
            self.sequence(body)
        elif known is None:
            ways = [
                (words[0].text, lambda: self.sequence(body)),
                ("another", lambda: self._case(command, subject, at + 1)),
            ]
            self.branch(self.gap_of(subject) or self.cause(), ways)
        else:
            self._case(command, subject, at + 1)

    def _iteration(self, run: Callable[[], None]) -> bool:
        """Run a loop's body once; the answer is whether the loop goes on."""
        self.frames.append(CallFrame(("continue",)))
        try:
            try:
                run()
            except LeavingError as leaving:
                if leaving.kind not in ("break", "continue"):
                    raise
                if leaving.levels > 1:
                    raise LeavingError(leaving.kind, leaving.levels - 1) from None
                return leaving.kind == "continue"
            return True
        except RefusalError:
            self.frames[-1].pending.clear()
            raise
        finally:
            self.settle(self.frames.pop())

    def _looped(self, run: Callable[[], None]) -> None:
        self.frames.append(CallFrame(("break",)))
        try:
            run()
        except RefusalError:
            self.frames[-1].pending.clear()
            raise
        finally:
            self.settle(self.frames.pop())

    def _while(self, command: Loop) -> None:
        def run() -> None:
            while True:
                self.charge()
                self._condition(command.condition)
                if self.state.status is None:
                    entered = "false" if command.until else "true"
                    ways: list[tuple[str, Callable[[], None]]] = [
                        ("true" if command.until else "false", lambda: self.end(0)),
                        (entered, lambda: self._once(command.body)),
                    ]
                    self.branch(self.cause(), ways)
                    return
                if (self.state.status == 0) == command.until:
                    self.end(0)
                    return
                if not self._iteration(lambda: self.sequence(command.body)):
                    return

        self._looped(run)

    def _once(self, body: CommandList | None) -> None:
        self._iteration(lambda: self.sequence(body))
        self.end(0)

    def _for(self, command: ForEach) -> None:
        items = list(self.state.arguments) if command.words is None else self.fields(command.words)
        self.end(0)

        def run() -> None:
            for item in items:
                self.charge()
                text = item.text
                if item.loose:
                    gap = self.gap_of(text) or self.cause()
                    text = self.gap(UNKNOWN, gap.text, command.name)
                    if command.name in self.given:
                        self.used.add(command.name)
                        text = self.given[command.name]
                self.assign(command.name, text)
                if item.loose and GAPS.search(text):
                    cause = self.gap_of(text) or self.cause()
                    self.branch(cause, [("none", lambda: None), ("one", lambda: self._once(command.body))])
                elif not self._iteration(lambda: self.sequence(command.body)):
                    return

        self._looped(run)

    def _counting(self, command: Counting) -> None:
        assert command.first is not None
        assert command.condition is not None
        assert command.following is not None
        first, condition, following = command.first, command.condition, command.following
        self.computed(self.text(first))

        def run() -> None:
            while True:
                self.charge()
                value = self.computed(self.text(condition)) if condition.text.strip() else "1"
                if gap := self.gap_of(value):
                    self.branch(gap, [("false", lambda: None), ("true", lambda: self._once(command.body))])
                    return
                if value == "0" or not self._iteration(lambda: self.sequence(command.body)):
                    return
                self.computed(self.text(following))

        self._looped(run)
        self.end(0)

    def _redirected(self, redirections: list[Redirection], run: Callable[[], None]) -> None:
        if not redirections:
            run()
            return
        state = self.state
        before = state.input, state.input_line
        outputs: list[tuple[str, bool]] = []
        for redirection in redirections:
            self._redirect(redirection, outputs)
        if not outputs:
            try:
                run()
            finally:
                self.state.input, self.state.input_line = before
            return
        outer, self.state.output = self.state.output, ""
        self.captures += 1
        try:
            run()
        finally:
            self.captures -= 1
            text, self.state.output = self.state.output, outer
            self.state.input, self.state.input_line = before
            path, adds = outputs[-1]
            if path and path not in _DISCARDED and not GAPS.search(path):
                content = (self.state.files.get(path, "") if adds else "") + text
                if len(content) > FILE_MAX:
                    raise LimitError(self.position, path, f"a file of at most {FILE_MAX} characters")
                self.charge(1 + len(content) // 1_000)
                self.state.files[path] = content

    def _redirect(self, redirection: Redirection, outputs: list[tuple[str, bool]]) -> None:
        operator, target = redirection.operator, redirection.target
        if operator in ("<<", "<<<"):
            self.state.input = self.text(target) + ("\n" if operator == "<<<" else "")
            self.state.input_line = target.line if operator == "<<" else None
        elif operator == "<":
            path = self.settled(self.text(target))
            self.state.input, self.state.input_line = self.read_file(path, target.text), None
        elif operator in (">", ">>", ">|", "&>", "&>>") and redirection.descriptor in ("", "1"):
            outputs.append((self.settled(self.text(target)), operator in (">>", "&>>")))
        elif operator == ">&" and redirection.descriptor in ("", "1"):
            outputs.append(("/dev/stderr", True))

    def _simple(self, command: SimpleCommand) -> None:
        first = command.words[0].plain if command.words else ""
        declares = first in _DECLARING
        if not command.words or declares:
            self.end(0)
            self._redirected(command.redirections, lambda: self._assignments(command, first or ""))
            return
        fields = self.fields(command.words)
        vanished = list(self.vanished)
        if not fields:
            for assignment in command.assignments:
                self._assigned(assignment)
            self.end(0)
            return
        self._check_vanished(fields, vanished)
        if not command.assignments:
            self._redirected(command.redirections, lambda: self.perform(fields))
            return
        before = {
            assignment.name: self.state.variables.get(assignment.name) for assignment in command.assignments
        }
        for assignment in command.assignments:
            self._assigned(assignment)
        try:
            self._redirected(command.redirections, lambda: self.perform(fields))
        finally:
            for name, value in before.items():
                self._restore(name, value)

    def _restore(self, name: str, value: VariableValue | None) -> None:
        if value is None:
            self.state.variables.pop(name, None)
        else:
            self.state.variables[name] = value

    def _check_vanished(self, fields: list[Expanded], vanished: list[Gap]) -> None:
        """Refuse a command of tc whose words an unset variable takes away."""
        texts = [self.settled(field.text) for field in fields[:8]]
        if vanished and any(text in ("qdisc", "class", "filter") for text in texts) and not lists(texts):
            gap = vanished[0]
            self.refuse(gap)

    def _assignments(self, command: SimpleCommand, first: str) -> None:
        if not first:
            for assignment in command.assignments:
                self._assigned(assignment)
            return
        options = ""
        for word in command.words[1:]:
            text = word.plain or ""
            if text.startswith("-"):
                options += text
                continue
            match = re.match(r"([A-Za-z_]\w*)(\+?)(?:=|$)", word.text)
            if not match:
                for item in self.fields([word]):
                    name, equals, value = item.text.partition("=")
                    if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                        self._declare(first, name)
                        self.set_variable(name, value, False)
                continue
            self._declare(first, match[1])
            if "A" in options:
                self.state.variables[f"{match[1]}[]"] = ""
            if "=" in word.text[: match.end()]:
                value = self.text(_behind(word, match.end()))
                adds = bool(match[2])
                self.set_variable(
                    match[1], value, not adds and _constant(_behind(word, match.end())), adds=adds
                )
            elif first in ("local", "declare", "typeset") and self.locals:
                self.state.variables.pop(match[1], None)
                if options.count("a") or options.count("A"):
                    self.state.variables[match[1]] = {}
        for assignment in command.assignments:
            self._declare(first, assignment.name)
            self._assigned(assignment)

    def _declare(self, first: str, name: str) -> None:
        if first in ("local", "declare", "typeset") and self.locals:
            self.locals[-1].setdefault(name, self.state.variables.get(name))

    def _assigned(self, assignment: Assignment) -> None:
        value = assignment.value
        if isinstance(value, tuple):
            items: dict[str, str] = {}
            plain: list[ShellWord] = []
            for word in value:
                match = re.match(r"\[([^\]]+)\]=", word.text)
                if match:
                    items[match[1].strip("\"'")] = self.text(_behind(word, match.end()))
                else:
                    plain.append(word)
            for at, field in enumerate(self.fields(plain)):
                items[str(at)] = field.text
            self.assign(assignment.name, items, None, assignment.adds)
            self.end(0)
            return
        self.state.status = 0
        text = self.text(value)
        constant = _constant(value) and assignment.index is None and not assignment.adds
        self.set_variable(assignment.name, text, constant, assignment.index, assignment.adds)

    def set_variable(
        self, name: str, text: str, constant: bool, index: str | None = None, adds: bool = False
    ) -> None:
        """Set a variable, unless a given value stands in the place of this one."""
        answer = self.given.get(name)
        gap = self.gap_of(text)
        if answer is not None and index is None and (constant or gap) and not (adds and not gap):
            self.used.add(name)
            self.assign(name, answer)
            return
        if gap and index is None and len(text) == 1 and not re.fullmatch(r"[A-Za-z_]\w*", gap.key):
            # The variable is the shortest name for it.
            position, self.position = self.position, gap.position
            text = self.gap(UNKNOWN, gap.text, name, gap.root)
            self.position = position
        self.assign(name, text, index, adds)

    def perform(self, fields: list[Expanded]) -> None:
        """Run a function, a command of the shell or another program."""
        name = self.settled(fields[0].text)
        if name in self.state.functions:
            self.call(name, fields[1:])
            return
        if name in ("sudo", "doas") and len(fields) > 1 and fields[1].text in SHELLS:
            self.perform(fields[1:])
            return
        if (
            name in _PREFIXES
            and len(fields) > 1
            and (name not in ("sudo", "doas", "env", "nice", "chroot", "time"))
        ):
            if name == "command" and fields[1].text in ("-v", "-V"):
                self.find_program(fields[2:])
                return
            inner = fields[1:]
            if inner[0].text in self.state.functions and name in ("command", "exec"):
                self.external(inner)
                return
            self.perform(inner)
            return
        words = [self.settled(field.text) for field in fields]
        builtin = BUILTINS.get(name)
        if builtin is not None:
            if name not in ("exit", "return"):
                self.end(0)
            builtin(self, fields)
            return
        if name in programs.TEXT_PROGRAMS and self._text_program(name, words):
            return
        self.external(fields)

    def call(self, name: str, arguments: list[Expanded]) -> None:
        """Run a function."""
        function = self.state.functions[name]
        if isinstance(function, Gap):
            self.refuse(function)
            return
        body, source = function
        self.enter()
        outer_arguments, outer_source, outer_position = self.state.arguments, self.source, self.position
        loose = ""
        passed = []
        for argument in arguments:
            passed.append(argument._replace(text=argument.text + loose, loose=False) if loose else argument)
            if argument.loose and (gap := GAPS.search(argument.text)):
                loose = gap[0]
        self.state.arguments, self.source = passed, source
        self.locals.append({})
        self.frames.append(CallFrame(("return",)))
        try:
            try:
                self._command(body)
            except LeavingError as leaving:
                if leaving.kind != "return":
                    raise
            self.settle(self.frames[-1])
        finally:
            self.frames.pop()
            for variable, value in self.locals.pop().items():
                self._restore(variable, value)
            self.state.arguments, self.source = outer_arguments, outer_source
            self.position = outer_position
            self.calls -= 1

    def test(self, words: Sequence[str | ShellWord], shown: str, extended: bool) -> None:
        """Set the status to the answer of a condition."""
        shown = self.key_of(self.shown(shown))
        given = self.answer_for(shown)
        if given is not None:
            self.end(int(given == "false"))
            return
        try:
            answer = Condition(self, words, extended).answer()
        except MalformedTestError:
            self.end(2)
            return
        if answer is None:
            texts = (word if isinstance(word, str) else self.text(word) for word in words)
            gaps = (gap for text in texts if (gap := self.gap_of(text)))
            gap = next((gap for gap in gaps if re.fullmatch(r"[A-Za-z_]\w*", gap.key)), None)
            key, root = (gap.key, gap.origin) if gap else (shown, "")
            self.end(None, Gap(UNKNOWN, shown, self.position, key, root))
        else:
            self.end(int(not answer))


def _constant(word: ShellWord) -> bool:
    return not any(
        hasattr(part, "operator") or hasattr(part, "body") or hasattr(part, "expression")
        for part in word.parts
    )


def _behind(word: ShellWord, length: int) -> ShellWord:
    """Return the part of a word behind its first characters, which are plain."""
    parts = list(word.parts)
    while parts and length:
        first = parts[0]
        if not isinstance(first, Text) or first.quoted:
            break
        value = first.text[:length]
        length -= len(value)
        rest = first.text[len(value) :]
        parts = [Text(rest, False), *parts[1:]] if rest else parts[1:]
    return ShellWord(tuple(parts), word.line, word.text)
