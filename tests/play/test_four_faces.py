"""What people type means the same wherever they type it: on the command line, in TOML, in Python, on the page.

5,000 experiments, right ones and wrong ones, are drawn and given to all four. Each answers with the same scenarios or
with the same refusal, word for word; only the field is called as it is called there (`--up-rate`, `path.up_rate`,
`up_rate`). DRAGSTRIP_FACES=N draws N instead, DRAGSTRIP_SEED=N other ones.

Without Node or the compiled core the page is not asked, and the test says so.
"""

from __future__ import annotations

import json
import os
import random
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dragstrip import _core
from dragstrip.cli import app
from dragstrip.cli.race import read
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import COMMAND_LINE, compare, reworded
from dragstrip.experiment.expand import PlannedRun, expand
from dragstrip.experiment.race import OPTIONS
from dragstrip.experiment.types import Experiment
from dragstrip.io import toml

from .test_identity import in_node

BLOCKS = 20
COUNT = int(os.environ.get("DRAGSTRIP_FACES", "5000"))
SEED = int(os.environ.get("DRAGSTRIP_SEED", "1"))
WORDS = {option.name: option.word for option in OPTIONS} | {"algorithms": "ALGORITHM"}
COMMAND = typer.main.get_command(app).commands["compare"]  # type: ignore[attr-defined]
TAKES = {option.name: option.takes for option in OPTIONS}

ALGORITHMS = {
    True: ["cubic", "bbr", "reno", "cubic:beta=0.8", "bbr*2", "reno@20ms", "vegas+1s", "bbr@80ms*2", "cubic+1s*2",
           "cubic:beta=9e+2+500ms"],
    False: ["cubik", "bbr4", "cubic:bta=0.8", "bbr*", "bbr*0", "cubic:beta=x", "reno@20", "reno@1ms@2ms", "vegas+", "", ":", "bbr*-1",
            "cubic:gamma=1", "cubic:beta=1e+2", "my-exp", "BBR", "cubic*100001"],
}  # fmt: skip
VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "rate": (["10mbit", "1.5mbit", "256kbit", "1gbit", "10mbps"], ["10Mbps", "1e30mbit", "10", "mbit", "0bit", "-1mbit", "1e30bit", "fast", "", 10]),
    "rtt": (["40ms", "0s", "1.5ms", "200us"], ["40", "ms", "-1ms", "", "1h", 40]),
    "queue": (["1bdp", "100ms", "fq_codel", "bfifo limit 200kb", "codel ecn"],
              ["bfifo limt 3", "pfifo 100", "droptail", "bfiffo", "bfifo limit 1000", "", "0bdp", 3, "red"]),
    "duration": (["1s", "1500ms"], ["0s", "1", "", "400000s", "x", 3]),
    "flows": (["1", 2, "3"], ["0", -1, "x", 1.5, "100001"]),
    "stagger": (["100ms", "1s"], ["1", "x", ""]),
    "loss": (["1%", "0.07%", "0%"], ["1", "101%", "-1%", "x"]),
    "jitter": (["1ms", "0s"], ["1", "x"]),
    "up_rate": (["1mbit"], ["1", "0bit"]),
    "up_queue": (["pfifo limit 50"], ["pfifo limt 50", "1bdq"]),
    "up_medium": (["adsl2"], ["adsl9"]),
    "medium": (["adsl2", "wifi-n"], ["wifi-x", "adsl2-up"]),
    "path": (["home DSL", "LTE"], ["home DLS", ""]),
    "link": (["htb", "wire"], ["htp", ""]),
    "workload": (["bulk", "rrul", "file"], ["bulky", ""]),
    "gso": (["auto", "off"], ["on", ""]),
    "seed": (["1", 7, "9007199254740991"], ["9007199254740992", -1, "x", "1e3", "", 1.5, 2**63]),
    "repeat": (["1", 2], ["0", "x", -2]),
    "both_ways": ([True], []),
    "ecn": ([True], []),
    "accurate_ecn": ([True], []),
    "together": ([True], []),
    "sysctl": ([{"net.ipv4.tcp_sack": "0"}, {"net.ipv4.tcp_ecn": "1"}],
               [{"net.ipv4.tcp_sak": "0"}, {"net.ipv4.tcp_sack": "7"}]),
    "change": ([["1s rate=2mbit"], ["500ms loss=1%", "1s state=down"]],
               [["1s"], ["rate=2mbit"], ["1s rat=2mbit"], ["1s rate=2"], ["1s limit=x"], ["1s link=x rate=1mbit"]]),
}  # fmt: skip
BASE = ("rate", "rtt", "queue", "duration")


