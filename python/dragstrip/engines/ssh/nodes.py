"""Assignment of a scenario's nodes to the hosts of a lab."""

from __future__ import annotations

from dragstrip.engines.contract import Json, Refusal
from dragstrip.engines.ssh.lab import Host, Lab

MODEM = ("w", "router")
"""The router of a dumbbell that stands in front of a receiver with uploads."""


def homes(scenario: Json, lab: Lab) -> tuple[dict[str, str], list[Refusal]]:
    """Node → host, and the nodes for which there is none.

    As `[nodes]` says; else the host of the node's name; else the one host of its role, or the hosts of that
    role in their order. A node's role is its part in the first flow that it has one in: with traffic both
    ways the sender is who begins.
    """
    host_of_node: dict[str, str] = {}
    refusals = []
    last_index: dict[str, int] = {}
    names = {host.name for host in lab.hosts}
    roles: dict[str, str] = {}
    for flow in scenario["flows"]:
        for role in ("sender", "receiver"):
            roles.setdefault(flow[role], role)
    for node in scenario["nodes"]:
        name = node["name"]
        role = "router" if node["kind"] == "router" else roles.get(name, "sender")
        if name in lab.nodes:
            host_of_node[name] = lab.nodes[name]
        elif name in names:
            host_of_node[name] = name
        else:
            hosts = [host for host in lab.hosts if host.role == role]
            number = last_index[role] = last_index.get(role, -1) + 1
            if home := _nth(hosts, number):
                host_of_node[name] = home.name
            else:
                expected = f"a line in [nodes] that names its host: the lab has {len(hosts)} of role {role}"
                if (name, role) == MODEM and "d" in {node["name"] for node in scenario["nodes"]}:
                    expected += ", or --receiver-on-line (path.receiver_on_line), which leaves it out"
                refusals.append(Refusal("nodes", name, expected))
    return host_of_node, refusals


def _nth(hosts: list[Host], number: int) -> Host | None:
    if len(hosts) == 1:
        return hosts[0] if hosts[0].role == "sender" or number == 0 else None
    return hosts[number] if number < len(hosts) else None
