"""Reader of the output of `tc -s qdisc show` and `tc -s class show`, as text or with `-j` (iproute2's `tc`).

A listing has the settings of each discipline and its counts since it was installed: rows of `queues` at one
instant, and in `disciplines` the settings, which no table has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.interop.readers.measurements import (
    MOST,
    NAME_MAX,
    Measurements,
    Row,
    number,
    table,
    text,
    whole,
)

WORDS_MAX = 1_000
"""Characters of a discipline's settings, at most."""
EXTRAS_MAX = 200
"""Statistics of a discipline, at most, and of each of cake's tins."""
_HEAD = re.compile(
    r"(?P<what>qdisc|class) (?P<kind>[A-Za-z0-9_]{1,16}) (?P<handle>[0-9A-Fa-f]{0,8}:[0-9A-Fa-f]{0,8})(?= |$)"
)
_SENT = re.compile(
    r"Sent (?P<bytes>\d{1,20}) bytes (?P<packets>\d{1,20}) pkts? "
    r"\(dropped (?P<dropped>\d{1,20}), overlimits (?P<overlimits>\d{1,20}) requeues (?P<requeues>\d{1,20})\)"
)
_BACKLOG = re.compile(r"\bbacklog (\d{1,20}(?:\.\d{1,9})?)([KMG]?)b (\d{1,20})p\b")
_PASSING = re.compile(r"\brate (\d{1,20}[KMGT]?bit) \d{1,20}pps\b")
"""Rate of a class by the kernel's estimator (`tc ... estimator`, htb_rate_est)."""
_VALUE = re.compile(r"[-+]?\d{1,20}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?")
_MEASURED = re.compile(r"[-+]?\d{1,20}(?:\.\d{1,20})?[A-Za-z/%]{1,8}")
_NAME = re.compile(r"[a-z][a-z0-9_]{1,30}")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}  # print_size in iproute2's lib/utils.c
_MARKS = ("ecn_mark", "marked", "ce_mark", "marks")
"""Names of the count of marked packets: codel's and pie's, red's, fq's, cake's."""
_OF_JSON = {
    "sent_bytes": "bytes",
    "sent_packets": "packets",
    "dropped": "drops",
    "overlimits": "overlimits",
    "requeues": "requeues",
    "backlog_bytes": "backlog",
    "backlog_packets": "qlen",
}
_NO_STATISTICS = {*_OF_JSON.values(), "kind", "handle", "class", "parent", "dev", "root", "refcnt", "options"}


def is_one(begin: str) -> bool:
    """Return whether a text is a listing of tc's disciplines or classes, as text or as JSON.

    Its first line decides: `qdisc fq_codel 8001: dev eth0 root ...`.
    """
    begin = begin.lstrip("\ufeff \t\r\n")
    if begin.startswith("["):
        return '"kind"' in begin and '"handle"' in begin
    return any(_HEAD.match(line.strip()) for line in begin.splitlines()[:50])


def read(listing: str, source: str) -> Measurements:
    """Return the disciplines and classes of a listing; raises `BadInputError` if there are none."""
    listed = _listed(listing)
    return _measurements(listed, source)


def read_document(document: Any, source: str) -> Measurements:
    """Return the disciplines and classes of a listing in JSON; raises `BadInputError` if there are none."""
    return _measurements([_of_json(table(entry)) for entry in document if "kind" in table(entry)], source)


def _measurements(listed: Sequence[Row], source: str) -> Measurements:
    if not listed:
        raise BadInputError("", None, "has no queue discipline", source)
    measurements = Measurements(disciplines=list(listed))
    for discipline in listed:
        name = " ".join(filter(None, (discipline["device"], discipline["kind"], discipline["handle"])))
        counts = {
            key: discipline[key] for key in ("backlog_bytes", "backlog_packets", "dropped", "sent_bytes")
        }
        if discipline["what"] == "qdisc":
            measurements.queues.append({"time_ns": 0, "link": name, "marked": discipline["marked"], **counts})
    if all(discipline["sent_bytes"] is None for discipline in listed):
        measurements.notes.append("there are no counts: tc -s qdisc show prints them")
    else:
        measurements.notes.append("counts are those since each discipline was installed")
    return measurements


def _listed(listing: str) -> list[Row]:
    disciplines: list[Row] = []
    lines: list[str] = []
    for line in listing.splitlines():
        head = _HEAD.match(line.strip())
        if head is None:
            lines.append(line)
            continue
        if disciplines:
            _describe(disciplines[-1], lines)
        disciplines.append(_headed(head, line.strip()[head.end() :].split()))
        lines = []
    if disciplines:
        _describe(disciplines[-1], lines)
    return disciplines


def _empty(object_type: str, kind: str, handle: str) -> Row:
    counts = dict.fromkeys((*_OF_JSON, "marked"))
    return {
        "what": object_type,
        "kind": kind,
        "handle": handle,
        "device": "",
        "parent": "",
        "words": "",
        **counts,
    }


def _headed(head: re.Match[str], words: list[str]) -> Row:
    discipline = _empty(head["what"], head["kind"], head["handle"])
    rest = []
    follow: Iterator[str] = iter(words)
    for word in follow:
        if word in ("dev", "parent"):
            discipline["device" if word == "dev" else "parent"] = next(follow, "")[:NAME_MAX]
        elif word in ("root", "ingress", "clsact"):
            discipline["parent"] = word
        elif word == "refcnt":
            next(follow, "")
        else:
            rest.append(word)
    discipline["words"] = " ".join(rest)[:WORDS_MAX]
    return discipline


