"""The algorithms that are judged, as their authors name them: texts, files of texts, and built-in ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.programs import FILE_ENDINGS, Program, is_text, of_files, program
from dragstrip.studies.passport.command import expect_runnable
from dragstrip.studies.passport.rows import Subject

NAME = "judged"
"""The name under which every text runs."""
Judged: TypeAlias = str | Program | Path
"""A text, a `Program`, the file of a text, or the word of a built-in algorithm."""


@dataclass(frozen=True)
class Entrant:
    """An algorithm to be judged."""

    label: str
    subject: Subject | None
    """None if it cannot be judged."""
    error: str = ""
    """Why it cannot."""

    @property
    def replayed(self) -> Subject:
        """The subject as a command line names it: a text by the name of its file."""
        assert self.subject is not None
        if not self.subject.files:
            return self.subject
        return Subject(Path(self.subject.files[0]).stem, files=self.subject.files)


def entrant(judged: Judged, number: int) -> Entrant:
    """Read one algorithm; what is wrong with it becomes its error. `number` names a text without a name."""
    label = f"text {number}" if isinstance(judged, str) and is_text(judged) else str(judged)
    try:
        subject = _subject(judged, label)
    except BadInputError as error:
        return Entrant(label, None, first_line(error))
    try:
        expect_runnable(subject)
    except BadInputError as error:
        return Entrant(label, None, error.explanation)
    return Entrant(label, subject)


def replayable(read: Entrant) -> Entrant:
    """Return the entrant, or one with an error where no command can name its file's algorithm."""
    if read.subject is None or not read.subject.files:
        return read
    name = read.replayed.word
    ((_, text),) = read.subject.programs
    try:
        expect_runnable(Subject(name, ((name, text),)))
    except BadInputError as error:
        reason = f"{error.explanation}: --show prints commands with the file's name"
        return Entrant(read.label, None, reason)
    return read


def text_entrant(text: str, label: str) -> Entrant:
    """Read a text; none is taken for a name or a file. `label` names it in its error."""
    try:
        return Entrant(label, _of_text(text, label))
    except BadInputError as error:
        return Entrant(label, None, first_line(error))


def _subject(judged: Judged, label: str) -> Subject:
    if isinstance(judged, Program):
        return _of_text(judged.text, label)
    if isinstance(judged, str) and is_text(judged):
        return _of_text(judged, label)
    file = str(judged)
    if file.endswith(".rs"):
        expected = (
            "FILE.cc, a policy (FILE.json, FILE.onnx) or one of dragstrip list --algorithms: code in Rust "
            "could reach its score"
        )
        raise BadInputError("ALGORITHM", file, f"{expected}; passport takes it")
    if isinstance(judged, Path) or file.endswith(FILE_ENDINGS):
        return Subject(NAME, tuple((NAME, text) for text in of_files([file]).values()), (file,))
    return Subject(file)


def _of_text(text: str, label: str) -> Subject:
    return Subject(NAME, ((NAME, program(label, text).text),))


def first_line(error: DragstripError) -> str:
    """Return the first line of an error's text; those after it show the place in a program."""
    return str(error).splitlines()[0]
