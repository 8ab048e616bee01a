"""Each estimator of inference alone, on flows computed here packet by packet from a known path.

The path is an ideal link: a packet leaves when the one before it has left, `packet / rate` later, and its
acknowledgement returns after the base round trip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dragstrip.analysis.inference import arrivals, noise, policer, rate, shaper
from dragstrip.analysis.inference.base import base_rtt, elsewhere, is_drained
from dragstrip.analysis.inference.estimate import Estimate, unknown
from dragstrip.analysis.inference.series import AckSeries, CapturedFlow, Segments

DATA, HEADERS = 1448, 52
PACKET = DATA + HEADERS
Floats = npt.NDArray[np.floating[Any]]


def flow(
    sent_s: Floats,
    acked_s: Floats,
    *,
    opening_s: float | None = None,
    lost: npt.NDArray[np.bool_] | None = None,
) -> CapturedFlow:
    """A sender's capture of full segments, each acknowledged alone."""
    sent_s, acked_s = (np.asarray(times, np.float64) for times in (sent_s, acked_s))
    count = len(sent_s)
    numbers = np.arange(count, dtype=np.int64)
    sizes = np.full(count, DATA, np.int64)
    lost_bytes = np.zeros(count, np.int64) if lost is None else np.where(lost, DATA, 0)
    no = np.zeros(count, bool)
    segments = Segments(sent_s, numbers * DATA, sizes, sizes + HEADERS, no, lost_bytes, no, sizes)
    delivered = (numbers + 1) * DATA
    returned = AckSeries(acked_s, delivered, delivered, sizes, acked_s - sent_s, np.full(count, 65535.0), no)
    return CapturedFlow(
        0, "flow", "sender", 0, DATA, HEADERS, opening_s, False, segments, returned, False, (), None, "", 0
    )


def windowed(
    rate_bps: float,
    base_s: float,
    window: int,
    count: int = 2000,
    delays_s: Floats | None = None,
    grows: bool = False,
) -> CapturedFlow:
    """A sender with a fixed window of packets on the ideal link; `delays_s` are added behind the link.

    With `grows` the window starts at four packets and grows to the given one.
    """
    packet_s = PACKET * 8 / rate_bps
    sent, acked, free = np.zeros(count), np.zeros(count), 0.0
    for number in range(count):
        # The first window leaves at the link's rate times ten: a burst.
        size = min(window, 4 + number // 8) if grows else window
        sent[number] = acked[number - size] if number >= size else number * packet_s / 10
        if number:
            sent[number] = max(sent[number], sent[number - 1])
        free = max(free, sent[number]) + packet_s
        acked[number] = free + base_s + (0.0 if delays_s is None else delays_s[number])
        if number:
            acked[number] = max(acked[number], acked[number - 1])
    return flow(sent, acked)


def bdp(rate_bps: float, base_s: float) -> int:
    return max(2, round(rate_bps * base_s / 8 / PACKET))


# --- estimates --------------------------------------------------------------------------------


def test_a_unit_changes_every_number_and_no_reason() -> None:
    assert Estimate(2.0, 1.0, 3.0, "why").times(8) == Estimate(16.0, 8.0, 24.0, "why")
    assert unknown("too few", low=0.0).times(1e3) == Estimate(None, 0.0, None, "too few")


# --- rate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "weights", "expected"),
    [
        ((10.0,), (1.0,), 10.0),
        ((10.0, 10.1, 99.0), (1.0, 1.0, 1.5), 10.05),  # two that agree outweigh a heavier one
        ((10.0, 10.1, 99.0), (1.0, 1.0, 2.5), 99.0),
        ((10.0, 11.2, 12.5, 30.0, 31.0), (1.0,) * 5, 30.5),  # neighbours 12 % apart do not agree
    ],
)
def test_the_mode_is_where_most_weight_agrees(
    values: tuple[float, ...], weights: tuple[float, ...], expected: float
) -> None:
    given, weight = np.array(values), np.array(weights)
    assert rate.mode(given, weight) == pytest.approx(expected, rel=1e-3)
    order = np.random.default_rng(1).permutation(len(values))
    assert rate.mode(given[order], weight[order]) == rate.mode(given, weight)
    assert rate.mode(given * 1e6, weight) == pytest.approx(rate.mode(given, weight) * 1e6)


