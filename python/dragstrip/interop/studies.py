"""Answers of studies for notebooks: a picture, its sentences and a table, at most a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from markupsafe import Markup

from dragstrip.display import html
from dragstrip.display import quantity as q
from dragstrip.display.colours import GREEN, GREY, INK, MUTED, ROSE, SKY, VERMILION, assign
from dragstrip.display.document import StudyDocument
from dragstrip.display.legend import entry_places
from dragstrip.display.table import Cell, Table, text_table
from dragstrip.experiment.comparison import compare
from dragstrip.interop.pictures import path_picture
from dragstrip.report import bars
from dragstrip.report.figure import Axis, Bar, Bars, Figure

ROWS_MAX = 6
"""Rows of a table, at most; the document has all."""
LINES_MAX = 20
"""Lines of a program's output, at most."""
MAP_WIDTH = 520.0

Json = Mapping[str, Any]


def cell(
    picture: Markup | str, sentences: Sequence[str], table: Table | None = None, more: str = ""
) -> Markup:
    """Return the HTML of a notebook's cell."""
    return html.part("interop/study_cell.html", picture=picture, sentences=sentences, table=table, more=more)


def _drawn(title: str, entries: Sequence[Bar], unit: str) -> Markup:
    """Return bars with a common axis; nothing for no bars."""
    if not entries:
        return Markup("")
    high = max(bar.greatest for bar in entries) or 1.0
    words = f"{title}: {q.listing([f'{bar.label} {bar.text}' for bar in entries])}."
    axis = Axis(f"{title} ({unit})" if unit else title, 0, high, unit)
    return bars.svg(Figure("bars", title, words, Bars(axis, list(entries))))


def _more(count: int, noun: str) -> str:
    return f"{count} more {noun}: the document has all." if count > 0 else ""


def diagnosis_html(answer: StudyDocument) -> str:
    """Return the verdict, the findings, and the first advice's changes as bars."""
    findings, advice = answer["findings"], answer["advice"]
    rows = [[entry["sentence"], entry["certainty"]] for entry in findings[:ROWS_MAX]]
    table = text_table(["finding", "certainty"], rows) if rows else None
    picture = _advice(advice[0]) if advice else Markup("")
    return cell(picture, [str(answer["verdict"])], table, _more(len(findings) - len(rows), "findings"))


def _advice(advice: Json) -> Markup:
    """Return the measure that the first advice improves, before its changes and with each."""
    delay = advice["complaint"] == "delay"
    field = "ping_p95_ms" if delay else "goodput_bps"
    states = [("baseline", advice["as_found"], GREY)]
    states += [
        (change["change"], change, GREEN if change["recommended"] else MUTED)
        for change in advice["changes"][: ROWS_MAX - 1]
    ]
    entries = [
        Bar(name, colour, value, value, value, (q.milliseconds if delay else q.rate)(value))
        for name, state, colour in states
        if (value := q.number(state.get(field))) is not None
    ]
    return _drawn("RTT of pings, 95th percentile" if delay else "Goodput", entries, "")


def path_html(answer: StudyDocument) -> Markup:
    """Return the path as a picture, with the interval and the source of each property."""
    known = answer["known"]
    rows: list[list[str | Cell]] = []
    for name, value in answer["options"].items():
        entry = known.get(name, {})
        ends = " to ".join(entry[end] for end in ("low", "high") if end in entry)
        rows.append([name, str(value), ends, entry.get("source", "")])
    rows += [
        [name, "unknown", "", entry["unknown"]]
        for name, entry in known.items()
        if name not in answer["options"] and "unknown" in entry
    ]
    race = compare(["cubic"], **answer["options"])
    table = text_table(["property", "value", "interval", "source"], rows)
    return cell(path_picture(race), [], table)


def shell_html(answer: Any) -> Markup:
    """Return the path as a picture, and the runs so far."""
    rows = [[line.headline] for line in answer.runs[-ROWS_MAX:]]
    more = _more(len(answer.runs) - len(rows), "runs")
    table = text_table(["run"], rows) if rows else None
    return cell(path_picture(answer.race()), [repr(answer)], table, more)


