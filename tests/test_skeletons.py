"""Files to start from: `new-algorithm` and `new-qdisc`, on a copy of what they change, never on the clone."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragstrip.authoring.skeletons import new_algorithm, new_qdisc
from dragstrip.authoring.skeletons.clone import with_module
from dragstrip.authoring.skeletons.names import RUST, names
from dragstrip.errors import BadInputError
from dragstrip.io.files import NotWrittenError

ROOT = Path(__file__).parents[1]
MODULES, REGISTRY = "crates/cc/src/algorithms/mod.rs", "crates/cc/src/registry.rs"
DISCIPLINES = "crates/qdisc/src/disciplines/mod.rs"
BAD = [
    "",
    "Reno2",
    "2fast",
    "a b",
    "a--b",
    "-a",
    "a_",
    "über",
    "../x",
    "match",
    "a/b",
    "a-name-much-too-long",
]
SHORTEST, LONGEST = "a", "abcdefghijklmno"

compiled = pytest.mark.skipif(shutil.which("rustfmt") is None, reason="rustfmt is not installed")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The folders that are read and written, without a compiler's files."""
    for folder in ("crates/cc", "crates/qdisc", "bpf"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def added(folder: Path, before: dict[str, bytes]) -> dict[str, list[str]]:
    """The lines by which each file has grown; no other line may have changed."""
    found = {}
    for path, now in contents(folder).items():
        if now != before.get(path):
            old, new = before.get(path, b"").decode().splitlines(), iter(now.decode().splitlines())
            more = []
            for line in old:
                more += itertools.takewhile(lambda it, line=line: it != line, new)
            found[path] = [*more, *new]
    assert not before.keys() - contents(folder).keys()
    return found


def laid_out(*files: Path) -> str:
    """What rustfmt would change, in the edition and the layout of the workspace."""
    words = ["rustfmt", "--edition", "2024", "--check", "--config-path", str(ROOT), *map(str, files)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


@pytest.mark.parametrize("name", [*BAD, "reno", "newreno_freebsd", "exp"])
def test_a_bad_or_existing_algorithm_is_refused_and_nothing_is_written(clone: Path, name: str) -> None:
    before = contents(clone)
    with pytest.raises(BadInputError, match=r"^command line: NAME: got "):
        new_algorithm(clone, name)
    assert contents(clone) == before


@pytest.mark.parametrize("name", [*BAD, "my-red", "my_2", "pfifo", "fq_codel", "fifo", "configuration"])
def test_a_bad_or_existing_discipline_is_refused_and_nothing_is_written(clone: Path, name: str) -> None:
    before = contents(clone)
    with pytest.raises(BadInputError, match=r"^command line: NAME: got "):
        new_qdisc(clone, name)
    assert contents(clone) == before


def test_an_algorithm_is_a_file_and_two_lines(clone: Path) -> None:
    before = contents(clone)
    written = new_algorithm(clone, "my-cc")
    lines = added(clone, before)
    assert set(lines) == set(written.files) == {"crates/cc/src/algorithms/my_cc.rs", MODULES, REGISTRY}
    assert lines[MODULES] == ["pub mod my_cc;"]
    assert lines[REGISTRY] == ["    my_cc: MyCc,"]
    assert '    name: "my-cc",' in lines["crates/cc/src/algorithms/my_cc.rs"]
    with pytest.raises(BadInputError, match="exists already"):
        new_algorithm(clone, "my_cc")


def test_a_discipline_is_a_folder_and_two_lines(clone: Path) -> None:
    before = contents(clone)
    written = new_qdisc(clone, "my_queue")
    lines = added(clone, before)
    folder = "crates/qdisc/src/disciplines/my_queue"
    assert set(lines) == set(written.files) == {f"{folder}/mod.rs", f"{folder}/spec.rs", DISCIPLINES}
    assert lines[DISCIPLINES] == ["pub mod my_queue;", "    MyQueue(my_queue::MyQueueSpec),"]
    with pytest.raises(BadInputError, match="exists already"):
        new_qdisc(clone, "my_queue")


def test_the_program_for_a_kernel_comes_beside_the_rust_file_or_alone(clone: Path) -> None:
    new_algorithm(clone, "my-cc", bpf=True)
    assert (clone / "crates/cc/src/algorithms/my_cc.rs").is_file()
    program = (clone / "bpf/my_cc.bpf.c").read_text()
    assert '.name = "my_cc"' in program  # a kernel's module takes no hyphen
    assert "{module}" not in program
    assert "{Kind}" not in program
    with pytest.raises(BadInputError, match="exists already"):
        new_algorithm(clone, "my-cc", bpf=True)
    before = contents(clone)
    new_algorithm(clone, "fixed", bpf=True)
    assert set(added(clone, before)) == {"bpf/fixed.bpf.c"}


@pytest.mark.parametrize(("create", "name"), [(new_algorithm, "my-cc"), (new_qdisc, "my_queue")])
def test_all_of_the_files_are_written_or_none(
    clone: Path, create: Callable[[Path, str], object], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, write_text = contents(clone), Path.write_text
    folders = {folder for folder in clone.rglob("*") if folder.is_dir()}
    for full_at in itertools.count(1):
        calls = itertools.count(1)

        def on_a_disk(file: Path, text: str, *words: object, **named: object) -> int:
            if next(calls) == full_at:  # noqa: B023
                write_text(file, text[:10])
                raise OSError(28, "No space left on device")
            return write_text(file, text, *words, **named)  # type: ignore[arg-type]

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", on_a_disk)
            with contextlib.suppress(NotWrittenError):
                create(clone, name)
                break
        assert contents(clone) == before, full_at
        assert {folder for folder in clone.rglob("*") if folder.is_dir()} == folders
    assert full_at == 4  # each of three files once, then none


def test_sources_that_are_not_as_expected_are_named(clone: Path) -> None:
    (clone / REGISTRY).write_text("// another registry\n")
    with pytest.raises(Exception, match=r"registry\.rs: `algorithms! \{ \.\.\. \}` is not where"):
        new_algorithm(clone, "my-cc")
    assert not (clone / "crates/cc/src/algorithms/my_cc.rs").exists()


@compiled
@pytest.mark.parametrize("name", [SHORTEST, LONGEST, "my_cc10", "com"])
def test_the_layout_is_rustfmts_whatever_the_names_length(clone: Path, name: str) -> None:
    written = [*new_algorithm(clone, name).files, *new_qdisc(clone, name).files]
    assert not laid_out(*(clone / file for file in written))


@compiled
def test_modules_are_listed_in_rustfmts_order(tmp_path: Path) -> None:
    dice = random.Random(7)  # noqa: S311
    known, text = {"m10", "reno"}, "mod m10;\npub mod reno;\n"
    while len(known) < 300:
        name = dice.choice("abm") + "".join(dice.choices("abm_129", k=dice.randrange(8)))
        with contextlib.suppress(BadInputError):
            if name not in known:
                text = with_module("mod.rs", text, names(name))
                known.add(name)
    ended = subprocess.run(
        [str(shutil.which("rustfmt")), "--edition", "2024"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert ended.stdout == text


def test_words_of_rust_are_no_names() -> None:
    assert {"match", "fn", "self", "core"} <= RUST
    for word in RUST:
        with pytest.raises(BadInputError, match="word of the language"):
            names(word)


def command(folder: Path, *words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    """The program, without a compiler on its path."""
    environment = {**os.environ, "PATH": path}
    run = [sys.executable, "-m", "dragstrip", *words]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_command_writes_into_the_clone_around_it_and_starts_no_program(clone: Path) -> None:
    before = contents(clone)
    ended = command(clone / "bpf", "new-algorithm", "my-cc")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[:3] == [
        "wrote crates/cc/src/algorithms/my_cc.rs",
        f"wrote {MODULES}",
        f"wrote {REGISTRY}",
    ]
    assert len(added(clone, before)) == 3
    ended = command(clone, "new-qdisc", "my_queue")
    assert ended.returncode == 0, ended.stderr
    assert (clone / "crates/qdisc/src/disciplines/my_queue/spec.rs").is_file()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package alone, as a wheel installs it."""
    place = tmp_path / "site"
    shutil.copytree(
        ROOT / "python/dragstrip",
        place / "dragstrip",
        ignore=shutil.ignore_patterns("catalogue_data", "__pycache__"),
    )
    return place


@pytest.mark.parametrize("name", ["new-algorithm", "new-qdisc"])
def test_without_a_clone_one_line_says_so(tmp_path: Path, installed: Path, name: str) -> None:
    run = [sys.executable, "-m", "dragstrip", name, "my_one"]
    environment = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "80"}
    ended = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert "a clone of the sources" in line
    assert ("--program" in line) == (name == "new-algorithm")  # a discipline has no form without one
