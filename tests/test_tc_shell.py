"""Scripts with a shell's control flow: what they give, what is refused, and that nothing is run or read."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import dragstrip
from dragstrip import cli
from dragstrip.errors import BadInputError
from dragstrip.interop import scripts, shell
from fuzz import shell as fuzz


def commands(script: str, *arguments: str, sources: Path | None = None, **variables: str) -> list[str]:
    inputs = scripts.ScriptInputs(variables, arguments, sources)
    return scripts.printed_commands(script, "router.sh", inputs).splitlines()


def refused(script: str, *arguments: str, **given: str) -> str:
    with pytest.raises(BadInputError) as error:
        scripts.imported(script, "router.sh", scripts.ScriptInputs(given, arguments))
    return str(error.value)


SHAPER = """#!/bin/sh
UPLINK=${UPLINK:-8000}
set -e
shape() {
    local dev="$1"; shift
    tc qdisc del dev $dev root 2>/dev/null || true
    tc qdisc add dev $dev root handle 1: htb default 10
    tc class add dev $dev parent 1: classid 1:10 htb rate $((UPLINK * 95 / 100))kbit
    case $# in
        0) tc qdisc add dev $dev parent 1:10 pfifo ;;
        *) tc qdisc add dev $dev parent 1:10 "$@" ;;
    esac
}
if [ "$UPLINK" -gt 4000 ] && [ -n "$UPLINK" ]; then
    shape eth0 fq_codel limit 600
else
    shape eth0
