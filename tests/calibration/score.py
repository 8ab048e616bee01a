"""What `diagnose` makes of each situation, and how often it is right.

    python -m tests.calibration.score -n 400 --details

prints figures of both halves, and with `--details` what was wrong in the half that may be looked at. The other
half (`situations.is_held_back`) is only counted.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from dragstrip.analysis.diagnosis.walk import diagnose
from dragstrip.errors import BadInputError

from . import files, situations, truth

ATTEMPTS = 25
"""Draws of a seed until a construction has its effect."""
SITUATIONS = 3000
TARGETS = {"certain": 0.99, "likely": 0.90, "nothing": 0.99, "named": 0.75}
"""Shares of right answers that are wanted: of what is called certain, likely, nothing; of causes that are named."""
TITLES = {
    "certain": "what is said *certain* is right",
    "likely": "what is said *likely* is right",
    "nothing": '"nothing is wrong" is right',
    "named": "the cause is named where the files can show it",
}


@dataclass(frozen=True)
class Claim:
    """A finding: how sure, and the causes that it names."""

    name: str
    certainty: str
    causes: tuple[str, ...]
    right: bool

    @property
    def tally(self) -> str:
        """The figure that it counts for."""
        return "nothing" if "nothing" in self.causes else self.certainty


@dataclass(frozen=True)
class Result:
    """A diagnosis of one set of files."""

    seed: int
    cause: str
    right: tuple[str, ...]
    files: str
    how: str
    shows: bool
    held_back: bool
    claims: tuple[Claim, ...] = ()
    refused: str = ""
    fault: str = ""
    race: str = ""
    figures: tuple[tuple[str, float], ...] = ()

    @property
    def named(self) -> bool:
        """Whether a finding has the cause among its own."""
        return any(self.cause in claim.causes for claim in self.claims)

    @property
    def named_alone(self) -> bool:
        """Whether a finding has the cause and no other."""
        return any(claim.causes == (self.cause,) for claim in self.claims)


@dataclass
class Figures:
    """Counts of right answers and of all, by what they are answers to."""

    right: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    alone: int = 0
    diagnoses: int = 0
    refused: int = 0

    def add(self, result: Result) -> None:
        """Count a diagnosis."""
        self.diagnoses += 1
        self.refused += bool(result.refused or result.fault)
        for claim in result.claims:
            self.all[claim.tally] += 1
            self.right[claim.tally] += claim.right
        if result.shows:
            self.all["named"] += 1
            self.right["named"] += result.named
            self.alone += result.named_alone

    def share(self, name: str) -> float | None:
        """Return the share of right answers."""
        return self.right[name] / self.all[name] if self.all[name] else None

    def cell(self, name: str) -> str:
        """Return right answers of all, and their share."""
        share = self.share(name)
        return "–" if share is None else f"{self.right[name]} of {self.all[name]} ({percent(share)})"


def percent(share: float) -> str:
    """Return a share such as `97.4 %`, which never rounds up to 100 %."""
    text = f"{share * 100:.1f} %"
    return "99.9 %" if text == "100.0 %" and share < 1 else text.replace(".0 %", " %")


def drawn(seed: int) -> tuple[situations.Situation, truth.Truth] | None:
    """Return the first situation of a seed whose construction has its effect, or None after many draws."""
    for attempt in range(ATTEMPTS):
        it = situations.situation(seed, attempt)
        true = truth.truth_of(it, situations.recording_of(it))
        if true.holds:
            return it, true
    return None


def chosen_sets(
    it: situations.Situation, true: truth.Truth, dice: random.Random
) -> list[tuple[tuple[str, ...], str]]:
    """Return two sets of files: one that can show the cause, if there is one, and any other."""
    possible = [(kinds, how) for kinds in files.sets_of(it, true) for how in _ways(it, kinds)]
    telling = [pair for pair in possible if files.can_show(it, true, *pair)]
    whole = [pair for pair in telling if pair[1] == "whole"]
    first = _one(whole if whole and dice.random() < 0.7 else telling or possible, dice)
    usual = [pair for pair in possible if pair[1] == "whole"]
    second = _one(usual if dice.random() < 0.6 else possible, dice)
    return list(dict.fromkeys((first, second)))


def _one(pairs: Sequence[tuple[tuple[str, ...], str]], dice: random.Random) -> tuple[tuple[str, ...], str]:
    """Return one of some sets; a set with captures, which fewer people have, half as often as another."""
    weights = [1 if set(kinds) & set(files.CAPTURES) else 2 for kinds, _ in pairs]
    return dice.choices(pairs, weights)[0]


def _ways(it: situations.Situation, kinds: Sequence[str]) -> tuple[str, ...]:
    if it.cause in ("no_answer", "receiver_closed"):
        return ("whole",)
    if set(kinds) <= {files.LISTING, files.SCRIPT}:
        return ("whole",)
    beside = () if files.IDLE in kinds or files.LOADED in kinds else ("beside another host's ping",)
    return ("whole", "cut", "late", *beside)


def results_of(seed: int) -> list[Result]:
    """Return the diagnoses of a seed's situation, none if no draw had its effect."""
    found = drawn(seed)
    if found is None:
        return []
    it, true = found
    dice = random.Random(f"files {seed}")  # noqa: S311 - no secret
    made = []
    with tempfile.TemporaryDirectory() as place:
        captures = Path(place) / "captures"
        captures.mkdir()
        sets = chosen_sets(it, true, dice)
        points = tuple(dict.fromkeys(point for kinds, _ in sets for point in files.points_of(it, kinds)))
        recording = situations.recording_of(it, captures, points)
        for number, (kinds, how) in enumerate(sets):
            folder = Path(place) / str(number)
            folder.mkdir()
            given = files.rendered(it, true, recording, captures, folder, kinds, how, dice)
            made.append(_result(it, true, given))
    return made


