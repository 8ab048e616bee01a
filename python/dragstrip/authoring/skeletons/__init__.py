"""Files to start from in a clone of the sources: a congestion control, a queue discipline.

Belongs here: the rules of their names, and the lines that register them. Does not belong here: the texts
themselves, which stand beside the code that they become (crates/cc, crates/qdisc, bpf), and anything that
compiles.
"""

from __future__ import annotations

from dragstrip.authoring.skeletons.algorithm import new_algorithm, new_file
from dragstrip.authoring.skeletons.clone import WrittenFiles, clone
from dragstrip.authoring.skeletons.qdisc import new_qdisc

__all__ = ["WrittenFiles", "clone", "new_algorithm", "new_file", "new_qdisc"]