fi
"""


def test_functions_conditions_and_arithmetic() -> None:
    assert commands(SHAPER) == [
        "tc qdisc del dev eth0 root  # line 6",
        "tc qdisc add dev eth0 root handle 1: htb default 10  # line 7",
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 7600kbit  # line 8",
        "tc qdisc add dev eth0 parent 1:10 fq_codel limit 600  # line 11",
    ]
    assert commands(SHAPER, UPLINK="2000")[2:] == [
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 1900kbit  # line 8",
        "tc qdisc add dev eth0 parent 1:10 pfifo  # line 10",
    ]
    (queue,) = scripts.imported(SHAPER, "router.sh")["queues"]
    assert queue["lines"] == [7, 8, 15]
    assert queue["path"]["rate"] == "7.6mbit"


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("for i in 1 2; do tc qdisc add dev eth$i root fq; done", ["eth1 root fq", "eth2 root fq"]),
        ("for ((i=0; i<2; i++)); do tc qdisc add dev eth$i root fq; done", ["eth0 root fq", "eth1 root fq"]),
        ("A=(a b); for i in ${A[@]} ${#A[@]}; do tc qdisc add dev $i root fq; done", ["a root fq", "b root fq", "2 root fq"]),
        ("tc -batch - <<END\nqdisc add dev a root fq # no\n\nqdisc add dev b root fq\nEND", ["a root fq", "b root fq"]),
        ("echo qdisc add dev a root fq > /tmp/b; tc -b /tmp/b", ["a root fq"]),
        ("printf 'a 1\\nb 2\\n' | while read d n; do tc qdisc add dev $d root pfifo limit $n; done", ["a root pfifo limit 1", "b root pfifo limit 2"]),
        ("x=`expr 9 / 2`; tc qdisc add dev a root pfifo limit $x", ["a root pfifo limit 4"]),
        ("x=$(echo eth0:fq | cut -d: -f2 | tr a-z A-Z); tc qdisc add dev a root $x", ["a root FQ"]),
        ("x=eth0.7; tc qdisc add dev ${x%%.*} root ${x#*.}", ["eth0 root 7"]),
        ('while getopts d:u: o; do case $o in d) D=$OPTARG;; u) U=$OPTARG;; esac; done\ntc qdisc add dev a root $D $U', ["a root 1 2"]),
        ("c='tc qdisc add dev a root fq'; eval \"$c limit 3\"; $c", ["a root fq limit 3", "a root fq"]),
        ("bash -c 'tc qdisc add dev $1 root fq' x eth0", ["eth0 root fq"]),
        ("[[ eth0 == eth* && 3 -lt 4 && ab =~ ^a.$ ]] && tc qdisc add dev a root fq", ["a root fq"]),
        ("TC=$(command -v tc) || exit; $TC qdisc add dev a root fq", ["a root fq"]),
        ("id=$(id -u); [ $id -eq 0 ] || exit 1; tc qdisc add dev a root fq", ["a root fq"]),
        ("add() { tc qdisc add \"$@\"; }\nadd dev a \\\n root fq", ["a root fq"]),
        ("tc qdisc add dev probe$$ root htb; ip link del probe$$; tc qdisc add dev a root fq", ["a root fq"]),
        ("x=$(tc filter show dev a); [ -z \"$x\" ] && tc qdisc add dev a root fq", ["a root fq"]),
        ("modprobe ifb && ip link set ifb0 up && tc qdisc add dev ifb0 root fq", ["ifb0 root fq"]),
        ("set -euo pipefail\ntc qdisc add dev a root fq\nfalse\ntc qdisc add dev b root fq", ["a root fq"]),
    ],
)  # fmt: skip
def test_a_construct_gives_its_commands(script: str, wanted: list[str]) -> None:
    texts = [line.partition("  # ")[0] for line in commands(script, "-d", "1", "-u2")]
    assert [text.partition(" dev ")[2] for text in texts] == wanted


def test_a_wrapper_s_commands_have_the_lines_of_their_words(tmp_path: Path) -> None:
    (tmp_path / "functions.sh").write_text(
        'run() {\n    "$@"\n}\nleaf() {\n    run tc qdisc add dev $1 root fq\n}\n'
    )
    script = ". /usr/lib/functions.sh || exit 1\nrun tc qdisc add dev a root fq\nleaf b\n"
    assert commands(script, sources=tmp_path) == [
        "tc qdisc add dev a root fq  # line 2",
        "tc qdisc add dev b root fq  # line 5 of functions.sh",
    ]
    queues = scripts.imported(script, "router.sh", scripts.ScriptInputs(sources=tmp_path))["queues"]
    assert [queue["lines"] for queue in queues] == [[2], [3]]
    assert "functions.sh" in refused(script)


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        ("R=$(cat /sys/class/net/eth0/speed)\ntc qdisc add dev a root cake bandwidth ${R}mbit", "line 2: got \"$(cat /sys/class/net/eth0/speed)\", expected a value that the script contains, or --set R=VALUE (line 1)"),
        ("if grep -q cake /proc/modules; then\ntc qdisc add dev a root cake\nelse\ntc qdisc add dev a root fq\nfi", "line 1: got \"grep -q cake /proc/modules\", expected --set 'grep -q cake /proc/modules=true' or ...=false"),
        ("tc qdisc add dev $IF root fq", 'line 1: got "$IF", expected a variable that a line before sets, such as IF=eth0, or --set IF=VALUE'),
        ("tc qdisc add dev $1 root fq", "line 1: got \"$1\", expected the script's arguments"),
        ("[ $# -eq 2 ] || exit 1\ntc qdisc add dev $1 root fq", "got no command of tc, expected the script's arguments"),
        ("while :; do sleep 1; done; tc qdisc add dev a root fq", "line 1: got \"more than 200000 steps\""),
        ("f() { f; }; f", "at most 40 calls within each other"),
        ("tc qdisc add dev a root fq\nif true; then", "'fi', which ends the 'if' of line 2"),
        ("tc qdisc add dev a root 'fq", "line 1: got \"'\", expected the quote's end"),
        ("if [ -e /x ]; then f() { tc qdisc add dev a root fq; }; else f() { :; }; fi; f", 'got "[ -e /x ]"'),
        ("tc qdisc add dev a root fq && setup-more a", 'got "setup-more"'),
        ("docker exec r1 tc qdisc add dev a root fq", 'line 1: got "docker"'),
        ("for d in /sys/class/net/*; do tc qdisc add dev $d root fq; done", "--set d=VALUE"),
        ("x=$((1/0)); tc qdisc add dev a root fq", "expected an arithmetic expression"),
        ("tc -batch rules; tc qdisc add dev a root fq", "--sources"),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_refused_with_what_settles_it(script: str, wanted: str) -> None:
    assert wanted in refused(script)


def test_a_given_value_settles_it() -> None:
    script = 'R=$(ethtool eth0 | awk "/Speed/")\nLIMIT=5\ntc qdisc add dev a root pfifo limit $((LIMIT + R))'
    assert "--set R=VALUE" in refused(script)
    assert commands(script, R="10") == ["tc qdisc add dev a root pfifo limit 15  # line 3"]
    assert commands(script, R="10", LIMIT="1") == ["tc qdisc add dev a root pfifo limit 11  # line 3"]
    assert refused(script, R="10", LIMITS="1") == (
        "command line: --set: got 'LIMITS', expected a variable or a command that the script asks for; "
        'did you mean "LIMIT"?'
    )
    script = "if grep -q cake /proc/modules; then tc qdisc add dev a root cake; else tc qdisc add dev a root fq; fi"
    for value, kind in (("true", "cake"), ("false", "fq")):
        given = scripts.settings([f"grep -q cake /proc/modules={value}"])
        assert commands(script, **given) == [f"tc qdisc add dev a root {kind}  # line 1"]


def test_an_unknown_condition_that_changes_no_queue_is_followed_both_ways() -> None:
    script = """[ -d /sys/class/net/ifb0 ] || ip link add ifb0 type ifb
