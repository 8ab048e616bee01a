"""Everything that the package writes goes through `dragstrip.io.files`, so that a full disk leaves nothing half done."""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip.io import files

PACKAGE = Path(__file__).parents[1] / "python/dragstrip"
WRITERS = Path("io/files.py")
WRITING = {
    *(
        "write_text",
        "write_bytes",
        "mkdir",
        "makedirs",
        "touch",
        "rename",
        "renames",
        "link_to",
        "symlink_to",
    ),
    *("hardlink_to", "mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryDirectory"),
    *("copy", "copy2", "copyfile", "copytree", "move", "ParquetWriter", "savefig"),
    *("to_csv", "to_parquet", "tofile", "savez", "extractall"),
}
"""Functions and methods that write a file or make a folder."""
OURS = {"files"}
"""`dragstrip.io.files`, as modules import it."""
ELSEWHERE = {
    "analysis/whatif/walk.py:at_sender": "a capture as its sender would have taken it, in a scratch folder",
    "engines/agent/locking.py:alone": "the lock of a file that is there",
    "engines/agent/locking.py:locked": "a lock, an empty file",
    "engines/agent/packets.py:write": "captures, into the draft of the recording",
    "engines/kernels/archive.py:_of_suite": "apt's folders, in a scratch folder",
    "engines/netns/shell.py:request": "captures, into the draft of the recording",
    "engines/ssh/hosts.py:_control": "ssh's sockets, of this user's session",
    "engines/vm/guest.py:_follow": "what the command prints, in a scratch folder",
    "engines/vm/guest.py:_console_excerpt": "the console of a guest that failed, in the cache",
    "engines/vm/guest.py:_write": "what the guest is to do, in a scratch folder",
    "engines/vm/image.py:initramfs": "what the machine boots, in a scratch folder",
    "engines/vm/machine.py:__init__": "what the emulator says, in a scratch folder",
    "engines/vm/machine.py:_core": "a lock, an empty file",
    "engines/vm/window.py:__init__": "memory shared with the emulator, in a scratch folder",
    "studies/execution/programs_run.py:filling": "the folder of captures, in the draft of the recording",
    "studies/execution/runner.py:claimed": "the output folder with its mark, both removed on failure",
    "studies/execution/runner.py:next_folder": "the folder of output folders",
    "authoring/rust_files/core.py:_mirror": "a copy of the sources for cargo, which the next call completes",
    "authoring/rust_files/core.py:core": "when the cache used it last",
    "display/html.py:dump_bytecode": "compiled templates, where Python keeps compiled modules",
    "studies/search/log.py:_cut": "the end of a log that an interrupt has torn",
    "studies/search/log.py:_write": "a log that grows by whole lines, and is read again after an interrupt",
    "studies/sweep/store.py:set_aside": "a damaged file, out of the way",
}
"""Functions that write something else than results, and what."""


def writes(source: str) -> Iterator[tuple[str, int, str]]:
    """The function, line and text of each call that writes into another place than a draft."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and _writes(call) and not _into_a_draft(call):
            around = [f.name for f in functions if f.lineno <= call.lineno <= (f.end_lineno or 0)]
            yield (around or ["<module>"])[-1], call.lineno, ast.unparse(call)


def _writes(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=module)) if module in OURS:
            return False
        case ast.Attribute(attr="replace"):
            return len(call.args) == 1 and not call.keywords  # with two arguments that of a string
        case ast.Attribute(attr="copy"):
            return bool(call.args)  # without arguments that of a list
        case ast.Attribute(attr="open"):
            return _for_writing([*call.args, *(word.value for word in call.keywords)])
        case ast.Attribute(value=ast.Name(id="pq"), attr="write_table"):
            return True
        case ast.Name(id="open"):
            return _for_writing([*call.args[1:], *(word.value for word in call.keywords)])
        case ast.Attribute(attr=name):
            return name in WRITING
    return False


def _for_writing(arguments: list[ast.expr]) -> bool:
    modes = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    flags = " ".join(map(ast.unparse, arguments))
    return any(set(mode) & set("wax+") and len(mode) <= 3 for mode in modes) or "O_CREAT" in flags


def _into_a_draft(call: ast.Call) -> bool:
    """Whether the path is `draft` or below it, as `dragstrip.io.files` gives it."""
    places = [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) else call.args
    return any(_root(place) == "draft" for place in places)


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.BinOp):
        node = node.left
    return node.id if isinstance(node, ast.Name) else None


def test_nothing_is_written_past_the_atomic_writers() -> None:
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE)
        if name != WRITERS:
            for function, line, text in writes(file.read_text()):
                found.setdefault(f"{name.as_posix()}:{function}", f"{line}: {text}")
    assert {where: text for where, text in found.items() if where not in ELSEWHERE} == {}
    assert set(ELSEWHERE) <= set(found), "an exception that nothing needs"


@pytest.mark.parametrize(
    "text",
    [
        "out.write_text(page)",
        "(out / 'page').write_bytes(page)",
        "out.mkdir()",
        "open(out, 'w')",
        "out.open('wb')",
        "pq.write_table(table, out)",
        "made.replace(out)",
        "shutil.copyfile(draft_of, out)",
        "os.open(out, os.O_CREAT)",
    ],
)
def test_a_direct_write_would_be_found(text: str) -> None:
    assert list(writes(f"def write(out):\n    {text}\n")) == [("write", 2, text)]


def test_a_draft_and_a_reader_may_be_opened() -> None:
    source = (
        "with adding(out) as draft:\n    (draft / 'a').write_text('')\nopen(out)\ntext.replace('a', 'b')\n"
    )
    assert list(writes(source)) == []


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_is_added_replaces_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    before = {"a": "old", "b": "old", "kept": "old"}
    for name, text in before.items():
        (tmp_path / name).write_text(text)
    moved = files.move_in

    def full(made: Path, place: Path) -> None:
        if made.name == "d" and place.parent == tmp_path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        moved(made, place)

    def add() -> None:
        with files.adding(tmp_path) as draft:
            for name in "abcd":
                (draft / name).write_text("new")

    with monkeypatch.context() as patched:
        patched.setattr(files, "move_in", full)
        with pytest.raises(files.NotWrittenError, match=f"^{tmp_path}: cannot be written: No space left"):
            add()
    assert content(tmp_path) == before
    add()
    assert content(tmp_path) == {**dict.fromkeys("abcd", "new"), "kept": "old"}


def test_folders_above_what_was_not_written_are_removed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    said = "there/one/two: cannot be written"
    with pytest.raises(files.NotWrittenError, match=said), files.adding(tmp_path / "there/one/two") as draft:
        (draft / "a").write_text("")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert content(tmp_path) == {"there": ""}
