"""The network that an attack acts on, as the content of an experiment.

    s1 ─┐                                    victim: s1 → d, the other flow: s2 → d
    s2 ─┼── r ══ bottleneck r-d ══ d         cross traffic: u → d (UDP)
    u  ─┘

Each sender has a return path of its own, d → r → a1 → s1, on which the round-trip time lies, so that data and
ACKs of each flow can be impaired apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dragstrip import _core
from dragstrip.experiment.bottleneck import Bottleneck, parsed
from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES

Json: TypeAlias = dict[str, Any]

VICTIM, OTHER, CROSS = "victim", "other", "cross"
"""Labels of the flows."""
BOTTLENECK = "r-d"
PAYLOAD = PAYLOAD_BYTES / FRAME_BYTES
"""Share of a full Ethernet frame that is TCP payload, with timestamps."""
BUFFERS = "4096 131072 268435456"
"""Socket buffers large enough never to limit a sender: least, default and largest, in bytes."""
AGGREGATE = 64
"""Frames of 1500 bytes that may leave at once from a path that holds ACKs back: some 1400 ACKs."""


@dataclass(frozen=True)
class AttackPath(Bottleneck):
    """The bottleneck of both flows, the victim's round-trip time and that of the other flow."""

    other_rtt: str | None = None
    """The other flow's round-trip time, where the caller fixes it."""

    @property
    def words(self) -> dict[str, str]:
        """Value of each command-line option."""
        option_values = {f"--{name}": str(value) for name, value in self.options().items()}
        return option_values if self.other_rtt is None else {**option_values, "--other-rtt": self.other_rtt}

    @property
    def other_rtt_ms(self) -> float:
        """The other flow's round-trip time on the empty path, in ms, if no attack changes it."""
        return (
            self.rtt_ms
            if self.other_rtt is None
            else parsed("--other-rtt", self.other_rtt, _core.parse_time) / 1e6
        )


