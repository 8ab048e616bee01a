"""Facts of disciplines and algorithms stand in their rows, not in lists of names elsewhere."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragstrip import _core
from dragstrip.model.scenario import algorithms, disciplines

PACKAGE = Path(__file__).parents[1] / "python/dragstrip"
QUEUES = frozenset(disciplines.rows())
ALGORITHMS = frozenset(_core.ALGORITHMS)

STUDIES = {
    "studies/validation/grid.py": "what a grid of recordings runs",
    "analysis/whatif/identify.py": "candidates that are tried on a capture",
    "analysis/whatif/walk.py": "algorithms that whatif races if none is named",
}
"""Modules that choose disciplines or algorithms, and what for: a choice is not a fact of them."""


def lists(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line and texts of each literal collection of three texts or more that are all names."""
    for node in ast.walk(ast.parse(text)):
        entries = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", None)
        if not entries or not all(
            isinstance(it, ast.Constant) and isinstance(it.value, str) for it in entries
        ):
            continue
        names = [entry.value for entry in entries if isinstance(entry, ast.Constant)]
        if len(names) >= 3 and (set(names) <= QUEUES or set(names) <= ALGORITHMS):
            yield entries[0].lineno if entries[0] else 0, names


def test_no_module_lists_disciplines_or_algorithms() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line}: {names}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if str(file.relative_to(PACKAGE)) not in STUDIES and "chapters" not in file.parts
        for line, names in lists(file.read_text())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "text", ['A = ("codel", "fq_codel", "cake")', 'A = {"reno": 1, "cubic": 2, "bbr": 3}']
)
def test_a_list_of_names_would_be_seen(text: str) -> None:
    assert list(lists(text))


def test_facts_of_disciplines_are_those_of_their_rows() -> None:
    fifos = set(filter(disciplines.is_fifo, QUEUES))
    aqms = set(filter(disciplines.is_aqm, QUEUES))
    assert fifos == {"bfifo", "pfifo", "tbf"}
    assert {"codel", "fq_codel", "pie", "cake", "red", "dualpi2"} < aqms
    assert not aqms & fifos
    assert disciplines.since("dualpi2") == (6, 17)
    assert disciplines.since("pfifo") is None
    assert disciplines.since("a discipline of a later tc") is None


def test_facts_of_algorithms_are_those_of_their_rows() -> None:
    modules = algorithms.modules()
    assert {"tcp_bbr", "tcp_cubic", "tcp_yeah"} < set(modules)
    assert not {"tcp_reno", "tcp_bbr3", "tcp_copa", "tcp_exp"} & set(modules)
    settled = {name for name in ALGORITHMS if algorithms.settles(name)}
    assert settled == {"bbr", "bbr3", "copa", "fixed", "ledbat", "ledbatpp", "vegas", "vegas-freebsd"}
    assert algorithms.settles("vegas_freebsd")
    assert not algorithms.settles("an algorithm of a later kernel")


@pytest.mark.parametrize(
    ("words", "marks"),
    [
        ("fq_codel", True),
        ("fq_codel noecn", False),
        ("codel", False),
        ("codel ecn", True),
        ("codel ce_threshold 1ms", True),
        ("cake bandwidth 8mbit", True),
        ("cake with words of a later tc", True),
        ("htb rate 10mbit leaf fq_codel", True),
        ("pfifo limit 1000", False),
        ("an_unknown_one ecn", True),
    ],
)
def test_a_discipline_marks_as_the_core_says(words: str, marks: bool) -> None:
    assert disciplines.marks(words) == marks


PAGE_CLASSES = {
    "Claim": "a claim as a page shows it, and the claim of an experiment",
    "Measure": "a measure as a column of a page, and the measure",
    "Panel": "a panel's data, and its drawing",
    "Part": "a part of a figure, and the base class of an experiment's parts",
    "Recording": "a recording as a page reads it, and the recording",
    "Shares": "shares over time, and their drawing",
    "Table": "a table of a recording, and a table of a page",
    "_Column": "a column in the terminal, and on a page",
    "_Scale": "an axis's scale of a timeline, and of a sweep's map",
}
"""Names that a class of the pages (`report/`, `studies/sweep/map.py`) shares with one other class."""
PAGE_MODULES = ("report/", "studies/sweep/map.py")


@functools.cache
def classes() -> dict[str, list[str]]:
    """The modules that define each class of the package, by the class's name."""
    modules: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(str(file.relative_to(PACKAGE)))
    return modules


def test_a_class_name_means_one_thing() -> None:
    several = {name: modules for name, modules in classes().items() if len(modules) > 1}
    assert {name: modules for name, modules in several.items() if name not in PAGE_CLASSES} == {}


@pytest.mark.parametrize("name", PAGE_CLASSES)
def test_a_name_that_pages_share_is_shared_with_one_other_class(name: str) -> None:
    modules = classes()[name]
    assert len(modules) == 2
    assert any(module.startswith(PAGE_MODULES) for module in modules)
