"""A guest: a stock kernel in a virtual machine in real time, whose files are those of this machine.

Its kernel has every discipline and congestion control that Debian's has, whatever this machine's lacks. What
the guest writes stays in its memory and goes with it, but for folders that it shares. Nothing is installed,
nothing needs root, and the machine ends with this process.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dragstrip.engines.agent import binaries
from dragstrip.engines.contract import Say, quietly
from dragstrip.engines.kernels.kernel import Kernel
from dragstrip.engines.vm.image import initramfs
from dragstrip.engines.vm.machine import Machine, missing, option
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import make_folder, scratch

PROCESSORS = 2
MEMORY_MIB = 2048
LIMIT_S = 3600.0
"""A guest that takes longer is ended."""
KVM = Path("/dev/kvm")
JOB = "/run/dragstrip"
"""Mount point of the guest's job (crates/agent/src/machine/guest.rs)."""
WORDS = "console=ttyS0 quiet panic=-1 mitigations=off rdinit=/init"
EMULATED = "clocksource=hpet no_timer_check"
"""Boot words that keep a guest in an emulator from measuring while this machine may be busy: the
rate of its time stamp counter, which is this machine's, and whether its timer works."""
LEFT_OUT = ("XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS")
"""Environment variables that name sockets which the guest does not have."""
AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Guest:
    """A command's run in a guest."""

    kernel: Kernel
    shares: Sequence[Path] = ()
    """Folders in which both write."""
    limit_s: float = LIMIT_S
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, command: Sequence[str], out: IO[bytes] | None = None, err: IO[bytes] | None = None) -> int:
        """The command's exit status; what it prints goes to `out` and `err`, by default this process's.

        It runs as root, in this process's folder. Raises `BadInputError` for a folder that cannot be shared,
        `DragstripError` where no guest can be booted, and for one that takes longer than its limit or ends
        before the command does.
        """
        sinks = (out or sys.stdout.buffer, err or sys.stderr.buffer)
        if reason := missing():
            raise DragstripError(f"a guest needs an emulator: {reason}")
        with scratch("guest") as folder:
            self._write(command, folder)
            with _booted(self._hardware(folder), folder) as machine:
                status = folder / "job" / "status"
                if not self._follow(machine, folder / "job", sinks):
                    why = f"it took longer than {self.limit_s:g} s: {_console_excerpt(machine, folder)}"
                    raise DragstripError(f"the guest was ended: {why}")
                if not status.is_file():
                    raise DragstripError(
                        f"the guest ended before the command did: {_console_excerpt(machine, folder)}"
                    )
                return int(untrusted.text(status, untrusted.KIB, "an exit status"))

    def _write(self, command: Sequence[str], folder: Path) -> None:
        job = folder / "job"
        job.mkdir()
        initramfs(folder / "initramfs", binaries.program(), self.kernel.guest_modules)
        environment = {name: value for name, value in self.environment.items() if name not in LEFT_OUT}
        python_folder = str(Path(sys.executable).parent)
        environment["PATH"] = ":".join([python_folder, environment.get("PATH", ""), "/usr/sbin", "/sbin"])
        words = ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]
        script = (
            f"cd {shlex.quote(str(Path.cwd()))} || exit 1\nexec {shlex.join(words)} >{JOB}/out 2>{JOB}/err\n"
        )
        (job / "script").write_text(script, encoding="utf-8", errors="surrogateescape")
        (job / "shares").write_text("".join(f"share{n} {p}\n" for n, p in enumerate(self._shared())))

    def _shared(self) -> list[Path]:
        places = [place.absolute() for place in self.shares]
        for place in places:
            if not place.is_dir() or "\n" in str(place):
                raise BadInputError("--share", str(place), "a folder that exists", "command line")
        return places

    def _hardware(self, folder: Path) -> list[str]:
        accelerators, more = (["kvm", "tcg"], "") if accelerated() else (["tcg"], f" {EMULATED}")
        mounts = [("host", Path("/"), "readonly=on"), ("job", folder / "job", "readonly=off")]
        mounts += [(f"share{number}", place, "readonly=off") for number, place in enumerate(self._shared())]
        return [
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-name", "dragstrip-guest"),
            # Without a register that a hypervisor around this machine may not let be set.
            *("-machine", "pc", "-cpu", "max,arch-capabilities=off"),
            *("-smp", str(PROCESSORS), "-m", f"{MEMORY_MIB}M"),
            *(word for name in accelerators for word in ("-accel", name)),
            *("-device", "virtio-rng-pci"),
            *(
                "-kernel",
                str(self.kernel.image),
                "-initrd",
                str(folder / "initramfs"),
                "-append",
                f"{WORDS}{more} -- guest",
            ),
            *(
                word
                for tag, place, mode in mounts
                for word in (
                    "-fsdev",
                    f"local,id={tag},path={option(place)},security_model=none,multidevs=remap,{mode}",
                    "-device",
                    f"virtio-9p-pci,fsdev={tag},mount_tag={tag}",
                )
            ),
        ]

    def _follow(self, machine: Machine, job: Path, sinks: Sequence[IO[bytes]]) -> bool:
        """Hands on what the command prints, until the machine has ended; False if that takes too long."""
        until = time.monotonic() + self.limit_s
        with contextlib.ExitStack() as stack:
            pairs = []
            for name, sink in zip(("out", "err"), sinks, strict=True):
                (job / name).touch()
                pairs.append((stack.enter_context((job / name).open("rb")), sink))
            while True:
                alive = machine.alive()
                for source, sink in pairs:
                    while part := source.read(AT_ONCE):
                        sink.write(part)
                        sink.flush()
                if not alive or time.monotonic() > until:
                    return not alive
                time.sleep(0.05)


@contextmanager
def _booted(arguments: list[str], folder: Path) -> Iterator[Machine]:
    machine = Machine(arguments, folder)
    try:
        yield machine
    finally:
        machine.close()


def _console_excerpt(machine: Machine, folder: Path) -> str:
    """The guest's last console lines, and the file with the rest."""
    place = cache() / "guest-console"
    make_folder(place.parent)
    shutil.copyfile(folder / "console", place)
    return f"{machine.last_lines()} ({place} has the rest)"


def accelerated() -> bool:
    """True if this machine's processors run a guest themselves (KVM); else an emulator does, much slower."""
    virtualised = any(Path("/sys/module", name).is_dir() for name in ("kvm_intel", "kvm_amd"))
    return virtualised and os.access(KVM, os.R_OK | os.W_OK)  # others run kernels that are made for them


def prepare(say: Say = quietly) -> None:
    """Compiles what a guest begins with; raises `DragstripError` where that cannot be done."""
    if reason := missing():
        raise DragstripError(f"a guest needs an emulator: {reason}")
    binaries.program(say)
