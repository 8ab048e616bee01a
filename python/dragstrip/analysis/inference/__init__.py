"""Inference of the path between the ends of a capture.

Belongs here: the inference of each property of a path from a flow's segments, its limits, and its text. Does
not belong here: reading captures (`analysis.captures`, crates/inspect), and the trial against known paths
(bench/inference.py).
"""
