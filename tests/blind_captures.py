"""Blind captures: random paths, one random congestion control each, captured at the sender, truth known.

    python tests/blind_captures.py --half held-back --skip 180 --count 16 --write-docs docs/reference/whatif.md

A situation is drawn from its number alone: rate, round trip, buffer or discipline, random loss, jitter, a
second flow from another host, and the algorithm. A hash of the number puts it into one of two halves: rules
and limits are made on `development`, figures are those of `held-back`. The first 180 of that half were used up:
trials with them gave the weights of the confidence, so that figures are of those behind.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.analysis.whatif import identify, walk
from dragstrip.engines.capture import CaptureRequest
from dragstrip.experiment.comparison import compare
from dragstrip.studies.execution.runner import captured, execute, plan

ALGORITHMS = (
    *("reno", "cubic", "bbr", "bic", "cdg", "highspeed", "htcp", "hybla", "illinois", "lp", "nv"),
    *("scalable", "vegas", "veno", "westwood", "yeah", "bbr3", "copa", "ledbat"),
)
"""Truths: Linux 6.1's without ECN, BBRv3, Copa and LEDBAT."""
HALVES = ("development", "held-back")
IP = 1500 / 1514
"""The simulator's links and queues count Ethernet frames, estimates IP packets."""
MARKS = ("<!-- from tests/blind_captures.py -->", "<!-- end of tests/blind_captures.py -->")
BANDS = (0.0, 0.5, 0.9, 0.95, 0.98, 1.0)
"""Bounds of the classes of confidence."""


@dataclass(frozen=True)
class Situation:
    """A run: its path, its algorithm, and what else happens there."""

    number: int
    algorithm: str
    rate_bps: int
    rtt_us: int
    queue: str
    buffer_bytes: int | None
    """Of a tail drop, in frames' bytes; None for other disciplines."""
    loss: float
    jitter_us: int
    beside: str
    """Algorithm of a second flow from another host; empty without one."""
    duration_s: int

    @property
    def kind(self) -> str:
        """What makes the path more than a tail drop."""
        if self.beside:
            return "second flow"
        if self.jitter_us:
            return "jitter"
        if self.loss:
            return "random loss"
        return "tail drop" if self.buffer_bytes is not None else self.queue.split()[0]

    def options(self) -> dict[str, Any]:
        """Return the situation as options of `compare`."""
        options: dict[str, Any] = {
            "rate": f"{self.rate_bps}bit",
            "rtt": f"{self.rtt_us}us",
            "queue": self.queue,
            "duration": f"{self.duration_s}s",
            "seed": 1000 + self.number,
        }
        if self.loss:
            options["loss"] = f"{100 * self.loss:.4g}%"
        if self.jitter_us:
            options["jitter"] = f"{self.jitter_us}us"
        if self.beside:
            options["together"] = True
        return options


def half(number: int) -> str:
    """Return the half that a situation belongs to."""
    return HALVES[hashlib.sha256(f"blind capture {number}".encode()).digest()[0] % 2]


def situations(which: str, count: int, skip: int = 0) -> Iterator[Situation]:
    """Yield situations of a half behind the first `skip`, each algorithm as often as any other."""
    given = 0
    number = 0
    while given < skip + count:
        if half(number) == which:
            if given >= skip:
                yield drawn(number, ALGORITHMS[given % len(ALGORITHMS)])
            given += 1
        number += 1


