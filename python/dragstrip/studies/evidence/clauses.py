"""The clauses of RFC 9743 that ask for evidence: level, question, rows that answer, and what none answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["MUST", "SHOULD", "should", "MAY"]
"""The clause's own word; `should` in small letters is the text's advice."""


@dataclass(frozen=True)
class Clause:
    """A clause, and the passport's rows that answer it."""

    number: str
    title: str
    level: Level
    question: str
    """The question that the clause asks, in our words."""
    rows: tuple[str, ...] = ()
    """Ids of rows, with `*` for any part."""
    lacks: tuple[str, ...] = ()
    """Parts of the question that no row answers."""
    author: str = ""
    """Text that the authors have to write themselves."""
    ranges: bool = False
    """True where the answer is the range of the rows' paths, not single rows."""


CLAUSES = (
    Clause(
        "5.1.1",
        "Protection against congestion collapse",
        "should",
        "Does the sender back off fully: to a packet a round trip, and then by growing gaps?",
        ("loss-outage-*", "loss-interrupted-10s-*", "loss-slow-*", "many-crowd-*"),
        ("the gaps between single packets: rows count the timer's expiries",),
    ),
    Clause(
        "5.1.2",
        "Protection against bufferbloat",
        "should",
        "Does it keep buffers from standing full?",
        (
            "many-bloat-*",
            "many-both-ways-ping-p95",
            "users-web-*-ping-p95",
            "alone-10-40-*-queue",
            "alone-on-off-ping-p95",
            "users-call-*",
            "users-rrul-*",
        ),
    ),
    Clause(
        "5.1.3",
        "Protection against high packet loss",
        "should",
        "Does it keep the loss that it causes low?",
        (
            "alone-*-resent",
            "many-shallow-*-resent",
            "many-*-flows-resent",
            "loss-police-*-resent",
            "many-hock-*",
            "exits-*-lost",
        ),
    ),
    Clause(
        "5.1.4",
        "Fairness within the proposed algorithm",
        "should",
        "How do its own flows share the capacity?",
        (
            "many-*-jain",
            "many-*-least-share",
            "many-parking-lot-*",
            "rtt-20-*",
            "rtt-five-*",
            "starvation-*-share",
            "starvation-*-ratio",
            "beside-own-*",
        ),
        ("the time until shares are fair (RFC 5166)",),
    ),
    Clause(
        "5.1.5",
        "Short flows",
        "MUST",
        "What do its short and long flows do to each other?",
        (
            "users-short-own-*",
            "users-on-off-cubic-goodput",
            "users-web-*",
            "users-rpc-*",
            "limited-never-grows-*",
            "limited-requests-*",
            "exits-file-*",
        ),
    ),
    Clause(
        "5.2",
        "Mixed algorithm behavior",
        "MUST",
        "Can it starve others, also by delay and loss, and does it back off when all feedback is lost?",
        (
            "beside-*-ratio",
            "beside-*-neighbour-resent",
            "starvation-*",
            "aqm-*-beside-ratio",
            "users-*-neighbour-completion",
            "loss-outage-*",
        ),
        ("the delay that it adds to a neighbour's packets, but for pings in chapters many, aqm and users",),
    ),
    Clause(
        "5.2.1",
        "Existing general-purpose congestion control",
        "MUST",
        "What does it do to RFC 5681, RFC 9002 and RFC 9438, and to what else is widely deployed?",
        (
            "beside-cubic-*",
            "beside-reno-*",
            "beside-*-and-*",
            "beside-late-*",
            "beside-prudentia-*",
            "rtt-cubic-*",
            "beside-bbr-*",
            "beside-bbr3-*",
            "beside-quic-*",
        ),
    ),
    Clause(
        "5.2.2",
        "Real-time congestion control",
        "SHOULD",
        "Does it live with deployed real-time media?",
        ("users-media-*", "users-call-*", "starvation-udp-*"),
        ("beside Google's congestion control (GCC) and NADA (RFC 8698)",),
    ),
    Clause(
        "5.2.3",
        "Short and long flows of other algorithms",
        "MUST",
        "What does it do to other algorithms' short and long flows?",
        (
            "users-short-cubic-*",
            "users-short-long-*",
            "users-on-off-cubic-neighbour-completion",
            "users-video-*",
        ),
    ),
    Clause(
        "5.3.1",
        "Differences from congestion control principles",
        "MUST",
        "Where does it differ from RFC 2914 and RFC 7141?",
        author="Explain each difference: the reaction to loss and marks, bytes or packets.",
    ),
    Clause(
        "5.3.2",
        "Incremental deployment",
        "MUST",
        "What happens while some senders have it and others do not?",
        ("beside-*-and-*", "mixed-*"),
        (),
        "Discuss known behaviour with middleboxes.",
    ),
    Clause(
        "6",
        "General use",
        "SHOULD",
        "Over which rates, delays and queue depths were the criteria evaluated?",
        author="State the environments for which it is not recommended.",
        ranges=True,
    ),
    Clause(
        "6.1",
        "Paths with tail-drop queues",
        "MUST",
        "How does it behave behind queues that drop at their tail?",
        (
            "alone-*-utilisation",
            "alone-*-goodput",
            "many-*-flows-*",
            "beside-cubic-*-ratio",
            "many-shallow-*-utilisation",
        ),
    ),
    Clause(
        "6.2",
        "Tunnel behavior",
        "MUST",
        "If it uses explicit signals: what becomes of them in tunnels?",
        ("aqm-tunnel-*",),
        ("marks that are lost or changed where a tunnel ends (RFC 6040)",),
        "Discuss nested congestion control; this clause binds algorithms that use explicit signals.",
    ),
    Clause(
        "6.3",
        "Wired paths",
        "MUST",
        "How does it behave on wired paths?",
        ("alone-*", "rtt-*", "many-both-ways-utilisation", "loss-up-*", "loss-police-*-goodput"),
    ),
    Clause(
        "6.4",
        "Wireless paths",
        "should",
        "How does it behave with loss that is no congestion, and with capacity and delay that vary?",
        (
            "loss-random-*",
            "loss-at-first-*",
            "loss-bursty-*",
            "loss-acks-*",
            "changes-wifi-n-*",
            "changes-adsl2-*",
        ),
        ("recorded traces", "loss, rate and jitter that change together"),
    ),
    Clause(
        "7.1",
        "Active queue management",
        "SHOULD",
        "How does it behave behind FQ-CoDel, PIE and L4S, with and without ECN?",
        ("aqm-*",),
        ("the codepoint that is sent, and the cut within a round trip of a mark",),
    ),
    Clause(
        "7.2",
        "Network transport circuit breakers",
        "should",
        "Does it stay within the envelope of RFC 8084?",
        (),
        ("circuit breakers",),
    ),
    Clause(
        "7.3",
        "Paths with varying delay",
        "SHOULD",
        "How does it behave when the least delay changes?",
        ("changes-rtt-*", "changes-short-long-*", "changes-handover-*"),
    ),
    Clause(
        "7.4",
        "Internet of Things and constrained nodes",
        "should",
        "How does it behave at very low rates and windows?",
        ("alone-dial-up-*", "alone-64k-*"),
    ),
    Clause(
        "7.5",
        "Paths with high delay",
        "should",
        "How does it behave over satellites and across oceans?",
        ("alone-geo-*", "alone-gigabit-100-*"),
    ),
    Clause(
        "7.6",
        "Misbehaving nodes",
        "SHOULD",
        "How does it behave with receivers, senders and routers that do not follow the rules?",
        ("starvation-shrew-*",),
        (
            "ACK division, optimistic ACKs, routers that strip ECN",
            "`dragstrip attack` searches for conditions",
        ),
    ),
    Clause(
        "7.7",
        "Extreme packet reordering",
        "should",
        "How does it behave when packets overtake each other?",
        ("loss-reorder-*",),
    ),
    Clause(
        "7.8",
        "Transient events",
        "SHOULD",
        "How does it behave when congestion sets in, and after interruptions?",
        (
            "changes-capacity-*",
            "changes-50-*",
            "changes-rfc8867-*",
            "alone-on-off-*",
            "changes-drop-and-back-*",
            "limited-idle-*",
            "limited-paused-*",
            "limited-after-loss-*",
            "exits-*-window",
            "exits-*-time",
            "exits-*-utilisation",
            "loss-interrupted-*",
            "loss-black-hole-*",
        ),
    ),
    Clause(
        "7.9",
        "Sudden changes in the path",
        "MUST",
        "How does it behave when rate or delay change at once?",
        ("changes-steps-*", "changes-rtt-*", "changes-low-and-up-*", "changes-joint-*", "loss-black-hole-*"),
    ),
    Clause(
        "7.10",
        "Multipath transport",
        "MUST",
        "For multipath transports: does it harm others at a shared bottleneck, or at a fail-over?",
        author="Of multipath transports alone: say that it does not apply, or answer.",
    ),
    Clause(
        "7.11",
        "Data centers",
        "SHOULD",
        "With which algorithms may it share a data center?",
        ("users-incast-*", "alone-gigabit-10-*", "beside-dctcp-*"),
        ("fabrics of 10 Gbit/s and more",),
        "State the algorithms with which it may coexist.",
    ),
)
"""In the RFC's order. RFC 9743 sets no thresholds: the limits are those of each row's own source."""
