"""A lab on one machine: each host a set of namespaces with an sshd of its own, as real as its kernel.

Nothing is started or changed in the first namespace but the processes that hold the others: `control`, where ssh
runs, and the hosts, each with a cable to `control` (its management) and cables to other hosts.

`python tests/ssh/namespaces.py [--top] COMMAND...` runs a command beside the GENI exercise's lab, whose file replaces
the word LAB (docs/how-to/lab.md); `--top`: with the fourth machine of its steps 5 and 6.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NEEDED = ("ssh", "ssh-keygen", "ip", "unshare", "nsenter")
SETTINGS = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_no_metrics_save")


def missing() -> str:
    """What such a lab lacks here; nothing where it can be made."""
    if os.geteuid():
        return "needs root, to make hosts of namespaces"
    if SSHD is None:
        return "needs sshd: apt-get install openssh-server"
    lacking = [name for name in NEEDED if shutil.which(name) is None]
    return (
        f"needs {', '.join(lacking)}: apt-get install openssh-client iproute2 util-linux" if lacking else ""
    )


def _run(*words: str, **more: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return str(done.stdout)


@dataclass
class Space:
    """A set of namespaces, held by a process."""

    name: str
    process: subprocess.Popen[bytes]
    inner: int
    """The process inside, which has them."""

    def words(self, *command: str) -> list[str]:
        """A command that runs in them."""
        return ["nsenter", "-t", str(self.inner), "-n", "-m", "-u", "-p", *command]

    def run(self, *command: str) -> str:
        """Its output; it must succeed."""
        return _run(*self.words(*command))

    def processes(self) -> dict[int, str]:
        """Their command lines, by the numbers that they have here."""
        script = (
            'for p in /proc/[0-9]*; do echo "${p#/proc/} $(tr "\\0" " " <$p/cmdline)"; done 2>/dev/null; true'
        )
        lines = (line.partition(" ") for line in self.run("sh", "-c", script).splitlines())
        return {int(number): words for number, _, words in lines if number.isdigit()}

    def agents(self) -> list[int]:
        """The agent, and then its guardian."""
        found = [
            (" guard " in words, number)
            for number, words in self.processes().items()
            if "/dragstrip" in words and "sh -" not in words
        ]
        return [number for _, number in sorted(found)]

    def listing(self) -> dict[str, str]:
        """What a run must leave as it was: links, addresses, routes, queue disciplines, settings, processes."""
        found = {
            "links": self.run("ip", "-d", "-o", "link"),
            "addresses": self.run("ip", "-o", "-4", "address"),
            "routes": self.run("ip", "route"),
            "queues": self.run("tc", "qdisc"),
            "run": self.run("sh", "-c", "ls -A /run/dragstrip 2>/dev/null | grep -v lock; true"),
        }
        found.update({name: self.run("cat", f"/proc/sys/{name.replace('.', '/')}") for name in SETTINGS})
        for link in ("eth1", "eth2", "eth3"):
            if f"{link}@" in found["links"] and shutil.which("ethtool"):
                found[f"offloads {link}"] = self.run("ethtool", "-k", link)
        agents = self.run("sh", "-c", "grep -l dragstrip /proc/[0-9]*/comm 2>/dev/null; true")
        found["agents"] = " ".join(agents.split())
        return found


@dataclass
class LabOfNamespaces:
    """Hosts, the control namespace, and how ssh is called."""

    folder: Path
    control: Space
    hosts: dict[str, Space]
    ssh: str = ""
    sshds: dict[str, int] = field(default_factory=dict)

    def ask_masters_to_end(self, runtime: Path) -> None:
        """Closes the connections that ssh keeps open for the next command, whose sockets are in `runtime`."""
        control = f"ControlPath={runtime}/dragstrip-ssh/%C"
        for number in range(1, len(self.hosts) + 1):
            words = [*self.ssh.split(), "-o", control, "-O", "exit", f"10.99.{number}.2"]
            subprocess.run(words, capture_output=True, check=False)

    def route(self, roles: Mapping[str, str], cables: Mapping[tuple[str, str], str]) -> None:
        """Every host knows the way to every cable, by the hosts that it has cables to; routers forward."""
        ends = [(one, other, network) for (one, other), network in cables.items()]
        near = {name: {network for *pair, network in ends if name in pair} for name in roles}
        for name, host in self.hosts.items():
            if roles[name] == "router":
                host.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
            known, edge = set(near[name]), [(n, None) for n in _neighbours(name, ends)]
            while edge:
                (at, _, gateway), first = edge.pop(0)
                first = first or gateway
                for network in sorted(near[at] - known):
                    host.run("ip", "route", "add", f"{network}.0/24", "via", first)
                    known.add(network)
                    edge += [(n, first) for n in _neighbours(at, ends)]

    def listing(self) -> dict[str, dict[str, str]]:
        """Of all hosts."""
        return {name: host.listing() for name, host in self.hosts.items()}


def _neighbours(name: str, ends: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """(host at the cable's other end, cable, its address there)."""
    found = [(other, network, f"{network}.2") for one, other, network in ends if one == name]
    return found + [(one, network, f"{network}.1") for one, other, network in ends if other == name]


def written(roles: Mapping[str, str], cables: Mapping[tuple[str, str], str], rights: str = "root") -> str:
    """The file of a lab that `lab` makes."""
    text = '[lab]\nname = "course"\nprefixes = ["10.10.0.0/16"]\nrevert_after = "30s"\n'
    for number, (name, role) in enumerate(roles.items(), 1):
        own = [(pair, network) for pair, network in cables.items() if name in pair]
        listed = [
            f'eth{eth} = {{ address = "{network}.{1 + pair.index(name)}/24", to = "{pair[1 - pair.index(name)]}" }}'
            for eth, (pair, network) in enumerate(own, 1)
        ]
        text += (
            f'[hosts.{name}]\nssh = "10.99.{number}.2"\nrole = "{role}"\nmanagement = "mgmt"\nrights = "{rights}"\n'
            f"interfaces = {{ {', '.join(listed)} }}\n"
        )
    return text


USER, USER_ID = "lab", 64_711
"""Who runs the agent on hosts without root's password; known in the hosts' namespaces alone."""


@dataclass(frozen=True)
class Administrator:
    """Who lets somebody without root use a host: the agent is installed with capabilities, or for sudo."""

    rights: str
    agent: Path

    def script(self, folder: Path) -> str:
        """What docs/how-to/lab.md tells the administrator to do, on a host's own view of the file system."""
        shutil.copy(self.agent, folder / "agent")  # a host's home is not this one
        line = f"{USER}:x:{USER_ID}:{USER_ID}::/srv/{USER}:/bin/sh"
        texts = {"passwd": line, "group": f"{USER}:x:{USER_ID}:", "shadow": f"{USER}:*:19000:0:99999:7:::"}
        steps = ["mount -t tmpfs -o mode=755 none /srv", "mount -t tmpfs -o mode=755 none /usr/local/lib"]
        for file, more in texts.items():
            steps += [f"cp -p /etc/{file} /srv/{file}", f"echo '{more}' >>/srv/{file}"]
            steps += [f"mount --bind /srv/{file} /etc/{file}"]
        there = "/usr/local/lib/dragstrip/agent"
        steps += [
            f"cp {folder}/user.pub /srv/user.pub",
            f"mkdir -m 755 /srv/{USER} {Path(there).parent}",
            f"mkdir -m 770 /run/dragstrip && chown root:{USER} /run/dragstrip",
            f"chown {USER}:{USER} /srv/{USER}",
            f"cp {folder}/agent {there} && chown root:{USER} {there} && chmod 750 {there}",
        ]
        if self.rights == "capabilities":
            steps += [f"setcap cap_net_admin,cap_net_raw+ep {there}"]
        else:
            digest = hashlib.sha256(self.agent.read_bytes()).hexdigest()
            rule = f'%{USER} ALL=(root) NOPASSWD: sha256:{digest} {there} ""'
            steps += [
                "mount -t tmpfs -o mode=755 none /etc/sudoers.d",
                f"echo '{rule}' >/etc/sudoers.d/dragstrip",
            ]
            steps += ["chmod 440 /etc/sudoers.d/dragstrip"]
        return " && ".join(steps)


SSHD_ACCOUNT = (
    "if ! grep -q ^sshd: /etc/passwd; then cp -p /etc/passwd /run/passwd && "
    "echo sshd:x:64712:65534::/run/sshd:/usr/sbin/nologin >>/run/passwd && mount --bind /run/passwd /etc/passwd; fi"
)
"""Gives a host the account that sshd drops its privileges to, where a machine has the program and not the account."""


@contextmanager
def _space(name: str, home: Path, then: str = "true") -> Iterator[Space]:
    home.mkdir(parents=True, exist_ok=True)
    command = ["unshare", "-n", "-m", "-u", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-c"]
    script = (
        f"hostname {name}; mount -t tmpfs none /run; mkdir -p /run/sshd; mount -t sysfs none /sys; "
        f"mount --bind {home} {Path.home()}; {SSHD_ACCOUNT}; sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1; ip link set lo up; {then} && echo ready && exec sleep infinity"
    )
    process = subprocess.Popen([*command, script], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", f"{name}: no namespaces"
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        yield Space(name, process, int(children[0]))
    finally:
        process.kill()
        process.wait()


def _cable(one: tuple[Space, str, str], other: tuple[Space, str, str]) -> None:
    """A veth pair, made inside: nothing of it is ever in the first namespace."""
    (here, own, _), (there, others, _) = one, other
    peer = ["peer", "name", others, "netns", str(there.inner)]
    _run("nsenter", "-t", str(here.inner), "-n", "ip", "link", "add", own, "type", "veth", *peer)
    for space, name, address in (one, other):
        space.run("ip", "address", "add", address, "dev", name)
        space.run("ip", "link", "set", name, "up")


SSHD_CONFIG = """
Port 22
HostKey {folder}/host_{name}
AuthorizedKeysFile {keys}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
PrintMotd no
"""


@contextmanager
def lab(
    folder: Path,
    hosts: Sequence[str],
    cables: Mapping[tuple[str, str], str],
    administrator: Administrator | None = None,
) -> Iterator[LabOfNamespaces]:
    """Hosts, with a cable for each pair: `10.10.N.` of its addresses, `.1` the first one's and `.2` the other's.

    Each host's first interface is `mgmt` (10.99.N.2), its cables are `eth1` and on, in their order.
    """
    with ExitStack() as stack:
        control = stack.enter_context(_space("control", folder / "home-control"))
        made = LabOfNamespaces(folder, control, {})
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "user"))
        known = []
        for number, name in enumerate(hosts, 1):
            prepared = administrator.script(folder) if administrator else "true"
            host = stack.enter_context(_space(name, folder / f"home-{name}", prepared))
            made.hosts[name] = host
            management = f"10.99.{number}"
            _cable((control, f"c{number}", f"{management}.1/24"), (host, "mgmt", f"{management}.2/24"))
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / f"host_{name}"))
            known.append(f"{management}.2 {(folder / f'host_{name}.pub').read_text()}")
            config = folder / f"sshd_{name}"
            keys = "/srv/user.pub" if administrator else folder / "user.pub"
            config.write_text(SSHD_CONFIG.format(folder=folder, name=name, keys=keys))
            assert SSHD is not None
            log = (folder / f"sshd_{name}.log").open("wb")
            daemon = subprocess.Popen(host.words(SSHD, "-D", "-e", "-f", str(config)), stderr=log)
            made.sshds[name] = daemon.pid
            stack.callback(daemon.wait)
            stack.callback(daemon.kill)
        (folder / "known_hosts").write_text("".join(known))
        counted = dict.fromkeys(hosts, 0)
        for (one, other), network in cables.items():
            ends = []
            for place, name in enumerate((one, other), 1):
                counted[name] += 1
                ends.append((made.hosts[name], f"eth{counted[name]}", f"{network}.{place}/24"))
            _cable(*ends)
        config = folder / "ssh_config"
        config.write_text(
            f"IdentityFile {folder}/user\nUserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile none\n"
            f"User {USER if administrator else 'root'}\nLogLevel ERROR\n"
        )
        made.ssh = " ".join(["nsenter", "-t", str(control.inner), "-n", "ssh", "-F", str(config)])
        _await(made)
        yield made


