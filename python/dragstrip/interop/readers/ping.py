"""Reader of output of ping (iputils in any language, busybox, BSD, macOS, Windows) and fping, logged or not.

The time of a row is that of the request. With `-D` it is the reply's time stamp less the round trip. Without,
it is the sequence number times the interval, which iputils prints in its last line, or ping's default of 1 s.
A missing sequence number is a request without an answer; the numbers wrap at 65536.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dragstrip.interop.readers.measurements import (
    LOST_MAX,
    MOST,
    Measurements,
    missing_content,
    nanoseconds,
    unwrapped,
)

_REPLY = re.compile(
    r"(?:\[(?P<at>\d{1,12}\.\d{1,9})\] )?\d{1,6} (?:[^\d\s]\S{0,20} ){1,3}"
    r"(?P<host>\S{1,200}?(?: \([^)\s]{1,200}\))?) ?[:,] (?:icmp_)?(?:seq|req)=(?P<seq>\d{1,9}) "
    r"(?:ttl|hlim)=\d{1,4} "
    r"[^\W\d]{1,20}=(?P<rtt>\d{1,9}(?:[.,]\d{1,6})?) ?(?:ms|мс|毫秒|ミリ秒|밀리초)(?P<dup>.{0,60}DUP)?"
)
"""iputils translates the words, and writes the decimal point of the locale (`po/` in iputils)."""
_FPING = re.compile(
    r"(?:\[(?P<at>\d{1,12}\.\d{1,9})\] )?(?P<host>\S{1,200}?) {0,60}: \[(?P<seq>\d{1,9})\], "
    r"(?:timed out|\d{1,6} bytes, (?P<rtt>\d{1,9}(?:\.\d{1,6})?) ms)"
)
_UNANSWERED = re.compile(r"(?<!\w)icmp_seq[ =](\d{1,9})(?!\d)")
"""Line for a request without answer in iputils (`-O`, a router's answer) and macOS, in each language."""
_REFUSAL = re.compile(r"(?P<router>\S{1,200}) icmp_seq=\d{1,9} (?P<reason>[^\d\s][^\n]{1,80})$")
"""A router's answer, such as `From 192.0.2.1 icmp_seq=2 Destination Host Unreachable`."""
_SENT = re.compile(r"(\d{1,9}) packets transmitted")
_HEAD = re.compile(
    r"(?:^|\s)PING (?P<host>[^\s(]{1,200}) ?\((?P<address>[^)\s]{1,200})\)|"
    r"(?:^|\s)PING (?P<name>[^\s:]{1,200}):|"
    r"(?:^|\s)PING6\([^)]{1,60}\) \S{1,60} --> (?P<six>\S{1,60})"
)
_STATISTICS = re.compile(r"^.{0,60}?--- (?P<words>[^\n]{1,300}) ---\s*$")
_COUNTS = re.compile(
    r"(?P<sent>\d{1,9})[^\d%]{1,40}\d{1,9}[^\d%]{1,40}(?:[^%]{0,60}\D)?\d{1,3}(?:[.,]\d{1,6})? ?%"
)
"""The line below the statistics' head: sent, received, and the share lost, in every language."""
_SUMMARY = re.compile(
    r"^--- (?P<host>\S{1,200})[^\n]{0,100} ---\s{0,4}\n"
    r"(?P<sent>\d{1,9})[^\d\n%]{1,40}(?P<received>\d{1,9})[^\n]{1,120}\n"
    r"[^\n=]{1,60}= (?P<least>\d{1,9}(?:[.,]\d{1,6})?)/(?P<mean>\d{1,9}(?:[.,]\d{1,6})?)/"
    r"(?P<most>\d{1,9}(?:[.,]\d{1,6})?)",
    re.M,
)
"""The last lines of iputils, busybox and BSD: sent, received, least, mean and largest round trip."""
_WINDOWS_HEAD = re.compile(r"^(?:Pinging |Ping wird ausgef)[^\n]{1,300}$", re.M)
_WINDOWS_ANY = re.compile(
    r"^[^\n=]{3,80}?[ ](?:\S{1,200} \[[0-9a-fA-F.:]{2,60}\]|[0-9a-fA-F]{0,4}[.:][0-9a-fA-F.:]{2,60}) "
    r"\S{1,10} \d{1,5} [^\n=]{3,40}:\s*$",
    re.M,
)
"""The first line in any language: the host, its address, the number of bytes."""
_WINDOWS_REPLY = re.compile(
    r"^\S{1,20} \S{1,20} [\w.:]{2,200}[ \xa0\ufffd]?: [^\s=]{2,12}=\d{1,5} "
    r"[^\s=<]{2,20}[=<]\d{1,9} ?ms TTL=\d",
    re.M,
)
_WINDOWS_HOST = re.compile(
    r"(?P<host>[\w.:-]{1,200})(?: \[(?P<address>[0-9a-fA-F.:]{2,60})\])? \S{1,10} \d{1,5} "
)
_WINDOWS = re.compile(
    r"^\S{1,20} \S{1,20} (?P<host>[\w.:]{1,200}?)[ \xa0\ufffd]?: "
    r"(?:[^\s=]{2,12}=\d{1,5} )?\w{2,20}(?P<less>[=<])(?P<rtt>\d{1,9}) ?ms(?: TTL=\d{1,3})?\s*$|"
    r"^\S{1,20} \S{1,20} (?P<unreachable>[\w.:]{1,200}): [^=\n]{1,100}$",
    re.I,
)
_TOOK = re.compile(r"\D(\d{1,12}) ?(?:ms|мс|毫秒|ミリ秒|밀리초)\s*$")
LOOKED_AT = 1 << 12
"""Characters in which Windows' first line is looked for."""
DEFAULT_NS = 1_000_000_000


@dataclass
class _PingRun:
    """One run of ping, or what fping prints of one target."""

    kind: str
    names: tuple[str, ...]
    answers: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    """By number: the stamp of the answer, if there is one, and the round trip, None if it timed out."""
    reply_host: str = ""
    first: int | None = None
    last: int | None = None
    sent_count: int | None = None
    took_ms: int | None = None
    refusals: dict[str, int] = field(default_factory=dict)
    """Routers' answers in place of the host's, and how often each came."""
    ended: bool = False

    def number(self, digits: str) -> int:
        """Return a sequence number as one that counts on."""
        number = unwrapped(int(digits), int(digits) if self.last is None else self.last)
        self.first = number if self.first is None else min(self.first, number)
        self.last = number if self.last is None else max(self.last, number)
        return number


def is_one(begin: str) -> bool:
    """Return whether a text looks like output of ping or fping."""
    return bool(
        _REPLY.search(begin)
        or _FPING.search(begin)
        or _is_windows(begin)
        or _SUMMARY.search(begin)
        or (_HEAD.search(begin) and (_SENT.search(begin) or _UNANSWERED.search(begin) or "\n--- " in begin))
    )


def read(output: str, source: str) -> Measurements:
    """Return a probe for each run and target; raises `BadInputError` if nothing says what was sent."""
    if _is_windows(output[:LOOKED_AT]):
        return _windows(output, source)
    measurements, room = Measurements(), LOST_MAX
    if not _HEAD.search(output) and not _REPLY.search(output) and not _FPING.search(output):
        return _summaries(measurements, output, source)
    runs = [run for run in _runs(output) if run.last is not None or run.sent_count]
    origins = [origin for run in runs if (origin := _times(run).origin) is not None]
    if origins:
        measurements.began_s = min(origins) / 1e9
    for run in runs:
        room -= _target(measurements, run, room, min(origins, default=0))
    if not measurements.probes:
        raise missing_content(source, "no answer")
    return measurements


def _is_windows(begin: str) -> bool:
    """Return whether a text begins as Windows' ping, in English and German also without an answer."""
    anywhere = _WINDOWS_ANY.search(begin) and _WINDOWS_REPLY.search(begin)
    return bool(_WINDOWS_HEAD.search(begin) or anywhere)


def _summaries(measurements: Measurements, output: str, source: str) -> Measurements:
    """Add the last lines of runs whose answers are not in the text."""
    for end in _SUMMARY.finditer(output):
        least, mean, largest = (float(end[name].replace(",", ".")) for name in ("least", "mean", "most"))
        requests, received = int(end["sent"]), int(end["received"])
        counts = (requests, max(0, requests - received))
        measurements.summary(0, "ping", end["host"], mean, (least, largest), counts)
        measurements.notes.append(f"{end['host']}: a summary alone, with the mean: no single round trip")
    if not measurements.probes:
        raise missing_content(source, "no answer")
    return measurements


def _runs(output: str) -> list[_PingRun]:
    """Return the runs of a text: one after the other, or at the same time, told apart by name and address."""
    runs: list[_PingRun] = []
    current: _PingRun | None = None
    for line in output.splitlines():
        if head := _HEAD.search(line):
            current = _PingRun("ping", tuple(name for name in head.groups() if name))
            runs.append(current)
        elif reply := _REPLY.search(line) or _FPING.search(line):
            if reply.groupdict().get("dup"):
                continue
            kind = "fping" if reply.re is _FPING else "ping"
            run = _run_of(runs, kind, reply["host"], current)
            rtt = None if reply["rtt"] is None else round(float(reply["rtt"].replace(",", ".")) * 1e6)
            at = None if reply["at"] is None else nanoseconds(reply["at"])
            run.answers.setdefault(run.number(reply["seq"]), (at, rtt))
            run.reply_host = run.reply_host or reply["host"]
        elif end := _STATISTICS.search(line):
            current = _open_run(runs, end["words"]) or current
            if current:
                current.ended = True
        elif current and (number := _UNANSWERED.search(line)):
            current.number(number[1])
            if refusal := _REFUSAL.search(line):
                words = f"{refusal['router']} reports {refusal['reason'].strip()}"
                current.refusals[words] = current.refusals.get(words, 0) + 1
        elif (totals := _SENT.search(line) or _ended(current, line)) and (current or len(runs) == 1):
            run = current or runs[0]
            run.sent_count = int(totals[1])
            took = _TOOK.search(line)
            run.took_ms = int(took[1]) if took else None
    return runs


def _ended(current: _PingRun | None, line: str) -> re.Match[str] | None:
    """Return the counts of a run whose statistics have begun, whatever the language."""
    return _COUNTS.search(line) if current and current.ended and current.sent_count is None else None


def _open_run(runs: list[_PingRun], host: str) -> _PingRun | None:
    """Return the latest run of a host that has not ended."""
    words = host.replace("(", " ").replace(")", " ").split()
    fits = (run for run in reversed(runs) if not run.ended and any(word in run.names for word in words))
    return next(fits, None)


def _run_of(runs: list[_PingRun], kind: str, host: str, current: _PingRun | None) -> _PingRun:
    """Return the run that an answer belongs to: one of its host, or the one whose head stands above."""
    if open_run := _open_run(runs, host):
        return open_run
    if current and not current.ended:
        return current
    new_run = _PingRun(kind, tuple(host.replace("(", " ").replace(")", " ").split()))
    runs.append(new_run)
    return new_run


@dataclass(frozen=True)
class _Times:
    """Times of a run's requests in ns: since 1970 with stamps, else since the first."""

    begin: int
    end: int
    step: int
    stamps: dict[int, int]

    @property
    def origin(self) -> int | None:
        """The time of the first request since 1970, if there are stamps."""
        if not self.stamps:
            return None
        return min(self.stamps.values()) - (min(self.stamps) - self.begin) * self.step

    def of(self, number: int, base: int) -> int:
        """Return the time of a request since `base`: an unanswered one follows that before it."""
        if not self.stamps:
            return (number - self.begin) * self.step
        before = max((stamped for stamped in self.stamps if stamped <= number), default=min(self.stamps))
        return self.stamps[before] + (number - before) * self.step - base


def _times(run: _PingRun) -> _Times:
    """Return the numbers of a run's requests and their times."""
    answers = run.answers
    first, latest = 1 if run.first is None else run.first, 0 if run.last is None else run.last
    count = len(answers) if run.sent_count is None else run.sent_count
    # iputils counts from 1, busybox and BSD from 0; what was sent last may have no answer.
    begin = 1 if first >= 1 and latest == count else min(first, 1)
    end = max(latest + 1, begin + count)
    step = round(run.took_ms * 1e6 / (count - 1)) if run.took_ms and count > 1 else DEFAULT_NS
    stamps = {number: at - (rtt or 0) for number, (at, rtt) in answers.items() if at is not None}
    numbers = sorted(stamps)
    if len(numbers) > 1:
        span = stamps[numbers[-1]] - stamps[numbers[0]]
        step = max(0, round(span / (numbers[-1] - numbers[0])))
    return _Times(begin, end, step, stamps)


def _head(names: tuple[str, ...]) -> str:
    """Return the target of a run without an answer: its name and its address."""
    return f"{names[0]} ({names[1]})" if len(set(names)) > 1 else names[0]


def _target(measurements: Measurements, run: _PingRun, room: int, base: int) -> int:
    """Add a run's rows and return the number of unanswered requests, of which at most `room` get a row."""
    answers, host, times = run.answers, run.reply_host or _head(run.names), _times(run)
    begin, end, step, stamps = times.begin, times.end, times.step, times.stamps
    if not stamps:
        measurements.notes.append(
            f"{host}: times are sequence numbers times {step / 1e9:g} s: no stamps (ping -D has them)"
        )
    measurements.notes.extend(f"{host}: {words} ({count} times)" for words, count in run.refusals.items())
    unanswered = end - begin - len(answers)
    listed = range(begin, end) if unanswered <= room else sorted(answers)
    if unanswered > room:
        measurements.notes.append(
            f"{host}: {unanswered} requests without an answer are left out: more than {LOST_MAX}"
        )
    for number in listed:
        _, rtt = answers.get(number, (None, None))
        measurements.probe(min(max(times.of(number, base), 0), MOST), run.kind, host, rtt)
    return unanswered if unanswered <= room else 0


def _windows(output: str, source: str) -> Measurements:
    """Return the probes of Windows' ping: a line for each request, a second apart."""
    measurements = Measurements()
    room, rows, whole = LOST_MAX, 0, True
    target: str | None = None
    for line in map(str.strip, output.splitlines()):
        if _WINDOWS_HEAD.match(line) or _WINDOWS_ANY.match(line):
            target_match = _WINDOWS_HOST.search(line)
            target, rows = (target_match["address"] or target_match["host"]) if target_match else "?", 0
            continue
        # The statistics begin with an empty line, as the requests do.
        if target is None or (not line and rows == 0):
            continue
        if not line:
            target = None
            continue
        reply = _WINDOWS.match(line)
        rtt = None if reply is None or reply["rtt"] is None else int(reply["rtt"]) * 1_000_000
        whole = whole and (reply is None or reply["less"] != "<")
        room -= rtt is None
        if rtt is None and room < 0:
            break
        measurements.probe(rows * DEFAULT_NS, "ping", target, rtt)
        rows += 1
    if not measurements.probes:
        raise missing_content(source, "no answer")
    measurements.notes.append(
        "times are numbers of requests times 1 s, and round trips whole milliseconds: so writes Windows"
    )
    if not whole:
        measurements.notes.append("round trips below 1 ms, written <1ms, are 1 ms here")
    return measurements
