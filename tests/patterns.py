"""Whether Python's `re`, which backtracks, needs more than linear time for a regular expression.

A pattern becomes an automaton over the characters that it tells apart. Time grows with the square of the text if
one word leads from a loop to itself, from that loop to another, and from the other to itself, so that the border
between both can be anywhere; exponentially if it leads from a loop to itself in two ways (Weideman et al., CIAA
2016). `search` begins anew at each character, which is a loop in front. What can end in success needs no second
try. Repeats with an upper limit are no loops: their cost is a factor.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ANYWHERE = {"search", "sub", "subn", "split", "findall", "finditer"}
COPIES = 2
"""Copies of a part that may be repeated up to a limit."""
END = -1
"""Stands for the end of the text, after which nothing follows."""
PROBES = [*range(128), 0x85, 0xE9, 0x2028, 0x4E2D, 0x1D7D8]
LOOPS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)


class Automaton:
    """States with edges on sets of characters, and edges without any."""

    def __init__(self, pattern: str | bytes, flags: int, method: str) -> None:
        tree = parser.parse(pattern, flags)
        self.flags = tree.state.flags
        self.bytes = isinstance(pattern, bytes)
        self.free: dict[int, list[int]] = defaultdict(list)
        self.edges: dict[int, list[tuple[frozenset[int], int]]] = defaultdict(list)
        self.size = 0
        self.looks_ahead = False
        items = list(tree)
        begin = self.state()
        self.start = begin
        multiline = bool(self.flags & re.MULTILINE)
        anchored = (
            bool(items) and items[0][0] is c.AT and items[0][1] in (c.AT_BEGINNING, c.AT_BEGINNING_STRING)
        )
        if method in ANYWHERE and not (anchored and not multiline):
            self.start = self.state()
            self.edges[self.start].append((self.all(), self.start))
            if anchored:
                self.edges[self.start].append((frozenset({10}), begin))
            else:
                self.free[self.start].append(begin)
        self.accept = self.sequence(items, begin)
        if method == "fullmatch":
            self.accept = self.at_end(self.accept)

    def state(self) -> int:
        """A new state."""
        self.size += 1
        return self.size - 1

    def all(self) -> frozenset[int]:
        """Every character."""
        return frozenset(it for it in PROBES if not self.bytes or it < 256)

    def at_end(self, begin: int) -> int:
        """The state after the end of the text."""
        end = self.state()
        self.edges[begin].append((frozenset({END}), end))
        return end

    def sequence(self, items: Iterable[Any], begin: int) -> int:
        """The state after one part behind another."""
        for code, value in items:
            begin = self.part(code, value, begin)
        return begin

    def part(self, code: Any, value: Any, begin: int) -> int:
        """The state after a part of a pattern."""
        if code in (c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN):
            end = self.state()
            self.edges[begin].append((self.characters(code, value), end))
            return end
        if code is c.SUBPATTERN:
            return self.sequence(value[-1], begin)
        if code is c.ATOMIC_GROUP:
            return self.sequence(value, begin)
        if code is c.BRANCH:
            end = self.state()
            for branch in value[1]:
                self.free[self.sequence(branch, self.after(begin))].append(end)
            return end
        if code in LOOPS:
            return self.repeat(*value, begin)
        if code is c.AT:
            return self.at_end(begin) if value in (c.AT_END, c.AT_END_STRING) else begin
        if code in (c.ASSERT, c.ASSERT_NOT):
            if value[0] > 0:  # a look ahead costs what it reads, and consumes nothing
                self.looks_ahead = True
                self.sequence(value[1], self.after(begin))
            return begin
        raise AssertionError(f"{code} is not analysed: write the pattern without it")

    def after(self, begin: int) -> int:
        """A state of its own that follows another."""
        end = self.state()
        self.free[begin].append(end)
        return end

    def repeat(self, least: int, most: int, items: Any, begin: int) -> int:
        """The state after a repeated part."""
        for _ in range(min(least, COPIES)):
            begin = self.sequence(items, begin)
        if most is c.MAXREPEAT:
            loop = self.after(begin)
            self.free[self.sequence(items, self.after(loop))].append(loop)
            return self.after(loop)
        end = self.state()
        for _ in range(min(most - least, COPIES)):
            self.free[begin].append(end)
            begin = self.sequence(items, begin)
        self.free[begin].append(end)
        return end

    def characters(self, code: Any, value: Any) -> frozenset[int]:
        """The probes that a part matches, as `re` itself says."""
        if code is c.ANY:
            return self.all() if self.flags & re.DOTALL else self.all() - {10}
        found = set()
        for probe in self.all():
            fold = {probe, *(ord(it) for it in (chr(probe).lower(), chr(probe).upper()) if len(it) == 1)}
            same = fold if self.flags & re.IGNORECASE else {probe}
            if any(self.matches(code, value, it) for it in same):
                found.add(probe)
        return frozenset(found)

    def matches(self, code: Any, value: Any, probe: int) -> bool:
        """Whether one character is in a set."""
        match code:
            case c.LITERAL:
                return bool(probe == value)
            case c.NOT_LITERAL:
                return bool(probe != value)
            case c.RANGE:
                return bool(value[0] <= probe <= value[1])
            case c.CATEGORY:
                letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(value).rsplit("_", 1)[-1]]
                letter = letter.upper() if "_NOT_" in str(value) else letter
                return bool(
                    re.match(
                        f"\\{letter}", chr(probe), re.ASCII if self.bytes or self.flags & re.ASCII else 0
                    )
                )
        negate = value[0][0] is c.NEGATE
        return any(self.matches(*it, probe) for it in value[negate:]) != negate


class Moves:
    """The automaton without its empty edges: from state to state by character, and in how many ways."""

    def __init__(self, of: Automaton) -> None:
        self.ways: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        self.twice: set[tuple[int, int]] = set()
        reached = {state: self.reach(of, state) for state in range(of.size)}
        ending = {state for state, ends in reached.items() if of.accept in ends}
        self.accepting = set() if of.looks_ahead else ending
        sources = {of.start, *(to for edges in of.edges.values() for _, to in edges)}
        for state in sources:
            count: dict[tuple[int, int, frozenset[int]], int] = defaultdict(int)
            for between, ways in reached[state].items():
                for characters, to in of.edges[between]:
                    count[state, to, characters] += ways
                    for it in characters:
                        self.ways[it][state].add(to)
            self.twice |= {(state, to) for (_, to, _), ways in count.items() if ways > 1}
        self.representatives = self.classes()

    @staticmethod
    def reach(of: Automaton, begin: int) -> dict[int, int]:
        """The states that empty edges lead to, and by how many ways, two standing for more."""
        found: dict[int, int] = defaultdict(int)

        def walk(state: int, seen: frozenset[int]) -> None:
            found[state] += 1
            if found[state] <= 8:
                for to in of.free[state]:
                    if to not in seen:
                        walk(to, seen | {to})

        walk(begin, frozenset({begin}))
        return found

    def classes(self) -> list[int]:
        """One of each set of characters that lead to the same states."""
        by: dict[str, int] = {}
        for it, moves in self.ways.items():
            by.setdefault(repr(sorted((state, sorted(to)) for state, to in moves.items())), it)
        return sorted(by.values())

    def after(self, states: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Where one character leads from several states at once."""
        for it in self.representatives:
            if it != END:
                yield from itertools.product(*(self.ways[it].get(state, ()) for state in states))

    def closure(self, begin: tuple[int, ...]) -> set[tuple[int, ...]]:
        """What the same words lead to from several states at once."""
        seen: set[tuple[int, ...]] = set()
        rest = [begin]
        while rest:
            for to in self.after(rest.pop()):
                if to not in seen:
                    seen.add(to)
                    rest.append(to)
        return seen


def superlinear(pattern: str | bytes, flags: int = 0, method: str = "search") -> str:
    """Say how the time of a pattern grows with the text, empty if it grows linearly."""
    moves = Moves(Automaton(pattern, flags, method))
    alone = {state: {to for (to,) in moves.closure((state,))} for state in list_of(moves)}
    looping = [state for state in alone if state in alone[state]]
    failing = [state for state in looping if state not in moves.accepting]
    for state in failing:
        ring = {to for to in alone[state] if state in alone.get(to, ())}
        if any(a in ring and b in ring for a, b in moves.twice):
            return "exponential"
        if any(a != b and (state, state) in moves.closure((a, b)) for a, b in moves.closure((state, state))):
            return "exponential"
    for first, second in itertools.permutations(failing, 2):
        if second in alone[first] and (first, second, second) in moves.closure((first, first, second)):
            return "quadratic or worse"
    return ""


def list_of(moves: Moves) -> list[int]:
    """The states that characters lead from."""
    return sorted({state for by in moves.ways.values() for state in by})
