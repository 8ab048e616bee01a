"""Arithmetic of a shell: 64-bit integers with C's operators (POSIX, 2.6.4)."""

from __future__ import annotations

import re
from collections.abc import Callable

DEPTH_MAX = 50
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+#[0-9A-Za-z]+|0[xX][0-9a-fA-F]+|\d+)|(?P<name>[A-Za-z_]\w*(?:\[[^\]]*\])?)"
    r"|(?P<sign><<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_ASSIGNING = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")


class MalformedExpressionError(Exception):
    """No number: the text and what is wrong with it."""


class Calculator:
    """An expression; variables are read and set by functions."""

    def __init__(self, text: str, read: Callable[[str], int], assign: Callable[[str, int], None]) -> None:
        self._text, self._read, self._assign = text, read, assign
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if not match or match.end() == at:
                raise MalformedExpressionError(self._text)
            self._tokens.append((str(match.lastgroup), str(match[str(match.lastgroup)])))
            at = match.end()
        self._at = 0
        self._depth = 0
        self._runs = True

    def value(self) -> int:
        """Return the number; of several expressions, the last one's."""
        if not self._tokens:
            return 0
        result = self._comma()
        if self._at < len(self._tokens):
            raise MalformedExpressionError(self._text)
        return result

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("end", "")

    def _takes(self, *signs: str) -> str:
        kind, text = self._peek()
        if kind == "sign" and text in signs:
            self._at += 1
            return text
        return ""

    def _comma(self) -> int:
        result = self._assignment()
        while self._takes(","):
            result = self._assignment()
        return result

    def _assignment(self) -> int:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise MalformedExpressionError(self._text)
        kind, name = self._peek()
        following = self._tokens[self._at + 1] if self._at + 1 < len(self._tokens) else ("end", "")
        if kind == "name" and following[0] == "sign" and following[1] in _ASSIGNING:
            self._at += 2
            value = self._assignment()
            if following[1] != "=":
                value = self._apply(following[1][:-1], self._variable(name), value)
            if self._runs:
                self._assign(name, value)
        else:
            value = self._conditional()
        self._depth -= 1
        return value

    def _variable(self, name: str) -> int:
        return self._read(name) if self._runs else 0

    def _conditional(self) -> int:
        condition = self._binary(0)
        if not self._takes("?"):
            return condition
        runs = self._runs
        self._runs = runs and bool(condition)
        first = self._assignment()
        if not self._takes(":"):
            raise MalformedExpressionError(self._text)
        self._runs = runs and not condition
        second = self._assignment()
        self._runs = runs
        return first if condition else second

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._power()
        left = self._binary(level + 1)
        while sign := self._takes(*_LEVELS[level]):
            runs = self._runs
            if sign in ("&&", "||"):
                self._runs = runs and bool(left) == (sign == "&&")
            right = self._binary(level + 1)
            self._runs = runs
            left = self._apply(sign, left, right)
        return left

    def _power(self) -> int:
        base = self._unary()
        if not self._takes("**"):
            return base
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise MalformedExpressionError(self._text)
        exponent = self._power()
        self._depth -= 1
        if exponent < 0:
            raise MalformedExpressionError(self._text)
        return _signed(pow(base, exponent, 1 << 64))

    def _unary(self) -> int:
        sign = self._takes("!", "~", "+", "-", "++", "--")
        if not sign:
            return self._atom()
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise MalformedExpressionError(self._text)
        kind, name = self._peek()
        if sign in ("++", "--") and kind == "name":
            self._at += 1
            value = _signed(self._variable(name) + (1 if sign == "++" else -1))
            if self._runs:
                self._assign(name, value)
        else:
            value = self._unary()
            if sign == "!":
                value = int(not value)
            elif sign == "~":
                value = ~value
            elif sign == "-":
                value = _signed(-value)
        self._depth -= 1
        return value

    def _atom(self) -> int:
        kind, text = self._peek()
        self._at += 1
        if kind == "number":
            return _number(text, self._text)
        if kind == "name":
            value = self._variable(text)
            step = self._takes("++", "--")
            if step and self._runs:
                self._assign(text, _signed(value + (1 if step == "++" else -1)))
            return value
        if (kind, text) == ("sign", "("):
            value = self._comma()
            if self._takes(")"):
                return value
        raise MalformedExpressionError(self._text)

    def _apply(self, sign: str, left: int, right: int) -> int:
        if sign in ("/", "%"):
            if right == 0:
                if not self._runs:
                    return 0
                raise MalformedExpressionError(self._text)
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return _signed(quotient if sign == "/" else left - quotient * right)
        match sign:
            case "+":
                value = left + right
            case "-":
                value = left - right
            case "*":
                value = left * right
            case "<<":
                value = left << (right & 63)
            case ">>":
                value = left >> (right & 63)
            case "&":
                value = left & right
            case "|":
                value = left | right
            case "^":
                value = left ^ right
            case "&&":
                value = int(bool(left) and bool(right))
            case "||":
                value = int(bool(left) or bool(right))
            case "==":
                value = int(left == right)
            case "!=":
                value = int(left != right)
            case "<":
                value = int(left < right)
            case "<=":
                value = int(left <= right)
            case ">":
                value = int(left > right)
            case _:
                value = int(left >= right)
        return _signed(value)


def _signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _number(text: str, expression: str) -> int:
    try:
        if "#" in text:
            base, _, digits = text.partition("#")
            return _signed(int(digits, int(base)))
        if text[:2] in ("0x", "0X"):
            return _signed(int(text, 16))
        if len(text) > 1 and text[0] == "0":
            return _signed(int(text, 8))
        return _signed(int(text[:40]))
    except ValueError:
        raise MalformedExpressionError(expression) from None


def integer(text: str) -> int | None:
    """Return the number of a text, as `test` and `printf` read it; None if it is none."""
    return _signed(int(text)) if re.fullmatch(r"\s*[+-]?\d{1,25}\s*", text) else None
