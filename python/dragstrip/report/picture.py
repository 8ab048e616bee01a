"""The drawing of a path: hosts and routers as boxes, links as pairs of lanes with rate, delay and queue."""

from __future__ import annotations

import textwrap
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markupsafe import escape

from dragstrip.display.colours import GREY, INK, MUTED
from dragstrip.report.load import Json
from dragstrip.results.comparison import path as paths

# Alike nodes beyond this many are drawn as one pile.
ALIKE_MAX = 4
# More boxes than this in one column are drawn as one pile, alike or not.
COLUMN_MAX = 12
# Names of flows in the mark of a link; more are counted.
MARKED_MAX = 2
# Receivers to which routes are looked for; senders to others stand before their router.
ROUTES_MAX = 200
# Links that a screen reader reads out.
DESCRIBED_MAX = 12
BOX_MIN, GAP_MIN = 96.0, 154.0
"""Pixels of a box's width, and between two columns of boxes, at least."""
FONT = "Helvetica, Arial, Liberation Sans, sans-serif"


@dataclass
class _Box:
    """A node, or a stack of nodes that are alike."""

    names: list[str]
    router: bool
    column: int
    notes: list[str] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True)
class _Lanes:
    """The links between two boxes in both directions."""

    near: _Box
    far: _Box
    forward: Json | None
    backward: Json | None
    forward_mark: str = ""
    backward_mark: str = ""


def draw(
    scenarios: list[Json], colours: dict[str, str], queues: Mapping[str, Sequence[str]] | None = None
) -> tuple[str, str]:
    """Draw the path that all scenarios share as two SVGs.

    Left to right, and top to bottom for narrow screens. Both are empty if there are no nodes. `queues` has
    the names of the flows that wait longest at a link, by the link's name; these links are marked.
    """
    scenario = scenarios[0]
    boxes = _boxes(scenarios, colours)
    if not boxes:
        return "", ""
    lanes, description = _lanes(scenario, boxes, queues or {}), _description(scenario, queues or {})
    return _Flat(boxes, lanes).svg(description), _Upright(boxes, lanes).svg(description)


def _description(scenario: Json, queues: Mapping[str, Sequence[str]]) -> str:
    links = scenario.get("links") or []
    parts = [
        f"{link['from']} to {link['to']}: {', '.join(paths.link_words(link)) or 'plain wire'}"
        for link in links[:DESCRIBED_MAX]
    ]
    more = "; and more" if len(links) > DESCRIBED_MAX else ""
    marks = [f"; at {link} {', '.join(names)} wait longest" for link, names in queues.items()]
    return "; ".join(parts) + more + "".join(marks)


def _mark(names: Sequence[str], is_only: bool) -> str:
    """Return the mark of the link where these flows wait longest; the only such link needs no names."""
    if not names:
        return ""
    if is_only:
        return "bottleneck"
    return "queue of " + (", ".join(names) if len(names) <= MARKED_MAX else f"{len(names)} flows")


def _boxes(scenarios: list[Json], colours: dict[str, str]) -> list[_Box]:
    scenario = scenarios[0]
    columns = _columns(scenario)
    boxes = []
    owner: dict[str, _Box] = {}
    for pile in _piles(scenario, columns):
        names = [str(node["name"]) for node in pile]
        box = _Box(names, pile[0].get("kind") == "router", columns.get(names[0], 0))
        owner.update(dict.fromkeys(names, box))
        boxes.append(box)
    for flow in (flow for run_scenario in scenarios for flow in run_scenario.get("flows") or []):
        sender = owner.get(flow["sender"])
        if sender is not None and (cc := _algorithm(flow)) not in sender.notes:
            sender.notes.append(cc)
            sender.colours.append(colours.get(cc, GREY))
    order = {str(node["name"]): place for place, node in enumerate(scenario.get("nodes") or [])}
    return sorted(boxes, key=lambda box: order[box.names[0]])


