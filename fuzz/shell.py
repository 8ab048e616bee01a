"""Scripts that are followed: what the interpreter makes of them, against a shell that runs them, and of damaged ones.

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
PRELUDE = "tc() { printf '[%s]' \"$@\"; echo; }\n"
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
        return "a=1 b='b c' n=7 c=\n" + self.statements(self.random.randint(2, 7))

    def statements(self, count: int) -> str:
        return "".join(f"{self.statement()}\n" for _ in range(count))

    def statement(self) -> str:
        kinds: list[Callable[[], str]] = [self.assignment, self.command, self.command, self.arithmetic]
        if self.depth < 3:
            kinds += [self.conditional, self.case, self.each, self.counted, self.function, self.subshell]
            kinds += [self.document, self.positional, self.and_or, self.piped, self.read]
        self.depth += 1
        text = self.random.choice(kinds)()
        self.depth -= 1
        return text

    def name(self) -> str:
        return self.random.choice("abcn")

    def quoted(self, text: str) -> str:
        if self.random.random() < 0.5 and "'" not in text:
            return f"'{text}'"
        return '"' + re.sub(r'(["$`\\])', r"\\\1", text) + '"'

    def expansion(self) -> str:
        name, choice = self.name(), self.random.random()
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
            return f"$(({self.expression()}))"
        if choice < 0.95 and self.depth < 3:
            self.depth += 1
            inner = self.random.choice(
                [
                    f"echo {self.word()}",
                    f"printf '%s-%s' {self.word()} x",
                    f"expr {self.random.choice(NUMBERS)} + 2",
                ]
            )
            self.depth -= 1
            return f"$({inner})"
        return self.random.choice(["$#", "$1", "$*", "$?"])

    def word(self) -> str:
        choice = self.random.random()
        if choice < 0.3:
            return self.quoted(self.random.choice(TEXTS))
        if choice < 0.5:
            return f'"{self.expansion()}"'
        if choice < 0.7:
            return self.expansion()
        if choice < 0.8:
            return f'{self.random.choice(["p", "1:"])}{self.expansion()}"{self.expansion()}"'
        if choice < 0.85:
            return '"$@"'
        return self.random.choice(["eth0", "1:10", "10mbit", "ffff:", "p\\ q", "a\\$b"])

    def expression(self) -> str:
        number = self.random.choice([*NUMBERS[:-1], "n", "$n"])
        if self.random.random() < 0.5:
            return number
        operator = self.random.choice(["+", "-", "*", "/", "%", "<", ">=", "==", "&&", "||", "<<", "&"])
        right = self.random.choice(["1", "3", "n", "(n+2)"])
        right = "3" if operator in ("/", "%", "<<") else right
        return f"{number} {operator} {right}"

    def assignment(self) -> str:
        name = self.random.choice("abc")
        return f"{name}={self.word()}" if self.random.random() < 0.9 else f"{name}="

    def arithmetic(self) -> str:
        return f"n=$(({self.expression()}))"

    def command(self) -> str:
        words = " ".join(self.word() for _ in range(self.random.randint(1, 4)))
        return f"tc qdisc add {words}"

    def test(self) -> str:
        a, b = f'"{self.expansion()}"', self.quoted(self.random.choice(TEXTS))
        return self.random.choice(
            [
                f"[ {a} = {b} ]",
                f"[ {a} != {b} ]",
                f"[ -n {a} ]",
                f"[ -z {a} ]",
                f'[ "$n" -{self.random.choice(["eq", "ne", "lt", "le", "gt", "ge"])} {self.random.choice(NUMBERS)} ]',
                f"test -n {a} -a -z {b}",
                f"! [ -n {a} ]",
                "true",
                "false",
            ]
        )

    def conditional(self) -> str:
        text = f"if {self.test()}; then\n{self.statements(1)}"
        if self.random.random() < 0.4:
            text += f"elif {self.test()}; then\n{self.statements(1)}"
        if self.random.random() < 0.5:
            text += f"else\n{self.statements(1)}"
        return text + "fi"

    def case(self) -> str:
        arms = "".join(
            f"{self.random.choice(PATTERNS)}{self.random.choice(['', '|10'])}) {self.statements(1)};;\n"
            for _ in range(self.random.randint(1, 3))
        )
        return f"case {self.word()} in\n{arms}esac"

    def each(self) -> str:
        words = " ".join(self.word() for _ in range(self.random.randint(0, 3)))
        leave = self.random.choice(["", "", f"{self.test()} && break\n", f"{self.test()} && continue\n"])
        return f"for c in {words}; do\n{leave}{self.statements(1)}done"

    def counted(self) -> str:
        self.loops += 1
        name = f"i{self.loops}"
        return f"{name}=0\nwhile [ ${name} -lt 3 ]; do\n{name}=$(({name}+1))\n{self.statements(1)}done"

    def function(self) -> str:
        self.functions += 1
        name = f"f{self.functions}"
        local = self.random.choice(["", "local a; a=5\n"])
        leave = self.random.choice(["", f"{self.test()} || return 3\n"])
        words = " ".join(self.word() for _ in range(self.random.randint(0, 3)))
        return f'{name}() {{\n{local}{leave}tc class add "$1" $#\n{self.statements(1)}}}\n{name} {words}'

    def subshell(self) -> str:
        return f"( {self.statements(1)} )" if self.random.random() < 0.5 else f"{{ {self.statements(1)} }}"

    def document(self) -> str:
        end = self.random.choice(["EOF", "'EOF'"])
        return f"a=$(cat <<{end}\nrate {self.expansion()}\nEOF\n)"

    def positional(self) -> str:
        words = " ".join(self.word() for _ in range(self.random.randint(1, 3)))
        return f"set -- x {words}\n" + self.random.choice(["", "shift"])

    def and_or(self) -> str:
        operator = self.random.choice(["&&", "||"])
        return f"{self.test()} {operator} {self.random.choice([self.command(), self.assignment()])}"

    def piped(self) -> str:
        return f'echo {self.word()} | while read -r a b; do tc filter add "$a" "$b"; done'

    def read(self) -> str:
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