def drawn(number: int, algorithm: str) -> Situation:
    """Return the situation of this number: 1.5 to 40 Mbit/s, 8 to 160 ms, a third of a BDP to four."""
    dice = random.Random(number)  # noqa: S311 - no secret
    while True:
        rate, rtt_ms = 10 ** dice.uniform(6.176, 7.602), 10 ** dice.uniform(0.903, 2.204)
        share = 10 ** dice.uniform(-0.48, 0.602)
        bdp = rate * rtt_ms / 8e3
        if bdp * (1 + share) >= 12 * 1514 and bdp < 500e3:
            break
    buffer: int | None = round(max(6 * 1514, share * bdp))
    queue = f"bfifo limit {buffer}"
    kind = dice.random()
    if kind < 0.25:
        queue, buffer = dice.choice(("codel", "fq_codel", "pie", "fq_codel")), None
    loss = 10 ** dice.uniform(-3.3, -1.9) if dice.random() < 0.25 else 0.0
    jitter = round(1000 * dice.uniform(0.02, 0.1) * rtt_ms) if dice.random() < 0.2 else 0
    beside = dice.choice(("cubic", "reno", "bbr")) if dice.random() < 0.15 else ""
    return Situation(
        number,
        algorithm,
        round(rate),
        round(rtt_ms * 1e3),
        queue,
        buffer,
        loss,
        jitter,
        beside,
        dice.randrange(20, 41),
    )


def capture(situation: Situation, folder: Path) -> Path:
    """Run a situation unless it has been, and return the capture at its sender."""
    place = folder / f"{situation.number}-{situation.algorithm}"
    if not place.exists():
        algorithms = [situation.algorithm, *([situation.beside] if situation.beside else [])]
        planned = plan(compare(algorithms, **situation.options()))
        execute(captured(planned, CaptureRequest(points=("s1",))), place, report=False, workers=1)
    (file,) = place.glob("runs/000-*/captures/s1.pcapng")
    return file


@dataclass(frozen=True)
class Trial:
    """A situation with what was said of its capture."""

    situation: Situation
    answer: identify.Answer
    path: PathEstimate
    spent_s: float

    @property
    def result(self) -> str:
        """`right`, `wrong`, or the kind of an answer without a name."""
        if self.answer.kind != identify.GIVEN:
            return self.answer.kind
        return "right" if self.situation.algorithm in self.answer.names else "wrong"


def tried(situation: Situation, folder: Path) -> Trial:
    """Identify the algorithm of one situation from its capture alone."""
    file = capture(situation, folder)
    began = time.monotonic()
    flow, _, answer = walk.identify(file, None, quiet=True)
    return Trial(situation, answer, flow.path, time.monotonic() - began)


def recorded(trial: Trial) -> dict[str, Any]:
    """Return a trial as JSON keeps it."""
    estimates = {
        name: asdict(getattr(trial.path, name))
        for name in ("rate_bps", "base_rtt_ms", "buffer_bytes", "random_loss")
    }
    return {
        "situation": asdict(trial.situation),
        "kind": trial.situation.kind,
        "result": trial.result,
        "answer": trial.answer.document(),
        "queue": trial.path.queue,
        "estimates": estimates,
        "spent_s": trial.spent_s,
    }


def tried_again(situation: Situation, folder: Path) -> dict[str, Any]:
    """Return the record of a trial, made unless the folder has it."""
    place = folder / f"{situation.number}-{situation.algorithm}.json"
    if place.exists():
        kept: dict[str, Any] = json.loads(place.read_text())
        return kept
    record = recorded(tried(situation, folder))
    place.write_text(json.dumps(record))
    print(
        situation.number, situation.algorithm, situation.kind, record["result"], file=sys.stderr, flush=True
    )
    return record


# --- figures ----------------------------------------------------------------------------------------


def truths(record: dict[str, Any]) -> dict[str, float | None]:
    """Return the true values of what is estimated, at the IP layer."""
    situation = record["situation"]
    buffer = situation["buffer_bytes"]
    return {
        "rate_bps": situation["rate_bps"] * IP,
        "base_rtt_ms": situation["rtt_us"] / 1e3,
        "buffer_bytes": None if buffer is None else buffer * IP,
        "random_loss": situation["loss"],
    }


