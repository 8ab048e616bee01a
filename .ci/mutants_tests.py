#!/usr/bin/env python3
"""The tests of a mutant of the Python package: the files that `make check` chooses for the changed module.

cosmic-ray runs this in its copy of the checkout (.ci/mutants.py). The exit status is pytest's, or 0 where
no test file is chosen.
"""

from __future__ import annotations

import subprocess
import sys

import check


def main() -> int:
    """Return the exit status."""
    mutated = check.output("git", "diff", "--name-only", "HEAD").splitlines()
    chosen = check.test_files(set(mutated), core=False)
    tests = sorted(test for test in chosen if not test.startswith("tests/hosts/"))  # guests, for minutes
    if not tests:
        return 0
    words = ["-x", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    return subprocess.run([sys.executable, "-m", "pytest", *words], cwd=check.ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
