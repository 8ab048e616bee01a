"""An inferred path as an experiment: options of `compare` that describe it, and what is not certain of it.

Rates and buffers are those of the IP layer; a bottleneck of `compare` counts Ethernet frames, 14 bytes more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dragstrip.analysis.inference.path import Estimate, PathEstimate
from dragstrip.display import quantity
from dragstrip.errors import BadInputError
from dragstrip.experiment.bottleneck import Bottleneck, socket_buffers
from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
from dragstrip.experiment.types import Experiment
from dragstrip.model.scenario.paths import FRAME_BYTES, IP_BYTES, PAYLOAD_BYTES

Options: TypeAlias = dict[str, Any]

BUFFER_BDP_MAX = 10.0
"""A buffer that never filled is taken to hold so many bandwidth-delay products at most."""
BUFFER_PACKETS_MIN = 4
LOSS_MIN = 1e-5
"""A smaller share of random loss is none."""
JITTER_SHARE_MIN = 0.004
"""Jitter below this share of the round trip is none."""
JITTER_WIDTH = 1.5
"""Mean of a delay between nothing and twice this, over the mean change between neighbours."""
FAST_LINK = 10.0
"""The link behind a policer or a shaper was not reached: it is taken to be so many times faster."""
HEADER_BYTES = IP_BYTES - PAYLOAD_BYTES
"""Headers of IP and TCP in a segment with data."""
SEED = 1
EARLY = "the queue drops early; it is taken for CoDel with its defaults"
QUEUE_WORDS = (EARLY, "buffer:")
"""Opening words of assumptions about the queue."""


def _framed(value: float, ip_bytes: int = IP_BYTES) -> int:
    """Return a rate or a size of the IP layer as queues and links count it, with packets of `ip_bytes`."""
    return round(value * (ip_bytes + FRAME_BYTES - IP_BYTES) / ip_bytes)


@dataclass(frozen=True)
class CandidatePath:
    """A path with one value for each property, in units of the IP layer."""

    rate_bps: float
    rtt_ms: float
    """Round trip of the empty path, without the time to send a packet."""
    buffer_bytes: float
    discipline: str = ""
    """The queue in tc's words; empty: a tail drop of `buffer_bytes`."""
    bucket_bytes: float | None = None
    """Bucket of a shaper of this rate, whose queue the buffer is."""
    loss: float = 0.0
    jitter_ms: float = 0.0
    window_bytes: float | None = None
    """The receiver's window, if it limited the sender."""
    ecn: bool = False
    ip_bytes: int = IP_BYTES
    """IP packet of a full segment: the MTU of the hosts."""

    @property
    def full_bytes(self) -> int:
        """Data of a full segment."""
        return self.ip_bytes - HEADER_BYTES

    @property
    def link_bps(self) -> float:
        """The rate of the link: behind a shaper it is faster."""
        return self.rate_bps * (FAST_LINK if self.bucket_bytes else 1)

    @property
    def sending_ms(self) -> float:
        """The time to send a full packet."""
        return self.ip_bytes * 8 / self.link_bps * 1e3

    @property
    def idle_ms(self) -> float:
        """The round trip of a full segment that does not wait."""
        return self.rtt_ms + self.sending_ms

    @property
    def bdp_bytes(self) -> float:
        """The bandwidth-delay product."""
        return self.rate_bps * self.rtt_ms / 8e3

    def options(self, duration_s: float, seed: int = SEED) -> Options:
        """Return the path as options of `compare`."""
        sysctl = None
        if self.window_bytes is not None:
            # Half of the buffer is the window (tcp_adv_win_scale is 1).
            sysctl = {"net.ipv4.tcp_rmem": socket_buffers(round(2 * self.window_bytes))}
        return Bottleneck(
            rate=f"{max(8000, _framed(self.link_bps, self.ip_bytes))}bit",
            rtt=f"{max(1, round(self.rtt_ms * 1e3))}us",
            queue=self.discipline or self._queue(),
            duration=f"{max(1, round(duration_s * 1e3))}ms",
            seed=seed,
            loss=f"{100 * self.loss:.4g}%" if self.loss >= LOSS_MIN else None,
            jitter=f"{round(self.jitter_ms * 1e3)}us" if self.jitter_ms else None,
            sysctl=sysctl,
            ecn=self.ecn or None,
        ).options()

    def _queue(self) -> str:
        limit = f"limit {_framed(self.buffer_bytes, self.ip_bytes)}"
        if self.bucket_bytes is None:
            return f"bfifo {limit}"
        rate, bucket = (_framed(value, self.ip_bytes) for value in (self.rate_bps, self.bucket_bytes))
        return f"tbf rate {rate}bit burst {bucket} {limit}"