def held(name: str, record: dict[str, Any]) -> str:
    """Return `held` or `missed` for an interval, or `open` where no value is given."""
    estimate, truth = record["estimates"][name], truths(record)[name]
    if estimate["value"] is None or truth is None:
        return "open"
    # The option counts the path alone; a full packet takes its time on the link besides.
    spare = 8e3 * 1514 / record["situation"]["rate_bps"] if name == "base_rtt_ms" else 0.0
    return "held" if estimate["low"] - spare <= truth <= estimate["high"] else "missed"


def figures(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the share of captures with an answer and the share of these answers that are right."""
    results = Counter(record["result"] for record in records)
    answers = results["right"] + results["wrong"]
    return {"answered": answers / len(records), "right": results["right"] / max(1, answers)}


def page(records: Sequence[dict[str, Any]], which: str) -> Iterator[str]:
    """Yield the lines of the figures for docs/reference/whatif.md."""
    share = figures(records)
    yield f"Of {len(records)} captures of the {which} half, {100 * share['answered']:.0f} % got an answer, and"
    yield f"{100 * share['right']:.1f} % of the answers are right.\n"
    yield from _by("path", [(record["kind"], record["result"]) for record in records])
    yield from _by("truth", [(record["situation"]["algorithm"], record["result"]) for record in records])
    yield "| confidence | captures | mean confidence | nearest candidate is the truth |"
    yield "|---|---|---|---|"
    judged = [record for record in records if record["answer"]["candidates"]]
    for low, high in pairwise(BANDS):
        band = [record for record in judged if low <= record["answer"]["confidence"] < high]
        if band:
            mean = sum(record["answer"]["confidence"] for record in band) / len(band)
            right = sum(_nearest_is_true(record) for record in band)
            yield f"| {low:g} to {high:g} | {len(band)} | {mean:.2f} | {right} ({100 * right / len(band):.0f} %) |"
    yield ""
    yield "| of `inspect --infer` | interval holds the truth | misses it | no value |"
    yield "|---|---|---|---|"
    for name in ("rate_bps", "base_rtt_ms", "buffer_bytes", "random_loss"):
        counts = Counter(held(name, record) for record in records)
        yield f"| `{name}` | {counts['held']} | {counts['missed']} | {counts['open']} |"
    yield ""
    for record in records:
        if record["result"] == "wrong":
            situation, answer = record["situation"], record["answer"]
            yield (
                f"- {situation['algorithm']} was called {answer['answer']} ({record['kind']}, "
                f"confidence {100 * answer['confidence']:.0f} %)"
            )


def _by(title: str, results: Sequence[tuple[str, str]]) -> Iterator[str]:
    heads = ("right", "wrong", identify.UNCERTAIN, identify.NONE, identify.IMPOSSIBLE)
    yield f"| {title} | {' | '.join(heads)} |"
    yield "|---|---|---|---|---|---|"
    for name in sorted({name for name, _ in results}):
        counts = Counter(result for other, result in results if other == name)
        yield f"| {name} | {' | '.join(str(counts[head]) for head in heads)} |"
    yield ""


def _nearest_is_true(record: dict[str, Any]) -> bool:
    nearest, truth = record["answer"]["candidates"][0]["name"], record["situation"]["algorithm"]
    return nearest == truth or frozenset((nearest, truth)) in identify.SAME


def main() -> None:
    """Try the situations of a half, and print the figures or write them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--count", type=int, default=90)
    parser.add_argument("--skip", type=int, default=0, help="situations of the half to leave out first")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--write-docs", type=Path, metavar="FILE")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(asked.workers) as pool:
            every = list(situations(asked.half, asked.count, asked.skip))
            records = list(pool.map(tried_again, every, [folder] * len(every)))
    text = "\n".join(page(records, asked.half)).rstrip()
    if asked.write_docs is None:
        print(text)
        return
    before, rest = asked.write_docs.read_text().split(MARKS[0], 1)
    after = rest.split(MARKS[1], 1)[1]
    asked.write_docs.write_text(f"{before}{MARKS[0]}\n{text}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