def _describe(discipline: Row, lines: Sequence[str]) -> None:
    """Add the counts and statistics from the lines below a discipline's own."""
    statistics: Row = {}
    tins: list[Row] = []
    before = ""
    for line in lines:
        words = line.split()
        if totals := _SENT.search(line):
            discipline["sent_bytes"], discipline["sent_packets"] = (
                _count(totals["bytes"]),
                _count(totals["packets"]),
            )
            discipline |= {key: _count(totals[key]) for key in ("dropped", "overlimits", "requeues")}
        elif discipline["backlog_bytes"] is None and (backlog := _BACKLOG.search(line)):
            if passing := _PASSING.search(line):
                statistics["rate"] = passing[1]
            size = float(backlog[1]) * _SIZES[backlog[2]]
            discipline["backlog_bytes"] = round(size) if size <= MOST else None
            discipline["backlog_packets"] = _count(backlog[3])
        elif discipline["sent_bytes"] is None and words and not statistics and not tins:
            discipline["words"] = f"{discipline['words']} {' '.join(words)}".strip()[:WORDS_MAX]
        elif words and words[0] == "thresh" and not tins:
            names = [name for name in re.split(r"[ \t]{2,}", before.strip()[:WORDS_MAX]) if name]
            names = names if len(names) == len(words) - 1 else [f"tin {at}" for at in range(len(words) - 1)]
            tins = [
                {"name": name, "thresh": value[:NAME_MAX]}
                for name, value in zip(names, words[1:], strict=True)
            ]
        elif tins and len(words) == len(tins) + 1 and len(tins[0]) < EXTRAS_MAX:
            for tin, value in zip(tins, words[1:], strict=True):
                tin[words[0][:NAME_MAX]] = _value(value)
        elif len(statistics) < EXTRAS_MAX:
            statistics |= _pairs(words)
        before = line
    discipline["statistics"], discipline["tins"] = statistics, tins
    discipline["marked"] = _marked(statistics, tins)


def _pairs(words: Sequence[str]) -> Row:
    """Return the values beside their names, such as `ecn_mark 0`; sentences are left out."""
    head, colon, rest = " ".join(words).partition(":")
    if colon and rest and "," not in head:  # cake: "memory used: 12345b of 4Mb"
        return {head[:NAME_MAX]: rest.strip()[:NAME_MAX]}
    if words and _VALUE.fullmatch(words[0]):  # fq: "1 flows (0 inactive, 0 throttled)"
        words = words[::-1]
    pairs: Row = {}
    at = 0
    while at + 1 < len(words):
        name, value = words[at].strip("(),:"), words[at + 1].strip("(),:")
        if _NAME.fullmatch(name) and (_VALUE.fullmatch(value) or _MEASURED.fullmatch(value)):
            pairs[name] = _value(value)
            at += 1
        at += 1
    return pairs


def _of_json(entry: Row) -> Row:
    is_class = "class" in entry
    kind = text(entry.get("class") if is_class else entry.get("kind")) or "?"
    discipline = _empty("class" if is_class else "qdisc", kind, text(entry.get("handle")) or "")
    discipline["device"] = text(entry.get("dev")) or ""
    discipline["parent"] = "root" if entry.get("root") is True else text(entry.get("parent")) or ""
    options = table(entry.get("options"))
    discipline["words"] = " ".join(_option(name, value) for name, value in options.items()).strip()[
        :WORDS_MAX
    ]
    discipline |= {key: whole(entry.get(name)) for key, name in _OF_JSON.items()}
    statistics = {name: value for name, value in entry.items() if name not in _NO_STATISTICS}
    discipline["statistics"] = _numbers(statistics)
    tins = entry.get("tins")
    discipline["tins"] = [
        {"name": f"tin {at}", **_numbers(table(tin))}
        for at, tin in enumerate(tins if isinstance(tins, list) else [])
    ][:EXTRAS_MAX]
    for tin in discipline["tins"]:
        tin["marks"] = tin.pop("ecn_mark", tin.get("marks"))
    discipline["marked"] = _marked(discipline["statistics"], discipline["tins"])
    return discipline


def _numbers(statistics: Row) -> Row:
    finite_values = (
        (name[:NAME_MAX], number(value)) for name, value in list(statistics.items())[:EXTRAS_MAX]
    )
    return {
        name: int(value) if value == int(value) else value
        for name, value in finite_values
        if value is not None
    }


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else ""
    numeric = number(value)
    return f"{name} {value if numeric is None else f'{numeric:.12g}'}"[:NAME_MAX]


def _marked(statistics: Row, tins: Sequence[Row]) -> int | None:
    for name in _MARKS:
        if isinstance(statistics.get(name), int):
            return int(statistics[name])
    marks = [tin.get("marks") for tin in tins]
    counts = [mark_count for mark_count in marks if isinstance(mark_count, int)]
    return sum(counts) if counts and len(counts) == len(marks) else None


def _count(digits: str) -> int | None:
    return int(digits) if int(digits) <= MOST else None


def _value(word: str) -> int | float | str:
    """Return a number, or with a unit the text."""
    if _VALUE.fullmatch(word):
        value = number(float(word))
        if value is not None:
            return int(word) if word.lstrip("+-").isdigit() else value
    return word[:NAME_MAX]
