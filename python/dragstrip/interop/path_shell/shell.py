"""A path with a server at its far end as an object, and runs of commands behind it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from dragstrip.display.document import StudyDocument, repr_line
from dragstrip.engines.contract import quietly
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.experiment.comparison import compare, option_words
from dragstrip.experiment.quantities import expect_options, quantity_of, texts
from dragstrip.experiment.types import Experiment
from dragstrip.interop.arguments import named_arguments
from dragstrip.interop.path_shell.path import (
    FLOODED,
    PATH_OPTIONS,
    REAL,
    TIMED_OUT,
    VIRTUAL,
    Ending,
    ProgramEnds,
    limit_s,
    planned,
    server_words,
    write,
)
from dragstrip.io import untrusted
from dragstrip.io.files import expect_empty_folder

PathLike = str | Path
"""A file or a folder."""
OUTPUT, ERRORS, SERVER_OUTPUT = "standard output", "standard error", "the server's output"
"""Streams of programs, by the names that engines give them."""
FETCHED_BYTES_MAX = 64 << 20
"""Bytes of a file that a command wrote, as in a guest (crates/agent/src/programs/mod.rs)."""


class ShellRun(StudyDocument):
    """A command that ran behind a path: its output, its status, and what its packets met.

    As a mapping it is `shell.json` (docs/how-to/shell.md).
    """

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.document, "")
        self._ending = ending

    @property
    def document(self) -> dict[str, Any]:
        """A copy of `shell.json`."""
        return self.to_dict()

    @property
    def stdout(self) -> str:
        """Standard output as text; bytes that are not UTF-8 are replaced."""
        return self._stream(OUTPUT)

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self._stream(ERRORS)

    @property
    def server_output(self) -> str:
        """Both streams of the server as text."""
        return self._stream(SERVER_OUTPUT)

    @property
    def stdout_bytes(self) -> bytes:
        """Standard output as it was printed."""
        return self._ending.streams.get(OUTPUT, b"")

    @property
    def files(self) -> Mapping[str, bytes]:
        """Contents of the files that `fetch` names, as far as the command wrote them."""
        return self._ending.outputs

    @property
    def status(self) -> int:
        """The command's status, 128 + N for signal N, 124 after `timeout`, 125 after 16 MiB of output."""
        return self._ending.status

    @property
    def duration_s(self) -> float:
        """Seconds from the command's start to its end, of virtual time on engine vm."""
        return float(self["duration_ns"]) / 1e9

    @property
    def timed_out(self) -> bool:
        """True if the time of `timeout` ended the command."""
        return bool(self["timed_out"])

    @property
    def command(self) -> str:
        """The command line of `dragstrip shell` that repeats it."""
        return str(self["command_line"])

    @property
    def headline(self) -> str:
        """The command, its end, and the bytes that came down."""
        ends = {TIMED_OUT: "ended by its timeout", FLOODED: "ended, it printed too much"}
        end = ends.get(self.status, f"status {self.status}")
        down = self["directions"][0]["bytes_out"]
        command = " ".join(shlex.join(self["command"]).split())
        return f"{command}: {end} after {self.duration_s:.3f} s; down {down:,} bytes"

    def __str__(self) -> str:
        path = [f"path: {line}" for line in self["path"]["lines"]]
        streams = [f"{name}:\n{self._stream(name).rstrip()}" for name in (SERVER_OUTPUT, ERRORS, OUTPUT)]
        printed = [text for text in streams if not text.endswith(":\n")]
        return "\n".join([self.headline, *path, *self._ending.notes, *printed])

    def write(self, folder: PathLike) -> None:
        """Write `shell.json` and the fetched files into a folder that is empty or does not exist yet."""
        from dragstrip.engines.vm.programs import write_outputs

        place = Path(folder)
        expect_empty_folder("folder", place)
        write(self._ending, place)
        write_outputs(self.files, place)

    def _stream(self, name: str) -> str:
        return self._ending.streams.get(name, b"").decode(errors="replace")


