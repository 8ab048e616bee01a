"""Output of ping (iputils, busybox, BSD, macOS) and fping.

The time of a row is that of the request. With `-D` it is the stamp, which is the reply's, less the round
trip; without, the sequence number times the interval, which iputils' last line tells; 1 s, ping's default,
where nothing does. A number that is missing is a request without an answer; numbers wrap at 65536.
"""

from __future__ import annotations

import re

from dragstrip.foreign.found import MOST, Found, nanoseconds, nothing

_REPLY = re.compile(
    r"(?:\[(?P<at>\d{1,12}\.\d{1,9})\] )?\d{1,6} bytes from (?P<host>[^\s:]{1,200}(?: \([^)\s]{1,200}\))?): "
    r"(?:icmp_)?(?:seq|req)=(?P<seq>\d{1,9}) (?:ttl|hlim)=\d{1,4} "
    r"time=(?P<rtt>\d{1,9}(?:\.\d{1,6})?) ms(?P<dup>.*DUP)?"
)
_FPING = re.compile(
    r"(?:\[(?P<at>\d{1,12}\.\d{1,9})\] )?(?P<host>[^\s:]{1,200})\s*: \[(?P<seq>\d{1,9})\], "
    r"(?:timed out|\d{1,6} bytes, (?P<rtt>\d{1,9}(?:\.\d{1,6})?) ms)"
)
_SENT = re.compile(r"(\d{1,9}) packets transmitted")
_TOOK = re.compile(r"time (\d{1,12})ms")
WRAP = 1 << 16
DEFAULT_NS = 1_000_000_000
LOST_MAX = 250_000
"""Requests without an answer that get a row, of all targets: a line may claim any number of them."""


def is_one(begin: str) -> bool:
    """Whether a text is one."""
    return bool(
        _REPLY.search(begin) or _FPING.search(begin) or (begin.startswith("PING ") and _SENT.search(begin))
    )


def read(said: str, source: str) -> Found:
    """A probe for each target."""
    replies: dict[str, dict[int, tuple[int | None, int | None]]] = {}
    last: dict[str, int] = {}
    kind = "ping"
    for line in said.splitlines():
        seen = _REPLY.match(line) or _FPING.match(line)
        if seen is None or seen.groupdict().get("dup"):
            continue
        kind = "fping" if seen.re is _FPING else "ping"
        host, number = seen["host"], int(seen["seq"])
        wraps = (last.get(host, number) - number + WRAP // 2) // WRAP
        number += WRAP * wraps
        last[host] = max(last.get(host, 0), number)
        rtt = None if seen["rtt"] is None else round(float(seen["rtt"]) * 1e6)
        at = None if seen["at"] is None else nanoseconds(seen["at"])
        replies.setdefault(host, {}).setdefault(number, (at, rtt))
    if not replies:
        raise nothing(source, "no answer")
    sent = _SENT.search(said)
    found = Found()
    room = LOST_MAX
    for host, answers in replies.items():
        count = int(sent[1]) if sent and len(replies) == 1 else len(answers)
        room -= _target(found, kind, host, answers, count, said, room)
    return found


def _target(
    found: Found,
    kind: str,
    host: str,
    answers: dict[int, tuple[int | None, int | None]],
    count: int,
    said: str,
    room: int,
) -> int:
    """Adds a target's rows, at most `room` for requests without an answer; how many these were."""
    first = min(answers)
    # iputils counts from 1, busybox and BSD from 0; what was sent last may have no answer.
    begin = 1 if first >= 1 and max(answers) == count else min(first, 1)
    end = max(max(answers) + 1, begin + count)
    took = _TOOK.search(said)
    step = round(int(took[1]) * 1e6 / (count - 1)) if took and count > 1 else DEFAULT_NS
    stamps = {number: at - (rtt or 0) for number, (at, rtt) in answers.items() if at is not None}
    origin = min(stamps.values(), default=0) - (min(stamps, default=begin) - begin) * step if stamps else 0
    if not stamps:
        found.notes.append(
            f"{host}: times are sequence numbers times {step / 1e9:g} s: no stamps (ping -D has them)"
        )
    lost = end - begin - len(answers)
    listed = range(begin, end) if lost <= room else sorted(answers)
    if lost > room:
        found.notes.append(f"{host}: {lost} requests without an answer are left out: more than {LOST_MAX}")
    for number in listed:
        _, rtt = answers.get(number, (None, None))
        time_ns = stamps[number] - origin if number in stamps else (number - begin) * step
        row = {"probe": kind, "target": host, "rtt_ns": rtt, "lost": rtt is None}
        found.probes.append({"time_ns": min(max(time_ns, 0), MOST), **row})
    return lost if lost <= room else 0
