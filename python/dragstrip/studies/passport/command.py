"""Steps of `dragstrip passport`: make runs, judge rows, write files, list what fails a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragstrip import _core, engines
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import COMMAND_LINE, compare, path_tables, reworded
from dragstrip.experiment.saved_paths import DEFAULT_PATH, expanded
from dragstrip.io import toml, untrusted
from dragstrip.io.files import adding, json_text, write_text
from dragstrip.studies.passport import against, agreement, junit, page, runs, suite, summary
from dragstrip.studies.passport.document import document, experiment_file, rust_files
from dragstrip.studies.passport.rows import BASELINES, SIMULATOR, On, PassportRow, Subject
from dragstrip.studies.passport.verdicts import RowVerdict, judge, value

JSON = "passport.json"
MARKS = {JSON: "passport"}
FILES = (JSON, page.NAME, summary.NAME)
"""Files of a passport, beside its experiments."""
"""The file that marks a folder as a passport's, and a field of it."""


@dataclass(frozen=True)
class PassportKind:
    """A kind of subject that passports are made of, such as congestion controls."""

    baselines: tuple[str, ...]
    """Words of the subjects beside which every row stands."""
    document: Callable[..., dict[str, Any]]
    """Makes the document of subject, verdicts, chapters, `quick` and the rows that were not run."""


ALGORITHM = PassportKind(BASELINES, document)


@dataclass(frozen=True)
class PassportRequest:
    """A checked request for a passport."""

    subject: Subject
    chapters: tuple[str, ...]
    quick: bool
    rows: tuple[PassportRow, ...]
    before: Mapping[str, Any] | None = None
    """An earlier passport to compare with."""
    before_name: str = ""
    second_engine: On | None = None
    """A second engine, whose verdicts stand beside the first one's."""
    kind: PassportKind = ALGORITHM


def read_request(
    algorithm: str,
    programs: Mapping[str, str],
    files: Sequence[str],
    *,
    quick: bool,
    only: str | None,
    path: str | None = None,
    baseline_file: Path | None,
    on: On = SIMULATOR,
    second_engine: str | None = None,
) -> PassportRequest:
    """Reads the request of the command line; raises `BadInputError`, in its words, for what is wrong.

    `path` is a built-in or a saved path, for the chapter of that name.
    """
    subject = Subject(algorithm, tuple(sorted(programs.items())), tuple(files), on)
    second = None if second_engine is None else _second_engine(second_engine, on)
    for engine in (on, *([] if second is None else [second])):
        expect_runnable(replace(subject, on=engine))
    chapters = suite.chapters(only, path is not None)
    options = DEFAULT_PATH if path is None else _path_options(path)
    before = None if baseline_file is None else against.read(baseline_file)
    rows = tuple(suite.rows(subject.name, chapters, quick, options, path or ""))
    return PassportRequest(subject, chapters, quick, rows, before, str(baseline_file or ""), second)


def _path_options(name: str) -> Mapping[str, Any]:
    """The options of `compare` of a named path; raises `BadInputError` where `compare` would."""
    path_tables(name)
    return expanded({"path": name})


def _second_engine(name: str, on: On) -> On:
    """The second engine of this name, with the options of the first that it takes too."""
    try:
        engines.named(name)
    except BadInputError as error:
        raise BadInputError("--beside", name, error.expected, "command line") from None
    if name == on.engine:
        raise BadInputError("--beside", name, "another engine than --engine", "command line")
    takes = engines.named(name).options
    options = {key: setting for key, setting in on.options.items() if key in takes}
    return On(name, options, on.load if "load" in takes else ())


def expect_runnable(subject: Subject) -> None:
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
        if any(flow["transport"]["protocol"] == "udp" for flow in run.scenario["flows"]):
            expected = "a congestion control; a live video is a neighbour of rows, not their subject"
            raise BadInputError("ALGORITHM", word, expected, COMMAND_LINE)
        for refusal in engines.named(on.engine).refusals(run.scenario, on.all_options):
            raise refusal.error(f"engine {on.engine}")