@dataclass(frozen=True)
class ShellOptions:
    """Options of `dragstrip.shell` beside the path."""

    engine: str = REAL
    server: str | Sequence[str] | None = None
    files: Sequence[PathLike] = ()
    cc: str = "cubic"
    timeout: str | None = None
    offline: bool = False
    date: str | None = None
    folder: Path = field(default_factory=Path)
    load: Sequence[PathLike] = ()
    engine_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        if self.engine not in (REAL, VIRTUAL):
            raise BadInputError("engine", self.engine, f"{REAL} or {VIRTUAL}")
        for name, value in (("files", self.files), ("load", self.load)):
            if isinstance(value, str | Path) or not all(isinstance(entry, str | Path) for entry in value):
                raise BadInputError(name, str(value), "a list of files")
        if not self.folder.is_dir():
            raise BadInputError("folder", str(self.folder), "a folder that exists")
        if self.engine == REAL:
            self._expect_real()

    def _expect_real(self) -> None:
        """Raise `BadInputError` for an option of virtual time, and for a file that is not there."""
        for name in ("date", "load", "engine_options"):
            if getattr(self, name):
                raise BadInputError(name, None, f"is for engine {VIRTUAL}")
        for name in map(str, self.files):
            if not (self.folder / name).exists():
                expected = "a file or a folder that exists: programs in real time see it where it is"
                raise BadInputError("files", name, expected)

    def server_words(self) -> list[str]:
        """Return the server's program and its arguments."""
        if self.server is None or isinstance(self.server, str):
            return server_words(self.server)
        words = list(self.server)
        if not words or not all(isinstance(word, str) for word in words):
            raise BadInputError("server", str(words), "a command, as text or as a list of its words")
        return words

    def words(self) -> list[str]:
        """Return the words of a command line with these options."""
        words = ["--engine", self.engine]
        if self.server is not None:
            words += ["--server", shlex.join(self.server_words())]
        words += ["--cc", self.cc] if self.cc != "cubic" else []
        words += ["--timeout", self.timeout] if self.timeout is not None else []
        words += ["--offline"] if self.offline else []
        if self.engine == VIRTUAL:
            words += [word for name in self.files for word in ("--file", str(name))]
            words += ["--date", self.date] if self.date is not None else []
            words += [word for name in self.load for word in ("--load", str(name))]
            words += [
                word
                for name, value in self.engine_options.items()
                for word in ("--engine-option", f"{name}={value}")
            ]
        return words


OPTIONS = tuple(option.name for option in fields(ShellOptions))
"""Names of the options beside the path."""


