"""Kernels that the `vm` engine can boot: fetched from the distribution's archive, or one's own.

A kernel in the cache is a folder `kernels/NAME` with `vmlinuz`, `modules/` and `kernel.json`. Nothing is
installed and nothing needs root.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from dragstrip.display.progress import ProgressMessages
from dragstrip.engines.kernels import archive
from dragstrip.engines.kernels.archive import Archive
from dragstrip.errors import BadInputError, DragstripError, nearest
from dragstrip.io import checksums, untrusted
from dragstrip.io.cache import cache
from dragstrip.io.files import (
    DamagedError,
    NotWrittenError,
    make_folder,
    read_json,
    replacing,
    scratch,
    write_json,
    write_text,
)
from dragstrip.model.scenario import algorithms, disciplines

ARCHITECTURE = "amd64"
NEWEST = f"linux-image-{ARCHITECTURE}"
"""The archive's name for its current kernel."""

MODULES = (
    *("veth", "ib700wdt"),
    *disciplines.modules(),
    *algorithms.modules(),
)
"""Modules to load where the kernel has them as modules; built-in ones need no loading."""

GUEST_MODULES = (
    # Files of the machine around it, and an overlay over them.
    *("virtio_pci", "9pnet_virtio", "9p", "overlay", "virtio_rng"),
    *(name for name in MODULES if name != "ib700wdt"),
    # Modules of a host for engine ssh and for people: netem at a host's ingress, ss(8), tunnels.
    *("ifb", "act_mirred", "tcp_diag", "udp_diag", "tun", "dummy"),
)
"""Modules for a guest in real time (engines/vm/guest.py), which is a host like any other."""


NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._+-]+")
"""A kernel's name is a folder's in the cache: it must not lead out of it."""

GUEST = "guest"
"""The file with the order of a guest's modules."""

BOOT_MARK = (0x202, b"HdrS")
"""Offset and value of the magic number in a bzImage (Documentation/x86/boot.rst)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel in the cache."""

    name: str
    folder: Path
    package: str
    package_sha256: str = ""
    """The SHA-256 of the .deb in the archive's signed index; empty for a kernel of your own."""
    requested: tuple[str, ...] = ()
    """The modules that were asked for when it was taken in, whether it has them or not."""

    @property
    def image(self) -> Path:
        """The bootable file."""
        return self.folder / "vmlinuz"

    @property
    def modules(self) -> list[Path]:
        """Files in the order of loading."""
        order = untrusted.text(self.folder / "modules" / "order", untrusted.MIB, "a list of modules").split()
        return [self.folder / "modules" / name for name in order]

    @property
    def guest_modules(self) -> list[Path]:
        """The modules for a guest in real time; raises `DragstripError` if they were not kept."""
        file = self.folder / "modules" / GUEST
        if not file.is_file():
            advice = "`dragstrip kernel fetch` or `use` imports the kernel again"
            raise DragstripError(
                f"kernel {self.name}: it was imported without the modules of a guest; {advice}"
            )
        order = untrusted.text(file, untrusted.MIB, "a list of modules").split()
        return [self.folder / "modules" / name for name in order]


def kernels() -> list[Kernel]:
    """All kernels in the cache, by name."""
    cached = []
    for file in sorted((cache() / "kernels").glob("*/kernel.json")):
        content = read_json(file)
        digest, requested = content.get("package_sha256", ""), tuple(content.get("requested", ()))
        cached.append(Kernel(file.parent.name, file.parent, content["package"], digest, requested))
    return cached


def find_kernel(name: str | None = None) -> Kernel:
    """The kernel called `name`, or the one in use; raises `DragstripError` if there is none."""
    by_name = {kernel.name: kernel for kernel in kernels()}
    if not by_name:
        raise DragstripError("engine vm: there is no kernel yet; `dragstrip kernel fetch` downloads Debian's")
    if name is None:
        name = in_use()
    if name not in by_name:
        raise BadInputError("kernel", name, f"one of {', '.join(by_name)}{nearest(str(name), by_name)}")
    return by_name[name]


def in_use() -> str | None:
    """The name of the kernel that runs use."""
    try:
        return untrusted.text(cache() / "kernels" / "in-use", untrusted.KIB, "a kernel's name").strip()
    except BadInputError:
        return None


def choose(name: str) -> None:
    """From now on, runs use this kernel."""
    file = cache() / "kernels" / "in-use"
    make_folder(file.parent)
    write_text(file, name + "\n")