def drawn_race(dice: random.Random) -> dict[str, Any]:
    """A race; half of them have one thing wrong, some two."""
    race: dict[str, Any] = {"algorithms": [dice.choice(ALGORITHMS[True]) for _ in range(dice.randint(1, 3))]}
    if dice.random() < 0.1:
        race["path"] = dice.choice(VALUES["path"][0])
        race["duration"] = "1s"
    else:
        race |= {name: dice.choice(VALUES[name][0]) for name in BASE}
    others = sorted(set(VALUES) - set(BASE) - {"path", "medium", "repeat"})
    for name in dice.sample(others, dice.randint(0, 4)):
        race[name] = dice.choice(VALUES[name][0])
    for _ in range(dice.choice([0, 0, 0, 1, 1, 2])):
        match dice.randint(0, 9):
            case 0:
                race["algorithms"][-1] = dice.choice(ALGORITHMS[False])
            case 1:
                race.pop(dice.choice([name for name in race if name not in ("algorithms", "duration")]), None)
            case _:
                name = dice.choice([name for name, (_, wrong) in VALUES.items() if wrong])
                value = dice.choice(VALUES[name][1])
                race[name] = value
    return race


@dataclass
class Said:
    """What one of the four answered."""

    face: str
    scenarios: list[dict[str, Any]] | None = None
    field: str = ""
    value: str = ""
    expected: str = ""


def asked(face: str, runs: Callable[[], list[PlannedRun]]) -> Said:
    try:
        return Said(face, [run.scenario for run in runs()])
    except BadInputError as error:
        return Said(face, None, error.field, error.value, error.expected)


def on_command_line(race: dict[str, Any]) -> list[PlannedRun]:
    words: list[str] = []
    for name, value in race.items():
        match TAKES.get(name):
            case "flag":
                words.append(WORDS[name])
            case "pairs":
                words += [part for key, text in value.items() for part in (WORDS[name], f"{key}={text}")]
            case "texts":
                words += [part for text in value for part in (WORDS[name], text)]
            case "text" | "count":
                words += [f"{WORDS[name]}={value}"]
    words += ["--", *race["algorithms"]]
    given = COMMAND.make_context("compare", words).params
    options = read({option.name: given[option.name] for option in OPTIONS})
    described = compare(given["algorithms"], source=COMMAND_LINE, **options)  # type: ignore[arg-type]
    return reworded(lambda: expand(described), COMMAND_LINE)


def from_python(race: dict[str, Any]) -> list[PlannedRun]:
    given = {name: value for name, value in race.items() if name != "algorithms"}
    return reworded(lambda: expand(compare(race["algorithms"], **given)))


def as_file(race: dict[str, Any], folder: Path) -> Path | None:
    """A file that says what the race says; none where the race is none yet: without a path, say."""
    try:
        content = _core.compare(race)
    except _core.InputError:
        return None
    file = folder / "race.toml"
    file.write_text(toml.toml_text(content))
    return file


def as_typed(race: dict[str, Any]) -> dict[str, Any]:
    """The race with every value as text, as a command line has it: numbers are the same there and elsewhere."""
    return {
        name: str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in race.items()
    }


def agree(race: dict[str, Any], said: list[Said]) -> None:
    first = said[0]
    for other in said[1:]:
        assert other.scenarios == first.scenarios, (race, first, other)
        assert (other.value, other.expected) == (first.value, first.expected), (race, first, other)
        if first.scenarios is None:
            assert plain(other) == plain(first), (race, first, other)


