"""All passports and the harm of all pairs on one page: `python -m tools.results PAGE [--pairs]`.

It reads passports.json, which `make passports` stores, and pairs.json, both in `reference` beside the page. With
`--pairs` it first races all pairs and stores pairs.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip import __version__, _core
from dragstrip.display.quantity import listing
from dragstrip.experiment.comparison import command, compare
from dragstrip.experiment.expand import expand
from dragstrip.io.files import write_text
from dragstrip.runs import Task, run_all
from dragstrip.runs.pool import raise_failure

PATH: Mapping[str, Any] = {"rate": "50mbit", "rtt": "30ms", "queue": "1bdp", "duration": "60s"}
"""The path of the pairs, which is one of chapter `beside` of a passport."""
LATER = "+0.3s"
"""Start of the pair's first flow, as in a passport: two that start at once may stay in step."""
BAD = ("missed", "worse", "failed")
"""Verdicts that count against an algorithm; what CUBIC misses too does not."""


def race_pairs() -> dict[str, Any]:
    """Race every algorithm alone and beside each; return goodputs in bit/s by flow and neighbour."""
    names = list(_core.ALGORITHMS)
    pairs = [(first, second) for at, first in enumerate(names) for second in names[at:]]
    races = [([name], False) for name in names]
    races += [([first + LATER, second], True) for first, second in pairs]
    scenarios = [expand(compare(words, together=together, **PATH))[0].scenario for words, together in races]
    outcomes = run_all([Task(scenario, None) for scenario in scenarios])
    raise_failure(outcomes)
    goodputs = [[flow["goodput_bps"] for flow in (outcome.summary or {})["flows"]] for outcome in outcomes]
    beside: dict[str, dict[str, float]] = {name: {} for name in names}
    for (first, second), (first_bps, second_bps) in zip(pairs, goodputs[len(names) :], strict=True):
        beside[first][second], beside[second][first] = first_bps, second_bps
    return {
        "version": __version__,
        "path": dict(PATH),
        "alone": {name: bps for name, (bps,) in zip(names, goodputs[: len(names)], strict=True)},
        "beside": beside,
    }


def harm(pairs: Mapping[str, Any], doer: str, victim: str) -> float:
    """Return the share of its goodput alone that the victim loses beside the doer (Ware et al., HotNets 2019)."""
    return 1.0 - float(pairs["beside"][victim][doer]) / float(pairs["alone"][victim])


def page(passports: Mapping[str, Any], pairs: Mapping[str, Any]) -> str:
    """Return the page in Markdown."""
    return "\n".join([*_head(passports), *_chapters(passports), *_harm(pairs)]) + "\n"


def _head(passports: Mapping[str, Any]) -> Iterator[str]:
    yield "<!-- Written by `make passports` and `make results`: do not edit. -->"
    yield "# Results"
    yield ""
    yield f"{len(passports['algorithms'])} built-in algorithms by chapter of their [passports](how-to/passport.md),"
    yield "and the harm of every pair. On the site, a click on a column's head sorts by it."
    yield ""


def _chapters(passports: Mapping[str, Any]) -> Iterator[str]:
    titles = passports["chapters"]
    yield "## By chapter"
    yield f"Suite {passports['suite']}: rows of a chapter that the algorithm misses although CUBIC holds them, or in"
    yield "which it is worse than both CUBIC and Reno, in percent; less is better. A dash: no row of that chapter is"
    yield "about the algorithm. [Sentences and counts](reference/passports.md), [all rows](reference/passport-rows.md)."
    missing = sorted(set(_core.ALGORITHMS) - set(passports["algorithms"]))
    if missing:
        yield f"Not made with this suite yet: {listing([f'`{name}`' for name in missing])}."
    yield ""
    yield '<div class="sortable heat" markdown>'
    yield ""
    yield f"| algorithm | all | {' | '.join(titles.values())} |"
    yield "|---|" + "---:|" * (len(titles) + 1)
    for name, chapters in passports["algorithms"].items():
        cells = [_share(list(chapters.values()))]
        cells += [_share([chapters[chapter]] if chapter in chapters else []) for chapter in titles]
        yield f"| [`{name}`](reference/passports.md#{name.replace('_', '-')}) | {' | '.join(cells)} |"
    yield ""
    yield "</div>"
    yield ""


def _share(chapters: Sequence[Mapping[str, Any]]) -> str:
    """Return the share of bad rows in percent, or a dash without rows."""
    rows = sum(chapter["rows"] for chapter in chapters)
    bad = sum(chapter["verdicts"].get(name, 0) for chapter in chapters for name in BAD)
    return f"{100 * bad / rows:.0f}" if rows else "–"


def _harm(pairs: Mapping[str, Any]) -> Iterator[str]:
    names = list(pairs["alone"])
    path = pairs["path"]
    yield "## Harm, all pairs"
    yield f"A flow of the row's algorithm beside one of the column's at {path['rate']}, {path['rtt']}, {path['queue']},"
    yield f"for {path['duration']}: the share of its goodput alone that the column's flow loses, in percent (harm, Ware et"
    yield "al., HotNets 2019). Two equal flows that share the link equally harm each other by 50. A negative figure: more"
    yield "than alone. One run with seed 1 for each pair; the algorithm that comes first in the table starts 0.3 s"
    yield "after the other. For other paths:"
    yield ""
    yield f"    {command(['bbr' + LATER, 'cubic'], {**path, 'together': True})}"
    yield ""
    yield '<div class="sortable heat" markdown>'
    yield ""
    yield f"| by \\ to | median | {' | '.join(f'`{name}`' for name in names)} |"
    yield "|---|" + "---:|" * (len(names) + 1)
    for doer in names:
        harms = [100 * harm(pairs, doer, victim) for victim in names]
        median = sorted(harms)[len(harms) // 2]
        yield f"| `{doer}` | {median:.0f} | {' | '.join(f'{value:.0f}' for value in harms)} |".replace(
            "-0 |", "0 |"
        )
    yield ""
    yield "</div>"


def stored(folder: Path, name: str) -> dict[str, Any]:
    """Return a stored document of the page's folder."""
    return dict(json.loads((folder / "reference" / name).read_text()))


def main(to: str, *options: str) -> None:
    """Write the page; with `--pairs` race all pairs first."""
    target = Path(to)
    folder = target.parent
    if "--pairs" in options:
        text = json.dumps(race_pairs(), indent=1, sort_keys=True)
        write_text(folder / "reference/pairs.json", text + "\n")
    write_text(target, page(stored(folder, "passports.json"), stored(folder, "pairs.json")))


if __name__ == "__main__":
    main(*sys.argv[1:])
