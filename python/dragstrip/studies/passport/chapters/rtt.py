"""Chapter rtt: flows of one kind whose round trips differ share a bottleneck."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.studies.passport.figures import IMBALANCE, LEAST, NEIGHBOUR
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "rtt"
TITLE = "different round trips"
ORDER = RowRule("P", "RFC 8085 3.1 as read in RFC 9331 4.3.1: within an order of magnitude", most=10.0)
EVEN = RowRule("K", "RFC 5166 2.3.2; draft-irtf-iccrg-tcpeval-01: intra- and inter-RTT fairness")


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for rtt_ms in (40, 80, 160):
        for bdp in (1, 4):
            path = PassportPath(20, 20, bdp, 60)
            yield from rated(
                NAME,
                f"20-{rtt_ms}-{bdp}bdp",
                f"20 and {rtt_ms} ms at {path.name}",
                path.scenario("{a}", f"{{a}}@{rtt_ms}ms"),
                (IMBALANCE, ORDER),
                (LEAST, EVEN),
                quick=bdp == 1,
            )
    media = PassportPath(40, 20, 4, 60)
    yield from rated(
        NAME,
        "five",
        f"20, 50, 100, 200 and 300 ms at {media.name}, 2 s apart",
        media.scenario("{a}", "{a}@50ms+2s", "{a}@100ms+4s", "{a}@200ms+6s", "{a}@300ms+8s"),
        (IMBALANCE, ORDER),
        (LEAST, EVEN),
    )
    mixed_path = PassportPath(20, 20, 2, 60)
    for subject_rtt_ms, cubic_rtt_ms in ((20, 80), (80, 20)):
        yield from rated(
            NAME,
            f"cubic-{subject_rtt_ms}-{cubic_rtt_ms}",
            f"with {subject_rtt_ms} ms beside a cubic with {cubic_rtt_ms} ms at {mixed_path.name}",
            mixed_path.scenario(f"{{a}}@{subject_rtt_ms}ms", f"cubic@{cubic_rtt_ms}ms+0.3s", subjects=1),
            (NEIGHBOUR, RowRule("K", "RFC 9743 5.2.1; heistp/l4s-tests: pairs of round trips")),
            (IMBALANCE, ORDER),
        )
