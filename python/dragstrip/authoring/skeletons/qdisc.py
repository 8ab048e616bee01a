"""A queue discipline to start from.

It compiles, is documented, tested, registered and usable at once, and behaves as a pfifo until its author
changes it (docs/how-to/new-qdisc.md).
"""

from __future__ import annotations

import re
from pathlib import Path

from dragstrip.authoring.skeletons.clone import WrittenFiles, read, with_line, with_module, write
from dragstrip.authoring.skeletons.names import existing, names, refused
from dragstrip.io import untrusted

DISCIPLINES = "crates/qdisc/src/disciplines"
SKELETON = "crates/qdisc/skeleton.{}.rs.txt"


def new_qdisc(clone: Path, name: str) -> WrittenFiles:
    """Write a discipline's folder and register it.

    Raises `BadInputError` for a name that cannot be used, `NotWrittenError`; nothing is written then.
    """
    called = names(name)
    # The kernel's names have underscores, and JSON's are made of the type's: no part may begin with a digit.
    if "-" in name or re.search("_[0-9]", name):
        raise refused(name, "a discipline's name: parts are joined by _ and begin with a letter")
    folder, registry = f"{DISCIPLINES}/{called.module}", f"{DISCIPLINES}/mod.rs"
    if name in _kinds(clone) or any((clone / place).exists() for place in (folder, f"{folder}.rs")):
        raise existing(name)
    listed = with_module(registry, read(clone, registry), called)
    line = f"{called.kind}({called.module}::{called.kind}Spec),"
    files = {
        f"{folder}/mod.rs": called.filled(read(clone, SKELETON.format("mod"))),
        f"{folder}/spec.rs": called.filled(read(clone, SKELETON.format("spec"))),
        registry: with_line(registry, listed, "disciplines", line),
    }
    return WrittenFiles(
        write(clone, files),
        f"cargo test --locked -p dragstrip-qdisc {called.module}, then cargo xtask generate",
    )


def _kinds(clone: Path) -> set[str]:
    """Return the names of the sources' disciplines, whatever the core at hand has."""
    files = (clone / DISCIPLINES).rglob("*.rs")
    texts = (untrusted.text(file, untrusted.SOURCE_MAX, "a source") for file in files)
    return {kind for text in texts for kind in re.findall(r"const KIND: &'static str = \"([^\"]+)\";", text)}
