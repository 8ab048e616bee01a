"""A lab of namespaces for the whole session; without root or sshd its tests are skipped by name."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragstrip.engines.agent import binaries
from dragstrip.errors import DragstripError

from .namespaces import LabOfNamespaces, missing, three


@dataclass(frozen=True)
class Course:
    """The GENI exercise's three machines, and how they are asked."""

    lab: LabOfNamespaces
    file: Path
    folder: Path
    runtime: Path
    """A short one: the names of sockets have about a hundred bytes."""

    def start(self, *words: str, file: Path | None = None) -> subprocess.Popen[str]:
        """`dragstrip ...`, with the lab's file in place of the word LAB."""
        command = [str(file or self.file) if word == "LAB" else word for word in words]
        return subprocess.Popen(
            [sys.executable, "-m", "dragstrip", *command],
            env={
                **os.environ,
                "DRAGSTRIP_SSH": self.lab.ssh,
                "XDG_RUNTIME_DIR": str(self.runtime),
                "COLUMNS": "200",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, *words: str, file: Path | None = None) -> tuple[int, str, str]:
        """Status, standard output and standard error."""
        process = self.start(*words, file=file)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def changed(self, text: str, new: str) -> Path:
        """The lab's file with something else in it."""
        content = self.file.read_text()
        assert text in content
        file = self.folder / "changed.toml"
        file.write_text(content.replace(text, new))
        return file


@pytest.fixture(scope="session")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    if why := missing():
        pytest.skip(why)
    try:
        binaries.program()
    except DragstripError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("lab")
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime, three(folder) as (lab, file):
        course = Course(lab, file, folder, Path(runtime))
        yield course
        lab.ask_masters_to_end(course.runtime)