def fetch(
    version: str | None = None, suite: str | None = None, beforehand: Callable[[], object] = lambda: None
) -> Kernel:
    """Downloads a kernel's packages (or takes it from the cache), unpacks them, and uses it from now on.

    `version` is a package (`linux-image-6.1.0-56-amd64`), its release (`6.1.0-56-amd64`) or the beginning
    of one (`6.12`); without it, the archive's current kernel. `suite` is another one than this machine has.
    `beforehand` is called before a kernel is downloaded, and may raise.
    """
    if version is not None and not re.match(r"(linux-image-)?\d|linux-image-[a-z]", version):
        expected = "a release or its beginning, such as 6.12, or a package, such as linux-image-amd64"
        raise BadInputError("VERSION", version, expected, "command line")
    with contextlib.closing(ProgressMessages()) as speaker:
        speaker.doing(lambda: "asking apt for kernels ...")
        with archive.opened(suite, speaker) as of:
            make_folder(cache() / "kernels")
            with scratch("kernel", cache() / "kernels"):
                pass  # before a download that could not be kept
            beforehand()
            package = _package(of, version)
            name = package.removeprefix("linux-image-")
            by_name = {kernel.name: kernel for kernel in kernels()}
            if name not in by_name or not _is_current(by_name[name]):
                with scratch("kernel") as folder:
                    _take_in(of, package, folder, speaker)
                by_name = {kernel.name: kernel for kernel in kernels()}
    choose(name)
    return by_name[name]


def _take_in(of: Archive, package: str, folder: Path, speaker: ProgressMessages) -> None:
    """Unpacks a kernel; since 6.19 image and modules have a package each, the image among the modules."""
    name = package.removeprefix("linux-image-")
    parts = [f"linux-{part}-{name}" for part in ("binary", "modules")]
    packages = [needed for needed in of.needs(package) if needed in parts] or [package]
    digests = [of.unpack(package_name, folder, speaker) for package_name in sorted(packages)]
    modules = next(
        (at for at in (folder / "lib/modules" / name, folder / "usr/lib/modules" / name) if at.is_dir()), None
    )
    if modules is None:
        raise DragstripError(f"{package} has no modules of {name}")
    image = folder / "boot" / f"vmlinuz-{name}"
    speaker.doing(lambda: f"copying {name} and its modules ...")
    # The digest is that of the package with the image.
    image = image if image.is_file() else modules / "vmlinuz"
    _keep(name, image, modules, package=package, package_sha256=digests[0])


def _requested() -> tuple[str, ...]:
    return tuple(sorted({*MODULES, *GUEST_MODULES}))


def _is_current(kernel: Kernel) -> bool:
    """True if a kernel is the archive's, sound, and was asked for all modules that are asked for today."""
    return bool(kernel.package_sha256) and kernel.requested == _requested() and _sound(kernel)


def _sound(kernel: Kernel) -> bool:
    """True if a kernel's files are all there and match their checksums, as far as there are any."""
    if not (kernel.folder / "modules" / GUEST).is_file():
        return False
    try:
        for name in checksums.read(kernel.folder) or ():
            checksums.check(kernel.folder, name)
    except (DamagedError, BadInputError):
        return False
    return True


def use(path: str) -> Kernel:
    """Uses a kernel that is in the cache, by name, or takes a folder or an image in.

    A folder holds `boot/vmlinuz-NAME` and `lib/modules/NAME`, as an unpacked package does; an image
    `vmlinuz-NAME` has its modules in `../lib/modules/NAME` or `/lib/modules/NAME`.
    """
    by_name = {kernel.name: kernel for kernel in kernels()}
    if path in by_name:
        choose(path)
        return by_name[path]
    place = Path(path)
    if place.is_dir():
        images = sorted(place.glob("boot/vmlinuz-*")) + sorted(place.glob("vmlinuz-*"))
        if len(images) != 1:
            expected = f"a folder with one vmlinuz-* in it or in its boot, not {len(images)}"
            raise BadInputError("PATH", path, expected)
        image = images[0]
    elif place.is_file():
        image = place
    else:
        names = ", ".join(by_name) or "none yet"
        raise BadInputError(
            "PATH", path, f"a kernel's image, a folder, or the name of a kernel in the cache ({names})"
        )
    with untrusted.opened(image, description="a kernel") as file:
        if file.read(BOOT_MARK[0] + 4)[BOOT_MARK[0] :] != BOOT_MARK[1]:
            raise BadInputError("PATH", str(image), "a kernel's image that can be booted (bzImage)")
    name = image.name.removeprefix("vmlinuz-")
    if not NAME.fullmatch(name):
        expected = "a file vmlinuz-NAME, NAME of letters, digits, dots, underscores, plus and minus signs"
        raise BadInputError("PATH", str(image), expected)
    candidates = [
        image.parent / "lib/modules" / name,
        image.parent.parent / "lib/modules" / name,
        Path("/lib/modules") / name,
    ]
    modules = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if modules is None:
        raise BadInputError("PATH", path, f"modules in {candidates[0]} or {candidates[1]}")
    _keep(name, image, modules)
    try:
        choose(name)
    except NotWrittenError:
        if name not in by_name:
            shutil.rmtree(cache() / "kernels" / name, ignore_errors=True)
        raise
    return find_kernel(name)