def _piles(scenario: Json, columns: dict[str, int]) -> list[list[Json]]:
    """Return the nodes that each box stands for."""
    groups: dict[str, list[Json]] = {}
    likeness = _Likeness(scenario, columns)
    for node in scenario.get("nodes") or []:
        groups.setdefault(likeness.of(node), []).append(node)
    piles = []
    for members in groups.values():
        piles += [members] if len(members) > ALIKE_MAX else [[member] for member in members]
    crowds: dict[tuple[int, str], list[list[Json]]] = {}
    for pile in piles:
        crowds.setdefault((columns.get(pile[0]["name"], 0), str(pile[0].get("kind"))), []).append(pile)
    return [
        pile
        for crowd in crowds.values()
        for pile in (crowd if len(crowd) <= COLUMN_MAX else [[node for pile in crowd for node in pile]])
    ]


def _algorithm(flow: Json) -> str:
    transport = flow.get("transport") or {}
    return str(transport.get("cc") or "udp") if transport.get("protocol") != "udp" else "udp"


def _columns(scenario: Json) -> dict[str, int]:
    """Return each node's column: every link that data take leads to a later one.

    Nodes that no data pass stand beside a neighbour. Of flows in opposite directions the earlier ones count.
    """
    order = _order(scenario)
    nodes = [str(node["name"]) for node in scenario.get("nodes") or []]
    columns: dict[str, int] = {}
    reached = {after for following in order.values() for after in following}
    for node in _sorted(order):
        columns.setdefault(node, 0)
        for after in order.get(node, ()):
            columns[after] = max(columns.get(after, 0), columns[node] + 1)
    for node in order.keys() - reached:  # beside the router that it is connected to
        columns[node] = min(columns[after] for after in order[node]) - 1
    sources = {str(flow["sender"]) for flow in scenario.get("flows") or []}
    neighbours: dict[str, list[str]] = {}
    for link in scenario.get("links") or []:
        neighbours.setdefault(link["from"], []).append(link["to"])
    if not columns:
        columns = dict.fromkeys(nodes[:1], 0)
    waiting = deque(columns)
    while waiting:
        node = waiting.popleft()
        for neighbour in neighbours.get(node, []):
            if neighbour not in columns:
                columns[neighbour] = columns[node] + (-1 if neighbour in sources else 1)
                waiting.append(neighbour)
    first = min(columns.values(), default=0)
    return {node: column - first for node, column in columns.items()}


def _order(scenario: Json) -> dict[str, list[str]]:
    """Return the nodes that data reach next from each node, without a link that would lead back."""
    into: dict[str, list[str]] = {}
    for link in scenario.get("links") or []:
        into.setdefault(link["to"], []).append(link["from"])
    order: dict[str, list[str]] = {}
    routes: dict[str, dict[str, str]] = {}
    for sender, receiver in dict.fromkeys(
        (str(flow["sender"]), str(flow["receiver"])) for flow in scenario.get("flows") or []
    ):
        if receiver not in routes:
            if len(routes) == ROUTES_MAX:
                continue
            routes[receiver] = _reach(receiver, into)
        following = routes[receiver]
        if sender not in following:
            continue
        way = [sender]
        while way[-1] != receiver:
            way.append(following[way[-1]])
        for near, far in pairwise(way):
            if far not in order.setdefault(near, []) and not _leads(order, far, near):
                order[near].append(far)
    return {node: after for node, after in order.items() if after}


