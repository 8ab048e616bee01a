"""A passport as one JSON document: rows, chapters, sentences, harm, theory, and what was not tested."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragstrip import __version__
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES
from dragstrip.studies.passport import suite
from dragstrip.studies.passport.chapters import beside
from dragstrip.studies.passport.chapters import path as path_chapter
from dragstrip.studies.passport.rows import BASELINES, PassportRow, Subject
from dragstrip.studies.passport.sentences import sentences
from dragstrip.studies.passport.verdicts import RowVerdict, Value, worst

FORMAT = 1
"""The version of the document's form."""
KERNEL = "a real kernel"
"""Limits of the suite on the simulator alone: untested properties."""
WORST = 5
"""Rows that are shown as the worst."""
VERDICTS = ("held", "missed", "missed, as by CUBIC", "better", "same", "worse", "reported", "failed")
EXPERIMENTS = "experiments/"
"""The folder of experiments and Rust files, from the passport's folder."""


def experiment_file(row: PassportRow) -> str:
    """The file of a row whose scenario is an experiment, from the passport's folder."""
    return f"{EXPERIMENTS}{row.id}.toml"


def rust_files(subject: Subject) -> dict[str, str]:
    """The subject's files in Rust, by the names of their copies from the passport's folder."""
    rust = [file for file in subject.files if file.endswith(".rs")]
    number = [f"{at}-" for at in range(1, len(rust) + 1)] if len(rust) > 1 else [""]
    return {f"{EXPERIMENTS}{at}{Path(file).name}": file for at, file in zip(number, rust, strict=False)}


def replay(row: PassportRow, subject: Subject, seeds: int) -> str:
    """The one command that makes a row's runs again; one of an experiment is run in the passport's folder."""
    if row.scenario.is_comparison:
        return row.scenario.command(subject, seeds)
    programs = (word for copy in rust_files(subject) for word in ("--program", copy))
    return shlex.join(["dragstrip", "run", experiment_file(row), *programs])


def replay_outside(command: str, folder: Path) -> str:
    """Return a row's replay as a command for the current folder, where `folder` is the passport's."""
    words = shlex.split(command)
    if words[:2] != ["dragstrip", "run"]:
        return command
    return shlex.join(str(folder / word) if word.startswith(EXPERIMENTS) else word for word in words)


def document(
    subject: Subject,
    judged: Sequence[RowVerdict],
    chapters: Sequence[str],
    quick: bool,
    not_run: Sequence[tuple[PassportRow, str]] = (),
) -> dict[str, Any]:
    """Return the passport as JSON; the same rows give the same bytes.

    `not_run` are the rows that its engine did not run, each with the reason.
    """
    rows = [row_entry(entry, subject) for entry in judged]
    by_id = {row["id"]: row for row in rows}
    return {
        **base(subject, suite.VERSION, quick),
        "chapters": [
            chapter_entry(name, suite.TITLES[name], rows)
            for name in chapters
            if suite.rows(subject.name, [name], quick)
        ],
        "sentences": sentences(subject, judged),
        "worst": [entry.row.id for entry in worst(judged, WORST)],
        "harm": _harm(by_id, subject.word),
        "rows": rows,
        "not_run": [{"id": row.id, "title": row.title, "why": why} for row, why in not_run],
        "not_tested": [*_left_out(subject, chapters, quick), *_untested(subject)],
    }


def base(subject: Subject, version: int, quick: bool) -> dict[str, Any]:
    """Return the fields that every passport begins with; `version` is its suite's."""
    return {
        "passport": FORMAT,
        "suite": version,
        "version": __version__,
        "build": subject.on.build,
        "engine": subject.on.engine,
        "kernel": subject.on.kernel,
        "algorithm": subject.word,
        "quick": quick,
    }