@dataclass
class Scene:
    """An experiment in the making: elements add to it, `content` returns it."""

    path: AttackPath
    senders: tuple[str, ...]
    """Congestion controls of the flows: the victim's and, if there is one, the other flow's."""
    duration_ms: int
    seed: int
    programs: dict[str, str] = field(default_factory=dict)
    _cross: list[Json] = field(default_factory=list)
    _changes: list[tuple[int, Json]] = field(default_factory=list)
    _rates: list[tuple[int, float]] = field(default_factory=list)
    _data: dict[int, list[str]] = field(default_factory=dict)
    _acks: dict[int, list[str]] = field(default_factory=dict)
    _held_ms: dict[int, int] = field(default_factory=dict)
    _rtt_pct: int | None = None
    _late_ms: int = 0

    @property
    def two_flows(self) -> bool:
        """True when a second TCP flow competes."""
        return len(self.senders) > 1

    def cross(self, rate_pct: float, start_ms: int, stop_ms: int) -> None:
        """Send UDP through the bottleneck for a while."""
        rate = f"{max(1, round(self.path.rate_bps * rate_pct / 100 / 1000))}kbit"
        flow: Json = {"label": CROSS, "sender": "u", "receiver": "d"}
        flow |= {"start": f"{start_ms}ms", "stop": f"{stop_ms}ms"}
        self._cross.append(flow | {"application": {"kind": "constant_rate", "rate": rate}})

    def lose_data(self, whom: int, share_pct: float) -> None:
        """Lose data at random ahead of the bottleneck."""
        self._add(self._data, whom, f"loss {share_pct:g}%")

    def impair_data(self, whom: int, netem: str) -> None:
        """Impair data ahead of the bottleneck in netem's words."""
        self._add(self._data, whom, netem)

    def lose_acks(self, whom: int, share_pct: float) -> None:
        """Lose ACKs at random."""
        self._add(self._acks, whom, f"loss {share_pct:g}%")

    def impair_acks(self, whom: int, netem: str) -> None:
        """Impair ACKs in netem's words."""
        self._add(self._acks, whom, netem)

    def aggregate(self, whom: int, every_ms: int) -> None:
        """Hold ACKs back until a multiple of so many ms."""
        for at in self._hit(whom):
            self._held_ms[at] = every_ms

    def second_rtt(self, pct: int) -> None:
        """Set the other flow's round-trip time, in per cent of the victim's."""
        self._rtt_pct = pct

    def late(self, by_ms: int) -> None:
        """Start the victim later than the other flow."""
        self._late_ms = min(by_ms, self.duration_ms // 4)

    def change(
        self,
        at_ms: int,
        *,
        rate_pct: int | None = None,
        delay_ms: int | None = None,
        loss_pct: int | None = None,
        up: bool | None = None,
    ) -> None:
        """Change the bottleneck during the run; what would happen after its end is left out."""
        if at_ms >= self.duration_ms:
            return
        change: Json = {"at": f"{at_ms}ms", "link": BOTTLENECK}
        if rate_pct is not None:
            change["rate"] = f"{round(self.path.rate_bps * rate_pct / 100)}bit"
            self._rates.append((at_ms, rate_pct / 100))
        if delay_ms is not None:
            change["delay"] = f"{delay_ms}ms"
        if loss_pct is not None:
            change["loss"] = f"{loss_pct}%"
        if up is not None:
            change["state"] = "up" if up else "down"
        self._changes.append((at_ms, change))

    def capacity_bps(self, after_ms: int) -> float:
        """Return the bottleneck's mean rate from `after_ms` on, in bit/s of Ethernet frames."""
        steps = sorted([(0, 1.0), *self._rates], key=lambda step: step[0])
        ends = [at for at, _ in steps[1:]] + [self.duration_ms]
        total = 0.0
        for (start, share), end in zip(steps, ends, strict=True):
            total += share * max(0, end - max(start, after_ms))
        return self.path.rate_bps * total / (self.duration_ms - after_ms)

    def _hit(self, whom: int) -> range:
        """Return the numbers of the flows that are hit: of all (0), of the victim (1) or of the other (2)."""
        return (range(2), range(1), range(1, 2))[whom] if self.two_flows else range(1)

    def _add(self, table: dict[int, list[str]], whom: int, netem: str) -> None:
        for at in self._hit(whom):
            table.setdefault(at, []).append(netem)

    @property
    def late_ms(self) -> int:
        """Start time of the victim after that of the run, in ms."""
        return self._late_ms

    def rtt_ms(self, at: int) -> float:
        """Return a flow's round-trip time on the empty path, in ms."""
        if not at:
            return self.path.rtt_ms
        return self.path.other_rtt_ms if self._rtt_pct is None else self.path.rtt_ms * self._rtt_pct / 100

    def traces(self) -> dict[str, list[int]]:
        """Return the recorded links that hold ACKs back: file → times in ms."""
        return {_trace(hold_ms): [hold_ms] * AGGREGATE for hold_ms in sorted(set(self._held_ms.values()))}

    def content(self) -> Json:
        """Return the experiment."""
        flows: list[Json] = []
        nodes = [{"name": "r", "kind": "router"}, {"name": "d", "kind": "host"}]
        links: list[Json] = [
            {
                "from": "r",
                "to": "d",
                "both_ways": False,
                "rate": self.path.rate,
                "link": "wire",
                "queue": self.path.discipline,
            },
            {"from": "d", "to": "r", "both_ways": False},
        ]
        for at, algorithm in enumerate(self.senders):
            host, relay = f"s{at + 1}", f"a{at + 1}"
            nodes += [{"name": host, "kind": "host"}, {"name": relay, "kind": "router"}]
            links += [
                {"from": host, "to": "r", "both_ways": False, **_netem(self._data.get(at))},
                {"from": "r", "to": relay, "both_ways": False},
                {
                    "from": relay,
                    "to": host,
                    "both_ways": False,
                    "delay": f"{round(self.rtt_ms(at) * 1000)}us",
                },
            ]
            links[-1] |= _netem(self._acks.get(at))
            if at in self._held_ms:
                links[-2] |= {"medium": _medium(self._held_ms[at]), "queue": "pfifo limit 100000"}
            label = OTHER if at else VICTIM
            flow: Json = {"cc": algorithm, "label": label, "sender": host, "receiver": "d"}
            if at == 0 and self._late_ms:
                flow["start"] = f"{self._late_ms}ms"
            flows.append(flow)
        if self._cross:
            nodes.append({"name": "u", "kind": "host"})
            links.append({"from": "u", "to": "r"})
        experiment: Json = {
            "duration": f"{self.duration_ms}ms",
            "seed": self.seed,
            "nodes": nodes,
            "links": links,
        }
        if self._held_ms:
            experiment["media"] = {
                _medium(hold_ms): {"kind": "trace", "file": _trace(hold_ms)}
                for hold_ms in self._held_ms.values()
            }
        if self.programs:
            experiment["programs"] = dict(self.programs)
        buffers = {"sysctl": {f"net.ipv4.tcp_{name}": BUFFERS for name in ("rmem", "wmem")}}
        experiment["hosts"] = dict.fromkeys(_kernel_hosts(flows), buffers)
        experiment["flows"] = [*flows, *self._cross]
        experiment["record"] = {"rtts": False}
        if self._changes:
            experiment["changes"] = [change for _, change in sorted(self._changes, key=lambda pair: pair[0])]
        return experiment


def _kernel_hosts(flows: list[Json]) -> list[str]:
    """Return the hosts whose sysctls count: all, unless a QUIC stack is at one of them."""
    tcp_flows = [flow for flow in flows if "/" not in flow["cc"]]
    if len(tcp_flows) == len(flows):
        return ["*"]
    return sorted({flow[end] for flow in tcp_flows for end in ("sender", "receiver")})


def _medium(every_ms: int) -> str:
    return f"hold-{every_ms}ms"


def _trace(every_ms: int) -> str:
    return f"hold-{every_ms}ms.trace"


def _netem(words: list[str] | None) -> Json:
    """Return netem's words of a link; of several delays the last one counts."""
    if not words:
        return {}
    delays = [word for word in words if word.startswith("delay")]
    return {"netem": " ".join([*delays[-1:], *(word for word in words if word not in delays)])}
