"""What can be tested of the vm engine without an emulator."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dragstrip import _core
from dragstrip.cli import kernel as kernel_cli
from dragstrip.display.progress import ProgressMessages
from dragstrip.engines import named
from dragstrip.engines.agent import binaries
from dragstrip.engines.kernels import kernel
from dragstrip.engines.vm import machine as vm_machine
from dragstrip.engines.vm import snapshot_sums
from dragstrip.engines.vm.image import initramfs
from dragstrip.engines.vm.window import ANSWERED, BODY, FAILED, REFUSED, SharedWindow
from dragstrip.errors import BadInputError, DragstripError
from dragstrip.io.files import DamagedError, NotWrittenError


def a_kernel(folder: Path, name: str) -> Path:
    """What an unpacked package looks like: an image and two modules, of which one needs the other."""
    modules = folder / "lib/modules" / name / "kernel/net"
    modules.mkdir(parents=True)
    (folder / "boot").mkdir()
    (folder / "boot" / f"vmlinuz-{name}").write_bytes(bytes(0x202) + b"HdrS")
    (modules / "sch_htb.ko").write_bytes(b"\0license=GPL\0depends=needed-one\0")
    (modules / "needed_one.ko").write_bytes(b"\0license=GPL\0depends=\0")
    (modules / "never_asked_for.ko").write_bytes(b"\0depends=\0")
    return folder


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGSTRIP_CACHE", str(tmp_path / "cache"))


def test_a_kernel_is_taken_in_with_the_modules_it_needs(tmp_path: Path) -> None:
    taken = kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))
    assert (taken.name, kernel.in_use()) == ("6.1-a", "6.1-a")
    assert [file.name for file in taken.modules] == ["needed_one.ko", "sch_htb.ko"]
    kernel.use(str(a_kernel(tmp_path / "two", "6.12-b")))
    assert [one.name for one in kernel.kernels()] == ["6.1-a", "6.12-b"]
    assert kernel.find_kernel().name == "6.12-b"
    kernel.use("6.1-a")
    assert kernel.find_kernel().name == "6.1-a"


def test_a_change_of_the_kernel_in_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (name, said) in enumerate(
        [
            ("6.1-a", ""),
            ("6.1-a", ""),
            ("6.12-b", " (until now 6.1-a: `dragstrip kernel use 6.1-a` goes back)"),
        ]
    ):
        kernel_cli.use(str(a_kernel(tmp_path / str(number), name)))
        assert capsys.readouterr().out == f"In use: {name}{said}\n"


def test_no_kernel_says_how_to_get_one() -> None:
    with pytest.raises(DragstripError, match="kernel fetch"):
        kernel.find_kernel()


@pytest.mark.parametrize(("flows", "field"), [(1_001, "flows"), (300, "nodes")])
def test_what_is_too_large_is_refused_before_anything_boots(flows: int, field: str) -> None:
    # From one host; else each from a host of its own.
    senders = 1 if field == "flows" else flows
    scenario = {
        "name": "large",
        "duration_ns": 10**9,
        "nodes": [{"kind": "host", "name": f"s{n}"} for n in range(senders)]
        + [{"kind": "host", "name": "d"}, {"kind": "router", "name": "r"}],
        "links": [
            {"name": f"{a}-{b}", "from": a, "to": b, "rate_bps": 10**7}
            for near in [*(f"s{n}" for n in range(senders)), "d"]
            for a, b in [(near, "r"), ("r", near)]
        ],
        "flows": [
            {
                "label": f"f{n}",
                "sender": f"s{n % senders}",
                "receiver": "d",
                "transport": {"protocol": "tcp", "cc": "reno"},
                "application": {"kind": "bulk"},
            }
            for n in range(flows)
        ],
    }
    refusals = named("vm").refusals(_core.Scenario(scenario).document(), {})
    assert [(found.field, found.value) for found in refusals] == [
        (field, str(flows if field == "flows" else flows + 2))
    ]
    assert refusals[0].expected.startswith("at most ")


@pytest.mark.parametrize(("idle", "noted"), [(0.3, False), (0.09, True)])
def test_a_run_that_kept_the_guest_s_processor_busy_is_noted(idle: float, noted: bool) -> None:
    recording = SimpleNamespace(scenario={"name": "cubic"}, provenance={"verified": {"cpu_idle_share": idle}})
    notes = named("vm").notes(recording)  # type: ignore[arg-type]
    assert [
        note.startswith("note: cubic: the emulated processor was idle for only 9 % of") for note in notes
    ] == [True] * noted


def test_a_wrong_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="not 0"):
        kernel.use(str(tmp_path))
    with pytest.raises(BadInputError, match="none yet"):
        kernel.use(str(tmp_path / "nowhere"))
    no_image = a_kernel(tmp_path / "one", "6.1-a") / "boot/vmlinuz-6.1-a"
    no_image.write_text("hello\n" * 200)
    with pytest.raises(BadInputError, match=r"vmlinuz-6\.1-a', expected a kernel's image .*bzImage"):
        kernel.use(str(no_image))
    assert not kernel.kernels()


def test_a_kernel_that_cannot_be_chosen_is_not_taken_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))

    def full(path: Path, _text: str) -> None:
        raise NotWrittenError(path, OSError(28, "No space left on device"))

    monkeypatch.setattr(kernel, "write_text", full)
    with pytest.raises(NotWrittenError, match="No space left"):
        kernel.use(str(a_kernel(tmp_path / "two", "6.12-b")))
    assert [one.name for one in kernel.kernels()] == ["6.1-a"]
    with pytest.raises(NotWrittenError, match="No space left"):  # one that was there stays
        kernel.use(str(tmp_path / "one"))
    assert [one.name for one in kernel.kernels()] == ["6.1-a"]
    assert kernel.find_kernel().name == first.name


@pytest.mark.parametrize("name", ["", ".", "..", "...", "6.1'x", "6 1", "a\nb", "$(id)"])
def test_a_kernel_without_a_name_of_its_own_is_refused_and_loses_nothing(tmp_path: Path, name: str) -> None:
    kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))
    image = tmp_path / f"vmlinuz-{name}"
    image.write_bytes(bytes(0x202) + b"HdrS")
    with pytest.raises(BadInputError, match="vmlinuz-NAME"):
        kernel.use(str(image))
    assert [one.name for one in kernel.kernels()] == ["6.1-a"]


def test_a_kernel_that_is_taken_in_again_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))
    again = a_kernel(tmp_path / "two", "6.1-a")
    (again / "lib/modules/6.1-a/kernel/net/sch_htb.ko").write_bytes(b"\0depends=\0new")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(kernel, "_copy_modules", fail)
        kernel.use(str(again))
    assert [file.name for file in kernel.find_kernel("6.1-a").modules] == ["needed_one.ko", "sch_htb.ko"]
    kernel.use(str(again))
    assert [file.name for file in kernel.find_kernel("6.1-a").modules] == ["sch_htb.ko"]
    assert sorted(file.name for file in (kernel.cache() / "kernels").iterdir()) == ["6.1-a", "in-use"]


ARCHIVE = """#!{python}
import os, shutil, sys, tarfile
words, archive = sys.argv[1:], "{archive}"
settings = [words[at + 1] for at, word in enumerate(words) if word == "-o"]
words = [word for at, word in enumerate(words) if word != "-o" and (at == 0 or words[at - 1] != "-o")]
of = dict(setting.split("=", 1) for setting in settings)
match os.path.basename(sys.argv[0]), words[0]:
    case "apt-get", "indextargets":
        print("http://deb/debian/")
    case "apt-get", "update":
        source = open(of["Dir::Etc::sourcelist"]).read()
        if " far " not in source:
            sys.exit("E: 404  Not Found: " + source)
        open(of["Dir::State::lists"] + "/deb_Packages", "w").write(source)
    case "apt-cache", "depends":
        print(*("  Depends: " + name for name in open(archive + "/needs").read().split()), sep="\\n")
    case "apt-cache", "pkgnames":
        print("linux-image-6.1-a" if "Dir::State::lists" not in of else "linux-image-7.3-b-amd64")
    case "apt-get", "download" if "--print-uris" in words:
        print(open(archive + "/listed").read())
    case "apt-get", "download":
        assert of["APT::Get::AllowUnauthenticated"] == "false"
        shutil.copy(archive + "/package", words[-1] + "_1_amd64.deb")
    case "dpkg-deb", "-x":
        tarfile.open(words[1]).extractall(words[2])
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `package` and what the index says of it, `listed`; apt and dpkg-deb are programs that read it."""
    folder, programs = tmp_path / "archive", tmp_path / "programs"
    folder.mkdir()
    programs.mkdir()
    (folder / "needs").write_text("kmod linux-base-6.1-a")
    for name in ("apt-get", "apt-cache", "dpkg-deb"):
        (programs / name).write_text(ARCHIVE.format(python=sys.executable, archive=folder))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    with tarfile.open(folder / "package", "w") as package:
        package.add(a_kernel(tmp_path / "unpacked", "6.1-a"), arcname=".")
    digest = hashlib.sha256((folder / "package").read_bytes()).hexdigest()
    (folder / "listed").write_text(f"'http://deb/x.deb' x.deb 7 SHA256:{digest}")
    return folder


def test_a_fetched_kernel_keeps_the_hash_that_the_index_has(archive: Path) -> None:
    fetched = kernel.fetch("6.1-a")
    assert fetched.package_sha256 == (archive / "listed").read_text()[-64:]
    assert kernel.as_json(fetched)["package_sha256"] == fetched.package_sha256
    file = fetched.folder / "kernel.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "requested": content["requested"][1:]}))
    assert kernel.find_kernel("6.1-a").requested != fetched.requested
    assert kernel.fetch("6.1-a") == fetched  # again: a module is asked for that was not
    assert json.loads(file.read_text()) == content
    (archive / "package").unlink()
    assert kernel.fetch("6.1-a") == fetched  # not again


def test_nothing_is_downloaded_where_no_kernel_could_be_run(archive: Path) -> None:
    def without_an_agent() -> None:
        raise DragstripError("no agent")

    (archive / "package").unlink()  # a download would fail by another error
    with pytest.raises(DragstripError, match="no agent"):
        kernel.fetch("6.1-a", None, without_an_agent)
    assert not kernel.kernels()


def test_fetching_says_how_far_it_is(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    size = (archive / "package").stat().st_size
    listed = (archive / "listed").read_text().replace("x.deb 7 ", f"x.deb {size} ")
    (archive / "listed").write_text(listed)
    program = archive.parent / "programs" / "apt-get"
    program.write_text(program.read_text() + "import time; time.sleep(1)\n")
    monkeypatch.setattr(kernel, "ProgressMessages", lambda: ProgressMessages(0.2))
    kernel.fetch("6.1-a")
    said = capsys.readouterr().err
    assert "asking apt for kernels ...\n" in said
    assert f"downloading linux-image-6.1-a: {size / 1e6:.0f} of {size / 1e6:.0f} MB ...\n" in said


def test_a_package_that_is_not_the_indexs_is_refused(archive: Path) -> None:
    with (archive / "package").open("ab") as package:
        package.write(b"more")
    with pytest.raises(DragstripError, match=r"its SHA-256 is [0-9a-f]{64}, the archive's index has"):
        kernel.fetch("6.1-a")
    (archive / "listed").write_text("'http://deb/x.deb' x.deb 7 MD5Sum:abc")
    with pytest.raises(DragstripError, match="gives no SHA-256"):
        kernel.fetch("6.1-a")
    assert not kernel.kernels()


def test_a_kernel_of_another_suite_with_image_and_modules_in_packages_of_their_own(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragstrip.engines.kernels.archive.KEYRING", archive / "listed")
    name, root = "7.3-b-amd64", tmp_path / "split"
    modules = root / "usr/lib/modules" / name
    modules.parent.mkdir(parents=True)
    a_kernel(tmp_path / "old", name)
    shutil.move(tmp_path / "old/lib/modules" / name, modules)
    shutil.move(tmp_path / f"old/boot/vmlinuz-{name}", modules / "vmlinuz")
    with tarfile.open(archive / "package", "w") as package:
        package.add(root, arcname=".")
    digest = hashlib.sha256((archive / "package").read_bytes()).hexdigest()
    (archive / "listed").write_text(f"'http://deb/x.deb' x.deb 7 SHA256:{digest}")
    (archive / "needs").write_text(f"kmod linux-binary-{name} linux-modules-{name} linux-binary-other")
    fetched = kernel.fetch("7.3", "far")
    assert (fetched.name, fetched.package, fetched.package_sha256) == (name, f"linux-image-{name}", digest)
    assert [file.name for file in fetched.modules] == ["needed_one.ko", "sch_htb.ko"]
    assert kernel.in_use() == name
    for wrong in ("near", "Far", "../far"):
        with pytest.raises(BadInputError, match=f"--suite: got '{wrong}', expected a suite of Debian"):
            kernel.fetch("7.3", wrong)
    with pytest.raises(BadInputError, match=r"got .7\.3., expected a kernel of the archive"):
        kernel.fetch("7.3")  # the suites that apt has here


def test_a_kernel_of_before_hashes_were_kept_is_fetched_again(archive: Path) -> None:
    kernel.use(str(archive.parent / "unpacked"))
    assert not kernel.find_kernel().package_sha256
    assert kernel.fetch("6.1-a").package_sha256


def test_the_library_is_preloaded_whatever_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"(/\S*/libm[.-]\S*)", Path("/proc/self/maps").read_text())
    if found is None:
        pytest.skip("this interpreter has no libm of its own to try with")
    place = tmp_path / "a b:c,d'e$(id)"
    place.mkdir()
    library = Path(shutil.copy(found[1], place / "preloaded.so"))
    emulator = tmp_path / "emulator"
    emulator.write_text("#!/bin/sh\ncat /proc/self/maps\n")
    emulator.chmod(0o755)
    monkeypatch.setattr(vm_machine, "PROGRAM", str(emulator))
    machine = vm_machine.Machine([], place, preload=library)
    machine._process.wait(10)
    machine._errors.seek(0)
    said = machine._errors.read()
    assert re.search(rb"r-xp .*/preloaded\.so\n", said), said
    machine.close()


def test_two_kernels_of_one_name_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_machine, "version", lambda: "an emulator")
    (tmp_path / "agent").write_bytes(b"program")
    keys = []
    for own in (b"", b"another build"):
        source = a_kernel(tmp_path / f"one{len(keys)}", "6.1-a")
        with (source / "boot/vmlinuz-6.1-a").open("ab") as image:
            image.write(own)
        keys.append(vm_machine.key(kernel.use(str(source)), tmp_path / "agent"))
    assert keys[0] != keys[1]


@pytest.mark.parametrize("name", ["vmlinuz", "modules/sch_htb.ko"])
def test_a_kernel_that_is_not_what_was_taken_in_is_not_booted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(vm_machine, "version", lambda: "an emulator")
    (tmp_path / "agent").write_bytes(b"program")
    taken = kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))
    content = bytearray((taken.folder / name).read_bytes())
    content[7] ^= 4
    (taken.folder / name).write_bytes(content)
    with pytest.raises(DamagedError, match=rf"{name}: damaged"):
        vm_machine.key(taken, tmp_path / "agent")


def test_a_frozen_machine_is_checked(tmp_path: Path) -> None:
    with (tmp_path / "ram").open("wb") as ram:
        ram.truncate(1 << 30)
        ram.seek(500_000_000)
        ram.write(b"memory")
    (tmp_path / "state").write_bytes(b"state")
    snapshot_sums.write(tmp_path)
    assert snapshot_sums.check(tmp_path)
    for name, at in (("ram", 500_000_001), ("ram", 9), ("state", 2), ("checksums.json", 20)):
        with (tmp_path / name).open("r+b") as file:
            file.seek(at)
            was = file.read(1)
            file.seek(at)
            file.write(bytes([was[0] ^ 1]))
            file.flush()
            with pytest.raises(DamagedError, match=str(tmp_path)):
                snapshot_sums.check(tmp_path)
            file.seek(at)
            file.write(was)
    assert snapshot_sums.check(tmp_path)


def test_no_emulator_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_machine, "PROGRAM", "no-such-emulator")
    assert vm_machine.missing() == "no-such-emulator is not installed: apt-get install qemu-system-x86"


def test_the_archive_is_read_back(tmp_path: Path) -> None:
    taken = kernel.use(str(a_kernel(tmp_path / "one", "6.1-a")))
    agent = tmp_path / "agent"
    agent.write_bytes(b"program")
    initramfs(tmp_path / "archive", agent, taken.modules)
    content = (tmp_path / "archive").read_bytes()
    found = {}
    at = 0
    while True:
        fields = [int(content[at + 6 + 8 * k : at + 14 + 8 * k], 16) for k in range(13)]
        size, length = fields[6], fields[11]
        assert content[at : at + 6] == b"070701"
        name = content[at + 110 : at + 109 + length].decode()
        start = at + (110 + length + 3) // 4 * 4
        found[name] = (fields[1], content[start : start + size])
        at = start + (size + 3) // 4 * 4
        if name == "TRAILER!!!":
            break
    assert at == len(content)
    assert found["init"] == (0o100755, b"program")
    assert found["modules/order"][1] == b"needed_one.ko\nsch_htb.ko\n"


def test_the_window_carries_request_and_answer(tmp_path: Path) -> None:
    window = SharedWindow(tmp_path / "window")
    window.ask({"name": "x"})
    raw = (tmp_path / "window").read_bytes()[: BODY + 64]
    assert int.from_bytes(raw[:8], "little") == 1
    size = int.from_bytes(raw[8:16], "little")
    assert json.loads(raw[BODY : BODY + size]) == {"name": "x"}
    assert not window.answered()

    def leave(state: int, body: bytes) -> None:
        with (tmp_path / "window").open("r+b") as file:
            file.seek(BODY)
            file.write(body)
            file.seek(24)
            file.write(len(body).to_bytes(8, "little"))
            file.seek(0)
            file.write(state.to_bytes(8, "little"))

    leave(ANSWERED, b'{"tables": []}\nraw')
    assert window.answered()
    head, rest = window.answer()
    assert (head, bytes(rest)) == ({"tables": []}, b"raw")
    leave(FAILED, b"no such path")
    with pytest.raises(DragstripError, match="no such path"):
        window.answer()
    leave(REFUSED, b"host s: tick_hz\n1000\n250")
    assert window.answered()
    with pytest.raises(BadInputError, match="engine vm: host s: tick_hz: got 1000, expected 250"):
        window.answer()


def test_a_damaged_agent_is_named_and_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = []

    def build(_root: Path, part: binaries.AgentBinary) -> Path:
        orders.append(part.package)
        built = tmp_path / part.file
        built.write_bytes(b"a program")
        return built

    monkeypatch.delenv("DRAGSTRIP_AGENT", raising=False)
    monkeypatch.setattr(binaries, "_build", build)
    made = binaries.program()
    assert binaries.program() == made
    assert (len(orders), os.access(made, os.X_OK)) == (1, True)
    made.write_bytes(b"a prograM")
    assert binaries.program().read_bytes() == b"a program"
    assert len(orders) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"warning: {made}: damaged: its SHA-256"), said
    assert said.count("\n") == 1
    (made.parent / "SHA256SUMS").unlink()  # as an earlier version left it
    binaries.program()
    assert (len(orders), capsys.readouterr().err) == (3, "")


def test_a_boot_is_given_up_for_its_processor_time_not_because_the_machine_is_busy() -> None:
    spent = 0.0
    monitor = vm_machine.Monitor.__new__(vm_machine.Monitor)
    emulator = SimpleNamespace(alive=lambda: True, cpu_s=lambda: spent, last_lines=lambda: "waiting")
    monitor._machine = emulator  # type: ignore[assignment]
    monitor._deadline = time.monotonic() + 60.0
    monitor._check()
    spent = vm_machine.BOOT_CPU_S + 1
    with pytest.raises(DragstripError, match="did not boot in 61 s of processor time: waiting"):
        monitor._check()
    spent, monitor._deadline = 0.0, time.monotonic() - 1.0
    with pytest.raises(DragstripError, match="did not boot"):
        monitor._check()


def test_the_processor_time_of_an_emulator_is_the_kernel_s() -> None:
    emulator = vm_machine.Machine.__new__(vm_machine.Machine)
    busy = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as emulator._process:
        until = time.monotonic() + 60
        while emulator.cpu_s() < 0.1 and time.monotonic() < until:
            time.sleep(0.02)
        assert emulator.cpu_s() >= 0.1
        emulator._process.kill()
    assert emulator.cpu_s() == 0.0
