"""`dragstrip identify` and `dragstrip whatif` against runs whose truth is known, as docs/reference/whatif.md.

    python bench/whatif.py --write-docs docs/reference/whatif.md --real FOLDER --nebby CLONE

Each run is captured at its sender; path and algorithm are inferred from that file alone. `--keep FOLDER`
keeps the captures and takes them from there the next time. The limits of the answers are those of
tests/blind_captures.py, whose figures stand at the end of the page and are kept.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import nebby

from dragstrip.analysis.whatif import flow_trace, identify, walk
from dragstrip.analysis.whatif.flow_trace import FlowTrace
from dragstrip.analysis.whatif.verdict import Verdict, figures
from dragstrip.analysis.whatif.wording import WIDE, wide
from dragstrip.engines.capture import CaptureRequest
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.race import RaceOptions
from dragstrip.io.files import read_json, write_text
from dragstrip.model.recording import read
from dragstrip.studies.execution.runner import captured, execute, plan

PAGE = "docs/reference/whatif.md"
BLIND = "## `identify`: blind captures"
"""From here on the page is that of tests/blind_captures.py."""
KERNEL = ("cubic", "bbr", "reno", "vegas", "htcp", "illinois", "westwood", "bic")
"""What is predicted on a kernel."""
RACED = ("cubic", "bbr", "reno", "vegas", "illinois")
"""Each of them is predicted from each other's capture."""
GRID = {
    "10 Mbit/s, 40 ms, 1 BDP": {"rate": "10mbit", "rtt": "40ms", "queue": "1bdp"},
    "10 Mbit/s, 40 ms, 4 BDP": {"rate": "10mbit", "rtt": "40ms", "queue": "4bdp"},
    "20 Mbit/s, 80 ms, 0.5 BDP": {"rate": "20mbit", "rtt": "80ms", "queue": "0.5bdp"},
    "4 Mbit/s, 120 ms, 2 BDP": {"rate": "4mbit", "rtt": "120ms", "queue": "2bdp"},
    "30 Mbit/s, 25 ms, 1.5 BDP": {"rate": "30mbit", "rtt": "25ms", "queue": "1.5bdp"},
}
KERNEL_GRID = {
    "8 Mbit/s, 50 ms, 1.5 BDP": {"rate": "8mbit", "rtt": "50ms", "queue": "1.5bdp"},
    "4 Mbit/s, 90 ms, 100 ms": {"rate": "4mbit", "rtt": "90ms", "queue": "100ms"},
}
DURATION = {"sim": "30s", "vm": "25s"}
SEED = {"sim": 11, "vm": 1}
DRAWN = {"sim": range(100, 104), "vm": (109,)}
"""Seeds of the paths on which every algorithm is identified; on a kernel a run takes a minute."""
GOODPUT, RTT, ORDER = 0.05, 0.10, 0.90
"""The targets: errors of a prediction, and the share of pairs that are put into the right order."""
APART = {"goodput_bps": 0.01, "rtt_ms_p50": 0.02}
"""Two algorithms are apart in a figure from this share on; otherwise there is no order to be right about."""