def _package(of: Archive, version: str | None) -> str:
    image_package = NEWEST if version is None else version
    if not image_package.startswith("linux-image-"):
        image_package = f"linux-image-{image_package}"
    image_packages = of.names("linux-image-")
    if image_package == NEWEST or image_package not in image_packages:
        if image_package == NEWEST:
            candidates = [name for name in of.needs(NEWEST) if name.startswith("linux-image-")]
        else:
            versioned = re.compile(rf"{re.escape(image_package)}[.\-+].*-{ARCHITECTURE}$")
            special = ("-cloud-", "-rt-", "-dbg", "-unsigned")
            candidates = [
                n for n in image_packages if versioned.match(n) and not any(word in n for word in special)
            ]
        if not candidates:
            raise BadInputError(
                "VERSION", version, f"a kernel of the archive{nearest(image_package, image_packages)}"
            )
        image_package = max(candidates, key=_release)
    return image_package


def _release(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def _keep(name: str, image: Path, modules: Path, *, package: str = "", package_sha256: str = "") -> None:
    """Copies an image and the modules that we load into the cache."""
    if not image.is_file():
        raise DragstripError(f"the kernel {name} has no image {image.name}")
    with replacing(cache() / "kernels" / name) as draft:
        shutil.copyfile(image, draft / "vmlinuz")
        (draft / "modules").mkdir()
        order = _copy_modules(modules, draft / "modules", MODULES)
        (draft / "modules" / "order").write_text("".join(f"{name}.ko\n" for name in order))
        guest = _copy_modules(modules, draft / "modules", GUEST_MODULES)
        (draft / "modules" / GUEST).write_text("".join(f"{name}.ko\n" for name in guest))
        content = {"package": package, "package_sha256": package_sha256, "modules": order}
        write_json(draft / "kernel.json", {**content, "requested": _requested()})
        files = [file.relative_to(draft).as_posix() for file in draft.rglob("*") if file.is_file()]
        checksums.write(draft, files)


def _copy_modules(source: Path, draft: Path, names: Iterable[str]) -> list[str]:
    """Copies modules and what they depend on, uncompressed; gives their names in the order of loading."""
    files = {file.name.split(".")[0].replace("-", "_"): file for file in source.glob("kernel/**/*.ko*")}
    order: list[str] = []

    def copy(name: str) -> None:
        if name in order or name not in files:
            return
        content = _uncompressed(files[name])
        for needed in _depends(content):
            copy(needed.replace("-", "_"))
        (draft / f"{name}.ko").write_bytes(content)
        order.append(name)

    for name in names:
        copy(name)
    return order


def _uncompressed(file: Path) -> bytes:
    content = untrusted.content(file, description="a kernel's module")
    if file.suffix == ".xz":
        return untrusted.unpacked(content, untrusted.BINARY_MAX, "a kernel's module", str(file))
    if file.suffix == ".ko":
        return content
    raise DragstripError(f"{file.name}: modules are taken plain or compressed with xz")


def _depends(module: bytes) -> list[str]:
    """The modules that must be loaded before this one (`depends=` in its .modinfo section)."""
    match = re.search(rb"\0depends=([^\0]*)\0", module)
    return [name for name in match[1].decode().split(",") if name] if match else []


def as_json(kernel: Kernel) -> dict[str, object]:
    """For the command line."""
    return {
        "name": kernel.name,
        "package": kernel.package,
        "package_sha256": kernel.package_sha256 or None,
        "in_use": kernel.name == in_use(),
    }
