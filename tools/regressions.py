"""Known faults of congestion controls, and the rows that tell them: `python -m tools.regressions PAGE`.

Each text in tests/regressions has the parameter `wrong`: with 0 it is right, with 1 it has the fault that a
stack once had. Faults of built-in algorithms are options of theirs. A row tells the fault if it is worse by the
rule of `passport --against`; where it is so for a refactoring of a right text, that is a false alarm.
"""

from __future__ import annotations

import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragstrip.experiment.programs import of_files, program
from dragstrip.io.files import write_text
from dragstrip.studies.passport import against, command, suite
from dragstrip.studies.passport.rows import PassportRow, Subject
from dragstrip.studies.passport.wording import escaped, measured
from tools.refactorings import Refactoring, refactorings

FOLDER = Path(__file__).parents[1] / "tests/regressions"
LIST = FOLDER / "regressions.toml"
REFACTORINGS = 100
"""Number of refactorings on the page."""
ALSO = ("alone-10-40-0.1bdp", "alone-10-40-0.5bdp", "many-shallow-10", "loss-slow-1-")
"""Beginnings of the ids of the rows in which every refactoring runs, beside its text's own."""


@dataclass(frozen=True)
class Regression:
    """A fault that a stack once had, as a text or as an option of an algorithm."""

    name: str
    """The file without its extension; of an option, its name on the page."""
    fault: str
    source: str
    row: str
    """The row that tells it."""
    right: str = ""
    """The built-in algorithm without the fault, as `passport` takes it; empty for a text."""
    wrong: str = ""
    """The same with the fault."""

    @property
    def is_text(self) -> bool:
        """True for a fault of a text in tests/regressions."""
        return not self.right

    @property
    def subjects(self) -> tuple[Subject, Subject]:
        """The algorithm without and with the fault."""
        if not self.is_text:
            return Subject(self.right), Subject(self.wrong)
        file = str(FOLDER / f"{self.name}.cc")
        programs = tuple(of_files([file]).items())
        return Subject(self.name, programs, (file,)), Subject(f"{self.name}:wrong=1", programs, (file,))

    @property
    def text(self) -> str:
        """The text of a fault that is one."""
        return (FOLDER / f"{self.name}.cc").read_text()


@dataclass(frozen=True)
class Inexpressible:
    """A fault that no text can have."""

    fault: str
    source: str
    why: str


def regressions() -> list[Regression]:
    """Return the faults in the order of the list."""
    return [Regression(**entry) for entry in tomllib.loads(LIST.read_text())["regressions"]]


def inexpressible() -> list[Inexpressible]:
    """Return the faults that no text can have."""
    return [Inexpressible(**entry) for entry in tomllib.loads(LIST.read_text())["inexpressible"]]


def passport(subject: Subject, rows: Sequence[PassportRow], workers: int | None) -> dict[str, Any]:
    """Return the passport of these rows of the suite."""
    chapters = tuple(dict.fromkeys(row.chapter for row in rows))
    request = command.PassportRequest(subject, chapters, False, tuple(rows))
    return command.make(request, workers, quiet=True)


def suite_rows(algorithm: str, *beginnings: str) -> list[PassportRow]:
    """Return the rows of the suite whose ids begin so."""
    return [row for row in suite.rows(algorithm, suite.NAMES, quick=False) if row.id.startswith(beginnings)]


def changed_row(regression: Regression, workers: int | None = None) -> dict[str, Any]:
    """Run the regression's row right and wrong; return its change, as `passport --against` has it."""
    right_subject, wrong_subject = regression.subjects
    (row,) = [row for row in suite_rows(right_subject.name, regression.row) if row.id == regression.row]
    right, wrong = (passport(subject, [row], workers) for subject in (right_subject, wrong_subject))
    (change,) = against.compare(wrong, right, "")["changed"]
    return dict(change)


@dataclass(frozen=True)
class FalseAlarms:
    """Results of the refactorings of the right texts."""

    kinds: Mapping[str, int]
    """Number of refactorings by kind."""
    rows: int
    """Rows that were compared, of all refactorings together."""
    equal: int
    """Rows whose recordings are equal byte for byte."""
    alarms: Sequence[tuple[Refactoring, str]]
    """Refactorings and rows that are worse by the rule of `passport --against`."""

    @property
    def count(self) -> int:
        """Number of refactorings with a row that alarms."""
        return len({id(refactoring) for refactoring, _ in self.alarms})