def drawn(seed: int) -> dict[str, str]:
    """Return a path: 2 to 30 Mbit/s, 10 to 120 ms, half a BDP to four, and at least 12 packets in all."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    while True:
        rate = 10 ** dice.uniform(6.301, 7.477)
        rtt = 10 ** dice.uniform(1.0, 2.079)
        share = 10 ** dice.uniform(-0.301, 0.602)
        bdp = rate * rtt / 8e3
        if bdp * (1 + share) >= 12 * 1514:
            break
    queue = f"bfifo limit {round(max(6000.0, share * bdp))}"
    return {"rate": f"{round(rate)}bit", "rtt": f"{round(rtt * 1000)}us", "queue": queue}


@dataclass(frozen=True)
class Captured:
    """A run with the capture at its sender."""

    path: str
    algorithm: str
    file: Path
    truth: FlowTrace


def runs(
    folder: Path, name: str, options: dict[str, str], algorithms: Sequence[str], engine: str
) -> list[Captured]:
    """Return the runs of a path, made unless they are there; none may be missing from a table."""
    place = folder / f"{engine}-{name.replace('/', '').replace(' ', '-').replace(',', '')}"
    if not place.exists():
        race: RaceOptions = {**options, "duration": DURATION[engine], "seed": SEED[engine]}  # type: ignore[typeddict-item]
        described = compare(algorithms, engine=engine, **race)
        execute(captured(plan(described), CaptureRequest(points=("s1",))), place, report=False)
    result, found = read_json(place / "result.json"), []
    if result["failed"]:
        raise SystemExit(f"{name}: {result['failed'][0]['reason']}")
    for run in result["runs"]:
        at = place / run["recording"]
        (flow,) = run["flows"]
        truth = flow_trace.of_recording(read(at))
        found.append(Captured(name, flow["cc"], at / "captures" / "s1.pcapng", truth))
    return found


# --- identify ---------------------------------------------------------------------------------------


def identified(every: Sequence[Captured]) -> list[str]:
    """Return a table of answers, one line an algorithm, and the sums."""
    kinds: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    spent = 0.0
    for one in every:
        began = time.process_time()
        _, _, answer = walk.identify(one.file, None, quiet=True)
        spent += time.process_time() - began
        kind = answer.kind
        if kind == identify.GIVEN:
            kind = "right" if one.algorithm in answer.names else "wrong"
        kinds.setdefault(one.algorithm, Counter())[kind] += 1
        told(f"{one.path}: {one.algorithm}: {kind} {', '.join(answer.names)} ({answer.reason})")
        if kind == "wrong":
            wrong.append(f"{one.algorithm} was called {answer.names[0]} on {one.path}")
        elif kind in (identify.NONE, identify.IMPOSSIBLE):
            wrong.append(f"{one.algorithm} on {one.path}: {kind} ({answer.reason})")
    total = sum(kinds.values(), Counter[str]())
    answers = total["right"] + total["wrong"]
    heads = ("right", "wrong", identify.UNCERTAIN, identify.NONE, identify.IMPOSSIBLE)
    lines = [f"| truth | {' | '.join(heads)} |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {' | '.join(str(counts[head]) for head in heads)} |"
        for name, counts in sorted(kinds.items())
    ]
    lines += [f"| **all** | {' | '.join(f'**{total[head]}**' for head in heads)} |", ""]
    share = f"{100 * total['right'] / answers:.1f} %" if answers else "none"
    lines += [
        f"Of {total.total()} captures, {answers} got an answer "
        f"({100 * (1 - answers / total.total()):.1f} % none); {share} of the answers are right.",
        f"A capture takes {spent / total.total():.1f} s of processor time.",
        "",
        *(f"- {said}" for said in wrong),
    ]
    return lines


# --- what if ----------------------------------------------------------------------------------------


@dataclass
class Tally:
    """How the predictions of one group fared."""

    goodput: list[float]
    rtt: list[float]
    pairs: int = 0
    right: int = 0
    refused: int = 0
    ranges: int = 0
    inside: int = 0
    """Of the ranges, those that hold the truth."""


def predicted(every: Sequence[Captured]) -> list[str]:
    """Return a table of predictions, one line a path and an algorithm whose capture they come from."""
    lines = [
        "| path | from a capture of | explained | goodput off by | median RTT off by | ranges | in order |",
        "|---|---|---|---|---|---|---|",
    ]
    whole = Tally([], [])
    notes = []
    for path in dict.fromkeys(one.path for one in every):
        mine = [one for one in every if one.path == path and one.algorithm in RACED]
        for source in mine:
            others = [one for one in mine if one is not source]
            try:
                verdict = walk.whatif(
                    source.file,
                    [one.algorithm for one in others],
                    sender_algorithm=source.algorithm,
                    name=None,
                    changes={},
                    anyway=False,
                    quiet=True,
                )
            except BadInputError as error:
                whole.refused += len(others)
                lines.append(f"| {path} | {source.algorithm} | refused | – | – | – | – |")
                notes.append(f"{source.algorithm} on {path}: {error.explanation}")
                told(lines[-1] + notes[-1])
                continue
            if verdict.refused:
                whole.refused += len(others)
                lines.append(f"| {path} | {source.algorithm} | {verdict.fit.grade} | – | – | – | – |")
                notes.append(f"{source.algorithm} on {path}: {'; '.join(verdict.reasons)}")
                told(lines[-1] + notes[-1])
                continue
            lines.append(_line(path, source, others, verdict, whole))
            told(lines[-1])
    lines += ["", *_sums(whole), "", *(f"- {note}" for note in notes)]
    return lines


def _sums(whole: Tally) -> list[str]:
    count = len(whole.goodput) + len(whole.rtt)
    if not count:
        return ["Nothing was predicted."]
    pairs = ((whole.goodput, GOODPUT), (whole.rtt, RTT))
    near = [100 * sum(error <= most for error in errors) / len(errors) for errors, most in pairs]
    return [
        f"Of {len(whole.goodput)} predictions of goodput, {near[0]:.1f} % are within {100 * GOODPUT:.0f} %;",
        f"of {len(whole.rtt)} of the median RTT, {near[1]:.1f} % are within {100 * RTT:.0f} %.",
        f"{whole.ranges} more figures are only known as a range wider than {100 * WIDE:.0f} % of the figure,",
        f"because the capture does not show the buffer; {whole.inside} of these ranges hold the truth.",
        f"{100 * whole.right / max(whole.pairs, 1):.1f} % of {whole.pairs} pairs are in the right order.",
        f"{whole.refused} predictions were refused.",
    ]


def _line(path: str, source: Captured, others: Sequence[Captured], verdict: Verdict, whole: Tally) -> str:
    found = {one.algorithm: one for one in verdict.predictions}
    truth = {one.algorithm: figures(one.truth) for one in others}
    worst = []
    pairs = right = ranges = 0
    for figure, kept in (("goodput_bps", whole.goodput), ("rtt_ms_p50", whole.rtt)):
        errors = []
        for name in truth:
            true, one = _of(truth, name, figure), found[name].of(figure)
            assert one is not None
            if wide(one):
                ranges += 1
                whole.inside += one[1] <= true <= one[2]
            else:
                errors.append(abs(one[0] / true - 1))
        kept += errors
        worst.append(f"{100 * max(errors):.1f} %" if errors else "–")
        for name, other in combinations(truth, 2):
            ahead = _of(truth, name, figure) / _of(truth, other, figure) - 1
            one, two = found[name].of(figure), found[other].of(figure)
            if abs(ahead) >= APART[figure] and one is not None and two is not None:
                pairs += 1
                right += (one[0] > two[0]) == (ahead > 0)
    whole.pairs += pairs
    whole.right += right
    whole.ranges += ranges
    cells = [path, source.algorithm, verdict.fit.grade, *worst, str(ranges), f"{right} of {pairs}"]
    return f"| {' | '.join(cells)} |"


def _of(table: dict[str, dict[str, float | None]], name: str, figure: str) -> float:
    value = table[name][figure]
    assert value is not None
    return value


# --- real captures ----------------------------------------------------------------------------------


def real(folder: Path) -> Iterator[str]:
    """Yield how many captures of CUBIC behind policers and shapers a run explains, and why not."""
    grades: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    names: Counter[str] = Counter()
    files = sorted(file for file in folder.iterdir() if ".pcap" in file.name)
    for file in files:
        answer = walk.identify(file, None, quiet=True)[2]
        names[answer.name or answer.kind] += 1
        told(f"{file.name}: {answer.kind} {', '.join(answer.names)}: {answer.reason}")
        try:
            verdict = walk.whatif(
                file, ["bbr"], sender_algorithm="cubic", name=None, changes={}, anyway=False, quiet=True
            )
        except BadInputError as error:
            grades["path not inferred"] += 1
            told(f"{file.name}: {error.explanation}")
            continue
        grades[verdict.fit.grade] += 1
        told(f"{file.name}: {verdict.fit.grade}: {'; '.join(verdict.reasons)}")
        if verdict.refused:
            kinds = {
                "other flow": "other flows of the capture share the path",
                "the application": "the application had nothing to send for a part of the time",
                "the RTT rises": "the RTT grows while the flight is flat",
                "least RTT": "the least RTT moves",
            }
            known = [text for mark, text in kinds.items() if any(mark in said for said in verdict.reasons)]
            reasons.update(known or ["no cause was found beyond the errors themselves"])
    yield "| a run of CUBIC on the inferred path | captures |"
    yield "|---|---|"
    yield from (f"| {grade} | {count} |" for grade, count in grades.most_common())
    yield ""
    yield "What contradicts the path in those that are not explained (several may):\n"
    yield from (f"- {reason}: {count}" for reason, count in reasons.most_common())
    yield "\n`identify` says of them:\n"
    yield from (f"- {name}: {count}" for name, count in names.most_common())


# --- the page ---------------------------------------------------------------------------------------


def told(line: str) -> None:
    """Print a line as soon as it is known."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def page(
    folder: Path, engines: Sequence[str], parts: Sequence[str], captures: Path | None, clone: Path | None
) -> Iterator[str]:
    """Yield the page's lines."""
    yield f"<!-- Written by `python bench/whatif.py --write-docs {PAGE}`: do not edit. -->"
    yield "# How good `identify` and `whatif` are\n"
    yield "Both get captures at the sender, of runs whose path and algorithm are known, and nothing else."
    yield "[How they work](../how-to/whatif.md) says what the words mean. Written by\n"
    yield f"    python bench/whatif.py --write-docs {PAGE} --real FOLDER --nebby CLONE\n"
    for engine in engines:
        where = {"sim": "the simulator", "vm": "a Linux kernel (`--engine vm`)"}[engine]
        if "identify" in parts:
            yield f"## `identify`: captures of {where}\n"
            yield from _identify(folder, engine)
            yield ""
        if "whatif" in parts:
            yield f"## `whatif`: captures of {where}\n"
            yield from _whatif(folder, engine)
            yield ""

    if captures is not None:
        yield "## Real captures\n"
        yield "Senders with Linux's CUBIC behind policers and shapers, most with several flows at once, from"
        yield "[USC-NSL/policing-detection](https://github.com/USC-NSL/policing-detection) (SIGCOMM"
        yield "2016). No other algorithm's run is there to compare with, only whether `whatif` goes on.\n"
        yield from real(captures)
        yield ""
    if clone is not None:
        yield from nebby.page(clone, told)


