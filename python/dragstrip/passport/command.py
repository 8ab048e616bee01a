"""Steps of `dragstrip passport`: make runs, judge rows, write files, list what fails a build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragstrip import _core, engines
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
from dragstrip.io import toml, untrusted
from dragstrip.io.files import adding, json_text, write_text
from dragstrip.passport import against, agreement, junit, page, runs, suite, summary
from dragstrip.passport.document import document, experiment_file, rust_files
from dragstrip.passport.rows import BASELINES, SIMULATOR, On, Row, Subject
from dragstrip.passport.verdicts import Judged, judge, value

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
    beside: On | None = None
    """A second engine, whose verdicts stand beside the first one's."""


def asked(
    algorithm: str,
    programs: Mapping[str, str],
    files: Sequence[str],
    *,
    quick: bool,
    only: str | None,
    against_file: Path | None,
    on: On = SIMULATOR,
    beside: str | None = None,
) -> Asked:
    """Reads the request of the command line; raises `BadInputError`, in its words, for what is wrong."""
    subject = Subject(algorithm, tuple(sorted(programs.items())), tuple(files), on)
    other = None if beside is None else _beside(beside, on)
    for one in (on, *([] if other is None else [other])):
        _expect_runnable(replace(subject, on=one))
    chapters = suite.chapters(only)
    before = None if against_file is None else against.read(against_file)
    rows = tuple(suite.rows(subject.name, chapters, quick))
    return Asked(subject, chapters, quick, rows, before, str(against_file or ""), other)


def _beside(name: str, on: On) -> On:
    """The second engine of this name, with the options of the first that it takes too."""
    try:
        engines.named(name)
    except BadInputError as error:
        raise BadInputError("--beside", name, error.expected, "command line") from None
    if name == on.engine:
        raise BadInputError("--beside", name, "another engine than --engine", "command line")
    takes = engines.named(name).options
    options = {key: given for key, given in on.options.items() if key in takes}
    return On(name, options, on.load if "load" in takes else ())


def _expect_runnable(subject: Subject) -> None:
    """Raise `BadInputError` for an algorithm that its engine does not know or would not run."""
    from dragstrip.experiment.expand import expand

    on, word = subject.on, subject.word
    if "," in on.engine:
        raise BadInputError("--engine", on.engine, "one engine; --beside names a second one", COMMAND_LINE)
    race: dict[str, Any] = {**on.race, "programs": dict(subject.programs)}
    described = compare([word], rate="10mbit", rtt="40ms", source=COMMAND_LINE, **race)
    if not _core.flow_word(word).is_algorithm_alone:
        expected = "an algorithm with its options alone: each row has its own flows, round trips and starts"
        raise BadInputError("ALGORITHM", word, expected, COMMAND_LINE)
    for run in reworded(lambda: expand(described), COMMAND_LINE):
        for refusal in engines.named(on.engine).refusals(run.scenario, on.all_options):
            raise refusal.error(f"engine {on.engine}")


def make(asked: Asked, workers: int | None, quiet: bool) -> dict[str, Any]:
    """Make a passport and return its document."""
    own = asked.subject
    judged, left = _judged(asked.rows, own, workers, quiet)
    not_run = [(row, left[row.id]) for row in asked.rows if row.id in left]
    found = document(own, judged, asked.chapters, asked.quick, not_run)
    if asked.beside is not None:
        rows = [entry.row for entry in judged]
        others, lacking = _judged(rows, replace(own, on=asked.beside), workers, quiet)
        found["beside"] = agreement.compare(judged, others, lacking, asked.beside)
    if asked.before is not None:
        found["against"] = against.compare(found, asked.before, asked.before_name)
    return found


def _judged(
    rows: Sequence[Row], own: Subject, workers: int | None, quiet: bool
) -> tuple[list[Judged], dict[str, str]]:
    """The verdicts of the rows that the subject's engine runs, and why it does not run the others, by id."""
    baselines = [own if name == own.word else Subject(name, on=own.on) for name in BASELINES]
    subjects = [own, *(one for one in baselines if one is not own)]
    made = runs.make(rows, subjects, workers, quiet, on=own.on)
    judged = []
    for row in rows:
        if row.id in made.left:
            continue
        mine = value(row, made.of(row, own))
        others = {one.word: mine if one is own else value(row, made.of(row, one)) for one in baselines}
        judged.append(judge(row, mine, others))
    return judged, made.left


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
    own = asked.subject
    # The files to load are named from an experiment's own folder.
    subject = replace(own, on=replace(own.on, load=tuple(str(Path(one).resolve()) for one in own.on.load)))
    told = {row["id"] for row in found["rows"]}
    experiments = {
        experiment_file(row): toml.toml_text(row.scenario.experiment(subject).content())
        for row in asked.rows
        if row.id in told and not row.scenario.is_comparison
    }
    copies = {}
    if experiments:
        copies = {
            name: untrusted.text(Path(file), untrusted.SOURCE_MAX, "a congestion control in Rust")
            for name, file in rust_files(own).items()
        }
    texts = {JSON: json_text(found), page.NAME: page.page(found), summary.NAME: summary.markdown(found)}
    with adding(folder) as draft:
        for name, text in {**texts, **experiments, **copies}.items():
            (draft / Path(name).parent).mkdir(exist_ok=True)
            (draft / name).write_text(text, encoding="utf-8", errors="backslashreplace")


def write_junit(found: Mapping[str, Any], file: Path) -> None:
    """Write the rows as JUnit XML; raises `NotWrittenError`."""
    write_text(file, junit.xml(found, fails(found)))