def _reach(end: str, into: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return each node's next on the shortest way to `end`; `into` has the nodes before each node."""
    following = {end: end}
    waiting = deque([end])
    while waiting:
        node = waiting.popleft()
        for neighbour in into.get(node, ()):
            if neighbour not in following:
                following[neighbour] = node
                waiting.append(neighbour)
    return following


def _leads(order: Mapping[str, Sequence[str]], start: str, end: str) -> bool:
    """Return whether data already go from `start` to `end`."""
    visited = {start}
    waiting = deque(visited)
    while waiting:
        node = waiting.popleft()
        if node == end:
            return True
        fresh = [after for after in order.get(node, ()) if after not in visited]
        visited.update(fresh)
        waiting.extend(fresh)
    return False


def _sorted(order: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the nodes so that each comes after those from which data reach it."""
    in_degree = Counter(after for following in order.values() for after in following)
    waiting = deque(node for node in order if not in_degree[node])
    nodes = []
    while waiting:
        node = waiting.popleft()
        nodes.append(node)
        for after in order.get(node, ()):
            in_degree[after] -= 1
            if not in_degree[after]:
                waiting.append(after)
    return nodes


def settings_text(link: Json) -> str:
    """Return a text that is equal for links that differ only in their name and ends."""
    return repr([value for key, value in link.items() if key not in ("name", "from", "to")])


def _summed(links: list[tuple[str, str]]) -> object:
    """Return the links of a node; if there are many, only how often each kind occurs."""
    if len(links) <= ALIKE_MAX:
        return links
    return sorted(Counter(settings for _, settings in links).items())


class _Likeness:
    """Compares nodes by everything except their names and their flows' algorithms."""

    def __init__(self, scenario: Json, columns: dict[str, int]) -> None:
        self.columns = columns
        self.out: dict[str, list[tuple[str, str]]] = {}
        self.into: dict[str, list[tuple[str, str]]] = {}
        shared_texts: dict[str, str] = {}  # a hundred thousand links have few settings
        for link in scenario.get("links") or []:
            text = settings_text(link)
            settings = shared_texts.setdefault(text, text)
            self.out.setdefault(link["from"], []).append((link["to"], settings))
            self.into.setdefault(link["to"], []).append((link["from"], settings))
        flows = scenario.get("flows") or []
        self.senders = {flow["sender"] for flow in flows}
        self.receivers = {flow["receiver"] for flow in flows}

    def of(self, node: Json) -> str:
        """Return a text that is equal for nodes that are alike."""
        name = node["name"]
        roles = [name in self.senders, name in self.receivers]
        itself = {key: value for key, value in node.items() if key != "name"}
        around = [_summed(self.out.get(name, [])), _summed(self.into.get(name, []))]
        return repr([itself, self.columns.get(name), *around, roles])


def _lanes(scenario: Json, boxes: list[_Box], queues: Mapping[str, Sequence[str]]) -> list[_Lanes]:
    owner = {name: place for place, box in enumerate(boxes) for name in box.names}
    pairs: dict[tuple[int, int], tuple[Json | None, Json | None]] = {}
    marks: dict[tuple[int, int], list[str]] = {}
    for link in scenario.get("links") or []:
        a, b = owner[link["from"]], owner[link["to"]]
        ahead = (boxes[a].column, a) < (boxes[b].column, b)
        key = (a, b) if ahead else (b, a)
        forward, backward = pairs.get(key, (None, None))
        pairs[key] = (forward or link, backward) if ahead else (forward, backward or link)
        marks.setdefault((a, b), []).extend(queues.get(str(link.get("name")), ()))
    is_only = len(queues) == 1

    def mark(a: int, b: int) -> str:
        return _mark(marks.get((a, b), []), is_only)

    return [
        _Lanes(boxes[a], boxes[b], forward, backward, mark(a, b), mark(b, a))
        for (a, b), (forward, backward) in pairs.items()
    ]


class _Flat:
    """Left to right: labels of the forward path above the link, of the return path below it."""

    box_height = 46
    column_step: float
    row_step = 78.0
    line_height = 15
    lane = 4

    def __init__(self, boxes: list[_Box], lanes: list[_Lanes]) -> None:
        self.boxes = boxes
        self.lanes = lanes
        self.box_width = max(BOX_MIN, *(_inside(box) + 16 for box in boxes))
        self.rows: dict[int, list[_Box]] = {}
        for box in boxes:
            self.rows.setdefault(box.column, []).append(box)
        self._place()
        # Beside crowded links there is no room for their marks.
        self.marks = [
            f"{near.names[0]} → {far.names[0]}: {mark}"
            for lane in lanes
            if self._crowded(lane)
            for near, far, mark in (
                (lane.near, lane.far, lane.forward_mark),
                (lane.far, lane.near, lane.backward_mark),
            )
            if mark
        ]
        self.bottom = self.height
        self.height += self.line_height * len(self.marks) + (6 if self.marks else 0)

    def _widest_label(self) -> float:
        """Return the width of the widest label beside a link."""
        return max(
            (
                _width(line, 12.5)
                for lane in self.lanes
                if not self._crowded(lane)
                for line in (
                    *_lines(lane.forward, lane.forward_mark),
                    *_lines(lane.backward, lane.backward_mark),
                )
            ),
            default=0.0,
        )

    def _place(self) -> None:
        self.column_step = self.box_width + max(GAP_MIN, self._widest_label() + 16)
        tallest = max(len(column) for column in self.rows.values())
        step = self.row_step
        half = step * (tallest - 1) / 2 + self.box_height / 2 + 10
        labels = [lane for lane in self.lanes if not self._crowded(lane)]
        above = max((len(_lines(lane.forward, lane.forward_mark)) for lane in labels), default=0)
        below = max((len(_lines(lane.backward, lane.backward_mark)) for lane in labels), default=0)
        top = max(half, 20 + self.line_height * above)
        self.height = top + max(half, 20 + self.line_height * below)
        self.width = 8 * 2 + self.column_step * max(self.rows) + self.box_width
        for number, column in self.rows.items():
            first = top - step * (len(column) - 1) / 2
            for row, box in enumerate(column):
                box.x = 8 + self.box_width / 2 + number * self.column_step
                box.y = first + row * step

    def svg(self, description: str) -> str:
        """Return the picture as SVG, with `description` as its text for screen readers."""
        marks = [
            _text(8, self.bottom + self.line_height * (line + 1) - 2, mark, INK, 12, "start", bold=True)
            for line, mark in enumerate(self.marks)
        ]
        body = "".join([*map(self._link, self.lanes), *map(self._box, self.boxes), *marks])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:.0f} {self.height:.0f}" '
            f'width="{self.width:.0f}" height="{self.height:.0f}" font-family="{FONT}" role="img">'
            f"<title>The path</title><desc>{escape(description)}</desc>{body}</svg>"
        )

    def _box(self, box: _Box) -> str:
        w, h = self.box_width, self.box_height
        x, y = box.x - w / 2, box.y - h / 2
        pile = "".join(_frame(x + d, y - d, w, h, 7, MUTED) for d in ((8, 4) if len(box.names) > 1 else ()))
        radius = 23 if box.router else 7
        frame = _frame(x, y, w, h, radius, INK)
        name = (
            box.names[0]
            if len(box.names) == 1
            else f"{len(box.names)} {'routers' if box.router else 'hosts'}"
        )
        lift = 7 if box.notes else 0
        text = _text(box.x, box.y + 4.5 - lift, name, INK, 13, "middle", bold=True)
        return pile + frame + text + (self._notes(box) if box.notes else "")

    def _notes(self, box: _Box) -> str:
        """Return the algorithms of a sender, each in its colour."""
        if len(box.notes) > 3:
            return _text(box.x, box.y + 14, f"{len(box.notes)} algorithms", MUTED, 11, "middle")
        spans = f'<tspan fill="{MUTED}"> · </tspan>'.join(
            f'<tspan fill="{colour}">{escape(note)}</tspan>'
            for note, colour in zip(box.notes, box.colours, strict=True)
        )
        place = f'x="{box.x:.1f}" y="{box.y + 14:.1f}" text-anchor="middle"'
        return f'<text {place} font-size="11" font-weight="bold">{spans}</text>'

    def _link(self, lanes: _Lanes) -> str:
        a, b = lanes.near, lanes.far
        x1, x2 = a.x + self.box_width / 2, b.x - self.box_width / 2
        parts = []
        if lanes.forward is not None:
            parts.append(_arrow(x1 + 2, a.y - self.lane, x2 - 2, b.y - self.lane, lanes.forward_mark))
            parts.append(_queue_glyph(x1 + 8, a.y - self.lane, lanes.forward, 1))
        if lanes.backward is not None:
            parts.append(_arrow(x2 - 2, b.y + self.lane, x1 + 2, a.y + self.lane, lanes.backward_mark))
            parts.append(_queue_glyph(x2 - 8, b.y + self.lane, lanes.backward, -1))
        middle_x, middle_y = (x1 + x2) / 2, (a.y + b.y) / 2
        if self._crowded(lanes):
            # Beside the box, on the side from which the link turns away.
            words = _settings(lanes)
            y = a.y - 10 if b.y >= a.y else a.y + 19
            parts.append(_text(x1 + 8, y, ", ".join(words), MUTED, 11, "start"))
            return "".join(parts)
        for line, word in enumerate(reversed(_lines(lanes.forward, lanes.forward_mark))):
            y = middle_y - 12 - self.line_height * line
            parts.append(_label(middle_x, y, word, INK, 12.5, "middle", lanes.forward_mark))
        for line, word in enumerate(_lines(lanes.backward, lanes.backward_mark)):
            y = middle_y + 21 + self.line_height * line
            parts.append(_label(middle_x, y, word, MUTED, 12.5, "middle", lanes.backward_mark))
        return "".join(parts)

    def _crowded(self, lanes: _Lanes) -> bool:
        """Return whether other links run beside this one, which leaves room for one line only."""
        column_pair = (lanes.near.column, lanes.far.column)
        return (
            sum((candidate.near.column, candidate.far.column) == column_pair for candidate in self.lanes) > 1
        )


