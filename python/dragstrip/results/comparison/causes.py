"""Causes that explain the repeats of a run, with medians; causes of most repeats come first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from dragstrip.display import quantity
from dragstrip.display.quantity import number
from dragstrip.results.comparison.setups import Json

_NUMBER = re.compile(
    r"(?<![\w.\-])(\d{1,18}(?:\u2009\d{3}){0,6}(?:\.\d{1,9})?)"
    r"(?: ([kMG]?bit/s|[kMG]?B|[mµ]?s|%)(?![\w/]))?(?![\w.\-]{0,2}\w)"
)
"""A number in a sentence with its unit; digits in a label such as `cubic-2` are none."""
_GETS, _TIMES = "gets ", " times the goodput of "
_RATES = re.compile(r" \(\d[\d.]{0,9} [kMG]?bit/s and \d[\d.]{0,9} [kMG]?bit/s\)")
"""The text after the name of the flow with the lower goodput."""
_FACTORS = {"k": 1e3, "M": 1e6, "G": 1e9, "µ": 1e-3}
"""Factors of units, to bit/s, bytes and ms."""


_TEXTS = {"bit/s": quantity.rate, "B": quantity.size, "ms": quantity.milliseconds}


@dataclass(frozen=True)
class Cause:
    """A cause of repeats: its sentence, and in how many of them it holds."""

    rule: str
    flows: tuple[str, ...]
    sentence: str
    holds: int
    repeats: int
    without: Json | None
    """Results of runs without the cause, if they were made."""

    @property
    def leads(self) -> bool:
        """True when most repeats show the cause."""
        return 2 * self.holds > self.repeats

    @property
    def extent(self) -> str:
        """In how many repeats it holds, in words; empty for one run."""
        return f"holds in {self.holds} of {self.repeats} repeats" if self.repeats > 1 else ""


def causes(runs: Sequence[Json]) -> list[Cause]:
    """Return the causes that repeats name: those of most repeats first, of these the strongest first."""
    groups: dict[tuple[str, ...], list[tuple[int, int, Json]]] = {}
    for place, run in enumerate(runs):
        for rank, finding in enumerate(run.get("why") or []):
            members = groups.setdefault(group_of(finding), [])
            if all(place != member_place for member_place, _, _ in members):
                members.append((place, rank, finding))
    ranked = [(_cause(runs, members), median(rank for _, rank, _ in members)) for members in groups.values()]
    ordered = sorted(ranked, key=lambda entry: (not entry[0].leads, entry[1]))
    return [cause for cause, _ in ordered]


def group_of(finding: Json) -> tuple[str, ...]:
    """Return what findings of one cause have in common: the rule, and of unequal flows which gets more."""
    rule = str(finding.get("rule"))
    return (rule, *map(str, finding.get("flows") or [])) if rule == "unfair_share" else (rule,)


def _cause(runs: Sequence[Json], members: Sequence[tuple[int, int, Json]]) -> Cause:
    findings = [finding for _, _, finding in members]
    sentences = [str(finding.get("sentence", "")) for finding in findings]
    (common, _), *_ = Counter(map(_skeleton, sentences)).most_common()
    alike = [place for place, sentence in enumerate(sentences) if _skeleton(sentence) == common]
    first = findings[alike[0]]
    sentence = _merged([sentences[place] for place in alike])
    if first.get("rule") == "unfair_share" and len(runs) > 1:
        sentence = _with_goodputs(sentence, runs, findings)
    return Cause(
        rule=str(first.get("rule")),
        flows=tuple(map(str, first.get("flows") or [])),
        sentence=sentence,
        holds=len(members),
        repeats=len(runs),
        without=next((finding["without"] for finding in findings if finding.get("without")), None),
    )


def _prose(sentence: str) -> list[str]:
    """Return the parts of a sentence; every second one is a command, whose numbers are no figures."""
    return sentence.split("`")


def _family(unit: str | None) -> str:
    if unit == "µs":
        return "ms"
    return unit.lstrip("kMG") if unit and unit.endswith(("bit/s", "B")) else unit or ""


def _skeleton(sentence: str) -> str:
    parts = _prose(sentence)
    parts[::2] = [_NUMBER.sub(lambda match: f"\0{_family(match[2])}", part) for part in parts[::2]]
    return "`".join(parts)


def _merged(sentences: Sequence[str]) -> str:
    """Return sentences that differ in their numbers alone as one, with the median of each number."""
    if len(set(sentences)) == 1:
        return sentences[0]
    parts = [_prose(sentence) for sentence in sentences]
    merged = list(parts[0])
    for place in range(0, len(merged), 2):
        columns = zip(*([*_NUMBER.finditer(part[place])] for part in parts), strict=True)
        texts = iter([_middle(column) for column in columns])
        merged[place] = _NUMBER.sub(partial(_next, texts), merged[place])
    return "`".join(merged)


def _next(texts: Iterator[str], _: re.Match[str]) -> str:
    return next(texts)


def _middle(matches: Sequence[re.Match[str]]) -> str:
    texts = [match[0] for match in matches]
    if len(set(texts)) == 1:
        return texts[0]
    scaled = [
        float(match[1].replace("\u2009", "")) * _FACTORS.get((match[2] or " ")[0], 1.0) for match in matches
    ]
    if len(texts) % 2:
        return sorted(zip(scaled, texts, strict=True))[len(texts) // 2][1]
    family = _family(matches[0][2])
    value = median(scaled)
    if family in _TEXTS:
        return _TEXTS[family](value)
    if not family and all("." not in text for text in texts):
        return quantity.count(value)
    return f"{quantity.digits(value)} {family}".rstrip()


def _with_goodputs(sentence: str, runs: Sequence[Json], findings: Sequence[Json]) -> str:
    """Return the sentence with the medians of both goodputs, and their ratio instead of a median of ratios.

    They are those of all repeats, as in the table, unless they are of a part of the run.
    """
    labels = [str(label) for label in (findings[0].get("flows") or [])[:2]]
    figures: Sequence[Any] = [finding.get("figures") or {} for finding in findings]
    rates = [
        median(finding_figures.get(name, 0.0) for finding_figures in figures)
        for name in ("most_bps", "least_bps")
    ]
    if not any("from_s" in finding_figures for finding_figures in figures):
        whole = [
            [
                number(flow.get("goodput_bps"))
                for run in runs
                for flow in run["flows"]
                if flow["label"] == label
            ]
            for label in labels
        ]
        if all(None not in column and column for column in whole):
            rates = [median(value for value in column if value is not None) for column in whole]
    most, least = rates
    if least <= 0:
        return sentence
    ratio = most / least
    times = quantity.digits(ratio) if ratio < 100 else "more than 100"

    head, times_of, tail = sentence.partition(_TIMES)
    rates_match = _RATES.search(tail)
    before, gets, _ = head.rpartition(_GETS)
    if not times_of or not gets or rates_match is None:
        return sentence
    goodputs = f" ({quantity.rate(most)} and {quantity.rate(least)})"
    return f"{before}{gets}{times}{_TIMES}{tail[: rates_match.start()]}{goodputs}{tail[rates_match.end() :]}"
