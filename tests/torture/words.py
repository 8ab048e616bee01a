"""Random command lines: every command and option of the program, right, wrong, exchanged, doubled and incomplete.

Each ends with status 0, 1 or 2 and never with a traceback; a refused one with one error and with nothing written or
changed, as every line with an unknown option does; one that asks for help with the help.
"""

from __future__ import annotations

import atexit
import functools
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer.main
from common import EXPERIMENT, ROOT, check_answer, dragstrip, in_process, leftovers, main, written
from disciplines import ODD, valid

from dragstrip.cli import app

sys.path.insert(0, str(ROOT))
from tools import reference

PING = """\
PING h (10.0.0.2) 56(84) bytes of data.
64 bytes from h (10.0.0.2): icmp_seq=1 ttl=64 time=20.1 ms

--- h ping statistics ---
1 packets transmitted, 1 received, 0% packet loss, time 0ms
"""
PROGRAM = "on ack { cwnd = cwnd + acked / cwnd } on loss { ssthresh = max(cwnd / 2, 2) }"
UNKNOWN = "--no-such-option"
NOT_RUN = (
    "attack",
    "judge",
    "doctor",
    "new-algorithm",
    "new-qdisc",
    "kernel fetch",
    "kernel run",
    "lab",
    "validate",
)
"""Commands that take minutes, ask other machines or change the checkout: only refused or asked for help here."""
LEFT_OUT = {"--serve", "--on"}
"""`--serve` ends when interrupted, and `--on` connects to other machines: `serve.py` and tests/sweep have them."""
APART = {"--time-limit", "--workers", "--retry-failed"}
"""Options with which runs are made in processes of their own."""
WEIGHTS = {
    "compare": 12,
    "play": 4,
    "run": 6,
    "sweep": 3,
    "validate": 1,
    "lab": 1,
    "new-algorithm": 1,
    "new-qdisc": 1,
    "doctor": 1,
    "passport": 1,
}
"""How often a command is tried, where that is not twice."""
TIMES = ("200ms", "100ms", "40ms", "0ms", "1s", "5", "-1s", "99999s", "1e99s", "1m")
VALUES: dict[str, tuple[str, ...]] = {
    "FOLDER": ("out", "new/out", "run", ".", "e.toml", "missing", "e.toml/nothing"),
    "FILE": ("router.sh", "page.html", "e.toml", "missing.txt", "run", "d.pcapng", "-", "ping.txt"),
    "FILE.cc": ("mine.cc", "missing.cc", "e.toml", "mine.txt"),
    "FILE.bpf.c": ("missing.bpf.c", "mine.cc"),
    "FILE.toml": ("missing.toml", "e.toml"),
    "N": ("1", "2", "3", "0", "-1", "1.5", "x", "96", "4294967296", "9" * 30),
    "TIME": TIMES,
    "COMMAND...": ("true", "sh"),
    "[-- COMMAND...]": ("true", "sh"),
    "ENGINE": ("sim", "ns3", "sim,sim", ",", "Sim"),
    "ENGINES": ("sim", "ns3"),
    "NAME=VALUE": ("kernel=x", "strict=yes", "x", "=1", "nope=1"),
    "KEY=VALUE": (
        "net.ipv4.tcp_ecn=1",
        "net.ipv4.tcp_sack=0",
        "net.ipv4.tcp_sak=0",
        "x",
        "=1",
        "net.ipv4.tcp_rmem=1 2",
    ),
    "[HOST|LINK ...]": ("s1", "d", "r-d", "r", "nobody", "s1 d"),
    "svg,png,pdf,csv": ("svg", "csv", "svg,csv", "gif", ",", "SVG"),
    "LENGTH": ("85mm", "3in", "0mm", "x", "85"),
    "NAME": ("bulk", "cable", "wifi-n", "adsl", "web", "file", "home DSL", "nothing", "wifi"),
    "RATE": ("2mbit", "500kbit", "2", "0bit", "10Mbps", "1e30mbit", "2mbit,3mbit"),
    "SHARE": ("1%", "0%", "101%", "1", "-1%"),
    "KIND": ("htb", "wire", "string"),
    "BYTES": ("16kb", "1", "0", "-1"),
    "ALGORITHM": ("reno", "cubic", "dctcp", "rneo", "cubic:beta=0.6", ""),
    "auto|off|whole": ("auto", "off", "whole", "maybe"),
    "'TIME KEY=VALUE ...'": (
        "100ms rate=1mbit",
        "50ms loss=5% rtt=60ms",
        "1s",
        "x=1",
        "100ms limit=5 state=down",
    ),
    "PATH=VALUES": (
        "flow.cc=reno,cubic",
        "path.rtt=20ms,40ms",
        "path.queue=sfq",
        "x=1",
        "flow.cc",
        "duration=0s,100ms",
    ),
    "PATH=VALUE": ("path.rtt=20ms", "x"),
    "GOAL": ("utilisation", "starvation", "neighbour", "stall", "stal"),
    "VECTOR": ("cross", "loss", "jitter", "acks", "changes", "rtt", "cros"),
    "QUEUE": ("1bdp", "pfifo limit 40", "fq_codel", "0bdp", "pfito", "1"),
    "[ALGORITHM]": ("reno", "cubic:beta=0.6", "bbr", "rneo", "reno*2", "mine"),
    "lhs:N": ("lhs:3", "lhs:0", "sobol:3", "3"),
    "k/N": ("1/2", "2/2", "3/2", "x", "0/0"),
    "SIZE": ("1gb", "1kb", "x"),
    "KEY": ("abc", "0123456789abcdef"),
    "FORMAT": ("csv", "iperf3", "ns3", "flent", "perfetto", "qlog", "xls"),
    "CHAPTERS": ("theory", "theory", "theory,", "nothing", "Theory"),
    "PASSPORT.json": ("missing.json", "e.toml", "run/result.json", "run"),
    "SUITE": ("bookworm",),
    "TEXT": ("no-such-cell", "5001", "→"),
    "CAPTURE": ("d.pcapng", "d.pcapng", "ping.txt", "e.toml", "missing", "run"),
    "[ALGORITHM...]": ("reno", "bbr", "cubic:beta=0.6", "rneo", "reno*2", ""),
    "NAMES": ("a,b",),
    "EXPERIMENT": ("e.toml", "e.toml", "missing.toml", "no-such-experiment", "run", "mine.cc", "varied.toml"),
    "[EXPERIMENT]": ("e.toml", "varied.toml"),
    "ALGORITHM...": (
        "reno",
        "cubic",
        "vegas",
        "bbr3",
        "prague",
        "mine",
        "rneo",
        "reno*2",
        "cubic+50ms",
        "reno@30ms",
        "*",
    ),
    "RUN": ("run", "run/runs/000-cubic", "missing", "e.toml"),
    "FILE...": ("d.pcapng", "ping.txt", "e.toml", "missing", "run", "mine.cc"),
    "FOLDER|FILE...": ("run", "ping.txt", "missing", "e.toml", "d.pcapng"),
    "[FILE...]": ("router.sh", "ping.txt", "d.pcapng", "missing", "e.toml"),
    "[ALGORITHM... | EXPERIMENT | RUN]": ("reno", "cubic", "e.toml", "run", "rneo", "bbr3"),
    "SCRIPT": (str(ROOT / "conformance/sack-not-agreed.script"), "missing.script", "e.toml"),
    "VERSION": ("6.1",),
    "PATH": ("missing", "e.toml", "run"),
    "topic": ("queues", "paths", "units", "nothing", "compare"),
    "CASE": ("no-such-case",),
    "CELL": ("no-such-cell",),
    "LAB.toml": ("missing.toml", "e.toml"),
    "ADDRESS": ("x",),
    "SEED": ("7", "1", "-1", "x", "1.5", "9" * 30),
    "WORDS": ("loss 1%", "delay 5ms 1ms", "loss", "x", ""),
    "FILE.rs": ("missing.rs", "mine.cc"),
    "COMMAND": ("true", "missing-command"),
    "PATH[:PLACE]": ("ping.txt", "missing:/etc/x"),
    "DATE": ("2026-11-26", "yesterday"),
    "[ARGUMENT]...": ("eth0", "1"),
    "[TOPIC]": ("queues", "paths", "nothing"),
    "KERNEL...": ("6.1", "6.12", "9.9"),
}


