"""Chapter bbr: the example cases of draft-ietf-ccwg-bbr, by the algorithm's own phases and variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from dragstrip.errors import BadInputError
from dragstrip.experiment.types import Experiment
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES
from dragstrip.studies.passport.figures import GOODPUT, RESENT
from dragstrip.studies.passport.rows import (
    PLACE,
    PassportPath,
    PassportRow,
    RowFigure,
    RowRule,
    Scenario,
    Subject,
    Summary,
)

NAME = "bbr"
TITLE = "example cases of BBR"
DRAFT = "draft-ietf-ccwg-bbr-06, appendix of example test cases"
V3 = ("bbr3",)
"""Name prefix of the algorithms whose PROBE_BW cycle has phases: UP, DOWN, CRUISE, REFILL."""
FAMILY = ("bbr",)
"""Name prefix of all algorithms that claim to be BBR."""
RECORD = {"every_ack": True, "cc_state": True}
UP, DOWN, REFILL = "probe_bw_up", "probe_bw_down", "probe_bw_refill"
QUICK = (1, 3, 10, 14)
"""The cases of the quick suite."""
QUANTA = 0.08
"""Addition of the draft's burst budget to a window, in BDP at 40 ms: three bursts of 1 ms (5.6.3)."""
NOT_TESTED = (
    "2 and 6, which need a source of a steady low rate and chosen losses; 18 and 19, spurious recovery "
    "and timeout, whose scripts dragstrip conform plays; 22, a pause at a chosen instant; of 13, "
    "aggregation that begins during a run"
)
"""The cases without a row."""

Stay = Mapping[str, Any]
"""A stay in a phase: an entry of `flows[].phases` (docs/reference/result-json.md)."""


@dataclass(frozen=True)
class AtEntry(Scenario):
    """A scenario whose path changes when a phase is entered, which a run without the change finds."""

    phase: str = ""
    stay: int = 0
    """Index of the stay in the phase, from 0."""
    change: Mapping[str, str] = field(default_factory=dict)
    """Changes of the path, as in an experiment's `[[changes]]`."""

    def experiment(self, subject: Subject, repeats: int | None = None) -> Experiment:
        """The scenario with the instant in it; raises `BadInputError` if the phase is never entered."""
        from dragstrip import engines
        from dragstrip.experiment.expand import expand
        from dragstrip.results.phases import phases

        first = super().experiment(subject, repeats)
        recording = engines.named(engines.DEFAULT).run(expand(first)[0].scenario, {}, None)
        starts = [stay["from_s"] for stay in phases(recording)[0] if stay["state"] == self.phase]
        if len(starts) <= self.stay:
            expected = f"an algorithm that enters {self.phase} at least {self.stay + 1} times in this run"
            raise BadInputError("cc", subject.word, expected)
        content = first.content()
        at = {"at": f"{round(starts[self.stay] * 1e9)}ns", **self.change}
        return Experiment.build({**content, "changes": [*content.get("changes", ()), at]})


def _stays(summary: Summary) -> Sequence[Stay]:
    """The stays of an algorithm whose first phase is STARTUP; none of any other."""
    stays: Sequence[Stay] = summary["flows"][0].get("phases", ())
    return stays if any(stay["state"] == "startup" for stay in stays) else ()


def _of(stays: Sequence[Stay], *states: str) -> list[tuple[Stay, Stay]]:
    """The stays in these states that ended, each with the one after."""
    return [(stay, after) for stay, after in pairwise(stays) if stay["state"] in states]


def _bandwidth(stay: Stay, statistic: str = "last") -> float | None:
    variables: Mapping[str, float] = stay[statistic]
    return variables.get("max_bandwidth", variables.get("bandwidth"))


def _payload_bps(mbit: float) -> float:
    return mbit * 1e6 * PAYLOAD_BYTES / FRAME_BYTES


def _bdp_bytes(mbit: float, rtt_ms: float) -> float:
    return _payload_bps(mbit) / 8 * rtt_ms / 1e3