def false_alarms(
    entries: Sequence[Regression], count: int = REFACTORINGS, workers: int | None = None
) -> FalseAlarms:
    """Compare refactorings of the right texts with the texts, each in its text's own row and those of `ALSO`."""
    by_name = {entry.name: entry for entry in entries if entry.is_text}
    made = refactorings({name: entry.text for name, entry in by_name.items()}, count)
    before: dict[str, dict[str, Any]] = {}
    alarms, rows_count, equal = [], 0, 0
    for refactoring in made:
        entry = by_name[refactoring.name]
        rows = suite_rows(entry.name, entry.row, *ALSO)
        right, _ = entry.subjects
        if entry.name not in before:
            before[entry.name] = passport(right, rows, workers)
        programs = ((entry.name, program(entry.name, refactoring.text).text),)
        after = passport(replace(right, programs=programs), rows, workers)
        change = against.compare(after, before[entry.name], "")
        rows_count += len(rows)
        equal += change["unchanged"]
        alarms += [(refactoring, row["id"]) for row in against.worse(change)]
    return FalseAlarms(Counter(refactoring.kind for refactoring in made), rows_count, equal, alarms)


def page(entries: Sequence[Regression], changes: Sequence[Mapping[str, Any]], refactored: FalseAlarms) -> str:
    """Return the page in Markdown; `changes` are those of the entries' rows."""
    parts = (_head(entries, changes), _table(entries, changes), _refactored(refactored), _missing())
    return "\n".join(line for part in parts for line in part) + "\n"


def _head(entries: Sequence[Regression], changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<!-- Generated by `make regressions`: do not edit. -->"
    yield "# Faults that a passport tells"
    yield ""
    counted = sum(change["how"] == "worse" for change in changes)
    yield from _paragraph(
        "Faults that stacks once had: most as [a text](../how-to/program.md) in `tests/regressions` that is right, and "
        "with `:wrong=1` has the fault, the others as an option of a built-in algorithm. Of "
        f"{len(entries)} faults, {counted} make a row of suite {suite.VERSION} worse by the rule of [`passport "
        "--against`](../how-to/passport.md#in-continuous-integration). A row is named only after it told the two "
        "apart; other rows may too."
    )
    yield ""
    yield "    dragstrip passport stuck --program tests/regressions/stuck.cc --only alone --out right"
    yield "    dragstrip passport stuck:wrong=1 --program tests/regressions/stuck.cc --only alone --against right/passport.json"
    yield ""


def _table(entries: Sequence[Regression], changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| text or option | fault | in | row that tells it | right | wrong |"
    yield "|---|---|---|---|---|---|"
    for entry, change in zip(entries, changes, strict=True):
        name = entry.name if entry.is_text else entry.wrong
        told = f"`{change['id']}`" if change["how"] == "worse" else f"`{change['id']}` does not"
        now = measured(change["now"]) if change["now"] is not None else "the run fails"
        cells = (
            f"`{name}`",
            escaped(entry.fault),
            escaped(entry.source),
            told,
            measured(change["before"]),
            now,
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _refactored(refactored: FalseAlarms) -> Iterator[str]:
    total = sum(refactored.kinds.values())
    yield "## False alarms"
    yield ""
    rest = (
        f"The others differ in rounding; {len(refactored.alarms)} of them are worse by the rule, in "
        f"{refactored.count} of the {total} refactorings."
        if refactored.equal < refactored.rows
        else "No row alarms, not even where another grouping of a sum changes its rounding."
    )
    yield from _paragraph(
        f"{total} refactorings of the right texts, made by `tools/refactorings.py`, each in the row that tells its "
        f"text's fault and in {len(suite_rows('reno', *ALSO))} rows more, whose names begin with "
        f"`{'`, `'.join(ALSO)}`. Of {refactored.rows} rows, {refactored.equal} have the same recordings byte for "
        f"byte, which proves them unchanged. {rest}"
    )
    yield ""
    yield "| kind of change | refactorings | with a false alarm |"
    yield "|---|---|---|"
    for kind, count in sorted(refactored.kinds.items()):
        alarming = {id(entry) for entry, _ in refactored.alarms if entry.kind == kind}
        yield f"| {kind} | {count} | {len(alarming)} |"
    if refactored.alarms:
        yield ""
        yield "The rows that alarm: " + ", ".join(
            f"`{row}` for `{entry.name}` ({entry.kind})" for entry, row in refactored.alarms
        )
    yield ""


def _missing() -> Iterator[str]:
    yield "## Neither text nor option"
    yield ""
    yield "| fault | in | why |"
    yield "|---|---|---|"
    for missing in inexpressible():
        yield f"| {escaped(missing.fault)} | {escaped(missing.source)} | {escaped(missing.why)} |"


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, 116, break_on_hyphens=False)


def main(to: str) -> None:
    """Run the rows and the refactorings, and write the page."""
    entries = regressions()
    changes = [changed_row(entry) for entry in entries]
    write_text(Path(to), page(entries, changes, false_alarms(entries)))


if __name__ == "__main__":
    main(*sys.argv[1:])
