"""Scripts as the interpreter follows them: generated ones against a shell that runs them, and damaged ones.

    python fuzz/shell.py --count 2000 --seed 7        # generated scripts, against bash and dash
    python fuzz/shell.py --damaged --count 100000     # scripts with pieces cut, doubled and mixed

A generated script calls `tc` with words; the shell's function of that name prints them. A damaged script must
end in commands or in a refusal, within the limit of steps, and may not open a file or start a program.
"""

from __future__ import annotations

import argparse
import builtins
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from dragstrip.interop import shell

SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]
PRELUDE = "set -f; tc() { printf '[%s]' \"$@\"; echo; }\n"
TEXTS = [
    "a",
    "b c",
    "eth0",
    "10",
    "007",
    "",
    "x:y:z",
    "1mbit",
    "a*b",
    "$",
    "tab\tbed",
    "q'q",
    "#no",
    "=",
    "-n",
]
PATTERNS = ["*", "?", "a*", "*b", "[0-9]*", "[!a]*", "x:*", "*:z", "eth?", "[[:digit:]]*"]
NUMBERS = ["0", "1", "7", "20", "1000", "-3"]


class Generator:
    """A script at random, of what POSIX has and scripts use."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.functions = 0
        self.depth = 0
        self.loops = 0

    def script(self) -> str:
        """Return a script that ends."""
        return "a=1 b='b c' n=7 c=\n" + self._statements(self.random.randint(2, 7))

    def _statements(self, count: int) -> str:
        return "".join(f"{self._statement()}\n" for _ in range(count))

    def _statement(self) -> str:
        kinds: list[Callable[[], str]] = [self._assignment, self._command, self._command, self._arithmetic]
        if self.depth < 3:
            kinds += [
                self._conditional,
                self._case,
                self._each,
                self._counted,
                self._function,
                self._subshell,
            ]
            kinds += [self._document, self._positional, self._and_or, self._piped, self._read]
        self.depth += 1
        text = self.random.choice(kinds)()
        self.depth -= 1
        return text

    def _name(self) -> str:
        return self.random.choice("abcn")

    def _quoted(self, text: str) -> str:
        if self.random.random() < 0.5 and "'" not in text:
            return f"'{text}'"
        return '"' + re.sub(r'(["$`\\])', r"\\\1", text) + '"'

    def _expansion(self) -> str:
        name, choice = self._name(), self.random.random()
        if choice < 0.35:
            return self.random.choice([f"${name}", f"${{{name}}}"])
        if choice < 0.5:
            operator = self.random.choice(["%", "%%", "#", "##"])
            return f"${{{name}{operator}{self.random.choice(PATTERNS)}}}"
        if choice < 0.65:
            operator = self.random.choice([":-", "-", ":+", "+", ":="])
            return f"${{{name}{operator}{self.random.choice(['w', 'v w', '$a', ''])}}}"
        if choice < 0.72:
            return f"${{#{name}}}"
        if choice < 0.85:
            return f"$(({self._expression()}))"
        if choice < 0.95 and self.depth < 3:
            self.depth += 1
            inner = self.random.choice(
                [
                    f"echo {self._word()}",
                    f"printf '%s-%s' {self._word()} x",
                    f"expr {self.random.choice(NUMBERS)} + 2",
                ]
            )
            self.depth -= 1
            return f"$({inner})"
        return self.random.choice(["$#", "$1", "$*", "$?"])

    def _word(self) -> str:
        choice = self.random.random()
        if choice < 0.3:
            return self._quoted(self.random.choice(TEXTS))
        if choice < 0.5:
            return f'"{self._expansion()}"'
        if choice < 0.7:
            return self._expansion()
        if choice < 0.8:
            return f'{self.random.choice(["p", "1:"])}{self._expansion()}"{self._expansion()}"'
        if choice < 0.85:
            return '"$@"'
        return self.random.choice(["eth0", "1:10", "10mbit", "ffff:", "p\\ q", "a\\$b"])

    def _expression(self) -> str:
        number = self.random.choice([*NUMBERS[:-1], "n", "$n"])
        if self.random.random() < 0.5:
            return number
        operator = self.random.choice(["+", "-", "*", "/", "%", "<", ">=", "==", "&&", "||", "<<", "&"])
        right = self.random.choice(["1", "3", "n", "(n+2)"])
        right = "3" if operator in ("/", "%", "<<") else right
        return f"{number} {operator} {right}"

    def _assignment(self) -> str:
        name = self.random.choice("abc")
        return f"{name}={self._word()}" if self.random.random() < 0.9 else f"{name}="

    def _arithmetic(self) -> str:
        return f"n=$(({self._expression()}))"

    def _command(self) -> str:
        words = " ".join(self._word() for _ in range(self.random.randint(1, 4)))
        return f"tc qdisc add {words}"

    def _test(self) -> str:
        a, b = f'"{self._expansion()}"', self._quoted(self.random.choice(TEXTS))
        comparison, number = (
            self.random.choice(["eq", "ne", "lt", "le", "gt", "ge"]),
            self.random.choice(NUMBERS),
        )
        return self.random.choice(
            [
                f"[ {a} = {b} ]",
                f"[ {a} != {b} ]",
                f"[ -n {a} ]",
                f"[ -z {a} ]",
                f'[ "$n" -{comparison} {number} ]',
                f"test -n {a} -a -z {b}",
                f"! [ -n {a} ]",
                "true",
                "false",
            ]
        )

    def _conditional(self) -> str:
        text = f"if {self._test()}; then\n{self._statements(1)}"
        if self.random.random() < 0.4:
            text += f"elif {self._test()}; then\n{self._statements(1)}"
        if self.random.random() < 0.5:
            text += f"else\n{self._statements(1)}"
        return text + "fi"

    def _case(self) -> str:
        arms = "".join(
            f"{self.random.choice(PATTERNS)}{self.random.choice(['', '|10'])}) {self._statements(1)};;\n"
            for _ in range(self.random.randint(1, 3))
        )
        return f"case {self._word()} in\n{arms}esac"

    def _each(self) -> str:
        words = " ".join(self._word() for _ in range(self.random.randint(0, 3)))
        leave = self.random.choice(["", "", f"{self._test()} && break\n", f"{self._test()} && continue\n"])
        return f"for c in {words}; do\n{leave}{self._statements(1)}done"

    def _counted(self) -> str:
        self.loops += 1
        name = f"i{self.loops}"
        return f"{name}=0\nwhile [ ${name} -lt 3 ]; do\n{name}=$(({name}+1))\n{self._statements(1)}done"

    def _function(self) -> str:
        self.functions += 1
        name = f"f{self.functions}"
        local = self.random.choice(["", "local a; a=5\n"])
        leave = self.random.choice(["", f"{self._test()} || return 3\n"])
        words = " ".join(self._word() for _ in range(self.random.randint(0, 3)))
        return f'{name}() {{\n{local}{leave}tc class add "$1" $#\n{self._statements(1)}}}\n{name} {words}'

    def _subshell(self) -> str:
        return f"( {self._statements(1)} )" if self.random.random() < 0.5 else f"{{ {self._statements(1)} }}"

    def _document(self) -> str:
        end = self.random.choice(["EOF", "'EOF'"])
        return f"a=$(cat <<{end}\nrate {self._expansion()}\nEOF\n)"

    def _positional(self) -> str:
        words = " ".join(self._word() for _ in range(self.random.randint(1, 3)))
        return f"set -- x {words}\n" + self.random.choice(["", "shift"])

    def _and_or(self) -> str:
        operator = self.random.choice(["&&", "||"])
        return f"{self._test()} {operator} {self.random.choice([self._command(), self._assignment()])}"

    def _piped(self) -> str:
        return f'echo {self._word()} | while read -r a b; do tc filter add "$a" "$b"; done'

    def _read(self) -> str:
        return f"IFS=: read -r a b <<EOF\n{self.random.choice(TEXTS[:9])}\nEOF"


def followed(script: str, ifs: str = "") -> list[list[str]] | None:
    """Return the words of each `tc`, or None for a script that is refused."""
    result = shell.followed(script, {})
    if result.refusal is not None:
        return None
    return [list(words) for words in result.words]


def run(script: str, program: str) -> tuple[int, str, str]:
    """Return the status, output and errors of a shell that runs a script."""
    words = [program, "-c", PRELUDE + script]
    ended = subprocess.run(  # noqa: S603 - a generated script of builtins and expr
        words,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"},
    )
    return ended.returncode, ended.stdout, ended.stderr


def printed(commands: list[list[str]]) -> str:
    """Return words as the shell's function prints them."""
    return "".join("".join(f"[{word}]" for word in words[1:]) + "\n" for words in commands)


