"""Reader of what `tc -s qdisc show` and `tc -s class show` print, as text or with `-j` (iproute2's `tc`).

A listing has the settings of each discipline and its counts since it was installed: rows of `queues` at one
instant, and in `found.disciplines` what no table has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.formats.readers.found import MOST, NAME_MAX, Found, Row, number, table, text, whole

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
"""What the kernel's estimator (`tc ... estimator`, htb_rate_est) says of a class."""
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


def read(said: str, source: str) -> Found:
    """Return the disciplines and classes of a listing; raises `BadInputError` if there are none."""
    listed = _listed(said)
    return _found(listed, source)


def read_document(said: Any, source: str) -> Found:
    """Return the disciplines and classes of a listing in JSON; raises `BadInputError` if there are none."""
    return _found([_of_json(table(entry)) for entry in said if "kind" in table(entry)], source)


def _found(listed: Sequence[Row], source: str) -> Found:
    if not listed:
        raise BadInputError("", None, "has no queue discipline", source)
    found = Found(disciplines=list(listed))
    for it in listed:
        name = " ".join(filter(None, (it["device"], it["kind"], it["handle"])))
        counts = {key: it[key] for key in ("backlog_bytes", "backlog_packets", "dropped", "sent_bytes")}
        if it["what"] == "qdisc":
            found.queues.append({"time_ns": 0, "link": name, "marked": it["marked"], **counts})
    if all(it["sent_bytes"] is None for it in listed):
        found.notes.append("there are no counts: tc -s qdisc show prints them")
    else:
        found.notes.append("counts are those since each discipline was installed")
    return found


def _listed(said: str) -> list[Row]:
    made: list[Row] = []
    lines: list[str] = []
    for line in said.splitlines():
        head = _HEAD.match(line.strip())
        if head is None:
            lines.append(line)
            continue
        if made:
            _describe(made[-1], lines)
        made.append(_headed(head, line.strip()[head.end() :].split()))
        lines = []
    if made:
        _describe(made[-1], lines)
    return made


def _empty(what: str, kind: str, handle: str) -> Row:
    counts = dict.fromkeys((*_OF_JSON, "marked"))
    return {"what": what, "kind": kind, "handle": handle, "device": "", "parent": "", "words": "", **counts}


def _headed(head: re.Match[str], words: list[str]) -> Row:
    made = _empty(head["what"], head["kind"], head["handle"])
    rest = []
    follow: Iterator[str] = iter(words)
    for word in follow:
        if word in ("dev", "parent"):
            made["device" if word == "dev" else "parent"] = next(follow, "")[:NAME_MAX]
        elif word in ("root", "ingress", "clsact"):
            made["parent"] = word
        elif word == "refcnt":
            next(follow, "")
        else:
            rest.append(word)
    made["words"] = " ".join(rest)[:WORDS_MAX]
    return made


def _describe(it: Row, lines: Sequence[str]) -> None:
    """Add what stands in the lines below a discipline's own."""
    statistics: Row = {}
    tins: list[Row] = []
    before = ""
    for line in lines:
        words = line.split()
        if sent := _SENT.search(line):
            it["sent_bytes"], it["sent_packets"] = _count(sent["bytes"]), _count(sent["packets"])
            it |= {key: _count(sent[key]) for key in ("dropped", "overlimits", "requeues")}
        elif it["backlog_bytes"] is None and (left := _BACKLOG.search(line)):
            if passing := _PASSING.search(line):
                statistics["rate"] = passing[1]
            size = float(left[1]) * _SIZES[left[2]]
            it["backlog_bytes"] = round(size) if size <= MOST else None
            it["backlog_packets"] = _count(left[3])
        elif it["sent_bytes"] is None and words and not statistics and not tins:
            it["words"] = f"{it['words']} {' '.join(words)}".strip()[:WORDS_MAX]
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
    it["statistics"], it["tins"] = statistics, tins
    it["marked"] = _marked(statistics, tins)


def _pairs(words: Sequence[str]) -> Row:
    """Return the values beside their names, such as `ecn_mark 0`; sentences are left out."""
    head, colon, rest = " ".join(words).partition(":")
    if colon and rest and "," not in head:  # cake: "memory used: 12345b of 4Mb"
        return {head[:NAME_MAX]: rest.strip()[:NAME_MAX]}
    if words and _VALUE.fullmatch(words[0]):  # fq: "1 flows (0 inactive, 0 throttled)"
        words = words[::-1]
    made: Row = {}
    at = 0
    while at + 1 < len(words):
        name, value = words[at].strip("(),:"), words[at + 1].strip("(),:")
        if _NAME.fullmatch(name) and (_VALUE.fullmatch(value) or _MEASURED.fullmatch(value)):
            made[name] = _value(value)
            at += 1
        at += 1
    return made


def _of_json(entry: Row) -> Row:
    is_class = "class" in entry
    kind = text(entry.get("class") if is_class else entry.get("kind")) or "?"
    made = _empty("class" if is_class else "qdisc", kind, text(entry.get("handle")) or "")
    made["device"] = text(entry.get("dev")) or ""
    made["parent"] = "root" if entry.get("root") is True else text(entry.get("parent")) or ""
    options = table(entry.get("options"))
    made["words"] = " ".join(_option(name, value) for name, value in options.items()).strip()[:WORDS_MAX]
    made |= {key: whole(entry.get(name)) for key, name in _OF_JSON.items()}
    statistics = {name: value for name, value in entry.items() if name not in _NO_STATISTICS}
    made["statistics"] = _numbers(statistics)
    tins = entry.get("tins")
    made["tins"] = [
        {"name": f"tin {at}", **_numbers(table(tin))}
        for at, tin in enumerate(tins if isinstance(tins, list) else [])
    ][:EXTRAS_MAX]
    for tin in made["tins"]:
        tin["marks"] = tin.pop("ecn_mark", tin.get("marks"))
    made["marked"] = _marked(made["statistics"], made["tins"])
    return made


def _numbers(said: Row) -> Row:
    known = ((name[:NAME_MAX], number(value)) for name, value in list(said.items())[:EXTRAS_MAX])
    return {name: int(value) if value == int(value) else value for name, value in known if value is not None}


def _option(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name if value else ""
    shown = number(value)
    return f"{name} {value if shown is None else f'{shown:.12g}'}"[:NAME_MAX]


def _marked(statistics: Row, tins: Sequence[Row]) -> int | None:
    for name in _MARKS:
        if isinstance(statistics.get(name), int):
            return int(statistics[name])
    marks = [tin.get("marks") for tin in tins]
    known = [it for it in marks if isinstance(it, int)]
    return sum(known) if known and len(known) == len(marks) else None


def _count(said: str) -> int | None:
    return int(said) if int(said) <= MOST else None


def _value(said: str) -> int | float | str:
    """Return a number, or with a unit the text."""
    if _VALUE.fullmatch(said):
        value = number(float(said))
        if value is not None:
            return int(said) if said.lstrip("+-").isdigit() else value
    return said[:NAME_MAX]