def make(request: PassportRequest, workers: int | None, quiet: bool) -> dict[str, Any]:
    """Make a passport and return its document."""
    subject = request.subject
    baselines = request.kind.baselines
    judged, skip_reasons = _judged(request.rows, subject, baselines, workers, quiet)
    not_run = [(row, skip_reasons[row.id]) for row in request.rows if row.id in skip_reasons]
    passport = request.kind.document(subject, judged, request.chapters, request.quick, not_run)
    if request.second_engine is not None:
        rows = [entry.row for entry in judged]
        there = replace(subject, on=request.second_engine)
        second_judged, lacking = _judged(rows, there, baselines, workers, quiet)
        passport["beside"] = agreement.compare(judged, second_judged, lacking, request.second_engine)
    if request.before is not None:
        passport["against"] = against.compare(passport, request.before, request.before_name)
    return passport


def _judged(
    rows: Sequence[PassportRow],
    subject: Subject,
    baseline_words: Sequence[str],
    workers: int | None,
    quiet: bool,
) -> tuple[list[RowVerdict], dict[str, str]]:
    """The verdicts of the rows that the subject's engine runs, and the reasons for the others, by id."""
    baselines = [
        subject if word == subject.word else replace(subject, word=word, programs=(), files=())
        for word in baseline_words
    ]
    subjects = [subject, *(baseline for baseline in baselines if baseline is not subject)]
    results = runs.make(rows, subjects, workers, quiet, on=subject.on)
    judged = []
    for row in rows:
        if row.id in results.skip_reasons:
            continue
        subject_value = value(row, results.of(row, subject))
        baseline_values = {
            baseline.word: subject_value if baseline is subject else value(row, results.of(row, baseline))
            for baseline in baselines
        }
        judged.append(judge(row, subject_value, baseline_values))
    return judged, results.skip_reasons


def fails(passport: Mapping[str, Any]) -> dict[str, str]:
    """The rows that fail a build, by id, with the reason.

    Against an earlier passport: those that got worse. Without one: those that miss a document's limit, or
    whose runs failed under one.
    """
    if "against" in passport:
        return {
            row["id"]: f"{row['verdict_before']} -> {row['verdict_now']}: {row['before']} -> {row['now']}"
            for row in against.worse(passport["against"])
        }
    return {
        row["id"]: row.get("failure")
        or f"{row['verdict']}: {row['value']} {row['unit']}, asked: {row['rule']}"
        for row in passport["rows"]
        if row["kind"] == "P" and (row["verdict"].startswith("missed") or row["verdict"] == "failed")
    }


def write(passport: Mapping[str, Any], request: PassportRequest, folder: Path) -> None:
    """Write a passport's files into a folder, all or none of them; raises `NotWrittenError`."""
    on = request.subject.on
    # The files to load are named from an experiment's own folder.
    load = tuple(str(Path(source).resolve()) for source in on.load)
    subject = replace(request.subject, on=replace(on, load=load))
    reported_ids = {row["id"] for row in passport["rows"]}
    experiments = {
        experiment_file(row): toml.toml_text(row.scenario.experiment(subject).content())
        for row in request.rows
        if row.id in reported_ids and not row.scenario.is_comparison
    }
    copies = {}
    if experiments:
        copies = {
            name: untrusted.text(Path(file), untrusted.SOURCE_MAX, "a congestion control in Rust")
            for name, file in rust_files(request.subject).items()
        }
    texts = {
        JSON: json_text(passport),
        page.NAME: page.page(passport),
        summary.NAME: summary.markdown(passport),
    }
    with adding(folder) as draft:
        for name, text in {**texts, **experiments, **copies}.items():
            (draft / Path(name).parent).mkdir(exist_ok=True)
            (draft / name).write_text(text, encoding="utf-8", errors="backslashreplace")


def write_junit(passport: Mapping[str, Any], file: Path) -> None:
    """Write the rows as JUnit XML; raises `NotWrittenError`."""
    write_text(file, junit.xml(passport, fails(passport)))
