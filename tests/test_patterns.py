"""No regular expression of the package needs more than linear time, whatever text it is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragstrip
from patterns import superlinear

HERE = Path(dragstrip.__file__).parent
TREES = {file: ast.parse(file.read_text()) for file in sorted(HERE.rglob("*.py"))}
OURS = {
    "report/pdf.py": "PDFs that we have drawn",
    "report/viewer/__init__.py": "our own scripts",
}
"""Files whose patterns never see a text from outside."""
BOUNDED = {
    "interop/shell/patterns.py": "expressions of a script's grep: two repetitions, texts of 1,000 characters",
    "interop/shell/programs.py": "a text that grep -F searches",
}
"""Files whose patterns that are put together at run time are bounded otherwise; their others are analysed."""
METHODS = ("compile", "match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
FLAGS = {"IGNORECASE", "MULTILINE", "DOTALL", "ASCII", "VERBOSE", "I", "M", "S", "A", "X"}


def pattern_of(node: ast.expr) -> str | bytes | None:
    """The text of a pattern, with a word for what is put into it; None for any other expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(it.value) if isinstance(it, ast.Constant) else "(?:ab|c)" for it in node.values)
    return None


def used(name: str, file: Path) -> list[str]:
    """The methods by which a compiled pattern is used anywhere, or in its file if its name is private to that.

    Search for one that a loop takes from a table.
    """
    word = re.compile(rf"\b{re.escape(name)}\b")
    found = {
        it.attr
        for tree in ([TREES[file]] if name.startswith("_") else TREES.values())
        for it in ast.walk(tree)
        if isinstance(it, ast.Attribute) and it.attr in METHODS and word.search(ast.unparse(it.value))
    }
    return sorted(found) or ["search"]


def patterns() -> Iterator[tuple[str, str | bytes | None, int, str]]:
    """Each pattern of the package: where it is, its text, its flags, and a method by which it is used."""
    for file, tree in TREES.items():
        named = {
            id(inner): target.id
            for it in ast.walk(tree)
            if isinstance(it, ast.Assign | ast.AnnAssign) and it.value is not None
            for target in (it.targets if isinstance(it, ast.Assign) else [it.target])
            if isinstance(target, ast.Name)
            for inner in ast.walk(it.value)
        }
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "re"):
                continue
            if call.func.attr not in METHODS:
                continue
            flags = 0
            for it in ast.walk(call):
                if isinstance(it, ast.Attribute) and it.attr in FLAGS:
                    flags |= getattr(re, it.attr)
            name = named.get(id(call), "")
            methods = used(name, file) if call.func.attr == "compile" else [call.func.attr]
            for method in methods:
                yield f"{file.relative_to(HERE)}:{call.lineno}", pattern_of(call.args[0]), flags, method


EVERY = list(patterns())
ALL = [
    it
    for it in EVERY
    for file in [it[0].rsplit(":", 1)[0]]
    if file not in OURS and not (it[1] is None and file in BOUNDED)
]


def test_there_are_patterns() -> None:
    assert len(ALL) > 80
    assert [place for place, pattern, _, _ in ALL if pattern is None] == []


@pytest.mark.parametrize("file", BOUNDED)
def test_a_bound_is_needed(file: str) -> None:
    assert any(place.startswith(f"{file}:") for place, pattern, _, _ in EVERY if pattern is None)


@pytest.mark.parametrize("file", OURS)
def test_an_exception_is_needed(file: str) -> None:
    """A file without a superlinear pattern is no exception; `test_a_pattern_is_linear` has all other files."""
    assert any(
        superlinear(pattern or "", flags, method)
        for place, pattern, flags, method in EVERY
        if place.rsplit(":", 1)[0] == file
    )


@pytest.mark.parametrize(("place", "pattern", "flags", "method"), ALL, ids=[f"{it[0]}-{it[3]}" for it in ALL])
def test_a_pattern_is_linear(place: str, pattern: str | bytes, flags: int, method: str) -> None:
    assert superlinear(pattern, flags, method) == "", f"{place}: {pattern!r}"


@pytest.mark.parametrize(
    ("pattern", "method", "expected"),
    [
        (r"(a+)+b", "match", "exponential"),
        (r"(?:a|a)*b", "match", "exponential"),
        (r"(?:\w+\s?)*$", "match", "exponential"),
        (r"(a|b|ab)*c", "match", "exponential"),
        (r"a*a*b", "match", "quadratic or worse"),
        (r"\w+\d+x", "match", "quadratic or worse"),
        (r"\s*:", "search", "quadratic or worse"),
        (r"\s+$", "search", "quadratic or worse"),
        (r"[\w-]+\.", "search", "quadratic or worse"),
        (r"\w++\.", "search", "quadratic or worse"),
        (r"x(?=\S+:)", "search", "quadratic or worse"),
        (r"x(?=\S+:)", "match", ""),
        (r"(?=\S+:)", "search", "quadratic or worse"),
        (r"(?m)^\s*x", "search", "quadratic or worse"),
        (r'"[^"]*"', "search", ""),
        (r'"[^"]*";', "search", ""),
        (r"<!--.*?-->", "search", "quadratic or worse"),
        (r"(?m)^[ \t]*x", "search", ""),
        (r"^\s*x", "search", ""),
        (r"\s*:", "match", ""),
        (r"\w+", "search", ""),
        (r"[^,]*,[^,]*,", "match", ""),
        (r"\w{1,30}=\S{1,100}", "search", ""),
        (r"(?:ab)*c", "match", ""),
        (r"\w*", "fullmatch", ""),
        (rb"[a-z]+\d+x", "match", ""),
    ],
)
def test_what_superlinear_is(pattern: str | bytes, method: str, expected: str) -> None:
    assert superlinear(pattern, 0, method) == expected
