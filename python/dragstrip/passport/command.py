"""What `dragstrip passport` does: make runs, judge rows, write files, and say what fails a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragstrip import _core, engines
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import COMMAND_LINE, compare
from dragstrip.io import toml
from dragstrip.io.files import adding, json_text, write_text
from dragstrip.passport import against, junit, page, runs, suite, summary
from dragstrip.passport.document import document, experiment_file
from dragstrip.passport.rows import BASELINES, Row, Subject
from dragstrip.passport.verdicts import judge, value

JSON = "passport.json"


@dataclass(frozen=True)
class Asked:
    """A passport that can be made: everything that can be wrong with it has been checked."""

    subject: Subject
    chapters: tuple[str, ...]
    quick: bool
    rows: tuple[Row, ...]
    before: Mapping[str, Any] | None = None
    """An earlier passport to compare with."""
    before_name: str = ""


def asked(
    algorithm: str,
    programs: Mapping[str, str],
    files: Sequence[str],
    *,
    quick: bool,
    only: str | None,
    against_file: Path | None,
) -> Asked:
    """What the command line asks for; raises `BadInputError`, in its words, for what is wrong."""
    subject = Subject(algorithm, tuple(sorted(programs.items())), tuple(files))
    described = compare([algorithm], rate="10mbit", rtt="40ms", source=COMMAND_LINE, programs=dict(programs))
    if _decorated(algorithm):
        expected = "an algorithm with its options alone: each row has its own flows, round trips and starts"
        raise BadInputError("ALGORITHM", algorithm, expected, "command line")
    from dragstrip.experiment.expand import expand

    expand(described)
    chapters = suite.chapters(only)
    before = None if against_file is None else against.read(against_file)
    rows = tuple(suite.rows(subject.name, chapters, quick))
    return Asked(subject, chapters, quick, rows, before, str(against_file or ""))


def _decorated(word: str) -> bool:
    """Whether a word has a number of flows, a round trip or a start."""
    return _core.flow_word(word)[1] != 1 or any(mark in word for mark in "*@+")


def make(asked: Asked, workers: int | None, quiet: bool) -> dict[str, Any]:
    """Make a passport and return its document."""
    own = asked.subject
    baselines = [own if name == own.word else Subject(name) for name in BASELINES]
    made = runs.make(asked.rows, [own, *(one for one in baselines if one is not own)], workers, quiet)
    judged = []
    for row in asked.rows:
        mine = value(row, made.of(row, own))
        others = {one.word: mine if one is own else value(row, made.of(row, one)) for one in baselines}
        judged.append(judge(row, mine, others))
    build = engines.named(engines.DEFAULT).build({})
    found = document(own, judged, asked.chapters, asked.quick, build)
    if asked.before is not None:
        found["against"] = against.compare(found, asked.before, asked.before_name)
    return found


def fails(found: Mapping[str, Any]) -> dict[str, str]:
    """The rows that fail a build, by id, with the reason.

    Against an earlier passport: those that got worse. Without one: those that miss a document's limit, or
    whose runs failed under one.
    """
    if "against" in found:
        return {
            row["id"]: f"{row['verdict_before']} -> {row['verdict_now']}: {row['before']} -> {row['now']}"
            for row in against.worse(found["against"])
        }
    return {
        row["id"]: row.get("failure")
        or f"{row['verdict']}: {row['value']} {row['unit']}, asked: {row['rule']}"
        for row in found["rows"]
        if row["kind"] == "P" and (row["verdict"].startswith("missed") or row["verdict"] == "failed")
    }


def write(found: Mapping[str, Any], asked: Asked, folder: Path) -> None:
    """Write a passport's files into a folder, all or none of them; raises `NotWrittenError`."""
    experiments = {
        experiment_file(row): toml.written(row.scenario.experiment(asked.subject).content())
        for row in asked.rows
        if not row.scenario.is_comparison
    }
    texts = {JSON: json_text(found), page.NAME: page.page(found), summary.NAME: summary.markdown(found)}
    with adding(folder) as draft:
        for name, text in {**texts, **experiments}.items():
            (draft / Path(name).parent).mkdir(exist_ok=True)
            (draft / name).write_text(text, encoding="utf-8")


def write_junit(found: Mapping[str, Any], file: Path) -> None:
    """Write the rows as JUnit XML; raises `NotWrittenError`."""
    write_text(file, junit.xml(found, fails(found)))
