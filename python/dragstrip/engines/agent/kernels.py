"""Features that a kernel lacks, before anything starts: by its release, and by what scenarios ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping

from dragstrip import _core
from dragstrip.engines.contract import Json, Refusal, alike
from dragstrip.model.scenario import disciplines

ACCURATE_ECN = "accurate ecn"
SINCE: Mapping[str, tuple[str, tuple[int, int]]] = {ACCURATE_ECN: ("accurate ECN (RFC 9768)", (7, 0))}
"""Features that scripts may need, by their name there: what they are called, the Linux that brought them."""


def lacks(release: str) -> dict[str, str]:
    """Returns the features that a kernel of this release lacks, with reasons in the agent's words."""
    return {
        name: f"{title} can be set in Linux since {since[0]}.{since[1]}, and this kernel is {release}; "
        "the engine sim has it"
        for name, (title, since) in SINCE.items()
        if _version(release) < since
    }


def _version(release: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _kinds(qdisc: Json) -> Iterator[str]:
    """The kinds of a discipline and of those within it."""
    for value in qdisc.values():
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _kinds(inner)
    if isinstance(kind := qdisc.get("kind"), str):
        yield kind


def _matchings(qdisc: Json) -> Iterator[Json]:
    """Conditions of the filters of a class tree, and of the trees in its classes."""
    yield from (rule["matching"] for rule in qdisc.get("filters", ()))
    for child in (qdisc.get("leaf"), *(each.get("leaf") for each in qdisc.get("classes", ()))):
        yield from _matchings(child) if child else ()


def looks_at_marks(qdisc: Json) -> bool:
    """Return whether a filter of a class tree in a discipline looks at the firewall's mark."""
    return any(each["kind"] == "fw" or "mark" in each.get("keys", ()) for each in _matchings(qdisc))


def _marks(scenario: Json, firewall: bool) -> Iterator[Refusal]:
    """Refusals of marks: what a `firewall` of ours does not give, and what it gives too late."""
    expected = "filters by address, port, protocol or DSCP: no firewall here marks packets"
    for link in scenario["links"]:
        qdisc = link.get("qdisc") or {}
        if not looks_at_marks(qdisc):
            continue
        if not firewall:
            yield Refusal(f"link {link['name']}: queue", "a filter by mark", expected)
        elif qdisc["kind"] == "police":
            beyond = "a policer in the filters, or filters by address, port, protocol or DSCP"
            yield Refusal(f"link {link['name']}: queue", "filters by mark behind a policer", beyond)
    if not firewall:
        for flow in scenario["flows"]:
            if flow.get("mark"):
                yield Refusal(f"flow {flow['label']}: mark", str(flow["mark"]), "none here")


def _too_young(where: str, qdisc: Json, release: str) -> Iterator[Refusal]:
    """The disciplines that a kernel of this release does not have yet."""
    for kind in dict.fromkeys(_kinds(qdisc)):
        since = disciplines.since(kind)
        if since is not None and _version(release) < since:
            expected = (
                f"another queue: Linux has {kind} since {since[0]}.{since[1]}, and this kernel is {release}; "
                "the engine sim has it"
            )
            yield Refusal(f"{where}: queue", kind, expected)


def _loses_by_number(link: Json) -> bool:
    """Return whether a netem of a link loses packets by their numbers."""
    qdisc = link.get("qdisc") or {}
    netem = (link.get("netem"), qdisc, qdisc.get("leaf"))
    return any((spec or {}).get("loss", {}).get("model") == "every" for spec in netem)


def _kind(scenario: Json, link: Json) -> str:
    """The kind of a link's medium."""
    kind: str = scenario.get("media", {}).get(link.get("medium"), {}).get("kind", "wire")
    return kind


def _carried(scenario: Json, lines: str, release: str | None) -> set[str]:
    """The links that the simulator's code carries, and the links back. The agent knows of more."""

    def is_carried(link: Json) -> bool:
        qdisc = link.get("qdisc") or {"kind": "noqueue"}
        if link.get("medium") is not None or _loses_by_number(link):
            return True
        if lines == "lacking":
            return release is not None and any(_too_young("", qdisc, release))
        parts = (link.get("rate_bps"), link.get("delay_ns"), link.get("netem"), qdisc["kind"] != "noqueue")
        return lines == "all" and any(parts)

    ends = {frozenset((link["from"], link["to"])) for link in scenario["links"] if lines and is_carried(link)}
    return {link["name"] for link in scenario["links"] if frozenset((link["from"], link["to"])) in ends}


def _has_tree(qdisc: Json) -> bool:
    """Return whether a discipline is a class tree, or has one in a class."""
    children = (qdisc.get("leaf"), *(each.get("leaf") for each in qdisc.get("classes", ())))
    return qdisc.get("kind") == "tc" or any(_has_tree(child) for child in children if child)


def _not_carried(scenario: Json, link: Json, *, bursts: bool) -> Iterator[Refusal]:
    """Refusals of a link that the simulator's code cannot carry for a kernel."""
    where, kind = f"link {link['name']}", _kind(scenario, link)
    if kind == "tunnel":
        expected = "none, or a line or a shared medium: a tunnel's TCP runs in the engine sim"
        yield Refusal(f"{where}: medium", f"{link['medium']} (tunnel)", expected)
    elif _has_tree(link.get("qdisc") or {}):
        expected = "a queue without filters: packets of this link have no addresses for them"
        yield Refusal(f"{where}: queue", "a class tree", expected)
    elif bursts:
        expected = "gso off or auto on its hosts: this link takes packet by packet"
        yield Refusal(f"{where}: medium", kind, expected)


def loading(cc: str) -> str:
    """Advice on loading a congestion control that a kernel has as a module, as the agent says it."""
    return f"; as root, `modprobe tcp_{cc.replace('-', '_')}` loads it if the kernel was built with it"


def without_a_kernel(
    scenario: Json,
    algorithms: Collection[str],
    stack: str | None,
    tick_hz: int | None = None,
    release: str | None = None,
    *,
    loadable: bool = False,
    offloads: bool = True,
    firewall: bool = True,
    lines: str = "media",
) -> list[Refusal]:
    """Refusals by a kernel that has one stack, so many ticks per second and these congestion controls.

    As the agent says it (crates/agent/src/plan.rs, network.rs, machine/modules.rs).
    `release`: as `uname -r` says; none: not known yet. `loadable`: modules can be loaded into it by hand.
    `offloads`: its interfaces can carry whole bursts. `firewall`: packets get their flows' marks at a router.
    `lines`: which links the simulator's code carries (crates/agent/src/lines.rs); empty: none.
    """
    expected = "none: a program runs only in the simulator (see docs/how-to/new-algorithm.md for a kernel)"
    refusals = [Refusal("programs", name, expected) for name in scenario.get("programs", {})]
    hosts = [node for node in scenario["nodes"] if node["kind"] == "host"]
    all_whole = all(host.get("gso") == "whole" for host in hosts)
    for host in hosts:
        refusals += _of_stack(host, stack, tick_hz, release)
        refusals += _of_interface(host, offloads=offloads, all_whole=all_whole)
    if scenario["record"].get("captures"):
        expected = "false: --capture and `dragstrip inspect` do it on a kernel, the engine sim while it runs"
        refusals.append(Refusal("record: captures", "true", expected))
    carried = _carried(scenario, lines, release)
    for link in scenario["links"]:
        is_carried = link["name"] in carried
        refusals += _of_link(scenario, link, release, is_carried, bursts=bool(hosts) and all_whole)
    refusals += _marks(scenario, firewall)
    for flow in scenario["flows"]:
        refusals += _of_flow(flow, algorithms, release, loadable)
    return refusals


def _of_stack(host: Json, stack: str | None, tick_hz: int | None, release: str | None) -> Iterator[Refusal]:
    """Yield the refusals of a host's stack: its profile, its ticks and what its ECN needs."""
    where = f"host {host['name']}"
    profile, hz = host.get("profile", stack), host.get("tick_hz")
    nearest = None if release is None or stack is None else _core.stack_of_release(release)
    if profile not in (stack, nearest):
        stacks = " or ".join(dict.fromkeys(name for name in (stack, nearest) if name is not None))
        yield Refusal(f"{where}: profile", str(profile), f"{stacks}, the kernel's own stack")
    elif tick_hz is not None and hz not in (None, tick_hz):
        yield Refusal(f"{where}: tick_hz", str(hz), f"{tick_hz}, as the kernel was built")
    ecn = host.get("sysctl", {}).get("net.ipv4.tcp_ecn", "").strip()
    if ecn in ("3", "4", "5") and release is not None and (reason := lacks(release).get(ACCURATE_ECN)):
        yield Refusal(f"{where}: net.ipv4.tcp_ecn", ecn, f"from 0 to 2: {reason}")


def _of_interface(host: Json, *, offloads: bool, all_whole: bool) -> Iterator[Refusal]:
    """Yield the refusals of a host's bursts, card and processor."""
    where = f"host {host['name']}"
    if host.get("gso") == "whole" and not (offloads and all_whole):
        expected = "off or auto: offloads are off on its interfaces"
        if offloads:
            expected = "whole on all hosts, or off or auto: all interfaces have offloads or none"
        yield Refusal(f"{where}: gso", "whole", expected)
    if (interrupts := host.get("interrupts")) is not None:
        expected = "none: no interface here has a card that holds its interrupts back"
        yield Refusal(f"{where}: interrupts", json.dumps(interrupts), expected)
    if (cpu := host.get("cpu")) is not None:
        yield Refusal(f"{where}: cpu", json.dumps(cpu), "none: a kernel takes its own time")


def _of_link(
    scenario: Json, link: Json, release: str | None, is_carried: bool, *, bursts: bool
) -> Iterator[Refusal]:
    """Yield the refusals of a link; `is_carried`: the simulator's code carries it."""
    where, medium, qdisc = f"link {link['name']}", link.get("medium"), link.get("qdisc") or {}
    if any(matching["kind"] == "basic" for matching in _matchings(qdisc)):
        yield Refusal(f"{where}: queue", "a filter of kind basic", "filters of kind u32 or flower")
    if is_carried:
        yield from _not_carried(scenario, link, bursts=bursts)
        return
    if qdisc["kind"] == "htb" and qdisc["leaf"]["kind"] == "noqueue":
        expected = "a queue, such as pfifo limit 1000: the kernel's htb holds packets in one"
        yield Refusal(f"{where}: queue", "noqueue", expected)
    if release is not None:
        yield from _too_young(where, qdisc, release)
    if _loses_by_number(link):
        expected = "random or gemodel: a kernel's netem loses no packet by its number"
        yield Refusal(f"{where}: loss", "every", expected)
    if medium is not None:
        expected = "none: a kernel has only links of its own"
        yield Refusal(f"{where}: medium", f"{medium} ({_kind(scenario, link)})", expected)


def _of_flow(
    flow: Json, algorithms: Collection[str], release: str | None, loadable: bool
) -> Iterator[Refusal]:
    """Yield the refusals of a flow: its protocol, its application or its congestion controls."""
    where = f"flow {flow['label']}"
    if flow["transport"]["protocol"] == "quic":
        expected = "tcp or udp: a kernel has no QUIC, and its stacks run in the engine sim"
        yield Refusal(f"{where}: protocol", "quic", expected)
        return
    if flow["application"]["kind"] == "rtp":
        expected = "another application: a video over RTP (SCReAMv2) runs only in the engine sim"
        yield Refusal(f"{where}: application.kind", "rtp", expected)
        return
    for field in ("cc", "receiver_cc"):
        cc = flow["transport"].get(field)
        if cc is not None and alike(cc) not in map(alike, algorithms) and cc in _core.ALGORITHMS:
            kernel_text = "this kernel" if release is None else f"this kernel ({release})"
            expected = f"one that {kernel_text} has{' loaded' * loadable}: {' '.join(algorithms)}"
            yield Refusal(f"{where}: {field}", cc, expected + loading(cc) * loadable)