@pytest.mark.parametrize("rate_bps", [256e3, 10e6, 1e9])
@pytest.mark.parametrize("base_s", [0.002, 0.1])
@pytest.mark.parametrize("queued", [1.5, 3.0])
def test_a_standing_queue_shows_the_rate(rate_bps: float, base_s: float, queued: float) -> None:
    window = max(8, round(queued * bdp(rate_bps, base_s)))
    capture = windowed(rate_bps, base_s, window, count=max(1000, 4 * window) if window < 4000 else 20_000)
    samples = rate.trips(capture)
    packet_s = PACKET * 8 / rate_bps
    windows = rate.slopes(capture, samples, base_s + packet_s, packet_s)
    assert len(windows.rate_bps) >= rate.BATCHES_MIN
    assert windows.rate_bps == pytest.approx(rate_bps, rel=1e-6)
    assert windows.clean.all()


def test_a_loss_spoils_its_own_window_alone() -> None:
    clean = windowed(10e6, 0.04, 100)
    lost = np.zeros(2000, bool)
    lost[1000] = True
    capture = replace(clean, segments=replace(clean.segments, lost_bytes=np.where(lost, DATA, 0)))
    samples, packet_s = rate.trips(capture), PACKET * 8 / 10e6
    windows = rate.slopes(capture, samples, 0.04 + packet_s, packet_s)
    (spoilt,) = np.flatnonzero(~windows.clean)
    sent_s = capture.segments.time_s[1000]
    begin, end = (
        np.interp(at[spoilt], samples.at_s, samples.sent_s) for at in (windows.begin_s, windows.end_s)
    )
    assert begin <= sent_s <= end


