"""A lab's file: hosts, their roles, interfaces rights, and permitted changes (docs/how-to/lab.md).

Nothing in it reaches a shell: names are words of a few characters, addresses are parsed, and what ssh(1) is
told is one argument.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dragstrip import _core
from dragstrip.errors import BadInputError, Raw, nearest
from dragstrip.io import toml, untrusted

ROLES = ("sender", "router", "receiver")
RIGHTS = ("root", "sudo", "capabilities")
HOSTS_MAX = 64
REVERT_AFTER_NS = 10_000_000_000
REVERT_AFTER_MIN_NS, REVERT_AFTER_MAX_NS = 3_000_000_000, 600_000_000_000
SYSCTLS = ("net.ipv4.tcp_*",)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,14}")
DESTINATION = re.compile(
    r"(?:ssh://)?(?:[A-Za-z0-9_][A-Za-z0-9._+-]{0,62}@)?"
    r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f.]{0,15}|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::[0-9]{1,5})?"
)
"""`[user@]host` or `ssh://[user@]host[:port]`. A `%` would be a token of ssh_config(5), a host that begins
with a hyphen an option of whatever connects."""
SYSCTL = re.compile(r"net(\.[a-z0-9_-]{1,60}){1,8}\*?|net(\.[a-z0-9_-]{1,60}){0,8}\.\*")

_T = TypeVar("_T")


@dataclass(frozen=True)
class Cable:
    """An interface of a host, and the host that its cable leads to."""

    name: str
    address: ipaddress.IPv4Interface
    to: str
    real: str | None = None
    """Name of the real medium, such as `home`, if a run leaves its rate, delay and queue as they are."""


@dataclass(frozen=True)
class Host:
    """A machine of the lab."""

    name: str
    ssh: str
    role: str
    management: str
    rights: str
    interfaces: tuple[Cable, ...]

    def towards(self, peer: str) -> Cable | None:
        """The interface whose cable leads to another host."""
        return next((cable for cable in self.interfaces if cable.to == peer), None)


@dataclass(frozen=True)
class Lab:
    """Content of a lab's file."""

    name: str
    digest: str
    """SHA-256 of the file."""
    revert_after_ns: int
    prefixes: tuple[ipaddress.IPv4Network, ...]
    hosts: tuple[Host, ...]
    nodes: Mapping[str, str]
    sysctl: tuple[str, ...]
    offloads: bool
    replace_qdisc: bool
    programs: bool

    @classmethod
    def read(cls, path: Path | str) -> Lab:
        """The lab in a TOML file; raises `BadInputError` that names file, field and value."""
        table = untrusted.parsed_toml(path, "a lab's file")
        digest = hashlib.sha256(
            untrusted.content(path, untrusted.DESCRIPTION_MAX, "a lab's file")
        ).hexdigest()
        try:
            return _lab(_Table("", table), digest)
        except BadInputError as error:
            raise toml.pointed(error.at(str(path))) from None


@dataclass(frozen=True)
class _Table:
    """A table of the file, whose fields are taken by name."""

    place: str
    content: Mapping[str, Any]

    def only(self, *allowed: str) -> None:
        """Raises `BadInputError` for a field that is none of these."""
        for name in self.content:
            if name not in allowed:
                expected = f"is not a known field{nearest(name, allowed)} (known: {', '.join(allowed)})"
                raise BadInputError(self.at(name), None, expected)

    def at(self, name: str) -> str:
        """The path of a field in the file."""
        return f"{self.place}.{name}".lstrip(".")

    def take(self, name: str, read: Callable[[str, Any], _T], default: _T | None = None) -> _T:
        """A field's value as `read` takes it; without a default it must be there."""
        if name in self.content:
            return read(self.at(name), self.content[name])
        if default is None:
            raise BadInputError(self.at(name), None, "is missing")
        return default

    def tables(self) -> dict[str, _Table]:
        """Its fields, each a table."""
        return {name: _table(self.at(name), value) for name, value in self.content.items()}


def _table(place: str, value: object) -> _Table:
    if not isinstance(value, dict):
        raise BadInputError(place, value, "a table")
    return _Table(place, value)