def compared(seed: int) -> str:
    """Return `same`, `refused`, `error` (of the shell), or raise an `AssertionError` with the script."""
    script = Generator(seed).script()
    outputs = [run(script, program) for program in SHELLS]
    if any(errors for _, _, errors in outputs) or len({output for _, output, _ in outputs}) > 1:
        return "error"
    commands = followed(script)
    if commands is None:
        return "refused"
    mine = printed(commands)
    assert mine == outputs[0][1], (
        f"seed {seed}\n{script}\n--- {SHELLS[0]}\n{outputs[0][1]}--- followed\n{mine}"
    )
    return "same"


@contextmanager
def isolated() -> Iterator[None]:
    """Nothing may be opened or started."""

    def refuse(*words: object, **_: object) -> NoReturn:
        raise AssertionError(f"opened or started: {words}")

    saved = builtins.open, subprocess.Popen.__init__
    builtins.open = refuse  # type: ignore[assignment]
    subprocess.Popen.__init__ = refuse  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        builtins.open, subprocess.Popen.__init__ = saved  # type: ignore[method-assign]


PIECES = [
    "$(",
    ")",
    "`",
    "${",
    "}",
    "((",
    "))",
    "'",
    '"',
    "<<EOF\n",
    "EOF\n",
    "\\",
    "$",
    ";",
    "|",
    "&",
    "if ",
    "fi",
    "do ",
]
PIECES += [
    "done",
    "case x in ",
    "esac",
    "*)",
    ";;",
    "\n",
    "f() { ",
    "[ ",
    " ]",
    "[[ ",
    " ]]",
    "while true; do ",
    "eval ",
]
PIECES += [
    "${a[1]}",
    "a=(1 2)",
    "$((1/0))",
    "x=$x$x",
    "\0",
    "\U000f0000",
    "<(",
    "> f",
    "{1..9}",
    "cat < f",
    ". ./f",
    "f() { f; }; f",
]


def damaged(seed: int) -> str:
    """Return a generated script with pieces cut, doubled and mixed."""
    draw = random.Random(seed)
    text = Generator(seed).script()
    for _ in range(draw.randint(1, 8)):
        at = draw.randint(0, len(text))
        end = min(len(text), at + draw.randint(0, 20))
        choice = draw.random()
        if choice < 0.3:
            text = text[:at] + text[end:]
        elif choice < 0.5:
            text = text[:end] + text[at:]
        else:
            text = text[:at] + draw.choice(PIECES) * draw.choice([1, 1, 2, 60]) + text[at:]
    return text


def main() -> int:
    """0: every script is as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--damaged", action="store_true")
    options = parser.parse_args()
    counts: dict[str, int] = {}
    for seed in range(options.seed * 1_000_000, options.seed * 1_000_000 + options.count):
        if options.damaged:
            with isolated():
                result = shell.followed(damaged(seed), {})
            answer = "refused" if result.refusal else "followed"
        else:
            answer = compared(seed)
        counts[answer] = counts.get(answer, 0) + 1
    print(", ".join(f"{answer}: {count}" for answer, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
