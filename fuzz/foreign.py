"""Files of other programs (`dragstrip inspect`), damaged, are read or refused in one line, and nothing else.

    python fuzz/foreign.py [NAME ...] [--count N] [--seconds N] [--seed N] [--summary] [--replay FILE]

One target per reader, with seeds in `corpus/NAME/` (`NAMES`). An input
is its number: a seed with one to four damages, to bytes, to lines, or to values of the JSON document that it
is. It must become a recording with the defined columns, whose figures can be written as JSON and as a table,
or be refused by `BadInputError`. What is neither is kept in `failures/`, with the command that replays it.
Without `--count` and `--seconds`, each target gets the same 3,000 inputs. Inputs are read in processes with a
limit on memory and time. With --summary, the last line is the one that tests/torture/README.md describes, and
what fails is kept in a temporary folder. No coverage guides it: in Python that costs more than it finds.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NAMES = (
    *(
        "autorate",
        "flent",
        "iperf",
        "iperf3",
        "irtt",
        "mtr",
        "nest",
        "ping",
        "ping_table",
        "qlog",
        "speedtest",
    ),
    *("ss", "tc_show", "tcp_probe", "tshark"),
)
FAILURES = HERE / "failures"
REPEATED = 1_000
BATCH = 20_000
MEMORY = 2 << 30
INPUT_SECONDS = 10
BATCH_SECONDS = 3_600
TOKENS = (
    b'-1 0 1 1e400 -1e400 NaN Infinity null [] {} "x" true 1e18 1e19 0.1 1e-400 . : , = - \xff\xc3 \x1b[1m'
    b' \x00 \n \x1e \\ " \xe2\x80\xa8 9223372036854775807 9223372036854775808 4294967295 4294967296 65535'
    b" 65536 1e9 1000000000.123456789123 99999999999999999999999999999999999999 0xffffffffffffffffffffffff"
    b" 2:3 (1 1) bps K M G T ms %"
).split(b" ")
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63)),
    *(
        10**40,
        float("inf"),
        float("nan"),
        "",
        "x",
        "1",
        "\ud800",
        "a\nb\x1b[1m\u202e",
        "é" * 300,
        [],
        {},
        [[]],
        [None],
        {"": {}},
    ),
)


@cache
def seeds(name: str) -> tuple[bytes, ...]:
    """The files of its corpus."""
    return tuple(file.read_bytes() for file in sorted((HERE / "corpus" / name).iterdir()))


def in_bytes(said: bytes, chance: random.Random) -> bytes:
    """A piece replaced by a token or by itself twice, cut out, moved, or with one bit turned."""
    at = chance.randrange(len(said) + 1)
    end = min(len(said), at + chance.choice((1, 1, 2, 3, 8, 20, 200)))
    match chance.randrange(6):
        case 0 | 1:
            return said[:at] + chance.choice(TOKENS) + said[end:]
        case 2:
            return said[:at] + said[end:]
        case 3:
            return said[:at] + said[at:end] * chance.choice((2, 3, 50)) + said[end:]
        case 4 if at < len(said):
            return said[:at] + bytes([said[at] ^ 1 << chance.randrange(8)]) + said[at + 1 :]
        case _:
            there = chance.randrange(len(said) + 1)
            return said[:there] + said[at:end] + said[there:]


def in_numbers(said: bytes, chance: random.Random) -> bytes:
    """A run of digits becomes a token."""
    digits = [at for at in range(len(said)) if said[at : at + 1].isdigit()]
    if not digits:
        return said
    at = end = chance.choice(digits)
    while end < len(said) and said[end : end + 1].isdigit() and chance.random() < 0.8:
        end += 1
    return said[:at] + chance.choice(TOKENS) + said[max(end, at + 1) :]


def in_lines(said: bytes, other: bytes, chance: random.Random) -> bytes:
    """Lines dropped, doubled, exchanged, or taken from another seed."""
    lines = said.split(b"\n")
    at, there = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(there, lines[at])
        case 2:
            lines[at], lines[there] = lines[there], lines[at]
        case _:
            lines.insert(there, chance.choice(other.split(b"\n")))
    return b"\n".join(lines)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each value of a document by what holds it and its key."""
    found: list[tuple[Any, Any]] = []
    rest = [value]
    while rest:
        held = rest.pop()
        keys = held.keys() if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        for key in keys:
            found.append((held, key))
            rest.append(held[key])
    return found


