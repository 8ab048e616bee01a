"""Facts of disciplines and algorithms stand in their rows, not in lists of names elsewhere."""

from __future__ import annotations

import ast
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
    "studies/judge/draws.py": "bottlenecks that a hidden scenario draws from",
    "studies/passport/queues/words.py": "disciplines that RFC 7928's scenarios are made for",
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
    assert settled == {"bbr", "bbr2", "bbr3", "copa", "fixed", "ledbat", "ledbatpp", "vegas", "vegas-freebsd"}
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