def _await(made: LabOfNamespaces) -> None:
    """Every sshd listens, and every link has noticed that its other end is up."""
    until = time.monotonic() + 60
    for name, host in made.hosts.items():
        while "NO-CARRIER" in host.run("ip", "link"):
            assert time.monotonic() < until, f"{name}: a link without a carrier"
            time.sleep(0.02)
        while ":22 " not in host.run("ss", "-tln"):
            assert time.monotonic() < until, (made.folder / f"sshd_{name}.log").read_text()
            time.sleep(0.02)


@contextmanager
def three(folder: Path) -> Iterator[tuple[LabOfNamespaces, Path]]:
    """The GENI exercise's machines: right (sender) - center (router) - left (receiver); and the lab's file."""
    with lab(folder, list(ROLES), CABLES) as made:
        made.hosts["center"].run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        made.hosts["right"].run("ip", "route", "add", "10.10.1.0/24", "via", "10.10.2.2")
        made.hosts["left"].run("ip", "route", "add", "10.10.2.0/24", "via", "10.10.1.2")
        file = folder / "lab.toml"
        file.write_text(THREE)
        yield made, file


@contextmanager
def routed(
    folder: Path,
    roles: Mapping[str, str],
    cables: Mapping[tuple[str, str], str],
    administrator: Administrator | None = None,
) -> Iterator[tuple[LabOfNamespaces, Path]]:
    """A lab whose hosts know all ways, and its file."""
    with lab(folder, list(roles), cables, administrator) as made:
        made.route(roles, cables)
        file = folder / "lab.toml"
        file.write_text(written(roles, cables, administrator.rights if administrator else "root"))
        yield made, file


