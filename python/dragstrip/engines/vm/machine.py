"""The emulated machine: QEMU with virtual time, booted once, frozen, and resumed for every run.

One instruction is one nanosecond, idle time is skipped, and nothing of the host gets in: no clock, no
random numbers of the processor, no device that answers in the host's time.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache as once
from pathlib import Path
from typing import IO, Any

from dragstrip.engines.agent.locking import alone, locked
from dragstrip.engines.contract import Say, quietly
from dragstrip.engines.kernels.kernel import Kernel
from dragstrip.engines.vm import snapshot_sums
from dragstrip.engines.vm.image import initramfs
from dragstrip.engines.vm.window import SIZE, SharedWindow
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import DamagedError, replacing, scratch, warn, writing

PROGRAM = "qemu-system-x86_64"
GUEST = "x86_64"
"""The guest's machine, whatever the host is."""
INSTALL = "apt-get install qemu-system-x86"
MEMORY_MIB = 2048
PLAIN = "qemu64"
"""Processor of runs: it has neither RDRAND nor RDSEED."""
FOR_PROGRAMS = f"{PLAIN},+ssse3,+sse4.1,+sse4.2,+popcnt,+movbe,+aes,+pclmulqdq"
"""Processor of a user's programs: what x86-64-v2 asks for, and what TLS uses; still without randomness."""
BOOT_CPU_S = 60.0
"""Processor time that an emulator may take to boot, which takes 5 to 10 s of it."""
BOOT_S = 600.0
"""Wall-clock time, for a boot that waits for something; a busy machine takes long too."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h
WINDOW_MIB = SIZE >> 20
"""The window is memory of the guest behind its own, which its kernel's command line excludes."""

BOOT_WORDS = (
    # No entropy, no address and no rate may come from the host.
    "nokaslr random.trust_cpu=off random.trust_bootloader=off tsc=reliable tsc_early_khz=1000000 "
    # Costly without any effect here: mitigations of speculation, which an emulator does not do.
    "mitigations=off console=ttyS0 quiet panic=-1 rdinit=/init "
    f"memmap={WINDOW_MIB}M${MEMORY_MIB}M "
    f"-- first exchange=/dev/mem:{MEMORY_MIB << 20}:{SIZE} watchdog=/dev/watchdog"
)


def missing() -> str | None:
    """Reason why the engine cannot run here, or None."""
    if sys.platform != "linux":
        return "the vm engine runs on Linux"
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not installed: {INSTALL}"
    return None


@once
def version() -> str:
    """The emulator's own first line about itself."""
    reason = missing()
    if reason:
        raise DragstripError(f"engine vm: {reason}")
    query = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return query.stdout.splitlines()[0]


