"""A finding: a fault of a path or an unknown, its certainty, and the measurement that would tell more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dragstrip.analysis.diagnosis.evidence import Evidence
from dragstrip.analysis.diagnosis.observations import Fact, ObservedQueue, fact_document
from dragstrip.analysis.diagnosis.wording import sentence

Certainty: TypeAlias = Literal["certain", "likely", "cannot know"]
Complaint: TypeAlias = Literal["delay", "goodput", "loss", ""]

CAUSES = (
    "bufferbloat",
    "bufferbloat_up",
    "slow_start_overshoot",
    "random_loss",
    "aqm",
    "policer",
    "shaper_above_line",
    "shaper_below_line",
    "receive_window",
    "send_buffer",
    "small_queue_limit",
    "application",
    "receiver_closed",
    "no_answer",
    "ack_path",
    "marked_class",
    "path_change",
    "link_jitter",
    "other_bottleneck",
    "no_ecn",
    "fifo",
    "nothing",
)
"""Causes that a finding may name for the observations."""
AMBIGUOUS = "ambiguous"
"""The name of a finding that several causes fit."""

IDLE_PING = "ping -c 20 HOST    # while nothing else runs"
LOADED_PING = "iperf3 -c HOST -t 30 -J > load.json & ping -D -i 0.2 -c 140 HOST > loaded.txt"
THROUGHPUT = "iperf3 -c HOST -t 30 -J > iperf3.json"
LISTING = "tc -s qdisc show > listing.txt; tc -s class show >> listing.txt    # on the router"
SS = "date +%s.%N; ss -tin    # on the sending host: app_limited, sndbuf_limited, rwnd_limited"
PINGS = "ping -D -i 0.2 -c 600 HOST    # loss and outages, with their times"
POLICED = "iperf3 -c HOST -u -b RATE -t 10    # a policer loses nothing below its rate"
NOISY = "iperf3 -c HOST -u -b RATE -t 10    # RATE a tenth: a noisy link loses, too"
CAPTURE = "tcpdump -i eth0 -s 128 -w sender.pcap tcp and host HOST    # on the sending host"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or that cannot be known."""

    name: str
    template: str
    certainty: Certainty
    figures: dict[str, float | str]
    evidence: tuple[Fact, ...] = ()
    complaint: Complaint = ""
    """The quantity that a change must improve."""
    measure: str = ""
    """A command line that would tell more."""
    queue: ObservedQueue | None = None
    """The queue that it is about, if that is not the one that matters most."""
    causes: tuple[str, ...] = ()
    """The causes that fit, of `CAUSES`; by default the one that the finding is named after."""

    @property
    def sentence(self) -> str:
        """The finding in words, with its figures."""
        return sentence(self.template, self.figures)

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "certainty": self.certainty,
            "causes": list(self.causes) or [self.name] if self.name in CAUSES or self.causes else [],
            "figures": self.figures,
            "evidence": [fact_document(fact) for fact in self.evidence],
            "measure": self.measure or None,
        }


def facts_at(evidence: Evidence, at: tuple[str, str], names: Collection[str]) -> tuple[Fact, ...]:
    """Return the facts of these names that a source, `at[0]`, has of a flow, series or queue, `at[1]`."""
    return tuple(fact for fact in evidence.facts if (fact.source, fact.place) == at and fact.name in names)
