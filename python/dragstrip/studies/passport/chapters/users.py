"""Chapter users: web pages, requests, calls, videos and downloads, alone and beside a bulk flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragstrip.studies.passport.figures import (
    GOODPUT,
    LIVE_BREAKER,
    LIVE_DELAY,
    LIVE_LATE,
    LIVE_RATE,
    MEAN_COMPLETION,
    MOS,
    NEIGHBOUR,
    NEIGHBOUR_COMPLETION,
    PING_P95,
    RPM,
    SLOWDOWN_P50,
    SLOWDOWN_P99,
    VIDEO_RATE,
    VIDEO_STALLED,
    VIDEO_STARTUP,
)
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "users"
TITLE = "for users"
SHORT = RowRule("K", "RFC 9743 5.1.5, 5.2.3; heistp/ccafct")
CALL = RowRule("K", "ITU-T G.107 (E-model): a call beside it; RFC 9743 5.2.2")
NOT_POOR = RowRule("T", "draft-ietf-ippm-responsiveness-09: below 300 a minute is poor", least=300.0)


def downloads(cc: str, sizes: Mapping[str, int], first_s: float, apart_s: float) -> list[dict[str, Any]]:
    """Short flows, so many of each size, one after the other, as an experiment's `[[flows]]`."""
    flow_sizes = [size for size, count in sizes.items() for _ in range(count)]
    return [
        {"cc": cc, "bytes": size, "start": f"{first_s + at * apart_s:g}s"}
        for at, size in enumerate(flow_sizes)
    ]


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for mbit, rtt, bdp in ((10, 40, 1), (10, 40, 4), (100, 20, 1), (100, 20, 10)):
        path = PassportPath(mbit, rtt, bdp, 20)
        yield from rated(
            NAME,
            f"call-{mbit}-{bdp}bdp",
            f"beside a bulk flow at {path.name}",
            path.scenario(),
            (MOS, CALL),
            (RPM, NOT_POOR),
            quick=mbit == 10,
        )
    for mbit, rtt in ((20, 40), (100, 20)):
        path = PassportPath(mbit, rtt, 1, 40)
        yield from rated(
            NAME,
            f"web-{mbit}",
            f"three people reading the web at {path.name}",
            path.with_(workload="web").scenario("{a}*3"),
            (GOODPUT, RowRule("K", "RFC 9743 5.1.5: pages of 2652 kB (HTTP Archive), 5 s apart")),
            (PING_P95, RowRule("K", "RFC 9743 5.1.2")),
        )
        yield from rated(
            NAME,
            f"rpc-{mbit}",
            f"ten clients of 10-kB requests at {path.name}",
            path.with_(workload="rpc").scenario("{a}*10"),
            (GOODPUT, RowRule("K", "RFC 9743 5.1.5")),
        )
    rrul = PassportPath(20, 30, 4, 20).with_(workload="rrul", up_rate="5mbit", receiver_on_line=True)
    yield from rated(
        NAME,
        "rrul",
        f"four flows each way at {rrul.name}, 5 Mbit/s back",
        rrul.scenario(),
        (PING_P95, RowRule("K", "flent's rrul (Hoeiland-Joergensen et al., 2017); RFC 9743 5.1.2")),
    )
    yield from _short()
    yield from _loads()
    for count in (16, 64):
        path = PassportPath(1000, 0.1, 1, 3).with_(queue="bfifo limit 200kb")
        yield from rated(
            NAME,
            f"incast-{count}",
            f"{count} senders of 64 kB at once at 1 Gbit/s, 0.1 ms, 200 kB",
            path.scenario({"cc": f"{{a}}*{count}", "bytes": "64kb"}),
            (MEAN_COMPLETION, RowRule("K", "RFC 9743 7.11: incast")),
            quick=count == 16,
        )


def _loads() -> Iterator[PassportRow]:
    for share in (0.3, 0.6, 0.85):
        path = PassportPath(100, 20, 1, 60)
        yield from rated(
            NAME,
            f"web-search-{100 * share:.0f}",
            f"web search at a load of {100 * share:.0f} % of {path.name}",
            path.with_(workload=f"poisson load={100 * share:.0f}%").scenario(),
            (SLOWDOWN_P50, RowRule("K", "RFC 9743 5.1.5; web search (DCTCP, SIGCOMM 2010)")),
            (SLOWDOWN_P99, RowRule("K", "RFC 9743 5.1.5; web search (DCTCP, SIGCOMM 2010)")),
            quick=share == 0.6,
        )