class Machine:
    """A running emulator. It dies with this process."""

    def __init__(
        self, arguments: list[str], folder: Path, preload: Path | None = None, core: int | None = None
    ) -> None:
        self._console = folder / "console"
        self._errors = (folder / "errors").open("w+b")
        serial = f"file,id=console,path={option(self._console)}"
        command = [PROGRAM, *arguments, "-chardev", serial, "-device", "isa-serial,chardev=console"]
        # Preloaded as an open file: ld.so(8) ends a path at a space or colon, and goes on without it.
        preloaded = (
            untrusted.opened(preload, description="a library") if preload else contextlib.nullcontext()
        )
        with preloaded as library:
            inherited = [library.fileno()] if library else []
            environment = {"LD_PRELOAD": f"/proc/self/fd/{inherited[0]}"} if inherited else {}
            self._process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**os.environ, **environment},
                pass_fds=inherited,
                preexec_fn=_before_exec(os.getpid(), core),
            )

    def alive(self) -> bool:
        """True while it runs."""
        return self._process.poll() is None

    def cpu_s(self) -> float:
        """Processor time it has taken so far (proc(5): utime and stime)."""
        try:
            stat = untrusted.content(Path(f"/proc/{self._process.pid}/stat"), untrusted.KIB)
        except BadInputError:
            return 0.0  # it has just ended
        ticks = stat.rpartition(b")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def last_lines(self) -> str:
        """The last output of the guest, or of the emulator, in one line."""
        console_output = [untrusted.content(self._console) if self._console.exists() else b""]
        self._errors.seek(0)
        console_output.append(self._errors.read())
        lines = b"\n".join(console_output).decode(errors="replace").replace("\r", "").strip().splitlines()
        # A panic's reason stands before a long trace.
        reasons = [line for line in lines[:-4] if "panic" in line or "dragstrip:" in line]
        status = self._process.poll()
        ended = "" if status is None else f" (exit status {status})"
        return (" | ".join([*reasons[-2:], *lines[-4:]]) or "no output") + ended

    def close(self) -> None:
        """Ends it, however it stands."""
        self._process.kill()
        self._process.wait()
        self._errors.close()


def _before_exec(parent: int, core: int | None) -> Any:
    library = ctypes.CDLL(None)

    def before_exec() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


@contextmanager
def resumed(
    kernel: Kernel,
    agent: Path,
    lockstep: Path,
    request: dict[str, Any],
    raw: bytes = b"",
    processor: str = PLAIN,
) -> Iterator[tuple[Machine, SharedWindow]]:
    """A machine that finds its request; `lockstep` is preloaded into the emulator."""
    version()
    place = snapshot(kernel, agent, processor=processor)
    with scratch(SCRATCH, _memory()) as folder, _core() as core:
        window = SharedWindow(folder / "window")
        window.ask(request, raw)
        arguments = [
            *_hardware(place / "ram", folder / "window", processor, shared=False),
            *("-incoming", "defer"),
            *_monitor(folder / "talk"),
        ]
        machine = Machine(arguments, folder, lockstep, core)
        try:
            monitor = Monitor(machine, folder / "talk")
            monitor.leave_memory_out()
            with untrusted.opened(place / "state", description="a frozen machine") as state:
                monitor.hand_over("state", state)
                monitor.order("migrate_incoming fd:state")
            monitor.wait_until_migrated()
            monitor.order("cont")
            yield machine, window
        finally:
            machine.close()


PROMPT = "(qemu) "
SCRATCH = "vm"


def _memory() -> Path | None:
    """The folder in memory for a run's files, where there is one."""
    place = Path("/dev/shm")  # noqa: S108
    return place if place.is_dir() and os.access(place, os.W_OK) else None


@contextmanager
def _core() -> Iterator[int | None]:
    """A core that no other emulator of ours has; none where there are more of them than cores.

    An emulator's two threads take turns, thousands of times a second; between two cores a turn costs more.
    """
    with contextlib.ExitStack() as stack:
        for core in sorted(os.sched_getaffinity(0)):
            lock = cache() / "machines" / f"core-{core}"
            with writing(lock):
                lock.touch()
            with contextlib.suppress(OSError):
                stack.enter_context(alone(lock))
                break
        else:
            core = None
        yield core


def _hardware(ram: Path, window: Path, processor: str, *, shared: bool) -> list[str]:
    share = "on" if shared else "off"
    return [
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-name", "dragstrip,debug-threads=on"),  # crates/lockstep knows the CPU's thread by its name
        *("-machine", "pc", "-m", f"{MEMORY_MIB + WINDOW_MIB}M"),
        *("-cpu", processor, "-smp", "1"),
        *("-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"),
        *("-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1"),
        *("-object", f"memory-backend-file,id=ram,size={MEMORY_MIB}M,mem-path={option(ram)},share={share}"),
        *("-object", f"memory-backend-file,id=window,size={SIZE},mem-path={option(window)},share=on"),
        *("-numa", "node,memdev=ram", "-numa", "node,memdev=window"),
        *("-device", "ib700", "-action", "watchdog=pause"),
    ]


def option(path: Path) -> str:
    """A path inside an option of QEMU's, where a comma ends a value and two are one."""
    return str(path).replace(",", ",,")


def _monitor(talk: Path) -> list[str]:
    # The one for people: QEMU gives that for programs a thread, and wakes it whenever the clock is moved.
    socket = f"socket,id=talk,path={option(talk)},server=on,wait=off"
    return ["-chardev", socket, "-mon", "chardev=talk,mode=readline"]


def snapshot(kernel: Kernel, agent: Path, say: Say = quietly, processor: str = PLAIN) -> Path:
    """The frozen machine of these parts: a folder with `ram` and `state`. Boots it if need be.

    One that is not what was written is named and made again.
    """
    place = cache() / "machines" / key(kernel, agent, processor)
    with locked(cache() / "machines" / "lock"):
        try:
            sound = place.exists() and snapshot_sums.check(place)
        except DamagedError as error:
            warn(DamagedError(error.path, error.reason, "the machine is booted again"))
            sound = False
        if not sound:
            with replacing(place) as draft, scratch(SCRATCH, _memory()) as folder:
                _freeze(kernel, agent, draft, folder, processor, say)
                snapshot_sums.write(draft)
    return place


def key(kernel: Kernel, agent: Path, processor: str = PLAIN) -> str:
    """Names a frozen machine by everything that it is made of."""
    hashed = hashlib.sha256()
    setup = json.dumps(
        [version(), BOOT_WORDS, _hardware(Path("ram"), Path("window"), processor, shared=True)]
    )
    hashed.update(setup.encode())
    listed = checksums.read(kernel.folder)
    for file in (kernel.image, agent, *kernel.modules):
        content = hashlib.sha256(untrusted.content(file))
        if file != agent and listed is not None:
            name = file.relative_to(kernel.folder).as_posix()
            if listed.get(name) != content.hexdigest():
                advice = "`dragstrip kernel fetch` or `use` imports the kernel again"
                raise DamagedError(file, f"its SHA-256 is not the one in {checksums.NAME}", advice)
        hashed.update(file.name.encode() + content.digest())
    return f"{kernel.name}-{hashed.hexdigest()[:12]}"


def _freeze(kernel: Kernel, agent: Path, draft: Path, folder: Path, processor: str, say: Say) -> None:
    """Boots until the agent lets the watchdog fire, and saves the machine as it stands."""
    say(f"engine vm, once for this kernel: booting Linux {kernel.name} in the emulator ...")
    initramfs(folder / "initramfs", agent, kernel.modules)
    SharedWindow(folder / "window").close()
    talk = folder / "talk"
    arguments = [
        *_hardware(draft / "ram", folder / "window", processor, shared=True),
        *("-kernel", str(kernel.image), "-initrd", str(folder / "initramfs"), "-append", BOOT_WORDS),
        *_monitor(talk),
    ]
    machine = Machine(arguments, folder)
    try:
        monitor = Monitor(machine, talk)
        monitor.wait_until_stopped()
        say("engine vm, once for this kernel: saving the booted machine, from which every run starts ...")
        monitor.leave_memory_out()
        with (draft / "state").open("wb") as state:
            monitor.hand_over("state", state)
            monitor.order("migrate -d fd:state")
        monitor.wait_until_migrated()
    finally:
        machine.close()


class Monitor:
    """QEMU's monitor: a command, what it says to that, and its prompt."""

    def __init__(self, machine: Machine, path: Path) -> None:
        self._machine = machine
        self._deadline = time.monotonic() + BOOT_S
        self._socket = socket.socket(socket.AF_UNIX)
        while True:
            with contextlib.suppress(OSError):
                self._socket.connect(str(path))
                break
            self._check()
            time.sleep(0.01)
        self._socket.settimeout(1.0)
        self._hear()

    def ask(self, command: str) -> str:
        """Runs a command and gives what it prints."""
        with contextlib.suppress(ConnectionError):  # seen when listening
            self._socket.sendall(command.encode() + b"\n")
        _echo, _, reply = self._hear().partition("\r\n")
        return reply.removesuffix(PROMPT).strip()

    def order(self, command: str) -> None:
        """Runs a command that says something only if it fails."""
        reply = self.ask(command)
        if reply:
            raise DragstripError(f"the emulator refuses {command}: {reply}")

    def hand_over(self, name: str, file: IO[bytes]) -> None:
        """Gives the emulator an open file under a name: no path of ours is read by it or by a shell."""
        socket.send_fds(self._socket, [f"getfd {name}\n".encode()], [file.fileno()])
        reply = self._hear().partition("\r\n")[2].removesuffix(PROMPT).strip()
        if reply:
            raise DragstripError(f"the emulator refuses the file {name}: {reply}")

    def leave_memory_out(self) -> None:
        """Memory that is shared (at the freezing: all of it) is not part of the saved state."""
        self.order("migrate_set_capability x-ignore-shared on")

    def wait_until_stopped(self) -> None:
        """The watchdog has stopped the machine."""
        while "paused" not in self.ask("info status"):
            time.sleep(0.02)

    def wait_until_migrated(self) -> None:
        """The state has been saved, or loaded."""
        while "status: completed" not in (status := self.ask("info migrate")):
            if "status: failed" in status or "status: cancelled" in status:
                raise DragstripError(f"the machine's state: {self._machine.last_lines()}")
            time.sleep(0.002)

    def _hear(self) -> str:
        output = b""
        while not output.endswith(PROMPT.encode()):
            self._check()
            try:
                piece = self._socket.recv(65_536)
            except TimeoutError:
                continue
            except ConnectionError:
                piece = b""
            if not piece:
                raise DragstripError(f"the guest does not boot: {self._machine.last_lines()}")
            output += piece
        return output.decode(errors="replace")

    def _check(self) -> None:
        if not self._machine.alive():
            raise DragstripError(f"the guest does not boot: {self._machine.last_lines()}")
        cpu_s = self._machine.cpu_s()
        if cpu_s > BOOT_CPU_S or time.monotonic() > self._deadline:
            last_lines = self._machine.last_lines()
            raise DragstripError(f"the guest did not boot in {cpu_s:.0f} s of processor time: {last_lines}")
