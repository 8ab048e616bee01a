"""Real files whose cause is known: from the cases of `tests/diagnosis`, and the captures of USC-NSL/policing-detection.

The truth of a case is what its test says and why; that of a capture stands in its name: `PCIR` a policer,
`SCIR` a shaper, `LOSS` random loss put in besides, `XT` background flows (Flach et al., SIGCOMM 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragstrip.analysis.diagnosis.walk import diagnose

CASES = Path(__file__).parents[1] / "diagnosis"
POLICING = Path(__file__).parents[3] / "shared" / "captures" / "policing"
QUEUED = frozenset({"bufferbloat", "fifo", "slow_start_overshoot", "application"})
"""What may be said of a shaper's queue; the captures' server pauses between its five downloads."""


@dataclass(frozen=True)
class RealFiles:
    """Files with what may be said of them."""

    name: str
    paths: Sequence[Path]
    cause: str
    right: frozenset[str]
    race: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What was said of real files."""

    of: RealFiles
    said: tuple[tuple[str, tuple[str, ...]], ...]
    """Certainty and causes of each finding."""

    @property
    def wrong(self) -> bool:
        """Whether a finding names only causes that are not there."""
        return any(not set(causes) & self.of.right for _, causes in self.said)

    @property
    def named(self) -> bool:
        """Whether a finding has the cause among its own."""
        return any(self.of.cause in causes for _, causes in self.said)


def _case(name: str, cause: str, *files: str, also: Sequence[str] = (), **race: Any) -> RealFiles:
    return RealFiles(name, [CASES / file for file in files], cause, frozenset({cause, *also}), race)


def cases() -> list[RealFiles]:
    """Return the cases that are in the repository."""
    window = ("receive_window", "send_buffer")
    return [
        _case(
            "London to Sydney, losses in three seconds", "slow_start_overshoot", "burst-then-clean/load.json"
        ),
        _case("the same with the rate", "slow_start_overshoot", "burst-then-clean/load.json", rate="100mbit"),
        _case(
            "3 MB under way at 291 ms",
            "receive_window",
            "window-limited/load.json",
            also=window,
            rate="1gbit",
        ),
        _case(
            "rrul over cake diffserv3", "marked_class", "flent-marked-ping/rrul.flent.gz", also=("nothing",)
        ),
        _case(
            "simple.qos and a run behind it",
            "aqm",
            "class-listing/listing.txt",
            "class-listing/load.json",
            also=("no_ecn",),
        ),
        _case("pfifo limit 1000, a script", "fifo", "pfifo-1000/router.sh"),
        _case("pfifo limit 1000, a listing", "fifo", "pfifo-1000/listing.txt"),
        _case("pfifo limit 1001, a listing", "fifo", "pfifo-1000/listing2.txt"),
    ]


def captures(folder: Path = POLICING) -> Iterator[RealFiles]:
    """Yield the captures of policers and shapers, none where the folder is not there."""
    for file in sorted(folder.glob("*.xz")) if folder.is_dir() else []:
        lossy = "LOSS=0%" not in file.name
        if "PCIR" in file.name:
            yield RealFiles("a policer", [file], "policer", frozenset({"policer"}))
        elif lossy:
            yield RealFiles("a shaper and random loss", [file], "random_loss", QUEUED | {"random_loss"})
        else:
            yield RealFiles("a shaper", [file], "bufferbloat", QUEUED)


def answer(of: RealFiles) -> Answer:
    """Return what `diagnose` says."""
    document = diagnose(of.paths, of.race, quiet=True, trials=False)
    said = tuple(
        (finding["certainty"], tuple(finding.get("causes") or ()))
        for finding in document["findings"]
        if finding["certainty"] in ("certain", "likely") and finding.get("causes")
    )
    return Answer(of, said)