def in_values(document: Any, chance: random.Random) -> Any:
    """A value taken out, doubled, put under another's name, or replaced by another or a strange one."""
    document = copy.deepcopy(document)
    held = places(document)
    if not held:
        return document
    where, key = chance.choice(held)
    from_where, from_key = chance.choice(held)
    match chance.randrange(6):
        case 0 | 1 | 2:
            where[key] = copy.deepcopy(chance.choice(VALUES))
        case 3:
            where[key] = copy.deepcopy(from_where[from_key])
        case 4 if isinstance(where, dict):
            where[str(from_key)] = where.pop(key)
        case 4:
            where.insert(key, copy.deepcopy(where[key]))
        case _:
            del where[key]
    return document


def damaged(name: str, seed: int) -> bytes:
    """The input of this number."""
    chance = random.Random(f"{name} {seed}")
    said, other = chance.choice(seeds(name)), chance.choice(seeds(name))
    parts = (
        said.replace(b"\x1e", b"").strip().split(b"\n")
        if said[:1] == b"\x1e" or b'"event":' in said[:20]
        else [said]
    )
    for _ in range(chance.randint(1, 4)):
        kind = chance.randrange(4)
        if kind < 2 and said.lstrip()[:1] in (b"{", b"[", b"\x1e"):
            at = chance.randrange(len(parts))
            try:
                parts[at] = json.dumps(in_values(json.loads(parts[at]), chance)).encode()
            except (ValueError, RecursionError):
                parts[at] = in_bytes(parts[at], chance)
            joint = b"\n\x1e" if said[:1] == b"\x1e" else b"\n"
            said = (b"\x1e" if said[:1] == b"\x1e" else b"") + joint.join(parts)
            continue
        said = (
            in_bytes(said, chance)
            if kind == 2
            else in_numbers(said, chance)
            if kind == 0
            else in_lines(said, other, chance)
        )
        parts = [said]
    return said


def late(*_: object) -> None:
    """An input took too long."""
    raise TimeoutError(f"took more than {INPUT_SECONDS} s of the processor")


def read(said: bytes) -> str:
    """What becomes of an input; anything but a recording and `BadInputError` is a failure."""
    from dragstrip.errors import BadInputError
    from dragstrip.interop.readers import parsed, summary
    from dragstrip.model.recording.definition import SCHEMA
    from dragstrip.results import measures

    try:
        name, found = parsed(said, "given")
        recording = found.recording({"engine": name, "source": "given", "source_sha256": ""})
    except BadInputError as error:
        assert "\n" not in str(error), error
        assert str(error).isprintable(), ascii(str(error))
        return "refused"
    for table, columns in SCHEMA.items():
        missing = set(columns) - set(recording[table].column_names)
        assert not missing, f"{table} lacks {missing}"
    flows = [{"file": "given", **flow} for flow in measures.flow_figures(recording)]
    probes = [{"file": "given", **probe} for probe in measures.probe_figures(recording)]
    document = {"flows": flows, "probes": probes, "notes": recording.provenance["notes"]}
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    summary.as_text({**document, "disciplines": [{"file": "given", **it} for it in found.disciplines]})
    return "read"


