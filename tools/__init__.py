"""Programs that write this project's documentation; no part of the package.

Each runs from the repository's root: `python -m tools.NAME`.
"""
