"""Links that are a lab's real media (`is` in its file): nothing is set on them, their rate is measured.

What is heavy is imported when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragstrip.engines.contract import Json, Refusal
from dragstrip.engines.ssh.lab import Lab
from dragstrip.engines.ssh.nodes import homes

if TYPE_CHECKING:
    import numpy as np

    from dragstrip.model.recording import Recording

SET = ("rate_bps", "delay_ns", "netem", "medium", "overhead_bytes")
"""Settings of a link in a scenario other than its queue."""
PEAK_NS = 1_000_000_000
"""The time over which the largest rate is taken."""


def real(scenario: Json, lab: Lab) -> dict[str, str]:
    """Link -> the medium that it is."""
    hosts = {host.name: host for host in lab.hosts}
    home = homes(scenario, lab)[0]
    media = {}
    for link in scenario["links"]:
        near_host, far_host = (hosts.get(home.get(link[end], "")) for end in ("from", "to"))
        cable = near_host.towards(far_host.name) if near_host and far_host else None
        if cable and cable.real:
            media[link["name"]] = cable.real
    return media


def as_they_are(scenario: Json, lab: Lab) -> Json:
    """The scenario with nothing to be set on such links."""
    media = real(scenario, lab)

    def bare(link: Json) -> Json:
        settings = {field: value for field, value in link.items() if field not in SET}
        return {**settings, "qdisc": {"kind": "noqueue"}}

    links = [bare(link) if link["name"] in media else link for link in scenario["links"]]
    return {**scenario, "links": links}


def refusals(scenario: Json, lab: Lab) -> list[Refusal]:
    """Refusals of changes to the lab's real links, whose settings cannot be changed."""
    media = real(scenario, lab)
    return [
        Refusal(
            f"changes[{number}].link",
            change["link"],
            f"another link: this one is the lab's {media[change['link']]}, which stays as it is",
        )
        for number, change in enumerate(scenario.get("changes", ()))
        if change["link"] in media
    ]


def measured(recording: Recording, lab: Lab) -> Json:
    """Figures by real link: medium, largest rate over one second (bit/s), and both in words."""
    import numpy as np

    from dragstrip.model.scenario.paths import paths_of

    scenario = recording.scenario
    media = real(scenario, lab)
    if not media:
        return {}
    received = recording.tables["received"]
    time_ns, of, wire_bytes = (received.column(name).to_numpy() for name in ("time_ns", "flow", "wire_bytes"))
    flows = scenario["flows"]
    paths = paths_of(scenario, [(flow["sender"], flow["receiver"]) for flow in flows])
    ways = [
        path.back if flow["application"]["kind"] == "request_response" else path.forward
        for flow, path in zip(flows, paths, strict=True)
    ]
    links = {}
    for link, medium in media.items():
        over = [number for number, way in enumerate(ways) if any(hop["name"] == link for hop in way)]
        over_link = np.isin(of, over)
        peak_bps = _peak_bps(time_ns[over_link], wire_bytes[over_link])
        words = f"link {link} is the lab's {medium}, as it is"
        if peak_bps:
            words += f"; at most {peak_bps / 1e6:.1f} Mbit/s arrived over it in a second"
        links[link] = {"is": medium, "peak_bps": peak_bps, "words": words}
    return links


def _peak_bps(time_ns: np.ndarray, wire_bytes: np.ndarray) -> int | None:
    """The largest rate over `PEAK_NS`; none for a shorter run or where nothing arrived."""
    import numpy as np

    ends_ns, at = np.unique(time_ns, return_inverse=True)
    if not len(ends_ns) or ends_ns[-1] < PEAK_NS:
        return None
    arrived = np.cumsum(np.bincount(at, weights=wire_bytes))
    before = np.searchsorted(ends_ns, ends_ns - PEAK_NS, side="right") - 1
    earlier, since_ns = np.where(before >= 0, arrived[before], 0), np.where(before >= 0, ends_ns[before], 0)
    long = ends_ns - since_ns >= PEAK_NS
    return int(((arrived - earlier)[long] * 8e9 / (ends_ns - since_ns)[long]).max())
