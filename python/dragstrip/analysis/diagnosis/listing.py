"""Listings of tc as queues: the settings become a script of tc commands, which the core reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dragstrip import _core
from dragstrip.analysis.diagnosis.observations import HtbClass, ObservedQueue, Tree
from dragstrip.errors import BadInputError
from dragstrip.interop import scripts

Row = Mapping[str, Any]

_PACKETS = re.compile(r"\b(limit|flow_limit|burst|min|max) (\d{1,12})p\b")
_BYTES = re.compile(r"\b(quantum|initial_quantum) (\d{1,12})b\b")
_HTB = ("rate", "ceil", "burst", "cburst")
_HTB_ROOT = ("default",)
_SINGLE = {"pfifo_fast": (), "htb": _HTB_ROOT, "fq": ("limit", "flow_limit", "quantum", "initial_quantum")}
"""Words, each with a value, that a script needs of a discipline whose listing has more than tc takes."""
SKIPPED = frozenset({"noqueue", "ingress", "clsact", "mq"})


def queues(listed: Sequence[Row]) -> list[ObservedQueue]:
    """Return the queue of each interface in listings, with the counts of what holds its packets.

    Disciplines and classes of one interface may stand in two files.
    """
    interface_queues = []
    rows = _placed(listed)
    for key in dict.fromkeys(_key(row) for row in rows):
        mine = [row for row in rows if _key(row) == key and row["kind"] not in SKIPPED]
        if any(row["what"] == "qdisc" for row in mine) or _owner(mine) is None:
            interface_queues += [_queue(str(key[1]), mine)] if mine else []
    return interface_queues


def _key(row: Row) -> tuple[str, str]:
    return str(row["file"]), str(row["device"])


def _owner(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row["what"] == "class"), None)


def _placed(listed: Sequence[Row]) -> list[Row]:
    """Return the rows, classes with the file and the interface of the discipline that they belong to.

    `tc class show` leaves interfaces out, and `tc qdisc show dev eth0` does, too. Classes of a file without
    disciplines go to the one discipline, of any file, that has their handle.
    """
    disciplines = [row for row in listed if row["what"] == "qdisc"]
    placed = []
    for row in listed:
        if row["what"] == "class":
            major = row["handle"].partition(":")[0]
            fits = [
                discipline
                for discipline in disciplines
                if discipline["handle"].partition(":")[0] == major
                and (not row["device"] or not discipline["device"] or row["device"] == discipline["device"])
            ]
            same_file = [discipline for discipline in fits if discipline["file"] == row["file"]]
            owners = same_file or fits
            if same_file or len({_key(owner) for owner in owners}) == 1:
                row = {**row, "device": owners[0]["device"], "file": owners[0]["file"]}
        placed.append(row)
    return placed


def _queue(device: str, rows: Sequence[Row]) -> ObservedQueue:
    qdiscs = [row for row in rows if row["what"] == "qdisc"]
    classes = [row for row in rows if row["what"] == "class" and row["kind"] == "htb"]
    roots = [row for row in qdiscs if row["parent"] == "root"] or qdiscs or list(rows)
    root = roots[0]
    source = str(root["file"])
    children = [row for row in qdiscs if row not in roots]
    if root["kind"] == "htb" and classes:
        return _htb(device, root, classes, children, source)
    leaf = max(children, key=lambda row: row["sent_bytes"] or 0, default=root)
    words = " ".join(f"{leaf['kind']} {leaf['words']}".split())
    if leaf["kind"] == "pfifo_fast":
        words = "pfifo_fast"  # its bands and priomap are the same everywhere
    imported, refused = _imported(device, [root, *children], source)
    if imported is None:
        imported, _ = _imported(device, [root], source)
    shaped = imported.get("rate_bps") if imported else None
    if shaped is not None and root is not leaf:
        words = f"{root['kind']} with {words}"
    queue = None if imported is None else str(imported["queue"])
    marks = [row["marked"] for row in qdiscs if row["marked"] is not None]
    return ObservedQueue(
        source=source,
        place=device,
        device=device,
        words=words,
        queue=queue,
        kind=str(leaf["kind"]) if queue is None else kind_of(queue),
        shaped_bps=shaped,
        dropped=_dropped([root, leaf] if root is not leaf else [root]),
        marked=sum(marks) if marks else None,
        sent_bytes=root["sent_bytes"] or 0,
        sent_packets=root["sent_packets"] or 0,
        tree=Tree(str(root["kind"]), str(root["handle"])),
        refused="" if queue is not None else refused,
    )


def _dropped(rows: Sequence[Row]) -> int | None:
    counts = [int(row["dropped"]) for row in rows if row["dropped"] is not None]
    return max(counts, default=None)


def _htb(
    device: str, root: Row, classes: Sequence[Row], children: Sequence[Row], source: str
) -> ObservedQueue:
    """Return the queue of a tree of htb's classes: that of the leaf through which most has passed.

    A class may borrow what its parent has left, so that one that is busy alone is limited by the least
    ceiling on its way to the root, not by its own rate, and so is its model.
    """
    parents = {row["parent"] for row in classes}
    leaves = [row for row in classes if row["handle"] not in parents] or list(classes)
    leaf_class = min(leaves, key=lambda row: (-(row["sent_bytes"] or 0), row["handle"]))
    by_handle = {row["handle"]: row for row in classes}
    chain = [leaf_class]
    while chain[-1]["parent"] in by_handle and len(chain) <= len(classes):
        chain.append(by_handle[chain[-1]["parent"]])
    ceilings = [rate for row in chain if (rate := _rate(row, "ceil") or _rate(row, "rate")) is not None]
    ceiling = min(ceilings, default=None)
    leaf = next((row for row in children if row["parent"] == leaf_class["handle"]), None)
    counters = leaf if leaf is not None else leaf_class
    kind = str(leaf["kind"]) if leaf is not None else "pfifo"
    leaf_words = f"{leaf['kind']} {leaf['words']}" if leaf is not None else "pfifo"
    words = " ".join(f"htb with {leaf_words}".split())
    queue, refused = None, "its classes have no rate"
    if ceiling is not None:
        flat: list[Row] = [
            root,
            {**leaf_class, "parent": root["handle"], "words": f"rate {ceiling}bit ceil {ceiling}bit"},
        ]
        imported, refused = _imported(device, [*flat, *([leaf] if leaf is not None else [])], source)
        queue = None if imported is None else str(imported["queue"])
    drops = _dropped([root, leaf_class, counters])
    marks = [row["marked"] for row in children if row["marked"] is not None]
    return ObservedQueue(
        source=source,
        place=device,
        device=device,
        words=words,
        queue=queue,
        kind=kind if queue is None else kind_of(queue),
        shaped_bps=ceiling,
        dropped=drops,
        marked=sum(marks) if marks else None,
        sent_bytes=root["sent_bytes"] or 0,
        sent_packets=counters["sent_packets"] or 0,
        passed_bps=_estimated(leaf_class),
        tree=Tree("htb", str(root["handle"]), tuple(map(_class, chain))),
        refused="" if queue is not None else refused,
    )


def _class(row: Row) -> HtbClass:
    prio = re.search(r"\bprio (\d{1,2})\b", str(row["words"]))
    rate = _rate(row, "rate")
    handle, parent = str(row["handle"]), str(row["parent"])
    return HtbClass(handle, parent, rate, _rate(row, "ceil") or rate, prio[1] if prio else "")


def _rate(row: Row, name: str) -> int | None:
    """Return a rate of a class in bit/s, such as that of `ceil 4636Kbit`."""
    match = re.search(rf"\b{name} (\d{{1,15}}(?:\.\d{{1,9}})?[KMGT]?(?:i?bit))", str(row["words"]))
    try:
        return None if match is None else _core.parse_rate(match[1].lower())
    except _core.InputError:
        return None


def _estimated(row: Row) -> float | None:
    """Return what passes a class now, where its statistics have the kernel's estimate."""
    value = str(row["statistics"].get("rate", ""))
    try:
        return float(_core.parse_rate(value.lower())) if value else None
    except _core.InputError:
        return None