def _figure(
    name: str,
    unit: str,
    of: Callable[[Sequence[Stay]], float | None],
    formula: str,
    more_is_better: bool | None = False,
) -> RowFigure:
    def read(summary: Summary, scenario: Scenario) -> float | None:
        del scenario
        stays = _stays(summary)
        return of(stays) if stays else None

    return RowFigure(
        name,
        unit,
        more_is_better,
        read,
        f"flows[0].phases: {formula}",
        of_phases=True,
        no_measure="read from the phases of BBR, which other algorithms do not have",
    )


def _bandwidth_away(mbit: float, at: Callable[[Sequence[Stay]], Stay | None], formula: str) -> RowFigure:
    """Distance of the model's bandwidth from the path's rate at the end of a stay."""

    def away(stays: Sequence[Stay]) -> float | None:
        stay = at(stays)
        bandwidth = None if stay is None else _bandwidth(stay)
        return None if bandwidth is None else abs(bandwidth / _payload_bps(mbit) - 1)

    return _figure("bandwidth away", "of the rate", away, formula)


def _first(state: str) -> Callable[[Sequence[Stay]], Stay | None]:
    return lambda stays: next((stay for stay, _ in _of(stays, state)), None)


def _all_lead(start: str, to: str) -> Callable[[Sequence[Stay]], bool | None]:
    def lead(stays: Sequence[Stay]) -> bool | None:
        transitions = _of(stays, start)
        return all(after["state"] == to for _, after in transitions) if transitions else None

    return lead


def _rounds(state: str) -> Callable[[Sequence[Stay]], float | None]:
    """The longest stay in a state, in round trips as smoothed at its middle."""

    def rounds(stays: Sequence[Stay]) -> float | None:
        round_trips = [
            (stay["until_s"] - stay["from_s"]) / ((stay["first"]["srtt_ns"] + stay["last"]["srtt_ns"]) / 2e9)
            for stay, _ in _of(stays, state)
        ]
        return max(round_trips, default=None)

    return rounds


def _value(
    state: str, name: str, statistic: str, scale: float = 1.0
) -> Callable[[Sequence[Stay]], float | None]:
    """A variable in the first stay in a state that has it."""

    def value(stays: Sequence[Stay]) -> float | None:
        values = (stay[statistic][name] for stay, _ in _of(stays, state) if name in stay[statistic])
        first = next(values, None)
        return None if first is None else first / scale

    return value


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    yield from _filling()
    yield from _cycle()
    yield from _least_round_trip()
    yield from _aggregation()
    yield from _changes()


BASE = PassportPath(50, 40, 4, 12).with_(link="wire")
BDP = _bdp_bytes(50, 40)


def _scenario(path: PassportPath, *flows: Mapping[str, Any], **fields: Any) -> Scenario:
    scenario = path.scenario(*(flows or ({"cc": PLACE},)), subjects=1)
    return replace(scenario, repeats=1, fields={"record": RECORD, **fields})


def _at_entry(path: PassportPath, phase: str, stay: int, **change: str) -> Scenario:
    base = _scenario(path)
    return AtEntry(
        base.flows, base.options, base.subjects, 1, base.fields, phase=phase, stay=stay, change=change
    )


def _case(
    number: int,
    says: str,
    scenario: Scenario,
    *judged: tuple[RowFigure, Mapping[str, float]],
    of: tuple[str, ...] = FAMILY,
) -> Iterator[PassportRow]:
    for figure, limit in judged:
        yield PassportRow(
            f"{NAME}-{number}-{figure.name.replace(' ', '-')}",
            NAME,
            f"case {number}: {says}",
            scenario,
            figure,
            RowRule("T" if limit else "R", f"{DRAFT}, {number}", **limit),
            quick=number in QUICK,
            only_for=of,
        )


def _yes(
    name: str, of: Callable[[Sequence[Stay]], bool | None], formula: str
) -> tuple[RowFigure, Mapping[str, float]]:
    """A figure that is 1 where every observation is as the draft states, and the limit of 1."""

    def answer(stays: Sequence[Stay]) -> float | None:
        holds = of(stays)
        return None if holds is None else float(holds)

    return _figure(name, "1 for yes", answer, formula, True), {"least": 1.0}