class Shell:
    """Programs behind a path: each `run` is a command on a fresh network, with a server that starts anew.

    As a context manager it prepares the engine first, and runs nothing after its end.
    """

    def __init__(self, options: ShellOptions, race: Mapping[str, Any]) -> None:
        from dragstrip.experiment.saved_paths import expanded

        self._options = options
        self._typed = texts(race)
        self._race = expanded(self._typed)
        self._closed = False
        self.runs: list[ShellRun] = []
        """The runs so far, those of shells that `changed` returned among them."""
        limit_s(options.timeout, options.engine)
        options.server_words()
        self._check()

    def _check(self) -> None:
        """Raise `BadInputError` for a path that cannot be, as far as is known without starting anything."""
        if self._options.engine == VIRTUAL:
            self._guest().checked(self._ends([]), self._race)
        else:
            planned(self._options.cc, self._race)

    @property
    def engine(self) -> str:
        """The engine: `netns` in real time, `vm` in virtual time."""
        return self._options.engine

    def race(self) -> Experiment:
        """Return the path as a race of one flow, which `dragstrip.run` runs on the simulator."""
        return compare([self._options.cc], **self._race)

    @named_arguments
    def run(
        self,
        *command: str,
        stdin: str | bytes = b"",
        fetch: Sequence[str] = (),
        capture: Sequence[str] | None = None,
        out: PathLike | None = None,
    ) -> ShellRun:
        """Run a command behind the path and return what came of it, whatever its status.

        `stdin` is its standard input; `fetch` names files that it writes, for `ShellRun.files`. With `out`,
        `shell.json` is written into that folder, which is empty or does not exist yet, and on engine vm the
        packets of `capture`, hosts or links, `[]` for the usual ones. Raises `BadInputError` for what cannot
        be, such as a program that is not there, and `DragstripError` for what this machine lacks.
        """
        if self._closed:
            raise BadInputError("run", None, "a shell whose `with` block has not ended")
        if not command:
            raise BadInputError("command", None, 'a program and its arguments: run("curl", "http://server/")')
        if not isinstance(stdin, str | bytes):
            raise BadInputError("stdin", str(stdin), "text or bytes")
        if isinstance(fetch, str):
            raise BadInputError("fetch", fetch, "a list of files")
        place = None if out is None else Path(out)
        if place is not None:
            expect_empty_folder("out", place)
        input_bytes = stdin.encode() if isinstance(stdin, str) else stdin
        if self.engine == VIRTUAL:
            ending = self._in_guest(command, input_bytes, fetch, capture, place)
        else:
            if capture is not None:
                raise BadInputError("capture", None, f"is for engine {VIRTUAL}")
            ending = self._in_real_time(command, input_bytes, fetch)
        if place is not None:
            write(ending, place)
        self.runs.append(ShellRun(ending))
        return self.runs[-1]

    def changed(self, **options: Any) -> Shell:
        """Return a shell with other options of `dragstrip.shell`, such as another `server`.

        Options of the path are added to this one's; a `path` takes the place of all of them.
        """
        own = texts({name: value for name, value in options.items() if quantity_of(name) in OPTIONS})
        race = {name: value for name, value in options.items() if quantity_of(name) not in OPTIONS}
        kept = {} if "path" in race else self._typed
        other = shell_of(replace(self._options, **own), {**kept, **texts(race)})
        other.runs = self.runs
        return other

    def missing(self) -> str:
        """Return what this machine lacks for it and what helps, in one line; empty if nothing.

        Compiles and boots what all runs share, once.
        """
        try:
            self._prepare()
        except DragstripError as error:
            return str(error)
        return ""

    def _prepare(self) -> None:
        """Make what all runs share. Raises `DragstripError` with what is missing."""
        if self.engine == VIRTUAL:
            from dragstrip.engines.vm import programs

            programs.prepare(self._options.engine_options.get("kernel"))
        else:
            # Rights, devices and modules show when they are used, and nowhere before.
            replace_server = Shell(replace(self._options, server=None), self._typed)
            replace_server._in_real_time(["true"], b"", ())

    def __enter__(self) -> Self:
        self._prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True

    def __repr__(self) -> str:
        path = " ".join(f"{name}={value}" for name, value in self._typed.items())
        words = self._options.server_words()
        server = f"; server {shlex.join(words)}" if words else ""
        count = len(self.runs)
        return repr_line(f"<Shell: {self.engine}; {path}{server}; {count} run{'s' * (count != 1)}>")

    def _repr_html_(self) -> str:
        from dragstrip.display import notebook

        return notebook.html_of(self)

    def _ends(self, command: Sequence[str], words: Sequence[str] = ()) -> ProgramEnds:
        options = self._options
        typed = ["dragstrip", "shell", *options.words(), *option_words(self._typed), *words]
        line = shlex.join([*typed, "--", *command])
        return ProgramEnds(options.cc, command, options.server_words(), line)

    def _guest(self, fetch: Sequence[str] = (), capture: Sequence[str] | None = None) -> Any:
        from dragstrip.engines.capture import CaptureRequest
        from dragstrip.interop.path_shell.guest import GuestOptions

        options = self._options
        return GuestOptions(
            options=options.engine_options,
            load=[str(file) for file in options.load],
            files=[str(file) for file in options.files],
            fetched=list(fetch),
            date=options.date,
            capture=None if capture is None else CaptureRequest(list(capture)),
            folder=options.folder.absolute(),
        )

    def _in_guest(
        self,
        command: Sequence[str],
        given: bytes,
        fetch: Sequence[str],
        capture: Sequence[str] | None,
        out: Path | None,
    ) -> Ending:
        words = [word for name in fetch for word in ("--fetch", name)]
        guest = self._guest(fetch, capture)
        seconds = limit_s(self._options.timeout, VIRTUAL)
        ending: Ending = guest.run(
            self._ends(command, words), self._race, seconds, lambda: given, out, say=quietly
        )
        return ending

    def _in_real_time(self, command: Sequence[str], given: bytes, fetch: Sequence[str]) -> Ending:
        from dragstrip.engines.netns.shell import Programs
        from dragstrip.interop.path_shell import real_time

        options = self._options
        programs = Programs(
            command=command,
            server=options.server_words(),
            network=not options.offline,
            input=given,
            folder=options.folder.absolute(),
        )
        ending = real_time.run(
            self._ends(command), self._race, limit_s(options.timeout, REAL), programs, quietly
        )
        files = {name: options.folder / name for name in fetch}
        outputs = {
            name: untrusted.content(file, FETCHED_BYTES_MAX, "a file that the command wrote")
            for name, file in files.items()
            if file.is_file()
        }
        return replace(ending, outputs=outputs)


def shell_of(options: ShellOptions, race: Mapping[str, Any]) -> Shell:
    """Return a shell on the path that options of a race describe.

    Raises `BadInputError` for an option that describes none, and for what cannot be.
    """
    expect_options(race, [*PATH_OPTIONS, *OPTIONS], "shell")
    return Shell(options, race)