def kind_of(queue: str) -> str:
    """Return the discipline that holds the packets, of words that the simulator takes."""
    words = queue.split()
    while "leaf" in words:
        words = words[words.index("leaf") + 1 :]
    return words[0] if words else ""


def _imported(device: str, rows: Sequence[Row], source: str) -> tuple[Row | None, str]:
    """Return what the core makes of these settings, or None and the reason if it refuses them."""
    script = "\n".join(_command(device or "eth0", row, at == 0) for at, row in enumerate(rows))
    try:
        queues = scripts.imported(script, source)["queues"]
    except BadInputError as error:
        return None, str(error).partition(": ")[2]
    return (queues[0], "") if queues else (None, "no queue is left")


def _command(device: str, row: Row, is_root: bool) -> str:
    kind, handle = row["kind"], row["handle"]
    words = _BYTES.sub(r"\1 \2", _PACKETS.sub(r"\1 \2", str(row["words"])))
    if row["what"] == "class":
        return (
            f"tc class add dev {device} parent {handle.partition(':')[0]}: classid {handle} {kind} "
            f"{_supported_settings(words, _HTB)}"
        )
    words = _supported_settings(words, _SINGLE[kind]) if kind in _SINGLE else words
    words = f" {words} ".replace(" lat ", " latency ").strip()
    parent = "root" if is_root else f"parent {row['parent']}"
    handle_words = "" if handle in ("0:", "") else f"handle {handle} "
    return f"tc qdisc add dev {device} {parent} {handle_words}{kind} {words}".strip()


def _supported_settings(words: str, names: Sequence[str]) -> str:
    parts = words.split()
    pairs = pairwise(parts)
    return " ".join(f"{name} {value}" for name, value in pairs if name in names)
