"""Reader of mtr's reports, as text (`mtr --report`) and as JSON (`mtr --json`): a probe for each hop.

A report has no single round trip: of each hop the number of requests, the share without an answer, and the
least, mean and largest round trip (mtr's `ui/report.c`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dragstrip.interop.readers.measurements import (
    NAME_MAX,
    Measurements,
    Row,
    entries,
    missing_content,
    number,
    table,
    text,
    whole,
)

_HEAD = re.compile(
    r"^\s{0,10}HOST: (?P<host>\S{1,200})\s{1,200}(?P<names>\S.{0,300}Loss%.{0,300}|Loss%.{0,300})$"
)
_HOP = re.compile(
    r"^\s{0,6}(?P<hop>\d{1,3})\.\s?(?:\|--|AS\S{1,20})\s{0,20}(?P<host>\S{1,200})(?P<values>(?:\s{1,40}-?\d[\d.]{0,15}%?){1,20})\s*$"
)
UNKNOWN = "???"
"""The name that mtr gives to a hop that never answered."""


def is_one(document: Row) -> bool:
    """Return whether a JSON document is a report of mtr's."""
    return "mtr" in table(document.get("report"))


def is_text(begin: str) -> bool:
    """Return whether a text is a report of mtr's."""
    return any(_HEAD.match(line) for line in begin.splitlines()[:50])


def read(document: Row, source: str) -> Measurements:
    """Return a probe for each hop; raises `BadInputError` if there is none."""
    report = table(document.get("report"))
    settings = table(report.get("mtr"))
    # Until 0.90 the hops stood within `mtr`.
    hops = entries(report.get("hubs"), source, "hubs") or entries(settings.get("hubs"), source, "hubs")
    content = Measurements()
    for hop in map(table, hops):
        sent_count = whole(hop.get("Snt"))
        share = number(hop.get("Loss%"))
        _hop(
            content,
            whole(hop.get("count")) or len(content.summaries) + 1,
            text(hop.get("host")) or UNKNOWN,
            sent_count,
            share,
            hop,
        )
    return _complete(content, source)


def read_text(report: str, source: str) -> Measurements:
    """Return a probe for each hop; raises `BadInputError` if there is none."""
    content = Measurements()
    names: Sequence[str] = ()
    for line in report.splitlines():
        if head := _HEAD.match(line):
            names = head["names"].split()
        elif names and (hop := _HOP.match(line)):
            values = [
                number(float(value)) for value in hop["values"].replace("%", "").split() if _is_number(value)
            ]
            row = dict(zip(names, values, strict=False))
            _hop(content, int(hop["hop"]), hop["host"], whole(row.get("Snt")), row.get("Loss%"), row)
    return _complete(content, source)


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?\d{1,12}(?:\.\d{1,6})?", value) is not None


def _hop(
    content: Measurements,
    hop: int,
    host: str,
    sent_count: int | None,
    share: float | None,
    row: Mapping[str, object],
) -> None:
    lost_count = None
    if sent_count is not None and share is not None and 0 <= share <= 100:
        lost_count = round(sent_count * share / 100)
    answered = host != UNKNOWN and share is not None and share < 100
    least, mean, largest = (number(row.get(name)) if answered else None for name in ("Best", "Avg", "Wrst"))
    content.summary(0, f"mtr hop {hop}", host[:NAME_MAX], mean, (least, largest), (sent_count, lost_count))


def _complete(content: Measurements, source: str) -> Measurements:
    if not content.probes:
        raise missing_content(source, "no hop")
    content.notes.append(
        "mtr sums each hop up: no single round trip, no times. A router may answer few requests, or late, "
        "while it forwards everything: loss and delay of a hop are the path's only if the hops behind it "
        "have them too"
    )
    return content