def plain(said: Said) -> str:
    """The option that a refusal is about, by its name in a form."""
    if said.face == "command line":
        return next((name for name, word in WORDS.items() if word == said.field), said.field)
    if said.face == "TOML":
        found = _core.race_option(said.field)
        return said.field if found is None else found[0]
    return said.field


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_race_is_the_same_wherever_it_is_typed(block: int, tmp_path: Path) -> None:
    dice = random.Random(f"{SEED} races {block}")  # noqa: S311
    races = [as_typed(drawn_race(dice)) for _ in range(COUNT * 7 // 10 // BLOCKS)]
    try:
        page = in_node([{"plan": race} for race in races], tmp_path)
    except pytest.skip.Exception as skipped:
        warnings.warn(f"the page is not asked: {skipped}", stacklevel=1)
        page = []
    refusals = 0
    for number, race in enumerate(races):
        said = [
            asked("Python", lambda race=race: from_python(race)),
            asked("command line", lambda race=race: on_command_line(race)),
        ]
        if (file := as_file(race, tmp_path)) is not None:
            said.append(asked("TOML", lambda file=file: expand(Experiment.read(file), str(file))))
            if said[-1].scenarios is not None and said[0].scenarios is not None:
                continue_names(said[-1].scenarios, said[0].scenarios)
        if page:
            said.append(on_page(page[number]))
        agree(race, said)
        refusals += said[0].scenarios is None
    assert 0.2 * len(races) < refusals < 0.9 * len(races), "right ones and wrong ones"


def continue_names(scenarios: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """A file's runs are called as the race's: both names are made of what varies."""
    assert [one["name"] for one in scenarios] == [one["name"] for one in others]


def on_page(answer: dict[str, Any]) -> Said:
    if "refused" in answer:
        (problem, *_) = answer["refused"]
        return Said("page", None, problem["field"], problem["value"], problem["expected"])
    return Said("page", [json.loads(run["scenario"]) for run in answer["runs"]])


GRAPH = {
    "duration": "1s",
    "nodes": [{"name": "a", "kind": "host"}, {"name": "r", "kind": "router"}, {"name": "b", "kind": "host"}],
    "links": [{"from": "a", "to": "r", "rate": "100mbit", "link": "wire"},
              {"from": "r", "to": "b", "rate": "10mbit", "queue": "bfifo limit 100kb", "delay": "10ms"}],
    "flows": [{"cc": "reno", "sender": "a", "receiver": "b"}],
}  # fmt: skip
DUMBBELL = {
    "duration": "1s",
    "path": {"rate": "10mbit", "rtt": "40ms", "queue": "bfifo limit 200kb"},
    "hosts": {"*": {"gso": "off"}, "s?": {"sysctl": {"net.ipv4.tcp_sack": 0}}},
    "flows": [{"cc": "reno"}, {"cc": "cubic", "start": "100ms", "bytes": "1mb"},
              {"application": {"kind": "constant_rate", "rate": "1mbit"}}],
    "probes": [{"from": "d", "target": "s1"}],
    "changes": [{"at": "500ms", "rate": "5mbit"}],
    "claims": [{"id": "a", "source": "s", "metric": "goodput_bps", "range": [1, 2], "unit": "Mbit/s"}],
}  # fmt: skip
MEDIUM = {
    "duration": "1s",
    "path": {"medium": "air", "rtt": "10ms", "queue": "pfifo limit 60"},
    "media": {"air": {"kind": "wifi_n", "mcs": 7, "ring": 64}},
    "flows": [{"cc": "cubic"}],
    "vary": {"flows.cc": ["cubic", "bbr"]},
}
SETTINGS: list[tuple[str, list[Any]]] = [
    ("duration", ["2s", "0s", "x", 3]), ("seed", [3, 2**60, -1, "x"]), ("repeat", [2, 0, "x"]),
    ("cold_arp", [True, "yes"]), ("path.delay", ["1ms", "x"]), ("path.rtt", ["9ms", "0"]),
    ("path.netem", ["loss 1%", "los 1%"]), ("path.loss", ["1%", "2"]), ("path.ahead_loss", ["1%", "x"]),
    ("path.ahead_netem", ["loss every 100", "loss 200%"]), ("path.atm", [True, 1]), ("path.link", ["wire", "x"]),
    ("path.overhead", ["20b", "x"]), ("path.senders", [3, 0, -1, [{"rate": "1gbit"}], [{"rat": "1gbit"}]]),
    ("path.receivers", [2, 0]), ("path.up_rate", ["1mbit", "1"]), ("path.up_medium", ["adsl2", "x"]),
    ("path.colour", ["red"]), ("flows.0.cc", ["bbr", "bbb"]), ("flows.0.count", [2, 0, "x"]),
    ("flows.0.rtt", ["50ms", "1ms", "x"]), ("flows.0.reverse", [True, 0]), ("flows.0.bytes", ["1mb", "x"]),
    ("flows.0.send_buffer", ["64kb", "x"]), ("flows.0.stop", ["900ms", "x"]), ("flows.0.label", ["one", 1]),
    ("flows.0.application", [{"kind": "on_off", "on": "1s", "off": "1s"}, {"kind": "on_of"}, {"on": "1s"},
                             {"kind": "constant_rate", "rate": "1mbit"}, {"kind": "on_off", "on": "1"}]),
    ("flows.0.cc_options", [{"beta": 0.7}, {"beta": "x"}]), ("flows", [[], 3]),
    ("nodes", [[{"name": "a", "kind": "host"}], [{"name": "a", "kind": "hub"}]]),
    ("links", [[{"from": "s1", "to": "d"}], [{"from": "a"}]]), ("hosts.x", [{}, {"gso": "off"}]),
    ("hosts.*", [{"sysctl": {"net.ipv4.tcp_sak": 1}}, {"mtu": "9b"}, {"profile": "linux-9"}, {"mtu": 1400}]),
    ("media.air", [{"kind": "wifi_n", "mcs": 99}, {"kind": "wifi_n", "mcs": "x"}, {"kind": "wifi_x"},
                   {"kind": "adsl", "rate": "1"}, {"kind": "adsl", "rate": "8mbit", "ring": 3}]),
    ("probes", [[{"from": "d", "target": "x"}], [{"from": "d"}]]), ("record", [{"interval": "0s"}, {"intervall": "1s"}]),
    ("changes", [[{"at": "1s"}], [{"rate": "1mbit"}], [{"at": "1s", "link": "x", "rate": "1mbit"}],
                 [{"at": "100ms", "rtt": "80ms", "loss": "1%"}, {"at": "x", "rate": "1mbit"}]]),
    ("claims.0.tolerance", ["5%", "wide", -1]), ("claims.0.value", [3]), ("claims.0.range", [[2, 1], [1], "x"]),
    ("claims.0.until", ["1s", "0s"]), ("vary", [{"path.rate": []}, {"path.rte": ["1mbit"]}, {"path.rate": ["1", "2mbit"]},
                                               {"flows.9.cc": ["reno"]}, {"flows.cc": "reno"}]),
    ("alternatives", [[{"name": "a", "set": {}}, {"name": "a", "set": {}}], [{"name": "a"}],
                      [{"name": "a", "set": {"path.queue": "fq_codel"}}]]),
    ("title", ["T", 3]), ("colour", ["red"]),
]  # fmt: skip


def drawn_experiment(dice: random.Random) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(json.dumps(dice.choice([GRAPH, DUMBBELL, MEDIUM])))
    for path, values in dice.sample(SETTINGS, dice.randint(0, 2)):
        place: Any = content
        *way, last = path.split(".")
        for part in way:
            if isinstance(place, list):
                place = place[int(part)] if int(part) < len(place) else {}
            else:
                place = place.get(part, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict):
            place[last] = dice.choice(values)
    return content


@pytest.mark.parametrize("block", range(BLOCKS))
def test_an_experiment_is_the_same_wherever_it_is_written(block: int, tmp_path: Path) -> None:
    from dragstrip.experiment import catalogue

    dice = random.Random(f"{SEED} experiments {block}")  # noqa: S311
    # In the order in which a file has them: of two things that are wrong the first one is told.
    drawn = [tomllib.loads(toml.toml_text(drawn_experiment(dice))) for _ in range(COUNT * 3 // 10 // BLOCKS)]
    try:
        page = in_node([{"experiment": json.dumps(one), "pick": 0} for one in drawn], tmp_path)
    except pytest.skip.Exception as skipped:
        warnings.warn(f"the page is not asked: {skipped}", stacklevel=1)
        page = []
    refusals = 0
    for number, content in enumerate(drawn):
        file = tmp_path / "one.toml"
        file.write_text(toml.toml_text(content))
        said = [
            asked("Python", lambda content=content: expand(Experiment.build(content))),
            asked("TOML", lambda file=file: expand(Experiment.read(file), str(file))),
            asked("command line", lambda file=file: expand(*catalogue.load(str(file)))),
        ]
        first = said[0]
        for other in said[1:]:
            assert other.scenarios == first.scenarios, (content, first, other)
            assert (other.field, other.value, other.expected) == (first.field, first.value, first.expected), (
                content
            )
        if page:
            on_it = page[number]
            if "refused" in on_it:
                told = on_page(on_it)
                assert (told.field, told.value, told.expected) == (
                    first.field,
                    first.value,
                    first.expected,
                ), content
            else:
                assert first.scenarios is not None, (content, first)
                assert json.loads(on_it["scenario"]) == first.scenarios[0]
        refusals += first.scenarios is None
    assert 0.2 * len(drawn) < refusals < 0.9 * len(drawn), "right ones and wrong ones"
