"""The words of a queue discipline, its main parameter, and the same discipline with another value of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.experiment.comparison import COMMAND_LINE, compare

BASELINES = ("pfifo limit 1000", "bfifo limit 1bdp")
"""The drop-tail queues beside which RFC 7928 (8.2.6) puts a discipline: Linux's for an interface without one,
a thousand packets (`txqueuelen`), and one of a bandwidth-delay product."""


@dataclass(frozen=True)
class MainParameter:
    """The parameter of a discipline that sets its delay."""

    word: str
    """The word of tc for it."""
    field: str
    """The field of the scenario that holds it."""
    unit: str
    """The unit of the field, as tc writes it."""


MAIN = {
    **dict.fromkeys(
        ("codel", "fq_codel", "pie", "fq_pie", "dualpi2"), MainParameter("target", "target_ns", "ns")
    ),
    "cake": MainParameter("rtt", "rtt_ns", "ns"),
    "bfifo": MainParameter("limit", "limit_bytes", "b"),
    **dict.fromkeys(("pfifo", "sfq", "fq", "skbprio"), MainParameter("limit", "limit_packets", "")),
}
"""Main parameters by discipline; the others have several that go together, such as red's min and max."""


def kind(words: str) -> str:
    """Return the discipline's name; that of a multiple of the bandwidth-delay product is bfifo."""
    return "bfifo" if re.fullmatch(r"[0-9.]+bdp", words) else words.split()[0]


def main_parameter(words: str) -> tuple[MainParameter, int] | None:
    """Return the discipline's main parameter and its value here.

    None without one, for a value in BDPs, and for the drop-tail queues beside which the others stand.
    """
    parameter = MAIN.get(kind(words))
    if parameter is None or "bdp" in words or words in BASELINES:
        return None
    value = _core.parse_qdisc(words).get(parameter.field)
    return None if not isinstance(value, int) else (parameter, value)


def scaled(words: str, factor: float) -> str:
    """Return the discipline with its main parameter times `factor`."""
    main = main_parameter(words)
    assert main is not None
    parameter, value = main
    changed = f"{parameter.word} {max(1, round(value * factor))}{parameter.unit}"
    replaced, count = re.subn(rf"\b{parameter.word}\s+\S+", changed, words)
    return replaced if count else f"{words} {changed}"


def sized(words: str, bdp_bytes: float) -> str:
    """Return the words with a limit in bandwidth-delay products as bytes, for a product of `bdp_bytes`."""
    return " ".join(_in_bytes(word, bdp_bytes) for word in words.split())


def _in_bytes(word: str, bdp_bytes: float) -> str:
    size = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)bdp", word)
    return f"{round(float(size[1]) * bdp_bytes)}b" if size else word


def expect_queue(words: str) -> str:
    """Return the words with single blanks; raises `BadInputError` for those that are no discipline alone."""
    clean = " ".join(words.split())
    try:
        compare(["reno"], rate="10mbit", rtt="100ms", queue=clean or " ", source=COMMAND_LINE)
    except BadInputError as error:
        raise BadInputError("--queue", Raw(error.value), error.expected, COMMAND_LINE) from None
    if kind(clean) in WRAPPERS or re.fullmatch(r"[0-9.]+(?!bdp)[a-z]+", clean):
        expected = f"a discipline that holds packets itself: {', '.join(ALONE)}{nearest(kind(clean), ALONE)}"
        raise BadInputError("--queue", words, expected, COMMAND_LINE)
    return clean


WRAPPERS = frozenset(("noqueue", "netem", "police", "tc"))
"""Words of `--queue` that manage no queue of their own, or name a tree of classes."""
ALONE = (
    "pfifo limit 1000",
    "bfifo limit 1bdp",
    "red limit 400kb avpkt 1000",
    "choke limit 1000 bandwidth 10mbit",
    "sfb",
    "codel",
    "pie",
    "dualpi2",
    "sfq",
    "fq",
    "fq_codel",
    "fq_pie",
    "cake",
)
"""The disciplines that run alone, with what they need: those of docs/reference/queues.md."""
