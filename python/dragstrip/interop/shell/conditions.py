"""`test`, `[` and `[[`, with a third answer for what nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from dragstrip.interop.shell import arithmetic, patterns
from dragstrip.interop.shell.values import GAPS

if TYPE_CHECKING:
    from dragstrip.interop.shell.expansion import Expander
    from dragstrip.interop.shell.syntax import ShellWord

Answer: TypeAlias = bool | None
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_TEXTS = ("=", "==", "!=", "<", ">", "\\<", "\\>", "=~", "-nt", "-ot", "-ef", *_NUMBERS)
_FILES = frozenset(
    [
        "-a",
        "-b",
        "-c",
        "-d",
        "-e",
        "-f",
        "-g",
        "-h",
        "-k",
        "-L",
        "-N",
        "-O",
        "-G",
        "-p",
        "-r",
        "-s",
        "-S",
        "-u",
        "-w",
        "-x",
    ]
)
_UNARY = _FILES | {"-n", "-z", "-t", "-v", "-o"}
DEPTH_MAX = 50


class MalformedTestError(Exception):
    """No condition; a shell's answer is an error, which is not true."""


class Condition:
    """A condition's words, already expanded or (of `[[`) not yet."""

    def __init__(self, shell: Expander, words: Sequence[str | ShellWord], extended: bool) -> None:
        self._shell, self._words, self._extended = shell, words, extended
        self._at = self._depth = 0

    def answer(self) -> Answer:
        """Return whether it holds; None: nobody knows."""
        if not self._words:
            return False
        answer = self._or()
        if self._at < len(self._words):
            raise MalformedTestError
        return answer

    def _raw(self, offset: int = 0) -> str:
        at = self._at + offset
        if at >= len(self._words):
            return ""
        word = self._words[at]
        if isinstance(word, str):
            return word
        return word.plain or ""

    def _left(self) -> int:
        return len(self._words) - self._at

    def _next(self) -> str:
        if self._at >= len(self._words):
            raise MalformedTestError
        word = self._words[self._at]
        self._at += 1
        return self._shell.settled(word if isinstance(word, str) else self._shell.text(word))

    def _next_pattern(self) -> str:
        if self._at >= len(self._words):
            raise MalformedTestError
        word = self._words[self._at]
        self._at += 1
        if isinstance(word, str):
            return patterns.escaped(self._shell.settled(word))
        return self._shell.settled(self._shell.pattern(word))

    def _or(self) -> Answer:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise MalformedTestError
        answer = self._and()
        while self._left() and self._raw() == ("||" if self._extended else "-o"):
            self._at += 1
            answer = either(answer, self._and())
        self._depth -= 1
        return answer

    def _and(self) -> Answer:
        answer = self._not()
        while self._left() and self._raw() == ("&&" if self._extended else "-a"):
            self._at += 1
            answer = both(answer, self._not())
        return answer

    def _not(self) -> Answer:
        negated = False
        while self._raw() == "!" and self._left() > 1 and not (self._left() >= 3 and self._raw(1) in _TEXTS):
            self._at += 1
            negated = not negated
        answer = self._primary()
        return opposite(answer) if negated else answer

    def _primary(self) -> Answer:
        if not self._left():
            raise MalformedTestError
        if self._left() >= 3 and self._raw(1) in _TEXTS:
            return self._comparison()
        if self._raw() == "(" and self._left() > 1:
            self._at += 1
            answer = self._or()
            if self._raw() != ")":
                raise MalformedTestError
            self._at += 1
            return answer
        if self._raw() in _UNARY and self._left() > 1:
            operator = self._raw()
            self._at += 1
            return self._unary(operator, self._next())
        return not_empty(self._next())

    def _unary(self, operator: str, operand: str) -> Answer:
        match operator:
            case "-n":
                return not_empty(operand)
            case "-z":
                return opposite(not_empty(operand))
            case "-t":
                return False
            case "-v":
                return operand in self._shell.state.variables
            case "-o":
                return None
        if not operand:
            return False
        if operand in self._shell.state.files and operator in ("-e", "-f", "-r", "-w", "-s", "-a"):
            return operator != "-s" or bool(self._shell.state.files[operand])
        if operand in ("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"):
            return operator in ("-e", "-r", "-w", "-c", "-a")
        return None

    def _comparison(self) -> Answer:
        left = self._next()
        operator = self._raw()
        self._at += 1
        if operator in _NUMBERS:
            return self._numbers(operator, left, self._next())
        if operator == "=~":
            return self._regular(left, self._next())
        if self._extended and operator in ("=", "==", "!="):
            pattern = self._next_pattern()
            if GAPS.search(left + pattern):
                return None
            self._shell.charge(patterns.cost(pattern, left))
            return patterns.matches(pattern, left) == (operator != "!=")
        right = self._next()
        if GAPS.search(left + right):
            return None if left != right or operator not in ("=", "==", "!=") else operator != "!="
        if operator in ("-nt", "-ot", "-ef"):
            return None
        if operator.endswith(("<", ">")):
            return left < right if operator.endswith("<") else left > right
        return (left == right) == (operator != "!=")

    def _numbers(self, operator: str, left: str, right: str) -> Answer:
        if self._extended:
            left, right = (self._shell.computed(text or "0") for text in (left, right))
        if GAPS.search(left + right):
            return None
        first, second = arithmetic.integer(left), arithmetic.integer(right)
        if first is None or second is None:
            raise MalformedTestError
        return _NUMBERS[operator](first, second)

    def _regular(self, text: str, expression: str) -> Answer:
        if GAPS.search(text + expression) or len(text) > 1_000:
            return None
        compiled = patterns.regular(expression, True)
        return None if compiled is None else compiled.search(text) is not None


def not_empty(text: str) -> Answer:
    """Return whether a text has characters; a gap may stand for none."""
    return True if GAPS.sub("", text) else (None if text else False)


def opposite(answer: Answer) -> Answer:
    """Return the opposite of an answer."""
    return None if answer is None else not answer


def both(first: Answer, second: Answer) -> Answer:
    """Return whether both hold."""
    if first is False or second is False:
        return False
    return None if first is None or second is None else True


def either(first: Answer, second: Answer) -> Answer:
    """Return whether one of two holds."""
    return opposite(both(opposite(first), opposite(second)))
