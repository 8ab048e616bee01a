"""Transfers of a known size: times and slowdowns of each contender's, by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dragstrip.results.comparison.setups import Contender

FLOWS_MIN = 10
"""Fewer transfers than this are no distribution: each has its own row elsewhere."""
BOUNDS = (0, 10_000, 100_000, 1_000_000, 10_000_000, 1 << 62)
"""Bytes between which classes of size lie; an upper bound belongs to its class."""
NAMES = ("up to 10 kB", "10 to 100 kB", "100 kB to 1 MB", "1 to 10 MB", "above 10 MB")


@dataclass(frozen=True)
class Transfer:
    """A transfer: what it carries in bytes, how long it took in s, how many times as long as alone."""

    size: int
    completion_s: float
    slowdown: float | None
    finished: bool


@dataclass(frozen=True)
class Class:
    """The transfers of one contender whose sizes are alike, of all repeats."""

    name: str
    transfers: Sequence[Transfer]

    @property
    def unfinished(self) -> int:
        """Number of transfers not finished when the run ended; they count with the time so far."""
        return sum(not transfer.finished for transfer in self.transfers)

    def completion_s(self, percentile: float) -> float:
        """Return a percentile, interpolated linearly, of the seconds from start to end."""
        return float(np.percentile([transfer.completion_s for transfer in self.transfers], percentile))

    def is_least(self, percentile: float) -> bool:
        """Return whether `completion_s` is only a lower bound: an unfinished transfer is at or below it."""
        value = self.completion_s(percentile)
        return any(not transfer.finished and transfer.completion_s <= value for transfer in self.transfers)

    def slowdown(self, percentile: float) -> float | None:
        """Return a percentile, interpolated linearly, of the slowdowns; None without a rate to count by."""
        slowdowns = [transfer.slowdown for transfer in self.transfers if transfer.slowdown is not None]
        return float(np.percentile(slowdowns, percentile)) if slowdowns else None


def transfers_of(contender: Contender) -> list[Transfer]:
    """Return the transfers of a contender's flows, of all repeats; none of fewer than `FLOWS_MIN`."""
    transfers = transfers_in(flow for bout in contender.bouts for flow in bout.results)
    return transfers if len(transfers) >= FLOWS_MIN else []


def transfers_in(flows: Iterable[Mapping[str, Any]]) -> list[Transfer]:
    """Return the transfers of the result document's `flows`; flows without a size are left out."""
    records = [flow["transfer"] for flow in flows if flow.get("transfer")]
    return [
        Transfer(record["bytes"], record["completion_s"], record["slowdown"], record["finished"])
        for record in records
    ]


def classes(contender: Contender) -> list[Class]:
    """Return the contender's transfers by size, and before them all of them; nothing if there are few."""
    transfers = transfers_of(contender)
    if not transfers:
        return []
    by_size = [
        Class(name, [transfer for transfer in transfers if low < transfer.size <= high])
        for name, (low, high) in zip(NAMES, pairwise(BOUNDS), strict=True)
    ]
    return [Class("all", transfers), *(size_class for size_class in by_size if size_class.transfers)]
