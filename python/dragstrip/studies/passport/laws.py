"""Closed forms from the literature that a passport prints beside figures."""

from __future__ import annotations

import math

from dragstrip.model.scenario.paths import FRAME_BYTES, PAYLOAD_BYTES


def mathis_mbit(loss: float, rtt_ms: float) -> float:
    """Goodput in Mbit/s of Reno at a random loss: sqrt(3/(2p)) packets per round trip.

    Source: Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997. Linux opens the window by packets
    acknowledged, so that delayed ACKs do not count (b = 1).
    """
    return _mbit(math.sqrt(1.5 / loss) / (rtt_ms / 1e3))


def pftk_mbit(loss: float, rtt_ms: float, rto_s: float = 0.25) -> float:
    """Goodput in Mbit/s of Reno with timeouts at a random loss, one packet per ACK.

    Source: Padhye et al., SIGCOMM 1998, equation 30. `rto_s` is the first timeout, in seconds.
    """
    rtt = rtt_ms / 1e3
    waiting = rto_s * min(1.0, 3 * math.sqrt(3 * loss / 8)) * loss * (1 + 32 * loss**2)
    return _mbit(1 / (rtt * math.sqrt(2 * loss / 3) + waiting))


def cubic_mbit(loss: float, rtt_ms: float) -> float:
    """Goodput in Mbit/s of CUBIC at a random loss: 1.054·(RTT/p)^¾ packets, or Reno's window if larger.

    Source: RFC 9438, section 5.1.
    """
    rtt = rtt_ms / 1e3
    window = max(1.054 * (rtt / loss) ** 0.75, math.sqrt(1.5 / loss))
    return _mbit(window / rtt)


def sawtooth(beta: float, bdp: float) -> float:
    """Utilisation, of what payload can use, of one AIMD flow whose window falls to `beta` of its maximum.

    The buffer is `bdp` bandwidth-delay products, at most (1 - beta)/beta, above which it is 1.
    """
    low = beta * (1 + bdp)
    if low >= 1:
        return 1.0
    full = bdp * (1 + bdp / 2)
    return ((1 - low**2) / 2 + full) / ((1 - low) + full)


def overshoot_packets(mbit: float, rtt_ms: float, bdp: float) -> float:
    """Packets that slow start loses without HyStart: a path's and its buffer's contents."""
    path = mbit * 1e6 * rtt_ms / 1e3 / 8 / FRAME_BYTES
    return path * (1 + bdp)


def dctcp_queue_packets(mbit: float, rtt_ms: float, threshold: float, flows: int) -> float:
    """Mean packets in the queue of DCTCP: threshold and flows, less half of the swing.

    The swing is half the root of twice the flows times what path and threshold hold. Source: Alizadeh et al.,
    SIGCOMM 2010, section 3.3: K + N at most, swing sqrt(2N(C·RTT + K))/2, all flows in step.
    """
    path = mbit * 1e6 * rtt_ms / 1e3 / 8 / FRAME_BYTES
    swing = math.sqrt(2 * flows * (path + threshold)) / 2
    return threshold + flows - swing / 2


def long_share(hops: int, alpha: float) -> float:
    """The part of a link that a flow over so many of them has beside a flow on each.

    Fairness is weighted by alpha: 1 is proportional (Kelly, Maulloo, Tan, 1998), 2 Reno's.
    """
    return float(1 / (1 + hops ** (1 / alpha)))


def ware_share(bdp: float, flows: int, buffer_packets: float, mbit: float, rtt_ms: float) -> float:
    """The part of the link that `flows` flows of BBRv1 take from loss-based ones (Ware et al., IMC 2019)."""
    loss_based_share = 0.5 - 1 / (2 * bdp) - 4 * flows / buffer_packets
    drain_s = buffer_packets * FRAME_BYTES * 8 / (mbit * 1e6)
    probing = (drain_s + 0.2 + rtt_ms / 1e3) / 10
    return (1 - loss_based_share) * (1 - probing)


def _mbit(packets_per_s: float) -> float:
    return packets_per_s * PAYLOAD_BYTES * 8 / 1e6
