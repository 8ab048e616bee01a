"""A path with one value for each property: the one place that writes it as options of `compare`.

Scope: the options of a path, its figures and its text. Out of scope: what they make of it (`comparison`), and
paths with intervals, as captures show them (`dragstrip.analysis.inference.path`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from dragstrip import _core
from dragstrip.errors import BadInputError
from dragstrip.model.scenario.paths import FRAME_BYTES

_BDP = re.compile(r"(\d+(?:\.\d+)?)bdp")


@dataclass(frozen=True)
class Bottleneck:
    """A bottleneck and the path around it, each property in the words of `compare`; None if not stated."""

    rate: str | None = None
    rtt: str | None = None
    """Round-trip time of the empty path."""
    queue: str | None = None
    """In tc's words, or as a multiple of the bandwidth-delay product, such as `1bdp`."""
    duration: str | None = None
    seed: str | int | None = None
    loss: str | None = None
    jitter: str | None = None
    sysctl: Mapping[str, str] | None = None
    ecn: bool | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further options of `compare`; they replace properties of the same name."""

    def options(self) -> dict[str, Any]:
        """Return the path as options of `compare`."""
        stated = {
            "rate": self.rate,
            "rtt": self.rtt,
            "queue": self.queue,
            "duration": self.duration,
            "seed": self.seed,
            "loss": self.loss,
            "jitter": self.jitter,
            "sysctl": None if self.sysctl is None else dict(self.sysctl),
            "ecn": self.ecn,
        }
        return {name: value for name, value in stated.items() if value is not None} | dict(self.more)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return the path with these options of `compare` too; each replaces one of the same name."""
        return replace(self, more={**self.more, **options})

    @property
    def rate_bps(self) -> int:
        """The bottleneck's rate in bit/s; raises `BadInputError`."""
        return parsed("--rate", self.rate, _core.parse_rate)

    @property
    def rtt_ms(self) -> float:
        """The round-trip time on the empty path, in ms; raises `BadInputError`."""
        return parsed("--rtt", self.rtt, _core.parse_time) / 1e6

    @property
    def duration_ms(self) -> int:
        """The duration of a run in ms; raises `BadInputError`."""
        return round(parsed("--duration", self.duration, _core.parse_time) / 1e6)

    @property
    def bdp_packets(self) -> int:
        """The bandwidth-delay product in full frames, at least 1."""
        return max(1, math.ceil(self.rate_bps * self.rtt_ms / 1e3 / 8 / FRAME_BYTES))

    @property
    def discipline(self) -> str:
        """The queue in tc's words."""
        queue = self.queue or "1bdp"
        multiple = _BDP.fullmatch(queue.strip())
        if multiple is None:
            return queue
        return f"pfifo limit {max(1, round(float(multiple[1]) * self.bdp_packets))}"


def parsed(option: str, text: str | None, parse: Any) -> int:
    """Return an option above zero in the unit of `parse`; raises `BadInputError`."""
    try:
        value: int = parse(text or "")
    except _core.InputError as error:
        raise BadInputError(option, text, error.args[2], "command line") from None
    if value <= 0:
        raise BadInputError(option, text, "more than zero", "command line")
    return value


def socket_buffers(size_bytes: int, middle_bytes: int | None = None) -> str:
    """Return the value of `tcp_rmem` or `tcp_wmem` with this maximum, in bytes."""
    return f"4096 {middle_bytes or size_bytes} {size_bytes}"