if lsmod | grep -q fq; then MODULE=loaded; else modprobe sch_fq; MODULE=new; fi
[ -e /var/run/lock ] && exit 1
check() { [ -x /bin/nft ] && return 0; return 1; }
check && echo yes
tc qdisc add dev ifb0 root fq
"""
    document = scripts.document(script, "router.sh", scripts.ScriptInputs())
    assert [row["device"] for row in document["queues"]] == ["ifb0"]
    assert document["assumed"] == [{"line": 3, "condition": "[ -e /var/run/lock ]", "value": "false"}]
    assert {row["line"] for row in document["skipped"]} == {1, 2}
    assert 'got "lsmod | grep -q fq"' in refused(script + "tc qdisc add dev eth0 root $MODULE")


def test_the_page_s_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[1] / "docs/how-to/router-scripts.md").read_text()
    script, command, output = re.findall(r"^```\w*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:3]
    error = re.search(r"^error: (.*)", page, re.MULTILINE)
    assert error is not None
    monkeypatch.chdir(tmp_path)
    Path("shaper.sh").write_text(script)
    words = shlex.split(command)[1:]
    monkeypatch.setattr(sys, "argv", ["dragstrip", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().out == output
    inputs = scripts.ScriptInputs({"UPLINK": "20000"}, ["eth0"])
    with pytest.raises(BadInputError, match=f"^{re.escape(error[1])}$"):
        scripts.imported(script, "shaper.sh", inputs)


def test_the_command_and_the_function_give_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script").write_text(SHAPER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dragstrip", "tc-import", "script", "--set", "UPLINK=2000", "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    printed = json.loads(capsys.readouterr().out)
    assert dict(dragstrip.tc_import(SHAPER, variables={"UPLINK": "2000"})) == printed
    assert printed["paths"][0]["path"]["rate"] == "1.9mbit"
    with pytest.raises(BadInputError, match=r'variables={"IF": "VALUE"}'):
        dragstrip.tc_import("tc qdisc add dev $IF root fq")


def test_nothing_is_opened_or_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions.sh").write_text("tc qdisc add dev a root fq\n")
    script = "cat < functions.sh > out; . ./functions.sh; touch made; $(reboot); tc qdisc add dev b root fq > log\n"
    with fuzz.isolated():
        result = shell.followed(script, {})
    assert result.words[-1] == ("tc", "qdisc", "add", "dev", "b", "root", "fq")
    assert [path.name for path in tmp_path.iterdir()] == ["functions.sh"]


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_generated_scripts_give_what_a_shell_gives() -> None:
    answers = [fuzz.compared(seed) for seed in range(60)]
    assert answers.count("same") > 40


def test_damaged_scripts_end_in_commands_or_a_refusal() -> None:
    with fuzz.isolated():
        for seed in range(400):
            shell.followed(fuzz.damaged(seed), {})


@pytest.mark.parametrize(
    "script",
    [
        "while :; do x=$(echo a); done",
        "x=a\nwhile :; do x=$x$x; done",
        "x=a\nfor i in {1..5000}; do x=\"$x b\"; y=${x//a*/b}; done",
        "(" * 3000,
        "$(" * 3000,
        "x=$((" + "(" * 3000 + "1",
        "\n".join(f"if [ -f /{at} ]; then x={at}; fi" for at in range(2000)),
        "f() { if [ -f x ]; then f; else f; fi; }\nf",
        "x=" + "a" * 20_000 + "\ny=${x//a*b/c}",
        "x=" + "a" * 20_000 + "\ny=${x%%*a*a*a*b}",
        "case $(date) in\n" + "\n".join(f"a{at}) x={at};;" for at in range(2000)) + "\nesac",
        "[[ " + "a" * 900 + " =~ a*a*a*b ]]",
        " || ".join(["date"] * 3000),
        'x=$(printf "%99999999d" 1)',
    ],
)  # fmt: skip
def test_no_script_takes_long(script: str) -> None:
    shell.followed(script, {})
