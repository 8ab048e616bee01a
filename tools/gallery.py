"""The gallery of races: `python -m tools.gallery PAGE` writes docs/gallery.md and its pictures.

The races are in tools/gallery.toml. Each is run, its picture drawn as the report's small figure, and its claim
checked. The pictures are in `images/gallery` beside the page.
"""

from __future__ import annotations

import json
import operator
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from dragstrip.display import quantity
from dragstrip.display.colours import INK, assign
from dragstrip.experiment.comparison import command, compare
from dragstrip.io import files
from dragstrip.report import render, timeline
from dragstrip.report.collect import curves_of
from dragstrip.report.load import load
from dragstrip.report.picture import FONT
from dragstrip.report.series import decimate
from dragstrip.results.comparison.setups import Setup, algorithms_of, setups_of
from dragstrip.results.comparison.stats import Row, rows_of
from dragstrip.studies.execution.runner import execute, plan
from tools.address import address, pages

RACES = Path(__file__).with_suffix(".toml")
PLAYGROUND = "playground/index.html"
"""The page in the site that opens a link."""
FIELDS = (
    "path",
    "rate",
    "medium",
    "rtt",
    "queue",
    "workload",
    "duration",
    "stagger",
    "loss",
    "jitter",
    "netem",
    "up_rate",
    "up_netem",
    "receiver_cc",
    "seed",
)
"""Options with a text field in the page (playground/src/options.ts); a link has others in `more`."""
OWN_VALUES = {"rate": "", "rtt": "", "queue": ""}
"""Fields that the page's first race fills: a link without one says so."""
POINTS = 200
"""Points of a curve in a picture 250 points wide."""
LEGEND, LEGEND_LEFT, LETTER = 20, 42, 6.2
"""Height of the legend, its left end, and the width of a letter of 11 points, in SVG units."""
OFFSET = f'<svg y="{LEGEND}" '
CLAIM = re.compile(r"(\w)\.(\w+) ([<>]) (?:([\d.]+)(?: \* (\w)\.(\w+))?|(\w)\.(\w+))")
COMPARISONS = {"<": operator.lt, ">": operator.gt}


@dataclass(frozen=True)
class Race:
    """A race of the gallery; `text` has the names of figures in braces, `holds` its claims."""

    name: str
    title: str
    algorithms: Sequence[str]
    race: Mapping[str, Any]
    text: str
    holds: Sequence[str]


@dataclass(frozen=True)
class Figures:
    """Figures of a contender: bit/s, ms, and shares of 1."""

    goodput: float
    rtt: float
    ping: float
    share: float
    resent: float
    jain: float

    def number(self, name: str) -> float:
        """Return a figure in the units of claims: Mbit/s, ms and percent."""
        value = float(getattr(self, name))
        return value * {"goodput": 1e-6, "share": 100, "resent": 100}.get(name, 1)

    def texts(self) -> SimpleNamespace:
        """Return all figures as text with units."""
        return SimpleNamespace(
            goodput=quantity.rate(self.goodput),
            rtt=quantity.milliseconds(self.rtt),
            ping=quantity.milliseconds(self.ping),
            share=quantity.percent(self.share),
            resent=quantity.percent(self.resent),
            jain=f"{self.jain:.2f}",
        )


def races() -> list[Race]:
    """Return the races of the gallery."""
    return [Race(**entry) for entry in tomllib.loads(RACES.read_text())["race"]]


def fragment(algorithms: Sequence[str], race: Mapping[str, Any]) -> str:
    """Return the race as the playground's link has it (playground/src/link.ts), without a recording's hash."""
    options = {**OWN_VALUES, "duration": "30s", "seed": 1, **race}
    parts = ["#1", f"cc={','.join(_coded(name) for name in algorithms)}"]
    parts += [f"{name}={_coded(str(options[name]))}" for name in FIELDS if name in options]
    if options.get("together"):
        parts.append("together=1")
    more = {name: value for name, value in options.items() if name not in FIELDS and name != "together"}
    if more:
        parts.append(f"more={_coded(json.dumps(more, sort_keys=True))}")
    return "&".join(parts)


def _coded(text: str) -> str:
    return quote(text, safe="@=:!~*'-._").replace("%20", "+")


def write_gallery(page: Path) -> None:
    """Write the page and its pictures; raises `ValueError` for a claim that does not hold."""
    images = page.parent / "images" / "gallery"
    files.make_folder(images)
    entries = []
    for race in races():
        picture, text = run(race)
        files.write_text(images / f"{race.name}.svg", picture)
        entries.append("\n".join(_entry(race, text)))
    files.write_text(page, "\n".join([*_head(len(entries)), *entries, "</div>", ""]))


