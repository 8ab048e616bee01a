"""The boundary: no module but `io/untrusted.py` opens a file to read it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dragstrip
from dragstrip.errors import BadInputError
from dragstrip.io import untrusted

ROOT = Path(dragstrip.__file__).parent
READERS = {
    *("read_text", "read_bytes", "readlink", "fdopen", "mmap", "memory_map", "open_file"),
    *("ParquetFile", "ParquetDataset", "read_table", "read_metadata", "read_schema", "read_pandas"),
    *("fromfile", "loadtxt", "genfromtxt", "memmap"),
}
"""Names of functions that read a file, whatever they belong to."""
MODULES = {"tomllib": {"load", "loads"}, "json": {"load"}, "lzma": {"open", "decompress"}, "os": {"open"}}
"""Functions of these modules that read, or that decode without a limit."""
OURS = {
    ("playground/cell.py", "read_text"): "the package's own script",
    ("model/recording/folder.py", "read_table"): "its own, through the boundary",
    ("report/load.py", "read_table"): "model/recording/folder.py's",
    ("studies/execution/side_by_side.py", "tomllib.loads"): "a value of the command line",
    ("io/toml.py", "tomllib.loads"): "statements of a text that came through the boundary",
    ("runs/child.py", "fdopen"): "its own standard output, to write",
    ("model/recording/core_build.py", "open"): "the checkout's own sources",
    ("engines/netns/shell.py", "fdopen"): "pipes from the agent and from the programs it runs",
    ("engines/vm/guest.py", "open"): "what the guest's command prints, handed on as it comes",
    ("cli/play.py", "open"): "the browser, which is asked to show a page",
    ("engines/vm/window.py", "mmap"): "memory that it has just made",
    ("studies/sweep/make.py", "open"): "a method of the store",
    ("io/files.py", "os.open"): "drafts, for their locks",
    ("io/files.py", "open"): "a draft of its own, copied into a device",
    ("io/files.py", "fdopen"): "a device, to write",
    ("io/files.py", "readlink"): "where a link leads, to write there",
}


def _reads(call: ast.Call) -> str | None:
    """What a call reads with, if it does."""
    match call.func:
        case ast.Name("open") | ast.Attribute(attr="open"):
            known = [word.value for word in call.args if isinstance(word, ast.Constant)]
            known += [word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)]
            modes = [word for word in known if isinstance(word, str) and set(word) <= set("rwaxbt+")]
            module = getattr(getattr(call.func, "value", None), "id", "")
            if module in MODULES:
                written = re.search("O_WRONLY|O_RDWR|O_CREAT", ast.unparse(call))
                return f"{module}.open" if "open" in MODULES[module] and not written else None
            return None if modes and modes[0] != "rb" and modes[0] != "r" else "open"
        case ast.Attribute(ast.Name(module), name) if name in MODULES.get(module, ()):
            return f"{module}.{name}"
        case ast.Name(name) | ast.Attribute(attr=name) if name in READERS:
            return name
    return None


def _found(root: Path) -> set[tuple[str, str]]:
    found = set()
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and (name := _reads(node)):
                found.add((str(file.relative_to(root)), name))
    return found


def test_files_are_read_through_the_boundary_alone() -> None:
    found = {(file, name) for file, name in _found(ROOT) if file != "io/untrusted.py"}
    assert found == set(OURS), "read with dragstrip.io.untrusted, or say in OURS why not"


def test_the_boundary_test_sees_readers(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "open(a)\nopen(a, 'rb')\nPath(a).open()\nPath(a).open('w')\nopen(a, mode='w')\nPath(a).read_text()\n"
        "pq.read_table(a)\njson.load(a)\njson.loads(a)\ntomllib.loads(a)\nos.open(a, 1)\nos.open(a, os.O_WRONLY)\nstore.open()\n"
    )
    names = {name for _, name in _found(tmp_path)}
    assert names == {"open", "read_text", "read_table", "json.load", "tomllib.loads", "os.open"}


def test_a_file_just_too_large_is_told_by_how_much(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(16_385))
    with pytest.raises(BadInputError, match="got 16,385 bytes, 1 more than allowed, expected at most 16 KiB"):
        untrusted.content(tmp_path / "x", 16_384)
    (tmp_path / "x").write_bytes(bytes(40_000))
    with pytest.raises(BadInputError, match=r"got 39\.1 KiB, expected at most 16 KiB"):
        untrusted.content(tmp_path / "x", 16_384)
