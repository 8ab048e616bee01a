"""Passports of several algorithms side by side: `python -m tools.passports FOLDER PAGE`.

It reads the passport.json of each folder in FOLDER, and makes docs/reference/passports.md. Beside it, it
writes the rows of the suite, passport-rows.md, and what the page of results needs, passports.json.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip import _core
from dragstrip.display.quantity import listing
from dragstrip.io.files import write_text
from dragstrip.studies.passport import against, suite
from dragstrip.studies.passport.command import JSON
from dragstrip.studies.passport.document import counts, replay
from dragstrip.studies.passport.rows import SEEDS, PassportRow, Subject
from dragstrip.studies.passport.runs import planned
from dragstrip.studies.passport.wording import escaped

KINDS = {"P": "limits of documents", "T": "published targets", "K": "beside CUBIC and Reno"}
"""The kinds of rules that judge, as the table's columns are called."""


def page(passports: Sequence[Mapping[str, Any]]) -> str:
    """The page in Markdown; raises `ValueError` if the passports are not all of one suite and build."""
    editions = {(passport["suite"], passport["build"], passport["quick"]) for passport in passports}
    if len(editions) != 1:
        raise ValueError(f"passports of {len(editions)} suites or builds: expected one")
    return "\n".join(_lines(passports)) + "\n"


def _lines(passports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    first = passports[0]
    quick = " --quick" if first["quick"] else ""
    yield "# Passports of the built-in algorithms"
    yield ""
    yield (
        f"{len(passports)} algorithms, suite {first['suite']} of [passports](../how-to/passport.md), on the "
        "simulator, made by"
    )
    yield "`make passports`. Each row, its source and the command that replays it are in the passport that"
    yield f"`dragstrip passport ALGORITHM{quick}` writes."
    missing = sorted(set(_core.ALGORITHMS) - {passport["algorithm"] for passport in passports})
    if missing:
        yield f"Not made with this suite yet: {listing([f'`{name}`' for name in missing])}."
    yield ""
    yield "Limits and targets: held / missed (of which CUBIC misses too). Beside CUBIC and Reno: rows"
    yield "that are better / the same / worse than the worse of the two."
    yield ""
    yield f"| algorithm | {' | '.join(KINDS.values())} | worst chapter |"
    yield "|---|---|---|---|---|"
    for passport in passports:
        name = passport["algorithm"]
        cells = [_cell(kind, passport["rows"]) for kind in KINDS]
        yield f"| [`{name}`](#{name.replace('_', '-')}) | {' | '.join(cells)} | {_worst(passport)} |"
    for passport in passports:
        yield ""
        yield f"## {passport['algorithm']}"
        for sentence in passport["sentences"].values():
            yield from textwrap.wrap(f"- {escaped(sentence)}", 116, subsequent_indent="  ")


def _cell(kind: str, rows: Sequence[Mapping[str, Any]]) -> str:
    verdicts = counts([row for row in rows if row["kind"] == kind])
    failed = f", {verdicts['failed']} failed" if "failed" in verdicts else ""
    if kind == "K":
        return f"{verdicts.get('better', 0)} / {verdicts.get('same', 0)} / {verdicts.get('worse', 0)}{failed}"
    shared = verdicts.get("missed, as by CUBIC", 0)
    return f"{verdicts.get('held', 0)} / {verdicts.get('missed', 0) + shared} ({shared}){failed}"


def _worst(passport: Mapping[str, Any]) -> str:
    """The chapter with the largest share of rows missed or worse; a dash where there is none."""

    def share(chapter: Mapping[str, Any]) -> float:
        verdicts = chapter["verdicts"]
        bad = sum(verdicts.get(name, 0) for name in ("missed", "worse", "failed"))
        return float(bad / max(1, chapter["rows"]))

    chapter = max(passport["chapters"], key=share)
    return f"{chapter['title']} ({share(chapter):.0%})" if share(chapter) else "–"


ROWS = "passport-rows.md"
STORED = "passports.json"


def stored(passports: Sequence[Mapping[str, Any]]) -> str:
    """Return rows and verdicts of each chapter by algorithm, as JSON for the page of results."""
    document = {
        "suite": passports[0]["suite"],
        "chapters": {
            chapter["name"]: chapter["title"] for passport in passports for chapter in passport["chapters"]
        },
        "algorithms": {
            passport["algorithm"]: {
                chapter["name"]: {"rows": chapter["rows"], "verdicts": chapter["verdicts"]}
                for chapter in passport["chapters"]
            }
            for passport in passports
        },
    }
    return json.dumps(document, indent=1) + "\n"


ANYONE = Subject("ALGORITHM")
"""Stands for the algorithm in a row's command."""


def rows_page() -> str:
    """The rows of the suite in Markdown, each with its rule, the rule's source and its command."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "<!-- Generated by `make passports`: do not edit. -->"
    yield "# Rows of a passport"
    yield ""
    about = (
        f"All rows of suite {suite.VERSION} of [passports](../how-to/passport.md), which explains P, T, K "
        "and R. A star marks the rows of `--quick`. In a row's command stands the algorithm for ALGORITHM; "
        f"one that draws random numbers, such as BBR, has `--repeat {SEEDS}` too. A command that names a "
        "file takes it from the passport's FOLDER. Rows of chapter `bbr` are about algorithms whose names "
        "begin so."
    )
    yield from textwrap.wrap(about, 116)
    for chapter in suite.CHAPTERS:
        yield ""
        yield f"## {chapter.NAME}"
        yield "| row | scenario | measure | rule | source | replay |"
        yield "|---|---|---|---|---|---|"
        for row in chapter.rows():
            cells = (
                f"`{row.id}`{'*' if row.quick else ''}",
                escaped(row.title) + (f" ({', '.join(row.only_for)} alone)" if row.only_for else ""),
                f"{escaped(row.figure.name)}, {escaped(row.figure.unit)}",
                f"{row.rule.kind}: {row.rule.text}",
                escaped(row.rule.source),
                f"`{_replay(row)}`",
            )
            yield f"| {' | '.join(cells)} |"


def _replay(row: PassportRow) -> str:
    seeds = max(1, len(planned(row.scenario, Subject("cubic")).runs)) if row.scenario.is_comparison else 1
    return replay(row, ANYONE, seeds).replace(" experiments/", " FOLDER/experiments/")


def main(folder: str, to: str) -> None:
    """Write the page of all passports below the folder, by name, and beside it that of the suite's rows."""
    files = sorted(Path(folder).glob(f"*/{JSON}"))
    passports = [against.read(file) for file in files]
    write_text(Path(to), page(passports))
    write_text(Path(to).with_name(STORED), stored(passports))
    write_text(Path(to).with_name(ROWS), rows_page())


if __name__ == "__main__":
    main(*sys.argv[1:])