def batch(name: str, first: int, count: int, seconds: float) -> None:
    """Reads the inputs from this number on, in a process of its own; the last line says what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, late)
    outcomes: Counter[str] = Counter()
    end = time.monotonic() + seconds
    seed = first
    for seed in range(first, first + count):
        print(seed)
        said = damaged(name, seed)
        signal.setitimer(signal.ITIMER_PROF, INPUT_SECONDS)
        try:
            outcomes[read(said)] += 1
        except BaseException:
            sys.stdout.flush()
            raise
        signal.setitimer(signal.ITIMER_PROF, 0)
        if time.monotonic() > end:
            break
    print(json.dumps({"tried": seed - first + 1, "outcomes": outcomes}), flush=True)


@dataclass
class Ran:
    """How many inputs, what became of them, and what failed and is kept."""

    tried: int
    outcomes: Counter[str]
    why: str = ""
    kept: Path | None = None

    @property
    def replay(self) -> str:
        """The command."""
        return f"python fuzz/foreign.py --replay {self.kept}"


def run(name: str, first: int, count: int, seconds: float, failures: Path) -> Ran:
    """Inputs of a target until the count, the time or a failure."""
    ran, end = Ran(0, Counter()), time.monotonic() + seconds
    while ran.tried < count and (left := end - time.monotonic()) > 0:
        here = min(BATCH, count - ran.tried)
        start = first + ran.tried
        command = [
            sys.executable,
            __file__,
            name,
            "--seed",
            str(start),
            "--batch",
            str(here),
            "--seconds",
            str(left),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BATCH_SECONDS, check=False)  # noqa: S603
            status, said, why = done.returncode, done.stdout.split("\n"), done.stderr
        except subprocess.TimeoutExpired as error:
            status, said, why = (
                -1,
                (error.stdout or b"").decode().split("\n"),
                f"took more than {BATCH_SECONDS} s",
            )
        lines = [line for line in said if line]
        if status != 0:
            numbers = [int(line) for line in lines if line.isdigit()]
            seed = numbers[-1] if numbers else start
            ran.why, ran.kept = why, failures / f"{name}-{seed}"
            failures.mkdir(parents=True, exist_ok=True)
            ran.kept.write_bytes(damaged(name, seed))
            ran.tried += seed - start + 1
            return ran
        summary = json.loads(lines[-1])
        ran.tried += summary["tried"]
        ran.outcomes.update(summary["outcomes"])
    return ran


def main() -> int:
    """0: nothing found; 1: a failure was kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(NAMES))
    parser.add_argument("--count", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = asked.names or list(NAMES)
    for name in names:
        if name not in NAMES:
            parser.error(f"{name}: expected one of {', '.join(NAMES)}")
    if asked.replay is not None:
        print(read(asked.replay.read_bytes()))
        return 0
    seconds = float("inf") if asked.seconds is None else asked.seconds
    if asked.batch is not None:
        batch(names[0], asked.seed, asked.batch, seconds)
        return 0
    began = time.monotonic()
    count = asked.count or (REPEATED if asked.seconds is None else sys.maxsize)
    failures = Path(tempfile.mkdtemp(prefix="dragstrip-fuzz-")) if asked.summary else FAILURES
    tried, outcomes, found = 0, Counter[str](), []
    for name in names:
        ran = run(name, asked.seed, count, seconds / len(names) if asked.summary else seconds, failures)
        tried += ran.tried
        outcomes.update(ran.outcomes)
        if ran.kept is not None:
            found.append({"replay": ran.replay, "what": ran.why[-2000:]})
        if not asked.summary:
            print(
                f"{name}: {ran.tried} inputs, "
                + (f"failed; again:\n{ran.why}\n{ran.replay}" if ran.kept else "no failure")
            )
    if asked.summary:
        if not found:
            failures.rmdir()
        summary = {
            "kind": "fuzz-foreign",
            "wanted": tried if asked.count is None else asked.count * len(names),
            "tried": tried,
            "failures": found,
            "outcomes": dict(outcomes),
            "skipped": None,
            "seconds": round(time.monotonic() - began, 1),
        }
        print(json.dumps(summary))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
