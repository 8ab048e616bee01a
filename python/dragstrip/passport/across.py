"""The passports of several algorithms side by side: `python -m dragstrip.passport.across FOLDER PAGE`.

It reads the passport.json of each folder in FOLDER, and makes docs/reference/passports.md.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip.io.files import write_text
from dragstrip.passport import against
from dragstrip.passport.command import JSON
from dragstrip.passport.document import counts
from dragstrip.passport.wording import escaped

KINDS = {"P": "limits of documents", "T": "published targets", "K": "beside CUBIC and Reno"}
"""The kinds of rules that judge, as the table's columns are called."""


def page(passports: Sequence[Mapping[str, Any]]) -> str:
    """The page in Markdown; raises `ValueError` if the passports are not all of one suite and build."""
    made = {(it["suite"], it["build"], it["quick"]) for it in passports}
    if len(made) != 1:
        raise ValueError(f"passports of {len(made)} suites or builds: expected one")
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
    found = counts([row for row in rows if row["kind"] == kind])
    failed = f", {found['failed']} failed" if "failed" in found else ""
    if kind == "K":
        return f"{found.get('better', 0)} / {found.get('same', 0)} / {found.get('worse', 0)}{failed}"
    shared = found.get("missed, as by CUBIC", 0)
    return f"{found.get('held', 0)} / {found.get('missed', 0) + shared} ({shared}){failed}"


def _worst(passport: Mapping[str, Any]) -> str:
    """The chapter with the largest share of rows missed or worse; a dash where there is none."""

    def share(chapter: Mapping[str, Any]) -> float:
        verdicts = chapter["verdicts"]
        bad = sum(verdicts.get(name, 0) for name in ("missed", "worse", "failed"))
        return float(bad / max(1, chapter["rows"]))

    chapter = max(passport["chapters"], key=share)
    return f"{chapter['title']} ({share(chapter):.0%})" if share(chapter) else "–"


def main(folder: str, to: str) -> None:
    """Write the page of all passports below the folder, by name."""
    files = sorted(Path(folder).glob(f"*/{JSON}"))
    write_text(Path(to), page([against.read(file) for file in files]))


if __name__ == "__main__":
    main(*sys.argv[1:])
