"""Commands of tc that change an interface as a script or a listing shows it.

The kernel changes a discipline only into one of the same kind, so a root that is there is not replaced by
another under its own handle (`tc_modify_qdisc` in net/sched/sch_api.c): a leaf is replaced below its class, a
class is changed, and any other root is deleted first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragstrip.analysis.diagnosis.observations import HtbClass, Tree

_WORDS = re.compile(r"\S+")


def shaped(device: str, tree: Tree | None, leaf: str, rate: str, rate_bps: float) -> tuple[str, ...]:
    """Return commands after which `leaf` holds the queue behind a shaper of `rate`."""
    if tree is not None and tree.root == "htb" and tree.classes:
        changes = [
            _change(device, tree, htb_class, rate, rate_bps)
            for htb_class in reversed(tree.classes)
            if htb_class.ceil_bps is None or round(htb_class.ceil_bps) != round(rate_bps)
        ]
        ceilings_suffice = all(
            htb_class.ceil_bps is not None and htb_class.ceil_bps >= rate_bps for htb_class in tree.classes
        )
        if ceilings_suffice and min(htb_class.ceil_bps or 0.0 for htb_class in tree.classes) == rate_bps:
            changes = []
        return (*changes, f"tc qdisc replace dev {device} parent {tree.classes[0].handle} {leaf}")
    verb = "replace"
    before: tuple[str, ...] = ()
    if tree is not None and tree.handle not in ("", "0:"):
        before, verb = (f"tc qdisc del dev {device} root",), "add"
    return (
        *before,
        f"tc qdisc {verb} dev {device} root handle 1: htb default 10",
        f"tc class add dev {device} parent 1: classid 1:10 htb rate {rate}",
        f"tc qdisc add dev {device} parent 1:10 {leaf}",
    )


def _change(device: str, tree: Tree, htb_class: HtbClass, rate: str, rate_bps: float) -> str:
    """Return the command that gives a class a ceiling of `rate`, and at most that rate."""
    parent = htb_class.parent if htb_class.parent and htb_class.parent != "root" else tree.handle
    class_rate = (
        rate
        if htb_class.rate_bps is None or htb_class.rate_bps >= rate_bps
        else f"{round(htb_class.rate_bps)}bit"
    )
    top = htb_class is tree.classes[-1]
    prio = f" prio {htb_class.prio}" if htb_class.prio else ""
    words = f"htb rate {rate if top else class_rate} ceil {rate}{prio}"
    return f"tc class change dev {device} parent {parent} classid {htb_class.handle} {words}"


def root(device: str, discipline: str) -> tuple[str, ...]:
    """Return the command after which `discipline` is the root: it gets a handle of its own."""
    return (f"tc qdisc replace dev {device} root {discipline}",)


def tree_of(lines: Sequence[str]) -> Tree | None:
    """Return where the queue stands that these lines of a script set up, or None without an htb or a root."""
    handle, kind = "", ""
    classes: list[HtbClass] = []
    leaf = ""
    for line in lines:
        words = _WORDS.findall(line)
        value = {name: words[at + 1] for at, name in enumerate(words[:-1])}
        if "qdisc" in words and "root" in words:
            handle = value.get("handle", "")
            rest = words[words.index("root") + 1 :]
            kind = next(
                (word for at, word in enumerate(rest) if word != "handle" and rest[at - 1] != "handle"), ""
            )
        elif "class" in words and "classid" in value:
            classes.append(
                HtbClass(value["classid"], value.get("parent", ""), None, None, value.get("prio", ""))
            )
        elif "qdisc" in words and "parent" in value:
            leaf = value["parent"]
    handle = handle if not handle or handle.endswith(":") else f"{handle}:"
    by_handle = {htb_class.handle: htb_class for htb_class in classes}
    chain: list[HtbClass] = []
    at = by_handle.get(leaf) or (classes[-1] if classes else None)
    while at is not None and len(chain) <= len(classes):
        chain.append(at)
        at = by_handle.get(at.parent)
    if kind == "htb" and not chain:
        return None
    return Tree(kind, handle or "?", tuple(chain)) if kind else None
