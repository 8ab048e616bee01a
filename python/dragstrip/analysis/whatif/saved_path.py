"""An inferred path as one that a user keeps: its options of `compare`, and the interval of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dragstrip.analysis.inference.path import PathEstimate
from dragstrip.analysis.whatif.network import CandidatePath, CandidatePaths, from_estimate
from dragstrip.errors import BadInputError
from dragstrip.experiment.saved_paths import PATH_OPTIONS, Knowledge, SavedPath
from dragstrip.model.scenario.paths import FRAME_OVER_IP, IP_BYTES

PROPERTIES: dict[str, tuple[str, ...]] = {
    "rate": ("rate",),
    "rtt": ("RTT",),
    "queue": ("buffer", "bucket", "burst"),
    "loss": ("loss",),
    "jitter": (),
}
"""Options of `compare`, with the opening words of the alternatives that differ in them."""


def from_network(network: CandidatePaths, capture: str, source: str) -> SavedPath:
    """Return the path, with the ends of each property's interval, and what was assumed."""
    options = _options(network.middle)
    knowledge = {}
    for option in options:
        ends = dict(_ends(network, option))
        assumed = [text for text in network.assumed if text.startswith(_words(option))]
        reasons = "; ".join([f"inferred from {capture}", *assumed])
        knowledge[option] = Knowledge(ends.get("low"), ends.get("high"), reasons)
    return SavedPath("", options, source, knowledge)


def from_estimates(paths: Sequence[PathEstimate], source: str) -> SavedPath:
    """Return the path of the first flow whose rate and round trip are known, in the order of the capture.

    The queue of a policer whose burst the capture does not show is marked as unknown. Raises `BadInputError`,
    which says why, if there is none.
    """
    reason = BadInputError("--save-path", None, "needs a capture with data", "command line")
    for path in paths:
        try:
            return _saved(path, source)
        except BadInputError as error:
            reason = error
    raise reason


def _saved(path: PathEstimate, source: str) -> SavedPath:
    name = Path(path.file).name
    burst, rate = path.policer_burst_bytes, path.policer_rate_bps
    if not path.polices or rate.value is None or burst.value is not None:
        return from_network(from_estimate(path, path.marks, False, 0.0), name, source)
    any_burst = replace(path, policer_burst_bytes=replace(burst, value=float(IP_BYTES)))
    saved = from_network(from_estimate(any_burst, path.marks, False, 0.0), name, source)
    reason = (
        f"as {name} does not show the burst of its policer of {round(rate.value * FRAME_OVER_IP)}bit "
        f"({burst.reason})"
    )
    options = {option: value for option, value in saved.options.items() if option != "queue"}
    return replace(saved, options=options, known={**saved.known, "queue": Knowledge(unknown=reason)})


def _options(network: CandidatePath) -> dict[str, object]:
    options = network.options(1.0)
    return {name: options[name] for name in PATH_OPTIONS if name in options}


def _words(option: str) -> tuple[str, ...]:
    return {
        "rate": ("rate", "the link behind"),
        "rtt": ("round-trip time",),
        "queue": ("buffer", "the queue"),
    }.get(option, (option,))


def _ends(network: CandidatePaths, option: str) -> Iterator[tuple[str, str]]:
    """Yield the option of the alternatives at either end of its interval."""
    for name, alternative in network.alternatives.items():
        changed, _, end = name.rpartition(" ")
        if changed in PROPERTIES.get(option, ()):
            yield end, str(_options(alternative)[option])
