"""Congestion controls in Rust files of their author's: `dragstrip compare my_cc.rs cubic`.

Such a file is compiled into a core of its own, which the cache keeps by its sources, and the command runs
with that core in place of the installed one; the checkout stays as it is (docs/how-to/new-algorithm.md).

Belongs here: what a command line names (`command`), what a file must have (`source`), and compiling (`core`).
Does not belong here: what the loaded core is made of (`dragstrip.model.recording.core_build`).
"""

from __future__ import annotations

from dragstrip.authoring.rust_files.command import entered

__all__ = ["entered"]