def _short() -> Iterator[PassportRow]:
    for bdp in (1, 4):
        path = PassportPath(20, 40, bdp, 40)
        sizes = {"10kb": 12, "100kb": 12, "1mb": 6}
        for key, cc, title in (
            ("own", "{a}", "its own short flows beside its bulk flow"),
            ("cubic", "cubic", "cubic's short flows beside its bulk flow"),
        ):
            yield from rated(
                NAME,
                f"short-{key}-{bdp}bdp",
                f"{title} at {path.name}",
                path.scenario("{a}", *downloads(cc, sizes, 5, 1), subjects=1),
                (NEIGHBOUR_COMPLETION, SHORT),
                *([(GOODPUT, SHORT)] if key == "own" else []),
                quick=bdp == 1,
            )
        own = downloads("{a}", sizes, 5, 1)
        yield from rated(
            NAME,
            f"short-long-cubic-{bdp}bdp",
            f"its short flows beside a bulk cubic at {path.name}",
            path.scenario(*own, "cubic", subjects=len(own)),
            (MEAN_COMPLETION, SHORT),
            (NEIGHBOUR, SHORT),
        )
    pages = PassportPath(20, 40, 1, 60)
    waves = [
        {"cc": "cubic", "bytes": f"{30 + 5 * (at % 5)}kb", "start": f"{5 + at * 0.5:g}s"} for at in range(100)
    ]
    yield from rated(
        NAME,
        "on-off-cubic",
        f"a hundred cubic downloads of 30 to 50 kB beside it at {pages.name}",
        pages.scenario("{a}", *waves, subjects=1),
        (NEIGHBOUR_COMPLETION, RowRule("K", "RFC 8867 5.7; RFC 9743 5.2.3")),
        (GOODPUT, RowRule("K", "RFC 8867 5.7")),
    )
    yield from _videos()
    yield from _live()


SHARP = RowRule("K", "Huang et al. (BBA-0), SIGCOMM 2014; RFC 9743 5.1.5")
SMOOTH = RowRule("K", "Dobrian et al., SIGCOMM 2011: of a video's ills, stalls make viewers leave most")
PROMPT = RowRule("T", "Krishnan, Sitaraman, IMC 2012: viewers begin to leave after 2 s", most=2.0)
HARM = RowRule("K", "RFC 9743 5.2.1, 5.2.3: a video beside it")


def _videos() -> Iterator[PassportRow]:
    """A player whose bit rate goes by its buffer (BBA-0), with segments of 4 s and a buffer of 30 s."""
    path = PassportPath(5, 40, 4, 60)

    def player(cc: str) -> dict[str, Any]:
        # The receiver's side asks, so that the segments cross the bottleneck.
        return {"cc": cc, "reverse": True, "application": {"kind": "video"}}

    yield from rated(
        NAME,
        "video",
        f"a video alone at {path.name}",
        path.with_(workload="video").scenario(),
        (VIDEO_RATE, SHARP),
        (VIDEO_STALLED, SMOOTH),
        (VIDEO_STARTUP, PROMPT),
        quick=True,
    )
    yield from rated(
        NAME,
        "video-beside",
        f"cubic's video beside its bulk flow at {path.name}",
        path.scenario("{a}", player("cubic"), subjects=1),
        (VIDEO_RATE, HARM),
        (VIDEO_STALLED, HARM),
    )
    yield from rated(
        NAME,
        "video-by",
        f"its video beside a bulk cubic at {path.name}",
        path.scenario(player("{a}"), "cubic", subjects=1),
        (VIDEO_RATE, SHARP),
        (VIDEO_STALLED, SMOOTH),
    )


MEDIA = RowRule("K", "RFC 9743 5.2.2: beside SCReAMv2, draft-johansson-ccwg-rfc8298bis-screamv2")
UNTRIPPED = RowRule("P", "RFC 9743 5.2.2, RFC 8083 4.3: the media's circuit breaker stays closed", most=0.0)


def _live() -> Iterator[PassportRow]:
    """A live video of 150 kbit/s to 5 Mbit/s and 30 frames a second; it is there from the start."""
    video = {"application": {"kind": "rtp"}, "label": "media"}
    for bdp in (1, 4):
        path = PassportPath(5, 40, bdp, 60)
        yield from rated(
            NAME,
            f"media-{bdp}bdp",
            f"a live video with SCReAMv2 beside its bulk flow at {path.name}",
            path.scenario("{a}", video, subjects=1),
            (LIVE_RATE, MEDIA),
            (LIVE_DELAY, MEDIA),
            (LIVE_LATE, MEDIA),
            (LIVE_BREAKER, UNTRIPPED),
        )
    path = PassportPath(10, 40, 1, 60).with_(queue="fq_codel")
    yield from rated(
        NAME,
        "media-fq-codel",
        f"a live video with SCReAMv2 beside its bulk flow at {path.name}",
        path.scenario("{a}", video, subjects=1),
        (LIVE_RATE, MEDIA),
        (LIVE_DELAY, MEDIA),
    )