def _filling() -> Iterator[PassportRow]:
    base = _scenario(BASE)
    yield from _case(
        1,
        f"STARTUP with endless data at {BASE.name}",
        base,
        (
            _bandwidth_away(50, _first("startup"), "last bandwidth of STARTUP"),
            {"most": 0.02},
        ),
        _yes("to DRAIN", _all_lead("startup", "drain"), "what follows STARTUP"),
    )
    yield from _case(
        3,
        f"DRAIN at {BASE.name}",
        base,
        (
            _figure("drain gain", "pacing_gain", _value("drain", "pacing_gain", "last"), "pacing_gain", None),
            {"least": 0.49, "most": 0.51},
        ),
        (
            _figure(
                "left in flight",
                "BDP",
                _value("drain", "bytes_in_flight", "last", BDP),
                "last bytes_in_flight of DRAIN",
            ),
            {"most": 1 + QUANTA},
        ),
    )
    yield from _case(
        4,
        f"from DRAIN on 45 Mbit/s at {BASE.name}",
        _at_entry(BASE, "drain", 0, rate="45mbit"),
        (
            _figure("drain rounds", "round trips", _rounds("drain"), "longest DRAIN over srtt_ns"),
            {"most": 4.0},
        ),
    )
    slow = {"kind": "request_response", "request": "100b", "response": "20kb", "think": "50ms"}
    yield from _case(
        7,
        f"STARTUP with 20 kB to send every 90 ms at {BASE.name}",
        _scenario(BASE, {"cc": PLACE, "application": slow}),
        _yes(
            "STARTUP for ever",
            lambda stays: {stay["state"] for stay in stays} <= {"startup", "probe_rtt"},
            "no state but STARTUP and PROBE_RTT",
        ),
    )


def _cycle() -> Iterator[PassportRow]:
    deep = replace(BASE, bdp=16.0)
    yield from _case(
        5,
        f"UP into a deep buffer at {deep.name}",
        _scenario(deep),
        _yes("UP to DOWN", _all_lead(UP, DOWN), "what follows UP"),
        (_figure("up rounds", "round trips", _rounds(UP), "longest UP over srtt_ns"), {"most": 5.0}),
        of=V3,
    )
    yield from _down()
    short = replace(BASE, bdp=0.3, duration_s=20.0)
    yield from _case(
        21,
        f"UP into a short buffer at {short.name}",
        _scenario(short),
        _yes(
            "ends on loss", _probes_end_on_loss, "least pacing_gain of a recovery that follows UP is below 1"
        ),
        (
            _figure("least bound", "BDP", _least_bound, "least inflight_hi"),
            {"least": 0.7},
        ),
        of=V3,
    )


def _down() -> Iterator[PassportRow]:
    """Yield the rows of the state DOWN, which drains what UP queued."""
    yield from _case(
        8,
        f"DOWN at {BASE.name}",
        _scenario(BASE),
        (
            _figure("down gain", "pacing_gain", _value(DOWN, "pacing_gain", "last"), "pacing_gain", None),
            {"least": 0.895, "most": 0.905},
        ),
        (
            _figure(
                "left in flight",
                "BDP",
                lambda stays: max(
                    (stay["last"]["bytes_in_flight"] / BDP for stay, _ in _of(stays, DOWN)), default=None
                ),
                "most of last bytes_in_flight of DOWN",
            ),
            {"most": 1 + QUANTA},
        ),
        of=V3,
    )
    yield from _case(
        9,
        f"from DOWN on 45 Mbit/s at {BASE.name}",
        _at_entry(BASE, DOWN, 1, rate="45mbit"),
        _yes(
            "no CRUISE",
            lambda stays: [after["state"] for _, after in _of(stays, DOWN)][1:2] in ([REFILL], ["probe_rtt"]),
            "what follows the second DOWN: REFILL, or PROBE_RTT where that is due first",
        ),
        (
            _figure(
                "longest DOWN",
                "s",
                lambda stays: max(
                    (stay["until_s"] - stay["from_s"] for stay, _ in _of(stays, DOWN)), default=None
                ),
                "until_s - from_s of DOWN",
            ),
            {"most": 3.2},
        ),
        of=V3,
    )