class _Upright(_Flat):
    """Top to bottom: labels of the forward path right of the link, of the return path left of it."""

    column_step = 128.0

    def _place(self) -> None:
        self.row_step = self.box_width + 16
        widest = max(len(column) for column in self.rows.values())
        needed = 20 + self.row_step * (widest - 1) + self.box_width
        self.width = max(340.0, needed, 2 * (self._widest_label() + 20))
        self.height = 12 * 2 + self.column_step * max(self.rows) + self.box_height
        for number, row in self.rows.items():
            first_x = self.width / 2 - self.row_step * (len(row) - 1) / 2
            for place, box in enumerate(row):
                box.x = first_x + place * self.row_step
                box.y = 12 + self.box_height / 2 + number * self.column_step

    def _link(self, lanes: _Lanes) -> str:
        a, b = lanes.near, lanes.far
        y1, y2 = a.y + self.box_height / 2, b.y - self.box_height / 2
        parts = []
        if lanes.forward is not None:
            parts.append(_arrow(a.x + self.lane, y1 + 2, b.x + self.lane, y2 - 2, lanes.forward_mark))
        if lanes.backward is not None:
            parts.append(_arrow(b.x - self.lane, y2 - 2, a.x - self.lane, y1 + 2, lanes.backward_mark))
        if self._crowded(lanes):
            # Below the box, on the side from which the link turns away.
            side = -1 if a.x < b.x - 1 else 1
            for line, word in enumerate(_short_lines(lanes)):
                y = y1 + 15 + 13 * line
                parts.append(_text(a.x + side * 12, y, word, MUTED, 11, "end" if side < 0 else "start"))
            return "".join(parts)
        x, middle = (a.x + b.x) / 2, (y1 + y2) / 2
        for link, mark, anchor, dx, colour in (
            (lanes.forward, lanes.forward_mark, "start", 14, INK),
            (lanes.backward, lanes.backward_mark, "end", -14, MUTED),
        ):
            words = _lines(link, mark)
            top = middle + 4 - self.line_height * (len(words) - 1) / 2
            for line, word in enumerate(words):
                y_of_line = top + self.line_height * line
                parts.append(_label(x + dx, y_of_line, word, colour, 12, anchor, mark))
        return "".join(parts)