def shell_run_html(answer: Any) -> Markup:
    """Return the headline, both directions as a table, and the last lines of what was printed."""
    heads = ["direction", "bytes", "rate", "dropped", "marked"]
    seconds = max(answer.duration_s, 1e-9)
    rows: list[list[str | Cell]] = [
        [
            way["direction"],
            f"{way['bytes_out']:,}",
            q.rate(way["bytes_out"] * 8 / seconds),
            ", ".join(f"{reason} {count}" for reason, count in way["drops"].items()) or "0",
            f"{way['marks']:,}",
        ]
        for way in answer["directions"]
    ]
    printed = "\n".join((answer.stderr + answer.stdout).splitlines()[-LINES_MAX:])
    text = html.part("display/templates/text_cell.html", text=printed) if printed else Markup("")
    return Markup(cell("", [answer.headline], text_table(heads, rows))) + text  # noqa: S704 - our own HTML


def whatif_html(answer: StudyDocument) -> str:
    """Return the sentence, the goodput of the capture and of each prediction as bars, and a table."""
    capture, predictions = answer["capture"], answer["what_if"][:ROWS_MAX]
    colours = assign([answer["algorithm"], *(entry["algorithm"] for entry in predictions)])
    entries: list[Bar] = []
    rows: list[list[str | Cell]] = []
    if (goodput := q.number(capture.get("goodput_bps"))) is not None:
        entries.append(Bar("capture", GREY, goodput, goodput, goodput, q.rate(goodput)))
    rows.append(["capture", *(_figure(capture.get(field), text) for field, text in FIGURES)])
    for entry in predictions:
        name = entry["algorithm"]
        if interval := entry["goodput_bps"]:
            value, low, high = (interval[part] for part in ("value", "low", "high"))
            entries.append(Bar(name, colours[name], value, low, high, q.rate(value)))
        rows.append([name, *(_figure(entry.get(field), text) for field, text in FIGURES)])
    table = text_table(["", "goodput", "median RTT", "95th percentile", "retransmitted"], rows)
    more = _more(len(answer["what_if"]) - len(predictions), "algorithms")
    return cell(_drawn("Goodput", entries, ""), [str(answer["sentence"])], table, more)


FIGURES = (
    ("goodput_bps", q.rate),
    ("rtt_ms_p50", q.milliseconds),
    ("rtt_ms_p95", q.milliseconds),
    ("retransmitted_share", q.percent),
)
"""Figures of a capture or of a prediction, and their texts."""


def _figure(value: Any, text: Any) -> Cell:
    """Return a figure, with its interval as a note."""
    if isinstance(value, Mapping):
        is_point = value["low"] == value["high"]
        return Cell(
            text(value["value"]), "" if is_point else f"{text(value['low'])} to {text(value['high'])}"
        )
    return Cell(text(value))


LOOK_COLOURS = {"good": GREEN, "even": SKY, "bad": VERMILION, "open": ROSE}
"""Colours of a passport's verdicts, by the looks that its page gives them; others are grey."""
CHAPTER_LEFT, CHAPTER_WIDTH = 150.0, 270.0
"""Pixels left of the bars of a passport's chapters, and of the longest bar."""


def passport_html(answer: StudyDocument) -> str:
    """Return the sentences, the verdicts of each chapter as bars, and the worst rows."""
    rows = {row["id"]: row for row in answer["rows"]}
    worst = [rows[name] for name in answer["worst"][:ROWS_MAX]]
    lines = [[row["title"], row["verdict"], row["rule"]] for row in worst]
    table = text_table(["worst rows", "verdict", "rule"], lines) if lines else None
    sentences = [str(sentence) for sentence in answer["sentences"].values()]
    return cell(_chapters(answer["chapters"]), sentences, table)