def _matching(pattern: re.Pattern[str], expected: str) -> Callable[[str, Any], str]:
    def read(place: str, value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise BadInputError(place, _printable_value(value), expected)
        return value

    return read


def _one_of(choices: Collection[str]) -> Callable[[str, Any], str]:
    def read(place: str, value: object) -> str:
        if value not in choices or not isinstance(value, str):
            near = nearest(value, choices) if isinstance(value, str) else ""
            raise BadInputError(place, _printable_value(value), f"one of {', '.join(choices)}{near}")
        return value

    return read


def _printable_value(value: object) -> object:
    return Raw(type(value).__name__) if isinstance(value, dict | list) else value


def _yes_or_no(place: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInputError(place, _printable_value(value), "true or false")
    return value


def _list_of(read: Callable[[str, Any], _T]) -> Callable[[str, Any], tuple[_T, ...]]:
    def all_of(place: str, value: object) -> tuple[_T, ...]:
        if not isinstance(value, list):
            raise BadInputError(place, _printable_value(value), "a list")
        return tuple(read(f"{place}[{number}]", element) for number, element in enumerate(value))

    return all_of


def _time(place: str, value: object) -> int:
    expected = "text with a unit from 3s to 600s, such as 10s"
    try:
        ns = _core.parse_time(value) if isinstance(value, str) else 0
    except _core.InputError:
        raise BadInputError(place, value, expected) from None
    if not REVERT_AFTER_MIN_NS <= ns <= REVERT_AFTER_MAX_NS:
        raise BadInputError(place, _printable_value(value), expected)
    return ns


def _network(place: str, value: object) -> ipaddress.IPv4Network:
    expected = "an IPv4 network, such as 10.10.0.0/16"
    if not isinstance(value, str):
        raise BadInputError(place, _printable_value(value), expected)
    try:
        return ipaddress.IPv4Network(value)
    except ValueError as error:
        raise BadInputError(place, value, f"{expected} ({error})") from None


def _address(place: str, value: object) -> ipaddress.IPv4Interface:
    expected = "an IPv4 address with the length of its prefix, such as 10.10.1.1/24"
    try:
        if not isinstance(value, str) or "/" not in value:
            raise ValueError
        return ipaddress.IPv4Interface(value)
    except ValueError:
        raise BadInputError(place, _printable_value(value), expected) from None


_name = _matching(NAME, "a name of letters, digits, dots and hyphens, 63 at most")
_interface = _matching(INTERFACE, "the name of a network interface, such as eth1: 15 characters at most")
_destination = _matching(
    DESTINATION,
    "one argument of ssh(1), such as lab@left.example: user and host of letters, digits, dots and hyphens "
    "(what else ssh needs goes into ~/.ssh/config)",
)
_sysctl = _matching(SYSCTL, 'a setting of the network, such as net.ipv4.tcp_sack or "net.ipv4.tcp_*"')


def _lab(file: _Table, digest: str) -> Lab:
    file.only("lab", "hosts", "nodes", "allow")
    about = file.take("lab", _table)
    about.only("name", "revert_after", "prefixes")
    allow = file.take("allow", _table, _Table("allow", {}))
    allow.only("sysctl", "offloads", "replace_qdisc", "programs")
    prefixes = about.take("prefixes", _list_of(_network))
    if not prefixes:
        raise BadInputError(
            "lab.prefixes", Raw("none"), "at least one network: only its addresses are touched"
        )
    host_tables = file.take("hosts", _table).tables()
    if not 1 <= len(host_tables) <= HOSTS_MAX:
        raise BadInputError("hosts", Raw(str(len(host_tables))), f"1 to {HOSTS_MAX} hosts")
    hosts = tuple(_host(name, table, host_tables) for name, table in host_tables.items())
    _expect_pairs(hosts, prefixes)
    nodes = file.take("nodes", _table, _Table("nodes", {}))
    return Lab(
        name=about.take("name", _name),
        digest=digest,
        revert_after_ns=about.take("revert_after", _time, REVERT_AFTER_NS),
        prefixes=prefixes,
        hosts=hosts,
        nodes={name: nodes.take(name, _one_of(list(host_tables))) for name in nodes.content},
        sysctl=allow.take("sysctl", _list_of(_sysctl), SYSCTLS),
        offloads=allow.take("offloads", _yes_or_no, True),
        replace_qdisc=allow.take("replace_qdisc", _yes_or_no, False),
        programs=allow.take("programs", _yes_or_no, False),
    )


def _host(name: str, table: _Table, hosts: Collection[str]) -> Host:
    _name(f"hosts.{name}", name)
    table.only("ssh", "role", "management", "rights", "interfaces")
    management = table.take("management", _interface)
    cables: list[Cable] = []
    for interface, cable in table.take("interfaces", _table).tables().items():
        _interface(cable.place, interface)
        cable.only("address", "to", "is")
        if interface == management:
            raise BadInputError(
                cable.place, interface, "an interface other than management, which is never touched"
            )
        to = cable.take("to", _one_of([peer for peer in hosts if peer != name]))
        if any(earlier.to == to for earlier in cables):
            raise BadInputError(cable.at("to"), to, "another host: two cables lead there")
        real = cable.take("is", _name) if "is" in cable.content else None
        cables.append(Cable(interface, cable.take("address", _address), to, real))
    if not cables:
        raise BadInputError(table.at("interfaces"), Raw("none"), "at least one interface for the lab")
    return Host(
        name=name,
        ssh=table.take("ssh", _destination),
        role=table.take("role", _one_of(ROLES)),
        management=management,
        rights=table.take("rights", _one_of(RIGHTS), RIGHTS[0]),
        interfaces=tuple(cables),
    )


def _expect_pairs(hosts: Collection[Host], prefixes: Collection[ipaddress.IPv4Network]) -> None:
    """Every address is one that may be touched, is alone, and has the cable's other end in its network."""
    by_name = {host.name: host for host in hosts}
    place_by_address: dict[ipaddress.IPv4Address, str] = {}
    for host in hosts:
        for cable in host.interfaces:
            place = f"hosts.{host.name}.interfaces.{cable.name}"
            if not any(cable.address.ip in prefix for prefix in prefixes):
                listed = ", ".join(map(str, prefixes))
                raise BadInputError(f"{place}.address", str(cable.address), f"one in lab.prefixes ({listed})")
            if (first_place := place_by_address.setdefault(cable.address.ip, place)) != place:
                raise BadInputError(
                    f"{place}.address", str(cable.address), f"one of its own: {first_place} has it too"
                )
            back = by_name[cable.to].towards(host.name)
            if back is None:
                expected = f'an interface of {cable.to} with to = "{host.name}"'
                raise BadInputError(f"{place}.to", cable.to, expected)
            where = f"hosts.{cable.to}.interfaces.{back.name}"
            if back.address.network != cable.address.network:
                expected = f"one in the network of the cable's other end ({where} has {back.address})"
                raise BadInputError(f"{place}.address", str(cable.address), expected)
            if cable.real != back.real:
                peer_value = f'"{back.real}"' if back.real else "nothing"
                raise BadInputError(
                    f"{place}.is", cable.real, f"the same at both ends ({where} says {peer_value})"
                )