ROLES = {"right": "sender", "center": "router", "left": "receiver"}
CABLES = {("right", "center"): "10.10.2", ("left", "center"): "10.10.1"}
"""The GENI exercise's."""


def four(folder: Path) -> AbstractContextManager[tuple[LabOfNamespaces, Path]]:
    """The GENI exercise's machines with top, a second sender at center."""
    return routed(folder, {**ROLES, "top": "sender"}, {**CABLES, ("top", "center"): "10.10.3"})


THREE = """
[lab]
name = "course"
prefixes = ["10.10.0.0/16"]
revert_after = "30s"

[hosts.right]
ssh = "10.99.1.2"
role = "sender"
management = "mgmt"
interfaces = { eth1 = { address = "10.10.2.1/24", to = "center" } }

[hosts.center]
ssh = "10.99.2.2"
role = "router"
management = "mgmt"
interfaces = { eth1 = { address = "10.10.2.2/24", to = "right" }, eth2 = { address = "10.10.1.2/24", to = "left" } }

[hosts.left]
ssh = "10.99.3.2"
role = "receiver"
management = "mgmt"
interfaces = { eth1 = { address = "10.10.1.1/24", to = "center" } }
"""


def main(words: Sequence[str]) -> int:
    """Runs a command beside a lab; its exit status."""
    if why := missing():
        print(f"error: {why}", file=sys.stderr)
        return 1
    machines = three
    if words[:1] == ["--top"]:
        machines, words = four, words[1:]
    with tempfile.TemporaryDirectory() as folder, machines(Path(folder)) as (made, file):
        command = [str(file) if word == "LAB" else word for word in words]
        environment = {**os.environ, "DRAGSTRIP_SSH": made.ssh, "XDG_RUNTIME_DIR": folder}
        status = subprocess.run(command, env=environment, check=False).returncode
        made.ask_masters_to_end(Path(folder))
        return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
