"""What people type wrong, one row a case: one line on standard error, the right status, nothing left behind."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dragstrip import cli

SHORT = "--rate 10mbit --rtt 40ms"
PATH = f"{SHORT} --queue 'bfifo limit 200kb'"
GOOD = 'duration = "1s"\n[path]\nrate = "10mbit"\nrtt = "40ms"\nqueue = "bfifo limit 200kb"\n'
ONE = f'{GOOD}[[flows]]\ncc = "reno"\n'
"""An experiment that runs."""
OF_MEDIUM = ONE.replace('rate = "10mbit"', 'medium = "{0}"') + '[media.{0}]\nkind = "{0}"\n'
"""One whose medium is called as its kind."""
REST = "on ack { } on loss { ssthresh = 2 }"
"""An algorithm as a text."""
BYTE = "\udcff"
"""A byte that is not UTF-8, as Python hands it over from a command line."""


class Case(NamedTuple):
    line: str
    message: str
    text: str | None = None
    """Of a file mine.toml."""
    status: int = 2


USAGE = [
    Case("race", "No such command 'race'"),
    Case("Compare", "No such command"),
    Case("--vesion", "No such option"),
    Case("-x", "No such option"),
    Case("play --rate 10mbit", "ALGORITHM"),
    Case("play linux-vegas-1999/lan --rate 10mbit", "--rate"),
    Case("play linux-vegas-1999/lam", "EXPERIMENT"),
    Case("play --port 80", "--port"),
    Case("play --port 65536 --serve", "--port"),
    Case(f"play {PATH} cubik", "ALGORITHM"),
    Case("compare --nope", "--nope"),
    Case(f"compare {PATH} --queue codel reno", "--queue: got 2 values, expected one"),
    Case("kernel fetch --suite trixie --suite bookworm", "--suite: got 2 values, expected one"),
    Case(f"compare {PATH}", "ALGORITHM"),
    Case("compare --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate 10mbit --queue 'bfifo limit 200kb' reno", "--rtt"),
    Case(f"compare {PATH.replace('bfifo limit 200kb', 'pfifo 100')} reno", 'expected "pfifo limit 100"'),
    Case(f"compare {PATH.replace('bfifo limit 200kb', 'bfifo 200kb')} reno", 'expected "bfifo limit 200kb"'),
    Case(f"compare {PATH.replace('bfifo limit 200kb', 'droptail')} reno", 'did you mean "pfifo"?'),
    Case("compare --rate 10mbit --delay 20ms reno", "did you mean --rtt TIME"),
    Case("compare --bandwidth 10mbit --rtt 20ms reno", "did you mean --rate?"),
    Case("compare --rate 10mbit --rttt 20ms reno", "No such option: --rttt; did you mean --rtt?"),
    Case(f"compare {PATH} cubic:bta=0.8", 'did you mean "beta"?'),
    Case(
        f"compare {PATH} cubic:beta=2", "a whole number from 512 to 1023, in 1/1024: 0.5 to 0.999 (cubic)\n"
    ),
    Case(f"compare {PATH} BBR", 'did you mean "bbr"?'),
    Case("compare --path office reno", 'did you mean "office Wi-Fi"?'),
    Case(f"compare {PATH} --capture s1 d mine", "--capture takes the words after it (s1 d mine)"),
    Case("run mine.toml", "mine.toml:3: is not TOML: a stands twice, first in line 2", "\na = 1\na = 2\n"),
    Case("run mine.toml", "a list of tables: [[flows]] instead of [flows]", '[flows]\ncc = "reno"\n'),
    Case(f"compare {PATH} bbr4", 'did you mean "bbr2"?'),
    Case("compare --rate 10Mbps --rtt 40ms reno", "10Mbit (bits per second) or 10mbps (bytes per second"),
    Case("compare --rate 1e30mbit --rtt 40ms reno", "a rate above zero and up to 10tbit"),
    Case("compare --rate 10mbit --rtt 1e30s reno", "up to 17000s"),
    Case("compare reno", "medium, a trace or a path; and --rtt: is missing"),
    Case(
        "compare --rate 10 --rtt 4 --loss 3 rneo cubik reno",
        '"4", expected a time with its unit (s, ms, us or ns), such as 40ms; and --loss: got "3"',
    ),
    Case(
        "compare --rate 10 --rtt 4 --loss 3 rneo cubik reno",
        'did you mean "reno"?; and ALGORITHM: got "cubik"',
    ),
    Case("play --rate 10 --rtt 4 reno", '(bytes); and --rtt: got "4"'),
    Case("compare --rate", "--rate"),
    Case(f"compare {PATH} --change 20s reno", "--change"),
    Case(f"compare {PATH} --change rate=2mbit reno", "--change"),
    Case(f"compare {PATH} --change '20s rat=2mbit' reno", "--change"),
    Case(f"compare {PATH} --change '20s rate=2' reno", "--change"),
    Case(f"compare {PATH} --change '20s rate=2mbit rate=3mbit' reno", "--change"),
    Case(f"compare {PATH} --change '30s rate=2mbit' reno", "a time before the run's end at 30s"),
    Case(f"compare {PATH} --change '20s limit=1b' reno", "--change"),
    Case(f"compare {PATH} --change '20s loss=120%' reno", "--change"),
    Case(f"compare {PATH} --change '20s state=sideways' reno", "--change"),
    Case(f"compare {PATH} --change '20s rate=2mbit link=r-x' reno", "the name of a link"),
    Case("compare --medium wifi-n --rtt 1ms --queue sfq --change '9s rate=1mbit' reno", "no rate of its own"),
    Case("compare --rate 10mbit --rtt 40ms --queue sfq --change '2s limit=20' reno", "no change operation"),
    Case("compare --rate 10mbit --rtt 40ms --queue cake --change '2s limit=1kb' reno", "at least 2.25kb"),
    Case("compare --rate 10mbit --rtt 40ms --queue cake --change '2s limit=20' reno", "--change"),
    Case("run mine.toml", "a trace of values that can be read", f'{ONE}[[changes]]\nfile = "x.csv"\n'),
    Case("run mine.toml", "such as", f'{ONE}[[changes]]\nrate = "1mbit"\n'),
    Case(f"compare {PATH} --flows reno", "--flows"),
    Case(f"compare {PATH} --flows 1.5 reno", "--flows"),
    Case(f"compare {PATH} --flows x reno", "--flows"),
    Case(f"compare {PATH} --seed -1 reno", "--seed"),
    Case(f"compare {PATH} --seed x reno", "--seed"),
    Case(f"compare {PATH} --workers 0 reno", "--workers"),
    Case(f"compare {PATH} --workers -1 reno", "--workers"),
    Case(f"compare {PATH} --repeat 0 reno", "--repeat"),
    Case(f"compare {PATH} --together=maybe reno", "--together"),
    Case("list extra", "extra"),
    Case("show", "Missing argument 'EXPERIMENT'"),
    Case("show a b", "b"),
    Case("run", "Missing argument 'EXPERIMENT'"),
    Case("report", "Missing argument 'FOLDER|FILE...'"),
    Case("doctor extra", "extra"),
    Case("kernel nope", "nope"),
    Case("kernel use", "Missing argument 'PATH'"),
    Case("new-algorithm", "Missing argument 'NAME'"),
    Case("new-qdisc", "Missing argument 'NAME'"),
    Case("validate explain", "Missing argument 'CASE'"),
    Case("validate record", "Missing argument 'FOLDER'"),
    Case("validate bands", "Missing argument 'FILE'"),
]

EMPTY = [
    Case(f"compare {PATH} --out '' reno", "--out: got ''"),
    Case(f"compare {PATH} --out= reno", "--out: got ''"),
    Case(f"compare {PATH} --out ' ' reno", "--out: got ' '"),
    Case("compare --rate '' --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate: got ''"),
    Case(f"compare {PATH} ''", "got ''"),
    Case(f"compare {PATH} --loss '' reno", "--loss: got ''"),
    Case("run '' ", "got ''"),
    Case("show ''", "got ''"),
    Case("report ''", "got ''"),
    Case("sweep ''", "got ''"),
    Case("sweep x --out ''", "--out: got ''"),
    Case("sweep --replay abc --from ''", "--from: got ''"),
    Case("run caia-110729a/adsl1 --out ''", "--out: got ''"),
    Case("validate --out ''", "--out: got ''"),
    Case("validate --grid ''", "--grid: got ''"),
    Case("validate --write-docs ''", "--write-docs: got ''"),
    Case("validate record ''", "got ''"),
    Case("validate bands ''", "got ''"),
    Case("kernel use ''", "got ''"),
    Case("kernel run", "Missing argument 'COMMAND...'"),
    Case("kernel run --time-limit 0s true", "--time-limit: got '0s', expected a time above zero"),
    Case("kernel run --nope true", "--nope"),
    Case("kernel fetch ''", "got ''"),
    Case("kernel fetch --suite 'a b'", "--suite: got 'a b', expected a suite of Debian's archive, such as"),
    Case("conform ''", "got ''"),
    Case("new-algorithm ''", "got ''"),
    Case(
        "kernel fetch nonsense", "VERSION: got 'nonsense', expected a release or its beginning, such as 6.12"
    ),
    Case("new-algorithm Swift", "NAME: got 'Swift', expected lowercase letters"),
    Case("new-algorithm my--cc", "single - or _ between them"),
    Case("new-algorithm a-name-far-too-long", "at most 15 in all"),
    Case("new-algorithm cubic", "NAME: got 'cubic', expected another name: this one exists already"),
    Case("new-algorithm exp --bpf", "this one exists already"),
    Case("new-algorithm match", "another name: this is a word of the language"),
    Case("new-qdisc my-red", "NAME: got 'my-red', expected a discipline's name"),
    Case("new-qdisc pfifo", "this one exists already"),
]

QUANTITIES = [
    Case("compare --rate 10 --rtt 40ms --queue 'bfifo limit 200kb' reno", '--rate: got "10"'),
    Case("compare --rate 0mbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "above zero"),
    Case("compare --rate -1mbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate 1e30bit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate 10mbits --rtt 40ms --queue 'bfifo limit 200kb' reno", '--rate: got "10mbits"'),
    Case("compare --rate 10Mb --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate nan --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate infmbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate '10 m bit' --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate ½mbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate"),
    Case("compare --rate 10mbit --rtt 40 --queue 'bfifo limit 200kb' reno", '--rtt: got "40"'),
    Case("compare --rate 10mbit --rtt -40ms --queue 'bfifo limit 200kb' reno", "--rtt"),
    Case("compare --rate 10mbit --rtt 40m --queue 'bfifo limit 200kb' reno", '--rtt: got "40m"'),
    Case("compare --rate 10mbit --rtt 1e99s --queue 'bfifo limit 200kb' reno", "--rtt"),
    Case("compare --rate 10mbit --rtt 40ms,80ms --queue 'bfifo limit 200kb' reno", "--rtt"),
    Case(f"compare {PATH} --duration 30 reno", '--duration: got "30"'),
    Case(f"compare {PATH} --duration 0s reno", "--duration"),
    Case(f"compare {PATH} --duration -5s reno", "--duration"),
    Case(f"compare {PATH} --duration 99999s reno", "17000s"),
    Case(f"compare {PATH} --duration 5min reno", "--duration"),
    Case(
        "compare --rate 10tbit --rtt 40ms --queue 'bfifo limit 200kb' --duration 16000s reno",
        "a report reads at most",
    ),
    Case(f"compare {PATH} --loss 1 reno", '--loss: got "1"'),
    Case(f"compare {PATH} --loss 101% reno", "--loss"),
    Case(f"compare {PATH} --loss -1% reno", "--loss"),
    Case(f"compare {PATH} --loss nan% reno", "--loss"),
    Case(f"compare {PATH} --jitter 5 reno", '--jitter: got "5"'),
    Case(f"compare {PATH} --jitter -5ms reno", "--jitter"),
    Case(f"compare {PATH} --up-rate 5 reno", '--up-rate: got "5"'),
    Case(f"compare {PATH} --up-rate 0bit reno", "--up-rate"),
]

QUEUES = [
    Case("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 1000b' reno", "1514"),
    Case("compare --rate 10mbit --rtt 40ms --queue red reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'bfifo 200kb' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'pfifo limit 0' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'pfifo limit -1' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'fq_code' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'fq_codel target 5' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'fq_codel limit 9999999999999999999' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'cake nat' reno", "does not model address translation"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'cake autorate-ingress' reno", "bandwidth RATE"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'cake bandwith 5mbit' reno", "bandwidth"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'cake overhead 300' reno", "at most 256"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'cake memlimit 1kb' reno", "at least 2.25kb"),
    Case("compare --rate 10mbit --rtt 40ms --queue cake --gso whole reno", "the cake of"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'sfb increment 5%' reno", "a plain number from 0 to 1"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'sfb rehash 600s' reno", "a whole number"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'sfb db 4294967295' reno", "at most"),
    Case("compare --rate 10mbit --rtt 40ms --queue 'police burst 9kb' reno", 'such as "rate 1mbit"'),
    Case("compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit' reno", 'such as "burst 15kb"'),
    Case("compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit burst 1kb' reno", "at least 1514"),
    Case(
        "compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit burst 9kb mtu 1500' reno",
        "at least 1514",
    ),
    Case("compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit burst 9kb peakrate 2mbit' reno", "mtu"),
    Case(
        "compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit burst 9kb avrate 1mbit' reno", "avrate"
    ),
    Case(
        "compare --rate 10mbit --rtt 40ms --queue 'police rate 1mbit burst 9kb leaf noqueue' reno",
        "such as pfifo limit 1000",
    ),
    Case("compare --rate 10mbit --rtt 40ms --queue 'bfifo limit 200kb; rm -rf' reno", "--queue"),
    Case("compare --rate 10mbit --rtt 40ms --queue '[/a]' reno", "--queue"),
    Case(f"compare {PATH} --up-queue x reno", "--up-queue"),
]

NAMES = [
    Case(f"compare {PATH} rneo", 'did you mean "reno"'),
    Case(f"compare {PATH} cubic+5", 'ALGORITHM: got "cubic+5", expected a start behind +, such as bbr+5s'),
    Case(
        f"compare {PATH} cubic:beta=7",
        "got beta=7, expected a whole number from 512 to 1023, in 1/1024: 0.5 to 0.999 (cubic)",
    ),
    Case(f"compare {PATH} exp:factor=1", "got factor=1, expected a whole number from 2 to 16 (exp)"),
    Case(f"compare {PATH} exp:nope=1", "nope"),
    Case(f"compare {PATH} RENO", "ALGORITHM"),
    Case(f"compare {PATH} reno,cubic", "ALGORITHM"),
    Case(f"compare {PATH} 'reno cubic'", "ALGORITHM"),
    Case(f"compare {PATH} ../reno", "ALGORITHM"),
    Case(f"compare {PATH} '[red]reno[/red]'", 'ALGORITHM: got "[red]reno[/red]"'),
    Case(f"compare {PATH} r{BYTE}no", "ALGORITHM: got 'r\\xffno'"),
    Case(f"compare --rate 10mbit --rtt 40ms --queue 'bfifo{BYTE}' reno", "--queue: got"),
    Case(f"compare --rate 1{BYTE}mbit --rtt 40ms --queue 'bfifo limit 200kb' reno", "--rate: got"),
    Case(f"compare {PATH} --sysctl net.ipv4.tcp_s{BYTE}=1 reno", "--sysctl"),
    Case(f"show r{BYTE}", "dragstrip list"),
    Case(f"run r{BYTE}", "dragstrip list"),
    Case(f"sweep r{BYTE}", "dragstrip list"),
    Case(f"report r{BYTE}", "FOLDER"),
    Case(f"conform r{BYTE}", "r\\xff"),
    Case(f"compare {PATH} --gso maybe reno", "--gso"),
    Case(f"compare {PATH} --link string reno", "--link"),
    Case(f"compare {PATH} --engine ns3 reno", "--engine"),
    Case(f"compare {PATH} --engine vm,sim reno", "--engine"),
    Case(f"compare {PATH} --engine sim,sim reno", "--engine"),
    Case(f"compare {PATH} --engine sim,vm,sim reno", "--engine"),
    Case(f"compare {PATH} --engine , reno", "--engine"),
    Case(f"compare {PATH} --engine vm rneo", 'did you mean "reno"'),
    Case(f"compare {PATH} --engine-option kernel reno", "NAME=VALUE"),
    Case(f"compare {PATH} --engine-option kernel=x reno", "--engine-option kernel"),
    Case(f"compare {PATH} --engine-option nope=x reno", "--engine-option nope"),
    Case(f"compare {PATH} --sysctl tcp_sack reno", "KEY=VALUE"),
    Case(f"compare {PATH} --sysctl =1 reno", "KEY=VALUE"),
    Case(f"compare {PATH} --sysctl net.ipv4.tcp_sak=0 reno", 'did you mean "net.ipv4.tcp_sack"'),
    Case(f"compare {PATH} --sysctl net.ipv4.tcp_sack=maybe reno", "--sysctl"),
    Case(f"compare {PATH} --load mine.bpf.c reno", "expected engine vm, netns or ssh with it"),
    Case(f"compare {PATH} --engine vm --load mine.bpf.c reno", "expected a C file"),
    Case(f"compare {PATH} --program none.cc none", "none.cc: no such file"),
    Case(
        f"compare {PATH} --program mine.toml mine",
        'mine.toml:1:1: got "duration", expected on, state or param',
        ONE,
    ),
    Case(
        f"compare {PATH} --program mine.toml mine",
        'mine.toml:2:12: got "cwn", expected a name',
        "on ack {\n    cwnd = cwn + 1\n}\n",
    ),
    Case(
        f"compare {PATH} --program mine.toml reno",
        "--program: got mine, which nothing names, expected an ALGORITHM mine",
        REST,
    ),
    Case(f"compare {PATH} --program mine.toml --program mine.toml mine", "another name", REST),
    Case(
        f"compare {PATH} --program mine.toml mine:keep=1",
        "expected no parameters: the program has no param",
        REST,
    ),
    Case(
        f"compare {PATH} --engine vm --program mine.toml mine",
        "engine vm: programs: got mine, expected none",
        REST,
    ),
    Case(
        f"compare {PATH} --engine netns --program mine.toml mine",
        "engine netns: programs: got mine, expected none",
        REST,
    ),
    Case("compare --program", "--program"),
    Case("play --program mine.toml", "ALGORITHM: is needed beside --program", REST),
    Case(f"play {PATH} --program none.cc none", "none.cc: no such file"),
    Case(
        "run mine.toml",
        'programs.mine: got "cwn" at 1:17, expected a name',
        f'{ONE}[programs]\nmine = "on ack {{ cwnd = cwn }}"\n',
    ),
    Case(
        "run mine.toml",
        "programs.mine: got 'none.cc', expected a program's file",
        f'{ONE}[programs]\nmine = "none.cc"\n',
    ),
    Case(
        "run mine.toml",
        'programs: got the name "reno", expected another name: reno is an algorithm already',
        f'{ONE}[programs]\nreno = "{REST}"\n',
    ),
    Case("sweep mine.toml --vary flows.cc=reno --program none.cc", "none.cc: no such file", ONE),
]

PLACES = [
    Case(f"compare {PATH} --check --out x reno", "--out: got 'x'"),
    Case(f"compare {PATH} --duration 1s --out mine.toml reno", "--out", ONE),
    Case(f"compare {PATH} --duration 1s --out mine.toml/deeper reno", "--out", ONE),
    Case(f"compare {PATH} --duration 1s --out . reno", "--out: got '.'", ONE),
    Case(f"compare {PATH} --duration 1s --out /proc/dragstrip reno", "--out: got '/proc/dragstrip'"),
    Case(f"compare {PATH} --duration 1s --out {'a' * 300} reno", "File name too long"),
    Case(f"compare {PATH} --duration 1s --out {'a/' * 3000} reno", "File name too long"),
    Case("run mine.toml --out mine.toml", "--out", ONE),
    Case("run mine.toml --out /proc/x", "--out", ONE),
    Case("sweep mine.toml --vary seed=1,2 --out x", "use --seed", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --out mine.toml", "--out", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --out mine.toml/x", "mine.toml/x", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --out .", "--out", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --out /proc/x", "/proc/x", ONE, 1),
    Case("validate --out mine.toml", "--out", ONE),
    Case("passport cubic --quick --out /proc/x", "--out: got '/proc/x', expected a folder that can be"),
    Case("validate --write-docs nowhere/page.md", "--write-docs"),
    Case("validate --write-docs .", "--write-docs"),
    Case("validate bands nowhere/bands.json", "FILE"),
    Case("validate record mine.toml", "FOLDER", ONE),
    Case("report nowhere", "nowhere"),
    Case("report .", "result.json"),
    Case("report mine.toml", "mine.toml: is not a capture", ONE),
    Case("report mine.toml .", "is not a capture", ONE),
    Case("report mine.toml mine.toml", "is not a capture", ONE),
    Case("report . --out x", "expected no folder: the report of a run stays in the run's folder"),
    Case("report nowhere .", "nowhere"),
    Case("report . .", "expected the output folder of a run, or a folder of recordings"),
    Case("report /dev/null", "expected a regular file"),
    Case("report . --figures gif", "--figures: got 'gif'"),
    Case(f"compare {PATH} --figures svg, reno", "--figures: got ''"),
    Case(f"compare {PATH} --figures svg --no-report reno", "leave out --no-report"),
    Case("run bu-cs655-2022 --figures svgz", "--figures: got 'svgz'"),
    Case(f"compare {PATH} --medium adsl2 reno", '--medium: got "adsl2", expected no medium beside a rate'),
    Case(
        f"compare {PATH} --trace nowhere.trace reno",
        '--trace: got "nowhere.trace", expected no trace beside a rate',
    ),
    Case(f"compare {PATH} --seed 99999999999999999999999 reno", "--seed"),
    Case(f"compare {PATH} --width 84mm reno", "--width: needs --figures"),
    Case(f"compare {PATH} --figures csv --width 84mm reno", "needs --figures with svg, png or pdf"),
    Case("report . --figures pdf --width 84", "--width: got '84', expected a width from 70mm"),
    Case("run bu-cs655-2022 --figures pdf --width 5mm", "--width: got '5mm'"),
    Case("run bu-cs655-2022 --check", "--check"),
]

EXPERIMENTS = [
    Case("show nonesuch/thing", "dragstrip list"),
    Case("run nonesuch/thing", "dragstrip list"),
    Case("run missing.toml", "missing.toml: no such file"),
    Case("show missing.toml", "missing.toml: no such file"),
    Case("sweep missing.toml", "missing.toml: no such file"),
    Case("run .", "'.'"),
    Case("run /", "'/'"),
    Case("run mine.toml", "mine.toml", ""),
    Case("run mine.toml", "mine.toml", "x"),
    Case("run mine.toml", "mine.toml", "[path\n"),
    Case("run mine.toml", "mine.toml", "a = 1\na = 2\n"),
    Case("run mine.toml", "duration", GOOD.replace('"1s"', "1") + '[[flows]]\ncc = "reno"\n'),
    Case("run mine.toml", "flows", GOOD),
    Case("run mine.toml", "flows", GOOD + "[[flows]]\n"),
    Case("run mine.toml", "cc", GOOD + '[[flows]]\ncc = "rneo"\n'),
    Case("run mine.toml", "cc", GOOD + "[[flows]]\ncc = 3\n"),
    Case("run mine.toml", "cc", GOOD + '[[flows]]\ncc = ["reno"]\n'),
    Case("run mine.toml", "flows", GOOD + "flows = 3\n"),
    Case("run mine.toml", 'did you mean "queue"', ONE.replace("queue", "quue")),
    Case("run mine.toml", 'path.rate: got "10"', ONE.replace("10mbit", "10")),
    Case("run mine.toml", 'path.rtt: got "40"', ONE.replace("40ms", "40")),
    Case("run mine.toml", "path.rate", ONE.replace('"10mbit"', "10")),
    Case("run mine.toml", "path.queue", ONE.replace("bfifo limit", "bfifo limt")),
    Case("run mine.toml", 'flows[0].start: got "5s"', ONE + 'start = "5s"\n'),
    Case("run mine.toml", "flows[0].start", ONE + 'start = "-5s"\n'),
    Case("run mine.toml", "flows[0].stop", ONE + 'stop = "0s"\n'),
    Case("run mine.toml", 'flows[0].stop: got "100ms"', ONE + 'start = "500ms"\nstop = "100ms"\n'),
    Case("run mine.toml", "flows[0].count", ONE + "count = 0\n"),
    Case("run mine.toml", "flows[0].count", ONE + "count = -1\n"),
    Case("run mine.toml", "flows[0].count", ONE + "count = 1.5\n"),
    Case("run mine.toml", "repeat", "repeat = 0\n" + ONE),
    Case("run mine.toml", "repeat", 'repeat = "x"\n' + ONE),
    Case("run mine.toml", "seed", "seed = -1\n" + ONE),
    Case("run mine.toml", "seed", "seed = 1e99\n" + ONE),
    Case("run mine.toml", "seed", "seed = 99999999999999999999\n" + ONE),
    Case("run mine.toml", "engine", 'engine = "ns3"\n' + ONE),
    Case("run mine.toml", "hosts", ONE + '[hosts.nobody]\ngso = "off"\n'),
    Case("run mine.toml", "hosts", ONE + '[hosts."*"]\nprofile = "windows"\n'),
    Case("run mine.toml", "sysctl", ONE + '[hosts."*"]\nsysctl = { "net.ipv4.tcp_sak" = "1" }\n'),
    Case("run mine.toml", "vary", ONE + '[vary]\n"path.rtt" = []\n'),
    Case("run mine.toml", "vary", ONE + '[vary]\n"path.rtt" = 3\n'),
    Case("run mine.toml", "path.rtx", ONE + '[vary]\n"path.rtx" = ["1ms"]\n'),
    Case("run mine.toml", "path.rtt", ONE + '[vary]\n"path.rtt" = ["1ms", "2"]\n'),
    Case("run mine.toml", "cc_options", ONE + "cc_options = { nope = 1 }\n"),
    Case("run mine.toml", "claims", ONE + '[[claims]]\nid = "x"\n'),
    Case("run mine.toml", "probes", ONE + '[[probes]]\nfrom = "nobody"\nto = "d"\n'),
    Case("run mine.toml", "record", ONE + '[record]\ninterval = "0s"\n'),
    Case("run mine.toml --duration 5", '--duration: got "5"', ONE),
    Case("run mine.toml --engine-option kernel=x", "--engine-option kernel: got 'x'", ONE),
    Case("run mine.toml", "media.trace.file: is missing", OF_MEDIUM.format("trace")),
    Case("run mine.toml", "media.adsl.rate: is missing", OF_MEDIUM.format("adsl")),
    Case("run mine.toml", "media.wifi_g.rate: is missing", OF_MEDIUM.format("wifi_g")),
    Case("run mine.toml", "media.trace.ring: is not a known field", OF_MEDIUM.format("trace") + "ring = 3\n"),
    Case("run mine.toml --duration 0s", "duration", ONE),
    Case("run mine.toml --repeat 0", "repeat", ONE),
    Case("run mine.toml --seed -1", "seed", ONE),
    Case("run mine.toml --engine ns3", "engine", ONE),
    Case("run mine.toml --load x.c", "load", ONE),
    Case("run mine.toml --engine vm --load x.c", "load", ONE),
    Case("run mine.toml --workers 0", "--workers", ONE),
    Case("show mine.toml", "cc", GOOD + '[[flows]]\ncc = "rneo"\n'),
]

SWEEPS = [
    Case("sweep", "EXPERIMENT"),
    Case("sweep mine.toml --vary path.rtt", "PATH=VALUES", ONE),
    Case("sweep mine.toml --vary =1", "PATH=VALUES", ONE),
    Case("sweep mine.toml --vary path.rtt=,", "empty", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,1ms", "every value once", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2", "path.rtt: got 2", ONE),
    Case("sweep mine.toml --vary path.nope=1,2", "path.nope", ONE),
    Case("sweep mine.toml --vary nope=1,2", "nope", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2", "two quantities of one kind", ONE),
    Case("sweep mine.toml --vary path.rtt=2ms..1ms:3", "from low to high", ONE),
    Case("sweep mine.toml --vary path.rtt=0ms..1ms:log:3", "above zero", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:exp:3", "LOW..HIGH", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:log:0", "LOW..HIGH", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:log", "--sample", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:lin:1000000000", "at most 100,000 values", ONE),
    Case(f"sweep mine.toml --vary path.rtt=1ms..2ms:lin:{'9' * 5000}", "at most 100,000 values", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:lin:²", "LOW..HIGH", ONE),
    Case(
        "sweep mine.toml --vary path.rtt=1ms..2s:lin:50000 --vary path.rate=1mbit..1gbit:lin:50000",
        "at most 10,000,000 runs",
        ONE,
    ),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --repeat 1000000000", "at most 10,000,000 runs", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:log --sample lhs:1000000000", "at most 100,000", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:log --sample lhs:0", "lhs:N", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms..2ms:log --sample sobol:5", "lhs:N", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms,2ms --sample lhs:5", "--sample", ONE),
    Case("sweep mine.toml --vary path.rtt=1ms --vary path.rtt=2ms", "each field once", ONE),
    Case("sweep mine.toml --vary flow.cc=reno --vary flows.cc=cubic", "each field once", ONE),
    Case("sweep mine.toml --vary flow.cc=reno,rneo", "rneo", ONE),
    Case(f"sweep mine.toml --vary flow.cc=reno,r{BYTE}", "UTF-8", ONE),
    Case("sweep mine.toml --vary flow.cc=reno,cubic --competitor bbr", "--competitor", ONE),
    Case("sweep mine.toml --competitor bbr", "--competitor", ONE),
    Case("sweep mine.toml --time-limit 0s", "--time-limit: got '0s', expected a time above zero", ONE),
    Case("sweep mine.toml --time-limit 5", "--time-limit: got '5'", ONE),
    Case("sweep mine.toml --time-limit -5s", "--time-limit", ONE),
    Case("sweep mine.toml --memory-limit 1mb", "--memory-limit", ONE),
    Case("sweep mine.toml --memory-limit x", "--memory-limit", ONE),
    Case("sweep mine.toml --shard 0/3", "--shard", ONE),
    Case("sweep mine.toml --shard 4/3", "--shard", ONE),
    Case("sweep mine.toml --shard ²/3", "--shard", ONE),
    Case("sweep mine.toml --shard 1", "--shard", ONE),
    Case("sweep mine.toml --shard 1/0", "--shard", ONE),
    Case("sweep mine.toml --repeat 0", "--repeat", ONE),
    Case("sweep mine.toml --engine sim,vm", "one engine", ONE),
    Case("sweep mine.toml --engine x", "engine", ONE),
    Case("sweep mine.toml --duration 5", "duration", ONE),
    Case("sweep mine.toml --on nowhere", "--on", ONE),
    Case("sweep mine.toml --on ftp://x:1", "--on", ONE),
    Case("sweep --replay abc", "--from"),
    Case("sweep --replay abc --from nowhere", "--replay: got 'abc'"),
    Case("sweep --replay ../.. --from .", "--replay"),
    Case("sweep mine.toml --vary duration=1,2", "duration", ONE),
]

OTHERS = [
    Case("validate nonesuch/thing", "dragstrip list"),
    Case("validate bu-cs655-2022 --only nonesuch", "--only: got 'nonesuch'"),
    Case("validate bu-cs655-2022 --set nonesuch", "PATH=VALUE"),
    Case("validate bu-cs655-2022 --set nonesuch=1", "nonesuch"),
    Case("validate bu-cs655-2022 --grid x.toml", "--grid: is for the grid of stored recordings"),
    Case("validate bu-cs655-2022 --duration 3", '--duration: got "3"'),
    Case("validate --set a=1", "--set: is for runs of an EXPERIMENT"),
    Case("validate --repeat 2", "--repeat: is for runs of an EXPERIMENT"),
    Case("validate --repeat 0", "--repeat"),
    Case("validate --duration 3s", "--duration: is for runs of an EXPERIMENT"),
    Case("kernel lst", "Did you mean 'list'"),
    Case("kernel list extra", "extra"),
    Case("kernel compare", "KERNEL"),
    Case("kernel compare 6.1", "two kernels or more"),
    Case("kernel compare 6.1 2.4", "the beginning of one of"),
    Case("kernel fetch --nope", "--nope"),
    Case("help nonesuch", "a topic"),
    Case("validate --grid nowhere.toml", "nowhere.toml"),
    Case("validate --grid mine.toml", "mine.toml", "x"),
    Case("validate --grid mine.toml", "mine.toml", ONE),
    Case("validate --recordings nowhere", "nowhere"),
    Case("validate --only nonesuch", "nonesuch"),
    Case("validate --load exp.bpf.c", "--load: is for runs of an EXPERIMENT"),
    Case("validate explain nonesuch", "nonesuch"),
    Case("validate record out nonesuch", "nonesuch"),
    Case("validate record out --seeds 0", "--seeds"),
    Case("conform nonesuch", "nonesuch"),
    Case("conform mine.toml", "mine.toml", "x"),
    Case("conform .", "is a folder"),
    Case("conform --engine nope", "--engine"),
    Case("conform mine.toml", "need a line: needs accurate ecn", "# t\n0 connect\n0 > syn ace 7\n"),
    Case(
        f"compare {PATH} --engine vm --accurate-ecn reno",
        "from 0 to 2: accurate ECN (RFC 9768) can be set in Linux",
    ),
    Case(f"compare {SHORT} --queue dualpi2 --engine vm reno", "dualpi2 since 6.17"),
    Case(f"compare {SHORT} --queue dualpi2 --engine sim,vm reno", "queue: got dualpi2"),
    Case(f"compare {PATH} --sysctl net.ipv4.tcp_ecn=6 reno", "a whole number from 0 to 5"),
    Case("attack", "ALGORITHM: is missing; or --rerun FOLDER"),
    Case("attack rneo", "ALGORITHM: got 'rneo'"),
    Case("attack 'reno*2'", "an algorithm with its options alone"),
    Case("attack reno --goal stal", "--goal: got 'stal'"),
    Case("attack reno --with cros", "--with: got 'cros'"),
    Case("attack reno --goal stall --with rtt", "which needs two flows"),
    Case("attack reno --time 5", "--time: got '5'"),
    Case("attack reno --time 5s --evaluations 50", "--evaluations: got 50, expected none beside --time"),
    Case("attack reno --evaluations 3", "--evaluations: got 3, expected at least"),
    Case("attack reno --rate 10", "--rate: got '10'"),
    Case("attack reno --rtt 0ms", "--rtt: got '0ms', expected more than zero"),
    Case("attack reno --goal starvation --other-rtt 5", "--other-rtt: got '5'"),
    Case(
        "attack reno --goal stall --other-rtt 80ms",
        "starvation or neighbour beside --other-rtt, which needs two",
    ),
    Case("attack --rerun . --other-rtt 80ms", "--other-rtt: is not for --rerun"),
    Case("attack reno --queue droptail", "--queue: got 'droptail'"),
    Case("attack reno --duration 1s", "--duration: got '1s', expected at least 2s"),
    Case("attack reno --out mine.toml", "--out: got 'mine.toml'", "here already"),
    Case("attack --rerun nonesuch", "--rerun: got 'nonesuch', expected a folder with finds"),
    Case("attack reno --rerun .", "ALGORITHM: is not for --rerun"),
    Case("diagnose", "FILE: a file, or a path: --path NAME, or --rate RATE with --rtt TIME"),
    Case("diagnose --rate 10mbit", "FILE: a file, or a path"),
    Case("diagnose nonesuch.pcap", "nonesuch.pcap: no such file"),
    Case("diagnose mine.toml", "mine.toml: is not a capture but", "what is this"),
    Case("diagnose mine.toml", 'mine.toml: line 1: got "limt"', "tc qdisc add dev eth0 root codel limt 9\n"),
    Case("diagnose --path 'home DLS'", "--path: got"),
    Case("diagnose --rate 10 --rtt 40ms", '--rate: got "10"'),
    Case("diagnose --rate 10mbit --rtt 40", '--rtt: got "40"'),
    Case("diagnose --rate 10mbit --rtt 40ms --queue droptail", 'did you mean "pfifo"?'),
    Case("diagnose --rate 10mbit --rtt 40ms --sender-algorithm cubik", 'did you mean "cubic"?'),
    Case("diagnose --rate 10mbit --rtt 40ms --out mine.toml", "--out: got 'mine.toml'", "here already"),
    Case("diagnose --path cable --out ''", "--out: got ''"),
    Case("passport", "ALGORITHM"),
    Case("passport rneo", 'ALGORITHM: got "rneo"'),
    Case("passport bbr*4", "ALGORITHM: got 'bbr*4', expected an algorithm with its options alone"),
    Case("passport reno --only alnoe", 'did you mean "alone"?'),
    Case("passport reno --only alone,,rtt", "--only: got 'alone,,rtt'"),
    Case("passport reno --against nonesuch.json", "nonesuch.json: no such file"),
    Case("passport reno --against mine.toml", "mine.toml", "{}"),
    Case("passport reno --out mine.toml", "--out: got 'mine.toml'", "here already"),
    Case("passport reno --junit nonesuch/rows.xml", "--junit: got 'nonesuch/rows.xml'"),
    Case("passport reno --program nonesuch.cc", "nonesuch.cc: no such file"),
    Case("passport mine --program mine.toml", "mine.toml:1:", 'duration = "1s"\n'),
    Case(
        "passport reno --engine sim,vm",
        "--engine: got 'sim,vm', expected one engine; --beside names a second one",
    ),
    Case("passport reno --beside smi", 'did you mean "sim"?'),
    Case("passport reno --beside sim", "--beside: got 'sim', expected another engine than --engine"),
    Case("passport reno --load nonesuch.bpf.c", "--load: got 'nonesuch.bpf.c'"),
    Case("whatif", "CAPTURE"),
    Case("whatif nonesuch.pcap", "nonesuch.pcap: no such file"),
    Case("whatif mine.toml", "mine.toml: is not a capture but", "what is this"),
    Case("whatif nonesuch.pcap rneo", "ALGORITHM: got 'rneo'"),
    Case("whatif nonesuch.pcap reno*2", "ALGORITHM: got 'reno*2'"),
    Case("whatif nonesuch.pcap cubic:beat=1", "ALGORITHM"),
    Case("whatif nonesuch.pcap --sender-algorithm cubik", 'did you mean "cubic"?'),
    Case("whatif nonesuch.pcap --queue droptail", 'did you mean "pfifo"?'),
    Case("whatif nonesuch.pcap --rtt 40", '--rtt: got "40"'),
    Case("whatif nonesuch.pcap --out mine.toml", "--out: got 'mine.toml'", "here already"),
    Case("identify", "CAPTURE"),
    Case("identify nonesuch.pcap", "nonesuch.pcap: no such file"),
    Case("identify mine.toml", "mine.toml: is not a capture but", "what is this"),
    Case("tc-import", "FILE"),
    Case("tc-import nonesuch.sh", "nonesuch.sh: no such file"),
    Case("tc-import mine.toml", "mine.toml: line 1: got no command of tc", ""),
    Case("tc-import mine.toml", 'mine.toml: line 2: got "wondershaper"', "\nwondershaper eth0 1 2\n"),
    Case(
        "tc-import mine.toml",
        "line 1: got a listing of `tc qdisc show`",
        "qdisc noqueue 0: dev lo root refcnt 2",
    ),
    Case(
        "tc-import mine.toml",
        'did you mean "fq_codel"',
        "tc qdisc add dev x root fq_codle",
    ),
    Case("tc-import mine.toml", "one that the simulator models", "tc qdisc add dev eth0 root mq"),
    Case("tc-import mine.toml", 'line 2: got "limt"', "tc qdisc add dev eth0 root codel \\\n limt 9\n"),
    Case("tc-import mine.toml", 'line 1: got "$IF"', "tc qdisc add dev $IF root sfq"),
    Case("tc-import mine.toml", 'no "dev"', "tc qdisc add root sfq"),
    Case(
        "tc-import mine.toml --set IF",
        "--set: got 'IF', expected NAME=VALUE",
        "tc qdisc add dev $IF root sfq",
    ),
    Case("tc-import mine.toml --set I=eth0", "--set: got 'I'", "tc qdisc add dev eth0 root sfq"),
    Case(
        "tc-import mine.toml --sources nowhere",
        "--sources: got 'nowhere', expected a folder",
        ". ./functions.sh",
    ),
    Case("tc-import mine.toml", 'line 1: got "$IF"', "for i in a; do tc qdisc add dev $IF root sfq; done"),
    Case("tc-import mine.toml", "line 2: got", "tc qdisc add dev a root sfq\nif true; then"),
    Case("kernel use nonesuch", "PATH: got 'nonesuch'"),
    Case("kernel use mine.toml", "bzImage", "x"),
    Case("kernel use .", "vmlinuz"),
    Case("kernel use /dev/null", "PATH"),
    Case("run caia-110729a/adsl1 --load mine.bpf.c", "expected engine vm, netns or ssh with it"),
]

CASES = USAGE + EMPTY + QUANTITIES + QUEUES + NAMES + PLACES + EXPERIMENTS + SWEEPS + OTHERS


def dragstrip(line: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of a command line in this process."""
    monkeypatch.setattr(sys, "argv", ["dragstrip", *shlex.split(line)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: (case.line or "nothing")[:60].replace(BYTE, "?"))
def test_one_line_the_right_status_and_nothing_left(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if case.text is not None:
        (tmp_path / "mine.toml").write_text(case.text)
    status = dragstrip(case.line, monkeypatch)
    out, err = capsys.readouterr()
    assert (status, out) == (case.status, "" if case.message != "Usage" else out)
    if case.message == "Usage":
        return
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert case.message in err
    assert sorted(tmp_path.iterdir()) == ([tmp_path / "mine.toml"] if case.text is not None else [])
    assert case.text is None or (tmp_path / "mine.toml").read_text() == case.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("kernel fetch", "kernels"),
        (f"compare {PATH} --engine vm --duration 1s reno", "engine vm: "),
        ("kernel use 6.1", "PATH: got '6.1'"),
    ],
)
@pytest.mark.parametrize("place", ["/proc/dragstrip", "/dev/null"])
def test_a_cache_that_cannot_be_written(
    line: str,
    message: str,
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):  # asked for nothing before the folder is there
        (tmp_path / tool).write_text("#!/bin/sh\ntouch asked\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DRAGSTRIP_CACHE", place)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert dragstrip(line, monkeypatch) in (1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not list((tmp_path / "here").iterdir())


def test_there_are_enough_of_them() -> None:
    assert len({(case.line, case.text) for case in CASES}) >= 190
