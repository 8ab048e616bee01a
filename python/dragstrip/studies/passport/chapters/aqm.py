"""Chapter aqm: queues that drop or mark early, with and without ECN, alone and beside CUBIC."""

from __future__ import annotations

from collections.abc import Iterator

from dragstrip.studies.passport.figures import IMBALANCE, LEAST, NEIGHBOUR, PING_P95, UTILISATION
from dragstrip.studies.passport.rows import PassportPath, PassportRow, RowRule, rated

NAME = "aqm"
TITLE = "with AQM and ECN"
CONSIDERED = "RFC 9743 7.1"
ORDER = RowRule("P", "RFC 9331 4.3.1: within an order of magnitude in one classic queue", most=10.0)
NONE_STARVES = RowRule(
    "P", "RFC 9743 5.1.4, 6.2: none starves; a tenth of the fair share by RFC 8085 3.1", least=0.1
)
TUNNEL = "RFC 9743 6.2: routers unaware of the flows in a tunnel"
QUEUES = {
    "codel": "codel",
    "fq-codel": "fq_codel",
    "pie": "pie",
    "red": "red limit 400kb min 30kb max 90kb avpkt 1000 burst 55 probability 0.02",
    "cake": "cake",
    "fq": "fq",
    "sfq": "sfq",
}


def rows() -> Iterator[PassportRow]:
    """The rows of the chapter."""
    for key, queue in QUEUES.items():
        path = PassportPath(50, 20, 1, 20).with_(queue=queue)
        yield from rated(
            NAME,
            key,
            f"alone at {path.name}",
            path.scenario(),
            (UTILISATION, RowRule("K", CONSIDERED)),
            (PING_P95, RowRule("K", f"{CONSIDERED}; 5.1.2")),
            quick=key in ("codel", "fq-codel"),
        )
    hidden = PassportPath(50, 20, 1, 20).with_(queue="cake flowblind", stagger="1ms")
    yield from rated(
        NAME,
        "tunnel-4",
        f"4 flows that a fair queue takes for one, as through a tunnel, at {hidden.name}",
        hidden.scenario("{a}*4"),
        (LEAST, NONE_STARVES),
        (PING_P95, RowRule("K", TUNNEL)),
    )
    mixed = PassportPath(50, 20, 1, 20).with_(queue="cake flowblind")
    yield from rated(
        NAME,
        "tunnel-beside",
        f"beside one cubic in one tunnel, a fair queue's one flow, at {mixed.name}",
        mixed.scenario("{a}", "cubic+0.3s", subjects=1),
        (NEIGHBOUR, RowRule("K", TUNNEL)),
    )
    slow = PassportPath(10, 80, 1, 30).with_(queue="codel")
    yield from rated(
        NAME,
        "codel-10-80-4",
        f"4 flows at {slow.name}",
        slow.scenario("{a}*4"),
        (UTILISATION, RowRule("K", CONSIDERED)),
        (PING_P95, RowRule("K", f"{CONSIDERED}; 5.1.2")),
    )
    marks = {"codel-ecn": "codel ecn", "fq-codel-ecn": "fq_codel", "pie-ecn": "pie ecn", "dualpi2": "dualpi2"}
    for key, queue in marks.items():
        path = PassportPath(50, 20, 1, 20).with_(queue=queue, **_ecn(key))
        yield from rated(
            NAME,
            key,
            f"alone with ECN at {path.name}",
            path.scenario(),
            (UTILISATION, RowRule("K", f"{CONSIDERED}; RFC 8311")),
            (PING_P95, RowRule("K", f"{CONSIDERED}; 5.1.2")),
            quick=key == "codel-ecn",
        )
    for key, queue in {"codel-drop": "codel", "codel-ecn": "codel ecn", "dualpi2": "dualpi2"}.items():
        path = PassportPath(50, 20, 1, 40).with_(queue=queue, **({} if key == "codel-drop" else _ecn(key)))
        yield from rated(
            NAME,
            f"{key}-beside",
            f"beside one cubic at {path.name}{'' if key == 'codel-drop' else ' with ECN'}",
            path.scenario("{a}", "cubic+0.3s", subjects=1),
            (IMBALANCE, ORDER),
            (NEIGHBOUR, RowRule("K", "RFC 9743 5.2.1, 7.1; heistp/l4s-tests")),
            quick=key == "codel-ecn",
        )


def _ecn(key: str) -> dict[str, bool]:
    return {"accurate_ecn": True} if key == "dualpi2" else {"ecn": True}