def _result(it: situations.Situation, true: truth.Truth, given: files.FileSet) -> Result:
    claims: list[Claim] = []
    refused = fault = ""
    try:
        document = diagnose(given.files, given.race, quiet=True, trials=False)
        for finding in document["findings"]:
            causes = tuple(finding.get("causes") or ())
            if finding["certainty"] in ("certain", "likely") and causes:
                right = bool(set(causes) & true.right_in(given.how))
                claims.append(Claim(finding["name"], finding["certainty"], causes, right))
    except BadInputError as error:
        refused = str(error).replace(str(given.files[0].parent), "")
        if it.cause == "no_answer" and "unable to connect" in refused:  # one line that says it
            claims.append(Claim("refused", "refused", ("no_answer",), True))
    except Exception:  # noqa: BLE001 - counted, and shown with its seed
        fault = traceback.format_exc(limit=-3)
    return Result(
        seed=it.seed,
        cause=it.cause,
        right=tuple(sorted(true.right_in(given.how))),
        files=given.name,
        how=given.how,
        shows=given.shows,
        held_back=it.held_back,
        claims=tuple(claims),
        refused=refused,
        fault=fault,
        race=" ".join(f"--{name} {value}" for name, value in given.race.items()),
        figures=tuple((name, round(value, 4)) for name, value in true.figures.items()),
    )


def diagnosed(
    seeds: Sequence[int], workers: int, progress: Callable[[int], None] | None = None
) -> list[Result]:
    """Return the diagnoses of all seeds, in their order."""
    if workers < 2:
        made = []
        for seed in seeds:
            made += results_of(seed)
            if progress is not None:
                progress(seed)
        return made
    made = []
    with ProcessPoolExecutor(workers) as pool:
        for seed, results in zip(seeds, pool.map(results_of, seeds, chunksize=8), strict=True):
            made += results
            if progress is not None:
                progress(seed)
    return made


def figures_of(results: Iterable[Result]) -> Figures:
    """Return the counts of some diagnoses."""
    figures = Figures()
    for result in results:
        figures.add(result)
    return figures


def halves(results: Sequence[Result]) -> dict[str, Figures]:
    """Return the figures of the half for development, of the half that is held back, and of both."""
    return {
        "development": figures_of(it for it in results if not it.held_back),
        "held back": figures_of(it for it in results if it.held_back),
        "both": figures_of(results),
    }


def summary(results: Sequence[Result]) -> list[str]:
    """Return the figures as lines of text."""
    lines = []
    for name, figures in halves(results).items():
        lines.append(f"{name}: {figures.diagnoses} diagnoses, {figures.refused} refused")
        for tally in TARGETS:
            share = figures.share(tally)
            reached = "" if share is None or share >= TARGETS[tally] else "   (below the target)"
            lines.append(f"  {tally:8} {figures.cell(tally)}{reached}")
        lines.append(f"  named alone {figures.alone} of {figures.all['named']}")
    return lines


def by(results: Sequence[Result], key: Callable[[Result], str]) -> dict[str, Figures]:
    """Return the figures by a property of the diagnoses."""
    names = sorted({key(it) for it in results})
    return {name: figures_of(it for it in results if key(it) == name) for name in names}


def details(results: Sequence[Result]) -> list[str]:
    """Return what was wrong or not named, of the half for development alone."""
    lines = []
    for it in results:
        if it.held_back:
            continue
        wrong = [claim for claim in it.claims if not claim.right]
        if not (wrong or it.fault or it.refused or (it.shows and not it.named)):
            continue
        said = (
            "; ".join(f"{claim.certainty} {claim.name} {list(claim.causes)}" for claim in it.claims)
            or "nothing said"
        )
        what = "WRONG" if wrong else "FAULT" if it.fault else "REFUSED" if it.refused else "UNNAMED"
        facts = " ".join(f"{name}={value:g}" for name, value in it.figures)
        lines.append(f"{what} {it.seed} {it.cause} [{it.files}, {it.how}] {it.race}: {said}")
        lines.append(f"    right: {', '.join(it.right)}; {facts} {it.refused}{it.fault}")
    return lines


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=SITUATIONS, help="situations (%(default)s)")
    parser.add_argument("--begin", type=int, default=0, help="first seed (%(default)s)")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--cause", help="only this cause")
    parser.add_argument("--details", action="store_true", help="what was wrong in the half for development")
    words = parser.parse_args()
    seeds = range(words.begin, words.begin + words.n)
    if words.cause:
        count = len(situations.CAUSES)
        at = situations.CAUSES.index(words.cause)
        seeds = range(at, at + count * words.n, count)
    began = time.monotonic()
    results = diagnosed(seeds, words.workers)
    if words.details:
        print("\n".join(details(results)))
    print("\n".join(summary(results)))
    for title, key in (
        ("cause", lambda it: it.cause),
        ("files", lambda it: it.files),
        ("how", lambda it: it.how),
    ):
        print(f"\nby {title}")
        for name, figures in by(results, key).items():
            cells = "  ".join(f"{tally} {figures.cell(tally)}" for tally in TARGETS)
            print(f"  {name:40} {cells}")
    print(f"\n{len(seeds)} situations, {time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
