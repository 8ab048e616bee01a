"""Programs that a script starts: their commands are recorded, and none is started.

Belongs here: which commands set up queues, and what is known of an output or a status. Does not belong here:
commands of the shell itself, which `builtins` has.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable

from dragstrip.interop.shell import programs
from dragstrip.interop.shell.values import (
    GAPS,
    UNKNOWN,
    UNSET,
    VALUE_MAX,
    Emitted,
    Expanded,
    Gap,
    LimitError,
    Position,
    RefusalError,
)
from dragstrip.interop.shell.ways import Ways

FILE_MAX = 4 * VALUE_MAX
"""Characters of a file that the script writes, at most."""
_CHANGING = {
    "ip": re.compile(r"\b(?:add|set|del|delete|replace|change|flush|up|down|exec|append)\b"),
    "nft": re.compile(r"\b(?:add|delete|flush|create|insert|destroy)\b|-f\b"),
    "iptables": re.compile(r"(?:^|\s)-(?:A|I|D|N|F|X|P|R|Z|-append|-insert|-delete)\b"),
    "ipset": re.compile(r"\b(?:create|add|flush|destroy|del)\b|\s-[NAFXD]\b"),
    "ethtool": re.compile(r"\s-[A-Z]\b|--(?:set|change|offload|features)\b"),
    "sysctl": re.compile(r"=|\s-[wp]\b"),
    "uci": re.compile(r"\b(?:set|commit|add|delete)\b"),
}
"""Expanded with which a program changes something; it is then taken to succeed."""
_SUCCEEDS = frozenset(
    [
        "modprobe",
        "insmod",
        "rmmod",
        "logger",
        "sleep",
        "mkdir",
        "rm",
        "touch",
        "mv",
        "cp",
        "chmod",
        "chown",
        "kill",
        "killall",
        "wait",
        "sync",
        "ifconfig",
        "brctl",
        "route",
        "depmod",
        "ln",
        "iptables-restore",
        "ip6tables-restore",
        "service",
    ]
)
_ALIASES = {
    "ip6tables": "iptables",
    "ebtables": "iptables",
    "iptables-nft": "iptables",
    "ip6tables-nft": "iptables",
}
DRAWN = "3f8a1c5e9b7d2046" * 16
"""Random bytes: any are as good as others."""


class Recorder(Ways):
    """A shell that records the commands of other programs."""

    def __init__(self, files: Callable[[str], tuple[str, str] | None]) -> None:
        super().__init__()
        self.queried: list[tuple[int, str]] = []
        self.unread: list[tuple[int, str]] = []
        """Files that the script sources and that are not there."""
        self.files = files
        self.captures = 0
        self.tests = 0
        """Commands in hand whose failure is an answer."""

    @abstractmethod
    def call(self, name: str, arguments: list[Expanded]) -> None:
        """Run a function."""

    def read_file(self, path: str, text: str) -> str:
        """Return a file that the script has written; of any other a gap."""
        if path in self.state.files:
            return self.state.files[path]
        if path == "/dev/null":
            return ""
        if path in ("/dev/urandom", "/dev/random"):
            return DRAWN
        if (answer := self.answer_for(f"cat {path}")) is not None:
            return answer
        return self.gap(UNKNOWN, f"$(cat {text})", f"cat {self.shown(path)}")

    def write(self, text: str) -> None:
        """Print."""
        if not self.captures:
            return
        self.state.output += text
        if len(self.state.output) > FILE_MAX:
            raise LimitError(self.position, "more", f"at most {FILE_MAX} characters of output")
        self.charge(1 + len(text) // 100)

    def input_text(self) -> str:
        """Return what commands read; without any, a gap."""
        if self.state.input is None:
            return self.gap(UNKNOWN, "standard input", "")
        return self.state.input

    def _text_program(self, name: str, words: list[str]) -> bool:
        """Run a program that only turns text into text; False if its words are not known here."""
        rest = words[1:]
        text = ""
        if name in programs.READING:
            if self.state.input is None:
                if not rest or rest[-1] not in self.state.files:
                    return False
                text, rest = self.state.files[rest[-1]], rest[:-1]
            else:
                text = self.state.input
                self.state.input = ""
        if GAPS.search("".join(rest)) or GAPS.search(text):
            return self._unknown_text(words, GAPS.search("".join(rest) + text))
        self.charge(1 + (len(text) + sum(map(len, rest))) // 100)
        result = programs.TEXT_PROGRAMS[name](rest, text)
        if result is None:
            return False
        self.write(result[0])
        self.end(result[1])
        return True

    def _unknown_text(self, words: list[str], match: re.Match[str] | None) -> bool:
        gap = self.gap_of(match[0], (UNKNOWN, UNSET)) if match else None
        if (answer := self.answer_for(" ".join(words))) is not None:
            self.answer(answer)
            return True
        text = self.shown(" ".join(words))
        if gap is not None and words[0] in ("expr", "cut", "tr", "head", "tail", "bc"):
            self.write(self.gap(UNKNOWN, gap.text, gap.key))
            self.end(0)
        else:
            self.write(self.gap(UNKNOWN, f"$({text})", text))
            self.end(None, Gap(UNKNOWN, text, self.position, text))
        return True

    def answer(self, given: str) -> None:
        """Take a given answer of a command: true, false or what it prints."""
        if given not in ("true", "false"):
            self.write(given + "\n")
        self.end(int(given == "false"))

    def emit(self, words: tuple[Expanded, ...], queues: bool, deletes: bool = False) -> None:
        """Record a command."""
        self.emitted.append(Emitted(words, queues, deletes, self.main_line))

    def external(self, fields: list[Expanded]) -> None:
        """Record the command of another program."""
        texts = [self.settled(field.text) for field in fields]
        program = texts[0].rpartition("/")[2]
        at = _program_at(texts)
        inner = texts[at].rpartition("/")[2] if at < len(texts) else ""
        if inner == "tc":
            self._tc(fields, texts, at)
            return
        if inner in ("qdisc", "class", "filter") and at == 0:
            self._record_tc(fields, texts, at - 1)
            return
        gap = self.gap_of(texts[0])
        if gap and any(text in ("qdisc", "class", "filter") for text in texts[1:6]):
            self.refuse(gap)
        shown = self.shown(" ".join(texts))
        if (answer := self.answer_for(shown)) is not None:
            self.queried.append((self.line_of(fields[0].position), shown))
            self.answer(answer)
            return
        if program in ("sudo", "doas") and at < len(texts) and inner in self.state.functions:
            self.call(inner, fields[at + 1 :])
            return
        sets_length = inner in ("ip", "ifconfig") and any(
            text in ("txqueuelen", "txqlen", "qlen") for text in texts
        )
        deletes = inner == "ip" and bool(re.search(r"\b(?:link|l) del", shown))
        if sets_length and (gap := self.gap_of("".join(field.text for field in fields), (UNKNOWN, UNSET))):
            self.refuse(gap)
        plain = tuple(
            field._replace(text=self.shown(self.settled(field.text)), position=fields[-1].position)
            for field in fields
        )
        if sets_length or deletes:
            self.emit(plain, True, deletes)
        elif self.captures:
            self.queried.append((self.line_of(fields[-1].position), shown))
        else:
            self.emit(plain, False)
        name = _ALIASES.get(inner, inner)
        changes = _CHANGING.get(name)
        if inner in _SUCCEEDS or (changes is not None and changes.search(shown)):
            self.end(0)
            return
        self.end(None, Gap(UNKNOWN, shown, fields[0].position, self.key_of(shown)))
        if self.captures:
            self.write(self.gap(UNKNOWN, f"$({shown})", self.key_of(shown)))

    def _tc(self, fields: list[Expanded], texts: list[str], at: int) -> None:
        for offset, text in enumerate(texts[at + 1 :], at + 1):
            if text in ("-b", "-batch", "-ba", "-bat"):
                self._batch(fields, texts, at, offset)
                return
            if not text.startswith("-"):
                break
        self._record_tc(fields, texts, at)

    def _batch(self, fields: list[Expanded], texts: list[str], at: int, offset: int) -> None:
        path = (
            texts[offset + 1] if offset + 1 < len(texts) and not texts[offset + 1].startswith("-f") else "-"
        )
        line: int | None = None
        source = fields[at].position.source
        if path in ("-", "/dev/stdin"):
            content, line = self.input_text(), self.state.input_line
            self.state.input = ""
        elif path in self.state.files:
            content = self.state.files[path]
        elif (read := self.files(path)) is not None:
            source, content = read
            line = 1
        else:
            content = self.gap(UNKNOWN, f"tc -batch {path}", "")
        if gap := self.gap_of(content):
            expected = "commands that the script contains, or a file in the folder of --sources"
            raise RefusalError(fields[at].position, gap.text, expected)
        for number, text in enumerate(content.splitlines()):
            words = text.partition("#")[0].split()
            if words:
                self.charge()
                position = fields[at].position if line is None else Position(source, line + number)
                command = [*fields[: at + 1], *(Expanded(word, position) for word in words)]
                command = [word._replace(position=position) for word in command]
                self._record_tc(command, [word.text for word in command], at)
        self.end(0)

    def _record_tc(self, fields: list[Expanded], texts: list[str], at: int) -> None:
        words = [text for text in texts[at + 1 :] if not text.startswith("-")]
        verb = words[1] if len(words) > 1 else "show"
        if lists(texts):
            shown = self.shown(" ".join(texts))
            if (answer := self.answer_for(shown)) is not None:
                self.answer(answer)
                return
            if words[0][:1] in ("c", "f") and not any(
                command.counts and any(word.text == words[0] for word in command.words)
                for command in self.emitted
            ):
                self.end(0)  # before the script there are neither classes nor filters
                return
            self.end(None, Gap(UNKNOWN, shown, fields[0].position, self.key_of(shown)))
            if self.captures:
                self.write(self.gap(UNKNOWN, f"$({shown})", self.key_of(shown)))
            elif not GAPS.search(shown) and not self.tests:
                self.emit(tuple(fields), False)
            return
        for field in fields:
            if gap := self.gap_of(field.text, (UNKNOWN, UNSET)):
                self.refuse(gap)
        if self.answer_for(" ".join(texts)) == "false":
            self.end(1)
            return
        first = fields[min(at + 1, len(fields) - 1)].position
        placed = [
            field._replace(position=first) if index <= at else field for index, field in enumerate(fields)
        ]
        self.emit(tuple(placed), True, verb.startswith("d"))
        self.end(0)

    def find_program(self, fields: list[Expanded]) -> None:
        """Print the name of a program, which is there: `which`, `command -v`."""
        names = [self.settled(field.text) for field in fields if not field.text.startswith("-")]
        if not names or not names[-1]:
            self.end(1)
            return
        name = names[-1]
        if GAPS.search(name):
            self.write(name + "\n")
            self.end(None, self.gap_of(name))
            return
        if (answer := self.answer_for(f"command -v {name}")) is not None:
            self.answer(answer)
            return
        self.write(f"{name}\n")
        self.end(0)


def lists(texts: list[str]) -> bool:
    """Return whether a command of tc only shows something."""
    at = next(
        (at for at, text in enumerate(texts) if text in ("qdisc", "class", "filter", "q", "c", "f")), None
    )
    if at is None:
        return False
    verb = texts[at + 1] if at + 1 < len(texts) else "show"
    return any(whole.startswith(verb) for whole in ("show", "list", "lst", "get")) if verb else True


def _program_at(texts: list[str]) -> int:
    """Return where the program stands behind `sudo`, `ip netns exec NAME`, a prompt."""
    at = 0
    while at < len(texts):
        text = texts[at]
        name = text.rpartition("/")[2]
        if (
            name == "ip"
            and texts[at + 1 : at + 2]
            and texts[at + 1] in ("netns", "net")
            and "exec".startswith(texts[at + 2] if at + 2 < len(texts) else " ")
        ):
            at += 4
        elif (
            name in ("sudo", "doas", "$", "-E")
            or ("@" in text and text.endswith(("#", "$")))
            or (name in ("env", "nice", "time", "nohup") and at + 1 < len(texts))
        ):
            at += 1
        else:
            break
    return at