def _settings(lanes: _Lanes) -> list[str]:
    """Return two settings of a link that stands beside others: those forward or, without any, those back."""
    directions = (paths.link_words(link) for link in (lanes.forward, lanes.backward) if link)
    return next((words[:2] for words in directions if words), [])


def _short_lines(lanes: _Lanes) -> list[str]:
    """Return these settings in lines short enough for half the width of a box."""
    words = _settings(lanes)
    return [line for word in words for line in textwrap.wrap(word, 10, break_long_words=False)][:4]


def _width(text: str, size: float, bold: bool = False) -> float:
    """Return roughly how wide a text is, in pixels."""
    return len(text) * size * (0.62 if bold else 0.57)


def _inside(box: _Box) -> float:
    """Return the width of a box's texts: its name, and the algorithms of a sender."""
    name = box.names[0] if len(box.names) == 1 else f"{len(box.names)} routers"
    notes = " · ".join(box.notes) if len(box.notes) <= 3 else f"{len(box.notes)} algorithms"
    return max(_width(name, 13, bold=True), _width(notes, 11, bold=True))


def _lines(link: Json | None, mark: str = "") -> list[str]:
    """Return a link's settings and its mark, each short enough to stand beside it; nothing without a link."""
    if link is None:
        return []
    settings = [
        line
        for word in paths.link_words(link)
        for line in (word.split(", ", 1) if len(word) > 22 else [word])
    ]
    return [*settings, *filter(None, [mark])]


