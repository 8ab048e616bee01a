"""Programs that only turn text into text, as scripts use them: each returns its output and status.

Belongs here: what `expr`, `cut` and the like print for these words and this input. Does not belong here:
anything that depends on the machine. Forms that are not known here are None, so that nobody guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dragstrip.interop.shell import arithmetic, patterns
from dragstrip.interop.shell.values import GAPS

LINES_MAX = 5_000
DELIMITERS = tuple("/|,#:@")
"""Characters between the parts of sed's command `s` that are read."""
LINE_MAX = 1_000
"""Characters of a line that a regular expression is searched in, at most."""


def expr(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Arithmetic and comparisons of `expr` on words."""
    if len(words) == 2 and words[0] == "length":
        return f"{len(words[1])}\n", 0 if words[1] else 1
    if not all(re.fullmatch(r"-?\d{1,18}|[-+*/%()<>=]|[<>!]=", word) for word in words) or not words:
        return None
    joined = " ".join({"=": "=="}.get(word, word) for word in words)
    number = _number(joined)
    return None if number is None else (f"{number}\n", int(number == 0))


def _decimal(word: str) -> str:
    """Return a whole number without zeros in front, which would make it octal."""
    return (word.lstrip("0") or "0") if word.isdigit() else word


def _number(text: str) -> int | None:
    try:
        decimal = re.sub(r"[\w.]+", lambda word: _decimal(word[0]), text)
        return arithmetic.Calculator(decimal, lambda _: 0, lambda *_: None).value()
    except arithmetic.MalformedExpressionError:
        return None


def bc(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Whole numbers of `bc`."""
    lines = [line for line in re.split(r"[\n;]", text) if line.strip()]
    if words or not all(re.fullmatch(r"[-+*/%()\d\s]{1,200}", line) for line in lines):
        return None
    numbers = [_number(line) for line in lines]
    return None if None in numbers else ("".join(f"{number}\n" for number in numbers), 0)


def seq(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Whole numbers in a row."""
    numbers = [arithmetic.integer(word) for word in words]
    if not 1 <= len(numbers) <= 3 or None in numbers:
        return None
    positions = [number for number in numbers if number is not None]
    first = positions[0] if len(positions) > 1 else 1
    step = positions[1] if len(positions) == 3 else 1
    if step == 0 or abs(positions[-1] - first) // abs(step) >= LINES_MAX:
        return None
    last = positions[-1] + (1 if step > 0 else -1)
    return "".join(f"{number}\n" for number in range(first, last, step)), 0


def cut(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Fields or characters of each line."""
    options = _options(words, "dfc")
    if options is None or ("f" in options) == ("c" in options):
        return None
    if not re.fullmatch(
        r"\d{0,4}(-\d{0,4})?(,\d{0,4}(-\d{0,4})?)*", chosen := options.get("f", options.get("c", ""))
    ):
        return None
    places = []
    for part in chosen.split(","):
        first, dash, last = part.partition("-")
        begin = int(first or 1)
        places.append((begin, int(last or 9_999) if dash else begin))
    separator = options.get("d", "\t")
    if "f" in options and len(separator) != 1:
        return None
    lines = []
    for line in text.splitlines():
        if "f" in options and separator not in line:
            lines.append(line)
            continue
        pieces = line.split(separator) if "f" in options else list(line)
        selected_pieces = [
            piece for at, piece in enumerate(pieces, 1) if any(low <= at <= high for low, high in places)
        ]
        lines.append((separator if "f" in options else "").join(selected_pieces))
    return "".join(f"{line}\n" for line in lines), 0


def _options(words: Sequence[str], valued: str) -> dict[str, str] | None:
    """Return options with values (`-d :`, `-d:`) of words that are nothing else."""
    options: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if len(word) < 2 or word[0] != "-" or word[1] not in valued:
            return None
        if len(word) == 2:
            at += 1
            if at >= len(words):
                return None
        options[word[1]] = word[2:] or words[at]
        at += 1
    return options


def tr(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Characters for characters, or without some."""
    sets = {
        "[:lower:]": "a-z",
        "[:upper:]": "A-Z",
        "[:digit:]": "0-9",
        "[:space:]": " \t\n\r",
        "[:blank:]": " \t",
    }
    words = ["-c", "-d", *words[1:]] if words[:1] in (["-cd"], ["-dc"]) else list(words)
    complement = words[:2] == ["-c", "-d"]
    words = words[complement:]
    deletes = words[:1] == ["-d"]
    expanded = []
    for word in words[1:] if deletes else words:
        characters = sets.get(word, word).replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")
        expanded.append(
            re.sub(
                r"(\w)-(\w)",
                lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1)))[:200],
                characters,
            )
        )
    if any(word.startswith("-") and len(word) > 1 for word in expanded):
        return None
    if deletes and len(expanded) == 1:
        return "".join(character for character in text if (character in expanded[0]) == complement), 0
    if len(expanded) == 2 and expanded[1] and expanded[0]:
        last = expanded[1][-1]
        table = {
            ord(a): expanded[1][at] if at < len(expanded[1]) else last for at, a in enumerate(expanded[0])
        }
        return text.translate(table), 0
    return None


def head(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """The first lines or characters."""
    if match := re.fullmatch(r"-c ?(\d{1,6})", " ".join(words)):
        return text[: int(match[1])], 0
    count = _count(words)
    return None if count is None else ("".join(text.splitlines(True)[:count]), 0)


def tail(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """The last lines."""
    if words and re.fullmatch(r"\+\d{1,6}", words[-1]) and words[:-1] in (["-n"], []):
        return "".join(text.splitlines(True)[max(int(words[-1]) - 1, 0) :]), 0
    count = _count(words)
    return None if count is None else ("".join(text.splitlines(True)[-count:] if count else []), 0)


def _count(words: Sequence[str]) -> int | None:
    if not words:
        return 10
    match = re.fullmatch(r"-(?:n ?)?(\d{1,6})", " ".join(words))
    return int(match[1]) if match else None


def wc(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Numbers of lines, words or characters."""
    counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(text.encode()), "-m": len(text)}
    return (f"{counts[words[0]]}\n", 0) if len(words) == 1 and words[0] in counts else None


def grep(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Lines with a plain text in them."""
    flags, rest = "", list(words)
    while rest and re.fullmatch(r"-[qvciEFwxos]+e?", rest[0]):
        flags += rest.pop(0)[1:].rstrip("e")
    if rest[:1] in (["--"], ["-e"]):
        rest.pop(0)
    if len(rest) != 1 or "w" in flags or "x" in flags or len(rest[0]) > 200:
        return None
    lines = text.splitlines()
    pattern = re.escape(rest[0]) if "F" in flags else rest[0]
    compiled = (
        re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
        if "F" in flags
        else patterns.regular(pattern, "E" in flags, "i" in flags)
    )
    if not any(lines) and "o" in flags:
        return "", 1
    if compiled is None or any(len(line) > LINE_MAX for line in lines):
        return None
    matching = [line for line in lines if bool(compiled.search(line)) != ("v" in flags)]
    if "o" in flags:
        matching = [match for line in matching for match in compiled.findall(line) if match]
    output = f"{len(matching)}\n" if "c" in flags else "".join(f"{line}\n" for line in matching)
    return "" if "q" in flags else output, int(not matching)


def sed(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """One `s` command with a plain text in place of what it finds."""
    extended = words[:1] in (["-E"], ["-r"])
    rest = list(words[extended:])
    if rest[:1] == ["-e"]:
        rest.pop(0)
    parts = rest[0][2:].split(rest[0][1:2]) if len(rest) == 1 and rest[0][1:2] in DELIMITERS else []
    lines = text.splitlines()
    if len(parts) != 3 or rest[0][0] != "s" or any(len(line) > LINE_MAX for line in lines):
        return None
    sought, by, flag = parts
    if flag not in ("", "g") or "&" in by or "\\" in by or "\n" in rest[0]:
        return None
    compiled = patterns.regular(sought, extended)
    if compiled is None:
        return None
    count = 0 if flag else 1
    return "".join(f"{compiled.sub(lambda _: by, line, count=count)}\n" for line in lines), 0


def basename(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """A path's last part."""
    if not 1 <= len(words) <= 2 or words[0].startswith("-"):
        return None
    name = words[0].rstrip("/").rpartition("/")[2]
    suffix = words[1] if len(words) == 2 else ""
    return f"{name.removesuffix(suffix) if name != suffix else name}\n", 0


def dirname(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """A path without its last part."""
    if len(words) != 1 or words[0].startswith("-"):
        return None
    before, slash, _ = words[0].rstrip("/").rpartition("/")
    return f"{before or ('/' if slash else '.')}\n", 0


def sort(words: Sequence[str], text: str) -> tuple[str, int] | None:
    """Lines in order."""
    lines = text.splitlines()
    if list(words) in ([], ["-u"]):
        ordered = sorted(set(lines)) if words else sorted(lines)
        return "".join(f"{line}\n" for line in ordered), 0
    if list(words) == ["-n"] and all(re.fullmatch(r"-?\d{1,18}", line) for line in lines):
        return "".join(f"{line}\n" for line in sorted(lines, key=int)), 0
    return None


def printf(words: Sequence[str]) -> str | None:
    """Return a format filled with words, again until none is left."""
    if not words:
        return ""
    fields, rest = words[0], list(words[1:])
    pieces = re.findall(r"%%|%-?0?\d{0,3}(?:\.\d{0,3})?[sdixXoucb]|\\.|[^%\\]+|%|\\", fields, re.DOTALL)
    if "%" in pieces or len(words) > 1_000:
        return None
    escapes = {"\\n": "\n", "\\t": "\t", "\\\\": "\\", "\\r": "\r", '\\"': '"', "\\'": "'"}
    consumes = any(len(piece) > 1 and piece[0] == "%" and piece != "%%" for piece in pieces)
    output: list[str] = []
    while True:
        for piece in pieces:
            if piece in escapes:
                output.append(escapes[piece])
            elif piece == "%%":
                output.append("%")
            elif piece[0] == "\\":
                return None
            elif piece[0] != "%":
                output.append(piece)
            else:
                text = _formatted(piece, rest.pop(0) if rest else "")
                if text is None:
                    return None
                output.append(text)
        if not rest or not consumes:
            return "".join(output)


def _formatted(piece: str, word: str) -> str | None:
    if piece[-1] in "sb":
        return f"{piece[:-1]}s" % word
    if piece[-1] == "c":
        return word[:1]
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", word):
        number: int | None = int(word, 16)
    else:
        number = arithmetic.integer(word or "0")
    if GAPS.search(word) or number is None:
        return None
    return piece.replace("i", "d").replace("u", "d") % number


TEXT_PROGRAMS: dict[str, Callable[[Sequence[str], str], tuple[str, int] | None]] = {
    "expr": expr,
    "bc": bc,
    "seq": seq,
    "cut": cut,
    "tr": tr,
    "head": head,
    "tail": tail,
    "wc": wc,
    "grep": grep,
    "egrep": grep,
    "fgrep": lambda words, text: grep(["-F", *words], text),
    "basename": basename,
    "dirname": dirname,
    "sed": sed,
    "sort": sort,
}
READING = frozenset(("bc", "cut", "tr", "head", "tail", "wc", "grep", "egrep", "fgrep", "sed", "sort"))
"""Those that read their input unless they are given a file."""