def test_a_window_below_the_bdp_reaches_no_capacity() -> None:
    capture = windowed(10e6, 0.04, bdp(10e6, 0.04) // 2)
    samples = rate.trips(capture)
    found = rate.capacity(capture, samples, rate.pairs(capture, samples), 0.04)
    assert found.rate_bps.value is None
    assert "capacity not reached" in found.rate_bps.reason


# --- base round trip --------------------------------------------------------------------------


def test_the_base_round_trip_of_an_idle_link_has_the_packet_in_it() -> None:
    capture = replace(windowed(10e6, 0.04, 10), opening_s=0.05)  # a server that was busy at first
    estimate = base_rtt(capture, rate.trips(capture), 10e6)
    assert estimate.value == pytest.approx(40 + PACKET * 8e3 / 10e6)
    assert estimate.low is not None
    assert estimate.low < 41.2 < (estimate.high or 0.0)


def test_a_queue_that_never_drains_gives_an_upper_bound_and_the_handshake_gives_more() -> None:
    packet_s = PACKET * 8 / 10e6
    standing = windowed(10e6, 0.04, 100)
    later = replace(  # the capture begins when the queue is full
        standing, returned=_behind(standing.returned, 300), segments=standing.segments
    )
    estimate = base_rtt(later, rate.trips(later), 10e6)
    assert (estimate.low, "never seen empty" in estimate.reason) == (None, True)
    with_opening = replace(later, opening_s=0.04)
    estimate = base_rtt(with_opening, rate.trips(with_opening), 10e6)
    # A SYN of 60 bytes: the rest of a full segment takes longer.
    assert estimate.value == pytest.approx((0.04 + (PACKET - 60) * 8 / 10e6) * 1e3)
    assert (estimate.value or 0.0) < 40 + packet_s * 1e3
    assert estimate.reason == ""


def _behind(returned: AckSeries, first: int) -> AckSeries:
    return AckSeries(*(getattr(returned, name)[first:] for name in returned.__dataclass_fields__))


def test_without_anything_there_is_no_base_round_trip() -> None:
    capture = windowed(10e6, 0.04, 10, count=10)
    silent = replace(capture, returned=_behind(capture.returned, 10))
    assert base_rtt(silent, rate.trips(silent), 10e6).value is None
    assert elsewhere(silent).value is None


def test_the_queue_was_empty_where_the_shortest_round_trips_had_the_lowest_rates() -> None:
    growing = windowed(10e6, 0.04, 100, grows=True)
    assert is_drained(rate.trips(growing))
    estimate = base_rtt(growing, rate.trips(growing), 10e6)
    assert estimate.low is not None
    assert estimate.low <= 40 + PACKET * 8e3 / 10e6 <= (estimate.high or 0.0)
    first_samples = rate.trips(replace(growing, returned=_until(growing.returned, 19)))
    assert not is_drained(first_samples)  # too few
    assert not is_drained(rate.trips(replace(growing, returned=_behind(growing.returned, 1500))))


def _until(returned: AckSeries, end: int) -> AckSeries:
    return AckSeries(*(getattr(returned, name)[:end] for name in returned.__dataclass_fields__))


# --- noise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [10, 34, 100])
def test_an_ideal_link_has_no_jitter(window: int) -> None:
    packet_s = PACKET * 8 / 10e6
    capture = windowed(10e6, 0.04, window)
    estimate = noise.jitter(rate.trips(capture), packet_s, 0.04)
    assert estimate.value == pytest.approx(0.0, abs=1e-6)


def test_jitter_is_what_neither_the_queue_nor_the_time_between_departures_explains() -> None:
    """Segments 1 ms apart, every other one 10 ms late: two packets explain 2.4 ms of the rise, a packet and the
    time between departures 2.2 ms of the fall."""
    sent_s = np.arange(1000.0) * 0.001
    late = np.where(np.arange(1000) % 2, 0.010, 0.0)
    arrived_s = np.asarray(sent_s + 0.04 + late, np.float64)
    samples = rate.Trips(arrived_s, np.float64(1) * sent_s, 0.04 + late, np.arange(1000.0) * PACKET)
    estimate = noise.jitter(samples, 0.0012, 0.04)
    assert estimate.value == pytest.approx(((10 - 2.4) + (10 - 2.2)) / 2, rel=1e-3)


@pytest.mark.parametrize("spread_ms", [2.0, 5.0])
def test_jitter_behind_a_busy_link_is_the_change_between_neighbours(spread_ms: float) -> None:
    drawn = np.random.default_rng(7).uniform(0, spread_ms / 1e3, 4000)
    capture = windowed(1e6, 0.04, 40, count=4000, delays_s=drawn)  # packets 12 ms apart: none overtakes
    estimate = noise.busy_jitter(rate.trips(capture), PACKET, 0.04, 1e6)
    # Of two uniform draws the mean distance is a third of the range.
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= spread_ms / 3 * 1.03
    assert estimate.high >= spread_ms / 3 * 0.97


@pytest.mark.parametrize("count", [0, 29])
def test_few_round_trips_show_no_jitter(count: int) -> None:
    samples = rate.trips(windowed(10e6, 0.04, 10, count=max(count, 1)))
    if not count:
        samples = rate.Trips(*(getattr(samples, name)[:0] for name in samples.__dataclass_fields__))
    assert noise.jitter(samples, 0.0012, 0.04).value is None
    assert noise.busy_jitter(samples, PACKET, 0.04, 10e6).value is None


@pytest.mark.parametrize("hold_ms", [5, 20])
def test_held_acknowledgements_show_the_time_between_bursts(hold_ms: int) -> None:
    even = windowed(50e6, 0.1, 800, count=4000)
    assert noise.aggregation(even).value == 0.0
    step = hold_ms / 1e3
    held_s = np.ceil(even.returned.time_s / step) * step + np.arange(4000) * 1e-9
    returned = replace(even.returned, time_s=held_s, rtt_s=held_s - even.segments.time_s)
    assert noise.aggregation(replace(even, returned=returned)).value == pytest.approx(hold_ms, rel=0.02)


def test_uneven_bursts_give_quartiles() -> None:
    even = windowed(50e6, 0.1, 800, count=4000)
    edges = np.cumsum(np.tile([0.004, 0.008, 0.008, 0.020], 100))
    held_s = edges[np.searchsorted(edges, even.returned.time_s)] + np.arange(4000) * 1e-9
    returned = replace(even.returned, time_s=held_s, rtt_s=held_s - even.segments.time_s)
    estimate = noise.aggregation(replace(even, returned=returned))
    assert estimate.value == pytest.approx(8, rel=0.01)
    assert estimate.low is not None
    assert 4 <= estimate.low <= 8 <= (estimate.high or 0.0) <= 20


@pytest.mark.parametrize(
    ("limited", "words"),
    [(None, "cannot be seen"), (0.0049, "never limited"), (0.005, "for 0 % of"), (0.25, "for 25 % of")],
)
def test_a_receivers_window_and_how_long_it_limited(limited: float | None, words: str) -> None:
    capture = replace(windowed(10e6, 0.04, 10, count=50), receiver_limited=limited)
    estimate = noise.receiver_window(capture)
    assert (estimate.value, words in estimate.reason) == (65535.0, True)


# --- token buckets ----------------------------------------------------------------------------


def policed(bucket_bps: float, depth: float, sent_bps: float, count: int = 3000) -> policer.Events:
    """A paced flow through a token bucket that drops what it has no tokens for."""
    times = np.arange(count) * PACKET * 8 / sent_bps
    level, last = depth, 0.0
    passes = np.zeros(count, bool)
    for number, time in enumerate(times):
        level = min(depth, level + bucket_bps / 8 * (time - last))
        last = time
        if level >= PACKET:
            passes[number], level = True, level - PACKET
    return policer.Events(times, np.where(passes, PACKET, 0.0), np.where(passes, 0.0, PACKET))


@pytest.mark.parametrize("depth_packets", [5, 40, 200])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_bucket_is_found_with_its_rate_within_the_bounds(depth_packets: int, share: float) -> None:
    sent_bps = 20e6
    count = max(2000, round(2 * depth_packets / (1 - share)))
    events = policed(share * sent_bps, depth_packets * PACKET, sent_bps, count)
    assert events.losses() >= policer.LOSSES_MIN
    bucket = policer.by_losses(events, PACKET)
    assert bucket is not None
    assert bucket.explains
    assert bucket.low_bps <= share * sent_bps <= bucket.high_bps
    least, most = bucket.burst_bounds
    assert least <= depth_packets * PACKET
    assert most is None or depth_packets * PACKET <= most


def test_the_simulated_bucket_is_the_one_that_dropped() -> None:
    """The true bucket explains every loss and every pass; half and twice its rate do not."""
    events = policed(6e6, 30 * PACKET, 20e6)
    rates = np.array([3e6, 6e6, 12e6]) / 8
    empty, enough = policer.simulated(events, rates, np.full(3, 30.0 * PACKET), PACKET)
    assert (empty[1], enough[1]) == (1.0, 1.0)
    assert enough[0] < 0.95
    assert empty[2] < 0.88


def test_a_bucket_holds_no_more_than_its_depth_after_a_pause() -> None:
    parts = [policed(6e6, 30 * PACKET, 20e6, 200) for _ in range(10)]
    times = np.concatenate([part.time_s + 5.0 * number for number, part in enumerate(parts)])
    passed, lost = (
        np.concatenate([getattr(part, f"{name}_bytes") for part in parts]) for name in ("passed", "lost")
    )
    rates, depths = np.array([6e6]) / 8, np.array([30.0 * PACKET])
    empty, enough = policer.simulated(policer.Events(times, passed, lost), rates, depths, PACKET)
    assert (empty[0], enough[0]) == (1.0, 1.0)


def test_a_policed_super_segment_counts_with_the_headers_of_its_packets() -> None:
    capture = windowed(10e6, 0.04, 10, count=3)
    sizes = np.array([DATA, 2 * DATA, DATA + 1], np.int64)
    lost_bytes = np.array([0, DATA, 0], np.int64)
    capture = replace(capture, segments=replace(capture.segments, bytes=sizes, lost_bytes=lost_bytes))
    events = policer.events([capture])
    assert events.passed_bytes.tolist() == [PACKET, PACKET, DATA + 1 + 2 * HEADERS]
    assert events.lost_bytes.tolist() == [0, PACKET, 0]
    assert events.losses() == 1


def test_flows_of_one_capture_are_ordered_by_its_clock() -> None:
    first = windowed(10e6, 0.04, 10, count=20)
    second = replace(first, origin_ns=5_000_000)
    times = policer.events([second, first]).time_s
    assert times.tolist() == sorted([*first.segments.time_s, *(first.segments.time_s + 0.005)])


def test_the_backlog_is_what_a_link_has_left() -> None:
    drawn = np.random.default_rng(3)
    sent_s = np.cumsum(drawn.exponential(0.0012, 500))
    sent_s -= sent_s[0]
    capture = flow(sent_s, sent_s + 0.05)
    expected, left, last = [], 0.0, 0.0
    for time in sent_s:
        left = max(0.0, left - (time - last) * 10e6 / 8)
        expected.append(left)
        left, last = left + PACKET, time
    amounts, since = shaper.backlog(capture, 10e6)
    assert amounts == pytest.approx(expected, abs=1e-3)
    assert (since <= sent_s).all()
    assert (amounts[np.searchsorted(sent_s, since)] < 1e-3).all()


# --- at the receiver --------------------------------------------------------------------------


def test_packets_of_a_link_are_spread_and_bursts_are_not() -> None:
    even = np.arange(200) * 0.0012
    bursts = np.repeat(np.arange(20) * 0.012, 10) + np.tile(np.arange(10) * 1e-5, 20)
    assert arrivals.is_spread([flow(even, even + 0.01)])
    assert not arrivals.is_spread([flow(bursts, bursts + 0.01)])
    short = even[: 4 * arrivals.SPACED]
    assert not arrivals.is_spread([flow(short, short + 0.01)])  # too few to judge


def test_a_loss_does_not_count_as_an_arrival() -> None:
    """What the queue dropped stands in the capture, between the packets that it sent."""
    lost = np.random.default_rng(2).random(800) < 0.5
    slots = np.cumsum(~lost) * 0.0012 + np.arange(800) * 1e-9
    capture = flow(slots, slots + 0.01, lost=lost)
    sizes = np.where(lost, 10, DATA)
    assert arrivals.is_spread([replace(capture, segments=replace(capture.segments, bytes=sizes))])
    assert not arrivals.is_spread([flow(slots, slots + 0.01)])


def test_a_flow_that_follows_another_is_placed_by_the_captures_clock() -> None:
    """On top of each other they would come at twice the rate, for as long as the shorter one lasts."""
    even = np.arange(400) * 0.0012
    first, second = flow(even[:300], even[:300] + 0.01), flow(even[:100], even[:100] + 0.01)
    assert arrivals.is_spread([first, replace(second, origin_ns=360_000_000)])
    assert not arrivals.is_spread([first, second])


def test_two_flows_are_spread_together_though_neither_is_alone() -> None:
    even = np.arange(400) * 0.0012
    turn = (np.arange(400) // 10) % 2 == 0
    halves = [even[turn], even[~turn]]
    flows = [flow(times - times[0], times - times[0] + 0.01) for times in halves]
    flows[1] = replace(flows[1], origin_ns=round(halves[1][0] * 1e9))
    assert not arrivals.is_spread(flows[:1])
    assert arrivals.is_spread(flows)