def _label(x: float, y: float, text: str, colour: str, size: float, anchor: str, mark: str) -> str:
    """Return a line beside a link; the mark is bold."""
    is_mark = text == mark
    return _text(x, y, text, INK if is_mark else colour, size, anchor, bold=is_mark)


def _arrow(x1: float, y1: float, x2: float, y2: float, mark: str) -> str:
    """Draw a line with a head, thicker with a mark.

    The head is drawn rather than referenced, because ids must be unique on a page.
    """
    length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bx, by = x2 - 7 * ux, y2 - 7 * uy
    head = (
        f"{x2:.1f},{y2:.1f} {bx - 3.2 * uy:.1f},{by + 3.2 * ux:.1f} {bx + 3.2 * uy:.1f},{by - 3.2 * ux:.1f}"
    )
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{bx:.1f}" y2="{by:.1f}" stroke="{MUTED}" '
        f'stroke-width="{2.8 if mark else 1.4}"/>'
        f'<polygon points="{head}" fill="{MUTED}"/>'
    )


def _queue_glyph(x: float, y: float, link: Json, direction: int) -> str:
    """Draw a short row of waiting packets where there is a limited queue."""
    if not paths.queue_text(paths.qdisc(link)) or not paths.rate_text(link):
        return ""
    edge_x = x if direction > 0 else x - 5
    colour = INK if direction > 0 else MUTED
    return "".join(
        f'<rect x="{edge_x + direction * 6.5 * i:.1f}" y="{y - 5:.1f}" width="5" height="10" '
        f'fill="{colour}" opacity="{0.9 - 0.17 * i:.2f}"/>'
        for i in range(4)
    )


def _frame(x: float, y: float, width: float, height: float, radius: float, colour: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
        f'fill="#ffffff" stroke="{colour}" stroke-width="1.2"/>'
    )


def _text(x: float, y: float, text: str, colour: str, size: float, anchor: str, *, bold: bool = False) -> str:
    look = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    if bold:
        look += ' font-weight="bold"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}>{escape(text)}</text>'
