"""Files that somebody measured: packet captures and the path, algorithm and advice that follow from them.

Scope: reading captures, inference of a path, what-if and diagnosis. Out of scope: the formats of other
programs (`interop`) and runs of our own (`studies`).
"""
