"""The lab's file: what is read of it, and the one line that says what is wrong with it. Nothing here needs a host."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dragstrip import engines
from dragstrip.engines.ssh.lab import Lab
from dragstrip.engines.ssh.media import as_they_are
from dragstrip.engines.ssh.nodes import homes
from dragstrip.errors import BadInputError
from dragstrip.experiment.comparison import compare
from dragstrip.experiment.expand import expand
from dragstrip.experiment.types import Experiment, rebuilt

from .namespaces import THREE


def read(tmp_path: Path, text: str) -> Lab:
    file = tmp_path / "lab.toml"
    file.write_text(text)
    return Lab.read(file)


def test_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    lab = read(tmp_path, THREE.replace('revert_after = "30s"\n', ""))
    assert lab.revert_after_ns == 10_000_000_000
    assert [(host.name, host.role, host.rights) for host in lab.hosts] == [
        ("right", "sender", "root"),
        ("center", "router", "root"),
        ("left", "receiver", "root"),
    ]
    assert lab.sysctl == ("net.ipv4.tcp_*",)
    assert (lab.offloads, lab.replace_qdisc) == (True, False)
    assert str(lab.hosts[1].interfaces[1].address) == "10.10.1.2/24"


def scenario(*names: str) -> dict[str, Any]:
    nodes = [{"name": name, "kind": "router" if name.startswith("r") else "host"} for name in names]
    flows = [{"sender": name, "receiver": "d"} for name in names if name.startswith("s")]
    return {"nodes": nodes, "flows": flows}


def test_nodes_find_their_hosts_by_name_by_role_or_as_the_file_says(tmp_path: Path) -> None:
    lab = read(tmp_path, THREE)
    assert homes(scenario("s1", "s2", "r", "d"), lab) == (
        {"s1": "right", "s2": "right", "r": "center", "d": "left"},
        [],
    )
    # The host that is called right plays the node of that name, whatever it does.
    assert homes({"nodes": [{"name": "right", "kind": "router"}], "flows": []}, lab)[0] == {"right": "right"}
    told = read(tmp_path, THREE + '\n[nodes]\ns1 = "left"\n')
    assert homes(scenario("s1", "d"), told)[0] == {"s1": "left", "d": "left"}
    found, refused = homes(scenario("s1", "r1", "r2", "d"), lab)
    assert "r2" not in found
    assert [(one.field, one.value) for one in refused] == [("nodes", "r2")]
    assert "the lab has 1 of role router" in refused[0].expected


@pytest.mark.parametrize(
    "address",
    [
        "left",
        "lab@left.example",
        "ssh://lab@left.example:2222",
        "10.99.3.2",
        "fe80::1",
        "lab@[fe80::1]",
        "a_b",
    ],
)
def test_addresses_of_ssh_are_taken(address: str, tmp_path: Path) -> None:
    lab = read(tmp_path, THREE.replace('"10.99.3.2"', f'"{address}"'))
    assert lab.hosts[2].ssh == address


def test_with_traffic_both_ways_the_sender_is_who_begins(tmp_path: Path) -> None:
    options = {"rate": "10mbit", "rtt": "20ms", "duration": "2s", "both_ways": True}
    (planned,) = expand(compare(["reno"], receiver_on_line=True, **options))
    wanted = {"s1": "right", "r": "center", "d": "left"}
    assert homes(planned.scenario, read(tmp_path, THREE)) == (wanted, [])
    (behind,) = expand(compare(["reno"], **options))
    (refusal,) = homes(behind.scenario, read(tmp_path, THREE))[1]
    assert (refusal.field, refusal.value) == ("nodes", "w"), "a second router, and the lab has one"
    assert "--receiver-on-line" in refusal.expected


def test_a_program_of_the_users_own_is_refused_by_name(tmp_path: Path) -> None:
    read(tmp_path, THREE)
    application = {"kind": "program", "client": "true"}
    race = compare(["reno"], rate="10mbit", rtt="20ms", duration="2s")
    changed = race.changed(flows=[{"cc": "reno", "label": "mine", "application": application}])
    refusals = engines.named("ssh").refusals(expand(changed)[0].scenario, {"lab": str(tmp_path / "lab.toml")})
    assert [refusal[:2] for refusal in refusals] == [("flow mine: application", "program")]


def test_links_that_change_are_taken(tmp_path: Path) -> None:
    read(tmp_path, THREE)
    path = {"rate": "10mbit", "rtt": "20ms", "queue": "bfifo limit 50kb", "duration": "2s"}
    race = compare(["reno"], **path, change=["1s rate=2mbit delay=5ms", "1500ms state=down"])
    options = {"lab": str(tmp_path / "lab.toml")}
    assert engines.named("ssh").refusals(expand(race)[0].scenario, options) == []


HOME = THREE.replace('to = "left" }', 'to = "left", is = "home" }').replace(
    'address = "10.10.1.1/24", to = "center" }', 'address = "10.10.1.1/24", to = "center", is = "home" }'
)


def test_a_link_that_is_a_real_medium_may_have_one_and_may_not_change(tmp_path: Path) -> None:
    read(tmp_path, HOME)
    options = {"lab": str(tmp_path / "lab.toml")}
    wifi = compare(["reno"], medium="wifi-n", rtt="20ms", duration="2s")
    assert engines.named("ssh").refusals(expand(wifi)[0].scenario, options) == []
    changing = compare(["reno"], rate="10mbit", rtt="20ms", duration="2s", change=["1s rate=2mbit"])
    (refused,) = engines.named("ssh").refusals(expand(changing)[0].scenario, options)
    assert (refused.field, refused.value) == ("changes[0].link", "r-d")
    assert "the lab's home, which stays as it is" in refused.expected


def test_nothing_is_set_on_a_real_medium(tmp_path: Path) -> None:
    race = compare(["reno"], rate="10mbit", rtt="20ms", loss="1%", queue="fq_codel", duration="2s")
    (planned,) = expand(race)
    links = {link["name"]: link for link in as_they_are(planned.scenario, read(tmp_path, HOME))["links"]}
    assert links["r-d"] == {"name": "r-d", "from": "r", "to": "d", "qdisc": {"kind": "noqueue"}}
    assert as_they_are(planned.scenario, read(tmp_path, THREE)) == planned.scenario


ETH1 = 'eth1 = { address = "10.10.1.1/24", to = "center" }'


@pytest.mark.parametrize(
    ("text", "new", "said"),
    [
        ('name = "course"\n', "", "lab.name: is missing"),
        ('to = "left" }', 'to = "left", is = "home" }', "hosts.center.interfaces.eth2.is: got 'home', expected the same at both ends (hosts.left.interfaces.eth1 says nothing)"),
        ('to = "left" }', 'to = "left", is = true }', "hosts.center.interfaces.eth2.is: got True, expected a name of letters"),
        ('name = "course"', 'name = "my course"', "lab.name: got 'my course', expected a name of letters"),
        ('name = "course"', 'nane = "course"', 'lab.nane: is not a known field; did you mean "name"?'),
        ('["10.10.0.0/16"]', "[]", "lab.prefixes: got none, expected at least one network"),
        ('["10.10.0.0/16"]', '["10.10.0.1/16"]', "lab.prefixes[0]: got '10.10.0.1/16', expected an IPv4 network"),
        ('["10.10.0.0/16"]', '"10.10.0.0/16"', "lab.prefixes: got '10.10.0.0/16', expected a list"),
        ('["10.10.0.0/16"]', '["10.10.1.0/24"]', "hosts.right.interfaces.eth1.address: got '10.10.2.1/24', expected one in lab.prefixes"),
        ('"30s"', '"1s"', "lab.revert_after: got '1s', expected text with a unit from 3s to 600s"),
        ('"30s"', "4", "lab.revert_after: got 4, expected text with a unit"),
        ('"30s"', '"4 parsecs"', "lab.revert_after: got '4 parsecs', expected text with a unit"),
        ('"10.99.3.2"', '"-oProxyCommand=reboot"', "hosts.left.ssh: got '-oProxyCommand=reboot', expected one argument of ssh(1)"),
        ('"10.99.3.2"', '"left reboot"', "hosts.left.ssh: got 'left reboot', expected one argument"),
        ('"10.99.3.2"', '"%h%p"', "hosts.left.ssh: got '%h%p', expected one argument of ssh(1)"),
        ('"10.99.3.2"', '"ssh://-oProxyCommand=reboot"', "hosts.left.ssh: got 'ssh://-oProxyCommand=reboot', expected one"),
        ('"10.99.3.2"', '"ssh://lab@-oProxyCommand=reboot"', "hosts.left.ssh: got 'ssh://lab@-oProxyCommand=reboot', expected one"),
        ('"10.99.3.2"', '"lab@-oProxyCommand=reboot"', "hosts.left.ssh: got 'lab@-oProxyCommand=reboot', expected one argument"),
        ('"10.99.3.2"', '"-lab@left"', "hosts.left.ssh: got '-lab@left', expected one argument"),
        ('"10.99.3.2"', '"left;reboot"', "hosts.left.ssh: got 'left;reboot', expected one argument"),
        ('"10.99.3.2"', '"left\\u001b[2J"', "hosts.left.ssh: got 'left\\x1b[2J', expected one argument"),
        ('"10.99.3.2"', '"left\\u202e"', "hosts.left.ssh: got 'left\\u202e', expected one argument"),
        ('"10.99.3.2"', '"left\\nreboot"', "hosts.left.ssh: got 'left\\nreboot', expected one argument"),
        ('"receiver"', '"reciever"', 'hosts.left.role: got \'reciever\', expected one of sender, router, receiver; did you mean "receiver"?'),
        ('"receiver"', '"receiver"\nrights = "all"', "hosts.left.rights: got 'all', expected one of root, sudo, capabilities"),
        (ETH1, 'mgmt = { address = "10.10.1.1/24", to = "center" }', "hosts.left.interfaces.mgmt: got 'mgmt', expected an interface other than management"),
        (ETH1, '"../eth1" = { address = "10.10.1.1/24", to = "center" }', "hosts.left.interfaces.../eth1: got '../eth1', expected the name of a network interface"),
        (ETH1, 'eth1 = { address = "10.10.1.1", to = "center" }', "hosts.left.interfaces.eth1.address: got '10.10.1.1', expected an IPv4 address with the length"),
        (ETH1, 'eth1 = { address = "10.10.1.2/24", to = "center" }', "hosts.left.interfaces.eth1.address: got '10.10.1.2/24', expected one of its own: hosts.center"),
        (ETH1, 'eth1 = { address = "10.10.3.1/24", to = "center" }', "expected one in the network of the cable's other end (hosts.left.interfaces.eth1 has 10.10.3.1/24)"),
        (ETH1, 'eth1 = { address = "10.10.1.1/24", to = "middle" }', "hosts.left.interfaces.eth1.to: got 'middle', expected one of right, center"),
        (ETH1, 'eth1 = { address = "10.10.1.1/24", to = "right" }', "expected an interface of left with to = \"center\""),
        (ETH1, "", "hosts.left.interfaces: got none, expected at least one interface"),
        ("[hosts.left]", "[allow]\nsysctl = ['kernel.*']\n[hosts.left]", "allow.sysctl[0]: got 'kernel.*', expected a setting of the network"),
        ("[hosts.left]", "[allow]\nsysctl = ['net.*.tcp_sack']\n[hosts.left]", "allow.sysctl[0]: got 'net.*.tcp_sack', expected a setting"),
        ("[hosts.left]", "[allow]\noffloads = 'yes'\n[hosts.left]", "allow.offloads: got 'yes', expected true or false"),
        ("[hosts.left]", "[nodes]\ns1 = 'rihgt'\n[hosts.left]", "nodes.s1: got 'rihgt', expected one of right, center, left; did you mean \"right\"?"),
        ("[hosts.left]", "[hosts.left", "is not TOML"),
    ],
)  # fmt: skip
def test_one_line_names_file_field_and_what_would_be_right(
    text: str, new: str, said: str, tmp_path: Path
) -> None:
    assert text in THREE
    with pytest.raises(BadInputError) as caught:
        read(tmp_path, THREE.replace(text, new))
    line = str(caught.value)
    assert line.startswith(str(tmp_path / "lab.toml"))
    assert said.replace("\n", "\\n") in line
    assert "\n" not in line


def test_an_experiment_without_a_lab_is_told_of_the_option() -> None:
    engine = engines.named("ssh")
    (planned,) = expand(compare(["reno"], rate="10mbit", rtt="20ms", duration="2s"))
    with pytest.raises(BadInputError, match="--lab: is missing"):
        engine.refusals(planned.scenario, {})
    with pytest.raises(BadInputError, match=r"--lab: nowhere.toml: no such file"):
        engine.refusals(planned.scenario, {"lab": "nowhere.toml"})


def test_an_experiment_for_hosts_is_read_without_their_lab(tmp_path: Path) -> None:
    """The command line names the lab: `dragstrip run FILE --lab lab.toml`."""
    race = compare(["reno"], rate="10mbit", rtt="20ms", duration="2s")
    content = {**race.content(), "engine": "ssh"}
    read(tmp_path, THREE)
    made, _ = rebuilt(
        Experiment.build(content).content(), {"engine_options": {"lab": str(tmp_path / "lab.toml")}}
    )
    (planned,) = expand(made)
    assert engines.named("ssh").refusals(planned.scenario, made.engine_options) == []


PIECES = [
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    ".",
    "\n",
    "hosts",
    "left",
    "eth1",
    "10.10.1.1/24",
    "-o",
    "$(reboot)",
    "\x1b",
    "é",
    "1",
    "true",
]
MUTATIONS = 400


def read_or_line(tmp_path: Path, text: str) -> Lab | str:
    try:
        return read(tmp_path, text)
    except BadInputError as error:
        return str(error)


def test_a_damaged_file_is_a_lab_or_one_line(tmp_path: Path) -> None:
    """Pieces are cut out, doubled and put in at random: whatever comes of it, there is no traceback."""
    draws = random.Random(17)  # noqa: S311 - no secret
    labs = 0
    for _ in range(MUTATIONS):
        text = THREE
        for _ in range(draws.randint(1, 2)):
            start = draws.randrange(len(text))
            end = min(len(text), start + draws.randint(0, 8))
            text = text[:start] + draws.choice([*PIECES, "", text[start:end] * 2]) + text[end:]
        lab = read_or_line(tmp_path, text)
        if isinstance(lab, str):
            assert "\n" not in lab
            continue
        labs += 1
        for host in lab.hosts:
            assert not host.ssh.startswith("-")
            assert not set(host.ssh) & set(" \n\t\x1b")
            assert all(
                any(cable.address.ip in prefix for prefix in lab.prefixes) for cable in host.interfaces
            )
    assert labs > MUTATIONS / 100, "damage that is none tells nothing"
