"""Traces of tc scripts that ran: what `sh -x` and SQM print is read as the commands themselves."""

from __future__ import annotations

import pytest

from dragstrip.errors import BadInputError
from dragstrip.interop import scripts

COMMANDS = """tc qdisc del dev eth0 root
tc qdisc add dev eth0 root handle 1: htb default 12
tc class add dev eth0 parent 1: classid 1:12 htb rate 8000kbit ceil 8000kbit
tc qdisc add dev eth0 parent 1:12 fq_codel limit 1001 target 5ms
"""
TRACE = """+ DEV=eth0
+ RATE=8000
+ '[' -z eth0 ']'
++ cat /sys/class/net/eth0/mtu
+ tc qdisc del dev eth0 root
RTNETLINK answers: No such file or directory
+ tc qdisc add dev eth0 root handle 1: htb default 12
+ for class in 12
+ tc class add dev eth0 parent 1: classid 1:12 htb rate 8000kbit ceil 8000kbit
+ tc qdisc add dev eth0 parent 1:99 sfq
RTNETLINK answers: No such file or directory
+ tc qdisc add dev eth0 parent 1:12 fq_codel limit 1001 target 5ms
+ echo 'done; all $RATE'
done; all $RATE
"""
SQM = """SQM: Starting SQM script: simple.qos on eth0, in: 40000 Kbps, out: 8000 Kbps
SQM: cmd_wrapper: COMMAND: /usr/sbin/tc qdisc del dev eth0 root
SQM: cmd_wrapper: tc: invocation silenced by request, FAILURE either expected or acceptable.
SQM: cmd_wrapper: tc: FAILURE (2): /usr/sbin/tc qdisc del dev eth0 root
SQM: cmd_wrapper: tc: LAST ERROR: RTNETLINK answers: No such file or directory
SQM: cmd_wrapper: COMMAND: /usr/sbin/tc qdisc add dev eth0 root handle 1: htb default 12
SQM: cmd_wrapper: tc: SUCCESS: /usr/sbin/tc qdisc add dev eth0 root handle 1: htb default 12
SQM: cmd_wrapper: tc: SUCCESS: /usr/sbin/tc class add dev eth0 parent 1: classid 1:12 htb rate 8000kbit ceil 8000kbit
SQM: cmd_wrapper: iptables: SUCCESS: /usr/sbin/iptables -t mangle -N QOS_MARK_eth0
SQM: cmd_wrapper: tc: SUCCESS: /usr/sbin/tc qdisc add dev eth0 parent 1:12 fq_codel limit 1001 target 5ms
SQM: simple.qos was started on eth0 successfully
"""
SYSLOG = "".join(f"Wed Nov 25 10:00:00 2026 user.notice SQM: {line[5:]}\n" for line in SQM.splitlines())


@pytest.mark.parametrize("trace", [TRACE, SQM, SYSLOG, TRACE.replace("+ tc", "++ tc").replace("\n", "\r\n")])
def test_a_trace_is_its_commands(trace: str) -> None:
    assert scripts.is_script(trace)
    (wanted,) = scripts.imported(COMMANDS, "router.sh")["queues"]
    (queue,) = scripts.imported(trace, "trace")["queues"]
    assert {**queue, "lines": [], "commands": []} == {**wanted, "lines": [], "commands": []}
    first = next(
        at for at, line in enumerate(trace.splitlines(), 1) if "default 12" in line and "COMMAND" not in line
    )
    assert queue["lines"][0] == first


def test_a_command_that_failed_is_named_and_not_replayed() -> None:
    skipped = scripts.imported(TRACE, "trace")["skipped"]
    assert [(row["line"], "(failed: RTNETLINK" in row["command"]) for row in skipped] == [(10, True)]


def test_a_trace_names_the_line_of_what_is_not_modelled() -> None:
    with pytest.raises(BadInputError, match=r"trace: line 12: .*mqprio"):
        scripts.imported(TRACE.replace("fq_codel limit 1001 target 5ms", "mqprio"), "trace")
