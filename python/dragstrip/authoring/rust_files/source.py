"""A congestion control in a Rust file, as `dragstrip new-algorithm` writes it, and its registration."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from dragstrip.authoring.skeletons.algorithm import ALGORITHMS
from dragstrip.authoring.skeletons.clone import MARK, read, with_line, with_module
from dragstrip.authoring.skeletons.names import Names, names
from dragstrip.engines.contract import alike
from dragstrip.errors import BadInputError
from dragstrip.io import untrusted

MODULES = f"{ALGORITHMS}/mod.rs"
_NAME = re.compile(r'^ *name: *"([^"\n]*)"', re.MULTILINE)
_KIND = re.compile(r"^impl CongestionControl for ([A-Za-z][A-Za-z0-9_]*) ", re.MULTILINE)


@dataclass(frozen=True)
class RustFile:
    """A congestion control that is not registered in the checkout."""

    file: str
    """Name on the command line."""
    text: str
    called: Names
    sha256: str

    @property
    def name(self) -> str:
        """The algorithm's name: that of its row."""
        return self.called.registered

    @property
    def module(self) -> str:
        """Its file in the sources."""
        return f"{ALGORITHMS}/{self.called.module}.rs"


def rust_file(file: str) -> RustFile:
    """The congestion control in a file; raises `BadInputError` for a file that does not look like one."""
    text = untrusted.text(file, untrusted.SOURCE_MAX, "a congestion control in Rust")
    name, kind = _NAME.search(text), _KIND.search(text)
    if name is None or kind is None:
        lacking = '`name: "..."` in `ABOUT`' if name is None else "`impl CongestionControl for ...`"
        expected = f"has no {lacking}; `dragstrip new-algorithm NAME --out FOLDER` writes a file that has"
        raise BadInputError("", None, expected, file)
    try:
        called = names(name[1])
    except BadInputError as error:
        raise BadInputError("ABOUT.name", name[1], error.expected, file) from None
    called = Names(called.registered, called.module, kind[1])
    return RustFile(file, text, called, hashlib.sha256(text.encode()).hexdigest())


def registered(root: Path, algorithms: list[RustFile]) -> dict[str, str]:
    """The sources of a checkout that differ with these algorithms in it, by their paths.

    One that is a module of this very checkout is registered already. Raises `BadInputError` for a name that
    another algorithm has.
    """
    modules, registry = read(root, MODULES), read(root, MARK)
    changed = {}
    for algorithm in algorithms:
        module_path = root / algorithm.module
        changed[algorithm.module] = algorithm.text
        if module_path.exists() and module_path.samefile(algorithm.file):
            continue
        if module_path.exists() or alike(algorithm.name) in _reserved_names(root, algorithms, algorithm):
            expected = "another name: an algorithm of the sources, or another file, is called so"
            raise BadInputError("ABOUT.name", algorithm.name, expected, algorithm.file)
        modules = with_module(MODULES, modules, algorithm.called)
        line = f"{algorithm.called.module}: {algorithm.called.kind},"
        registry = with_line(MARK, registry, "algorithms", line)
    return {**changed, MODULES: modules, MARK: registry}


def _reserved_names(root: Path, algorithms: list[RustFile], registering: RustFile) -> set[str]:
    """The names of the sources' algorithms and of the other algorithms."""
    files = (root / ALGORITHMS).rglob("*.rs")
    texts = [untrusted.text(file, untrusted.SOURCE_MAX, "a source") for file in files]
    texts += [algorithm.text for algorithm in algorithms if algorithm is not registering]
    return {alike(name) for text in texts for name in _NAME.findall(text)}