def _chapters(chapters: Sequence[Json]) -> Markup:
    """Return the rows of each chapter as a bar with a part for each verdict, and a legend."""
    from dragstrip.studies.passport.page import LOOKS

    verdicts = [name for name in LOOKS if any(name in chapter["verdicts"] for chapter in chapters)]
    colours = {name: LOOK_COLOURS.get(LOOKS[name], GREY) for name in verdicts}
    most = max((chapter["rows"] for chapter in chapters), default=1)
    parts, y = [], 6.0
    for chapter in chapters:
        x = CHAPTER_LEFT
        parts.append(bars.text(x - 8, y + 11, chapter["name"], "end"))
        for name in verdicts:
            count = chapter["verdicts"].get(name, 0)
            width = CHAPTER_WIDTH * count / most
            parts.append(_box(x, y, width, colours[name], f"{count} {name}"))
            x += width
        parts.append(bars.text(x + 5, y + 11, chapter["rows"]))
        y += 22
    top = y
    places = entry_places([34 + bars.CHARACTER * len(name) for name in verdicts], 8.0, bars.WIDTH)
    for name, (x, line) in zip(verdicts, places, strict=True):
        y = top + 20 * line
        parts += [_box(x, y + 2, 12, colours[name], name), bars.text(x + 17, y + 13, name)]
    return bars.drawing(y + 24, parts, "Rows of each chapter by verdict")


def _box(x: float, y: float, width: float, colour: str, words: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="14"'
    return f'<rect {place} fill="{colour}"><title>{escape(words)}</title></rect>'


def attack_html(answer: StudyDocument) -> str:
    """Return the finds as bars, each find's figure beside its reference, and what caused them."""
    finds = answer["finds"]
    entries, rows = [], []
    for find in finds[:ROWS_MAX]:
        share = max(0.0, find["value"])
        entries.append(Bar(find["name"], VERMILION, share, share, share, q.percent(share)))
        figure = f"{q.digits(find['figure'])} of {q.digits(find['reference'])} {find['unit']}"
        rows.append([Cell(find["name"], number=False), Cell(figure), Cell(find["words"], number=False)])
    table = text_table(["find", "figure", "conditions"], rows) if rows else None
    count = f"{len(finds)} find{'s' * (len(finds) != 1)}"
    sentence = f"{answer['algorithm']}, {answer['evaluations']:,} attacks tried: {count}."
    picture = _drawn("What is left, as a share of the reference", entries, "")
    return cell(picture, [sentence], table, _more(len(finds) - len(rows), "finds"))


def sweep_html(answer: Any) -> str:
    """Return the first map, who is ahead by each measure, and the ranking."""
    from dragstrip.studies.sweep import dataset
    from dragstrip.studies.sweep.claim import read_description
    from dragstrip.studies.sweep.drawing import drawing, settings_text, title, unit_of, winners
    from dragstrip.studies.sweep.heat import sheet
    from dragstrip.studies.sweep.layout import lay_out
    from dragstrip.studies.sweep.map import COLUMNS, rankings
    from dragstrip.studies.sweep.map import answer as sentences
    from dragstrip.studies.sweep.stats import judge

    folder: Path = answer.folder
    sweep = read_description(folder)
    findings = judge(sweep, dataset.read(folder, COLUMNS))
    if findings.axis is None:
        return html.part("display/templates/text_cell.html", text=str(answer))
    layout, colours = lay_out(sweep, findings), assign(findings.contenders)
    name, scores = next(iter(findings.judged.items()))
    settings, cells = layout.facets[0]
    heading = f"{title(findings, name)}, {unit_of(scores).name}"
    caption = ", ".join(filter(None, [heading, settings_text(settings)]))
    fill = winners(scores, findings, colours)
    drawn = drawing(scores, findings, layout, cells, fill, MAP_WIDTH)
    picture = sheet([(caption, drawn)], colours, MAP_WIDTH).replace(INK, "currentColor")
    picture = picture.replace(MUTED, "currentColor")
    hidden_maps = len(layout.facets) * len(findings.judged) - 1
    more = f"{hidden_maps} more maps: {answer['report']}" if hidden_maps and answer["report"] else ""
    return cell(
        Markup(picture),  # noqa: S704 - our own SVG
        sentences(findings),
        rankings(findings, colours),
        more,
    )