@functools.cache
def commands() -> list[tuple[tuple[str, ...], Any]]:
    """Each command with its words."""
    root: Any = typer.main.get_command(app)
    return [(tuple(words), command) for words, command in reference.commands(root, [])]


@functools.cache
def found() -> Path:
    """A folder as each command finds it, with the output of a run and a capture."""
    folder = Path(tempfile.mkdtemp(prefix="dragstrip-words-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    texts = {
        "e.toml": EXPERIMENT.replace("1s", "200ms"),
        "varied.toml": EXPERIMENT.replace("1s", "200ms") + '[vary]\n"flows.cc" = ["reno", "cubic"]\n',
        "ping.txt": PING,
        "mine.cc": PROGRAM,
        "mine.txt": PROGRAM,
        "router.sh": "tc qdisc add dev eth0 root fq_codel\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    words = ("run", "e.toml", "--out", "run", "--no-report", "--capture", "d")
    check_answer(dragstrip(folder, *words), 0)
    shutil.copy(next((folder / "run").rglob("d.pcapng")), folder)
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return folder


def value(dice: random.Random, metavar: str, careful: bool) -> str:
    """A value for an option or an argument: one of its own, of another, or odd; with care one of its right ones."""
    if careful:
        return dice.choice((VALUES | {"QUEUE": ("1bdp", "fq_codel")})[metavar][:2])
    draw = dice.random()
    if metavar == "QUEUE" and draw < 0.9:
        return dice.choice([valid(dice), "1bdp", "50ms", "red", "bfifo limit 30kb", "bfifo 30kb"])
    if draw < 0.85 and metavar in VALUES:
        own = VALUES[metavar]
        return own[0] if dice.random() < 0.5 else dice.choice(own)
    if draw < 0.95:
        return dice.choice(VALUES[dice.choice(list(VALUES))])
    return dice.choice([*ODD, "\udcff", "-", "--", "/", "../x"])


def arguments(dice: random.Random, command: Any, careful: bool) -> list[str]:
    """What the command's own arguments may be."""
    made: list[str] = []
    for part in command.params:
        if part.param_type_name == "argument":
            several = dice.choice([1, 1, 1, 2, 3]) if part.nargs == -1 else 1
            if careful or dice.random() < 0.9:
                made += [value(dice, part.metavar or part.name, careful) for _ in range(several)]
    return made


def options(dice: random.Random, command: Any, careful: bool) -> list[list[str]]:
    """Some of the command's options."""
    known = [
        part for part in command.params if part.param_type_name == "option" and part.opts[0] not in LEFT_OUT
    ]
    made: list[list[str]] = []
    for part in dice.sample(known, min(len(known), dice.choice([0, 0, 1, 1, 2, 3, 5]))):
        name = dice.choice([*part.opts, *part.secondary_opts])
        if part.is_flag or (not careful and dice.random() < 0.02):  # or without its value
            made.append([name])
        elif dice.random() < 0.2:
            made.append([f"{name}={value(dice, part.metavar, careful)}"])
        else:
            made.append([name, value(dice, part.metavar, careful)])
    return made


def line(dice: random.Random) -> tuple[list[str], str]:
    """The words of a command line, and what is known of it: `refused`, `help` or nothing."""
    weights = [WEIGHTS.get(words[0], 2) for words, _ in commands()]
    words, command = dice.choices(commands(), weights)[0]
    name, careful = " ".join(words), dice.random() < 0.5
    known = options(dice, command, careful)
    if name in ("compare", "play") and (careful or dice.random() < 0.95):
        path = {"--rate": "2mbit", "--rtt": "20ms", "--queue": "bfifo limit 30kb"}
        if name == "compare":
            path["--out"] = "out"
        given = {option[0].partition("=")[0] for option in known}
        known += [[option, worth] for option, worth in path.items() if option not in given]
    if name in ("compare", "run", "play", "sweep") and not any(
        it[0].startswith("--duration") for it in known
    ):
        known.append(["--duration", "200ms"])
    if name == "passport" and not any(it[0].startswith("--only") for it in known):
        known.append(["--only", "theory"])  # a whole one takes half a minute
    if name in ("run", "sweep", "inspect", "passport") and dice.random() < 0.5:
        known.append(["--out", "out"])
    groups = [*known, *([word] for word in arguments(dice, command, careful))]
    dice.shuffle(groups)
    rest = [word for group in groups for word in group]
    draw = dice.uniform(0.45, 1) if careful else dice.random()
    if any(name.startswith(it) for it in NOT_RUN) and draw >= 0.3:
        draw = 0.2
    if draw < 0.06:
        return [*words, "--help"], "help"
    if draw < 0.3 and (draw >= 0.1 or not any(name.startswith(it) for it in NOT_RUN)):
        return [*words, UNKNOWN, *rest], "refused"
    if any(name.startswith(it) for it in NOT_RUN):
        return [*words[:-1], words[-1] + "x", *rest], "refused"
    if draw < 0.35:
        return [words[0].upper(), *words[1:], *rest], "refused"
    if draw < 0.45 and rest:  # a word too few, one doubled
        place = dice.randrange(len(rest))
        rest = (
            [*rest[:place], *rest[place + 1 :]]
            if dice.random() < 0.5
            else [*rest[:place], rest[place], *rest[place:]]
        )
    return [*words, *rest], ""


def trial(number: int, folder: Path) -> str:
    """Runs the command line with this number."""
    dice = random.Random(number)
    words, known = line(dice)
    shutil.copytree(found(), folder, dirs_exist_ok=True)
    before = written(folder)
    apart = (
        words[0] in ("sweep", "passport")
        or any(word.partition("=")[0] in APART for word in words)
        or "\0" in "".join(words)
    )
    ended = dragstrip(folder, *words) if apart else in_process(folder, *words)
    check_answer(ended, 0, 1, 2, *([3] if words[0] == "passport" else []))
    assert not leftovers(folder), f"{leftovers(folder)} stay: {ended}"
    if known:
        assert ended.status == {"help": 0, "refused": 2}[known], f"expected to be {known}: {ended}"
    if ended.status == 2:
        usage = "Usage: " in ended.stdout + ended.stderr
        assert usage or not ended.stdout, f"refused, and printed {ended.stdout[:300]}: {ended}"
        after = written(folder)
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        changed = [name for name in changed if not name.startswith("cache/")]
        assert not changed, f"refused, and changed {changed}: {ended}"
    return f"{words[0]} {ended.status}" if known == "" else known


if __name__ == "__main__":
    main("words", trial, count=1_500, sample=25, about=__doc__)
