"""What a capture says about the path between its ends.

Belongs here: the inference of each property of a path from a flow's segments, its limits, its text, and the
trial that grades it against known paths. Does not belong here: reading captures (`formats`, crates/inspect).
"""