def _identify(folder: Path, engine: str) -> Iterator[str]:
    named = [(f"path {seed}", drawn(seed)) for seed in DRAWN[engine]]
    yield "The paths are drawn at random:\n"
    yield from (f"- {name}: {path['rate']}, {path['rtt']}, {path['queue']}" for name, path in named)
    yield ""
    yield "The target: 95 % of the answers right, 15 % of the captures or less without an answer. Those that"
    yield "are *uncertain* got several names. TCP-LP is Reno in seven of eight connections and right as it.\n"
    yield from identified(
        [run for name, path in named for run in runs(folder, name, path, identify.CANDIDATES, engine)]
    )


def _whatif(folder: Path, engine: str) -> Iterator[str]:
    grid, raced = (GRID, RACED) if engine == "sim" else (KERNEL_GRID, KERNEL)
    yield "The path is inferred from the capture of one algorithm, and the others' runs on the true path are"
    yield "predicted. The target: goodput within 5 %, median RTT within 10 %, and nine of ten pairs of"
    yield "algorithms in the right order, of those truly apart (1 % in goodput, 2 % in RTT). *Off by*: the"
    yield "greatest error of the line.\n"
    yield from predicted(
        [run for name, path in grid.items() for run in runs(folder, name, path, raced, engine)]
    )


def _blind(written: Path) -> str:
    """Return what tests/blind_captures.py has written into the page, to keep it."""
    text = written.read_text() if written.exists() else ""
    at = text.find(BLIND)
    return "" if at < 0 else f"\n{text[at:]}"


def main() -> None:
    """Run the trials, and print the page or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    parser.add_argument("--engine", nargs="+", choices=list(DURATION), default=list(DURATION))
    parser.add_argument("--part", nargs="+", choices=["identify", "whatif"], default=["identify", "whatif"])
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--real", type=Path, metavar="FOLDER", help="captures of policing-detection")
    parser.add_argument("--nebby", type=Path, metavar="CLONE", help="a clone of NUS-SNL/Nebby")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        text = "\n".join(page(folder, asked.engine, asked.part, asked.real, asked.nebby)).rstrip() + "\n"
        text = re.sub(r"\n{3,}", "\n\n", text)
    if asked.write_docs is None:
        print(text)  # noqa: T201
    else:
        write_text(asked.write_docs, text + _blind(asked.write_docs))


if __name__ == "__main__":
    main()
