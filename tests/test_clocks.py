"""No test asserts how long something took: a machine may be slow, or busy with other work.

Count what is done instead: files read, calls made, elements drawn. Waiting for something to happen, with a patience
after which the test gives up, stays possible: `until = time.monotonic() + 60` and, in a loop,
`assert time.monotonic() < until`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CLOCKS = {"time", "time_ns", "monotonic", "monotonic_ns"}
STOPWATCHES = {
    f"{name}{unit}" for name in ("perf_counter", "process_time", "thread_time") for unit in ("", "_ns")
} | {"timeit", "getrusage"}
PATIENCE_S = 60
"""The least patience with a process or a condition: a busy machine has needed 30 s for what takes one."""
MEASURED = {
    "tests/netns/test_shell.py",  # scripts inside the path, which print what they measured
    "tests/sweep/test_cluster.py",  # how often a worker is killed
    "tests/sweep/test_faults.py",  # when a process is killed
    "tests/blind_captures.py",  # processor time of an answer, as shown
    "tests/calibration/score.py",  # how long the score took, as shown
    "tests/torture/common.py",  # how long a trial took, as told; when no further one begins
    "tests/torture/everything.py",
    "tests/torture/kills.py",
    "tests/torture/namespaces.py",
}
"""Files that measure a duration without asserting it."""
OTHERS = re.compile(r"\b(?:performance|Date)\.now\b|\bnew Date\b|\b(?:Task|Script|Layout)Duration\b")
RUST = re.compile(r"\.elapsed\(\)|std::time::(?:Instant|SystemTime)\b")


def complaints(source: str, measured: bool = False) -> list[str]:
    """What a Python test file does with a clock that it must not."""
    return [f"{node.lineno}: {what}" for node, what in _found(ast.parse(source), measured)]


def _found(tree: ast.Module, measured: bool) -> Iterator[tuple[ast.expr | ast.stmt | ast.alias, str]]:
    in_loop = {
        child for node in ast.walk(tree) if isinstance(node, ast.For | ast.While) for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name) if name in STOPWATCHES:
                yield node, f"{name} measures how long something took"
            case ast.Constant(value=str(text)) if OTHERS.search(text):
                yield node, "a script measures how long something took"
            case ast.Assert() if any(map(_elapsed, ast.walk(node))):
                yield node, "a duration is asserted"
            case ast.Assert() if any(map(_is_clock, ast.walk(node))) and node not in in_loop:
                yield node, "a clock is asserted outside a loop that waits for something"
            case ast.BinOp() if _elapsed(node) and not measured:
                yield node, "a duration is measured"
            case ast.BinOp(
                left=left, op=ast.Add(), right=ast.Constant(value=int() | float() as patience)
            ) if _is_clock(left) and patience < PATIENCE_S:
                yield node, f"{patience:g} s of patience, at least {PATIENCE_S}"
            case ast.keyword(arg="timeout", value=ast.Constant(value=int() | float() as patience)) if (
                patience < PATIENCE_S and node not in in_loop
            ):
                yield node.value, f"{patience:g} s of patience, at least {PATIENCE_S}"


def _is_clock(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="time"), attr=name)):
            return name in CLOCKS
        case ast.Call(func=ast.Name(id=name)):
            return name in CLOCKS - {"time"}
    return False


def _elapsed(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _is_clock(left) and not isinstance(right, ast.Constant)
    return False


def test_no_python_test_asserts_a_duration() -> None:
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if file != Path(__file__):
            found += [f"{name}:{line}" for line in complaints(file.read_text(), name in MEASURED)]
    assert found == []


def test_no_other_test_asserts_a_duration() -> None:
    scripts = [*(ROOT / "playground/test").rglob("*.*s"), *(ROOT / "tests").rglob("*.mjs")]
    rust = [
        *(ROOT / "crates").glob("*/tests/**/*.rs"),
        *(ROOT / "crates").glob("*/src/**/tests.rs"),
        *(ROOT / "crates").glob("*/src/**/*.rs"),
    ]
    assert scripts
    assert rust
    found = [file for file in scripts if OTHERS.search(file.read_text())]
    for file in rust:
        whole = file.name == "tests.rs" or "tests" in file.relative_to(ROOT).parts
        code, _, tests = file.read_text().partition("#[cfg(test)]\nmod ")
        found += [file] if RUST.search(code + tests if whole else tests) else []
    assert [file.relative_to(ROOT).as_posix() for file in found] == []


@pytest.mark.parametrize(
    "source",
    [
        "began = time.process_time()",
        "from time import perf_counter",
        "assert time.monotonic() - began < 30",
        "took = time.time() - began",
        "work()\nassert time.monotonic() < until",
        "until = time.monotonic() + 5",
        "process.communicate(timeout=20)",
        "page.value('performance.now()')",
    ],
)
def test_each_rule_can_complain(source: str) -> None:
    assert complaints(source)


def test_waiting_is_allowed() -> None:
    waits = """
        until = time.monotonic() + 60
        while not there():
            assert time.monotonic() < until, "it did not come"
            select.select([source], [], [], max(0.0, until - time.monotonic()))
        process.communicate(timeout=120)
    """
    assert complaints(textwrap.dedent(waits)) == []