@dataclass(frozen=True)
class CandidatePaths:
    """The path as it is taken, the paths that the capture does not exclude, and what was assumed."""

    middle: CandidatePath
    alternatives: Mapping[str, CandidatePath]
    """By what is changed: `rate low`, `buffer high` ..."""
    assumed: tuple[str, ...]

    def moved(self, by_ms: float) -> CandidatePaths:
        """Return the same with idle round trips that are longer by so much."""
        shifted = {name: _longer(alternative, by_ms) for name, alternative in self.alternatives.items()}
        return replace(self, middle=_longer(self.middle, by_ms), alternatives=shifted)


def words(path: CandidatePath) -> str:
    """Return what drops on a path, in a few words."""
    loss = f"{quantity.percent(path.loss)} random loss" if path.loss >= LOSS_MIN else ""
    queue = path.discipline or f"a buffer of {quantity.size(path.buffer_bytes)}"
    return f"{queue} with {loss}" if loss else queue


def _longer(network: CandidatePath, by_ms: float) -> CandidatePath:
    return replace(network, rtt_ms=max(0.001, network.rtt_ms + by_ms))


def from_estimate(
    path: PathEstimate,
    ecn: bool,
    receiver_limited: bool,
    longest_queue_bytes: float,
    has_losses: bool = False,
    ip_bytes: int = IP_BYTES,
) -> CandidatePaths:
    """Return a path to run on. Raises `BadInputError`, with the reason, where rate or round trip are unknown.

    `longest_queue_bytes` is what the buffer held at least, for captures that do not tell its size; where
    a capture `has_losses`, though too few to judge by, it was probably full then. `ip_bytes` is the MTU.
    """
    assumed: list[str] = []
    policed = path.queue == "policer" and path.policer_rate_bps.value is not None
    rate = path.policer_rate_bps if policed else path.rate_bps
    bps = _value(rate, "rate", path, assumed)
    rtt_ms = _value(path.base_rtt_ms, "round-trip time", path, assumed)
    middle = CandidatePath(
        bps,
        rtt_ms,
        1.0,
        loss=path.random_loss.value or 0.0,
        jitter_ms=_jitter(path.jitter_ms, rtt_ms),
        window_bytes=path.receiver_window_bytes.value if receiver_limited else None,
        ecn=ecn,
        ip_bytes=ip_bytes,
    )
    if policed:
        return _policer(middle, path, assumed)
    buffer, low, high = _buffer(middle, path, longest_queue_bytes, has_losses, assumed)
    middle = replace(middle, buffer_bytes=buffer)
    if path.queue == "shaper":
        middle = replace(middle, bucket_bytes=path.shaper_burst_bytes.value)
        assumed.append(_behind("shaper"))
    if path.queue == "aqm":
        middle = replace(middle, discipline="codel ecn" if ecn else "codel")
        assumed.append(EARLY)
    alternatives = dict(_ends(middle, "rate", "rate_bps", rate.low, rate.high))
    alternatives |= dict(_ends(middle, "RTT", "rtt_ms", path.base_rtt_ms.low, path.base_rtt_ms.high))
    if not middle.discipline:
        alternatives |= dict(_ends(middle, "buffer", "buffer_bytes", low, high))
    if middle.bucket_bytes:
        burst = path.shaper_burst_bytes
        alternatives |= dict(_ends(middle, "bucket", "bucket_bytes", burst.low, burst.high))
    if middle.loss:
        alternatives |= dict(_ends(middle, "loss", "loss", path.random_loss.low, path.random_loss.high))
    return CandidatePaths(middle, alternatives, tuple(assumed))