def counts(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns the number of rows by verdict, without verdicts that no row has."""
    verdict_counts = Counter(row["verdict"] for row in rows)
    return {name: verdict_counts[name] for name in VERDICTS if verdict_counts[name]}


def chapter_entry(name: str, title: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a chapter with its number of rows by verdict."""
    chapter_rows = [row for row in rows if row["chapter"] == name]
    return {
        "name": name,
        "title": title,
        "rows": len(chapter_rows),
        "verdicts": counts(chapter_rows),
    }


def _value(value: Value) -> dict[str, Any]:
    return {
        "value": value.median,
        "values": list(value.by_seed),
        "recordings": list(value.recordings),
        **({"failure": value.failure} if value.failure else {}),
        **({"smaller": value.smaller} if value.smaller else {}),
    }


def row_entry(entry: RowVerdict, subject: Subject) -> dict[str, Any]:
    """Return a row with its figures, verdict and replay command."""
    row, law = entry.row, entry.row.law
    seeds = max(1, len(entry.value.recordings))
    return {
        "id": row.id,
        "chapter": row.chapter,
        "title": row.title,
        "measure": row.figure.name,
        "unit": row.figure.unit,
        "formula": row.figure.formula,
        **({"no_measure": row.figure.no_measure} if row.figure.no_measure else {}),
        "more_is_better": row.figure.more_is_better,
        "floor": row.figure.floor,
        "kind": row.rule.kind,
        "rule": row.rule.text,
        "least": row.rule.least,
        "most": row.rule.most,
        "source": row.rule.source,
        "verdict": entry.verdict,
        **_value(entry.value),
        "baselines": {
            name: {**_value(baseline), **_difference(entry, name)}
            for name, baseline in entry.baselines.items()
        },
        "theory": None
        if law is None
        else {
            "law": law.name,
            "value": law.value,
            "valid": law.valid,
            "deviation": None if entry.value.median is None else entry.value.median / law.value - 1,
        },
        "replay": replay(row, subject, seeds),
    }


def _difference(entry: RowVerdict, name: str) -> dict[str, Any]:
    """The interval of the row's figure less a baseline's, where the two are compared."""
    return {"difference": list(entry.differences[name])} if name in entry.differences else {}


def _harm(rows: Mapping[str, Mapping[str, Any]], word: str) -> list[dict[str, Any]]:
    """Harm by its doer, the neighbour that suffers it, and the buffer; its own kind first."""
    cells = []
    for bdp, path in beside.PATHS.items():
        for neighbour in (beside.SAME_KIND, *BASELINES):
            row = rows.get(f"{beside.NAME}-{beside.key(neighbour, bdp)}-neighbour")
            if row is None or (neighbour == beside.SAME_KIND and word in BASELINES):
                continue
            doers = {word: row["value"]}
            if neighbour != beside.SAME_KIND:
                doers.update({name: of["value"] for name, of in row["baselines"].items()})
            cells += [
                {
                    "path": path.name,
                    "by": doer,
                    "to": word if neighbour == beside.SAME_KIND else neighbour,
                    "goodput_mbit": goodput_mbit,
                    "harm": None
                    if goodput_mbit is None
                    else 1 - goodput_mbit / (path.mbit * PAYLOAD_BYTES / FRAME_BYTES),
                }
                for doer, goodput_mbit in doers.items()
            ]
    return cells


def _left_out(subject: Subject, chapters: Sequence[str], quick: bool) -> list[dict[str, str]]:
    path_alone = tuple(chapters) == (path_chapter.NAME,)
    why = "the chapter path alone was requested" if path_alone else "--only leaves it out"
    omissions = [{"what": f"chapter {name}", "why": why} for name in suite.NAMES if name not in chapters]
    omissions += [
        {"what": f"chapter {name}", "why": f"not applicable: no row is about {subject.name}"}
        for name in chapters
        if not suite.rows(subject.name, [name], quick=False)
    ]
    if quick:
        whole = len(suite.rows(subject.name, chapters, quick=False))
        part = len(suite.rows(subject.name, chapters, quick=True))
        omissions.append({"what": f"{whole - part} of {whole} rows", "why": "--quick leaves them out"})
    if beyond := suite.beyond(subject.name):
        omissions.append({"what": f"theory: {', '.join(beyond)}", "why": f"no law of {subject.name}"})
    return omissions


def _untested(subject: Subject) -> list[dict[str, str]]:
    return [
        {"what": entry.topic, "why": entry.why}
        for entry in suite.UNTESTED
        if not (entry.topic == KERNEL and subject.on.kernel)
    ]
