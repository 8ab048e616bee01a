"""Glossary: terms of the field in a few sentences each, from glossary.toml.

`dragstrip help TERM` prints them, and docs/reference/glossary.md lists them; `link` and `tooltip` lead there
from a page, `hint` from the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dragstrip.io import untrusted

PAGE = "reference/glossary.md"
"""The glossary's page in the documentation, from docs/."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the field."""

    name: str
    title: str
    """Written out: `Bandwidth-delay product`."""
    text: str
    also: tuple[str, ...] = ()
    """Other words for the same thing."""
    see: tuple[str, ...] = ()
    """Names of related terms."""
    source: str = ""
    """The RFC or paper that defines it."""
    here: str = ""
    """Options and commands of Dragstrip that change or show it."""

    @property
    def anchor(self) -> str:
        """The term's fragment in a page's address."""
        return "term-" + _key(self.name).replace(" ", "-")

    @property
    def heading(self) -> str:
        """Name and title, without saying the same twice."""
        return self.title if _key(self.name) == _key(self.title) else f"{self.name}: {self.title}"


@cache
def terms() -> dict[str, Term]:
    """Return all terms by name, in the alphabet's order."""
    path = Path(__file__).with_name("glossary.toml")
    entries = untrusted.parsed_toml(path, "our glossary")
    listed = {
        name: Term(
            name,
            entry["title"],
            entry["text"],
            tuple(word for word in entry.get("also", ()) if _key(word) != _key(entry["title"])),
            tuple(entry.get("see", ())),
            entry.get("source", ""),
            entry.get("here", ""),
        )
        for name, entry in entries.items()
    }
    return dict(sorted(listed.items(), key=lambda pair: pair[0].lower()))


def find(words: str) -> Term | None:
    """Return the term of this name, title or synonym in any case; None if there is none."""
    wanted = _key(words)
    return next((term for key, term in _spellings() if key == wanted), None)


def link(words: str) -> str | None:
    """Return the address of a term within docs/, `reference/glossary.md#term-bdp`; None if unknown."""
    term = find(words)
    return None if term is None else f"{PAGE}#{term.anchor}"


def tooltip(words: str) -> str | None:
    """Return a term's heading and first sentence as plain text for a `title` attribute; None if unknown."""
    term = find(words)
    return None if term is None else f"{term.heading}. {term.text.partition('. ')[0].rstrip('.')}."


def hint(*words: str) -> str:
    """Return a line for the terminal that names the commands which explain these terms.

    Words that are no term are left out; the line is empty if none is left.
    """
    commands = ", ".join(f"dragstrip help {word}" for word in dict.fromkeys(words) if find(word) is not None)
    return f"Terms: {commands}" if commands else ""


def names() -> list[str]:
    """Return each spelling that `find` knows, in lower case."""
    return [key for key, _ in _spellings()]


@cache
def _spellings() -> tuple[tuple[str, Term], ...]:
    return tuple((_key(word), term) for term in terms().values() for word in _words(term))


def _words(term: Term) -> Iterator[str]:
    """Return a term's spellings, each once."""
    yield from {_key(word): word for word in (term.name, term.title, *term.also)}.values()


def _key(words: str) -> str:
    """Return words in lower case, with single spaces for whatever separates them, without apostrophes."""
    plain = words.lower().replace("'", "").replace("’", "")
    return " ".join("".join(letter if letter.isalnum() or letter == "+" else " " for letter in plain).split())