def run(race: Race) -> tuple[str, str]:
    """Run a race and return its picture as SVG and its text; raises `ValueError` if a claim is false."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        execute(plan(compare(race.algorithms, **race.race)), out, report=False)
        bundle = load(out)
        (setup,) = setups_of(bundle.runs, assign(algorithms_of(bundle.runs)))
        figures = dict(zip(ascii_lowercase, map(_figures, rows_of(setup)), strict=False))
        for claim in race.holds:
            if not holds(claim, figures):
                values = {key: vars(figure.texts()) for key, figure in figures.items()}
                raise ValueError(f"{race.name}: {claim} is false: {values}")
        text = race.text.format(**{key: figure.texts() for key, figure in figures.items()})
        return _picture(race, setup), text


def _picture(race: Race, setup: Setup) -> str:
    """Return the report's small figure below a legend of the contenders."""
    curves = curves_of(setup)
    for panel in (panel for entry in curves for panel in entry.panels.values()):
        panel.main = [decimate(curve, POINTS) for curve in panel.main]
    (figure,) = timeline.multiples([(setup, curves)])
    picture = render.svg(figure, f"{race.name}-")
    width, height = (float(part) for part in picture.split('viewBox="0 0 ', 1)[1].split('"')[0].split())
    left, legend = float(LEGEND_LEFT), []
    for contender in setup.contenders:
        dash = ",".join(f"{part:g}" for part in contender.dash)
        legend.append(
            f'<path d="M{left:g},9h18" stroke="{contender.colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
            f'<text x="{left + 22:g}" y="13" fill="{INK}">{escape(contender.title)}</text>'
        )
        left += 34 + LETTER * len(contender.title)
    width = max(width, left)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height + LEGEND:g}" '
        f'viewBox="0 0 {width:g} {height + LEGEND:g}" font-family="{FONT}" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(legend)}'
        f"{picture.replace('<svg ', OFFSET, 1)}</svg>\n"
    )


def _figures(row: Row) -> Figures:
    figures = (row.goodput_bps, row.rtt_p50_ms, row.ping_p50_ms, row.share, row.retransmit_rate, row.jain)
    return Figures(*(float("nan") if figure is None else figure.middle for figure in figures))


def holds(claim: str, figures: Mapping[str, Figures]) -> bool:
    """Return whether a claim such as `a.rtt > 2 * b.rtt` is true; raises `ValueError` if it is none."""
    parts = CLAIM.fullmatch(claim)
    if parts is None:
        raise ValueError(f"{claim}: expected a claim such as a.rtt > 2 * b.rtt")
    who, figure, sign, factor, *others = parts.groups()
    letter, name = (others[0], others[1]) if factor else (others[2], others[3])
    limit = float(factor or 1) * (figures[letter].number(name) if letter else 1)
    return bool(COMPARISONS[sign](figures[who].number(figure), limit))


def _head(count: int) -> Iterator[str]:
    yield "<!-- Written by `make gallery` from tools/gallery.toml: do not edit. -->"
    yield "# Gallery"
    yield ""
    yield f"{count} races, each with one lesson. The picture is RTT and throughput over time. *Open* runs the race in"
    yield "[the playground](how-to/play.md), where every setting can be changed; the command gives the same bytes. Each"
    yield "sentence's figures come from that run, and `make gallery` fails if its claim is false. They are simulations with"
    yield "one seed: what differs from a kernel is in [known gaps](explanation/known-gaps.md)."
    yield ""
    yield "The site's address in a clone is a placeholder until a release sets it; `dragstrip play` with the words of a race's"
    yield "command opens the same race without the site."
    yield ""
    yield '<div class="gallery" markdown>'
    yield ""


def _entry(race: Race, text: str) -> Iterator[str]:
    link = f"https://{pages(address())}/{PLAYGROUND}{fragment(race.algorithms, race.race)}"
    yield '<div class="race" markdown>'
    yield ""
    yield f"## {race.title}"
    yield f"![{race.title}: RTT and throughput over time](images/gallery/{race.name}.svg)"
    yield ""
    yield f"{text} [Open]({link})"
    yield ""
    yield f"    {command(race.algorithms, race.race)}"
    yield ""
    yield "</div>"
    yield ""


if __name__ == "__main__":
    write_gallery(Path(sys.argv[1]))
