"""Listings of tc as queues: the settings become a script of tc commands, which the core reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dragstrip.diagnosis.evidence import Queue
from dragstrip.errors import BadInputError
from dragstrip.formats import scripts

Row = Mapping[str, Any]

_PACKETS = re.compile(r"\b(limit|flow_limit|burst|min|max) (\d{1,12})p\b")
_BYTES = re.compile(r"\b(quantum|initial_quantum) (\d{1,12})b\b")
_HTB = ("rate", "ceil", "burst", "cburst")
_HTB_ROOT = ("default",)
_SINGLE = {"pfifo_fast": (), "htb": _HTB_ROOT, "fq": ("limit", "flow_limit", "quantum", "initial_quantum")}
"""Words, each with a value, that a script needs of a discipline whose listing has more than tc takes."""
SKIPPED = frozenset({"noqueue", "ingress", "clsact", "mq"})


def queues(listed: Sequence[Row]) -> list[Queue]:
    """Return the queue of each interface in a listing, with the counts of what holds its packets."""
    made = []
    listed = _placed(listed)
    for device in dict.fromkeys(str(row["device"]) for row in listed):
        mine = [row for row in listed if row["device"] == device and row["kind"] not in SKIPPED]
        if mine:
            made.append(_queue(device, mine))
    return made


def _placed(listed: Sequence[Row]) -> list[Row]:
    """Return the rows with the interfaces of classes, which `tc class show` leaves out."""
    owners = {
        row["handle"].partition(":")[0]: row["device"] for row in reversed(listed) if row["what"] == "qdisc"
    }
    return [
        row if row["device"] else {**row, "device": owners.get(row["handle"].partition(":")[0], "")}
        for row in listed
    ]


def _queue(device: str, rows: Sequence[Row]) -> Queue:
    qdiscs = [row for row in rows if row["what"] == "qdisc"]
    roots = [row for row in qdiscs if row["parent"] == "root"] or qdiscs or list(rows)
    root = roots[0]
    children = [row for row in qdiscs if row not in roots]
    leaf = max(children, key=lambda row: row["sent_bytes"] or 0, default=root)
    source = str(root["file"])
    words = " ".join(f"{leaf['kind']} {leaf['words']}".split())
    parents = {row["parent"] for row in children}
    classes = [row for row in rows if row["what"] == "class" and row["handle"] in parents]
    imported = _imported(device, [root, *classes, *children], source) or _imported(device, [root], source)
    shaped = imported.get("rate_bps") if imported else None
    if shaped is not None and root is not leaf:
        words = f"{root['kind']} with {words}"
    dropped = [row["dropped"] for row in ([root] if root["dropped"] is not None else [leaf])]
    marks = [row["marked"] for row in qdiscs if row["marked"] is not None]
    queue = None if imported is None else str(imported["queue"])
    return Queue(
        source=source,
        place=device,
        device=device,
        words=words,
        queue=queue,
        kind=str(leaf["kind"]) if queue is None else kind_of(queue),
        shaped_bps=shaped,
        dropped=dropped[0],
        marked=sum(marks) if marks else None,
        sent_bytes=root["sent_bytes"] or 0,
    )


def kind_of(queue: str) -> str:
    """Return the discipline that holds the packets, of words that the simulator takes."""
    words = queue.split()
    while "leaf" in words:
        words = words[words.index("leaf") + 1 :]
    return words[0] if words else ""


def _imported(device: str, rows: Sequence[Row], source: str) -> Row | None:
    """Return what the core makes of these settings, or None if it refuses them."""
    script = "\n".join(_command(device or "eth0", row, at == 0) for at, row in enumerate(rows))
    try:
        found = scripts.imported(script, source)["queues"]
    except BadInputError:
        return None
    return found[0] if found else None


def _command(device: str, row: Row, is_root: bool) -> str:
    kind, handle = row["kind"], row["handle"]
    words = _BYTES.sub(r"\1 \2", _PACKETS.sub(r"\1 \2", str(row["words"])))
    if row["what"] == "class":
        return (
            f"tc class add dev {device} parent {handle.partition(':')[0]}: classid {handle} {kind} "
            f"{_chosen(words, _HTB)}"
        )
    words = _chosen(words, _SINGLE[kind]) if kind in _SINGLE else words
    words = f" {words} ".replace(" lat ", " latency ").strip()
    parent = "root" if is_root else f"parent {row['parent']}"
    named = "" if handle in ("0:", "") else f"handle {handle} "
    return f"tc qdisc add dev {device} {parent} {named}{kind} {words}".strip()


def _chosen(words: str, names: Sequence[str]) -> str:
    parts = words.split()
    pairs = pairwise(parts)
    return " ".join(f"{name} {value}" for name, value in pairs if name in names)
