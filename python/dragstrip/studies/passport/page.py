"""A passport as one HTML file without scripts or requests, light and dark, for a desk and a phone."""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dragstrip.studies.passport.wording import agreed, by_reason, engine, measured, tally, unit

NAME = "passport.html"
COLOURS = {
    "held": "good",
    "better": "good",
    "same": "even",
    "reported": "even",
    "missed, as by CUBIC": "poor",
    "worse": "bad",
    "missed": "bad",
    "failed": "bad",
}
STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--paper:#fff;--line:#d0d7de;--soft:#59636e;--good:#116329;
--bad:#b3261e;--poor:#8a5300;--shade:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--line:#3d444d;--soft:#9da7b1;
--good:#5dc98a;--bad:#ff8a80;--poor:#e0b050;--shade:#161b22}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.2;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem}
p,li{overflow-wrap:anywhere}.soft,small{color:var(--soft)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.875rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.scroll td:first-child{min-width:8rem}
thead th{background:var(--shade)}code{font:.8125rem/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}.poor{color:var(--poor)}
summary{cursor:pointer;padding:.3rem 0}details details{margin:0}
code span{display:inline-block;max-width:100%}
@media(max-width:44rem){.rows thead{display:none}.rows td,.rows td.n{border:0;padding:.1rem 0;text-align:left}
.rows tr{display:grid;grid-template-columns:2fr 1fr 1fr 1fr;gap:0 .5rem;padding:.5rem 0;
border-bottom:1px solid var(--line)}
.rows td:first-child,.rows td:nth-child(n+6){grid-column:1/-1}
.rows td:nth-child(n+2)::before{content:attr(data-head);display:block;font-size:.75rem;color:var(--soft)}}
"""


def page(document: Mapping[str, Any]) -> str:
    """Return the page; everything that comes from outside is escaped."""
    rows = {row["id"]: row for row in document["rows"]}
    kind = "quick passport" if document["quick"] else "passport"
    title = f"{kind.capitalize()} of {document['algorithm']}"
    parts = [
        f'<p class="soft">Dragstrip {_text(document["version"])} · suite {document["suite"]} · engine '
        f"{_text(engine(document))} · {len(rows)} rows</p>",
        f"<h1>{_text(title)}</h1>",
        *(f"<p>{_text(sentence)}</p>" for sentence in document["sentences"].values()),
        "<h2>Chapters</h2>",
        _table(
            ("chapter", "rows", "verdicts"),
            (
                (
                    f'<a href="#{chapter["name"]}">{_text(chapter["title"])}</a>',
                    str(chapter["rows"]),
                    _tally(chapter["verdicts"]),
                )
                for chapter in document["chapters"]
            ),
            numbers=(1,),
        ),
        "<h2>The worst rows</h2>",
        _worst([rows[name] for name in document["worst"]]),
        *_second_engine(document.get("beside")),
        *_against(document.get("against")),
        "<h2>Harm</h2>",
        _harm(document["harm"]),
        "<h2>Figure and theory</h2>",
        _theory(document["rows"]),
        *_not_run(document["not_run"], f"Not run on engine {engine(document)}"),
        "<h2>Not tested</h2>",
        "<p>A row that is not here is no pass.</p>",
        "<ul>",
        *(f"<li>{_text(entry['what'])}: {_text(entry['why'])}</li>" for entry in document["not_tested"]),
        "</ul>",
        "<h2>All rows</h2>",
        "<p>P: a document's limit. T: somebody's published target. K: worse, or better, than CUBIC and Reno "
        "by more than 1 %; with several seeds, by the 95 % interval of the differences seed by seed. "
        "R: reported. Figures of several seeds are medians. A command that names a file is run in the "
        "passport's folder.</p>",
        *(_chapter(chapter, document["rows"]) for chapter in document["chapters"]),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)} – Dragstrip</title><style>{STYLE}</style>"
    )
    body = f"<main>{''.join(parts)}</main>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _text(content: object) -> str:
    return html.escape(str(content))


def _tally(verdicts: Mapping[str, int]) -> str:
    spans = [f'<span class="{COLOURS[name]}">{count} {name}</span>' for name, count in verdicts.items()]
    return "; ".join(spans) or tally(verdicts)


def _table(
    heads: Sequence[str], lines: Iterable[Sequence[str]], numbers: Sequence[int] = (), kind: str = ""
) -> str:
    """A table that scrolls by itself; of kind `rows`, each line is a card where the page is narrow."""
    styles = [' class="n"' if at in numbers else "" for at in range(len(heads))]
    top = "".join(f'<th scope="col"{style}>{head}</th>' for head, style in zip(heads, styles, strict=True))
    attributes = [
        f'{style} data-head="{head}"' if kind else style for head, style in zip(heads, styles, strict=True)
    ]
    body = "".join(
        f"<tr>{''.join(f'<td{style}>{cell}</td>' for cell, style in zip(line, attributes, strict=True))}</tr>"
        for line in lines
    )
    style = f' class="{kind}"' if kind else ""
    table = f"<table{style}><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _verdict(row: Mapping[str, Any]) -> str:
    return _coloured(row["verdict"])


def _coloured(verdict: str) -> str:
    return f'<span class="{COLOURS[verdict]}">{_text(verdict)}</span>'


def _baselines(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{_text(name)} {measured(of['value'])}" for name, of in row["baselines"].items())


def _worst(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "<p>No row is missed, worse or failed.</p>"
    items = [
        f"<li>{_text(row['title'])}: {_text(row['measure'])} <strong>{_text(unit(row))}</strong> "
        f"({_baselines(row)}); {_verdict(row)}, asked: {_text(row['rule'])} "
        f"<small>({_text(row['source'])})</small>{_failure(row)}<br>{_command(row['replay'])}</li>"
        for row in rows
    ]
    return f"<ol>{''.join(items)}</ol>"


def _command(command: str) -> str:
    """A command line whose words stay whole where it is broken."""
    words = [f"<span>{_text(shlex.quote(word))}</span>" for word in shlex.split(command)]
    return f"<code>{' '.join(words)}</code>"


def _failure(row: Mapping[str, Any]) -> str:
    return f'<br><span class="bad">{_text(row["failure"])}</span>' if row.get("failure") else ""


def _harm(cells: Sequence[Mapping[str, Any]]) -> str:
    if not cells:
        return "<p>No row of this passport has a neighbour.</p>"
    paths = list(dict.fromkeys(cell["path"] for cell in cells))
    doers = list(dict.fromkeys(cell["by"] for cell in cells))
    harm_by_cell = {(cell["by"], cell["to"], cell["path"]): cell["harm"] for cell in cells}
    victims = list(dict.fromkeys(cell["to"] for cell in cells))
    lines = [
        (f"{_text(by)} to {_text(to)}", *(_share(harm_by_cell.get((by, to, path))) for path in paths))
        for by in doers
        for to in victims
        if any(cell["by"] == by and cell["to"] == to for cell in cells)
    ]
    note = (
        "<p>What one flow of the first takes from one flow of the second, of the link that the second would "
        "have alone: 50 % is half the link (Ware et al., HotNets 2019). What a kind takes from itself is the "
        "base of comparison.</p>"
    )
    return note + _table(("who to whom", *map(_text, paths)), lines, numbers=range(1, len(paths) + 1))


def _share(harm: float | None) -> str:
    return "–" if harm is None else f"{100 * harm:.0f} %"


def _theory(rows: Sequence[Mapping[str, Any]]) -> str:
    law_rows = [row for row in rows if row["theory"] is not None]
    if not law_rows:
        return "<p>No law of this suite describes the algorithm, or the chapter was left out.</p>"
    lines = [
        (
            _text(row["title"]),
            _text(row["theory"]["law"]),
            _text(unit(row)),
            measured(row["theory"]["value"]),
            "–" if row["theory"]["deviation"] is None else f"{100 * row['theory']['deviation']:+.0f} %",
            f"{_text(row['theory']['valid'])} <small>({_text(row['source'])})</small>",
        )
        for row in law_rows
    ]
    return _table(("path", "law", "figure", "theory", "apart", "valid"), lines, numbers=(2, 3, 4))


def _not_run(rows: Sequence[Mapping[str, Any]], title: str) -> list[str]:
    if not rows:
        return []
    titles = {row["id"]: row["title"] for row in rows}
    items = [
        f"<li>{_text(why)}: {_text('; '.join(dict.fromkeys(titles[name] for name in names)))}</li>"
        for why, names in by_reason(rows).items()
    ]
    return [f"<h2>{_text(title)}</h2>", f"<ul>{''.join(items)}</ul>"]


def _second_engine(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None:
        return []
    lines = [
        (
            f"{_text(row['title'])}<br><small>{_text(row['id'])}</small>",
            f"{_text(row['measure'])}<br><small>{_text(row['unit'])}</small>",
            measured(row["value"]),
            _coloured(row["verdict"]),
            measured(row["other_value"]),
            _coloured(row["other_verdict"]),
        )
        for row in comparison["different"]
    ]
    heads = ("row", "measure", "here", "verdict", _text(comparison["engine"]), "verdict")
    return [
        f"<h2>Beside engine {_text(engine(comparison))}</h2>",
        f"<p>{_text(agreed(comparison))}.</p>",
        *([_table(heads, lines, numbers=(2, 4))] if lines else []),
        *_not_run(comparison["not_run"], f"Not run on engine {engine(comparison)}"),
    ]


def _against(change: Mapping[str, Any] | None) -> list[str]:
    if change is None:
        return []
    moved = [row for row in change["changed"] if row["how"] != "same"]
    lines = [
        (
            _text(row["id"]),
            f'<span class="{"good" if row["how"] == "better" else "bad"}">{row["how"]}</span>',
            measured(row["before"]),
            measured(row["now"]),
            f"{_text(row['verdict_before'])} → {_text(row['verdict_now'])}",
        )
        for row in moved
    ]
    return [
        f"<h2>Against {_text(change['against'])}</h2>",
        f"<p>{change['unchanged']} rows have the same recordings and are unchanged.</p>",
        _table(("row", "", "before", "now", "verdict"), lines, numbers=(2, 3))
        if lines
        else "<p>No other row got better or worse.</p>",
    ]


def _chapter(chapter: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        (
            f"{_text(row['title'])}<br><details><summary><small>{_text(row['id'])}</small></summary>"
            f"{_command(row['replay'])}<br><small>{_text(row['formula'])}</small></details>",
            f"{_text(row['measure'])}<br><small>{_text(row['unit'])}</small>",
            measured(row["value"]),
            *(measured(of["value"]) for of in row["baselines"].values()),
            f"{_verdict(row)}{_failure(row)}",
            f"{row['kind']}: {_text(row['rule'])} <small>({_text(row['source'])})</small>",
        )
        for row in rows
        if row["chapter"] == chapter["name"]
    ]
    names = next((list(row["baselines"]) for row in rows), [])
    heads = ("scenario", "measure", "figure", *map(_text, names), "verdict", "rule")
    table = _table(heads, lines, numbers=range(2, 3 + len(names)), kind="rows")
    head = f"<summary><strong>{_text(chapter['title'])}</strong></summary>"
    return f'<details open id="{chapter["name"]}">{head}{table}</details>'
