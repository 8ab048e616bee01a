"""Spellings of a new algorithm's or discipline's name in the new files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragstrip.errors import BadInputError

LETTERS_MAX = 15
"""`TCP_CA_NAME_MAX` is 16 with the terminating zero, for a kernel's module takes the name too. An interface's
discipline may be as long (`IFNAMSIZ`)."""
_WORDS = """
abstract as async await become box break const continue crate do dyn else enum extern false final fn for gen
if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait
true try type typeof union unsafe unsized use virtual where while yield
algorithm core std test
"""
RUST = frozenset(_WORDS.split())
"""Words of the language, and names of crates and modules that the sources use for something else."""


@dataclass(frozen=True)
class Names:
    """The spellings of one name."""

    registered: str
    """In scenarios and on the command line: `my-cc`."""
    module: str
    """The file and the module: `my_cc`."""
    kind: str
    """The type: `MyCc`."""

    def filled(self, skeleton: str) -> str:
        """Return a skeleton with these names in it."""
        for place, name in (("{name}", self.registered), ("{module}", self.module), ("{Kind}", self.kind)):
            skeleton = skeleton.replace(place, name)
        return skeleton


def names(name: str) -> Names:
    """Return the spellings of a name that may be one; raises `BadInputError`."""
    if len(name) > LETTERS_MAX or not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise refused(
            name,
            "lowercase letters, digits and single - or _ between them, a letter first, "
            f"at most {LETTERS_MAX} in all",
        )
    parts = re.split("[-_]", name)
    spellings = Names(name, "_".join(parts), "".join(map(str.capitalize, parts)))
    if spellings.module in RUST:
        raise refused(name, "another name: this is a word of the language")
    return spellings


def refused(name: str, expected: str) -> BadInputError:
    """Return the error of a name that cannot be used."""
    return BadInputError("NAME", name, expected, "command line")


def existing(name: str) -> BadInputError:
    """Return the error of a name that something else has."""
    return refused(name, "another name: this one exists already")