def _probes_end_on_loss(stays: Sequence[Stay]) -> bool | None:
    """Checks that the recovery that ends a probe paces below the bandwidth, as DOWN does."""
    ends = [
        third
        for (first, second), (_, third) in pairwise(pairwise(stays))
        if first["state"] == UP and second["state"] == "disorder" and third["state"] == "recovery"
    ]
    return all(end["least"]["pacing_gain"] < 1 for end in ends) if ends else None


def _least_bound(stays: Sequence[Stay]) -> float | None:
    return min(
        (
            stay["least"]["inflight_hi"] * PAYLOAD_BYTES / BDP
            for stay in stays
            if "inflight_hi" in stay["least"]
        ),
        default=None,
    )


def _least_round_trip() -> Iterator[PassportRow]:
    path = replace(BASE, duration_s=25.0)
    yield from _case(
        10,
        f"PROBE_RTT at {path.name}",
        _scenario(path),
        (
            _figure("shortest", "s", _shortest, "until_s - from_s of PROBE_RTT", True),
            {"least": 0.2},
        ),
    )
    yield from _case(
        10,
        f"PROBE_RTT at {path.name}",
        _scenario(path),
        (_figure("apart", "s", _apart, "longest time from a from_s of PROBE_RTT to the next"), {"most": 5.5}),
        (
            _figure(
                "window",
                "BDP",
                _value("probe_rtt", "cwnd_bytes", "last", BDP),
                "last cwnd_bytes of PROBE_RTT",
                None,
            ),
            {"least": 0.45, "most": 0.55},
        ),
        of=V3,
    )
    yield from _case(
        11,
        f"2 s on and 6 s off at {path.name}",
        _scenario(path, {"cc": PLACE, "application": {"kind": "on_off", "on": "2s", "off": "6s"}}),
        (
            _figure("PROBE_RTT", "times", _on_resuming, "stays in PROBE_RTT in the first 0.5 s of each 8"),
            {"most": 0.0},
        ),
    )
    slow = PassportPath(0.064, 1000, 4, 60).with_(link="wire")
    yield from _case(
        20,
        f"a STARTUP longer than 5 s at {slow.name}",
        _scenario(slow),
        _yes(
            "back to STARTUP",
            lambda stays: [stay["state"] for stay in stays[:3]] == ["startup", "probe_rtt", "startup"],
            "the first three stays",
        ),
    )


def _on_resuming(stays: Sequence[Stay]) -> float | None:
    """Counts how often PROBE_RTT begins within half a second after a silence of case 11."""
    return float(sum(stay["state"] == "probe_rtt" and stay["from_s"] % 8 < 0.5 for stay in stays))


def _apart(stays: Sequence[Stay]) -> float | None:
    """The longest time without PROBE_RTT, in s, from the first ACK on."""
    starts = [stays[0]["from_s"], *(stay["from_s"] for stay in stays if stay["state"] == "probe_rtt")]
    ends = [*starts[1:], stays[-1]["until_s"]]
    return float(max(end - start for start, end in zip(starts, ends, strict=True)))


def _shortest(stays: Sequence[Stay]) -> float | None:
    durations_s: Iterator[float] = (stay["until_s"] - stay["from_s"] for stay, _ in _of(stays, "probe_rtt"))
    return min(durations_s, default=None)