def _ends(
    middle: CandidatePath, name: str, field: str, low: float | None, high: float | None
) -> Iterator[tuple[str, CandidatePath]]:
    """Yield the path with one property at either end of its interval."""
    changes: dict[str, Any]
    for end, value in (("low", low), ("high", high)):
        if value is not None and value > 0 and value != getattr(middle, field):
            changes = {field: value}
            yield f"{name} {end}", replace(middle, **changes)


def _value(estimate: Estimate, name: str, path: PathEstimate, assumed: list[str]) -> float:
    if estimate.value is not None:
        return estimate.value
    if estimate.low is not None and estimate.high is not None:
        middle = (estimate.low + estimate.high) / 2
        assumed.append(f"{name}: {estimate.reason}; the middle is taken")
        return middle
    expected = f"a capture that shows the path's {name}: {estimate.reason}"
    raise BadInputError(path.flow, None, expected, path.file)


def _buffer(
    middle: CandidatePath, path: PathEstimate, longest: float, has_losses: bool, assumed: list[str]
) -> tuple[float, float | None, float | None]:
    """Return the buffer with its interval in bytes."""
    estimate = path.buffer_bytes
    least = BUFFER_PACKETS_MIN * middle.ip_bytes
    if estimate.value is not None:
        return max(least, estimate.value), estimate.low and max(least, estimate.low), estimate.high
    if path.queue == "aqm":
        return max(least, longest, middle.bdp_bytes), None, None
    low = max(least, longest, estimate.low or 0.0)
    high = max(low, estimate.high or BUFFER_BDP_MAX * middle.bdp_bytes)
    if estimate.low and estimate.high:
        assumed.append(
            f"buffer: {estimate.reason}; the middle of {quantity.size(low)} to {quantity.size(high)} is taken"
        )
        return (low + high) / 2, low, high
    assumed.append(
        f"buffer: {estimate.reason or 'not known'}; {quantity.size(low)} were in use, "
        f"up to {quantity.size(high)} are tried"
    )
    if middle.loss < LOSS_MIN and path.queue == "cannot tell":
        return (low, None, high) if has_losses else (high, low, None)
    return max(low, middle.bdp_bytes), low, high


def _behind(limiter: str) -> str:
    return f"the link behind the {limiter} was not reached; it is taken to be {FAST_LINK:g} times faster"


def _policer(middle: CandidatePath, path: PathEstimate, assumed: list[str]) -> CandidatePaths:
    burst = path.policer_burst_bytes
    if burst.value is None:
        raise BadInputError(
            path.flow, None, f"a capture that shows the policer's burst: {burst.reason}", path.file
        )
    assumed.append(_behind("policer"))

    def policed(rate_bps: float, burst_bytes: float) -> CandidatePath:
        bps, bucket = (_framed(value, middle.ip_bytes) for value in (rate_bps, burst_bytes))
        words = f"police rate {bps}bit burst {bucket}b"
        link = middle.rate_bps * FAST_LINK
        return replace(middle, rate_bps=link, discipline=words, buffer_bytes=link)

    rate = path.policer_rate_bps
    bps = middle.rate_bps
    alternatives = {}
    for end, value in (("low", rate.low), ("high", rate.high)):
        if value:
            alternatives[f"rate {end}"] = policed(value, burst.value)
    for end, value in (("low", burst.low), ("high", burst.high)):
        if value:
            alternatives[f"burst {end}"] = policed(bps, value)
    return CandidatePaths(policed(bps, burst.value), alternatives, tuple(assumed))


def _jitter(estimate: Estimate, rtt_ms: float) -> float:
    value = JITTER_WIDTH * (estimate.value or 0.0)
    return value if value > JITTER_SHARE_MIN * rtt_ms else 0.0


def experiment(
    options: Mapping[str, Any], algorithms: list[str], title: str = "", mtu_bytes: int = IP_BYTES
) -> Experiment:
    """Return what `compare` means by these options; raises `BadInputError` in words of the command line."""
    race = reworded(lambda: compare(algorithms, source=COMMAND_LINE, **options), COMMAND_LINE)
    if mtu_bytes != IP_BYTES:
        hosts = {name: replace(host, mtu=f"{mtu_bytes}b") for name, host in race.hosts.items()}
        race = race.changed(hosts=hosts)
    return race.changed(title=title, source="dragstrip whatif") if title else race
