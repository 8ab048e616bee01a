"""Installs what is missing, if allowed to, and builds every program optimised."""

# ruff: noqa: S603, S607 -- the compilers and apt-get are looked up on the PATH on purpose

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from cases import Binaries

BENCH = Path(__file__).resolve().parent
NS3_LIBRARIES = (
    "applications",
    "internet",
    "bridge",
    "point-to-point",
    "traffic-control",
    "network",
    "stats",
    "core",
)


def say(text: str) -> None:
    """Progress, to stderr: stdout is for results."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def missing_packages() -> list[str]:
    """Debian packages whose programs or headers are not here."""
    missing = [package for program, package in (("g++", "g++"), ("ns", "ns2")) if not shutil.which(program)]
    if shutil.which("g++"):
        probe = ["g++", "-E", "-x", "c++", "-include", "ns3/core-module.h", "/dev/null"]
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            missing.append("libns3-dev")
    else:
        missing.append("libns3-dev")
    return missing


def install(packages: list[str]) -> None:
    """Installs Debian packages as root; otherwise says what to install, and goes on without."""
    words = " ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        say(f"not installed: {words}. To race against them: sudo apt-get install {words}")
        return
    say(f"installing {words}")
    command = ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for attempt in ("as it is", "after apt-get update"):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode == 0:
            return
        if attempt == "as it is":
            subprocess.run(["apt-get", "update", "-q"], capture_output=True, check=False)
    say(f"apt-get install {words} failed:\n{done.stderr.strip()}")


def build(*, may_install: bool) -> Binaries:
    """Builds; an opponent that cannot be built is skipped by name, this simulator must build."""
    missing = missing_packages()
    if missing and may_install:
        install(missing)
    elif missing:
        say(f"not installed: {' '.join(missing)}")
    ns2 = shutil.which("ns")
    if ns2 is None:
        say("skipping ns-2: no program ns (Debian package ns2)")
    dragstrip = _build_dragstrip()
    return Binaries(
        dragstrip=dragstrip,
        ns3=_build_ns3(dragstrip.parent),
        ns2=Path(ns2) if ns2 else None,
        ns2_script=BENCH / "ns2" / "dumbbell.tcl",
    )


def _build_dragstrip() -> Path:
    say("building dragstrip-bench (release)")
    command = ["cargo", "build", "--release", "--locked", "-p", "dragstrip-bench", "--message-format=json"]
    done = subprocess.run(command, cwd=BENCH.parent, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit("dragstrip-bench does not build")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "dragstrip-bench":
            return Path(message["executable"])
    raise SystemExit("cargo named no executable")


def _build_ns3(folder: Path) -> Path | None:
    """Builds our ns-3 program beside cargo's; None with the compiler's complaint if that fails."""
    if "libns3-dev" in missing_packages():
        say("skipping ns-3: its headers are missing (Debian packages g++ and libns3-dev)")
        return None
    say("building the ns-3 program (-O3)")
    binary = folder / "ns3-dumbbell"
    command = ["g++", "-O3", "-DNDEBUG", "-std=c++17", str(BENCH / "ns3" / "dumbbell.cc"), "-o", str(binary)]
    command += [f"-lns3-{library}" for library in NS3_LIBRARIES] + ["-Wl,--allow-shlib-undefined"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say(f"skipping ns-3: the program does not build\n{done.stderr.strip()}")
        return None
    return binary