def _aggregation() -> Iterator[PassportRow]:
    path = BASE.with_(up_medium="wifi-n")
    yield from _case(
        12,
        f"ACKs aggregated by 802.11n on their way back at {path.name}",
        _scenario(path),
        (
            _figure(
                "extra_acked", "packets", lambda stays: _most(stays, "extra_acked"), "most extra_acked", True
            ),
            {"least": 1.0},
        ),
        (
            _figure(
                "window",
                "BDP",
                lambda stays: (_most(stays, "cwnd_bytes") or 0) / BDP,
                "most cwnd_bytes",
                True,
            ),
            {"least": 2.0},
        ),
        (
            _bandwidth_away(50, _last, "last bandwidth"),
            {"most": 0.02},
        ),
    )
    tiny = PassportPath(0.064, 10, 1, 30).with_(queue="1250ms", link="wire")
    yield from _case(
        14,
        f"a BDP below one packet at {tiny.name}",
        _scenario(tiny),
        (
            _figure(
                "least window",
                "packets",
                lambda stays: min(stay["least"]["cwnd_bytes"] for stay in stays) / PAYLOAD_BYTES,
                "least cwnd_bytes over 1448",
                True,
            ),
            {"least": 4.0},
        ),
        (
            _bandwidth_away(0.064, _last, "last bandwidth"),
            {"most": 0.1},
        ),
    )


def _most(stays: Sequence[Stay], name: str) -> float | None:
    maxima: Iterator[float] = (stay["most"][name] for stay in stays if name in stay["most"])
    return max(maxima, default=None)


def _last(stays: Sequence[Stay]) -> Stay:
    return stays[-1]


CHANGE_S = 10.0
"""Time at which the rate of cases 15 and 16 changes."""


def _changes() -> Iterator[PassportRow]:
    faster = PassportPath(10, 40, 4, 30).with_(
        link="wire", queue="bfifo limit 1mb", change=[f"{CHANGE_S:g}s rate=100mbit"]
    )
    yield from _case(
        15,
        f"10, from {CHANGE_S:g} s 100 Mbit/s at {faster.name}",
        _scenario(faster),
        (_bandwidth_away(100, _last, "last bandwidth"), {"most": 0.1}),
    )
    yield from _case(
        15,
        f"10, from {CHANGE_S:g} s 100 Mbit/s at {faster.name}",
        _scenario(faster),
        (_figure("rounds", "of 40 ms", _rounds_to_full, "from the first UP to 90 % of the rate"), {}),
        of=V3,
    )
    slower = PassportPath(100, 40, 4, 30).with_(
        link="wire", queue="bfifo limit 500kb", change=[f"{CHANGE_S:g}s rate=10mbit"]
    )
    yield from _case(
        16,
        f"100, from {CHANGE_S:g} s 10 Mbit/s at {slower.name}",
        _scenario(slower),
        (
            _bandwidth_away(10, _two_cycles_later, "bandwidth, two probes later"),
            {"most": 0.02},
        ),
    )
    policed = PassportPath(50, 40, 1, 30).with_(link="wire", queue="police rate 10mbit burst 100kb")
    yield from _case(
        17,
        f"a policer of 10 Mbit/s, burst 100 kB, at {policed.mbit:g} Mbit/s, {policed.rtt_ms:g} ms",
        _scenario(policed),
        (GOODPUT, {"least": 0.9 * _payload_bps(10) / 1e6}),
        (RESENT, {}),
    )


def _two_cycles_later(stays: Sequence[Stay]) -> Stay | None:
    """The stay before the third UP after the change; without UP, as in version 1, the last stay."""
    probes = [index for index, stay in enumerate(stays) if stay["state"] == UP]
    if not probes:
        return stays[-1]
    after = [index for index in probes if stays[index]["from_s"] > CHANGE_S]
    return stays[after[2] - 1] if len(after) > 2 else None


def _rounds_to_full(stays: Sequence[Stay]) -> float | None:
    """Round trips of the empty path from the first probe after the change to nine tenths of the new rate."""
    after = [stay for stay in stays if stay["from_s"] > CHANGE_S]
    start = next((stay["from_s"] for stay in after if stay["state"] == UP), None)
    full = next(
        (stay["until_s"] for stay in after if (_bandwidth(stay, "most") or 0) >= 0.9 * _payload_bps(100)),
        None,
    )
    return None if start is None or full is None else float((full - start) / 0.04)
